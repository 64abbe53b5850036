//! A climb and what every section of its page needs to know to draw it.

use dyno_record::climb::Climb;

/// Raw points on a page, over all its series: ten bytes each leave room for everything else within 400 kB.
const POINTS_MAX: usize = 12_000;

/// A climb and what every section needs to know to draw it.
pub(super) struct View<'c> {
    pub(super) climb: &'c Climb,
    /// Every how many-th raw point is drawn.
    pub(super) stride: usize,
}

impl<'c> View<'c> {
    pub(super) fn of(climb: &'c Climb) -> Self {
        let pairs: usize = climb.series.trials.iter().map(|compared| compared.trial.pairs.len()).sum();
        Self { climb, stride: (pairs + climb.series.rounds.len()).div_ceil(POINTS_MAX).max(1) }
    }
}

//! A site's case: every figure that its verdict is read from. `report` fills it, `obstacle` and `verdict` read it. Pure.

use std::time::Duration;

use dyno_record::causal::{Credibility, Metric, Point, SlowDown};

use super::backlog::Backlog;
use super::control::Found as Control;
use super::estimate::Estimates;
use super::lost::Lost;
use super::whole::{Behind, Dropped, PiledUp};

/// Chance of any false claim over all sites of a run. Half of what is promised, because a run is judged on data that
/// also said when to stop.
pub(super) const CHANCE_MAX: f64 = 0.02;
/// Least effect that matters: pauses are inexact by some tenths of a percent.
pub(super) const WORTH_POINTS: f64 = 0.5;

/// Everything that a verdict is read from.
pub(super) struct Case<'a> {
    pub(super) metric: Metric,
    pub(super) estimates: &'a Estimates,
    /// The estimates' figures with what the method itself may be off by, and the chance that there is no effect.
    pub(super) points: &'a [(Point, f64)],
    pub(super) credibility: &'a Credibility,
    /// Pause of the smallest level, µs.
    pub(super) least_pause_us: f64,
    pub(super) slow_down: Option<&'a SlowDown>,
    pub(super) lost: Lost,
    /// How long windows settled that still show what was done before them.
    pub(super) carries_over: Option<Duration>,
    /// What windows carry over to each other where there was no time to let it settle; part of each allowance.
    pub(super) carryover_points: f64,
    /// Share of the target's samples in loops that wait, percent, this site's own not counted.
    pub(super) spinning_elsewhere_percent: f64,
    pub(super) is_spinning: bool,
    /// It is a wait, and no code.
    pub(super) is_wait: bool,
    /// No sample lay in the site, no wait of its kind ended, in any window.
    pub(super) never_met: bool,
    /// More threads want to run than there are cores.
    pub(super) is_crowded: bool,
    /// How many sites are tried beside each other.
    pub(super) sites: usize,
    /// Its share of the samples, percent.
    pub(super) share_percent: Option<f64>,
    /// Visits per second.
    pub(super) per_second: f64,
    /// What pauses for all alike say; none where that could not be tried.
    pub(super) control: Option<Control>,
    /// What came in from outside meanwhile is worked off.
    pub(super) backlog: Option<Backlog>,
    /// How often a quota of CPU time was used up.
    pub(super) throttled: u64,
    /// Threads never wait, and yet run only such a share of the time, percent.
    pub(super) starved_percent: Option<f64>,
    /// Time that windows cut off at their ends, percent.
    pub(super) hidden_percent: f64,
    /// More units are under way with time.
    pub(super) piled_up: Option<PiledUp>,
    /// Its samples lie in windows that do not count.
    pub(super) dropped: Option<Dropped>,
    /// What others do for each visit, and did not.
    pub(super) behind: Option<Behind>,
    /// It is met often in some windows and hardly in others.
    pub(super) runs_in_phases: bool,
    /// What it calls has so many of the samples, percent, and was not made faster with it.
    pub(super) callees_percent: Option<f64>,
    /// Threads are in step with samples at some level.
    pub(super) in_step: bool,
    /// Share of the samples that met the site, percent.
    pub(super) met_percent: f64,
    /// Callers count: they are found by walking the stack.
    pub(super) is_inclusive: bool,
    /// Samples that came, of those that were due, percent.
    pub(super) sampled_percent: Option<f64>,
    pub(super) length: Duration,
    /// How long the run took, and how much of that the kernel had it wait between windows.
    pub(super) took: Duration,
    pub(super) waited: Duration,
}

impl<'a> Case<'a> {
    /// Figures that a verdict may rest on.
    pub(super) fn unbiased(&self) -> impl Iterator<Item = &'a (Point, f64)> + use<'a> {
        self.points.iter().filter(|(point, _)| !point.biased)
    }

    /// Levels that differ from nothing by more than chance, all that were looked at taken into account.
    pub(super) fn certain(&self) -> impl Iterator<Item = &'a Point> + use<'a> {
        let tests = self.points.len() as f64 * self.sites as f64;
        let is_certain = move |(point, p): &&'a (Point, f64)| {
            p * tests < CHANCE_MAX && point.effect_percent.abs() >= WORTH_POINTS
        };
        self.points.iter().filter(is_certain).map(|(point, _)| point)
    }

    /// The level that certainly saves most; of one that is biased the sign may be wrong, but not for nothing.
    pub(super) fn gain(&self) -> Option<&'a Point> {
        let gains = self.certain().filter(|point| {
            let own = if point.biased { point.allowance_points } else { 0.0 };
            point.interval_percent[0] + own > 0.0
        });
        gains.max_by(|a, b| (!a.biased).cmp(&!b.biased).then(a.effect_percent.total_cmp(&b.effect_percent)))
    }

    /// The level that certainly costs most, all that it may be off by taken into account.
    pub(super) fn loss(&self) -> Option<&'a Point> {
        let losses = self.certain().filter(|point| point.interval_percent[1] <= -WORTH_POINTS);
        losses.min_by(|a, b| a.effect_percent.total_cmp(&b.effect_percent))
    }

    /// The figure that a verdict gives.
    pub(super) fn greatest(&self) -> Option<&'a Point> {
        self.unbiased().map(|(point, _)| point).max_by_key(|point| point.speedup_percent)
    }
}

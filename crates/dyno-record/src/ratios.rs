//! What the total of a climb says, read from its record's rounds: the same when it is written and when it is
//! judged again.
//!
//! The climb and `dyno judge` call it. The arithmetic is [`dyno_measure::rounds`]'s.

use dyno_measure::rounds::Levels;

use crate::climb::{Climb, Ratio, Role, Series, Total};

/// What a total says, in the record's terms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratios {
    /// Requests per CPU-second, final over naive.
    pub gain: Ratio,
    /// The same over the start that has the headline rung.
    pub without: Option<Ratio>,
    /// CPU per request, final over floor.
    pub floor: Option<Ratio>,
}

impl Ratios {
    /// Reads them from the levels of arms that stand for these; `None` without start or end.
    #[must_use]
    pub fn of(levels: &Levels, roles: &[Role]) -> Option<Self> {
        let place = |wanted: Role| roles.iter().position(|role| *role == wanted);
        let last = place(Role::Final)?;
        let against = |under: usize, over: usize| levels.ratio(under, over).map(|e| Ratio::of(&e));
        Some(Self {
            gain: against(last, place(Role::Naive)?)?,
            without: place(Role::NaiveWithHeadline).and_then(|at| against(last, at)),
            floor: place(Role::Floor).and_then(|at| against(at, last)),
        })
    }

    /// Whether a record's total and floor follow from its rounds. `None` where it has no total, or one of an older program,
    /// which read it in another way.
    #[must_use]
    pub fn follow(climb: &Climb) -> Option<bool> {
        let total = climb.total.as_ref().filter(|total| total.starts > 0)?;
        let roles: Vec<Role> = total.arms.iter().map(|arm| arm.role).collect();
        let again = total.levels(&climb.series).and_then(|levels| Self::of(&levels, &roles));
        let stored =
            Self { gain: total.gain, without: total.without.as_ref().map(|w| w.gain), floor: climb.floor };
        Some(again.is_some_and(|again| again.near(&stored)))
    }

    /// The same, but for the last bit that decimal text may cost a number.
    fn near(&self, other: &Self) -> bool {
        let ends = |r: &Self| {
            [Some(r.gain), r.without, r.floor].map(|r| r.map(|r| [r.ratio, r.interval[0], r.interval[1]]))
        };
        let near = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * b.abs());
        ends(self).into_iter().zip(ends(other)).all(|pair| match pair {
            (Some(a), Some(b)) => near(a, b),
            (a, b) => a == b,
        })
    }
}

impl Total {
    /// The levels of its arms, from a record's rounds.
    #[must_use]
    pub fn levels(&self, series: &Series) -> Option<Levels> {
        let levels = Levels::of(&series.rounds, &series.round_starts, self.by_totals)?;
        Some(if self.outside { levels } else { levels.all_charged() })
    }
}

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
        // An arm beside the way on which a proof did not hold was measured, and is not told.
        let told =
            |again: Self| Self { without: again.without.filter(|_| stored.without.is_some()), ..again };
        Some(again.is_some_and(|again| told(again).near(&stored)))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_measure::series::Block;

    use super::*;
    use crate::climb::{Arm, Without};

    /// Three starts of five rounds of start, start with the headline, end and floor, with what a climb tells of them.
    fn measured() -> Climb {
        let roles = [Role::Naive, Role::NaiveWithHeadline, Role::Final, Role::Floor];
        let block = |ns: u64| Block { replies: 1_000, cpu_in_ns: 1_000 * ns, ..Block::default() };
        let round = |at: u64| [6_000, 4_500, 3_000, 2_900].map(|ns| block(ns + at % 7)).to_vec();
        let series = Series {
            rounds: (0..15).map(round).collect(),
            round_starts: (0..15).map(|round| round / 5).collect(),
            ..Series::default()
        };
        let arms = roles.map(|role| Arm { role, ..Arm::default() }).to_vec();
        let total = Total { starts: 3, arms, outside: true, ..Total::default() };
        let told = Ratios::of(&total.levels(&series).unwrap(), &roles).unwrap();
        let without = told.without.map(|gain| Without { rung: "a=on".to_owned(), gain });
        let total = Total { gain: told.gain, without, ..total };
        Climb { total: Some(total), floor: told.floor, series, ..Climb::default() }
    }

    /// Planted faults: an arm that is left out contradicts the record; any `without` does for one that is told.
    #[test]
    fn a_record_follows_from_its_rounds_also_where_an_arm_beside_the_way_is_left_out() {
        let mut climb = measured();
        assert_eq!(Ratios::follow(&climb), Some(true));
        climb.total.as_mut().unwrap().without.as_mut().unwrap().gain.ratio *= 1.001;
        assert_eq!(Ratios::follow(&climb), Some(false));
        climb.total.as_mut().unwrap().without = None;
        assert_eq!(Ratios::follow(&climb), Some(true));
        climb.total.as_mut().unwrap().gain.ratio *= 1.001;
        assert_eq!(Ratios::follow(&climb), Some(false));
    }
}

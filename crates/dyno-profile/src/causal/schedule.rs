//! When what is tried: rounds in random order, windows as long as progress needs, and when a site is done.

use std::time::Duration;

use dyno_measure::Prng;
use dyno_measure::causal::Deed;

use super::estimate::Estimates;

/// A window where progress is frequent. A machine with neighbours changes its speed within seconds: the same time in
/// windows of a tenth of a second gives intervals half as wide as in windows of a quarter.
const WINDOW_SHORT: Duration = Duration::from_millis(100);
/// Visits that are frequent enough for it.
const VISITS_FREQUENT: u64 = 100;
/// A window: long against the millisecond between samples, and against queues that fill and empty.
const WINDOW: Duration = Duration::from_millis(250);
/// Rarer progress than five visits in this time is not measured.
const WINDOW_MAX: Duration = Duration::from_secs(4);
/// Visits that a window should have: the time of one more or less is then no error, since visits are timed, but units of
/// work that differ average out.
const VISITS_WANTED: u64 = 20;
/// Fewer visits than these in the longest window tell nothing.
pub(super) const VISITS_MIN: u64 = 5;

/// Fewest rounds that a verdict rests on.
pub(super) const ROUNDS_MIN: usize = 5;
/// Fewest rounds before a narrow interval ends a site: of few rounds one in twenty looks narrow by chance.
const ROUNDS_BEFORE_END: usize = 8;
/// Half the width, in points, from which on an interval is narrow enough.
pub(super) const NARROW_POINTS: f64 = 1.0;
/// Rounds with a real slow-down that end a site.
const COST_ROUNDS: usize = 8;

/// What is done in one round of a site, in random order: its own null twice, every level, and the slow-down where there
/// is one.
pub(super) fn round(levels: &[u32], added_ns: Option<u64>, rng: &mut Prng) -> Vec<Deed> {
    let mut deeds = vec![Deed::Nothing; 2];
    deeds.extend(levels.iter().map(|level| Deed::SpeedUp(*level)));
    deeds.extend(added_ns.map(Deed::SlowDown));
    rng.shuffle(&mut deeds);
    deeds
}

/// How long a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Length(pub(super) Duration);

impl Length {
    pub(super) fn first() -> Length {
        Length(WINDOW_SHORT)
    }

    /// A longer one, when so many visits are too few for it and it may be longer.
    pub(super) fn lengthened(self, visits: u64) -> Option<Length> {
        let (wanted, longer) = if self.0 < WINDOW {
            (VISITS_FREQUENT, WINDOW)
        } else {
            (VISITS_WANTED, (self.0 * 2).min(WINDOW_MAX))
        };
        (visits < wanted && longer != self.0).then_some(Length(longer))
    }
}

/// Whether more rounds would change nothing that matters.
pub(super) fn is_done(estimates: &Estimates, levels: &[u32], wants_cost: bool) -> bool {
    let narrow = |level: &u32| {
        let found =
            estimates.points.iter().map(|(point, _)| point).find(|point| point.speedup_percent == *level);
        found.is_some_and(|point| {
            let [low, high] = point.interval_percent;
            point.rounds >= ROUNDS_BEFORE_END && (high - low) / 2.0 < NARROW_POINTS
        })
    };
    let cost_rounds = estimates.cost.map_or(0, |(_, _, rounds)| rounds);
    levels.iter().all(narrow) && (!wants_cost || cost_rounds >= COST_ROUNDS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_measure::causal::Point;

    #[test]
    fn a_round_has_everything_once_and_its_null_twice_in_an_order_of_chance() {
        let mut rng = Prng::new(3);
        let (mut firsts, wanted) = (std::collections::HashSet::new(), [10, 25, 50]);
        for _ in 0..50 {
            let deeds = round(&wanted, Some(7), &mut rng);
            assert_eq!(deeds.iter().filter(|deed| **deed == Deed::Nothing).count(), 2);
            assert!(wanted.iter().all(|level| deeds.contains(&Deed::SpeedUp(*level))));
            assert!(deeds.contains(&Deed::SlowDown(7)) && deeds.len() == 6);
            firsts.insert(format!("{:?}", deeds[0]));
        }
        assert_eq!(firsts.len(), 5);
    }

    #[test]
    fn windows_are_doubled_until_there_are_enough_visits_or_four_seconds() {
        let mut length = Length::first();
        assert_eq!(length.lengthened(100), None);
        assert_eq!(length.lengthened(99), Some(Length(WINDOW)));
        assert_eq!(Length(WINDOW).lengthened(20), None);
        while let Some(longer) = length.lengthened(3) {
            length = longer;
        }
        assert_eq!(length.0, WINDOW_MAX);
    }

    #[test]
    fn a_site_is_done_when_every_level_is_narrow_and_the_gate_was_asked() {
        let point = |half: f64| Point {
            speedup_percent: 50,
            interval_percent: [-half, half],
            rounds: 9,
            ..Point::default()
        };
        let of = |half: f64| Estimates { points: vec![(point(half), 0.5)], ..Estimates::default() };
        assert!(is_done(&of(0.9), &[50], false) && !is_done(&of(1.1), &[50], false));
        assert!(!is_done(&of(0.9), &[25, 50], false) && !is_done(&of(0.9), &[50], true));
        let asked = Estimates { cost: Some((3.0, [2.0, 4.0], 8)), ..of(0.9) };
        assert!(is_done(&asked, &[50], true));
    }
}

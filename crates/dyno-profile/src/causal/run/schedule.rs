//! When what is tried: rounds in random order, windows as long as progress needs, and when a site is done.

use std::time::Duration;

use dyno_measure::Prng;
use dyno_record::causal::Treatment;

use super::estimate::Estimates;

/// A window where progress is frequent. A machine with neighbours changes its speed within seconds: the same time in
/// windows of a tenth of a second gives intervals half as wide as in windows of a quarter.
const WINDOW_SHORT: Duration = Duration::from_millis(100);
/// Visits that are frequent enough for it.
const VISITS_FREQUENT: u64 = 100;
/// A window: long against the millisecond between samples, and against most queues that fill and empty.
const WINDOW: Duration = Duration::from_millis(250);
/// Rarer progress than five visits in this time is not measured.
const WINDOW_MAX: Duration = Duration::from_secs(4);
/// Visits that a window should have: the time of one more or less is then no error, since visits are timed, but units of
/// work that differ average out.
const VISITS_WANTED: u64 = 20;
/// Nulls of a round.
const NULLS: usize = 2;
/// What a window takes beside its length: settling and cooling off.
pub(super) const AROUND: Duration = Duration::from_millis(16);
/// Share of a budget that is left for rounds: the rest says what the target is like.
const ROUNDS_SHARE: f64 = 0.8;
/// How long a treatment lasts before its window opens: pauses of some samples are then under way.
pub(super) const SETTLE: Duration = Duration::from_millis(5);
/// Where what was done before still shows after that, a queue fills or drains: so many windows are waited for, first the
/// fewer, then the more.
const SETTLE_WINDOWS: [u32; 2] = [4, 16];
/// The longest time to settle.
const SETTLE_MAX: Duration = Duration::from_secs(4);
/// Windows before the first delay, and their share of the budget: what the target is like that nothing was done to.
const BASELINE: u32 = 6;
const BASELINE_SHARE: f64 = 0.05;
/// How often as many more are run for a target that still gets faster by itself.
pub(super) const WARM_UPS_MAX: u32 = 3;
/// By how much the second half of them must be faster for that (log).
pub(super) const WARM_UP_LN: f64 = 0.015;
/// Fewest of them that anything is compared with.
pub(super) const BASELINE_MIN: u32 = 3;
/// How often a target that has drifted from its baseline is left alone for [`SETTLE_MAX`], to see if it comes back.
pub(super) const RECOVERIES_MAX: u32 = 4;
/// With fewer visits in the longest window progress is not measured.
pub(super) const VISITS_MIN: u64 = 5;

/// Fewest rounds that a verdict rests on.
pub(super) const ROUNDS_MIN: usize = 5;
/// Rounds that a site should have time for.
pub(super) const ROUNDS_BEFORE_END: usize = 8;
/// Fewest rounds before a narrow interval ends a site: of few rounds one in twenty looks narrow by chance, and a phase that
/// takes a quarter of the time is met by none of eight once in ten times, by none of sixteen once in a hundred.
const ROUNDS_BEFORE_DONE: usize = 16;
/// Half the width, in points, from which on an interval is narrow enough.
pub(super) const NARROW_POINTS: f64 = 1.0;
/// And where hand-offs add points of their own to it.
pub(super) const NARROWER_POINTS: f64 = 0.5;
/// Half the width, method and all, of an interval around nothing that says so: in points; or as a part of what the site's
/// share of the samples would bring if everybody waited for it.
const NOTHING_POINTS: f64 = 2.0;
const NOTHING_OF_SHARE: f64 = 1.0 / 3.0;
/// Where time is short a site is done at such a part of what its share would bring.
const DONE_OF_SHARE: f64 = 0.15;
/// Rounds with a real slow-down before a site may end.
const COST_ROUNDS: usize = 8;
/// Rounds with it from which on it is left out: it bounds a claim, and more of it would only cost time.
pub(super) const COST_ROUNDS_ENOUGH: usize = 16;

/// What is done in one round of a site, in random order: its own null twice, every level, and the slow-down where there
/// is one.
pub(super) fn round(levels: &[u32], added_ns: Option<u64>, rng: &mut Prng) -> Vec<Treatment> {
    let mut treatments = vec![Treatment::Nothing; NULLS];
    treatments.extend(levels.iter().map(|level| Treatment::SpeedUp(*level)));
    treatments.extend(added_ns.map(Treatment::SlowDown));
    rng.shuffle(&mut treatments);
    debug_assert_eq!(
        treatments.iter().filter(|one| **one == Treatment::Nothing).count(),
        NULLS,
        "a pair of nulls"
    );
    treatments
}

/// How far an interval around nothing may reach, in points, to be called nothing.
pub(super) fn narrow_enough(level: u32, share_percent: Option<f64>) -> f64 {
    let of_share = share_percent.map_or(0.0, |share| share * f64::from(level) / 100.0);
    (NOTHING_OF_SHARE * of_share).max(NOTHING_POINTS)
}

/// Half the width from which on a site is done where time is short.
pub(super) fn done_where_scarce(level: u32, share_percent: Option<f64>) -> f64 {
    let of_share = share_percent.map_or(0.0, |share| share * f64::from(level) / 100.0);
    (DONE_OF_SHARE * of_share).max(NARROW_POINTS)
}

/// How many sites get the rounds that a verdict rests on, at one level each, in such a time; one at least.
pub fn sites_that_fit(per_second: f64, left: Duration) -> usize {
    let mut length = Length::first();
    while let Some(longer) = length.lengthened((per_second * length.0.as_secs_f64()) as u64) {
        length = longer;
    }
    let round = (length.0 + AROUND) * (NULLS + 1) as u32;
    let rounds = left.as_secs_f64() * ROUNDS_SHARE / round.as_secs_f64();
    (rounds as usize / ROUNDS_BEFORE_END).max(1)
}

/// The levels that all sites have time for: those that a verdict rests on first, the greatest of them before the others.
/// `window` is what one window takes.
pub(super) fn levels_that_fit(
    levels: &[u32],
    is_biased: impl Fn(u32) -> bool,
    sites: usize,
    window: Duration,
    left: Duration,
) -> Vec<u32> {
    let fits = |count: usize| window * ((NULLS + count) * sites * ROUNDS_BEFORE_END) as u32 <= left;
    let mut wanted: Vec<u32> = levels.to_vec();
    // A greater level says more, as far as it says anything.
    wanted.sort_by_key(|level| {
        (is_biased(*level), if is_biased(*level) { i64::from(*level) } else { -i64::from(*level) })
    });
    let count = (1..=wanted.len()).rev().find(|count| fits(*count)).unwrap_or(1);
    wanted.truncate(count);
    wanted.sort_unstable();
    debug_assert!(levels.is_empty() || !wanted.is_empty(), "one level is tried at least");
    wanted
}

/// How long a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Length(pub(super) Duration);

impl Length {
    pub(super) fn first() -> Length {
        Length(WINDOW_SHORT)
    }

    /// The next longer time to settle, where what was done still shows after `so_far` and is supposed to show for `perhaps`;
    /// `None` where there is no longer one.
    pub(super) fn to_settle(self, so_far: Duration, perhaps: Duration) -> Option<Duration> {
        let [some, many] = SETTLE_WINDOWS.map(|windows| (self.0 * windows).min(SETTLE_MAX));
        let longer = || [some, many, SETTLE_MAX].into_iter().filter(|settle| *settle > so_far);
        let settle = longer().find(|settle| *settle > perhaps).or_else(|| longer().next_back());
        debug_assert!(settle.is_none_or(|settle| settle > so_far && settle <= SETTLE_MAX));
        settle
    }

    /// A longer one of which the ends are a smaller part, where they hide `percent` of the time and may hide `most`.
    pub(super) fn around(self, percent: f64, most: f64) -> Option<Length> {
        let wanted = self.0.mul_f64((1.5 * percent / most).max(2.0)).min(WINDOW_MAX);
        (wanted > self.0).then_some(Length(wanted))
    }

    /// How many windows are run before the first delay.
    pub(super) fn baseline(self, budget: Duration) -> u32 {
        // Where a recovery would have too few windows to be compared with it, a baseline is of no use.
        if self.recovery() < BASELINE_MIN + 1 {
            return 0;
        }
        let affordable = BASELINE_SHARE * budget.as_secs_f64() / self.0.as_secs_f64();
        (affordable as u32).clamp(BASELINE_MIN, BASELINE)
    }

    /// How many windows a target is left alone for, to see if it comes back to its baseline.
    pub(super) fn recovery(self) -> u32 {
        (SETTLE_MAX.as_secs_f64() / self.0.as_secs_f64()) as u32
    }

    /// A longer one, when so many visits are too few for it and it may be longer.
    pub(super) fn lengthened(self, visits: u64) -> Option<Length> {
        let (wanted, longer) = if self.0 < WINDOW {
            (VISITS_FREQUENT, WINDOW)
        } else {
            (VISITS_WANTED, (self.0 * 2).min(WINDOW_MAX))
        };
        debug_assert!(longer >= self.0 && longer <= WINDOW_MAX, "windows grow, to a limit");
        (visits < wanted && longer != self.0).then_some(Length(longer))
    }
}

/// Whether more rounds would change nothing that matters.
pub(super) fn is_done(estimates: &Estimates, levels: &[u32], narrow_points: f64, wants_cost: bool) -> bool {
    let narrow = |level: &u32| {
        let found =
            estimates.points.iter().map(|(point, _)| point).find(|point| point.speedup_percent == *level);
        found.is_some_and(|point| {
            let [low, high] = point.interval_percent;
            point.rounds >= ROUNDS_BEFORE_DONE && (high - low) / 2.0 < narrow_points
        })
    };
    let cost_rounds = estimates.cost.map_or(0, |cost| cost.rounds);
    levels.iter().all(narrow) && (!wants_cost || cost_rounds >= COST_ROUNDS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::estimate::Cost;
    use super::*;
    use dyno_record::causal::Point;

    #[test]
    fn a_round_has_everything_once_and_its_null_twice_in_an_order_of_chance() {
        let mut rng = Prng::new(3);
        let (mut firsts, wanted) = (std::collections::HashSet::new(), [10, 25, 50]);
        for _ in 0..50 {
            let treatments = round(&wanted, Some(7), &mut rng);
            assert_eq!(treatments.iter().filter(|one| **one == Treatment::Nothing).count(), 2);
            assert!(wanted.iter().all(|level| treatments.contains(&Treatment::SpeedUp(*level))));
            assert!(treatments.contains(&Treatment::SlowDown(7)) && treatments.len() == 6);
            firsts.insert(format!("{:?}", treatments[0]));
        }
        assert_eq!(firsts.len(), 5);
    }

    #[test]
    fn where_time_is_short_the_greatest_level_that_says_something_is_kept() {
        let fit = |sites, seconds, biased: u32| {
            let window = Duration::from_millis(266);
            levels_that_fit(
                &[10, 25, 50],
                |level| level >= biased,
                sites,
                window,
                Duration::from_secs(seconds),
            )
        };
        assert_eq!(fit(1, 50, 100), [10, 25, 50]);
        assert_eq!(fit(8, 50, 100), [50]);
        assert_eq!(fit(8, 50, 50), [25]);
        assert_eq!(fit(5, 45, 100), [25, 50]);
        let second = Duration::from_secs;
        assert_eq!((sites_that_fit(100.0, second(48)), sites_that_fit(5_000.0, second(48))), (6, 13));
        assert_eq!(sites_that_fit(1.0, second(20)), 1);
    }

    #[test]
    fn what_is_called_nothing_is_small_beside_two_points_or_beside_its_share() {
        assert!((narrow_enough(50, Some(40.0)) - 20.0 / 3.0).abs() < 1e-9);
        assert!((narrow_enough(10, None) - 2.0).abs() < 1e-9);
        assert!((done_where_scarce(50, Some(40.0)) - 3.0).abs() < 1e-9);
        assert!((done_where_scarce(50, Some(4.0)) - 1.0).abs() < 1e-9);
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
    fn what_is_carried_over_settles_for_four_windows_then_for_more_and_never_beyond_four_seconds() {
        let length = Length(WINDOW);
        assert_eq!(length.to_settle(SETTLE, SETTLE), Some(4 * WINDOW));
        assert_eq!(length.to_settle(4 * WINDOW, SETTLE), Some(SETTLE_MAX));
        assert_eq!(length.to_settle(SETTLE, 5 * WINDOW), Some(SETTLE_MAX));
        assert_eq!(length.to_settle(SETTLE, 2 * SETTLE_MAX), Some(SETTLE_MAX));
        assert_eq!(length.to_settle(SETTLE_MAX, SETTLE), None);
        assert_eq!(Length(WINDOW_MAX).to_settle(SETTLE, SETTLE), Some(SETTLE_MAX));
        assert_eq!(Length::first().to_settle(16 * WINDOW_SHORT, SETTLE), Some(SETTLE_MAX));
        assert_eq!(
            (length.baseline(Duration::from_secs(60)), length.baseline(Duration::from_secs(20))),
            (6, 4)
        );
        assert_eq!((length.recovery(), Length(WINDOW_MAX).recovery()), (16, 1));
        assert_eq!(Length(WINDOW_MAX).baseline(Duration::from_secs(600)), 0);
    }

    #[test]
    fn a_site_is_done_when_every_level_is_narrow_and_the_gate_was_asked() {
        let point = |half: f64| Point {
            speedup_percent: 50,
            interval_percent: [-half, half],
            rounds: 16,
            ..Point::default()
        };
        let of = |half: f64| Estimates { points: vec![(point(half), 0.5)], ..Estimates::default() };
        assert!(is_done(&of(0.9), &[50], 1.0, false) && !is_done(&of(1.1), &[50], 1.0, false));
        assert!(!is_done(&of(0.9), &[25, 50], 1.0, false) && !is_done(&of(0.9), &[50], 1.0, true));
        let cost = Cost { percent: 3.0, interval_percent: [2.0, 4.0], rounds: 8 };
        let asked = Estimates { cost: Some(cost), ..of(0.9) };
        assert!(is_done(&asked, &[50], 1.0, true));
    }
}

//! Whether work that came in during pauses lies before the target long after them: left alone it waits for what comes in
//! from outside, and in windows without pauses among the others it hardly does. Then somebody outside says how much there is
//! to do (an open load, a limit that lets what was missed be fetched later), and in such windows it shows how fast it can
//! work off what it has missed, which nobody waits for otherwise. Who is asked by as many clients as ever
//! has no more of it than that. One that looks for work in a loop is never seen to wait: it does more in such windows than
//! it did before the first pause. Work may lie between two of its own threads as well: those that waited for each other before
//! the first pause, and no longer do, or never did, and now do. Pure.

use dyno_measure::stats;
use dyno_measure::student::chance;

use super::mean::{Mean, VALUES_MIN};
use super::measured::{Effective, excluded};
use super::seen::{OUTER_WAKES_PER_SECOND, OUTER_WAKES_PER_VISIT};
use crate::causal::rig::window::Window;

/// Part of them that is left among pauses, from which on it is no backlog.
const LEFT_MAX: f64 = 0.9;
/// How often chance alone may be taken for one.
const CHANCE_MAX: f64 = 0.001;
/// Least spread of a window's waits per visit, as a part of what they were before: equal windows would make everything certain.
const SPREAD_MIN: f64 = 0.02;
/// The same of how often visits come, which a clock makes exact.
const PACE_SPREAD_MIN: f64 = 0.003;
/// Threads that wake each other this often hand on work.
const HAND_OFFS_PER_SECOND: f64 = 1.0;
/// Deviations by which single windows are faster than any before the first pause may be, and how many of them are no chance.
const FAR_SIGMAS: f64 = 6.0;
const FAST_MIN: usize = 3;
const FAST_SHARE_MIN: f64 = 0.05;
/// Fewer visits in a window say nothing of how often it waits.
const VISITS_MIN: u64 = 5;

/// How many times as fast it is since the first pause, from which on it may be working something off: machines drift by less.
const FASTER_MIN: f64 = 1.015;
/// The same where there were fewer windows than this before the first pause: a program that warms up is slower at first.
const FASTER_OF_FEW: f64 = 1.03;
const BEFORE_FEW: usize = 6;

/// What shows one, before the first pause and in windows without any since then.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Backlog {
    /// Waits for something outside per visit.
    Waits([f64; 2]),
    /// Visits per second.
    Pace([f64; 2]),
    /// Waits of threads for each other per visit.
    HandsOn([f64; 2]),
}

/// Windows before the first pause against those without pauses since; `None` where they are alike, or too few.
pub(super) fn backlog<'w>(
    before: impl Iterator<Item = &'w Window>,
    since: impl Iterator<Item = &'w Window>,
) -> Option<Backlog> {
    let (before, since): (Vec<&Window>, Vec<&Window>) = (before.collect(), since.collect());
    by_waits(&before, &since).or_else(|| by_pace(&before, &since)).or_else(|| by_hand_offs(&before, &since))
}

/// Threads that waited for each other before the first pause and no longer do so between pauses have a queue between them that
/// pauses have filled or drained: neither side of it is waited for until that is made up for. Those that did not and now do have
/// had one that is used up, or full, by now.
fn by_hand_offs(before: &[&Window], since: &[&Window]) -> Option<Backlog> {
    let [before, since] = [before, since].map(|windows| Waits::of(windows, |window| window.inner_wakes));
    let (before, since) = (before?, since?);
    let hands_on = [&before, &since].iter().any(|waits| waits.per_second >= HAND_OFFS_PER_SECOND);
    let is_other = since.is_less_than(&before) || before.is_less_than(&since);
    (hands_on && is_other).then_some(Backlog::HandsOn([before.per_visit.mean, since.per_visit.mean]))
}

/// What is faster than it was before it was disturbed works off what came in meanwhile, or has become another program: in all
/// windows, or in those that follow long pauses.
fn by_pace(before: &[&Window], since: &[&Window]) -> Option<Backlog> {
    // Where threads wait for each other work stands in queues of its own, which fill and empty again.
    let count = |of: fn(&Window) -> u64| before.iter().map(|window| of(window)).sum::<u64>() as f64;
    if 1e9 * count(|window| window.inner_wakes)
        >= HAND_OFFS_PER_SECOND * count(|window| window.length_ns).max(1.0)
    {
        return None;
    }
    let (before, since) = (periods_ns(&long(before, since)), periods_ns(since));
    let (a, b) = (Mean::of(&before)?, Mean::of(&since)?);
    let sd = |mean: &Mean| mean.sd.max(PACE_SPREAD_MIN * mean.mean);
    let faster = if a.n < BEFORE_FEW { FASTER_OF_FEW } else { FASTER_MIN };
    let all_are = a.mean >= faster * b.mean && pooled_chance(&a, &b, sd) < CHANCE_MAX;
    let limit = (a.mean - FAR_SIGMAS * sd(&a)).min(a.mean / FASTER_MIN);
    let fast: Vec<f64> = since.into_iter().filter(|period| *period < limit).collect();
    let some_are = fast.len() >= FAST_MIN && fast.len() as f64 >= FAST_SHARE_MIN * b.n as f64;
    let mean = match (all_are, some_are) {
        (true, _) => b.mean,
        (false, true) => stats::mean(&fast),
        (false, false) => return None,
    };
    Some(Backlog::Pace([a.mean, mean].map(|period| 1e9 / period)))
}

/// Windows before the first pause that are as long as those since, if there are enough: the first ones, which find out how
/// long windows must be, have few visits and differ by that alone.
fn long<'w>(before: &[&'w Window], since: &[&Window]) -> Vec<&'w Window> {
    let longest_ns = since.iter().map(|window| window.length_ns).max().unwrap_or(0);
    let long = before.iter().copied().filter(|window| counts(window) && 2 * window.length_ns > longest_ns);
    let long: Vec<&Window> = long.collect();
    if long.len() >= VALUES_MIN { long } else { before.to_vec() }
}

/// How often chance alone makes two means differ by as much, where windows since the first pause are as those before it: then
/// all of them say how far windows differ, and not the few before it alone.
fn pooled_chance(a: &Mean, b: &Mean, sd: impl Fn(&Mean) -> f64) -> f64 {
    let [of_a, of_b] = [a, b].map(|mean| mean.n as f64 - 1.0);
    let variance = (of_a * sd(a).powi(2) + of_b * sd(b).powi(2)) / (of_a + of_b);
    let error = (variance * (1.0 / a.n as f64 + 1.0 / b.n as f64)).sqrt();
    chance((a.mean - b.mean) / error, of_a + of_b)
}

/// Whether a window says how often visits come.
fn counts(window: &Window) -> bool {
    window.visits >= VISITS_MIN && excluded(window).is_none()
}

/// Between two visits, in windows that count.
fn periods_ns(windows: &[&Window]) -> Vec<f64> {
    let counted = windows.iter().filter(|window| counts(window));
    counted.filter_map(|window| Effective::of(window)).map(|one| one.period_ns).collect()
}

fn by_waits(before: &[&Window], since: &[&Window]) -> Option<Backlog> {
    let [before, since] = [before, since].map(|windows| Waits::of(windows, |window| window.outer_wakes));
    let (before, since) = (before?, since?);
    let waits = before.per_visit.mean >= OUTER_WAKES_PER_VISIT || before.per_second >= OUTER_WAKES_PER_SECOND;
    (waits && since.is_less_than(&before))
        .then_some(Backlog::Waits([before.per_visit.mean, since.per_visit.mean]))
}

/// Waits of one kind in windows that count.
struct Waits {
    per_visit: Mean,
    per_second: f64,
}

impl Waits {
    fn of(windows: &[&Window], of: fn(&Window) -> u64) -> Option<Waits> {
        let (mut each, mut waits, mut ns) = (Vec::new(), 0, 0);
        for window in windows.iter().filter(|window| counts(window)) {
            each.push(of(window) as f64 / window.visits as f64);
            waits += of(window);
            ns += window.length_ns;
        }
        let per_second = 1e9 * waits as f64 / ns.max(1) as f64;
        Some(Waits { per_visit: Mean::of(&each)?, per_second })
    }

    /// Who becomes faster by himself waits more rarely per visit, and as often per second for what is no work.
    fn is_less_than(&self, before: &Waits) -> bool {
        let (a, b) = (&before.per_visit, &self.per_visit);
        let variance = |mean: &Mean| mean.sd.max(SPREAD_MIN * a.mean).powi(2) / mean.n as f64;
        let error = (variance(a) + variance(b)).sqrt();
        // Of the fewer of them, which vary by themselves.
        let freedom = a.n.min(b.n) as f64 - 1.0;
        b.mean <= LEFT_MAX * a.mean
            && self.per_second <= LEFT_MAX * before.per_second
            && chance((a.mean - b.mean) / error, freedom) < CHANCE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causal::rig::window::Moment;

    fn windows(waits: &[u64]) -> Vec<Window> {
        waits
            .iter()
            .map(|waits| Window {
                visits: 10,
                outer_wakes: *waits,
                length_ns: 1_000_000,
                ..Window::default()
            })
            .collect()
    }

    /// Planted faults: no `LEFT_MAX`; however rarely it waited; windows with one visit count.
    #[test]
    fn who_waited_for_work_before_the_pauses_and_no_longer_does_has_a_backlog() {
        let found = |before: &[u64], since: &[u64]| {
            backlog(windows(before).iter(), windows(since).iter()).map(|one| {
                let Backlog::Waits(waits) = one else { panic!("{one:?}") };
                waits.map(|waits| (100.0 * waits).round())
            })
        };
        assert_eq!(found(&[9, 10, 9, 8], &[1, 2, 0, 1, 1]), Some([90.0, 10.0]));
        assert_eq!(found(&[9, 10, 9, 8], &[9, 10, 8, 8, 9]), None, "as often as before");
        assert_eq!(found(&[10; 8], &[9; 20]).map(|_| ()), Some(()), "a tenth is missing");
        assert_eq!(found(&[100; 8], &[93; 20]), None, "nearly as often");
        assert_eq!(found(&[2, 0, 1, 0], &[0; 5]), None, "hardly ever");
        assert_eq!(found(&[9, 10], &[0; 5]), None, "two windows are no measure");
        assert_eq!(found(&[9, 2, 12, 1], &[1, 4, 0, 9]), None, "they differ among themselves");
        let one = vec![Window { visits: 1, outer_wakes: 10, ..Window::default() }; 4];
        assert_eq!(backlog(one.iter(), windows(&[0; 5]).iter()), None, "a visit is no measure");
    }

    /// Planted faults: `by_hand_offs` left out; what is rarer alone counts; however rarely they waited.
    #[test]
    fn threads_that_no_longer_wait_for_each_other_have_a_queue_between_them() {
        let windows = |wakes: &[u64]| {
            let plain = windows(&vec![0; wakes.len()]);
            let long = |(one, inner_wakes): (Window, &u64)| Window {
                inner_wakes: *inner_wakes,
                length_ns: 100_000_000,
                ..one
            };
            plain.into_iter().zip(wakes).map(long).collect::<Vec<_>>()
        };
        let found = |before: &[u64], since: &[u64]| backlog(windows(before).iter(), windows(since).iter());
        assert_eq!(found(&[10; 6], &[0, 1, 0, 2, 0, 0, 0, 1]), Some(Backlog::HandsOn([1.0, 0.05])));
        assert!(matches!(found(&[0; 6], &[9, 10, 8, 10, 9, 10]), Some(Backlog::HandsOn(_))), "used up");
        assert_eq!(found(&[10; 6], &[9, 10, 10, 10, 9, 10]), None, "as ever");
        assert_eq!(found(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[0; 20]), None, "hardly ever");
        assert_eq!(found(&[10, 2, 9, 0, 8, 1], &[4, 9, 0, 1, 10, 0]), None, "they differ among themselves");
    }

    /// Planted faults: no `FASTER_MIN`; slower is taken for faster; what drifts is taken for certain; the few windows before the
    /// first pause alone say how far windows differ; short ones count (`long` that takes all).
    #[test]
    fn who_is_faster_than_before_the_first_pause_works_something_off() {
        let windows = |periods: &[u64]| -> Vec<Window> {
            let last = |period: u64| Moment { at_ns: 100 * period, inserted_ns: 0 };
            let one = |period: &u64| Window {
                visits: 101,
                length_ns: 1_000_000,
                last: last(*period),
                ..Window::default()
            };
            periods.iter().map(one).collect()
        };
        let found = |before: &[u64], since: &[u64]| backlog(windows(before).iter(), windows(since).iter());
        let Some(Backlog::Pace([before, since])) = found(&[10_000; 8], &[9_000; 20]) else { panic!() };
        assert!((before - 1e5).abs() < 1.0 && (since - 1e9 / 9_000.0).abs() < 1.0, "{before} {since}");
        assert_eq!(found(&[10_000; 8], &[9_900; 20]), None, "a hundredth is drift");
        assert_eq!(found(&[9_000; 8], &[10_000; 20]), None, "slower");
        assert_eq!(found(&[10_000; 2], &[9_000; 20]), None, "two windows are no measure");
        assert!(found(&[10_100, 9_900, 10_000], &[9_300, 9_400, 9_500].repeat(5)).is_some(), "three are one");
        let short = |one: Window| Window { length_ns: 100_000, ..one };
        let first = windows(&[12_000, 8_000, 9_000]).into_iter().map(short);
        let before: Vec<Window> = first.chain(windows(&[10_000; 3])).collect();
        assert!(backlog(before.iter(), windows(&[9_000; 20]).iter()).is_some(), "short ones say nothing");
        let mut since = [10_000; 40];
        since[..3].fill(9_000);
        let Some(Backlog::Pace([_, faster])) = found(&[10_000; 8], &since) else { panic!() };
        assert!((faster - 1e9 / 9_000.0).abs() < 1.0, "after long pauses alone: {faster}");
        assert_eq!(found(&[10_000; 8], &[&[9_000; 2][..], &[10_000; 30]].concat()), None, "two are chance");
        assert_eq!(
            found(&[10_000; 8], &[&[9_000; 3][..], &[10_000; 90]].concat()),
            None,
            "so are three of many"
        );
        let with_queue = |periods: &[u64], inner_wakes| {
            windows(periods).into_iter().map(|one| Window { inner_wakes, ..one }).collect::<Vec<_>>()
        };
        let [queue, faster] = [with_queue(&[10_000; 8], 1), with_queue(&[9_000; 20], 1)];
        assert_eq!(backlog(queue.iter(), faster.iter()), None, "a queue of its own");
        let [fast, slow] = [[9_000, 10_500, 9_200, 10_300], [10_400, 9_400, 10_600, 9_300]];
        assert_eq!(found(&slow, &fast), None, "they differ among themselves");
    }
}

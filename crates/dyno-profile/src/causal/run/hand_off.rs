//! The bias of the method where threads hand on to each other: a pause comes as one lump, where the real saving would be
//! spread over the run between two hand-offs. Pure.

use dyno_record::causal::{Credibility, Point};

/// What a figure may be off by on a live machine even where one thread does all: pauses begin late and end late, and a
/// sample's interrupt falls into some code. One thread in three parts, shortened for real, was off by 0.1 to 0.6
/// where chance explained 0.2.
const EXACT_POINTS: f64 = 0.4;
/// Figures of runs shorter than so many pauses between hand-offs are biased.
const PAUSES_PER_HAND_OFF: f64 = 10.0;
/// What that bias comes to, in points, where a pause is as long as the run between hand-offs; in proportion below and
/// above. Of simulated locks, joins and pipelines with runs of 10 to 80 pauses none was further from the truth than chance
/// and this, nor were 28 levels of live specimens with fewer, down to a seventh of a pause.
const HAND_OFF_POINTS: f64 = 30.0;
/// Bias of a level by hand-offs, in points, from which on shorter pauses are worth their interrupts.
const SHORTER_PAUSES_POINTS: f64 = 1.0;
/// A time can be saved once.
const POINTS_MAX: f64 = 100.0;
/// Hand-offs at less than this per visit are not what progress is made of: a server that is woken once for many requests.
const HAND_OFFS_PER_VISIT: f64 = 0.1;

/// A level's pause over the run between two hand-offs; nought where hand-offs are not what progress is made of.
fn pause_of_run(level: u32, seen: &Credibility, per_second: f64) -> f64 {
    let matters = seen.inner_wakes >= HAND_OFFS_PER_VISIT * per_second;
    let run_us = seen.run_between_wakes_us.filter(|_| matters);
    run_us.map_or(0.0, |run_us| seen.period_us * f64::from(level) / 100.0 / run_us.max(1.0))
}

/// By how many points hand-offs may bias a level's figure.
fn bias_points(level: u32, seen: &Credibility, per_second: f64) -> f64 {
    HAND_OFF_POINTS * pause_of_run(level, seen, per_second)
}

/// By how many points a level's figure may be off, chance aside.
fn allowance(level: u32, seen: &Credibility, per_second: f64) -> f64 {
    (EXACT_POINTS + bias_points(level, seen, per_second)).min(POINTS_MAX)
}

/// Whether any level would gain from shorter pauses.
pub(super) fn wants_shorter_pauses(levels: &[u32], seen: &Credibility, per_second: f64) -> bool {
    levels.iter().any(|level| bias_points(*level, seen, per_second) > SHORTER_PAUSES_POINTS)
}

/// Whether hand-offs bias a level's figure by too much for a verdict to rest on it.
pub(super) fn is_biased(level: u32, seen: &Credibility, per_second: f64) -> bool {
    pause_of_run(level, seen, per_second) * PAUSES_PER_HAND_OFF > 1.0
}

/// A figure with the method's own error, and with what windows leave behind for each other, in its interval.
pub(super) fn allowed(point: &Point, seen: &Credibility, per_second: f64, carryover_points: f64) -> Point {
    let of_method = allowance(point.speedup_percent, seen, per_second);
    let allowance_points = (of_method + carryover_points).min(POINTS_MAX);
    let [low, high] = point.interval_percent;
    debug_assert!(
        (0.0..=POINTS_MAX).contains(&allowance_points),
        "intervals never shrink: {allowance_points}"
    );
    Point {
        interval_percent: [low - allowance_points, high + allowance_points],
        allowance_points,
        biased: is_biased(point.speedup_percent, seen, per_second),
        ..*point
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_hand_offs_leave_only_short_pauses_unless_they_are_rare() {
        let of = |run: f64, wakes: f64| Credibility {
            run_between_wakes_us: Some(run),
            inner_wakes: wakes,
            period_us: 1_000.0,
            ..Credibility::default()
        };
        let unbiased =
            |seen: &Credibility, per_second| [10, 25, 50].map(|at| !is_biased(at, seen, per_second));
        let points = |seen: &Credibility, per_second| [10, 25, 50].map(|at| allowance(at, seen, per_second));
        let some = of(1_500.0, 1_000.0);
        assert_eq!((unbiased(&some, 500.0), points(&some, 500.0)), ([true, false, false], [2.4, 5.4, 10.4]));
        assert_eq!(unbiased(&of(60.0, 1_000.0), 500.0), [false; 3]);
        assert_eq!(points(&of(6.0, 1_000.0), 500.0), [POINTS_MAX; 3]);
        let rare = of(60.0, 1_000.0);
        assert_eq!((unbiased(&rare, 50_000.0), points(&rare, 50_000.0)), ([true; 3], [EXACT_POINTS; 3]));
        let point = Point { speedup_percent: 10, interval_percent: [1.0, 2.0], ..Point::default() };
        assert_eq!(allowed(&point, &of(1_500.0, 1_000.0), 500.0, 0.0).interval_percent, [-1.4, 4.4]);
    }
}

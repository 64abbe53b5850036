//! The bias of the method where threads hand on to each other: a pause comes as one lump, where the real saving would be
//! spread over the run between two hand-offs. Pure.

use dyno_record::causal::{Credibility, Point};

/// What a figure may be off by on a live machine even where one thread does all, where nobody measured what interrupts take:
/// pauses begin late and end late, and a sample's interrupt falls into some code.
const EXACT_POINTS: f64 = 0.4;
/// Figures of runs shorter than so many pauses between hand-offs are biased.
const PAUSES_PER_HAND_OFF: f64 = 10.0;
const BIAS_POINTS_MAX: f64 = HAND_OFF_POINTS / PAUSES_PER_HAND_OFF;
/// What that bias comes to, in points, where a pause is as long as the run between hand-offs; in proportion below and
/// above. Of simulated locks, joins and pipelines with runs of 10 to 80 pauses none was further from the truth than chance
/// and this, nor were 28 levels of live specimens with fewer, down to a seventh of a pause.
const HAND_OFF_POINTS: f64 = 30.0;
/// The same where who waits does so in a loop, and owes nothing for what was inserted meanwhile. Of simulated joins, barriers,
/// pipelines and locks of two and three threads with turns of 0.3 to 15 ms none was further from the truth.
const SPIN_POINTS: f64 = 18.0;
/// Bias of a level by hand-offs, in points, from which on shorter pauses are worth their interrupts.
const SHORTER_PAUSES_POINTS: f64 = 1.0;
/// A time can be saved once.
const POINTS_MAX: f64 = 100.0;
/// A client that takes part and wakes a server at each visit paces it; one that does so more seldom than this, per visit,
/// does as much less: the server hardly ever sleeps, and one wake-up brings many requests. Of hand-offs among the target's
/// own threads that is not so, however many units of work one of them is counted as: a lock is as long as its turn.
const PARTNER_WAKES_PER_VISIT: f64 = 0.1;
/// CPU time of a target, percent of one CPU, below which none of its threads works all of the time: it takes turns with its
/// client, and a turn is one hand-off, however many units it is counted as.
const WORKS_ALWAYS_PERCENT: f64 = 80.0;

/// The part of a client's wake-ups that hand on.
fn partner_weight(seen: &Credibility, per_second: f64) -> f64 {
    if seen.target_cpu_percent < WORKS_ALWAYS_PERCENT {
        return 1.0;
    }
    (seen.partner_wakes / (PARTNER_WAKES_PER_VISIT * per_second.max(1.0))).min(1.0)
}

/// A level's pause over the run between two hand-offs; nought where there are none.
fn pause_of_run(level: u32, seen: &Credibility, per_second: f64) -> f64 {
    let weight = partner_weight(seen, per_second);
    let wakes = seen.inner_wakes - seen.partner_wakes * (1.0 - weight);
    if wakes <= 0.0 {
        return 0.0;
    }
    let run_us = seen.run_between_wakes_us.map(|run_us| run_us * seen.inner_wakes / wakes);
    run_us.map_or(0.0, |run_us| seen.period_us * f64::from(level) / 100.0 / run_us.max(1.0))
}

/// The same of hand-offs to those who wait in a loop.
fn pause_of_spin(level: u32, seen: &Credibility) -> f64 {
    seen.run_between_spins_us
        .map_or(0.0, |run_us| seen.period_us * f64::from(level) / 100.0 / run_us.max(1.0))
}

/// What interrupts take of the time, of a level's part of it: pauses leave it out by as much as was measured, and what that
/// is wrong by is less.
fn exactness(level: u32, seen: &Credibility) -> f64 {
    seen.interrupt_us.map_or(EXACT_POINTS, |us| f64::from(level) * us / seen.period_us.max(1.0))
}

/// By how many points hand-offs may bias a level's figure.
fn bias_points(level: u32, seen: &Credibility, per_second: f64) -> f64 {
    HAND_OFF_POINTS * pause_of_run(level, seen, per_second) + SPIN_POINTS * pause_of_spin(level, seen)
}

/// By how many points a level's figure may be off, chance aside.
fn allowance(level: u32, seen: &Credibility, per_second: f64) -> f64 {
    (exactness(level, seen) + bias_points(level, seen, per_second)).min(POINTS_MAX)
}

/// Whether any level would gain from shorter pauses.
pub(super) fn wants_shorter_pauses(levels: &[u32], seen: &Credibility, per_second: f64) -> bool {
    levels.iter().any(|level| bias_points(*level, seen, per_second) > SHORTER_PAUSES_POINTS)
}

/// Whether hand-offs bias a level's figure by too much for a verdict to rest on it.
pub(super) fn is_biased(level: u32, seen: &Credibility, per_second: f64) -> bool {
    bias_points(level, seen, per_second) > BIAS_POINTS_MAX
}

/// A figure with the method's own error in its interval, and with what else it may be off by: `more_points`.
pub(super) fn allowed(point: &Point, seen: &Credibility, per_second: f64, more_points: f64) -> Point {
    let of_method = allowance(point.speedup_percent, seen, per_second);
    let allowance_points = (of_method + more_points).min(POINTS_MAX);
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

    /// Planted fault: `WORKS_ALWAYS_PERCENT` of nought: turns of a thousand units are no hand-offs.
    #[test]
    fn short_hand_offs_leave_only_short_pauses_however_many_units_a_turn_is_counted_as() {
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
        let many_units = of(60.0, 1_000.0);
        assert_eq!(unbiased(&many_units, 50_000.0), [false; 3]);
        // A server that works all of the time, woken once for fifty requests, for ten, and for each.
        let client =
            Credibility { partner_wakes: 1_000.0, target_cpu_percent: 100.0, ..of(1_000.0, 1_000.0) };
        assert_eq!(unbiased(&client, 50_000.0), [true; 3]);
        assert!((allowance(50, &client, 50_000.0) - EXACT_POINTS - 3.0).abs() < 1e-9);
        assert_eq!(unbiased(&client, 10_000.0), [true, false, false]);
        assert_eq!(unbiased(&client, 1_000.0), [true, false, false]);
        // One that works half of the time, woken once for a thousand.
        let turns = Credibility { target_cpu_percent: 50.0, ..of(500.0, 1_000.0) };
        let turns = Credibility { partner_wakes: 1_000.0, ..turns };
        assert_eq!(unbiased(&turns, 1e6), [false; 3]);
        assert!((allowance(10, &turns, 1e6) - EXACT_POINTS - 6.0).abs() < 1e-9);
        let measured = Credibility { interrupt_us: Some(20.0), period_us: 1_000.0, ..Credibility::default() };
        assert_eq!(points(&measured, 50_000.0), [0.2, 0.5, 1.0]);
        // Waits in loops, each 2 ms of work. Planted fault: they are no hand-offs (`pause_of_spin` of nought).
        let spins =
            Credibility { run_between_spins_us: Some(2_000.0), period_us: 1_000.0, ..Credibility::default() };
        assert_eq!((unbiased(&spins, 500.0), points(&spins, 500.0)), ([true, true, false], [1.3, 2.65, 4.9]));
        let short = Credibility { run_between_spins_us: Some(650.0), ..spins };
        assert_eq!(unbiased(&short, 500.0), [true, false, false]);
        let point = Point { speedup_percent: 10, interval_percent: [1.0, 2.0], ..Point::default() };
        assert_eq!(allowed(&point, &of(1_500.0, 1_000.0), 500.0, 0.0).interval_percent, [-1.4, 4.4]);
    }
}

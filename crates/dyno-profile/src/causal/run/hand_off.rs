//! The bias of the method where threads hand on to each other: a pause comes as one lump, where the real saving would be
//! spread over the run between two hand-offs. Pure.

use dyno_record::causal::{Credibility, Point, Treatment};

use super::measured::Measured;
use super::seen::{self, Sampling};
use crate::causal::rig::window::Window;

/// What a figure may be off by on a live machine even where one thread does all, where nobody measured what interrupts take:
/// pauses begin late and end late, and a sample's interrupt falls into some code.
const EXACT_POINTS: f64 = 0.4;
/// Figures of runs shorter than so many pauses between hand-offs are biased.
const PAUSES_PER_HAND_OFF: f64 = 10.0;
pub(super) const BIAS_POINTS_MAX: f64 = HAND_OFF_POINTS / PAUSES_PER_HAND_OFF;
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

/// What was seen in some windows, with visits per second.
struct Seen(Credibility, f64);

/// How threads hand on in all windows of a site, and in those of each level: where a part is faster threads wait at other places,
/// and perhaps more often. Two threads that hardly met at a lock do so all the time when what they do outside takes half as long.
pub(super) struct Handed {
    all: Seen,
    levels: Vec<(u32, Seen)>,
}

impl Handed {
    pub(super) fn of(measured: &[Measured], sampling: Sampling) -> Handed {
        let seen = |windows: Vec<Window>| {
            Seen(seen::credibility(windows.iter(), sampling), seen::per_second(windows.iter()))
        };
        let mut levels: Vec<u32> = measured.iter().filter_map(level_of).collect();
        levels.sort_unstable();
        levels.dedup();
        let of_level = |level| {
            let own = measured.iter().filter(|one| one.treatment == Treatment::SpeedUp(level));
            (level, seen(own.map(|one| without_pauses(&one.window)).collect()))
        };
        let all = seen(measured.iter().map(|one| one.window.clone()).collect());
        Handed { all, levels: levels.into_iter().map(of_level).collect() }
    }

    /// All windows, and those of the level.
    fn seen(&self, level: u32) -> impl Iterator<Item = &Seen> {
        let own = self.levels.iter().filter(move |(of, _)| *of == level).map(|(_, seen)| seen);
        std::iter::once(&self.all).chain(own)
    }

    /// Whether hand-offs bias a level's figure by too much for a verdict to rest on it.
    pub(super) fn is_biased(&self, level: u32) -> bool {
        self.seen(level).any(|Seen(seen, per_second)| is_biased(level, seen, *per_second))
    }

    /// A figure with the method's own error in its interval, and with what else it may be off by: `more_points`.
    pub(super) fn allowed(&self, point: &Point, more_points: f64) -> Point {
        let allowances = self
            .seen(point.speedup_percent)
            .map(|Seen(seen, per_second)| allowance(point.speedup_percent, seen, *per_second));
        let biased = self.is_biased(point.speedup_percent);
        Point { biased, ..widened(point, allowances.fold(0.0, f64::max) + more_points) }
    }
}

/// A pause is no work between two hand-offs. Those of who takes part are counted among the target's: where there are any it is not
/// known.
fn without_pauses(window: &Window) -> Window {
    let pauses_ns = if window.partner_wakes == 0 { window.paid_ns } else { 0 };
    Window { target_cpu_ns: window.target_cpu_ns.saturating_sub(pauses_ns), ..window.clone() }
}

fn level_of(one: &Measured) -> Option<u32> {
    match one.treatment {
        Treatment::SpeedUp(level) => Some(level),
        Treatment::Nothing | Treatment::SlowDown(_) => None,
    }
}

/// Whether hand-offs bias a level's figure by too much for a verdict to rest on it.
pub(super) fn is_biased(level: u32, seen: &Credibility, per_second: f64) -> bool {
    bias_points(level, seen, per_second) > BIAS_POINTS_MAX
}

fn widened(point: &Point, points: f64) -> Point {
    let allowance_points = points.min(POINTS_MAX);
    let [low, high] = point.interval_percent;
    debug_assert!(
        (0.0..=POINTS_MAX).contains(&allowance_points),
        "intervals never shrink: {allowance_points}"
    );
    Point { interval_percent: [low - allowance_points, high + allowance_points], allowance_points, ..*point }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causal::rig::Pause;

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
    }

    /// As two threads that hardly meet at a lock, and do so all the time when the rest of their turn takes half as long. Planted
    /// fault: hand-offs of all windows together stand for each level's (`Handed::seen` of `all` alone).
    #[test]
    fn a_level_at_which_threads_wait_more_often_is_as_inexact_as_its_own_hand_offs_make_it() {
        // Pauses are no work: a second fault is to take them for some.
        let window = |inner_wakes| Window {
            length_ns: 200_000_000,
            visits: 50,
            inner_wakes,
            target_cpu_ns: 140_000_000,
            paid_ns: 40_000_000,
            ..Window::default()
        };
        let one = |treatment, wakes| Measured::new(0, treatment, window(wakes));
        let mut measured = vec![one(Treatment::Nothing, 0); 8];
        measured.extend([one(Treatment::SpeedUp(10), 1), one(Treatment::SpeedUp(50), 50)]);
        let sampling =
            Sampling { pause: Pause::TaskWork, period_ns: 1_000_000, interrupt_ns: Some(0), cpus: 2 };
        let handed = Handed::of(&measured, sampling);
        assert_eq!([10, 50].map(|level| handed.is_biased(level)), [false, true]);
        let points = |level| {
            let point = Point { speedup_percent: level, interval_percent: [10.0, 12.0], ..Point::default() };
            let allowed = handed.allowed(&point, 0.5);
            (allowed.allowance_points, allowed.interval_percent[0])
        };
        // A pause of half a millisecond in each 2 ms of work, and of a tenth in each 27.5 of all.
        let (points_50, low) = points(50);
        assert!((points_50 - 8.0).abs() < 0.01 && (low - 2.0).abs() < 0.01, "{points_50}");
        assert!((points(10).0 - 0.61).abs() < 0.01, "{}", points(10).0);
    }
}

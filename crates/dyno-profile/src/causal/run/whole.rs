//! Whether windows hold the whole of what a target does: what they leave out is no noise, and a site that lives there
//! cannot be said to have no effect. Pure: the verdict asks, and the loop for longer windows.
//!
//! - What lies between two visits for longer than a window (a collector, a flush, a checkpoint) is cut off at its ends:
//!   the time before the first visit and after the last is no part of a period.
//! - Windows that are set aside as unlike the others may be those in which the site runs: phases that alternate.
//! - Work that other threads do for each visit may fall behind while they pause: then visits live on what was done before.

use std::collections::BTreeSet;

use dyno_measure::stats;
use dyno_record::causal::Treatment;

use super::mean::Mean;
use super::measured::{Effective, Excluded, FOREIGN_PERCENT_MAX, Measured, excluded, foreign_percent};
use crate::causal::rig::window::Window;

/// Periods that lie outside of the first and last visit where visits come by chance; of regular ones it is one.
const EDGE_PERIODS: f64 = 2.0;
/// Fewest windows whose edges say something.
const EDGES_MIN: usize = 8;
/// Fewest samples in a site that lie anywhere by more than chance.
const HITS_MIN: u64 = 20;
/// By how much the share of the samples in dropped windows exceeds these windows' own share where the site lives there.
const DROPPED_MORE: f64 = 0.2;
/// Least fall of the work for each visit that is one, and how often chance alone may give it.
const FALL_MIN: f64 = 0.05;
const FALL_CHANCE_MAX: f64 = 0.001;
/// Wake-ups of each other per visit from which on visits are tied to them, and the part of them that is left when they are not.
const WAKES_TIED: f64 = 0.05;
const WAKES_LEFT_MAX: f64 = 0.5;
/// Wake-ups of each other per second, and of a whole run, from which on threads hand on work at all: a pipe wakes its writer
/// once for a page of it, and that may last for seconds.
const WAKES_PER_SECOND: f64 = 0.1;
const WAKES_MIN: u64 = 3;

/// Share of the time that lies outside of first and last visits and should not, percent; `None` of few windows. Where others
/// had the CPUs, they made the holes.
pub(super) fn hidden_percent<'w>(windows: impl Iterator<Item = &'w Window>) -> Option<f64> {
    let (mut edges_ns, mut due_ns, mut all_ns, mut count) = (0.0, 0.0, 0.0, 0);
    for window in undisturbed(windows) {
        let length_ns = window.length_ns as f64;
        let effective = Effective::of(window);
        let inside_ns = window.last.at_ns.saturating_sub(window.first.at_ns) as f64;
        edges_ns += effective.map_or(length_ns, |_| (length_ns - inside_ns).max(0.0));
        due_ns += effective.map_or(0.0, |_| EDGE_PERIODS * inside_ns / (window.visits - 1) as f64);
        (all_ns, count) = (all_ns + length_ns, count + 1);
    }
    (count >= EDGES_MIN).then(|| (100.0 * (edges_ns - due_ns) / f64::max(all_ns, 1.0)).max(0.0))
}

/// Least part of the CPU time of the fullest window that one has in which others were there and took nothing.
const FULL_PART: f64 = 0.95;

/// Windows in which others were not there, or the target ran as much as ever: who still waits for a core when a window ends
/// has not been counted as waiting.
fn undisturbed<'w>(windows: impl Iterator<Item = &'w Window>) -> Vec<&'w Window> {
    let mut all: Vec<&Window> = windows.filter(|window| excluded(window).is_none()).collect();
    let ran = |window: &Window| window.target_cpu_ns as f64 / window.length_ns.max(1) as f64;
    let most = all.iter().map(|window| ran(window)).fold(0.0, f64::max);
    all.retain(|window| foreign_percent(window) <= FOREIGN_PERCENT_MAX || ran(window) >= FULL_PART * most);
    all
}

/// By how many units more are under way in the last third of the windows than in the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PiledUp {
    pub(super) units: i64,
}

/// Fewest windows, and by how many more units must be under way in the last third of them than in the first, for units to pile up. How
/// many were under way before the first is not known.
const PILED_WINDOWS_MIN: usize = 12;
const PILED_MIN: i64 = 10;
/// As many come in the second half of that time as in the first, at least this part of it: a program that warms up comes to rest.
const STEADY_PART_MIN: f64 = 0.5;

/// Whether units of a pair pile up at a steady pace: of a steady program about as many are under way at the end as at the beginning.
pub(super) fn piled_up<'w>(windows: impl Iterator<Item = &'w Window>) -> Option<PiledUp> {
    let mut pairs: Vec<(u64, i64)> =
        windows.filter_map(|window| window.pair).map(|pair| (pair.opened_ns, pair.in_flight)).collect();
    if pairs.len() < PILED_WINDOWS_MIN {
        return None;
    }
    pairs.sort_unstable();
    let third = pairs.len() / 3;
    let sorted = |from: usize| {
        let mut all: Vec<i64> = pairs[from..from + third].iter().map(|(_, in_flight)| *in_flight).collect();
        all.sort_unstable();
        all
    };
    let thirds = [0, (pairs.len() - third) / 2, pairs.len() - third].map(sorted);
    let [first, second, last] = [0, 1, 2].map(|at| thirds[at][third / 2]);
    let (before, after) = ((second - first) as f64, (last - second) as f64);
    let is_steady = before.min(after) >= STEADY_PART_MIN * before.max(after);
    let is_apart = thirds[2][0] > thirds[0][third - 1];
    (last - first >= PILED_MIN && is_steady && is_apart).then_some(PiledUp { units: last - first })
}

/// Where a site's samples lie, when most of them lie in windows that do not count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dropped {
    /// Of its samples, and of the windows in which it was faster, percent.
    pub(super) hits_percent: f64,
    pub(super) windows_percent: f64,
}

/// Whether a site's samples lie in windows that were set aside.
pub(super) fn dropped(measured: &[Measured]) -> Option<Dropped> {
    let is_tried = |one: &&Measured| {
        matches!(one.treatment, Treatment::SpeedUp(_)) && !one.excluded.is_some_and(Excluded::is_replaced)
    };
    let is_unlike = |one: &Measured| matches!(one.excluded, Some(Excluded::Outlier | Excluded::Visits));
    let (mut hits, mut windows) = ([0_u64; 2], [0_u64; 2]);
    for one in measured.iter().filter(is_tried) {
        let at = usize::from(is_unlike(one));
        hits[at] += one.window.hits;
        windows[at] += 1;
    }
    let share = |[kept, dropped]: [u64; 2]| dropped as f64 / (kept + dropped).max(1) as f64;
    let is_there = hits[0] + hits[1] >= HITS_MIN && share(hits) > share(windows) + DROPPED_MORE;
    is_there.then(|| Dropped { hits_percent: 100.0 * share(hits), windows_percent: 100.0 * share(windows) })
}

/// Spread of a site's samples over windows of one level, as a part of their mean and over what chance explains, from which
/// on it runs in phases.
const PHASES_PART: f64 = 0.15;
const PHASES_OVER_CHANCE: f64 = 4.0;

/// Shares of the samples that lie in the site, of the windows of a level, and how many samples each has in the mean.
fn shares(measured: &[Measured], level: Option<u32>) -> (Vec<f64>, f64) {
    let is_tried = |one: &&Measured| match one.treatment {
        Treatment::SpeedUp(of) => one.excluded.is_none() && level.is_none_or(|level| of == level),
        _ => false,
    };
    let tried = || measured.iter().filter(is_tried).map(|one| &one.window);
    let shares = tried().map(|window| window.hits as f64 / window.samples.max(1) as f64);
    (shares.collect(), stats::mean(&tried().map(|window| window.samples as f64).collect::<Vec<_>>()))
}

/// Whether the site is met often in some windows and hardly in others where the same was done.
pub(super) fn runs_in_phases(measured: &[Measured]) -> bool {
    let levels: BTreeSet<u32> = measured
        .iter()
        .filter_map(|one| match one.treatment {
            Treatment::SpeedUp(level) => Some(level),
            _ => None,
        })
        .collect();
    levels.into_iter().any(|level| {
        let (shares, samples) = shares(measured, Some(level));
        let (mean, spread) = (stats::mean(&shares), stats::deviation(&shares));
        let over_chance = spread * spread * samples / mean.max(1e-9);
        shares.len() >= EDGES_MIN && spread >= PHASES_PART * mean && over_chance > PHASES_OVER_CHANCE
    })
}

/// By what part a level's figure may be off because its windows met the site more or less often than those of all levels
/// did; nought where windows are alike.
pub(super) fn met_otherwise(measured: &[Measured], level: u32) -> f64 {
    if !runs_in_phases(measured) {
        return 0.0;
    }
    let [all, own] = [None, Some(level)].map(|level| stats::mean(&shares(measured, level).0));
    if own > 0.0 { (1.0 - all / own).abs().min(1.0) } else { 0.0 }
}

/// Deviations that chance makes of how often a site is met.
const MET_SIGMAS: f64 = 2.0;

/// By what part a level's figure may be off because samples met the site more often than in windows without delays, or less
/// often. Pauses begin with samples: threads whose turns take about as long as samples are apart fall in step with them, and are
/// found at the same place again and again. Where a queue fills more of it is done for each visit, and where others pause it has
/// more of the samples: it is in step where both are so. Nought where chance explains it, or nothing is known.
pub(super) fn met_in_step(measured: &[Measured], level: u32) -> f64 {
    let met = |treatment: Treatment| {
        let own = measured.iter().filter(|one| one.treatment == treatment && one.excluded.is_none());
        Met::of(own.map(|one| &one.window))
    };
    let [alone, own] = [Treatment::Nothing, Treatment::SpeedUp(level)].map(met);
    let (Some(alone), Some(own)) = (alone, own) else { return 0.0 };
    let (for_visits, of_samples) =
        ((own.for_visit / alone.for_visit).ln(), (own.of_samples / alone.of_samples).ln());
    let by_chance = MET_SIGMAS * alone.error.hypot(own.error);
    let both = if for_visits * of_samples > 0.0 { for_visits.abs().min(of_samples.abs()) } else { 0.0 };
    if both > by_chance { -(-both).exp_m1() } else { 0.0 }
}

/// How often windows met a site.
struct Met {
    for_visit: f64,
    of_samples: f64,
    /// What chance makes of it, as a part: as windows differ, and as samples do.
    error: f64,
}

impl Met {
    fn of<'w>(windows: impl Iterator<Item = &'w Window>) -> Option<Met> {
        let (mut each, mut hits, mut visits, mut worked) = (Vec::new(), 0, 0, 0);
        for window in windows {
            each.push(window.hits as f64 / window.visits.max(1) as f64);
            hits += window.hits;
            visits += window.visits;
            worked += window.samples.saturating_sub(window.spun);
        }
        let n = each.len() as f64;
        let of_windows = stats::deviation(&each) / stats::mean(&each) / n.sqrt();
        let error = of_windows.max(1.0 / (hits as f64).sqrt());
        let part = |all: u64| hits as f64 / all.max(1) as f64;
        (hits >= HITS_MIN && n >= 2.0).then(|| Met {
            for_visit: part(visits),
            of_samples: part(worked),
            error,
        })
    }
}

/// Work that is done for each visit, and was not while others paused, or was done beforehand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Behind {
    /// How much less it was; more, where the site did more than visits took.
    pub(super) fell_percent: f64,
    /// Threads hand on work to each other, and visits were not tied to it: what lies between them is used up, or filled.
    pub(super) lives_on_backlog: bool,
}

/// Whether less, or more, is done for each visit while a site is faster than the target does without delays: work that
/// belongs to a visit does not become less by pauses, nor more. The greatest level shows it best, also where its figure is
/// biased: work is counted, not time. `plain` are all windows without delays.
pub(super) fn behind<'w>(measured: &[Measured], plain: impl Iterator<Item = &'w Window>) -> Option<Behind> {
    let counts = |one: &&Measured| matches!(one.excluded, None | Some(Excluded::Outlier));
    let level = |one: &Measured| match one.treatment {
        Treatment::SpeedUp(level) => Some(level),
        Treatment::Nothing | Treatment::SlowDown(_) => None,
    };
    let level = measured.iter().filter(counts).filter_map(level).max()?;
    let nulls = || measured.iter().filter(counts).filter(|one| one.is_null());
    let faster = || measured.iter().filter(counts).filter(|one| one.treatment == Treatment::SpeedUp(level));
    let rest = |one: &Measured| {
        let of_round: Vec<f64> = nulls().filter(|null| null.round == one.round).filter_map(work).collect();
        let null = of_round.iter().sum::<f64>() / of_round.len() as f64;
        Some(work(one)? - null).filter(|rest| rest.is_finite())
    };
    let mean = Mean::of(&faster().filter_map(rest).collect::<Vec<_>>())?;
    let fell = -mean.mean.exp_m1();
    let all = || measured.iter().filter(|one| !one.is_null()).map(|one| &one.window);
    let plain: Vec<&Window> = plain.collect();
    let hands_on = hands_on(plain.iter().copied().chain(all()));
    let lives_on_backlog = hands_on && !is_tied(&plain, faster().map(|one| &one.window));
    let behind = Behind { fell_percent: 100.0 * fell, lives_on_backlog };
    (fell.abs() >= FALL_MIN && mean.p < FALL_CHANCE_MAX).then_some(behind)
}

/// Whether threads of the target wake each other for what may be work.
fn hands_on<'w>(windows: impl Iterator<Item = &'w Window>) -> bool {
    let (wakes, ns) =
        windows.fold((0, 0), |(wakes, ns), window| (wakes + window.inner_wakes, ns + window.length_ns));
    wakes >= WAKES_MIN && 1e9 * wakes as f64 >= WAKES_PER_SECOND * ns as f64
}

/// Whether visits of the faster windows are tied to hand-offs as they are without delays.
fn is_tied<'w>(plain: &[&Window], faster: impl Iterator<Item = &'w Window>) -> bool {
    let per_visit = |wakes: u64, visits: u64| wakes as f64 / visits.max(1) as f64;
    // A queue that was full once, and is not any more, is there all the same.
    let of_plain = plain.iter().map(|window| per_visit(window.inner_wakes, window.visits));
    let before = of_plain.fold(0.0, f64::max);
    let (wakes, visits) =
        faster.fold((0, 0), |(wakes, visits), one| (wakes + one.inner_wakes, visits + one.visits));
    before >= WAKES_TIED && per_visit(wakes, visits) >= WAKES_LEFT_MAX * before
}

/// What the target computed for each visit, without its pauses and its waits in loops, as a logarithm. Pauses of those who take
/// part are counted among its own: where they do, it is not known.
fn work(one: &Measured) -> Option<f64> {
    let window = &one.window;
    let ran_ns = window.target_cpu_ns.checked_sub(window.paid_ns)?;
    let worked_ns = ran_ns as f64 * (1.0 - window.spun as f64 / window.samples.max(1) as f64);
    let is_known = window.partner_wakes == 0 && worked_ns > 0.0 && window.visits > 0;
    is_known.then(|| (worked_ns / window.visits as f64).ln())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causal::rig::window::{Moment, Pair};

    const MS: u64 = 1_000_000;

    fn window(from_ms: u64, to_ms: u64, visits: u64) -> Window {
        let at = |ms: u64| Moment { at_ns: ms * MS, inserted_ns: 0 };
        let (first, last) = (at(from_ms), at(to_ms));
        Window { length_ns: 100 * MS, visits, first, last, samples: 100, ..Window::default() }
    }

    #[test]
    fn what_is_cut_off_at_the_ends_of_windows_is_told_from_the_ends_of_periods() {
        let regular = vec![window(1, 100, 100); 10];
        assert_eq!(hidden_percent(regular.iter()), Some(0.0));
        let mut cut = regular.clone();
        // A collector of 60 ms that lies across the ends of two.
        (cut[3], cut[4]) = (window(0, 70, 71), window(30, 100, 71));
        let hidden = hidden_percent(cut.iter()).expect("ten windows");
        assert!((hidden - 4.0).abs() < 2.0, "{hidden}");
        assert_eq!(hidden_percent(cut[..7].iter()), None);
        let disturbed = Window { foreign: 50, queued_ns: 60 * MS, ..window(0, 10, 11) };
        assert_eq!(hidden_percent(regular.iter().chain([&disturbed])), Some(0.0));
        let of = |to_ms, cpu_ms, foreign| Window {
            target_cpu_ns: cpu_ms * MS,
            foreign,
            ..window(1, to_ms, to_ms)
        };
        let beside: Vec<Window> =
            (0..10).map(|at| if at < 5 { of(100, 200, 0) } else { of(70, 170, 30) }).collect();
        assert_eq!(hidden_percent(beside.iter()), None, "five are left");
    }

    /// A server that answers eight at a time, of whose units one in a hundred ends by an error. Faults: what is under way is not looked
    /// at; any two windows that differ.
    #[test]
    fn units_that_never_end_pile_up() {
        let of = |under_way: &dyn Fn(u64) -> i64| {
            let one = |at: u64| {
                let pair = Pair { opened_ns: at * 100 * MS, in_flight: under_way(at), ..Pair::default() };
                Window { pair: Some(pair), ..window(1, 100, 100) }
            };
            let windows: Vec<Window> = (0..30).map(one).collect();
            piled_up(windows.iter())
        };
        assert_eq!(of(&|at| (at % 5 + 4) as i64), None);
        assert_eq!(of(&|at| (at + at % 5) as i64), Some(PiledUp { units: 20 }));
        assert_eq!(of(&|at| if at < 15 { 3 } else { 5 }), None, "two more are no pile");
        assert_eq!(of(&|at| if at < 10 { 3 } else { 40 }), None, "it warmed up");
        let few = [window(1, 100, 100)];
        assert_eq!(piled_up(few.iter()), None);
    }

    fn tried(round: u32, treatment: Treatment, window: Window) -> Measured {
        Measured::new(round, treatment, window)
    }

    #[test]
    fn a_site_that_lives_in_dropped_windows_is_found_there() {
        let of = |round: u32, hits: u64| {
            let window = Window { hits, ..window(0, 100, 101) };
            tried(round, Treatment::SpeedUp(50), window)
        };
        let mut all: Vec<Measured> = (0..20).map(|round| of(round, 10)).collect();
        all[3].excluded = Some(Excluded::Outlier);
        assert_eq!(dropped(&all), None);
        let mut phases: Vec<Measured> = (0..20).map(|round| of(round, u64::from(round < 4) * 50)).collect();
        phases[..4].iter_mut().for_each(|one| one.excluded = Some(Excluded::Outlier));
        assert_eq!(dropped(&phases), Some(Dropped { hits_percent: 100.0, windows_percent: 20.0 }));
    }

    /// Planted faults: what each visit takes, or the share of the samples, is not asked (`for_visits` alone, `of_samples` alone).
    #[test]
    fn a_site_that_is_met_more_often_for_each_visit_and_in_more_of_the_samples_is_in_step_with_them() {
        let of = |hits: u64, visits: u64, samples: u64| {
            let one = |treatment, hits, visits, samples| {
                let last = Moment { at_ns: 100_000_000, inserted_ns: 0 };
                let window = Window { hits, visits, samples, last, ..Window::default() };
                Measured::new(0, treatment, window)
            };
            let mut measured = vec![one(Treatment::Nothing, 600, 1_000, 1_000); 10];
            measured.extend(vec![one(Treatment::SpeedUp(50), hits, visits, samples); 10]);
            met_in_step(&measured, 50)
        };
        // Of 0.94 only 0.6 is there.
        assert!((of(940, 1_000, 1_000) - 0.362).abs() < 0.001, "{}", of(940, 1_000, 1_000));
        assert_eq!(of(600, 1_000, 1_000), 0.0);
        assert_eq!(of(610, 1_000, 1_000), 0.0, "chance");
        assert_eq!(of(700, 1_000, 1_170), 0.0, "a queue fills");
        assert_eq!(of(600, 1_000, 700), 0.0, "others pause");
        assert_eq!(met_in_step(&[], 50), 0.0);
    }

    #[test]
    fn a_level_whose_windows_met_the_site_more_often_than_others_may_be_off_by_that() {
        let of = |round: u32, level: u32, hits: u64| {
            tried(round, Treatment::SpeedUp(level), Window { hits, ..window(0, 100, 101) })
        };
        let absent = |round: u32| u64::from(round.is_multiple_of(2)) * 100;
        let phases: Vec<Measured> =
            (0..10).flat_map(|round| [of(round, 25, 100), of(round, 50, absent(round))]).collect();
        assert!(runs_in_phases(&phases));
        assert!((met_otherwise(&phases, 25) - 0.25).abs() < 1e-9 && met_otherwise(&phases, 50) > 0.4);
        let steady: Vec<Measured> =
            (0..10).flat_map(|round| [of(round, 25, 60), of(round, 50, 58)]).collect();
        assert!(
            !runs_in_phases(&steady)
                && met_otherwise(&steady, 25) <= 0.0
                && met_otherwise(&steady, 10) <= 0.0
        );
    }

    /// Planted fault: who looks whether something has come works (`spun` of nought).
    #[test]
    fn who_waits_less_in_a_loop_does_not_do_less() {
        let pair = |round: u32| {
            let of = |cpu_ms, spun| Window {
                target_cpu_ns: (cpu_ms + u64::from(round % 3)) * MS,
                spun,
                ..window(0, 100, 101)
            };
            let (null, faster) = (of(200, 30), of(175, 20));
            [tried(round, Treatment::Nothing, null), tried(round, Treatment::SpeedUp(50), faster)]
        };
        let measured: Vec<Measured> = (0..8).flat_map(pair).collect();
        let plain = measured.iter().filter(|one| one.is_null()).map(|one| &one.window);
        assert_eq!(behind(&measured, plain), None);
    }

    /// What was done without delays was done with them.
    fn swapped(one: Measured) -> Measured {
        let treatment = if one.is_null() { Treatment::SpeedUp(50) } else { Treatment::Nothing };
        Measured { treatment, ..one }
    }

    /// Planted faults: `WAKES_PER_SECOND` beyond all; less alone counts (`fell >= FALL_MIN`); nothing is tied.
    #[test]
    fn work_that_falls_behind_is_a_backlog_where_threads_waited_for_each_other_before() {
        let rounds = |wakes: u64| -> Vec<Measured> {
            let pair = |round: u32| {
                let jitter = u64::from(round % 3);
                let of = |cpu_ms, paid_ms, inner_wakes| Window {
                    target_cpu_ns: (cpu_ms + jitter) * MS,
                    paid_ns: paid_ms * MS,
                    inner_wakes,
                    ..window(0, 100, 101)
                };
                let (null, faster) = (of(195, 0, wakes), of(200, 50, 0));
                [tried(round, Treatment::Nothing, null), tried(round, Treatment::SpeedUp(50), faster)]
            };
            (0..8).flat_map(pair).collect()
        };
        let behind = |measured: &[Measured]| {
            behind(measured, measured.iter().filter(|one| one.is_null()).map(|one| &one.window))
        };
        let mut measured = rounds(100);
        let found = behind(&measured).expect("a fifth is missing");
        assert!(found.lives_on_backlog && (found.fell_percent - 23.0).abs() < 1.0, "{found:?}");
        assert!(!behind(&rounds(0)).expect("here too").lives_on_backlog, "nobody ever waited");
        assert!(
            behind(&rounds(1)).expect("here too").lives_on_backlog,
            "a pipe wakes its writer once for many"
        );
        let mut tied = rounds(100);
        tied.iter_mut().for_each(|one| one.window.inner_wakes = 100);
        assert!(!behind(&tied).expect("here too").lives_on_backlog, "others have nothing to do with visits");
        // Smaller levels, at which hardly anything is missing, hide nothing.
        let little = |one: &Measured| {
            tried(
                one.round,
                Treatment::SpeedUp(10),
                Window { visits: one.window.visits, ..one.window.clone() },
            )
        };
        measured.extend(rounds(100).iter().filter(|one| one.is_null()).map(little));
        assert_eq!(behind(&measured), Some(found));
        let ahead: Vec<Measured> = rounds(100).into_iter().map(swapped).collect();
        let found = behind(&ahead).expect("more is done");
        assert!(found.lives_on_backlog && found.fell_percent < -20.0, "{found:?}");
        measured.retain(|one| one.is_null());
        assert_eq!(behind(&measured), None, "nothing was tried");
    }
}

//! The control of an experiment: pauses for all threads alike, while nothing is faster.
//!
//! Whatever the target does, its threads are as fast relative to each other as ever: progress becomes slower by just what
//! was inserted, and its effective time stays. Where it does not, what is seen at sites is no effect of theirs: a target
//! that is paced from outside (a timer, a rate limit, an open load) passes its visits as often as ever, and taking the
//! pauses out of the time makes a gain of them; one with a quota of CPU time uses it up by pausing and loses twice. One that
//! is paced and hardly rests has little room for pauses: what it rests is all that they fill, however long they are, so
//! that two sizes of them tell it. Pairs of windows, beside each other, spread over the run; the loop runs them, the verdict
//! asks [`Control::found`].

use dyno_measure::stats;
use dyno_measure::student::{chance, student};
use dyno_record::causal::{self as record, Metric, Point};

use super::mean::{Mean, VALUES_MIN};
use super::measured::{Effective, excluded};
use crate::causal::rig::window::Window;
use crate::causal::rig::{Rig, Span, Treatment};
use crate::error::Error;

/// What is inserted, percent of the time: half of the longest pause that is tried, and less of it.
const PERCENTS: [u32; 2] = [25, 10];
/// Part of what is inserted that may come out as a gain, from which on it is open.
const OPEN: f64 = 0.3;
/// Part of the time that pauses of both sizes fill alike, from which on it matters, and how much more of it the greater ones
/// may fill.
const FILLED_MIN: f64 = 0.005;
const FILLED_ALIKE: f64 = 2.0;
/// Part of the time that a target which is paced from outside may rest at most without being told from one that is not.
const REST_OPEN: f64 = 0.02;
/// Part of its waits for something outside, per visit, that one keeps among pauses which is not paced by what it waits for,
/// and that is left to one which has used up all that it rests.
const WAITS_KEPT: f64 = 0.9;
const WAITS_LOST: f64 = 0.2;
/// Pairs of each size before the first site, and those that are enough.
const PAIRS_FIRST: usize = 6;
const PAIRS_MAX: usize = 24;
/// Share of the budget that goes into it: of the first pairs, of the fewest that say anything where windows are long, and
/// of all.
const FIRST_SHARE: f64 = 0.12;
const LEAST_SHARE: f64 = 1.0 / 3.0;
const BUDGET_SHARE: f64 = 0.05;
/// And of all where it is open whether the target is paced: nothing can be claimed before that is known.
const OPEN_SHARE: f64 = 0.2;
/// Least share of the time that must have been inserted: of less nothing can be told.
const INSERTED_MIN: f64 = 0.02;
/// How often chance alone may be taken for an artefact, and how far pairs differ at least: a clock has no spread.
const CHANCE_MAX: f64 = 0.01;
const SPREAD_MIN: f64 = 0.01;
/// Part of what is inserted that comes out as a gain, from which on the target is paced from outside, or as a loss, from
/// which on pauses cost it more than they last.
const PACED: f64 = 0.5;
/// Part of it, at most, that may do so where the target says by itself how often visits come; it is in each interval then.
const OWN_PACE: f64 = 0.2;

/// The pairs so far.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// With pauses of each of `PERCENTS`.
    sizes: [Pairs; 2],
    /// Left alone it waits for something outside.
    waits_outside: bool,
    /// It does, or the greater pauses seem to save something: whoever looks at a clock in a loop is paced by it too, and waits
    /// for nothing. Both sizes are tried then, in turns.
    tries_both: bool,
    /// The greater pauses leave it open whether it is paced: they may be too long for it, and the smaller ones are tried in
    /// their place.
    is_small: bool,
    /// The rig has no such windows.
    is_unable: bool,
    spent_ns: u64,
    /// Windows with pauses.
    pub(super) paused: Vec<Window>,
}

/// Pairs with pauses of one size.
#[derive(Debug, Default)]
struct Pairs {
    /// What seems to be saved, as parts of what was inserted.
    artefacts: Vec<f64>,
    /// Parts of the time that were inserted.
    inserted: Vec<f64>,
    /// By how much visits became rarer by the clock.
    fell: Vec<f64>,
    /// Waits for something outside and visits, without pauses and with them.
    waits: [u64; 2],
    visits: [u64; 2],
}

/// What the control says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    /// What pauses alone seem to save, as a part of what is inserted, with its 95 % interval.
    pub(super) artefact: f64,
    pub(super) interval: [f64; 2],
    /// Whether it is more than chance.
    is_real: bool,
    /// What was inserted, and by how much visits became rarer by the clock, percent.
    pub(super) inserted_percent: f64,
    pub(super) fell_percent: f64,
    pub(super) pairs: usize,
    pub(super) rest: Rest,
    /// The same of the smaller pauses, where they were tried beside.
    smaller: Option<[f64; 2]>,
}

/// Whether pauses fill time that nobody needed, because work comes in by itself and the target rests beside it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rest {
    /// It waits for nothing outside, and pauses seem to save nothing.
    NotAsked,
    /// They do not, or it is too little to tell.
    None,
    /// That is open. What the smaller and the greater ones fill, percent of the time, where both were tried.
    Open(Option<[f64; 2]>),
    /// They do: they fill the same time, and not the same part of each.
    Told([f64; 2]),
}

/// What pauses of both sizes fill, percent of the time, in words.
pub(super) fn filled_in_words([smaller, greater]: [f64; 2]) -> String {
    let [great, small] = PERCENTS;
    format!(
        "pauses of {small} % of the time for all threads alike fill {smaller:.1} % of it, and those of {great} % {greater:.1} %"
    )
}

impl Control {
    /// Left alone the target waits for something outside, or not. Said before the first pair.
    pub(super) fn begin(&mut self, waits_outside: bool) {
        debug_assert!(self.sizes.iter().all(|pairs| pairs.artefacts.is_empty()), "it has not begun");
        (self.waits_outside, self.tries_both) = (waits_outside, waits_outside);
    }

    /// How many of the sizes are tried.
    fn tried(&self) -> u32 {
        if self.tries_both { 2 } else { 1 }
    }

    /// Whether another pair is worth its time, `pair_ns` long, when so much of a budget is spent.
    pub(super) fn wants_more(&self, pair_ns: u64, spent_ns: u64, budget_ns: u64) -> bool {
        let of_size = self.sizes[self.next()].artefacts.len();
        if self.is_unable || of_size >= PAIRS_MAX {
            return false;
        }
        let share = |ns: u64, of: u64| ns as f64 / of.max(1) as f64;
        let first_share = FIRST_SHARE * f64::from(self.tried());
        // Where visits are rare windows are long: then so few pairs are worth what they take, or none.
        if of_size < VALUES_MIN {
            let all = self.tried() as usize * VALUES_MIN;
            let had: usize = self.sizes.iter().map(|pairs| pairs.artefacts.len().min(VALUES_MIN)).sum();
            let missing = all.saturating_sub(had).max(1) as u64;
            // One of them may be lost.
            let least = share(pair_ns * (all + 1) as u64, budget_ns).min(LEAST_SHARE);
            return share(self.spent_ns + pair_ns * missing, budget_ns) <= least.max(first_share);
        }
        if of_size < PAIRS_FIRST {
            return share(self.spent_ns + pair_ns, budget_ns) <= first_share;
        }
        let is_open =
            self.found().is_some_and(|found| matches!(found.rest, Rest::Open(_)) || found.is_wide());
        share(self.spent_ns, spent_ns) <= if is_open { OPEN_SHARE } else { BUDGET_SHARE }
    }

    /// Which size comes next: of two that are compared the one that was tried less often.
    fn next(&self) -> usize {
        let [greater, smaller] = self.sizes.each_ref().map(|pairs| pairs.artefacts.len());
        usize::from(if self.tries_both { smaller < greater } else { self.is_small })
    }

    /// Whether it was wanted and there was no time for it.
    pub(super) fn is_missing(&self) -> bool {
        !self.is_unable && self.found().is_none()
    }

    /// Whether that was the time before the first site.
    pub(super) fn has_begun(&self) -> bool {
        self.is_unable || self.sizes[self.next()].artefacts.len() >= PAIRS_FIRST
    }

    /// Tries smaller pauses too where the greater ones seem to save something, and begins anew with them alone where these
    /// say nothing.
    fn look_closer(&mut self) {
        let is_first = !self.tries_both && !self.is_small && self.sizes[0].artefacts.len() == PAIRS_FIRST;
        let Some(found) = self.found().filter(|found| is_first && !found.is_paced() && !found.is_dear())
        else {
            return;
        };
        if found.is_real && found.artefact > 0.0 {
            self.tries_both = true;
        } else if found.interval[1] > OPEN {
            let paused = std::mem::take(&mut self.paused);
            *self = Control { is_small: true, paused, ..Control::default() };
        }
    }

    /// One window without delay and one with pauses for all; the first is a null like any other and goes to `nulls`.
    pub(super) fn pair(
        &mut self,
        rig: &mut dyn Rig,
        (span, metric): (Span, Metric),
        is_null_first: bool,
        nulls: &mut Vec<Window>,
    ) -> Result<(), Error> {
        let size = self.next();
        let (mut null, mut alike) = (None, None);
        for is_null in [is_null_first, !is_null_first] {
            if is_null {
                null = Some(rig.window(&Treatment::Nothing, span)?);
            } else {
                alike = rig.alike(PERCENTS[size], span)?;
            }
        }
        self.is_unable = alike.is_none();
        if let (Some(null), Some(alike)) = (&null, &alike) {
            self.sizes[size].add(null, alike, metric);
        }
        nulls.extend(null);
        self.paused.extend(alike);
        self.look_closer();
        Ok(())
    }

    pub(super) fn spend(&mut self, ns: u64) {
        self.spent_ns += ns;
    }

    /// What it says; `None` where it could not be asked.
    pub(super) fn found(&self) -> Option<Found> {
        let means = self.sizes.each_ref().map(|pairs| Mean::of(&pairs.artefacts));
        // Either size shows a pace: one is too long for it, or says little.
        let is_paced = |mean: &Option<Mean>| mean.is_some_and(|mean| mean.mean >= PACED && is_real(&mean));
        let size = if self.is_small || is_paced(&means[1]) && !is_paced(&means[0]) { 1 } else { 0 };
        let (pairs, mean) = (&self.sizes[size], means[size]?);
        debug_assert_eq!(pairs.inserted.len(), pairs.artefacts.len(), "a pair gives one of each");
        Some(Found {
            artefact: mean.mean,
            interval: mean.interval(),
            is_real: is_real(&mean),
            inserted_percent: 100.0 * stats::mean(&pairs.inserted),
            fell_percent: 100.0 * stats::mean(&pairs.fell),
            pairs: mean.n,
            rest: if self.tries_both { self.rest(means) } else { Rest::NotAsked },
            smaller: means[1].filter(|_| self.tries_both).map(|mean| mean.interval()),
        })
    }

    /// Where a target takes as long as it takes, pauses of both sizes fill the same part of themselves, if anything; where
    /// work comes in by itself they fill what it rests, and it no longer waits for work.
    fn rest(&self, means: [Option<Mean>; 2]) -> Rest {
        let [Some(greater), Some(smaller)] = means else { return Rest::Open(None) };
        let [of_greater, of_smaller] = self.sizes.each_ref().map(|pairs| stats::mean(&pairs.inserted));
        let filled = [smaller.mean * of_smaller, greater.mean * of_greater];
        let percent = filled.map(|part| 100.0 * part);
        let is_filled = filled.iter().any(|part| *part >= FILLED_MIN)
            && [smaller, greater].iter().any(|mean| mean.mean > 0.0 && is_real(mean));
        let is_same_part = !exceeds((&smaller, 1.0), (&greater, 1.0));
        if is_filled && !is_same_part && filled[1] <= FILLED_ALIKE * filled[0] {
            return Rest::Told(percent);
        }
        // Who waits no more has used up all that it rests: that greater pauses fill more of it means little then.
        let waits_kept = self.waits_outside.then(|| self.sizes[0].waits_kept());
        let is_more = exceeds((&greater, of_greater), (&smaller, of_smaller))
            && waits_kept.is_none_or(|kept| kept > WAITS_LOST);
        let at_most = upper(&[(&smaller, of_smaller), (&greater, of_greater)]);
        if is_more || at_most < REST_OPEN || waits_kept.is_some_and(|kept| kept >= WAITS_KEPT) {
            return Rest::None;
        }
        Rest::Open(Some(percent))
    }
}

impl Pairs {
    fn add(&mut self, null: &Window, alike: &Window, metric: Metric) {
        let effective = |window: &Window| Effective::of(window).filter(|_| excluded(window).is_none());
        let (Some(before), Some(paused)) = (effective(null), effective(alike)) else { return };
        let (Some(of_null), Some(of_alike)) = (before.value(metric), paused.value(metric)) else { return };
        let elapsed_ns = alike.last.at_ns.saturating_sub(alike.first.at_ns).max(1) as f64;
        let inserted = paused.inserted_ns / elapsed_ns;
        if inserted < INSERTED_MIN {
            return;
        }
        self.artefacts.push((1.0 - of_alike / of_null) / inserted);
        self.inserted.push(inserted);
        self.fell.push(1.0 - before.period_ns / (paused.period_ns / (1.0 - inserted)));
        for (at, window) in [null, alike].into_iter().enumerate() {
            self.waits[at] += window.outer_wakes;
            self.visits[at] += window.visits;
        }
    }

    /// The part of its waits for something outside, per visit, that is left with pauses.
    fn waits_kept(&self) -> f64 {
        let [without, with] = [0, 1].map(|at| self.waits[at] as f64 / self.visits[at].max(1) as f64);
        if without > 0.0 { with / without } else { 1.0 }
    }
}

/// The end of the 95 % interval of what is one figure, measured by several means, each as many times as said.
fn upper(means: &[(&Mean, f64)]) -> f64 {
    let n: f64 = means.iter().map(|(mean, _)| mean.n as f64).sum();
    let mean = means.iter().map(|(mean, times)| mean.n as f64 * times * mean.mean).sum::<f64>() / n;
    let variance = |mean: &Mean, times: f64| mean.n as f64 * (times * mean.sd.max(SPREAD_MIN)).powi(2);
    let error = means.iter().map(|(mean, times)| variance(mean, *times)).sum::<f64>().sqrt() / n;
    mean + student(stats::Z_95, n - means.len() as f64) * error
}

/// Whether one mean is greater than another, each as many times as said, and more than chance makes it.
fn exceeds((a, times_a): (&Mean, f64), (b, times_b): (&Mean, f64)) -> bool {
    let variance = |mean: &Mean, times: f64| (times * mean.sd.max(SPREAD_MIN)).powi(2) / mean.n as f64;
    let error = (variance(a, times_a) + variance(b, times_b)).sqrt();
    let difference = times_a * a.mean - times_b * b.mean;
    difference > 0.0 && chance(difference / error, (a.n + b.n) as f64 - 2.0) < CHANCE_MAX
}

/// Whether there is an artefact: equal pairs prove one as well as others.
fn is_real(mean: &Mean) -> bool {
    let n = mean.n as f64;
    chance(mean.mean / (mean.sd.max(SPREAD_MIN) / n.sqrt()), n - 1.0) < CHANCE_MAX
}

impl Found {
    /// Pauses hardly make visits rarer: something outside says when they come.
    pub(super) fn is_paced(&self) -> bool {
        self.is_real && self.artefact >= PACED
    }

    /// Visits become rarer by all that is inserted, by much and by little: whoever else takes part waits for the target as
    /// long as it works.
    pub(super) fn is_own_pace(&self) -> bool {
        let is_nothing = |interval: [f64; 2]| interval.iter().all(|end| end.abs() <= OWN_PACE);
        is_nothing(self.interval) && self.smaller.is_some_and(is_nothing) && self.rest == Rest::None
    }

    /// Where pairs differ as much as this, whatever is claimed may be theirs: nobody can tell.
    pub(super) fn is_wide(&self) -> bool {
        !self.is_paced() && !self.is_dear() && self.interval[1] > OPEN
    }

    /// Pauses cost the target more than they last.
    pub(super) fn is_dear(&self) -> bool {
        self.is_real && self.artefact <= -PACED
    }

    /// By how many points pauses alone may mislead where so much is inserted, percent of the time.
    pub(super) fn points(&self, inserted_percent: f64) -> f64 {
        let [low, high] = self.interval;
        if self.is_real { low.abs().max(high.abs()) * inserted_percent.max(0.0) } else { 0.0 }
    }

    /// What pauses alone may seem to save at most where so much is inserted, percent of the time: a gain that is no more may
    /// be theirs.
    pub(super) fn seeming_points(&self, inserted_percent: f64) -> f64 {
        self.interval[1].max(0.0) * inserted_percent.max(0.0)
    }

    /// Whether pauses alone do anything, chance aside.
    pub(super) fn shows_something(&self) -> bool {
        self.is_real
    }

    /// Whether a gain is more than what pauses alone seem to save: where they show nothing, as two figures differ that were
    /// measured apart; else all of it.
    pub(super) fn seems_less_than(&self, gain: &Point) -> bool {
        let [low, high] = gain.interval_percent;
        if self.is_real {
            return low > self.seeming_points(gain.inserted_percent);
        }
        let inserted = gain.inserted_percent.max(0.0);
        let [least, most] = self.interval.map(|part| part * inserted);
        let apart = ((high - low) / 2.0).hypot((most - least) / 2.0);
        low > 0.0 && gain.effect_percent - (self.artefact * inserted).max(0.0) > apart
    }

    /// As a record has it.
    pub(super) fn recorded(&self) -> record::Control {
        record::Control {
            pairs: self.pairs,
            inserted_percent: self.inserted_percent,
            fell_percent: self.fell_percent,
            artefact_percent: 100.0 * self.artefact,
            interval_percent: self.interval.map(|part| 100.0 * part),
        }
    }
}

#[cfg(test)]
impl Found {
    /// Of pairs in which so much of a quarter comes out as a gain.
    pub(super) fn of_quarter(artefact: f64, half_width: f64) -> Found {
        let interval = [artefact - half_width, artefact + half_width];
        let is_real = artefact.abs() > half_width;
        let (inserted_percent, fell_percent, pairs) = (25.0, 25.0, 6);
        let (rest, smaller) = (Rest::None, Some(interval));
        Found { artefact, interval, is_real, inserted_percent, fell_percent, pairs, rest, smaller }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::causal::rig::window::Moment;

    fn window(period_ns: u64, inserted_ns: u64) -> Window {
        let last = Moment { at_ns: 100 * period_ns, inserted_ns };
        Window { length_ns: last.at_ns, visits: 101, last, samples: 100, ..Window::default() }
    }

    /// What six pairs say of a target whose raw period grows to `alike` of a million while a quarter is inserted.
    fn found(alike: [u64; 6]) -> Found {
        let mut control = Control::default();
        for period_ns in alike {
            control.sizes[0].add(
                &window(1_000_000, 0),
                &window(period_ns, 25 * period_ns),
                Metric::Throughput,
            );
        }
        control.found().expect("six pairs")
    }

    #[test]
    fn what_pauses_do_not_slow_is_paced_and_what_they_slow_twice_has_a_quota() {
        let own = found([1_333_000, 1_340_000, 1_330_000, 1_331_000, 1_335_000, 1_334_000]);
        assert!(!own.is_paced() && !own.is_dear() && own.artefact.abs() < 0.02, "{own:?}");
        assert!((own.fell_percent - 25.0).abs() < 0.5 && own.points(30.0) < 0.5, "{own:?}");
        assert!(found([1_000_000; 6]).is_paced(), "a clock has no spread");
        let paced = found([1_000_000, 1_001_000, 999_000, 1_000_000, 1_002_000, 1_000_500]);
        assert!(paced.is_paced() && (paced.artefact - 1.0).abs() < 0.02 && paced.fell_percent.abs() < 0.5);
        assert!((paced.points(30.0) - 30.0).abs() < 0.5 && (paced.seeming_points(30.0) - 30.0).abs() < 0.5);
        let quota = found([2_000_000, 2_010_000, 1_990_000, 2_000_000, 2_020_000, 1_980_000]);
        assert!(quota.is_dear() && !quota.is_paced(), "{quota:?}");
    }

    #[test]
    fn a_clock_that_is_missed_now_and_then_is_looked_at_with_smaller_pauses() {
        let mut control = Control::default();
        for period_ns in [1_000_000, 1_500_000, 1_000_000, 1_200_000, 1_000_000, 1_500_000] {
            control.sizes[0].add(
                &window(1_000_000, 0),
                &window(period_ns, 25 * period_ns),
                Metric::Throughput,
            );
        }
        control.look_closer();
        assert!(control.is_small && control.found().is_none() && !control.has_begun());
        for _ in 0..6 {
            control.sizes[1].add(&window(1_000_000, 0), &window(1_000_000, 10_000_000), Metric::Throughput);
        }
        control.look_closer();
        assert!(control.found().is_some_and(|found| found.is_paced()));
    }

    /// Planted faults: the smaller pauses not asked (`rest` that is always none); the same part of each taken for the same time
    /// (`is_same_part` always false); what is open taken for none; waits not asked (`waits_kept` always 1, always 0).
    #[test]
    fn what_pauses_of_both_sizes_fill_alike_is_what_a_target_rests() {
        // Of a million, in pairs that differ by a part of it; with pauses it waits for something outside so often a visit.
        let control = |greater: f64, smaller: f64, spread: f64, waits: u64| {
            let mut control = Control::default();
            control.begin(true);
            for (size, inserted, saved) in [(0, 0.25, greater), (1, 0.1, smaller)] {
                for off in [-1.0, 1.0, 0.0, 1.0, -1.0, 0.0] {
                    let period = 1e6 * (1.0 - saved + off * spread) / (1.0 - inserted);
                    let paused = window(period as u64, (inserted * 100.0 * period) as u64);
                    let paused = Window { outer_wakes: waits, ..paused };
                    let null = Window { outer_wakes: 100, ..window(1_000_000, 0) };
                    control.sizes[size].add(&null, &paused, Metric::Throughput);
                }
            }
            control
        };
        let rest = |greater, smaller, spread, waits| {
            let rest = control(greater, smaller, spread, waits).found().unwrap().rest;
            match rest {
                Rest::NotAsked => "not asked",
                Rest::None => "none",
                Rest::Open(_) => "open",
                Rest::Told(_) => "told",
            }
        };
        assert_eq!(rest(0.05, 0.05, 0.005, 0), "told", "5 % are left over");
        assert_eq!(rest(0.05, 0.02, 0.005, 50), "none", "a fifth of each");
        assert_eq!(rest(0.05, 0.02, 0.005, 0), "open", "and it waits no more");
        assert_eq!(rest(0.04, 0.03, 0.012, 0), "open", "either");
        assert_eq!(rest(0.04, 0.03, 0.012, 100), "none", "it waits as often as ever");
        assert_eq!(rest(0.01, 0.01, 0.05, 0), "open", "too noisy to tell");
        assert_eq!(rest(0.0, 0.0, 0.005, 0), "none", "of its own pace");
        let mut few = control(0.05, 0.05, 0.005, 0);
        few.sizes[1].artefacts.truncate(2);
        few.sizes[1].inserted.truncate(2);
        assert_eq!(few.found().unwrap().rest, Rest::Open(None), "who was not asked has not answered");
        assert!(control(0.0, 0.0, 0.002, 100).found().unwrap().is_own_pace());
        assert!(!control(0.02, 0.02, 0.002, 100).found().unwrap().is_own_pace(), "a fifth of the smaller");
    }

    /// Planted faults: both sizes are tried of what waits alone; and who waits for nothing is taken for one that waits as often as
    /// ever.
    #[test]
    fn what_seems_to_save_something_is_tried_with_both_sizes_also_where_nothing_waits() {
        let of = |saved: f64| {
            let mut control = Control::default();
            control.begin(false);
            for _ in 0..PAIRS_FIRST {
                let period = 1e6 * (1.0 - saved) / 0.75;
                control.sizes[0].add(
                    &window(1_000_000, 0),
                    &window(period as u64, (25.0 * period) as u64),
                    Metric::Throughput,
                );
            }
            control.look_closer();
            control
        };
        let mut paced = of(0.05);
        assert!(paced.tries_both && paced.next() == 1 && !paced.has_begun());
        assert_eq!(paced.found().unwrap().rest, Rest::Open(None));
        for _ in 0..PAIRS_FIRST {
            let period = 1e6 * (1.0 - 0.05) / 0.9;
            paced.sizes[1].add(
                &window(1_000_000, 0),
                &window(period as u64, (10.0 * period) as u64),
                Metric::Throughput,
            );
        }
        assert!(paced.has_begun() && matches!(paced.found().unwrap().rest, Rest::Told(_)));
        let own = of(0.0);
        assert!(!own.tries_both && own.has_begun() && own.found().unwrap().rest == Rest::NotAsked);
        assert!(!of(0.2).tries_both, "paced without a question");
        assert!(!of(-0.05).tries_both, "a cost");
    }

    /// Planted fault: no more than the share of one size.
    #[test]
    fn both_sizes_have_their_pairs_where_a_target_waits_for_something_outside() {
        let pairs = |pair_ns: u64| {
            let mut control = Control::default();
            control.begin(true);
            while control.wants_more(pair_ns, control.spent_ns, 1_000) {
                let paused = window(1_333_000, 25 * 1_333_000);
                let size = control.next();
                control.sizes[size].add(&window(1_000_000, 0), &paused, Metric::Throughput);
                control.spend(pair_ns);
            }
            (control.sizes.each_ref().map(|pairs| pairs.artefacts.len()), control.is_missing())
        };
        assert_eq!([18, 30].map(pairs), [([6, 6], false), ([4, 4], false)]);
        assert_eq!(pairs(50), ([3, 3], false));
        assert_eq!(pairs(60), ([0, 0], true), "nothing is begun that says nothing");
    }

    /// Planted fault: the share of the six first pairs, in which three of long windows have no room, and then there is none.
    #[test]
    fn where_windows_are_long_three_pairs_are_run_if_a_third_of_the_time_is_enough_for_them() {
        let pairs = |pair_ns: u64| {
            let mut control = Control::default();
            while control.wants_more(pair_ns, control.spent_ns, 1_000) {
                control.sizes[0].add(
                    &window(1_000_000, 0),
                    &window(1_333_000, 25 * 1_333_000),
                    Metric::Throughput,
                );
                control.spend(pair_ns);
            }
            (control.sizes[0].artefacts.len(), control.is_missing())
        };
        assert_eq!([20, 50, 110].map(pairs), [(6, false), (3, false), (3, false)]);
        assert_eq!(pairs(112), (0, true), "nothing is begun that says nothing");
    }

    /// Planted fault: what refuses every claim is asked no more often than what refuses none (`is_wide` that is false).
    #[test]
    fn where_pairs_differ_much_there_are_more_of_them() {
        let pairs = |noise: u64| {
            let mut control = Control::default();
            let mut spent_ns = 100;
            while control.wants_more(10, spent_ns, 1_000) && spent_ns < 1_000 {
                let up = control.sizes[0].artefacts.len() as u64 % 2;
                let paused = 1_333_000 - noise + 2 * noise * up;
                control.sizes[0].add(&window(1_000_000, 0), &window(paused, 25 * paused), Metric::Throughput);
                control.spend(10);
                // What sites take between two pairs.
                spent_ns += 40;
            }
            (control.sizes[0].artefacts.len(), control.found().unwrap().is_wide())
        };
        assert_eq!(pairs(2_000), (6, false));
        let (many, is_wide) = pairs(300_000);
        assert!(many > 9 && is_wide, "{many} {is_wide}");
    }

    #[test]
    fn a_rig_that_cannot_do_it_is_asked_once() {
        let mut control = Control::default();
        assert!(control.wants_more(1, 0, 100) && !control.has_begun());
        assert!(!control.wants_more(50, 0, 100), "no more than its share of a short budget");
        control.is_unable = true;
        assert!(!control.wants_more(1, 0, 100) && control.has_begun());
        assert_eq!(control.found(), None);
    }
}

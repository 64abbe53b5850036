//! One site while it is tried: its windows, what they say so far, and whether it needs more of them.

use dyno_measure::stats;
use dyno_record::causal::{Metric, Point, Treatment as OfSite};

use super::control::Found as Control;
use super::estimate::{Estimates, estimate};
use super::hand_off::{self, Handed};
use super::latency;
use super::measured::{Excluded, Measured};
use super::schedule::{self, COST_ROUNDS_ENOUGH, NARROW_POINTS, NARROWER_POINTS, ROUNDS_MIN};
use super::seen::{self, Sampling};
use super::slow_down::{Longer, Plan};
use super::whole;
use crate::causal::rig::site::Tried;
use crate::causal::rig::window::Window;

/// Gains above this, in points, are held against a real slow-down.
const CLAIM_POINTS: f64 = 2.0;

/// A site and everything that was measured of it. What always holds:
///
/// - rounds of windows never decrease: pairs of nulls and ratios within a round rest on it;
/// - `recovered_at` never lies behind the last window;
/// - estimates rest on the windows that are there, or are empty: nothing is left of windows that were excluded since.
pub(super) struct SiteRun<'a> {
    pub(super) tried: &'a Tried,
    pub(super) measured: Vec<Measured>,
    /// The first window after the target was left alone and came back: what is compared with the baseline.
    pub(super) recovered_at: usize,
    pub(super) estimates: Estimates,
    /// Levels that a verdict may rest on, as far as is known.
    pub(super) unbiased: Vec<u32>,
    pub(super) rounds: u32,
    pub(super) spent_ns: u64,
    pub(super) is_done: bool,
    /// What was done in one window shows in the next, however long it has settled.
    pub(super) carries_over: bool,
    /// By how much, where there was no time to let it settle, in points.
    pub(super) carryover_points: f64,
    pub(super) slow_down: Plan,
}

impl<'a> SiteRun<'a> {
    pub(super) fn new(tried: &'a Tried) -> SiteRun<'a> {
        SiteRun {
            tried,
            measured: Vec::new(),
            recovered_at: 0,
            estimates: Estimates::default(),
            unbiased: Vec::new(),
            rounds: 0,
            spent_ns: 0,
            is_done: false,
            carries_over: false,
            carryover_points: 0.0,
            slow_down: Plan::NotWanted,
        }
    }

    /// One more window, of the round that is being run.
    pub(super) fn push(&mut self, measured: Measured) {
        assert_eq!(measured.round, self.rounds, "a window is of the round that is being run");
        debug_assert!(self.measured.last().is_none_or(|last| last.round <= measured.round));
        self.measured.push(measured);
    }

    pub(super) fn windows(&self) -> impl Iterator<Item = &Window> {
        self.measured.iter().map(|one| &one.window)
    }

    /// Windows since the target was last seen to be what it was without delays.
    pub(super) fn since_recovery(&self) -> &[Measured] {
        assert!(self.recovered_at <= self.measured.len(), "windows are never taken away");
        &self.measured[self.recovered_at..]
    }

    /// Rounds that every level has.
    pub(super) fn rounds_used(&self) -> usize {
        let rounds = self.estimates.points.iter().map(|(point, _)| point.rounds).min().unwrap_or(0);
        debug_assert!(rounds <= self.rounds as usize, "a round gives one ratio of each level");
        rounds
    }

    /// Estimates everything from the windows that there are.
    pub(super) fn estimate(&mut self, metric: Metric, levels: &[u32], sampling: Sampling) {
        let handed = Handed::of(&self.measured, sampling);
        let unbiased: Vec<u32> = levels.iter().copied().filter(|level| !handed.is_biased(*level)).collect();
        self.estimates = estimate(&mut self.measured, metric, levels, &unbiased);
        let is_free = |level: &u32| !self.is_in_step(*level);
        self.unbiased = unbiased.iter().copied().filter(is_free).collect();
        if self.unbiased.len() < unbiased.len() {
            self.estimates = estimate(&mut self.measured, metric, levels, &self.unbiased);
        }
    }

    /// By how many points a level may be off because its threads are in step with samples.
    fn step_points(&self, level: u32) -> f64 {
        let points = self.estimates.points.iter().map(|(point, _)| point);
        let effect = points.filter(|point| point.speedup_percent == level).map(|point| point.effect_percent);
        effect.map(f64::abs).sum::<f64>() * whole::met_in_step(&self.measured, level)
    }

    /// Whether that is too much for a verdict to rest on it.
    pub(super) fn is_in_step(&self, level: u32) -> bool {
        self.step_points(level) > hand_off::BIAS_POINTS_MAX
    }

    /// Whether more rounds would change nothing that matters.
    pub(super) fn is_decided(&self, asked: &[u32], is_scarce: bool, sampling: Sampling) -> bool {
        // Where every level is biased more rounds cannot make one better; fewer that could be used would be the reason
        // that is given.
        if self.unbiased.is_empty() && self.rounds_used() >= ROUNDS_MIN {
            return true;
        }
        let levels = if self.unbiased.is_empty() { asked } else { &self.unbiased };
        let seen = seen::credibility(self.windows(), sampling);
        let is_inexact = hand_off::wants_shorter_pauses(asked, &seen, seen::per_second(self.windows()));
        let greatest = levels.iter().copied().max().unwrap_or(0);
        let narrow_points = match (is_scarce, is_inexact) {
            (true, _) => schedule::done_where_scarce(greatest, self.tried.share_percent),
            (false, true) => NARROWER_POINTS,
            (false, false) => NARROW_POINTS,
        };
        schedule::is_done(&self.estimates, levels, narrow_points, self.longer().is_some())
    }

    /// Figures with what the method itself may be off by, the artefacts that a control shows among it, and the chance that
    /// there is no effect.
    pub(super) fn points(&self, sampling: Sampling, control: Option<Control>) -> Vec<(Point, f64)> {
        let handed = Handed::of(&self.measured, sampling);
        let allowed = |point: &Point| {
            let of_control = control.map_or(0.0, |control| control.points(point.inserted_percent));
            let of_phases =
                point.effect_percent.abs() * whole::met_otherwise(&self.measured, point.speedup_percent);
            let of_step = self.step_points(point.speedup_percent);
            let of_threads = self.off_points(point.speedup_percent);
            let more_points = self.carryover_points + of_control + of_phases + of_step + of_threads;
            let allowed = handed.allowed(point, more_points);
            Point { biased: allowed.biased || self.is_in_step(point.speedup_percent), ..allowed }
        };
        self.estimates.points.iter().map(|(point, p)| (allowed(point), *p)).collect()
    }

    /// By how many points a level's latency may be off because threads owe differently at begins and at ends.
    fn off_points(&self, level: u32) -> f64 {
        let of_level = |one: &&Measured| one.treatment == OfSite::SpeedUp(level) && one.excluded.is_none();
        let windows = self.measured.iter().filter(of_level);
        let parts: Vec<f64> = windows.filter_map(|one| latency::off_part(&one.window)).collect();
        if parts.is_empty() { 0.0 } else { 100.0 * stats::mean(&parts).abs() }
    }

    /// The figure that an answer would rest on so far: of the greatest level that is not biased, or of the greatest.
    pub(super) fn standing(&self, sampling: Sampling, control: Option<Control>) -> Option<Point> {
        let points = self.points(sampling, control).into_iter().map(|(point, _)| point);
        points.max_by_key(|point| (!point.biased, point.speedup_percent))
    }

    /// The greatest unbiased level's figure, when it promises enough to be held against a slow-down.
    pub(super) fn claim(&self) -> Option<&Point> {
        let points = self.estimates.points.iter().map(|(point, _)| point);
        let unbiased = points.filter(|point| self.unbiased.contains(&point.speedup_percent));
        let greatest = unbiased.max_by_key(|point| point.speedup_percent)?;
        let promises = greatest.effect_percent > CLAIM_POINTS && greatest.interval_percent[0] > 0.0;
        (greatest.rounds >= ROUNDS_MIN && promises).then_some(greatest)
    }

    /// How it is slowed down.
    fn longer(&self) -> Option<Longer> {
        match self.slow_down {
            Plan::Longer(longer) => Some(longer),
            Plan::NotWanted | Plan::Impossible(_) => None,
        }
    }

    /// How each call or sample is made longer in the next round: until it is known well enough what that costs.
    pub(super) fn still_to_slow(&self) -> Option<Longer> {
        let is_enough = self.estimates.cost.is_some_and(|cost| cost.rounds >= COST_ROUNDS_ENOUGH);
        self.longer().filter(|_| !is_enough)
    }

    /// Excludes all windows so far, as what was done before them still showed or as they are too short, and begins again.
    pub(super) fn start_over(&mut self, why: Excluded) {
        for one in &mut self.measured {
            // What was excluded for another reason keeps it; outliers are none without their like.
            let other = one.excluded.filter(|why| *why != Excluded::Outlier);
            one.excluded = other.or(Some(why));
        }
        debug_assert!(why.is_replaced(), "other windows take their place");
        self.recovered_at = self.measured.len();
        self.estimates = Estimates::default();
        (self.is_done, self.carryover_points) = (false, 0.0);
        debug_assert!(self.measured.iter().all(|one| one.excluded.is_some()));
    }
}

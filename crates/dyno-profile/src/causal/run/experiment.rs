//! The loop of an experiment: calibrate, then rounds over all sites until each is decided or time is up.
//!
//! Sites are interleaved round by round, so that drift meets all of them alike and an early end leaves every one with
//! something; each has nulls of its own in every round.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_measure::{Prng, stats};
use dyno_record::causal::{SlowedAt, Treatment as OfSite};

use super::asked::{Asked, RoundEvent};
use super::backlog::{Backlog, Since, backlog};
use super::carryover::{Carryover, carryover, drift, recovered_after};
use super::control::Control;
use super::hand_off;
use super::lost::{self, Lost};
use super::measured::{Effective, Excluded, Measured, excluded};
use super::obstacle::HIDDEN_PERCENT_MAX;
use super::schedule::{
    self, AROUND, BASELINE_MIN, Length, RECOVERIES_MAX, ROUNDS_BEFORE_END, ROUNDS_MIN, SETTLE, VISITS_MIN,
};
use super::seen::{self, Sampling};
use super::seen::{OUTER_WAKES_PER_SECOND, OUTER_WAKES_PER_VISIT};
use super::site_run::SiteRun;
use super::slow_down::{self, Longer, Plan};
use super::watching::Watching;
use super::whole;
use crate::causal::rig::site::Tried;
use crate::causal::rig::window::Window;
use crate::causal::rig::{Rig, Span, Treatment};
use crate::error::Error;

/// Rounds between two tests of a site for carry-over.
const ROUNDS_PER_TEST: u32 = 4;

/// Why a run ends before its budget does, in words; none when it does not.
type End = Option<String>;

/// An experiment under way. What always holds:
///
/// - the first window comes before everything else: `nulls` is empty until [`Experiment::calibrate`], and never after;
/// - windows and the time to settle grow only: what was measured before they grew is excluded;
/// - `recoveries` never exceeds [`RECOVERIES_MAX`]: the target is not left alone for ever.
pub(super) struct Experiment<'a> {
    asked: &'a Asked,
    rig: &'a mut dyn Rig,
    clock: &'a dyn Fn() -> u64,
    stop: &'a AtomicBool,
    rng: Prng,
    begun_ns: u64,
    deadline_ns: u64,
    length: Length,
    /// Levels that are tried: those that there is time for.
    levels: Vec<u32>,
    settle: Duration,
    /// Windows before the first delay, as logarithms.
    baseline: Vec<f64>,
    /// How often the target was left alone to see if it returns to its baseline.
    recoveries: u32,
    /// It did once.
    came_back: bool,
    sites: Vec<SiteRun<'a>>,
    /// Windows of no site, without delay.
    nulls: Vec<Window>,
    watching: Watching,
    control: Control,
    /// The first of the windows without site that are as long as those of now.
    nulls_from: usize,
    /// The first of them after the first pause.
    paused_from: usize,
    /// The first of them that is of a target which no longer gets faster by itself.
    steady_from: usize,
    throttled_before: u64,
    too_few_visits: bool,
    /// It was told that no site can be answered: once is enough.
    is_warned: bool,
}

/// What an experiment has measured when it is over.
pub(super) struct Outcome<'a> {
    pub(super) asked: &'a Asked,
    pub(super) sampling: Sampling,
    pub(super) length: Duration,
    pub(super) settle: Duration,
    pub(super) sites: Vec<SiteRun<'a>>,
    pub(super) nulls: Vec<Window>,
    pub(super) watching: Watching,
    pub(super) control: Control,
    /// What came in from outside is worked off among the pauses.
    pub(super) backlog: Option<Backlog>,
    /// Levels that were tried.
    pub(super) levels: Vec<u32>,
    /// How often a quota was used up.
    pub(super) throttled: u64,
    /// Time that windows cut off at their ends, percent.
    pub(super) hidden_percent: f64,
    /// Share of samples in loops that wait, percent, wherever they lie.
    pub(super) spinning_percent: f64,
    pub(super) too_few_visits: bool,
    /// How long all of it took, and how much of that lies outside of windows and of what leads to them.
    pub(super) took: Duration,
    pub(super) waited: Duration,
}

impl<'a> Experiment<'a> {
    pub(super) fn new(
        asked: &'a Asked,
        rig: &'a mut dyn Rig,
        sites: &'a [Tried],
        clock: &'a dyn Fn() -> u64,
        stop: &'a AtomicBool,
    ) -> Experiment<'a> {
        let budget_ns = u64::try_from(asked.budget.as_nanos()).unwrap_or(u64::MAX);
        let begun_ns = clock();
        let throttled_before = rig.throttled().unwrap_or(0);
        Experiment {
            asked,
            rig,
            clock,
            stop,
            rng: Prng::new(asked.seed),
            begun_ns,
            deadline_ns: begun_ns.saturating_add(budget_ns),
            length: Length::first(),
            levels: asked.levels_percent.clone(),
            settle: SETTLE,
            baseline: Vec::new(),
            recoveries: 0,
            came_back: false,
            sites: sites.iter().map(SiteRun::new).collect(),
            nulls: Vec::new(),
            watching: Watching::default(),
            control: Control::default(),
            nulls_from: 0,
            paused_from: 0,
            steady_from: 0,
            throttled_before,
            too_few_visits: false,
            is_warned: false,
        }
    }

    /// Runs all of it, and says why it ended early, if it did.
    ///
    /// # Errors
    /// When not even the first window can be run.
    pub(super) fn run(&mut self, on_round: &mut dyn FnMut(&RoundEvent<'_>)) -> Result<End, Error> {
        assert!(self.nulls.is_empty(), "an experiment is run once");
        self.calibrate()?;
        assert!(!self.nulls.is_empty(), "calibration runs a window, or fails");
        if self.is_stopped() {
            // Windows were cut short: that they had few visits means nothing.
            self.too_few_visits = false;
            return Ok(Some("interrupted".to_owned()));
        }
        if self.too_few_visits {
            return Ok(None);
        }
        match self.rounds(on_round) {
            Err(Error::Ended { after_s, .. }) => Ok(Some(format!("the target ended after {after_s:.1} s"))),
            Err(error) => Ok(Some(error.to_string())),
            Ok(end) => Ok(end),
        }
    }

    /// What was measured.
    pub(super) fn outcome(self) -> Outcome<'a> {
        let took = Duration::from_nanos((self.clock)().saturating_sub(self.begun_ns));
        Outcome {
            waited: took.saturating_sub(self.in_windows()),
            took,
            throttled: self.rig.throttled().unwrap_or(0).saturating_sub(self.throttled_before),
            hidden_percent: self.hidden_percent().unwrap_or(0.0),
            backlog: backlog(self.before_first_pause().iter(), self.since_first_pause()),
            spinning_percent: self.rig.spinning_percent(),
            asked: self.asked,
            sampling: Sampling::of(self.rig, self.asked.cpus),
            length: self.length.0,
            settle: self.settle,
            sites: self.sites,
            nulls: self.nulls,
            watching: self.watching,
            control: self.control,
            levels: self.levels,
            too_few_visits: self.too_few_visits,
        }
    }

    /// Time in windows and in what leads to them; those without the rig take its place in pairs.
    fn in_windows(&self) -> Duration {
        let of_sites = self.sites.iter().flat_map(|site| &site.measured).map(|one| &one.window);
        let windows = || self.nulls.iter().chain(&self.control.paused).chain(of_sites.clone());
        let length_ns: u64 = windows().map(|window| window.length_ns).sum();
        let around = (self.settle + AROUND) * windows().count() as u32;
        Duration::from_nanos(length_ns) + around + self.length.0 * self.watching.windows_detached()
    }

    /// How long windows must be for this progress.
    fn calibrate(&mut self) -> Result<(), Error> {
        loop {
            let window = self.rig.window(&Treatment::Nothing, self.span())?;
            let visits = window.visits;
            self.nulls.push(window);
            match self.length.lengthened(visits) {
                Some(longer) if !self.is_over(longer.0) => {
                    assert!(longer.0 > self.length.0, "windows grow, or calibration never ends");
                    self.length = longer;
                }
                _ => {
                    self.too_few_visits = visits < VISITS_MIN;
                    self.suit_hand_offs();
                    return Ok(());
                }
            }
        }
    }

    /// Where threads hand on to each other within a few pauses shorter ones bias less.
    fn suit_hand_offs(&mut self) {
        let seen = seen::credibility(self.nulls.iter(), self.sampling());
        let per_second = seen::per_second(self.nulls.iter());
        if hand_off::wants_shorter_pauses(&self.asked.levels_percent, &seen, per_second) {
            let before_ns = self.rig.period_ns();
            self.rig.sample_finely();
            debug_assert!(self.rig.period_ns() <= before_ns, "samples never come more rarely");
        }
    }

    /// Windows without delay one right after the other, as logarithms; those that do not count are left out.
    fn undisturbed(&mut self, windows: u32) -> Result<Vec<f64>, Error> {
        let span = Span { settle: SETTLE, length: self.length.0 };
        let mut lns = Vec::new();
        for _ in 0..windows {
            if self.is_stopped() || self.is_over(span.whole()) {
                break;
            }
            let window = self.rig.window(&Treatment::Nothing, span)?;
            let effective = Effective::of(&window).filter(|_| excluded(&window).is_none());
            lns.extend(effective.and_then(|effective| effective.value(self.asked.metric)).map(f64::ln));
            self.nulls.push(window);
        }
        debug_assert!(lns.len() <= windows as usize);
        Ok(lns)
    }

    /// Windows before the first pause of a target that no longer gets faster by itself.
    fn before_first_pause(&self) -> &[Window] {
        self.nulls.get(self.steady_from..self.paused_from).unwrap_or_default()
    }

    /// Windows before the first delay, as logarithms: of a target that still gets faster by itself (a program that warms up, a machine
    /// whose neighbours calm down) the last ones, as long as that may be waited for.
    fn steady(&mut self) -> Result<Vec<f64>, Error> {
        let windows = self.length.baseline(self.asked.budget);
        let mut baseline = self.undisturbed(windows)?;
        for _ in 0..schedule::WARM_UPS_MAX {
            if !gets_faster(&baseline) {
                break;
            }
            self.steady_from = self.nulls.len();
            let next = self.undisturbed(windows)?;
            if next.len() < schedule::BASELINE_MIN as usize {
                break;
            }
            baseline = next;
        }
        Ok(baseline)
    }

    /// Rounds over all sites that are not done, in an order of chance, until all are or time is up.
    fn rounds(&mut self, on_round: &mut dyn FnMut(&RoundEvent<'_>)) -> Result<End, Error> {
        assert!(!self.too_few_visits, "what cannot be measured is not tried");
        self.baseline = self.steady()?;
        self.see_whole()?;
        self.paused_from = self.nulls.len();
        self.control.begin(self.waits_outside());
        while !self.control.has_begun() && self.try_control()? {}
        self.suit_time();
        loop {
            let mut open: Vec<usize> = (0..self.sites.len()).filter(|at| !self.sites[*at].is_done).collect();
            if open.is_empty() {
                return Ok(None);
            }
            self.rng.shuffle(&mut open);
            for at in open {
                if self.is_stopped() {
                    return Ok(Some("interrupted".to_owned()));
                }
                if self.is_over(self.round_time(at, self.settle)) {
                    return Ok(None);
                }
                self.round(at)?;
                let warning = self.warning();
                on_round(&RoundEvent { warning, ..self.event(at) });
            }
            if let Some(end) = self.watch()? {
                return Ok(Some(end));
            }
            self.try_control()?;
            self.see_whole()?;
        }
    }

    /// Another pair of the control, if it is worth its time.
    fn try_control(&mut self) -> Result<bool, Error> {
        let begun_ns = (self.clock)();
        let span = self.span();
        let pair = (span.whole() + AROUND) * 2;
        let pair_ns = u64::try_from(pair.as_nanos()).unwrap_or(u64::MAX);
        let [spent_ns, budget_ns] = [begun_ns, self.deadline_ns].map(|at| at - self.begun_ns);
        if self.is_stopped() || self.is_over(pair) || !self.control.wants_more(pair_ns, spent_ns, budget_ns) {
            return Ok(false);
        }
        let is_null_first = self.rng.coin();
        self.control.pair(self.rig, (span, self.asked.metric), is_null_first, &mut self.nulls)?;
        self.control.spend((self.clock)() - begun_ns);
        Ok(true)
    }

    /// Whether the target, left alone, waits for something outside between visits.
    fn waits_outside(&self) -> bool {
        let alone = &self.nulls[..self.paused_from];
        let count = |of: fn(&Window) -> u64| alone.iter().map(of).sum::<u64>() as f64;
        let waits = count(|window| window.outer_wakes);
        // Of a batch for each tick many visits come of one wait.
        let per_second = 1e9 * waits / count(|window| window.length_ns).max(1.0);
        waits >= OUTER_WAKES_PER_VISIT * count(|window| window.visits) || per_second >= OUTER_WAKES_PER_SECOND
    }

    /// All windows since the first pause, whatever was done in them.
    fn since_first_pause(&self) -> impl Iterator<Item = Since<'_>> {
        let of_sites = self.sites.iter().flat_map(|site| &site.measured).map(|one| {
            let is_replaced = one.excluded.is_some_and(Excluded::is_replaced);
            Since { is_null: one.is_null() && !is_replaced, is_of_round: true, window: &one.window }
        });
        let apart = |is_null| move |window| Since { is_null, is_of_round: false, window };
        let nulls = self.nulls[self.paused_from..].iter().map(apart(true));
        let alike = self.control.paused.iter().map(apart(false));
        nulls.chain(alike).chain(of_sites)
    }

    fn nulls_of_sites(&self) -> impl Iterator<Item = &Window> {
        let of_sites = self.sites.iter().flat_map(|site| &site.measured);
        let counts = |one: &&Measured| one.is_null() && !one.excluded.is_some_and(Excluded::is_replaced);
        of_sites.filter(counts).map(|one| &one.window)
    }

    /// Windows without delays of the length that they have now.
    fn plain(&self) -> impl Iterator<Item = &Window> {
        self.nulls[self.nulls_from..].iter().chain(self.nulls_of_sites())
    }

    /// Time that windows cut off at their ends, percent.
    fn hidden_percent(&self) -> Option<f64> {
        whole::hidden_percent(self.plain())
    }

    /// Where windows cut off what lies between two visits longer ones cut off less of it: all begin again, while there is
    /// time for that.
    fn see_whole(&mut self) -> Result<(), Error> {
        let Some(percent) = self.hidden_percent().filter(|percent| *percent > HIDDEN_PERCENT_MAX) else {
            return Ok(());
        };
        let Some(longer) = self.length.around(percent, HIDDEN_PERCENT_MAX) else { return Ok(()) };
        let window = longer.0 + self.settle + AROUND;
        // One level, and its nulls.
        let least = window * (3 * self.sites.len() * ROUNDS_MIN) as u32;
        if self.is_over(least) || self.is_stopped() {
            return Ok(());
        }
        (self.length, self.nulls_from) = (longer, self.nulls.len());
        self.sites.iter_mut().for_each(|site| site.start_over(Excluded::Short));
        self.baseline = self.undisturbed(self.length.baseline(self.asked.budget))?;
        self.suit_time();
        Ok(())
    }

    /// Levels that there is time for, where there is not enough for all at all sites.
    fn suit_time(&mut self) {
        let seen = seen::credibility(self.plain(), self.sampling());
        let per_second = seen::per_second(self.plain());
        let is_biased = |level| hand_off::is_biased(level, &seen, per_second);
        let left = Duration::from_nanos(self.deadline_ns.saturating_sub((self.clock)()));
        let window = self.span().whole() + AROUND;
        self.levels =
            schedule::levels_that_fit(&self.asked.levels_percent, is_biased, self.sites.len(), window, left);
    }

    /// Whether there is not time for all levels at all sites.
    fn is_scarce(&self) -> bool {
        self.levels.len() < self.asked.levels_percent.len()
    }

    /// Every treatment of a site once, in an order of chance, and what that says.
    fn round(&mut self, at: usize) -> Result<(), Error> {
        let begun_ns = (self.clock)();
        let (number, longer) = (self.sites[at].rounds, self.sites[at].still_to_slow());
        let added_ns = longer.map(|longer| longer.added_ns);
        for treatment in schedule::round(&self.levels, added_ns, &mut self.rng) {
            let window = self.rig.window(&of_rig(treatment, at, longer), self.span())?;
            if self.is_stopped() {
                // It was cut short, and so is its round.
                break;
            }
            self.sites[at].push(Measured::new(number, treatment, window));
        }
        self.sites[at].rounds += 1;
        self.spend(at, begun_ns);
        self.review(at)
    }

    /// What is known of a site after one more round, and whether that is enough.
    fn review(&mut self, at: usize) -> Result<(), Error> {
        let sampling = self.sampling();
        self.sites[at].estimate(self.asked.metric, &self.levels, sampling);
        if self.sites[at].slow_down == Plan::NotWanted && self.sites[at].claim().is_some() {
            let begun_ns = (self.clock)();
            let (site, levels) = (&self.sites[at], &self.levels);
            let plan = slow_down::plan(self.rig, (at, site.tried), &site.measured, levels, self.length.0)?;
            assert_ne!(plan, Plan::NotWanted, "a claim has a slow-down, or a reason why it has none");
            self.sites[at].slow_down = plan;
            self.spend(at, begun_ns);
        }
        let is_scarce = self.is_scarce();
        self.sites[at].is_done = self.sites[at].is_decided(&self.levels, is_scarce, sampling);
        self.look_back(at)
    }

    /// Whether what was done before shows. Asked now and then, since each test may say so by chance; and not where all
    /// figures are biased, which no settling would mend.
    fn look_back(&mut self, at: usize) -> Result<(), Error> {
        let metric = self.asked.metric;
        let site = &mut self.sites[at];
        let is_time = site.is_done || site.rounds.is_multiple_of(ROUNDS_PER_TEST);
        if site.unbiased.is_empty() || site.rounds_used() < ROUNDS_MIN || !is_time {
            return Ok(());
        }
        match carryover(&site.measured, metric) {
            Carryover::Shows(ln) => self.settle_longer(at, self.settle, ln),
            Carryover::Open => site.is_done = false,
            Carryover::None => {
                if let Some(gap) = drift(site.since_recovery(), metric, &self.baseline) {
                    self.recover(at, gap)?;
                }
            }
        }
        Ok(())
    }

    /// A target that is not what it was without delays has drifted on its own, or carries over all that was done to it:
    /// left alone for a while it comes back if it does, and drifts again from there. Once it may do so by chance.
    fn recover(&mut self, at: usize, gap: f64) -> Result<(), Error> {
        assert!(self.recoveries <= RECOVERIES_MAX, "the target is not left alone for ever");
        if self.recoveries == RECOVERIES_MAX {
            return Ok(());
        }
        self.recoveries += 1;
        let begun_ns = (self.clock)();
        let undisturbed = self.undisturbed(self.length.recovery())?;
        self.spend(at, begun_ns);
        match recovered_after(&undisturbed, &self.baseline, gap) {
            // It has drifted on its own, and would again.
            None => self.recoveries = RECOVERIES_MAX,
            // Half of it was gone by then, or before it was left alone.
            Some(windows) if self.came_back => {
                self.settle_longer(at, self.length.0 * (2 * windows as u32).max(3), gap);
            }
            Some(windows) => {
                self.came_back = true;
                if undisturbed.len() - windows >= BASELINE_MIN as usize {
                    self.baseline = undisturbed[windows..].to_vec();
                }
                self.sites.iter_mut().for_each(|site| site.recovered_at = site.measured.len());
                self.sites[at].is_done = false;
            }
        }
        Ok(())
    }

    /// What was done in one window shows in the next: all begin again with more time between them. Where that is not enough
    /// nothing can be said, and where there is no time for it figures may be off by as much as shows.
    fn settle_longer(&mut self, at: usize, perhaps: Duration, ln: f64) {
        let Some(longer) = self.length.to_settle(self.settle, perhaps) else {
            (self.sites[at].carries_over, self.sites[at].is_done) = (true, true);
            return;
        };
        let enough = |settle| {
            let round: Duration = (0..self.sites.len()).map(|at| self.round_time(at, settle)).sum();
            !self.is_over(round * ROUNDS_BEFORE_END as u32) && !self.is_stopped()
        };
        // What is not long enough is seen again.
        let settles = [Some(longer), self.length.to_settle(self.settle, self.settle)];
        let Some(settle) = settles.into_iter().flatten().find(|settle| enough(*settle)) else {
            for site in &mut self.sites {
                site.carryover_points = site.carryover_points.max(100.0 * ln.abs());
            }
            // Nor is there for another recovery.
            self.recoveries = RECOVERIES_MAX;
            return;
        };
        assert!(settle > self.settle, "the time to settle grows only");
        self.settle = settle;
        self.sites.iter_mut().for_each(|site| site.start_over(Excluded::Unsettled));
    }

    /// Another pair of windows for what watching costs, as far as its share of the budget goes.
    fn watch(&mut self) -> Result<End, Error> {
        let begun_ns = (self.clock)();
        if !self.watching.wants_more(begun_ns - self.begun_ns)
            || self.is_over(self.span().whole() * self.watching.windows())
        {
            return Ok(None);
        }
        let is_detached_first = self.rng.coin();
        let span = self.span();
        self.watching.pair(self.rig, span, is_detached_first, &mut self.nulls)?;
        self.watching.look_at_hooks(self.rig, self.length.0)?;
        self.watching.spend((self.clock)() - begun_ns);
        Ok(self.watching.too_dear())
    }

    /// Said once, as soon as it is to be seen that all of it is for nothing.
    fn warning(&mut self) -> Option<String> {
        let sampling = self.sampling();
        let standing = |site: &SiteRun<'_>| lost::Standing {
            is_done: site.is_done,
            rounds: site.rounds,
            used: site.rounds_used(),
            lost: Lost::of(&site.measured).most(&seen::credibility(site.windows(), sampling)),
        };
        let sites: Vec<lost::Standing> = self.sites.iter().map(standing).collect();
        let all: Duration = (0..self.sites.len()).map(|at| self.round_time(at, self.settle)).sum();
        let left_ns = self.deadline_ns.saturating_sub((self.clock)());
        let rounds_left = u128::from(left_ns) / all.as_nanos().max(1);
        let why = lost::unanswerable(&sites, usize::try_from(rounds_left).unwrap_or(usize::MAX));
        why.filter(|_| !std::mem::replace(&mut self.is_warned, true))
    }

    fn event(&self, at: usize) -> RoundEvent<'a> {
        let site = &self.sites[at];
        let done = self.sites.iter().filter(|site| site.is_done).count();
        RoundEvent {
            site: &site.tried.site.name,
            round: site.rounds,
            running: site.standing(self.sampling(), self.control.found()),
            done: (done, self.sites.len()),
            left: Duration::from_nanos(self.deadline_ns.saturating_sub((self.clock)())),
            warning: None,
        }
    }

    fn sampling(&self) -> Sampling {
        Sampling::of(self.rig, self.asked.cpus)
    }

    fn span(&self) -> Span {
        debug_assert!(self.settle >= SETTLE && !self.length.0.is_zero());
        Span { settle: self.settle, length: self.length.0 }
    }

    /// What one round of a site takes: its windows, each with settling.
    fn round_time(&self, at: usize, settle: Duration) -> Duration {
        let slow_downs = usize::from(self.sites[at].still_to_slow().is_some());
        let windows = 2 + self.levels.len() + slow_downs;
        (settle + self.length.0) * windows as u32
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether there is no time left for what takes so long.
    fn is_over(&self, next: Duration) -> bool {
        let next_ns = u64::try_from(next.as_nanos()).unwrap_or(u64::MAX);
        (self.clock)().saturating_add(next_ns) > self.deadline_ns
    }

    /// What was spent on a site since then.
    fn spend(&mut self, at: usize, begun_ns: u64) {
        let now_ns = (self.clock)();
        assert!(now_ns >= begun_ns, "the clock is monotonic");
        self.sites[at].spent_ns += now_ns - begun_ns;
    }
}

/// Whether the second half of these windows, as logarithms, is faster than the first by as much as matters.
fn gets_faster(lns: &[f64]) -> bool {
    let (first, second) = lns.split_at(lns.len() / 2);
    !first.is_empty() && stats::mean(first) - stats::mean(second) > schedule::WARM_UP_LN
}

/// What is done in a window of a site, as the rig has it.
fn of_rig(treatment: OfSite, site: usize, longer: Option<Longer>) -> Treatment {
    match treatment {
        // Its samples are counted all the same: how often it is met for each visit is known of what nothing was done to.
        OfSite::Nothing => Treatment::SpeedUp { site, percent: 0 },
        OfSite::SpeedUp(percent) => Treatment::SpeedUp { site, percent },
        OfSite::SlowDown(ns) => {
            Treatment::SlowDown { site, at: longer.map_or_else(SlowedAt::default, |longer| longer.at), ns }
        }
    }
}

//! A causal profile from beginning to end: calibrate, run rounds over all sites until they are told or time is up, judge.
//!
//! `dyno causal` calls [`run`] over a live process, the tests over simulated ones. It knows neither: time and chance come
//! in as arguments, windows from the [`Rig`]. Sites are interleaved round by round, so that drift meets all of them alike
//! and an early end leaves every one with something; each has nulls of its own in every round.

mod estimate;
mod memory;
mod schedule;
mod verdict;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_measure::Prng;
use dyno_measure::stats;
use dyno_record::causal::{
    self as record, CAUSAL_SCHEMA, Causal, Credibility, Deed, Metric, Overhead, OverheadPart, Point,
    SlowDown, Verdict,
};
use dyno_sys::bpf::causal::SLOWER_NS_MAX;

use super::rig::site::{self, Tried};
use super::rig::window::Window;
use super::rig::{self, Hooks, Pause, Rig, Span};
use crate::error::Error;
use estimate::{
    Dropped, Effective, Estimates, Mean, Measured, estimate, foreign_percent, gap, spoilt, ticks,
};
use memory::{Memory, memory, relaxed_after, strayed};
use schedule::{
    COST_ROUNDS_ENOUGH, FRESH_MIN, Length, NARROW_POINTS, NARROWER_POINTS, RESTS_MAX, ROUNDS_BEFORE_END,
    ROUNDS_MIN, SETTLE, VISITS_MIN,
};
use verdict::Case;

/// Windows with more of other processes than this, percent of all ticks, are set aside.
const FOREIGN_PERCENT_MAX: f64 = 5.0;
/// Gains above this, in points, are held against a real slow-down.
const CLAIM_POINTS: f64 = 2.0;
/// Calls per second from which on the probe itself would slow the site down by more than a hundredth.
const CALLS_MAX: f64 = 20_000.0;
/// Shortest added time that is longer than the probe's own.
const ADDED_NS_MIN: f64 = 2_000.0;
/// Calls of a window, of which some are on their way at its ends: of fewer chance decides.
const CALLS_PER_WINDOW_MIN: f64 = 5.0;
/// How long calls are counted.
const CALLS_COUNTED: Duration = Duration::from_millis(500);
/// Share of the budget that goes into what watching costs.
const OVERHEAD_SHARE: f64 = 0.08;
/// Pairs of windows for it that are enough whatever they say.
const OVERHEAD_PAIRS_MAX: usize = 24;
/// Pairs before the target is let go because watching costs it too much.
const OVERHEAD_PAIRS_MIN: usize = 5;
/// Cost of watching, percent, at which it is let go.
const OVERHEAD_PERCENT_MAX: f64 = 25.0;
/// Requests that found the target asleep, of all visits, from which on its clients are the limit.
const ASLEEP_PER_VISIT: f64 = 0.3;

/// Rounds between looks at whether what was done before shows.
const ROUNDS_PER_LOOK_BACK: u32 = 4;

const NS_PER_S: f64 = 1e9;

/// What is asked of a run.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Virtual speed-ups, percent of the sampling period.
    pub levels_percent: Vec<u32>,
    /// The whole budget, over all sites.
    pub budget: Duration,
    /// Seed of every coin.
    pub seed: u64,
    /// What effects are effects on.
    pub metric: Metric,
    /// The progress point's name.
    pub progress: String,
    /// CPUs that the target may use.
    pub cpus: usize,
}

impl Asked {
    /// A tenth, a quarter, half: beyond half the method extrapolates.
    pub const LEVELS_PERCENT: [u32; 3] = [10, 25, 50];
}

/// What is told while it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct News<'a> {
    /// The site whose round ended.
    pub site: &'a str,
    /// How many rounds it has.
    pub round: u32,
    /// Its greatest level so far.
    pub running: Option<Point>,
    /// Sites that are done, of all.
    pub done: (usize, usize),
    /// What is left of the budget.
    pub left: Duration,
}

/// Tries every site, in the order of the rig's, and says what came of it. Only what belongs to the experiment is filled
/// in: version, command, machine and target are the caller's to know.
///
/// # Errors
/// When not even the first window can be run. Once there is one, an end of the target or of patience ends the run, and
/// the record says why.
pub fn run(
    asked: &Asked,
    rig: &mut dyn Rig,
    sites: &[Tried],
    clock: &dyn Fn() -> u64,
    watch: &mut dyn FnMut(&News<'_>),
    stop: &AtomicBool,
) -> Result<Causal, Error> {
    let begun_ns = clock();
    let mut experiment = Experiment {
        asked,
        rig,
        clock,
        stop,
        rng: Prng::new(asked.seed),
        deadline_ns: begun_ns.saturating_add(u64::try_from(asked.budget.as_nanos()).unwrap_or(u64::MAX)),
        length: Length::first(),
        settle: SETTLE,
        fresh: Vec::new(),
        rests: 0,
        came_back: false,
        sites: sites.iter().map(Studied::new).collect(),
        nulls: Vec::new(),
        overhead: Vec::new(),
        hooks: None,
        overhead_ns: 0,
        too_few_visits: false,
    };
    let end = experiment.go(watch)?;
    let mut record = experiment.record();
    record.duration_s = (clock() - begun_ns) as f64 / NS_PER_S;
    record.cut_short = end;
    Ok(record)
}

/// Why a run ends before its budget does, in words; none when it does not.
type End = Option<String>;

struct Experiment<'a> {
    asked: &'a Asked,
    rig: &'a mut dyn Rig,
    clock: &'a dyn Fn() -> u64,
    stop: &'a AtomicBool,
    rng: Prng,
    deadline_ns: u64,
    length: Length,
    settle: Duration,
    /// Windows before the first delay, as logarithms.
    fresh: Vec<f64>,
    /// How often the target was left alone to see if it becomes again what it was then.
    rests: u32,
    /// It did once.
    came_back: bool,
    sites: Vec<Studied<'a>>,
    /// Windows of no site, without delay.
    nulls: Vec<Window>,
    /// What attached windows take over detached ones, as log ratios.
    overhead: Vec<f64>,
    /// What the rig's programs in the kernel took; none until that was looked at.
    hooks: Option<Hooks>,
    overhead_ns: u64,
    too_few_visits: bool,
}

/// A site and everything that was measured of it.
struct Studied<'a> {
    tried: &'a Tried,
    measured: Vec<Measured>,
    /// The first of them that came after the target was left alone.
    since: usize,
    estimates: Estimates,
    /// Levels that a verdict may rest on, as far as is known.
    sound: Vec<u32>,
    rounds: u32,
    spent_ns: u64,
    is_done: bool,
    /// What was done in one window shows in the next, however long it has settled.
    remembers: bool,
    /// By how much, where there was no time to let it settle, in points.
    left_behind_points: f64,
    cost: Cost,
}

/// The slow-down that a claim is held against.
#[derive(Debug, Clone, PartialEq)]
enum Cost {
    /// There is no claim yet.
    NotWanted,
    /// A claim, and no way to bear it out.
    Impossible(String),
    /// Each call is made longer.
    Asked { added_ns: u64, calls_per_second: f64 },
}

impl<'a> Studied<'a> {
    fn new(tried: &'a Tried) -> Studied<'a> {
        Studied {
            tried,
            measured: Vec::new(),
            since: 0,
            estimates: Estimates::default(),
            sound: Vec::new(),
            rounds: 0,
            spent_ns: 0,
            is_done: false,
            remembers: false,
            left_behind_points: 0.0,
            cost: Cost::NotWanted,
        }
    }

    fn added_ns(&self) -> Option<u64> {
        match self.cost {
            Cost::Asked { added_ns, .. } => Some(added_ns),
            Cost::NotWanted | Cost::Impossible(_) => None,
        }
    }

    /// As long as it is not known well enough what that costs.
    fn still_to_add_ns(&self) -> Option<u64> {
        let is_enough = self.estimates.cost.is_some_and(|(_, _, rounds)| rounds >= COST_ROUNDS_ENOUGH);
        self.added_ns().filter(|_| !is_enough)
    }

    /// The greatest level's figure, when it promises enough to be held against a slow-down.
    fn claim(&self) -> Option<&Point> {
        let points = self.estimates.points.iter().map(|(point, _)| point);
        let sound = points.filter(|point| self.sound.contains(&point.speedup_percent));
        let greatest = sound.max_by_key(|point| point.speedup_percent)?;
        let promises = greatest.effect_percent > CLAIM_POINTS && greatest.interval_percent[0] > 0.0;
        (greatest.rounds >= ROUNDS_MIN && promises).then_some(greatest)
    }

    fn windows(&self) -> impl Iterator<Item = &Window> {
        self.measured.iter().map(|one| &one.window)
    }
}

impl Experiment<'_> {
    fn go(&mut self, watch: &mut dyn FnMut(&News<'_>)) -> Result<End, Error> {
        self.calibrate()?;
        if self.stop.load(Ordering::Relaxed) {
            // Windows were cut short: that they had few visits means nothing.
            self.too_few_visits = false;
            return Ok(Some("interrupted".to_owned()));
        }
        if self.too_few_visits {
            return Ok(None);
        }
        match self.rounds(watch) {
            Err(Error::Ended { after_s, .. }) => Ok(Some(format!("the target ended after {after_s:.1} s"))),
            Err(error) => Ok(Some(error.to_string())),
            Ok(end) => Ok(end),
        }
    }

    /// How long windows must be for this progress.
    fn calibrate(&mut self) -> Result<(), Error> {
        loop {
            let window = self.rig.window(&rig::Deed::Nothing, self.span())?;
            let visits = window.visits;
            self.nulls.push(window);
            match self.length.lengthened(visits) {
                Some(longer) if !self.is_over(longer.0) => self.length = longer,
                _ => {
                    self.too_few_visits = visits < VISITS_MIN;
                    self.suit_hand_offs();
                    return Ok(());
                }
            }
        }
    }

    /// Where threads hand on to each other within a few pauses shorter ones mislead less.
    fn suit_hand_offs(&mut self) {
        if self.is_any_misled(&self.credibility(self.nulls.iter()), per_second(self.nulls.iter())) {
            self.rig.sample_finely();
        }
    }

    fn is_any_misled(&self, seen: &Credibility, per_second: f64) -> bool {
        self.asked.levels_percent.iter().any(|level| verdict::is_misled(*level, seen, per_second))
    }

    /// Windows without delay one right after the other, as logarithms; those that others spoilt are left out.
    fn alone(&mut self, windows: u32) -> Result<Vec<f64>, Error> {
        let span = Span { settle: SETTLE, length: self.length.0 };
        let mut lns = Vec::new();
        for _ in 0..windows {
            if self.stop.load(Ordering::Relaxed) || self.is_over(span.whole()) {
                break;
            }
            let window = self.rig.window(&rig::Deed::Nothing, span)?;
            let effective = Effective::of(&window).filter(|_| spoilt(&window, FOREIGN_PERCENT_MAX).is_none());
            lns.extend(effective.and_then(|effective| effective.value(self.asked.metric)).map(f64::ln));
            self.nulls.push(window);
        }
        Ok(lns)
    }

    /// Rounds over all sites that are not done, in an order of chance, until all are or time is up.
    fn rounds(&mut self, watch: &mut dyn FnMut(&News<'_>)) -> Result<End, Error> {
        self.fresh = self.alone(self.length.fresh(self.asked.budget))?;
        loop {
            let mut open: Vec<usize> = (0..self.sites.len()).filter(|at| !self.sites[*at].is_done).collect();
            if open.is_empty() {
                return Ok(None);
            }
            self.rng.shuffle(&mut open);
            for at in open {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(Some("interrupted".to_owned()));
                }
                if self.is_over(self.round_time(at, self.settle)) {
                    return Ok(None);
                }
                self.round(at)?;
                self.tell(at, watch);
            }
            if let Some(end) = self.overhead()? {
                return Ok(Some(end));
            }
        }
    }

    fn span(&self) -> Span {
        Span { settle: self.settle, length: self.length.0 }
    }

    /// What one round of a site takes: its windows, each with settling.
    fn round_time(&self, at: usize, settle: Duration) -> Duration {
        let windows =
            2 + self.asked.levels_percent.len() + usize::from(self.sites[at].still_to_add_ns().is_some());
        (settle + self.length.0) * windows as u32
    }

    fn is_over(&self, next: Duration) -> bool {
        let next_ns = u64::try_from(next.as_nanos()).unwrap_or(u64::MAX);
        (self.clock)().saturating_add(next_ns) > self.deadline_ns
    }

    fn round(&mut self, at: usize) -> Result<(), Error> {
        let begun_ns = (self.clock)();
        let number = self.sites[at].rounds;
        let added_ns = self.sites[at].still_to_add_ns();
        let deeds = schedule::round(&self.asked.levels_percent, added_ns, &mut self.rng);
        for deed in deeds {
            let window = self.rig.window(&of_site(deed, at), self.span())?;
            if self.stop.load(Ordering::Relaxed) {
                // It was cut short, and so is its round.
                break;
            }
            let measured = Measured::new(number, deed, window, FOREIGN_PERCENT_MAX);
            self.sites[at].measured.push(measured);
        }
        self.sites[at].rounds += 1;
        self.sites[at].spent_ns += (self.clock)() - begun_ns;
        self.look(at)
    }

    /// What is known of a site after one more round, and whether that is enough.
    fn look(&mut self, at: usize) -> Result<(), Error> {
        let (metric, levels) = (self.asked.metric, &self.asked.levels_percent);
        let (seen, per_second) = self.seen(at);
        let is_misled = self.is_any_misled(&seen, per_second);
        // Levels that a verdict may rest on.
        let is_sound = |level: &u32| verdict::is_sound(*level, &seen, per_second);
        let sound: Vec<u32> = levels.iter().copied().filter(is_sound).collect();
        let site = &mut self.sites[at];
        site.estimates = estimate(&mut site.measured, metric, levels, &sound);
        site.sound.clone_from(&sound);
        if site.cost == Cost::NotWanted && site.claim().is_some() {
            let begun_ns = (self.clock)();
            let cost = self.cost_of(at)?;
            self.sites[at].cost = cost;
            self.sites[at].spent_ns += (self.clock)() - begun_ns;
        }
        let site = &mut self.sites[at];
        // Where no level is sound more rounds cannot make one so; fewer that could be used would be the reason told.
        let used = used(&site.estimates);
        let hopeless = sound.is_empty() && used >= ROUNDS_MIN;
        let asked = site.added_ns().is_some();
        let told = if sound.is_empty() { levels } else { &sound };
        let narrow_points = if is_misled { NARROWER_POINTS } else { NARROW_POINTS };
        site.is_done = hopeless || schedule::is_done(&site.estimates, told, narrow_points, asked);
        self.look_back(at, sound.is_empty())
    }

    /// Whether what was done before shows, asked now and then: who asks each time is told once by chance. Figures that
    /// hand-offs mislead are not told, whatever settles.
    fn look_back(&mut self, at: usize, is_hopeless: bool) -> Result<(), Error> {
        let metric = self.asked.metric;
        let site = &mut self.sites[at];
        let is_time = site.is_done || site.rounds.is_multiple_of(ROUNDS_PER_LOOK_BACK);
        if is_hopeless || used(&site.estimates) < ROUNDS_MIN || !is_time {
            return Ok(());
        }
        match memory(&site.measured, metric) {
            Memory::Shows(ln) => self.settle_longer(at, self.settle, ln),
            Memory::Open => site.is_done = false,
            Memory::None => {
                if let Some(gap) = strayed(&site.measured[site.since..], metric, &self.fresh) {
                    self.rest(at, gap)?;
                }
            }
        }
        Ok(())
    }

    /// A target that is not what it was without delays has drifted, or remembers all that was done to it: left alone for a
    /// while it comes back if it does, and strays again from there. Once it may do so by chance.
    fn rest(&mut self, at: usize, gap: f64) -> Result<(), Error> {
        if self.rests == RESTS_MAX {
            return Ok(());
        }
        self.rests += 1;
        let begun_ns = (self.clock)();
        let rest = self.alone(self.length.rest())?;
        self.sites[at].spent_ns += (self.clock)() - begun_ns;
        match relaxed_after(&rest, &self.fresh, gap) {
            // It has drifted, and would again.
            None => self.rests = RESTS_MAX,
            // Half of it was gone by then, or before it was left alone.
            Some(windows) if self.came_back => {
                self.settle_longer(at, self.length.0 * (2 * windows as u32).max(3), gap);
            }
            Some(windows) => {
                self.came_back = true;
                if rest.len() - windows >= FRESH_MIN as usize {
                    self.fresh = rest[windows..].to_vec();
                }
                self.sites.iter_mut().for_each(|site| site.since = site.measured.len());
                self.sites[at].is_done = false;
            }
        }
        Ok(())
    }

    /// What was done in one window shows in the next: all begin anew with more time between them. Where that is not enough
    /// nothing can be said, and where there is no time for it figures may be off by as much as shows.
    fn settle_longer(&mut self, at: usize, perhaps: Duration, ln: f64) {
        let Some(longer) = self.length.to_settle(self.settle, perhaps) else {
            (self.sites[at].remembers, self.sites[at].is_done) = (true, true);
            return;
        };
        let enough = |settle| {
            let round: Duration = (0..self.sites.len()).map(|at| self.round_time(at, settle)).sum();
            !self.is_over(round * ROUNDS_BEFORE_END as u32) && !self.stop.load(Ordering::Relaxed)
        };
        // What is not long enough is seen again.
        let settles = [Some(longer), self.length.to_settle(self.settle, self.settle)];
        let Some(settle) = settles.into_iter().flatten().find(|settle| enough(*settle)) else {
            for site in &mut self.sites {
                site.left_behind_points = site.left_behind_points.max(100.0 * ln.abs());
            }
            // Nor is there for another rest.
            self.rests = RESTS_MAX;
            return;
        };
        self.settle = settle;
        for site in &mut self.sites {
            for one in &mut site.measured {
                one.dropped = one.dropped.filter(|why| *why != Dropped::Outlier).or(Some(Dropped::Unsettled));
            }
            site.estimates = Estimates::default();
            (site.is_done, site.left_behind_points) = (false, 0.0);
        }
    }

    /// What was seen over a site's windows, and its visits per second.
    fn seen(&self, at: usize) -> (Credibility, f64) {
        let windows = || self.sites[at].windows();
        (self.credibility(windows()), per_second(windows()))
    }

    /// Figures with what the method itself may be off by.
    fn points(&self, at: usize) -> Vec<(Point, f64)> {
        let (seen, per_second) = self.seen(at);
        let site = &self.sites[at];
        let allowed = |point| verdict::allowed(point, &seen, per_second, site.left_behind_points);
        site.estimates.points.iter().map(|(point, p)| (allowed(point), *p)).collect()
    }

    /// How each call of a site is to be made longer by half, if that can be done.
    fn cost_of(&mut self, at: usize) -> Result<Cost, Error> {
        let site = self.sites[at].tried;
        let impossible = |why: &str| Ok(Cost::Impossible(why.to_owned()));
        let has_entry = matches!(&site.site.place, site::Place::Code { entries, .. } if !entries.is_empty());
        if !has_entry {
            return impossible("it has no entry of its own where calls could be made longer");
        }
        let Some(calls_per_second) = self.rig.entries_per_second(at, CALLS_COUNTED)? else {
            return impossible("its calls cannot be counted");
        };
        if calls_per_second > CALLS_MAX {
            return impossible(&format!("{calls_per_second:.0} calls per second are too many for a probe"));
        }
        let calls_per_window = calls_per_second * self.length.0.as_secs_f64();
        if calls_per_window < CALLS_PER_WINDOW_MIN || self.call_ns(at, calls_per_second) <= 0.0 {
            return impossible(&format!(
                "{calls_per_window:.1} calls in a window are too few to be slowed down"
            ));
        }
        let greatest = self.asked.levels_percent.iter().copied().max().unwrap_or(50);
        let longer = f64::from(greatest) / 100.0;
        let added_ns = (longer * self.call_ns(at, calls_per_second)).max(ADDED_NS_MIN);
        if added_ns > SLOWER_NS_MAX as f64 {
            return impossible(&format!(
                "a call takes {:.0} ms, too long to be made longer by half",
                added_ns / longer / 1e6
            ));
        }
        Ok(Cost::Asked { added_ns: added_ns as u64, calls_per_second })
    }

    /// How long one call takes. A unit of progress has as many samples in the site however long others pause, while shares
    /// and rates change with them.
    fn call_ns(&self, at: usize, calls_per_second: f64) -> f64 {
        let site = &self.sites[at];
        let of = |is: fn(Deed) -> bool| {
            let counts =
                |one: &&Measured| !matches!(one.dropped, Some(Dropped::Expired | Dropped::Unsettled));
            site.measured.iter().filter(counts).filter(move |one| is(one.deed)).map(|one| &one.window)
        };
        let faster = || of(|deed| matches!(deed, Deed::SpeedUp(_)));
        let (hits, visits) =
            faster().fold((0, 0), |(hits, visits), window| (hits + window.hits, visits + window.visits));
        let ns_per_visit = hits as f64 * self.rig.period_ns() as f64 / visits.max(1) as f64;
        ns_per_visit * per_second(of(|deed| deed == Deed::Nothing)) / calls_per_second
    }

    /// One detached and one attached window beside each other, as far as their share of the budget goes.
    fn overhead(&mut self) -> Result<End, Error> {
        let spent = (self.clock)() + self.asked.budget.as_nanos() as u64 - self.deadline_ns;
        let share = self.overhead_ns as f64 / spent.max(1) as f64;
        if share > OVERHEAD_SHARE
            || self.overhead.len() >= OVERHEAD_PAIRS_MAX
            || self.is_over(self.span().whole() * (2 + u32::from(self.hooks.is_none())))
        {
            return Ok(None);
        }
        let begun_ns = (self.clock)();
        let detached_first = self.rng.coin();
        let mut windows = [None, None];
        for at in if detached_first { [0, 1] } else { [1, 0] } {
            let window = if at == 0 {
                self.rig.detached(self.span())?
            } else {
                self.rig.window(&rig::Deed::Nothing, self.span())?
            };
            let counts = spoilt(&window, FOREIGN_PERCENT_MAX).is_none();
            windows[at] = Effective::of(&window).filter(|_| counts);
            if at == 1 {
                self.nulls.push(window);
            }
        }
        if let [Some(detached), Some(attached)] = windows {
            self.overhead.push((attached.period_ns / detached.period_ns).ln());
        }
        if self.hooks.is_none() {
            // Apart from the pairs: counting the programs' time takes a little time itself.
            self.hooks = Some(self.rig.hooks(self.length.0)?.unwrap_or_default());
        }
        self.overhead_ns += (self.clock)() - begun_ns;
        Ok(self.too_dear())
    }

    /// Watching must not hurt: a target that loses a quarter of its speed to it is let go.
    fn too_dear(&self) -> End {
        let mean = Mean::of(&self.overhead).filter(|mean| mean.n >= OVERHEAD_PAIRS_MIN)?;
        let least_percent = 100.0 * (mean.mean - mean.half_width).exp_m1();
        (least_percent > OVERHEAD_PERCENT_MAX).then(|| {
            format!(
                "watching alone costs the target {:.0} % of its speed: it was let go",
                100.0 * mean.mean.exp_m1()
            )
        })
    }

    fn tell(&self, at: usize, watch: &mut dyn FnMut(&News<'_>)) {
        let site = &self.sites[at];
        let running =
            site.estimates.points.iter().map(|(point, _)| *point).max_by_key(|point| point.speedup_percent);
        let done = self.sites.iter().filter(|site| site.is_done).count();
        watch(&News {
            site: &site.tried.site.name,
            round: site.rounds,
            running,
            done: (done, self.sites.len()),
            left: Duration::from_nanos(self.deadline_ns.saturating_sub((self.clock)())),
        });
    }

    fn record(&mut self) -> Causal {
        let mut slopes: Vec<&mut record::Slope> =
            self.sites.iter_mut().filter_map(|site| site.estimates.slope.as_mut()).collect();
        verdict::adjust(&mut slopes);
        let mut sites: Vec<record::Site> = (0..self.sites.len()).map(|at| self.site(at)).collect();
        sites.sort_by(|a, b| by_weight(b).total_cmp(&by_weight(a)));
        let delayed = |one: &&Measured| matches!(one.deed, Deed::SpeedUp(_));
        let all = || self.sites.iter().flat_map(|site| &site.measured);
        let inserted_ns: f64 = all()
            .filter(delayed)
            .filter_map(|one| one.effective)
            .map(|effective| effective.inserted_ns)
            .sum();
        let length_ns: f64 = all().filter(delayed).map(|one| one.window.length_ns as f64).sum();
        let nulls =
            || self.nulls.iter().chain(all().filter(|one| one.deed == Deed::Nothing).map(|one| &one.window));
        let mut credibility = self.credibility(all().map(|one| &one.window).chain(&self.nulls));
        credibility.dropped_windows = all().filter(|one| one.dropped.is_some()).count();
        credibility.null_sd_percent = mean_or_zero(
            self.sites.iter().map(|site| site.estimates.nulls.sd_percent).filter(|sd| *sd > 0.0),
        );
        Causal {
            schema: CAUSAL_SCHEMA.to_owned(),
            seed: self.asked.seed,
            options: record::Options {
                levels_percent: self.asked.levels_percent.clone(),
                budget_s: self.asked.budget.as_secs_f64(),
                ..record::Options::default()
            },
            progress: record::Progress {
                name: self.asked.progress.clone(),
                metric: self.asked.metric,
                per_second: per_second(nulls()),
                latency_us: latency_us(nulls()),
                ..record::Progress::default()
            },
            credibility,
            overhead: Overhead {
                inserted_percent: 100.0 * inserted_ns / length_ns.max(1.0),
                parts: self.hooks.as_ref().map(parts).unwrap_or_default(),
                ..overhead(&self.overhead)
            },
            warnings: self.warnings(),
            sites,
            ..Causal::default()
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.overhead.is_empty() && !self.too_few_visits {
            warnings.push("there was no time to measure what watching costs".to_owned());
        }
        let lost: u64 = self.sites.iter().flat_map(Studied::windows).map(|window| window.lost).sum();
        if lost > 0 {
            warnings.push(format!(
                "{lost} threads or processes were more than the tables hold: they took no part"
            ));
        }
        let unsettled = |one: &&Measured| one.dropped == Some(Dropped::Unsettled);
        let unused = self.sites.iter().flat_map(|site| &site.measured).filter(unsettled).count();
        if unused > 0 {
            warnings.push(format!(
                "what was done in one window still showed in the next, as where a queue fills and drains: {unused} windows are not used, and the others settled for {} s first",
                self.settle.as_secs_f64()
            ));
        }
        for site in self.sites.iter().filter(|site| site.left_behind_points > 0.0) {
            warnings.push(format!(
                "{}: what was done in one window still showed in the next, by {:.1} %, and there was no time to let it settle: its figures may be off by as much; give it some minutes",
                site.tried.site.name, site.left_behind_points
            ));
        }
        if let Some(greatest) = self.asked.levels_percent.iter().max().filter(|greatest| **greatest > 50) {
            warnings.push(format!("{greatest} % is beyond half: where a part nearly vanishes other costs go with it, and the figure is an extrapolation"));
        }
        warnings
    }

    fn site(&self, at: usize) -> record::Site {
        let site = &self.sites[at];
        let points = self.points(at);
        let mut credibility = self.credibility(site.windows());
        credibility.dropped_windows = site.measured.iter().filter(|one| one.dropped.is_some()).count();
        credibility.null_sd_percent = site.estimates.nulls.sd_percent;
        let slow_down = self.slow_down(at);
        let (verdict, reason) = self.verdict(at, &points, &credibility, slow_down.as_ref());
        record::Site {
            name: site.tried.site.name.clone(),
            source: site.tried.source.clone(),
            share_percent: site.tried.share_percent,
            verdict,
            reason,
            points: points.into_iter().map(|(point, _)| point).collect(),
            slope: site.estimates.slope,
            nulls: site.estimates.nulls,
            no_slow_down: match &site.cost {
                Cost::Impossible(why) => Some(why.clone()),
                Cost::Asked { .. } if slow_down.is_none() => Some("there was no time for it".to_owned()),
                Cost::Asked { .. } | Cost::NotWanted => None,
            },
            slow_down,
            spent_s: site.spent_ns as f64 / NS_PER_S,
            credibility,
            windows: site.measured.iter().map(recorded).collect(),
        }
    }

    fn verdict(
        &self,
        at: usize,
        points: &[(Point, f64)],
        credibility: &Credibility,
        slow: Option<&SlowDown>,
    ) -> (Verdict, String) {
        if self.too_few_visits {
            let seconds = self.length.0.as_secs_f64();
            return (
                Verdict::NotMeasurable,
                format!(
                    "too few visits: the progress point was met less than {VISITS_MIN} times in {seconds:.0} s"
                ),
            );
        }
        let site = &self.sites[at];
        let lost = |why| {
            let all = || site.measured.iter().filter(|one| one.dropped != Some(Dropped::Unsettled));
            let lost = all().filter(|one| one.dropped == Some(why)).count();
            lost as f64 / all().count().max(1) as f64
        };
        let spinning =
            self.sites.iter().enumerate().filter(|(other, site)| *other != at && site.tried.is_spinning);
        let least = self.asked.levels_percent.iter().copied().min().unwrap_or(0);
        let switches = rate(site.windows(), |window| window.runnable_waits);
        verdict::verdict(&Case {
            metric: self.asked.metric,
            estimates: &site.estimates,
            points,
            credibility,
            least_pause_us: credibility.period_us * f64::from(least) / 100.0,
            slow_down: slow,
            lost_to_others: lost(Dropped::Foreign),
            lost_to_hypervisor: lost(Dropped::Stolen),
            lost_to_few_visits: lost(Dropped::Visits),
            lost_to_patience: lost(Dropped::Expired),
            remembers: site.remembers.then_some(self.settle),
            left_behind_points: site.left_behind_points,
            spinning_elsewhere_percent: spinning.filter_map(|(_, site)| site.tried.share_percent).sum(),
            is_spinning: site.tried.is_spinning,
            never_met: site.windows().all(|window| window.hits == 0),
            crowded: verdict::is_crowded(switches, credibility.target_cpu_percent, self.asked.cpus),
            sites: self.sites.len(),
        })
    }

    fn slow_down(&self, at: usize) -> Option<SlowDown> {
        let site = &self.sites[at];
        let Cost::Asked { added_ns, calls_per_second } = site.cost else { return None };
        let slowdown_percent = 100.0 * added_ns as f64 / self.call_ns(at, calls_per_second);
        let (cost_percent, interval_percent, rounds) = site.estimates.cost?;
        let gap = |level| {
            let scale = verdict::as_much(level, slowdown_percent);
            gap(&site.measured, self.asked.metric, level, scale)
        };
        let contradicts = site.claim().is_some_and(|claim| {
            let mut told = self.points(at).into_iter().map(|(point, _)| point);
            let told = told.find(|point| point.speedup_percent == claim.speedup_percent);
            told.is_some_and(|told| {
                verdict::contradicts(&told, interval_percent, slowdown_percent, gap(told.speedup_percent))
            })
        });
        Some(SlowDown {
            added_ns,
            calls_per_second,
            slowdown_percent,
            cost_percent,
            interval_percent,
            rounds,
            contradicts,
        })
    }

    /// What was seen over some windows.
    fn credibility<'w>(&self, windows: impl Iterator<Item = &'w Window>) -> Credibility {
        let windows: Vec<&Window> = windows.collect();
        let all = || windows.iter().copied();
        let sum = |of: fn(&Window) -> u64| all().map(of).sum::<u64>() as f64;
        let length_ns = sum(|window| window.length_ns).max(1.0);
        let delayed = || all().filter(|window| window.threads > 0 && window.last.inserted_ns > 0);
        let owed: f64 = delayed().map(|window| window.owed_ns as f64 / window.threads as f64).sum();
        let inserted: f64 = delayed().map(|window| window.last.inserted_ns as f64).sum();
        let cpu_ns = sum(|window| window.target_cpu_ns);
        let inner = sum(|window| window.inner_wakes);
        let visits = sum(|window| window.visits);
        // Threads that run beside each other share the wake-ups.
        let running = (cpu_ns / length_ns).max(1.0);
        Credibility {
            windows: windows.len(),
            foreign_percent: 100.0 * sum(|window| window.foreign) / sum(ticks).max(1.0),
            steal_percent: 100.0 * sum(|window| window.steal_ns) / length_ns,
            capped: all().map(|window| window.capped).sum(),
            missed: all().map(|window| window.missed).sum(),
            unpaid_percent: if inserted > 0.0 { 100.0 * owed / inserted } else { 0.0 },
            inner_wakes: inner * NS_PER_S / length_ns,
            outer_wakes: sum(|window| window.outer_wakes) * NS_PER_S / length_ns,
            run_between_wakes_us: (inner > 0.0).then_some(cpu_ns / inner / running / 1e3),
            target_cpu_percent: 100.0 * cpu_ns / length_ns,
            threads: sum(|window| window.threads) / windows.len().max(1) as f64,
            load_bound: load_bound(sum(|window| window.remote_wakes), visits),
            pause: match self.rig.pause() {
                Pause::TaskWork => "task_work".to_owned(),
                Pause::SpinInSample => "spin_in_sample".to_owned(),
            },
            period_us: self.rig.period_ns() as f64 / 1e3,
            ..Credibility::default()
        }
    }
}

/// Rounds that every level has.
fn used(estimates: &Estimates) -> usize {
    estimates.points.iter().map(|(point, _)| point.rounds).min().unwrap_or(0)
}

/// A server that its clients find asleep at every third request is not what limits them; one that nobody wakes from
/// outside is. Between the two it cannot be told.
fn load_bound(remote_wakes: f64, visits: f64) -> Option<bool> {
    match remote_wakes / visits.max(1.0) {
        per_visit if per_visit >= ASLEEP_PER_VISIT => Some(false),
        per_visit if per_visit > 0.0 => Some(true),
        _ => None,
    }
}

/// Claims first, the greatest effect first; then what has none, then what could not be told.
fn by_weight(site: &record::Site) -> f64 {
    let effect = site.greatest().map_or(0.0, |point| point.effect_percent.abs());
    match site.verdict {
        Verdict::Helps | Verdict::Hurts => 2_000.0 + effect,
        Verdict::NoEffect => 1_000.0 + effect,
        Verdict::NotMeasurable => effect.min(999.0),
    }
}

fn of_site(deed: Deed, site: usize) -> rig::Deed {
    match deed {
        Deed::Nothing => rig::Deed::Nothing,
        Deed::SpeedUp(percent) => rig::Deed::SpeedUp { site, percent },
        Deed::SlowDown(ns) => rig::Deed::SlowDown { site, ns },
    }
}

fn recorded(one: &Measured) -> record::Window {
    let window = &one.window;
    record::Window {
        round: one.round,
        deed: one.deed,
        length_ms: window.length_ns as f64 / 1e6,
        visits: window.visits,
        period_us: one.effective.map(|effective| effective.period_ns / 1e3),
        latency_us: one.effective.and_then(|effective| effective.latency_ns).map(|latency| latency / 1e3),
        inserted_ms: one.effective.map_or(0.0, |effective| effective.inserted_ns / 1e6),
        hits: window.hits,
        samples: window.samples,
        foreign_percent: foreign_percent(window),
        dropped: one.dropped.map(|why| why.words().to_owned()),
    }
}

fn overhead(ratios: &[f64]) -> Overhead {
    let percent = |ln: f64| 100.0 * ln.exp_m1();
    let Some(mean) = Mean::of(ratios) else { return Overhead::default() };
    Overhead {
        attached_percent: percent(mean.mean),
        interval_percent: Some([mean.mean - mean.half_width, mean.mean + mean.half_width].map(percent)),
        rounds: mean.n,
        ..Overhead::default()
    }
}

/// What each program took; those that never ran are left out.
fn parts(hooks: &Hooks) -> Vec<OverheadPart> {
    let part = |(name, ns, count): &(&str, u64, u64)| OverheadPart {
        name: (*name).to_owned(),
        percent: 100.0 * *ns as f64 / hooks.machine_ns.max(1) as f64,
        per_second: *count as f64 * NS_PER_S / hooks.length_ns.max(1) as f64,
    };
    hooks.ran.iter().filter(|(_, _, count)| *count > 0).map(part).collect()
}

/// Zero of no values.
fn mean_or_zero(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    if values.is_empty() { 0.0 } else { stats::mean(&values) }
}

fn per_second<'w>(windows: impl Iterator<Item = &'w Window>) -> f64 {
    rate(windows, |window| window.visits)
}

fn rate<'w>(windows: impl Iterator<Item = &'w Window>, of: fn(&Window) -> u64) -> f64 {
    let (count, ns) = windows.fold((0, 0), |(count, ns), window| (count + of(window), ns + window.length_ns));
    count as f64 * NS_PER_S / ns.max(1) as f64
}

fn latency_us<'w>(windows: impl Iterator<Item = &'w Window>) -> Option<f64> {
    let latencies: Vec<f64> = windows.filter_map(|window| Effective::of(window)?.latency_ns).collect();
    (!latencies.is_empty()).then(|| stats::mean(&latencies) / 1e3)
}

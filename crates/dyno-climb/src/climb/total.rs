//! The total: start, end and floor as live servers in random order, on fresh data.
//!
//! Products and sums of steps appear nowhere: the whole way is measured as one. A new process is a new draw of hashes and
//! layout, and rounds that follow each other are alike: so all arms are started anew several times, and the interval comes
//! from what these starts differ by (`dyno_measure::rounds`).

use dyno_measure::Histogram;
use dyno_measure::judge::LAST_LOOK_MIN;
use dyno_measure::rounds::{Levels, STARTS_MIN, TOTAL_Z};
use dyno_measure::series::{Block, Tail, Totals};
use dyno_measure::student::student;
use dyno_record::climb::{Arm as ArmRecord, Figures, Reached, RungVerdict, Total, Without};
use dyno_record::ratios::Ratios;

use super::climber::{ClimbError, Climber, Event};
use super::confirm::LONG_PAIRS;
use super::in_turn::too_much;
use super::rules::BURSTY_SUFFIX;
use crate::dial::Setting;
use crate::load::LoadSpec;
use crate::meter::ArmSpec;
use crate::meter::{Length, Measured, Meter, Trouble};

/// Starts at most: there Student's t is within 10 % of its limit.
pub(super) const STARTS_MAX: usize = 24;
/// Rounds of a start at most; more would not narrow what starts differ by.
const START_ROUNDS_MAX: usize = 50;

/// One arm of the total: its live server, with what all its servers have shown so far.
pub(super) struct Live<A> {
    pub(super) name: String,
    /// None for the floor.
    pub(super) setting: Option<Setting>,
    pub(super) arm: Option<A>,
    /// User and system ticks of the live server when it began, and those of all before it.
    ticks_began: Option<(u64, u64)>,
    ticks: (u64, u64),
    latencies: Histogram,
    blocks: Vec<Block>,
}

impl<A> Live<A> {
    fn new(name: impl Into<String>, setting: Option<Setting>) -> Self {
        Self {
            name: name.into(),
            setting,
            arm: None,
            ticks_began: None,
            ticks: (0, 0),
            latencies: Histogram::new(),
            blocks: Vec::new(),
        }
    }
}

impl<A> Live<A> {
    pub(super) fn add(&mut self, measured: Measured) {
        self.latencies.merge(&measured.latencies);
        self.blocks.push(measured.block);
    }

    /// Nothing was measured of it.
    fn forget(&mut self) {
        (self.latencies, self.ticks) = (Histogram::new(), (0, 0));
        self.blocks.clear();
    }
}

impl<M: Meter> Climber<'_, M> {
    /// Measures the whole way, or says why not; then the record says all the same how to come to its end.
    pub(crate) fn total(&mut self) -> Result<(), ClimbError> {
        let outcome = self.measured_total();
        if self.record.total.is_none() {
            self.record.reached = Some(self.reached());
        }
        outcome
    }

    fn measured_total(&mut self) -> Result<(), ClimbError> {
        if self.meter.now_ns() >= self.clockwork.end_ns() {
            self.missing("total", "no time left for it");
            return Ok(());
        }
        let length = if self.in_bursts() { Length::Long } else { Length::Short };
        let mut live = self.planned();
        let mut starts = Vec::new();
        let outcome = self.beside_or_in_turn(&mut live, length, &mut starts);
        self.close_arms(&mut live);
        let finished = self.finish(&live, starts, length);
        match outcome {
            Err(trouble) if trouble.ends_the_climb() => Err(ClimbError::Ended(trouble)),
            Err(trouble) => {
                self.missing("total", trouble.to_string());
                Ok(())
            }
            Ok(()) => {
                if !finished {
                    self.missing("total", "too few rounds in the time left");
                }
                Ok(())
            }
        }
    }

    /// The setting that stands, as commands.
    fn reached(&self) -> Reached {
        let (start, end) = (self.meter.describe(&self.plan.start()), self.meter.describe(&self.standing));
        Reached {
            naive_argv: start.argv,
            final_argv: end.argv,
            final_env: end.env,
            apply: end.apply,
            final_setting: self.standing.words(),
        }
    }

    /// The arms, the floor last.
    fn planned(&self) -> Vec<Live<M::Arm>> {
        let start = self.plan.start();
        let mut live =
            vec![Live::new("naive", Some(start.clone())), Live::new("final", Some(self.standing.clone()))];
        if let Some((rung, setting)) = self.headline(&start) {
            live.push(Live::new(format!("naive+{rung}"), Some(setting)));
        }
        live.push(Live::new("floor", None));
        live
    }

    /// The start with the headline rung given to it, when that rung was kept.
    fn headline(&self, start: &Setting) -> Option<(String, Setting)> {
        let rung = self.plan.rung(self.plan.headline.as_ref()?).ok()?;
        let kept = self.standing.get(&rung.dial) == rung.to;
        kept.then(|| (rung.id.clone(), start.with(&rung.dial, &rung.to)))
    }

    /// All arms live at the same time, unless one of them burns CPU outside its blocks.
    fn beside_or_in_turn(
        &mut self,
        live: &mut Vec<Live<M::Arm>>,
        length: Length,
        starts: &mut Vec<u32>,
    ) -> Result<(), Trouble> {
        if !self.any_burns(live) {
            self.starts(live, length, starts)?;
            if !self.any_burns(live) {
                return Ok(());
            }
            // The start in which that was seen compares nothing.
            starts.clear();
            live.iter_mut().for_each(Live::forget);
        }
        self.starts_in_turn(live, starts)
    }

    fn any_burns(&self, live: &[Live<M::Arm>]) -> bool {
        live.iter().filter_map(|one| one.setting.as_ref()).any(|setting| self.burns(&[setting]))
    }

    /// Opens the floor while the server that it repeats is alive. Where it cannot be had at the first try it is left out.
    pub(super) fn floor_beside(
        &mut self,
        live: &mut Vec<Live<M::Arm>>,
        end: usize,
        load: &LoadSpec,
    ) -> Result<Option<M::Arm>, Trouble> {
        let like = live[end].arm.as_ref().expect("its blocks were just measured");
        match self.meter.open_floor(like, load) {
            Ok(arm) => Ok(Some(arm)),
            Err(trouble) => self.no_floor(live, trouble).map(|()| None),
        }
    }

    /// Goes on without a floor, unless there are rounds with one or the climb must end.
    fn no_floor(&mut self, live: &mut Vec<Live<M::Arm>>, trouble: Trouble) -> Result<(), Trouble> {
        let floor = live.iter().position(|one| one.setting.is_none());
        let Some(floor) = floor.filter(|at| !trouble.ends_the_climb() && live[*at].blocks.is_empty()) else {
            return Err(trouble);
        };
        self.missing("floor", trouble.to_string());
        live.remove(floor);
        Ok(())
    }

    /// Starts all arms, measures rounds, closes them, again and again. `starts` gets the number of the start of every round.
    fn starts(
        &mut self,
        live: &mut Vec<Live<M::Arm>>,
        length: Length,
        starts: &mut Vec<u32>,
    ) -> Result<(), Trouble> {
        let began_ns = self.meter.now_ns();
        let (mut start, mut wanted, mut opening_ns) = (0, 1, 0);
        while start < wanted && opening_ns < self.left_ns() {
            self.open_arms(live)?;
            if start == 0 {
                opening_ns = self.meter.now_ns() - began_ns;
                wanted = self.affordable_starts(opening_ns, self.round_ns(live.len(), length));
            }
            let share = (start + 1) as f64 / wanted as f64;
            let until_ns = began_ns + ((self.clockwork.end_ns() - began_ns) as f64 * share) as u64;
            self.rounds(live, length, until_ns, (start as u32, &mut *starts))?;
            self.close_arms(live);
            start += 1;
            if start == 1 && self.mark_burning_arms(live) {
                break;
            }
        }
        Ok(())
    }

    /// Whether an arm's first server burnt too much CPU outside its blocks; then its setting is marked.
    fn mark_burning_arms(&mut self, live: &[Live<M::Arm>]) -> bool {
        let shares = live.iter().filter(|one| one.blocks.len() >= LAST_LOOK_MIN).filter_map(|one| {
            let percent = Totals::of(&one.blocks).off_block_percent();
            one.setting.as_ref().filter(|_| too_much(percent)).map(|setting| (setting, percent))
        });
        let burning: Vec<_> = shares.collect();
        burning.iter().for_each(|(setting, percent)| self.mark_burning(setting, *percent));
        !burning.is_empty()
    }

    /// What a round takes, ns: a block per arm.
    fn round_ns(&self, arms: usize, length: Length) -> u64 {
        let short_ns = (self.pace.pair_ns * arms as u64 / 2).max(1);
        if length == Length::Long { LONG_PAIRS * short_ns } else { short_ns }
    }

    pub(super) fn left_ns(&self) -> u64 {
        self.clockwork.left_ns(self.meter.now_ns())
    }

    /// As many starts as make the interval narrowest: more of them are a better known spread, and leave less time for rounds.
    /// One, where there is no time for as many as tell a spread. The first is open already.
    fn affordable_starts(&self, opening_ns: u64, round_ns: u64) -> usize {
        let left_ns = self.left_ns();
        let width = |starts: usize| {
            let rounds = left_ns.saturating_sub(opening_ns * (starts as u64 - 1)) / round_ns;
            let enough = rounds >= starts as u64;
            enough.then(|| (starts, student(TOTAL_Z, (starts - 1) as f64) / (rounds as f64).sqrt()))
        };
        let widths = (STARTS_MIN..=STARTS_MAX).filter_map(width);
        widths.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(1, |(starts, _)| starts)
    }

    /// Opens a server of every arm in random order, the floor last: it answers what the final setting does.
    fn open_arms(&mut self, live: &mut Vec<Live<M::Arm>>) -> Result<(), Trouble> {
        let load = self.plan.load.clone();
        for at in self.order_of(live) {
            self.open_arm(&mut live[at])?;
        }
        let Some(floor) = live.iter().position(|one| one.setting.is_none()) else { return Ok(()) };
        let end = live.iter().position(|one| one.name == "final").expect("planned() has a final arm");
        if let Some(arm) = self.floor_beside(live, end, &load)? {
            self.began(&mut live[floor], arm);
        }
        Ok(())
    }

    /// Those with a setting of their own, in random order.
    pub(super) fn order_of(&mut self, live: &[Live<M::Arm>]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..live.len()).filter(|at| live[*at].setting.is_some()).collect();
        self.rng.shuffle(&mut order);
        order
    }

    pub(super) fn open_arm(&mut self, one: &mut Live<M::Arm>) -> Result<(), Trouble> {
        let setting = one.setting.clone().expect("the floor is opened beside the end");
        let arm = self.meter.open(&ArmSpec { setting, load: self.plan.load.clone() })?;
        self.began(one, arm);
        Ok(())
    }

    pub(super) fn began(&mut self, one: &mut Live<M::Arm>, arm: M::Arm) {
        one.ticks_began = self.meter.user_system_ticks(&arm);
        one.arm = Some(arm);
    }

    fn close_arms(&mut self, live: &mut [Live<M::Arm>]) {
        live.iter_mut().for_each(|one| self.close_arm(one));
    }

    pub(super) fn close_arm(&mut self, one: &mut Live<M::Arm>) {
        let Some(arm) = one.arm.take() else { return };
        if let (Some((user_0, system_0)), Some((user_1, system_1))) =
            (one.ticks_began, self.meter.user_system_ticks(&arm))
        {
            one.ticks.0 += user_1.saturating_sub(user_0);
            one.ticks.1 += system_1.saturating_sub(system_0);
        }
        self.meter.close(arm);
    }

    /// Measures rounds until then, at least one.
    fn rounds(
        &mut self,
        live: &mut [Live<M::Arm>],
        length: Length,
        until_ns: u64,
        (start, starts): (u32, &mut Vec<u32>),
    ) -> Result<(), Trouble> {
        let mut order: Vec<usize> = (0..live.len()).collect();
        for round in 0..START_ROUNDS_MAX {
            if round > 0 && self.meter.now_ns() >= until_ns {
                break;
            }
            self.rng.shuffle(&mut order);
            if self.round(live, length, &order)? {
                starts.push(start);
            }
            let left_ns = self.left_ns();
            let (pair, name) = (starts.len(), "naive, final, floor");
            let of = pair + (left_ns / self.round_ns(live.len(), length)) as usize;
            (self.watch)(&Event::Pair { stage: "total", name, pair, of, estimate: None, left_ns });
        }
        Ok(())
    }

    /// A block on every arm; thrown away, and false, where one had no reply or no clock.
    fn round(&mut self, live: &mut [Live<M::Arm>], length: Length, order: &[usize]) -> Result<bool, Trouble> {
        let mut measured = vec![None; live.len()];
        for at in order {
            let arm = live[*at].arm.as_mut().expect("open_arms() has opened it");
            measured[*at] = Some(self.meter.block(arm, length)?);
        }
        if measured.iter().flatten().any(|measured| dead(&measured.block)) {
            return Ok(false);
        }
        for (one, measured) in live.iter_mut().zip(measured.into_iter().flatten()) {
            one.add(measured);
        }
        Ok(true)
    }

    /// Fills the record with what was measured; false when that is too little.
    fn finish(&mut self, live: &[Live<M::Arm>], starts: Vec<u32>, length: Length) -> bool {
        let in_turn = self.any_burns(live);
        let by_totals = length == Length::Long || in_turn;
        let rounds = starts.len();
        let blocks = (0..rounds).map(|round| live.iter().map(|one| one.blocks[round]).collect()).collect();
        let names: Vec<&str> = live.iter().map(|one| one.name.as_str()).collect();
        let series = &mut self.record.series;
        (series.rounds, series.round_starts) = (blocks, starts);
        let levels = Levels::of(&series.rounds, &series.round_starts, by_totals);
        let ratios = levels.as_ref().and_then(|levels| Ratios::of(levels, &names));
        let (Some(levels), Some(ratios)) = (levels, ratios) else { return false };
        let starts = series.round_starts.chunk_by(|one, next| one == next).count();
        self.warn_of_few_starts(starts);
        self.record.floor = ratios.floor;
        let headline = live.iter().find_map(|one| one.name.strip_prefix("naive+"));
        let without = headline.zip(ratios.without);
        let arms = live.iter().enumerate().map(|(at, one)| arm_record(one, &levels, at)).collect();
        self.record.total = Some(Total {
            reached: self.reached(),
            gain: ratios.gain,
            without: without.map(|(rung, gain)| Without { rung: rung.to_owned(), gain }),
            rounds,
            starts,
            in_turn,
            by_totals,
            arms,
        });
        true
    }

    fn warn_of_few_starts(&mut self, starts: usize) {
        if starts < STARTS_MIN {
            let times = if starts == 1 { "once" } else { "twice" };
            self.record.warnings.push(format!(
                "there was time to start the total's servers {times} only: what processes differ by is not in its interval"
            ));
        }
    }

    /// Whether a kept rung was judged by totals of long blocks: what a trimmed mean hides there, it would hide of the whole way.
    fn in_bursts(&self) -> bool {
        let mut kept = self.record.rungs.iter().filter(|rung| rung.attempt.verdict == RungVerdict::Kept);
        kept.any(|rung| {
            let again = format!("leave-one-out:{}{BURSTY_SUFFIX}", rung.id);
            let step = rung.attempt.trial.as_ref().is_some_and(|trial| trial.ends_with(BURSTY_SUFFIX));
            step || self.record.trial(&again).is_some()
        })
    }
}

/// A block of which nothing can be read.
pub(super) fn dead(block: &Block) -> bool {
    block.replies == 0 || block.cpu_in_ns + block.cpu_off_ns == 0
}

fn arm_record<A>(one: &Live<A>, levels: &Levels, at: usize) -> ArmRecord {
    let totals = Totals::of(&one.blocks);
    let micros = |q: f64| one.latencies.quantile(q) as f64 / 1e3;
    let share = user_share(one.ticks);
    ArmRecord {
        name: one.name.clone(),
        figures: Figures {
            requests_per_second: totals.requests_per_second(),
            cpu_us_per_request: levels.level(at).map_or(f64::NAN, |level| level.log_ratio.exp() / 1e3),
            p50_us: micros(0.50),
            p99_us: micros(0.99),
        },
        user_share: share.map(|(share, _)| share),
        user_share_error: share.map(|(_, error)| error),
        latencies: Tail::of(&one.latencies),
    }
}

/// Share of user ticks and its binomial error: the kernel samples the split once a tick.
fn user_share((user, system): (u64, u64)) -> Option<(f64, f64)> {
    let all = (user + system) as f64;
    let share = user as f64 / all;
    (all > 0.0).then(|| (share, (share * (1.0 - share) / all).sqrt()))
}

//! The state of a climb: the setting that stands, its live servers, the time, the record.
//!
//! Every stage is a file of methods on it. What is here all of them need: opening and closing the servers of a setting,
//! and what a climb remembers of the settings it saw.

use dyno_measure::Prng;
use dyno_measure::between::{Between, Spread};
use dyno_measure::judge::Rule;
use dyno_measure::series::Metric;
use dyno_record::climb::{Climb, RungVerdict};
use dyno_record::machine::Missing;
use dyno_record::trial::Schedule;

use super::options::{Event, INSTANCES, Options, Order};
use super::rules::step_rule;
use super::time::{Clockwork, Pace};
use super::turned::Kept;
use crate::dial::Setting;
use crate::load::LoadSpec;
use crate::meter::{ArmSpec, Meter, Opening, Trouble, Vitals};
use crate::plan::Plan;
use crate::rung::Rung;

/// Live instances per side at least: one alone cannot show what a draw makes.
const INSTANCES_MIN: usize = 2;
const _: () = assert!(INSTANCES_MIN <= INSTANCES, "what is cut for want of memory is cut to fewer");

/// The arms of one side, with what they are.
pub(crate) struct SideArms<A> {
    pub(crate) spec: ArmSpec,
    pub(crate) arms: Vec<A>,
}

pub(crate) struct Climber<'c, M: Meter> {
    pub(crate) plan: &'c Plan,
    pub(crate) options: &'c Options,
    pub(crate) meter: &'c mut M,
    pub(crate) record: &'c mut Climb,
    pub(crate) watch: &'c mut dyn FnMut(&Event<'_>),
    pub(crate) clockwork: Clockwork,
    pub(crate) pace: Pace,
    pub(crate) rng: Prng,
    /// The setting reached so far.
    pub(crate) standing: Setting,
    /// What each trial shows of the variance between starts, by its metric.
    pub(crate) spreads: Vec<(Metric, Spread)>,
    /// Kept rungs in the order of keeping.
    pub(crate) kept: Vec<Kept>,
    /// Those of them that are not to be had, as their confirmation showed; indices into the record's rungs.
    pub(crate) refused: Vec<usize>,
    /// Whether rungs without a chance of an answer are given up, because others need their time.
    pub(crate) gives_up: bool,
    /// Live servers per side.
    pub(crate) instances: usize,
    /// Whether they were seen to fit into the memory.
    fitted: bool,
    /// Settings whose servers burn CPU outside their own blocks: measured one after another.
    pub(crate) burning: Vec<Setting>,
}

impl<'c, M: Meter> Climber<'c, M> {
    pub(crate) fn new(
        plan: &'c Plan,
        options: &'c Options,
        meter: &'c mut M,
        record: &'c mut Climb,
        watch: &'c mut dyn FnMut(&Event<'_>),
    ) -> Self {
        assert!(options.instances > 0, "a side has a server at least");
        let clockwork = Clockwork::new(meter.now_ns(), options.time_ns);
        Self {
            plan,
            options,
            meter,
            record,
            watch,
            clockwork,
            pace: Pace::default(),
            rng: Prng::new(options.seed),
            standing: plan.start(),
            spreads: Vec::new(),
            kept: Vec::new(),
            refused: Vec::new(),
            gives_up: false,
            instances: options.instances,
            fitted: false,
            burning: Vec::new(),
        }
    }
}

impl<M: Meter> Climber<'_, M> {
    pub(crate) fn open_side(&mut self, spec: ArmSpec) -> Result<SideArms<M::Arm>, Trouble> {
        let mut side = SideArms { spec, arms: Vec::new() };
        let began_ns = self.meter.now_ns();
        while side.arms.len() < self.instances {
            if let Err(trouble) = self.open_one(&mut side) {
                self.close_side(side);
                return Err(trouble);
            }
        }
        self.pace.opened(2 * (self.meter.now_ns() - began_ns), 2 * side.arms.len());
        assert!(!side.arms.is_empty(), "an open side has a server");
        Ok(side)
    }

    pub(crate) fn open_one(&mut self, side: &mut SideArms<M::Arm>) -> Result<(), Trouble> {
        side.arms.push(self.meter.open(Opening::Server(&side.spec))?);
        self.fit_memory(&side.arms[0]);
        Ok(())
    }

    /// What the trials so far say of the variance between starts by this measure.
    pub(crate) fn between(&self, metric: Metric) -> Between {
        let of_metric = self.spreads.iter().filter(|(of, _)| *of == metric).map(|(_, spread)| *spread);
        Between::pooled(&of_metric.collect::<Vec<_>>())
    }

    /// Cuts the instances to the fewest when as many as were asked for would fill more than half of the memory that is
    /// left beside the first of them: the climb needs the rest for its load, and servers grow.
    fn fit_memory(&mut self, first: &M::Arm) {
        if std::mem::replace(&mut self.fitted, true) {
            return;
        }
        let others = (2 * self.instances - 1) as u64;
        let memory = first.memory();
        if self.instances > INSTANCES_MIN
            && memory.server_bytes.saturating_mul(others) > memory.left_bytes / 2
        {
            let mib = |bytes: u64| bytes >> 20;
            self.record.warnings.push(format!(
                "memory is short: {INSTANCES_MIN} live servers per side instead of {} (one takes {} MiB, {} MiB are left)",
                self.instances,
                mib(memory.server_bytes),
                mib(memory.left_bytes)
            ));
            self.instances = INSTANCES_MIN;
        }
    }

    /// A gain below what its risk is worth is told, and not kept.
    pub(crate) fn worth_it(
        &self,
        rung: &Rung,
        effect_percent: f64,
        (verdict, why): (RungVerdict, String),
    ) -> (RungVerdict, String) {
        if verdict != RungVerdict::Kept || self.record.is_worth(&rung.risk, effect_percent) {
            return (verdict, why);
        }
        let least = self.record.worthwhile_percent.unwrap_or_default();
        let why = format!("{why}; below {least:.1} % it is not worth its risk: {}", rung.risk);
        (RungVerdict::NotWorthwhile, why)
    }

    pub(crate) fn close_side(&mut self, side: SideArms<M::Arm>) {
        for arm in side.arms {
            self.meter.close(arm);
        }
    }

    /// Opens one server, works on it, and closes it whatever came of that.
    pub(crate) fn visited<T>(
        &mut self,
        spec: &ArmSpec,
        work: impl FnOnce(&mut Self, &mut M::Arm) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let mut arm = self.meter.open(Opening::Server(spec))?;
        let done = work(self, &mut arm);
        self.meter.close(arm);
        done
    }

    pub(crate) fn missing(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.record.not_measured.push(Missing { what: what.into(), why: why.into() });
    }

    /// Rungs of the plan, in the order asked for, only those asked for.
    pub(crate) fn order(&self) -> Vec<usize> {
        let wanted = |i: &usize| self.plan.rungs[*i].is_wanted(&self.options.only);
        let mut order: Vec<usize> = (0..self.plan.rungs.len()).filter(wanted).collect();
        match self.options.order {
            Order::Given => {}
            Order::Reverse => order.reverse(),
            Order::Shuffle(seed) => Prng::new(seed).shuffle(&mut order),
        }
        order
    }

    /// Whether the time of the rungs is too short for all pairs of each that is possible here.
    pub(crate) fn time_is_short(&self) -> bool {
        let left_ns = self.clockwork.rungs_end_ns().saturating_sub(self.meter.now_ns());
        let possible = self.order().iter().filter(|at| self.possible(&self.plan.rungs[**at]).is_ok()).count();
        left_ns / (possible.max(1) as u64) < self.pace.of_pairs(Rule::QUICK.last)
    }

    /// The rule of a step side by side. What is given up early may have shown rare bursts later, so nobody does so for time that
    /// no other rung needs.
    pub(crate) fn live_rule(&self, gives_up: bool) -> Rule {
        if gives_up { step_rule(Schedule::LivePairs) } else { Rule::QUICK }
    }

    /// A rung's own load, or the plan's.
    pub(crate) fn load_of(&self, rung: &Rung) -> LoadSpec {
        rung.load.clone().unwrap_or_else(|| self.plan.load.clone())
    }

    /// The plan's rung behind a rung of the record.
    pub(crate) fn rung_of(&self, slot: usize) -> &Rung {
        self.plan.rung(&self.record.rungs[slot].id).expect("the record's rungs are the plan's")
    }

    /// The record's rung for a kept dial, still standing.
    pub(crate) fn is_confirmed(&self, kept: &Kept) -> bool {
        self.record.rungs[kept.rung].attempt.verdict == RungVerdict::Kept
    }
}

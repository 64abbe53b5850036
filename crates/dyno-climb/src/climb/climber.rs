//! What every stage of a climb works with: how it is to be done, what has been reached, and the servers that are open.
//!
//! `climb.rs` makes one and walks it through the stages; each stage is an `impl` in a file beside.

use dyno_measure::Prng;
use dyno_measure::judge::Estimate;
use dyno_record::climb::{Climb, Rung as RungRecord, RungVerdict};
use dyno_record::machine::Missing;

use super::time::{Clockwork, Pace};
use crate::dial::Setting;
use crate::load::LoadSpec;
use crate::meter::{ArmSpec, Meter, Trouble};
use crate::plan::Plan;
use crate::rung::Rung;

/// Live instances per side: a new process is a new draw of hashes and layout, four tell a draw from a difference.
pub const INSTANCES: usize = 4;

/// Live instances per side at least: one alone cannot show what a draw makes.
const INSTANCES_MIN: usize = 2;

/// In which order the rungs are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// As the plan has them.
    #[default]
    Given,
    /// The other way round.
    Reverse,
    /// By this seed.
    Shuffle(u64),
}

/// How to climb.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Time for all of it, ns.
    pub time_ns: u64,
    /// Order of the rungs.
    pub order: Order,
    /// Seed of every coin.
    pub seed: u64,
    /// Live instances per side; two where memory is short.
    pub instances: usize,
    /// Only these rungs, all when empty.
    pub only: Vec<String>,
    /// Whether both sides of every measured rung are profiled as well.
    pub profiles: Profiles,
    /// Time for experiments on each setting that a rung begins from, ns, beside `time_ns`; none where nothing is to be
    /// foretold. Both sides are then profiled as well, longer than otherwise, and that is beside `time_ns` too.
    pub causal_ns: Option<u64>,
}

/// Whether a climb takes profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profiles {
    /// Figures only.
    #[default]
    None,
    /// A second of each side of every rung that was measured.
    Sides,
}

/// What happens while it climbs, for whoever shows progress.
#[derive(Debug)]
pub enum Event<'e> {
    /// Pairs are being measured.
    Pair {
        /// Which stage, e.g. `noise`, `rung 3 of 11`.
        stage: &'e str,
        /// The rung, or what else is measured.
        name: &'e str,
        /// Pairs so far.
        pair: usize,
        /// Pairs at most.
        of: usize,
        /// The running estimate, from the last look.
        estimate: Option<Estimate>,
        /// Time left of the whole, ns.
        left_ns: u64,
    },
    /// Experiments on the setting before a rung begin.
    Experiments {
        /// The rung.
        rung: &'e str,
        /// How long they take, ns.
        for_ns: u64,
    },
    /// Noise was measured.
    Noise(&'e dyno_record::climb::Noise),
    /// A rung has its verdict.
    Rung(&'e RungRecord),
}

/// Why there is no climb.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClimbError {
    /// The start itself does not work.
    #[error("the start cannot be measured")]
    Start(#[source] Trouble),
    /// A differs from A: nothing can be judged here today.
    #[error("the same setting differs from itself ({0}), twice: nothing can be judged here now")]
    Noise(String),
    /// The climb was ended from outside.
    #[error("cut short")]
    Ended(#[source] Trouble),
}

/// Experiments on one setting under one load.
pub(crate) struct Experiments {
    pub(super) spec: ArmSpec,
    /// Index into the record's `causal`, or why there is nothing.
    pub(super) found: Result<usize, String>,
}

/// The arms of one side, with what they are.
pub(crate) struct SideArms<A> {
    pub(crate) spec: ArmSpec,
    pub(crate) arms: Vec<A>,
}

pub(crate) struct Climber<'c, M: Meter> {
    pub(super) plan: &'c Plan,
    pub(super) options: &'c Options,
    pub(super) meter: &'c mut M,
    pub(super) record: &'c mut Climb,
    pub(super) watch: &'c mut dyn FnMut(&Event<'_>),
    pub(super) clockwork: Clockwork,
    pub(super) pace: Pace,
    pub(super) rng: Prng,
    /// The setting reached so far.
    pub(super) standing: Setting,
    /// Its live instances, kept from one rung to the next.
    pub(super) current: Option<SideArms<M::Arm>>,
    /// Whether one of them may have been lost: a rung ended in trouble.
    pub(super) spoiled: bool,
    /// What the last experiments were on, and what came of them.
    pub(super) experiments: Option<Experiments>,
    /// Kept rungs in the order of keeping: index into the record's rungs, and where the dials of it stood before.
    pub(super) kept: Vec<Kept>,
    /// Live servers per side.
    pub(super) instances: usize,
    /// Whether they were seen to fit into the memory.
    pub(super) fitted: bool,
    /// Settings whose servers burn CPU outside their own blocks: measured one after another.
    pub(super) burning: Vec<Setting>,
}

/// A rung that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Index into the record's rungs.
    pub(crate) rung: usize,
    /// Dials that it turned, with the values before and after.
    pub(crate) turned: Vec<Turned>,
}

/// A dial that was turned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turned {
    pub(crate) dial: String,
    pub(crate) from: String,
    pub(crate) to: String,
}

impl<M: Meter> Climber<'_, M> {
    /// Makes sure that the live instances of the setting reached are open for this load.
    pub(super) fn ensure_current(&mut self, load: &LoadSpec) -> Result<(), Trouble> {
        let wanted = ArmSpec { setting: self.standing.clone(), load: load.clone() };
        if self.current.as_ref().is_some_and(|side| side.spec == wanted) {
            return Ok(());
        }
        self.close_current();
        self.current = Some(self.open_side(wanted)?);
        Ok(())
    }

    pub(super) fn open_side(&mut self, spec: ArmSpec) -> Result<SideArms<M::Arm>, Trouble> {
        let mut side = SideArms { spec, arms: Vec::new() };
        let began_ns = self.meter.now_ns();
        while side.arms.len() < self.instances {
            match self.meter.open(&side.spec) {
                Ok(arm) => side.arms.push(arm),
                Err(trouble) => {
                    self.close_side(side);
                    return Err(trouble);
                }
            }
            self.fit_memory(&side.arms[0]);
        }
        self.pace.opened(self.meter.now_ns() - began_ns, side.arms.len());
        Ok(side)
    }

    /// Cuts the instances to the fewest when as many as were asked for would fill more than half of the memory that is
    /// left beside the first of them: the climb needs the rest for its load, and servers grow.
    pub(super) fn fit_memory(&mut self, first: &M::Arm) {
        if std::mem::replace(&mut self.fitted, true) {
            return;
        }
        let others = (2 * self.instances - 1) as u64;
        let (one, left) = (self.meter.memory_bytes(first), self.meter.memory_left_bytes());
        if self.instances > INSTANCES_MIN && one.saturating_mul(others) > left / 2 {
            let mib = |bytes: u64| bytes >> 20;
            self.record.warnings.push(format!(
                "memory is short: {INSTANCES_MIN} live servers per side instead of {} (one takes {} MiB, {} MiB are left)",
                self.instances,
                mib(one),
                mib(left)
            ));
            self.instances = INSTANCES_MIN;
        }
    }

    pub(super) fn close_side(&mut self, side: SideArms<M::Arm>) {
        for arm in side.arms {
            self.meter.close(arm);
        }
    }

    pub(super) fn close_current(&mut self) {
        if let Some(side) = self.current.take() {
            self.close_side(side);
        }
    }

    pub(super) fn missing(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.record.not_measured.push(Missing { what: what.into(), why: why.into() });
    }

    /// Rungs of the plan, in the order asked for, only those asked for.
    pub(super) fn order(&self) -> Vec<usize> {
        let wanted =
            |i: &usize| self.options.only.is_empty() || self.options.only.contains(&self.plan.rungs[*i].id);
        let mut order: Vec<usize> = (0..self.plan.rungs.len()).filter(wanted).collect();
        match self.options.order {
            Order::Given => {}
            Order::Reverse => order.reverse(),
            Order::Shuffle(seed) => Prng::new(seed).shuffle(&mut order),
        }
        order
    }

    /// The plan's rung behind a rung of the record.
    pub(super) fn rung_of(&self, slot: usize) -> &Rung {
        self.plan.rung(&self.record.rungs[slot].id).expect("the record's rungs are the plan's")
    }

    /// The record's rung for a kept dial, still standing.
    pub(super) fn is_confirmed(&self, kept: &Kept) -> bool {
        self.record.rungs[kept.rung].attempt.verdict == RungVerdict::Kept
    }
}

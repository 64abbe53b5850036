//! A world that stands still, for tests of single decisions of a climb: servers that do nothing, and time that passes only
//! where a test says so.
//!
//! The tests beside the code of each stage use it. Whole climbs are simulated in `tests/simulated`.

use std::collections::VecDeque;

use dyno_measure::Histogram;
use dyno_measure::judge::Rule;
use dyno_measure::series::{Block, Metric, Pair, Side, Trial};
use dyno_record::climb::{Climb, Rung as RungRecord, RungVerdict};
use dyno_record::profile::Profile;
use dyno_record::trial::{Compared, Schedule, Stage};

use super::attempt::blank;
use super::climber::Climber;
use super::options::{Options, Order, Profiles};
use super::turned::{Kept, Turned, apply};
use crate::dial::{Dial, How, Setting, Value};
use crate::load::LoadSpec;
use crate::meter::{
    Clock, Describe, Described, Length, Look, Measured, Memory, Meter, Opening, Trouble, Vitals,
};
use crate::plan::{Launch, Plan};
use crate::proof::{Proof, Reading};
use crate::rung::{Needs, Rung};

pub(super) const SECOND: u64 = 1_000_000_000;

/// The world.
pub(super) struct Still {
    pub(super) now_ns: u64,
    /// What opening a server and a block of one take, ns.
    pub(super) open_ns: u64,
    pub(super) block_ns: u64,
    /// What a reply of the servers to come costs, ns, in this order; 6,000 where nothing is said.
    pub(super) costs: VecDeque<u64>,
    /// What blocks cost more than that, at most, percent: each its own.
    pub(super) noise_percent: u64,
    /// What servers hold from now on.
    pub(super) memory: Memory,
    pub(super) alive: usize,
    pub(super) blocks: usize,
    /// Where dials were turned in live servers.
    pub(super) turned: Vec<String>,
    /// What is read next of proofs, in this order.
    pub(super) readings: VecDeque<Reading>,
}

/// A server that does nothing.
pub(super) struct Server {
    memory: Memory,
    cost: u64,
}

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

impl Vitals for Server {
    fn memory(&self) -> Memory {
        self.memory
    }

    fn user_system_ticks(&self) -> Option<(u64, u64)> {
        None
    }

    fn clock(&self) -> String {
        "still".into()
    }
}

impl Meter for Still {
    type Arm = Server;

    fn build(&mut self, _setting: &Setting) -> Result<(), Trouble> {
        Ok(())
    }

    fn open(&mut self, _what: Opening<'_, Server>) -> Result<Server, Trouble> {
        self.now_ns += self.open_ns;
        self.alive += 1;
        Ok(Server { memory: self.memory, cost: self.costs.pop_front().unwrap_or(6_000) })
    }

    fn turn(&mut self, _arm: &mut Server, setting: &Setting, dial: &str) -> Result<(), Trouble> {
        self.turned.push(format!("{dial}={}", setting.get(dial)));
        Ok(())
    }

    fn prove(&mut self, _arm: &mut Server, _proof: &Proof) -> Result<Reading, Trouble> {
        let nothing = || Reading::CannotTell("nothing is read here".into());
        Ok(self.readings.pop_front().unwrap_or_else(nothing))
    }

    fn block(&mut self, arm: &mut Server, _length: Length) -> Result<Measured, Trouble> {
        self.now_ns += self.block_ns;
        self.blocks += 1;
        // Nineteen blocks that follow each other differ, and a pair's two differ from the next one's.
        let noise = arm.cost * self.noise_percent / 100 * (self.blocks as u64 * 7 % 19) / 18;
        Ok(Measured { block: block(arm.cost + noise, 0), latencies: Histogram::new() })
    }

    fn close(&mut self, _arm: Server) {
        self.alive -= 1;
    }
}

impl Look for Still {
    fn profile(&mut self, _arm: &mut Server, _for_ns: u64) -> Result<Profile, String> {
        Err("it does nothing".into())
    }
}

impl Describe for Still {
    fn describe(&self, setting: &Setting) -> Described {
        Described { argv: setting.words(), ..Described::default() }
    }
}

/// A block of a thousand replies with so much CPU for each, inside and outside of it, ns.
pub(super) fn block(inside: u64, outside: u64) -> Block {
    Block {
        replies: 1_000,
        wall_ns: 25_000_000,
        cpu_in_ns: 1_000 * inside,
        cpu_off_ns: 1_000 * outside,
        ..Block::default()
    }
}

/// Pairs of these costs of A and B, ns a reply, with the start that they belong to.
pub(super) fn trial(pairs: &[(u32, u64, u64)]) -> Trial {
    let mut trial = Trial::new(Metric::CpuPerRequest);
    for (instance, a, b) in pairs {
        let pair = Pair { first: Side::A, instance: *instance, a: block(*a, 0), b: block(*b, 0) };
        trial.add(pair, [&Histogram::new(), &Histogram::new()]);
    }
    trial
}

fn value(name: &str) -> Value {
    Value { name: name.into(), words: vec![name.into()], text: String::new() }
}

/// A plan with a rung for each `dial=value`; every dial starts at `off`.
pub(super) fn plan(steps: &[&str]) -> Plan {
    let (mut dials, mut rungs) = (Vec::<Dial>::new(), Vec::new());
    for step in steps {
        let (dial, to) = step.split_once('=').expect("dial=value");
        match dials.iter_mut().find(|known| known.name == dial) {
            Some(known) => known.values.push(value(to)),
            None => dials.push(Dial {
                name: dial.into(),
                how: How::Arg,
                values: vec![value("off"), value(to)],
                start: 0,
            }),
        }
        rungs.push(rung(step, dial, to));
    }
    Plan {
        name: "still".into(),
        launch: Launch::default(),
        load: LoadSpec::default(),
        dials,
        rungs,
        memory_max_bytes: None,
        headline: None,
    }
}

fn rung(id: &str, dial: &str, to: &str) -> Rung {
    Rung {
        id: id.into(),
        dial: dial.into(),
        to: to.into(),
        needs: Vec::new(),
        claim: "it helps".into(),
        source: "a book".into(),
        risk: "none".into(),
        metric: Metric::CpuPerRequest,
        load: None,
        server_cpus: 1,
        impossible: None,
        state: None,
        elsewhere: String::new(),
        proofs: Vec::new(),
        in_place: false,
        only_named: false,
    }
}

/// A need of a rung, as `dial=value`.
pub(super) fn needs(text: &str) -> Vec<Needs> {
    let (dial, value) = text.split_once('=').expect("dial=value");
    vec![Needs { dial: dial.into(), value: value.into() }]
}

/// A hundred seconds on two CPUs, four servers a side.
pub(super) fn options() -> Options {
    Options {
        time_ns: 100 * SECOND,
        order: Order::Given,
        seed: 1,
        instances: 4,
        server_cpus: 2,
        only: Vec::new(),
        worthwhile_percent: None,
        profiles: Profiles::None,
    }
}

/// Lets a test work on the climber of a plan, before anything was done; nothing may live afterwards.
pub(super) fn on_a_climb<T>(
    plan: &Plan,
    options: &Options,
    test: impl FnOnce(&mut Climber<'_, Still>) -> T,
) -> T {
    let memory = Memory { server_bytes: 10 << 20, left_bytes: 1 << 40 };
    let mut meter = Still {
        now_ns: 0,
        open_ns: 0,
        block_ns: 0,
        memory,
        alive: 0,
        blocks: 0,
        turned: Vec::new(),
        costs: VecDeque::new(),
        noise_percent: 0,
        readings: VecDeque::new(),
    };
    let mut record = Climb::default();
    let came = test(&mut Climber::new(plan, options, &mut meter, &mut record, &mut |_event| {}));
    assert_eq!(meter.alive, 0, "a server outlives the test");
    came
}

/// Puts a rung of the plan into the record, tried with this verdict; its place there.
pub(super) fn tried(climber: &mut Climber<'_, Still>, at: usize, verdict: RungVerdict) -> usize {
    let plan = climber.plan;
    let rung = &plan.rungs[at];
    let attempt = blank(rung, &climber.load_of(rung), verdict, String::new());
    climber.record.rungs.push(RungRecord {
        id: rung.id.clone(),
        change: String::new(),
        sets: String::new(),
        claim: String::new(),
        source: String::new(),
        risk: rung.risk.clone(),
        reverts: String::new(),
        needs: Vec::new(),
        state: None,
        elsewhere: String::new(),
        bundle: Vec::new(),
        attempt,
        first_attempt: None,
        leave_one_out: None,
        leave_one_out_trial: None,
        leave_one_out_beside: Vec::new(),
        plan_load: None,
    });
    climber.record.rungs.len() - 1
}

/// The same of one that was kept: it stands, and waits for its confirmation.
pub(super) fn keep(climber: &mut Climber<'_, Still>, at: usize) -> Kept {
    let slot = tried(climber, at, RungVerdict::Kept);
    let plan = climber.plan;
    let rung = &plan.rungs[at];
    let from = climber.standing.get(&rung.dial).to_owned();
    let turned = vec![Turned { dial: rung.dial.clone(), from, to: rung.to.clone() }];
    climber.standing = apply(&climber.standing, &turned);
    let kept = Kept { rung: slot, turned, pair_ns: climber.pace.pair_ns };
    climber.kept.push(kept.clone());
    kept
}

/// Puts what was measured of a rung into the record; its place there. Its id is that of the rung.
pub(super) fn measured(
    climber: &mut Climber<'_, Still>,
    rung: &str,
    (stage, schedule): (Stage, Schedule),
    rule: Rule,
    trial: Trial,
) -> usize {
    climber.record.series.trials.push(Compared {
        id: rung.into(),
        stage,
        attempt: 1,
        rung: Some(rung.into()),
        schedule,
        toggles: None,
        clock: "still".into(),
        rule,
        trial,
    });
    climber.record.series.trials.len() - 1
}

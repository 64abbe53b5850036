//! Faults planted in a climb's state, over a meter that only counts what is alive: each must be met by its assertion.

use dyno_measure::Histogram;
use dyno_measure::series::{Block, Metric, Side};
use dyno_record::climb::{Climb, Rung as RungRecord, RungVerdict};
use dyno_record::trial::{Schedule, Stage};

use super::attempt::blank;
use super::bench::Bench;
use super::climber::Climber;
use super::comparison::{Comparison, Sides};
use super::options::{Options, Order, Profiles};
use super::pairs::Asked;
use super::rules::step_rule;
use super::time::Until;
use super::turned::{Kept, Turned};
use crate::built_in::built_in;
use crate::dial::Setting;
use crate::load::LoadSpec;
use crate::meter::{Clock, Length, Measured, Memory, Meter, Opening, Trouble, Vitals};
use crate::plan::Plan;
use crate::proof::{Proof, Reading};
use crate::rung::Surroundings;

/// Servers that do nothing, in a world where each call takes a millisecond.
#[derive(Default)]
struct Idle {
    now_ns: std::cell::Cell<u64>,
    alive: usize,
}

struct IdleServer;

impl Clock for Idle {
    fn now_ns(&self) -> u64 {
        self.now_ns.set(self.now_ns.get() + 1_000_000);
        self.now_ns.get()
    }
}

impl Vitals for IdleServer {
    fn memory(&self) -> Memory {
        Memory { server_bytes: 1, left_bytes: 1 << 30 }
    }

    fn user_system_ticks(&self) -> Option<(u64, u64)> {
        None
    }

    fn clock(&self) -> String {
        "none".into()
    }
}

impl Meter for Idle {
    type Arm = IdleServer;

    fn build(&mut self, _setting: &Setting) -> Result<(), Trouble> {
        Ok(())
    }

    fn open(&mut self, _what: Opening<'_, IdleServer>) -> Result<IdleServer, Trouble> {
        self.alive += 1;
        Ok(IdleServer)
    }

    fn turn(&mut self, _arm: &mut IdleServer, _setting: &Setting, _dial: &str) -> Result<(), Trouble> {
        Ok(())
    }

    fn prove(&mut self, _arm: &mut IdleServer, _proof: &Proof) -> Result<Reading, Trouble> {
        Err(Trouble::ClockLost { why: "it does nothing".into() })
    }

    fn block(&mut self, _arm: &mut IdleServer, _length: Length) -> Result<Measured, Trouble> {
        let block = Block { replies: 500, cpu_in_ns: 5_000_000, wall_ns: 25_000_000, ..Block::default() };
        Ok(Measured { block, latencies: Histogram::new() })
    }

    fn close(&mut self, _arm: IdleServer) {
        self.alive -= 1;
    }
}

fn options(instances: usize) -> Options {
    Options {
        time_ns: 60_000_000_000,
        order: Order::Given,
        seed: 1,
        instances,
        server_cpus: 1,
        only: Vec::new(),
        worthwhile_percent: None,
        profiles: Profiles::None,
    }
}

/// Lets `fault` work on a climber of the built-in plan; how many servers are alive afterwards.
fn on_a_climb(instances: usize, fault: impl FnOnce(&mut Climber<'_, Idle>)) -> usize {
    let plan: Plan = built_in(&Surroundings { server_cpus: 1, ..Surroundings::default() });
    let (options, mut meter, mut record) = (options(instances), Idle::default(), Climb::default());
    fault(&mut Climber::new(&plan, &options, &mut meter, &mut record, &mut |_event| {}));
    meter.alive
}

/// The start against the same with its first rung.
fn first_step(climber: &Climber<'_, Idle>, schedule: Schedule) -> Comparison<Sides> {
    let rung = &climber.plan.rungs[0];
    let settings = [climber.standing.clone(), climber.standing.with(&rung.dial, &rung.to)];
    let (arms, load) = (Sides::apart(settings), LoadSpec::default());
    Comparison { arms, schedule, rule: step_rule(schedule), load }
}

fn open(climber: &mut Climber<'_, Idle>, comparison: &Comparison<Sides>) -> Bench<IdleServer> {
    let opened = climber.open_bench(comparison, &[]);
    opened.unwrap_or_else(|(side, trouble)| panic!("side {side:?} cannot be opened: {trouble}"))
}

const ASKED: Asked<'static> = Asked {
    stage: Stage::Step,
    attempt: 1,
    rung: Some("x"),
    words: ["step", "x"],
    metric: Metric::CpuPerRequest,
    until: Until { share_ns: u64::MAX, most_ns: u64::MAX },
};

#[test]
fn what_a_bench_opens_is_closed() {
    let alive = on_a_climb(4, |climber| {
        let comparison = first_step(climber, Schedule::LivePairs);
        let mut bench = open(climber, &comparison);
        assert_eq!(climber.meter.alive, 8);
        assert_eq!(climber.renew(&mut bench, 60).map_err(|_| ()), Ok(None));
        assert_eq!((climber.meter.alive, bench.first_instance(), bench.memory()[1].len()), (8, 4, 8));
        climber.close_bench(bench);
    });
    assert_eq!(alive, 0);
}

#[test]
#[should_panic(expected = "a side has a server at least")]
fn a_climb_without_servers_is_never_begun() {
    on_a_climb(0, |_climber| {});
}

#[test]
#[should_panic(expected = "instance 4 is none of the 4 that live")]
fn an_instance_that_does_not_live_is_never_measured() {
    on_a_climb(4, |climber| {
        let comparison = first_step(climber, Schedule::LivePairs);
        let mut bench = open(climber, &comparison);
        let _ = climber.block_on(&mut bench, Side::A, 4, Length::Short);
    });
}

#[test]
#[should_panic(expected = "the bench was opened for another schedule")]
fn live_servers_are_never_measured_in_turn() {
    on_a_climb(1, |climber| {
        let comparison = first_step(climber, Schedule::LivePairs);
        let mut bench = open(climber, &comparison);
        let in_turn = comparison.by(Schedule::InTurn, step_rule(Schedule::InTurn));
        climber.pairs(&mut bench, &in_turn, &ASKED);
    });
}

#[test]
#[should_panic(expected = "all but noise is about a rung")]
fn a_step_without_a_rung_is_never_measured() {
    on_a_climb(1, |climber| {
        let comparison = first_step(climber, Schedule::LivePairs);
        let mut bench = open(climber, &comparison);
        climber.pairs(&mut bench, &comparison, &Asked { rung: None, ..ASKED });
    });
}

/// The plan's first rung as the record has it, after a try with this verdict.
fn recorded(climber: &Climber<'_, Idle>, verdict: RungVerdict) -> RungRecord {
    let rung = &climber.plan.rungs[0];
    RungRecord {
        id: rung.id.clone(),
        change: String::new(),
        sets: String::new(),
        claim: String::new(),
        source: String::new(),
        risk: String::new(),
        reverts: String::new(),
        state: None,
        elsewhere: String::new(),
        needs: Vec::new(),
        bundle: Vec::new(),
        attempt: blank(rung, &climber.load_of(rung), verdict, String::new()),
        first_attempt: None,
        leave_one_out: None,
        leave_one_out_trial: None,
        leave_one_out_beside: Vec::new(),
        plan_load: None,
    }
}

fn kept(climber: &mut Climber<'_, Idle>, record: RungRecord) -> Kept {
    let rung = &climber.plan.rungs[0];
    let from = climber.standing.get(&rung.dial).to_owned();
    let turned = vec![Turned { dial: rung.dial.clone(), from, to: rung.to.clone() }];
    climber.record.rungs.push(record);
    Kept { rung: 0, turned, pair_ns: climber.pace.pair_ns }
}

#[test]
#[should_panic(expected = "only what was kept waits for its confirmation")]
fn a_rung_that_went_back_never_waits_for_its_confirmation() {
    on_a_climb(1, |climber| {
        let record = recorded(climber, RungVerdict::Reverted);
        let kept = kept(climber, record);
        climber.kept.push(kept);
        let _ = climber.leave_one_out();
    });
}

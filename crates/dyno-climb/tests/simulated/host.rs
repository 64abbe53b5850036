//! Climbs that change host settings: a simulated host that must be found as it was, however the climb ends.

use dyno_climb::climb::climb;
use dyno_climb::dial::{How, Setting};
use dyno_climb::meter::{
    Clock, Describe, Described, Length, Look, Measured, Memory, Meter, Opening, Trouble, Vitals,
};
use dyno_climb::plan::Plan;
use dyno_climb::proof::{Proof, Reading};
use dyno_host::changes::{HostChanges, OpenChanges};
use dyno_host::host::Host;
use dyno_host::journal::Journal;
use dyno_host::memory::{InMemory, Watchman};
use dyno_record::change::{ChangeSpec, What};
use dyno_record::climb::{Climb, RungVerdict};
use dyno_record::profile::Profile;

use crate::ladder::{ladder, options};
use crate::noise::Weather;
use crate::world::{self, Does, Trip, World};

const KNOB: &str = "/proc/sys/net/simulated";

fn knob() -> What {
    What::File(KNOB.into())
}

/// The world on a host whose settings its servers want to stand somewhere.
struct OnHost {
    world: World,
    /// The dials that are host settings.
    dials: Vec<String>,
    host: InMemory,
    keeper: Watchman,
    changes: OpenChanges<Watchman>,
    blocks: u64,
    /// Somebody else writes this before this block.
    meddler: Option<(u64, &'static str)>,
}

struct Arm {
    server: world::Arm,
    setting: Setting,
}

impl OnHost {
    fn new(plan: &Plan, world: World) -> Self {
        let is_knob = |how: &How| matches!(how, How::Knob { .. });
        let dials = plan.dials.iter().filter(|dial| is_knob(&dial.how)).map(|dial| dial.name.clone());
        Self {
            world,
            dials: dials.collect(),
            host: InMemory::holding(&[(KNOB, "found")]),
            keeper: Watchman::default(),
            changes: OpenChanges::with_journal(HostChanges::Allowed, Journal::in_memory()),
            blocks: 0,
            meddler: None,
        }
    }

    /// `off` is the host as it was found.
    fn wanted<'s>(&self, setting: &'s Setting, dial: &str) -> &'s str {
        Some(setting.get(dial)).filter(|value| *value != "off").unwrap_or("")
    }

    fn stand(&mut self, setting: &Setting) -> Result<(), Trouble> {
        for dial in self.dials.clone() {
            let wanted = self.wanted(setting, &dial).to_owned();
            let spec = ChangeSpec { what: knob(), wanted, why: format!("dial {dial}") };
            let stood = self.changes.stand(&spec, &mut self.host, &self.keeper);
            stood.map_err(|error| Trouble::Knob(error.to_string()))?;
        }
        Ok(())
    }

    fn reads(&self) -> String {
        String::from_utf8(self.host.read(&knob()).unwrap()).unwrap()
    }
}

impl Meter for OnHost {
    type Arm = Arm;

    fn build(&mut self, setting: &Setting) -> Result<(), Trouble> {
        self.world.build(setting)
    }

    fn open(&mut self, what: Opening<'_, Arm>) -> Result<Arm, Trouble> {
        match what {
            Opening::Server(spec) => {
                self.stand(&spec.setting)?;
                let server = self.world.open(Opening::Server(spec))?;
                Ok(Arm { server, setting: spec.setting.clone() })
            }
            Opening::Floor { like, load } => {
                let server = self.world.open(Opening::Floor { like: &like.server, load })?;
                Ok(Arm { server, setting: like.setting.clone() })
            }
        }
    }

    fn turn(&mut self, arm: &mut Arm, setting: &Setting, dial: &str) -> Result<(), Trouble> {
        self.stand(setting)?;
        self.world.turn(&mut arm.server, setting, dial)?;
        arm.setting = setting.clone();
        Ok(())
    }

    fn prove(&mut self, arm: &mut Arm, proof: &Proof) -> Result<Reading, Trouble> {
        self.stand(&arm.setting)?;
        self.world.prove(&mut arm.server, proof)
    }

    fn block(&mut self, arm: &mut Arm, length: Length) -> Result<Measured, Trouble> {
        self.blocks += 1;
        if let Some((_, value)) = self.meddler.filter(|(at, _)| *at == self.blocks) {
            self.host.set(&knob(), value);
        }
        self.stand(&arm.setting)?;
        self.world.block(&mut arm.server, length)
    }

    fn close(&mut self, arm: Arm) {
        self.world.close(arm.server);
    }
}

impl Clock for OnHost {
    fn now_ns(&self) -> u64 {
        self.world.now_ns()
    }
}

impl Vitals for Arm {
    fn memory(&self) -> Memory {
        self.server.memory()
    }

    fn user_system_ticks(&self) -> Option<(u64, u64)> {
        self.server.user_system_ticks()
    }

    fn clock(&self) -> String {
        self.server.clock()
    }
}

impl Look for OnHost {
    fn profile(&mut self, arm: &mut Arm, for_ns: u64) -> Result<Profile, String> {
        self.world.profile(&mut arm.server, for_ns)
    }
}

impl Describe for OnHost {
    fn describe(&self, setting: &Setting) -> Described {
        self.world.describe(setting)
    }
}

/// Two values of one host setting, each a rung, and an ordinary rung between them.
fn plan() -> Plan {
    let mut plan = ladder(&["knob=ten", "gain=on", "knob=twenty"]);
    plan.dials[0].how = How::Knob { path: KNOB.into() };
    plan
}

fn world(seed: u64) -> World {
    World::new(Weather::Quiet, seed).with("knob=ten", Does::Cpu(-10.0)).with("knob=twenty", Does::Cpu(-20.0))
}

fn climbed(meter: &mut OnHost) -> Climb {
    let mut record = Climb::default();
    // However it ends: the host is what these tests look at.
    let _ = climb(&plan(), &options(1, 60), meter, &mut record, &mut |_| {});
    record
}

#[test]
fn a_host_setting_is_climbed_and_found_as_it_was() {
    let mut meter = OnHost::new(&plan(), world(1));
    let record = climbed(&mut meter);
    let verdicts: Vec<RungVerdict> = record.rungs.iter().map(|rung| rung.attempt.verdict).collect();
    assert_eq!(verdicts, [RungVerdict::Kept, RungVerdict::NoDifference, RungVerdict::Kept]);
    assert_eq!(meter.keeper.guarded()[0].2, [b"ten".to_vec(), b"twenty".to_vec()]);
    meter.changes.undo_all(&mut meter.host, &meter.keeper).unwrap();
    assert_eq!(meter.reads(), "found");
    assert!(meter.keeper.guarded().is_empty());
}

/// The journal, the keeper and the setting are in step at every call: killed there, the keeper puts it back.
#[test]
fn a_climb_that_is_killed_at_any_call_leaves_the_host_as_it_was() {
    let mut meter = OnHost::new(&plan(), world(2));
    climbed(&mut meter);
    let calls = meter.world.calls();
    for at in (1..calls).step_by(calls as usize / 60) {
        let lost = Trip::From(at, Trouble::Lost("killed".into()));
        let mut meter = OnHost::new(&plan(), world(2).tripping(lost));
        climbed(&mut meter);
        assert!(meter.keeper.undo_all(&mut meter.host).is_empty(), "call {at}");
        assert_eq!(meter.reads(), "found", "call {at}");
    }
}

#[test]
fn what_somebody_else_sets_meanwhile_is_reported_and_left_alone() {
    let mut meter = OnHost::new(&plan(), world(3));
    climbed(&mut meter);
    let all = meter.blocks;
    for at in [all / 4, all / 2, 3 * all / 4] {
        let mut meter = OnHost::new(&plan(), world(3));
        meter.meddler = Some((at, "theirs"));
        let record = climbed(&mut meter);
        let is_foreign = |text: &str| text.contains("somebody else changed it");
        let mut why = record.rungs.iter().map(|rung| &rung.attempt.why);
        let mut missing = record.not_measured.iter().map(|missing| &missing.why);
        let is_reported = why.any(|why| is_foreign(why)) || missing.any(|why| is_foreign(why));
        assert!(is_reported || meter.changes.undo_all(&mut meter.host, &meter.keeper).is_err(), "block {at}");
        assert_eq!(meter.reads(), "theirs", "block {at}");
    }
}

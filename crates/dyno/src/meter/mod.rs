//! The climb's meter over real processes: starts servers under the keeper, loads them, reads their clocks.
//!
//! `dyno climb` lends it to `dyno_climb::climb`. It knows both halves of the product: servers are foreign processes to it,
//! ours too, and the load comes from `dyno_load`. Everything that it starts ends with it, however it ends.

mod arm;
mod block;
mod causal;
mod clock;
mod describe;
mod launch;
mod profile;
mod prove;
mod seen;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_climb::dial::{How, Setting};
use dyno_climb::meter::{Clock, Describe, Described, Length, Look, Measured, Meter, Opening, Trouble};
use dyno_climb::plan::Plan;
use dyno_climb::proof::{Proof, Reading};
use dyno_host::change::HostError;
pub(crate) use dyno_host::changes::HostChanges;
use dyno_host::changes::OpenChanges;
use dyno_host::host::Kernel;
pub(crate) use dyno_host::tally::Tally;
use dyno_record::causal::Causal;
use dyno_record::change::{ChangeSpec, What};
use dyno_record::profile::Profile;
use dyno_sys::affinity::CpuSet;
use dyno_sys::clock::mono_ns;
use dyno_sys::keeper::Keeper;
use dyno_sys::signal::{Signal, SignalFd};

pub(crate) use arm::Arm;
pub(crate) use launch::chain;

/// How long a server may take to end before it is killed.
const STOP_GRACE_NS: u64 = 300_000_000;

/// Where servers and load run, and what the climb may do.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    /// CPUs of the servers.
    pub(crate) server_cpus: CpuSet,
    /// CPUs of the load.
    pub(crate) load_cpus: Vec<usize>,
    /// A folder of this climb's own.
    pub(crate) scratch: PathBuf,
    /// The folder of the plan: `{plan}` in its texts.
    pub(crate) plan_dir: PathBuf,
    /// Whether host settings may be written.
    pub(crate) host_changes: HostChanges,
    /// The user that servers run as, when the climb runs under sudo.
    pub(crate) user: Option<(u32, u32)>,
}

/// The user's wish to stop: looked at between blocks, so that no thread is needed for it.
#[derive(Debug)]
pub(crate) struct Interrupt {
    signals: SignalFd,
    seen: Cell<bool>,
}

impl Interrupt {
    /// Takes SIGINT, SIGTERM and SIGHUP of this process from now on.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let signals = SignalFd::new(&[Signal::Int, Signal::Term, Signal::Hup])?;
        Ok(Self { signals, seen: Cell::new(false) })
    }

    /// Whether one of them has come.
    pub(crate) fn seen(&self) -> bool {
        if self.signals.next().is_some() {
            self.seen.set(true);
        }
        self.seen.get()
    }
}

/// Real servers under real load.
pub(crate) struct World<'w> {
    plan: &'w Plan,
    ground: Ground,
    keeper: Keeper,
    interrupt: Interrupt,
    changes: OpenChanges<Keeper>,
    tally: Tally,
    exits: Exits,
    started: u64,
}

impl<'w> World<'w> {
    /// A world for this plan. The keeper was started while the process had one thread.
    pub(crate) fn new(plan: &'w Plan, ground: Ground, keeper: Keeper, interrupt: Interrupt) -> Self {
        let changes = OpenChanges::new(ground.host_changes, ground.scratch.join("journal.jsonl"));
        Self {
            plan,
            ground,
            keeper,
            interrupt,
            changes,
            tally: Tally::new(),
            exits: Exits::default(),
            started: 0,
        }
    }

    /// Sums over everything measured: steal, foreign CPU, the generator.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Puts host settings back and ends everything that is left.
    pub(crate) fn finish(mut self) -> Result<(), Trouble> {
        let restored = self.changes.undo_all(&mut Kernel, &self.keeper).map_err(|error| knob_trouble(&error));
        let closed = self.keeper.close();
        restored?;
        match closed {
            Ok(dyno_sys::keeper::Closing::Clean) => Ok(()),
            Ok(dyno_sys::keeper::Closing::NotClean) => {
                Err(Trouble::Lost("a process of this climb would not end".into()))
            }
            Err(error) => Err(Trouble::Lost(error.to_string())),
        }
    }

    fn check_interrupt(&self) -> Result<(), Trouble> {
        if self.interrupt.seen() { Err(Trouble::Interrupted) } else { Ok(()) }
    }

    /// Makes every knob stand where the setting wants it.
    fn stand(&mut self, setting: &Setting) -> Result<(), Trouble> {
        for dial in &self.plan.dials {
            if let How::Knob { path } = &dial.how {
                let (what, why) = (What::File(path.clone()), format!("dial {}", dial.name));
                let spec = ChangeSpec { what, wanted: self.plan.value(setting, dial).text.clone(), why };
                let stood = self.changes.stand(&spec, &mut Kernel, &self.keeper);
                stood.map_err(|error| knob_trouble(&error))?;
            }
        }
        Ok(())
    }

    /// How the process ended, if it has.
    fn exit_of(&mut self, pid: dyno_sys::Pid) -> Option<String> {
        self.exits.add(&self.keeper);
        self.exits.0.get(&pid).cloned()
    }
}

fn knob_trouble(error: &HostError) -> Trouble {
    Trouble::Knob(chain(error))
}

/// How processes of this climb ended, by their numbers.
#[derive(Debug, Default)]
struct Exits(BTreeMap<dyno_sys::Pid, String>);

impl Exits {
    fn add(&mut self, keeper: &Keeper) {
        self.0.extend(keeper.exits().into_iter().map(|(pid, exit)| (pid, exit.to_string())));
    }

    /// A process of this number is about to start: whoever had it before is forgotten, heard of or not. The kernel gives
    /// numbers again.
    fn begin(&mut self, keeper: &Keeper, pid: dyno_sys::Pid) {
        self.add(keeper);
        self.0.remove(&pid);
    }
}

impl Meter for World<'_> {
    type Arm = Arm;

    fn open(&mut self, what: Opening<'_, Arm>) -> Result<Arm, Trouble> {
        self.check_interrupt()?;
        match what {
            Opening::Server(spec) => {
                self.stand(&spec.setting)?;
                self.open_server(spec)
            }
            Opening::Floor { like, load } => self.open_floor_of(like, load),
        }
    }

    fn turn(&mut self, arm: &mut Arm, setting: &Setting, dial: &str) -> Result<(), Trouble> {
        self.check_interrupt()?;
        arm.spec.setting = setting.clone();
        self.stand(setting)?;
        arm.turn_live(self.plan, setting, dial)
    }

    fn prove(&mut self, arm: &mut Arm, proof: &Proof) -> Result<Reading, Trouble> {
        self.check_interrupt()?;
        self.stand(&arm.spec.setting)?;
        self.prove_on(arm, proof)
    }

    fn block(&mut self, arm: &mut Arm, length: Length) -> Result<Measured, Trouble> {
        self.check_interrupt()?;
        self.stand(&arm.spec.setting)?;
        self.block_on(arm, length)
    }

    fn close(&mut self, arm: Arm) {
        self.tally.close(arm.clock.read_ns().unwrap_or(arm.seen_ns).saturating_sub(arm.seen_ns));
        self.stop(arm);
    }
}

impl Clock for World<'_> {
    fn now_ns(&self) -> u64 {
        mono_ns()
    }
}

impl Look for World<'_> {
    fn profile(&mut self, arm: &mut Arm, for_ns: u64) -> Result<Profile, String> {
        let host = self.stand(&arm.spec.setting);
        host.map_err(|trouble| trouble.to_string())?;
        self.profile_of(arm, for_ns)
    }

    fn causal(&mut self, arm: &mut Arm, for_ns: u64, seed: u64) -> Result<Causal, String> {
        self.causal_of(arm, for_ns, seed)
    }
}

impl Describe for World<'_> {
    fn describe(&self, setting: &Setting) -> Described {
        describe::described(self.plan, setting)
    }
}

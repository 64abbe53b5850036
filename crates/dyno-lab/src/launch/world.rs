//! Real servers under real load: what is held while they run, and how it ends.
//!
//! A climb makes one and lends it out as its meter. Servers are foreign processes to it, ours too; everything that it starts
//! ends with it, however it ends.

use dyno_climb::dial::{How, Setting};
use dyno_climb::meter::Trouble;
use dyno_climb::plan::Plan;
use dyno_host::change::HostError;
use dyno_host::changes::OpenChanges;
use dyno_host::host::Kernel;
use dyno_host::tally::Tally;
use dyno_record::change::{ChangeSpec, What};
use dyno_sys::Pid;
use dyno_sys::keeper::{Closing, Keeper};

use super::exits::Exits;
use super::ground::Ground;
use super::interrupt::Interrupt;
use crate::failure::chain;

/// How long a server may take to end before it is killed.
pub(crate) const STOP_GRACE_NS: u64 = 300_000_000;

/// Real servers under real load.
pub struct World<'w> {
    pub(crate) plan: &'w Plan,
    pub(crate) ground: Ground,
    pub(crate) keeper: Keeper,
    pub(crate) interrupt: Interrupt,
    pub(crate) changes: OpenChanges<Keeper>,
    pub(crate) tally: Tally,
    pub(crate) exits: Exits,
    pub(crate) started: u64,
}

impl<'w> World<'w> {
    /// A world for this plan. The keeper was started while the process had one thread.
    #[must_use]
    pub fn new(plan: &'w Plan, ground: Ground, keeper: Keeper, interrupt: Interrupt) -> Self {
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
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Puts host settings back and ends everything that is left.
    ///
    /// # Errors
    /// When a setting is not back, or a process would not end.
    pub fn finish(mut self) -> Result<(), Trouble> {
        let restored = self.changes.undo_all(&mut Kernel, &self.keeper).map_err(|error| knob_trouble(&error));
        let closed = self.keeper.close();
        restored?;
        match closed {
            Ok(Closing::Clean) => Ok(()),
            Ok(Closing::NotClean) => Err(Trouble::Lost("a process of this climb would not end".into())),
            Err(error) => Err(Trouble::Lost(error.to_string())),
        }
    }

    pub(crate) fn check_interrupt(&self) -> Result<(), Trouble> {
        if self.interrupt.seen() { Err(Trouble::Interrupted) } else { Ok(()) }
    }

    /// Makes every knob stand where the setting wants it.
    pub(crate) fn stand(&mut self, setting: &Setting) -> Result<(), Trouble> {
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
    pub(crate) fn exit_of(&mut self, pid: Pid) -> Option<String> {
        self.exits.of(&self.keeper, pid)
    }
}

fn knob_trouble(error: &HostError) -> Trouble {
    Trouble::Knob(chain(error))
}

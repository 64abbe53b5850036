//! Real servers under real load: what is held while they run, and how it ends.
//!
//! A climb makes one and lends it out as its meter. Servers are foreign processes to it, ours too; everything that it starts
//! ends with it, however it ends.

use dyno_climb::dial::{How, Setting};
use dyno_climb::load::LoadSpec;
use dyno_climb::meter::Trouble;
use dyno_climb::plan::Plan;
use dyno_host::change::HostError;
use dyno_host::changes::{HostChanges, OpenChanges};
use dyno_host::host::Kernel;
use dyno_host::journal::Journal;
use dyno_host::lab::{self, Lab};
use dyno_host::tally::Tally;
use dyno_load::Expect;
use dyno_record::change::{ChangeSpec, What};
use dyno_sys::Pid;
use dyno_sys::keeper::{Closing, Keeper};
use dyno_sys::namespace::OwnNetwork;

use std::net::Ipv4Addr;
use std::rc::Rc;

use super::builds::Builds;
use super::exits::{Exits, FINE, processes};
use super::ground::Ground;
use super::interrupt::Interrupt;
use crate::failure::chain;

/// Why a part of a laboratory cannot stand.
const NO_LAB: &str = "this is a part of the laboratory's network, which is there with --netns only";

/// How long a server may take to end before it is killed.
pub(crate) const STOP_GRACE_NS: u64 = 300_000_000;

/// Real servers under real load.
pub struct World<'w> {
    pub(crate) plan: &'w Plan,
    pub(crate) ground: Ground,
    pub(crate) keeper: Keeper,
    pub(crate) interrupt: Interrupt,
    pub(crate) changes: OpenChanges<Keeper>,
    /// Settings of the laboratory's namespace: they end with it, and the next run's recovery would look for them on the host.
    lab_changes: OpenChanges<Keeper>,
    pub(crate) lab: Option<Lab>,
    pub(crate) tally: Tally,
    pub(crate) exits: Exits,
    pub(crate) started: u64,
    pub(crate) builds: Builds,
    /// What a right answer to each load is that a server was opened for.
    pub(crate) right: Vec<(LoadSpec, Expect)>,
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
            lab_changes: OpenChanges::with_journal(HostChanges::Allowed, Journal::in_memory()),
            lab: None,
            tally: Tally::new(),
            exits: Exits::default(),
            started: 0,
            builds: Builds::default(),
            right: Vec::new(),
        }
    }

    /// The same in a laboratory that this process entered before its keeper was started: servers are at one end of its cable,
    /// the load at the other.
    #[must_use]
    pub fn in_lab(mut self, lab: Lab) -> Self {
        self.lab = Some(lab);
        self
    }

    /// The laboratory, where there is one.
    pub fn lab_mut(&mut self) -> Option<&mut Lab> {
        self.lab.as_mut()
    }

    /// Where servers listen.
    pub(crate) fn address(&self) -> Ipv4Addr {
        if self.lab.is_some() { lab::SERVER } else { Ipv4Addr::LOCALHOST }
    }

    /// Where connections of the load are opened, if not here.
    pub(crate) fn client(&self) -> Option<Rc<OwnNetwork>> {
        self.lab.as_ref().map(Lab::client)
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
        let in_lab = self.lab_changes.undo_all(&mut Kernel, &self.keeper);
        let restored = self.changes.undo_all(&mut Kernel, &self.keeper).and(in_lab);
        let restored = restored.map_err(|error| knob_trouble(&error));
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
        let plan = self.plan;
        for dial in &plan.dials {
            let wanted = &plan.value(setting, dial).text;
            match &dial.how {
                How::Knob { path } => {
                    let (what, why) = (What::File(path.clone()), format!("dial {}", dial.name));
                    self.change(&ChangeSpec { what, wanted: wanted.clone(), why })?;
                }
                How::Lab { part } => {
                    let lab = self.lab.as_mut().ok_or_else(|| Trouble::Knob(NO_LAB.to_owned()))?;
                    lab.stand(*part, wanted).map_err(|error| Trouble::Knob(chain(&error)))?;
                }
                How::Arg | How::Env { .. } | How::Template | How::Live | How::Build | How::Told => {}
            }
        }
        Ok(())
    }

    /// A setting of the network is the laboratory's where there is one, and the host's otherwise.
    fn change(&mut self, spec: &ChangeSpec) -> Result<(), Trouble> {
        let in_lab = self.lab.is_some() && is_of_network(&spec.what);
        let changes = if in_lab { &mut self.lab_changes } else { &mut self.changes };
        let stood = changes.stand(spec, &mut Kernel, &self.keeper);
        stood.map_err(|error| knob_trouble(&error))
    }

    /// How a server ended, if it has. One that goes into the background ends what was launched, and lives.
    pub(crate) fn death_of(&mut self, pid: Pid, warden: Pid) -> Option<String> {
        let status = self.exit_of(pid)?;
        let lives = status == FINE && !processes(warden).is_empty();
        (!lives).then_some(status)
    }

    /// How the process ended, if it has.
    pub(crate) fn exit_of(&mut self, pid: Pid) -> Option<String> {
        self.exits.of(&self.keeper, pid)
    }
}

/// Whether the kernel keeps it per namespace, or for a device in one. A file that it has for all namespaces together is not
/// there in any but the first, and so cannot be written from the laboratory by mistake.
fn is_of_network(what: &What) -> bool {
    let roots = ["/proc/sys/net/", "/sys/class/net/"];
    matches!(what, What::File(path) if roots.iter().any(|root| path.starts_with(root)))
}

fn knob_trouble(error: &HostError) -> Trouble {
    Trouble::Knob(chain(error))
}

//! How launched processes ended, as the keeper reports it, and which there are.

use std::collections::BTreeMap;

use dyno_sys::keeper::Keeper;
use dyno_sys::{Pid, proc};

/// How a command ended that did what it was to do.
pub(crate) const FINE: &str = "exit status 0";

/// Everything below a warden, without the warden.
pub(crate) fn processes(warden: Pid) -> Vec<Pid> {
    proc::tree(warden).into_iter().filter(|pid| *pid != warden).collect()
}

/// How processes under one keeper ended, by their numbers. The keeper reports each end once, so whoever starts several
/// processes keeps one of these for all.
#[derive(Debug, Default)]
pub struct Exits {
    ended: BTreeMap<Pid, String>,
}

impl Exits {
    /// A process of this number is about to start: whoever had it before is forgotten, reported or not. The kernel gives
    /// numbers again.
    pub(crate) fn begin(&mut self, keeper: &Keeper, pid: Pid) {
        self.read(keeper);
        self.ended.remove(&pid);
    }

    /// How the process ended, if it has.
    pub(crate) fn of(&mut self, keeper: &Keeper, pid: Pid) -> Option<String> {
        self.read(keeper);
        self.ended.get(&pid).cloned()
    }

    fn read(&mut self, keeper: &Keeper) {
        self.ended.extend(keeper.exits().into_iter().map(|(pid, exit)| (pid, exit.to_string())));
    }
}

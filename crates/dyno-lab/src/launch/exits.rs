//! How launched processes ended, as the keeper tells it.

use std::collections::BTreeMap;

use dyno_sys::Pid;
use dyno_sys::keeper::Keeper;

/// How processes of this climb ended, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Exits(pub(crate) BTreeMap<Pid, String>);

impl Exits {
    pub(crate) fn add(&mut self, keeper: &Keeper) {
        self.0.extend(keeper.exits().into_iter().map(|(pid, exit)| (pid, exit.to_string())));
    }

    /// A process of this number is about to start: whoever had it before is forgotten, heard of or not. The kernel gives
    /// numbers again.
    pub(crate) fn begin(&mut self, keeper: &Keeper, pid: Pid) {
        self.add(keeper);
        self.0.remove(&pid);
    }
}

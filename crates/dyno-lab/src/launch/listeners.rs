//! Who listens where a server of ours does: a foreign process there would be measured with it.

use dyno_sys::Pid;
use dyno_sys::socket::Addr;

/// What stands in the way, where one that listens on the address is none of these.
pub(crate) fn foreign_listener(listening: &[Pid], pids: &[Pid], address: &Addr) -> Option<String> {
    let foreign = listening.iter().find(|pid| !pids.contains(pid))?;
    Some(format!("process {foreign}, not ours, listens on {address} too"))
}

//! Who listens where a server of ours does: a stranger there would be measured with it.

use dyno_sys::Pid;
use dyno_sys::socket::Addr;

/// What stands in the way, where one that listens on the address is none of these.
pub(crate) fn stranger(listening: &[Pid], pids: &[Pid], address: &Addr) -> Option<String> {
    let stranger = listening.iter().find(|pid| !pids.contains(pid))?;
    Some(format!("process {stranger}, not ours, listens on {address} too"))
}

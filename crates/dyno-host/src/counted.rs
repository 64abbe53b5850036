//! Counters of the kernel that move only where the work is done: what is set and not in force moves none of them.
//!
//! The laboratory's counts and the proofs of effect of tune read them, in this thread's network namespace. They count since
//! the boot, or since their device was made: callers take differences.

use std::io;

use dyno_sys::netlink::route;
use dyno_sys::proc;

/// Qdiscs of a host at most, as where they are set.
const QDISCS_MAX: usize = 100_000;
/// Bytes of a thread's name without the last, which is zero (`TASK_COMM_LEN`).
const NAME_BYTES_MAX: usize = 15;

/// Packets through the root of a device where it holds packets; `noqueue` holds none.
pub(crate) fn queued(device: u32) -> io::Result<u64> {
    let (all, _) = route::qdiscs(QDISCS_MAX)?;
    let holding = all.iter().filter(|one| one.device == device && one.is_root && one.kind != "noqueue");
    Ok(holding.map(|one| u64::from(one.packets)).sum())
}

/// CPU time of the kernel's threads that poll a device, µs; nothing where there are none. Their names are cut.
pub(crate) fn threads_us(device: &str) -> Option<u64> {
    let start: String = format!("napi/{device}-").chars().take(NAME_BYTES_MAX).collect();
    let is_ours = |pid: &i32| proc::name(*pid).is_ok_and(|name| name.starts_with(&start));
    let ours: Vec<i32> = proc::all_ticks().into_keys().filter(is_ours).collect();
    let spent = ours.iter().filter_map(|pid| proc::run_ns(*pid).ok()).sum::<u64>() / 1_000;
    (!ours.is_empty()).then_some(spent)
}

/// Packets that one CPU handed to another, on the whole machine.
pub(crate) fn handed_over() -> u64 {
    proc::net_cpus().iter().map(|cpu| cpu.handed_over).sum()
}

/// Packets that were received by who polled for them.
pub(crate) fn busy_polled() -> io::Result<u64> {
    let text = proc::text("/proc/thread-self/net/netstat")?;
    named(&text, "BusyPollRxPackets").ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The counter of this name: names stand in one line, numbers in the next, both behind `TcpExt:`.
fn named(netstat: &str, name: &str) -> Option<u64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let at = lines.next()?.split_whitespace().position(|one| one == name)?;
    lines.next()?.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_below_a_name_is_its_count() {
        let text = "TcpExt: A BusyPollRxPackets C\nTcpExt: 1 22 3\nIpExt: BusyPollRxPackets\nIpExt: 9";
        assert_eq!(named(text, "BusyPollRxPackets"), Some(22));
        assert_eq!(named("TcpExt: A\nTcpExt: 1", "BusyPollRxPackets"), None);
        assert!(busy_polled().is_ok(), "this kernel has it");
    }
}

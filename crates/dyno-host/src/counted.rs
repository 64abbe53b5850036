//! Counters of the kernel that move only where the work is done: what is set and not in force moves none of them.
//!
//! The laboratory's counts, the proofs of a climb and those of tune read them, in this thread's network namespace. They count since
//! the boot, or since their device was made: callers take differences.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

use dyno_sys::netlink::route;
use dyno_sys::socket::{self, SockOpt};
use dyno_sys::{child, proc};

/// Qdiscs of a host at most, as where they are set.
const QDISCS_MAX: usize = 100_000;
/// Enough to see by which way packets come.
const CONNECTIONS_MAX: usize = 64;
/// The state of a connection that stands (net/tcp_states.h).
const ESTABLISHED: u8 = 1;
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

/// The NAPI instance by which the last packet of a process's socket came; 0 is none: it passed them by.
fn napi_id(pidfd: impl AsFd, fd: i32) -> io::Result<u32> {
    let copy = child::pidfd_getfd(pidfd, fd)?;
    socket::int_option(copy, SockOpt::IncomingNapiId).map(i32::cast_unsigned)
}

/// Connections of this namespace with somebody else, by their NAPI instance; some of them where there are many.
pub(crate) fn connections_by_napi() -> BTreeMap<u32, usize> {
    let tables = ["tcp", "tcp6"].map(|name| format!("/proc/thread-self/net/{name}"));
    let lines =
        tables.iter().filter_map(|path| proc::text(path).ok()).flat_map(|text| proc::parse_inet(&text));
    let goes_out = |line: &proc::InetLine| {
        line.state == ESTABLISHED
            && line.inode != 0
            && line.remote.ip() != line.local.ip()
            && !line.remote.ip().is_loopback()
    };
    let inodes = lines.filter(goes_out).map(|line| line.inode).take(CONNECTIONS_MAX).collect();
    let mut all = BTreeMap::new();
    for (pid, fd) in proc::socket_holders(&inodes).of.into_values().filter_map(|held| held.first().copied()) {
        if let Ok(id) = child::pidfd_open(pid).and_then(|pidfd| napi_id(pidfd, fd)) {
            *all.entry(id).or_default() += 1;
        }
    }
    all
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

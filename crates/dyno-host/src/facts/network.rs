//! The network between devices and sockets: taps, listeners, counters, backlogs.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::fact::Fact;
use dyno_record::facts::{Listener, Network, Softnet, Tap};
use dyno_sys::netlink::sock_diag;
use dyno_sys::netlink::socket::Read;
use dyno_sys::proc::{self, Holders};

use super::devices;
use super::limits::SOCKETS_MAX;
use super::read::{fact, parsed, unread};

/// Counters that some check reads; the kernel has 150 more.
const COUNTERS: [&str; 15] = [
    "PassiveOpens",
    "ListenOverflows",
    "ListenDrops",
    "TCPBacklogDrop",
    "TCPReqQFullDrop",
    "TCPReqQFullDoCookies",
    "TCPTimeWaitOverflow",
    "TCPMemoryPressures",
    "TCPAbortOnMemory",
    "PruneCalled",
    "TCPRcvQDrop",
    "BusyPollRxPackets",
    "TCPLossProbes",
    "TCPRetransFail",
    "PFMemallocDrop",
];

/// All of it.
pub(super) fn network(parts: &[String], cut: &mut Vec<String>) -> Network {
    let devices = devices::devices(cut);
    let (taps, listeners) = sockets(parts, devices.value().map(Vec::as_slice).unwrap_or_default(), cut);
    Network {
        devices,
        taps,
        listeners,
        counters: counters(),
        // Entered at the end, from two looks.
        lately: Fact::default(),
        softnet: softnet(),
        sockets: parsed("/proc/thread-self/net/sockstat", |text| Some(parse_sockstat(text))),
    }
}

/// Taps and listeners with their owners, from one walk over all descriptors.
fn sockets(
    parts: &[String],
    devices: &[dyno_record::facts::Device],
    cut: &mut Vec<String>,
) -> (Fact<Vec<Tap>>, Fact<Vec<Listener>>) {
    let has = |part: &str| parts.iter().any(|one| one == part);
    let taps = if has("packet_diag") {
        fact("taps", sock_diag::taps(SOCKETS_MAX)).map(|(all, read)| told(all, read, "taps", cut))
    } else {
        plain_taps()
    };
    let listeners = if has("tcp_diag") {
        let asked = fact("TCP listeners", sock_diag::listeners(SOCKETS_MAX));
        asked.map(|(all, read)| told(all, read, "listeners", cut))
    } else {
        unread("TCP listeners", None, "the kernel's part tcp_diag is not loaded", "sudo modprobe tcp_diag")
    };
    let of_taps = taps.value().into_iter().flatten().map(|tap| u64::from(tap.inode));
    let of_listeners = listeners.value().into_iter().flatten().map(|one| u64::from(one.inode));
    let inodes: BTreeSet<u64> = of_taps.chain(of_listeners).collect();
    let holders = proc::socket_holders(&inodes);
    let names: BTreeMap<u32, &str> =
        devices.iter().map(|device| (device.index, device.name.as_str())).collect();
    (
        taps.map(|all| all.iter().map(|one| tap(one, &holders, &names)).collect()),
        listeners.map(|all| all.iter().map(|one| listener(one, &holders)).collect()),
    )
}

fn told<T>(all: Vec<T>, read: Read, what: &str, cut: &mut Vec<String>) -> Vec<T> {
    if read == Read::Cut {
        cut.push(format!("{what} after the first {SOCKETS_MAX}"));
    }
    all
}

/// The table in /proc has no rings and no filters.
fn plain_taps() -> Fact<Vec<sock_diag::Tap>> {
    parsed("/proc/thread-self/net/packet", |text| {
        let tap = |line: proc::PacketLine| sock_diag::Tap {
            protocol: line.protocol as u16,
            device: line.device,
            inode: line.inode as u32,
            ..sock_diag::Tap::default()
        };
        Some(proc::parse_packet(text).into_iter().take(SOCKETS_MAX).map(tap).collect())
    })
}

fn tap(tap: &sock_diag::Tap, holders: &Holders, names: &BTreeMap<u32, &str>) -> Tap {
    let holder = holders.of.get(&u64::from(tap.inode)).and_then(|all| all.first());
    let named =
        |index: u32| names.get(&index).map_or_else(|| format!("device {index}"), |name| (*name).to_owned());
    let device = if tap.device == 0 { String::new() } else { named(tap.device) };
    Tap {
        protocol: u32::from(tap.protocol),
        device,
        inode: u64::from(tap.inode),
        pid: holder.map(|(pid, _)| *pid),
        owner: holder.and_then(|(pid, _)| proc::name(*pid).ok()).unwrap_or_default(),
        ring_bytes: tap.ring_bytes,
        filter: tap.filter,
        promiscuous: tap.promiscuous.iter().copied().map(named).collect(),
    }
}

fn listener(one: &sock_diag::Listener, holders: &Holders) -> Listener {
    let held = holders.of.get(&u64::from(one.inode)).map(Vec::as_slice).unwrap_or_default();
    let pids: BTreeSet<i32> = held.iter().map(|(pid, _)| *pid).collect();
    Listener {
        local: one.local.to_string(),
        waiting: one.waiting,
        backlog: one.backlog,
        inode: u64::from(one.inode),
        owner: pids.first().and_then(|pid| proc::name(*pid).ok()).unwrap_or_default(),
        pids: pids.into_iter().collect(),
    }
}

/// Those of TCP, and those of the table of neighbours where there is one.
pub(super) fn counters() -> Fact<BTreeMap<String, u64>> {
    let of_tcp = parsed("/proc/thread-self/net/netstat", |text| Some(parse_counters(text)));
    let opened = parsed("/proc/thread-self/net/snmp", |text| Some(parse_counters(text)));
    let neighbours = parsed("/proc/thread-self/net/stat/arp_cache", |text| Some(parse_neighbours(text)));
    of_tcp.map(|mut all| {
        for more in [opened, neighbours] {
            all.extend(more.value().cloned().unwrap_or_default());
        }
        all
    })
}

/// A line of names, then one for each CPU in hexadecimal. Entries are the same in each line, the others are of the CPU.
fn parse_neighbours(text: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let rows: Vec<Vec<u64>> = lines
        .map(|line| line.split_whitespace().map(|word| u64::from_str_radix(word, 16).unwrap_or(0)).collect())
        .collect();
    let column = |name: &str| {
        let at = names.iter().position(|one| *one == name)?;
        Some(rows.iter().filter_map(move |row| row.get(at).copied()))
    };
    let entries = column("entries").and_then(|all| all.max());
    let fulls = column("table_fulls").map(|all| all.sum());
    let named = [("NeighbourEntries", entries), ("NeighbourTableFull", fulls)];
    named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Pairs of lines, names and then values, both beginning with their group.
fn parse_counters(text: &str) -> BTreeMap<String, u64> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs =
        lines.chunks_exact(2).flat_map(|pair| pair[0].split_whitespace().zip(pair[1].split_whitespace()));
    let wanted = pairs.filter(|(name, _)| COUNTERS.contains(name));
    wanted.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// Lines such as `TCP: inuse 5 orphan 0 tw 2 alloc 7 mem 3`.
fn parse_sockstat(text: &str) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (group, values) in text.lines().filter_map(|line| line.split_once(':')) {
        let words: Vec<&str> = values.split_whitespace().collect();
        for pair in words.chunks_exact(2) {
            if let Ok(value) = pair[1].parse() {
                all.insert(format!("{group} {}", pair[0]), value);
            }
        }
    }
    all
}

/// The backlogs before the protocols.
pub(crate) fn softnet() -> Fact<Softnet> {
    parsed("/proc/thread-self/net/softnet_stat", |text| Some(parse_softnet(text)))
}

/// Columns in hexadecimal: packets, dropped, squeezed, and in the tenth those that another CPU handed over.
fn parse_softnet(text: &str) -> Softnet {
    let mut sum = Softnet::default();
    for line in text.lines() {
        let columns: Vec<u64> =
            line.split_whitespace().map(|word| u64::from_str_radix(word, 16).unwrap_or(0)).collect();
        let column = |at: usize| columns.get(at).copied().unwrap_or(0);
        sum.packets += column(0);
        sum.dropped += column(1);
        sum.squeezed += column(2);
        sum.handed_over += column(9);
    }
    sum
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn counters_are_read_by_name_from_any_group() {
        let text = "TcpExt: A ListenOverflows\nTcpExt: 1 22\nIpExt: B PFMemallocDrop\nIpExt: 3 4\n";
        let counters = parse_counters(text);
        assert_eq!((counters["ListenOverflows"], counters["PFMemallocDrop"], counters.len()), (22, 4, 2));
    }

    #[test]
    fn neighbours_are_counted_once_and_losses_of_all_cpus_together() {
        let all = parse_neighbours("entries  allocs table_fulls\n00000010 00000001 00000002\n00000010 0 3\n");
        assert_eq!((all["NeighbourEntries"], all["NeighbourTableFull"]), (16, 5));
        assert!(parse_neighbours("").is_empty());
    }

    #[test]
    fn sockets_in_use_and_backlogs_are_summed() {
        let sockets = parse_sockstat("sockets: used 99\nTCP: inuse 5 orphan 1 tw 2 alloc 7 mem 3\n");
        assert_eq!((sockets["TCP tw"], sockets["sockets used"]), (2, 99));
        let row = "00000010 00000001 00000002 0 0 0 0 0 0 0000000a 0 0 00000000\n";
        let softnet = parse_softnet(&row.repeat(2));
        assert_eq!((softnet.packets, softnet.dropped, softnet.squeezed, softnet.handed_over), (32, 2, 4, 20));
    }

    #[test]
    fn a_listener_of_ours_is_known_by_its_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap().to_string();
        let parts = ["tcp_diag".to_owned(), "packet_diag".to_owned()];
        let holders = || {
            let (_, listeners) = sockets(&parts, &[], &mut Vec::new());
            let all = listeners.value().unwrap();
            all.iter().find(|one| one.local == local).unwrap().pids.clone()
        };
        // A child of another test holds a copy from its fork until its exec.
        let begun = std::time::Instant::now();
        while holders() != [dyno_sys::child::this()] {
            assert!(begun.elapsed().as_secs() < 20, "{:?}", holders());
        }
    }

    #[test]
    fn what_asking_would_load_is_not_asked() {
        let (taps, listeners) = sockets(&[], &[], &mut Vec::new());
        let Fact::Unread(why) = listeners else { panic!("it was asked") };
        assert!(why.needs.contains("modprobe tcp_diag"));
        assert!(taps.value().is_some(), "the table in /proc loads nothing");
    }
}

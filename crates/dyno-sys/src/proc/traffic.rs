//! What happens to packets beside sockets: taps, listeners' queues, devices, soft interrupts. And the quota of a cgroup.
//!
//! Tables are those of the network namespace of the process they are read through. Counters since boot: callers take
//! differences.

use super::net::owners;
use super::process::folder;
use crate::Pid;
use crate::tasks::numbers_in;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// One line of /proc/net/packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLine {
    /// The protocol it asked for; 3 is every packet.
    pub protocol: u32,
    /// The device's index; 0 is all.
    pub device: u32,
    /// What /proc/PID/fd names as `socket:[inode]`.
    pub inode: u64,
}

/// A socket that sees packets, and whose it is as far as descriptors may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketTap {
    /// The socket.
    pub line: PacketLine,
    /// Its owner and the owner's name.
    pub owner: Option<(Pid, String)>,
}

/// Counters of a network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetCount {
    /// Connections that found a listener's queue full.
    pub listen_overflows: u64,
    /// Connections dropped at a listener.
    pub listen_drops: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Packets received over `lo`.
    pub loopback_packets: u64,
    /// Packets received over other devices.
    pub device_packets: u64,
    /// Bytes received and sent over all devices.
    pub bytes: u64,
}

/// Receive work of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetCpu {
    /// Which CPU.
    pub cpu: usize,
    /// Receive soft interrupts.
    pub net_rx: u64,
    /// Packets that another CPU handed over (RPS).
    pub handed_over: u64,
}

/// The CPU quota of a cgroup since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuQuota {
    /// CPUs it may use, where a quota is set.
    pub cpus: Option<f64>,
    /// Periods.
    pub periods: u64,
    /// Periods in which it was held.
    pub throttled: u64,
    /// How long its threads were held.
    pub throttled_ns: u64,
}

/// The sockets that see packets in the namespace of `pid`.
pub fn packet_taps(pid: Pid) -> std::io::Result<Vec<PacketTap>> {
    let lines = parse_packet(&fs::read_to_string(format!("{}/net/packet", folder(pid)))?);
    let owner =
        |line: &PacketLine| owners(&BTreeSet::from([line.inode])).first().map(|pid| (*pid, name_of(*pid)));
    Ok(lines.into_iter().map(|line| PacketTap { owner: owner(&line), line }).collect())
}

fn name_of(pid: Pid) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// The lines of /proc/net/packet.
pub fn parse_packet(text: &str) -> Vec<PacketLine> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let protocol = u32::from_str_radix(fields.get(3)?, 16).ok()?;
        Some(PacketLine {
            protocol,
            device: fields.get(4)?.parse().ok()?,
            inode: fields.get(8)?.parse().ok()?,
        })
    };
    text.lines().skip(1).filter_map(line).collect()
}

/// The counters of the namespace of `pid`.
pub fn net_count(pid: Pid) -> NetCount {
    let folder = folder(pid);
    let read = |file: &str| fs::read_to_string(format!("{folder}/net/{file}")).unwrap_or_default();
    let (netstat, snmp) = (read("netstat"), read("snmp"));
    let mut count = parse_dev(&read("dev"));
    count.listen_overflows = named(&netstat, "TcpExt", "ListenOverflows");
    count.listen_drops = named(&netstat, "TcpExt", "ListenDrops");
    count.retransmits = named(&snmp, "Tcp", "RetransSegs");
    count
}

/// A value of /proc/net/netstat or snmp: a line of names, then a line of values, both beginning with the group.
fn named(text: &str, group: &str, name: &str) -> u64 {
    let mut rows = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (names, values) = (rows.next().unwrap_or_default(), rows.next().unwrap_or_default());
    let at = names.split_whitespace().position(|word| word == name);
    let value = at.and_then(|at| values.split_whitespace().nth(at));
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// Packets and bytes in /proc/net/dev.
pub fn parse_dev(text: &str) -> NetCount {
    let mut count = NetCount::default();
    for (name, values) in text.lines().filter_map(|line| line.split_once(':')) {
        let fields: Vec<u64> = values.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or(0);
        count.bytes += field(0) + field(8);
        let packets =
            if name.trim() == "lo" { &mut count.loopback_packets } else { &mut count.device_packets };
        *packets += field(1);
    }
    count
}

/// Receive work by CPU.
pub fn net_cpus() -> Vec<NetCpu> {
    let softirqs = fs::read_to_string("/proc/softirqs").unwrap_or_default();
    let softnet = fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    parse_net_cpus(&softirqs, &softnet)
}

/// The row `NET_RX` of /proc/softirqs joined with column 10 of /proc/net/softnet_stat.
pub fn parse_net_cpus(softirqs: &str, softnet: &str) -> Vec<NetCpu> {
    let handed = parse_softnet(softnet);
    let heads = softirqs.lines().next().unwrap_or_default().split_whitespace();
    let cpus = heads.filter_map(|head| head.strip_prefix("CPU")?.parse::<usize>().ok());
    let row = softirqs.lines().find_map(|line| line.trim_start().strip_prefix("NET_RX:"));
    let counts = row.unwrap_or_default().split_whitespace().map(|word| word.parse().unwrap_or(0));
    let cpu = |(cpu, net_rx)| NetCpu { cpu, net_rx, handed_over: handed.get(&cpu).copied().unwrap_or(0) };
    cpus.zip(counts).map(cpu).collect()
}

/// Packets handed over, by CPU: column 13 is the CPU's number where the kernel tells it (5.10), else the row's.
fn parse_softnet(text: &str) -> BTreeMap<usize, u64> {
    let row = |(row, line): (usize, &str)| {
        let fields: Vec<u64> =
            line.split_whitespace().map(|word| u64::from_str_radix(word, 16).unwrap_or(0)).collect();
        Some((fields.get(12).map_or(row, |cpu| *cpu as usize), *fields.get(9)?))
    };
    text.lines().enumerate().filter_map(row).collect()
}

/// A control group with the quota that it has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuotaGroup {
    /// The file that sets it: `cpu.max`, or `cpu.cfs_quota_us` of v1.
    pub file: String,
    /// Its quota, and how often it was held.
    pub quota: CpuQuota,
}

/// The quotas of the cgroup of `pid`, v2 or v1, and of those above it, its own first: each of them holds it. Groups in which
/// nothing counts them (no controller, or the root) are left out.
pub fn cpu_quotas(pid: Pid) -> Vec<QuotaGroup> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let of_line = |line: &str| -> Vec<QuotaGroup> {
        quota_folders(line).iter().filter_map(|folder| quota_in(folder)).collect()
    };
    groups.lines().map(of_line).find(|all| !all.is_empty()).unwrap_or_default()
}

/// Of groups one above the other: the CPUs of the least quota, and what the group counted that was held most.
pub fn binding_quota(groups: &[QuotaGroup]) -> Option<CpuQuota> {
    let held = most_held(groups)?.quota;
    let least = groups.iter().filter_map(|group| group.quota.cpus).min_by(f64::total_cmp);
    Some(CpuQuota { cpus: least, ..held })
}

/// The group that was held longest; where none was, that of the least quota, and the process's own where none has one.
pub fn most_held(groups: &[QuotaGroup]) -> Option<&QuotaGroup> {
    let cpus = |group: &QuotaGroup| group.quota.cpus.unwrap_or(f64::INFINITY);
    let (held, least) = (|group: &QuotaGroup| group.quota.throttled_ns, |group: &QuotaGroup| cpus(group));
    groups.iter().min_by(|a, b| held(b).cmp(&held(a)).then(least(a).total_cmp(&least(b))))
}

/// The folders of a line of /proc/PID/cgroup, where the usual mounts have them: the group's own, then those above it.
fn quota_folders(line: &str) -> Vec<String> {
    let parts: Vec<&str> = line.splitn(3, ':').collect();
    let [_, controllers, path] = parts[..] else { return Vec::new() };
    let root = match controllers {
        "" => "/sys/fs/cgroup",
        names if names.split(',').any(|name| name == "cpu") => "/sys/fs/cgroup/cpu",
        _ => return Vec::new(),
    };
    let folder = |group: &Path| format!("{root}{}", group.display()).trim_end_matches('/').to_owned();
    Path::new(path).ancestors().map(folder).collect()
}

fn quota_in(folder: &str) -> Option<QuotaGroup> {
    let read = |file: &str| fs::read_to_string(format!("{folder}/{file}")).unwrap_or_default();
    let mut quota = parse_cpu_stat_file(&read("cpu.stat"))?;
    quota.cpus = parse_cpu_max(&read("cpu.max")).or_else(|| {
        parse_cpu_max(&format!("{} {}", read("cpu.cfs_quota_us").trim(), read("cpu.cfs_period_us").trim()))
    });
    let files = ["cpu.max", "cpu.cfs_quota_us"].map(|file| format!("{folder}/{file}"));
    let file = files.into_iter().find(|file| Path::new(file).exists()).unwrap_or_default();
    Some(QuotaGroup { file, quota })
}

/// Periods and throttling in a cgroup's cpu.stat; `None` without them. v2 counts microseconds, v1 nanoseconds.
pub fn parse_cpu_stat_file(text: &str) -> Option<CpuQuota> {
    let number = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        value.trim().parse::<u64>().ok()
    };
    let throttled_ns = number("throttled_usec").map(|us| us * 1_000).or_else(|| number("throttled_time"));
    Some(CpuQuota {
        cpus: None,
        periods: number("nr_periods")?,
        throttled: number("nr_throttled")?,
        throttled_ns: throttled_ns.unwrap_or(0),
    })
}

/// `200000 100000` is two CPUs; `max` and `-1` are no quota.
pub fn parse_cpu_max(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

/// Bytes of memory that this process may use: the least of its control groups' limits and the machine's memory.
pub fn memory_limit_bytes() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let unified = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let own = unified.map(Path::new).into_iter().flat_map(Path::ancestors);
    let limits = own.filter_map(|group| {
        let group = group.strip_prefix("/").unwrap_or(group);
        let file = Path::new("/sys/fs/cgroup").join(group).join("memory.max");
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    });
    let first = std::fs::read_to_string("/sys/fs/cgroup/memory/memory.limit_in_bytes").ok();
    let first = first.and_then(|text| text.trim().parse().ok());
    limits.chain(first).chain([super::machine().memory_bytes]).filter(|&bytes| bytes > 0).min()
}

/// What a process used of the CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ticks {
    /// Its name.
    pub name: String,
    /// Clock ticks, in user mode and in the kernel.
    pub ticks: u64,
    /// A thread of the kernel: what it does it does for others, the target perhaps among them.
    pub is_kernel: bool,
    /// The CPU that it was last on: a thread of the kernel that belongs to one is on no other.
    pub cpu: usize,
    /// Its parent's number.
    pub parent: Pid,
    /// Clock ticks of its children that ended and were waited for, and of theirs.
    pub children_ticks: u64,
    /// It runs only while nobody else wants to, or next to never: by its policy (SCHED_IDLE) or its niceness.
    pub gives_way: bool,
}

/// Of sched(7).
const SCHED_IDLE: u32 = 5;
/// From here on a thread has a twentieth of what one of niceness 0 has beside it, or less.
const GIVES_WAY_NICE_MIN: i32 = 14;

/// Whether a process leaves a CPU to whoever else wants it. Where the kernel groups processes by session (autogroup), niceness and
/// policy are weighed within a session alone, and the session has a niceness of its own.
fn gives_way(nice: i32, policy: u32, autogroup: Option<&str>) -> bool {
    let session = autogroup.and_then(|text| text.rsplit_once("nice ")?.1.trim().parse::<i32>().ok());
    (policy == SCHED_IDLE || nice >= GIVES_WAY_NICE_MIN)
        && session.is_none_or(|nice| nice >= GIVES_WAY_NICE_MIN)
}

/// The session's group of a process, where the kernel makes such groups.
fn autogroup(pid: Pid) -> Option<String> {
    let is_on =
        fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|text| text.trim() == "1");
    is_on.then(|| fs::read_to_string(format!("/proc/{pid}/autogroup")).ok())?
}

/// The parent of the kernel's threads, where they are seen at all.
const KERNEL_PARENT: Pid = 2;

/// CPU ticks of every process of the machine, by number: who else used the CPUs.
pub fn all_ticks() -> BTreeMap<Pid, Ticks> {
    let has_kernel = fs::read(format!("/proc/{KERNEL_PARENT}/comm")).is_ok_and(|name| name == b"kthreadd\n");
    let of = |pid: Pid| {
        let raw = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&raw).into_owned();
        let stat = super::parse_stat(&text)?;
        let name = text.split_once('(')?.1.rsplit_once(')')?.0.to_owned();
        let is_kernel = has_kernel && (pid == KERNEL_PARENT || stat.parent == KERNEL_PARENT);
        let may = gives_way(stat.nice, stat.policy, None);
        let ticks = Ticks {
            name,
            ticks: stat.user_ticks + stat.system_ticks,
            is_kernel,
            cpu: stat.cpu,
            parent: stat.parent,
            children_ticks: stat.children_ticks.0 + stat.children_ticks.1,
            gives_way: may && gives_way(stat.nice, stat.policy, autogroup(pid).as_deref()),
        };
        Some((pid, ticks))
    };
    numbers_in("/proc").into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::child::this;

    #[test]
    fn taps_are_read_with_protocol_and_device() {
        let text = "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n\
                    0000000000000000 3      3    0003   2     1 0      0      31415\n";
        assert_eq!(parse_packet(text), [PacketLine { protocol: 3, device: 2, inode: 31_415 }]);
        assert!(parse_packet("sk\nnonsense\n").is_empty());
    }

    #[test]
    fn named_counters_are_found_in_their_group() {
        let text =
            "TcpExt: A ListenOverflows ListenDrops\nTcpExt: 1 22 333\nIpExt: ListenOverflows\nIpExt: 9\n";
        assert_eq!(
            (named(text, "TcpExt", "ListenOverflows"), named(text, "TcpExt", "ListenDrops")),
            (22, 333)
        );
        assert_eq!(named(text, "TcpExt", "Nothing"), 0);
    }

    #[test]
    fn loopback_is_told_from_devices() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 100 5 0 0 0 0 0 0 100 5 0 0 0 0 0 0\n  eth0: 7 1 0 0 0 0 0 0 8 2 0 0 0 0 0 0\n";
        let count = parse_dev(text);
        assert_eq!((count.loopback_packets, count.device_packets, count.bytes), (5, 1, 215));
    }

    #[test]
    fn receive_work_is_joined_by_cpu() {
        let softirqs = "          CPU0       CPU2\n NET_TX: 1 2\n NET_RX: 30 40\n";
        let softnet = "0 0 0 0 0 0 0 0 0 0000000a 0 0 00000000\n0 0 0 0 0 0 0 0 0 0000000b 0 0 00000002\n";
        let expected =
            [NetCpu { cpu: 0, net_rx: 30, handed_over: 10 }, NetCpu { cpu: 2, net_rx: 40, handed_over: 11 }];
        assert_eq!(parse_net_cpus(softirqs, softnet), expected);
    }

    #[test]
    fn both_versions_of_a_quota_are_read() {
        let two =
            parse_cpu_stat_file("usage_usec 5\nnr_periods 10\nnr_throttled 4\nthrottled_usec 7\n").unwrap();
        assert_eq!((two.periods, two.throttled, two.throttled_ns), (10, 4, 7_000));
        let one = parse_cpu_stat_file("nr_periods 1\nnr_throttled 0\nthrottled_time 9\n").unwrap();
        assert_eq!((one.periods, one.throttled_ns), (1, 9));
        assert_eq!(parse_cpu_stat_file("usage_usec 5\n"), None);
        assert_eq!(
            (parse_cpu_max("50000 100000"), parse_cpu_max("max 100000"), parse_cpu_max("-1 100000")),
            (Some(0.5), None, None)
        );
    }

    /// Planted fault: the process's own group alone is looked at; then the quota of the slice above it is missed.
    #[test]
    fn groups_above_hold_a_process_too() {
        assert_eq!(
            quota_folders("3:cpu,cpuacct:/a/b"),
            ["/sys/fs/cgroup/cpu/a/b", "/sys/fs/cgroup/cpu/a", "/sys/fs/cgroup/cpu"]
        );
        assert_eq!(quota_folders("0::/"), ["/sys/fs/cgroup"]);
        assert!(quota_folders("2:memory:/a").is_empty() && quota_folders("nonsense").is_empty());
        let group = |file: &str, cpus, throttled| QuotaGroup {
            file: file.into(),
            quota: CpuQuota { cpus, periods: 9, throttled, throttled_ns: throttled },
        };
        let all = [group("leaf", None, 0), group("slice", Some(0.5), 0), group("top", Some(4.0), 7)];
        let bound = binding_quota(&all).unwrap();
        assert_eq!((bound.cpus, bound.throttled), (Some(0.5), 7));
        assert_eq!(most_held(&all).unwrap().file, "top");
        assert_eq!(most_held(&all[..2]).unwrap().file, "slice");
        assert_eq!(most_held(&all[..1]).unwrap().file, "leaf");
        assert_eq!((most_held(&[]), binding_quota(&[])), (None, None));
    }

    /// Planted faults: the policy alone counts; so does the session's niceness; niceness does not.
    #[test]
    fn who_gives_way_does_so_within_its_session_and_with_it() {
        assert!(gives_way(0, SCHED_IDLE, None) && gives_way(19, 0, None) && !gives_way(10, 0, None));
        assert!(gives_way(0, SCHED_IDLE, Some("/autogroup-7 nice 19\n")));
        assert!(!gives_way(0, SCHED_IDLE, Some("/autogroup-7 nice 0\n")));
        assert!(!gives_way(0, 0, Some("/autogroup-7 nice 19\n")));
    }

    #[test]
    fn this_machine_tells_its_traffic_and_this_process_its_ticks() {
        assert!(!net_cpus().is_empty());
        let everybody = all_ticks();
        assert!(!everybody[&this()].is_kernel);
        let kernel = |ticks: &Ticks| ticks.is_kernel && !ticks.name.is_empty();
        let has_threads = fs::read("/proc/2/comm").is_ok_and(|name| name == b"kthreadd\n");
        assert_eq!(everybody.values().any(kernel), has_threads);
        let _ = (net_count(this()), cpu_quotas(this()), packet_taps(this()));
    }
}

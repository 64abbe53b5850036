//! What /proc counts of a process and its machine, read at two moments: the difference is a window of an observation.

use std::collections::BTreeMap;

use dyno_record::observation::{
    Host, Memory, NotLookedAt, OBSERVATION_SCHEMA, Observation, Packets, ProcessCost, Quota, SoftIrq, Tap,
    ThreadCost, Transfers,
};
use dyno_sys::affinity::CpuSet;
use dyno_sys::proc::{self, CpuQuota, CpuStat, Faults, IoCount, NetCount, NetCpu, QuotaGroup, TaskCost};
use dyno_sys::{Pid, child, clock, connections};

/// Shares out busy time that none of the known processes used: to others, and to interrupts. A kernel that times interrupts
/// apart (`CONFIG_IRQ_TIME_ACCOUNTING`) takes them out of everybody's time, any other counts them to whom they interrupt.
/// What others were seen to use stays theirs.
fn shared_out(rest_ns: u64, interrupts_ns: u64, others_ns: u64) -> (u64, u64) {
    let foreign_ns = rest_ns.saturating_sub(interrupts_ns).max(others_ns.min(rest_ns));
    (foreign_ns, rest_ns - foreign_ns)
}

/// Ticks of children that ended between two readings, by their parents: what these were told of them, without what had been seen of
/// them before. Of one that began meanwhile, all that it was told is new.
fn ended_ticks(
    before: &BTreeMap<Pid, proc::Ticks>,
    after: &BTreeMap<Pid, proc::Ticks>,
) -> BTreeMap<Pid, u64> {
    let mut gone = BTreeMap::<Pid, u64>::new();
    for (_, was) in before.iter().filter(|(pid, _)| !after.contains_key(*pid)) {
        *gone.entry(was.parent).or_default() += was.ticks + was.children_ticks;
    }
    let told = |(pid, now): (&Pid, &proc::Ticks)| {
        let was = before.get(pid).map_or(0, |was| was.children_ticks);
        let seen = gone.get(pid).copied().unwrap_or(0);
        (*pid, now.children_ticks.saturating_sub(was).saturating_sub(seen))
    };
    after.iter().map(told).collect()
}

/// A tick is 10 ms to programs on every Linux of today.
const TICK_NS: u64 = 10_000_000;

/// Foreign processes that are named.
const NEIGHBOURS_MAX: usize = 5;

/// Processes whose open files are listed.
const FILES_OF_MAX: usize = 16;

/// All counters at one moment.
pub(super) struct Counters {
    at_ns: u64,
    cpus: Vec<CpuStat>,
    own_ns: u64,
    processes: BTreeMap<Pid, Process>,
    everybody: BTreeMap<Pid, proc::Ticks>,
    net: NetCount,
    net_cpus: Vec<NetCpu>,
    /// Of its cgroup and those above it.
    quotas: Vec<QuotaGroup>,
    connections: connections::Connections,
    /// Who holds the connections' far ends: asked at the same edge, for they may be gone later.
    peers: Vec<Pid>,
}

/// Counters of one process of the target's tree.
#[derive(Debug, Clone, Default)]
struct Process {
    tasks: BTreeMap<Pid, TaskCost>,
    cpu_ns: u64,
    ticks: (u64, u64),
    /// Of children that ended and were waited for.
    children_ticks: (u64, u64),
    faults: Faults,
    io: Option<IoCount>,
}

impl Counters {
    /// Reads them. The clocks come last, next to each other.
    pub(super) fn read(pid: Pid) -> Counters {
        let everybody = proc::all_ticks();
        let (net, net_cpus, quotas) = (proc::net_count(pid), proc::net_cpus(), proc::cpu_quotas(pid));
        let tree = proc::tree(pid);
        let connections = connections::Connections::of(&tree);
        let processes = tree.into_iter().map(|pid| (pid, Process::read(pid))).collect();
        let own_ns = clock::process_cpu_ns(child::this()).unwrap_or(0);
        Counters {
            cpus: proc::cpu_stat(),
            at_ns: clock::mono_ns(),
            own_ns,
            processes,
            everybody,
            net,
            net_cpus,
            quotas,
            connections,
            peers: Vec::new(),
        }
    }

    /// The same with who holds the far ends of its connections: where they come and go and CPUs are scarce, finding that out
    /// takes seconds, which are no part of a window. So it is asked before the first reading, and after the last.
    pub(super) fn with_peers(self, peers: Vec<Pid>) -> Counters {
        Counters { peers, ..self }
    }

    /// Whether the target was there.
    pub(super) fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Who held the far ends of its connections.
    pub(super) fn peers(&self) -> &[Pid] {
        &self.peers
    }

    /// What happened from `self` to `after`, and how things stand now.
    pub(super) fn until(&self, after: &Counters, pid: Pid) -> Observation {
        let cpus = allowed_cpus(after);
        let process = self.process_cost(after);
        let mut seen = Observation {
            schema: OBSERVATION_SCHEMA.to_owned(),
            duration_s: (after.at_ns - self.at_ns) as f64 / 1e9,
            host: self.host(after, &cpus, process.cpu_ns),
            threads: self.threads(after),
            process,
            quota: quota(&self.quotas, &after.quotas),
            ..Observation::default()
        };
        seen.memory = memory(&after.processes, &mut seen.not_looked_at);
        seen.files = files(&self.busiest(after), &mut seen.not_looked_at);
        seen.packets = self.packets(after, pid, &mut seen.not_looked_at);
        if seen.quota.is_none() {
            not_looked(
                &mut seen.not_looked_at,
                "the cgroup's quota",
                "the kernel counts no periods for its group",
            );
        }
        seen
    }

    /// Those of its processes that ran most: some of them, for a machine may have thousands of descriptors in each.
    fn busiest(&self, after: &Counters) -> Vec<Pid> {
        let was = |pid: &Pid| self.processes.get(pid).map_or(0, |before| before.cpu_ns);
        let mut all: Vec<(Pid, u64)> =
            after.processes.iter().map(|(pid, now)| (*pid, now.cpu_ns.saturating_sub(was(pid)))).collect();
        all.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        all.into_iter().take(FILES_OF_MAX).map(|(pid, _)| pid).collect()
    }

    fn threads(&self, after: &Counters) -> Vec<ThreadCost> {
        let mut threads = Vec::new();
        for (pid, process) in &after.processes {
            let before = self.processes.get(pid);
            let was =
                |tid: &Pid| before.and_then(|before| before.tasks.get(tid)).cloned().unwrap_or_default();
            threads.extend(process.tasks.iter().map(|(tid, now)| thread(&was(tid), now)));
        }
        threads
    }

    fn process_cost(&self, after: &Counters) -> ProcessCost {
        let mut cost = ProcessCost::default();
        let (mut user, mut system) = (0, 0);
        for (pid, now) in &after.processes {
            let before = self.processes.get(pid).cloned().unwrap_or_default();
            cost.cpu_ns += now.cpu_ns.saturating_sub(before.cpu_ns);
            user += now.ticks.0.saturating_sub(before.ticks.0);
            system += now.ticks.1.saturating_sub(before.ticks.1);
            cost.minor_faults += now.faults.minor.saturating_sub(before.faults.minor);
            cost.major_faults += now.faults.major.saturating_sub(before.faults.major);
            add_io(&mut cost, &before.io.unwrap_or_default(), now.io);
            for task in now.tasks.values() {
                cost.seccomp |= task.seccomp > 0;
                cost.seccomp_filters = cost.seccomp_filters.max(task.seccomp_filters);
                let tracer =
                    task.tracer.map(|pid| (pid.cast_unsigned(), proc::name(pid).unwrap_or_default()));
                cost.traced_by = cost.traced_by.take().or(tracer);
            }
        }
        let (ended_user, ended_system) = self.ended_ticks(after);
        cost.cpu_ns += (ended_user + ended_system) * TICK_NS;
        (user, system) = (user + ended_user, system + ended_system);
        for thread in self.threads(after) {
            cost.voluntary += thread.voluntary;
            cost.involuntary += thread.involuntary;
        }
        cost.kernel_share = (user + system > 0).then(|| system as f64 / (user + system) as f64);
        cost
    }

    /// User and kernel time of children that ended between the two, in ticks: what their parents were credited with,
    /// without what had been seen of them before.
    fn ended_ticks(&self, after: &Counters) -> (u64, u64) {
        let (mut user, mut system) = (0, 0);
        for (pid, now) in &after.processes {
            let before = self.processes.get(pid).map_or((0, 0), |before| before.children_ticks);
            user += now.children_ticks.0.saturating_sub(before.0);
            system += now.children_ticks.1.saturating_sub(before.1);
        }
        for (_, gone) in self.processes.iter().filter(|(pid, _)| !after.processes.contains_key(pid)) {
            user = user.saturating_sub(gone.ticks.0 + gone.children_ticks.0);
            system = system.saturating_sub(gone.ticks.1 + gone.children_ticks.1);
        }
        (user, system)
    }

    fn host(&self, after: &Counters, cpus: &CpuSet, target_ns: u64) -> Host {
        let mut host = Host { cpus: cpus.len() as u32, ..Host::default() };
        let (mut busy_ns, mut interrupts_ns) = (0, 0);
        for (before, now) in self.cpus.iter().zip(&after.cpus).filter(|(_, now)| cpus.contains(now.cpu)) {
            let since = |of: fn(&CpuStat) -> u64| of(now).saturating_sub(of(before));
            host.idle_ns += since(|s| s.idle + s.iowait);
            host.steal_ns += since(|s| s.steal);
            busy_ns += since(|s| s.user + s.nice + s.system + s.irq + s.softirq);
            interrupts_ns += since(|s| s.irq + s.softirq);
        }
        host.all_ns = host.idle_ns + host.steal_ns + busy_ns;
        host.own_ns = after.own_ns.saturating_sub(self.own_ns);
        // The kernel's threads write the target's files and send its packets: they are nobody's neighbour.
        let kernel = |_: Pid, ticks: &proc::Ticks| ticks.is_kernel && cpus.contains(ticks.cpu);
        let kernel_ns = self.used(after, kernel).map(|(_, ns)| ns).sum::<u64>();
        let peers: Vec<Pid> = self.peers.iter().chain(&after.peers).copied().collect();
        let asks = |pid: Pid, ticks: &proc::Ticks| peers.contains(&pid) && cpus.contains(ticks.cpu);
        host.peers_ns = self.used(after, asks).map(|(_, ns)| ns).sum();
        host.peers = self.named(after, asks);
        let others_ns = self
            .used(after, |pid, ticks| !kernel(pid, ticks) && !asks(pid, ticks) && cpus.contains(ticks.cpu));
        let others_ns: u64 = others_ns.map(|(_, ns)| ns).sum();
        let yields = |pid: Pid, ticks: &proc::Ticks| {
            ticks.gives_way && !ticks.is_kernel && !asks(pid, ticks) && cpus.contains(ticks.cpu)
        };
        let yielding_ns: u64 = self.used(after, yields).map(|(_, ns)| ns).sum();
        let rest_ns = busy_ns.saturating_sub(target_ns + host.own_ns + kernel_ns + host.peers_ns);
        host.yielding_ns = yielding_ns.min(rest_ns);
        (host.foreign_ns, host.interrupts_ns) =
            shared_out(rest_ns - host.yielding_ns, interrupts_ns, others_ns.saturating_sub(yielding_ns));
        host.neighbours = self.named(after, |pid, ticks| {
            !ticks.is_kernel && !ticks.gives_way && !peers.contains(&pid) && cpus.contains(ticks.cpu)
        });
        host.softirq = self.softirq(after, cpus);
        host
    }

    /// Who of these used the CPUs most, as far as ticks show.
    fn named(&self, after: &Counters, wanted: impl Fn(Pid, &proc::Ticks) -> bool) -> Vec<(String, u64)> {
        let mut used = BTreeMap::<String, u64>::new();
        for (name, ns) in self.used(after, wanted) {
            *used.entry(name).or_default() += ns;
        }
        let mut used: Vec<(String, u64)> = used.into_iter().filter(|(_, ns)| *ns > 0).collect();
        used.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        used.truncate(NEIGHBOURS_MAX);
        used
    }

    /// Names and CPU time of processes that are neither the target nor this one; and of their children that ended meanwhile, whose
    /// time they were told.
    fn used(
        &self,
        after: &Counters,
        wanted: impl Fn(Pid, &proc::Ticks) -> bool,
    ) -> impl Iterator<Item = (String, u64)> {
        let is_other = |pid: &Pid| *pid != child::this() && !after.processes.contains_key(pid);
        let others = after.everybody.iter().filter(move |(pid, now)| is_other(pid) && wanted(**pid, now));
        let ended = ended_ticks(&self.everybody, &after.everybody);
        others.flat_map(move |(pid, now)| {
            let before = self.everybody.get(pid).map_or(0, |before| before.ticks);
            let (own, theirs) = (now.ticks.saturating_sub(before), ended.get(pid).copied().unwrap_or(0));
            [(now.name.clone(), own * TICK_NS), (format!("{}'s children", now.name), theirs * TICK_NS)]
        })
    }

    fn softirq(&self, after: &Counters, cpus: &CpuSet) -> Vec<SoftIrq> {
        let ns = |cpu: usize| {
            let of =
                |stats: &[CpuStat]| stats.iter().find(|stat| stat.cpu == cpu).map_or(0, |stat| stat.softirq);
            of(&after.cpus).saturating_sub(of(&self.cpus))
        };
        let row = |now: &NetCpu| {
            let before =
                self.net_cpus.iter().find(|before| before.cpu == now.cpu).copied().unwrap_or_default();
            SoftIrq {
                cpu: now.cpu as u32,
                ns: ns(now.cpu),
                net_rx: now.net_rx.saturating_sub(before.net_rx),
                handed_over: now.handed_over.saturating_sub(before.handed_over),
                targets: cpus.contains(now.cpu),
            }
        };
        after.net_cpus.iter().map(row).collect()
    }

    fn packets(&self, after: &Counters, pid: Pid, missing: &mut Vec<NotLookedAt>) -> Option<Packets> {
        let taps = match proc::packet_taps(pid) {
            Ok(taps) => taps,
            Err(error) => {
                not_looked(missing, "packet sockets", &error.to_string());
                return None;
            }
        };
        let since = |of: fn(&NetCount) -> u64| of(&after.net).saturating_sub(of(&self.net));
        let listens = after.connections.listens;
        let owner = |owner: (Pid, String)| (owner.0.cast_unsigned(), owner.1);
        let tap = |tap: proc::PacketTap| Tap {
            protocol: tap.line.protocol,
            device: tap.line.device,
            owner: tap.owner.map(owner),
        };
        Some(Packets {
            taps: taps.into_iter().map(tap).collect(),
            // Of the whole namespace: nothing of the target's where it listens for nobody.
            listen_overflows: if listens { since(|net| net.listen_overflows) } else { 0 },
            listen_drops: if listens { since(|net| net.listen_drops) } else { 0 },
            loopback_packets: since(|net| net.loopback_packets),
            device_packets: since(|net| net.device_packets),
            wire_bytes: since(|net| net.bytes),
            retransmits: since(|net| net.retransmits),
            unread: self.connections.unread.min(after.connections.unread) as u64,
            connections: after.connections.held as u64,
            // Looked at while the window passes, by somebody else.
            ..Packets::default()
        })
    }
}

impl Process {
    fn read(pid: Pid) -> Process {
        Process {
            tasks: proc::task_costs(pid).into_iter().map(|task| (task.tid, task)).collect(),
            cpu_ns: clock::process_cpu_ns(pid).or_else(|_| proc::run_ns(pid)).unwrap_or(0),
            ticks: proc::user_system_ticks(pid).unwrap_or_default(),
            children_ticks: proc::stat(pid).map(|stat| stat.children_ticks).unwrap_or_default(),
            faults: proc::faults(pid).unwrap_or_default(),
            io: proc::io_count(pid).ok(),
        }
    }
}

fn thread(before: &TaskCost, now: &TaskCost) -> ThreadCost {
    ThreadCost {
        tid: now.tid.cast_unsigned(),
        name: now.name.clone(),
        run_ns: now.run_ns.saturating_sub(before.run_ns),
        wait_ns: now.wait_ns.saturating_sub(before.wait_ns),
        voluntary: now.voluntary.saturating_sub(before.voluntary),
        involuntary: now.involuntary.saturating_sub(before.involuntary),
    }
}

fn add_io(cost: &mut ProcessCost, before: &IoCount, now: Option<IoCount>) {
    let Some(now) = now else { return };
    let add = |sum: &mut Option<Transfers>, calls: u64, bytes: u64| {
        let sum = sum.get_or_insert_default();
        sum.calls += calls;
        sum.bytes += bytes;
    };
    let since = |of: fn(&IoCount) -> u64| of(&now).saturating_sub(of(before));
    add(&mut cost.reads, since(|io| io.read_calls), since(|io| io.read_bytes));
    add(&mut cost.writes, since(|io| io.write_calls), since(|io| io.write_bytes));
    *cost.disk_write_bytes.get_or_insert_default() += since(|io| io.disk_write_bytes);
}

/// The quota that binds, and what the group counted in the window that was held most in it: what was held before is over. `None`
/// where nothing counts one.
fn quota(before: &[QuotaGroup], after: &[QuotaGroup]) -> Option<Quota> {
    let since = |now: &QuotaGroup| {
        let was = before.iter().find(|one| one.file == now.file)?.quota;
        let quota = CpuQuota {
            cpus: now.quota.cpus,
            periods: now.quota.periods.saturating_sub(was.periods),
            throttled: now.quota.throttled.saturating_sub(was.throttled),
            throttled_ns: now.quota.throttled_ns.saturating_sub(was.throttled_ns),
        };
        Some(QuotaGroup { file: now.file.clone(), quota })
    };
    let in_window: Vec<QuotaGroup> = after.iter().filter_map(since).collect();
    let CpuQuota { cpus, periods, throttled, throttled_ns } = proc::binding_quota(&in_window)?;
    Some(Quota { cpus, periods, throttled, throttled_ns })
}

/// That of the largest process: what a wrapper needs says nothing of the server that it started.
fn memory(processes: &BTreeMap<Pid, Process>, missing: &mut Vec<NotLookedAt>) -> Option<Memory> {
    let largest = processes.keys().max_by_key(|pid| proc::anonymous_bytes(**pid).unwrap_or(0))?;
    let used = match proc::memory_use(*largest) {
        Ok(used) => used,
        Err(error) => {
            not_looked(missing, "its memory", &error.to_string());
            return None;
        }
    };
    let mode = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = mode.split(['[', ']']).nth(1).unwrap_or_default().to_owned();
    Some(Memory {
        rss_bytes: used.rss,
        anonymous_bytes: used.anonymous,
        huge_bytes: used.huge,
        huge_pages: chosen,
    })
}

/// The files that these processes have open, with the flags that make their calls wait.
fn files(pids: &[Pid], missing: &mut Vec<NotLookedAt>) -> BTreeMap<String, String> {
    let (mut all, mut refused) = (BTreeMap::<String, String>::new(), None);
    for opened in pids.iter().map(|pid| proc::open_files(*pid)) {
        match opened {
            // One that several hold was mostly opened by one of them, before it forked.
            Ok(files) => files.into_iter().for_each(|(path, flags)| {
                let known = all.entry(path).or_default();
                *known = if known.is_empty() { flags } else { std::mem::take(known) };
            }),
            Err(error) => refused = Some(error),
        }
    }
    if let Some(error) = refused.filter(|_| all.is_empty()) {
        not_looked(missing, "its open files", &error.to_string());
    }
    all
}

/// Every CPU on which some thread of the target may run; all that are online where that cannot be read.
fn allowed_cpus(after: &Counters) -> CpuSet {
    let tids = after.processes.values().flat_map(|process| process.tasks.keys());
    let sets: Vec<CpuSet> = tids.filter_map(|tid| proc::cpus_allowed(*tid).ok()).collect();
    let all: CpuSet = sets.iter().flat_map(|cpus| cpus.iter().collect::<Vec<_>>()).collect();
    if all.is_empty() { dyno_sys::affinity::online() } else { all }
}

/// Where the target's threads may run now.
#[must_use]
pub fn cpus_of(pid: Pid) -> CpuSet {
    allowed_cpus(&Counters::read(pid))
}

pub(super) fn not_looked(missing: &mut Vec<NotLookedAt>, what: &str, why: &str) {
    missing.push(NotLookedAt { what: what.to_owned(), why: why.to_owned() });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_over_this_process_has_its_threads_and_its_cpu() {
        let me = child::this();
        let before = Counters::read(me);
        let until_ns = clock::mono_ns() + 10_000_000_000;
        while clock::process_cpu_ns(me).unwrap_or(0) < before.own_ns + 30_000_000 {
            assert!(clock::mono_ns() < until_ns, "no CPU time was counted in 10 s");
        }
        let seen = before.until(&Counters::read(me), me);
        assert!(seen.process.cpu_ns >= 30_000_000 && !seen.threads.is_empty() && seen.duration_s > 0.0);
        assert!(seen.host.cpus > 0 && seen.memory.is_some());
    }

    /// Planted faults: the group above, held for long before, is asked alone; what was held before counts as well.
    #[test]
    fn a_quota_is_that_of_the_group_held_in_the_window() {
        let groups = |own: u64, above: u64| -> Vec<QuotaGroup> {
            let group = |file: &str, cpus, throttled| QuotaGroup {
                file: file.into(),
                quota: CpuQuota {
                    cpus: Some(cpus),
                    periods: 10 * throttled,
                    throttled,
                    throttled_ns: throttled,
                },
            };
            vec![group("slice/own/cpu.max", 0.5, own), group("slice/cpu.max", 1.0, above)]
        };
        let seen = |own, above| {
            let seen = quota(&groups(1, 900), &groups(own, above)).expect("both groups are there");
            (seen.cpus, seen.throttled)
        };
        assert_eq!([seen(51, 900), seen(51, 960)], [(Some(0.5), 50), (Some(0.5), 60)]);
        assert_eq!(quota(&[], &groups(1, 1)), None, "a group that came meanwhile");
    }

    /// Planted fault: whoever used most CPU time is named, on whatever CPU.
    #[test]
    fn neighbours_are_those_on_the_targets_own_cpus() {
        let me = child::this();
        let (mut before, mut after) = (Counters::read(me), Counters::read(me));
        let one =
            |name: &str, cpu, ticks| proc::Ticks { name: name.into(), cpu, ticks, ..Default::default() };
        before.everybody = BTreeMap::new();
        after.everybody = BTreeMap::from([(-2, one("near", 0, 50)), (-3, one("far", 1, 90))]);
        let host = before.host(&after, &[0].into_iter().collect(), 0);
        assert_eq!(host.neighbours, [("near".to_owned(), 50 * TICK_NS)]);
    }

    /// A build: its compiler ran for 30 ticks before, and for 50 more. Planted faults: what was seen before counts twice; one that is
    /// there still counts.
    #[test]
    fn what_a_neighbours_children_used_is_told_of_it_when_they_end() {
        let one = |parent, ticks, children_ticks| proc::Ticks {
            parent,
            ticks,
            children_ticks,
            ..proc::Ticks::default()
        };
        let before = BTreeMap::from([(5, one(1, 4, 100)), (6, one(5, 30, 0)), (7, one(5, 20, 0))]);
        let after = BTreeMap::from([(5, one(1, 6, 180)), (7, one(5, 60, 0))]);
        assert_eq!(ended_ticks(&before, &after), BTreeMap::from([(5, 50), (7, 0)]));
    }

    #[test]
    fn interrupts_that_belong_to_no_process_are_no_neighbours_and_what_neighbours_used_stays_theirs() {
        assert_eq!(shared_out(300, 300, 0), (0, 300), "timed apart: a server's own packets");
        assert_eq!(shared_out(900, 300, 0), (600, 300), "who ended meanwhile was not seen");
        assert_eq!(shared_out(900, 300, 850), (850, 50), "counted to whom they interrupt");
        assert_eq!(shared_out(100, 300, 850), (100, 0));
    }

    /// `timeout ./srv`. Planted fault: the memory of whichever comes first.
    #[test]
    fn memory_is_that_of_the_largest_process() {
        let small = std::process::Command::new("sleep").arg("100").spawn();
        let Ok(mut small) = small else { return };
        let large = vec![1_u8; 64 << 20];
        let both = [child::this(), small.id().cast_signed()].map(|pid| (pid, Process::default()));
        let seen = memory(&BTreeMap::from(both), &mut Vec::new());
        assert!(seen.is_some_and(|seen| seen.anonymous_bytes >= 64 << 20) && large[4096] == 1);
        assert!(small.kill().is_ok() && small.wait().is_ok());
    }

    /// Planted fault: those of the first process alone.
    #[test]
    fn open_files_are_those_of_all_its_processes() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let held = std::fs::File::open(&path).map(std::process::Stdio::from);
        let child = held.and_then(|held| std::process::Command::new("sleep").arg("100").stdin(held).spawn());
        let Ok(mut child) = child else { return };
        let seen = files(&[child::this(), child.id().cast_signed()], &mut Vec::new());
        assert!(seen.keys().any(|one| path.as_os_str() == one.as_str()), "{seen:?}");
        assert!(child.kill().is_ok() && child.wait().is_ok());
    }

    #[test]
    fn what_ended_children_used_is_the_targets() {
        let me = child::this();
        let before = Counters::read(me);
        let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let ended = std::process::Command::new("sh").args(["-c", burn]).status();
        assert!(ended.is_ok_and(|status| status.success()));
        let (user, system) = before.ended_ticks(&Counters::read(me));
        assert!(user + system >= 2, "{user} {system}");
    }

    #[test]
    fn a_process_that_is_gone_has_no_counters() {
        assert!(Counters::read(i32::MAX - 1).is_empty());
    }
}

//! Facts about the machine and its kernel: processors, idling, safety measures, watchers, memory, neighbours.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fact::Fact;

/// Who read the facts: what it may see depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reader {
    /// Effective user.
    pub uid: u32,
    /// Names of the effective capabilities.
    pub capabilities: Vec<String>,
    /// Its network namespace, as `net:[4026531840]`.
    pub network_namespace: Fact<String>,
    /// The namespace of the network facts, where it is the server's and not the reader's.
    pub looked_into: Option<String>,
}

/// The kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kernel {
    /// Its release.
    pub release: Fact<String>,
    /// What the boot loader told it.
    pub command_line: Fact<String>,
    /// The clock source in use.
    pub clocksource: Fact<String>,
    /// Those that could be.
    pub clocksources: Fact<String>,
    /// Security modules, as `lockdown,capability,apparmor`.
    pub security_modules: Fact<String>,
    /// Parts that are there without being asked for, among those that reading facts would load otherwise.
    pub parts: Vec<String>,
    /// What of `/proc` and `/sys` nobody may write here: mounts that are read-only, and settings that this kernel fixes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_only: Vec<String>,
    /// Mounts inside of these that can be written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
    /// The scheduler's own settings.
    pub autogroup: Fact<String>,
}

/// The processors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpus {
    /// Model name.
    pub model: String,
    /// The hypervisor, where there is one.
    pub hypervisor: Option<String>,
    /// Those online, as `0-3,8`.
    pub online: Fact<String>,
    /// How many those are.
    pub count: u32,
    /// Those that the scheduler leaves alone.
    pub isolated: Fact<String>,
    /// Hyper-threading: `on`, `off`, `notsupported` …
    pub smt: Fact<String>,
    /// Memory nodes.
    pub nodes: Fact<Vec<Node>>,
    /// Caches of the first CPU, and who shares them.
    pub caches: Fact<Vec<Cache>>,
    /// How CPUs idle.
    pub idle: Idle,
    /// How fast they run.
    pub frequency: Frequency,
    /// Shares of all CPUs' time since boot.
    pub since_boot: Fact<TimeShares>,
    /// The same while the facts were read.
    pub lately: Fact<TimeShares>,
    /// Tasks that waited, in percent of the last ten seconds, by resource: `cpu`, `memory`, `io`.
    pub pressure: BTreeMap<String, Fact<Pressure>>,
    /// Interrupts with the CPUs that take them.
    pub interrupts: Fact<Vec<Interrupt>>,
    /// A daemon that moves interrupts.
    pub irqbalance: Fact<Option<u32>>,
}

/// A memory node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Its number.
    pub node: u32,
    /// Its CPUs.
    pub cpus: String,
    /// Its memory.
    pub memory_bytes: u64,
}

/// A cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cache {
    /// 1, 2 or 3.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// As the kernel writes it: `32K`.
    pub size: String,
    /// CPUs that share it.
    pub shared_by: String,
}

/// How CPUs idle.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Idle {
    /// The driver.
    pub driver: Fact<String>,
    /// Who chooses the state.
    pub governor: Fact<String>,
    /// The states of the first CPU.
    pub states: Fact<Vec<IdleState>>,
    /// How long a guest polls before it halts, ns.
    pub haltpoll_ns: Fact<u64>,
}

/// A state of sleep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdleState {
    /// `POLL`, `C1`, `C6` …
    pub name: String,
    /// How long waking takes, µs.
    pub latency_us: u64,
    /// Whether it is turned off.
    pub disabled: bool,
}

/// How fast CPUs run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Frequency {
    /// The driver.
    pub driver: Fact<String>,
    /// CPUs by governor: `powersave` → `0-3`.
    pub governors: Fact<BTreeMap<String, String>>,
    /// CPUs by preference: `balance_performance` → `0-3`.
    pub preferences: Fact<BTreeMap<String, String>>,
    /// Whether turbo is forbidden.
    pub no_turbo: Fact<bool>,
}

/// Shares of CPU time, in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeShares {
    /// Not idle.
    pub busy: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// In soft interrupts.
    pub softirq: f64,
    /// How long was looked, s.
    pub over_s: f64,
}

/// Pressure of a resource: percent of ten seconds, and of a minute, in which some task waited for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pressure {
    /// Over ten seconds.
    pub avg10: f64,
    /// Over a minute.
    pub avg60: f64,
}

/// An interrupt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interrupt {
    /// Its number.
    pub irq: u32,
    /// What asked for it.
    pub name: String,
    /// CPUs that may take it.
    pub allowed: String,
    /// The CPU that does.
    pub effective: String,
    /// How often since boot.
    pub count: u64,
    /// Its driver has fixed its CPUs: the kernel takes no others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_fixed: bool,
}

/// Safety measures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Security {
    /// What the kernel says of each weakness of the processor.
    pub vulnerabilities: Fact<BTreeMap<String, String>>,
    /// Audit.
    pub audit: Fact<Audit>,
}

/// Audit of system calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Audit {
    /// 0 off, 1 on, 2 on and locked.
    pub enabled: u32,
    /// The daemon, 0 for none.
    pub daemon: u32,
    /// Records lost.
    pub lost: u32,
    /// Its rules.
    pub rules: Vec<AuditRule>,
}

/// A rule of audit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditRule {
    /// `exit`, `task`, `filesystem` …
    pub list: String,
    /// `always` or `never`.
    pub action: String,
    /// System calls that it names.
    pub system_calls: u32,
    /// Conditions.
    pub fields: u32,
    /// It is about one file, and asked only where that file is touched.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_file: bool,
}

/// Who watches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watchers {
    /// The kernel's own tracer.
    pub tracing: Fact<Tracing>,
    /// BPF programs.
    pub bpf: Fact<Vec<BpfProgram>>,
    /// Whether their time is counted.
    pub bpf_stats: Fact<String>,
}

/// The kernel's own tracer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tracing {
    /// `nop` is none.
    pub tracer: String,
    /// Events that are on: `raw_syscalls:sys_enter` …
    pub events: Vec<String>,
    /// Probes that somebody put in.
    pub probes: u32,
    /// Further instances.
    pub instances: Vec<String>,
}

/// A BPF program that is loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BpfProgram {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it hooks into: `tracepoint`, `kprobe`, `xdp`, `sched_cls`, `cgroup_skb` …
    pub kind: String,
}

/// Memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// All of it.
    pub total_bytes: u64,
    /// What could be had without swapping.
    pub available_bytes: Fact<u64>,
    /// Huge pages without asking: `always [madvise] never`.
    pub thp: Fact<String>,
    /// When memory is tidied up for them.
    pub thp_defrag: Fact<String>,
    /// The same for shared memory.
    pub thp_shmem: Fact<String>,
    /// Huge pages set aside, by size: `2048kB` → how many, and how many are free.
    pub huge_pages: Fact<BTreeMap<String, (u64, u64)>>,
    /// Areas to swap to.
    pub swaps: Fact<Vec<Swap>>,
    /// Merging of equal pages: 0 is off.
    pub ksm: Fact<String>,
    /// A compressed cache before swap.
    pub zswap: Fact<String>,
}

/// An area to swap to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Swap {
    /// File or device.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What is used of it.
    pub used_bytes: u64,
}

impl Swap {
    /// What is swapped to a compressed part of memory is on no disk.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        !self.name.starts_with("/dev/zram")
    }
}

/// A process that used CPU while the facts were read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Neighbour {
    /// Its number.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Percent of one CPU.
    pub cpu_percent: f64,
    /// Its nice value.
    pub nice: i32,
    /// The CPU that it was last on.
    pub cpu: u32,
}

//! All that was seen of a running server: what diagnosis rules read, and nothing else.
//!
//! `dyno diagnose` fills it, `dyno_diagnose` judges it, and a record of it can be judged again elsewhere. What
//! could not be read is `None` and named in `not_looked_at`: a rule never takes "unknown" for "zero". Counters are
//! differences over the window that was watched.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::profile::Profile;

/// Name and number of the shape.
pub const OBSERVATION_SCHEMA: &str = "dyno.seen/1";

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observation {
    /// [`OBSERVATION_SCHEMA`].
    pub schema: String,
    /// How long the counters ran.
    pub duration_s: f64,
    /// How long each part of it was really seen, in their order; none in records of before.
    pub parts: Vec<Part>,
    /// The target's CPUs and others'.
    pub host: Host,
    /// The target's threads, by number; those that ended meanwhile are not in it.
    pub threads: Vec<ThreadCost>,
    /// The target as a whole, children included.
    pub process: ProcessCost,
    /// Its memory at the end.
    pub memory: Option<Memory>,
    /// Its CPU quota, where it has one.
    pub quota: Option<Quota>,
    /// What happens to its packets.
    pub packets: Option<Packets>,
    /// What the generator saw, where one ran.
    pub load: Option<Load>,
    /// Where its CPU time went.
    pub on_cpu: Option<Profile>,
    /// Where the rest of its time went.
    pub off_cpu: Option<Profile>,
    /// What its goroutines did, where it is a Go program.
    pub goroutines: Option<Goroutines>,
    /// The instructions at which it was seen most often.
    pub hot: Vec<HotSpot>,
    /// Memory that its processes share (`MAP_SHARED`): first address, and the address after the last.
    pub shared: Vec<[u64; 2]>,
    /// Descriptors of the target that are files, by path, with the flags they were opened with: `sync` and the like.
    pub files: BTreeMap<String, String>,
    /// What could not be seen.
    pub not_looked_at: Vec<NotLookedAt>,
}

/// A part of an observation, by its way of watching.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// Which.
    pub way: Way,
    /// When it began, in seconds from the beginning of the first.
    pub began_s: f64,
    /// How long it was to be watched.
    pub asked_s: f64,
    /// How long it was seen.
    pub seen_s: f64,
}

/// A way of watching.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Counters, read at both ends.
    #[default]
    Counters,
    /// Goroutines, connections and queues, looked at often.
    Looks,
    /// Where CPU time goes.
    OnCpu,
    /// Registers at hot instructions.
    HotCode,
    /// What threads wait for, and system calls.
    OffCpu,
}

impl Part {
    /// Less than this of what was asked for is a short look: a load that changes has shown other things in the rest.
    pub const WHOLE_MIN: f64 = 0.7;

    /// Whether it was seen for much less than it was to be.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.seen_s < Part::WHOLE_MIN * self.asked_s
    }
}

/// The machine while the target was watched. Times are sums over the CPUs that the target may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// CPUs that the target may use.
    pub cpus: u32,
    /// Time of those CPUs in all.
    pub all_ns: u64,
    /// Of it, nothing ran.
    pub idle_ns: u64,
    /// Of it, the hypervisor ran others.
    pub steal_ns: u64,
    /// Of it, processes ran that are neither the target, nor its peers, nor this program; threads of the kernel, where they
    /// are known to be such, are not among them, nor is what gives way.
    pub foreign_ns: u64,
    /// Of it, such processes ran as leave a CPU to whoever else wants it, by their policy or niceness; 0 in records of before.
    pub yielding_ns: u64,
    /// Of it, this program ran: the generator, and the watching.
    pub own_ns: u64,
    /// Of it, processes of this machine ran that hold the other ends of its TCP connections: they ask it, or it asks them.
    pub peers_ns: u64,
    /// Of it, interrupts and packets were worked on, where the kernel counts that to no process; 0 in records of before.
    pub interrupts_ns: u64,
    /// The peers that used most: name and nanoseconds.
    pub peers: Vec<(String, u64)>,
    /// The processes that used most of the foreign time: name and nanoseconds.
    pub neighbours: Vec<(String, u64)>,
    /// Soft interrupts' time and where packets were worked on, by CPU.
    pub softirq: Vec<SoftIrq>,
}

/// Soft interrupts of one CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SoftIrq {
    /// Which CPU.
    pub cpu: u32,
    /// Time in them, counted in ticks.
    pub ns: u64,
    /// Receive soft interrupts.
    pub net_rx: u64,
    /// Packets handed over from another CPU (RPS).
    pub handed_over: u64,
    /// Whether a thread of the target may run there.
    pub targets: bool,
}

/// One thread of the target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadCost {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Time on a CPU.
    pub run_ns: u64,
    /// Time runnable without a CPU.
    pub wait_ns: u64,
    /// Switches because it had to wait.
    pub voluntary: u64,
    /// Switches because its turn was over.
    pub involuntary: u64,
}

/// The target's counters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessCost {
    /// CPU time of all its threads and children.
    pub cpu_ns: u64,
    /// Of it, sampled by the kernel's tick, the share in the kernel; none when no tick hit it.
    pub kernel_share: Option<f64>,
    /// Page faults without a disk.
    pub minor_faults: u64,
    /// Page faults with one.
    pub major_faults: u64,
    /// Calls that read, and what they read; sockets are not all in it.
    pub reads: Option<Transfers>,
    /// Calls that wrote, and what they wrote.
    pub writes: Option<Transfers>,
    /// Bytes that went to a disk.
    pub disk_write_bytes: Option<u64>,
    /// seccomp filters before every system call: the most of any thread.
    pub seccomp_filters: u32,
    /// Whether a seccomp mode is in force.
    pub seccomp: bool,
    /// Who traces one of its threads (ptrace), by number and name: the thread stops at each system call that is traced.
    pub traced_by: Option<(u32, String)>,
    /// Voluntary switches in all, ended threads' not included.
    pub voluntary: u64,
    /// Involuntary switches.
    pub involuntary: u64,
}

/// Calls that move bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Transfers {
    /// How many.
    pub calls: u64,
    /// How many bytes in all.
    pub bytes: u64,
}

/// The target's memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Resident.
    pub rss_bytes: u64,
    /// Of it, anonymous.
    pub anonymous_bytes: u64,
    /// Of it, in huge pages, transparent or reserved.
    pub huge_bytes: u64,
    /// What the machine does by itself: `always`, `madvise` or `never`.
    pub huge_pages: String,
}

/// The CPU quota of the target's cgroup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quota {
    /// CPUs that it may use, where a quota is set.
    pub cpus: Option<f64>,
    /// Periods that passed.
    pub periods: u64,
    /// Periods in which it was held.
    pub throttled: u64,
    /// How long its threads were held, summed over CPUs.
    pub throttled_ns: u64,
}

/// What happens to the packets of the target's network namespace, whoever's they are, and at the target's own sockets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Packets {
    /// Sockets that see packets.
    pub taps: Vec<Tap>,
    /// Connections that found the queue of a listener full, of whatever process.
    pub listen_overflows: u64,
    /// Connections that were dropped at a listener, those among them.
    pub listen_drops: u64,
    /// Packets received over loopback.
    pub loopback_packets: u64,
    /// Packets received over other devices.
    pub device_packets: u64,
    /// Bytes received and sent over all devices.
    pub wire_bytes: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Its connections with received bytes that it had not read, when watching began or when it ended: the fewer.
    pub unread: u64,
    /// Its TCP connections when watching ended.
    pub connections: u64,
    /// Bytes per second that came over its TCP connections, by those that were looked at; 0 in records of before.
    pub bytes_received_per_s: f64,
    /// The same for bytes that it sent and that were acknowledged.
    pub bytes_sent_per_s: f64,
    /// How its connections send, where that could be looked at.
    pub sending: Option<Sending>,
    /// Its listeners with their queues, where those could be looked at; none in records of before.
    pub queues: Vec<Queue>,
    /// Whom it asks: the far ends of its connections that it did not accept, most of them first; none in records of before.
    pub asked: Vec<Asked>,
    /// The UDP sockets at which anybody may ask it; none where it has none, and in records of before.
    pub datagrams: Option<Datagrams>,
    /// Who asks it: the connections that it accepted, where some could be looked at; none in records of before.
    pub serving: Option<Serving>,
}

/// The target's UDP sockets that take datagrams of anybody, by looking often.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Datagrams {
    /// How many sockets at the last look.
    pub sockets: u64,
    /// How often they were looked at.
    pub looks: u64,
    /// Of those, the looks at which datagrams lay in one of them that nobody had read.
    pub looks_waiting: u64,
    /// Datagrams that found no room meanwhile.
    pub dropped: u64,
}

/// The queue of one of the target's listeners, of TCP or a unix socket, by looking often.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// Where it listens: an address and port, a socket file, or a name that begins with `@`.
    pub local: String,
    /// How often it was looked at.
    pub looks: u64,
    /// Of those, the looks at which some connection waited to be accepted.
    pub looks_waiting: u64,
    /// Connections that waited, over all looks.
    pub waiting: u64,
    /// The most at one look.
    pub most: u64,
    /// How many may wait, where that is known.
    pub backlog: Option<u32>,
    /// Of a listener of TCP, what came and was dropped there meanwhile: connections for which there was no room, and little else. 0 in
    /// records of before.
    pub dropped: u64,
}

/// An address that the target asks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// Address and port.
    pub remote: String,
    /// Open connections to it, on average.
    pub connections: f64,
    /// Looks at these connections, over all of them; 0 in records of before.
    pub looks: u64,
    /// Of those, the looks at which the target had asked, and the answer had not begun to come.
    pub looks_awaiting: u64,
    /// How many different connections were looked at; none in records of before.
    pub different: u64,
    /// How often all of them were looked at.
    pub rounds: u64,
    /// How many of them it waited for at a time, at most, but for one look in twenty.
    pub most_awaiting: u64,
    /// How long ago it had asked then, on average: half of a wait that is met at random.
    pub awaited_ms: f64,
    /// Segments with data that the target sent to it, per second: as many questions, where each is a short one. 0 in records
    /// of before, and where connections end before they are looked at twice.
    pub sent_per_s: f64,
}

/// The connections that the target accepted, by looking often.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Serving {
    /// Open connections, on average.
    pub connections: f64,
    /// Looks at some of them, over all of these.
    pub looks: u64,
    /// Of those, the looks at which the client had spoken last, as far as the kernel's ticks tell: only at connections that
    /// were answered, or ended, while they were watched.
    pub looks_owed: u64,
    /// How long ago it had spoken then, on average: half of a wait that is met at random.
    pub owed_ms: f64,
    /// Connections that the target opened, to whatever address, on which it waited for an answer, on average: at the most,
    /// where the kernel's ticks do not tell.
    pub awaiting: f64,
    /// Segments with data that clients sent, per second: as many requests, where each is a short one. 0 in records of before,
    /// and where connections end before they are looked at twice.
    pub received_per_s: f64,
}

impl Serving {
    /// Requests that were taken and not answered yet, on average.
    #[must_use]
    pub fn owed(&self) -> f64 {
        self.connections * self.looks_owed as f64 / self.looks.max(1) as f64
    }
}

/// What TCP held back on the target's connections, and on their other ends on the same machine, and what waited for the
/// target to take it, by looking often.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sending {
    /// Looks at connections, over all of them.
    pub looks: u64,
    /// Looks at which less than a segment was kept until what was on its way was acknowledged (Nagle's algorithm).
    pub held: u64,
    /// Of those, at the far end: a peer's bytes for the target.
    pub held_by_peers: u64,
    /// Connections without `TCP_NODELAY` among those that were held.
    pub without_nodelay: u64,
    /// Times that all of the target's connections and listeners were looked at, one after another.
    pub rounds: u64,
    /// Of those, the times at which something waited to be taken: bytes in a connection, or a connection in a queue.
    pub rounds_waiting: u64,
    /// Connections with unread bytes, and connections not accepted, over all looks.
    pub waiting: u64,
    /// Looks at the connection at which bytes were kept most often; 0 in records of before.
    pub most_looks: u64,
    /// Of those, the looks at which they were.
    pub most_held: u64,
}

/// A socket that sees packets (`packet(7)`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tap {
    /// Protocol it asked for; 3 is every packet (`ETH_P_ALL`).
    pub protocol: u32,
    /// The device's index, 0 for all.
    pub device: u32,
    /// Its owner: process and name, where they are known.
    pub owner: Option<(u32, String)>,
}

/// What the generator saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// Connections kept open.
    pub connections: u32,
    /// Right answers.
    pub replies: u64,
    /// Right answers per second.
    pub replies_per_s: f64,
    /// Their bytes, heads included, and those of the requests.
    pub wire_bytes: u64,
    /// Latencies, from the sending of a request to its answer.
    pub p50_ns: u64,
    /// 99 %.
    pub p99_ns: u64,
    /// Connections refused, reset, or timed out.
    pub lost: u64,
    /// Connections opened anew.
    pub reconnects: u64,
    /// Whether the generator was the limit.
    pub limited: Limit,
    /// Why, in words.
    pub limited_why: String,
    /// Share of the wall that the generator's threads ran.
    pub busy: f64,
}

/// Whether the generator was the limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// It had time left.
    #[default]
    No,
    /// Both were at their limit.
    Both,
    /// It was.
    Yes,
    /// It is not known.
    Unknown,
}

/// What the goroutines of a Go program did, by looking often.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Goroutines {
    /// How often it was looked.
    pub looks: u32,
    /// How many were in each state, on average: `running`, `runnable`, `in a system call`, or what was waited for.
    pub states: BTreeMap<String, f64>,
    /// How many waited for a mutex, on average.
    pub at_mutexes: f64,
    /// Functions on the stacks of those, with how many.
    pub mutexes_in: BTreeMap<String, f64>,
    /// Where others waited in channels, for the network, or slept, the most first; none in records of before.
    pub places: Vec<Place>,
    /// Looks at which some goroutine ran, wanted to, slept, or was in a system call that ended.
    pub busy_looks: u32,
}

/// Goroutines that wait at one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Place {
    /// What is waited for, in the run-time's words: `chan send`, `IO wait`.
    pub state: String,
    /// Functions from the outermost to the innermost, joined by `;`, without the run-time's.
    pub stack: String,
    /// How many waited there, on average.
    pub many: f64,
}

/// An instruction at which the target was seen often, and the bytes around it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HotSpot {
    /// Address in the memory of the process that ran most of this code.
    pub address: u64,
    /// The function it lies in.
    pub function: String,
    /// File and line, where they are known.
    pub place: Option<String>,
    /// Share of all samples of the target, user and kernel, 0 to 1.
    pub share: f64,
    /// Address of the first of the bytes.
    pub code_at: u64,
    /// The bytes around it, in hex; none where they could not be read.
    pub code: String,
    /// Registers of some of the samples.
    pub seen: Vec<Registers>,
}

/// A thread's registers when it was seen at a hot instruction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Registers {
    /// The thread.
    pub tid: u32,
    /// Its process, which a child of the target is of its own.
    pub pid: u32,
    /// rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8 … r15.
    pub values: [u64; 16],
}

/// Something that could not be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotLookedAt {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

impl Observation {
    /// CPUs that the target kept busy, on average.
    #[must_use]
    pub fn cpus_used(&self) -> f64 {
        if self.duration_s > 0.0 { self.process.cpu_ns as f64 / 1e9 / self.duration_s } else { 0.0 }
    }

    /// Requests answered in the window, where they were counted.
    #[must_use]
    pub fn requests(&self) -> Option<f64> {
        self.load.as_ref().map(|load| load.replies_per_s * self.duration_s).filter(|requests| *requests > 0.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_observation_survives_being_written_and_read() {
        let seen = Observation {
            duration_s: 2.0,
            host: Host { cpus: 2, all_ns: 4_000, idle_ns: 1_000, ..Host::default() },
            load: Some(Load { replies_per_s: 10.0, ..Load::default() }),
            hot: vec![HotSpot {
                seen: vec![Registers { tid: 7, pid: 7, values: [1; 16] }],
                ..HotSpot::default()
            }],
            ..Observation::default()
        };
        let text = serde_json::to_string(&seen).unwrap();
        assert_eq!(serde_json::from_str::<Observation>(&text).unwrap(), seen);
        assert_eq!(seen.requests(), Some(20.0));
    }

    #[test]
    fn nothing_seen_divides_by_nothing() {
        let nothing: Observation = serde_json::from_str("{}").unwrap();
        assert_eq!((nothing.cpus_used(), nothing.requests()), (0.0, None));
    }
}

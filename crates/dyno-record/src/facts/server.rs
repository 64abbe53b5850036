//! Facts about one server: its threads, its filters, its sockets, its memory, its limits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::change::Task;
use crate::fact::Fact;

/// A server, with all its processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Server {
    /// The process that was named.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// It and its children.
    pub pids: Vec<i32>,
    /// Its threads.
    pub threads: Fact<Threads>,
    /// Where it listens, and who else does there.
    pub listeners: Fact<Vec<ServerListener>>,
    /// Socket options of its connections and listeners, by value.
    pub options: Fact<SocketOptions>,
    /// Parameters of its epoll instances.
    pub epolls: Fact<Vec<EpollPolling>>,
    /// The allocator, by the library that is mapped: `glibc`, `jemalloc`, `mimalloc`, `tcmalloc`, `static or other`.
    pub allocator: Fact<String>,
    /// Memory that is in use, and that which is in huge pages.
    pub rss_bytes: Fact<u64>,
    /// See `rss_bytes`.
    pub huge_bytes: Fact<u64>,
    /// Memory that was swapped out.
    pub swapped_bytes: Fact<u64>,
    /// Descriptors open, and how many may be.
    pub files: Fact<(u64, u64)>,
    /// How far it may raise that limit by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_hard: Option<u64>,
    /// Its control group.
    pub cgroup: Fact<Cgroup>,
}

/// A thread and how it is scheduled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduled {
    /// The thread.
    #[serde(flatten)]
    pub task: Task,
    /// Policy and nice value.
    pub scheduling: String,
    /// The nice value, which `batch` and `idle` have too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
}

/// What the threads have in common, and where they differ: how many threads by value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Threads {
    /// How many.
    pub count: u32,
    /// Those of the process that has most.
    pub of_largest: u32,
    /// Threads by CPUs that they may use.
    pub cpus: BTreeMap<String, u32>,
    /// By policy and nice value: `other 0`, `fifo`.
    pub scheduling: BTreeMap<String, u32>,
    /// Those that are scheduled in another way than `other 0`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<Scheduled>,
    /// By number of seccomp filters.
    pub seccomp_filters: BTreeMap<u32, u32>,
    /// By what the kernel says of speculation: `thread force mitigated`.
    pub speculation: BTreeMap<String, u32>,
    /// By timer slack, ns.
    pub timer_slack_ns: BTreeMap<u64, u32>,
    /// Those of processes that may have no huge pages (`PR_SET_THP_DISABLE`).
    #[serde(skip_serializing_if = "is_none")]
    pub without_huge_pages: u32,
    /// The processes that hold a listener: what serves.
    pub serving: u32,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// A listener of the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerListener {
    /// As `0.0.0.0:80`.
    pub local: String,
    /// Sockets of the server on it.
    pub sockets: u32,
    /// Connections that wait, and how many may, of the fullest.
    pub waiting: u32,
    /// See `waiting`.
    pub backlog: u32,
    /// Sockets of others on the same address and port.
    pub strangers: Vec<Group>,
    /// The holders of its sockets in the order in which these began to listen, which is how the kernel numbers them until one is
    /// closed. Empty with one socket, and where several processes hold one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<Holder>,
}

/// Who holds a listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Holder {
    /// The process.
    pub pid: i32,
    /// The CPUs that it may use: `1`, `0-3`.
    pub cpus: String,
}

/// Somebody else on the same port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    /// Its process, where it is seen.
    pub pid: Option<i32>,
    /// And its name.
    pub name: String,
    /// Its sockets.
    pub sockets: u32,
}

/// Options of sockets, read from duplicates of its descriptors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketOptions {
    /// Connections that were asked, and how many there are.
    pub asked: u32,
    /// See `asked`.
    pub connections: u32,
    /// Of them, connections of processes that may use one CPU alone whose last packet brought data, and those of which it came
    /// in on that CPU. Where an acknowledgement alone came in says nothing: its sender's timer chose the CPU.
    pub pinned: u32,
    /// See `pinned`.
    pub local: u32,
    /// The same by both CPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arrivals: Vec<Arrivals>,
    /// Option → value → connections: `TCP_NODELAY` → `1` → 64.
    pub values: BTreeMap<String, BTreeMap<String, u32>>,
    /// The same of listeners.
    pub listener_values: BTreeMap<String, BTreeMap<String, u32>>,
}

/// Connections that came in on one CPU and are served on one CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arrivals {
    /// Where their last packet was worked on.
    pub on: u32,
    /// Where alone their process may run.
    pub served_on: u32,
    /// How many.
    pub connections: u32,
}

/// Parameters of an epoll instance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EpollPolling {
    /// Its descriptor.
    pub fd: i32,
    /// µs of busy polling.
    pub busy_poll_usecs: u32,
    /// Packets in one go.
    pub budget: u32,
    /// Whether it is preferred to interrupts.
    pub prefer: bool,
}

/// A control group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cgroup {
    /// Its path, as the process sees it.
    pub path: String,
    /// CPUs that it may use, where a quota is set.
    pub cpus: Option<f64>,
    /// The file that sets them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub quota_file: String,
    /// Periods counted, and those in which it was held.
    pub periods: u64,
    /// See `periods`.
    pub throttled: u64,
    /// Times that it was held while the facts were read.
    pub throttled_lately: u64,
    /// Bytes of memory that it may use, where that is limited.
    pub memory_max_bytes: Option<u64>,
}

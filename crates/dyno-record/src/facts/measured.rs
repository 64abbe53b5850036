//! What an audit measured on this machine (`dyno audit --measure`): figures with their intervals, and why others are missing.
//!
//! `dyno_lab` fills it in; the audit's checks turn it into gains whose source is `measured_here`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fact::Fact;

/// Everything that was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// How long all of it took.
    pub took_s: f64,
    /// A system call that does nothing, in a fresh process of ours, ns. What the kernel does for every call is in it.
    pub call_ns: Fact<Figure>,
    /// A small request and its answer over loopback, both ends on one CPU, µs.
    pub request_us: Fact<Figure>,
    /// The same call behind copies of the server's filters of system calls.
    pub filters: Fact<Filters>,
    /// Packets through a copy of the packet filter's rules.
    pub rules: Fact<Packets>,
    /// Packets past one socket that taps all of them.
    pub tap: Fact<Packets>,
    /// Where received packets were worked on while the server ran.
    pub locality: Fact<Locality>,
    /// What the server did while it was watched.
    pub server: Fact<Watched>,
}

/// A figure with its interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figure {
    /// The mean.
    pub value: f64,
    /// Both ends of its 95 % interval.
    pub interval: [f64; 2],
    /// Values that it rests on.
    pub n: u32,
}

/// What filters of system calls cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filters {
    /// The thread that they are copies of.
    pub tid: i32,
    /// How many, and their instructions together.
    pub count: u32,
    /// See `count`.
    pub instructions: u32,
    /// A call behind them, ns.
    pub call_ns: Figure,
    /// What it takes longer than without, ns.
    pub extra_ns: Figure,
}

/// What something in the way of packets costs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Packets {
    /// What was in the way.
    pub what: String,
    /// A small request and its answer over a virtual cable without it, µs.
    pub request_us: Figure,
    /// What each packet takes longer with it, ns.
    pub packet_ns: Figure,
    /// The part that it takes of a request, percent.
    pub percent: Figure,
}

/// Where received packets were worked on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Locality {
    /// CPUs on which threads of the server ran meanwhile.
    pub server_cpus: Vec<u32>,
    /// Receive interrupts of all of the machine per second.
    pub per_second: f64,
    /// The part of them on other CPUs, percent.
    pub elsewhere_percent: Figure,
}

/// What a server did while its system calls were watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watched {
    /// How long it was watched.
    pub seconds: f64,
    /// Replies on connections that it had accepted: whatever it sent after it had received something.
    pub replies: u64,
    /// All its system calls, by name.
    pub calls: BTreeMap<String, u64>,
    /// Calls that received on such connections by `read` or `readv`, and by a call of sockets.
    pub reads: u64,
    /// See `reads`.
    pub receives: u64,
    /// Calls that sent on them by `write` or `writev`, and by a call of sockets.
    pub writes: u64,
    /// See `writes`.
    pub sends: u64,
    /// Writes to regular files, and to the system's log.
    pub file_writes: u64,
    /// Calls that wait until a file is on its disk.
    pub syncs: u64,
}

impl Watched {
    /// A count for each reply.
    #[must_use]
    pub fn per_reply(&self, count: u64) -> f64 {
        count as f64 / self.replies.max(1) as f64
    }

    /// All system calls for each reply.
    #[must_use]
    pub fn calls_per_reply(&self) -> f64 {
        self.per_reply(self.calls.values().sum())
    }
}

//! Why nothing could be recorded. The binary says what to try.

use std::io;
use std::path::Path;

use dyno_sys::Pid;
use dyno_sys::bpf::BpfError;

/// A profile that was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such process, or thread.
    #[error("process {pid} does not exist")]
    NoProcess {
        /// Its number.
        pid: Pid,
    },
    /// It has ended, and its parent has not waited for it yet (a zombie).
    #[error("process {pid} is a zombie: it has ended")]
    Zombie {
        /// Its number.
        pid: Pid,
    },
    /// There is no such CPU, or it is switched off.
    #[error("CPU {cpu} is not there: this machine has CPU {online}")]
    NoCpu {
        /// Its number.
        cpu: usize,
        /// Those that are there, as 0-3.
        online: String,
    },
    /// It is the profiler.
    #[error("process {pid} is this profiler itself")]
    Own {
        /// Its number.
        pid: Pid,
    },
    /// The kernel does not let this user watch it.
    #[error("the kernel refuses to sample {what}")]
    Refused {
        /// `process 12`, `the machine`.
        what: String,
        /// kernel.perf_event_paranoid, where it can be read.
        paranoid: Option<i32>,
        /// What it answered.
        source: io::Error,
    },
    /// The machine has no such counter.
    #[error("this machine has no {event} event")]
    NoEvent {
        /// Which.
        event: &'static str,
        /// What it answered.
        source: io::Error,
    },
    /// Events are descriptors, and there are not enough.
    #[error("{threads} threads on {cpus} CPUs need more descriptors than this process may have")]
    Descriptors {
        /// Threads of the target.
        threads: usize,
        /// CPUs.
        cpus: usize,
        /// What it answered.
        source: io::Error,
    },
    /// Rings are locked memory, and there is not enough.
    #[error("cannot map a ring of {bytes} bytes for samples")]
    Ring {
        /// The smallest that was tried.
        bytes: usize,
        /// What it answered.
        source: io::Error,
    },
    /// The target ended while it was experimented with.
    #[error("process {pid} ended after {after_s:.1} s")]
    Ended {
        /// Its number.
        pid: Pid,
        /// How long it was watched.
        after_s: f64,
    },
    /// The target began another program: its code is not where it was.
    #[error("process {pid} began another program after {after_s:.1} s")]
    Replaced {
        /// Its number.
        pid: Pid,
        /// How long it was watched.
        after_s: f64,
    },
    /// The kernel does not let this user put the causal probe in place: it needs root, or CAP_BPF and CAP_PERFMON.
    #[error("the kernel refuses the causal probe")]
    ProbeRefused {
        /// What it said.
        source: BpfError,
    },
    /// The kernel does not publish its types (BTF), or is older than what is asked of it (Linux 5.17).
    #[error("this kernel cannot take the causal probe")]
    ProbeUnable {
        /// What it said.
        source: BpfError,
    },
    /// The kernel takes so few samples that no pause can follow them.
    #[error(
        "the kernel takes at most {limit_hz} samples a second (kernel.perf_event_max_sample_rate): too few to experiment with"
    )]
    TooSeldom {
        /// kernel.perf_event_max_sample_rate.
        limit_hz: u64,
    },
    /// Uprobes cannot be set on every instruction.
    #[error("the kernel takes no probe at {place}")]
    NoProbe {
        /// File and offset.
        place: String,
        /// What it said.
        source: BpfError,
    },
    /// A client on this machine, or a sibling, that takes part.
    #[error("process {pid}, which takes part, ended after {after_s:.1} s")]
    ParticipantEnded {
        /// Its number.
        pid: Pid,
        /// How long it was watched.
        after_s: f64,
    },
    /// What was to be counted as progress cannot be.
    #[error("cannot count {asked} as progress: {reason}")]
    NoProgress {
        /// What was asked.
        asked: String,
        /// Why.
        reason: String,
    },
    /// A file whose waits were to be made shorter is not there for the target.
    #[error("process {pid} cannot see the file {path}")]
    NoFile {
        /// The target.
        pid: Pid,
        /// The path.
        path: String,
        /// What the kernel answered.
        source: io::Error,
    },
    /// Anything else.
    #[error("cannot {operation}")]
    Perf {
        /// What was tried.
        operation: &'static str,
        /// What the kernel answered.
        source: io::Error,
    },
}

/// How strict the kernel is with perf events, where it says so.
pub fn paranoid() -> Option<i32> {
    let path = Path::new("/proc/sys/kernel/perf_event_paranoid");
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

//! Why nothing could be recorded. The binary says what to try.

use std::io;
use std::path::Path;

use dyno_sys::Pid;

/// A profile that was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such process, or thread.
    #[error("process {pid} does not exist")]
    NoProcess {
        /// Its number.
        pid: Pid,
    },
    /// It has ended and waits only to be waited for.
    #[error("process {pid} is a zombie: it has ended")]
    Zombie {
        /// Its number.
        pid: Pid,
    },
    /// It is the profiler.
    #[error("process {pid} is this profiler itself")]
    Own {
        /// Its number.
        pid: Pid,
    },
    /// The kernel lets this user not watch it.
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

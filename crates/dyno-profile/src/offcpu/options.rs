//! How waits are watched, and why there is no profile of them.

use std::io;
use std::time::Duration;

use dyno_sys::Pid;
use dyno_sys::bpf::BpfError;

/// Spans kept of a timeline: at 24 bytes in memory and some 90 in the record these are 20 MB, more than a picture shows.
pub const SPANS_MAX: usize = 200_000;

/// Shorter waits are summed per thread and not kept by stack: one is about what a switch costs by itself.
pub const MIN_DEFAULT: Duration = Duration::from_micros(1);

/// What a record names as its event when BPF watched; perf's records have another name.
pub const SWITCHES_BY_BPF: &str = "sched_switch";

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No process has that number.
    #[error("there is no process {pid}")]
    Gone {
        /// The number.
        pid: Pid,
    },
    /// It has ended, and its parent has not waited for it yet (a zombie).
    #[error("process {pid} has ended; only its entry is left (a zombie)")]
    Zombie {
        /// The number.
        pid: Pid,
    },
    /// A profiler that waits for its own waits.
    #[error("process {pid} is this very profiler")]
    Itself {
        /// The number.
        pid: Pid,
    },
    /// A single thread, or the whole machine: neither can be watched this way.
    #[error("only a process can be watched off the CPU, with all its threads and children")]
    NoProcess,
    /// The kernel does not let us.
    #[error("cannot watch the scheduler")]
    Refused {
        /// What it said.
        source: BpfError,
    },
    /// The kernel does not publish its types (BTF), or is older than what is asked of it.
    #[error("this kernel cannot take the probe")]
    Unable {
        /// What it said.
        source: BpfError,
    },
    /// Perf's records of switches are not to be had.
    #[error(transparent)]
    Perf(#[from] Box<crate::error::Error>),
    /// The ring could not be waited for.
    #[error("cannot wait for the probe")]
    Wait(#[source] io::Error),
}

/// Whether each stretch of each thread is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Timeline {
    /// Up to [`SPANS_MAX`] of them.
    Recorded,
    /// Only their sums.
    #[default]
    None,
}

/// Whether system calls are counted and timed, each of them: for the whole machine they become dearer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Calls {
    /// All of the target's.
    Counted,
    /// Only the one that a thread waits in is known.
    #[default]
    Passed,
}

/// By what the scheduler is watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum By {
    /// By BPF, or by perf's records where that is refused.
    #[default]
    Any,
    /// By perf's records of switches: no wakers, no objects, no timeline, and no root where
    /// kernel.perf_event_paranoid is 1 or less.
    Perf,
}

/// How to watch.
#[derive(Debug, Clone)]
pub struct Options {
    /// For how long; without it until the target ends or watching is stopped.
    pub duration: Option<Duration>,
    /// Shorter waits are not kept by stack.
    pub min: Duration,
    /// Whether the timeline is recorded.
    pub timeline: Timeline,
    /// By what.
    pub by: By,
    /// Whether system calls are counted.
    pub calls: Calls,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            duration: None,
            min: MIN_DEFAULT,
            timeline: Timeline::None,
            by: By::Any,
            calls: Calls::Passed,
        }
    }
}

/// What the kernel said, as what it means.
pub(super) fn refused(source: BpfError) -> Error {
    if source.is_permission() { Error::Refused { source } } else { Error::Unable { source } }
}

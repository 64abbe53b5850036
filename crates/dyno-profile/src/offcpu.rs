//! Off the CPU: who waits, for what, how long, and who ends the wait. Processes in, the record of a profile out.
//!
//! The binary and diagnosis call `record`. The kernel adds up (`dyno_sys::bpf::offcpu`), `watch` listens while it does,
//! `fold` puts names to what came out, `classify` says what each wait was for. When this ends, in whatever way, nothing
//! of it is left in the kernel.

mod classify;
mod code;
mod fold;
mod kallsyms;
mod objects;
mod watch;

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_measure::profile::Profile;
use dyno_sys::Pid;
use dyno_sys::bpf::BpfError;

pub use classify::class;
pub use code::{AddressKind, Addresses, Reached, Unwound, UserCode, UserFrame};

/// Spans kept of a timeline: at 24 bytes in memory and some 90 in the record these are 20 MB, more than a picture shows.
pub const SPANS_MAX: usize = 200_000;

/// Shorter waits are summed per thread and not kept by stack: one is about what a switch costs by itself.
pub const MIN_DEFAULT: Duration = Duration::from_micros(1);

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No process has that number.
    #[error("there is no process {pid}")]
    Gone {
        /// The number.
        pid: Pid,
    },
    /// It ended, and nobody waited for it.
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
    /// The kernel does not let us.
    #[error("cannot watch the scheduler")]
    Refused {
        /// What it said.
        source: BpfError,
    },
    /// The kernel does not tell its types, or is older than what is asked of it.
    #[error("this kernel cannot take the probe")]
    Unable {
        /// What it said.
        source: BpfError,
    },
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

/// How to watch.
#[derive(Debug, Clone)]
pub struct Options {
    /// For how long; until the target ends, or somebody says stop, where none is given.
    pub duration: Option<Duration>,
    /// Shorter waits are not kept by stack.
    pub min: Duration,
    /// Whether the timeline is recorded.
    pub timeline: Timeline,
    /// The command line, for the record.
    pub command: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options { duration: None, min: MIN_DEFAULT, timeline: Timeline::None, command: Vec::new() }
    }
}

/// What is watched: a process with its threads and descendants, those that it starts meanwhile included.
#[derive(Default)]
pub struct Target<'t> {
    /// The process.
    pub pid: Pid,
    /// Called once when everything that happens is seen: lets a held child go.
    pub started: Option<&'t mut dyn FnMut()>,
}

impl Target<'_> {
    /// A process that runs already.
    pub fn process(pid: Pid) -> Target<'static> {
        Target { pid, started: None }
    }
}

impl<'t> Target<'t> {
    /// A process that waits to be let go.
    pub fn held(pid: Pid, started: &'t mut dyn FnMut()) -> Target<'t> {
        Target { pid, started: Some(started) }
    }
}

/// Watches until the time is up, the target has ended, or `stop` is set; then tells what was seen.
///
/// Needs CAP_BPF and CAP_PERFMON (or root) and a kernel with its types (Linux 5.17 with BTF).
///
/// # Errors
/// When the target is not there, or the kernel refuses.
pub fn record(target: Target<'_>, options: &Options, stop: &AtomicBool) -> Result<Profile, Error> {
    record_with(target, options, &mut Addresses::new(), stop)
}

/// The same, with a reader of user code of the caller's choice.
///
/// # Errors
/// As [`record`].
pub fn record_with(
    target: Target<'_>,
    options: &Options,
    code: &mut dyn UserCode,
    stop: &AtomicBool,
) -> Result<Profile, Error> {
    let about = watch::About::of(target.pid)?;
    let seen = watch::watch(target, options, code, stop)?;
    Ok(fold::profile(about, options, seen))
}

fn refused(source: BpfError) -> Error {
    if source.is_permission() { Error::Refused { source } } else { Error::Unable { source } }
}

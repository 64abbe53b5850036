//! Off the CPU: who waits, for what, how long, and who ends the wait. Processes in, the record of a profile out.
//!
//! The binary and diagnosis call `record`. The kernel adds up (`dyno_sys::bpf::offcpu`), `watch` listens while it does,
//! `fold` puts names to what came out, `classify` says what each wait was for. When this ends, in whatever way, nothing
//! of it is left in the kernel.

mod classify;
mod code;
mod fold;
mod objects;
mod watch;

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_measure::profile::Profile;
use dyno_sys::Pid;
use dyno_sys::bpf::BpfError;

pub use classify::class;

use crate::Target;

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
    /// A thread alone, or everybody: neither is watched this way.
    #[error("only a process can be watched off the CPU, with all its threads and children")]
    NoProcess,
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
}

impl Default for Options {
    fn default() -> Options {
        Options { duration: None, min: MIN_DEFAULT, timeline: Timeline::None }
    }
}

/// The probe is in place and counts; nothing was told yet.
pub struct Recorder {
    about: watch::About,
    options: Options,
    watch: watch::Watch,
}

impl Recorder {
    /// Puts the probe in place. A held child may be let go after this: all that it does will be seen.
    ///
    /// Needs CAP_BPF and CAP_PERFMON (or root) and a kernel with its types (Linux 5.17 with BTF).
    ///
    /// # Errors
    /// When the target is not there or is no process, or the kernel refuses.
    pub fn open(target: &Target, options: &Options) -> Result<Recorder, Error> {
        let (pid, held) = match *target {
            Target::Process(pid) => (pid, watch::Held::No),
            Target::Held(pid) => (pid, watch::Held::Yes),
            Target::Thread(_) | Target::Machine => return Err(Error::NoProcess),
        };
        let about = watch::About::of(pid)?;
        let watch = watch::Watch::begin(pid, held, options)?;
        Ok(Recorder { about, options: options.clone(), watch })
    }

    /// Watches until the time is up, the target has ended, or `stop` is set (seen within a twentieth of a second); then
    /// tells what was seen.
    ///
    /// # Errors
    /// When the kernel does not let us read what it added up.
    pub fn record(mut self, stop: &AtomicBool) -> Result<Profile, Error> {
        let cut_short = self.watch.listen(self.about.pid, self.options.duration, stop)?;
        self.about.look_again();
        let seen = self.watch.end(cut_short)?;
        Ok(fold::profile(self.about, seen))
    }
}

/// Opens and records in one: for targets that run already.
///
/// # Errors
/// As [`Recorder::open`] and [`Recorder::record`].
pub fn record(target: &Target, options: &Options, stop: &AtomicBool) -> Result<Profile, Error> {
    Recorder::open(target, options)?.record(stop)
}

fn refused(source: BpfError) -> Error {
    if source.is_permission() { Error::Refused { source } } else { Error::Unable { source } }
}

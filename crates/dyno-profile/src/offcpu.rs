//! Off the CPU: who waits, for what, how long, and who ends the wait. Processes in, the record of a profile out.
//!
//! The binary and diagnosis call `record`. The kernel adds up (`dyno_sys::bpf::offcpu`), `watch` listens while it does,
//! `fold` puts names to what came out, `classify` says what each wait was for. Where BPF is refused perf's records of
//! switches stand in (`away`, by the recorder of samples), and tell less. When this ends, in whatever way, nothing
//! of it is left in the kernel.

mod code;
mod objects;
mod profile;
mod watch;

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_measure::profile::Profile;
use dyno_sys::Pid;
use dyno_sys::bpf::BpfError;

use crate::sample::recorder::{self as samples, Target};

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
    /// Perf's records of switches are not to be had.
    #[error(transparent)]
    Perf(#[from] Box<crate::Error>),
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
    /// For how long; until the target ends, or somebody says stop, where none is given.
    pub duration: Option<Duration>,
    /// Shorter waits are not kept by stack.
    pub min: Duration,
    /// Whether the timeline is recorded.
    pub timeline: Timeline,
    /// By what.
    pub by: By,
}

impl Default for Options {
    fn default() -> Options {
        Options { duration: None, min: MIN_DEFAULT, timeline: Timeline::None, by: By::Any }
    }
}

/// Everything is in place; nothing was told yet.
pub struct Recorder(Means);

enum Means {
    Bpf {
        about: watch::About,
        duration: Option<Duration>,
        watch: Box<watch::Watch>,
    },
    /// And why not by BPF.
    Perf(Box<samples::Recorder>, Option<Error>),
}

impl Recorder {
    /// Puts the probe in place. A held child may be let go after this: all that it does will be seen.
    ///
    /// BPF needs CAP_BPF and CAP_PERFMON (or root) and a kernel with its types (Linux 5.17 with BTF); perf's records need
    /// CAP_PERFMON, or one's own process and kernel.perf_event_paranoid 1 or less.
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
        if options.by == By::Perf {
            return Ok(Recorder(Means::Perf(by_perf(target, options)?, None)));
        }
        match watch::Watch::begin(pid, held, options) {
            Ok(watch) => {
                let (duration, watch) = (options.duration, Box::new(watch));
                Ok(Recorder(Means::Bpf { about, duration, watch }))
            }
            // Perf's own refusal would only say the same once more.
            Err(error @ (Error::Refused { .. } | Error::Unable { .. })) => match by_perf(target, options) {
                Ok(recorder) => Ok(Recorder(Means::Perf(recorder, Some(error)))),
                Err(_) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Watches until the time is up, the target has ended, or `stop` is set (seen within a twentieth of a second); then
    /// tells what was seen.
    ///
    /// # Errors
    /// When the kernel does not let us read what it added up.
    pub fn record(self, stop: &AtomicBool) -> Result<Profile, Error> {
        match self.0 {
            Means::Bpf { mut about, duration, mut watch } => {
                let cut_short = watch.listen(about.pid, duration, stop)?;
                about.look_again();
                let seen = watch.end(cut_short)?;
                Ok(profile::profile(about, seen))
            }
            Means::Perf(recorder, why) => {
                let mut profile = recorder.record(stop).map_err(Box::new)?;
                profile.warnings.insert(0, less(why.as_ref()));
                Ok(profile)
            }
        }
    }
}

fn by_perf(target: &Target, options: &Options) -> Result<Box<samples::Recorder>, Error> {
    let asked = samples::Options {
        event: samples::Event::Switches,
        duration: options.duration,
        min: options.min,
        ..samples::Options::default()
    };
    Ok(Box::new(samples::Recorder::open(target, &asked).map_err(Box::new)?))
}

/// What is missing from a profile that perf's records made.
fn less(why: Option<&Error>) -> String {
    let why = match why {
        None => "as asked".to_owned(),
        Some(Error::Refused { .. }) => {
            "BPF is refused here: it needs root, or CAP_BPF and CAP_PERFMON".to_owned()
        }
        Some(error) => format!("BPF is not to be had here ({error})"),
    };
    format!(
        "by perf's records of switches, {why}: without who ended a wait, what it was about, system calls and the timeline; \
         the time from a wake-up until the thread runs counts as waiting"
    )
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

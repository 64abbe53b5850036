//! Watches waits by BPF, or by perf's records of switches where BPF is refused.
//!
//! The binary and diagnosis call [`record`], or [`Recorder`] where a program is to be started in between.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_record::profile::Profile;

use dyno_sys::priority::First;

use super::options::{By, Error, Options};
use super::profile::profile;
use super::seen::About;
use super::watch::{Held, Watch};
use crate::sample::options::{self as samples, Target};
use crate::sample::recorder as sampled;

/// Everything is in place; nothing is recorded yet.
pub struct Recorder(Means);

enum Means {
    Bpf {
        about: About,
        duration: Option<Duration>,
        watch: Box<Watch>,
    },
    /// And why not by BPF.
    Perf(Box<sampled::Recorder>, Option<Error>),
}

impl Recorder {
    /// Puts the probe in place. A held child may be released after this: all that it does will be seen.
    ///
    /// BPF needs CAP_BPF and CAP_PERFMON (or root) and a kernel with its types (Linux 5.17 with BTF); perf's records need
    /// CAP_PERFMON, or one's own process and kernel.perf_event_paranoid 1 or less.
    ///
    /// # Errors
    /// When the target is not there or is no process, or the kernel refuses.
    pub fn open(target: &Target, options: &Options) -> Result<Recorder, Error> {
        let held = if matches!(target, Target::Held(_)) { Held::Yes } else { Held::No };
        let pids = target.processes();
        let about = About::of(pids)?;
        if options.by == By::Perf {
            return Ok(Recorder(Means::Perf(by_perf(target, options)?, None)));
        }
        let _first = First::in_line();
        match Watch::begin(pids, held, options) {
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

    /// Watches until the time is up, the target has ended, or `stop` is set (seen within a twentieth of a second); the
    /// record is of all that was seen by then.
    ///
    /// # Errors
    /// When the kernel does not let us read what it added up.
    pub fn record(self, stop: &AtomicBool) -> Result<Profile, Error> {
        match self.0 {
            Means::Bpf { mut about, duration, mut watch } => {
                // Among thousands of threads that want a CPU this one would be late by minutes.
                let _first = First::in_line();
                let cut_short = watch.listen(&about.pids(), duration, stop)?;
                about.look_again();
                let seen = watch.end(cut_short)?;
                Ok(profile(about, seen))
            }
            Means::Perf(recorder, why) => {
                let mut profile = recorder.record(stop).map_err(Box::new)?;
                profile.warnings.insert(0, less(why.as_ref()));
                Ok(profile)
            }
        }
    }
}

fn by_perf(target: &Target, options: &Options) -> Result<Box<sampled::Recorder>, Error> {
    let asked = samples::Options {
        event: samples::Event::Switches,
        duration: options.duration,
        min: options.min,
        ..samples::Options::default()
    };
    Ok(Box::new(sampled::Recorder::open(target, &asked).map_err(Box::new)?))
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

//! `dyno profile`: watches a process, a thread, the machine or a command, writes the profile, and prints where the time
//! went.
//!
//! The library samples; starting a command and writing are `recording`'s.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use dyno_profile::{Recorder, Target};

use super::recording::{Files, of_command, of_processes, watching, while_command};
use super::stop;
use crate::cli;
use dyno_lab::Failure;
use dyno_lab::look::refused::not_profiled;
use dyno_report::page::flame::Look;

/// Runs the verb.
pub(crate) fn run(args: &cli::Profile) -> Result<ExitCode, Failure> {
    let files = Files::of("profile", args.output.as_ref(), args.format)?;
    let open = |target| Recorder::open(&target, &args.options()).map_err(|error| not_profiled(&error));
    let record_until =
        |recorder: Recorder, stop: &AtomicBool| recorder.record(stop).map_err(|error| not_profiled(&error));
    let record = |recorder: Recorder| recorder.record(&stop::STOP).map_err(|error| not_profiled(&error));
    let profile = if args.command.is_empty() {
        stop::listen()?;
        let target = target(args);
        let live = watching(&target, args.time);
        let profile = open(target).and_then(record);
        drop(live);
        profile?
    } else if !args.pid.is_empty() || args.tid.is_some() || args.all {
        while_command(&args.command, || open(target(args)), record_until)?
    } else {
        of_command(&args.command, |pid| open(Target::Held(pid)), record)?
    };
    files.write(profile, args.requests, Look { order: args.sort.order(), ..Look::default() })
}

/// What runs already.
fn target(args: &cli::Profile) -> Target {
    match (of_processes(args.pid_alone, &args.pid), args.tid) {
        (Some(processes), _) => processes,
        (None, Some(tid)) => Target::Thread(tid),
        (None, None) => {
            args.cpus.as_ref().map_or(Target::Machine, |cpus| Target::Cpus(cpus.iter().collect()))
        }
    }
}

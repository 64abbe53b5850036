//! `dyno offcpu`: watches what a process, or a command, waits for, writes the profile, and prints a summary.
//!
//! The library watches; starting a command and writing are `recording`'s.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use dyno_lab::Failure;
use dyno_profile::Target;
use dyno_profile::offcpu::Recorder;

use super::recording::{Files, of_command, of_processes, watching, while_command};
use super::stop;
use crate::cli;
use dyno_lab::look::refused::not_watched;
use dyno_report::page::flame::Look;

/// Runs the verb.
pub(crate) fn run(args: &cli::OffCpu) -> Result<ExitCode, Failure> {
    let files = Files::of("offcpu", args.output.as_ref(), args.format)?;
    let open = |target| Recorder::open(&target, &args.options()).map_err(|error| not_watched(&error));
    let record_until =
        |recorder: Recorder, stop: &AtomicBool| recorder.record(stop).map_err(|error| not_watched(&error));
    let record = |recorder: Recorder| record_until(recorder, &stop::STOP);
    let profile = match of_processes(args.pid_alone, &args.pid) {
        None => of_command(&args.command, |pid| open(Target::Held(pid)), record)?,
        Some(target) if args.command.is_empty() => {
            stop::listen()?;
            let live = watching(&target, args.time);
            let profile = open(target).and_then(record);
            drop(live);
            profile?
        }
        Some(target) => while_command(&args.command, || open(target), record_until)?,
    };
    files.write(profile, args.requests, Look::default())
}

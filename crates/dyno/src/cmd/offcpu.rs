//! `dyno offcpu`: watches what a process, or a command, waits for, writes the profile, and prints a summary.
//!
//! The library watches; starting a command and writing are `recording`'s.

use std::process::ExitCode;

use dyno_lab::Failure;
use dyno_profile::Target;
use dyno_profile::offcpu::Recorder;

use super::recording::{Files, of_command, say_how_it_ends};
use super::stop;
use crate::cli;
use dyno_lab::look::refused::not_watched;
use dyno_report::page::flame::Look;

/// Runs the verb.
pub(crate) fn run(args: &cli::OffCpu) -> Result<ExitCode, Failure> {
    let files = Files::of("offcpu", args.output.as_ref(), args.format)?;
    let open = |target| Recorder::open(&target, &args.options()).map_err(|error| not_watched(&error));
    let record = |recorder: Recorder| recorder.record(&stop::STOP).map_err(|error| not_watched(&error));
    let profile = if args.command.is_empty() {
        let pid = args.pid.or(args.pid_alone).expect("the parser asks for a process or a command");
        stop::listen()?;
        let recorder = open(Target::Process(pid))?;
        say_how_it_ends(args.time);
        record(recorder)?
    } else {
        of_command(&args.command, |pid| open(Target::Held(pid)), record)?
    };
    files.write(profile, args.requests, Look::default())
}

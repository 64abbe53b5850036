//! `dyno profile`: watches a process, a thread, the machine or a command, writes the profile, and prints where the time
//! went.
//!
//! The library samples; starting a command and writing are `recording`'s; here errors get their likely cause.

use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;

use dyno_profile::{Error, Recorder, Target};
use dyno_sys::Pid;

use super::failure::Failure;
use super::recording::{Files, of_command, say_how_it_ends};
use super::stop;
use crate::cli;
use crate::meter::chain;
use dyno_report::text;

/// Runs the verb.
pub(crate) fn run(args: &cli::Profile) -> Result<ExitCode, Failure> {
    let files = Files::of("profile", args.output.as_ref(), args.format)?;
    let open = |target| Recorder::open(&target, &args.options()).map_err(|error| failure(&error));
    let record = |recorder: Recorder| recorder.record(&stop::STOP).map_err(|error| failure(&error));
    let profile = if args.command.is_empty() {
        stop::listen()?;
        let recorder = open(target(args))?;
        say_how_it_ends(args.time);
        record(recorder)?
    } else {
        of_command(&args.command, |pid| open(Target::Held(pid)), record)?
    };
    files.write(profile, args.requests, text::profile)
}

/// What runs already.
fn target(args: &cli::Profile) -> Target {
    match (args.pid.or(args.pid_alone), args.tid) {
        (Some(pid), _) => Target::Process(pid),
        (None, Some(tid)) => Target::Thread(tid),
        (None, None) => Target::Machine,
    }
}

/// Why nothing was recorded, in three lines.
pub(crate) fn failure(error: &Error) -> Failure {
    let failure = Failure::error(chain(error));
    match error {
        Error::NoProcess { .. } | Error::Ended { .. } => {
            failure.likely("it has ended, or it is another number").try_this("ps -e")
        }
        Error::Zombie { pid } => failure
            .likely("its parent has not waited for it; nothing runs in it any more")
            .try_this(format!("ps -o pid,ppid,stat,comm -p {pid}")),
        Error::Own { .. } => {
            failure.likely("a shell's $$ became dyno, by exec").try_this("dyno profile -- COMMAND")
        }
        Error::Refused { what, paranoid, .. } => refused(failure, what, *paranoid),
        Error::NoEvent { .. } => {
            failure.likely("a virtual machine shows no hardware counters").try_this("-e cpu-clock")
        }
        Error::Descriptors { .. } => failure
            .likely("an event is a descriptor, and every thread needs one per CPU")
            .try_this("ulimit -Hn 1048576, or: dyno profile -t TID"),
        Error::Ring { .. } => failure
            .likely("this user may not lock more memory (kernel.perf_event_mlock_kb, ulimit -l)")
            .try_this("sudo sysctl kernel.perf_event_mlock_kb=4096"),
        Error::Perf { .. }
        | Error::Replaced { .. }
        | Error::ProbeRefused { .. }
        | Error::ProbeUnable { .. }
        | Error::NoProgress { .. }
        | Error::NoProbe { .. }
        | Error::ParticipantEnded { .. }
        | Error::NoFile { .. } => failure
            .likely("a kernel without perf events, or a sandbox that forbids them (seccomp, a container)")
            .try_this("ls /proc/sys/kernel/perf_event_paranoid"),
    }
}

fn refused(failure: Failure, what: &str, paranoid: Option<i32>) -> Failure {
    let level = paranoid.unwrap_or(-1);
    let number = what.strip_prefix("process ").or_else(|| what.strip_prefix("thread "));
    let pid = number.and_then(|pid| pid.parse::<Pid>().ok());
    let foreign = pid.and_then(owner_of).is_some_and(|owner| owner != super::user_id());
    if foreign {
        return failure.likely("it belongs to another user").try_this("sudo dyno profile …, or as its user");
    }
    if what == "the machine" {
        let likely =
            format!("kernel.perf_event_paranoid is {level} here; the whole machine needs 0, or root");
        return failure.likely(likely).try_this("sudo dyno profile -a");
    }
    if level > 2 {
        let likely =
            format!("kernel.perf_event_paranoid is {level} here; one's own processes need 2, or root");
        return failure.likely(likely).try_this("sudo sysctl kernel.perf_event_paranoid=2");
    }
    failure
        .likely("it may not be traced: it changed its user, or a sandbox forbids it")
        .try_this("sudo dyno profile …")
}

fn owner_of(pid: Pid) -> Option<u32> {
    std::fs::metadata(format!("/proc/{pid}")).ok().map(|folder| folder.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_at(what: &str, paranoid: i32) -> String {
        let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        failure(&Error::Refused { what: what.to_owned(), paranoid: Some(paranoid), source }).lines()
    }

    #[test]
    fn a_refusal_names_the_setting_and_the_command_that_helps() {
        let own = refused_at(&format!("process {}", std::process::id()), 3);
        assert!(own.contains("perf_event_paranoid is 3 here") && own.contains("sysctl"), "{own}");
        let machine = refused_at("the machine", 2);
        assert!(machine.contains("needs 0, or root"), "{machine}");
    }

    #[test]
    fn every_error_has_three_lines() {
        let source = || std::io::Error::from_raw_os_error(1);
        let errors = [
            Error::NoProcess { pid: 1 },
            Error::Zombie { pid: 1 },
            Error::Own { pid: 1 },
            Error::NoEvent { event: "cycles", source: source() },
            Error::Descriptors { threads: 1, cpus: 2, source: source() },
            Error::Ring { bytes: 1, source: source() },
            Error::Perf { operation: "open a perf event", source: source() },
        ];
        for error in errors {
            assert_eq!(failure(&error).lines().lines().count(), 3, "{error}");
        }
    }
}

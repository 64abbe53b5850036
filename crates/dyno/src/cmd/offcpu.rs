//! `dyno offcpu`: watches what a process, or a command, waits for, writes the profile, and prints a summary.
//!
//! The library watches; starting a command and writing are `recording`'s; here errors get their likely cause.

use std::process::ExitCode;

use dyno_profile::Target;
use dyno_profile::offcpu::{Error, Recorder};
use dyno_sys::bpf::BpfError;

use super::failure::Failure;
use super::recording::{Files, of_command, say_how_it_ends};
use super::stop;
use crate::cli;
use crate::meter::chain;
use dyno_report::text;

/// Runs the verb.
pub(crate) fn run(args: &cli::OffCpu) -> Result<ExitCode, Failure> {
    let files = Files::of("offcpu", args.output.as_ref(), args.format)?;
    let open = |target| Recorder::open(&target, &args.options()).map_err(|error| failure(&error));
    let record = |recorder: Recorder| recorder.record(&stop::STOP).map_err(|error| failure(&error));
    let profile = if args.command.is_empty() {
        let pid = args.pid.or(args.pid_alone).expect("the parser asks for a process or a command");
        stop::listen()?;
        let recorder = open(Target::Process(pid))?;
        say_how_it_ends(args.time);
        record(recorder)?
    } else {
        of_command(&args.command, |pid| open(Target::Held(pid)), record)?
    };
    files.write(profile, args.requests, text::offcpu)
}

/// Why nothing was recorded, in three lines.
fn failure(error: &Error) -> Failure {
    let failure = Failure::error(chain(error));
    match error {
        Error::Gone { .. } => failure.likely("it has ended, or it is another number").try_this("ps -e"),
        Error::Zombie { pid } => failure
            .likely("its parent has not waited for it; nothing runs in it any more")
            .try_this(format!("ps -o pid,ppid,stat,comm -p {pid}")),
        Error::Itself { .. } => {
            failure.likely("a shell's $$ became dyno, by exec").try_this("dyno offcpu -- COMMAND")
        }
        Error::NoProcess => {
            failure.likely("the target is a thread, or the machine").try_this("dyno offcpu PID")
        }
        Error::Refused { .. } => refused(),
        Error::Unable { source: BpfError::Namespace, .. } => failure.in_a_container(),
        Error::Unable { .. } => failure
            .likely("the kernel is older than 5.17, or was built without BTF (CONFIG_DEBUG_INFO_BTF)")
            .try_this("ls -l /sys/kernel/btf/vmlinux; uname -r"),
        Error::Perf(error) => by_perf(error),
        Error::Wait(_) => failure.likely("descriptors or kernel memory are short").try_this("ulimit -a"),
    }
}

/// Records of switches are the kernel's side: they need more than samples of user code.
fn by_perf(error: &dyno_profile::Error) -> Failure {
    let dyno_profile::Error::Refused { paranoid, .. } = error else { return super::profile::failure(error) };
    let level = paranoid.unwrap_or(-1);
    if level < 2 || super::is_root() {
        return super::profile::failure(error);
    }
    Failure::error(chain(error))
        .likely(format!("kernel.perf_event_paranoid is {level} here; records of switches need 1, or root"))
        .try_this("sudo dyno offcpu …")
}

/// The chain of causes ends in the verifier's words, which help nobody who lacks a right.
fn refused() -> Failure {
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let failure = Failure::error("cannot watch the scheduler: the kernel refuses BPF");
    if super::is_root() && lockdown.contains("[confidentiality]") {
        let likely = "the kernel is locked down (confidentiality): nobody may read it";
        return failure.likely(likely).try_this("cat /sys/kernel/security/lockdown");
    }
    if super::is_root() {
        let likely =
            "root without CAP_BPF, CAP_PERFMON or CAP_SYS_ADMIN: a container or a sandbox keeps them";
        return failure.likely(likely).try_this("grep CapEff /proc/self/status");
    }
    failure
        .likely("it needs root, or CAP_BPF and CAP_PERFMON; or, for your own, kernel.perf_event_paranoid 1")
        .try_this("sudo dyno offcpu …")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_three_lines() {
        let refused = || dyno_sys::bpf::BpfError::Missing { what: "map", name: "ring".to_owned() };
        let errors = [
            Error::Gone { pid: 1 },
            Error::Zombie { pid: 1 },
            Error::Itself { pid: 1 },
            Error::NoProcess,
            Error::Refused { source: refused() },
            Error::Unable { source: refused() },
            Error::Wait(std::io::Error::from_raw_os_error(9)),
        ];
        for error in errors {
            assert_eq!(failure(&error).lines().lines().count(), 3, "{error}");
        }
    }
}

//! `dyno offcpu`: watches what a process, or a command, waits for, writes the profile, and prints a summary.
//!
//! The library watches; here a command is started and ended, Ctrl-C is heard, and errors get their likely cause. Starting
//! and signals are those of `dyno profile`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use dyno_measure::profile::{Profile, Requests};
use dyno_profile::Target;
use dyno_profile::offcpu::{Error, Recorder};
use dyno_sys::child::Exit;
use dyno_sys::keeper::{Keeper, KeeperError};

use super::failure::{Failure, exit};
use super::profile::{STOP, not_started, order, say_how_it_ends, stop_on_signals};
use crate::cli::{self, Format};
use crate::meter::chain;
use crate::print;
use crate::report::flame;

/// Runs the verb.
pub(crate) fn run(args: &cli::OffCpu) -> Result<ExitCode, Failure> {
    let places = places(args);
    let to_stdout = places.iter().any(|(place, _)| place.as_os_str() == "-");
    if !to_stdout {
        places.iter().try_for_each(|(place, _)| super::can_be_written(place))?;
    }
    let mut profile = if args.command.is_empty() { attach(args)? } else { launch(args)? };
    profile.machine.root = super::is_root();
    let counted = |count| Requests { count: count as u64, source: "command line".to_owned() };
    profile.requests = args.requests.map(counted);
    for (place, format) in &places {
        let bytes = flame::write(&profile, *format, flame::Look::default());
        if to_stdout {
            super::print_bytes(&bytes)?;
        } else {
            super::write_file(place, &bytes, None)?;
        }
    }
    if !to_stdout {
        let text = print::offcpu(&profile, super::terminal_width());
        let names: Vec<String> = places.iter().map(|(place, _)| place.display().to_string()).collect();
        super::print(&format!("{text}\nprofile   {}\n", names.join("      ")))?;
    }
    let interrupted = STOP.load(Ordering::Relaxed);
    Ok(if interrupted { ExitCode::from(exit::INTERRUPTED) } else { exit::DONE })
}

/// The files to write, and how: the record and its page where nothing is said.
fn places(args: &cli::OffCpu) -> Vec<(PathBuf, Format)> {
    let named = |path: &PathBuf| args.format.or_else(|| Format::of_name(path.to_str()?));
    match (&args.output, args.format) {
        (Some(path), _) => vec![(path.clone(), named(path).unwrap_or(Format::Json))],
        (None, Some(format)) => vec![(PathBuf::from(format!("offcpu.{}", format.ending())), format)],
        (None, None) => vec![("offcpu.json".into(), Format::Json), ("offcpu.html".into(), Format::Html)],
    }
}

/// Watches what runs already.
fn attach(args: &cli::OffCpu) -> Result<Profile, Failure> {
    let pid = args.pid.or(args.pid_alone).expect("the parser asks for a process or a command");
    stop_on_signals()?;
    let recorder = Recorder::open(&Target::Process(pid), &args.options()).map_err(|error| failure(&error))?;
    say_how_it_ends(args.time);
    recorder.record(&STOP).map_err(|error| failure(&error))
}

/// Starts a command, held until the probe is in place; it ends with the profile, in whatever way that ends.
fn launch(args: &cli::OffCpu) -> Result<Profile, Failure> {
    // Before any other thread: it forks.
    let keeper = Keeper::start().map_err(|error| Failure::error("cannot start a command").because(&error))?;
    stop_on_signals()?;
    let not_started = |error: KeeperError| not_started(&error, &args.command);
    let held = keeper.hold(&order(&args.command)?).map_err(not_started)?;
    let target = Target::Held(held.pid());
    let recorder = Recorder::open(&target, &args.options()).map_err(|error| failure(&error))?;
    keeper.release(held).map_err(not_started)?;
    let profile = recorder.record(&STOP).map_err(|error| failure(&error))?;
    for (_, exit) in keeper.exits() {
        if exit != Exit::Code(0) {
            super::say(&format!("the command ended with {exit}\n"));
        }
    }
    Ok(profile)
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
        Error::Unable { .. } => failure
            .likely("the kernel is older than 5.17, or was built without BTF (CONFIG_DEBUG_INFO_BTF)")
            .try_this("ls -l /sys/kernel/btf/vmlinux; uname -r"),
        Error::Wait(_) => failure.likely("descriptors or kernel memory are short").try_this("ulimit -a"),
    }
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
    failure.likely("it needs root, or CAP_BPF and CAP_PERFMON").try_this("sudo dyno offcpu …")
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

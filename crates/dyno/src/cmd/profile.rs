//! `dyno profile`: watches a process, a thread, the machine or a command, writes the profile, and prints where the time
//! went.
//!
//! The library samples; here a command is started and ended, Ctrl-C is heard, and errors get their likely cause.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_measure::profile::Profile;
use dyno_profile::{Error, Recorder, Target};
use dyno_sys::Pid;
use dyno_sys::child::Exit;
use dyno_sys::clock::mono_ns;
use dyno_sys::keeper::{Keeper, KeeperError, Launch};
use dyno_sys::signal::{Signal, SignalFd};
use dyno_sys::socket;

use super::failure::{Failure, exit};
use crate::cli::{self, Format};
use crate::meter::chain;
use crate::print;
use crate::report::flame;

/// How long the watcher of signals sleeps at most; it has nothing to do but wait.
const WATCH_NS: u64 = 3_600_000_000_000;

/// Set by the first Ctrl-C: sampling ends and the profile is written.
pub(super) static STOP: AtomicBool = AtomicBool::new(false);

/// Runs the verb.
pub(crate) fn run(args: &cli::Profile) -> Result<ExitCode, Failure> {
    let places = places(args);
    let to_stdout = places.iter().any(|(place, _)| place.as_os_str() == "-");
    if !to_stdout {
        places.iter().try_for_each(|(place, _)| super::can_be_written(place))?;
    }
    let mut profile = if args.command.is_empty() { attach(args)? } else { launch(args)? };
    profile.command = super::command_line();
    profile.machine.root = super::is_root();
    for (place, format) in &places {
        let bytes = flame::write(&profile, *format, flame::Look::default());
        if to_stdout {
            super::print_bytes(&bytes)?;
        } else {
            super::write_file(place, &bytes, None)?;
        }
    }
    if !to_stdout {
        let table = print::profile(&profile, super::terminal_width());
        let names: Vec<String> = places.iter().map(|(place, _)| place.display().to_string()).collect();
        super::print(&format!("{table}\nprofile   {}\n", names.join("      ")))?;
    }
    let interrupted = STOP.load(Ordering::Relaxed);
    Ok(if interrupted { ExitCode::from(exit::INTERRUPTED) } else { exit::DONE })
}

/// The files to write, and how: the record and its page where nothing is said.
fn places(args: &cli::Profile) -> Vec<(PathBuf, Format)> {
    let named = |path: &PathBuf| args.format.or_else(|| Format::of_name(path.to_str()?));
    match (&args.output, args.format) {
        (Some(path), _) => vec![(path.clone(), named(path).unwrap_or(Format::Json))],
        (None, Some(format)) => vec![(PathBuf::from(format!("profile.{}", format.ending())), format)],
        (None, None) => vec![("profile.json".into(), Format::Json), ("profile.html".into(), Format::Html)],
    }
}

/// Watches what runs already.
fn attach(args: &cli::Profile) -> Result<Profile, Failure> {
    let target = match (args.pid.or(args.pid_alone), args.tid) {
        (Some(pid), _) => Target::Process(pid),
        (None, Some(tid)) => Target::Thread(tid),
        (None, None) => Target::Machine,
    };
    stop_on_signals()?;
    let recorder = Recorder::open(&target, &args.options()).map_err(|error| failure(&error))?;
    say_how_it_ends(args.time);
    recorder.record(&STOP).map_err(|error| failure(&error))
}

/// Starts a command, held until everything is open; it ends with the profile, in whatever way that ends.
fn launch(args: &cli::Profile) -> Result<Profile, Failure> {
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

pub(super) fn order(command: &[OsString]) -> Result<Launch, Failure> {
    let output = std::io::stderr().as_fd().try_clone_to_owned();
    let output = output.map_err(|error| Failure::error("cannot hand on standard error").because(&error))?;
    Ok(Launch {
        argv: command.to_vec(),
        env: Vec::new(),
        cwd: None,
        cpus: None,
        output,
        inherit: Vec::new(),
        user: None,
    })
}

pub(super) fn not_started(error: &KeeperError, command: &[OsString]) -> Failure {
    let program = command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    Failure::error(chain(error))
        .likely("there is no such program in PATH, or it may not be run")
        .try_this(format!("command -v {program}"))
}

pub(super) fn say_how_it_ends(time: Option<Duration>) {
    if time.is_none() && std::io::stderr().is_terminal() {
        super::say("watching; Ctrl-C ends it and writes the profile\n");
    }
}

/// The first SIGINT or SIGTERM ends the sampling, the second the process.
pub(super) fn stop_on_signals() -> Result<(), Failure> {
    let cannot = |error| Failure::error("cannot receive signals").because(&error);
    // Before any other thread, so that all of them leave the signals to the descriptor.
    let signals = SignalFd::new(&[Signal::Int, Signal::Term]).map_err(cannot)?;
    let watch = move || loop {
        // An error of the wait comes again at once or never; the signal is looked for in either case.
        let _ = socket::wait_readable(&signals, mono_ns() + WATCH_NS);
        if signals.next().is_some() && STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(exit::INTERRUPTED));
        }
    };
    // It ends with the process.
    std::thread::Builder::new().name("dyno-signals".to_owned()).spawn(watch).map_err(cannot)?;
    Ok(())
}

/// Why nothing was recorded, in three lines.
fn failure(error: &Error) -> Failure {
    let failure = Failure::error(chain(error));
    match error {
        Error::NoProcess { .. } => failure.likely("it has ended, or it is another number").try_this("ps -e"),
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
        Error::Perf { .. } => failure
            .likely("a kernel without perf events, or a sandbox that forbids them (seccomp, a container)")
            .try_this("ls /proc/sys/kernel/perf_event_paranoid"),
    }
}

fn refused(failure: Failure, what: &str, paranoid: Option<i32>) -> Failure {
    let level = paranoid.unwrap_or(-1);
    let pid = what.strip_prefix("process ").and_then(|pid| pid.parse::<Pid>().ok());
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

//! What `dyno profile` and `dyno offcpu` share: a command that is started to be watched, and the files of a profile.
//! `dyno causal` starts its command the same way.

use crate::out;
use crate::this_run;
use dyno_host::machine::machine;
use dyno_lab::file;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use dyno_lab::Failure;
use dyno_lab::launch::command::{not_started, order};
use dyno_profile::Target;
use dyno_record::profile::{Profile, Requests};
use dyno_sys::Pid;
use dyno_sys::child::Exit;
use dyno_sys::keeper::{Keeper, KeeperError};
use dyno_sys::{clock, proc};

use super::stop;
use crate::live::Live;
use dyno_report::page::flame;
use dyno_report::page::flame::Format;
use dyno_report::text;

/// The files that a profile goes to, and how each is written.
pub(super) struct Files(Vec<(PathBuf, Format)>);

impl Files {
    /// The file that was named, or the verb's own. A record has its page beside it, unless it was asked for by `--format`.
    /// Whether they can be written is known before anything is watched.
    pub(super) fn of(verb: &str, output: Option<&PathBuf>, format: Option<Format>) -> Result<Files, Failure> {
        let own = || PathBuf::from(format!("{verb}.{}", format.unwrap_or(Format::Json).ending()));
        let path = output.cloned().unwrap_or_else(own);
        let named = || Format::of_name(path.to_str()?);
        let files = Files(match format.or_else(named) {
            Some(other) if format.is_some() || other != Format::Json => vec![(path, other)],
            _ => with_page(path),
        });
        if !files.is_stdout() {
            files.0.iter().try_for_each(|(path, _)| file::can_be_written(path))?;
        }
        Ok(files)
    }

    fn is_stdout(&self) -> bool {
        self.0.iter().any(|(path, _)| path.as_os_str() == "-")
    }

    /// Writes the profile with what only the verb knows, and prints its table unless the profile itself goes there.
    pub(super) fn write(
        &self,
        mut profile: Profile,
        requests: Option<usize>,
        look: flame::Look,
    ) -> Result<ExitCode, Failure> {
        profile.command = this_run::command_line();
        profile.machine = machine();
        let counted = |count| Requests { count: count as u64, source: "the command line".to_owned() };
        profile.requests = requests.map(counted);
        for (path, format) in &self.0 {
            let bytes = flame::write(&profile, *format, look);
            if self.is_stdout() {
                out::print_bytes(&bytes)?;
            } else {
                file::write_file(path, &bytes, None)?;
            }
        }
        if !self.is_stdout() {
            let table = text::profile(&profile, out::terminal_width(), look);
            let names: Vec<String> = self.0.iter().map(|(path, _)| path.display().to_string()).collect();
            out::print(&format!("{table}\nprofile   {}\n", names.join("      ")))?;
        }
        Ok(stop::exit_code())
    }
}

/// A record and its page; beside standard output, a device or a pipe there is no place for one.
fn with_page(record: PathBuf) -> Vec<(PathBuf, Format)> {
    let is_file = record.as_os_str() != "-" && record.metadata().map_or(true, |file| file.is_file());
    let page = is_file.then(|| (record.with_extension(Format::Html.ending()), Format::Html));
    std::iter::once((record, Format::Json)).chain(page).collect()
}

/// One process or several, each once, as the command line names them; none where it names none.
pub(super) fn of_processes(alone: Option<Pid>, listed: &[Pid]) -> Option<Target> {
    let mut pids: Vec<Pid> = Vec::new();
    for pid in alone.iter().chain(listed).map(|pid| whole(*pid)) {
        if !pids.contains(&pid) {
            pids.push(pid);
        }
    }
    match pids[..] {
        [] => None,
        [pid] => Some(Target::Process(pid)),
        _ => Some(Target::Processes(pids)),
    }
}

/// The process of a number that people take from top or htop, where it may be a thread's.
pub(super) fn whole(named: Pid) -> Pid {
    let pid = proc::process_of(named).unwrap_or(named);
    if pid != named {
        out::say(&format!("warning: {named} is a thread of process {pid}, which is watched as a whole\n"));
    }
    pid
}

/// Starts a command, held until `open` has everything in place; it ends with the profile, in whatever way that ends.
pub(super) fn of_command<R>(
    command: &[OsString],
    open: impl FnOnce(Pid) -> Result<R, Failure>,
    record: impl FnOnce(R) -> Result<Profile, Failure>,
) -> Result<Profile, Failure> {
    // Before any other thread: it forks.
    let keeper = Keeper::start().map_err(|error| Failure::error("cannot start a command").because(&error))?;
    stop::listen()?;
    let not_started = |error: KeeperError| not_started(&error, command);
    let held = keeper.hold(&order(command)?).map_err(not_started)?;
    let recorder = open(held.pid())?;
    let pid = keeper.release(held).map_err(not_started)?;
    let profile = record(recorder)?;
    say_how_it_ended(&keeper, pid);
    Ok(profile)
}

/// The keeper tells of an end a moment after it.
const TOLD_WITHIN_NS: u64 = 1_000_000_000;

/// How a command ended that did not end well.
fn say_how_it_ended(keeper: &Keeper, pid: Pid) {
    let until_ns = clock::mono_ns() + TOLD_WITHIN_NS;
    let mut exits = keeper.exits();
    while exits.is_empty() && proc::has_ended(pid) && clock::mono_ns() < until_ns {
        clock::sleep_ns(LOOK_NS);
        exits = keeper.exits();
    }
    for (_, exit) in exits.into_iter().filter(|(_, exit)| *exit != Exit::Code(0)) {
        out::say(&format!("warning: the command ended with {exit}\n"));
    }
}

/// Between looks at whether a command has ended.
const LOOK_NS: u64 = 10_000_000;

/// Watches something else for as long as a command runs, which ends with the profile in any case.
pub(super) fn while_command<R>(
    command: &[OsString],
    open: impl FnOnce() -> Result<R, Failure>,
    record: impl FnOnce(R, &AtomicBool) -> Result<Profile, Failure>,
) -> Result<Profile, Failure> {
    // Before any other thread: it forks.
    let keeper = Keeper::start().map_err(|error| Failure::error("cannot start a command").because(&error))?;
    stop::listen()?;
    let not_started = |error: KeeperError| not_started(&error, command);
    let held = keeper.hold(&order(command)?).map_err(not_started)?;
    let recorder = open()?;
    let pid = keeper.release(held).map_err(not_started)?;
    let (over, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut profile = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) && !stop::STOP.load(Relaxed) && !proc::has_ended(pid) {
                clock::sleep_ns(LOOK_NS);
            }
            ended.store(!stop::STOP.load(Relaxed), Relaxed);
            over.store(true, Relaxed);
        });
        let profile = record(recorder, &over);
        over.store(true, Relaxed);
        profile
    })?;
    // The command's end is the one that was asked for.
    let is_stopped = matches!(profile.cut_short.as_deref(), Some("interrupted" | "stopped by the user"));
    if ended.load(Relaxed) && is_stopped {
        profile.cut_short = None;
        say_how_it_ended(&keeper, pid);
    }
    Ok(profile)
}

/// Says what is watched, how long still, and how to end what has no end of its own.
pub(super) fn watching(target: &Target, time: Option<Duration>) -> Live {
    let what = match target {
        Target::Process(pid) | Target::Held(pid) => format!("watching {}", called(*pid)),
        Target::Processes(pids) => format!("watching {} processes", pids.len()),
        Target::Thread(tid) => format!("watching thread {}", called(*tid)),
        Target::Machine | Target::Cpus(_) => "watching the machine".to_owned(),
    };
    let until = if time.is_none() { "; Ctrl-C ends it and writes the profile" } else { "" };
    Live::start(&format!("{what}{until}"), time, "putting names to what was seen", &stop::STOP)
}

/// A process by number and name, as far as it says one.
pub(super) fn called(pid: Pid) -> String {
    let name = proc::name(pid).map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{pid}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: only where no file is named has a record its page.
    #[test]
    fn a_record_has_its_page_beside_it_and_what_else_was_asked_for_has_none() {
        let folder = std::env::temp_dir();
        let names = |output: Option<&str>, format| {
            let output = output.map(|name| if name == "-" { name.into() } else { folder.join(name) });
            let files = Files::of("profile", output.as_ref(), format).ok()?;
            let name = |(path, _): &(PathBuf, Format)| Some(path.file_name()?.to_str()?.to_owned());
            files.0.iter().map(name).collect::<Option<Vec<_>>>().map(|names| names.join(" "))
        };
        let told = |output, format| names(Some(output), format).unwrap_or_default();
        assert_eq!(names(None, None).as_deref(), Some("profile.json profile.html"));
        assert_eq!(told("x.json", None), "x.json x.html");
        assert_eq!(told("x", None), "x x.html");
        assert_eq!(told("x.json", Some(Format::Json)), "x.json");
        assert_eq!(told("x.svg", None), "x.svg");
        assert_eq!(told("-", None), "-");
        assert_eq!(told("/dev/null", None), "null");
    }

    #[test]
    fn a_process_that_is_named_twice_is_watched_once() {
        assert_eq!(of_processes(None, &[]), None);
        assert_eq!(of_processes(Some(4), &[]), Some(Target::Process(4)));
        assert_eq!(of_processes(None, &[4, 4]), Some(Target::Process(4)));
        assert_eq!(of_processes(None, &[5, 4, 5]), Some(Target::Processes(vec![5, 4])));
    }
}

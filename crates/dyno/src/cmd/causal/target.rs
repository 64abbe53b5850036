//! What is experimented with: a process, or a command that is started for it; and the load beside it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use dyno_sys::Pid;
use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::keeper::Keeper;
use dyno_sys::{child, proc};

use super::experiment::Point;
use super::load::{self, Load};
use crate::cli;
use crate::cmd::failure::Failure;
use crate::cmd::{recording, stop};

/// A program that takes longer from fork to exec was not found.
const EXEC_NS_MAX: u64 = 5_000_000_000;
/// A command maps its libraries and comes to its work.
const COMMAND_SETTLE: Duration = Duration::from_millis(300);

/// A target and what was started for it; both end with this value.
pub(super) struct Opened {
    /// The process.
    pub(super) pid: Pid,
    load: Option<Load>,
    keeper: Keeper,
}

/// Opens the target; the load runs then.
pub(super) fn open(args: &cli::Causal) -> Result<Opened, Failure> {
    // Before any other thread: it forks.
    let keeper =
        Keeper::start().map_err(|error| Failure::error("cannot start the keeper").because(&error))?;
    stop::listen()?;
    let pid = match args.pid.or(args.pid_alone) {
        Some(pid) => alive(pid)?,
        None => started(&keeper, &args.command)?,
    };
    let load = args.load.as_ref().map(|words| Load::start(&keeper, words)).transpose()?;
    Ok(Opened { pid, load, keeper })
}

/// A process that can be experimented with: there, alive, and somebody else.
fn alive(pid: Pid) -> Result<Pid, Failure> {
    if pid == child::this() {
        return Err(Failure::usage(format!("process {pid} is this dyno itself"))
            .likely("a shell's $$ became dyno, by exec")
            .try_this("dyno causal -- COMMAND"));
    }
    match proc::state(pid) {
        Err(_) => Err(Failure::error(format!("there is no process {pid}"))
            .likely("it has ended, or it is another number")
            .try_this("ps -e")),
        Ok(_) if proc::has_ended(pid) => {
            Err(Failure::error(format!("process {pid} has ended: it is a zombie"))
                .likely("its parent has not waited for it; nothing runs in it any more")
                .try_this(format!("ps -o pid,ppid,stat,comm -p {pid}")))
        }
        Ok(_) => Ok(pid),
    }
}

/// Starts the command and waits until it is itself.
fn started(keeper: &Keeper, command: &[OsString]) -> Result<Pid, Failure> {
    let held = keeper.hold(&recording::order(command)?);
    let pid = held.and_then(|held| keeper.release(held));
    let pid = pid.map_err(|error| recording::not_started(&error, command))?;
    become_itself(pid, command)?;
    Ok(pid)
}

/// Until exec a child has this program's code, and nothing in it could be found.
fn become_itself(pid: Pid, command: &[OsString]) -> Result<(), Failure> {
    let file = |pid: Pid| std::fs::read_link(format!("/proc/{pid}/exe"));
    let own = file(child::this()).unwrap_or_default();
    let until = mono_ns() + EXEC_NS_MAX;
    while file(pid).is_ok_and(|exe: PathBuf| exe == own) && mono_ns() < until {
        sleep_ns(1_000_000);
    }
    sleep_ns(u64::try_from(COMMAND_SETTLE.as_nanos()).unwrap_or(0));
    if proc::has_ended(pid) {
        return Err(Failure::error(format!(
            "{} ended before it could be watched",
            recording::program(command)
        ))
        .likely("it has too little to do: an experiment takes seconds")
        .try_this("a command that works for a minute, or a process number"));
    }
    Ok(())
}

impl Opened {
    /// The process of the load, which takes part.
    pub(super) fn load_pid(&self) -> Option<Pid> {
        self.load.as_ref().map(|load| load.pid)
    }

    /// What is counted.
    pub(super) fn point(&self, args: &cli::Causal) -> Point {
        match (&args.progress, self.load_pid()) {
            (Some(named), _) => Point::Named(named.clone()),
            (None, Some(load)) => Point::Replies(load),
            (None, None) => Point::None,
        }
    }

    /// A failure that is the load's is told as such.
    pub(super) fn explained(&self, failure: Failure) -> Failure {
        let gone = self.load.as_ref().filter(|load| proc::tree(load.pid).is_empty());
        gone.map_or(failure, |load| load.trouble("ended before the experiments did"))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(load) = &self.load {
            load::stop(&self.keeper, load);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn who_cannot_be_experimented_with_is_told_in_three_lines() {
        for pid in [child::this(), i32::MAX - 1] {
            let lines = alive(pid).unwrap_err().lines();
            assert_eq!(lines.lines().count(), 3, "{lines}");
        }
        assert_eq!(alive(1), Ok(1));
    }
}

//! What is watched: a process that is there, or a command that is started for it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use dyno_sys::Pid;
use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::keeper::Keeper;
use dyno_sys::{child, proc};

use super::command::{not_started, order, program};
use crate::failure::Failure;

/// A program that takes longer from fork to exec was not found.
const EXEC_NS_MAX: u64 = 5_000_000_000;
/// A command maps its libraries and comes to its work.
const COMMAND_SETTLE: Duration = Duration::from_millis(300);

/// A process that can be experimented with: there, alive, and somebody else.
///
/// # Errors
/// When it is not.
pub fn alive(pid: Pid) -> Result<Pid, Failure> {
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
///
/// # Errors
/// When it cannot be started, or ends at once.
pub fn started(keeper: &Keeper, command: &[OsString]) -> Result<Pid, Failure> {
    let held = keeper.hold(&order(command)?);
    let pid = held.and_then(|held| keeper.release(held));
    let pid = pid.map_err(|error| not_started(&error, command))?;
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
        return Err(Failure::error(format!("{} ended before it could be watched", program(command)))
            .likely("it has too little to do: an experiment takes seconds")
            .try_this("a command that works for a minute, or a process number"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn who_cannot_be_experimented_with_is_refused_in_three_lines() {
        for pid in [child::this(), i32::MAX - 1] {
            let lines = alive(pid).unwrap_err().lines();
            assert_eq!(lines.lines().count(), 3, "{lines}");
        }
        assert_eq!(alive(1), Ok(1));
    }
}

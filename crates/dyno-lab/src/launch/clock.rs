//! The clock of a server's CPU: one task-clock event that all its threads and children inherit; else its sleeping state.
//!
//! The process clock of another running process advances only at ticks and switches (off by up to 3 ms on a 25 ms block),
//! so without the event the clocks are read only while every thread of the server sleeps. They hold the time of threads that
//! have ended, and not that of processes: where one ends, a [`Family`] tells.

use std::io;

use dyno_sys::clock::{mono_ns, process_cpu_ns, sleep_ns};
use dyno_sys::perf::TaskClock;
use dyno_sys::{Pid, proc};

use super::exits::processes;

/// How long a drained server may take to fall asleep before it counts as spinning.
const ASLEEP_NS_MAX: u64 = 100_000_000;
/// Between two looks at its threads.
const LOOK_NS: u64 = 200_000;

/// Where a server's CPU time is read from.
#[derive(Debug)]
pub(crate) enum Clock {
    /// A perf software event on the child, opened before exec.
    Task(TaskClock),
    /// The clocks of sleeping processes below this one.
    Asleep(Pid),
}

/// The processes of a server whose clocks are read while they sleep. Who ends takes its time along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Family {
    processes: Vec<Pid>,
    /// Time of children that ended and were waited for, in ticks.
    ended_ticks: u64,
}

impl Clock {
    /// The event where the kernel allows it, else the other way.
    pub(crate) fn open(pid: Pid, warden: Pid) -> Self {
        TaskClock::open(pid).map_or(Self::Asleep(warden), Self::Task)
    }

    /// Its name in the record.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Task(_) => "task-clock event",
            Self::Asleep(_) => "scheduler, asleep",
        }
    }

    /// Whether it may be read while the server runs: then settling is left out.
    pub(crate) fn reads_running(&self) -> bool {
        matches!(self, Self::Task(_))
    }

    /// CPU time so far, ns.
    pub(crate) fn read_ns(&self) -> io::Result<u64> {
        match self {
            Self::Task(event) => event.read_ns(),
            Self::Asleep(warden) => asleep_ns(*warden),
        }
    }

    /// Whose clocks are read; none where the event counts whoever there was.
    pub(crate) fn family(&self) -> Option<Family> {
        match self {
            Self::Task(_) => None,
            Self::Asleep(warden) => Some(Family::of(processes(*warden))),
        }
    }
}

impl Family {
    fn of(processes: Vec<Pid>) -> Self {
        let ended = |pid: &Pid| proc::stat(*pid).map(|stat| stat.children_ticks).unwrap_or_default();
        let ended_ticks = processes.iter().map(ended).map(|(user, system)| user + system).sum();
        Self { processes, ended_ticks }
    }

    /// Whether a process that was there before has ended, or had children that did: their time is in no clock any more.
    pub(crate) fn has_lost_since(&self, before: &Self) -> bool {
        let is_gone = |pid: &Pid| !self.processes.contains(pid);
        before.processes.iter().any(is_gone) || self.ended_ticks > before.ended_ticks
    }
}

fn asleep_ns(warden: Pid) -> io::Result<u64> {
    let deadline = mono_ns() + ASLEEP_NS_MAX;
    while !processes(warden).into_iter().all(proc::all_sleeping) {
        if mono_ns() > deadline {
            return Err(io::Error::other(
                "the server does not fall asleep, and no task-clock event can be opened",
            ));
        }
        sleep_ns(LOOK_NS);
    }
    spent_ns(&processes(warden))
}

/// What these processes took, with their threads that ended.
fn spent_ns(processes: &[Pid]) -> io::Result<u64> {
    processes.iter().map(|pid| process_cpu_ns(*pid)).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_sys::clock::thread_cpu_ns;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// Planted fault: the time of living threads alone (`proc::run_ns`), which falls when one ends.
    #[test]
    fn a_thread_that_ended_has_not_taken_its_time_along() {
        let me = [std::process::id().cast_signed()];
        let burnt = std::thread::spawn(|| {
            while thread_cpu_ns() < 50_000_000 {
                std::hint::black_box(0);
            }
            std::fs::read_link("/proc/thread-self").unwrap()
        });
        // Who is joined may be in the list for a moment more.
        let row = std::path::Path::new("/proc").join(burnt.join().unwrap());
        while row.exists() {
            std::thread::yield_now();
        }
        // Other tests' threads burn meanwhile: beyond all that live stands what ended ones took.
        let living_ns = proc::run_ns(me[0]).unwrap();
        let all_ns = spent_ns(&me).unwrap();
        assert!(all_ns >= living_ns + 45_000_000, "{all_ns} of {living_ns}");
    }

    /// Planted fault: who is there at the end is all that is asked; then a child's CPU is lost without a word.
    #[test]
    fn a_child_that_ended_is_missed() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 1000 & echo up; read x; kill $!; wait $!; echo gone; read x"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = shell.id().cast_signed();
        let mut said = std::io::BufReader::new(shell.stdout.take().unwrap());
        let mut line = || std::io::BufRead::read_line(&mut said, &mut String::new()).unwrap();
        let family = || Family::of(proc::tree(pid));
        line();
        let (before, same) = (family(), family());
        assert!(before.processes.len() == 2 && !same.has_lost_since(&before), "{before:?} {same:?}");
        shell.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        line();
        let after = family();
        assert!(after.has_lost_since(&before) && !before.has_lost_since(&after), "{before:?} {after:?}");
        let ticks = Family { ended_ticks: 1, ..before.clone() };
        assert!(ticks.has_lost_since(&before), "a child that came and went between two looks");
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}

//! The clock of a server's CPU: one task-clock event that all its threads and children inherit; else its sleeping state.
//!
//! The process clock of another running process advances only at ticks and switches (off by up to 3 ms on a 25 ms block),
//! so without the event the clocks are read only while every thread of the server sleeps.

use std::io;

use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::perf::TaskClock;
use dyno_sys::{Pid, proc};

/// How long a drained server may take to fall asleep before it counts as spinning.
const ASLEEP_NS_MAX: u64 = 100_000_000;
/// Between two looks at its threads.
const LOOK_NS: u64 = 200_000;

/// Where a server's CPU time is read from.
#[derive(Debug)]
pub(crate) enum Clock {
    /// A perf software event on the child, opened before exec.
    Task(TaskClock),
    /// The scheduler's figures of a sleeping process.
    Asleep(Pid),
}

impl Clock {
    /// The event where the kernel allows it, else the other way.
    pub(crate) fn open(pid: Pid) -> Self {
        TaskClock::open(pid).map_or(Self::Asleep(pid), Self::Task)
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
            Self::Asleep(pid) => asleep_ns(*pid),
        }
    }
}

fn asleep_ns(root: Pid) -> io::Result<u64> {
    let deadline = mono_ns() + ASLEEP_NS_MAX;
    while !proc::tree(root).into_iter().all(proc::all_sleeping) {
        if mono_ns() > deadline {
            return Err(io::Error::other(
                "the server does not fall asleep, and no task-clock event can be opened",
            ));
        }
        sleep_ns(LOOK_NS);
    }
    proc::tree(root).into_iter().map(proc::run_ns).sum()
}

//! What a watch has seen, and what the target was like: from here the record is written.

use std::collections::{BTreeMap, HashMap};

use dyno_record::profile::Process;
use dyno_sys::bpf::offcpu::{Call, Counts, Span, Thread, Wait, Waker};
use dyno_sys::clock::real_coarse_s;
use dyno_sys::{Pid, Tid, child, proc};

use super::code::Code;
use super::objects::{Mappings, Objects};
use super::options::Error;
use super::waiting::{name, state};
use crate::stack::raw::Raw;
use crate::unwind::Cut;

/// The target as it was at the start.
pub(super) struct About {
    /// Its processes as they were named; never none.
    pub(super) processes: Vec<Process>,
    pub(super) started_unix_s: u64,
}

impl About {
    /// Refuses what cannot be watched.
    pub(super) fn of(pids: &[Pid]) -> Result<About, Error> {
        let processes: Vec<Process> =
            pids.iter().map(|pid| About::process(*pid)).collect::<Result<_, _>>()?;
        if processes.is_empty() {
            Err(Error::NoProcess)
        } else {
            Ok(About { processes, started_unix_s: real_coarse_s() })
        }
    }

    fn process(pid: Pid) -> Result<Process, Error> {
        if pid == child::this() {
            return Err(Error::Itself { pid });
        }
        match state(pid, pid) {
            None => Err(Error::Gone { pid }),
            Some(_) if proc::has_ended(pid) => Err(Error::Zombie { pid }),
            Some(_) => Ok(Process {
                pid: pid.cast_unsigned(),
                name: name(pid, pid),
                argv: proc::command_line(pid).unwrap_or_default(),
            }),
        }
    }

    pub(super) fn pids(&self) -> Vec<Pid> {
        self.processes.iter().map(|process| process.pid.cast_signed()).collect()
    }

    /// A held child runs its own program by now.
    pub(super) fn look_again(&mut self) {
        for process in &mut self.processes {
            let pid = process.pid.cast_signed();
            let (name, argv) = (name(pid, pid), proc::command_line(pid).unwrap_or_default());
            if !argv.is_empty() {
                (process.name, process.argv) = (name, argv);
            }
        }
    }
}

/// Everything that was seen.
pub(super) struct Seen {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) cpu_ns: u64,
    /// Time in the probe's programs; none where the kernel does not count it.
    pub(super) hook_ns: Option<u64>,
    pub(super) cut_short: Option<String>,
    /// Where frames lie, and what they are called.
    pub(super) code: Code,
    pub(super) threads: Vec<(Thread, String)>,
    pub(super) waits: Vec<Wait>,
    pub(super) wakers: Vec<Waker>,
    /// Kernel stacks, the leaf first.
    pub(super) kernel: HashMap<i32, Vec<Raw>>,
    /// Kernel functions of threads that waited before the start, by the shape they were given.
    pub(super) seeded: HashMap<u64, Vec<Raw>>,
    /// User frames by shape, the leaf first.
    pub(super) user: HashMap<u64, Vec<Raw>>,
    /// Shapes whose stacks end before their root, and why.
    pub(super) short: HashMap<u64, Cut>,
    pub(super) spans: Vec<Span>,
    pub(super) spans_cut: bool,
    pub(super) calls: Vec<Call>,
    pub(super) counts: Counts,
    pub(super) objects: Objects,
    pub(super) faults: HashMap<Pid, Mappings>,
    /// Threads that were stopped when the watch began.
    pub(super) stopped: usize,
}

/// Threads by number, each once: one that ended and one that lives may share it.
pub(super) fn by_number(threads: &[(Thread, String)]) -> BTreeMap<(Pid, Tid), usize> {
    threads.iter().enumerate().map(|(at, (thread, _))| ((thread.pid, thread.tid), at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_not_watched_nor_one_that_is_not_there() {
        assert!(matches!(About::of(&[child::this()]), Err(Error::Itself { .. })));
        assert!(matches!(About::of(&[Pid::MAX - 1]), Err(Error::Gone { .. })));
    }
}

//! How often an instruction of a file is passed by a thread: a bare counter on a uprobe, without a program behind it.
//!
//! The causal profiler takes a glimpse with it before it puts a program there. Closed, the breakpoint is out of the code at
//! once; where a program hangs on a probe the kernel first waits until nobody runs any program, some ten milliseconds in
//! which a function that is entered a million times a second stands nearly still.

use super::attributes::{Attributes, open};
use crate::errno::checked_size;
use crate::{Pid, Tid, proc};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where the kernel says which type of event a uprobe is (Linux 4.17).
const TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";

/// Counts how often one thread passes an instruction, while it lives.
#[derive(Debug)]
pub struct PassCounter {
    fd: OwnedFd,
}

impl PassCounter {
    /// Counts from now on. The breakpoint is in the address space of the thread's process alone, and its other threads meet
    /// it too.
    ///
    /// # Errors
    /// Without the right to it, without uprobes, or where no breakpoint can be put there.
    pub fn open(tid: Tid, image: &Path, offset: u64) -> io::Result<PassCounter> {
        let kind = fs::read_to_string(TYPE)?;
        let kind = kind.trim().parse().map_err(|_no_number| io::Error::from(io::ErrorKind::InvalidData))?;
        let image = CString::new(image.as_os_str().as_bytes())?;
        let attributes =
            Attributes { kind, config1: image.as_ptr() as u64, config2: offset, ..Attributes::EMPTY };
        // The path is read during the call.
        Ok(PassCounter { fd: open(&attributes, tid, None)? })
    }

    /// How often it was passed so far.
    ///
    /// # Errors
    /// Those of read(2).
    pub fn count(&self) -> io::Result<u64> {
        let mut count = 0_u64;
        let size = size_of::<u64>();
        // SAFETY: `count` is writable for `size` bytes through the call.
        let got = checked_size(unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), size) })?;
        if got == size { Ok(count) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
    }
}

/// Does it before everybody else, where that is allowed: who waits for a CPU meanwhile would leave the breakpoint where it is.
pub fn urgently<T>(work: impl FnOnce() -> T) -> T {
    let set = |policy, sched_priority| {
        let wanted = libc::sched_param { sched_priority };
        // SAFETY: `wanted` lives through the call, which is about the calling thread alone.
        unsafe { libc::sched_setscheduler(0, policy, &raw const wanted) == 0 }
    };
    let is_urgent = set(libc::SCHED_FIFO, 1);
    let answer = work();
    if is_urgent {
        set(libc::SCHED_OTHER, 0);
    }
    answer
}

/// The thread of these processes that has run longest, and by what its time must be multiplied to be that of all: a master that waits
/// for its workers says nothing of them.
pub fn busiest(pids: &[Pid]) -> Option<(Tid, f64)> {
    let ran = |pid: Pid, tid: Tid| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
        Some((tid, proc::parse_run_ns(&text)?))
    };
    let threads = pids.iter().flat_map(|pid| proc::tasks(*pid).into_iter().map(move |tid| (*pid, tid)));
    let all: Vec<(Tid, u64)> = threads.filter_map(|(pid, tid)| ran(pid, tid)).collect();
    let (tid, most) = all.iter().copied().max_by_key(|(_, ns)| *ns)?;
    let sum: u64 = all.iter().map(|(_, ns)| ns).sum();
    Some((tid, sum as f64 / most.max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_thread_of_a_process_is_one_of_its_own() {
        let pid = crate::child::this();
        let (tid, times) = busiest(&[pid]).expect("this process runs");
        assert!(proc::tasks(pid).contains(&tid) && times >= 1.0, "{tid} {times}");
        assert!(busiest(&[Pid::MAX - 1]).is_none() && busiest(&[]).is_none());
    }

    /// A child that has done nothing, and this process, which has. Planted fault: the first one alone is looked at.
    #[test]
    fn of_several_processes_it_is_the_one_that_works() {
        let mut idle = std::process::Command::new("sleep").arg("60").spawn().expect("a program");
        let (own, child) = (crate::child::this(), idle.id().cast_signed());
        let begun = crate::clock::thread_cpu_ns();
        while crate::clock::thread_cpu_ns() - begun < 20_000_000 {}
        let found = busiest(&[child, own]);
        let _ = idle.kill();
        let _ = idle.wait();
        assert!(found.is_some_and(|(tid, _)| tid != child), "{found:?}");
    }
}

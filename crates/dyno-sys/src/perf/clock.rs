//! The software task clock: the CPU time of a process with all its threads and children, exact at any instant (a process
//! clock lags by up to a tick while it runs).
//!
//! Opened by the lab on a child before it execs; the target pays a few instructions per context switch.

use super::attributes::{Attributes, EXCLUDE_HV, EXCLUDE_KERNEL, INHERIT, TYPE_SOFTWARE, open};
use crate::Pid;
use crate::errno::checked_size;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// `PERF_COUNT_SW_TASK_CLOCK` of the kernel's uapi/linux/perf_event.h.
const TASK_CLOCK: u64 = 1;

/// The CPU time of one process, of the threads and children it starts after this was opened, and of theirs.
#[derive(Debug)]
pub struct TaskClock {
    fd: OwnedFd,
}

impl TaskClock {
    /// Starts counting process `pid`, which must have one thread only: open it before exec, on a held child. It counts
    /// user and kernel time alike although the kernel is excluded (checked on Linux 6.18), so that
    /// kernel.perf_event_paranoid 2 lets a plain user in. `EACCES` at 3, `ESRCH` when the process is gone.
    pub fn open(pid: Pid) -> io::Result<TaskClock> {
        let attributes = Attributes {
            kind: TYPE_SOFTWARE,
            config: TASK_CLOCK,
            flags: INHERIT | EXCLUDE_KERNEL | EXCLUDE_HV,
            ..Attributes::EMPTY
        };
        Ok(TaskClock { fd: open(&attributes, pid, None)? })
    }

    /// CPU nanoseconds since it was opened, ended threads and children included. One system call; it interrupts a CPU on
    /// which the target runs.
    pub fn read_ns(&self) -> io::Result<u64> {
        let mut ns = 0_u64;
        let size = size_of::<u64>();
        // SAFETY: `ns` is writable for `size` bytes through the call.
        let got = checked_size(unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut ns).cast(), size) })?;
        // An event that could not be scheduled reads as end of file (perf_event_open(2)).
        if got == size { Ok(ns) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
    }
}

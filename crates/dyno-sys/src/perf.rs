//! Perf events. Today one: the software task clock, the CPU time of a process with all its threads and children, exact
//! at any instant (a process clock lags by up to a tick while it runs).
//!
//! Opened by the lab on a child before it execs; the target pays a few instructions per context switch.

use crate::Pid;
use crate::errno::{checked_long, checked_size};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `PERF_TYPE_SOFTWARE` and `PERF_COUNT_SW_TASK_CLOCK` of the kernel's uapi/linux/perf_event.h.
const TYPE_SOFTWARE: u32 = 1;
const TASK_CLOCK: u64 = 1;
/// Bits of perf_event_attr's flag word: `inherit`, `exclude_kernel`, `exclude_hv`.
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
/// `PERF_FLAG_FD_CLOEXEC`.
const FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// `struct perf_event_attr` as of `PERF_ATTR_SIZE_VER0`: all that a plain counter needs, known to every kernel.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}
const _: () = assert!(size_of::<Attributes>() == 64, "PERF_ATTR_SIZE_VER0 is 64 bytes");

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
            size: size_of::<Attributes>() as u32,
            config: TASK_CLOCK,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: INHERIT | EXCLUDE_KERNEL | EXCLUDE_HV,
            wakeup_events: 0,
            breakpoint_type: 0,
            breakpoint_address: 0,
        };
        let (any_cpu, no_group) = (-1, -1);
        let place = &raw const attributes;
        // SAFETY: `attributes` lives through the call and tells its own size.
        let fd =
            unsafe { libc::syscall(libc::SYS_perf_event_open, place, pid, any_cpu, no_group, FD_CLOEXEC) };
        let fd = checked_long(fd)?;
        // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
        Ok(TaskClock { fd: unsafe { OwnedFd::from_raw_fd(fd as i32) } })
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

//! `struct perf_event_attr` and the call that takes it. Used by the clock, by sampling and, for what is in a
//! sample, by the reader of records; never exported.

use crate::Pid;
use crate::errno::checked_long;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// `PERF_TYPE_HARDWARE` and `PERF_TYPE_SOFTWARE` of the kernel's uapi/linux/perf_event.h.
pub(super) const TYPE_HARDWARE: u32 = 0;
pub(super) const TYPE_SOFTWARE: u32 = 1;

/// Bits of perf_event_attr's flag word, in the header's order.
pub(super) const DISABLED: u64 = 1 << 0;
pub(super) const INHERIT: u64 = 1 << 1;
pub(super) const EXCLUDE_KERNEL: u64 = 1 << 5;
pub(super) const EXCLUDE_HV: u64 = 1 << 6;
pub(super) const EXCLUDE_IDLE: u64 = 1 << 7;
pub(super) const MMAP: u64 = 1 << 8;
pub(super) const COMM: u64 = 1 << 9;
pub(super) const FREQ: u64 = 1 << 10;
pub(super) const INHERIT_STAT: u64 = 1 << 11;
pub(super) const ENABLE_ON_EXEC: u64 = 1 << 12;
pub(super) const TASK: u64 = 1 << 13;
pub(super) const WATERMARK: u64 = 1 << 14;
pub(super) const SAMPLE_ID_ALL: u64 = 1 << 18;
pub(super) const EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
pub(super) const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
pub(super) const MMAP2: u64 = 1 << 23;
pub(super) const COMM_EXEC: u64 = 1 << 24;
pub(super) const USE_CLOCKID: u64 = 1 << 25;
pub(super) const CONTEXT_SWITCH: u64 = 1 << 26;

/// Bits of `sample_type` that are asked for.
pub(super) const SAMPLE_IP: u64 = 1 << 0;
pub(super) const SAMPLE_TID: u64 = 1 << 1;
pub(super) const SAMPLE_TIME: u64 = 1 << 2;
pub(super) const SAMPLE_CALLCHAIN: u64 = 1 << 5;
pub(super) const SAMPLE_CPU: u64 = 1 << 7;
pub(super) const SAMPLE_PERIOD: u64 = 1 << 8;
pub(super) const SAMPLE_REGS_USER: u64 = 1 << 12;
pub(super) const SAMPLE_STACK_USER: u64 = 1 << 13;
pub(super) const SAMPLE_IDENTIFIER: u64 = 1 << 16;

/// `PERF_FLAG_FD_CLOEXEC`.
const FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// `struct perf_event_attr` up to `sample_max_stack` (`PERF_ATTR_SIZE_VER5`, Linux 4.8): nothing younger is needed.
#[repr(C)]
pub(super) struct Attributes {
    pub(super) kind: u32,
    pub(super) size: u32,
    pub(super) config: u64,
    pub(super) sample_period_or_freq: u64,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) flags: u64,
    pub(super) wakeup: u32,
    pub(super) breakpoint_type: u32,
    pub(super) config1: u64,
    pub(super) config2: u64,
    pub(super) branch_sample_type: u64,
    pub(super) sample_regs_user: u64,
    pub(super) sample_stack_user: u32,
    pub(super) clockid: i32,
    pub(super) sample_regs_intr: u64,
    pub(super) aux_watermark: u32,
    pub(super) sample_max_stack: u16,
    pub(super) reserved: u16,
}
const _: () = assert!(size_of::<Attributes>() == 112, "PERF_ATTR_SIZE_VER5 is 112 bytes");

impl Attributes {
    pub(super) const EMPTY: Attributes = Attributes {
        kind: 0,
        size: size_of::<Attributes>() as u32,
        config: 0,
        sample_period_or_freq: 0,
        sample_type: 0,
        read_format: 0,
        flags: 0,
        wakeup: 0,
        breakpoint_type: 0,
        config1: 0,
        config2: 0,
        branch_sample_type: 0,
        sample_regs_user: 0,
        sample_stack_user: 0,
        clockid: 0,
        sample_regs_intr: 0,
        aux_watermark: 0,
        sample_max_stack: 0,
        reserved: 0,
    };
}

/// Opens an event on thread `pid` (-1: on everybody) and one CPU, or on all CPUs.
pub(super) fn open(attributes: &Attributes, pid: Pid, cpu: Option<usize>) -> io::Result<OwnedFd> {
    let (cpu, no_group) = (cpu.map_or(-1, |cpu| cpu as libc::c_int), -1);
    let place = std::ptr::from_ref(attributes);
    // SAFETY: `attributes` lives through the call and tells its own size.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, place, pid, cpu, no_group, FD_CLOEXEC) };
    let fd = checked_long(fd)?;
    // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

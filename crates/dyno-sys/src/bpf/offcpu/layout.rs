//! What bpf/offcpu.h and this side share: the rows of maps and the numbers of states.
//!
//! The probe, its records and its rows use it. Every structure is tied to its twin by a constant assertion on both sides.

use aya::Pod;

use super::word::{self, MARK_WORDS};

/// System calls counted apart; the last row takes the numbers above.
pub const SYSTEM_CALLS: usize = 512;
/// Rows of a histogram of lengths: row `i` holds those below 2^i ns.
pub const LOG2_ROWS: usize = 40;
/// Executable ranges that are kept of a process.
pub const RANGES_MAX: usize = 24;
/// Bytes of user stack that are copied at most.
pub const STACK_BYTES: usize = 16_384;
/// Frames that are walked by frame pointers at most.
pub(super) const FRAME_POINTERS: usize = 64;
/// Stretches of addresses that hold all ranges: a program's own, and its libraries'.
pub(super) const STRETCHES: usize = 2;
/// States of a thread in the kernel's table.
pub(super) const RUNNING: u32 = 1;
pub(super) const RUNNABLE: u32 = 2;
pub(super) const BLOCKED: u32 = 3;
pub(super) const WOKEN: u32 = 4;
/// Ended while the ring was full: its row has its sums, and no time is added any more.
pub(super) const ENDED: u32 = 5;

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawThread {
    pub(super) since_ns: u64,
    pub(super) woken_ns: u64,
    pub(super) entered_ns: u64,
    pub(super) running_ns: u64,
    pub(super) runnable_ns: u64,
    pub(super) waiting_ns: u64,
    pub(super) object: u64,
    pub(super) shape: u64,
    pub(super) waker: u64,
    pub(super) fault: u64,
    pub(super) tgid: u32,
    pub(super) kernel_stack: i32,
    pub(super) system_call: i32,
    pub(super) state: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawWait {
    pub(super) shape: u64,
    pub(super) waker: u64,
    pub(super) object: u64,
    pub(super) tid: u32,
    pub(super) tgid: u32,
    pub(super) kernel_stack: i32,
    pub(super) system_call: i32,
    pub(super) part: u32,
    pub(super) unused: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawSum {
    pub(super) ns: u64,
    pub(super) count: u64,
    pub(super) max_ns: u64,
    pub(super) fault: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawWaker {
    pub(super) shape: u64,
    pub(super) tid: u32,
    pub(super) tgid: u32,
    pub(super) kernel_stack: i32,
    pub(super) unused: u32,
    pub(super) comm: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawCall {
    pub(super) count: u64,
    pub(super) errors: u64,
    pub(super) total_ns: u64,
    pub(super) max_ns: u64,
    pub(super) log2_ns: [u64; LOG2_ROWS],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawCode {
    pub(super) low: [u64; STRETCHES],
    pub(super) bytes: [u64; STRETCHES],
    pub(super) from: [u64; RANGES_MAX],
    pub(super) to: [u64; RANGES_MAX],
}

const _: () = assert!(size_of::<RawThread>() == 96, "struct thread of offcpu.h");
const _: () = assert!(size_of::<RawWait>() == 48, "struct wait_key of offcpu.h");
const _: () = assert!(size_of::<RawSum>() == 32, "struct wait_sum of offcpu.h");
const _: () = assert!(size_of::<RawWaker>() == 40, "struct waker of offcpu.h");
const _: () = assert!(size_of::<RawCall>() == 352, "struct call_sum of offcpu.h");
const _: () = assert!(size_of::<RawCode>() == 416, "struct code of offcpu.h");
const _: () = assert!(word::COUNT * 8 == 128 + 8 * MARK_WORDS, "struct control of offcpu.h");

// SAFETY: numbers only, no padding (the sizes are asserted above): every pattern of bytes is a value.
unsafe impl Pod for RawThread {}
// SAFETY: the same.
unsafe impl Pod for RawWait {}
// SAFETY: the same.
unsafe impl Pod for RawSum {}
// SAFETY: the same.
unsafe impl Pod for RawWaker {}
// SAFETY: the same.
unsafe impl Pod for RawCall {}
// SAFETY: the same.
unsafe impl Pod for RawCode {}

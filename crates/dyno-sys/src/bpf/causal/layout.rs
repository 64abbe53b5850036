//! What bpf/causal.h and this side share: the rows of maps, byte for byte.
//!
//! The probe and its readings use it. Every structure is tied to its twin by a constant assertion on both sides.

use aya::Pod;

use super::word;

/// Pieces of code that a site may have.
pub const RANGES_MAX: usize = 4096;

/// Rows of the table of code.
#[derive(Debug, Clone, Copy)]
pub(super) enum Code {
    /// What is tried.
    Site = 0,
    /// Loops that wait.
    Loops = 1,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawThread {
    pub(super) position_ns: u64,
    pub(super) epoch: u64,
    pub(super) inserted_off_ns: u64,
    pub(super) off_ns: u64,
    pub(super) sampled_ns: u64,
    pub(super) owed_ns: u64,
    pub(super) work: u64,
    pub(super) user_mode: u32,
    pub(super) scheduled: u32,
    pub(super) paused: u32,
    pub(super) on_core: u32,
    pub(super) role: u32,
    pub(super) waits: u32,
    pub(super) begun: u32,
    pub(super) spun: u32,
    pub(super) spun_at_ns: u64,
    pub(super) before_ns: u64,
    pub(super) late_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawPoint {
    pub(super) window: u64,
    pub(super) count: u64,
    pub(super) first_ns: u64,
    pub(super) first_at_ns: u64,
    pub(super) first_behind_ns: u64,
    pub(super) last_ns: u64,
    pub(super) last_at_ns: u64,
    pub(super) last_behind_ns: u64,
    pub(super) since_start_ns: u64,
    pub(super) positions_ns: u64,
    pub(super) behind_ns: u64,
    pub(super) carried: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawRanges {
    pub(super) count: u64,
    pub(super) from: [u64; RANGES_MAX],
    pub(super) to: [u64; RANGES_MAX],
}

const _: () = assert!(size_of::<RawThread>() == 112, "struct thread of causal.h");
const _: () = assert!(size_of::<RawPoint>() == 96, "struct point of causal.h");
const _: () = assert!(size_of::<RawRanges>() == 8 + 16 * RANGES_MAX, "struct ranges of causal.h");
const _: () = assert!(word::COUNT * 8 == 496, "struct control of causal.h");

// SAFETY: numbers only, no padding (the sizes are asserted above): every pattern of bytes is a value.
unsafe impl Pod for RawThread {}
// SAFETY: the same.
unsafe impl Pod for RawPoint {}
// SAFETY: the same.
unsafe impl Pod for RawRanges {}
pub(super) const EMPTY: RawThread = RawThread {
    position_ns: 0,
    epoch: 0,
    inserted_off_ns: 0,
    off_ns: 0,
    sampled_ns: 0,
    owed_ns: 0,
    work: 0,
    user_mode: 0,
    scheduled: 0,
    paused: 0,
    on_core: 0,
    role: 0,
    waits: 0,
    begun: 0,
    spun: 0,
    spun_at_ns: 0,
    before_ns: 0,
    late_ns: 0,
};

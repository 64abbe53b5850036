//! Words of `struct control` in bpf/causal.h, by their places: what the probe says to its programs and reads from them.

pub(super) const ACTIVE: usize = 0;
pub(super) const DEADLINE_NS: usize = 1;
pub(super) const EPOCH: usize = 2;
pub(super) const DELAY_NS: usize = 3;
pub(super) const REACH: usize = 4;
pub(super) const PAUSE_NS_MAX: usize = 5;
pub(super) const WINDOW: usize = 6;
pub(super) const PREEMPT_COUNT_AT: usize = 7;
pub(super) const SYSTEM_CALL: usize = 8;
pub(super) const RETURNS_MIN: usize = 9;
pub(super) const WAIT_KINDS: usize = 10;
pub(super) const WAIT_PERCENT: usize = 11;
pub(super) const WAIT_INODE: usize = 12;
pub(super) const WAIT_DEVICE: usize = 13;
pub(super) const START_NS: usize = 14;
pub(super) const SPIN_NS: usize = 15;
pub(super) const WATCH: usize = 16;
pub(super) const SUBJECT: usize = 17;
pub(super) const PERIOD_NS: usize = 18;
pub(super) const INTERRUPT_NS: usize = 19;
pub(super) const FILE_NS: usize = 20;
pub(super) const OWN_NS: usize = 21;
pub(super) const PLACES: usize = 22;
/// A line of its own.
pub(super) const INSERTED_NS: usize = 24;
/// The first of the counters; seven words lie between.
pub(super) const COUNTERS: usize = 32;
pub(super) const IN_FLIGHT: usize = 59;
pub(super) const IN_FLIGHT_MIN: usize = 60;
pub(super) const COUNT: usize = 62;

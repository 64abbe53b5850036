//! Words of `struct control` in bpf/offcpu.h, by their places: what the probe says to its programs and reads from them.

/// Words with a bit for each process number: it alone rules out most processes that are not watched.
pub(super) const MARK_WORDS: usize = 1_024;

pub(super) const ACTIVE: usize = 0;
pub(super) const START_NS: usize = 1;
pub(super) const MIN_NS: usize = 2;
pub(super) const SPANS: usize = 3;
pub(super) const SWITCHES: usize = 4;
pub(super) const LOST_WAITS: usize = 5;
pub(super) const LOST_SPANS: usize = 6;
pub(super) const LOST_STACKS: usize = 7;
pub(super) const LOST_PROCESSES: usize = 8;
pub(super) const FAULTS: usize = 9;
pub(super) const CALLS: usize = 10;
// 11 to 13: rows in use, which the programs count for themselves.
pub(super) const COARSE: usize = 14;
pub(super) const LOST_THREADS: usize = 15;
/// A bit for each process number, the rest of it by 65,536.
pub(super) const MARKS: usize = 16;
pub(super) const COUNT: usize = MARKS + MARK_WORDS;

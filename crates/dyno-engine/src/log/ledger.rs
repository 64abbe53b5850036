//! What the log's writer tells: how it gets on, and how far it had come if it dies.
//!
//! Shared memory that outlives the writer: it writes, its successor and the supervisor read.

use dyno_sys::clock;
use dyno_sys::shm::Counters;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// A log that takes nothing for this long is stalled: a disk that flushes its cache may need some tenths of a second.
pub(crate) const STALLED_NS: u64 = 1_000_000_000;

const ERRNO: usize = 0;
const WAITING_SINCE: usize = 1;
/// From here on a row for each ring.
const ROWS: usize = 8;
const ROW_WORDS: usize = 8;

/// What keeps the log from taking lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A write was refused with this error number.
    Refused(i32),
    /// Nothing was taken for [`STALLED_NS`].
    Stalled,
}

/// A write of lines that has begun, in a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Begun {
    /// Bytes of it.
    pub(super) length: u64,
    /// How long the file was before it.
    pub(super) start: u64,
    /// The file's number in its file system.
    pub(super) file: u64,
}

/// The shared words. Copies are the same words.
#[derive(Clone, Copy)]
pub(crate) struct Ledger {
    words: Counters,
}

impl Ledger {
    /// For the writer of so many rings.
    pub(crate) fn new(rings: usize) -> io::Result<Ledger> {
        Ok(Ledger { words: Counters::new(ROWS + rings * ROW_WORDS)? })
    }

    /// What is wrong now, if anything is.
    pub(crate) fn trouble(&self, now_ns: u64) -> Option<Trouble> {
        let errno = self.word(ERRNO).load(Ordering::Relaxed);
        let since_ns = self.word(WAITING_SINCE).load(Ordering::Relaxed);
        match i32::try_from(errno) {
            Ok(0) | Err(_) if since_ns > 0 && now_ns.saturating_sub(since_ns) >= STALLED_NS => {
                Some(Trouble::Stalled)
            }
            Ok(0) | Err(_) => None,
            Ok(errno) => Some(Trouble::Refused(errno)),
        }
    }

    /// A write was refused.
    pub(super) fn refused(&self, errno: i32) {
        self.word(ERRNO).store(u64::from(errno.unsigned_abs()), Ordering::Relaxed);
        self.word(WAITING_SINCE).store(0, Ordering::Relaxed);
    }

    /// The log is asked to take something, or waited for: from now on, if not before.
    pub(super) fn waits(&self) {
        if self.word(WAITING_SINCE).load(Ordering::Relaxed) == 0 {
            self.word(WAITING_SINCE).store(clock::mono_ns(), Ordering::Relaxed);
        }
    }

    /// The log has taken something.
    pub(super) fn took(&self) {
        self.word(ERRNO).store(0, Ordering::Relaxed);
        self.word(WAITING_SINCE).store(0, Ordering::Relaxed);
    }

    /// The write of a ring's lines that was not over when this was asked, or when the writer died.
    pub(super) fn begun(&self, ring: usize) -> Option<Begun> {
        let [length, start, file] = self.row(ring).map(|word| word.load(Ordering::Acquire));
        (length > 0).then_some(Begun { length, start, file })
    }

    /// A write begins.
    pub(super) fn begin(&self, ring: usize, begun: Begun) {
        debug_assert!(begun.length > 0, "a write of nothing does not begin");
        let [length, start, file] = self.row(ring);
        length.store(0, Ordering::Release);
        start.store(begun.start, Ordering::Release);
        file.store(begun.file, Ordering::Release);
        // Last: with a length the row is believed.
        length.store(begun.length, Ordering::Release);
    }

    /// The lines of a write were released, or it begins anew.
    pub(super) fn end(&self, ring: usize) {
        self.row(ring)[0].store(0, Ordering::Release);
    }

    fn row(&self, ring: usize) -> [&'static AtomicU64; 3] {
        [0, 1, 2].map(|at| self.word(ROWS + ring * ROW_WORDS + at))
    }

    fn word(&self, at: usize) -> &'static AtomicU64 {
        self.words.get(at)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_log_that_waits_is_stalled_after_a_while_and_not_before() {
        let ledger = Ledger::new(1).unwrap();
        let now_ns = clock::mono_ns();
        assert_eq!(ledger.trouble(now_ns), None);
        ledger.waits();
        assert_eq!(ledger.trouble(now_ns), None);
        assert_eq!(ledger.trouble(clock::mono_ns() + STALLED_NS), Some(Trouble::Stalled));
        ledger.refused(28);
        assert_eq!(ledger.trouble(u64::MAX), Some(Trouble::Refused(28)));
        ledger.took();
        assert_eq!(ledger.trouble(u64::MAX), None);
    }

    #[test]
    fn each_ring_has_a_row_of_its_own() {
        let ledger = Ledger::new(2).unwrap();
        let begun = Begun { length: 7, start: 0, file: 3 };
        ledger.begin(1, begun);
        assert_eq!((ledger.begun(0), ledger.begun(1)), (None, Some(begun)));
        ledger.end(1);
        assert_eq!(ledger.begun(1), None);
    }
}

//! Which window of an experiment is open: visits carry its number, and a number that came twice would add up two windows.
//!
//! The probe asks it before it opens a window for its programs.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The word that says "no window".
pub(super) const NONE: u64 = 0;

/// Numbers of windows: each is used once, in ascending order, one at a time.
#[derive(Debug, Default)]
pub(super) struct Windows {
    open: AtomicU64,
    /// The highest that was ever open.
    last: AtomicU64,
}

impl Windows {
    /// Window `number` is open from here on.
    pub(super) fn open(&self, number: u64) {
        let (open, last) = (self.open.swap(number, Relaxed), self.last.swap(number, Relaxed));
        assert!(open == NONE, "window {number} opens while window {open} counts");
        assert!(
            number > last,
            "window {number} opens after window {last}: its visits would be added to others"
        );
    }

    /// None is open.
    pub(super) fn close(&self) {
        self.open.store(NONE, Relaxed);
    }

    /// A window is read whole: it was open, and is no more.
    pub(super) fn check_closed(&self, number: u64) {
        assert!(self.open.load(Relaxed) != number, "window {number} is read while it counts");
        assert!(number <= self.last.load(Relaxed), "window {number} is read and was never open");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_follow_each_other_and_are_read_when_they_are_closed() {
        let windows = Windows::default();
        for number in [1, 2, 7] {
            windows.open(number);
            windows.close();
            windows.check_closed(number);
        }
    }

    #[test]
    #[should_panic(expected = "opens while window 1 counts")]
    fn a_window_never_opens_in_another() {
        let windows = Windows::default();
        windows.open(1);
        windows.open(2);
    }

    #[test]
    #[should_panic(expected = "its visits would be added to others")]
    fn a_number_is_never_used_twice() {
        let windows = Windows::default();
        windows.open(1);
        windows.close();
        windows.open(1);
    }

    #[test]
    #[should_panic(expected = "is read while it counts")]
    fn a_window_is_never_read_while_it_counts() {
        let windows = Windows::default();
        windows.open(3);
        windows.check_closed(3);
    }
}

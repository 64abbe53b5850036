//! A load that runs while its caller looks at the target.
//!
//! Whoever watches a target under load (`dyno load` itself, a diagnosis, a climb's profile) hands a closure to
//! [`crate::Crew::beside`] or [`crate::run::beside`]. It gets a [`Beside`]: how far the load is, and the answers per
//! second of a piece of time. The load begins when the closure does and lasts no longer: however the closure is left, also
//! by a panic, the threads stop, drain and are joined. Nothing is sent here, and no thread is moved: where they run was
//! given when the crew was opened.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dyno_sys::clock::mono_ns;

use crate::session::LiveCounts;

/// A load that is running.
#[derive(Debug)]
pub struct Beside {
    start_ns: u64,
    counts: Vec<LiveCounts>,
    running: Running,
    stop: AtomicBool,
}

/// How far a running load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Since it was started.
    pub elapsed_ns: u64,
    /// Right answers so far, up to 20 ms old.
    pub replies: u64,
    /// Errors of all classes so far, up to 20 ms old.
    pub errors: u64,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// Every thread of the load has drained.
    Over,
    /// The load goes on.
    TimedOut,
}

impl Progress {
    /// Right answers per second since `earlier`; `None` when no time has passed.
    #[must_use]
    pub fn rate_since(&self, earlier: &Progress) -> Option<f64> {
        assert!(self.elapsed_ns >= earlier.elapsed_ns, "the earlier progress comes second");
        let ns = self.elapsed_ns - earlier.elapsed_ns;
        // Settling is not counted: where it ended between the two, the count began anew.
        let replies = self.replies.saturating_sub(earlier.replies);
        (ns > 0).then(|| replies as f64 / (ns as f64 / 1e9))
    }
}

impl Beside {
    pub(crate) fn new(threads: usize, start_ns: u64) -> Self {
        assert!(threads > 0, "a load has at least one thread");
        let counts = std::iter::repeat_with(LiveCounts::default).take(threads).collect();
        Self { start_ns, counts, running: Running::new(threads), stop: AtomicBool::new(false) }
    }

    /// What it has come to so far.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let sum = |read: fn(&LiveCounts) -> u64| self.counts.iter().map(read).sum();
        Progress {
            elapsed_ns: mono_ns().saturating_sub(self.start_ns),
            replies: sum(|live| live.replies.load(Ordering::Relaxed)),
            errors: sum(|live| live.errors.load(Ordering::Relaxed)),
        }
    }

    /// Sleeps until the load is over, or for as long as this.
    pub fn wait(&self, time: Duration) -> Waited {
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.running.wait(Some(left)) == Waited::Over {
                return Waited::Over;
            }
            if left.is_zero() {
                return Waited::TimedOut;
            }
        }
    }

    /// Sleeps until the load is over.
    pub fn wait_until_over(&self) {
        self.running.wait_until_over();
    }

    /// What `look` found, and the right answers per second meanwhile: until it returns, or for `time`, whichever is
    /// shorter. What takes a profile goes on with putting names to it when its samples are taken.
    pub fn rate_during<T>(&self, time: Duration, look: impl FnOnce() -> T) -> (T, Option<f64>) {
        assert!(!time.is_zero(), "a rate takes some time");
        let before = self.progress();
        let (over, is_over) = channel::<()>();
        std::thread::scope(|scope| {
            let rate = scope.spawn(move || {
                // Both outcomes mean that the piece of time is over: a deadline, or the sender dropped.
                let _ = is_over.recv_timeout(time);
                self.progress().rate_since(&before)
            });
            let found = look();
            drop(over);
            (found, rate.join().expect("it waits and counts, and panics at nothing that a caller can cause"))
        })
    }

    /// Every thread was joined: none drives the target any more.
    pub(crate) fn check_over(&self) {
        assert_eq!(*self.running.lock(), 0, "a thread of the load was not counted out");
    }

    /// Has the threads send no more; they drain and end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// True once the threads are to end.
    pub(crate) fn stop_flag(&self) -> &AtomicBool {
        &self.stop
    }

    pub(crate) fn counts(&self) -> &[LiveCounts] {
        &self.counts
    }

    pub(crate) fn running(&self) -> &Running {
        &self.running
    }

    /// Stops the load when it is dropped, also by a panic of whoever looks.
    pub(crate) fn stop_at_end(&self) -> StopAtEnd<'_> {
        StopAtEnd(self)
    }
}

/// Stops a load when it is dropped.
pub(crate) struct StopAtEnd<'b>(&'b Beside);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// How many threads have not drained yet.
#[derive(Debug)]
pub(crate) struct Running {
    left: Mutex<usize>,
    changed: Condvar,
}

/// Counts one thread out when it is dropped, so that one that panics is not waited for.
pub(crate) struct OneThread<'r>(&'r Running);

impl Running {
    fn new(threads: usize) -> Self {
        Self { left: Mutex::new(threads), changed: Condvar::new() }
    }

    /// A thread of these has begun; it is counted out with the value.
    pub(crate) fn one(&self) -> OneThread<'_> {
        assert!(*self.lock() > 0, "no thread begins after all have ended");
        OneThread(self)
    }

    pub(crate) fn wait_until_over(&self) {
        while self.wait(None) != Waited::Over {}
    }

    /// Sleeps until all threads have drained, or the time is up, or something woke it early.
    fn wait(&self, timeout: Option<Duration>) -> Waited {
        let left = self.lock();
        let left = match timeout {
            _ if *left == 0 => left,
            Some(timeout) => {
                self.changed.wait_timeout(left, timeout).unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.changed.wait(left).unwrap_or_else(PoisonError::into_inner),
        };
        if *left == 0 { Waited::Over } else { Waited::TimedOut }
    }

    /// A poisoned lock still holds a number that is right: it is changed by one subtraction.
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OneThread<'_> {
    fn drop(&mut self) {
        let mut left = self.0.lock();
        assert!(*left > 0, "a thread ends once: more ended than began");
        *left -= 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(elapsed_ns: u64, replies: u64) -> Progress {
        Progress { elapsed_ns, replies, errors: 0 }
    }

    #[test]
    fn a_rate_is_per_second_and_none_where_no_time_passed() {
        assert_eq!(at(1_500_000_000, 400).rate_since(&at(1_000_000_000, 100)), Some(600.0));
        assert_eq!(at(5, 10).rate_since(&at(5, 10)), None);
        assert_eq!(at(2_000_000_000, 10).rate_since(&at(1_000_000_000, 500)), Some(0.0), "settling ended");
    }

    #[test]
    #[should_panic(expected = "the earlier progress comes second")]
    fn a_rate_that_runs_backwards_is_our_mistake() {
        let _ = at(1, 0).rate_since(&at(2, 0));
    }

    #[test]
    #[should_panic(expected = "a thread ends once")]
    fn a_thread_that_ends_twice_is_our_mistake() {
        let running = Running::new(1);
        let twice = OneThread(&running);
        drop(running.one());
        drop(twice);
    }

    #[test]
    #[should_panic(expected = "no thread begins after all have ended")]
    fn a_thread_that_begins_after_the_end_is_our_mistake() {
        let running = Running::new(1);
        drop(running.one());
        let _late = running.one();
    }

    #[test]
    #[should_panic(expected = "a thread of the load was not counted out")]
    fn a_load_that_goes_on_after_its_end_is_our_mistake() {
        Beside::new(1, mono_ns()).check_over();
    }

    #[test]
    fn a_wait_ends_with_the_last_thread_or_with_its_time() {
        let beside = Beside::new(2, mono_ns());
        let (first, second) = (beside.running().one(), beside.running().one());
        drop(first);
        assert_eq!(beside.wait(Duration::ZERO), Waited::TimedOut);
        drop(second);
        assert_eq!(beside.wait(Duration::from_secs(3_600)), Waited::Over);
    }

    #[test]
    fn a_rate_is_over_when_the_look_is_whatever_time_it_had() {
        let beside = Beside::new(1, mono_ns());
        beside.counts()[0].replies.store(7, Ordering::Relaxed);
        let (found, rate) = beside.rate_during(Duration::from_secs(3_600), || 5);
        assert_eq!((found, rate), (5, Some(0.0)));
    }
}

//! What outlives a generation: what ended generations have counted, and how reloads went. Words in memory that all processes
//! of a server share.

use crate::stats::Counts;
use dyno_sys::{clock, shm};
use std::sync::atomic::{AtomicU64, Ordering};

/// Words before the counts.
const DEATHS: usize = 0;
const RELOADS: usize = 1;
const FAILURES: usize = 2;
const HAS_FAILED_LAST: usize = 3;
const STARTED_S: usize = 4;
const STARTED_NS: usize = 5;
const DEATHS_TOGETHER: usize = 6;
const COUNTS: usize = 8;

/// Copies are the same ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ledger {
    words: shm::Counters,
}

impl Ledger {
    /// An empty one, mapped for the life of the process and inherited by its children.
    pub(crate) fn new() -> std::io::Result<Ledger> {
        let ledger = Ledger { words: shm::Counters::new(COUNTS + Counts::NAMES.len())? };
        ledger.word(STARTED_S).store(clock::real_coarse_s(), Ordering::Relaxed);
        ledger.word(STARTED_NS).store(clock::mono_ns(), Ordering::Relaxed);
        Ok(ledger)
    }

    /// When the server started: seconds since 1970, and nanoseconds of the monotonic clock.
    pub(crate) fn started(&self) -> (u64, u64) {
        (self.read(STARTED_S), self.read(STARTED_NS))
    }

    /// A generation has ended.
    pub(crate) fn add(&self, deaths: u64, counts: &Counts) {
        self.word(DEATHS).fetch_add(deaths, Ordering::Relaxed);
        counts.each(|at, value| {
            self.word(COUNTS + at).fetch_add(value, Ordering::Relaxed);
        });
    }

    /// A supervisor died, and so many workers with it, which are replaced as well.
    pub(crate) fn count_deaths_together(&self, workers: u64) {
        self.word(DEATHS).fetch_add(workers, Ordering::Relaxed);
        self.word(DEATHS_TOGETHER).fetch_add(workers, Ordering::Relaxed);
    }

    /// Workers that died with their supervisor: no supervisor has counted these.
    pub(crate) fn deaths_together(&self) -> u64 {
        self.read(DEATHS_TOGETHER)
    }

    /// What all generations that have ended counted.
    pub(crate) fn counts(&self) -> Counts {
        Counts::fill(|at| self.read(COUNTS + at))
    }

    /// Workers of theirs that died and were replaced.
    pub(crate) fn deaths(&self) -> u64 {
        self.read(DEATHS)
    }

    /// New settings are in force.
    pub(crate) fn count_reload(&self) {
        self.word(RELOADS).fetch_add(1, Ordering::Relaxed);
        self.word(HAS_FAILED_LAST).store(0, Ordering::Relaxed);
    }

    /// New settings were refused.
    pub(crate) fn count_failure(&self) {
        self.word(FAILURES).fetch_add(1, Ordering::Relaxed);
        self.word(HAS_FAILED_LAST).store(1, Ordering::Relaxed);
    }

    /// Reloads that succeeded, and that did not.
    pub(crate) fn reloads(&self) -> (u64, u64) {
        (self.read(RELOADS), self.read(FAILURES))
    }

    /// Whether the last reload was refused.
    pub(crate) fn has_failed_last(&self) -> bool {
        self.read(HAS_FAILED_LAST) != 0
    }

    fn read(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Relaxed)
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
    fn generations_add_up_and_the_last_reload_is_known() {
        let ledger = Ledger::new().unwrap();
        for requests in [3, 4] {
            let counts = Counts { requests, turns: 1, ..Counts::default() };
            ledger.add(1, &counts);
        }
        assert_eq!((ledger.counts().requests, ledger.counts().turns, ledger.deaths()), (7, 2, 2));
        ledger.count_deaths_together(3);
        assert_eq!((ledger.deaths(), ledger.deaths_together()), (5, 3));
        ledger.count_failure();
        assert!(ledger.has_failed_last());
        ledger.count_reload();
        assert_eq!((ledger.reloads(), ledger.has_failed_last()), ((1, 1), false));
    }
}

//! Threads that run where the scheduler puts them, unless `--pin` was given.
//!
//! A crew binds each of its threads to a CPU when a block begins, which is right for a climb; a generator that nobody
//! placed must be free to get out of the server's way, as wrk is. So each thread is let loose once, as soon as it is
//! seen bound: some tens of microseconds after the start.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::{Tid, child, proc};

/// Between two looks. The threads bind themselves as they start, within a few hundred microseconds of each other.
const LOOK: Duration = Duration::from_micros(200);

/// Lets loose the threads of one block; does nothing when they shall be bound, or when there is one CPU for all.
pub struct Loose {
    allowed: Option<CpuSet>,
    threads: usize,
    over: Arc<AtomicBool>,
}

impl Loose {
    /// For a block of so many threads.
    #[must_use]
    pub fn unless_pinned(pin: Option<&CpuSet>, threads: usize) -> Loose {
        let allowed = Some(affinity::allowed()).filter(|allowed| pin.is_none() && allowed.len() > 1);
        Loose { allowed, threads, over: Arc::default() }
    }

    /// Called on the block's first thread when it begins.
    pub fn start(&self) {
        let Some(allowed) = self.allowed.clone() else { return };
        let (threads, over) = (self.threads, Arc::clone(&self.over));
        let watch = move || {
            // It is a child of a bound thread and must not take itself for one of those it looks for.
            let _ = affinity::set_current(&allowed);
            let mut loose = BTreeSet::new();
            while loose.len() < threads && !over.load(Ordering::Relaxed) {
                let_loose(&allowed, &mut loose);
                std::thread::sleep(LOOK);
            }
        };
        // Without the thread the generator stays bound: worse, not wrong.
        let _ = std::thread::Builder::new().name("dyno-loose".to_owned()).spawn(watch);
    }

    /// Called when the block is over: nobody is left to be let loose.
    pub fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Every thread of this process that is bound to one CPU and was not seen before may run everywhere again.
fn let_loose(allowed: &CpuSet, loose: &mut BTreeSet<Tid>) {
    for thread in proc::tasks(child::this()) {
        let bound = affinity::of(thread).is_ok_and(|cpus| cpus.len() == 1);
        if bound && affinity::set(thread, allowed).is_ok() {
            loose.insert(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_bound_thread_is_let_loose_and_counted_once() {
        let allowed = affinity::allowed();
        let Some(first) = allowed.iter().next().filter(|_| allowed.len() > 1) else { return };
        let loose = Loose::unless_pinned(None, 1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The watcher is a child of this thread and inherits what it is bound to: it begins before.
                loose.start();
                affinity::set_current(&CpuSet::single(first)).unwrap();
                let deadline = Instant::now() + Duration::from_secs(10);
                while affinity::allowed().len() == 1 {
                    assert!(Instant::now() < deadline, "it stayed bound");
                    std::thread::yield_now();
                }
            });
        });
        loose.stop();
    }

    #[test]
    fn who_asked_for_cpus_keeps_them() {
        assert!(Loose::unless_pinned(Some(&CpuSet::single(0)), 1).allowed.is_none());
    }
}

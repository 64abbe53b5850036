//! The rings between workers and the log's writer, as both sides get them. The supervisor and the embedded server make
//! them, before anybody is started.

use super::ledger::Ledger;
use super::writer::{Job, Until, Waiting, ring};
use crate::dials::Log;
use dyno_sys::event::EventFd;
use dyno_sys::shm::{Pushed, Ring};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// All rings of a server.
pub(crate) struct Rings {
    rings: Vec<&'static Ring>,
    wake: Arc<EventFd>,
    waiting: Option<Waiting>,
    pub(crate) ledger: Ledger,
}

/// A worker's end.
pub(crate) struct RingEnd {
    ring: &'static Ring,
    wake: Arc<EventFd>,
    /// Signalled when lines are written, where replies wait for that.
    pub(super) written: Option<Arc<EventFd>>,
    /// Whether the writer was woken since the ring was half full last.
    is_woken: bool,
    /// Up to where the writer was told of lines that replies wait for.
    announced: u64,
}

impl Rings {
    /// For so many workers, where the dial wants rings.
    pub(crate) fn new(dial: Log, until: Until, workers: usize) -> io::Result<Option<Rings>> {
        if !matches!(dial, Log::Ring | Log::Commit) {
            return Ok(None);
        }
        let event = || EventFd::new().map(Arc::new);
        let waiting = match dial {
            Log::Commit => {
                let written = (0..workers).map(|_| event()).collect::<io::Result<_>>()?;
                Some(Waiting { written, until })
            }
            _ => None,
        };
        let rings = (0..workers).map(|_| ring()).collect::<io::Result<_>>()?;
        Ok(Some(Rings { rings, wake: event()?, waiting, ledger: Ledger::new(workers)? }))
    }

    /// The end of a worker. A worker that replaces another one goes on with the same ring.
    pub(crate) fn end(&self, number: usize) -> RingEnd {
        let ring = self.rings[number];
        let written = self.waiting.as_ref().map(|waiting| Arc::clone(&waiting.written[number]));
        RingEnd { ring, wake: Arc::clone(&self.wake), written, is_woken: false, announced: ring.pushed() }
    }

    /// What the writer is given.
    pub(crate) fn job(
        &self,
        log: OwnedFd,
        stop: OwnedFd,
        orders: Option<OwnedFd>,
        lost: &'static AtomicU64,
        patience_ns: u64,
    ) -> Job {
        let (rings, wake, waiting) = (self.rings.clone(), Arc::clone(&self.wake), self.waiting.clone());
        Job { rings, log, stop, orders, ledger: self.ledger, lost, wake, waiting, patience_ns }
    }

    /// Takes the lines of a ring as if they had been written; how many.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn take(&self, number: usize) -> u64 {
        let peeked = self.rings[number].peek(&mut Vec::new(), usize::MAX);
        let records = peeked.records;
        self.rings[number].release(peeked);
        records
    }

    /// Lines that no writer has taken.
    pub(crate) fn left(&self) -> u64 {
        self.rings.iter().map(|ring| ring.records()).sum()
    }

    /// Lines that found no room, of workers that are dead too.
    pub(crate) fn dropped(&self) -> u64 {
        self.rings.iter().map(|ring| ring.dropped()).sum()
    }
}

impl RingEnd {
    /// Puts a line in. A ring that is half full is told of: the writer looks by itself, but seldom after a pause.
    #[inline]
    pub(super) fn push(&mut self, line: &[u8]) -> Pushed {
        let pushed = self.ring.push(line);
        let is_half_full = self.ring.level() > self.ring.capacity() / 2;
        if is_half_full != self.is_woken {
            self.is_woken = is_half_full;
            if is_half_full {
                self.wake.signal();
            }
        }
        pushed
    }

    /// Lines that found no room since the ring was made.
    pub(super) fn dropped(&self) -> u64 {
        self.ring.dropped()
    }

    /// Up to where lines were put in, if not all of them are written.
    pub(super) fn unwritten(&self) -> Option<u64> {
        let pushed = self.ring.pushed();
        (pushed != self.ring.released()).then_some(pushed)
    }

    /// Whether everything up to there is written.
    pub(super) fn is_written(&self, until: u64) -> bool {
        self.ring.released().wrapping_sub(until).cast_signed() >= 0
    }

    /// Tells the writer that replies wait for what was put in.
    pub(super) fn announce(&mut self) {
        let pushed = self.ring.pushed();
        if pushed != self.announced {
            self.announced = pushed;
            self.wake.signal();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_sys::epoll::{Epoll, Events, Interest, Timeout};

    #[test]
    fn who_waits_is_told_when_its_lines_are_released_and_not_before() {
        let rings = Rings::new(Log::Commit, Until::Written, 2).unwrap().unwrap();
        let mut end = rings.end(1);
        assert_eq!(end.unwritten(), None);
        assert_eq!(end.push(b"one\n"), Pushed::Whole);
        let until = end.unwritten().unwrap();
        assert!(!end.is_written(until));
        let mut lines = Vec::new();
        rings.rings[1].release(rings.rings[1].peek(&mut lines, 100));
        assert!(end.is_written(until) && end.unwritten().is_none());
        assert_eq!(end.push(b"two\n"), Pushed::Whole);
        assert!(end.is_written(until), "what was written stays so");
    }

    #[test]
    fn the_writer_is_woken_once_when_a_ring_is_half_full() {
        let rings = Rings::new(Log::Ring, Until::Written, 1).unwrap().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(&*rings.wake, 0, Interest::READ.edge()).unwrap();
        let mut events = Events::with_capacity(1);
        let mut is_woken = || !epoll.wait(&mut events, Timeout::Poll).unwrap().is_empty();
        let mut end = rings.end(0);
        let line = [b'x'; 1_000];
        let (mut wakes, mut lines) = (Vec::new(), 0);
        while end.push(&line) == Pushed::Whole {
            lines += 1;
            if is_woken() {
                wakes.push(lines);
            }
        }
        assert_eq!(wakes, [lines / 2 + 1]);
        assert_eq!((end.dropped(), rings.dropped(), rings.left()), (1, 1, lines));
    }
}

//! The writer that empties the workers' rings into the log, in a process or a thread of its own.
//!
//! It goes round: of each ring it writes what is there, has the disk take it where replies wait for that, and releases it.
//! A line leaves its ring when the log has taken it, so a writer that is killed loses none, and [`sink`](super::sink) sees
//! to it that none stands twice in a file or torn. What the log does not take stays in its ring until it does; a ring that
//! is full drops, and counts.

use super::ledger::Ledger;
use super::sink::{Sink, Took};
use dyno_sys::clock;
use dyno_sys::epoll::{Epoll, Events, Interest, Timeout};
use dyno_sys::event::EventFd;
use dyno_sys::shm::{Peeked, Ring};
use dyno_sys::socket::rights;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a worker's ring: 256 KiB holds 2,500 lines, some 20 ms of a busy worker, four rounds of the writer.
const RING_BYTES: usize = 1 << 18;

/// How soon the writer looks again while there is traffic, in milliseconds.
const BUSY_MS: i32 = 5;

/// How seldom the writer looks when there is none, in milliseconds.
const IDLE_MS: i32 = 100;

/// The shortest time that a writer gets at its end: lines already pushed are a matter of milliseconds.
pub(crate) const WRITER_NS_MAX: u64 = 2_000_000_000;

/// Of that, for so long a log that refuses is tried: what was begun there is to be given back in time.
const REFUSED_NS_MAX: u64 = 1_500_000_000;

/// Bytes of an order: it has one word.
const ORDER_BYTES_MAX: usize = 32;

const STOP: u64 = 0;
const ORDERS: u64 = 1;
const WAKE: u64 = 2;

/// A ring for one worker, mapped for the life of the process.
pub(crate) fn ring() -> io::Result<&'static Ring> {
    Ok(Box::leak(Box::new(Ring::new(RING_BYTES)?)))
}

/// Whether a line is written when the kernel has it, or when the disk has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    Written,
    OnDisk,
}

/// Where replies wait for their lines.
#[derive(Clone)]
pub(crate) struct Waiting {
    /// Signalled, worker by worker, when lines are written.
    pub(crate) written: Vec<Arc<EventFd>>,
    pub(crate) until: Until,
}

/// What a writer is given.
pub(crate) struct Job {
    pub(crate) rings: Vec<&'static Ring>,
    pub(crate) log: OwnedFd,
    /// At its end of file: write what was pushed before, and end.
    pub(crate) stop: OwnedFd,
    /// A packet brings a file that is written from now on.
    pub(crate) orders: Option<OwnedFd>,
    pub(crate) ledger: Ledger,
    /// Lines that no longer can be read from their ring are counted here.
    pub(crate) lost: &'static AtomicU64,
    /// Signalled by a worker whose lines should be written soon.
    pub(crate) wake: Arc<EventFd>,
    pub(crate) waiting: Option<Waiting>,
    /// How long it may go on after the stop with a log that takes nothing.
    pub(crate) patience_ns: u64,
}

/// Writes until it is stopped. What the log did not take then is left in the rings, for the caller to count.
pub(crate) fn write_rings(job: Job) -> io::Result<()> {
    let epoll = Epoll::new()?;
    epoll.add(job.stop.as_fd(), STOP, Interest::READ)?;
    if let Some(orders) = &job.orders {
        epoll.add(orders, ORDERS, Interest::READ)?;
    }
    epoll.add(&*job.wake, WAKE, Interest::READ.edge())?;
    let sink = Sink::new(job.log, job.ledger, job.rings.len());
    let Job { rings, orders, lost, waiting, patience_ns, .. } = job;
    let written = Vec::with_capacity(rings.len());
    let mut writer = Writer { rings, sink, lost, waiting, written };
    // A writer that died may not have told what it had written.
    writer.waiting.iter().flat_map(|waiting| &waiting.written).for_each(|written| written.signal());
    let mut events = Events::with_capacity(4);
    let (mut pause_ms, mut stopped_ns) = (BUSY_MS, None);
    let mut round = Round::Something;
    loop {
        let timeout = if round == Round::Something { Timeout::Poll } else { Timeout::Millis(pause_ms) };
        for event in epoll.wait(&mut events, timeout)? {
            match event.token() {
                STOP => {
                    // The end of file stays readable: it has been understood.
                    epoll.remove(job.stop.as_fd())?;
                    stopped_ns = Some(clock::mono_ns());
                }
                ORDERS if !writer.take_orders(orders.as_ref()) => {
                    orders.as_ref().map_or(Ok(()), |orders| epoll.remove(orders))?;
                }
                _ => {}
            }
        }
        round = writer.round();
        pause_ms = match round {
            Round::Something | Round::Waits => BUSY_MS,
            Round::Nothing | Round::Refused => (pause_ms * 2).min(IDLE_MS),
        };
        if stopped_ns.is_some_and(|stopped_ns| is_over(round, stopped_ns, patience_ns)) {
            writer.give_back();
            return Ok(());
        }
    }
}

/// Whether a writer that was told to stop has nothing more to do, or nothing more that it can: a disk that is full may have room in a
/// moment, and a reader may come.
fn is_over(round: Round, stopped_ns: u64, patience_ns: u64) -> bool {
    let waited_ns = clock::mono_ns().saturating_sub(stopped_ns);
    match round {
        Round::Something => false,
        Round::Nothing => true,
        Round::Refused => waited_ns > patience_ns.min(REFUSED_NS_MAX),
        Round::Waits => waited_ns > patience_ns,
    }
}

/// What a round came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// Lines were written; there may be more.
    Something,
    /// There was nothing to write.
    Nothing,
    /// The log takes nothing now.
    Waits,
    /// The log refuses.
    Refused,
}

struct Writer {
    rings: Vec<&'static Ring>,
    sink: Sink,
    lost: &'static AtomicU64,
    waiting: Option<Waiting>,
    /// What this round has written, by the ring.
    written: Vec<(usize, Peeked)>,
}

impl Writer {
    /// Writes some of each ring, so that all have their turn.
    fn round(&mut self) -> Round {
        debug_assert!(self.written.is_empty(), "what was written is released in its round");
        let mut round = Round::Nothing;
        // What was begun, here or by a predecessor, is ended first: another line must not be glued to half of one.
        for is_begun in [true, false] {
            for number in 0..self.rings.len() {
                if self.sink.has_begun(number) != is_begun {
                    continue;
                }
                match self.write_some(number) {
                    None => {}
                    Some(Took::Whole) => round = Round::Something,
                    Some(Took::Later) => return self.end_round(Round::Waits),
                    Some(Took::Refused) => return self.end_round(Round::Refused),
                }
            }
        }
        self.end_round(round)
    }

    /// `None`: there was nothing.
    fn write_some(&mut self, number: usize) -> Option<Took> {
        let ring = self.rings[number];
        let (peeked, took) = self.sink.take(number, ring);
        if peeked.is_garbled || took == Some(Took::Whole) {
            self.written.push((number, peeked));
        }
        took
    }

    /// What was written is done with, once the disk has it where that is asked for.
    fn end_round(&mut self, round: Round) -> Round {
        let is_asked = self.waiting.as_ref().is_some_and(|waiting| waiting.until == Until::OnDisk);
        let is_safe = self.written.is_empty() || !is_asked || self.sink.sync();
        for (number, peeked) in self.written.drain(..) {
            if !is_safe {
                // It may be lost in the kernel: it is written once more.
                self.sink.forget(number);
                continue;
            }
            self.lost.fetch_add(u64::from(peeked.is_garbled), Ordering::Relaxed);
            self.rings[number].release(peeked);
            self.sink.released(number);
            if let Some(waiting) = &self.waiting {
                waiting.written[number].signal();
            }
        }
        if is_safe { round } else { Round::Refused }
    }

    /// Takes a file that was opened anew; `false` when no more will come.
    fn take_orders(&mut self, orders: Option<&OwnedFd>) -> bool {
        let Some(orders) = orders else { return false };
        loop {
            match rights::receive(orders.as_fd(), ORDER_BYTES_MAX) {
                Ok(packet) if !packet.bytes.is_empty() => {
                    if let Some(log) = packet.fds.into_iter().next() {
                        self.give_back();
                        self.sink.change(log.into());
                    }
                }
                // There was no descriptor left for it: what is open goes on being written.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Ok(_) | Err(_) => return false,
            }
        }
    }

    /// Lines of writes that were begun and cannot be ended here: the whole ones are done with, the others stay in their
    /// rings.
    fn give_back(&mut self) {
        for (number, ring) in self.rings.iter().enumerate() {
            if let Some(peeked) = self.sink.give_back(number, ring) {
                ring.release(peeked);
                self.sink.released(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_sys::shm::Pushed;
    use dyno_sys::socket;
    use std::fs::OpenOptions;
    use std::io::Read;
    use std::path::PathBuf;

    fn job(rings: &[&'static Ring], log: OwnedFd) -> Job {
        let (stop, running) = socket::pipe().unwrap();
        drop(running);
        static LOST: AtomicU64 = AtomicU64::new(0);
        let (rings, ledger, wake) =
            (rings.to_vec(), Ledger::new(rings.len()).unwrap(), Arc::new(EventFd::new().unwrap()));
        Job { rings, log, stop, orders: None, ledger, lost: &LOST, wake, waiting: None, patience_ns: 0 }
    }

    fn ring_of(lines: &str) -> &'static Ring {
        let ring = ring().unwrap();
        for line in lines.split_inclusive('\n') {
            assert_eq!(ring.push(line.as_bytes()), Pushed::Whole);
        }
        ring
    }

    fn temporary(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("dyno-writer-{}-{name}", std::process::id()))
    }

    #[test]
    fn the_writer_empties_the_rings_before_it_ends() {
        let (mut reader, log) = io::pipe().unwrap();
        let rings = [ring_of("one\ntwo\n"), ring_of("three\n")];
        write_rings(job(&rings, log.into())).unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\ntwo\nthree\n");
    }

    #[test]
    fn a_disk_that_is_full_to_the_end_leaves_the_lines_to_be_counted() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ring = ring_of("one\ntwo\nthree\n");
        write_rings(job(&[ring], full.into())).unwrap();
        assert_eq!(ring.records(), 3);
    }

    /// Red where the first refusal after the stop is the end.
    #[test]
    fn a_log_that_refuses_at_the_stop_is_tried_for_a_while() {
        const S: u64 = 1_000_000_000;
        let over = |round, ago_ns: u64, patience_ns| {
            is_over(round, clock::mono_ns().saturating_sub(ago_ns), patience_ns)
        };
        assert_eq!([over(Round::Refused, S, 30 * S), over(Round::Refused, 3 * S, 30 * S)], [false, true]);
        assert_eq!([over(Round::Waits, 3 * S, 30 * S), over(Round::Waits, 31 * S, 30 * S)], [false, true]);
        assert!(over(Round::Nothing, 0, 30 * S) && !over(Round::Something, 40 * S, 30 * S));
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_left_when_the_patience_is_over() {
        let (_reader, log) = io::pipe().unwrap();
        let lines = "a line of some bytes that is there again and again\n".repeat(2_000);
        let ring = ring_of(&lines);
        write_rings(job(&[ring], log.into())).unwrap();
        assert!(ring.records() > 0, "a pipe holds 64 KiB");
    }

    /// A writer dies within a line of the second ring, and there are new lines in the first one.
    #[test]
    fn a_line_that_was_begun_is_ended_before_another_rings_lines() {
        let path = temporary("two-rings");
        for kept in 0..=8_u64 {
            std::fs::write(&path, "").unwrap();
            let rings = [ring_of(""), ring_of("one\ntwo\n")];
            let log = || super::super::open(Some(&path)).unwrap();
            let Job { ledger, .. } = job(&rings, log());
            let mut dying = Sink::new(log(), ledger, 2);
            let (peeked, took) = dying.take(1, rings[1]);
            assert_eq!((peeked.records, took), (2, Some(Took::Whole)));
            OpenOptions::new().write(true).open(&path).unwrap().set_len(kept).unwrap();
            assert_eq!(rings[0].push(b"other\n"), Pushed::Whole);
            write_rings(Job { ledger, ..job(&rings, log()) }).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nother\n", "{kept}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}

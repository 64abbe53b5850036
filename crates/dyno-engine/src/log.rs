//! The access log: a line for each request, and the writer that empties the workers' rings.
//!
//! A worker puts a line into its ring (`log = ring`, `log = commit`) or writes it itself (`log = sync`) before the reply
//! leaves, so a reply that was seen has its line; with `commit` it does not leave before the line is written. The writer
//! runs in a process (or thread) of its own. Nothing that a peer sends can begin a line of its own: see [`line`].

mod file;
mod format;
mod ledger;
mod line;
mod rings;
mod sink;
mod writer;

use crate::stats::{Counters, Counts, LOG_TAKES_NOTHING, LOG_TOOK_AGAIN};
use dyno_sys::event::EventFd;
use dyno_sys::shm::Pushed;
use dyno_sys::socket::{self, Io};
use dyno_sys::{Pid, child};
pub(crate) use file::{could_open, open, open_anew};
pub(crate) use format::RECORD_BYTES_MAX;
pub use format::{LogFormat, LogFormatError};
pub(crate) use ledger::Trouble;
pub(crate) use line::{Entry, Kept, Seen};
pub(crate) use rings::{RingEnd, Rings};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use writer::{Until, WRITER_NS_MAX, write_rings};

/// What an order says that brings a log that was opened anew.
pub(crate) const ORDER: &[u8] = b"log";

/// A worker's access log.
pub(crate) struct AccessLog {
    to: To,
    format: LogFormat,
    /// The line in the making.
    line: Vec<u8>,
    pid: u32,
}

/// Where lines go.
enum To {
    Nowhere,
    /// `end` is how the last line that was begun ended, `refusal` where the reason stands why one was lost.
    File {
        file: OwnedFd,
        end: End,
        refusal: &'static AtomicU64,
    },
    Ring(RingEnd),
    /// Replies wait until the ring's lines are written. `is_refused`: one found no room, and its reply must not leave.
    Commit {
        ring: RingEnd,
        is_refused: bool,
    },
}

/// How the text ends that was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// With its newline, or nothing was written yet.
    Whole,
    /// Within a line: the disk was full, say. The next line must not be glued to it.
    Torn,
}

impl AccessLog {
    pub(crate) fn off() -> AccessLog {
        AccessLog { to: To::Nowhere, format: LogFormat::default(), line: Vec::new(), pid: 0 }
    }

    pub(crate) fn sync(format: LogFormat, file: OwnedFd, counters: Counters) -> AccessLog {
        AccessLog::to(format, To::File { file, end: End::Whole, refusal: counters.log_refusal() })
    }

    pub(crate) fn ring(format: LogFormat, ring: RingEnd) -> AccessLog {
        let is_awaited = ring.written.is_some();
        AccessLog::to(
            format,
            if is_awaited { To::Commit { ring, is_refused: false } } else { To::Ring(ring) },
        )
    }

    fn to(format: LogFormat, to: To) -> AccessLog {
        let pid = Pid::unsigned_abs(child::this());
        AccessLog { to, format, line: Vec::with_capacity(RECORD_BYTES_MAX), pid }
    }

    #[inline]
    pub(crate) fn is_off(&self) -> bool {
        matches!(self.to, To::Nowhere)
    }

    pub(crate) fn format(&self) -> &LogFormat {
        &self.format
    }

    /// Lines that were lost before this worker was there, by the one whose ring it goes on with.
    pub(crate) fn dropped_before(&self) -> u64 {
        match &self.to {
            To::Ring(ring) | To::Commit { ring, .. } => ring.dropped(),
            To::Nowhere | To::File { .. } => 0,
        }
    }

    /// Writes or queues a line; what finds no room is counted and gone.
    pub(crate) fn entry(&mut self, entry: &Entry<'_>, counts: &mut Counts) {
        let AccessLog { to, format, line, pid } = self;
        match to {
            To::Nowhere => {}
            To::File { file, end, refusal } => {
                line::put(line, format, entry, *pid);
                let outcome = write_line(file, line, end, counts);
                counts.log_drops += u64::from(outcome.is_err());
                note(refusal, outcome);
            }
            To::Ring(ring) => {
                line::put(line, format, entry, *pid);
                if ring.push(line) == Pushed::Dropped {
                    // The ring's own count, which no death of a worker takes anything from.
                    counts.log_drops = ring.dropped();
                }
            }
            To::Commit { ring, is_refused } => {
                line::put(line, format, entry, *pid);
                if ring.push(line) == Pushed::Dropped {
                    counts.log_drops = ring.dropped();
                    *is_refused = true;
                }
            }
        }
    }

    /// Whether a line found no room whose reply must not leave; told once.
    pub(crate) fn take_refused(&mut self) -> bool {
        match &mut self.to {
            To::Commit { is_refused, .. } => std::mem::take(is_refused),
            _ => false,
        }
    }

    /// Up to where lines must be written before a reply may leave; `None` when all are.
    pub(crate) fn unwritten(&self) -> Option<u64> {
        match &self.to {
            To::Commit { ring, .. } => ring.unwritten(),
            _ => None,
        }
    }

    /// Whether every line up to there is written.
    pub(crate) fn is_written(&self, until: u64) -> bool {
        match &self.to {
            To::Commit { ring, .. } => ring.is_written(until),
            _ => true,
        }
    }

    /// Tells the writer that replies wait for it.
    pub(crate) fn announce(&mut self) {
        if let To::Commit { ring, .. } = &mut self.to {
            ring.announce();
        }
    }

    /// What is signalled when lines are written that replies wait for.
    pub(crate) fn written(&self) -> Option<&EventFd> {
        match &self.to {
            To::Commit { ring, .. } => ring.written.as_deref(),
            _ => None,
        }
    }

    /// Writes to a file that was opened anew, where this worker writes itself.
    pub(crate) fn reopen(&mut self, new: &OwnedFd) -> io::Result<()> {
        let To::File { file, end, .. } = &mut self.to else { return Ok(()) };
        child::replace(file.as_fd(), new)?;
        *end = End::Whole;
        Ok(())
    }
}

/// Writes a line at once, behind the end of one that is torn; see [`write_whole`].
fn write_line(file: &OwnedFd, line: &mut Vec<u8>, end: &mut End, counts: &mut Counts) -> Result<(), i32> {
    if *end == End::Torn {
        line.insert(0, b'\n');
    }
    let write = |rest: &[u8]| {
        counts.log_writes += 1;
        socket::write(file.as_fd(), rest)
    };
    write_whole(line, end, write)
}

/// Notes why a line was lost, and that one went in again. While all is well the word is only read: it is every worker's.
fn note(refusal: &AtomicU64, outcome: Result<(), i32>) {
    let before = refusal.load(Ordering::Relaxed);
    let now = match outcome {
        Ok(()) if before == 0 => 0,
        Ok(()) => before | LOG_TOOK_AGAIN,
        Err(0) => LOG_TAKES_NOTHING,
        Err(errno) => u64::from(errno.unsigned_abs()),
    };
    if now != before {
        refusal.store(now, Ordering::Relaxed);
    }
}

/// Writes until all is written or no more can be: then with the error number, 0 where nothing is taken now. `end` is how what
/// was written ends. A disk that fills up takes part of a write and refuses the next (write(2)).
fn write_whole(bytes: &[u8], end: &mut End, mut write: impl FnMut(&[u8]) -> Io) -> Result<(), i32> {
    let mut rest = bytes;
    let mut outcome = Ok(());
    while outcome.is_ok() && !rest.is_empty() {
        match write(rest) {
            Io::Done(some) if some > 0 => rest = &rest[some..],
            Io::Failed(errno) => outcome = Err(errno),
            _ => outcome = Err(0),
        }
    }
    if let Some(last) = bytes[..bytes.len() - rest.len()].last() {
        *end = if *last == b'\n' { End::Whole } else { End::Torn };
    }
    outcome
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::heads::LogDates;
    use std::fs::OpenOptions;

    /// Planted fault: `write_whole` answers 0 for every error.
    #[test]
    fn a_line_that_a_full_disk_does_not_take_is_counted_with_the_reason() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let counters = Counters::new(1, 0).unwrap();
        let mut log = AccessLog::sync(LogFormat::default(), OwnedFd::from(full), counters);
        let mut counts = Counts::default();
        let dates = LogDates::new(0);
        let entry = Entry { client: None, dates: &dates, request: Seen::Nothing, status: 200, body_bytes: 0 };
        log.entry(&entry, &mut counts);
        assert_eq!((counts.log_writes, counts.log_drops), (1, 1));
        // ENOSPC
        assert_eq!(counters.log_refusal().load(Ordering::Relaxed), 28);
        log.reopen(&OwnedFd::from(OpenOptions::new().write(true).open("/dev/null").unwrap())).unwrap();
        assert_eq!(counters.log_refusal().load(Ordering::Relaxed), 28, "no line went in yet");
        log.entry(&entry, &mut counts);
        assert_eq!(counters.log_refusal().load(Ordering::Relaxed), 28 | LOG_TOOK_AGAIN);
        assert_eq!(counts.log_drops, 1);
    }

    #[test]
    fn a_short_write_is_gone_on_with_and_a_torn_line_is_known() {
        let (mut end, mut out) = (End::Whole, Vec::new());
        let three = |rest: &[u8], out: &mut Vec<u8>| {
            let some = rest.len().min(3);
            out.extend_from_slice(&rest[..some]);
            Io::Done(some)
        };
        assert_eq!(write_whole(b"a line\n", &mut end, |rest| three(rest, &mut out)), Ok(()));
        assert!(out == b"a line\n" && end == End::Whole);
        let mut room = 2;
        let filling = |rest: &[u8]| {
            room -= 1;
            if room == 0 { Io::WouldBlock } else { Io::Done(rest.len().min(3)) }
        };
        assert_eq!(write_whole(b"a line\n", &mut end, filling), Err(0));
        assert!(end == End::Torn);
    }
}

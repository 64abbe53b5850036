//! The writer that empties the workers' rings into the log, in a process or a thread of its own.
//!
//! A line leaves its ring when the log has taken it: of a writer that is killed the next one takes over everything, and
//! at most the lines of one write stand in the log twice. What the log does not take is counted.

use crate::config::SECOND_NS;
use dyno_sys::epoll::{Epoll, Events, Interest, Timeout};
use dyno_sys::shm::Ring;
use dyno_sys::socket::Io;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a worker's ring: 256 KiB holds 2,500 lines, some 20 ms of a busy worker, four rounds of the writer.
const RING_BYTES: usize = 1 << 18;

/// Bytes of one write: what a pipe takes wholly or not at all (PIPE_BUF, pipe(7)).
const WRITE_BYTES: usize = 4_096;

/// How soon the writer looks again while there is traffic, in milliseconds.
const BUSY_MS: i32 = 5;

/// How seldom the writer looks when there is none, in milliseconds.
const IDLE_MS: i32 = 100;

/// The shortest time that a writer gets at its end: lines already pushed are a matter of milliseconds.
pub(crate) const WRITER_NS_MAX: u64 = 2 * SECOND_NS;

/// How the text ends that was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With its newline, or nothing was written yet.
    Whole,
    /// Within a line: the disk was full, say. The next line must not be glued to it.
    Torn,
}

/// A ring for one worker, mapped for the life of the process.
pub(crate) fn ring() -> io::Result<&'static Ring> {
    Ok(Box::leak(Box::new(Ring::new(RING_BYTES)?)))
}

/// Empties the rings into the log until `stop` is at its end of file; whatever was pushed before that is written. Lines
/// that the log does not take are counted in `lost`.
pub(crate) fn write_rings(
    rings: &[&'static Ring],
    log: OwnedFd,
    stop: &OwnedFd,
    lost: &AtomicU64,
) -> io::Result<()> {
    let epoll = Epoll::new()?;
    epoll.add(stop.as_fd(), 0, Interest::READ)?;
    let mut events = Events::with_capacity(1);
    let mut writer = Writer { log: File::from(log), end: End::Whole, lines: Vec::new(), lost };
    let mut pause_ms = BUSY_MS;
    loop {
        let stopping = !epoll.wait(&mut events, Timeout::Millis(pause_ms))?.is_empty();
        let mut has_written = false;
        for ring in rings {
            has_written |= writer.empty(ring);
        }
        pause_ms = if has_written { BUSY_MS } else { (pause_ms * 2).min(IDLE_MS) };
        if stopping {
            return Ok(());
        }
    }
}

struct Writer<'l> {
    log: File,
    /// How the text ends that this writer wrote last.
    end: End,
    lines: Vec<u8>,
    lost: &'l AtomicU64,
}

impl Writer<'_> {
    /// Writes what is in a ring, but no more than it can hold, so that the others have their turn; whether there was
    /// anything.
    fn empty(&mut self, ring: &Ring) -> bool {
        let mut taken = 0;
        while taken < ring.capacity() {
            self.lines.clear();
            if self.end == End::Torn {
                self.lines.push(b'\n');
            }
            let before = self.lines.len();
            let peeked = ring.peek(&mut self.lines, WRITE_BYTES - before);
            if peeked.records > 0 {
                self.write();
            }
            let is_over = peeked.records == 0;
            self.lost.fetch_add(u64::from(peeked.is_garbled), Ordering::Relaxed);
            ring.release(peeked);
            if is_over {
                break;
            }
            taken += self.lines.len() - before;
        }
        taken > 0
    }

    /// A log that cannot be written (a full disk) loses these lines and must not stop the writer: there may be room
    /// later.
    fn write(&mut self) {
        let begins_torn = self.end == End::Torn;
        let written = write_whole(&self.lines, &mut self.end, |rest| file_write(&mut self.log, rest));
        let ends = self.lines[written..].iter().filter(|byte| **byte == b'\n').count();
        // A newline alone was to end what was torn, and is no line.
        let alone = usize::from(begins_torn && written == 0);
        self.lost.fetch_add((ends - alone) as u64, Ordering::Relaxed);
    }
}

/// Writes until all is written or no more can be; how many bytes were, and how what was written ends. A disk that fills
/// up takes part of a write and refuses the next (write(2)).
pub(super) fn write_whole(bytes: &[u8], end: &mut End, mut write: impl FnMut(&[u8]) -> Io) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match write(&bytes[written..]) {
            Io::Done(some) if some > 0 => written += some,
            _ => break,
        }
    }
    if let Some(last) = bytes[..written].last() {
        *end = if *last == b'\n' { End::Whole } else { End::Torn };
    }
    written
}

/// A log may be a pipe or a terminal that blocks: this process has nothing else to do.
fn file_write(log: &mut File, bytes: &[u8]) -> Io {
    loop {
        match log.write(bytes) {
            Ok(written) => return Io::Done(written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Io::Failed(error.raw_os_error().unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_sys::shm::Pushed;
    use std::fs::OpenOptions;

    #[test]
    fn the_writer_empties_the_rings_before_it_ends() {
        let ring: &'static Ring = Box::leak(Box::new(Ring::new(4_096).unwrap()));
        let (mut reader, log) = io::pipe().unwrap();
        let (stop, running) = io::pipe().unwrap();
        for number in 0..3 {
            assert_eq!(ring.push(format!("line {number}\n").as_bytes()), Pushed::Whole);
        }
        drop(running);
        write_rings(&[ring], OwnedFd::from(log), &OwnedFd::from(stop), &AtomicU64::new(0)).unwrap();
        let mut text = String::new();
        io::Read::read_to_string(&mut reader, &mut text).unwrap();
        assert_eq!(text, "line 0\nline 1\nline 2\n");
    }

    #[test]
    fn lines_that_a_full_disk_does_not_take_are_counted() {
        let ring: &'static Ring = Box::leak(Box::new(Ring::new(4_096).unwrap()));
        let (stop, running) = io::pipe().unwrap();
        for number in 0..3 {
            assert_eq!(ring.push(format!("line {number}\n").as_bytes()), Pushed::Whole);
        }
        drop(running);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let lost = AtomicU64::new(0);
        write_rings(&[ring], OwnedFd::from(full), &OwnedFd::from(stop), &lost).unwrap();
        assert_eq!(lost.into_inner(), 3);
    }

    #[test]
    fn a_killed_writer_has_taken_nothing_that_it_had_not_written() {
        let ring: &'static Ring = Box::leak(Box::new(Ring::new(1 << 16).unwrap()));
        for number in 0..500 {
            assert_eq!(ring.push(format!("line {number:03}\n").as_bytes()), Pushed::Whole);
        }
        let (reader, log) = io::pipe().unwrap();
        let lost = AtomicU64::new(0);
        let mut writer =
            Writer { log: File::from(OwnedFd::from(log)), end: End::Whole, lines: Vec::new(), lost: &lost };
        // It dies where a kill would find it: after it has read, before it has written.
        let peeked = ring.peek(&mut writer.lines, WRITE_BYTES);
        assert!(peeked.records > 400 && writer.lines.len() <= WRITE_BYTES);
        drop((writer, reader));
        assert_eq!(ring.records(), 500);
    }

    #[test]
    fn a_short_write_is_gone_on_with_and_a_torn_line_is_known() {
        let (mut end, mut out) = (End::Whole, Vec::new());
        let three = |rest: &[u8], out: &mut Vec<u8>| {
            let some = rest.len().min(3);
            out.extend_from_slice(&rest[..some]);
            Io::Done(some)
        };
        assert_eq!(write_whole(b"a line\n", &mut end, |rest| three(rest, &mut out)), 7);
        assert!(out == b"a line\n" && end == End::Whole);
        let mut room = 2;
        let filling = |rest: &[u8]| {
            room -= 1;
            if room == 0 { Io::WouldBlock } else { Io::Done(rest.len().min(3)) }
        };
        assert_eq!(write_whole(b"a line\n", &mut end, filling), 3);
        assert!(end == End::Torn);
    }
}

//! The access log: one line per request in the combined style, and the writer that empties the workers' rings.
//!
//! A worker writes a line itself (`log = sync`) or puts it into its ring (`log = ring`) before the reply leaves, so a
//! reply that was seen has its line. The writer runs in a process (or thread) of its own. Nothing that a peer sends
//! can begin a line of its own: everything outside visible ASCII is escaped.

use crate::config::SECOND_NS;
use crate::stats::Counts;
use dyno_proto::http1::encode;
use dyno_sys::epoll::{Epoll, Events, Interest, Timeout};
use dyno_sys::shm::{Pushed, Ring};
use dyno_sys::socket::{self, Io};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a worker's ring: 256 KiB holds 2,500 lines, some 20 ms of a busy worker, four rounds of the writer.
const RING_BYTES: usize = 1 << 18;

/// How soon the writer looks again while there is traffic, in milliseconds.
const BUSY_MS: i32 = 5;

/// How seldom the writer looks when there is none, in milliseconds.
const IDLE_MS: i32 = 100;

/// Where a worker's lines go.
pub(crate) enum AccessLog {
    Off,
    /// `end` is how the last line that was begun ended.
    Sync {
        file: OwnedFd,
        line: Vec<u8>,
        end: End,
    },
    Ring {
        ring: &'static Ring,
        line: Vec<u8>,
    },
}

/// How the text ends that was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With its newline, or nothing was written yet.
    Whole,
    /// Within a line: the disk was full, say. The next line must not be glued to it.
    Torn,
}

/// What a line tells.
pub(crate) struct Entry<'e> {
    pub(crate) peer: Option<IpAddr>,
    pub(crate) date: &'e [u8],
    /// Method, target and version; `None` when the request could not be understood.
    pub(crate) request: Option<(&'e [u8], &'e [u8], &'e str)>,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
}

impl AccessLog {
    pub(crate) fn sync(file: OwnedFd) -> AccessLog {
        AccessLog::Sync { file, line: Vec::new(), end: End::Whole }
    }

    pub(crate) fn ring(ring: &'static Ring) -> AccessLog {
        AccessLog::Ring { ring, line: Vec::new() }
    }

    pub(crate) fn is_off(&self) -> bool {
        matches!(self, AccessLog::Off)
    }

    /// Writes or queues a line; what finds no room is counted and gone.
    pub(crate) fn entry(&mut self, entry: &Entry<'_>, counts: &mut Counts) {
        match self {
            AccessLog::Off => {}
            AccessLog::Sync { file, line, end } => {
                format_line(line, entry);
                check_line(line);
                if *end == End::Torn {
                    line.insert(0, b'\n');
                }
                let write = |rest: &[u8]| {
                    counts.log_writes += 1;
                    socket::write(file.as_fd(), rest)
                };
                let written = write_whole(line, end, write);
                counts.log_drops += u64::from(written < line.len());
            }
            AccessLog::Ring { ring, line } => {
                format_line(line, entry);
                check_line(line);
                if ring.push(line) == Pushed::Dropped {
                    counts.log_drops += 1;
                }
            }
        }
    }
}

/// Writes until all is written or no more can be; how many bytes were, and how what was written ends. A disk that fills
/// up takes part of a write and refuses the next (write(2)).
fn write_whole(bytes: &[u8], end: &mut End, mut write: impl FnMut(&[u8]) -> Io) -> usize {
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

/// A ring for one worker, mapped for the life of the process.
pub(crate) fn ring() -> io::Result<&'static Ring> {
    Ok(Box::leak(Box::new(Ring::new(RING_BYTES)?)))
}

/// Opens the log for appending, or standard output.
pub(crate) fn open(path: Option<&Path>) -> io::Result<OwnedFd> {
    match path {
        Some(path) => Ok(OwnedFd::from(OpenOptions::new().append(true).create(true).open(path)?)),
        None => io::stdout().as_fd().try_clone_to_owned(),
    }
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
    let (mut events, mut lines, mut log) = (Events::with_capacity(1), Vec::new(), File::from(log));
    let (mut pause_ms, mut end) = (BUSY_MS, End::Whole);
    loop {
        let stopping = !epoll.wait(&mut events, Timeout::Millis(pause_ms))?.is_empty();
        lines.clear();
        for ring in rings {
            ring.drain(&mut lines);
        }
        pause_ms = if lines.is_empty() { (pause_ms * 2).min(IDLE_MS) } else { BUSY_MS };
        if end == End::Torn && !lines.is_empty() {
            lines.insert(0, b'\n');
        }
        // A log that cannot be written (a full disk) loses these lines and must not stop the writer: there may be room later.
        let written = write_whole(&lines, &mut end, |rest| file_write(&mut log, rest));
        let left = &lines[written..];
        // A newline alone was to end what was torn, and is no line.
        let ends = left.iter().filter(|byte| **byte == b'\n').count();
        let alone = usize::from(left.first() == Some(&b'\n') && written == 0);
        lost.fetch_add((ends - alone) as u64, Ordering::Relaxed);
        if stopping {
            return Ok(());
        }
    }
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

/// One request is one line, whatever it asked for.
fn check_line(line: &[u8]) {
    let breaks = line.iter().filter(|byte| byte.is_ascii_control()).count();
    debug_assert!(
        breaks == 1 && line.ends_with(b"\n"),
        "a line of the log is one line: {}",
        line.escape_ascii()
    );
}

fn format_line(line: &mut Vec<u8>, entry: &Entry<'_>) {
    line.clear();
    match entry.peer {
        Some(IpAddr::V4(address)) => push_v4(line, address.octets()),
        // Longer addresses are rare enough for the formatting machinery; writing into a Vec cannot fail.
        Some(IpAddr::V6(address)) => write!(line, "{address}").unwrap_or_default(),
        None => line.push(b'-'),
    }
    line.extend_from_slice(b" - - [");
    line.extend_from_slice(entry.date);
    line.extend_from_slice(b"] \"");
    match entry.request {
        Some((method, target, version)) => {
            escape(line, method);
            line.push(b' ');
            escape(line, target);
            line.push(b' ');
            line.extend_from_slice(version.as_bytes());
        }
        None => line.push(b'-'),
    }
    line.extend_from_slice(b"\" ");
    encode::decimal(line, u64::from(entry.status));
    line.push(b' ');
    encode::decimal(line, entry.body_bytes);
    line.push(b'\n');
}

fn push_v4(line: &mut Vec<u8>, octets: [u8; 4]) {
    for (at, octet) in octets.into_iter().enumerate() {
        if at > 0 {
            line.push(b'.');
        }
        encode::decimal(line, u64::from(octet));
    }
}

/// Visible ASCII as it is, all else as `\xHH`, as nginx and Apache write it.
fn escape(line: &mut Vec<u8>, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        if (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\' {
            line.push(byte);
        } else {
            line.extend_from_slice(&[b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// The longest drain of the writer at its end: lines already pushed are a matter of milliseconds.
pub(crate) const WRITER_NS_MAX: u64 = 2 * SECOND_NS;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn line(request: Option<(&[u8], &[u8], &str)>, peer: Option<IpAddr>) -> String {
        let mut line = Vec::new();
        let date = b"21/Nov/2026:01:37:58 +0000";
        format_line(&mut line, &Entry { peer, date, request, status: 200, body_bytes: 27 });
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_line_reads_as_other_servers_write_it() {
        let local = Some("127.0.0.1".parse().unwrap());
        assert_eq!(
            line(Some((b"GET", b"/json?a=b", "HTTP/1.1")), local),
            "127.0.0.1 - - [21/Nov/2026:01:37:58 +0000] \"GET /json?a=b HTTP/1.1\" 200 27\n"
        );
        let other = Some("2001:db8::1".parse().unwrap());
        assert!(line(None, other).starts_with("2001:db8::1 - - ["));
        assert!(line(None, None).ends_with("] \"-\" 200 27\n"));
    }

    #[test]
    fn nothing_that_was_sent_can_forge_a_line() {
        let target: Vec<u8> = (0..=255).collect();
        let line = line(Some((b"GET", &target, "HTTP/1.1")), None);
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(line.matches('"').count(), 2);
        assert!(line.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{line}");
        assert!(
            line.contains("\\x0A")
                && line.contains("\\x1B")
                && line.contains("\\x22")
                && line.contains("\\x5C")
        );
    }

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
        let mut log = AccessLog::sync(open(Some(Path::new("/dev/full"))).unwrap());
        let mut counts = Counts::default();
        let entry = Entry { peer: None, date: b"", request: None, status: 200, body_bytes: 0 };
        log.entry(&entry, &mut counts);
        assert_eq!((counts.log_writes, counts.log_drops), (1, 1));
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

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

/// Bytes of a worker's ring: 256 KiB holds 2,500 lines, some 20 ms of a busy worker, four rounds of the writer.
const RING_BYTES: usize = 1 << 18;

/// How soon the writer looks again while there is traffic, in milliseconds.
const BUSY_MS: i32 = 5;

/// How seldom the writer looks when there is none, in milliseconds.
const IDLE_MS: i32 = 100;

/// Where a worker's lines go.
pub(crate) enum AccessLog {
    Off,
    Sync { file: OwnedFd, line: Vec<u8> },
    Ring { ring: &'static Ring, line: Vec<u8> },
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
        AccessLog::Sync { file, line: Vec::new() }
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
            AccessLog::Sync { file, line } => {
                format_line(line, entry);
                counts.log_writes += 1;
                if !matches!(socket::write(file.as_fd(), line), Io::Done(written) if written == line.len()) {
                    counts.log_drops += 1;
                }
            }
            AccessLog::Ring { ring, line } => {
                format_line(line, entry);
                if ring.push(line) == Pushed::Dropped {
                    counts.log_drops += 1;
                }
            }
        }
    }
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

/// Empties the rings into the log until `stop` is at its end of file; whatever was pushed before that is written.
pub(crate) fn write_rings(rings: &[&'static Ring], log: OwnedFd, stop: &OwnedFd) -> io::Result<()> {
    let epoll = Epoll::new()?;
    epoll.add(stop.as_fd(), 0, Interest::READ)?;
    let (mut events, mut lines, mut log) = (Events::with_capacity(1), Vec::new(), File::from(log));
    let mut pause_ms = BUSY_MS;
    loop {
        let stopping = !epoll.wait(&mut events, Timeout::Millis(pause_ms))?.is_empty();
        lines.clear();
        for ring in rings {
            ring.drain(&mut lines);
        }
        pause_ms = if lines.is_empty() { (pause_ms * 2).min(IDLE_MS) } else { BUSY_MS };
        // A log that cannot be written (a full disk) loses these lines and must not stop the writer: there may be room later.
        let _ = log.write_all(&lines);
        if stopping {
            return Ok(());
        }
    }
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
        write_rings(&[ring], OwnedFd::from(log), &OwnedFd::from(stop)).unwrap();
        let mut text = String::new();
        io::Read::read_to_string(&mut reader, &mut text).unwrap();
        assert_eq!(text, "line 0\nline 1\nline 2\n");
    }
}

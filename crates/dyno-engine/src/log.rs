//! The access log: one line per request in the combined style, and the writer that empties the workers' rings.
//!
//! A worker writes a line itself (`log = sync`) or puts it into its ring (`log = ring`) before the reply leaves, so a
//! reply that was seen has its line. The writer runs in a process (or thread) of its own. Nothing that a peer sends
//! can begin a line of its own: everything outside visible ASCII is escaped.

mod file;
mod writer;

use crate::stats::Counts;
use dyno_proto::http1::encode;
use dyno_sys::shm::{Pushed, Ring};
use dyno_sys::socket;
pub(crate) use file::open;
use std::io::Write;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use writer::{End, write_whole};
pub(crate) use writer::{WRITER_NS_MAX, ring, write_rings};

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::OpenOptions;

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
    fn a_line_that_a_full_disk_does_not_take_is_counted() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut log = AccessLog::sync(OwnedFd::from(full));
        let mut counts = Counts::default();
        let entry = Entry { peer: None, date: b"", request: None, status: 200, body_bytes: 0 };
        log.entry(&entry, &mut counts);
        assert_eq!((counts.log_writes, counts.log_drops), (1, 1));
    }
}

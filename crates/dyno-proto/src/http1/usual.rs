//! Reads at once how nearly every request begins: a GET of a plain path, the present version, and Host.
//!
//! The request reader asks here first. An answer is one that the careful readers would give too; no answer says
//! nothing at all, and they look from the start. Nothing is refused here.

use super::authority::usual_authority_bytes;
use super::head::Line;
use crate::scan::{target_end, target_end_in_words};

// Compared as arrays, which is a word at a time; patterns are byte by byte.
const METHOD: [u8; 4] = *b"GET ";
/// What stands between the target and the host.
const BETWEEN: [u8; 17] = *b" HTTP/1.1\r\nHost: ";
/// The part of it that belongs to the request line.
const VERSION_BYTES: usize = b" HTTP/1.1".len();
const LINE_END: &[u8; 2] = b"\r\n";

/// The first two lines of a request.
pub(crate) struct Usual<'b> {
    pub(crate) target: &'b [u8],
    /// Bytes of the target before its query.
    pub(crate) path_bytes: usize,
    pub(crate) host: &'b [u8],
    /// The field line of the host.
    pub(crate) line: Line,
    /// The byte after both lines.
    pub(crate) end: usize,
}

/// The longest host, with its port and line end, that is remembered: four cache lines hold any that people type.
const REMEMBERED_BYTES_MAX: usize = 256;

/// The host that was found sane last, with its line end. Nearly all requests of a worker name the same one, and
/// comparing it is cheaper than looking at it again. It never changes an outcome.
#[derive(Debug, Clone)]
pub(crate) struct Remembered {
    bytes: [u8; REMEMBERED_BYTES_MAX],
    count: usize,
}

impl Remembered {
    pub(crate) fn nothing() -> Self {
        Self { bytes: [0; REMEMBERED_BYTES_MAX], count: 0 }
    }

    /// Bytes of the remembered host, when the text starts with it and with its line end.
    #[inline]
    fn recognize(&self, text: &[u8]) -> Option<usize> {
        let known = self.bytes.get(..self.count)?;
        (self.count > 0 && text.starts_with(known)).then(|| self.count - LINE_END.len())
    }

    /// Bytes of the host that the text starts with, when it and the line end after it are as usual.
    #[inline(never)]
    fn judge(&mut self, text: &[u8]) -> Option<usize> {
        let host_bytes = usual_authority_bytes(text)?;
        if text.get(host_bytes..)?.first_chunk() != Some(LINE_END) {
            return None;
        }
        let count = host_bytes + LINE_END.len();
        if let Some(room) = self.bytes.get_mut(..count) {
            room.copy_from_slice(&text[..count]);
            self.count = count;
        }
        Some(host_bytes)
    }
}

/// Reads both lines with their line ends, if they are there and of the usual kind.
#[inline]
pub(crate) fn read_usual<'b>(
    window: &'b [u8],
    line_bytes_max: usize,
    remembered: &mut Remembered,
) -> Option<Usual<'b>> {
    let (method, after) = window.split_first_chunk()?;
    let (path_bytes, target_bytes) = usual_target(after)?;
    let (target, rest) = after.split_at_checked(target_bytes)?;
    let (between, rest) = rest.split_first_chunk()?;
    let line_bytes = METHOD.len() + target_bytes + VERSION_BYTES;
    if *method != METHOD || *between != BETWEEN || line_bytes > line_bytes_max {
        return None;
    }
    let host_bytes = match remembered.recognize(rest) {
        Some(bytes) => bytes,
        None => remembered.judge(rest)?,
    };
    let value_at = METHOD.len() + target_bytes + BETWEEN.len();
    let name_at = value_at - b"Host: ".len();
    let line = Line::new(name_at, name_at + b"Host".len(), value_at, value_at + host_bytes);
    let host = rest.get(..host_bytes)?;
    Some(Usual { target, path_bytes, host, line, end: value_at + host_bytes + LINE_END.len() })
}

/// Bytes of the path, and of the path with its query, if there is a path with nothing odd in it.
#[inline]
fn usual_target(after: &[u8]) -> Option<(usize, usize)> {
    if after.first() != Some(&b'/') {
        return None;
    }
    let path_bytes = target_end_in_words(after)?;
    match after.get(path_bytes) {
        Some(b'?') => Some((path_bytes, query_end(after, path_bytes))),
        _ => Some((path_bytes, path_bytes)),
    }
}

/// Where the query ends that starts at `at`; further question marks belong to it.
#[inline(never)]
fn query_end(after: &[u8], mut at: usize) -> usize {
    while after.get(at) == Some(&b'?') {
        at = target_end(after, at + 1);
    }
    at
}

//! Reads at once how nearly every request begins: a GET of a plain path, the present version, and Host.
//!
//! Only `parse_usual` of the request reader calls it. An answer is one that the careful readers would give too; no
//! answer says nothing at all, and they look from the start. Nothing is refused here.

use super::authority::usual_authority_bytes;
use super::head::Line;
use crate::scan::{target_end, target_end_in_words};

const METHOD: [u8; 4] = *b"GET ";
/// What stands between the target and the host.
const BETWEEN: [u8; 17] = *b" HTTP/1.1\r\nHost: ";
/// The part of it that belongs to the request line.
const VERSION_BYTES: usize = b" HTTP/1.1".len();
const LINE_END: [u8; 2] = *b"\r\n";

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

/// Bytes that are compared at once: one vector of SSE2 or NEON, if arrays are compared and not slices.
const BLOCK_BYTES: usize = 16;
/// What three blocks cover: hosts of up to 29 bytes with their ports, which nearly all are.
const ENDING_BYTES_MAX: usize = 3 * BLOCK_BYTES;
// So that there is always a whole block to compare.
const _: () = assert!(BETWEEN.len() >= BLOCK_BYTES, "every ending has a whole block");

/// What followed the target last: the version, a host that was found sane, and the line end after it. Nearly all
/// requests that a worker reads name one host, and comparing it is cheaper than looking at it again. It never
/// changes an outcome.
#[derive(Debug, Clone)]
pub(crate) struct Remembered {
    blocks: [[u8; BLOCK_BYTES]; 3],
    /// Bytes of it; more than any text has as long as nothing is remembered.
    count: usize,
}

impl Remembered {
    pub(crate) fn nothing() -> Self {
        Self { blocks: [[0; BLOCK_BYTES]; 3], count: usize::MAX }
    }

    /// Bytes of the host, when the text starts as the last one did.
    #[inline(always)] // As `read_usual`, in which it is.
    fn recognize(&self, text: &[u8]) -> Option<usize> {
        let [first, middle, last] = blocks(text.get(..self.count)?)?;
        let is_same = *first == self.blocks[0] && *middle == self.blocks[1] && *last == self.blocks[2];
        is_same.then_some(self.count - BETWEEN.len() - LINE_END.len())
    }

    /// Bytes of the host, when the text starts as usual; it is remembered then, if it is short enough.
    #[inline(never)]
    fn judge(&mut self, text: &[u8]) -> Option<usize> {
        let (between, rest) = text.split_first_chunk()?;
        if *between != BETWEEN {
            return None;
        }
        let host_bytes = usual_authority_bytes(rest)?;
        if rest.get(host_bytes..)?.first_chunk() != Some(&LINE_END) {
            return None;
        }
        let ending = text.get(..BETWEEN.len() + host_bytes + LINE_END.len())?;
        if ending.len() <= ENDING_BYTES_MAX {
            self.blocks = blocks(ending)?.map(|block| *block);
            self.count = ending.len();
        }
        Some(host_bytes)
    }
}

/// Three blocks that cover an ending of at most [`ENDING_BYTES_MAX`]: its first, its last, and what is between
/// them or overlaps them.
#[inline]
fn blocks(ending: &[u8]) -> Option<[&[u8; BLOCK_BYTES]; 3]> {
    let last_at = ending.len().checked_sub(BLOCK_BYTES)?;
    let middle = ending.get(last_at.min(BLOCK_BYTES)..)?.first_chunk()?;
    Some([ending.first_chunk()?, middle, ending.last_chunk()?])
}

/// Reads both lines with their line ends, if they are there and of the usual kind.
#[inline(always)] // Half of its work would be to hand the outcome over.
pub(crate) fn read_usual<'b>(
    window: &'b [u8],
    line_bytes_max: usize,
    remembered: &mut Remembered,
) -> Option<Usual<'b>> {
    let (method, after) = window.split_first_chunk()?;
    // As arrays, which are compared as words; a pattern would be compared byte by byte.
    if *method != METHOD {
        return None;
    }
    let (path_bytes, target_bytes) = usual_target(after)?;
    let (target, rest) = after.split_at_checked(target_bytes)?;
    if METHOD.len() + target_bytes + VERSION_BYTES > line_bytes_max {
        return None;
    }
    let host_bytes = match remembered.recognize(rest) {
        Some(bytes) => bytes,
        None => remembered.judge(rest)?,
    };
    let value_at = METHOD.len() + target_bytes + BETWEEN.len();
    let name_at = value_at - b"Host: ".len();
    let line = Line::new(name_at, name_at + b"Host".len(), value_at, value_at + host_bytes);
    let host = rest.get(BETWEEN.len()..)?.get(..host_bytes)?;
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

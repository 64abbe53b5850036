//! A segment of output: bytes of its own, bytes of others, or a part of a file, and how much of it has left.

use crate::file::FilePart;
use crate::shared::Shared;

/// Slices of one gathering write: 32 replies with shared bodies, well below the kernel's 1,024.
pub(crate) const SLICES_MAX: usize = 64;

/// Bytes of a file that leave in one turn, so that one large reply does not keep the other connections waiting: about
/// 40 µs of copying.
pub(crate) const FILE_BYTES_STEP: usize = 256 << 10;

/// How a flush ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Everything was taken and the outbox is empty.
    All,
    /// The socket is full, or has had its share of the turn; the rest is in the outbox.
    Blocked,
    /// The next bytes are a file's and are not in memory; the rest is in the outbox, or the queue.
    Cold,
    /// A file is not what it was: the reply cannot be completed, and nothing more can be said.
    Changed,
    /// The connection is broken.
    Broken,
}

/// Where a segment's bytes are.
#[derive(Debug)]
pub(crate) enum Piece {
    /// In memory of its own: a copy of what the socket refused.
    Owned(Vec<u8>),
    /// In the program.
    Static(&'static [u8]),
    /// In memory that others use as well.
    Shared(Shared),
    /// Of a file.
    File(FilePart),
}

/// One segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) piece: Piece,
    /// Bytes of it that have left.
    pub(crate) sent: u64,
}

impl Segment {
    pub(crate) fn new(piece: Piece) -> Segment {
        Segment { piece, sent: 0 }
    }

    /// The bytes that have not left; `None` for a file's.
    pub(crate) fn rest(&self) -> Option<&[u8]> {
        let bytes = match &self.piece {
            Piece::Owned(bytes) => bytes,
            Piece::Static(bytes) => *bytes,
            Piece::Shared(shared) => shared.as_bytes(),
            Piece::File(_) => return None,
        };
        let sent = usize::try_from(self.sent).expect("bytes in memory are counted by usize");
        Some(&bytes[sent..])
    }

    /// How many bytes have not left.
    pub(crate) fn left(&self) -> u64 {
        let length = match &self.piece {
            Piece::Owned(bytes) => bytes.len() as u64,
            Piece::Static(bytes) => bytes.len() as u64,
            Piece::Shared(shared) => shared.len() as u64,
            Piece::File(file) => file.length,
        };
        debug_assert!(self.sent <= length, "no more leaves than there is");
        length - self.sent
    }

    /// Bytes of memory that only this segment holds.
    pub(crate) fn owned_bytes(&self) -> usize {
        match &self.piece {
            Piece::Owned(bytes) => bytes.capacity(),
            _ => 0,
        }
    }
}

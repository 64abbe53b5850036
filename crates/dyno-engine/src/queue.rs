//! A connection's send queue: what the socket refused, segment by segment. It exists only while something waits.
//!
//! Shared bodies and files wait by reference; only inline bytes are copied.

use crate::fault::{Fault, planted};
use crate::file::FilePart;
use crate::seam::{FileSent, Net};
use crate::segment::{FILE_BYTES_STEP, Flushed, Piece, SLICES_MAX, Segment};
use crate::stats::Counts;
use dyno_sys::resident::Patience;
use dyno_sys::socket::Io;
use std::collections::VecDeque;
use std::io::IoSlice;

/// A queue that holds this many bytes of its own, or anything of a file, stops the reading of its connection: what a
/// client pipelines while it does not read is not understood, let alone answered.
pub(crate) const QUEUE_BYTES_PAUSE: u64 = 64 << 10;

/// Calls per turn, so that one reader that takes everything does not keep the other connections waiting.
const CALLS_MAX: usize = 4;

/// Segments that have not left, in their order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    segments: VecDeque<Segment>,
    /// The bytes of all of them.
    left: u64,
    /// Memory that only this queue holds.
    owned_bytes: usize,
    /// Bytes that have left through this queue since it was made.
    pub(crate) taken: u64,
    /// Whether the next bytes begin a segment of their own, for a seam that splits.
    is_cut: bool,
    pub(crate) pages: Pages,
}

/// How it stands with the pages of the file in front.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Pages {
    #[default]
    Unasked,
    /// They are being fetched; nothing is sent until a message tells that they are there.
    Awaited,
    /// They were fetched and nothing of them has been sent: should they be gone again they are waited for, so that a
    /// machine short of memory does not fetch them for ever.
    Fetched,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        debug_assert_eq!(
            self.segments.is_empty(),
            self.left == 0,
            "queue is counted: only an empty one holds nothing"
        );
        self.segments.is_empty()
    }

    /// The bytes of a file that must leave next: which file, and from where.
    pub(crate) fn file_in_front(&self) -> Option<(&FilePart, u64)> {
        match self.segments.front()? {
            Segment { piece: Piece::File(file), sent } => Some((file, file.offset + sent)),
            _ => None,
        }
    }

    /// Whether it is time to read no more.
    pub(crate) fn is_long(&self) -> bool {
        self.left >= QUEUE_BYTES_PAUSE
    }

    /// Memory that only this queue holds.
    pub(crate) fn owned_bytes(&self) -> usize {
        self.owned_bytes
    }

    /// Adds a copy of inline bytes.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if !self.is_cut
            && let Some(Segment { piece: Piece::Owned(last), .. }) = self.segments.back_mut()
        {
            let before = last.capacity();
            last.extend_from_slice(bytes);
            self.owned_bytes += last.capacity() - before;
            self.left += bytes.len() as u64;
            return;
        }
        self.push(Segment::new(Piece::Owned(bytes.to_vec())));
    }

    /// Adds a segment.
    pub(crate) fn push(&mut self, segment: Segment) {
        debug_assert!(segment.left() > 0, "an empty segment would never leave");
        self.is_cut = false;
        self.left += segment.left();
        self.owned_bytes += segment.owned_bytes();
        self.segments.push_back(segment);
    }

    /// Keeps what is added next apart from what is there.
    pub(crate) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Sends as much as the socket and the connection's share of a turn allow.
    pub(crate) fn send<N: Net>(&mut self, net: &mut N, socket: &N::Socket, counts: &mut Counts) -> Flushed {
        debug_assert!(!self.is_empty(), "a queue is sent when something waits in it");
        for _ in 0..CALLS_MAX {
            let Some(first) = self.segments.front() else { return Flushed::All };
            counts.sends += 1;
            if let Piece::File(file) = &first.piece {
                let offered = usize::try_from(first.left()).unwrap_or(usize::MAX).min(FILE_BYTES_STEP);
                let patience = if self.pages == Pages::Fetched { Patience::Waits } else { Patience::None };
                match net.send_file(socket, file, file.offset + first.sent, offered, patience) {
                    FileSent::Changed if planted(Fault::ChangedTakenForSent) => self.advance(offered as u64),
                    FileSent::Done(taken) => {
                        self.pages = Pages::Unasked;
                        self.advance(taken as u64);
                        if taken < offered {
                            return Flushed::Blocked;
                        }
                    }
                    FileSent::WouldBlock => return Flushed::Blocked,
                    FileSent::Cold => return Flushed::Cold,
                    FileSent::Changed => return Flushed::Changed,
                    FileSent::Broken => return Flushed::Broken,
                }
                continue;
            }
            let (offered, sent) = self.send_gathered(net, socket);
            match sent {
                Io::Done(taken) => {
                    self.advance(taken as u64);
                    if taken < offered {
                        return Flushed::Blocked;
                    }
                }
                Io::WouldBlock => return Flushed::Blocked,
                Io::Closed | Io::Failed(_) => return Flushed::Broken,
            }
        }
        if self.segments.is_empty() { Flushed::All } else { Flushed::Blocked }
    }

    fn send_gathered<N: Net>(&self, net: &mut N, socket: &N::Socket) -> (usize, Io) {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let (mut count, mut offered) = (0, 0);
        let most = if net.splits() { 1 } else { SLICES_MAX };
        for rest in self.segments.iter().map_while(Segment::rest).take(most) {
            slices[count] = IoSlice::new(rest);
            (count, offered) = (count + 1, offered + rest.len());
        }
        match count {
            1 => (offered, net.send(socket, &slices[0])),
            _ => (offered, net.send_slices(socket, &slices[..count])),
        }
    }

    fn advance(&mut self, taken: u64) {
        debug_assert!(taken <= self.left, "no more leaves than waits: {taken} of {}", self.left);
        self.left -= taken;
        self.taken += taken;
        let mut rest = taken;
        while rest > 0 {
            let first = self.segments.front_mut().expect("no more is taken than was offered");
            let of_first = first.left().min(rest);
            first.sent += of_first;
            rest -= of_first;
            if first.left() == 0 {
                self.owned_bytes -= first.owned_bytes();
                self.segments.pop_front();
            }
        }
        debug_assert_eq!(
            self.left,
            self.segments.iter().map(Segment::left).sum::<u64>(),
            "queue is counted: what waits is what its segments hold"
        );
    }
}

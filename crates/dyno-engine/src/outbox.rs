//! The outbox: the send buffer that all connections of a worker share, in which the replies of a turn gather.
//!
//! Inline bodies stand in its bytes behind their heads; shared bodies and files stand between them by reference. In the
//! common case everything leaves in one `send`, or one gathering write. What the socket refuses the connection takes
//! away into a queue of its own. It allocates nothing per reply once its buffers have grown.

use crate::fault::{Fault, planted};
use crate::queue::Queue;
use crate::seam::{FileSent, Net};
use crate::segment::{FILE_BYTES_STEP, Flushed, Piece, SLICES_MAX, Segment};
use crate::stats::Counts;
use dyno_sys::resident::Patience;
use dyno_sys::socket::Io;
use std::io::IoSlice;

/// Replies that have gathered this many bytes leave before more requests are read from the receive buffer:
/// as much as a default send buffer grows to without tuning (net.ipv4.tcp_wmem, 16 kB to 4 MB).
pub(crate) const OUTBOX_BYTES_FLUSH: usize = 256 << 10;

/// An outbox that one large reply has blown up beyond this gives the memory back.
const OUTBOX_BYTES_KEEP: usize = 1 << 20;

/// Something that stands after the first `at` bytes.
#[derive(Debug)]
struct Part {
    at: usize,
    what: What,
}

#[derive(Debug)]
enum What {
    /// One send ends here and another begins.
    Cut,
    Segment(Segment),
}

/// The shared send buffer.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    /// Bytes of `bytes` that have left.
    sent: usize,
    parts: Vec<Part>,
    /// Parts that have left.
    parts_sent: usize,
}

/// A place in the outbox to which it can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    bytes: usize,
    parts: usize,
}

impl Outbox {
    pub(crate) fn new() -> Outbox {
        Outbox { bytes: Vec::with_capacity(OUTBOX_BYTES_FLUSH), ..Outbox::default() }
    }

    /// Whether nothing waits to leave.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len() && self.parts_sent == self.parts.len()
    }

    /// Bytes that wait to leave, those of files and shared bodies not counted.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether something of another's stands in it, which leaves before more is gathered.
    #[inline]
    pub(crate) fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Where the next reply will begin.
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), parts: self.parts.len() }
    }

    /// The bytes since the mark.
    #[inline]
    pub(crate) fn since(&self, mark: Mark) -> usize {
        self.bytes.len() - mark.bytes
    }

    /// Forgets what was added since the mark; only before a flush.
    pub(crate) fn take_back(&mut self, mark: Mark) {
        debug_assert!(mark.bytes >= self.sent, "sent bytes cannot be taken back");
        self.bytes.truncate(mark.bytes);
        self.parts.truncate(mark.parts);
    }

    /// Where inline bytes are written.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Puts `head` in the place of the `head_bytes` after the mark.
    pub(crate) fn replace_head(&mut self, mark: Mark, head_bytes: usize, head: &[u8]) {
        debug_assert!(mark.bytes >= self.sent, "the head of a reply that has begun to leave stands");
        let range = mark.bytes..mark.bytes + head_bytes;
        if head.len() == head_bytes {
            self.bytes[range].copy_from_slice(head);
        } else {
            self.bytes.splice(range, head.iter().copied());
        }
    }

    /// Cuts off what stands more than `kept` bytes after the mark.
    pub(crate) fn truncate(&mut self, mark: Mark, kept: usize) {
        debug_assert!(self.parts.len() == mark.parts, "only inline bytes are cut off");
        self.bytes.truncate(mark.bytes + kept);
    }

    /// Adds a body that is not copied.
    pub(crate) fn push(&mut self, piece: Piece) {
        debug_assert!(!matches!(piece, Piece::Owned(_)), "owned bytes are inline in an outbox");
        let segment = Segment::new(piece);
        if segment.left() > 0 {
            self.parts.push(Part { at: self.bytes.len(), what: What::Segment(segment) });
        }
        self.check();
    }

    /// Ends a send `bytes` after the mark, for a seam that splits.
    pub(crate) fn cut(&mut self, mark: Mark, bytes: usize) {
        self.parts.push(Part { at: mark.bytes + bytes, what: What::Cut });
        self.check();
    }

    /// Parts stand in their order, and none behind the bytes that there are.
    fn check(&self) {
        debug_assert!(self.parts.is_sorted_by_key(|part| part.at), "parts stand in their order");
        debug_assert!(
            self.parts.last().is_none_or(|part| part.at <= self.bytes.len()),
            "a part stands behind bytes that there are"
        );
    }

    /// Sends what is in the outbox, which is not empty. A short send means that the socket is full.
    #[inline(always)] // Into the protocol's own, which is called once in each turn of a connection.
    pub(crate) fn flush<N: Net>(&mut self, net: &mut N, socket: &N::Socket, counts: &mut Counts) -> Flushed {
        debug_assert!(!self.is_empty(), "an outbox is flushed when something is in it");
        let flushed = if self.parts.is_empty() {
            self.flush_bytes(net, socket, counts)
        } else {
            self.flush_parts(net, socket, counts)
        };
        if !matches!(flushed, Flushed::Blocked | Flushed::Cold) {
            self.clear();
        }
        flushed
    }

    #[inline]
    fn flush_bytes<N: Net>(&mut self, net: &mut N, socket: &N::Socket, counts: &mut Counts) -> Flushed {
        counts.sends += 1;
        match net.send(socket, &self.bytes[self.sent..]) {
            Io::Done(taken) => {
                self.sent += taken;
                debug_assert!(self.sent <= self.bytes.len(), "no more leaves than there is");
                if self.sent == self.bytes.len() || planted(Fault::ShortWriteLost) {
                    Flushed::All
                } else {
                    Flushed::Blocked
                }
            }
            Io::WouldBlock => Flushed::Blocked,
            Io::Closed | Io::Failed(_) => Flushed::Broken,
        }
    }

    #[inline(never)]
    fn flush_parts<N: Net>(&mut self, net: &mut N, socket: &N::Socket, counts: &mut Counts) -> Flushed {
        let mut steps = 0;
        while !self.is_empty() {
            if let Some((file, from)) = self.file_in_front() {
                if steps > 0 {
                    return Flushed::Blocked;
                }
                steps += 1;
                let offered = usize::try_from(file.length - from).unwrap_or(usize::MAX).min(FILE_BYTES_STEP);
                let sent = net.send_file(socket, file, file.offset + from, offered, Patience::None);
                counts.sends += u64::from(sent.has_asked());
                match sent {
                    FileSent::Changed if planted(Fault::ChangedTakenForSent) => self.advance(offered),
                    FileSent::Done(taken) => {
                        self.advance(taken);
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
            counts.sends += u64::from(offered > 0);
            match sent {
                Io::Done(taken) => {
                    self.advance(taken);
                    if taken < offered {
                        return Flushed::Blocked;
                    }
                }
                Io::WouldBlock => return Flushed::Blocked,
                Io::Closed | Io::Failed(_) => return Flushed::Broken,
            }
        }
        Flushed::All
    }

    /// The file that must leave next, and how much of it has.
    fn file_in_front(&self) -> Option<(&crate::file::FilePart, u64)> {
        let part = self.parts.get(self.parts_sent)?;
        match &part.what {
            What::Segment(Segment { piece: Piece::File(file), sent }) if part.at == self.sent => {
                Some((file, *sent))
            }
            _ => None,
        }
    }

    /// Sends up to the next cut or file, and says how much was offered. A cut in front is passed over.
    fn send_gathered<N: Net>(&mut self, net: &mut N, socket: &N::Socket) -> (usize, Io) {
        while self.parts.get(self.parts_sent).is_some_and(|part| part.is_cut() && part.at == self.sent) {
            self.parts_sent += 1;
        }
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let (mut count, mut at, mut is_all, mut file_follows) = (0, self.sent, true, false);
        for part in &self.parts[self.parts_sent..] {
            if part.at > at {
                slices[count] = IoSlice::new(&self.bytes[at..part.at]);
                (count, at) = (count + 1, part.at);
            }
            let rest = match &part.what {
                What::Segment(segment) if count < SLICES_MAX - 2 => segment.rest(),
                _ => None,
            };
            let Some(rest) = rest else {
                is_all = false;
                file_follows = matches!(&part.what, What::Segment(Segment { piece: Piece::File(_), .. }));
                break;
            };
            slices[count] = IoSlice::new(rest);
            count += 1;
        }
        if is_all && at < self.bytes.len() {
            slices[count] = IoSlice::new(&self.bytes[at..]);
            count += 1;
        }
        let offered = slices[..count].iter().map(|slice| slice.len()).sum();
        match count {
            0 => (0, Io::Done(0)),
            _ if file_follows && !net.splits() => (offered, net.send_before_file(socket, &slices[..count])),
            1 => (offered, net.send(socket, &slices[0])),
            _ => (offered, net.send_slices(socket, &slices[..count])),
        }
    }

    /// Counts `taken` bytes as sent, in their order.
    fn advance(&mut self, taken: usize) {
        let mut left = taken as u64;
        while left > 0 {
            let next_at = self.parts.get(self.parts_sent).map_or(self.bytes.len(), |part| part.at);
            let inline = ((next_at - self.sent) as u64).min(left);
            self.sent += inline as usize;
            left -= inline;
            if left == 0 {
                return;
            }
            let part = &mut self.parts[self.parts_sent];
            let What::Segment(segment) = &mut part.what else {
                self.parts_sent += 1;
                continue;
            };
            let of_segment = segment.left().min(left);
            debug_assert!(of_segment > 0, "no more leaves than was offered");
            segment.sent += of_segment;
            left -= of_segment;
            if segment.left() == 0 {
                self.parts_sent += 1;
            }
        }
    }

    /// Moves what has not left to the end of a connection's queue and empties the outbox.
    pub(crate) fn move_to(&mut self, queue: &mut Queue) {
        for part in self.parts.drain(self.parts_sent..) {
            queue.push_bytes(&self.bytes[self.sent..part.at]);
            self.sent = part.at;
            match part.what {
                What::Segment(segment) => queue.push(segment),
                What::Cut => queue.cut(),
            }
        }
        queue.push_bytes(&self.bytes[self.sent..]);
        if planted(Fault::ReplyDoubled) {
            queue.push_bytes(&self.bytes[self.sent..]);
        }
        self.clear();
    }

    /// Drops what has not left.
    #[cold]
    pub(crate) fn discard(&mut self) {
        self.clear();
    }

    #[inline]
    fn clear(&mut self) {
        self.bytes.clear();
        self.parts.clear();
        (self.sent, self.parts_sent) = (0, 0);
        if self.bytes.capacity() > OUTBOX_BYTES_KEEP {
            self.give_back();
        }
    }

    #[cold]
    fn give_back(&mut self) {
        self.bytes.shrink_to(OUTBOX_BYTES_FLUSH);
    }
}

impl Part {
    fn is_cut(&self) -> bool {
        matches!(self.what, What::Cut)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Scripted, file};
    use crate::shared::Shared;
    use FileSent::{Broken, Changed, Cold, Done, WouldBlock};
    use dyno_measure::Prng;

    fn outbox(text: &[u8]) -> Outbox {
        let mut outbox = Outbox::new();
        outbox.bytes().extend_from_slice(text);
        outbox
    }

    fn flush(outbox: &mut Outbox, net: &mut Scripted) -> (Flushed, u64) {
        let mut counts = Counts::default();
        let flushed = outbox.flush(net, &(), &mut counts);
        (flushed, counts.sends)
    }

    #[test]
    fn what_a_socket_takes_is_gone_and_the_rest_waits() {
        let mut outbox = outbox(b"abcdef");
        let mut net = Scripted::saying([Done(2), WouldBlock, Done(4)]);
        assert_eq!(flush(&mut outbox, &mut net), (Flushed::Blocked, 1));
        assert_eq!((outbox.len(), outbox.is_empty()), (4, false));
        assert_eq!(flush(&mut outbox, &mut net), (Flushed::Blocked, 1));
        assert_eq!(flush(&mut outbox, &mut net), (Flushed::All, 1));
        assert_eq!((outbox.len(), outbox.is_empty(), net.text()), (0, true, "abcdef"));
        assert_eq!(net.calls, ["send 6", "send 4", "send 4"]);
        let mut lost = self::outbox(b"abc");
        assert_eq!(flush(&mut lost, &mut Scripted::saying([Broken])), (Flushed::Broken, 1));
        assert!(lost.is_empty(), "nobody gets it any more");
        let mut dropped = self::outbox(b"abc");
        dropped.discard();
        assert!(dropped.is_empty());
    }

    /// Heads and bodies that are not copied, in one call.
    fn replies() -> Outbox {
        let mut outbox = outbox(b"head1");
        outbox.push(Piece::Static(b"body1"));
        outbox.push(Piece::Static(b""));
        outbox.bytes().extend_from_slice(b"head2");
        outbox.push(Piece::Shared(Shared::from("body2")));
        outbox.bytes().extend_from_slice(b"tail");
        outbox
    }

    #[test]
    fn bodies_that_are_not_copied_leave_in_their_places() {
        let mut all = replies();
        assert!(all.has_parts() && !outbox(b"x").has_parts());
        assert_eq!(all.len(), 14, "of its own bytes");
        let mut net = Scripted::default();
        assert_eq!(flush(&mut all, &mut net), (Flushed::All, 1));
        assert_eq!(net.text(), "head1body1head2body2tail");
        assert_eq!(net.calls, ["slices 5+5+5+5+4"]);
        assert!(all.is_empty() && !all.has_parts());
    }

    /// Planted faults: a byte at the border of two parts is sent twice, or never. Each of the 24 bytes is such a border once.
    #[test]
    fn what_is_refused_moves_to_the_queue_wherever_it_was_cut() {
        for at in 1..24 {
            let (mut outbox, mut queue) = (replies(), Queue::default());
            let mut net = Scripted::saying([Done(at)]);
            assert_eq!(flush(&mut outbox, &mut net).0, Flushed::Blocked, "after {at}");
            outbox.move_to(&mut queue);
            assert!(outbox.is_empty() && !outbox.has_parts());
            assert_eq!(queue.send(&mut net, &(), &mut Counts::default()), Flushed::All);
            assert_eq!(net.text(), "head1body1head2body2tail", "cut after {at}");
            // And the same in the outbox itself.
            let (mut outbox, mut net) = (replies(), Scripted::saying([Done(at), Done(1)]));
            let mut ended = Flushed::Blocked;
            for _ in 0..3 {
                ended = if outbox.is_empty() { ended } else { flush(&mut outbox, &mut net).0 };
            }
            assert_eq!((net.text(), ended), ("head1body1head2body2tail", Flushed::All), "cut after {at}");
        }
    }

    #[test]
    fn a_cut_ends_a_send() {
        let mut outbox = outbox(b"before");
        let mark = outbox.mark();
        outbox.bytes().extend_from_slice(b"headbody");
        outbox.cut(mark, 4);
        outbox.cut(mark, 8);
        let mut net = Scripted { has_split: true, ..Scripted::default() };
        assert_eq!(flush(&mut outbox, &mut net), (Flushed::All, 2), "nothing is sent for the cut at the end");
        assert_eq!(net.calls, ["send 10", "send 4"]);
        let mut queue = Queue::default();
        let mut outbox = self::outbox(b"headbody");
        let start = Mark { bytes: 0, parts: 0 };
        outbox.cut(start, 4);
        outbox.move_to(&mut queue);
        let mut net = Scripted { has_split: true, ..Scripted::default() };
        assert_eq!(queue.send(&mut net, &(), &mut Counts::default()), Flushed::All);
        assert_eq!(net.calls, ["send 4", "send 4"], "the cut goes with it");
    }

    #[test]
    fn a_file_follows_its_head_at_once_and_one_step_is_a_turn() {
        for (has_split, head) in [(false, "before file 4"), (true, "send 4")] {
            let mut outbox = outbox(b"head");
            outbox.push(Piece::File(file(10)));
            outbox.bytes().extend_from_slice(b"next");
            let mut net = Scripted { has_split, ..Scripted::default() };
            assert_eq!(flush(&mut outbox, &mut net), (Flushed::All, 3));
            assert_eq!(net.text(), "head##########next");
            assert_eq!(net.calls, [head, "file 0+10", "send 4"]);
        }
        let mut outbox = Outbox::new();
        outbox.push(Piece::File(file(300_000)));
        let mut net = Scripted::default();
        assert_eq!(flush(&mut outbox, &mut net), (Flushed::Blocked, 1));
        assert_eq!(flush(&mut outbox, &mut net), (Flushed::All, 1));
        assert_eq!(net.calls, ["file 0+262144", "file 262144+37856"]);
    }

    /// Planted faults: the rest of a file that is not in memory is forgotten; that of one that has changed is kept.
    #[test]
    fn a_file_that_cannot_be_sent_says_why() {
        for (said, wanted, sends, is_kept) in [
            (Done(3), Flushed::Blocked, 1, true),
            (Cold, Flushed::Cold, 0, true),
            (WouldBlock, Flushed::Blocked, 1, true),
            (Changed, Flushed::Changed, 0, false),
            (Broken, Flushed::Broken, 1, false),
        ] {
            let mut outbox = Outbox::new();
            outbox.push(Piece::File(file(10)));
            assert_eq!(flush(&mut outbox, &mut Scripted::saying([said])), (wanted, sends), "{said:?}");
            assert_eq!(outbox.is_empty(), !is_kept, "{said:?}");
        }
    }

    #[test]
    fn what_was_added_since_a_mark_can_be_changed_and_taken_back() {
        let mut outbox = outbox(b"kept");
        outbox.push(Piece::Static(b"too"));
        let mark = outbox.mark();
        outbox.bytes().extend_from_slice(b"headbody");
        assert_eq!(outbox.since(mark), 8);
        outbox.replace_head(mark, 4, b"HEAD");
        assert_eq!(outbox.bytes().as_slice(), b"keptHEADbody");
        outbox.replace_head(mark, 4, b"longer head, ");
        assert_eq!(outbox.bytes().as_slice(), b"keptlonger head, body");
        outbox.replace_head(mark, 13, b"");
        outbox.truncate(mark, 2);
        assert_eq!(outbox.since(mark), 2);
        assert_eq!(outbox.bytes().as_slice(), b"keptbo");
        outbox.push(Piece::Static(b"gone"));
        outbox.take_back(mark);
        let mut net = Scripted::default();
        assert_eq!(flush(&mut outbox, &mut net).0, Flushed::All);
        assert_eq!(net.text(), "kepttoo");
    }

    /// Forty replies are eighty slices; a call takes 64 at most.
    #[test]
    fn more_parts_than_slices_leave_in_more_calls() {
        let mut outbox = Outbox::new();
        for _ in 0..40 {
            outbox.bytes().extend_from_slice(b"head");
            outbox.push(Piece::Static(b"body"));
        }
        let mut net = Scripted::default();
        assert_eq!(flush(&mut outbox, &mut net), (Flushed::All, 2));
        assert_eq!(net.text(), "headbody".repeat(40));
        assert!(net.calls.iter().all(|call| call.split('+').count() <= SLICES_MAX), "{:?}", net.calls);
    }

    #[test]
    fn an_outbox_that_was_blown_up_gives_its_memory_back() {
        let mut outbox = Outbox::new();
        outbox.bytes().resize(2 << 20, b'x');
        assert_eq!(flush(&mut outbox, &mut Scripted::default()).0, Flushed::All);
        assert!(outbox.bytes().capacity() <= OUTBOX_BYTES_KEEP, "{}", outbox.bytes().capacity());
        outbox.bytes().resize(OUTBOX_BYTES_FLUSH, b'x');
        let before = outbox.bytes().capacity();
        assert_eq!(flush(&mut outbox, &mut Scripted::default()).0, Flushed::All);
        assert_eq!(outbox.bytes().capacity(), before, "what is usual is kept");
    }

    /// Whatever stands in it and wherever the socket stops: every byte leaves once, in its order.
    #[test]
    fn every_byte_leaves_once_and_in_its_order() {
        for seed in 0..400 {
            let mut rng = Prng::new(seed);
            let (mut outbox, mut wanted) = (Outbox::new(), String::new());
            for piece in 0..1 + rng.below(12) {
                let letters = char::from(b'a' + piece as u8).to_string().repeat(1 + rng.below(9) as usize);
                let is_file = match rng.below(5) {
                    0 | 1 => {
                        outbox.bytes().extend_from_slice(letters.as_bytes());
                        false
                    }
                    2 => {
                        outbox.push(Piece::Shared(Shared::from(letters.clone().into_bytes())));
                        false
                    }
                    3 => {
                        outbox.push(Piece::File(file(letters.len() as u64)));
                        true
                    }
                    _ => {
                        outbox.bytes().extend_from_slice(letters.as_bytes());
                        let mark = outbox.mark();
                        outbox.cut(mark, 0);
                        false
                    }
                };
                wanted += &if is_file { "#".repeat(letters.len()) } else { letters };
            }
            let takes =
                |rng: &mut Prng| if rng.coin() { Done(1 + rng.below(9) as usize) } else { WouldBlock };
            let script: Vec<FileSent> = (0..20).map(|_| takes(&mut rng)).collect();
            let mut net = Scripted { has_split: rng.coin(), ..Scripted::saying(script) };
            let (mut queue, moves_after) = (Queue::default(), rng.below(4));
            for turn in 0.. {
                assert!(turn < 200, "seed {seed}: it never ends");
                if turn == moves_after && !outbox.is_empty() {
                    outbox.move_to(&mut queue);
                }
                if !outbox.is_empty() {
                    flush(&mut outbox, &mut net);
                } else if !queue.is_empty() {
                    queue.send(&mut net, &(), &mut Counts::default());
                } else {
                    break;
                }
            }
            assert_eq!(net.text(), wanted, "seed {seed}");
        }
    }
}

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
use std::sync::Arc;

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
#[derive(Debug, Default)]
pub(crate) enum Pages {
    #[default]
    Unasked,
    /// They are being fetched; nothing is sent until a message tells that they are there. Who fetches them sees by this
    /// whether they are still awaited.
    #[allow(dead_code)] // It is held, and not looked at.
    Awaited(Arc<()>),
    /// So many bytes were fetched a moment ago and have not been sent: should they be gone again they are waited for, so
    /// that a machine short of memory does not fetch them for ever.
    Fetched(u64),
}

impl Pages {
    /// Bytes of a file that may be sent at a time, and whether they are waited for.
    fn allowed(&self) -> (u64, Patience) {
        match self {
            Pages::Fetched(bytes) => ((*bytes).min(FILE_BYTES_STEP as u64), Patience::Waits),
            Pages::Unasked | Pages::Awaited(_) => (FILE_BYTES_STEP as u64, Patience::None),
        }
    }

    fn note_sent(&mut self, bytes: u64) {
        if let Pages::Fetched(left) = self {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                *self = Pages::Unasked;
            }
        }
    }

    /// The moment in which what was fetched is waited for is over: what was not sent by now may be gone for long when it is.
    pub(crate) fn end_moment(&mut self) {
        if matches!(self, Pages::Fetched(_)) && !planted(Fault::FetchedForGood) {
            *self = Pages::Unasked;
        }
    }
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
            if matches!(first.piece, Piece::File(_)) {
                if let Some(end) = self.send_of_file(net, socket, counts) {
                    return end;
                }
                continue;
            }
            counts.sends += 1;
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

    /// Sends of the file in front; `None` when the socket takes more.
    fn send_of_file<N: Net>(
        &mut self,
        net: &mut N,
        socket: &N::Socket,
        counts: &mut Counts,
    ) -> Option<Flushed> {
        let Some(Segment { piece: Piece::File(file), sent }) = self.segments.front() else { return None };
        let (bytes_max, patience) = self.pages.allowed();
        let offered =
            usize::try_from((file.length - sent).min(bytes_max)).expect("a step is counted by usize");
        let sent = net.send_file(socket, file, file.offset + sent, offered, patience);
        counts.sends += u64::from(sent.has_asked());
        let taken = match sent {
            FileSent::Changed if planted(Fault::ChangedTakenForSent) => offered,
            FileSent::Done(taken) => taken,
            FileSent::WouldBlock => return Some(Flushed::Blocked),
            FileSent::Cold => return Some(Flushed::Cold),
            FileSent::Changed => return Some(Flushed::Changed),
            FileSent::Broken => return Some(Flushed::Broken),
        };
        self.pages.note_sent(taken as u64);
        self.advance(taken as u64);
        (taken < offered).then_some(Flushed::Blocked)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Scripted, file};
    use crate::shared::Shared;
    use FileSent::{Broken, Changed, Cold, Done, WouldBlock};

    fn fixed(bytes: &'static [u8]) -> Segment {
        Segment::new(Piece::Static(bytes))
    }

    fn of_file(length: u64) -> Queue {
        let mut queue = Queue::default();
        queue.push(Segment::new(Piece::File(file(length))));
        queue
    }

    fn send(queue: &mut Queue, net: &mut Scripted) -> (Flushed, u64) {
        let mut counts = Counts::default();
        let flushed = queue.send(net, &(), &mut counts);
        (flushed, counts.sends)
    }

    /// Planted faults: what is added goes before what is there, or into a segment that was cut off.
    #[test]
    fn inline_bytes_are_joined_until_they_are_cut_apart() {
        for (has_split, calls, sends) in [(false, vec!["slices 4+4"], 1), (true, vec!["send 4", "send 4"], 2)]
        {
            let mut queue = Queue::default();
            for bytes in [&b"ab"[..], b"", b"cd"] {
                queue.push_bytes(bytes);
            }
            queue.cut();
            queue.push_bytes(b"ef");
            queue.push_bytes(b"gh");
            let mut net = Scripted { has_split, ..Scripted::default() };
            assert_eq!(send(&mut queue, &mut net), (Flushed::All, sends));
            assert_eq!(net.text(), "abcdefgh");
            assert_eq!(net.calls, calls);
            assert!(queue.is_empty() && queue.taken == 8);
        }
    }

    #[test]
    fn a_queue_is_long_from_64_kilobytes_on_and_with_a_large_file() {
        let mut queue = Queue::default();
        queue.push_bytes(&b"x".repeat((64 << 10) - 1));
        assert!(!queue.is_long());
        queue.push_bytes(b"x");
        assert!(queue.is_long());
        assert!(!of_file((64 << 10) - 1).is_long() && of_file(64 << 10).is_long());
    }

    /// Planted faults: what others hold is charged, or what left goes on being.
    #[test]
    fn memory_is_its_own_until_the_segment_has_left() {
        let mut queue = Queue::default();
        queue.push(fixed(b"1234"));
        queue.push(Segment::new(Piece::Shared(Shared::from("5678"))));
        assert_eq!(queue.owned_bytes(), 0);
        queue.push_bytes(b"9abc");
        let own = queue.owned_bytes();
        assert!(own >= 4);
        assert_eq!(send(&mut queue, &mut Scripted::saying([Done(10)])), (Flushed::Blocked, 1));
        assert_eq!((queue.owned_bytes(), queue.taken), (own, 10), "half of it waits");
        let grown = b"d".repeat(own);
        queue.push_bytes(&grown);
        assert!(queue.owned_bytes() >= 4 + own, "it has grown");
        assert_eq!(send(&mut queue, &mut Scripted::default()), (Flushed::All, 1));
        assert_eq!((queue.owned_bytes(), queue.taken), (0, 12 + own as u64));
    }

    #[test]
    fn what_a_socket_refuses_waits_in_its_place() {
        let mut queue = Queue::default();
        queue.push(fixed(b"abc"));
        queue.push(fixed(b"def"));
        let mut net = Scripted::saying([Done(2), WouldBlock, Done(3)]);
        let sent: Vec<_> = (0..4).map(|_| send(&mut queue, &mut net)).collect();
        assert_eq!(
            sent,
            [(Flushed::Blocked, 1), (Flushed::Blocked, 1), (Flushed::Blocked, 1), (Flushed::All, 1)]
        );
        assert_eq!(net.text(), "abcdef");
        assert_eq!(net.calls, ["slices 3+3", "slices 1+3", "slices 1+3", "send 1"]);
        queue.push(fixed(b"gone"));
        assert_eq!(send(&mut queue, &mut Scripted::saying([Broken])), (Flushed::Broken, 1));
    }

    #[test]
    fn a_turn_is_four_calls() {
        for (segments, first) in [(3, Flushed::All), (4, Flushed::All), (5, Flushed::Blocked)] {
            let mut queue = Queue::default();
            (0..segments).for_each(|_| queue.push(fixed(b"x")));
            let mut net = Scripted { has_split: true, ..Scripted::default() };
            assert_eq!(send(&mut queue, &mut net), (first, segments.min(4)), "{segments}");
            assert_eq!(queue.is_empty(), first == Flushed::All);
        }
    }

    /// 600,000 bytes are two steps of 256 KiB and 75,712 bytes.
    #[test]
    fn a_file_leaves_step_by_step_behind_what_stands_before_it() {
        let mut queue = Queue::default();
        queue.push_bytes(b"head");
        queue.push(Segment::new(Piece::File(file(600_000))));
        let mut net = Scripted::default();
        assert_eq!(send(&mut queue, &mut net), (Flushed::All, 4));
        assert_eq!(net.calls, ["send 4", "file 0+262144", "file 262144+262144", "file 524288+75712"]);
        assert!(net.taken.starts_with(b"head###") && net.taken.len() == 600_004);
        let part = file(1_000).part(200..500);
        let mut queue = Queue::default();
        part.into_iter().for_each(|part| queue.push(Segment::new(Piece::File(part))));
        let mut net = Scripted::saying([Done(50)]);
        assert_eq!(send(&mut queue, &mut net), (Flushed::Blocked, 1));
        assert_eq!(net.calls, ["file 200+300"]);
        assert_eq!(queue.file_in_front().map(|(file, offset)| (file.length, offset)), Some((300, 250)));
        assert_eq!(queue.taken, 50);
    }

    #[test]
    fn a_file_that_cannot_be_sent_says_why_and_loses_nothing() {
        for (said, wanted, sends) in [
            (Cold, Flushed::Cold, 0),
            (Changed, Flushed::Changed, 0),
            (WouldBlock, Flushed::Blocked, 1),
            (Broken, Flushed::Broken, 1),
        ] {
            let mut queue = of_file(10);
            assert_eq!(send(&mut queue, &mut Scripted::saying([said])), (wanted, sends), "{said:?}");
            assert_eq!((queue.taken, queue.file_in_front().map(|(_, offset)| offset)), (0, Some(0)));
        }
        let mut queue = Queue::default();
        queue.push(fixed(b"x"));
        assert!(queue.file_in_front().is_none(), "bytes are no file");
    }

    /// Planted faults: what was fetched is waited for without end, or more than was fetched is.
    #[test]
    fn what_was_fetched_is_waited_for_once() {
        let mut queue = of_file(1_000);
        queue.pages = Pages::Fetched(100);
        let mut net = Scripted::saying([Done(60), Done(40), Done(1)]);
        assert_eq!(send(&mut queue, &mut net).0, Flushed::Blocked);
        assert_eq!(net.calls, ["file 0+100, waits"]);
        assert_eq!(send(&mut queue, &mut net).0, Flushed::Blocked);
        assert_eq!(net.calls[1..], ["file 60+40, waits", "file 100+900"]);
        assert!(matches!(queue.pages, Pages::Unasked));
    }

    #[test]
    fn pages_are_fetched_until_they_are_sent_or_their_moment_is_over() {
        let step = FILE_BYTES_STEP as u64;
        assert_eq!(Pages::Unasked.allowed(), (step, Patience::None));
        assert_eq!(Pages::Awaited(Arc::new(())).allowed(), (step, Patience::None));
        assert_eq!(Pages::Fetched(10).allowed(), (10, Patience::Waits));
        assert_eq!(Pages::Fetched(step + 1).allowed(), (step, Patience::Waits));
        let after = |sent: u64| {
            let mut pages = Pages::Fetched(10);
            pages.note_sent(sent);
            match pages {
                Pages::Fetched(left) => left,
                Pages::Unasked | Pages::Awaited(_) => 0,
            }
        };
        assert_eq!([0, 4, 10, 11].map(after), [10, 6, 0, 0]);
        let mut pages = Pages::Fetched(10);
        pages.end_moment();
        assert!(matches!(pages, Pages::Unasked));
        let mut pages = Pages::Awaited(Arc::new(()));
        pages.note_sent(5);
        pages.end_moment();
        assert!(matches!(pages, Pages::Awaited(_)), "nothing of it has come yet");
    }
}

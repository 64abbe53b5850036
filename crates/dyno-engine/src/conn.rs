//! Connections: a slab of small entries. An idle connection is its entry and nothing else; what a partial request, an
//! unread reply or an answer that is owed needs is in a box beside it and freed with it.
//!
//! Reading and writing are two states. Invariants, asserted and planted as faults in the simulator's list:
//! - *paused is awaited*: who reads no more has a reason that ends: a queue, something owed, or a paused upload;
//! - *boxed or idle*: an entry without a box is idle or lingers;
//! - *reading says what*: a head is kept, a body is awaited, a closing connection keeps neither;
//! - *free is empty*: an entry that is not in use has no box and stands in no slot of the timer wheel.

use crate::asked::Asked;
use crate::fault::{Fault, planted};
use crate::foreign::Foreign;
use crate::later::Waited;
use crate::log::Kept;
use crate::mailbox::Address;
use crate::queue::{Pages, Queue};
use crate::response::Source;
use crate::seam::Watch;
use crate::timer::{Entries, Link, Tick};
use crate::upload::Upload;
use dyno_proto::http1::chunk;
use std::net::IpAddr;
use std::sync::Arc;

/// "No entry" in the list of free ones.
const NONE: u32 = u32::MAX;

// The promise of the manual: an idle connection costs at most one cache line of user memory.
const _: () =
    assert!(size_of::<Conn<std::os::fd::OwnedFd>>() <= 64, "an idle connection takes at most 64 bytes");

/// What is done with input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The first byte of a request is awaited.
    Idle,
    /// The rest of a head.
    Head,
    /// The rest of a body.
    Body,
    /// Nothing is read until something else has happened.
    Paused,
    /// Nothing is understood any more: what comes is discarded until the peer closes.
    Done,
}

/// Whether it is known whose connection it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// As far as it ever will be.
    Known,
    /// A proxy's header must come before anything else.
    Awaited,
    /// It came, and its client has as many connections as it may: this one is closed.
    TooMany,
}

/// One connection. `S` is its end: a descriptor, or a simulator's.
#[derive(Debug)]
pub(crate) struct Conn<S> {
    socket: Option<S>,
    /// Told in the token, so that an event of a closed connection never reaches its successor in the entry.
    generation: u32,
    pub(crate) link: Link,
    pub(crate) busy: Option<Box<Busy>>,
    /// Bytes discarded since reading was done; the next free entry while free.
    pub(crate) discarded: u32,
    pub(crate) reading: Reading,
    /// Who the peer is, or whom a proxy's header names. Only known when there is an access log or a gate.
    pub(crate) peer: Option<IpAddr>,
    pub(crate) client: Client,
}

/// What a connection holds while something is incomplete.
#[derive(Debug)]
pub(crate) struct Busy {
    /// Received and not yet understood: part of a head, or requests that wait behind something.
    pub(crate) input: Vec<u8>,
    /// The request whose body is coming in.
    pub(crate) incoming: Option<Incoming>,
    /// What the socket refused.
    pub(crate) queue: Queue,
    /// The reply that is not complete.
    pub(crate) owed: Option<Owed>,
    /// No further request is answered: when all has left the connection is closed.
    pub(crate) is_closing: bool,
    /// What the connection is watched for.
    pub(crate) watch: Watch,
    /// The peer sends no more, as was told while something is owed to it.
    pub(crate) peer_has_closed: bool,
    /// The kernel looks after the peer while nothing is sent.
    pub(crate) is_kept_alive: bool,
    /// Up to where the access log must be written before anything of the queue leaves.
    pub(crate) held_until: Option<u64>,
    /// Bytes charged to the budget.
    pub(crate) charged: usize,
    /// When reading, writing and waiting for an answer have taken too long.
    pub(crate) read_due: Option<Tick>,
    pub(crate) write_due: Option<Tick>,
    pub(crate) owed_due: Option<Tick>,
    /// Bytes of a body that came in the present stretch of its limit.
    pub(crate) body_progress: usize,
    /// Bytes that the peer had acknowledged when the present stretch of its write limit began, and that it must have
    /// acknowledged when it ends, both counted from the same moment.
    pub(crate) acknowledged: i64,
    pub(crate) must_acknowledge: i64,
    /// When something last moved.
    pub(crate) moved: Tick,
}

/// A request whose head was understood and whose body is incomplete.
pub(crate) struct Incoming {
    /// The head's bytes, read again when the body is whole; empty for an upload.
    pub(crate) head: Vec<u8>,
    pub(crate) asked: Asked,
    pub(crate) framing: Framing,
    pub(crate) into: Into,
    /// What the access log says of it, when there is one.
    pub(crate) line: Option<Box<Kept>>,
}

/// Where a body goes.
pub(crate) enum Into {
    /// Into memory, until it is whole.
    Memory(Vec<u8>),
    /// To an upload.
    Upload(Box<Uploading>),
}

/// An upload on its way.
pub(crate) struct Uploading {
    /// `None` once it has ended.
    pub(crate) upload: Option<Box<dyn Upload>>,
    pub(crate) address: Address,
    pub(crate) is_paused: bool,
}

/// Where a body ends.
#[derive(Debug)]
pub(crate) enum Framing {
    /// After this many more bytes.
    Length(u64),
    /// Where its chunks say.
    Chunked(chunk::Decoder),
}

/// A reply that is not complete.
pub(crate) struct Owed {
    pub(crate) serial: u32,
    pub(crate) asked: Asked,
    pub(crate) what: OwedWhat,
    pub(crate) line: Option<Box<Kept>>,
    /// Whether the access log has its line already.
    pub(crate) is_told: bool,
    pub(crate) status: u16,
    pub(crate) head_bytes: u64,
    pub(crate) body_bytes: u64,
}

/// What is missing.
pub(crate) enum OwedWhat {
    /// All of it.
    Answer { waited: Arc<Waited> },
    /// The rest of its body.
    Stream { source: Foreign<Box<dyn Source>>, framing: StreamFraming, is_waiting: bool },
}

/// How the end of a streamed body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamFraming {
    /// By a last chunk.
    Chunked,
    /// After this many more bytes.
    Length(u64),
    /// By the close of the connection.
    Close,
}

impl Default for Busy {
    fn default() -> Busy {
        Busy {
            input: Vec::new(),
            incoming: None,
            queue: Queue::default(),
            owed: None,
            is_closing: false,
            watch: Watch::INPUT,
            peer_has_closed: false,
            is_kept_alive: false,
            held_until: None,
            charged: 0,
            read_due: None,
            write_due: None,
            owed_due: None,
            body_progress: 0,
            acknowledged: 0,
            must_acknowledge: 0,
            moved: Tick::default(),
        }
    }
}

impl Busy {
    /// Whether nothing is incomplete any more, so that the box can go.
    pub(crate) fn is_over(&self) -> bool {
        self.input.is_empty()
            && self.incoming.is_none()
            && self.queue.is_empty()
            && self.owed.is_none()
            && !self.is_closing
            && self.watch == Watch::INPUT
            && self.write_due.is_none()
    }

    /// Whether requests must wait: for a reply that is not complete, for the peer to read, for an upload.
    pub(crate) fn is_paused(&self) -> bool {
        let owes = self.owed.is_some() && !planted(Fault::OrderLost);
        self.is_closing || owes || self.queue.is_long() || self.is_upload_paused()
    }

    pub(crate) fn is_upload_paused(&self) -> bool {
        self.uploading().is_some_and(|uploading| uploading.is_paused)
    }

    pub(crate) fn uploading(&self) -> Option<&Uploading> {
        match &self.incoming {
            Some(Incoming { into: Into::Upload(uploading), .. }) => Some(uploading),
            _ => None,
        }
    }

    /// Whether what must leave next is being brought into memory.
    pub(crate) fn awaits_pages(&self) -> bool {
        matches!(self.queue.pages, Pages::Awaited(_))
    }

    /// Whether a source has more to give than the queue holds.
    pub(crate) fn has_source_ready(&self) -> bool {
        matches!(&self.owed, Some(Owed { what: OwedWhat::Stream { is_waiting: false, .. }, .. }))
    }

    /// Whether all that was given has left, and the source that is owed has nothing more for now.
    pub(crate) fn is_silent(&self) -> bool {
        let waits = matches!(&self.owed, Some(Owed { what: OwedWhat::Stream { is_waiting: true, .. }, .. }));
        waits && self.queue.is_empty()
    }

    /// Whether a reply is owed of which only the close tells the end.
    pub(crate) fn ends_by_close(&self) -> bool {
        let framing = self.owed.as_ref().map(|owed| &owed.what);
        matches!(framing, Some(OwedWhat::Stream { framing: StreamFraming::Close, .. }))
    }

    /// Memory that only this connection holds.
    pub(crate) fn held(&self) -> usize {
        let incoming = self.incoming.as_ref().map_or(0, |incoming| match &incoming.into {
            Into::Memory(body) => body.capacity() + incoming.head.capacity(),
            Into::Upload(_) => incoming.head.capacity(),
        });
        self.input.capacity() + incoming + self.queue.owned_bytes()
    }

    /// The nearest of the deadlines that run.
    pub(crate) fn nearest_due(&self) -> Option<Tick> {
        [self.read_due, self.write_due, self.owed_due].into_iter().flatten().reduce(crate::timer::earlier)
    }
}

impl<S> Conn<S> {
    fn fresh(socket: S, generation: u32, peer: Option<IpAddr>) -> Conn<S> {
        Conn {
            socket: Some(socket),
            generation,
            link: Link::new(),
            busy: None,
            discarded: 0,
            reading: Reading::Idle,
            peer,
            client: Client::Known,
        }
    }

    /// The socket of an entry in use.
    #[inline]
    pub(crate) fn socket(&self) -> &S {
        self.socket.as_ref().expect("only entries in use are handed out")
    }

    /// The box, made when there is none.
    pub(crate) fn busy_mut(&mut self) -> &mut Busy {
        self.busy.get_or_insert_default()
    }

    /// What holds between any two events.
    pub(crate) fn check(&self) {
        let Some(busy) = self.busy.as_deref() else {
            let is_bare = matches!(self.reading, Reading::Idle | Reading::Done);
            debug_assert!(is_bare, "boxed or idle: {:?} without a box", self.reading);
            return;
        };
        let is_awaited = busy.is_paused() || !busy.queue.is_empty() || planted(Fault::InputForgotten);
        match self.reading {
            Reading::Paused => debug_assert!(is_awaited, "paused is awaited: nothing ends this pause"),
            Reading::Head => debug_assert!(!busy.input.is_empty(), "reading says what: a head is kept"),
            Reading::Body => debug_assert!(busy.incoming.is_some(), "reading says what: a body is awaited"),
            Reading::Idle | Reading::Done => {}
        }
        let holds_input = !busy.input.is_empty() || busy.incoming.is_some();
        debug_assert!(
            !busy.is_closing || !holds_input,
            "reading says what: a closing connection keeps no input"
        );
        debug_assert!(!busy.is_closing || !busy.queue.is_empty(), "who closes has something to send");
    }

    /// Whether something waits to be sent.
    #[inline]
    pub(crate) fn has_queue(&self) -> bool {
        self.busy.as_ref().is_some_and(|busy| !busy.queue.is_empty())
    }
}

/// All connections of a worker.
pub(crate) struct Slab<S> {
    entries: Vec<Conn<S>>,
    free: u32,
    in_use: usize,
}

impl<S> Slab<S> {
    pub(crate) fn new() -> Slab<S> {
        Slab { entries: Vec::new(), free: NONE, in_use: 0 }
    }

    pub(crate) fn in_use(&self) -> usize {
        self.in_use
    }

    /// Takes a socket in and returns its index.
    pub(crate) fn insert(&mut self, socket: S, peer: Option<IpAddr>) -> u32 {
        self.in_use += 1;
        let index = self.free;
        if index == NONE {
            let index = u32::try_from(self.entries.len()).expect("descriptors are numbered by i32");
            self.entries.push(Conn::fresh(socket, 0, peer));
            return index;
        }
        let entry = &mut self.entries[index as usize];
        debug_assert!(entry.socket.is_none() && entry.busy.is_none(), "free is empty");
        debug_assert!(!entry.link.is_linked(), "free is empty: it stands in no slot of the wheel");
        self.free = entry.discarded;
        *entry = Conn::fresh(socket, entry.generation, peer);
        index
    }

    /// Hands the socket back and frees the entry, which must not be in the timer wheel any more.
    pub(crate) fn remove(&mut self, index: u32) -> Option<S> {
        let entry = &mut self.entries[index as usize];
        let socket = entry.socket.take()?;
        debug_assert!(entry.busy.is_none(), "what a connection held was settled before it is removed");
        debug_assert!(!entry.link.is_linked(), "free is empty: its deadline was disarmed before");
        debug_assert!(self.in_use > 0, "no more entries are freed than were taken");
        entry.generation = entry.generation.wrapping_add(1);
        entry.discarded = self.free;
        self.free = index;
        self.in_use -= 1;
        Some(socket)
    }

    /// The token under which the entry's events are reported.
    #[inline]
    pub(crate) fn token(&self, index: u32) -> u64 {
        u64::from(self.entries[index as usize].generation) << 32 | u64::from(index)
    }

    /// The index behind a token; `None` when its connection is gone.
    #[inline]
    pub(crate) fn index_of(&self, token: u64) -> Option<u32> {
        #[allow(clippy::cast_possible_truncation)] // The lower half is the index.
        let index = token as u32;
        let entry = self.entries.get(index as usize)?;
        let is_same = u64::from(entry.generation) == token >> 32 || planted(Fault::LaterToSuccessor);
        (is_same && entry.socket.is_some()).then_some(index)
    }

    #[inline]
    pub(crate) fn get(&mut self, index: u32) -> &mut Conn<S> {
        debug_assert!(self.entries[index as usize].socket.is_some(), "only entries in use are handed out");
        &mut self.entries[index as usize]
    }

    /// The indexes of all connections, copied, for the rare walks over all of them.
    pub(crate) fn indexes(&self) -> Vec<u32> {
        self.iter().map(|(index, _)| index).collect()
    }

    /// All connections.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Conn<S>)> {
        (0_u32..).zip(&self.entries).filter(|(_, entry)| entry.socket.is_some())
    }
}

impl<S> Entries for Slab<S> {
    #[inline]
    fn link(&mut self, index: u32) -> &mut Link {
        &mut self.entries[index as usize].link
    }
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Incoming({:?})", self.framing)
    }
}

impl std::fmt::Debug for Owed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match &self.what {
            OwedWhat::Answer { .. } => "answer",
            OwedWhat::Stream { .. } => "stream",
        };
        write!(out, "Owed({what} {})", self.serial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_a_closed_connection_does_not_reach_its_successor() {
        let mut slab = Slab::new();
        let first = slab.insert("first", None);
        let stale = slab.token(first);
        assert_eq!(slab.index_of(stale), Some(first));
        assert!(slab.remove(first).is_some());
        assert_eq!(slab.index_of(stale), None);
        let second = slab.insert("second", None);
        assert_eq!(second, first, "the entry is used again");
        assert_eq!(slab.index_of(stale), None);
        assert_eq!(slab.index_of(slab.token(second)), Some(second));
        assert_eq!((slab.in_use(), slab.indexes()), (1, vec![second]));
    }

    #[test]
    fn what_is_complete_costs_nothing() {
        let mut busy = Busy::default();
        assert!(busy.is_over());
        busy.input.push(1);
        assert!(!busy.is_over() && busy.held() > 0);
        busy.input = Vec::new();
        assert!(busy.is_over() && busy.held() == 0);
    }

    fn owed(what: OwedWhat) -> Owed {
        let asked = Asked::LAST;
        Owed { serial: 1, asked, what, line: None, is_told: false, status: 200, head_bytes: 0, body_bytes: 0 }
    }

    fn stream(framing: StreamFraming, is_waiting: bool) -> Option<Owed> {
        let source: Box<dyn Source> = Box::new(|_: &mut Vec<u8>| crate::Filled::End);
        Some(owed(OwedWhat::Stream { source: Foreign::new(source), framing, is_waiting }))
    }

    fn incoming(into: Into) -> Option<Incoming> {
        let (asked, framing) = (Asked::LAST, Framing::Length(1));
        Some(Incoming { head: Vec::with_capacity(16), asked, framing, into, line: None })
    }

    fn upload(is_paused: bool) -> Into {
        let address = Address { token: 0, serial: 0 };
        Into::Upload(Box::new(Uploading { upload: None, address, is_paused }))
    }

    fn queue(bytes: usize) -> Queue {
        let mut queue = Queue::default();
        queue.push_bytes(&b"x".repeat(bytes));
        queue
    }

    /// Planted fault: one of them is not asked, and what it holds is dropped with the box.
    #[test]
    fn a_box_is_over_when_nothing_in_it_is_incomplete() {
        let output = Watch { output: true, ..Watch::INPUT };
        for (busy, what) in [
            (Busy { input: vec![1], ..Busy::default() }, "input"),
            (Busy { incoming: incoming(Into::Memory(Vec::new())), ..Busy::default() }, "a body"),
            (Busy { queue: queue(1), ..Busy::default() }, "a queue"),
            (Busy { owed: stream(StreamFraming::Chunked, false), ..Busy::default() }, "a reply"),
            (Busy { is_closing: true, ..Busy::default() }, "its close"),
            (Busy { watch: output, ..Busy::default() }, "what it is watched for"),
            (Busy { write_due: Some(Tick::default()), ..Busy::default() }, "a reader"),
        ] {
            assert!(!busy.is_over(), "{what} is incomplete");
        }
        assert!(Busy { read_due: Some(Tick::default()), peer_has_closed: true, ..Busy::default() }.is_over());
    }

    #[test]
    fn requests_wait_for_whatever_is_to_be_done_first() {
        assert!(!Busy::default().is_paused());
        assert!(!Busy { queue: queue((64 << 10) - 1), ..Busy::default() }.is_paused(), "a short queue");
        assert!(!Busy { incoming: incoming(upload(false)), ..Busy::default() }.is_paused());
        assert!(!Busy { incoming: incoming(Into::Memory(Vec::new())), ..Busy::default() }.is_paused());
        for (busy, what) in [
            (Busy { is_closing: true, ..Busy::default() }, "the close"),
            (Busy { owed: stream(StreamFraming::Chunked, true), ..Busy::default() }, "the reply before"),
            (Busy { queue: queue(64 << 10), ..Busy::default() }, "the reader"),
            (Busy { incoming: incoming(upload(true)), ..Busy::default() }, "the upload"),
        ] {
            assert!(busy.is_paused(), "{what} is waited for");
        }
    }

    /// Planted faults: an answer is taken for a stream, or one that waits for one that has more.
    #[test]
    fn a_stream_is_ready_or_silent_and_may_end_by_the_close() {
        let answer = Some(owed(OwedWhat::Answer { waited: Arc::new(Waited::default()) }));
        for (owed, ready, silent, closes) in [
            (None, false, false, false),
            (answer, false, false, false),
            (stream(StreamFraming::Chunked, false), true, false, false),
            (stream(StreamFraming::Length(5), true), false, true, false),
            (stream(StreamFraming::Close, true), false, true, true),
        ] {
            let mut busy = Busy { owed, ..Busy::default() };
            let is = (busy.has_source_ready(), busy.is_silent(), busy.ends_by_close());
            assert_eq!(is, (ready, silent, closes), "{:?}", busy.owed);
            busy.queue = queue(1);
            assert!(!busy.is_silent(), "something of it has not left");
        }
    }

    #[test]
    fn what_a_connection_holds_is_all_that_is_its_own() {
        let input = Vec::with_capacity(100);
        let body = Vec::with_capacity(1_000);
        let of_queue = queue(10).owned_bytes();
        let held = |busy: &Busy| (busy.held(), busy.uploading().is_some(), busy.is_upload_paused());
        let mut busy = Busy { input, queue: queue(10), ..Busy::default() };
        let own = busy.input.capacity() + of_queue;
        assert_eq!(held(&busy), (own, false, false));
        busy.incoming = incoming(Into::Memory(body));
        let head = busy.incoming.as_ref().map_or(0, |incoming| incoming.head.capacity());
        assert!(busy.held() >= own + head + 1_000 && head >= 16, "{}", busy.held());
        busy.incoming = incoming(upload(false));
        assert_eq!(held(&busy), (own + head, true, false), "an upload's body is its own");
        busy.incoming = incoming(upload(true));
        assert_eq!(held(&busy), (own + head, true, true));
    }

    #[test]
    fn the_nearest_deadline_counts_round_the_end_of_the_range() {
        let tick = |number: u32| Some(std::num::Wrapping(number));
        let nearest = |read_due, write_due, owed_due| {
            Busy { read_due, write_due, owed_due, ..Busy::default() }.nearest_due()
        };
        assert_eq!(nearest(None, None, None), None);
        assert_eq!(nearest(tick(9), tick(7), tick(8)), tick(7));
        assert_eq!(nearest(tick(9), None, tick(8)), tick(8));
        assert_eq!(nearest(tick(6), tick(7), None), tick(6));
        assert_eq!(nearest(tick(2), tick(u32::MAX), None), tick(u32::MAX));
    }

    /// Planted faults: a free entry is forgotten, or handed out twice; a token of another entry is believed.
    #[test]
    fn entries_are_used_again_last_freed_first() {
        let mut slab = Slab::new();
        let all: Vec<u32> = (0..4).map(|socket| slab.insert(socket, None)).collect();
        assert_eq!((all, slab.in_use()), (vec![0, 1, 2, 3], 4));
        assert_eq!((slab.remove(1), slab.remove(3)), (Some(1), Some(3)));
        assert_eq!(slab.remove(1), None, "it is gone already");
        assert_eq!((slab.in_use(), slab.indexes()), (2, vec![0, 2]));
        assert_eq!([9, 8, 7].map(|socket| slab.insert(socket, None)), [3, 1, 4]);
        let sockets: Vec<i32> = slab.iter().map(|(_, conn)| *conn.socket()).collect();
        assert_eq!((sockets, slab.in_use()), (vec![0, 8, 2, 9, 7], 5));
        assert_eq!([0, 1, 4].map(|index| slab.token(index)), [0, 1 << 32 | 1, 4]);
        assert_eq!([4, 1 << 32 | 4, 5, 1].map(|token| slab.index_of(token)), [Some(4), None, None, None]);
    }
}

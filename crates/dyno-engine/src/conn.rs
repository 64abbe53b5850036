//! Connections: a slab of small entries. An idle connection is its entry and nothing else; what a partial request or
//! an unread reply needs is allocated beside it and freed with it.

use crate::timer::{Entries, Link};
use dyno_proto::http1::chunk;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What counts as progress of a body or a reader within its stretch of time: about one full segment in ten seconds,
/// below any line that carries a request at all; a byte now and then is how slow-body attacks stay alive.
pub(crate) const PROGRESS_BYTES_MIN: usize = 1_000;

/// "No entry" in the list of free ones.
const NONE: u32 = u32::MAX;

// The promise of the manual: an idle connection costs at most one cache line of user memory.
const _: () = assert!(size_of::<Conn>() <= 64, "an idle connection takes at most 64 bytes");

/// What a connection is waiting for; it decides which limit runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The first byte of a request.
    Idle,
    /// The rest of a head.
    Head,
    /// The rest of a body.
    Body,
    /// Its peer, to take what waits for it.
    Write,
    /// Its peer, to close: everything was answered, what still comes is discarded.
    Linger,
}

/// What happens once everything was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// The next request.
    Serve,
    /// The connection is closed.
    Close,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Conn {
    socket: Option<OwnedFd>,
    /// Told in the epoll token, so that an event of a closed connection never reaches its successor in the entry.
    generation: u32,
    pub(crate) link: Link,
    pub(crate) rest: Option<Box<Rest>>,
    /// Bytes discarded while lingering; the next free entry while free.
    pub(crate) discarded: u32,
    pub(crate) phase: Phase,
    pub(crate) afterwards: Afterwards,
    /// Only known when there is an access log.
    pub(crate) peer: Option<IpAddr>,
}

/// What a connection holds while something is incomplete.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Received and not yet understood: part of a head, or requests that wait behind an unsent reply.
    pub(crate) input: Vec<u8>,
    /// The request whose body is coming in.
    pub(crate) incoming: Option<Incoming>,
    /// What the socket refused.
    pub(crate) backlog: Vec<u8>,
    /// How much of the backlog has been sent.
    pub(crate) sent: usize,
    /// Bytes that moved in the present stretch of a body or write limit.
    pub(crate) progress: usize,
}

/// A request whose head was understood and whose body is incomplete.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Vec<u8>,
    pub(crate) framing: Framing,
}

/// Where a body ends.
#[derive(Debug)]
pub(crate) enum Framing {
    /// After this many bytes in all.
    Length(usize),
    /// Where its chunks say.
    Chunked(chunk::Decoder),
}

impl Conn {
    /// The socket of an entry in use.
    #[inline]
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("only entries in use are handed out").as_fd()
    }

    /// The rest, made when there is none.
    pub(crate) fn rest_mut(&mut self) -> &mut Rest {
        self.rest.get_or_insert_default()
    }

    pub(crate) fn has_backlog(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| !rest.backlog.is_empty())
    }

    /// Frees the rest when nothing is incomplete any more.
    pub(crate) fn tidy(&mut self) {
        let empty = |rest: &Rest| rest.input.is_empty() && rest.incoming.is_none() && rest.backlog.is_empty();
        if self.rest.as_deref().is_some_and(empty) {
            self.rest = None;
        }
    }
}

/// All connections of a worker.
pub(crate) struct Slab {
    entries: Vec<Conn>,
    free: u32,
    in_use: usize,
}

impl Slab {
    pub(crate) fn new() -> Slab {
        Slab { entries: Vec::new(), free: NONE, in_use: 0 }
    }

    pub(crate) fn in_use(&self) -> usize {
        self.in_use
    }

    /// Takes a socket in and returns its index.
    pub(crate) fn insert(&mut self, socket: OwnedFd, peer: Option<IpAddr>) -> u32 {
        self.in_use += 1;
        let index = self.free;
        if index == NONE {
            let index = u32::try_from(self.entries.len()).expect("descriptors are numbered by i32");
            self.entries.push(fresh(socket, 0, peer));
            return index;
        }
        let entry = &mut self.entries[index as usize];
        self.free = entry.discarded;
        *entry = fresh(socket, entry.generation, peer);
        index
    }

    /// Hands the socket back and frees the entry, which must not be in the timer wheel any more.
    pub(crate) fn remove(&mut self, index: u32) -> Option<OwnedFd> {
        let entry = &mut self.entries[index as usize];
        let socket = entry.socket.take()?;
        entry.rest = None;
        entry.generation = entry.generation.wrapping_add(1);
        entry.discarded = self.free;
        self.free = index;
        self.in_use -= 1;
        Some(socket)
    }

    /// The token under which the entry's events are reported.
    pub(crate) fn token(&self, index: u32) -> u64 {
        u64::from(self.entries[index as usize].generation) << 32 | u64::from(index)
    }

    /// The index behind a token; `None` when its connection is gone.
    #[inline]
    pub(crate) fn index_of(&self, token: u64) -> Option<u32> {
        #[allow(clippy::cast_possible_truncation)] // The lower half is the index.
        let index = token as u32;
        let entry = self.entries.get(index as usize)?;
        (u64::from(entry.generation) == token >> 32 && entry.socket.is_some()).then_some(index)
    }

    #[inline]
    pub(crate) fn get(&mut self, index: u32) -> &mut Conn {
        &mut self.entries[index as usize]
    }

    /// The indexes of all connections, copied, for the rare walks over all of them.
    pub(crate) fn indexes(&self) -> Vec<u32> {
        let used = self.entries.iter().zip(0_u32..).filter(|(entry, _)| entry.socket.is_some());
        used.map(|(_, index)| index).collect()
    }
}

impl Entries for Slab {
    #[inline]
    fn link(&mut self, index: u32) -> &mut Link {
        &mut self.entries[index as usize].link
    }
}

fn fresh(socket: OwnedFd, generation: u32, peer: Option<IpAddr>) -> Conn {
    Conn {
        socket: Some(socket),
        generation,
        link: Link::new(),
        rest: None,
        discarded: 0,
        phase: Phase::Idle,
        afterwards: Afterwards::Serve,
        peer,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn socket() -> OwnedFd {
        std::os::unix::net::UnixStream::pair().unwrap().0.into()
    }

    #[test]
    fn an_event_of_a_closed_connection_does_not_reach_its_successor() {
        let mut slab = Slab::new();
        let first = slab.insert(socket(), None);
        let stale = slab.token(first);
        assert_eq!(slab.index_of(stale), Some(first));
        assert!(slab.remove(first).is_some());
        assert_eq!(slab.index_of(stale), None);
        let second = slab.insert(socket(), None);
        assert_eq!(second, first, "the entry is used again");
        assert_eq!(slab.index_of(stale), None);
        assert_eq!(slab.index_of(slab.token(second)), Some(second));
        assert_eq!((slab.in_use(), slab.indexes()), (1, vec![second]));
    }

    #[test]
    fn what_is_complete_costs_nothing() {
        let mut slab = Slab::new();
        let index = slab.insert(socket(), None);
        let conn = slab.get(index);
        conn.rest_mut().input.push(1);
        conn.tidy();
        assert!(conn.rest.is_some());
        conn.rest_mut().input.clear();
        conn.tidy();
        assert!(conn.rest.is_none());
    }
}

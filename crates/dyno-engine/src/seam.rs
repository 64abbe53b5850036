//! The seam between the core and the world: how bytes move on a connection, and how its readiness is asked for.
//!
//! The kernel's form is in `kernel`, a simulator's in the tests. Both are chosen when the program is compiled, so that
//! the seam costs nothing. What a first version of a server does differently at a socket (other calls, reads until
//! nothing comes, two sends for a reply) is a [`Kernel`](crate::kernel::Kernel) of its own: the core has no branch for it.

use crate::file::FilePart;
use crate::gate::Gate;
use crate::meter::Meter;
use dyno_sys::resident::Patience;
use dyno_sys::socket::Io;
use std::io::{self, IoSlice};
use std::sync::Weak;

/// What a connection is watched for. Errors and hang-ups are always told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watch {
    pub(crate) input: bool,
    pub(crate) output: bool,
    /// The end of the peer's sending side, while input is not read.
    pub(crate) peer_close: bool,
}

impl Watch {
    /// For input: what an idle connection waits for.
    pub(crate) const INPUT: Watch = Watch { input: true, output: false, peer_close: false };
}

/// What was told about a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Readiness {
    /// There is something to read, or the end.
    pub(crate) readable: bool,
    /// There is room to write.
    pub(crate) writable: bool,
    /// The peer will send no more; told by edges, and where it is watched for.
    pub(crate) peer_closed: bool,
    /// The connection is over in both directions, or failed.
    pub(crate) hangup: bool,
}

/// What came of sending a piece of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileSent {
    /// So many bytes; fewer than asked for mean that the socket is full, or that what follows is not in memory.
    Done(usize),
    WouldBlock,
    /// The first byte is not in memory; nothing was sent.
    Cold,
    /// The file is not what it was: nothing more of it may be sent.
    Changed,
    /// The connection is over.
    Broken,
}

impl FileSent {
    /// Whether the socket was asked to take something.
    pub(crate) fn has_asked(self) -> bool {
        !matches!(self, FileSent::Cold | FileSent::Changed)
    }
}

/// When a connection's turn of reading ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadUntil {
    /// A read that did not fill the buffer was the last one.
    Short,
    /// Only the kernel's word that there is nothing ends it.
    Refused,
}

/// How bytes move. One value serves all connections of a worker.
pub(crate) trait Net {
    /// A connection's end. Dropping it closes the connection.
    type Socket;

    /// Reads what there is; `Closed` is the end of the stream.
    fn receive(&mut self, socket: &Self::Socket, into: &mut [u8]) -> Io;
    /// Writes; fewer bytes than given mean that the socket is full.
    fn send(&mut self, socket: &Self::Socket, bytes: &[u8]) -> Io;
    /// Writes several pieces in their order, as one.
    fn send_slices(&mut self, socket: &Self::Socket, slices: &[IoSlice<'_>]) -> Io;
    /// The same where a file follows at once: the last of it may wait for the file's first bytes.
    fn send_before_file(&mut self, socket: &Self::Socket, slices: &[IoSlice<'_>]) -> Io;
    /// Writes at most `count` bytes of the file from `offset` on, which are there.
    fn send_file(
        &mut self,
        socket: &Self::Socket,
        file: &FilePart,
        offset: u64,
        count: usize,
        patience: Patience,
    ) -> FileSent;
    /// Has these bytes of a file brought into memory; a message tells the connection of that token. Nobody awaits them any
    /// more when `awaited` is gone.
    fn fetch(&mut self, file: &FilePart, offset: u64, token: u64, awaited: Weak<()>);
    /// Ends the sending side; the peer reads the end of the stream after what was sent.
    fn end_output(&mut self, socket: &Self::Socket) -> io::Result<()>;
    /// Makes the close that follows a reset: what the peer has not taken is dropped.
    fn reset_on_close(&mut self, socket: &Self::Socket);
    /// Has the kernel find out, within minutes, whether the peer is still there though nothing is sent.
    fn keep_alive(&mut self, socket: &Self::Socket);
    /// Bytes sent that the peer has not acknowledged.
    fn unacknowledged(&mut self, socket: &Self::Socket) -> u64;
    /// Watches a new connection for input.
    fn watch(&mut self, socket: &Self::Socket, token: u64) -> io::Result<()>;
    /// Watches a connection for something else; what is the case already is told again.
    fn rewatch(&mut self, socket: &Self::Socket, token: u64, watch: Watch) -> io::Result<()>;

    /// What counts for whoever asks for metrics; nothing is counted where nobody does.
    #[inline(always)]
    fn meter(&mut self) -> Option<&mut Meter> {
        None
    }

    /// What limits addresses and knows who asks; nobody is asked where there is none.
    #[inline(always)]
    fn gate(&mut self) -> Option<&mut Gate> {
        None
    }

    /// Whether replies wait until the access log has their lines.
    #[inline(always)]
    fn holds_replies(&self) -> bool {
        false
    }

    /// Whether a request's host is looked at.
    #[inline(always)]
    fn tells_hosts_apart(&self) -> bool {
        false
    }

    /// When a turn of reading ends.
    fn read_until(&self) -> ReadUntil;
    /// Whether readiness is told once only, so that unread input must be asked for again.
    fn tells_once(&self) -> bool;
    /// Bytes of replies at which they leave before the next request is looked at; 1: each reply by itself.
    fn flush_bytes(&self) -> usize;
    /// Whether a send ends where a head or a body ends.
    fn splits(&self) -> bool;
}

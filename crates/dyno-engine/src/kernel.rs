//! The seam's kernel form: sockets, and one epoll instance.
//!
//! `Direct` is how dyno moves bytes. `ByDials` does what the dials of a first version ask for: other calls, reads until
//! nothing comes, two sends for a reply, a flush for each reply, edges. It also has what an operator may ask for: a meter
//! of bytes and replies, a gate for addresses, hosts, replies that wait for the access log. Which of both a worker has is
//! chosen when it starts, so that neither the core nor the protocol has a branch for it, and who asks for nothing of all
//! this pays nothing for it.

use crate::dials::{Calls, Dials, Log, Read, Replies, Send, Trigger};
use crate::file::FilePart;
use crate::gate::Gate;
use crate::hosts::Hosts;
use crate::meter::Meter;
use crate::outbox::OUTBOX_BYTES_FLUSH;
use crate::seam::{Net, ReadUntil, Watch};
use dyno_sys::epoll::{Epoll, Interest};
use dyno_sys::socket::{self, Io};
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A connection on which nothing moves is asked after a minute, and is over when nobody has answered for one more.
const KEEP_ALIVE: socket::KeepAlive = socket::KeepAlive { idle_s: 60, interval_s: 15, probes: 4 };

/// How bytes move at a socket.
pub(crate) trait Way {
    fn receive(&mut self, socket: &OwnedFd, into: &mut [u8]) -> Io;
    fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Io;
    fn send_slices(&mut self, socket: &OwnedFd, slices: &[IoSlice<'_>]) -> Io;
    fn send_before_file(&mut self, socket: &OwnedFd, slices: &[IoSlice<'_>]) -> Io;
    /// See [`Net::meter`].
    #[inline(always)]
    fn meter(&mut self) -> Option<&mut Meter> {
        None
    }
    /// See [`Net::gate`].
    #[inline(always)]
    fn gate(&mut self) -> Option<&mut Gate> {
        None
    }
    /// See [`Net::holds_replies`].
    #[inline(always)]
    fn holds_replies(&self) -> bool {
        false
    }
    /// See [`Net::tells_hosts_apart`].
    #[inline(always)]
    fn tells_hosts_apart(&self) -> bool {
        false
    }
    fn read(&self) -> Read;
    fn trigger(&self) -> Trigger;
    fn replies(&self) -> Replies;
    fn splits(&self) -> Send;
}

/// The way that the climb reached.
pub(crate) struct Direct;

/// What an operator may ask of a worker beyond serving.
#[derive(Default)]
pub(crate) struct Extras {
    /// Counts for metrics.
    pub(crate) meter: Option<Meter>,
    /// Limits addresses and knows who asks.
    pub(crate) gate: Option<Gate>,
    /// What is said of hosts.
    pub(crate) hosts: Option<Arc<Hosts>>,
}

/// Whatever the dials say, and whatever extras there are.
pub(crate) struct ByDials {
    extras: Extras,
    calls: Calls,
    read: Read,
    trigger: Trigger,
    replies: Replies,
    send: Send,
    log: Log,
}

impl ByDials {
    pub(crate) fn new(dials: &Dials, extras: Extras) -> ByDials {
        let Dials { calls, read, trigger, replies, send, log, .. } = *dials;
        ByDials { extras, calls, read, trigger, replies, send, log }
    }

    /// Whether anything is asked for that `Direct` does not do.
    pub(crate) fn differs(&self) -> bool {
        (self.calls, self.read, self.trigger) != (Calls::RecvSend, Read::Once, Trigger::Level)
            || (self.replies, self.send) != (Replies::Batch, Send::Joined)
            || self.log == Log::Commit
            || self.extras.meter.is_some()
            || self.extras.gate.is_some()
            || self.extras.hosts.is_some()
    }

    fn taken_in(&mut self, moved: Io) -> Io {
        if let (Some(meter), Io::Done(count)) = (&mut self.extras.meter, moved) {
            meter.figures.received_bytes += count as u64;
        }
        moved
    }

    fn given_out(&mut self, moved: Io) -> Io {
        if let (Some(meter), Io::Done(count)) = (&mut self.extras.meter, moved) {
            meter.figures.sent_bytes += count as u64;
        }
        moved
    }
}

impl Way for Direct {
    #[inline]
    fn receive(&mut self, socket: &OwnedFd, into: &mut [u8]) -> Io {
        socket::recv(socket, into)
    }

    #[inline]
    fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Io {
        socket::send(socket, bytes)
    }

    fn send_slices(&mut self, socket: &OwnedFd, slices: &[IoSlice<'_>]) -> Io {
        socket::send_vectored(socket, slices)
    }

    fn send_before_file(&mut self, socket: &OwnedFd, slices: &[IoSlice<'_>]) -> Io {
        socket::send_vectored_more(socket, slices)
    }

    #[inline]
    fn read(&self) -> Read {
        Read::Once
    }

    #[inline]
    fn trigger(&self) -> Trigger {
        Trigger::Level
    }

    #[inline]
    fn replies(&self) -> Replies {
        Replies::Batch
    }

    #[inline]
    fn splits(&self) -> Send {
        Send::Joined
    }
}

impl Way for ByDials {
    fn receive(&mut self, socket: &OwnedFd, into: &mut [u8]) -> Io {
        let moved = match self.calls {
            Calls::RecvSend => socket::recv(socket, into),
            Calls::ReadWrite => socket::read(socket, into),
        };
        self.taken_in(moved)
    }

    fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Io {
        let moved = match self.calls {
            Calls::RecvSend => socket::send(socket, bytes),
            Calls::ReadWrite => socket::write(socket, bytes),
        };
        self.given_out(moved)
    }

    fn send_slices(&mut self, socket: &OwnedFd, slices: &[IoSlice<'_>]) -> Io {
        let moved = match self.calls {
            Calls::RecvSend => socket::send_vectored(socket, slices),
            Calls::ReadWrite => socket::write_vectored(socket, slices),
        };
        self.given_out(moved)
    }

    fn send_before_file(&mut self, socket: &OwnedFd, slices: &[IoSlice<'_>]) -> Io {
        let moved = match self.calls {
            Calls::RecvSend => socket::send_vectored_more(socket, slices),
            Calls::ReadWrite => socket::write_vectored(socket, slices),
        };
        self.given_out(moved)
    }

    fn meter(&mut self) -> Option<&mut Meter> {
        self.extras.meter.as_mut()
    }

    fn gate(&mut self) -> Option<&mut Gate> {
        self.extras.gate.as_mut()
    }

    fn holds_replies(&self) -> bool {
        self.log == Log::Commit
    }

    fn tells_hosts_apart(&self) -> bool {
        self.extras.hosts.is_some()
    }

    fn read(&self) -> Read {
        self.read
    }

    fn trigger(&self) -> Trigger {
        self.trigger
    }

    fn replies(&self) -> Replies {
        self.replies
    }

    fn splits(&self) -> Send {
        self.send
    }
}

/// Sockets and the epoll instance that watches them.
pub(crate) struct Kernel<W> {
    pub(crate) epoll: Epoll,
    way: W,
}

impl<W: Way> Kernel<W> {
    pub(crate) fn new(epoll: Epoll, way: W) -> Kernel<W> {
        Kernel { epoll, way }
    }

    fn interest(&self, watch: Watch) -> Interest {
        let interest = match (watch.input, watch.output) {
            (true, true) => Interest::READ_WRITE,
            (true, false) => Interest::READ,
            (false, true) => Interest::WRITE,
            (false, false) => Interest::NONE,
        };
        match self.way.trigger() {
            Trigger::Level if watch.peer_close => interest.peer_close(),
            Trigger::Level => interest,
            // With edges, a FIN that came with data must be told beside it: no second edge would tell of it.
            Trigger::Edge if watch.input || watch.peer_close => interest.peer_close().edge(),
            Trigger::Edge => interest.edge(),
        }
    }
}

impl<W: Way> Net for Kernel<W> {
    type Socket = OwnedFd;

    #[inline]
    fn receive(&mut self, socket: &OwnedFd, into: &mut [u8]) -> Io {
        self.way.receive(socket, into)
    }

    #[inline]
    fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Io {
        self.way.send(socket, bytes)
    }

    fn send_slices(&mut self, socket: &OwnedFd, slices: &[IoSlice<'_>]) -> Io {
        self.way.send_slices(socket, slices)
    }

    fn send_before_file(&mut self, socket: &OwnedFd, slices: &[IoSlice<'_>]) -> Io {
        self.way.send_before_file(socket, slices)
    }

    fn send_file(&mut self, socket: &OwnedFd, file: &FilePart, offset: u64, count: usize) -> Io {
        let moved = socket::send_file(socket, &*file.file, offset, count);
        if let (Some(meter), Io::Done(count)) = (self.way.meter(), moved) {
            meter.figures.sent_bytes += count as u64;
        }
        moved
    }

    fn end_output(&mut self, socket: &OwnedFd) -> io::Result<()> {
        socket::shutdown_write(socket)
    }

    fn reset_on_close(&mut self, socket: &OwnedFd) {
        // It cannot help to fail: then the close that follows is an ordinary one.
        let _ = socket::set_linger_zero(socket);
    }

    fn keep_alive(&mut self, socket: &OwnedFd) {
        // It cannot help to fail: then the connection ends when something is sent on it.
        let _ = socket::keep_alive(socket, KEEP_ALIVE);
    }

    fn unacknowledged(&mut self, socket: &OwnedFd) -> u64 {
        // A socket that cannot be asked holds nothing that could be waited for.
        socket::unacknowledged(socket).unwrap_or(0)
    }

    fn watch(&mut self, socket: &OwnedFd, token: u64) -> io::Result<()> {
        self.epoll.add(socket, token, self.interest(Watch::INPUT))
    }

    fn rewatch(&mut self, socket: &OwnedFd, token: u64, watch: Watch) -> io::Result<()> {
        self.epoll.modify(socket, token, self.interest(watch))
    }

    #[inline(always)]
    fn meter(&mut self) -> Option<&mut Meter> {
        self.way.meter()
    }

    #[inline(always)]
    fn gate(&mut self) -> Option<&mut Gate> {
        self.way.gate()
    }

    #[inline(always)]
    fn holds_replies(&self) -> bool {
        self.way.holds_replies()
    }

    fn tells_hosts_apart(&self) -> bool {
        self.way.tells_hosts_apart()
    }

    #[inline]
    fn read_until(&self) -> ReadUntil {
        match self.way.read() {
            Read::Once => ReadUntil::Short,
            Read::Drain => ReadUntil::Refused,
        }
    }

    #[inline]
    fn tells_once(&self) -> bool {
        self.way.trigger() == Trigger::Edge
    }

    #[inline]
    fn flush_bytes(&self) -> usize {
        match self.way.replies() {
            Replies::Single => 1,
            Replies::Batch => OUTBOX_BYTES_FLUSH,
        }
    }

    #[inline]
    fn splits(&self) -> bool {
        self.way.splits() == Send::Split
    }
}

//! The seam's kernel form: sockets, and one epoll instance.
//!
//! `Direct` is how dyno moves bytes. `ByDials` does what the dials of a first version ask for: other calls, reads until
//! nothing comes, two sends for a reply, a flush for each reply, edges. It also has what an operator may ask for: a meter
//! of bytes and replies, a gate for addresses, hosts, replies that wait for the access log. Which of both a worker has is
//! chosen when it starts, so that neither the core nor the protocol has a branch for it, and who asks for nothing of all
//! this pays nothing for it.

use crate::dials::{Calls, Dials, Log, Read, Replies, Send, Trigger};
use crate::fetcher::{FETCH_BYTES, Fetcher};
use crate::file::{FilePart, Kind};
use crate::gate::Gate;
use crate::hosts::Hosts;
use crate::mailbox::{Mailbox, Message};
use crate::meter::Meter;
use crate::outbox::OUTBOX_BYTES_FLUSH;
use crate::seam::{FileSent, Net, ReadUntil, Watch};
use dyno_sys::epoll::{Epoll, Interest};
use dyno_sys::resident::{self, Patience, Resident};
use dyno_sys::socket::{self, Io};
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// A connection on which nothing moves is asked after a minute, and is over when nobody has answered for one more.
const KEEP_ALIVE: socket::KeepAlive = socket::KeepAlive { idle_s: 60, interval_s: 15, probes: 4 };

/// Bytes of a file that are read before they are sent: little enough to stay in a core's own cache between both, and to
/// be read again when the socket takes less.
const READ_BYTES: usize = 128 << 10;

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

/// Sockets, the epoll instance that watches them, and how files are read for them.
pub(crate) struct Kernel<W> {
    pub(crate) epoll: Epoll,
    way: W,
    files: Files,
}

/// Reading of files that can change.
struct Files {
    /// Where pieces are read into; made when the first one is.
    buffer: Box<[u8]>,
    /// Who fetches what is not in memory, once something was not.
    fetcher: Fetching,
    mailbox: Arc<Mailbox>,
}

enum Fetching {
    NotYet,
    By(Fetcher),
    /// No thread could be started: the loop waits for the disk.
    Never,
}

impl<W: Way> Kernel<W> {
    pub(crate) fn new(epoll: Epoll, way: W, mailbox: Arc<Mailbox>) -> Kernel<W> {
        let files = Files { buffer: Box::default(), fetcher: Fetching::NotYet, mailbox };
        Kernel { epoll, way, files }
    }

    /// Reads pieces and sends them, each after a look whether the file is what it was: what has left is of one version.
    #[inline(never)]
    fn send_read(
        &mut self,
        socket: &OwnedFd,
        file: &FilePart,
        offset: u64,
        count: usize,
        patience: Patience,
    ) -> FileSent {
        if self.files.buffer.is_empty() {
            self.files.buffer = vec![0; READ_BYTES].into_boxed_slice();
        }
        let patience = match self.files.fetcher {
            Fetching::Never => Patience::Waits,
            _ => patience,
        };
        let mut sent = 0;
        while sent < count {
            let room = &mut self.files.buffer[..READ_BYTES.min(count - sent)];
            let read = match resident::read(file.file(), room, offset + sent as u64, patience) {
                Resident::Done(0) | Resident::Failed(_) => return FileSent::Changed,
                Resident::Done(read) => read,
                Resident::Cold if sent > 0 => return FileSent::Done(sent),
                Resident::Cold => return FileSent::Cold,
            };
            if !file.is_unchanged() {
                return FileSent::Changed;
            }
            match self.way.send(socket, &self.files.buffer[..read]) {
                Io::Done(taken) => {
                    sent += taken;
                    if taken < read {
                        return FileSent::Done(sent);
                    }
                }
                Io::WouldBlock if sent > 0 => return FileSent::Done(sent),
                Io::WouldBlock => return FileSent::WouldBlock,
                Io::Closed | Io::Failed(_) => return FileSent::Broken,
            }
        }
        FileSent::Done(sent)
    }

    fn send_sealed(&mut self, socket: &OwnedFd, file: &FilePart, offset: u64, count: usize) -> FileSent {
        match socket::send_file(socket, file.file(), offset, count) {
            // Nobody can have cut it: a mistake of ours must not look like a body.
            Io::Done(0) => FileSent::Changed,
            Io::Done(taken) => {
                if let Some(meter) = self.way.meter() {
                    meter.figures.sent_bytes += taken as u64;
                }
                FileSent::Done(taken)
            }
            Io::WouldBlock => FileSent::WouldBlock,
            Io::Closed | Io::Failed(_) => FileSent::Broken,
        }
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

    fn send_file(
        &mut self,
        socket: &OwnedFd,
        file: &FilePart,
        offset: u64,
        count: usize,
        patience: Patience,
    ) -> FileSent {
        match file.kind() {
            Kind::Sealed => self.send_sealed(socket, file, offset, count),
            Kind::Open(_) => self.send_read(socket, file, offset, count, patience),
        }
    }

    fn fetch(&mut self, file: &FilePart, offset: u64, token: u64, awaited: Weak<()>) {
        if matches!(self.files.fetcher, Fetching::NotYet) {
            let started = Fetcher::start(Arc::clone(&self.files.mailbox));
            self.files.fetcher = started.map_or(Fetching::Never, Fetching::By);
        }
        match &mut self.files.fetcher {
            Fetching::By(fetcher) => fetcher.fetch(file, offset, token, awaited),
            Fetching::NotYet | Fetching::Never => {
                self.files.mailbox.put(Message::Fetched(token, FETCH_BYTES));
            }
        }
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

    #[inline(always)]
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

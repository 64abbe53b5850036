//! Readiness from the kernel (`epoll(7)`): the one place where a worker or a load session waits.
//!
//! A wait costs the system call and nothing more: events are read in place. Nothing here owns the watched descriptors:
//! closing one removes it, as the kernel does.

use crate::errno::checked;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// One epoll instance, close-on-exec.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
}

/// How long a wait may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Until something happens.
    Forever,
    /// Not at all: what is ready now.
    Poll,
    /// At most so many milliseconds; below zero counts as zero.
    Millis(i32),
}

/// What to watch a descriptor for. Errors and hang-ups are always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest(u32);

/// Room for the answers of one wait, reused from turn to turn.
#[derive(Debug)]
pub struct Events {
    slots: Vec<Event>,
}

/// One ready descriptor, named by the token that it was added with.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Event(libc::epoll_event);

/// How an instance polls devices itself instead of waiting for their interrupts (`ioctl_eventpoll(2)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Polling {
    /// Microseconds.
    pub busy_poll_usecs: u32,
    /// Packets in one go.
    pub budget: u16,
    /// 1: it is preferred to interrupts.
    pub prefer: u8,
    padding: u8,
}

/// `EPIOCGPARAMS` (include/uapi/linux/eventpoll.h).
const GET_PARAMS: libc::c_ulong = 0x8008_8a02;
/// `EPIOCSPARAMS`.
const SET_PARAMS: libc::c_ulong = 0x4008_8a01;
/// Packets in one go: as many as a device's own poll takes. More needs CAP_NET_ADMIN.
const BUDGET: u16 = 64;
const _: () = assert!(size_of::<Polling>() == 8, "the number of the request holds the size");

/// What an instance, also a duplicate of another process's, is set to. `ENOTTY` before Linux 6.9 or on anything else.
pub fn polling(fd: impl AsFd) -> io::Result<Polling> {
    let mut polling = Polling::default();
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: `polling` has the size that the request names, and lives through the call.
    checked(unsafe { libc::ioctl(fd, GET_PARAMS, &raw mut polling) })?;
    Ok(polling)
}

impl Epoll {
    /// Makes an empty instance. Fails at the descriptor limit or without kernel memory.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: epoll_create1 takes no pointer.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
        Ok(Epoll { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// A wait that finds nothing polls the device of the watched sockets for so many microseconds before it sleeps, in place of
    /// the device's interrupts; 0 is off. It does something only where packets come through a queue that can be polled.
    ///
    /// # Errors
    /// `ENOTTY` before Linux 6.9.
    pub fn poll_devices(&self, us: u32) -> io::Result<()> {
        let is_on = us > 0;
        let polling = Polling {
            busy_poll_usecs: us,
            budget: if is_on { BUDGET } else { 0 },
            prefer: u8::from(is_on),
            padding: 0,
        };
        // SAFETY: `polling` has the size that the request names, and lives through the call; the kernel only reads it.
        checked(unsafe { libc::ioctl(self.fd.as_raw_fd(), SET_PARAMS, &raw const polling) }).map(|_| ())
    }

    /// Starts watching `fd`; its events carry `token`.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        debug_assert!(
            !(interest.is_exclusive() && interest.has(libc::EPOLLRDHUP)),
            "the kernel refuses that pair"
        );
        self.control(libc::EPOLL_CTL_ADD, fd.as_fd(), token, interest)
    }

    /// Watches `fd` for something else; also re-arms it. Not possible with [`Interest::exclusive`] (`epoll_ctl(2)`).
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        debug_assert!(
            !interest.is_exclusive(),
            "what wakes one watcher only cannot be watched for something else"
        );
        self.control(libc::EPOLL_CTL_MOD, fd.as_fd(), token, interest)
    }

    /// Stops watching `fd`.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd.as_fd(), 0, Interest::NONE)
    }

    /// Waits for events: at least one, or none when time ran out or a signal came.
    #[inline]
    pub fn wait<'e>(&self, events: &'e mut Events, timeout: Timeout) -> io::Result<&'e [Event]> {
        let room = events.slots.as_mut_ptr().cast::<libc::epoll_event>();
        // `with_capacity` keeps the length within i32.
        let count = events.slots.len() as libc::c_int;
        // SAFETY: `room` points to `count` epoll_events (Event is transparent) borrowed mutably for this call.
        let ready = unsafe { libc::epoll_wait(self.fd.as_raw_fd(), room, count, timeout.millis()) };
        match usize::try_from(ready) {
            Ok(ready) => Ok(&events.slots[..ready]),
            Err(_) if crate::errno::last() == libc::EINTR => Ok(&[]),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    fn control(
        &self,
        verb: libc::c_int,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.0, u64: token };
        // SAFETY: `event` lives through the call; both descriptors are borrowed and so open.
        checked(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), verb, fd.as_raw_fd(), &raw mut event) })?;
        Ok(())
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Timeout {
    #[inline]
    fn millis(self) -> libc::c_int {
        match self {
            Timeout::Forever => -1,
            Timeout::Poll => 0,
            Timeout::Millis(ms) => ms.max(0),
        }
    }
}

impl Interest {
    /// Errors and hang-ups only.
    pub const NONE: Interest = Interest(0);
    /// Something can be read, or accepted.
    pub const READ: Interest = Interest(libc::EPOLLIN as u32);
    /// Something can be written, or a connect has ended.
    pub const WRITE: Interest = Interest(libc::EPOLLOUT as u32);
    /// Either.
    pub const READ_WRITE: Interest = Interest((libc::EPOLLIN | libc::EPOLLOUT) as u32);

    /// Tells each change once instead of each state again and again (`EPOLLET`).
    pub const fn edge(self) -> Interest {
        Interest(self.0 | libc::EPOLLET as u32)
    }

    /// Of several instances watching one listener only one wakes (`EPOLLEXCLUSIVE`). Not together with
    /// [`Interest::peer_close`]: the kernel refuses that pair.
    pub const fn exclusive(self) -> Interest {
        Interest(self.0 | libc::EPOLLEXCLUSIVE as u32)
    }

    /// Also reports that the peer will send no more (`EPOLLRDHUP`).
    pub const fn peer_close(self) -> Interest {
        Interest(self.0 | libc::EPOLLRDHUP as u32)
    }

    fn is_exclusive(self) -> bool {
        self.has(libc::EPOLLEXCLUSIVE)
    }

    fn has(self, mask: libc::c_int) -> bool {
        self.0 & mask as u32 != 0
    }
}

impl Events {
    /// Room for `n` events per wait, at least one and at most 65,536: more than that in one turn helps nobody.
    pub fn with_capacity(n: usize) -> Events {
        let empty = Event(libc::epoll_event { events: 0, u64: 0 });
        Events { slots: vec![empty; n.clamp(1, 65_536)] }
    }

    /// How many events one wait can bring.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }
}

impl Event {
    /// The token of the descriptor.
    #[inline]
    pub fn token(&self) -> u64 {
        self.0.u64
    }

    /// A read will not block: data, end of file, or a connection to accept.
    #[inline]
    pub fn readable(&self) -> bool {
        self.has(libc::EPOLLIN)
    }

    /// A write will not block.
    #[inline]
    pub fn writable(&self) -> bool {
        self.has(libc::EPOLLOUT)
    }

    /// The peer will send no more; needs [`Interest::peer_close`].
    #[inline]
    pub fn peer_closed(&self) -> bool {
        self.has(libc::EPOLLRDHUP)
    }

    /// The connection is over in both directions, or failed.
    #[inline]
    pub fn hangup(&self) -> bool {
        self.has(libc::EPOLLHUP | libc::EPOLLERR)
    }

    #[inline]
    fn has(&self, mask: libc::c_int) -> bool {
        self.0.events & mask as u32 != 0
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Copied out first: on x86_64 the fields are packed and must not be borrowed.
        let (token, events) = (self.0.u64, self.0.events);
        write!(out, "Event {{ token: {token}, events: {events:#x} }}")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn polling_of_devices_is_read_back_as_it_was_set() {
        let epoll = Epoll::new().unwrap();
        match epoll.poll_devices(200) {
            Ok(()) => {
                let set = polling(&epoll.fd).unwrap();
                assert_eq!((set.busy_poll_usecs, set.budget, set.prefer), (200, BUDGET, 1));
                epoll.poll_devices(0).unwrap();
                assert_eq!(polling(&epoll.fd).unwrap(), Polling::default());
            }
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOTTY), "before Linux 6.9"),
        }
    }
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_byte_makes_its_reader_ready_under_its_token() {
        let (mut writer, reader) = UnixStream::pair().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(&reader, 77, Interest::READ).unwrap();
        let mut events = Events::with_capacity(8);
        assert!(epoll.wait(&mut events, Timeout::Poll).unwrap().is_empty());
        writer.write_all(b"x").unwrap();
        let ready = epoll.wait(&mut events, Timeout::Millis(5_000)).unwrap();
        assert_eq!(ready.len(), 1);
        assert_eq!((ready[0].token(), ready[0].readable(), ready[0].writable()), (77, true, false));
    }

    #[test]
    fn level_tells_again_and_edge_does_not() {
        let (mut writer, reader) = UnixStream::pair().unwrap();
        let (level, edge) = (Epoll::new().unwrap(), Epoll::new().unwrap());
        level.add(&reader, 1, Interest::READ).unwrap();
        edge.add(&reader, 1, Interest::READ.edge()).unwrap();
        writer.write_all(b"x").unwrap();
        let mut events = Events::with_capacity(1);
        assert_eq!(level.wait(&mut events, Timeout::Poll).unwrap().len(), 1);
        assert_eq!(level.wait(&mut events, Timeout::Poll).unwrap().len(), 1);
        assert_eq!(edge.wait(&mut events, Timeout::Poll).unwrap().len(), 1);
        assert_eq!(edge.wait(&mut events, Timeout::Poll).unwrap().len(), 0);
    }

    #[test]
    fn a_peer_that_stops_sending_is_told_only_when_asked_for() {
        let (writer, mut reader) = UnixStream::pair().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(&reader, 1, Interest::READ).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
        let mut events = Events::with_capacity(1);
        assert!(!epoll.wait(&mut events, Timeout::Poll).unwrap()[0].peer_closed());
        epoll.modify(&reader, 2, Interest::READ.peer_close()).unwrap();
        let event = epoll.wait(&mut events, Timeout::Poll).unwrap()[0];
        assert!(event.peer_closed() && event.token() == 2 && !event.hangup());
        assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0);
    }

    #[test]
    fn a_gone_peer_is_a_hangup_even_with_no_interest() {
        let (writer, reader) = UnixStream::pair().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(&reader, 1, Interest::NONE).unwrap();
        drop(writer);
        let mut events = Events::with_capacity(1);
        crate::assert_soon(&true, || {
            epoll.wait(&mut events, Timeout::Poll).unwrap().iter().any(|event| event.hangup())
        });
    }

    #[test]
    fn a_removed_descriptor_is_silent_and_unknown() {
        let (mut writer, reader) = UnixStream::pair().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(&reader, 1, Interest::READ).unwrap();
        epoll.remove(&reader).unwrap();
        writer.write_all(b"x").unwrap();
        assert!(epoll.wait(&mut Events::with_capacity(4), Timeout::Poll).unwrap().is_empty());
        let again = epoll.modify(&reader, 1, Interest::READ).unwrap_err();
        assert_eq!(again.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    #[should_panic(expected = "the kernel refuses that pair")]
    fn one_of_several_watchers_never_asks_for_the_peers_end() {
        let (_writer, reader) = UnixStream::pair().unwrap();
        let _ = Epoll::new().unwrap().add(&reader, 1, Interest::READ.exclusive().peer_close());
    }
}

//! Stream sockets: listen, accept, connect, and the one system call each of reading and writing.
//!
//! Called by workers and load sessions. Every socket made here is nonblocking and close-on-exec. Nothing here retries,
//! buffers or waits, but for a call that a signal interrupted, which is made again.

mod addr;
mod bulk;
mod listen;
mod option;
pub mod rights;
mod steer;

pub use addr::{Addr, AddrError};
pub use bulk::{
    SLICES_MAX, Sending, Speaker, dropped, is_unread, last_brought_data, queue, send_file, send_vectored,
    send_vectored_more, sending, unacknowledged, write_vectored,
};
pub use listen::{
    Accepted, ListenOptions, Reuseport, SocketError, accept, begin_to_listen, bound, connect, connect_from,
    listen, try_listen,
};
pub use option::{
    KeepAlive, SockOpt, SockOptError, congestion, incoming_cpu, int_option, keep_alive, read_option,
    set_congestion, set_incoming_cpu, set_int_option, set_linger_zero, set_nodelay, take_error,
};
pub use steer::attach_reuseport_by_cpu;

use crate::errno::{self, checked};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// What one attempt to move bytes came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// So many bytes moved; may be fewer than asked for.
    Done(usize),
    /// Nothing could be moved now: wait for readiness.
    WouldBlock,
    /// The peer will send no more (a read of nothing). Never the answer of a write.
    Closed,
    /// The connection is broken; the errno (`ECONNRESET`, `EPIPE` …).
    Failed(i32),
}

/// `recv(2)`: reads what there is into `buf`, which must not be empty.
#[inline]
pub fn recv(fd: impl AsFd, buf: &mut [u8]) -> Io {
    debug_assert!(!buf.is_empty(), "a read into nothing looks like the end of the stream");
    let fd = fd.as_fd();
    // SAFETY: the pointer and length are those of `buf`, writable for the length of the call.
    taken(|| unsafe { libc::recv(fd.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len(), 0) })
}

/// `send(2)` without SIGPIPE.
#[inline]
pub fn send(fd: impl AsFd, bytes: &[u8]) -> Io {
    let fd = fd.as_fd();
    // SAFETY: the pointer and length are those of `bytes`, readable for the length of the call.
    given(|| unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) })
}

/// `read(2)`: the same as [`recv`], for sockets a little dearer, for pipes and files as well.
#[inline]
pub fn read(fd: impl AsFd, buf: &mut [u8]) -> Io {
    debug_assert!(!buf.is_empty(), "a read into nothing looks like the end of the stream");
    let fd = fd.as_fd();
    // SAFETY: the pointer and length are those of `buf`, writable for the length of the call.
    taken(|| unsafe { libc::read(fd.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len()) })
}

/// `write(2)`. A broken connection raises SIGPIPE unless it is ignored ([`crate::signal::ignore_sigpipe`]).
#[inline]
pub fn write(fd: impl AsFd, bytes: &[u8]) -> Io {
    let fd = fd.as_fd();
    // SAFETY: the pointer and length are those of `bytes`, readable for the length of the call.
    given(|| unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) })
}

/// Sends no more but still reads (`shutdown(2)`, `SHUT_WR`).
pub fn shutdown_write(fd: impl AsFd) -> io::Result<()> {
    // SAFETY: shutdown takes no pointer; the descriptor is borrowed and so open.
    checked(unsafe { libc::shutdown(fd.as_fd().as_raw_fd(), libc::SHUT_WR) })?;
    Ok(())
}

/// Where this end of the socket is bound; the way to learn the port after listening on port 0.
pub fn local_addr(fd: impl AsFd) -> io::Result<Addr> {
    // SAFETY: `ask` is handed a live sockaddr_storage and its length by `Addr::asked`.
    Addr::asked(|name, len| unsafe { libc::getsockname(fd.as_fd().as_raw_fd(), name, len) })
}

/// Where the other end is. `ENOTCONN` before the connection stands and after it broke.
pub fn peer_addr(fd: impl AsFd) -> io::Result<Addr> {
    // SAFETY: `ask` is handed a live sockaddr_storage and its length by `Addr::asked`.
    Addr::asked(|name, len| unsafe { libc::getpeername(fd.as_fd().as_raw_fd(), name, len) })
}

/// Two joined sockets that keep packets apart (`AF_UNIX`, `SOCK_SEQPACKET`), nonblocking: for control channels.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let mut ends = [-1; 2];
    // SAFETY: `ends` has room for the two descriptors the call writes.
    checked(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
    // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
    let left = unsafe { OwnedFd::from_raw_fd(ends[0]) };
    // SAFETY: as above, the other end.
    let right = unsafe { OwnedFd::from_raw_fd(ends[1]) };
    Ok((left, right))
}

/// A pipe, `(read end, write end)`, close-on-exec and blocking.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [-1; 2];
    // SAFETY: `ends` has room for the two descriptors the call writes.
    checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
    let reader = unsafe { OwnedFd::from_raw_fd(ends[0]) };
    // SAFETY: as above, the other end.
    let writer = unsafe { OwnedFd::from_raw_fd(ends[1]) };
    Ok((reader, writer))
}

/// Makes reads and writes answer [`Io::WouldBlock`] instead of sleeping; the flag is shared by every copy.
pub fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: F_GETFL takes no pointer.
    let flags = checked(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: F_SETFL takes an integer.
    checked(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) })?;
    Ok(())
}

/// What [`wait_readable`] saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Data, end of file or an error can be read.
    Yes,
    /// Nothing came in time.
    TimedOut,
}

/// Sleeps until `fd` can be read or `deadline_ns` on [`crate::clock::mono_ns`] has come. For control threads.
pub fn wait_readable(fd: impl AsFd, deadline_ns: u64) -> io::Result<Ready> {
    let mut asked = [poll_for(fd.as_fd().as_raw_fd())];
    loop {
        match poll(&mut asked, deadline_ns)? {
            0 if crate::clock::mono_ns() < deadline_ns => {}
            0 => return Ok(Ready::TimedOut),
            _ => return Ok(Ready::Yes),
        }
    }
}

/// Whether a write to a pipe, a terminal or a socket could move something now. A broken one can be written to as well: the
/// write tells what is wrong. A pipe that can be written to takes `PIPE_BUF` bytes (`pipe(7)`).
pub fn is_writable(fd: impl AsFd) -> bool {
    let mut asked = [libc::pollfd { events: libc::POLLOUT, ..poll_for(fd.as_fd().as_raw_fd()) }];
    !matches!(poll(&mut asked, 0), Ok(0))
}

pub(crate) fn poll_for(fd: i32) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

/// How many of `asked` are ready; none when a signal came or the time is up.
pub(crate) fn poll(asked: &mut [libc::pollfd], deadline_ns: u64) -> io::Result<usize> {
    let left_ns = deadline_ns.saturating_sub(crate::clock::mono_ns());
    // Rounded up, or the last millisecond would be spent spinning.
    let left_ms = i32::try_from(left_ns.div_ceil(1_000_000)).unwrap_or(i32::MAX);
    // SAFETY: the pointer and count are those of `asked`, writable for the length of the call.
    match checked(unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, left_ms) }) {
        Ok(ready) => Ok(ready.cast_unsigned() as usize),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

#[inline]
fn taken(mut call: impl FnMut() -> isize) -> Io {
    match given(&mut call) {
        Io::Done(0) => Io::Closed,
        other => other,
    }
}

#[inline]
fn given(mut call: impl FnMut() -> isize) -> Io {
    loop {
        let moved = call();
        if moved >= 0 {
            return Io::Done(moved.cast_unsigned());
        }
        match errno::last() {
            libc::EINTR => {}
            libc::EAGAIN => return Io::WouldBlock,
            number => return Io::Failed(number),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::net::UnixStream;

    fn streams() -> (UnixStream, UnixStream) {
        let (left, right) = UnixStream::pair().unwrap();
        set_nonblocking(&left).unwrap();
        set_nonblocking(&right).unwrap();
        (left, right)
    }

    #[test]
    fn bytes_cross_by_either_pair_of_calls() {
        let (left, right) = streams();
        let mut buf = [0; 16];
        assert_eq!(recv(&right, &mut buf), Io::WouldBlock);
        assert_eq!(send(&left, b"hello"), Io::Done(5));
        assert_eq!(recv(&right, &mut buf), Io::Done(5));
        assert_eq!(write(&right, b"you"), Io::Done(3));
        assert_eq!(read(&left, &mut buf), Io::Done(3));
        assert_eq!(&buf[..3], b"you");
    }

    #[test]
    fn a_closed_peer_reads_as_closed_and_writes_as_broken() {
        let (left, right) = streams();
        drop(right);
        crate::assert_soon(&Io::Closed, || recv(&left, &mut [0; 4]));
        assert_eq!(send(&left, b"x"), Io::Failed(libc::EPIPE));
    }

    #[test]
    fn a_full_socket_takes_a_part_and_then_would_block() {
        let (left, _right) = streams();
        let chunk = vec![7; 1 << 20];
        let mut whole = 0;
        while let Io::Done(n) = send(&left, &chunk) {
            whole += n;
            assert!(whole < 1 << 28, "a socket cannot hold 256 MiB");
        }
        assert_eq!(send(&left, &chunk), Io::WouldBlock);
    }

    #[test]
    fn half_a_connection_can_be_shut() {
        let (left, right) = streams();
        shutdown_write(&left).unwrap();
        assert_eq!(recv(&right, &mut [0; 4]), Io::Closed);
        assert_eq!(send(&right, b"still"), Io::Done(5));
    }

    #[test]
    fn a_pair_keeps_packets_apart() {
        let (left, right) = pair().unwrap();
        assert_eq!(send(&left, b"one"), Io::Done(3));
        assert_eq!(send(&left, b"two!"), Io::Done(4));
        let mut buf = [0; 64];
        assert_eq!(recv(&right, &mut buf), Io::Done(3));
        assert_eq!(recv(&right, &mut buf), Io::Done(4));
        assert_eq!(recv(&right, &mut buf), Io::WouldBlock);
    }

    #[test]
    fn waiting_ends_by_data_or_by_the_deadline() {
        let (reader, writer) = pipe().unwrap();
        assert_eq!(wait_readable(&reader, crate::clock::mono_ns() + 1_000_000).unwrap(), Ready::TimedOut);
        assert_eq!(write(&writer, b"x"), Io::Done(1));
        assert_eq!(wait_readable(&reader, crate::clock::mono_ns() + 5_000_000_000).unwrap(), Ready::Yes);
    }
}

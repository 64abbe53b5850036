//! Moving many bytes at a time: several buffers in one call, a file's pages without a copy, and how much of what was
//! sent the peer has yet to acknowledge.
//!
//! Called by workers. As in the rest of `socket`, nothing retries or waits.

use super::{Io, given};
use crate::errno::checked;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Buffers that one call takes (`UIO_MAXIOV` of the kernel); more get `EMSGSIZE`.
pub const SLICES_MAX: usize = 1_024;

/// `sendmsg(2)` without SIGPIPE: `writev(2)` for sockets. The order of the slices is the order on the wire.
#[inline]
pub fn send_vectored(fd: impl AsFd, slices: &[io::IoSlice<'_>]) -> Io {
    debug_assert!(slices.len() <= SLICES_MAX, "the kernel takes {SLICES_MAX} buffers in one call");
    let fd = fd.as_fd();
    // SAFETY: msghdr is a structure of numbers and pointers; all zeros is its empty value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // IoSlice is laid out as iovec (its documentation); the kernel only reads through it.
    message.msg_iov = slices.as_ptr().cast_mut().cast();
    message.msg_iovlen = slices.len();
    // SAFETY: `message` and the slices it points to live through the call.
    given(|| unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) })
}

/// `writev(2)`: the same by the call that also serves files. Raises SIGPIPE unless it is ignored.
#[inline]
pub fn write_vectored(fd: impl AsFd, slices: &[io::IoSlice<'_>]) -> Io {
    debug_assert!(slices.len() <= SLICES_MAX, "the kernel takes {SLICES_MAX} buffers in one call");
    let fd = fd.as_fd();
    let count = libc::c_int::try_from(slices.len()).unwrap_or(libc::c_int::MAX);
    // SAFETY: IoSlice is laid out as iovec (its documentation); the slices live through the call.
    given(|| unsafe { libc::writev(fd.as_raw_fd(), slices.as_ptr().cast(), count) })
}

/// `sendfile(2)`: at most `count` bytes of `file` from `offset` on, out of the page cache. `Done(0)`: the file ends there.
///
/// A page that is not in memory is read from the disk while the call waits.
pub fn send_file(fd: impl AsFd, file: impl AsFd, offset: u64, count: usize) -> Io {
    let Ok(mut offset) = libc::off_t::try_from(offset) else { return Io::Failed(libc::EOVERFLOW) };
    let (fd, file) = (fd.as_fd(), file.as_fd());
    // SAFETY: `offset` is a live, writable off_t for the length of the call; both descriptors are borrowed and so open.
    given(|| unsafe { libc::sendfile(fd.as_raw_fd(), file.as_raw_fd(), &raw mut offset, count) })
}

/// Bytes that were sent and that the peer has not acknowledged, those that wait in the kernel included (`SIOCOUTQ`,
/// tcp(7)). The only way to see a slow reader make progress: the kernel reports room for more when a third of the buffer is free.
pub fn unacknowledged(fd: impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: TIOCOUTQ, which is SIOCOUTQ, writes one int; `bytes` lives through the call.
    checked(unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &raw mut bytes) })?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// What TCP holds back on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Segments that the other side has not acknowledged.
    pub unacknowledged: u32,
    /// Segments that may be on their way at a time.
    pub window: u32,
    /// Bytes that were written and not sent yet.
    pub unsent: u32,
    /// Bytes of a full segment.
    pub segment: u32,
}

impl Sending {
    /// Nagle's condition: less than a segment is kept until what is on its way has been acknowledged.
    #[must_use]
    pub fn waits_for_acknowledgement(&self) -> bool {
        let small = self.unsent > 0 && self.unsent < self.segment;
        small && self.unacknowledged > 0 && self.unacknowledged < self.window
    }
}

/// What a TCP connection holds back (`TCP_INFO`). An error for every other kind of socket.
pub fn sending(fd: impl AsFd) -> io::Result<Sending> {
    let mut info = [0_u8; 256];
    let mut len = info.len() as libc::socklen_t;
    let fd = fd.as_fd().as_raw_fd();
    let (level, number) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: `info` and `len` live through the call and `len` is the size of `info`.
    checked(unsafe { libc::getsockopt(fd, level, number, info.as_mut_ptr().cast(), &raw mut len) })?;
    // Offsets of struct tcp_info (linux/tcp.h), which only ever grows at its end.
    let at = |offset: usize| {
        let bytes = info.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_ne_bytes(bytes.unwrap_or_default())
    };
    if (len as usize) < 148 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(Sending { segment: at(16), unacknowledged: at(24), window: at(80), unsent: at(144) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{IoSlice, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    #[test]
    fn slices_arrive_in_their_order_by_either_call() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let slices = [IoSlice::new(b"one "), IoSlice::new(b""), IoSlice::new(b"two")];
        assert_eq!(send_vectored(&near, &slices), Io::Done(7));
        assert_eq!(write_vectored(&near, &slices), Io::Done(7));
        drop(near);
        let mut text = String::new();
        far.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one twoone two");
    }

    #[test]
    fn a_file_is_sent_from_its_offset_and_its_end_is_told() {
        let path = std::env::temp_dir().join(format!("dyno-bulk-{}", std::process::id()));
        std::fs::write(&path, b"0123456789").unwrap();
        let file = std::fs::File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (near, mut far) = UnixStream::pair().unwrap();
        assert_eq!(send_file(&near, &file, 4, 3), Io::Done(3));
        assert_eq!(send_file(&near, &file, 7, 100), Io::Done(3));
        assert_eq!(send_file(&near, &file, 10, 100), Io::Done(0));
        assert_eq!(send_file(&near, &file, u64::MAX, 1), Io::Failed(libc::EOVERFLOW));
        drop(near);
        let mut text = String::new();
        far.read_to_string(&mut text).unwrap();
        assert_eq!(text, "456789");
    }

    #[test]
    fn what_a_peer_does_not_read_stays_unacknowledged_only_beyond_its_window() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while let Ok(count) = near.write(&[b'x'; 65_536]) {
            sent += count as u64;
        }
        let held = unacknowledged(&near).unwrap();
        assert!(held > 0 && held < sent, "{held} of {sent}");
        let mut taken = vec![0; usize::try_from(sent).unwrap()];
        far.read_exact(&mut taken).unwrap();
        let until = crate::clock::mono_ns() + 5_000_000_000;
        while unacknowledged(&near).unwrap() > 0 {
            assert!(crate::clock::mono_ns() < until, "all was read and is not acknowledged");
        }
    }

    #[test]
    fn a_small_piece_waits_for_the_piece_before_it_unless_small_pieces_go_at_once() {
        let kept = |unsent| Sending { unacknowledged: 1, window: 10, unsent, segment: 1_448 };
        assert!(kept(5).waits_for_acknowledgement());
        assert!(!kept(0).waits_for_acknowledgement() && !kept(2_000).waits_for_acknowledgement());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let seen = sending(&near).unwrap();
        assert!(seen.segment > 500 && seen.window > 0 && !seen.waits_for_acknowledgement());
        let (pair, _other) = UnixStream::pair().unwrap();
        assert!(sending(&pair).is_err());
    }
}

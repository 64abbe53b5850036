//! Packets that carry descriptors (`SCM_RIGHTS`, `unix(7)`). Used by the keeper's channels, and by the engine's supervisor
//! for what it hands to its workers.
//!
//! A received descriptor is owned at once, so that none can leak; a packet that was cut is an error.

use crate::errno::checked_size;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Descriptors in one packet; the kernel's SCM_MAX_FD is 253.
pub const RIGHTS_MAX: usize = 64;
const FD_BYTES: usize = size_of::<libc::c_int>();
/// Room for one control message of RIGHTS_MAX descriptors: header (16 bytes) and numbers, in aligned words.
const CONTROL_WORDS: usize = (16 + RIGHTS_MAX * FD_BYTES).div_ceil(8);

/// One received packet.
#[derive(Debug)]
pub struct Packet {
    /// What it says.
    pub bytes: Vec<u8>,
    /// What came with it.
    pub fds: Vec<OwnedFd>,
}

/// Sends one packet; whole or not at all. `EAGAIN` when the channel is full, `EPIPE` when nobody reads.
pub fn send(channel: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    assert!(fds.len() <= RIGHTS_MAX, "more descriptors than a packet takes");
    let mut control = [0_u64; CONTROL_WORDS];
    let mut piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut message = message(&mut piece, &mut control);
    if fds.is_empty() {
        message.msg_controllen = 0;
    } else {
        put_rights(&mut message, fds);
    }
    // SAFETY: `message` points to `piece` and `control`, and `piece` to `bytes`; all live through the call.
    let sent = unsafe { libc::sendmsg(channel.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    match checked_size(sent)? {
        sent if sent == bytes.len() => Ok(()),
        _ => Err(io::Error::from(io::ErrorKind::WriteZero)),
    }
}

/// Takes one packet of at most `bytes_max`; an empty one is the end of the channel. `EAGAIN` when there is none.
pub fn receive(channel: BorrowedFd<'_>, bytes_max: usize) -> io::Result<Packet> {
    let mut bytes = vec![0; bytes_max];
    let mut control = [0_u64; CONTROL_WORDS];
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut message = message(&mut piece, &mut control);
    // SAFETY: `message` points to `piece` and `control`, and `piece` to `bytes`; all live and writable through the call.
    let got = unsafe { libc::recvmsg(channel.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    let got = checked_size(got)?;
    let fds = take_rights(&message);
    if message.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    bytes.truncate(got);
    Ok(Packet { bytes, fds })
}

fn message(piece: &mut libc::iovec, control: &mut [u64; CONTROL_WORDS]) -> libc::msghdr {
    // SAFETY: all zeroes is a valid msghdr: null pointers and no lengths.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(control) as _;
    message
}

fn put_rights(message: &mut libc::msghdr, fds: &[BorrowedFd<'_>]) {
    let payload = (fds.len() * FD_BYTES) as libc::c_uint;
    // SAFETY: CMSG_SPACE only computes.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(payload) } as _;
    // SAFETY: `message` has control memory of at least one header.
    let header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: CMSG_LEN only computes.
    let len = unsafe { libc::CMSG_LEN(payload) };
    // SAFETY: `header` points into the control memory, which is aligned to 8 bytes as cmsghdr wants.
    let header = unsafe { &mut *header };
    header.cmsg_level = libc::SOL_SOCKET;
    header.cmsg_type = libc::SCM_RIGHTS;
    header.cmsg_len = len as _;
    // SAFETY: `header` is the one header of the message.
    let data = unsafe { libc::CMSG_DATA(header) }.cast::<libc::c_int>();
    for (at, fd) in fds.iter().enumerate() {
        // SAFETY: at most RIGHTS_MAX numbers (asserted by `send`) fit behind the header.
        let place = unsafe { data.add(at) };
        // SAFETY: as above; CMSG_DATA need not be aligned for numbers.
        unsafe { place.write_unaligned(fd.as_raw_fd()) };
    }
}

fn take_rights(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut fds = Vec::new();
    // SAFETY: the kernel has filled the control memory that `message` points to.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: a non-null answer of CMSG_FIRSTHDR or CMSG_NXTHDR points to a whole header.
    while let Some(header) = unsafe { next.as_ref() } {
        if header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_RIGHTS {
            take_numbers(header, &mut fds);
        }
        // SAFETY: `header` lies in the control memory of `message`.
        next = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    fds
}

fn take_numbers(header: &libc::cmsghdr, fds: &mut Vec<OwnedFd>) {
    // SAFETY: CMSG_LEN only computes.
    let empty = unsafe { libc::CMSG_LEN(0) } as usize;
    let count = header.cmsg_len.saturating_sub(empty) / FD_BYTES;
    // SAFETY: `header` is a whole header with its data behind it.
    let data = unsafe { libc::CMSG_DATA(header) }.cast::<libc::c_int>();
    for at in 0..count {
        // SAFETY: the kernel's length says that `count` numbers stand here.
        let place = unsafe { data.add(at) };
        // SAFETY: as above; CMSG_DATA need not be aligned for numbers.
        let number = unsafe { place.read_unaligned() };
        // SAFETY: the kernel has just made this descriptor for us and nobody else knows it.
        fds.push(unsafe { OwnedFd::from_raw_fd(number) });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::pair;
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn a_pipe_that_travels_is_the_same_pipe() {
        let (left, right) = pair().unwrap();
        let (reader, writer) = super::super::pipe().unwrap();
        send(left.as_fd(), b"take", &[reader.as_fd(), writer.as_fd()]).unwrap();
        let mut packet = receive(right.as_fd(), 64).unwrap();
        assert_eq!((packet.bytes.as_slice(), packet.fds.len()), (&b"take"[..], 2));
        let (copy_writer, copy_reader) = (packet.fds.pop().unwrap(), packet.fds.pop().unwrap());
        std::fs::File::from(copy_writer).write_all(b"x").unwrap();
        let mut byte = [0];
        std::fs::File::from(copy_reader).read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }

    #[test]
    fn as_many_as_allowed_travel_together() {
        let (left, right) = pair().unwrap();
        let fds = vec![left.as_fd(); RIGHTS_MAX];
        send(left.as_fd(), b"all", &fds).unwrap();
        assert_eq!(receive(right.as_fd(), 64).unwrap().fds.len(), RIGHTS_MAX);
    }

    #[test]
    fn a_packet_too_long_for_its_reader_is_an_error_and_leaks_nothing() {
        let (left, right) = pair().unwrap();
        send(left.as_fd(), &[7; 100], &[left.as_fd()]).unwrap();
        assert_eq!(receive(right.as_fd(), 50).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn nothing_there_would_block_and_a_closed_end_is_empty() {
        let (left, right) = pair().unwrap();
        assert_eq!(receive(right.as_fd(), 8).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(left);
        crate::assert_soon(&Some(0), || receive(right.as_fd(), 8).ok().map(|message| message.bytes.len()));
        assert_eq!(send(right.as_fd(), b"x", &[]).unwrap_err().raw_os_error(), Some(libc::EPIPE));
    }
}

//! Moving many bytes at a time: several buffers in one call, a file's pages without a copy, and how much of what was
//! sent the peer has yet to acknowledge.
//!
//! Called by workers. As in the rest of `socket`, nothing retries or waits.

use super::{Io, given};
use crate::errno::checked;
use crate::netlink::sock_diag::Queue;
use std::cmp::Ordering;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Buffers that one call takes (`UIO_MAXIOV` of the kernel); more get `EMSGSIZE`.
pub const SLICES_MAX: usize = 1_024;

/// `sendmsg(2)` without SIGPIPE: `writev(2)` for sockets. The order of the slices is the order on the wire.
#[inline]
pub fn send_vectored(fd: impl AsFd, slices: &[io::IoSlice<'_>]) -> Io {
    send_message(fd, slices, libc::MSG_NOSIGNAL)
}

/// The same where more is sent at once by another call (`MSG_MORE`, send(2)): the last bytes may leave with it, in one
/// packet. What does not follow within a fifth of a second is no longer waited for.
#[inline]
pub fn send_vectored_more(fd: impl AsFd, slices: &[io::IoSlice<'_>]) -> Io {
    send_message(fd, slices, libc::MSG_NOSIGNAL | libc::MSG_MORE)
}

#[inline]
fn send_message(fd: impl AsFd, slices: &[io::IoSlice<'_>], flags: libc::c_int) -> Io {
    debug_assert!(slices.len() <= SLICES_MAX, "the kernel takes {SLICES_MAX} buffers in one call");
    let fd = fd.as_fd();
    // SAFETY: msghdr is a structure of numbers and pointers; all zeros is its empty value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // IoSlice is laid out as iovec (its documentation); the kernel only reads through it.
    message.msg_iov = slices.as_ptr().cast_mut().cast();
    message.msg_iovlen = slices.len();
    // SAFETY: `message` and the slices it points to live through the call.
    given(|| unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, flags) })
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

/// Whether bytes lie in a connection that nobody has read.
pub fn is_unread(fd: impl AsFd) -> io::Result<bool> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int; `bytes` lives through the call.
    checked(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut bytes) })?;
    Ok(bytes > 0)
}

/// Of a listener of TCP the connections that nobody has accepted, and how many may wait so. An error for every other kind of
/// socket, and for a connection.
pub fn queue(fd: impl AsFd) -> io::Result<Queue> {
    let info = tcp_info(&fd)?;
    if info[0] != TCP_LISTEN {
        return Err(io::ErrorKind::NotConnected.into());
    }
    Ok(Queue { waiting: info_word(&info, UNACKED), backlog: info_word(&info, SACKED) })
}

/// What a socket has dropped since it was made; of a listener of TCP the connections for which there was no room, among other things
/// that came to it (`SO_MEMINFO`, since Linux 4.12).
pub fn dropped(fd: impl AsFd) -> io::Result<u32> {
    let mut memory = [0_u32; SK_MEMINFO_VARS];
    let mut len = size_of_val(&memory) as libc::socklen_t;
    let fd = fd.as_fd().as_raw_fd();
    let (level, number) = (libc::SOL_SOCKET, libc::SO_MEMINFO);
    // SAFETY: `memory` and `len` live through the call and `len` is the size of `memory`.
    checked(unsafe { libc::getsockopt(fd, level, number, memory.as_mut_ptr().cast(), &raw mut len) })?;
    Ok(memory[SK_MEMINFO_DROPS])
}

/// Words of `SO_MEMINFO` and the place of what was dropped among them (linux/sock_diag.h).
const SK_MEMINFO_VARS: usize = 9;
const SK_MEMINFO_DROPS: usize = 8;

/// `tcpi_state` of a listener (net/tcp_states.h), whose `tcpi_unacked` is the length of its queue, and `tcpi_sacked` the limit.
const TCP_LISTEN: u8 = 10;
/// Offsets of `tcpi_unacked` and `tcpi_sacked` in struct tcp_info (linux/tcp.h).
const UNACKED: usize = 24;
const SACKED: usize = 28;

/// struct tcp_info, which only ever grows at its end; an error where the kernel's is shorter than what is read here.
fn tcp_info(fd: impl AsFd) -> io::Result<[u8; 256]> {
    let mut info = [0_u8; 256];
    let mut len = info.len() as libc::socklen_t;
    let fd = fd.as_fd().as_raw_fd();
    let (level, number) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: `info` and `len` live through the call and `len` is the size of `info`.
    checked(unsafe { libc::getsockopt(fd, level, number, info.as_mut_ptr().cast(), &raw mut len) })?;
    if (len as usize) < 148 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(info)
}

fn info_word(info: &[u8; 256], offset: usize) -> u32 {
    let bytes = info.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok());
    u32::from_ne_bytes(bytes.unwrap_or_default())
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
    /// Bytes that were received since it was opened, modulo 2³²: more when it changes.
    pub received: u32,
    /// The same for bytes that were sent and acknowledged.
    pub acknowledged: u32,
    /// Milliseconds since data was sent last, to the kernel's tick.
    pub sent_ms: u32,
    /// The same for data that came.
    pub received_ms: u32,
    /// The same for any packet that came: an acknowledgement is in each.
    pub acknowledged_ms: u32,
    /// Segments with data that came since it was opened; 0 where the kernel (before 4.6) does not tell it.
    pub segments_received: u32,
    /// The same for those that were sent.
    pub segments_sent: u32,
    /// Segments without data that came since it was opened, acknowledgements above all; as above where the kernel is older.
    pub bare_received: u32,
    /// The same for those that were sent.
    pub bare_sent: u32,
}

/// Whose data went over a connection last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// Who holds the socket.
    Own,
    /// The far end.
    Peer,
    /// Both within one tick of the kernel's, and nothing tells who was the last.
    Either,
}

impl Sending {
    /// Nagle's condition: less than a segment is kept until what is on its way has been acknowledged.
    #[must_use]
    pub fn waits_for_acknowledgement(&self) -> bool {
        let small = self.unsent > 0 && self.unsent < self.segment;
        small && self.unacknowledged > 0 && self.unacknowledged < self.window
    }

    /// Whose data went over it last. Within a tick the far end's acknowledgement tells it: what it has not acknowledged
    /// yet, or has with a packet of a later tick, was sent after its own last data, which acknowledges all before it.
    #[must_use]
    pub fn last_speaker(&self) -> Speaker {
        match self.sent_ms.cmp(&self.received_ms) {
            Ordering::Less => Speaker::Own,
            Ordering::Greater => Speaker::Peer,
            Ordering::Equal if self.unacknowledged > 0 || self.acknowledged_ms < self.received_ms => {
                Speaker::Own
            }
            Ordering::Equal => Speaker::Either,
        }
    }
}

/// What a TCP connection holds back (`TCP_INFO`). An error for every other kind of socket, and for a listener.
pub fn sending(fd: impl AsFd) -> io::Result<Sending> {
    let info = tcp_info(fd)?;
    if info[0] == TCP_LISTEN {
        return Err(io::ErrorKind::NotConnected.into());
    }
    let at = |offset| info_word(&info, offset);
    Ok(Sending {
        segment: at(16),
        unacknowledged: at(UNACKED),
        window: at(80),
        unsent: at(144),
        received: at(128),
        acknowledged: at(120),
        sent_ms: at(LAST_SENT_MS),
        received_ms: at(LAST_DATA_MS),
        acknowledged_ms: at(LAST_ACK_MS),
        segments_received: at(SEGMENTS_RECEIVED),
        segments_sent: at(SEGMENTS_SENT),
        bare_received: at(140).wrapping_sub(at(SEGMENTS_RECEIVED)),
        bare_sent: at(136).wrapping_sub(at(SEGMENTS_SENT)),
    })
}

/// Whether the last packet of a TCP connection brought data, and was no acknowledgement alone (`TCP_INFO`). A client acknowledges
/// an answer that it says nothing to some 40 ms later (`TCP_DELACK_MIN`), from the CPU on which its timer runs: where that packet
/// was worked on says nothing of its requests. Both are told to the kernel's tick.
pub fn last_brought_data(fd: impl AsFd) -> io::Result<bool> {
    let info = tcp_info(fd)?;
    Ok(info_word(&info, LAST_DATA_MS) <= info_word(&info, LAST_ACK_MS))
}

/// Offsets of `tcpi_data_segs_in` and `tcpi_data_segs_out`; those with all segments are `tcpi_segs_out` and `tcpi_segs_in`.
const SEGMENTS_RECEIVED: usize = 152;
const SEGMENTS_SENT: usize = 156;
/// Offsets of `tcpi_last_data_sent`, `tcpi_last_data_recv` and `tcpi_last_ack_recv`, ms since then.
const LAST_SENT_MS: usize = 44;
const LAST_DATA_MS: usize = 52;
const LAST_ACK_MS: usize = 56;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{Addr, begin_to_listen};
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

    /// Planted fault: the two times the other way round.
    #[test]
    fn an_acknowledgement_alone_is_told_from_a_packet_that_brought_data() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut conn = listener.accept().unwrap().0;
        client.set_nodelay(true).unwrap();
        // Beyond the packets that the kernel acknowledges at once at the beginning of a connection.
        for _ in 0..100 {
            client.write_all(b"?").unwrap();
            conn.read_exact(&mut [0]).unwrap();
            assert!(last_brought_data(&conn).unwrap(), "a question came last");
            conn.write_all(b"!").unwrap();
            client.read_exact(&mut [0]).unwrap();
        }
        let deadline = crate::clock::mono_ns() + 5_000_000_000;
        while last_brought_data(&conn).unwrap() {
            assert!(crate::clock::mono_ns() < deadline, "nobody acknowledged the last answer");
            crate::clock::sleep_ns(1_000_000);
        }
    }

    /// Planted faults: the acknowledgement not asked (`Either` for whatever lies in one tick); the two times the other way
    /// round.
    #[test]
    fn who_spoke_last_is_told_also_within_a_tick() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut conn = listener.accept().unwrap().0;
        client.set_nodelay(true).unwrap();
        conn.set_nodelay(true).unwrap();
        // Beyond the packets that the kernel acknowledges at once at the beginning of a connection.
        for _ in 0..100 {
            client.write_all(b"?").unwrap();
            conn.read_exact(&mut [0]).unwrap();
            conn.write_all(b"!").unwrap();
            client.read_exact(&mut [0]).unwrap();
        }
        let seen = sending(&conn).unwrap();
        assert_eq!((seen.segments_received, seen.segments_sent), (100, 100));
        assert_eq!(seen.last_speaker(), Speaker::Own, "{seen:?}");
        let bare = |seen: Sending| (seen.bare_received, seen.bare_sent);
        let (received, sent) = bare(seen);
        let to_come = u32::from(seen.unacknowledged > 0);
        let deadline_ns = crate::clock::mono_ns() + 20_000_000_000;
        while sending(&conn).unwrap().unacknowledged > 0 {
            assert!(crate::clock::mono_ns() < deadline_ns, "the last answer is not acknowledged");
            crate::clock::sleep_ns(1_000_000);
        }
        crate::clock::sleep_ns(100_000_000);
        let seen = sending(&conn).unwrap();
        assert_eq!(
            bare(seen),
            (received + to_come, sent),
            "the last answer is acknowledged, and nothing else"
        );
        assert_eq!(seen.last_speaker(), Speaker::Own, "acknowledged meanwhile: {seen:?}");
        assert_ne!(sending(&client).unwrap().last_speaker(), Speaker::Own);
        client.write_all(b"?").unwrap();
        conn.read_exact(&mut [0]).unwrap();
        assert_eq!(sending(&conn).unwrap().last_speaker(), Speaker::Peer);
        assert_eq!(sending(&client).unwrap().last_speaker(), Speaker::Own);
        let at = |sent_ms, received_ms, acknowledged_ms, unacknowledged| {
            Sending { sent_ms, received_ms, acknowledged_ms, unacknowledged, ..Sending::default() }
                .last_speaker()
        };
        assert_eq!(at(50, 50, 50, 0), Speaker::Either);
        assert_eq!([at(50, 50, 10, 0), at(50, 50, 50, 1), at(49, 50, 50, 0)], [Speaker::Own; 3]);
        assert_eq!(at(51, 50, 50, 1), Speaker::Peer);
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
    fn what_waits_is_counted_at_a_listener_and_at_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut one, _two) = (connect(), connect());
        let waiting = || queue(&listener).unwrap().waiting;
        assert_eq!(waiting(), 2);
        assert!(queue(&listener).unwrap().backlog >= 128);
        let (mut far, _) = listener.accept().unwrap();
        assert_eq!((waiting(), is_unread(&far).unwrap()), (1, false));
        one.write_all(b"abc").unwrap();
        far.peek(&mut [0; 3]).unwrap();
        assert!(is_unread(&far).unwrap());
        far.read_exact(&mut [0; 3]).unwrap();
        assert!(!is_unread(&far).unwrap());
        let (pipe, _) = UnixStream::pair().unwrap();
        assert!(queue(&pipe).is_err() && queue(&far).is_err(), "only listeners of TCP are asked");
    }

    /// Planted fault: another word of the socket's memory (`SK_MEMINFO_DROPS` of 7).
    #[test]
    fn a_listener_tells_how_many_connections_found_no_room() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        begin_to_listen(&listener, &Addr::Tcp(addr), 0).unwrap();
        let _first = TcpStream::connect(addr).unwrap();
        assert_eq!(dropped(&listener).unwrap(), 0);
        // It is asked again a second later at the earliest.
        let refused = TcpStream::connect_timeout(&addr, std::time::Duration::from_millis(50));
        assert!(refused.is_err() && dropped(&listener).unwrap() > 0);
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
        let kept =
            |unsent| Sending { unacknowledged: 1, window: 10, unsent, segment: 1_448, ..Sending::default() };
        assert!(kept(5).waits_for_acknowledgement());
        assert!(!kept(0).waits_for_acknowledgement() && !kept(2_000).waits_for_acknowledgement());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let seen = sending(&near).unwrap();
        assert!(seen.segment > 500 && seen.window > 0 && !seen.waits_for_acknowledgement());
        let (mut far, _) = listener.accept().unwrap();
        far.write_all(b"five!").unwrap();
        near.peek(&mut [0; 1]).unwrap();
        assert_eq!((seen.received, sending(&near).unwrap().received), (0, 5));
        let (pair, _other) = UnixStream::pair().unwrap();
        assert!(sending(&pair).is_err());
    }
}

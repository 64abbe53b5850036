//! Sockets as `ss` sees them (`sock_diag(7)`): TCP sockets by their states, TCP listeners with their queues, unix sockets with
//! what they are connected to, queues of unix listeners, and sockets that tap packets.
//!
//! Read by the host's facts and by the diagnosis, in this thread's network namespace. Asking loads a module of the kernel where it is one: callers
//! see first whether it is there.

use super::attribute::{attributes, u32_at};
use super::socket::{Netlink, Protocol, Read, Until};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Bytes of `struct inet_diag_req_v2`, and of the two answers' heads.
const INET_REQUEST_BYTES: usize = 56;
const INET_HEAD_BYTES: usize = 72;
/// Bytes of `struct unix_diag_req`, and of its answer's head.
const UNIX_REQUEST_BYTES: usize = 24;
const UNIX_HEAD_BYTES: usize = 16;
/// What is asked of a unix socket, and the attribute that answers it (`linux/unix_diag.h`): its name, what it is connected to,
/// its queue.
const UNIX_SHOW_NAME: u32 = 0x01;
const UNIX_NAME: u16 = 0;
const UNIX_SHOW_PEER: u32 = 0x04;
const UNIX_PEER: u16 = 2;
const UNIX_SHOW_QUEUE: u32 = 0x10;
const UNIX_QUEUE: u16 = 4;
/// Whatever its cookie: the inode names it.
const NO_COOKIE: [u8; 8] = [0xff; 8];
const PACKET_HEAD_BYTES: usize = 16;
const LISTEN: u32 = 10;
/// What is asked of a tap: its device, what it joined, its ring, its fanout group, its filter (`linux/packet_diag.h`).
const PACKET_SHOW: u32 = 1 | 2 | 4 | 8 | 32;
/// Bytes of `struct packet_diag_mclist`, and where the kind stands in it.
const JOINED_BYTES: usize = 44;
const JOINED_KIND_AT: usize = 8;
/// `PACKET_MR_PROMISC` (packet(7)): it asked for every packet of the wire.
const PROMISCUOUS: u32 = 1;
/// Bytes of an instruction of a filter (`struct sock_filter`).
const INSTRUCTION_BYTES: usize = 8;

/// A TCP listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Where it listens.
    pub local: SocketAddr,
    /// Connections that wait to be accepted, and how many may.
    pub waiting: u32,
    /// See `waiting`.
    pub backlog: u32,
    /// What /proc/PID/fd names as `socket:[inode]`.
    pub inode: u32,
    /// Whose it is.
    pub uid: u32,
}

/// A TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Bytes received that nobody has read; on a listener connections that nobody has accepted.
    pub unread: u32,
    /// The state, by the kernel's number (1 established, 10 listening).
    pub state: u8,
    /// What /proc/PID/fd names as `socket:[inode]`; 0 when no process holds it.
    pub inode: u32,
}

/// The queue of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Connections that wait to be accepted.
    pub waiting: u32,
    /// How many may; further clients sleep in connect(2), where nobody counts them.
    pub backlog: u32,
}

/// Asks for the queues of unix listeners, again and again over one socket.
#[derive(Debug)]
pub struct UnixQueues(Netlink);

impl UnixQueues {
    /// For the sockets of this thread's network namespace.
    pub fn open() -> io::Result<UnixQueues> {
        Ok(UnixQueues(Netlink::open(Protocol::SockDiag)?))
    }

    /// The queue of the listener with this inode. `ENOENT` when there is no such socket in this namespace, or when the kernel
    /// has no `unix_diag`.
    pub fn of(&mut self, inode: u32) -> io::Result<Queue> {
        let mut request = [0; UNIX_REQUEST_BYTES];
        request[0] = libc::AF_UNIX as u8;
        request[4..8].copy_from_slice(&(1u32 << LISTEN).to_le_bytes());
        request[8..12].copy_from_slice(&inode.to_le_bytes());
        request[12..16].copy_from_slice(&UNIX_SHOW_QUEUE.to_le_bytes());
        request[16..24].copy_from_slice(&NO_COOKIE);
        let mut queue = None;
        let each = &mut |message: &[u8]| queue = parse_unix_queue(message);
        self.0.ask((SOCK_DIAG_BY_FAMILY, &request), Until::First, 1, each)?;
        queue.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// A unix socket and what it is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixEnd {
    /// What /proc/PID/fd names as `socket:[inode]`.
    pub inode: u64,
    /// Its file, or its name after `@`. One that was accepted has its listener's.
    pub name: Option<String>,
    /// The inode of the socket at the other end; `None` where there is none, or nobody has accepted it.
    pub peer: Option<u64>,
}

/// A socket of the family `AF_PACKET`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tap {
    /// What it asked for, by number; 3 is every packet, 0 is none yet.
    pub protocol: u16,
    /// Its device; 0 is all.
    pub device: u32,
    /// What /proc/PID/fd names as `socket:[inode]`.
    pub inode: u32,
    /// Bytes of its receiving ring, where it has one.
    pub ring_bytes: Option<u64>,
    /// Instructions of its filter; `None` without one, or without the right to know.
    pub filter: Option<u32>,
    /// Whether it shares the packets with others of a group.
    pub has_fanout: bool,
    /// Devices that it asked for every packet of the wire.
    pub promiscuous: Vec<u32>,
}

/// All TCP sockets in these states, by the kernel's numbers (1 established, 10 listening), of this thread's network namespace.
pub fn tcp(states: &[u8]) -> io::Result<Vec<TcpSocket>> {
    let wanted = states.iter().fold(0, |all, state| all | 1u32 << state);
    let mut all = Vec::new();
    let mut netlink = Netlink::open(Protocol::SockDiag)?;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let request = inet_request(family, wanted);
        let each = &mut |message: &[u8]| all.extend(parse_tcp(message));
        netlink.ask((SOCK_DIAG_BY_FAMILY, &request), Until::Dumped, usize::MAX, each)?;
    }
    Ok(all)
}

/// All unix sockets of this thread's network namespace that have a name or are connected.
pub fn unix() -> io::Result<Vec<UnixEnd>> {
    let mut request = [0; UNIX_REQUEST_BYTES];
    request[0] = libc::AF_UNIX as u8;
    request[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    request[12..16].copy_from_slice(&(UNIX_SHOW_NAME | UNIX_SHOW_PEER).to_le_bytes());
    request[16..24].copy_from_slice(&NO_COOKIE);
    let mut all = Vec::new();
    let each = &mut |message: &[u8]| all.extend(parse_unix_end(message));
    let mut netlink = Netlink::open(Protocol::SockDiag)?;
    netlink.ask((SOCK_DIAG_BY_FAMILY, &request), Until::Dumped, usize::MAX, each)?;
    Ok(all)
}

fn inet_request(family: i32, states: u32) -> [u8; INET_REQUEST_BYTES] {
    let mut request = [0; INET_REQUEST_BYTES];
    request[0] = family as u8;
    request[1] = libc::IPPROTO_TCP as u8;
    request[4..8].copy_from_slice(&states.to_le_bytes());
    request
}

/// The TCP listeners, `max` of each family at most.
pub fn listeners(max: usize) -> io::Result<(Vec<Listener>, Read)> {
    let (mut all, mut whole) = (Vec::new(), Read::Whole);
    let mut netlink = Netlink::open(Protocol::SockDiag)?;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let request = inet_request(family, 1 << LISTEN);
        let each = &mut |message: &[u8]| all.extend(parse_listener(message));
        if netlink.ask((SOCK_DIAG_BY_FAMILY, &request), Until::Dumped, max, each)? == Read::Cut {
            // What is left of a dump would be taken for the answer to the next question.
            netlink = Netlink::open(Protocol::SockDiag)?;
            whole = Read::Cut;
        }
    }
    Ok((all, whole))
}

/// The taps, `max` at most.
pub fn taps(max: usize) -> io::Result<(Vec<Tap>, Read)> {
    let mut request = [0; 20];
    request[0] = libc::AF_PACKET as u8;
    request[8..12].copy_from_slice(&PACKET_SHOW.to_le_bytes());
    let mut all = Vec::new();
    let each = &mut |message: &[u8]| all.extend(parse_tap(message));
    let mut netlink = Netlink::open(Protocol::SockDiag)?;
    let read = netlink.ask((SOCK_DIAG_BY_FAMILY, &request), Until::Dumped, max, each)?;
    Ok((all, read))
}

/// An address of a `struct inet_diag_msg`, with the places of its port and of itself.
fn inet_address(head: &[u8], port_at: usize, at: usize) -> SocketAddr {
    let port = u16::from_be_bytes([head[port_at], head[port_at + 1]]);
    let bytes = |len: usize| &head[at..at + len];
    let address: IpAddr = match i32::from(head[0]) {
        libc::AF_INET => Ipv4Addr::from(<[u8; 4]>::try_from(bytes(4)).expect("it is four bytes")).into(),
        _ => Ipv6Addr::from(<[u8; 16]>::try_from(bytes(16)).expect("it is sixteen bytes")).into(),
    };
    SocketAddr::new(address, port)
}

/// A mapped address is the IPv4 one that it stands for.
pub(crate) fn plain(at: SocketAddr) -> SocketAddr {
    SocketAddr::new(at.ip().to_canonical(), at.port())
}

/// `struct inet_diag_msg` of any socket. A mapped address is the IPv4 one that it stands for.
pub fn parse_tcp(message: &[u8]) -> Option<TcpSocket> {
    let head = message.get(..INET_HEAD_BYTES)?;
    Some(TcpSocket {
        local: plain(inet_address(head, 4, 8)),
        remote: plain(inet_address(head, 6, 24)),
        unread: u32_at(head, 56),
        state: head[1],
        inode: u32_at(head, 68),
    })
}

/// `struct inet_diag_msg`.
pub fn parse_listener(message: &[u8]) -> Option<Listener> {
    let head = message.get(..INET_HEAD_BYTES)?;
    Some(Listener {
        local: inet_address(head, 4, 8),
        waiting: u32_at(head, 56),
        backlog: u32_at(head, 60),
        uid: u32_at(head, 64),
        inode: u32_at(head, 68),
    })
}

/// `struct unix_diag_msg` of a listener, asked for its queue.
pub fn parse_unix_queue(message: &[u8]) -> Option<Queue> {
    let rest = message.get(UNIX_HEAD_BYTES..)?;
    let is_listener = u32::from(message[2]) == LISTEN;
    let queue = attributes(rest).find(|one| one.kind == UNIX_QUEUE && one.bytes.len() >= 8);
    let queue = queue.filter(|_| is_listener)?;
    Some(Queue { waiting: u32_at(queue.bytes, 0), backlog: u32_at(queue.bytes, 4) })
}

/// `struct unix_diag_msg`, asked for name and peer. `None` for a socket that has neither.
pub fn parse_unix_end(message: &[u8]) -> Option<UnixEnd> {
    let rest = message.get(UNIX_HEAD_BYTES..)?;
    let mut end = UnixEnd { inode: u32_at(message, 4).into(), name: None, peer: None };
    for attribute in attributes(rest) {
        match attribute.kind {
            UNIX_NAME => end.name = unix_name(attribute.bytes),
            UNIX_PEER => end.peer = Some(u32_at(attribute.bytes, 0).into()).filter(|inode| *inode != 0),
            _ => {}
        }
    }
    (end.name.is_some() || end.peer.is_some()).then_some(end)
}

/// A path ends at its zero byte, if it has one; a name without a file begins with one.
fn unix_name(bytes: &[u8]) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match bytes.split_first()? {
        // As /proc/net/unix has it: zero bytes within are written so too.
        (0, name) => Some(format!("@{}", text(name).replace('\0', "@"))),
        _ => bytes.split(|byte| *byte == 0).next().map(text),
    }
}

/// `struct packet_diag_msg`.
pub fn parse_tap(message: &[u8]) -> Option<Tap> {
    let rest = message.get(PACKET_HEAD_BYTES..)?;
    let protocol = u16::from_le_bytes([message[2], message[3]]);
    let mut tap = Tap { protocol, inode: u32_at(message, 4), ..Tap::default() };
    for attribute in attributes(rest) {
        match attribute.kind {
            0 => tap.device = u32_at(attribute.bytes, 0),
            1 => tap.promiscuous = promiscuous(attribute.bytes),
            2 => {
                let (size, blocks) = (u32_at(attribute.bytes, 0), u32_at(attribute.bytes, 4));
                tap.ring_bytes = Some(u64::from(size) * u64::from(blocks));
            }
            4 => tap.has_fanout = true,
            7 => tap.filter = u32::try_from(attribute.bytes.len() / INSTRUCTION_BYTES).ok(),
            _ => {}
        }
    }
    tap.filter = tap.filter.filter(|count| *count > 0);
    Some(tap)
}

/// The devices of those memberships that are for every packet.
fn promiscuous(joined: &[u8]) -> Vec<u32> {
    let all = joined.chunks_exact(JOINED_BYTES);
    let asks = all.filter(|one| u32_at(one, JOINED_KIND_AT) & 0xffff == PROMISCUOUS);
    asks.map(|one| u32_at(one, 0)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::netlink::attribute::put;

    #[test]
    fn a_listener_of_ours_is_seen_with_its_backlog() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let (all, _) = listeners(10_000).unwrap();
        let seen = all.into_iter().find(|one| one.local == local).unwrap();
        assert!(seen.backlog >= 128 && seen.waiting == 0 && seen.inode > 0);
    }

    /// Planted fault: the two words of the queue the other way round.
    #[test]
    fn the_queue_of_a_unix_listener_is_counted() {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
        let name = format!("dyno-sys-{}-queue", std::process::id());
        let at = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&at).unwrap();
        let lines = crate::proc::unix_listeners(&[crate::child::this()]);
        let line = lines.iter().find(|line| line.name == format!("@{name}")).unwrap();
        let counted = |waiting: u32| {
            let table = crate::proc::unix_table(crate::child::this());
            assert_eq!(crate::proc::unix_waiting(&table, &line.name), waiting);
            // Where the kernel has no `unix_diag` the table alone counts.
            if let Ok(queue) = UnixQueues::open().unwrap().of(line.inode as u32) {
                assert_eq!(queue.waiting, waiting);
                assert!(queue.backlog >= 16, "{queue:?}");
            }
        };
        counted(0);
        let clients = [(); 3].map(|()| UnixStream::connect_addr(&at).unwrap());
        counted(3);
        let _accepted = listener.accept().unwrap();
        counted(2);
        drop(clients);
    }

    #[test]
    fn a_unix_socket_that_does_not_listen_has_no_queue() {
        let mut message = vec![1, 1, LISTEN as u8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        put(&mut message, UNIX_QUEUE, &[5, 0, 0, 0, 128, 0, 0, 0]);
        assert_eq!(parse_unix_queue(&message), Some(Queue { waiting: 5, backlog: 128 }));
        assert!((0..message.len()).all(|end| parse_unix_queue(&message[..end]).is_none()));
        message[2] = 1;
        assert_eq!(parse_unix_queue(&message), None);
    }

    #[test]
    fn a_tap_is_read_with_ring_and_filter() {
        let mut message = vec![0; PACKET_HEAD_BYTES];
        message[2] = 3;
        message[4] = 42;
        put(&mut message, 0, &[7, 0, 0, 0, 0, 0, 0, 0]);
        put(&mut message, 2, &[4_096u32, 16].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>());
        put(&mut message, 7, &[0; 24]);
        let mut joined = [0; 2 * JOINED_BYTES];
        (joined[0], joined[JOINED_KIND_AT]) = (7, 1);
        (joined[JOINED_BYTES], joined[JOINED_BYTES + JOINED_KIND_AT]) = (8, 2);
        put(&mut message, 1, &joined);
        let tap = parse_tap(&message).unwrap();
        assert_eq!((tap.protocol, tap.inode, tap.device), (3, 42, 7));
        assert_eq!((tap.ring_bytes, tap.filter, tap.has_fanout), (Some(65_536), Some(3), false));
        assert_eq!(tap.promiscuous, [7], "the other one is for all multicast alone");
        assert!((0..PACKET_HEAD_BYTES).all(|end| parse_tap(&message[..end]).is_none()));
        assert!(parse_listener(&[0; INET_HEAD_BYTES - 1]).is_none());
    }
}

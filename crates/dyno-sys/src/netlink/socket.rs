//! A netlink socket that asks and reads the answer.
//!
//! The readers of this folder use it, and those who tell the kernel to change something: [`crate::setting`], and `link` for
//! what a laboratory is built of. Every wait has an end.

use super::attribute::u32_at;
use crate::errno::{checked, checked_size};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Bytes of a message's head (`struct nlmsghdr`).
const HEAD_BYTES: usize = 16;
/// The kernel fills at most 32 KiB of a dump into one answer (net/netlink/af_netlink.c).
const ANSWER_BYTES: usize = 64 * 1024;
/// How long the kernel may take for a piece of an answer: audit answers from a thread of its own.
const WAIT_S: i64 = 1;
/// How often a dump is begun anew because the table changed under it.
const TRIES_MAX: usize = 3;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP_INTR: u16 = 0x10;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_NOOP: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// Whom to ask (`linux/netlink.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Devices, addresses, queueing disciplines.
    Route = 0,
    /// Sockets.
    SockDiag = 4,
    /// Audit.
    Audit = 9,
    /// Packet filters.
    Netfilter = 12,
    /// Families that have names: ethtool, netdev.
    Generic = 16,
}

/// What ends an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// One message.
    First,
    /// The message that says "done", to a request without the flag of a dump.
    Done,
    /// The same to a dump of a table.
    Dumped,
}

/// Whether an answer was read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// It was.
    Whole,
    /// The limit was reached first.
    Cut,
}

/// A socket.
#[derive(Debug)]
pub struct Netlink {
    fd: OwnedFd,
    sequence: u32,
}

/// What has come of an answer so far.
#[derive(Default)]
struct Answer {
    messages: Vec<Vec<u8>>,
    /// The table changed while it was read: the answer is a mixture.
    has_changed: bool,
}

impl Netlink {
    /// Opens one in this thread's network namespace.
    pub fn open(protocol: Protocol) -> io::Result<Netlink> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: socket takes three integers.
        let fd = checked(unsafe { libc::socket(libc::AF_NETLINK, kind, protocol as i32) })?;
        // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let wait = libc::timeval { tv_sec: WAIT_S, tv_usec: 0 };
        let len = size_of::<libc::timeval>() as libc::socklen_t;
        let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVTIMEO);
        // SAFETY: `wait` lives through the call and `len` is its size.
        let set = unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const wait).cast(), len) };
        checked(set)?;
        Ok(Netlink { fd, sequence: 0 })
    }

    /// Sends a request and hands each message of the answer over, `messages_max` at most.
    pub fn ask(
        &mut self,
        (kind, body): (u16, &[u8]),
        until: Until,
        messages_max: usize,
        each: &mut dyn FnMut(&[u8]),
    ) -> io::Result<Read> {
        for _ in 0..TRIES_MAX {
            let mut answer = Answer::default();
            let read = self.once((kind, body), until, messages_max, &mut answer)?;
            if !answer.has_changed {
                answer.messages.iter().for_each(|message| each(message));
                return Ok(read);
            }
        }
        Err(io::Error::from_raw_os_error(libc::EINTR))
    }

    /// One try.
    fn once(
        &mut self,
        (kind, body): (u16, &[u8]),
        until: Until,
        messages_max: usize,
        answer: &mut Answer,
    ) -> io::Result<Read> {
        self.send(kind, if until == Until::Dumped { NLM_F_DUMP } else { 0 }, body)?;
        let mut buffer = vec![0; ANSWER_BYTES];
        loop {
            let len = self.receive(&mut buffer)?;
            if let Some(read) = self.split(&buffer[..len], until, messages_max, answer)? {
                return Ok(read);
            }
        }
    }

    /// Has the kernel change something; returns when it has, or with its refusal.
    pub(crate) fn tell(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.tell_all(&[(kind, flags | NLM_F_ACK, body)])
    }

    /// Several messages at once, as a batch of packet filters is; those with the flag of an acknowledgement get one, and the
    /// first answer counts.
    pub(crate) fn tell_all(&mut self, messages: &[(u16, u16, &[u8])]) -> io::Result<()> {
        self.sequence += 1;
        let packed =
            messages.iter().flat_map(|(kind, flags, body)| self.packed(*kind, *flags, body)).collect();
        self.send_packed(packed)?;
        let (mut buffer, mut answer) = (vec![0; ANSWER_BYTES], Answer::default());
        loop {
            let len = self.receive(&mut buffer)?;
            if self.split(&buffer[..len], Until::Done, usize::MAX, &mut answer)?.is_some() {
                return Ok(());
            }
        }
    }

    fn send(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.sequence += 1;
        let message = self.packed(kind, flags, body);
        self.send_packed(message)
    }

    fn packed(&self, kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let len = u32::try_from(HEAD_BYTES + body.len()).expect("our requests are short");
        let mut message = len.to_le_bytes().to_vec();
        message.extend(kind.to_le_bytes());
        message.extend((NLM_F_REQUEST | flags).to_le_bytes());
        message.extend(self.sequence.to_le_bytes());
        message.extend([0; 4]);
        message.extend(body);
        message.resize(message.len().next_multiple_of(4), 0);
        message
    }

    fn send_packed(&mut self, message: Vec<u8>) -> io::Result<()> {
        let (at, len) = (message.as_ptr().cast(), message.len());
        // SAFETY: `message` is readable for its length through the call.
        let sent = checked_size(unsafe { libc::send(self.fd.as_raw_fd(), at, len, 0) })?;
        assert_eq!(sent, message.len(), "netlink takes a request whole");
        Ok(())
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (at, room) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: `buffer` is writable for its length through the call.
        let len = checked_size(unsafe { libc::recv(self.fd.as_raw_fd(), at, room, libc::MSG_TRUNC) });
        match len {
            Ok(len) if len > room => Err(io::Error::from_raw_os_error(libc::EMSGSIZE)),
            Ok(len) => Ok(len),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::Error::from_raw_os_error(libc::ETIMEDOUT))
            }
            Err(error) => Err(error),
        }
    }

    /// The messages of one piece of an answer; what ended it, if it has ended.
    fn split(
        &self,
        mut bytes: &[u8],
        until: Until,
        messages_max: usize,
        answer: &mut Answer,
    ) -> io::Result<Option<Read>> {
        while let Some((head, body, rest)) = message(bytes) {
            bytes = rest;
            let (kind, flags) = (u32_at(head, 4) as u16, (u32_at(head, 4) >> 16) as u16);
            // Audit does not repeat the request's number in all of its answers; an answer to an older request is none.
            if (1..self.sequence).contains(&u32_at(head, 8)) {
                continue;
            }
            answer.has_changed |= flags & NLM_F_DUMP_INTR != 0;
            match kind {
                NLMSG_NOOP => {}
                NLMSG_ERROR | NLMSG_DONE => {
                    refusal(body)?;
                    return Ok(Some(Read::Whole));
                }
                _ if answer.messages.len() >= messages_max => return Ok(Some(Read::Cut)),
                _ => answer.messages.push(body.to_vec()),
            }
            if until == Until::First && !answer.messages.is_empty() {
                return Ok(Some(Read::Whole));
            }
        }
        Ok(None)
    }
}

/// The error number that an error, or the end of a dump, begins with; 0 is none.
fn refusal(body: &[u8]) -> io::Result<()> {
    match (u32_at(body, 0) as i32).wrapping_neg() {
        error if error > 0 => Err(io::Error::from_raw_os_error(error)),
        _ => Ok(()),
    }
}

/// Head, body and what follows of the first message.
fn message(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let head = bytes.get(..HEAD_BYTES)?;
    let len = u32_at(head, 0) as usize;
    let body = bytes.get(HEAD_BYTES..len)?;
    Some((head, body, bytes.get(len.next_multiple_of(4)..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn packed(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEAD_BYTES + body.len()) as u32).to_le_bytes().to_vec();
        bytes.extend(kind.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(body);
        bytes
    }

    fn split(bytes: &[u8], max: usize) -> (io::Result<Option<Read>>, Answer) {
        let mut answer = Answer::default();
        let netlink = Netlink::open(Protocol::Route).unwrap();
        let read = netlink.split(bytes, Until::Dumped, max, &mut answer);
        (read, answer)
    }

    #[test]
    fn an_answer_ends_at_done_at_an_error_and_at_the_limit() {
        let data = [packed(40, 2, &[1; 4]), packed(40, 2, &[2; 4])].concat();
        let whole = [data.clone(), packed(NLMSG_DONE, 2, &[0; 4])].concat();
        let read = |bytes: &[u8], max| {
            let (read, answer) = split(bytes, max);
            (read.unwrap(), answer.messages.len())
        };
        assert_eq!(read(&whole, 9), (Some(Read::Whole), 2));
        assert_eq!(read(&whole, 1), (Some(Read::Cut), 1));
        assert_eq!(read(&data, 9), (None, 2));
        let refused = packed(NLMSG_ERROR, 0, &(-libc::EPERM).to_le_bytes());
        let (error, _) = split(&refused, 9);
        assert_eq!(error.err().and_then(|error| error.raw_os_error()), Some(libc::EPERM));
    }

    #[test]
    fn a_table_that_changed_under_a_dump_is_told() {
        let changed = packed(40, 2 | NLM_F_DUMP_INTR, &[1; 4]);
        assert!(split(&changed, 9).1.has_changed && !split(&packed(40, 2, &[1; 4]), 9).1.has_changed);
    }

    #[test]
    fn an_answer_cut_anywhere_never_gives_half_a_message() {
        let whole = [packed(40, 2, &[7; 8]), packed(40, 2, &[7; 8])].concat();
        for end in 0..whole.len() {
            let (_, answer) = split(&whole[..end], 9);
            assert!(answer.messages.iter().all(|body| body == &[7; 8]), "cut at {end}");
        }
    }

    #[test]
    fn the_kernel_answers() {
        let mut netlink = Netlink::open(Protocol::Route).unwrap();
        let mut links = 0;
        let read = netlink.ask((18, &[0; 16]), Until::Dumped, 1_000, &mut |_| links += 1).unwrap();
        assert!(links > 0 && read == Read::Whole, "every namespace has lo");
        assert!(netlink.ask((9_999, &[0; 16]), Until::First, 1, &mut |_| {}).is_err());
    }
}

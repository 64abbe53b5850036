//! The floor: the smallest loop that answers. No parsing, no routes, no clock, no state but the sockets.
//!
//! It is the yardstick of every climb: what the kernel alone costs for these bytes on this machine. The number of
//! requests in a read is its bytes divided by the length of the first request that ever came. Level-triggered epoll,
//! one read into one shared buffer, one send of as many copies of the answer as there were requests, or one writev of heads
//! and bodies that stand apart. An answer may go on with a file, which leaves by sendfile. What a socket does not take at once is sent when it takes more.

use crate::config::SECOND_NS;
use crate::dials::{Dials, Reuseport};
use crate::error::{EngineError, refused};
use crate::file::FilePart;
use crate::listen::{self, Listeners, SocketFile};
use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::epoll::{Epoll, Events, Interest, Timeout};
use dyno_sys::signal::{Signal, SignalFd};
use dyno_sys::socket::{self, Accepted, Addr, Io};
use std::io::IoSlice;
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, OwnedFd};

/// Room for one read, as the server has.
const RECEIVE_BYTES: usize = 64 << 10;

/// Copies of the answer that one send can carry: more requests than a read of the shortest ones brings.
const COPIES_MAX: usize = RECEIVE_BYTES / 16;

/// Bytes of prepared answers; fewer copies are prepared of a long answer.
const ANSWERS_BYTES_MAX: usize = 4 << 20;

/// Pieces of one gathering write, as the server has.
const SLICES_MAX: usize = 64;

const EVENTS_MAX: usize = 256;
const LISTENER: u64 = u64::MAX;
const SIGNALS: u64 = u64::MAX - 1;

/// The longest wait, so that a full loop accepts again.
const WAIT_MS: i32 = (SECOND_NS / 10 / 1_000_000) as i32;

/// What the floor is told.
///
/// ```no_run
/// # use dyno_engine::*;
/// let answer = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
/// let addr = "127.0.0.1:8080".parse()?;
/// let leaves = floor::Leaves::Joined;
/// let floor = floor::Floor { addr, answer, leaves, file: None, request_bytes: None, cpu: None };
/// floor::run(&floor, &mut |addr| println!("listening on {addr}"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Floor {
    /// Where to listen.
    pub addr: Addr,
    /// The whole answer, head and body; it is sent as it is.
    pub answer: Vec<u8>,
    /// How it leaves.
    pub leaves: Leaves,
    /// What is sent behind the answer, by sendfile.
    pub file: Option<FilePart>,
    /// Bytes of one request; `None` takes the first request's length, up to its empty line.
    pub request_bytes: Option<usize>,
    /// The CPU to run on; `None` leaves it to the scheduler.
    pub cpu: Option<usize>,
}

/// How an answer leaves that no file follows.
///
/// ```
/// # use dyno_engine::*;
/// assert_ne!(floor::Leaves::Joined, floor::Leaves::Gathered);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// From one place in memory, by send(2): as many answers as there were requests stand behind each other.
    Joined,
    /// Head and body from a place of their own each, by writev(2): as a server sends a body that many heads share.
    Gathered,
}

/// Answers until SIGTERM or SIGINT; `on_ready` is told the address once it listens.
///
/// Call it while the process has one thread. It answers everything, also what is no request: never expose it.
///
/// ```no_run
/// # use dyno_engine::*;
/// let answer = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
/// let addr = "127.0.0.1:8080".parse()?;
/// let leaves = floor::Leaves::Joined;
/// let floor = floor::Floor { addr, answer, leaves, file: None, request_bytes: None, cpu: None };
/// floor::run(&floor, &mut |addr| println!("listening on {addr}"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`EngineError`] when it cannot start or the loop breaks.
pub fn run(floor: &Floor, on_ready: &mut dyn FnMut(&Addr)) -> Result<(), EngineError> {
    if let Some(cpu) = floor.cpu {
        affinity::set_current(&CpuSet::single(cpu)).map_err(refused(format!("run on CPU {cpu}")))?;
    }
    let signals =
        SignalFd::new(&[Signal::Term, Signal::Int]).map_err(refused("take signals by descriptor"))?;
    let dials = Dials { reuseport: Reuseport::Off, ..Dials::for_workers(NonZeroU32::MIN) };
    let mut bound = listen::bind(std::slice::from_ref(&floor.addr), &dials, None)?;
    let listeners = bound.by_worker.swap_remove(0);
    let mut ground = Ground::new(listeners, floor).map_err(refused("prepare the loop"))?;
    ground.epoll.add(&signals, SIGNALS, Interest::READ).map_err(refused("watch for signals"))?;
    on_ready(&bound.addrs[0]);
    let ended = ground.serve().map_err(refused("wait for events"));
    bound.files.iter().for_each(SocketFile::remove);
    ended
}

struct Ground {
    epoll: Epoll,
    listeners: Listeners,
    answers: Answers,
    request_bytes: usize,
    /// Indexed by descriptor, as the kernel hands them out densely.
    conns: Vec<Option<Conn>>,
    buffer: Box<[u8]>,
}

struct Conn {
    socket: OwnedFd,
    /// Bytes of answers that the socket has not taken yet. Nothing is read while there are any.
    owed: u64,
}

/// What is answered.
struct Answers {
    /// The answer as often as there is room for, one behind the other; once if a file follows, or its body stands apart.
    copies: Vec<u8>,
    /// Bytes of one of them.
    head: u64,
    /// What follows it from a place of its own.
    body: Vec<u8>,
    file: Option<FilePart>,
}

impl Ground {
    fn new(listeners: Vec<OwnedFd>, floor: &Floor) -> std::io::Result<Ground> {
        let mut ground = Ground {
            epoll: Epoll::new()?,
            listeners: Listeners::new(listeners, Reuseport::Hash),
            answers: Answers::new(floor),
            request_bytes: floor.request_bytes.unwrap_or(0),
            conns: Vec::new(),
            buffer: vec![0; RECEIVE_BYTES].into_boxed_slice(),
        };
        ground.listeners.watch(&ground.epoll, |_| LISTENER)?;
        Ok(ground)
    }

    fn serve(&mut self) -> std::io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            let full = self.listeners.paused_until().is_some();
            let timeout = if full { Timeout::Millis(WAIT_MS) } else { Timeout::Forever };
            for event in self.epoll.wait(&mut events, timeout)? {
                match event.token() {
                    SIGNALS => return Ok(()),
                    LISTENER => self.accept(),
                    descriptor => self.answer(descriptor),
                }
            }
            if full {
                self.listeners.watch(&self.epoll, |_| LISTENER)?;
            }
        }
    }

    #[inline]
    fn answer(&mut self, descriptor: u64) {
        let at = usize::try_from(descriptor).unwrap_or(usize::MAX);
        let Some(Some(conn)) = self.conns.get(at) else { return };
        if conn.owed > 0 {
            return self.go_on(at);
        }
        let owed = match socket::recv(&conn.socket, &mut self.buffer) {
            Io::Done(count) => {
                if self.request_bytes == 0 {
                    self.request_bytes = first_request(&self.buffer[..count]);
                }
                let requests = (count / self.request_bytes.max(1)).max(1);
                self.answers.begin(&conn.socket, requests)
            }
            Io::WouldBlock => Some(0),
            Io::Closed | Io::Failed(_) => None,
        };
        match owed {
            Some(0) => {}
            Some(owed) => self.owe(at, owed),
            None => self.conns[at] = None,
        }
    }

    /// Waits for room to write instead of for requests.
    #[cold]
    fn owe(&mut self, at: usize, owed: u64) {
        let Some(conn) = self.conns[at].as_mut() else { return };
        conn.owed = owed;
        if self.epoll.modify(&conn.socket, at as u64, Interest::WRITE).is_err() {
            self.conns[at] = None;
        }
    }

    /// Sends what is owed, and reads again when nothing is.
    fn go_on(&mut self, at: usize) {
        let Some(conn) = self.conns[at].as_mut() else { return };
        let is_open = self.answers.send(conn);
        let is_over = conn.owed == 0;
        let watched = || self.epoll.modify(&conn.socket, at as u64, Interest::READ).is_ok();
        if !is_open || (is_over && !watched()) {
            self.conns[at] = None;
        }
    }

    fn accept(&mut self) {
        while let Some(listener) = self.listeners.get(0) {
            match socket::accept(listener) {
                Accepted::Conn(conn) => self.admit(conn),
                Accepted::WouldBlock => return,
                Accepted::Transient => {}
                Accepted::LimitReached | Accepted::Failed(_) => return self.listeners.pause(&self.epoll, 0),
            }
        }
    }

    fn admit(&mut self, conn: OwnedFd) {
        let descriptor = conn.as_raw_fd();
        let at = usize::try_from(descriptor).expect("open descriptors are not negative");
        if self.epoll.add(&conn, at as u64, Interest::READ).is_ok() {
            if self.conns.len() <= at {
                self.conns.resize_with(at + 1, || None);
            }
            self.conns[at] = Some(Conn { socket: conn, owed: 0 });
        }
    }
}

impl Answers {
    fn new(floor: &Floor) -> Answers {
        let head = match floor.leaves {
            Leaves::Joined => floor.answer.len(),
            Leaves::Gathered => first_request(&floor.answer),
        };
        let (first, body) = floor.answer.split_at(head);
        let is_once = floor.file.is_some() || floor.leaves == Leaves::Gathered;
        let room = (ANSWERS_BYTES_MAX / first.len().max(1)).clamp(1, COPIES_MAX);
        Answers {
            copies: first.repeat(if is_once { 1 } else { room }),
            head: first.len() as u64,
            body: body.to_vec(),
            file: floor.file.clone(),
        }
    }

    /// Bytes of one answer.
    fn bytes(&self) -> u64 {
        self.head + self.body.len() as u64 + self.file.as_ref().map_or(0, FilePart::len)
    }

    /// Sends so many answers, as far as the first call goes; how many bytes are owed after it, none when the connection is
    /// over.
    #[inline]
    fn begin(&self, socket: &OwnedFd, requests: usize) -> Option<u64> {
        let bytes = requests as u64 * self.bytes();
        let sent = if self.body.is_empty() {
            let first = self.copies.len().min(requests * self.head as usize);
            socket::send(socket, &self.copies[..first])
        } else {
            self.send_gathered(socket, 0, requests)
        };
        match sent {
            Io::Done(count) => Some(bytes - count as u64),
            Io::WouldBlock => Some(bytes),
            Io::Closed | Io::Failed(_) => None,
        }
    }

    /// Sends up to so many answers, the first one from its byte `from` on.
    #[inline]
    fn send_gathered(&self, socket: &OwnedFd, from: usize, answers: usize) -> Io {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let answers = answers.min(SLICES_MAX / 2);
        for pair in slices.as_chunks_mut::<2>().0.iter_mut().take(answers) {
            *pair = [IoSlice::new(&self.copies), IoSlice::new(&self.body)];
        }
        let head = self.copies.len();
        slices[0] = IoSlice::new(&self.copies[from.min(head)..]);
        slices[1] = IoSlice::new(&self.body[from.saturating_sub(head)..]);
        socket::write_vectored(socket, &slices[..answers * 2])
    }

    /// Sends what is owed until the socket takes no more; `false` when the connection is over.
    fn send(&self, conn: &mut Conn) -> bool {
        while conn.owed > 0 {
            // What is owed ends with a whole answer: how much of the one before it is sent follows.
            let sent = (self.bytes() - conn.owed % self.bytes()) % self.bytes();
            match self.send_from(sent, conn) {
                Io::Done(count) if count > 0 => conn.owed -= count as u64,
                Io::WouldBlock => return true,
                // A file that has become shorter has no more bytes.
                Io::Done(_) | Io::Closed | Io::Failed(_) => return false,
            }
        }
        true
    }

    fn send_from(&self, sent: u64, conn: &Conn) -> Io {
        let from = || usize::try_from(sent).expect("within one answer, which is in memory");
        match &self.file {
            Some(file) if sent >= self.head => {
                let (offset, left) = (sent - self.head, self.bytes() - sent);
                let count = usize::try_from(left).unwrap_or(usize::MAX);
                socket::send_file(&conn.socket, file.file(), file.offset + offset, count)
            }
            None if !self.body.is_empty() => self.send_gathered(&conn.socket, from(), 1),
            _ => {
                let owed = usize::try_from(conn.owed).unwrap_or(usize::MAX);
                let end = from().saturating_add(owed).min(self.copies.len());
                socket::send(&conn.socket, &self.copies[from()..end])
            }
        }
    }
}

/// The length of the first request's head, or an answer's, up to and with its empty line; all of it when there is none.
fn first_request(bytes: &[u8]) -> usize {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    end.map_or(bytes.len(), |at| at + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_ends_at_its_empty_line() {
        assert_eq!(first_request(b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"), 18);
        assert_eq!(first_request(b"GET / HT"), 8);
    }
}

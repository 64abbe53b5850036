//! The floor: the smallest loop that answers. No parsing, no routes, no clock, no state but the sockets.
//!
//! It is the yardstick of every climb: what the kernel alone costs for these bytes on this machine. The number of
//! requests in a read is its bytes divided by the length of the first request that ever came. Level-triggered epoll,
//! one read into one shared buffer, one send of as many copies of the answer as there were requests.

use crate::config::SECOND_NS;
use crate::dials::{Dials, Reuseport};
use crate::error::{EngineError, refused};
use crate::listen::{self, Listeners, SocketFile};
use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::epoll::{Epoll, Events, Interest, Timeout};
use dyno_sys::signal::{Signal, SignalFd};
use dyno_sys::socket::{self, Accepted, Addr, Io};
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, OwnedFd};

/// Room for one read, as the server has.
const RECEIVE_BYTES: usize = 64 << 10;

/// Copies of the answer that one send can carry: more requests than a read of the shortest ones brings.
const COPIES_MAX: usize = RECEIVE_BYTES / 16;

/// Bytes of prepared answers; fewer copies are prepared of a long answer.
const ANSWERS_BYTES_MAX: usize = 4 << 20;

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
/// let floor = floor::Floor { addr, answer, request_bytes: None, cpu: None };
/// floor::run(&floor, &mut |addr| println!("listening on {addr}"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Floor {
    /// Where to listen.
    pub addr: Addr,
    /// The whole answer, head and body; it is sent as it is.
    pub answer: Vec<u8>,
    /// Bytes of one request; `None` takes the first request's length, up to its empty line.
    pub request_bytes: Option<usize>,
    /// The CPU to run on; `None` leaves it to the scheduler.
    pub cpu: Option<usize>,
}

/// Answers until SIGTERM or SIGINT; `on_ready` is told the address once it listens.
///
/// Call it while the process has one thread. It answers everything, also what is no request: never expose it.
///
/// ```no_run
/// # use dyno_engine::*;
/// let answer = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
/// let addr = "127.0.0.1:8080".parse()?;
/// let floor = floor::Floor { addr, answer, request_bytes: None, cpu: None };
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
    answers: Vec<u8>,
    answer_bytes: usize,
    request_bytes: usize,
    /// Indexed by descriptor, as the kernel hands them out densely.
    conns: Vec<Option<OwnedFd>>,
    buffer: Box<[u8]>,
}

impl Ground {
    fn new(listeners: Vec<OwnedFd>, floor: &Floor) -> std::io::Result<Ground> {
        let copies = (ANSWERS_BYTES_MAX / floor.answer.len().max(1)).clamp(1, COPIES_MAX);
        let mut ground = Ground {
            epoll: Epoll::new()?,
            listeners: Listeners::new(listeners, Reuseport::Hash),
            answers: floor.answer.repeat(copies),
            answer_bytes: floor.answer.len(),
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
        let answered = match socket::recv(conn, &mut self.buffer) {
            Io::Done(count) => {
                if self.request_bytes == 0 {
                    self.request_bytes = first_request(&self.buffer[..count]);
                }
                let copies = (count / self.request_bytes.max(1)).max(1);
                let bytes = (copies * self.answer_bytes).min(self.answers.len());
                // A peer that does not read its answers is cut off: there is nowhere to keep them.
                socket::send(conn, &self.answers[..bytes]) == Io::Done(bytes)
            }
            Io::WouldBlock => true,
            Io::Closed | Io::Failed(_) => false,
        };
        if !answered {
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
            self.conns[at] = Some(conn);
        }
    }
}

/// The length of the first request, up to and with its empty line; all of it when there is none.
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

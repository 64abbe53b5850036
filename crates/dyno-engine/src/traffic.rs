//! A connection's turn: read, let the exchange answer, keep what is left, set the limit that runs now.
//!
//! The whole requests of a connection that is neither blocked nor behind take the short way through `pump`:
//! a read, the answers, a send, a tick stored. Everything else is told below.

use crate::conn::{Afterwards, Conn, PROGRESS_BYTES_MIN, Phase};
use crate::dials::{Calls, Read, Trigger};
use crate::exchange::{Digest, End};
use crate::outbox;
use crate::worker::{RECEIVE_BYTES, Worker};
use dyno_sys::epoll::{Event, Interest};
use dyno_sys::socket::{self, Io};
use std::num::Wrapping;
use std::os::fd::BorrowedFd;

/// Reads in a row from one connection, so that one that sends without end does not keep the others waiting.
const ROUNDS_MAX: usize = 16;

/// A peer that was refused may go on sending this much before it is cut: a large upload should read its 413, and a
/// flood should not be fed for ever.
const DISCARD_BYTES_MAX: u32 = 16 << 20;

/// Whether a connection goes on in this turn.
#[derive(PartialEq, Eq)]
enum Turn {
    GoesOn,
    Over,
}

impl Worker {
    /// Something happened on a connection.
    #[inline]
    pub(crate) fn on_traffic(&mut self, index: u32, event: &Event) {
        match self.conns.get(index).phase {
            Phase::Linger => self.discard(index),
            Phase::Write if event.writable() => self.send_backlog(index),
            Phase::Write if event.hangup() => self.close(index),
            // Nothing is read while a reply waits: that is the back-pressure.
            Phase::Write => {}
            _ if event.peer_closed() => self.pump_to_end(index),
            _ => self.pump(index),
        }
    }

    /// Reads and answers until the connection has no more, or has had its share of the turn.
    #[inline]
    pub(crate) fn pump(&mut self, index: u32) {
        self.pump_until(index, self.read);
    }

    /// The same when the peer is known to have closed: only the end of the stream ends the reading.
    #[cold]
    fn pump_to_end(&mut self, index: u32) {
        self.pump_until(index, Read::Drain);
    }

    #[inline]
    fn pump_until(&mut self, index: u32, read: Read) {
        for _ in 0..ROUNDS_MAX {
            let conn = self.conns.get(index);
            let held = put_in_front(conn, &mut self.buffer);
            // What is held is part of a head, which the parser keeps below its limit; the buffer has room beyond that.
            let room = held + RECEIVE_BYTES;
            self.exchange.tally.counts.reads += 1;
            match receive(self.calls, conn.socket(), &mut self.buffer[held..room]) {
                Io::Done(count) => {
                    let filled = held + count;
                    let digest = self.exchange.digest(conn, &mut self.slots, &self.buffer[..filled]);
                    if is_settled(conn, filled, digest) {
                        conn.link.due = self.now + Wrapping(self.spans.idle);
                    } else if self.settle_rest(index, filled, digest) == Turn::Over {
                        return;
                    }
                    // A short read emptied the socket; what comes later is told anew, by level and by edge.
                    if read == Read::Once && filled < room {
                        return;
                    }
                }
                Io::WouldBlock => return,
                Io::Closed | Io::Failed(_) => return self.close(index),
            }
        }
        if self.trigger == Trigger::Edge {
            // The edge is used up though there is more: arming anew makes the kernel look again (epoll_ctl(2)).
            self.watch_for(index, self.interest_read());
        }
    }

    #[inline(never)]
    fn settle_rest(&mut self, index: u32, filled: usize, digest: Digest) -> Turn {
        let conn = self.conns.get(index);
        match digest.end {
            End::More => {
                keep(conn, &self.buffer[digest.used..filled]);
                self.await_more(index, digest.used);
                return Turn::GoesOn;
            }
            End::Blocked => {
                keep(conn, &self.buffer[digest.used..filled]);
                self.await_writable(index);
            }
            End::Close => self.linger(index),
            End::Broken => self.close(index),
        }
        Turn::Over
    }

    /// Decides what an open connection waits for now and how long it may take.
    fn await_more(&mut self, index: u32, used: usize) {
        let (spans, now) = (&self.spans, self.now);
        let conn = self.conns.get(index);
        conn.tidy();
        let before = conn.phase;
        let (phase, span) = match conn.rest.as_deref_mut() {
            None => (Phase::Idle, Some(spans.idle)),
            Some(rest) if rest.incoming.is_some() => {
                let moved = rest.progress >= PROGRESS_BYTES_MIN;
                rest.progress = if moved { 0 } else { rest.progress };
                (Phase::Body, moved.then_some(spans.body))
            }
            // A head has its time from its first byte on, however many pieces it comes in.
            Some(_) => (Phase::Head, (before != Phase::Head || used > 0).then_some(spans.head)),
        };
        conn.phase = phase;
        if let Some(span) = span {
            conn.link.due = now + Wrapping(span);
            self.wheel.arm(&mut self.conns, index);
        }
    }

    fn await_writable(&mut self, index: u32) {
        let due = self.now + Wrapping(self.spans.write);
        let conn = self.conns.get(index);
        let watched = conn.phase == Phase::Write;
        conn.phase = Phase::Write;
        conn.link.due = due;
        self.wheel.arm(&mut self.conns, index);
        if !watched {
            let interest = match self.trigger {
                Trigger::Level => Interest::WRITE,
                Trigger::Edge => Interest::WRITE.edge(),
            };
            self.watch_for(index, interest);
        }
    }

    fn send_backlog(&mut self, index: u32) {
        let due = self.now + Wrapping(self.spans.write);
        let conn = self.conns.get(index);
        let socket = conn.socket();
        let Some(rest) = conn.rest.as_deref() else { return self.close(index) };
        self.exchange.tally.counts.sends += 1;
        match outbox::send(self.calls, socket, &rest.backlog[rest.sent..]) {
            Io::Done(count) => {
                let rest = conn.rest_mut();
                rest.sent += count;
                rest.progress += count;
                if rest.sent == rest.backlog.len() {
                    rest.backlog = Vec::new();
                    self.resume(index);
                } else if rest.progress >= PROGRESS_BYTES_MIN {
                    rest.progress = 0;
                    conn.link.due = due;
                }
            }
            Io::WouldBlock => {}
            Io::Closed | Io::Failed(_) => self.close(index),
        }
    }

    /// The peer has taken everything: requests that waited behind it are answered, then it is read from again.
    fn resume(&mut self, index: u32) {
        if self.conns.get(index).afterwards == Afterwards::Close {
            return self.linger(index);
        }
        let conn = self.conns.get(index);
        let held = put_in_front(conn, &mut self.buffer);
        let digest = self.exchange.digest(conn, &mut self.slots, &self.buffer[..held]);
        if digest.end == End::More {
            conn.phase = Phase::Idle;
        }
        if self.settle_rest(index, held, digest) == Turn::GoesOn {
            self.watch_for(index, self.interest_read());
        }
    }

    /// Everything was said. The sending side is closed and what the peer still sends is discarded for a while: closing
    /// at once would make the kernel answer it with a reset, which can destroy the reply unread (RFC 9112 §9.6).
    fn linger(&mut self, index: u32) {
        let due = self.now + Wrapping(self.spans.linger);
        let conn = self.conns.get(index);
        let watched_for_writing = conn.phase == Phase::Write;
        conn.rest = None;
        conn.phase = Phase::Linger;
        conn.discarded = 0;
        conn.link.due = due;
        if socket::shutdown_write(conn.socket()).is_err() {
            return self.close(index);
        }
        self.wheel.arm(&mut self.conns, index);
        if watched_for_writing || self.trigger == Trigger::Edge {
            self.watch_for(index, self.interest_read());
        }
    }

    fn discard(&mut self, index: u32) {
        for _ in 0..ROUNDS_MAX {
            let conn = self.conns.get(index);
            self.exchange.tally.counts.reads += 1;
            match receive(self.calls, conn.socket(), &mut self.buffer[..RECEIVE_BYTES]) {
                Io::Done(count) if conn.discarded < DISCARD_BYTES_MAX => {
                    conn.discarded += u32::try_from(count).unwrap_or(u32::MAX).min(DISCARD_BYTES_MAX);
                }
                Io::WouldBlock => return,
                Io::Done(_) | Io::Closed | Io::Failed(_) => return self.close(index),
            }
        }
        if self.trigger == Trigger::Edge {
            self.watch_for(index, self.interest_read());
        }
    }

    /// A connection's time is up. It is in no slot of the wheel any more.
    pub(crate) fn on_timeout(&mut self, index: u32) {
        let conn = self.conns.get(index);
        match conn.phase {
            Phase::Idle | Phase::Linger => self.close(index),
            Phase::Head | Phase::Body => {
                conn.rest = None;
                let end = self.exchange.out_of_time(conn);
                let _ = self.settle_rest(index, 0, Digest { used: 0, end });
            }
            Phase::Write => {
                // A reset, so that what the peer does not take leaves the kernel's memory too. It cannot help to fail.
                let _ = socket::set_linger_zero(conn.socket());
                self.close(index);
            }
        }
    }

    fn watch_for(&mut self, index: u32, interest: Interest) {
        let token = self.conns.token(index);
        if self.epoll.modify(self.conns.get(index).socket(), token, interest).is_err() {
            self.close(index);
        }
    }
}

/// Puts what the connection holds in front of the receive buffer; says how much it is.
#[inline]
fn put_in_front(conn: &Conn, buffer: &mut [u8]) -> usize {
    let Some(rest) = &conn.rest else { return 0 };
    let held = rest.input.len();
    buffer[..held].copy_from_slice(&rest.input);
    held
}

/// Whether a turn left nothing behind, and the next request is awaited as the last one was.
#[inline]
fn is_settled(conn: &Conn, filled: usize, digest: Digest) -> bool {
    conn.phase == Phase::Idle && conn.rest.is_none() && digest == (Digest { used: filled, end: End::More })
}

/// Keeps what was not used, in a buffer of just that size.
fn keep(conn: &mut Conn, unused: &[u8]) {
    if !unused.is_empty() || conn.rest.is_some() {
        conn.rest_mut().input = unused.to_vec();
    }
}

#[inline]
fn receive(calls: Calls, socket: BorrowedFd<'_>, into: &mut [u8]) -> Io {
    match calls {
        Calls::RecvSend => socket::recv(socket, into),
        Calls::ReadWrite => socket::read(socket, into),
    }
}

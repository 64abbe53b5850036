//! The core of a worker: connections as state machines over a seam, driven by events, messages and time.
//!
//! A worker drives it with the kernel's epoll, a simulator with events of its own; nothing here waits or reads a clock.
//! A connection's turn: read, let the protocol answer, keep what is left, then derive from its state what is read, what
//! is watched and which limits run (`arrange`). Whole requests of an idle connection take the short way through `pump`:
//! a read, the answers, a send, a tick stored.
//!
//! Invariants, asserted and planted as faults in the simulator's list:
//! - *bytes are charged*: what a connection holds is what the budget was told;
//! - *idle is closed by a drain*: past the grace no connection is idle;
//! - *held fits*: what a connection holds of a head leaves room for a whole read;
//! - *outbox is nobody's*: between two connections the outbox is empty;
//! - *done is done*: who lingers holds nothing, and nothing of its input is understood.

mod budgeted;
mod deadline;
mod drain;
mod fetch;
mod release;

use crate::addresses::May;
use crate::config::Limits;
use crate::conn::{Client, Reading, Slab};
use crate::draining::Drain;
use crate::fault::{Fault, planted};
use crate::http1::{Digest, End, Http1, Turn};
use crate::mailbox::Message;
use crate::meter::Ended;
use crate::seam::{Net, ReadUntil, Readiness, Watch};
use crate::segment::Flushed;
use crate::timer::{Tick, Wheel, tick_of, ticks_of};
use crate::upload::BodyError;
use dyno_proto::http1::request::Slots;
use dyno_sys::socket::Io;
use std::net::IpAddr;
use std::num::Wrapping;
use std::sync::atomic::Ordering;

/// Room for one read: half of the receive buffer that the kernel gives a connection to start with (net.ipv4.tcp_rmem,
/// 128 KiB), which holds more requests than any client pipelines.
pub(crate) const RECEIVE_BYTES: usize = 64 << 10;

/// Reads in a row from one connection, so that one that sends without end does not keep the others waiting.
const ROUNDS_MAX: usize = 16;

/// A peer that was refused may go on sending this much before it is cut: a large upload should read its 413, and a
/// flood should not be fed for ever.
const DISCARD_BYTES_MAX: u32 = 16 << 20;

/// Messages taken in one turn, so that a flood of answers does not keep the connections waiting.
const MESSAGES_MAX: usize = 1_024;

/// Whether a connection goes on in this turn.
#[derive(PartialEq, Eq)]
enum Going {
    On,
    Over,
}

/// The limits on time, in ticks.
struct Spans {
    head: u32,
    idle: u32,
    body: u32,
    write: u32,
    linger: u32,
}

/// Everything of a worker but how it waits.
pub(crate) struct Core<N: Net> {
    pub(crate) net: N,
    pub(crate) conns: Slab<N::Socket>,
    pub(crate) http: Http1,
    wheel: Wheel,
    slots: Slots,
    /// The receive buffer of all connections.
    buffer: Box<[u8]>,
    spans: Spans,
    now: Tick,
    now_ns: u64,
    drain: Option<Drain>,
    /// Connections whose time is up, kept for its room.
    expired: Vec<u32>,
    /// Connections that became idle though a drain has closed the idle ones.
    idle_in_drain: Vec<u64>,
    /// Whether a connection was closed since somebody asked.
    has_closed: bool,
}

impl<N: Net> Core<N> {
    pub(crate) fn new(net: N, http: Http1, limits: &Limits, now_ns: u64) -> Core<N> {
        Core {
            net,
            conns: Slab::new(),
            http,
            wheel: Wheel::new(tick_of(now_ns)),
            slots: Slots::new(&limits.http()),
            buffer: vec![0; RECEIVE_BYTES + limits.head_bytes_max].into_boxed_slice(),
            spans: Spans {
                head: ticks_of(limits.head_ns),
                idle: ticks_of(limits.idle_ns),
                body: ticks_of(limits.body_ns),
                write: ticks_of(limits.write_ns),
                linger: ticks_of(limits.linger_ns),
            },
            now: tick_of(now_ns),
            now_ns,
            drain: None,
            expired: Vec::new(),
            idle_in_drain: Vec::new(),
            has_closed: false,
        }
    }

    /// A loop turn begins at this moment, which holds for all that happens in it.
    #[inline]
    pub(crate) fn begin_turn(&mut self, now_ns: u64) {
        debug_assert!(now_ns >= self.now_ns, "time does not go back");
        self.now_ns = now_ns;
        self.now = tick_of(now_ns);
        self.http.scratch.turn(now_ns);
        if let Some(gate) = self.net.gate() {
            gate.begin_turn(now_ns);
        }
    }

    /// A loop turn ends: what is due is done.
    #[inline]
    pub(crate) fn end_turn(&mut self) {
        let mut expired = std::mem::take(&mut self.expired);
        debug_assert!(expired.is_empty(), "what expired was handled in its turn");
        self.wheel.advance(&mut self.conns, self.now, &mut expired);
        for index in expired.drain(..) {
            self.on_time(index);
            self.check_outbox();
        }
        self.expired = expired;
        if self.net.holds_replies() {
            self.release_written();
        }
        while let Some(token) = self.idle_in_drain.pop() {
            if let Some(index) = self.conns.index_of(token) {
                self.close_idle(index);
            }
        }
        if self.http.budget.is_over() {
            self.cut_hoarders();
        }
        if self.net.holds_replies() {
            self.http.announce_lines();
        }
    }

    fn check_outbox(&self) {
        debug_assert!(self.http.scratch.out.is_empty(), "outbox is nobody's: a reply was left in it");
    }

    /// When the next turn is due though nothing happens.
    #[inline]
    pub(crate) fn next_due_ns(&mut self) -> Option<u64> {
        use crate::timer::TICK_NS_SHIFT;
        let tick_ns = self.now_ns >> TICK_NS_SHIFT << TICK_NS_SHIFT;
        let wheel_ns =
            self.wheel.next().map(|tick| tick_ns + (u64::from((tick - self.now).0) << TICK_NS_SHIFT));
        let drain_ns = self.drain.as_ref().map(Drain::next_ns);
        [wheel_ns, drain_ns].into_iter().flatten().min()
    }

    /// Whether a connection was closed since the last time this was asked.
    pub(crate) fn take_has_closed(&mut self) -> bool {
        std::mem::take(&mut self.has_closed)
    }

    /// Whether a connection of this peer may be. The gate counts it from now on.
    pub(crate) fn let_in(&mut self, peer: Option<IpAddr>) -> May {
        let may = self.net.gate().map_or(May::Yes, |gate| gate.connect(peer));
        if may == May::No
            && let Some(meter) = self.net.meter()
        {
            meter.closed(Ended::Limited);
        }
        may
    }

    /// Takes a new connection in; `false` when it could not be watched and is closed.
    pub(crate) fn admit(&mut self, socket: N::Socket, peer: Option<IpAddr>) -> bool {
        let index = self.conns.insert(socket, peer);
        let token = self.conns.token(index);
        self.http.scratch.counts().accepts += 1;
        if self.net.gate().is_some_and(|gate| gate.awaits_header(peer)) {
            self.conns.get(index).client = Client::Awaited;
        }
        self.conns.get(index).link.due = self.now + Wrapping(self.spans.idle);
        self.wheel.arm(&mut self.conns, index);
        let is_watched = self.net.watch(self.conns.get(index).socket(), token).is_ok();
        if !is_watched {
            self.close(index, BodyError::Closed);
        }
        is_watched
    }

    /// Something happened on a connection.
    #[inline]
    pub(crate) fn on_event(&mut self, index: u32, ready: Readiness) {
        self.check_outbox();
        let conn = self.conns.get(index);
        conn.check();
        if conn.busy.is_some() || conn.reading == Reading::Done {
            return self.on_event_busy(index, ready);
        }
        // With the peer's close told once, only the end of the stream ends the reading.
        let until = if ready.peer_closed { ReadUntil::Refused } else { self.net.read_until() };
        self.pump(index, until);
    }

    #[inline(never)]
    fn on_event_busy(&mut self, index: u32, ready: Readiness) {
        let token = self.conns.token(index);
        let conn = self.conns.get(index);
        if ready.writable && conn.busy.is_some() && conn.reading != Reading::Done {
            self.on_sent(index);
            if self.conns.index_of(token).is_none() {
                return;
            }
        }
        let until = if ready.peer_closed { ReadUntil::Refused } else { self.net.read_until() };
        match self.conns.get(index).reading {
            Reading::Done => self.discard(index),
            Reading::Paused if ready.hangup => self.close(index, BodyError::Cut),
            Reading::Paused if ready.peer_closed => self.on_peer_closed(index),
            Reading::Paused => {}
            _ if ready.readable || ready.peer_closed || ready.hangup => self.pump(index, until),
            _ => {}
        }
    }

    /// Messages have come.
    pub(crate) fn on_mail(&mut self) {
        let mailbox = std::sync::Arc::clone(&self.http.scratch.owing.mailbox);
        mailbox.open();
        for _ in 0..MESSAGES_MAX {
            self.check_outbox();
            match mailbox.take() {
                Some(message) => self.on_message(message),
                None => return,
            }
        }
        // The rest is for the next turn.
        mailbox.signal();
    }

    fn on_message(&mut self, message: Message) {
        match message {
            Message::Answer(address, answer) => {
                let Some(index) = self.conns.index_of(address.token) else { return };
                let (http, mut turn) = self.turn(index);
                if let Some(end) = http.on_reply(&mut turn, address.serial, *answer) {
                    self.after(index, end);
                }
            }
            Message::Ready(address, is_waking) => {
                // Before the body is asked: what it has from now on is told by another message.
                is_waking.store(false, Ordering::SeqCst);
                let Some(index) = self.conns.index_of(address.token) else { return };
                let (http, mut turn) = self.turn(index);
                if http.on_waker(&mut turn, address.serial) {
                    self.go_on_with_body(index);
                }
            }
            Message::Fetched(token, bytes) => self.on_fetched(token, bytes),
            Message::Table(site, table) => {
                let sites = &mut self.http.scratch.sites;
                let site = if planted(Fault::TableOfAnotherSite) { (site + 1) % sites.len() } else { site };
                sites[site].table = table;
            }
        }
    }

    /// Reads and answers until the connection has no more, or has had its share of the turn.
    #[inline]
    fn pump(&mut self, index: u32, until: ReadUntil) {
        for _ in 0..ROUNDS_MAX {
            let conn = self.conns.get(index);
            debug_assert!(
                !matches!(conn.reading, Reading::Paused | Reading::Done),
                "who must wait is not read: {:?}",
                conn.reading
            );
            let held = conn.busy.as_deref().map_or(0, |busy| put_in_front(&busy.input, &mut self.buffer));
            debug_assert!(held + RECEIVE_BYTES <= self.buffer.len(), "held fits: {held} bytes of a head");
            let room = held + RECEIVE_BYTES;
            self.http.scratch.tally.counts.reads += 1;
            match self.net.receive(conn.socket(), &mut self.buffer[held..room]) {
                Io::Done(count) => {
                    let filled = held + count;
                    if self.digest(index, filled) == Going::Over {
                        return;
                    }
                    // A short read emptied the socket; what comes later is told anew, by level and by edge.
                    if until == ReadUntil::Short && filled < room {
                        return;
                    }
                }
                Io::WouldBlock => return,
                Io::Closed => return self.on_end_of_input(index),
                Io::Failed(_) => return self.close(index, BodyError::Cut),
            }
        }
        if self.net.tells_once() {
            // The edge is used up though there is more: asking anew makes the kernel look again (epoll_ctl(2)).
            let watch = self.conns.get(index).busy.as_ref().map_or(Watch::INPUT, |busy| busy.watch);
            self.rewatch(index, watch);
        }
    }

    /// Lets the protocol see what stands in the buffer.
    #[inline(always)] // Once in `pump`, and once where it does not matter.
    fn digest(&mut self, index: u32, filled: usize) -> Going {
        let token = self.conns.token(index);
        let conn = self.conns.get(index);
        let mut turn = Turn { net: &mut self.net, conn, token, now: self.now };
        let digest = self.http.on_bytes(&mut turn, &mut self.slots, &self.buffer[..filled]);
        let conn = self.conns.get(index);
        let is_settled = conn.busy.is_none() && digest == (Digest { used: filled, end: End::More });
        if is_settled && conn.reading == Reading::Idle {
            conn.link.due = self.now + Wrapping(self.spans.idle);
            return Going::On;
        }
        self.settle(index, filled, digest)
    }

    #[inline(never)]
    fn settle(&mut self, index: u32, filled: usize, digest: Digest) -> Going {
        debug_assert!(digest.used <= filled, "no more is used than was read");
        match digest.end {
            End::More | End::Paused => {
                let conn = self.conns.get(index);
                let unused = &self.buffer[digest.used..filled];
                if !unused.is_empty() || conn.busy.is_some() {
                    let busy = conn.busy_mut();
                    busy.input = unused.to_vec();
                    busy.moved = self.now;
                    if digest.used > 0 {
                        // What is read next is another head, or another piece: it has a time of its own.
                        busy.read_due = busy.read_due.filter(|_| conn_awaits_body(busy));
                    }
                }
                let token = self.conns.token(index);
                self.arrange(index);
                let is_open = self.conns.index_of(token).is_some();
                if is_open && self.conns.get(index).reading != Reading::Paused {
                    Going::On
                } else {
                    Going::Over
                }
            }
            End::Close => {
                self.begin_close(index);
                Going::Over
            }
            End::Short => {
                self.linger(index);
                Going::Over
            }
            End::Broken => {
                self.break_off(index);
                Going::Over
            }
        }
    }

    /// What follows when something other than input was answered.
    fn after(&mut self, index: u32, end: End) {
        match end {
            End::More | End::Paused => self.go_on(index),
            End::Close => self.begin_close(index),
            End::Short => self.linger(index),
            End::Broken => self.break_off(index),
        }
    }

    /// Ends a connection whose last reply is not whole. Where only the close would tell its end, a reset says that it is
    /// none.
    fn break_off(&mut self, index: u32) {
        let conn = self.conns.get(index);
        if conn.busy.as_deref().is_some_and(crate::conn::Busy::ends_by_close) {
            self.net.reset_on_close(conn.socket());
        }
        self.close(index, BodyError::Cut);
    }

    /// Understands what waited, if it need not wait any longer.
    fn go_on(&mut self, index: u32) {
        let conn = self.conns.get(index);
        let Some(busy) = conn.busy.as_deref_mut() else { return self.arrange(index) };
        let must_wait = planted(Fault::InputForgotten)
            || busy.is_paused()
            || (conn.reading == Reading::Paused && !busy.queue.is_empty());
        if must_wait || busy.input.is_empty() {
            return self.arrange(index);
        }
        let held = put_in_front(&busy.input, &mut self.buffer);
        busy.input = Vec::new();
        self.digest(index, held);
    }

    /// A source has more, or an upload takes more.
    fn go_on_with_body(&mut self, index: u32) {
        let Some(busy) = self.conns.get(index).busy.as_deref() else { return };
        if busy.has_source_ready() && busy.queue.is_empty() {
            let (http, mut turn) = self.turn(index);
            let end = http.on_source(&mut turn);
            return self.after(index, end);
        }
        self.go_on(index);
    }

    /// The socket takes again: what waits is sent, then what waited behind it goes on.
    fn on_sent(&mut self, index: u32) {
        let now = self.now;
        let conn = self.conns.get(index);
        if planted(Fault::ReaderStarved) {
            return;
        }
        if conn.busy.as_ref().is_some_and(|busy| busy.held_until.is_some() || busy.awaits_pages()) {
            return;
        }
        let Some(mut busy) = conn.busy.take() else { return };
        debug_assert!(conn.reading != Reading::Done, "done is done: who lingers has nothing to send");
        let taken = busy.queue.taken;
        // With nothing in the queue it was watched for a source that has more.
        let sent = match busy.queue.is_empty() {
            true => Flushed::All,
            false => busy.queue.send(&mut self.net, conn.socket(), &mut self.http.scratch.tally.counts),
        };
        if busy.queue.taken > taken {
            busy.moved = now;
        }
        if busy.queue.is_empty() {
            // Whatever waits next has a time of its own.
            busy.write_due = None;
        }
        conn.busy = Some(busy);
        match sent {
            Flushed::All => self.go_on_with_body(index),
            Flushed::Blocked => self.wait_for_room(index),
            Flushed::Cold => self.fetch(index),
            // What waits behind a reply that cannot be completed would be taken for the rest of it.
            Flushed::Changed => self.linger(index),
            Flushed::Broken => self.close(index, BodyError::Cut),
        }
    }

    /// More waits than the socket takes, or than this turn allows.
    fn wait_for_room(&mut self, index: u32) {
        self.charge(index);
        if self.net.tells_once() {
            let watch = self.conns.get(index).busy_mut().watch;
            self.rewatch(index, watch);
        }
    }

    /// The peer sends no more. What it is owed it still gets.
    fn on_end_of_input(&mut self, index: u32) {
        if self.conns.get(index).has_queue() {
            self.begin_close(index);
        } else {
            self.close(index, BodyError::Cut);
        }
    }

    /// The peer sends no more while something is owed to it. It may have closed one half only and still be reading, so
    /// what is owed goes out; but whoever works on it learns so, and a stream that stays silent is given up.
    fn on_peer_closed(&mut self, index: u32) {
        let (http, mut turn) = self.turn(index);
        http.on_peer_closed(&mut turn);
        self.arrange(index);
    }

    /// No further request is answered; what waits is sent first.
    fn begin_close(&mut self, index: u32) {
        let (http, mut turn) = self.turn(index);
        debug_assert!(turn.conn.reading != Reading::Done, "done is done: a connection closes once");
        http.drop_incoming(&mut turn, BodyError::Closed);
        if !self.conns.get(index).has_queue() || planted(Fault::ClosedTooEarly) {
            return self.linger(index);
        }
        let busy = self.conns.get(index).busy_mut();
        busy.is_closing = true;
        busy.input = Vec::new();
        self.arrange(index);
    }

    /// Everything was said that can be. The sending side is closed and what the peer still sends is discarded for a while: closing
    /// at once would make the kernel answer it with a reset, which can destroy the reply unread (RFC 9112 §9.6).
    fn linger(&mut self, index: u32) {
        let (http, mut turn) = self.turn(index);
        let watched = turn.conn.busy.as_ref().map_or(Watch::INPUT, |busy| busy.watch);
        http.on_end(&mut turn, BodyError::Closed);
        let conn = self.conns.get(index);
        debug_assert!(conn.busy.is_none(), "done is done: who lingers holds nothing");
        (conn.reading, conn.discarded) = (Reading::Done, 0);
        conn.link.due = self.now + Wrapping(self.spans.linger);
        if self.net.end_output(conn.socket()).is_err() || planted(Fault::NoLinger) {
            return self.close(index, BodyError::Closed);
        }
        self.wheel.arm(&mut self.conns, index);
        if watched != Watch::INPUT || self.net.tells_once() {
            self.rewatch(index, Watch::INPUT);
        }
    }

    fn discard(&mut self, index: u32) {
        for _ in 0..ROUNDS_MAX {
            let conn = self.conns.get(index);
            debug_assert!(
                conn.busy.as_ref().is_none_or(|busy| busy.held() == 0 && busy.queue.is_empty()),
                "done is done: nothing that is discarded is kept"
            );
            self.http.scratch.tally.counts.reads += 1;
            match self.net.receive(conn.socket(), &mut self.buffer[..RECEIVE_BYTES]) {
                Io::Done(count) if conn.discarded < DISCARD_BYTES_MAX => {
                    conn.discarded += u32::try_from(count).unwrap_or(u32::MAX).min(DISCARD_BYTES_MAX);
                }
                Io::WouldBlock => return,
                Io::Done(_) | Io::Closed | Io::Failed(_) => return self.close(index, BodyError::Closed),
            }
        }
        if self.net.tells_once() {
            self.rewatch(index, Watch::INPUT);
        }
    }

    /// Derives from what a connection holds what is read, what is watched and which limits run.
    fn arrange(&mut self, index: u32) {
        let conn = self.conns.get(index);
        debug_assert!(conn.reading != Reading::Done, "who lingers is not arranged again");
        let Some(busy) = conn.busy.as_deref_mut() else { return self.become_idle(index) };
        if busy.is_closing && busy.queue.is_empty() && busy.owed.is_none() {
            return self.linger(index);
        }
        let before = conn.reading;
        let is_paused = busy.is_paused() || (before == Reading::Paused && !busy.queue.is_empty());
        conn.reading = match () {
            () if is_paused => Reading::Paused,
            () if busy.incoming.is_some() => Reading::Body,
            () if !busy.input.is_empty() => Reading::Head,
            () => Reading::Idle,
        };
        let watch = Watch {
            input: conn.reading != Reading::Paused,
            // What waits for the log is sent when it has its lines, whatever room the socket has.
            output: busy.held_until.is_none()
                && !busy.awaits_pages()
                && (!busy.queue.is_empty() || busy.has_source_ready()),
            peer_close: is_paused
                && busy.owed.is_some()
                && !busy.peer_has_closed
                && !planted(Fault::PeerCloseUnseen),
        };
        // The socket may have room that was told already: a connection's share of a turn was over before it was full.
        let is_watched = busy.watch == watch && !(watch.output && self.net.tells_once());
        busy.watch = watch;
        if is_watched || self.rewatch(index, watch) {
            self.set_limits(index, before);
        }
    }

    /// Frees the box of a connection that has nothing incomplete, or charges what it holds.
    fn charge(&mut self, index: u32) {
        let Some(busy) = self.conns.get(index).busy.as_deref_mut() else { return };
        let held = busy.held();
        self.http.budget.recharge(busy.charged, held);
        busy.charged = held;
    }

    fn become_idle(&mut self, index: u32) {
        if self.drain.as_ref().is_some_and(Drain::is_past_grace) && !planted(Fault::IdleKeptInDrain) {
            self.idle_in_drain.push(self.conns.token(index));
        }
        let conn = self.conns.get(index);
        debug_assert!(conn.busy.is_none(), "boxed or idle: an idle connection has no box");
        conn.reading = Reading::Idle;
        conn.link.due = self.now + Wrapping(self.spans.idle);
        self.wheel.arm(&mut self.conns, index);
    }

    /// Ends a connection. What it held is freed.
    fn close(&mut self, index: u32, why: BodyError) {
        self.wheel.disarm(&mut self.conns, index);
        let (http, mut turn) = self.turn(index);
        http.on_end(&mut turn, why);
        if let Some(gate) = self.net.gate()
            && !planted(Fault::PlaceKept)
        {
            gate.disconnect(self.conns.get(index).peer);
        }
        if let Some(meter) = self.net.meter() {
            let is_limited = self.conns.get(index).client == Client::TooMany;
            meter.closed(if is_limited { Ended::Limited } else { ended(why) });
        }
        drop(self.conns.remove(index));
        self.http.scratch.counts().closes += 1;
        self.has_closed = true;
    }

    /// Watches for something else; `false` when that is not possible and the connection is closed.
    fn rewatch(&mut self, index: u32, watch: Watch) -> bool {
        let token = self.conns.token(index);
        let is_watched = self.net.rewatch(self.conns.get(index).socket(), token, watch).is_ok();
        if !is_watched {
            self.close(index, BodyError::Closed);
        }
        is_watched
    }

    /// The protocol, and a connection's turn with it.
    fn turn(&mut self, index: u32) -> (&mut Http1, Turn<'_, N>) {
        let token = self.conns.token(index);
        let conn = self.conns.get(index);
        (&mut self.http, Turn { net: &mut self.net, conn, token, now: self.now })
    }
}

/// How a connection ended, as metrics tell it.
fn ended(why: BodyError) -> Ended {
    match why {
        BodyError::Closed | BodyError::Malformed(_) | BodyError::Refused => Ended::Done,
        BodyError::TimedOut => Ended::Late,
        BodyError::Cut => Ended::ByPeer,
    }
}

fn conn_awaits_body(busy: &crate::conn::Busy) -> bool {
    busy.incoming.is_some()
}

/// Puts what a connection holds in front of the receive buffer; says how much it is.
#[inline]
fn put_in_front(held: &[u8], buffer: &mut [u8]) -> usize {
    buffer[..held.len()].copy_from_slice(held);
    held.len()
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod moments;

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: metrics tell a peer that was late from one that went away, and this mixes them up.
    #[test]
    fn how_a_connection_ended_is_told_by_its_reason() {
        for (why, told) in [
            (BodyError::Closed, Ended::Done),
            (BodyError::Malformed(400), Ended::Done),
            (BodyError::Refused, Ended::Done),
            (BodyError::TimedOut, Ended::Late),
            (BodyError::Cut, Ended::ByPeer),
        ] {
            assert_eq!(ended(why), told, "{why:?}");
        }
    }

    #[test]
    fn what_is_held_stands_in_front_of_what_is_read() {
        let mut buffer = *b"........";
        assert_eq!((put_in_front(b"abc", &mut buffer), &buffer), (3, b"abc....."));
        assert_eq!((put_in_front(b"", &mut buffer), &buffer), (0, b"abc....."));
    }
}

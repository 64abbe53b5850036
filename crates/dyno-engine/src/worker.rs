//! A worker: one loop that owns everything it touches - listeners, connections, buffers, timers, counters.
//!
//! The supervisor runs it in a process of its own, the embedded server in a thread; it is the same loop. It reads the
//! clock once per turn, takes no lock, and allocates nothing for a whole request once its buffers have grown.
//! How bytes move on a connection is told in `traffic`.

use crate::config::{Limits, SECOND_NS};
use crate::conn::{Afterwards, Phase, Slab};
use crate::dials::{Calls, Dials, Read, Reuseport, Trigger};
use crate::exchange::Exchange;
use crate::listen::{BACKLOG, Doors};
use crate::log::AccessLog;
use crate::route::Router;
use crate::stats::{House, Sheet, Tally};
use crate::timer::{TICK_NS_SHIFT, Tick, Wheel, tick_of, ticks_of};
use dyno_proto::http1::request::Slots;
use dyno_sys::clock;
use dyno_sys::epoll::{Epoll, Event, Events, Interest, Timeout};
use dyno_sys::signal::{Signal, SignalFd};
use dyno_sys::socket::{self, Accepted, Addr};
use std::io;
use std::net::IpAddr;
use std::num::Wrapping;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Events taken per turn: a turn over this many requests lasts about a millisecond, as long as the clock may be stale.
const EVENTS_MAX: usize = 256;

/// Connections accepted per turn and listener, so that a flood of new ones does not starve those that are served.
const ACCEPTS_MAX: usize = 64;

/// Room for one read: half of the receive buffer that the kernel gives a connection to start with (net.ipv4.tcp_rmem,
/// 128 KiB), which holds more requests than any client pipelines.
pub(crate) const RECEIVE_BYTES: usize = 64 << 10;

/// Descriptors that a worker needs besides its connections: standard ones, epoll, listeners, log, orders, some spare.
const DESCRIPTORS_KEPT: usize = 32;

/// While draining, an idle connection gets this long to send one more request, which is answered with
/// `Connection: close`; clients with a request on its way lose nothing then.
const GRACE_NS: u64 = SECOND_NS / 4;

/// Tokens with this lower half are no connection; the upper half says what they are.
const SPECIAL: u64 = 0xffff_ffff;
const ORDERS: u64 = 0;
const SIGNALS: u64 = 1;
const DOORS: u64 = 2;

/// What a worker is given.
pub(crate) struct Seat {
    /// Its number, which is its row of the counters.
    pub(crate) number: usize,
    pub(crate) house: House,
    pub(crate) listeners: Vec<OwnedFd>,
    /// Readable or at its end: drain.
    pub(crate) orders: OwnedFd,
    /// Where SIGTERM comes in as well, when the worker has a process of its own.
    pub(crate) signals: Option<SignalFd>,
    pub(crate) router: Arc<Router>,
    pub(crate) log: AccessLog,
    pub(crate) sheet: Sheet,
}

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Everything that was accepted was answered.
    Drained,
    /// The time for draining was over; connections were cut.
    Cut,
    /// The loop could not wait for events any more.
    Broken,
}

/// The limits on time, in ticks.
pub(crate) struct Spans {
    pub(crate) head: u32,
    pub(crate) idle: u32,
    pub(crate) body: u32,
    pub(crate) write: u32,
    pub(crate) linger: u32,
}

/// A drain that has begun.
struct Drain {
    /// Until then idle connections are waited for; `None` once they were closed.
    grace_ns: Option<u64>,
    end_ns: u64,
}

/// One worker.
pub(crate) struct Worker {
    pub(crate) epoll: Epoll,
    pub(crate) conns: Slab,
    pub(crate) wheel: Wheel,
    pub(crate) exchange: Exchange,
    pub(crate) slots: Slots,
    /// The receive buffer of all connections.
    pub(crate) buffer: Box<[u8]>,
    pub(crate) spans: Spans,
    pub(crate) now: Tick,
    pub(crate) calls: Calls,
    pub(crate) read: Read,
    pub(crate) trigger: Trigger,
    doors: Doors,
    orders: OwnedFd,
    signals: Option<SignalFd>,
    now_ns: u64,
    worked_ns: u64,
    spin_us: &'static AtomicU64,
    connections_max: usize,
    drain: Option<Drain>,
    drain_ns: u64,
    /// Connections whose time is up, kept for its room.
    expired: Vec<u32>,
}

impl Worker {
    /// A worker that is listening: connections that come now will be answered once it runs.
    pub(crate) fn new(seat: Seat, dials: &Dials, limits: &Limits, drain_ns: u64) -> io::Result<Worker> {
        let now_ns = clock::mono_ns();
        let tally = Tally::new(seat.sheet, seat.number, seat.house);
        // Listeners that every worker holds wake one of them; a worker alone needs no such care.
        let sharing = if dials.workers.get() == 1 { Reuseport::Hash } else { dials.reuseport };
        let mut worker = Worker {
            epoll: Epoll::new()?,
            conns: Slab::new(),
            wheel: Wheel::new(tick_of(now_ns)),
            exchange: Exchange::new(seat.router, dials, limits, seat.log, tally),
            slots: Slots::new(&limits.http()),
            buffer: vec![0; RECEIVE_BYTES + limits.head_bytes_max].into_boxed_slice(),
            spans: spans(limits),
            now: tick_of(now_ns),
            calls: dials.calls,
            read: dials.read,
            trigger: dials.trigger,
            doors: Doors::new(seat.listeners, sharing),
            orders: seat.orders,
            signals: seat.signals,
            now_ns,
            worked_ns: 0,
            spin_us: seat.sheet.spin(),
            connections_max: connections_max(limits, dials, seat.house),
            drain: None,
            drain_ns,
            expired: Vec::new(),
        };
        worker.watch()?;
        Ok(worker)
    }

    /// Serves until it is told to drain, and then until everything is answered.
    pub(crate) fn run(mut self) -> Left {
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            let timeout = self.timeout();
            let Ok(ready) = self.epoll.wait(&mut events, timeout) else { return Left::Broken };
            self.turn(ready);
            if !ready.is_empty() || timeout != Timeout::Poll {
                self.exchange.tally.publish();
            }
            if let Some(left) = self.drained() {
                self.exchange.tally.publish();
                return left;
            }
        }
    }

    fn watch(&mut self) -> io::Result<()> {
        self.epoll.add(&self.orders, ORDERS << 32 | SPECIAL, Interest::READ)?;
        if let Some(signals) = &self.signals {
            self.epoll.add(signals, SIGNALS << 32 | SPECIAL, Interest::READ)?;
        }
        self.doors.open(&self.epoll, door_token)
    }

    #[inline]
    fn turn(&mut self, ready: &[Event]) {
        self.now_ns = clock::mono_ns();
        self.now = tick_of(self.now_ns);
        self.exchange.outbox.turn(self.now_ns, &mut self.exchange.tally.counts);
        self.exchange.tally.counts.turns += 1;
        if ready.is_empty() {
            self.exchange.tally.counts.spins += u64::from(self.is_spinning());
        } else {
            self.worked_ns = self.now_ns;
        }
        for event in ready {
            self.on_event(event);
        }
        self.expire();
        if self.doors.paused_until().is_some_and(|until_ns| until_ns <= self.now_ns) {
            self.reopen();
        }
    }

    #[inline]
    fn on_event(&mut self, event: &Event) {
        let token = event.token();
        if token & SPECIAL == SPECIAL {
            self.on_special(token >> 32);
        } else if let Some(index) = self.conns.index_of(token) {
            self.on_traffic(index, event);
        }
    }

    #[cold]
    fn on_special(&mut self, kind: u64) {
        match kind {
            ORDERS => self.begin_drain(),
            SIGNALS => {
                let signal = self.signals.as_ref().and_then(SignalFd::next);
                if signal == Some(Signal::Term) {
                    self.begin_drain();
                }
            }
            door => self.accept_all(usize::try_from(door - DOORS).unwrap_or(usize::MAX), ACCEPTS_MAX),
        }
    }

    fn accept_all(&mut self, door: usize, count_max: usize) {
        for _ in 0..count_max {
            if self.conns.in_use() >= self.connections_max {
                return self.pause();
            }
            let Some(listener) = self.doors.listener(door) else { return };
            match socket::accept(listener) {
                Accepted::Conn(socket) => self.admit(socket),
                Accepted::WouldBlock => return,
                Accepted::Transient => {}
                Accepted::LimitReached | Accepted::Failed(_) => return self.pause(),
            }
        }
    }

    fn admit(&mut self, socket: OwnedFd) {
        let peer = if self.exchange.wants_peer() { peer_of(&socket) } else { None };
        let index = self.conns.insert(socket, peer);
        let (token, interest) = (self.conns.token(index), self.interest_read());
        self.exchange.tally.counts.accepts += 1;
        self.conns.get(index).link.due = self.now + Wrapping(self.spans.idle);
        self.wheel.arm(&mut self.conns, index);
        if self.epoll.add(self.conns.get(index).socket(), token, interest).is_err() {
            // No memory for a watch (epoll(7), max_user_watches): as good as a descriptor limit.
            self.close(index);
            self.pause();
        }
    }

    fn pause(&mut self) {
        if self.doors.paused_until().is_none() {
            self.exchange.tally.counts.accept_pauses += 1;
        }
        self.doors.pause(&self.epoll, self.now_ns);
    }

    fn reopen(&mut self) {
        if self.conns.in_use() >= self.connections_max || self.doors.open(&self.epoll, door_token).is_err() {
            self.doors.pause(&self.epoll, self.now_ns);
        }
    }

    /// Ends a connection. What it held is freed, and if the doors were shut for want of room they open.
    pub(crate) fn close(&mut self, index: u32) {
        self.wheel.disarm(&mut self.conns, index);
        drop(self.conns.remove(index));
        self.exchange.tally.counts.closes += 1;
        if self.doors.paused_until().is_some() {
            self.reopen();
        }
    }

    /// What a connection that is read from is watched for.
    pub(crate) fn interest_read(&self) -> Interest {
        match self.trigger {
            Trigger::Level => Interest::READ,
            // With edges, a FIN that came with data must be told beside it: no second edge would tell of it.
            Trigger::Edge => Interest::READ.peer_close().edge(),
        }
    }

    #[inline]
    fn expire(&mut self) {
        let mut expired = std::mem::take(&mut self.expired);
        self.wheel.advance(&mut self.conns, self.now, &mut expired);
        for index in expired.drain(..) {
            self.exchange.tally.counts.timeouts += 1;
            self.on_timeout(index);
        }
        self.expired = expired;
    }

    fn timeout(&self) -> Timeout {
        if self.is_spinning() {
            return Timeout::Poll;
        }
        let tick_ns = self.now_ns >> TICK_NS_SHIFT << TICK_NS_SHIFT;
        let wheel_ns =
            self.wheel.next_in(self.now).map(|ticks| tick_ns + (u64::from(ticks) << TICK_NS_SHIFT));
        let drain_ns = self.drain.as_ref().map(|drain| drain.grace_ns.unwrap_or(drain.end_ns));
        match [wheel_ns, drain_ns, self.doors.paused_until()].into_iter().flatten().min() {
            None => Timeout::Forever,
            Some(at_ns) => {
                // Rounded up: a wait that ends a little early would turn the loop for nothing.
                let wait_ms = at_ns.saturating_sub(self.now_ns).div_ceil(1_000_000);
                Timeout::Millis(i32::try_from(wait_ms).unwrap_or(i32::MAX))
            }
        }
    }

    #[inline]
    fn is_spinning(&self) -> bool {
        let spin_us = self.spin_us.load(Ordering::Relaxed);
        spin_us > 0 && self.now_ns.saturating_sub(self.worked_ns) < spin_us * 1_000
    }

    /// Stops accepting; what waits in the kernel's queue is taken in first, for its clients count as connected.
    fn begin_drain(&mut self) {
        if self.drain.is_some() {
            return;
        }
        // The end of file stays readable: it has been understood.
        let _ = self.epoll.remove(&self.orders);
        self.exchange.keep = Afterwards::Close;
        for door in 0..self.doors.count() {
            self.accept_all(door, BACKLOG as usize);
        }
        self.doors.pause(&self.epoll, self.now_ns);
        self.doors.close();
        let end_ns = self.now_ns + self.drain_ns;
        let grace_ns = Some(end_ns.min(self.now_ns + GRACE_NS));
        self.drain = Some(Drain { grace_ns, end_ns });
    }

    /// Whether the drain is over, and how.
    #[inline]
    fn drained(&mut self) -> Option<Left> {
        let drain = self.drain.as_mut()?;
        if drain.grace_ns.is_some_and(|grace_ns| grace_ns <= self.now_ns) {
            drain.grace_ns = None;
            self.close_idle();
        }
        if self.conns.in_use() == 0 {
            return Some(Left::Drained);
        }
        let end_ns = self.drain.as_ref()?.end_ns;
        (end_ns <= self.now_ns).then_some(Left::Cut)
    }

    /// Closes connections without a request, but answers one that has arrived in this very moment.
    fn close_idle(&mut self) {
        for index in self.conns.indexes() {
            if self.conns.get(index).phase == Phase::Idle {
                let token = self.conns.token(index);
                self.pump(index);
                let open = self.conns.index_of(token).is_some();
                if open && self.conns.get(index).phase == Phase::Idle {
                    self.close(index);
                }
            }
        }
    }
}

fn door_token(door: usize) -> u64 {
    (DOORS + door as u64) << 32 | SPECIAL
}

fn spans(limits: &Limits) -> Spans {
    Spans {
        head: ticks_of(limits.head_ns),
        idle: ticks_of(limits.idle_ns),
        body: ticks_of(limits.body_ns),
        write: ticks_of(limits.write_ns),
        linger: ticks_of(limits.linger_ns),
    }
}

/// What was asked for, or what the descriptor limit leaves: a server fits itself instead of failing.
fn connections_max(limits: &Limits, dials: &Dials, house: House) -> usize {
    let (soft, _) = dyno_sys::proc::nofile();
    let soft = usize::try_from(soft).unwrap_or(usize::MAX);
    // Threads share the descriptors of their process.
    let sharers = if house == House::Thread { dials.workers.get() as usize } else { 1 };
    let fitting = (soft / sharers).saturating_sub(DESCRIPTORS_KEPT).max(1);
    limits.connections_max.clamp(1, fitting)
}

fn peer_of(socket: &OwnedFd) -> Option<IpAddr> {
    match socket::peer_addr(socket) {
        Ok(Addr::Tcp(address)) => Some(address.ip()),
        _ => None,
    }
}

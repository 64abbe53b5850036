//! A worker: one loop that owns everything it touches - listeners, connections, buffers, timers, counters.
//!
//! The supervisor runs it in a process of its own, the embedded server in a thread; it is the same loop. It waits in
//! epoll, reads the clock once per turn, takes no lock, and hands what happened to the core.

use crate::addresses::May;
use crate::config::{Limits, SECOND_NS};
use crate::content::{Mount, Tables};
use crate::core::Core;
use crate::dials::{Dials, Reuseport};
use crate::draining::{Drained, Leave};
use crate::error_log::{self, Errors};
use crate::gate::Gate;
use crate::http1::Http1;
use crate::kernel::{ByDials, Direct, Extras, Kernel, Way};
use crate::listen::{BACKLOG, Listeners};
use crate::log::{self, AccessLog};
use crate::mailbox::{Mailbox, Message};
use crate::neighbours::Neighbours;
use crate::route::Router;
use crate::scratch::Scratch;
use crate::seam::{Net, Readiness};
use crate::stats::{Accepting, Counters, RunsIn, Tally};
use crate::table::Site;
use dyno_sys::clock;
use dyno_sys::epoll::{Epoll, Event, Events, Interest, Timeout};
use dyno_sys::event::EventFd;
use dyno_sys::signal::{Signal, SignalFd};
use dyno_sys::socket::{self, Accepted, Addr, rights};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Events taken per turn: a turn over this many requests lasts about a millisecond, as long as the clock may be stale.
const EVENTS_MAX: usize = 256;

/// Connections accepted per turn and listener, so that a flood of new ones does not starve those that are served.
const ACCEPTS_MAX: usize = 64;

/// Descriptors that a worker needs besides its connections: standard ones, epoll, listeners, log, orders, some spare.
const DESCRIPTORS_KEPT: usize = 32;

/// Bytes of an order: the number of a folder.
const ORDER_BYTES_MAX: usize = 32;

/// The longest wait that a spurious early return of a wait could turn the loop for: none, waits are rounded up.
const MS_NS: u64 = SECOND_NS / 1_000;

/// Tokens with this lower half are no connection; the upper half says what they are.
const SPECIAL: u64 = 0xffff_ffff;
const ORDERS: u64 = 0;
const SIGNALS: u64 = 1;
const MAIL: u64 = 2;
const NEIGHBOURS: u64 = 3;
const WRITTEN: u64 = 4;
const LISTENERS: u64 = 5;
/// Listeners of other workers, from here on.
const OTHERS: u64 = 1 << 16;

/// What a worker is given.
pub(crate) struct Input {
    /// Its number, which is its row of the counters.
    pub(crate) number: usize,
    pub(crate) runs_in: RunsIn,
    pub(crate) listeners: Vec<OwnedFd>,
    pub(crate) neighbours: Neighbours,
    /// At its end: drain. A packet brings an image of a folder, see [`Loop::take_orders`].
    pub(crate) orders: OwnedFd,
    /// Where SIGTERM comes in as well, when the worker has a process of its own.
    pub(crate) signals: Option<SignalFd>,
    pub(crate) router: Arc<Router>,
    /// The folders that are served, and what they were made of: new tables come by their number.
    pub(crate) sites: Vec<Site>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) log: AccessLog,
    pub(crate) errors: Option<Errors>,
    pub(crate) counters: Counters,
    pub(crate) extras: Extras,
}

/// The order to do nothing: that the loop turns for it shows that the worker gets on.
pub(crate) const TURN: &[u8] = b"turn";

/// The order to let others take over.
pub(crate) const RETIRE: &[u8] = b"retire";

/// How long a worker may take to leave, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaving {
    /// When the server ends.
    pub(crate) drain_ns: u64,
    /// When others have taken over.
    pub(crate) retire_ns: u64,
}

impl Leaving {
    /// The same in either case.
    pub(crate) fn soon(drain_ns: u64) -> Leaving {
        Leaving { drain_ns, retire_ns: drain_ns }
    }
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

/// A worker that is listening: connections that come now will be answered once it runs.
pub(crate) enum Worker {
    Direct(Box<Loop<Direct>>),
    ByDials(Box<Loop<ByDials>>),
}

impl Worker {
    /// Makes everything that a worker needs.
    pub(crate) fn new(
        mut input: Input,
        dials: &Dials,
        limits: &Limits,
        leaving: Leaving,
    ) -> io::Result<Worker> {
        let hosts = input.extras.hosts.clone();
        let way = ByDials::new(dials, std::mem::take(&mut input.extras));
        Ok(if way.differs() {
            let mut worker = Loop::new(input, dials, limits, leaving, way)?;
            worker.core.http.scratch.hosts = hosts;
            Worker::ByDials(Box::new(worker))
        } else {
            Worker::Direct(Box::new(Loop::new(input, dials, limits, leaving, Direct)?))
        })
    }

    /// Where other threads reach it.
    pub(crate) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(match self {
            Worker::Direct(worker) => &worker.mailbox,
            Worker::ByDials(worker) => &worker.mailbox,
        })
    }

    /// How many connections it can hold.
    pub(crate) fn connections_max(&self) -> usize {
        match self {
            Worker::Direct(worker) => worker.connections_max,
            Worker::ByDials(worker) => worker.connections_max,
        }
    }

    /// Serves until it is told to drain, and then until everything is answered.
    pub(crate) fn run(self) -> Left {
        match self {
            Worker::Direct(worker) => worker.run(),
            Worker::ByDials(worker) => worker.run(),
        }
    }
}

/// One worker's loop.
pub(crate) struct Loop<W: Way> {
    core: Core<Kernel<W>>,
    listeners: Listeners,
    neighbours: Neighbours,
    mailbox: Arc<Mailbox>,
    mounts: Vec<Mount>,
    /// Who makes tables, once one was to be made.
    tables: Option<Tables>,
    orders: OwnedFd,
    signals: Option<SignalFd>,
    now_ns: u64,
    worked_ns: u64,
    spin_us: &'static AtomicU64,
    connections_max: usize,
    leaving: Leaving,
}

impl<W: Way> Loop<W> {
    fn new(input: Input, dials: &Dials, limits: &Limits, leaving: Leaving, way: W) -> io::Result<Loop<W>> {
        assert!(!input.listeners.is_empty(), "a worker listens");
        let now_ns = clock::mono_ns();
        let tally = Tally::new(input.counters, input.number, input.runs_in);
        let mailbox = Mailbox::new(Some(EventFd::new()?));
        let unix_s = clock::real_coarse_s();
        let mut scratch =
            Scratch::new(tally, Arc::clone(&mailbox), limits.outstanding_max, limits.later_ns, unix_s);
        scratch.sites = input.sites;
        scratch.errors = input.errors;
        let workers = dials.workers.get();
        let buffered = limits.buffer_bytes_max / workers;
        let http = Http1::new(input.router, limits, input.log, scratch, buffered);
        // Listeners that every worker holds wake one of them; a worker alone needs no such care.
        let sharing = if workers == 1 { Reuseport::Hash } else { dials.reuseport };
        let files = http.scratch.sites.iter().map(|site| site.table.descriptors()).sum::<usize>();
        let held = files + input.listeners.len() + input.neighbours.descriptors();
        let epoll = Epoll::new()?;
        if dials.busy_poll.us() > 0 {
            epoll.poll_devices(dials.busy_poll.us())?;
        }
        let mut worker = Loop {
            core: Core::new(Kernel::new(epoll, way, Arc::clone(&mailbox)), http, limits, now_ns),
            listeners: Listeners::new(input.listeners, sharing),
            neighbours: input.neighbours,
            mailbox,
            mounts: input.mounts,
            tables: None,
            orders: input.orders,
            signals: input.signals,
            now_ns,
            worked_ns: 0,
            spin_us: input.counters.spin(),
            connections_max: connections_max(limits, dials, input.runs_in, held),
            leaving,
        };
        worker.watch()?;
        Ok(worker)
    }

    fn run(mut self) -> Left {
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            let timeout = self.timeout();
            let Ok(ready) = self.core.net.epoll.wait(&mut events, timeout) else { return Left::Broken };
            self.turn(ready);
            if !ready.is_empty() || timeout != Timeout::Poll {
                self.publish();
            }
            if self.core.is_draining()
                && let Some(left) = self.left()
            {
                return left;
            }
        }
    }

    fn left(&mut self) -> Option<Left> {
        debug_assert!(self.listeners.count() == 0, "who drains accepts nothing");
        let left = match self.core.drained() {
            Drained::NotYet => return None,
            Drained::Wholly => Left::Drained,
            Drained::Cut => Left::Cut,
        };
        self.publish();
        Some(left)
    }

    #[inline(always)] // In the loop, and once at its end.
    fn publish(&mut self) {
        let uncounted = self.core.net.gate().map_or(0, Gate::take_uncounted);
        if let Some(meter) = self.core.net.meter() {
            meter.figures.addresses_uncounted += uncounted;
            meter.publish(self.core.http.budget.used());
        }
        // After the figures: who reads the counts first reads figures that are as new.
        self.core.http.scratch.tally.publish();
    }

    fn watch(&mut self) -> io::Result<()> {
        let epoll = &self.core.net.epoll;
        epoll.add(&self.orders, ORDERS << 32 | SPECIAL, Interest::READ)?;
        if let Some(signals) = &self.signals {
            epoll.add(signals, SIGNALS << 32 | SPECIAL, Interest::READ)?;
        }
        if let Some(event) = self.mailbox.event() {
            epoll.add(event, MAIL << 32 | SPECIAL, Interest::READ)?;
        }
        if let Some(written) = self.core.http.lines_written() {
            epoll.add(written, WRITTEN << 32 | SPECIAL, Interest::READ.edge())?;
        }
        self.neighbours.watch(epoll, NEIGHBOURS << 32 | SPECIAL)?;
        self.listeners.watch(epoll, listener_token)
    }

    #[inline]
    fn turn(&mut self, ready: &[Event]) {
        self.now_ns = clock::mono_ns();
        self.core.begin_turn(self.now_ns);
        let is_spinning = ready.is_empty() && self.is_spinning();
        let counts = self.core.http.scratch.counts();
        counts.turns += 1;
        counts.spins += u64::from(is_spinning);
        if !ready.is_empty() {
            self.worked_ns = self.now_ns;
        }
        for event in ready {
            self.on_event(event);
        }
        self.core.end_turn();
        if let Some(until_ns) = self.listeners.paused_until() {
            // A connection that was closed makes room; else it is tried again after a while.
            if self.core.take_has_closed() || until_ns <= self.now_ns {
                self.watch_again();
            }
        }
    }

    #[inline]
    fn on_event(&mut self, event: &Event) {
        let token = event.token();
        if token & SPECIAL == SPECIAL {
            self.on_special(token >> 32);
        } else if let Some(index) = self.core.conns.index_of(token) {
            let ready = Readiness {
                readable: event.readable(),
                writable: event.writable(),
                peer_closed: event.peer_closed(),
                hangup: event.hangup(),
            };
            self.core.on_event(index, ready);
        }
    }

    #[cold]
    fn on_special(&mut self, kind: u64) {
        match kind {
            ORDERS => self.take_orders(),
            SIGNALS => {
                let signal = self.signals.as_ref().and_then(SignalFd::next);
                if signal == Some(Signal::Term) {
                    self.begin_drain(Leave::Stopped);
                }
            }
            MAIL => self.core.on_mail(),
            NEIGHBOURS => self.look_at_neighbours(),
            // The end of the turn sees which replies may leave.
            WRITTEN => {}
            listener => self.accept_all(listener, ACCEPTS_MAX),
        }
    }

    /// The supervisor hands over images; its end of the channel, or a pipe's, tells to drain.
    fn take_orders(&mut self) {
        loop {
            match rights::receive(self.orders.as_fd(), ORDER_BYTES_MAX) {
                Ok(packet) if packet.bytes.is_empty() => return self.begin_drain(Leave::Stopped),
                Ok(packet) if packet.bytes == RETIRE => self.begin_drain(Leave::Replaced),
                Ok(packet) if packet.bytes == TURN => {}
                Ok(packet) if [log::ORDER, error_log::ORDER].contains(&&*packet.bytes) => {
                    self.take_log(&packet);
                }
                Ok(packet) => self.take_image(packet),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.begin_drain(Leave::Stopped),
            }
        }
    }

    /// A log that was opened anew.
    fn take_log(&mut self, packet: &rights::Packet) {
        match packet.fds.first() {
            Some(log) if packet.bytes == log::ORDER => self.core.http.reopen_log(log),
            Some(log) => self.core.http.change_errors(log),
            None => {}
        }
    }

    /// Has a table made of what a folder has now; it comes by the mailbox.
    fn take_image(&mut self, packet: rights::Packet) {
        let number = str::from_utf8(&packet.bytes).ok().and_then(|text| text.parse::<usize>().ok());
        let (Some(number), Some(image)) = (number, packet.fds.into_iter().next()) else { return };
        if self.tables.is_none() {
            let mailbox = Arc::clone(&self.mailbox);
            let put = move |number, table| mailbox.put(Message::Table(number, table));
            let current = self.core.http.scratch.sites.iter().map(|site| Arc::clone(&site.table)).collect();
            // Without a thread for it what is there goes on being served, and the next image tries again.
            self.tables = Tables::start(self.mounts.clone(), current, put).ok();
        }
        if let Some(tables) = &self.tables {
            tables.make(number, image.into());
        }
    }

    fn look_at_neighbours(&mut self) {
        let has_room =
            self.core.conns.in_use() < self.connections_max && self.listeners.paused_until().is_none();
        self.neighbours.look(&self.core.net.epoll, has_room, other_token);
    }

    fn listener(&self, kind: u64) -> Option<BorrowedFd<'_>> {
        let at = |first: u64| usize::try_from(kind - first).unwrap_or(usize::MAX);
        if kind >= OTHERS { self.neighbours.get(at(OTHERS)) } else { self.listeners.get(at(LISTENERS)) }
    }

    fn accept_all(&mut self, listener: u64, count_max: usize) {
        for _ in 0..count_max {
            if self.core.conns.in_use() >= self.connections_max {
                return self.pause();
            }
            let Some(socket) = self.listener(listener) else { return };
            match socket::accept(socket) {
                Accepted::Conn(socket) => {
                    debug_assert!(
                        self.core.conns.in_use() < self.connections_max,
                        "no more are held than may be"
                    );
                    let Some(peer) = self.let_in(&socket) else { continue };
                    if !self.core.admit(socket, peer) {
                        // No memory for a watch (epoll(7), max_user_watches): as good as a descriptor limit.
                        return self.pause();
                    }
                }
                Accepted::WouldBlock => return,
                Accepted::Transient => {}
                Accepted::LimitReached | Accepted::Failed(_) => return self.pause(),
            }
        }
    }

    /// Who a new connection's peer is, as far as anybody wants to know; `None` when its address has as many as it may.
    fn let_in(&mut self, socket: &OwnedFd) -> Option<Option<IpAddr>> {
        let wants_peer = self.core.http.wants_peer() || self.core.net.gate().is_some();
        let peer = if wants_peer { peer_of(socket) } else { None };
        (self.core.let_in(peer) == May::Yes).then_some(peer)
    }

    /// Stops accepting until there is room.
    fn pause(&mut self) {
        if self.listeners.paused_until().is_none() {
            self.core.http.scratch.counts().accept_pauses += 1;
        }
        self.core.take_has_closed();
        self.listeners.pause(&self.core.net.epoll, self.now_ns);
        self.neighbours.tell(Accepting::Full);
        self.look_at_neighbours();
    }

    fn watch_again(&mut self) {
        let is_full = self.core.conns.in_use() >= self.connections_max;
        if is_full || self.listeners.watch(&self.core.net.epoll, listener_token).is_err() {
            return self.listeners.pause(&self.core.net.epoll, self.now_ns);
        }
        self.neighbours.tell(Accepting::Open);
        self.look_at_neighbours();
    }

    fn timeout(&mut self) -> Timeout {
        if self.is_spinning() {
            return Timeout::Poll;
        }
        match [self.core.next_due_ns(), self.listeners.paused_until()].into_iter().flatten().min() {
            None => {
                debug_assert!(!self.core.is_draining(), "a drain ends by itself");
                Timeout::Forever
            }
            Some(at_ns) => {
                // Rounded up: a wait that ends a little early would turn the loop for nothing.
                let wait_ms = at_ns.saturating_sub(self.now_ns).div_ceil(MS_NS);
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
    fn begin_drain(&mut self, leave: Leave) {
        if leave == Leave::Stopped {
            // The end of file stays readable: it has been understood.
            let _ = self.core.net.epoll.remove(&self.orders);
        }
        let is_draining = self.core.is_draining();
        let drain_ns = match leave {
            Leave::Stopped => self.leaving.drain_ns,
            Leave::Replaced => self.leaving.retire_ns,
        };
        self.core.begin_drain(leave, drain_ns);
        if is_draining {
            return;
        }
        for listener in 0..self.listeners.count() {
            self.accept_all(LISTENERS + listener as u64, BACKLOG as usize);
        }
        // The others' as well: one that has closed its own may leave its last connections to this copy.
        for listener in 0..self.neighbours.count() {
            self.accept_all(OTHERS + listener as u64, BACKLOG as usize);
        }
        self.listeners.pause(&self.core.net.epoll, self.now_ns);
        self.neighbours.leave();
        self.listeners.close();
        self.neighbours.close(&self.core.net.epoll);
    }
}

fn other_token(listener: usize) -> u64 {
    (OTHERS + listener as u64) << 32 | SPECIAL
}

fn listener_token(listener: usize) -> u64 {
    (LISTENERS + listener as u64) << 32 | SPECIAL
}

/// What was asked for, or what the descriptor limit leaves beside those that are held for files and listeners: a server fits
/// itself instead of failing.
fn connections_max(limits: &Limits, dials: &Dials, runs_in: RunsIn, held: usize) -> usize {
    let (soft, _) = dyno_sys::proc::nofile();
    let soft = usize::try_from(soft).unwrap_or(usize::MAX);
    // Threads share the descriptors of their process.
    let sharers = if runs_in == RunsIn::Thread { dials.workers.get() } else { 1 };
    let fitting = (soft / sharers).saturating_sub(DESCRIPTORS_KEPT + held).max(1);
    limits.connections_max.clamp(1, fitting)
}

fn peer_of(socket: &OwnedFd) -> Option<IpAddr> {
    match socket::peer_addr(socket) {
        Ok(Addr::Tcp(address)) => Some(address.ip()),
        _ => None,
    }
}

//! A session's connections: every system call on a socket is made here.
//!
//! The session waits and keeps the edges of a block; here an event becomes a receive, a check and the next send. A
//! connection that is lost is counted by its class and opened anew while there is something to send.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::OwnedFd;

use dyno_sys::clock::mono_ns;
use dyno_sys::epoll::{Epoll, Event, Interest};
use dyno_sys::socket::{self, Addr, Io, SocketError};

use crate::check::{Expect, Rules};
use crate::client::{Client, Fate, Link, Taken, Tally};
use crate::down::Down;
use crate::heard::Heard;
use crate::report::{OpenError, SessionPlan, Unfinished};
use crate::requests::Batches;

/// One buffer for all connections of a session: as much as loopback delivers at once (64 KiB per segment), twice.
const RECEIVE_BYTES: usize = 128 * 1024;
/// The longest batches of requests that are made, 64 MiB: they exist once per session.
pub(crate) const BATCH_BYTES_MAX: usize = 64 << 20;
/// Why nobody is connected where a socket file's queue of new connections stays full.
const FULL_QUEUE: &str = "its queue of new connections stays full";
/// Connections per pair of addresses. The kernel's search for a free port slows down eightfold when about half of its
/// 28,232 ports are taken (measured: 26,900 connections/s below, 3,000 above).
const CONNECTIONS_PER_PAIR_MAX: usize = 12_000;

/// What is sent where nothing is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    /// Nothing: the end of a block, and between blocks.
    Nothing,
    /// One request on each connection that is made: opening.
    One,
    /// Batch after batch.
    Batches,
}

/// A session's part of a larger load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    /// Connections of this session.
    pub(crate) connections: usize,
    /// Connections of the sessions before it.
    pub(crate) before: usize,
    /// Connections of all sessions.
    pub(crate) all: usize,
}

#[derive(Debug)]
pub(crate) struct Connections {
    clients: Vec<Client>,
    addr: Addr,
    sources: Option<Sources>,
    rules: Rules,
    batches: Batches,
    /// The first request, alone.
    one: Range<usize>,
    timeout_ns: u64,
    pub(crate) sending: Sending,
    pub(crate) tally: Tally,
    /// Clients with requests in flight.
    busy: usize,
    /// Clients that are being connected, and those that are connected.
    connecting: usize,
    up: usize,
    /// When none was.
    down: Down,
    heard: Heard,
    /// Clients that wait for room in a socket file's queue, and the one whose turn it is.
    queueing: usize,
    turn: usize,
    buffer: Vec<u8>,
    /// The first bytes received, as long as somebody wants them.
    received: Option<Vec<u8>>,
    received_bytes_max: usize,
}

/// Source addresses of 127.0.0.0/8 for many connections to one loopback address.
#[derive(Debug, Clone, Copy)]
struct Sources {
    before: usize,
}

impl Connections {
    pub(crate) fn new(plan: &SessionPlan, share: Share) -> Self {
        assert!(share.connections > 0 && plan.timeout_ns > 0, "the plan was not checked");
        assert!(share.before + share.connections <= share.all, "a share is more than the whole");
        let addr = plan.target.addr().clone();
        Self {
            clients: std::iter::repeat_with(Client::default).take(share.connections).collect(),
            sources: Sources::new(&addr, share),
            rules: Rules::new(plan.expect.clone(), plan.target.asked()),
            batches: Batches::new(plan.target.requests(), plan.pipeline),
            one: 0..plan.target.request().len(),
            timeout_ns: plan.timeout_ns,
            sending: Sending::Nothing,
            tally: Tally::new(addr.clone()),
            busy: 0,
            connecting: 0,
            up: 0,
            down: Down::default(),
            heard: Heard::default(),
            queueing: 0,
            turn: 0,
            buffer: vec![0; RECEIVE_BYTES],
            received: None,
            received_bytes_max: 0,
            addr,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.clients.len()
    }

    pub(crate) fn expect(&self) -> &Expect {
        self.rules.expect()
    }

    pub(crate) fn first_error(&self) -> Option<&OpenError> {
        self.tally.first_error.as_ref()
    }

    pub(crate) fn awaits_answers(&self) -> bool {
        self.busy > 0
    }

    /// Whether connections are being made or answers awaited.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy > 0 || self.connecting > 0 || self.queueing > 0
    }

    /// Whether clients wait for room in a socket file's queue: no event says when there is some.
    pub(crate) fn is_queueing(&self) -> bool {
        self.queueing > 0
    }

    /// Between two blocks nothing is in flight and nothing is sent: an answer that came later would be taken for one of
    /// the next block's.
    pub(crate) fn check_between_blocks(&self) {
        assert_eq!(self.busy, 0, "answers are still owed between two blocks");
        assert_eq!(self.sending, Sending::Nothing, "requests are still sent between two blocks");
        self.check_sums();
    }

    /// The sums are those of the clients; otherwise a block would end before its answers, or never.
    fn check_sums(&self) {
        let count = |is: fn(&Client) -> bool| self.clients.iter().filter(|client| is(client)).count();
        let busy = count(|client| client.in_flight > 0);
        let connecting = count(|client| matches!(client.link, Link::Connecting(_)));
        let up = count(|client| matches!(client.link, Link::Up(_)));
        let queueing = count(|client| matches!(client.link, Link::Queueing));
        assert_eq!(
            (self.busy, self.connecting),
            (busy, connecting),
            "busy and connecting clients are miscounted"
        );
        assert_eq!(self.queueing, queueing, "queueing clients are miscounted");
        assert_eq!(self.up, up, "connected clients are miscounted");
    }

    /// Keeps what is received from now on, up to `bytes_max`.
    pub(crate) fn keep_received(&mut self, bytes_max: usize) {
        assert!(self.received.is_none(), "what was kept before would be lost");
        self.received = Some(Vec::new());
        self.received_bytes_max = bytes_max;
    }

    /// What was kept; empty when there was more than was to be kept.
    pub(crate) fn take_received(&mut self) -> Vec<u8> {
        let received = self.received.take().unwrap_or_default();
        if received.len() > self.received_bytes_max { Vec::new() } else { received }
    }

    /// Connects these clients and sends one request on each.
    pub(crate) fn send_one_each(&mut self, epoll: &Epoll, wave: Range<usize>, now_ns: u64) {
        assert_ne!(self.sending, Sending::Batches, "connections are opened before the first block");
        self.sending = Sending::One;
        wave.for_each(|index| self.connect(epoll, index, now_ns));
    }

    /// Starts the load: a batch on every connection, and a connection where there is none.
    pub(crate) fn send_everywhere(&mut self, epoll: &Epoll, now_ns: u64) {
        self.sending = Sending::Batches;
        for index in 0..self.clients.len() {
            match self.clients[index].link {
                Link::Up(_) => self.send(epoll, index, now_ns),
                Link::Down => self.connect(epoll, index, now_ns),
                Link::Queueing | Link::Connecting(_) => {}
            }
        }
    }

    /// Counts from here.
    pub(crate) fn start_measuring(&mut self, now_ns: u64) {
        self.tally.start_measuring();
        self.down = Down::default();
        self.heard.start(now_ns);
        if self.up == 0 {
            self.down.lost(now_ns);
        }
    }

    /// Sends nothing any more; the time since [`Connections::start_measuring`] in which no connection was up.
    pub(crate) fn stop_sending(&mut self, now_ns: u64) -> Vec<Range<u64>> {
        self.sending = Sending::Nothing;
        self.down.over(now_ns);
        self.down.take()
    }

    /// When something was last received, up to a sweep later than it was.
    pub(crate) fn heard_ns(&mut self, now_ns: u64) -> u64 {
        self.heard.last_ns(now_ns)
    }

    /// Does what one event asks for. The time of it, where the clock was read.
    #[inline]
    pub(crate) fn on_event(&mut self, epoll: &Epoll, event: Event) -> Option<u64> {
        let index = event.token() as usize;
        debug_assert!(
            matches!(self.clients[index].link, Link::Up(_) | Link::Connecting(_)),
            "an event came for a descriptor that is closed"
        );
        if let Link::Connecting(_) = self.clients[index].link {
            return Some(self.connected(epoll, index));
        }
        if self.clients[index].unsent > 0 && event.writable() {
            self.send_rest(epoll, index);
        }
        let reads = event.readable() || event.hangup();
        if reads { self.receive(epoll, index) } else { None }
    }

    /// Looks for requests that are too old, and tries again to connect what could not be connected.
    pub(crate) fn sweep(&mut self, epoll: &Epoll, now_ns: u64) {
        self.heard.last_ns(now_ns);
        for index in 0..self.clients.len() {
            let client = &self.clients[index];
            let aged = now_ns.saturating_sub(client.since_ns) >= self.timeout_ns;
            match client.link {
                Link::Up(_) if aged && client.in_flight > 0 => {
                    self.timed_out(index);
                    self.replace(epoll, index, now_ns);
                }
                Link::Connecting(_) if aged => {
                    self.tally.errors.connect += 1;
                    self.down.failed();
                    let timeout_ns = self.timeout_ns;
                    self.tally.note(|addr| OpenError::Unreached { addr, timeout_ns });
                    self.replace(epoll, index, now_ns);
                }
                Link::Queueing if aged || self.sending == Sending::Nothing => {
                    self.close(index, now_ns);
                    if aged {
                        self.not_connected(io::Error::new(io::ErrorKind::WouldBlock, FULL_QUEUE));
                    }
                }
                Link::Down if self.sending == Sending::Batches => self.connect(epoll, index, now_ns),
                _ => {}
            }
        }
        self.try_queue(epoll, now_ns);
        if cfg!(debug_assertions) {
            self.check_sums();
        }
    }

    /// Ends the connections that still owe answers: those would be taken for the next block's. Who is younger than the timeout
    /// is late for the block and no more than that.
    pub(crate) fn give_up_unanswered(&mut self, now_ns: u64) {
        for index in 0..self.clients.len() {
            let client = &self.clients[index];
            if client.in_flight == 0 {
                continue;
            }
            let age_ns = now_ns.saturating_sub(client.since_ns);
            if age_ns >= self.timeout_ns {
                self.timed_out(index);
            } else {
                self.unfinished(index, age_ns);
            }
            self.close(index, now_ns);
        }
    }

    fn connect(&mut self, epoll: &Epoll, index: usize, now_ns: u64) {
        self.clients[index].since_ns = now_ns;
        if self.queueing > 0 { self.queue(index) } else { self.try_connect(epoll, index) }
    }

    /// A socket file's queue that is full refuses at once and sends no event when it has room (`unix(7)`, EAGAIN): the client
    /// queues here, as long as a request may take. A TCP connection in progress is no refusal.
    fn try_connect(&mut self, epoll: &Epoll, index: usize) {
        self.check_down(index);
        let opened = match self.sources.map(|sources| sources.of(index)) {
            Some(source) => socket::connect_from(&self.addr, source),
            None => socket::connect(&self.addr),
        };
        let watched = opened.map_err(reason).and_then(|fd| {
            epoll.add(&fd, index as u64, Interest::WRITE)?;
            Ok(fd)
        });
        match watched {
            Ok(fd) => {
                self.clients[index].link = Link::Connecting(fd);
                self.connecting += 1;
            }
            Err(source) if source.kind() == io::ErrorKind::WouldBlock => self.queue(index),
            Err(source) => self.not_connected(source),
        }
    }

    fn queue(&mut self, index: usize) {
        self.check_down(index);
        self.clients[index].link = Link::Queueing;
        self.queueing += 1;
    }

    /// A client that gets another link has none: otherwise its descriptor and its place in the sums would be lost.
    fn check_down(&self, index: usize) {
        debug_assert!(
            matches!(self.clients[index].link, Link::Down),
            "a client that has a link gets another"
        );
        self.clients[index].check();
    }

    /// Connects those who wait for room, each in turn, until one is refused again.
    fn try_queue(&mut self, epoll: &Epoll, now_ns: u64) {
        for _ in 0..self.clients.len() {
            if self.queueing == 0 {
                return;
            }
            if let Link::Queueing = self.clients[self.turn].link {
                self.close(self.turn, now_ns);
                self.try_connect(epoll, self.turn);
                if let Link::Queueing = self.clients[self.turn].link {
                    return;
                }
            }
            self.turn = (self.turn + 1) % self.clients.len();
        }
    }

    #[cold]
    fn connected(&mut self, epoll: &Epoll, index: usize) -> u64 {
        let now_ns = mono_ns();
        let Link::Connecting(fd) = std::mem::take(&mut self.clients[index].link) else { return now_ns };
        self.connecting -= 1;
        match establish(epoll, &fd, index, &self.addr) {
            Ok(()) => {
                // What is connected while opening is connected for the first time.
                self.tally.reconnects += u64::from(self.sending != Sending::One);
                self.clients[index].link = Link::Up(fd);
                self.up += 1;
                self.down.over(now_ns);
                self.send(epoll, index, now_ns);
            }
            Err(source) => self.not_connected(source),
        }
        now_ns
    }

    /// The client stays down until the next sweep: trying at once would spin on a server that is gone.
    fn not_connected(&mut self, source: io::Error) {
        self.tally.errors.connect += 1;
        self.down.failed();
        self.tally.note(|addr| OpenError::connect(&addr, source));
    }

    #[inline]
    fn send(&mut self, epoll: &Epoll, index: usize, now_ns: u64) {
        let client = &mut self.clients[index];
        let Link::Up(fd) = &client.link else { return };
        let (requests, batch) = match self.sending {
            Sending::Nothing => return,
            Sending::One => (1, self.one.clone()),
            Sending::Batches => (self.batches.pipeline(), self.batches.take()),
        };
        debug_assert!(
            client.in_flight == 0 && client.unsent == 0,
            "a batch is sent when the last one is answered"
        );
        debug_assert!(requests > 0 && !batch.is_empty(), "a batch of nothing has no answer to wait for");
        client.since_ns = now_ns;
        client.in_flight = requests;
        client.unsent = batch.len();
        client.batch_end = batch.end;
        let sent = socket::send(fd, self.batches.bytes(batch));
        self.busy += 1;
        self.sent(epoll, index, sent);
    }

    #[inline]
    fn sent(&mut self, epoll: &Epoll, index: usize, sent: Io) {
        let client = &mut self.clients[index];
        match sent {
            Io::Done(count) if count == client.unsent => client.unsent = 0,
            Io::Done(count) => {
                debug_assert!(count < client.unsent, "the socket took more than it was given");
                client.unsent -= count;
                self.watch_writes(epoll, index);
            }
            Io::WouldBlock | Io::Closed => self.watch_writes(epoll, index),
            Io::Failed(errno) => self.not_sent(epoll, index, io::Error::from_raw_os_error(errno)),
        }
    }

    #[cold]
    fn watch_writes(&mut self, epoll: &Epoll, index: usize) {
        self.watch(epoll, index, Interest::READ_WRITE);
    }

    fn watch(&mut self, epoll: &Epoll, index: usize, interest: Interest) {
        let Link::Up(fd) = &self.clients[index].link else { return };
        if let Err(error) = epoll.modify(fd, index as u64, interest) {
            self.not_sent(epoll, index, error);
        }
    }

    #[cold]
    fn not_sent(&mut self, epoll: &Epoll, index: usize, source: io::Error) {
        self.tally.errors.write += 1;
        self.tally.note(|addr| OpenError::Broken { addr, source });
        self.replace(epoll, index, mono_ns());
    }

    #[cold]
    fn send_rest(&mut self, epoll: &Epoll, index: usize) {
        let client = &self.clients[index];
        let Link::Up(fd) = &client.link else { return };
        let rest = client.batch_end - client.unsent..client.batch_end;
        let sent = socket::send(fd, self.batches.bytes(rest));
        self.sent(epoll, index, sent);
        if self.clients[index].unsent == 0 {
            self.watch(epoll, index, Interest::READ);
        }
    }

    /// One receive, the checking of what it brought, and the next send. The time, where the clock was read.
    #[inline]
    fn receive(&mut self, epoll: &Epoll, index: usize) -> Option<u64> {
        let client = &mut self.clients[index];
        let Link::Up(fd) = &client.link else { return None };
        client.check();
        let (owed, wrong_before) = (client.in_flight, self.tally.errors.wrong());
        let taken = match socket::recv(fd, &mut self.buffer) {
            Io::Done(count) => {
                self.heard.bytes();
                let input = &self.buffer[..count];
                keep(&mut self.received, self.received_bytes_max, input);
                client.take(input, &self.batches, &mut self.rules, &mut self.tally)
            }
            Io::WouldBlock => return None,
            Io::Closed => client.take_end(&mut self.rules, &mut self.tally),
            Io::Failed(errno) => client.take_failure(errno, &mut self.tally),
        };
        let wrong = self.tally.errors.wrong() - wrong_before;
        if wrong > 0 {
            let latency_ns = mono_ns().saturating_sub(client.since_ns);
            self.tally.wrong_latencies.record_n(latency_ns, wrong);
        }
        if taken == (Taken { right: 0, fate: Fate::Waiting }) {
            return None;
        }
        debug_assert!(taken.right <= owed as u64, "more right answers than requests");
        debug_assert!(
            taken.fate != Fate::Waiting || client.in_flight > 0,
            "nothing is owed and it is waited for"
        );
        let now_ns = mono_ns();
        self.tally.replies += taken.right;
        (0..taken.right).for_each(|_| dyno_sys::mark::reply());
        self.tally.latencies.record_n(now_ns.saturating_sub(client.since_ns), taken.right);
        if taken.fate != Fate::Waiting {
            self.tally.unanswered += client.in_flight as u64;
            (client.in_flight, client.unsent) = (0, 0);
            self.busy -= usize::from(owed > 0);
        }
        match taken.fate {
            Fate::Waiting => {}
            Fate::Ready if self.sending == Sending::Batches => self.send(epoll, index, now_ns),
            Fate::Ready => {}
            Fate::Over => self.replace(epoll, index, now_ns),
        }
        Some(now_ns)
    }

    #[cold]
    fn replace(&mut self, epoll: &Epoll, index: usize, now_ns: u64) {
        self.close(index, now_ns);
        if self.sending == Sending::Batches {
            self.connect(epoll, index, now_ns);
        }
    }

    /// Closes a connection in whatever state it is; the kernel takes its descriptor off the event queue.
    fn close(&mut self, index: usize, now_ns: u64) {
        let client = &mut self.clients[index];
        client.check();
        self.busy -= usize::from(client.in_flight > 0);
        self.tally.unanswered += client.in_flight as u64;
        self.connecting -= usize::from(matches!(client.link, Link::Connecting(_)));
        self.queueing -= usize::from(matches!(client.link, Link::Queueing));
        if let Link::Up(_) = client.link {
            self.up -= 1;
            if self.up == 0 {
                self.down.lost(now_ns);
            }
        }
        client.link = Link::Down;
        client.in_flight = 0;
        client.unsent = 0;
        client.reader.reset();
    }

    /// Counts what the connection owes; the caller closes it.
    fn timed_out(&mut self, index: usize) {
        self.tally.errors.timeout += 1;
        self.tally.timed_out += self.clients[index].in_flight as u64;
        let timeout_ns = self.timeout_ns;
        self.tally.note(|addr| OpenError::Late { addr, timeout_ns });
    }

    /// Takes what the connection owes off it; the caller closes it.
    fn unfinished(&mut self, index: usize, age_ns: u64) {
        let client = &mut self.clients[index];
        self.tally.unfinished.push(Unfinished { age_ns, requests: client.in_flight as u64 });
        (client.in_flight, client.unsent) = (0, 0);
        self.busy -= 1;
    }
}

impl Sources {
    fn new(addr: &Addr, share: Share) -> Option<Self> {
        let Addr::Tcp(SocketAddr::V4(to)) = addr else { return None };
        let many = share.all > CONNECTIONS_PER_PAIR_MAX;
        (to.ip().is_loopback() && many).then_some(Self { before: share.before })
    }

    /// 127.1.x.y, the next one for every 12,000 connections; all of 127.0.0.0/8 is this machine (RFC 1122 §3.2.1.3).
    fn of(self, index: usize) -> IpAddr {
        let source = (self.before + index) / CONNECTIONS_PER_PAIR_MAX;
        let low = |number: usize| u8::try_from(number % 250 + 1).expect("1 to 250 is a byte");
        IpAddr::V4(Ipv4Addr::new(127, 1, low(source / 250), low(source)))
    }
}

/// The kernel's own word, without the layer that says where: that is said here.
fn reason(error: SocketError) -> io::Error {
    match error {
        SocketError::Open { source, .. } | SocketError::Bind { source, .. } => source,
        SocketError::Connect { source, .. } | SocketError::Option { source, .. } => source,
        other => io::Error::other(other),
    }
}

fn establish(epoll: &Epoll, fd: &OwnedFd, index: usize, addr: &Addr) -> io::Result<()> {
    if let Some(errno) = socket::take_error(fd)? {
        return Err(io::Error::from_raw_os_error(errno));
    }
    if let Addr::Tcp(_) = addr {
        socket::set_nodelay(fd)?;
    }
    epoll.modify(fd, index as u64, Interest::READ)
}

#[inline]
fn keep(received: &mut Option<Vec<u8>>, bytes_max: usize, input: &[u8]) {
    // One byte beyond the limit is kept: that is how "too much" differs from "all".
    if let Some(received) = received {
        let room = (bytes_max + 1).saturating_sub(received.len());
        received.extend_from_slice(&input[..input.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::session::{Opening, Session};
    use crate::target::Target;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::atomic::AtomicBool;

    const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    fn sources(addr: &str, before: usize, all: usize) -> Option<Sources> {
        Sources::new(&addr.parse().unwrap(), Share { connections: 1, before, all })
    }

    #[test]
    fn only_many_connections_to_ipv4_loopback_are_spread() {
        let many = CONNECTIONS_PER_PAIR_MAX + 1;
        assert!(sources("127.0.0.1:80", 0, many).is_some());
        assert!(sources("127.0.0.1:80", 0, many - 1).is_none());
        assert!(sources("10.0.0.1:80", 0, many).is_none());
        assert!(sources("[::1]:80", 0, many).is_none());
        assert!(sources("unix:/run/x.sock", 0, many).is_none());
    }

    #[test]
    fn no_source_address_carries_more_than_its_share() {
        let all = 300 * CONNECTIONS_PER_PAIR_MAX;
        let mut carried = std::collections::HashMap::new();
        for session in 0..3 {
            let spread = sources("127.0.0.1:80", session * all / 3, all).unwrap();
            (0..all / 3).for_each(|index| *carried.entry(spread.of(index)).or_insert(0) += 1);
        }
        assert_eq!(carried.len(), 300);
        assert!(
            carried.iter().all(|(source, count)| source.is_loopback() && *count == CONNECTIONS_PER_PAIR_MAX)
        );
    }

    #[test]
    fn spread_connections_reach_the_server_from_their_sources() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let accept = |_| {
                let (mut stream, peer) = listener.accept().unwrap();
                assert!(stream.read(&mut [0; 4_096]).unwrap() > 0);
                stream.write_all(HELLO).unwrap();
                (stream, peer.ip().to_string())
            };
            (0..2).map(accept).map(|(_, ip)| ip).collect::<Vec<_>>()
        });
        let plan = SessionPlan {
            target: Target::get(&url).unwrap(),
            expect: Expect::body("hello"),
            connections: 2,
            pipeline: 1,
            timeout_ns: 5_000_000_000,
        };
        let last = CONNECTIONS_PER_PAIR_MAX - 1;
        let share = Share { connections: 2, before: last, all: last + 2 };
        let wrong = crate::session::Wrong::Refused;
        let opening = Opening { answer_ns_max: plan.timeout_ns, stop: &AtomicBool::new(false), wrong };
        Session::open_share(&plan, share, opening).unwrap();
        assert_eq!(server.join().unwrap(), ["127.1.1.1", "127.1.1.2"]);
    }

    fn one() -> Connections {
        let target = Target::get("http://127.0.0.1:1/").unwrap();
        let plan = SessionPlan { target, expect: Expect::any(), connections: 1, pipeline: 1, timeout_ns: 1 };
        Connections::new(&plan, Share { connections: 1, before: 0, all: 1 })
    }

    #[test]
    #[should_panic(expected = "answers are still owed between two blocks")]
    fn an_answer_owed_between_blocks_is_our_mistake() {
        let mut connections = one();
        connections.busy = 1;
        connections.check_between_blocks();
    }

    #[test]
    #[should_panic(expected = "busy and connecting clients are miscounted")]
    fn a_request_that_no_sum_knows_is_our_mistake() {
        let mut connections = one();
        connections.clients[0].in_flight = 1;
        connections.check_between_blocks();
    }

    #[test]
    #[should_panic(expected = "queueing clients are miscounted")]
    fn a_client_that_queues_uncounted_is_our_mistake() {
        let mut connections = one();
        connections.clients[0].link = Link::Queueing;
        connections.check_between_blocks();
    }

    #[test]
    #[should_panic(expected = "a client that has a link gets another")]
    fn a_link_that_would_be_lost_is_our_mistake() {
        let mut connections = one();
        connections.queue(0);
        connections.queue(0);
    }

    #[test]
    #[should_panic(expected = "a share is more than the whole")]
    fn a_share_beyond_the_whole_is_our_mistake() {
        let target = Target::get("http://127.0.0.1:1/").unwrap();
        let plan = SessionPlan { target, expect: Expect::any(), connections: 1, pipeline: 1, timeout_ns: 1 };
        Connections::new(&plan, Share { connections: 2, before: 1, all: 2 });
    }

    #[test]
    fn what_is_kept_is_all_or_nothing() {
        let kept = |pieces: &[&[u8]]| {
            let mut connections = one();
            connections.keep_received(4);
            pieces.iter().for_each(|piece| keep(&mut connections.received, 4, piece));
            connections.take_received()
        };
        assert_eq!(kept(&[b"ab", b"cd"]), b"abcd");
        assert_eq!(kept(&[b"abcd", b"e", b"f"]), b"");
    }
}

//! A simulated world: the real core on a simulated network and clock, driven by a seed, looked at after every step.

use crate::addresses::May;
use crate::config::{Limits, SECOND_NS};
use crate::core::Core;
use crate::draining::{Drained, Leave};
use crate::gate::Gate;
use crate::http1::Http1;
use crate::log::AccessLog;
use crate::mailbox::{Mailbox, Message};
use crate::model;
use crate::scratch::Scratch;
use crate::simulator::check::{kind_of, whole_replies};
use crate::simulator::commit::Commit;
use crate::simulator::content;
use crate::simulator::door::{self, Comer, Door, Key};
use crate::simulator::handlers::{self, Shop, Work};
use crate::simulator::hosts;
use crate::simulator::net::{Fetch, Link, Manner, SimNet, Socket};
use crate::stats::{Counters, RunsIn, Tally};
use crate::timer::TICK_NS_SHIFT;
use dyno_measure::Prng;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

/// The clients' habits in one simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Everybody does in time what they should: everything must be answered.
    Patient,
    /// The same, and the server is told to drain in the middle.
    Draining,
    /// Honest clients that read slowly, far slower than limits allow for one who does nothing: all is answered.
    Slow,
    /// Clients stall, reset and vanish; the clock jumps.
    Rude,
    /// The same with little memory.
    Tight,
}

/// What is simulated: made from a seed, and made smaller when it fails.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) mode: Mode,
    /// What each client sends, piece by piece: whole requests as a rule.
    pub(crate) scripts: Vec<Vec<Vec<u8>>>,
    pub(crate) manner: Manner,
    pub(crate) room_max: usize,
    pub(crate) salt: u32,
}

/// The server's limits in a simulation, as the model knows them.
pub(crate) const MODEL_LIMITS: model::Limits =
    model::Limits { line_bytes_max: 500, head_bytes_max: 2_000, headers_max: 30, body_bytes_max: 20_000 };

const HEAD_S: u64 = 10;
const IDLE_S: u64 = 60;
const BODY_S: u64 = 10;
const WRITE_S: u64 = 20;
/// Longer than anybody in the pool takes to wake a stream: a client that has closed one half gets all of it.
const LINGER_S: u64 = 10;
const LATER_S: u64 = 5;
const DRAIN_S: u64 = 100;
/// Longer than anybody needs.
const RETIRE_S: u64 = 1_000_000;
/// The longest that a worker is kept from its CPU.
const JUMP_S: u64 = 200;
/// How long the kernel takes to find out that nobody is there any more.
const KEEP_ALIVE_S: u64 = 120;

/// Steps after which a simulation that should have ended has not.
const STEPS_MAX: usize = 200_000;

fn limits(mode: Mode) -> Limits {
    Limits {
        line_bytes_max: MODEL_LIMITS.line_bytes_max,
        head_bytes_max: MODEL_LIMITS.head_bytes_max,
        headers_max: MODEL_LIMITS.headers_max,
        body_bytes_max: MODEL_LIMITS.body_bytes_max,
        upload_bytes_max: MODEL_LIMITS.body_bytes_max as u64,
        connections_max: 100,
        buffer_bytes_max: if mode == Mode::Tight { 12_000 } else { 64 << 20 },
        outstanding_max: 1_000,
        address: crate::clients::AddressLimits::default(),
        head_ns: HEAD_S * SECOND_NS,
        idle_ns: IDLE_S * SECOND_NS,
        body_ns: BODY_S * SECOND_NS,
        write_ns: WRITE_S * SECOND_NS,
        linger_ns: LINGER_S * SECOND_NS,
        later_ns: LATER_S * SECOND_NS,
    }
}

/// One client: what it still has to send, and whether it has gone.
pub(crate) struct Client {
    pub(crate) script: Vec<u8>,
    /// Bytes of a proxy's header in front of its script; all of it where that is none.
    pub(crate) header: usize,
    pub(crate) comer: Comer,
    /// It may have been closed because its address had as many connections as it may have.
    pub(crate) may_be_refused: bool,
    pub(crate) sent: usize,
    has_finished: bool,
    pub(crate) has_reset: bool,
    /// Does nothing more of its own accord.
    stalls: bool,
    is_connected: bool,
    /// Whether there was a listener when it came.
    pub(crate) was_admitted: bool,
    /// The server's end, until it is accepted.
    socket: Option<Socket>,
    /// When it last did something.
    acted_ns: u64,
    closed_ns: Option<u64>,
}

/// A simulation.
pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) core: Core<SimNet>,
    pub(crate) clients: Vec<Client>,
    pub(crate) shop: Shop,
    pub(crate) commit: Option<Commit>,
    pub(crate) door: Option<Door>,
    /// Connections that were closed at the door.
    refused: u64,
    began_ns: u64,
    mailbox: Arc<Mailbox>,
    chance: Prng,
    /// The disk's own.
    disk: Prng,
    now_ns: u64,
    drain_began_ns: Option<u64>,
    drained: Drained,
    /// Whether others have taken over, and the server goes on.
    pub(crate) is_replaced: bool,
    /// Which folder each site is.
    folders: Rc<[content::Folder]>,
    /// How many of them have changed.
    changed: usize,
    /// Turns that time alone brought about and in which nothing was done, since something else happened.
    idle_wakes: u32,
    pub(crate) trace: Option<Vec<String>>,
}

impl World {
    pub(crate) fn new(scenario: Scenario, traced: bool) -> World {
        let mut chance = Prng::new(scenario.seed ^ 0x5eed);
        let shop: Shop = Arc::new(Mutex::new(Work::default()));
        let router = Arc::new(handlers::router(&shop, scenario.salt));
        let limits = limits(scenario.mode);
        let tally = Tally::new(counters(), 0, RunsIn::Process);
        let mailbox = Mailbox::new(None);
        let mut scratch =
            Scratch::new(tally, Arc::clone(&mailbox), limits.outstanding_max, limits.later_ns, 1_700_000_000);
        let folders = hosts::install(&mut scratch, scenario.salt);
        let has_hosts = scratch.hosts.is_some();
        let commit = Commit::by_chance(scenario.seed);
        let log = commit.as_ref().map_or_else(AccessLog::off, Commit::log);
        let http = Http1::new(router, &limits, log, scratch, limits.buffer_bytes_max);
        let mut net = SimNet::new(
            Prng::new(chance.next_u64()),
            Prng::new(scenario.seed ^ 0xc01d),
            scenario.manner,
            scenario.room_max,
        );
        (net.holds, net.tells_hosts_apart) = (commit.is_some(), has_hosts);
        // A moment anywhere in a tick, late in the life of a machine now and then.
        let age = if chance.coin() { 1 << 40 } else { 1 << 56 };
        let now_ns = SECOND_NS + chance.below(age);
        // Chances of their own, so that the same seed does all else as it does without a proxy.
        let mut door = Door::by_chance(scenario.seed);
        net.gate = door.as_ref().and_then(Door::gate);
        net.meter = door.as_ref().map(|_| Door::meter());
        let clients = scenario.scripts.iter();
        let clients = clients.map(|script| (door.as_mut().map_or_else(Comer::unknown, Door::comer), script));
        let clients = clients.map(|(comer, script)| Client {
            header: if comer.is_wrong { usize::MAX } else { comer.header.len() },
            script: [&comer.header[..], &script.concat()].concat(),
            comer,
            may_be_refused: false,
            sent: 0,
            has_finished: false,
            has_reset: false,
            stalls: false,
            is_connected: false,
            was_admitted: false,
            socket: Some(net.connect()),
            acted_ns: now_ns,
            closed_ns: None,
        });
        let clients = clients.collect();
        World {
            clients,
            core: Core::new(net, http, &limits, now_ns),
            shop,
            commit,
            door,
            refused: 0,
            began_ns: now_ns,
            mailbox,
            disk: Prng::new(scenario.seed ^ 0x6469_736b),
            chance,
            now_ns,
            drain_began_ns: None,
            drained: Drained::NotYet,
            is_replaced: false,
            folders,
            changed: 0,
            idle_wakes: 0,
            trace: traced.then(Vec::new),
            scenario,
        }
    }

    /// Runs until nobody is left.
    pub(crate) fn run(&mut self) {
        for step in 0..STEPS_MAX {
            if self.is_over() {
                self.assert_clean();
                return;
            }
            self.act();
            self.turn(step);
            self.look();
        }
        panic!("the simulation does not end: {} connections are left", self.core.conns.in_use());
    }

    fn is_over(&self) -> bool {
        let all_gone = self.clients.iter().all(|client| client.is_connected);
        all_gone && self.core.conns.in_use() == 0
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        let now_ms = self.now_ns / 1_000_000;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{now_ms} ms: {}", what()));
        }
    }

    /// Everything is sent at once and taken a little at a time, with seconds in between.
    fn act_slowly(&mut self) {
        self.act_writer();
        self.act_disk();
        for id in 0..self.clients.len() {
            if !self.clients[id].is_connected {
                self.act_client(id);
            }
            let left = self.clients[id].script.len() - self.clients[id].sent;
            if left > 0 {
                self.send(id, left);
            }
        }
        self.act_pool();
        if !self.is_quiet(|link| link.readiness(self.scenario.manner).is_none()) {
            return;
        }
        for id in 0..self.clients.len() {
            self.clients[id].acted_ns = self.now_ns;
            let count = 1_100 + self.chance.below(4_000) as usize;
            self.take(id, count);
            let link = &self.core.net.links[id];
            if link.held.is_empty() && (link.output_ended || self.core.http.scratch.owing.outstanding == 0) {
                self.finish(id);
            }
        }
        self.now_ns += self.chance.below(6 * SECOND_NS);
    }

    /// A disk has read what was asked for, sooner or later, and not in the order in which it was asked.
    fn act_disk(&mut self) {
        let waiting = self.core.net.fetches.len() as u64;
        if waiting > 0 && self.disk.below(4) == 0 {
            let at = self.disk.below(waiting) as usize;
            let fetch = self.core.net.fetches.swap_remove(at);
            let (token, there) = (fetch.token, fetch.bytes());
            if !fetch.is_awaited() {
                return self.note(|| format!("the disk reads nothing for {token:x}, which has gone"));
            }
            // Now and then it reads less than there is.
            let bytes = if self.disk.coin() { there } else { there.min(1 + self.disk.below(10_000)) };
            self.core.net.note_fetched(token, bytes);
            self.note(|| format!("the disk has read {bytes} bytes for {token:x}"));
            self.mailbox.put(Message::Fetched(token, bytes));
        }
    }

    /// The log's writer has its turn: before it, no reply is whole whose line was not written.
    fn act_writer(&mut self) {
        let Some(commit) = &mut self.commit else { return };
        if !commit.is_due() {
            return;
        }
        let written = commit.written;
        let replies = whole_replies(self);
        assert!(replies <= written, "{replies} replies are whole and {written} lines are written");
        if let Some(commit) = &mut self.commit {
            commit.write();
        }
    }

    fn act(&mut self) {
        self.act_writer();
        self.act_disk();
        if self.changed < self.folders.len() && self.chance.below(100) == 0 {
            let (site, folder) = (self.changed, self.folders[self.changed]);
            self.note(|| format!("the files of site {site} change"));
            self.mailbox.put(Message::Table(site, content::table(folder, 1)));
            self.changed += 1;
        }
        if self.scenario.mode == Mode::Slow {
            return self.act_slowly();
        }
        for _ in 0..=self.chance.below(3) {
            match self.chance.below(12) {
                0..8 => {
                    let id = self.chance.below(self.clients.len() as u64) as usize;
                    self.act_client(id);
                }
                8..10 => self.act_pool(),
                _ => {}
            }
        }
        if self.scenario.mode == Mode::Draining && self.drain_began_ns.is_none() && self.chance.below(60) == 0
        {
            self.is_replaced = self.chance.below(2) == 0;
            self.drain_began_ns = Some(self.now_ns);
            if self.is_replaced {
                self.note(|| "others take over".to_owned());
                self.core.begin_drain(Leave::Replaced, RETIRE_S * SECOND_NS);
            } else {
                self.drain();
            }
        } else if self.is_replaced && self.chance.below(1_000) == 0 {
            // The server ends while this worker still finishes.
            self.is_replaced = false;
            self.drain();
        }
        self.pass_time();
    }

    fn drain(&mut self) {
        self.note(|| "drain".to_owned());
        self.core.begin_drain(Leave::Stopped, DRAIN_S * SECOND_NS);
        self.drain_began_ns = Some(self.now_ns);
    }

    fn act_client(&mut self, id: usize) {
        if !self.clients[id].is_connected {
            // Where there is a door they come one after the other, so that some find others gone.
            if self.door.is_some() && self.chance.below(4) > 0 {
                return;
            }
            // Who comes after a drain began finds no listener.
            let socket = self.clients[id].socket.take().expect("a client connects once");
            // A worker accepts in a turn: its limits run from then.
            self.core.begin_turn(self.now_ns);
            if self.drain_began_ns.is_none() && self.let_in(id) {
                assert!(self.core.admit(socket, self.clients[id].comer.peer), "it can be watched");
                self.clients[id].was_admitted = true;
            }
            self.clients[id].is_connected = true;
            self.clients[id].acted_ns = self.now_ns;
            return;
        }
        let is_rude = matches!(self.scenario.mode, Mode::Rude | Mode::Tight);
        if self.clients[id].stalls {
            // For the kernel a client that never comes back is one that has vanished; one that has closed is still there.
            let silent_ns = self.now_ns - self.clients[id].acted_ns;
            let is_asked = self.core.net.links[id].keeps_alive && !self.clients[id].has_finished;
            if is_asked && silent_ns > KEEP_ALIVE_S * SECOND_NS {
                self.reset(id);
            }
            return;
        }
        self.clients[id].acted_ns = self.now_ns;
        match self.chance.below(if is_rude { 60 } else { 50 }) {
            0..26 => self.send_some(id),
            26..50 => self.take_some(id),
            50..54 => {
                self.note(|| format!("client {id} stalls"));
                self.clients[id].stalls = true;
            }
            54..57 => self.reset(id),
            57 => self.finish(id),
            _ => self.send_some(id),
        }
        // Who has read the end of the stream closes too.
        let link = &self.core.net.links[id];
        if link.output_ended && link.held.is_empty() {
            self.finish(id);
        }
    }

    /// Whether the server takes this connection, which it must as long as its address has not as many as it may have.
    fn let_in(&mut self, id: usize) -> bool {
        let peer = self.clients[id].comer.peer;
        let may = self.core.let_in(peer) == May::Yes;
        let most =
            self.door.as_ref().and_then(|door| door.connections_max).map_or(usize::MAX, |most| most as usize);
        let (surely, perhaps) = door::key(peer).map_or((0, 0), |key| self.open(&key, None));
        assert!(!may || surely < most, "client {id} is let in beside {surely} others of its address");
        assert!(may || perhaps >= most, "client {id} is refused for {perhaps} others of its address");
        self.note(|| format!("client {id} of {peer:?} comes: {may}"));
        self.refused += u64::from(!may);
        self.clients[id].may_be_refused = !may;
        may
    }

    /// How many connections of an address are open: surely, and perhaps, since a proxy's header is read in its time.
    fn open(&self, key: &Key, without: Option<usize>) -> (usize, usize) {
        let open = self.clients.iter().zip(&self.core.net.links).enumerate().filter(|(id, (client, _))| {
            client.was_admitted && client.closed_ns.is_none() && Some(*id) != without
        });
        let own = open.filter(|(_, (client, _))| door::key(client.comer.named).as_ref() == Some(key));
        let (mut surely, mut perhaps) = (0, 0);
        for (_, (client, link)) in own {
            let is_read = client.header == 0 || !link.received.is_empty() || !link.held.is_empty();
            surely += usize::from(is_read && !link.is_closed());
            perhaps += usize::from(client.sent >= client.header);
        }
        (surely, perhaps)
    }

    /// What the door has promised: no address has more connections than it may have, and none is closed for less.
    fn look_at_door(&mut self) {
        let Some(most) = self.door.as_ref().and_then(|door| door.connections_max) else { return };
        for id in 0..self.clients.len() {
            let (client, link) = (&self.clients[id], &self.core.net.links[id]);
            let Some(key) = door::key(client.comer.named).filter(|_| client.was_admitted) else { continue };
            if !link.is_closed() {
                let (surely, _) = self.open(&key, None);
                assert!(surely <= most as usize, "{key:?} has {surely} connections");
            } else if client.closed_ns.is_none() && client.header > 0 {
                let (_, perhaps) = self.open(&key, Some(id));
                let was_silent = link.received.is_empty() && link.held.is_empty();
                self.clients[id].may_be_refused = was_silent && perhaps >= most as usize;
            }
        }
    }

    /// How long it has lasted.
    pub(crate) fn lasted_ns(&self) -> u64 {
        self.now_ns - self.began_ns
    }

    fn send_some(&mut self, id: usize) {
        let left = self.clients[id].script.len() - self.clients[id].sent;
        if left == 0 {
            return self.finish(id);
        }
        let most = match self.chance.below(5) {
            0 => 1,
            1 => 40,
            2 => 500,
            _ => left as u64,
        };
        let count = (1 + self.chance.below(most) as usize).min(left);
        self.send(id, count);
    }

    /// A worker whose place others have taken closes nobody who was not told so by a reply: what this client was about to
    /// send would be lost.
    fn assert_told(&self, id: usize) {
        let (client, link) = (&self.clients[id], &self.core.net.links[id]);
        let has_timed_out = self.core.http.scratch.tally.counts.timeouts > 0;
        if client.comer.is_wrong || client.may_be_refused {
            return;
        }
        if !self.is_replaced || !client.was_admitted || client.has_finished || link.is_reset || has_timed_out
        {
            return;
        }
        assert!(
            self.is_told(id),
            "client {id} was closed without a word, though others have only taken over"
        );
    }

    /// Whether its last reply says that it is the last, or is still under way.
    fn is_told(&self, id: usize) -> bool {
        let (client, link) = (&self.clients[id], &self.core.net.links[id]);
        let sent = &client.script[client.header.min(client.sent)..client.sent];
        let kinds: Vec<_> = model::understand(sent, &MODEL_LIMITS).iter().map(kind_of).collect();
        let given: Vec<u8> = link.received.iter().chain(&link.held).copied().collect();
        let read = model::read_replies_so_far(&given, &kinds);
        read.is_ok_and(|(replies, used)| {
            used < given.len() || replies.last().is_some_and(|reply| reply.closes)
        })
    }

    fn send(&mut self, id: usize, count: usize) {
        if self.core.net.links[id].is_closed() {
            self.assert_told(id);
        }
        let client = &mut self.clients[id];
        let link = &mut self.core.net.links[id];
        if client.has_finished || link.is_closed() || link.is_reset {
            // What nobody takes any more is not sent.
            client.script.truncate(client.sent);
            return self.finish(id);
        }
        link.arrived.extend(&client.script[client.sent..client.sent + count]);
        link.has_edge = true;
        client.sent += count;
        self.note(|| format!("client {id} sends {count} bytes"));
    }

    fn take_some(&mut self, id: usize) {
        let most = [100, 3_000, 100_000][self.chance.below(3) as usize];
        let count = 1 + self.chance.below(most) as usize;
        self.take(id, count);
    }

    fn take(&mut self, id: usize, count: usize) {
        let taken = self.core.net.take(id, count);
        if taken > 0 {
            self.note(|| format!("client {id} takes {taken} bytes"));
        }
    }

    fn finish(&mut self, id: usize) {
        if !std::mem::replace(&mut self.clients[id].has_finished, true) {
            let link = &mut self.core.net.links[id];
            (link.has_fin, link.has_edge) = (true, true);
            self.note(|| format!("client {id} closes its half"));
        }
    }

    fn reset(&mut self, id: usize) {
        let link = &mut self.core.net.links[id];
        (link.is_reset, link.has_edge) = (true, true);
        self.clients[id].has_reset = true;
        self.clients[id].stalls = true;
        self.note(|| format!("client {id} resets"));
    }

    /// Somebody away from the worker gets something done.
    fn act_pool(&mut self) {
        let mut work = handlers::lock(&self.shop);
        let which = self.chance.below(1 << 20) as usize;
        if self.chance.coin() && !work.wakers.is_empty() {
            let at = which % work.wakers.len();
            let waker = work.wakers.swap_remove(at);
            drop(work);
            waker.wake();
        } else if !work.later.is_empty() {
            let at = which % work.later.len();
            let (responder, answer) = work.later.swap_remove(at);
            drop(work);
            responder.answer(answer);
        }
    }

    /// Time goes on: a little, up to what is due, a little late, or far.
    fn pass_time(&mut self) {
        let is_rude = matches!(self.scenario.mode, Mode::Rude | Mode::Tight);
        let due = self.core.next_due_ns();
        let until = due.map_or(0, |due| due.saturating_sub(self.now_ns));
        // Nobody who is patient waits for a limit: only answers that never come are waited for.
        let manner = self.scenario.manner;
        let has_all = self.is_quiet(|link| link.held.is_empty() && link.readiness(manner).is_none());
        let quiet = has_all && self.clients.iter().all(|client| client.has_finished || client.stalls);
        let step = match self.chance.below(20) {
            0..12 => self.chance.below(2_000_000),
            12..17 => self.chance.below(20_000_000),
            17 if is_rude || quiet => until + self.chance.below(40_000_000),
            18 if is_rude => self.chance.below(30 * SECOND_NS),
            19 if is_rude && self.chance.below(10) == 0 => self.chance.below(JUMP_S * SECOND_NS),
            _ => 0,
        };
        self.now_ns += step;
    }

    /// Whether nobody but a client, or time, has anything to do.
    fn is_quiet(&self, is_quiet: impl Fn(&Link) -> bool) -> bool {
        let work = handlers::lock(&self.shop);
        let log_rests = !self.commit.as_ref().is_some_and(Commit::is_awaited);
        let disk_rests = self.core.net.fetches.is_empty();
        let pool_rests = log_rests
            && disk_rests
            && work.wakers.is_empty()
            && work.later.is_empty()
            && !self.mailbox.has_mail();
        pool_rests && self.core.net.links.iter().all(is_quiet)
    }

    /// A turn of the worker's loop.
    fn turn(&mut self, step: usize) {
        let mut ready: Vec<_> = (self.core.net.links.iter())
            .filter_map(|link| Some((link.token?, link.readiness(self.scenario.manner)?)))
            .collect();
        self.chance.shuffle(&mut ready);
        // Readiness may come late, but it comes.
        let told = if step.is_multiple_of(4) {
            ready.len()
        } else {
            self.chance.below(ready.len() as u64 + 1) as usize
        };
        ready.truncate(told);
        let has_mail = self.mailbox.has_mail() && self.chance.below(3) > 0;
        let is_due = self.core.next_due_ns().is_some_and(|due_ns| due_ns <= self.now_ns);
        let is_told = self.commit.as_mut().is_some_and(|commit| std::mem::take(&mut commit.tells));
        if ready.is_empty() && !has_mail && !is_due && !is_told {
            return;
        }
        let before = self.core.http.scratch.tally.counts;
        let (limited, asked) = (self.limited(), self.core.net.gate_asked);
        let arrived: Vec<usize> = self.core.net.links.iter().map(|link| link.arrived.len()).collect();
        self.core.begin_turn(self.now_ns);
        for (token, mut readiness) in ready.iter().copied() {
            if let Some(index) = self.core.conns.index_of(token) {
                self.forget_edge(token);
                // Now and then readiness is told that is none.
                readiness.writable |= self.chance.below(50) == 0;
                readiness.readable |= self.chance.below(50) == 0;
                self.core.on_event(index, readiness);
            }
        }
        if has_mail {
            self.core.on_mail();
            // What was told is waited for in this very turn.
            self.core.net.links.iter_mut().for_each(|link| link.fetched = 0);
        }
        self.core.end_turn();
        // What arrived long ago and was read only now counts as done now: limits run from the reading.
        for ((client, link), arrived) in self.clients.iter_mut().zip(&self.core.net.links).zip(arrived) {
            if link.arrived.len() < arrived {
                client.acted_ns = self.now_ns;
            }
        }
        if self.core.is_draining() {
            self.drained = self.core.drained();
        }
        let counts = self.core.http.scratch.tally.counts;
        let limited = self.limited() - limited;
        if let Some(door) = &mut self.door {
            // An upload is asked for when it begins, and counts as a request when it ends.
            door.note_turn(self.now_ns, self.core.net.gate_asked - asked, limited);
        }
        let did_something = counts.timeouts != before.timeouts || counts.closes != before.closes;
        // A limit that is looked at and renewed is not for nothing: it is due much later.
        let is_soon = self.core.next_due_ns().is_some_and(|due_ns| due_ns < self.now_ns + SECOND_NS);
        let only_time = ready.is_empty() && !has_mail && !is_told && is_soon;
        self.idle_wakes = if only_time && !did_something { self.idle_wakes + 1 } else { 0 };
    }

    /// Requests that were too many until now.
    fn limited(&self) -> u64 {
        self.core.net.meter.as_ref().map_or(0, |meter| meter.figures.requests_limited)
    }

    fn forget_edge(&mut self, token: u64) {
        if let Some(link) =
            self.core.net.links.iter_mut().find(|link| link.token == Some(token) && !link.is_closed())
        {
            link.has_edge = false;
        }
    }

    /// What must hold after every step.
    fn look(&mut self) {
        if let Some(due_ns) = self.core.next_due_ns() {
            let latest = self.now_ns >> TICK_NS_SHIFT << TICK_NS_SHIFT;
            // A turn is due only where none has been: then it comes with the next step.
            assert!(
                due_ns + (1 << TICK_NS_SHIFT) > latest.saturating_sub(JUMP_S * SECOND_NS),
                "a deadline is forgotten"
            );
        }
        assert!(
            self.idle_wakes <= 4 * (self.core.conns.in_use() as u32 + 1),
            "an idle worker wakes for nothing: {} times in a row",
            self.idle_wakes
        );
        self.assert_charged();
        let is_there = |fetch: &Fetch| self.core.conns.index_of(fetch.token).is_some();
        assert!(
            self.core.net.fetches.iter().all(|fetch| !fetch.is_awaited() || is_there(fetch)),
            "nothing is fetched for who has gone"
        );
        let sends = self.core.http.scratch.tally.counts.sends;
        assert_eq!(sends, self.core.net.sends, "sends are counted: what a socket was asked to take");
        if let Some(began_ns) = self.drain_began_ns {
            let waited_s = (self.now_ns - began_ns) / SECOND_NS;
            assert!(waited_s < DRAIN_S || self.drained != Drained::Cut, "a drain ends");
        }
        self.look_at_door();
        for (id, client) in self.clients.iter_mut().enumerate() {
            if client.closed_ns.is_none() && self.core.net.links.get(id).is_some_and(|link| link.is_closed())
            {
                client.closed_ns = Some(self.now_ns);
            }
        }
        self.assert_deadlines();
    }

    fn assert_charged(&self) {
        let charged: usize = (self.core.conns.iter())
            .filter_map(|(_, conn)| conn.busy.as_deref())
            .map(|busy| busy.charged)
            .sum();
        assert_eq!(charged, self.core.http.budget.used(), "bytes are charged: what connections hold");
        let held = self.core.conns.iter().filter_map(|(_, conn)| conn.busy.as_deref());
        for busy in held {
            assert_eq!(busy.charged, busy.held(), "bytes are charged: what one connection holds");
        }
        let most = limits(self.scenario.mode).buffer_bytes_max;
        assert!(charged <= most + (64 << 10), "bytes held never exceed their bound: {charged}");
        let owed = self
            .core
            .conns
            .iter()
            .filter_map(|(_, conn)| conn.busy.as_deref())
            .map(|busy| usize::from(busy.owed.is_some()) + usize::from(busy.uploading().is_some()));
        let outstanding = self.core.http.scratch.owing.outstanding;
        assert_eq!(owed.sum::<usize>(), outstanding, "what is owed is counted");
    }

    /// Whoever does nothing is cut when its time is over: no limit lasts longer than all of them together.
    fn assert_deadlines(&self) {
        // Each of them may be noticed as late as the clock jumps far.
        let longest_s = IDLE_S + WRITE_S * 2 + LATER_S + HEAD_S + LINGER_S + 7 * JUMP_S;
        for (id, client) in self.clients.iter().enumerate() {
            let quiet_s = self.now_ns.saturating_sub(client.acted_ns) / SECOND_NS;
            let is_open = client.is_connected && !self.core.net.links[id].is_closed();
            let work = handlers::lock(&self.shop);
            let waits_for_log = self.commit.as_ref().is_some_and(Commit::is_awaited);
            let waits_for_disk = !self.core.net.fetches.is_empty();
            let waits_for_us = waits_for_log
                || waits_for_disk
                || !work.wakers.is_empty()
                || !work.later.is_empty()
                || self.mailbox.has_mail();
            assert!(
                !is_open || quiet_s < longest_s || waits_for_us,
                "client {id} did nothing for {quiet_s} s and is still connected"
            );
        }
    }

    /// Everybody has gone: nothing is held.
    fn assert_clean(&mut self) {
        assert_eq!(self.core.http.budget.used(), 0, "bytes held return to zero");
        assert_eq!(self.core.http.scratch.owing.outstanding, 0, "nothing is owed any more");
        assert_eq!(
            self.core.next_due_ns().filter(|_| !self.core.is_draining()),
            None,
            "nobody is waited for"
        );
        let counts = self.core.http.scratch.tally.counts;
        assert_eq!(counts.accepts, counts.closes, "what was accepted is closed");
        if let Some(meter) = &self.core.net.meter {
            let seen = meter.figures;
            let closed = seen.closed_done + seen.closed_by_peer + seen.closed_late + seen.closed_limited;
            assert_eq!(closed, counts.closes + self.refused, "each connection ends for one reason");
            let replies = seen.replies_2xx + seen.replies_3xx + seen.replies_4xx + seen.replies_5xx;
            assert!(replies <= counts.requests, "no more is answered than is asked");
        }
        if self.door.as_ref().is_some_and(Door::is_full) {
            let comers = self.clients.iter().filter(|client| client.was_admitted);
            let strangers = comers.filter(|client| door::key(client.comer.peer).is_some()).count() as u64;
            let uncounted = self.core.net.gate.as_mut().map_or(0, Gate::take_uncounted);
            assert!(uncounted >= strangers, "{uncounted} of {strangers} are counted as uncounted");
        }
        if self.core.is_draining() {
            self.core.begin_turn(self.now_ns);
            assert_eq!(self.core.drained(), Drained::Wholly, "a drained worker ends");
        }
        for (id, client) in self.clients.iter().enumerate() {
            let link = &self.core.net.links[id];
            let is_hoarder = client.stalls && !client.has_finished && !link.is_reset && !link.held.is_empty();
            assert!(
                !is_hoarder || link.resets_on_close,
                "client {id} took nothing and its data stays in the kernel"
            );
        }
        // What the kernel still holds reaches its client, unless it was told to drop it.
        for id in 0..self.clients.len() {
            let link = &self.core.net.links[id];
            if !link.resets_on_close && !self.clients[id].has_reset && link.arrived.is_empty() {
                self.core.net.take(id, usize::MAX);
            }
        }
    }
}

/// Counters are mapped for the life of the process: one counters serves all simulations.
fn counters() -> Counters {
    thread_local! {
        static COUNTERS: Counters = Counters::new(1, 0).expect("counters can be mapped");
    }
    COUNTERS.with(|counters| *counters)
}

//! What TCP holds back on the target's connections and on their other ends, what waits for the target to take it, and whom it
//! asks, looked at often.
//!
//! A socket is fetched from its process for the microsecond in which it is asked (pidfd_getfd(2)), and nothing is set on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use dyno_record::observation::{Asked, Datagrams, Queue, Sending, Serving};
use dyno_sys::clock::mono_ns;
use dyno_sys::connections::{self, HeldSocket};
use dyno_sys::proc::InetLine;
use dyno_sys::socket::{self, Addr, SockOpt, int_option, is_unread, queue, sending};
use dyno_sys::{Pid, child, proc};

use super::queues::Queues;
use super::turns::{End, Far, Turns};

/// Connections that are looked at each time.
const CONNECTIONS_MAX: usize = 32;

/// Looks after which descriptors are listed anew: the tables of a machine with many connections are long.
const LIST_EVERY: u32 = 8;

/// Where connections come and go they are listed at each look, as long as that takes no more than this: of one that lives for some
/// milliseconds a list of before knows nothing.
const LISTED_AT_ONCE: Duration = Duration::from_millis(3);

/// Addresses that it asks which are told.
const ASKED_MAX: usize = 8;

/// Fewer rounds do not tell whether bytes lie in a connection for ever.
const STALE_MIN: usize = 20;

/// Whom to look at.
pub(super) struct Watch {
    pid: Pid,
    own: Side,
    peers: Side,
    seen: Sending,
    looked: u32,
    /// Connections in the queues of its listeners, in each round.
    queued: Vec<u64>,
    queues: Queues,
    turns: Turns,
    /// Connections to each address that was asked, over all lists.
    asked: BTreeMap<SocketAddr, u64>,
    lists: u64,
    /// The connections of the last list, by inode.
    listed: BTreeSet<u64>,
    /// Whether others were there at the last list than before, and listing is quick.
    come_and_go: bool,
}

/// Processes at one end of the connections, and what was seen of each connection, by its inode.
struct Side {
    processes: Vec<Connections>,
    /// At which they listen.
    ports: BTreeSet<u16>,
    /// Far ends of the connections that they opened: those on no port at which one of them listens.
    opened: Vec<SocketAddr>,
    /// How many they accepted.
    accepted: usize,
    /// Both ends of the connections that are looked at, this one first.
    pairs: BTreeSet<(SocketAddr, SocketAddr)>,
    each: BTreeMap<u64, Looked>,
}

/// A process and its connections, as they were listed last.
struct Connections {
    pid: Pid,
    handle: OwnedFd,
    listeners: Vec<HeldSocket>,
    connections: Vec<(HeldSocket, Far)>,
}

/// What was seen in all.
pub(super) struct Connected {
    pub(super) sending: Option<Sending>,
    pub(super) queues: Vec<Queue>,
    pub(super) datagrams: Option<Datagrams>,
    pub(super) asked: Vec<Asked>,
    pub(super) serving: Option<Serving>,
    /// Bytes per second over its connections: that came, and that went.
    pub(super) bytes_per_s: [f64; 2],
}

/// What was seen of one connection.
#[derive(Default)]
struct Looked {
    looks: u64,
    held: u64,
    /// Rounds in which bytes lay in it that nobody had read.
    unread: Vec<usize>,
    received: Option<u32>,
    /// Whether bytes came meanwhile.
    came: bool,
}

impl Watch {
    /// The target with its children, and who holds the other ends of its connections.
    pub(super) fn of(pid: Pid, peers: &[Pid], queues: Queues) -> Watch {
        let tree = proc::tree(pid);
        let known: BTreeSet<Pid> = tree.iter().copied().collect();
        let mut others = peers.iter().copied().filter(|pid| !known.contains(pid) && *pid != child::this());
        Watch {
            pid,
            own: Side::of(&mut tree.iter().copied()),
            peers: Side::of(&mut others),
            seen: Sending::default(),
            looked: 0,
            queued: Vec::new(),
            queues,
            turns: Turns::default(),
            asked: BTreeMap::new(),
            lists: 0,
            listed: BTreeSet::new(),
            come_and_go: false,
        }
    }

    /// Looks at all connections once.
    pub(super) fn look(&mut self) {
        // The second list tells for the first time whether others have come.
        if self.looked.is_multiple_of(LIST_EVERY) || self.looked == 1 || self.come_and_go {
            self.list();
        }
        self.looked += 1;
        let round = self.queued.len();
        self.turns.begin_look();
        let turns = &mut self.turns;
        let own = self.own.look(round, |end, now| turns.take(end, now));
        let peers = self.peers.look(round, |end, now| turns.take_far(end, now));
        let (listeners, waiting) = self.own.look_at_listeners(&mut self.queues);
        let (unix, at_unix) = self.queues.look(self.pid);
        let (receivers, datagrams) = self.queues.look_at_datagrams(self.pid);
        if own.looks > 0 || listeners + unix + receivers > 0 {
            self.queued.push(waiting + at_unix + datagrams);
        }
        self.seen.looks += own.looks.max(peers.looks);
        self.seen.held += own.held + peers.held;
        self.seen.held_by_peers += peers.held;
        self.seen.without_nodelay += own.without_nodelay + peers.without_nodelay;
    }

    fn list(&mut self) {
        let begun_ns = mono_ns();
        self.own.list(&mut |_line| true);
        let ours = &self.own.pairs;
        // A peer has connections to others, too, and to the target more than are looked at.
        self.peers.list(&mut |line| ours.contains(&(line.remote, line.local)));
        let pids: Vec<Pid> = self.own.processes.iter().map(|process| process.pid).collect();
        self.queues.list(&pids);
        self.lists += 1;
        self.turns.listed(self.own.accepted, self.own.opened.len());
        for remote in &self.own.opened {
            *self.asked.entry(*remote).or_default() += 1;
        }
        let before = std::mem::replace(&mut self.listed, self.own.inodes());
        let before = (self.lists > 1).then_some(&before);
        let others_came = self.come_and_go || others_came(before, &self.listed);
        self.come_and_go = others_came && Duration::from_nanos(mono_ns() - begun_ns) <= LISTED_AT_ONCE;
    }

    /// Why the limits of unix listeners are not known, where they are not.
    pub(super) fn unlimited(&self) -> Option<&'static str> {
        self.queues.unlimited()
    }

    /// What was seen, none of the first where neither a connection nor a listener could be asked.
    pub(super) fn finish(mut self) -> Connected {
        let each = self.own.each.values().chain(self.peers.each.values());
        if let Some(most) = each.filter(|one| one.held > 0).max_by_key(|one| one.held) {
            (self.seen.most_looks, self.seen.most_held) = (most.looks, most.held);
        }
        let waiting = in_rounds(self.queued, self.own.each.values());
        self.seen.rounds = waiting.len() as u64;
        self.seen.rounds_waiting = waiting.iter().filter(|waiting| **waiting > 0).count() as u64;
        self.seen.waiting = waiting.iter().sum();
        Connected {
            sending: (self.seen.looks + self.seen.rounds > 0).then_some(self.seen),
            datagrams: self.queues.datagrams(),
            queues: self.queues.finish(),
            asked: most_asked(self.asked, self.lists, &self.turns),
            serving: self.turns.serving(),
            bytes_per_s: self.turns.bytes_per_s(),
        }
    }
}

/// The addresses to which most connections were open, with how many on average.
fn most_asked(asked: BTreeMap<SocketAddr, u64>, lists: u64, turns: &Turns) -> Vec<Asked> {
    let mut all: Vec<(SocketAddr, u64)> = asked.into_iter().collect();
    all.sort_by_key(|(_, connections)| std::cmp::Reverse(*connections));
    let mean = |connections: u64| connections as f64 / lists.max(1) as f64;
    let told = all.into_iter().take(ASKED_MAX);
    let one = |(remote, many): (SocketAddr, u64)| {
        let asked = Asked { remote: remote.to_string(), connections: mean(many), ..Asked::default() };
        turns.at(remote, asked)
    };
    told.map(one).collect()
}

/// What waited in each round: in queues, and unread in connections. Bytes that lie in one from the first round to the last,
/// and no more come, are no request: the last words of a peer, say, on a connection that waits in a pool.
fn in_rounds<'a>(mut waiting: Vec<u64>, each: impl Iterator<Item = &'a Looked>) -> Vec<u64> {
    let rounds = waiting.len();
    for one in each.filter(|one| one.came || one.unread.len() < rounds.max(STALE_MIN)) {
        one.unread.iter().filter(|round| **round < rounds).for_each(|round| waiting[*round] += 1);
    }
    waiting
}

/// Whether there are connections that were not on the list before, where there was one.
fn others_came(before: Option<&BTreeSet<u64>>, now: &BTreeSet<u64>) -> bool {
    before.is_some_and(|before| !now.is_subset(before))
}

/// How many are looked at of those that a process accepted and of those that it opened: half of the room belongs to each, and
/// to the other what one leaves.
fn shares(accepted: usize, opened: usize) -> (usize, usize) {
    let half = CONNECTIONS_MAX / 2;
    let of_accepted = accepted.min(CONNECTIONS_MAX - opened.min(half));
    (of_accepted, opened.min(CONNECTIONS_MAX - of_accepted))
}

impl Side {
    fn of(pids: &mut dyn Iterator<Item = Pid>) -> Side {
        let held = |pid| {
            let handle = child::pidfd_open(pid).ok()?;
            Some(Connections { pid, handle, listeners: Vec::new(), connections: Vec::new() })
        };
        let processes = pids.filter_map(held).collect();
        let (ports, pairs, each) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        Side { processes, ports, opened: Vec::new(), accepted: 0, pairs, each }
    }

    /// Lists descriptors anew, of the connections that are wanted. A listener that several of them share is kept where it is
    /// found first.
    fn list(&mut self, wanted: &mut dyn FnMut(&InetLine) -> bool) {
        let pids: Vec<Pid> = self.processes.iter().map(|process| process.pid).collect();
        let mut all = connections::held(&pids);
        all.iter_mut().for_each(|(_, held)| held.retain(|one| one.listens() || wanted(&one.line)));
        let sockets = || all.iter().flat_map(|(_, held)| held);
        let listeners = sockets().filter(|one| one.listens());
        self.ports = listeners.map(|one| one.line.local.port()).collect();
        let ports = &self.ports;
        let far = |one: &HeldSocket| Far::of(ports, one.line.local, one.line.remote);
        self.opened.clear();
        self.accepted = 0;
        let mut shared = BTreeSet::new();
        for (process, (_, held)) in self.processes.iter_mut().zip(all) {
            let (mut listeners, connections): (Vec<_>, Vec<_>) =
                held.into_iter().partition(HeldSocket::listens);
            listeners.retain(|one| shared.insert(one.line.inode));
            listeners.truncate(CONNECTIONS_MAX);
            process.listeners = listeners;
            let (accepted, opened): (Vec<_>, Vec<_>) =
                connections.into_iter().map(|one| (one, far(&one))).partition(|(_, far)| *far == Far::Client);
            self.opened.extend(opened.iter().map(|(one, _)| one.line.remote));
            let (of_accepted, of_opened) = shares(accepted.len(), opened.len());
            self.accepted += accepted.len();
            let chosen = accepted.into_iter().take(of_accepted).chain(opened.into_iter().take(of_opened));
            process.connections = chosen.collect();
        }
        let looked_at = self.processes.iter().flat_map(|process| &process.connections);
        self.pairs = looked_at.map(|(one, _)| (one.line.local, one.line.remote)).collect();
    }

    /// Of the connections that are looked at.
    fn inodes(&self) -> BTreeSet<u64> {
        let all = self.processes.iter().flat_map(|process| &process.connections);
        all.map(|(one, _)| one.line.inode).collect()
    }

    /// Looks at all of their listeners: how many there are, and how many connections wait in all.
    fn look_at_listeners(&self, queues: &mut Queues) -> (usize, u64) {
        let (mut listeners, mut waiting) = (0, 0);
        for process in &self.processes {
            for one in &process.listeners {
                let Ok(copy) = child::pidfd_getfd(&process.handle, one.fd) else { continue };
                let Ok(now) = queue(&copy) else { continue };
                queues.take(one.line.inode, || one.line.local.to_string(), now.waiting, Some(now.backlog));
                if let Ok(dropped) = socket::dropped(&copy) {
                    queues.take_dropped(one.line.inode, dropped);
                }
                (listeners, waiting) = (listeners + 1, waiting + u64::from(now.waiting));
            }
        }
        (listeners, waiting)
    }

    /// Looks at all of their connections, and tells each.
    fn look(&mut self, round: usize, mut told: impl FnMut(&End, &socket::Sending)) -> Sending {
        let mut seen = Sending::default();
        for process in &self.processes {
            for (one, far) in &process.connections {
                let Ok(copy) = child::pidfd_getfd(&process.handle, one.fd) else { continue };
                let Ok(now) = sending(&copy) else { continue };
                let copy = File::from(copy);
                let Ok(inode) = copy.metadata().map(|data| data.ino()) else { continue };
                // Its number may be another connection's by now.
                let listed = End { inode, local: one.line.local, remote: one.line.remote, far: *far };
                let end = if inode == one.line.inode { Some(listed) } else { self.end(inode, &copy) };
                let Some(end) = end else { continue };
                let nodelay = int_option(&copy, SockOpt::NoDelay).unwrap_or(0) != 0;
                // With TCP_NODELAY nothing is kept for an acknowledgement: what is unsent goes at once.
                let held = now.waits_for_acknowledgement() && !nodelay;
                seen.looks += 1;
                seen.held += u64::from(held);
                seen.without_nodelay += u64::from(held);
                let unread = is_unread(&copy).is_ok_and(|unread| unread).then_some(round);
                self.each.entry(inode).or_default().take(unread, now.received, held);
                told(&end, &now);
            }
        }
        seen
    }

    /// A connection that was not listed.
    fn end(&self, inode: u64, connection: &File) -> Option<End> {
        let (Ok(Addr::Tcp(local)), Ok(Addr::Tcp(remote))) =
            (socket::local_addr(connection), socket::peer_addr(connection))
        else {
            return None;
        };
        Some(End { inode, local, remote, far: Far::of(&self.ports, local, remote) })
    }
}

impl Looked {
    fn take(&mut self, unread: Option<usize>, received: u32, held: bool) {
        self.looks += 1;
        self.held += u64::from(held);
        self.unread.extend(unread);
        self.came |= self.received.replace(received).is_some_and(|before| before != received);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::fd::AsRawFd;

    fn looked(rounds: impl Iterator<Item = usize>, received: impl Fn(usize) -> u32) -> Looked {
        let mut one = Looked::default();
        rounds.for_each(|round| one.take(Some(round), received(round), false));
        one
    }

    /// Planted fault: each process's descriptor of a listener is a queue of its own (`shared` not asked).
    #[test]
    fn a_listener_that_several_processes_share_is_one_queue() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let theirs = OwnedFd::from(listener.try_clone().unwrap());
        let inode = File::from(theirs.try_clone().unwrap()).metadata().unwrap().ino();
        let mut worker = std::process::Command::new("sleep").arg("20").stdin(theirs).spawn().unwrap();
        let mut side = Side::of(&mut [child::this(), worker.id().cast_signed()].into_iter());
        side.list(&mut |_line| true);
        let held = side.processes.iter().flat_map(|process| &process.listeners);
        let queues = held.filter(|one| one.line.inode == inode).count();
        worker.kill().unwrap();
        worker.wait().unwrap();
        assert_eq!((side.processes.len(), queues), (2, 1));
    }

    /// Planted faults: whoever has the number is taken for the connection that was listed (`inode` not asked), or is passed over.
    #[test]
    fn a_number_that_another_connection_has_by_now_is_looked_at_as_that_one() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let asks = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (asks, listener.accept().unwrap().0)
        };
        let inode_of = |socket: &std::net::TcpStream| {
            File::from(OwnedFd::from(socket.try_clone().unwrap())).metadata().unwrap().ino()
        };
        let (asks, listed) = connect();
        let (listed_inode, asks_inode) = (inode_of(&listed), inode_of(&asks));
        let mut side = Side::of(&mut std::iter::once(child::this()));
        side.list(&mut |_line| true);
        let (_other_asks, other) = connect();
        let connections = &mut side.processes[0].connections;
        // The number of the one that asks, which is taken by one that was accepted.
        connections.retain(|(one, _)| [listed_inode, asks_inode].contains(&one.line.inode));
        let asked = connections.iter_mut().find(|(one, _)| one.line.inode == asks_inode).unwrap();
        assert!(matches!(asked.1, Far::Server(_)));
        asked.0.fd = other.as_raw_fd();
        let mut told = Vec::new();
        side.look(0, |end, _| told.push((end.inode, end.far == Far::Client)));
        told.sort_unstable();
        let mut wanted = vec![(listed_inode, true), (inode_of(&other), true)];
        wanted.sort_unstable();
        assert_eq!(told, wanted);
    }

    /// Planted faults: the first list has others than none; one that has ended is another one.
    #[test]
    fn others_have_come_where_a_connection_was_not_on_the_list_before() {
        let list = |inodes: &[u64]| inodes.iter().copied().collect::<BTreeSet<u64>>();
        assert!(others_came(Some(&list(&[1, 2])), &list(&[2, 3])));
        assert!(!others_came(Some(&list(&[1, 2])), &list(&[2])));
        assert!(!others_came(None, &list(&[2])));
    }

    #[test]
    fn both_kinds_of_connection_are_looked_at_where_one_is_many() {
        assert_eq!([shares(10, 3), shares(1_000, 3), shares(3, 1_000)], [(10, 3), (29, 3), (3, 29)]);
        assert_eq!([shares(1_000, 1_000), shares(0, 0)], [(16, 16), (0, 0)]);
    }

    #[test]
    fn bytes_that_lie_unread_all_the_time_are_no_request() {
        let rounds = 40;
        let waits = |one: Looked| in_rounds(vec![0; rounds], [one].iter()).iter().sum::<u64>();
        // A farewell on a pooled connection; without the filter it would count in every round.
        assert_eq!(waits(looked(0..rounds, |_| 24)), 0);
        assert_eq!(waits(looked(0..rounds, |round| round as u32 * 100)), 40, "more comes all the time");
        assert_eq!(waits(looked(0..rounds - 1, |_| 24)), 39, "it was read in the end");
        assert_eq!(in_rounds(vec![3; 2], [looked(0..2, |_| 24)].iter()), [4, 4], "too few looks to tell");
    }
}

//! What TCP holds back on the target's connections and on their other ends, and what waits for the target to take it,
//! looked at often.
//!
//! A socket is fetched from its process for the microsecond in which it is asked (pidfd_getfd(2)), and nothing is set on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use dyno_record::observation::Sending;
use dyno_sys::socket::{SockOpt, int_option, sending, waiting};
use dyno_sys::{Pid, child, proc};

/// Connections that are looked at each time.
const CONNECTIONS_MAX: usize = 32;

/// Looks after which descriptors are listed anew: the tables of a machine with many connections are long.
const LIST_EVERY: u32 = 8;

/// Fewer rounds do not tell whether bytes lie in a connection for ever.
const STALE_MIN: usize = 20;

/// Whom to look at.
pub(super) struct Watch {
    own: Side,
    peers: Side,
    seen: Sending,
    looked: u32,
    /// Connections in the queues of its listeners, in each round.
    queued: Vec<u64>,
}

/// Processes at one end of the connections, and what was seen of each connection, by its inode.
struct Side {
    processes: Vec<Connections>,
    each: BTreeMap<u64, Looked>,
}

/// A process and its connections, as they were listed last.
struct Connections {
    pid: Pid,
    handle: OwnedFd,
    listed: Vec<i32>,
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
    pub(super) fn of(pid: Pid) -> Watch {
        let tree = proc::tree(pid);
        let peers = proc::peers(&tree);
        let known: BTreeSet<Pid> = tree.iter().copied().collect();
        let mut others = peers.into_iter().filter(|pid| !known.contains(pid) && *pid != child::this());
        Watch {
            own: Side::of(&mut tree.iter().copied()),
            peers: Side::of(&mut others),
            seen: Sending::default(),
            looked: 0,
            queued: Vec::new(),
        }
    }

    /// Looks at all connections once.
    pub(super) fn look(&mut self) {
        if self.looked.is_multiple_of(LIST_EVERY) {
            let sides = [&mut self.own, &mut self.peers];
            sides.into_iter().flat_map(|side| &mut side.processes).for_each(Connections::list);
        }
        self.looked += 1;
        let round = self.queued.len();
        let (own, peers) = (self.own.look(round), self.peers.look(round));
        if own.looks + own.waiting > 0 {
            self.queued.push(own.waiting);
        }
        self.seen.looks += own.looks.max(peers.looks);
        self.seen.held += own.held + peers.held;
        self.seen.held_by_peers += peers.held;
        self.seen.without_nodelay += own.without_nodelay + peers.without_nodelay;
    }

    /// What was seen; none where no connection could be asked.
    pub(super) fn finish(mut self) -> Option<Sending> {
        let each = self.own.each.values().chain(self.peers.each.values());
        if let Some(most) = each.filter(|one| one.held > 0).max_by_key(|one| one.held) {
            (self.seen.most_looks, self.seen.most_held) = (most.looks, most.held);
        }
        let waiting = in_rounds(self.queued, self.own.each.values());
        self.seen.rounds = waiting.len() as u64;
        self.seen.rounds_waiting = waiting.iter().filter(|waiting| **waiting > 0).count() as u64;
        self.seen.waiting = waiting.iter().sum();
        (self.seen.looks > 0).then_some(self.seen)
    }
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

impl Side {
    fn of(pids: &mut dyn Iterator<Item = Pid>) -> Side {
        let held = |pid| Some(Connections { pid, handle: child::pidfd_open(pid).ok()?, listed: Vec::new() });
        Side { processes: pids.filter_map(held).collect(), each: BTreeMap::new() }
    }

    /// Looks at all of them; `waiting` are those in queues of listeners only.
    fn look(&mut self, round: usize) -> Sending {
        let mut seen = Sending::default();
        for process in &self.processes {
            for fd in &process.listed {
                let Ok(copy) = child::pidfd_getfd(&process.handle, *fd) else { continue };
                let waits = waiting(&copy).map_or(0, u64::from);
                let Ok(now) = sending(&copy) else {
                    seen.waiting += waits;
                    continue;
                };
                let nodelay = int_option(&copy, SockOpt::NoDelay).unwrap_or(0) != 0;
                // With TCP_NODELAY nothing is kept for an acknowledgement: what is unsent goes at once.
                let held = now.waits_for_acknowledgement() && !nodelay;
                seen.looks += 1;
                seen.held += u64::from(held);
                seen.without_nodelay += u64::from(held);
                let Ok(inode) = File::from(copy).metadata().map(|data| data.ino()) else { continue };
                let unread = (waits > 0).then_some(round);
                self.each.entry(inode).or_default().take(unread, now.received, held);
            }
        }
        seen
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

impl Connections {
    fn list(&mut self) {
        self.listed = proc::tcp_sockets(self.pid);
        self.listed.truncate(CONNECTIONS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(rounds: impl Iterator<Item = usize>, received: impl Fn(usize) -> u32) -> Looked {
        let mut one = Looked::default();
        rounds.for_each(|round| one.take(Some(round), received(round), false));
        one
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

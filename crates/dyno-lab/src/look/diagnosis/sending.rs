//! What TCP holds back on the target's connections and on their other ends, and what waits for the target to take it,
//! looked at often.
//!
//! A socket is fetched from its process for the microsecond in which it is asked (pidfd_getfd(2)), and nothing is set on it.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use dyno_record::observation::Sending;
use dyno_sys::socket::{SockOpt, int_option, sending, waiting};
use dyno_sys::{Pid, child, proc};

/// Connections that are looked at each time.
const CONNECTIONS_MAX: usize = 32;

/// Looks after which descriptors are listed anew: the tables of a machine with many connections are long.
const LIST_EVERY: u32 = 8;

/// Whom to look at.
pub(super) struct Watch {
    own: Vec<Connections>,
    peers: Vec<Connections>,
    seen: Sending,
    looked: u32,
}

/// A process and its connections, as they were listed last.
struct Connections {
    pid: Pid,
    handle: OwnedFd,
    listed: Vec<i32>,
}

impl Watch {
    /// The target with its children, and who holds the other ends of its connections.
    pub(super) fn of(pid: Pid) -> Watch {
        let tree = proc::tree(pid);
        let peers = proc::peers(&tree);
        let known: BTreeSet<Pid> = tree.iter().copied().collect();
        let held = |pids: &mut dyn Iterator<Item = Pid>| {
            let held =
                |pid| Some(Connections { pid, handle: child::pidfd_open(pid).ok()?, listed: Vec::new() });
            pids.filter_map(held).collect()
        };
        let mut others = peers.into_iter().filter(|pid| !known.contains(pid) && *pid != child::this());
        Watch {
            own: held(&mut tree.iter().copied()),
            peers: held(&mut others),
            seen: Sending::default(),
            looked: 0,
        }
    }

    /// Looks at all connections once.
    pub(super) fn look(&mut self) {
        if self.looked.is_multiple_of(LIST_EVERY) {
            self.own.iter_mut().chain(&mut self.peers).for_each(Connections::list);
        }
        self.looked += 1;
        let (own, peers) = (held_of(&self.own), held_of(&self.peers));
        self.seen.looks += own.looks.max(peers.looks);
        self.seen.rounds += u64::from(own.looks + own.waiting > 0);
        self.seen.rounds_waiting += u64::from(own.waiting > 0);
        self.seen.waiting += own.waiting;
        self.seen.held += own.held + peers.held;
        self.seen.held_by_peers += peers.held;
        self.seen.without_nodelay += own.without_nodelay + peers.without_nodelay;
    }

    /// What was seen; none where no connection could be asked.
    pub(super) fn finish(self) -> Option<Sending> {
        (self.seen.looks > 0).then_some(self.seen)
    }
}

impl Connections {
    fn list(&mut self) {
        self.listed = proc::tcp_sockets(self.pid);
        self.listed.truncate(CONNECTIONS_MAX);
    }
}

fn held_of(processes: &[Connections]) -> Sending {
    let mut seen = Sending::default();
    for process in processes {
        for fd in &process.listed {
            let Ok(copy) = child::pidfd_getfd(&process.handle, *fd) else { continue };
            seen.waiting += waiting(&copy).map_or(0, u64::from);
            let Ok(now) = sending(&copy) else { continue };
            let nodelay = int_option(&copy, SockOpt::NoDelay).unwrap_or(0) != 0;
            // With TCP_NODELAY nothing is kept for an acknowledgement: what is unsent goes at once.
            let held = now.waits_for_acknowledgement() && !nodelay;
            seen.looks += 1;
            seen.held += u64::from(held);
            seen.without_nodelay += u64::from(held);
        }
    }
    seen
}

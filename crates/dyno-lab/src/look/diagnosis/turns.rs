//! Whose turn it is on the target's connections: where it owes an answer, and where it waits for one.
//!
//! Called by `sending` for each connection at each look.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use dyno_record::observation::{Asked, Serving};
use dyno_sys::socket::{self, Speaker};

/// Who is at the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Far {
    /// Who asks the target: it accepted the connection.
    Client,
    /// Whom the target asks: it opened the connection to this address.
    Server(SocketAddr),
}

/// All connections that were looked at, by inode.
#[derive(Default)]
pub(super) struct Turns {
    each: BTreeMap<u64, Turn>,
    looked: u32,
    /// Connections over all lists: accepted, those of them that were looked at, and opened.
    accepted: u64,
    chosen: u64,
    opened: u64,
    lists: u64,
}

/// One of them.
struct Turn {
    far: Far,
    looks: u64,
    /// Looks at which the target had spoken last, and at which its peer had.
    own: u64,
    peer: u64,
    /// Time since the target spoke, at looks at which it was the last.
    since_own_ms: u64,
    /// Segments with data when it was looked at first and last.
    first: Segments,
    last: Segments,
    /// The look at which it was seen last.
    seen: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Segments {
    sent: u32,
    received: u32,
}

impl Turns {
    /// All connections are going to be looked at once more.
    pub(super) fn begin_look(&mut self) {
        self.looked += 1;
    }

    /// They were listed: so many were accepted, so many of those are looked at, and so many were opened.
    pub(super) fn listed(&mut self, (accepted, chosen): (usize, usize), opened: usize) {
        self.accepted += accepted as u64;
        self.chosen += chosen as u64;
        self.opened += opened as u64;
        self.lists += 1;
    }

    /// One was looked at.
    pub(super) fn take(&mut self, inode: u64, far: Far, now: &socket::Sending) {
        let last = Segments { sent: now.segments_sent, received: now.segments_received };
        let new = || Turn { far, looks: 0, own: 0, peer: 0, since_own_ms: 0, first: last, last, seen: 0 };
        let turn = self.each.entry(inode).or_insert_with(new);
        turn.looks += 1;
        (turn.last, turn.seen) = (last, self.looked);
        match now.last_speaker() {
            Speaker::Own => {
                turn.own += 1;
                turn.since_own_ms += u64::from(now.sent_ms);
            }
            Speaker::Peer => turn.peer += 1,
            Speaker::Either => {}
        }
    }

    /// What was seen of the connections to an address: looks, those at which its answer was waited for, and how long it
    /// had been then on average.
    pub(super) fn at(&self, remote: SocketAddr, asked: Asked) -> Asked {
        let those = || self.each.values().filter(move |turn| turn.far == Far::Server(remote));
        let looks_awaiting: u64 = those().map(|turn| turn.own).sum();
        let since: u64 = those().map(|turn| turn.since_own_ms).sum();
        let looks = those().map(|turn| turn.looks).sum();
        Asked { looks, looks_awaiting, awaited_ms: since as f64 / looks_awaiting.max(1) as f64, ..asked }
    }

    /// What was seen of the connections that the target accepted, in so many seconds; none where there were none.
    pub(super) fn serving(&self, seconds: f64) -> Option<Serving> {
        let clients = || self.each.values().filter(|turn| turn.far == Far::Client);
        let looks: u64 = clients().map(|turn| turn.looks).sum();
        let counted = clients().filter(|turn| turn.last.sent != turn.first.sent || turn.seen < self.looked);
        let looks_owed = counted.map(|turn| turn.looks - turn.own).sum();
        let received = |turn: &Turn| u64::from(turn.last.received.wrapping_sub(turn.first.received));
        let segments: u64 = clients().map(received).sum();
        let each_stands_for = self.accepted as f64 / self.chosen.max(1) as f64;
        let opened = || self.each.values().filter(|turn| turn.far != Far::Client);
        let of_opened: u64 = opened().map(|turn| turn.looks).sum();
        let at_most: u64 = opened().map(|turn| turn.looks - turn.peer).sum();
        let mean = |connections: u64| connections as f64 / self.lists.max(1) as f64;
        (looks > 0 && seconds > 0.0).then(|| Serving {
            connections: mean(self.accepted),
            looks,
            looks_owed,
            requests_per_s: segments as f64 * each_stands_for / seconds,
            awaiting: mean(self.opened) * at_most as f64 / of_opened.max(1) as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SERVER: Far =
        Far::Server(SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9_000));

    fn spoke(own: bool, segments: u32) -> socket::Sending {
        let (sent_ms, received_ms) = if own { (10, 30) } else { (30, 10) };
        let (segments_sent, segments_received) = (segments, segments);
        socket::Sending { sent_ms, received_ms, segments_sent, segments_received, ..Default::default() }
    }

    /// Planted faults: a client that is never answered counts; one that hung up before the end does not; looks at clients
    /// and servers mixed.
    #[test]
    fn answers_are_owed_to_clients_and_awaited_from_servers() {
        let mut turns = Turns::default();
        turns.listed((40, 4), 10);
        for look in 0..10 {
            turns.begin_look();
            turns.take(1, Far::Client, &spoke(look == 5, look));
            turns.take(2, Far::Client, &spoke(false, 7));
            turns.take(3, SERVER, &spoke(look != 5, look));
            if look < 5 {
                turns.take(4, Far::Client, &spoke(false, 1));
            }
        }
        let serving = turns.serving(2.0).unwrap();
        assert_eq!((serving.looks, serving.looks_owed), (25, 9 + 5));
        // Nine segments, each for ten of such connections, in two seconds.
        assert_eq!((serving.connections, serving.requests_per_s), (40.0, 45.0));
        assert_eq!(serving.awaiting, 9.0);
        let Far::Server(remote) = SERVER else { unreachable!() };
        let asked = turns.at(remote, Asked { connections: 1.0, ..Asked::default() });
        assert_eq!((asked.looks, asked.looks_awaiting, asked.awaited_ms), (10, 9, 10.0));
        assert_eq!(Turns::default().serving(2.0), None);
    }
}

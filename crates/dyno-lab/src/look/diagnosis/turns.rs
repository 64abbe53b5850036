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
    looks: Vec<Look>,
    /// Segments when it was looked at first and last.
    first: Segments,
    last: Segments,
}

/// What was seen of it once.
#[derive(Clone, Copy)]
struct Look {
    round: u32,
    speaker: Speaker,
    since_own_ms: u32,
}

/// Segments with data, and those without any.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Segments {
    sent: u32,
    received: u32,
    bare_sent: u32,
    bare_received: u32,
}

/// How much more often one side has to have acknowledged without a word for it to be told by that whose turn it is.
const BARE_RATIO: u32 = 2;

impl Turn {
    /// Who had spoken last where both had within one tick, by who acknowledges without a word: the kernel does so for one who
    /// has nothing to say for some 40 ms (`TCP_ATO_MIN`), while who answers at once acknowledges with the answer. It is that
    /// one's turn.
    fn within_a_tick(&self) -> Speaker {
        let received = self.last.bare_received.wrapping_sub(self.first.bare_received);
        let sent = self.last.bare_sent.wrapping_sub(self.first.bare_sent);
        match () {
            () if received > BARE_RATIO.saturating_mul(sent) => Speaker::Own,
            () if sent > BARE_RATIO.saturating_mul(received) => Speaker::Peer,
            () => Speaker::Either,
        }
    }

    /// The looks at which that one had spoken last.
    fn looks_after(&self, wanted: Speaker) -> impl Iterator<Item = Look> + '_ {
        let within_a_tick = self.within_a_tick();
        let speaker = move |look: &Look| match look.speaker {
            Speaker::Either => within_a_tick,
            told => told,
        };
        self.looks.iter().copied().filter(move |look| speaker(look) == wanted)
    }

    /// How many looks there were, less those after that one's words.
    fn looks_but(&self, left_out: Speaker) -> u64 {
        (self.looks.len() - self.looks_after(left_out).count()) as u64
    }

    fn seen_last(&self) -> u32 {
        self.looks.last().map_or(0, |look| look.round)
    }
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
        let last = Segments {
            sent: now.segments_sent,
            received: now.segments_received,
            bare_sent: now.bare_sent,
            bare_received: now.bare_received,
        };
        let turn =
            self.each.entry(inode).or_insert_with(|| Turn { far, looks: Vec::new(), first: last, last });
        turn.last = last;
        turn.looks.push(Look { round: self.looked, speaker: now.last_speaker(), since_own_ms: now.sent_ms });
    }

    /// What was seen of the connections to an address: looks, those at which its answer was waited for, at how many of them at
    /// a time, and how long it had been then on average.
    pub(super) fn at(&self, remote: SocketAddr, asked: Asked) -> Asked {
        let those = || self.each.values().filter(move |turn| turn.far == Far::Server(remote));
        let (mut since_ms, mut rounds) = (0, BTreeMap::<u32, u64>::new());
        for look in those().flat_map(|turn| turn.looks_after(Speaker::Own)) {
            since_ms += u64::from(look.since_own_ms);
            *rounds.entry(look.round).or_default() += 1;
        }
        let looks_awaiting = rounds.values().sum();
        Asked {
            looks: those().map(|turn| turn.looks.len() as u64).sum(),
            looks_awaiting,
            most_awaiting: rounds.values().copied().max().unwrap_or(0),
            rounds: u64::from(self.looked),
            awaited_ms: since_ms as f64 / looks_awaiting.max(1) as f64,
            ..asked
        }
    }

    /// What was seen of the connections that the target accepted, in so many seconds; none where there were none.
    pub(super) fn serving(&self, seconds: f64) -> Option<Serving> {
        let clients = || self.each.values().filter(|turn| turn.far == Far::Client);
        let looks: u64 = clients().map(|turn| turn.looks.len() as u64).sum();
        let counted =
            clients().filter(|turn| turn.last.sent != turn.first.sent || turn.seen_last() < self.looked);
        let looks_owed = counted.map(|turn| turn.looks_but(Speaker::Own)).sum();
        let received = |turn: &Turn| u64::from(turn.last.received.wrapping_sub(turn.first.received));
        let segments: u64 = clients().map(received).sum();
        let each_stands_for = self.accepted as f64 / self.chosen.max(1) as f64;
        let opened = || self.each.values().filter(|turn| turn.far != Far::Client);
        let of_opened: u64 = opened().map(|turn| turn.looks.len() as u64).sum();
        let at_most: u64 = opened().map(|turn| turn.looks_but(Speaker::Peer)).sum();
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
        assert_eq!((asked.most_awaiting, asked.rounds), (1, 10));
        assert_eq!(Turns::default().serving(2.0), None);
    }

    /// Planted faults: what lies within a tick is nobody's (`within_a_tick` without its first or second arm); one acknowledgement
    /// is enough (`BARE_RATIO` of 0).
    #[test]
    fn within_a_tick_it_is_the_turn_of_who_acknowledges_without_a_word() {
        let looked = |bare_sent: u32, bare_received: u32| {
            let mut turns = Turns::default();
            turns.listed((1, 1), 1);
            for look in 0..10 {
                turns.begin_look();
                let [segments_sent, segments_received] = [look; 2];
                let at_once = socket::Sending { segments_sent, segments_received, ..Default::default() };
                let (bare_sent, bare_received) = (bare_sent * look, bare_received * look);
                let now = socket::Sending { sent_ms: 12, received_ms: 12, acknowledged_ms: 12, ..at_once };
                turns.take(1, Far::Client, &socket::Sending { bare_sent, bare_received, ..now });
                turns.take(2, SERVER, &socket::Sending { bare_sent, bare_received, ..now });
            }
            let Far::Server(remote) = SERVER else { unreachable!() };
            let asked = turns.at(remote, Asked { connections: 1.0, ..Asked::default() });
            let serving = turns.serving(2.0).unwrap();
            (asked.looks_awaiting, asked.awaited_ms, serving.looks_owed, serving.awaiting)
        };
        assert_eq!(looked(0, 1), (10, 12.0, 0, 1.0), "each asks at once and waits");
        assert_eq!(looked(1, 0), (0, 0.0, 10, 0.0), "it is answered at once and rests");
        let counted_at_most = (0, 0.0, 10, 1.0);
        assert_eq!([looked(0, 0), looked(1, 1), looked(1, 2)], [counted_at_most; 3], "nothing tells");
    }
}

//! Whose turn it is on the target's connections: where it owes an answer, and where it waits for one.
//!
//! Called by `sending` for each connection at each look.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use dyno_record::observation::{Asked, Serving};
use dyno_sys::clock;
use dyno_sys::socket::{self, Speaker};

/// Who is at the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Far {
    /// Who asks the target: it accepted the connection.
    Client,
    /// Whom the target asks: it opened the connection to this address.
    Server(SocketAddr),
}

impl Far {
    /// By whether somebody listens at the near end, of these ports.
    pub(super) fn of(ports: &BTreeSet<u16>, local: SocketAddr, remote: SocketAddr) -> Far {
        if ports.contains(&local.port()) { Far::Client } else { Far::Server(remote) }
    }
}

/// A connection, as the process sees it that holds this end.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) inode: u64,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) far: Far,
}

/// All connections that were looked at, by inode.
#[derive(Default)]
pub(super) struct Turns {
    each: BTreeMap<u64, Turn>,
    /// Their inodes, by local and remote address.
    by_ends: BTreeMap<(SocketAddr, SocketAddr), u64>,
    looked: u32,
    /// Connections over all lists: accepted, and opened.
    accepted: u64,
    opened: u64,
    lists: u64,
    /// When the first look began, and the last.
    began_ns: u64,
    now_ns: u64,
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
    since_peer_ms: u32,
}

/// Segments with data, those without any, and bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Segments {
    sent: u32,
    received: u32,
    bare_sent: u32,
    bare_received: u32,
    bytes_sent: u32,
    bytes_received: u32,
}

/// How much more often one side has to have acknowledged without a word for it to be told by that whose turn it is.
const BARE_RATIO: u32 = 2;

/// What nobody has answered for so long has been acknowledged: after some 40 ms (`TCP_ATO_MIN`) and a few ticks.
const ACKNOWLEDGED_MS: u32 = 60;

impl Turn {
    /// Who had spoken last where both had within one tick, by who acknowledges without a word: the kernel does so for one who
    /// has nothing to say for some 40 ms, while who answers at once acknowledges with the answer. It is that one's turn. What
    /// is said in several pieces is acknowledged without a word at once, too. That tells nothing, but where both have been silent
    /// for long and the other one has acknowledged nothing: then that one has nothing to answer.
    fn within_a_tick(&self) -> Speaker {
        let over = |of: fn(&Segments) -> u32| of(&self.last).wrapping_sub(of(&self.first));
        let (received, sent) = (over(|all| all.bare_received), over(|all| all.bare_sent));
        let (said, heard) = (over(|all| all.sent), over(|all| all.received));
        let is_long = self.looks.iter().any(|look| {
            look.speaker == Speaker::Either && look.since_own_ms.min(look.since_peer_ms) >= ACKNOWLEDGED_MS
        });
        let is_more = |one: u32, pieces: u32, other: u32| {
            let without = if is_long && other == 0 { one } else { one.saturating_sub(pieces) };
            without > BARE_RATIO.saturating_mul(other)
        };
        match () {
            () if is_more(received, said.saturating_sub(heard), sent) => Speaker::Own,
            () if is_more(sent, heard.saturating_sub(said), received) => Speaker::Peer,
            () => Speaker::Either,
        }
    }

    /// The looks at which such a one had spoken last.
    fn looks_after(&self, is_wanted: impl Fn(Speaker) -> bool) -> impl Iterator<Item = Look> {
        let within_a_tick = self.within_a_tick();
        let speaker = move |look: &Look| match look.speaker {
            Speaker::Either => within_a_tick,
            told => told,
        };
        self.looks.iter().copied().filter(move |look| is_wanted(speaker(look)))
    }

    /// Whether it is a talk: the peer said something while it was watched, or it ended. A log that is only sent on waits
    /// for no answer.
    fn is_talk(&self, looked: u32, has_spoken: fn(&Segments) -> u32) -> bool {
        has_spoken(&self.last) != has_spoken(&self.first) || self.seen_last() < looked
    }

    fn seen_first(&self) -> u32 {
        self.looks.first().map_or(0, |look| look.round)
    }

    fn seen_last(&self) -> u32 {
        self.looks.last().map_or(0, |look| look.round)
    }
}

impl Turns {
    /// All connections are going to be looked at once more.
    pub(super) fn begin_look(&mut self) {
        self.begin_look_at(clock::mono_ns());
    }

    fn begin_look_at(&mut self, now_ns: u64) {
        self.began_ns = if self.looked == 0 { now_ns } else { self.began_ns };
        (self.looked, self.now_ns) = (self.looked + 1, now_ns);
    }

    /// Segments per second over so many connections, by those of them that were looked at.
    fn per_s<'t>(
        &self,
        those: impl Iterator<Item = &'t Turn>,
        segments: fn(&Segments) -> u32,
        connections: f64,
    ) -> f64 {
        let (mut sum, mut rounds) = (0, 0);
        for turn in those {
            sum += u64::from(segments(&turn.last).wrapping_sub(segments(&turn.first)));
            rounds += u64::from(turn.seen_last() - turn.seen_first());
        }
        let round_s = (self.now_ns - self.began_ns) as f64 / 1e9 / f64::from(self.looked.max(2) - 1);
        if rounds == 0 || round_s == 0.0 { 0.0 } else { connections * sum as f64 / rounds as f64 / round_s }
    }

    /// They were listed: so many were accepted, and so many were opened.
    pub(super) fn listed(&mut self, accepted: usize, opened: usize) {
        self.accepted += accepted as u64;
        self.opened += opened as u64;
        self.lists += 1;
    }

    /// One was looked at.
    pub(super) fn take(&mut self, end: &End, now: &socket::Sending) {
        let End { inode, local, remote, far } = *end;
        self.by_ends.insert((local, remote), inode);
        let last = Segments {
            sent: now.segments_sent,
            received: now.segments_received,
            bare_sent: now.bare_sent,
            bare_received: now.bare_received,
            bytes_sent: now.acknowledged,
            bytes_received: now.received,
        };
        let turn =
            self.each.entry(inode).or_insert_with(|| Turn { far, looks: Vec::new(), first: last, last });
        turn.last = last;
        let (since_own_ms, since_peer_ms) = (now.sent_ms, now.received_ms);
        // While one side has said nothing yet it is not by their times that the other one has spoken last: a connection's begin
        // counts there as a word of the far end.
        let speaker = match (now.segments_sent, now.segments_received) {
            (1.., 0) => Speaker::Own,
            (0, 1..) => Speaker::Peer,
            _ => now.last_speaker(),
        };
        turn.looks.push(Look { round: self.looked, speaker, since_own_ms, since_peer_ms });
    }

    /// The far end of one was looked at in the same round, whose kernel is ours: what it said last has not been acknowledged,
    /// so it has spoken after the target has.
    pub(super) fn take_far(&mut self, end: &End, now: &socket::Sending) {
        let inode = self.by_ends.get(&(end.remote, end.local));
        let turn = inode.and_then(|inode| self.each.get_mut(inode));
        let Some(look) = turn.and_then(|turn| turn.looks.last_mut()) else { return };
        let is_of_now = look.round == self.looked;
        if is_of_now && look.speaker == Speaker::Either && now.unacknowledged > 0 {
            look.speaker = Speaker::Peer;
        }
    }

    /// What was seen of the connections to an address: looks, those at which its answer was waited for, at how many of them at
    /// a time, and how long it had been then on average.
    pub(super) fn at(&self, remote: SocketAddr, asked: Asked) -> Asked {
        let those = || self.each.values().filter(move |turn| turn.far == Far::Server(remote));
        let talks = || those().filter(|turn| turn.is_talk(self.looked, |segments| segments.received));
        let sent_per_s = self.per_s(talks(), |segments| segments.sent, asked.connections);
        let (mut since_ms, mut rounds) = (0, BTreeMap::<u32, u64>::new());
        for look in talks().flat_map(|turn| turn.looks_after(|speaker| speaker == Speaker::Own)) {
            since_ms += u64::from(look.since_own_ms);
            *rounds.entry(look.round).or_default() += 1;
        }
        let looks_awaiting = rounds.values().sum();
        Asked {
            looks: those().map(|turn| turn.looks.len() as u64).sum(),
            looks_awaiting,
            different: those().count() as u64,
            most_awaiting: most(rounds.into_values().collect()),
            rounds: u64::from(self.looked),
            awaited_ms: since_ms as f64 / looks_awaiting.max(1) as f64,
            sent_per_s,
            ..asked
        }
    }

    /// Bytes per second that came over all of its connections, and that went.
    pub(super) fn bytes_per_s(&self) -> [f64; 2] {
        let connections = (self.accepted + self.opened) as f64 / self.lists.max(1) as f64;
        [|all: &Segments| all.bytes_received, |all: &Segments| all.bytes_sent]
            .map(|bytes| self.per_s(self.each.values(), bytes, connections))
    }

    /// What was seen of the connections that the target accepted; none where there were none.
    pub(super) fn serving(&self) -> Option<Serving> {
        let clients = || self.each.values().filter(|turn| turn.far == Far::Client);
        let looks: u64 = clients().map(|turn| turn.looks.len() as u64).sum();
        let talks = clients().filter(|turn| turn.is_talk(self.looked, |segments| segments.sent));
        let (mut looks_owed, mut since_ms) = (0, 0);
        for look in talks.flat_map(|turn| turn.looks_after(|speaker| speaker != Speaker::Own)) {
            looks_owed += 1;
            since_ms += u64::from(look.since_peer_ms);
        }
        let opened = || self.each.values().filter(|turn| turn.far != Far::Client);
        let of_opened: u64 = opened().map(|turn| turn.looks.len() as u64).sum();
        let at_most = opened().flat_map(|turn| turn.looks_after(|speaker| speaker != Speaker::Peer)).count();
        let mean = |connections: u64| connections as f64 / self.lists.max(1) as f64;
        (looks > 0).then(|| Serving {
            connections: mean(self.accepted),
            looks,
            looks_owed,
            owed_ms: since_ms as f64 / looks_owed.max(1) as f64,
            awaiting: mean(self.opened) * at_most as f64 / of_opened.max(1) as f64,
            received_per_s: self.per_s(clients(), |segments| segments.received, mean(self.accepted)),
        })
    }
}

/// Part of the looks that may have found more: somebody else asks now and then whether a server is there.
const RARE: f64 = 0.05;

/// The most of these, but for rare ones.
fn most(mut counts: Vec<u64>) -> u64 {
    counts.sort_unstable();
    let rare = (RARE * counts.len() as f64) as usize;
    counts.len().checked_sub(rare + 1).map_or(0, |last| counts[last])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), port)
    }

    /// One that the target accepted from such a port, and one that it opened.
    fn client(port: u16) -> End {
        End { inode: port.into(), local: at(80), remote: at(port), far: Far::Client }
    }

    fn server(port: u16) -> End {
        End { inode: port.into(), local: at(port), remote: at(9_000), far: Far::Server(at(9_000)) }
    }

    fn spoke(own: bool, segments: u32) -> socket::Sending {
        let (sent_ms, received_ms) = if own { (10, 30) } else { (30, 10) };
        let (segments_sent, segments_received) = (segments, segments);
        socket::Sending { sent_ms, received_ms, segments_sent, segments_received, ..Default::default() }
    }

    /// Planted faults: segments the other way; all connections as if those looked at were all; the looks counted for the
    /// seconds between them.
    #[test]
    fn what_was_sent_and_received_is_told_per_second() {
        let mut turns = Turns::default();
        turns.listed(8, 4);
        for look in 0..11_u64 {
            turns.begin_look_at(1_000_000_000 + look * 20_000_000);
            // In 20 ms two requests come on each of the connections, and a hundred questions go out on each.
            let (asked, segment) = (look as u32 * 100, look as u32 * 2);
            let of = |sent, received| socket::Sending {
                segments_sent: sent,
                segments_received: received,
                received: 100 * received,
                acknowledged: 10 * sent,
                ..spoke(true, 0)
            };
            turns.take(&client(1), &of(segment / 2, segment));
            turns.take(&client(2), &of(segment / 2, segment));
            turns.take(&server(3), &of(asked, asked / 2));
        }
        let asked = turns.at(at(9_000), Asked { connections: 4.0, ..Asked::default() });
        let serving = turns.serving().unwrap();
        assert_eq!((asked.sent_per_s.round(), serving.received_per_s.round()), (20_000.0, 800.0));
        assert_eq!(turns.bytes_per_s().map(f64::round), [1_080_000.0, 204_000.0], "of twelve connections");
    }

    /// Planted faults: a client that is never answered counts, or who never answers; one that hung up before the end does not; looks at clients
    /// and servers mixed.
    #[test]
    fn answers_are_owed_to_clients_and_awaited_from_servers() {
        let mut turns = Turns::default();
        turns.listed(40, 10);
        for look in 0..10 {
            turns.begin_look();
            turns.take(&client(1), &spoke(look == 5, look));
            turns.take(&client(2), &spoke(false, 7));
            turns.take(&server(3), &spoke(look != 5, look));
            // A log, to which nobody says anything.
            turns.take(&server(5), &spoke(true, 1));
            if look < 5 {
                turns.take(&client(4), &spoke(false, 1));
            }
        }
        let serving = turns.serving().unwrap();
        assert_eq!((serving.looks, serving.looks_owed), (25, 9 + 5));
        assert_eq!((serving.connections, serving.owed_ms), (40.0, 10.0));
        assert_eq!(
            serving.awaiting, 9.5,
            "of two connections, one of which is asked once more and once less"
        );
        let asked = turns.at(at(9_000), Asked { connections: 1.0, ..Asked::default() });
        assert_eq!((asked.looks, asked.looks_awaiting, asked.awaited_ms), (20, 9, 10.0));
        assert_eq!((asked.most_awaiting, asked.rounds), (1, 10));
        assert_eq!(Turns::default().serving(), None);
        assert_eq!([most(vec![3; 20]), most(vec![1, 2, 3]), most(Vec::new())], [3, 3, 0]);
        assert_eq!(most([vec![2; 39], vec![9]].concat()), 2, "once in forty looks");
    }

    /// A connection for each question, each looked at once. Planted faults: the begin of a connection is a word of the far end (both
    /// arms of `take`); all of them are one.
    #[test]
    fn where_one_side_has_said_nothing_yet_it_is_its_turn() {
        let mut turns = Turns::default();
        for look in 0..10 {
            turns.begin_look();
            let now = |segments_sent, segments_received| socket::Sending {
                sent_ms: 2,
                received_ms: 2,
                segments_sent,
                segments_received,
                ..Default::default()
            };
            turns.take(&server(100 + look), &now(1, 0));
            turns.take(&client(200 + look), &now(0, 1));
        }
        turns.begin_look();
        let asked = turns.at(at(9_000), Asked { connections: 1.0, ..Asked::default() });
        assert_eq!((asked.looks_awaiting, asked.different, asked.most_awaiting), (10, 10, 1));
        assert_eq!(turns.serving().unwrap().looks_owed, 10);
    }

    /// Planted faults: what lies within a tick is nobody's (`within_a_tick` without its first or second arm); one acknowledgement
    /// is enough (`BARE_RATIO` of 0).
    #[test]
    fn within_a_tick_it_is_the_turn_of_who_acknowledges_without_a_word() {
        let looked = |bare_sent: u32, bare_received: u32| {
            let mut turns = Turns::default();
            turns.listed(1, 1);
            for look in 0..10 {
                turns.begin_look();
                let [segments_sent, segments_received] = [look; 2];
                let at_once = socket::Sending { segments_sent, segments_received, ..Default::default() };
                let (bare_sent, bare_received) = (bare_sent * look, bare_received * look);
                let now = socket::Sending { sent_ms: 12, received_ms: 12, acknowledged_ms: 12, ..at_once };
                turns.take(&client(1), &socket::Sending { bare_sent, bare_received, ..now });
                turns.take(&server(2), &socket::Sending { bare_sent, bare_received, ..now });
            }
            let asked = turns.at(at(9_000), Asked { connections: 1.0, ..Asked::default() });
            let serving = turns.serving().unwrap();
            (asked.looks_awaiting, asked.awaited_ms, serving.looks_owed, serving.awaiting)
        };
        assert_eq!(looked(0, 1), (10, 12.0, 0, 1.0), "each asks at once and waits");
        assert_eq!(looked(1, 0), (0, 0.0, 10, 0.0), "it is answered at once and rests");
        let counted_at_most = (0, 0.0, 10, 1.0);
        assert_eq!([looked(0, 0), looked(1, 1), looked(1, 2)], [counted_at_most; 3], "nothing tells");
    }

    /// WEBrick and others send head and body one after the other. Planted faults: pieces not asked (owed: 0); long silence not
    /// asked (owed: 10); nor whether the other one has acknowledged something (owed: 0).
    #[test]
    fn acknowledgements_of_pieces_do_not_tell_whose_turn_it_is_but_long_silence_does() {
        let owed = |since_ms: u32, bare_sent: u32| {
            let mut turns = Turns::default();
            turns.listed(1, 0);
            for look in 0..10 {
                turns.begin_look();
                let since_ms = if look == 5 { since_ms } else { 12 };
                let (sent_ms, received_ms, acknowledged_ms) = (since_ms, since_ms, since_ms);
                let (segments_sent, segments_received) = (2 * look, look);
                let (bare_sent, bare_received) = (bare_sent * u32::from(look > 4), look);
                let rest = socket::Sending::default();
                let now =
                    socket::Sending { bare_sent, bare_received, segments_sent, segments_received, ..rest };
                turns.take(&client(1), &socket::Sending { sent_ms, received_ms, acknowledged_ms, ..now });
            }
            turns.serving().unwrap().looks_owed
        };
        assert_eq!([owed(12, 0), owed(70, 0), owed(70, 1)], [10, 0, 10]);
    }

    /// Planted faults: the far end not asked (owed: 0); what it said in an earlier round, or before the target did, counts; the ends
    /// the same way round.
    #[test]
    fn what_a_far_end_on_this_machine_has_said_unacknowledged_came_last() {
        let owed = |of: u32, tick_ms: u32, far: End| {
            let mut turns = Turns::default();
            turns.listed(1, 0);
            for look in 0..10 {
                turns.begin_look();
                let segments =
                    socket::Sending { segments_sent: look, segments_received: look, ..Default::default() };
                let now = socket::Sending { sent_ms: 12, received_ms: 12, acknowledged_ms: 12, ..segments };
                if look < of {
                    let received_ms = 12 + tick_ms;
                    turns.take(&client(1), &socket::Sending { bare_received: look, received_ms, ..now });
                }
                turns.take_far(&far, &socket::Sending { unacknowledged: u32::from(look != 4), ..now });
            }
            turns.serving().unwrap().looks_owed
        };
        let far = End { inode: 7, local: at(1), remote: at(80), far: Far::Server(at(80)) };
        assert_eq!([owed(10, 0, far), owed(5, 0, far), owed(10, 4, far)], [9, 4, 0]);
        assert_eq!(owed(10, 0, client(1)), 0, "another connection");
    }
}

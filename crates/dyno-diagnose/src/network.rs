//! Rule for bytes that TCP keeps back: Nagle's algorithm against the other side's delayed acknowledgements.

use dyno_record::finding::{Class, Confidence};
use dyno_record::observation::Sending;

use super::draft::{Draft, Outcome, percent};
use super::facts::Facts;

/// Share of the looks at connections that found bytes kept back. A write behind another is kept for as long as a packet
/// takes to be acknowledged: for microseconds on one machine, but for 40 ms and more where the other side waits for more.
const HELD_SHARE_MIN: f64 = 0.2;
/// Fewer looks prove nothing.
const LOOKS_MIN: u64 = 10;

/// Looks at one connection from which its own share counts: of many connections, one is caught a few times by chance.
const MOST_LOOKS_MIN: u64 = 30;

/// Share of the looks that found bytes kept back: at all connections, or at the one where it was most often. Those that stand
/// idle beside say nothing about it.
pub(super) fn held_share(sending: &Sending) -> f64 {
    let share = |held: u64, looks: u64| held as f64 / looks.max(1) as f64;
    let most =
        if sending.most_looks < MOST_LOOKS_MIN { 0.0 } else { share(sending.most_held, sending.most_looks) };
    share(sending.held, sending.looks).max(most)
}

/// Small pieces wait until the other side acknowledges the piece before, which it delays.
pub(super) fn delayed_ack(facts: &Facts<'_>) -> Outcome {
    let packets = facts.seen.packets.as_ref();
    let sending = packets.and_then(|packets| packets.sending).filter(|sending| sending.looks > 0);
    if sending.is_none() && packets.is_some_and(|packets| packets.connections == 0) {
        return Outcome::Against("it holds no TCP connection".to_owned());
    }
    let Some(sending) = sending else {
        return Outcome::Unseen("what TCP keeps back on its connections (the right to trace it)");
    };
    let share = held_share(&sending);
    if sending.looks < LOOKS_MIN || share < HELD_SHARE_MIN {
        let text = format!(
            "at {} of {} looks at connections TCP kept small pieces back",
            sending.held, sending.looks
        );
        let share = if sending.looks < LOOKS_MIN { 0.0 } else { share };
        return Outcome::near(&[(share, HELD_SHARE_MIN)], text);
    }
    let is_one = share * sending.looks as f64 > sending.held as f64;
    let one = is_one.then(|| {
        format!(
            "at the connection to which it happened most, at {} of {} looks",
            sending.most_held, sending.most_looks
        )
    });
    let peers = sending.held_by_peers as f64 / sending.held.max(1) as f64;
    let whose = if peers >= 0.5 { "what its peers send to it" } else { "what it sends" };
    let summary = format!(
        "{whose} waits in small pieces for the other side's acknowledgement, {} of the time",
        percent(share)
    );
    Outcome::Found(
        Draft::new(Class::DelayedAck, share, summary)
            .sure(if share >= 2.0 * HELD_SHARE_MIN { Confidence::High } else { Confidence::Medium })
            .fact(format!("at {} of {} looks at connections less than a segment was unsent while a piece before it was not acknowledged", sending.held, sending.looks), share, "share")
            .fact(format!("at {} of them TCP_NODELAY was not set", sending.without_nodelay), sending.without_nodelay as f64, "looks")
            .fact(format!("{} of them were at the other end, on this machine", percent(peers)), peers, "share")
            .sign_if(one)
            .next("write a message with one call (writev, a buffer), or set TCP_NODELAY on the side that sends in pieces"),
    )
}

#[cfg(test)]
mod tests {
    use dyno_record::finding::Class;
    use dyno_record::observation::{Packets, Sending};

    use crate::scene::Scene;

    #[test]
    fn pieces_that_are_kept_back_most_of_the_time_are_found_and_a_few_are_not() {
        let held = |held: u64| {
            Scene::new(&[0.001]).on("main;work", 1).with(|seen| {
                let sending = Sending { looks: 100, held, without_nodelay: held, ..Sending::default() };
                seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() });
            })
        };
        assert_eq!(held(90).classes(), [Class::DelayedAck]);
        assert_eq!(held(3).classes(), []);
    }

    #[test]
    fn connections_that_stand_idle_beside_hide_nothing() {
        let beside = |most_held: u64, most_looks: u64| {
            Scene::new(&[0.001]).on("main;work", 1).with(|seen| {
                let (looks, held) = (10 * most_looks, most_held);
                let sending = Sending { looks, held, most_looks, most_held, ..Sending::default() };
                seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() });
            })
        };
        let finding = beside(72, 80).diagnosed().findings.remove(0);
        assert_eq!(finding.class, Class::DelayedAck);
        assert!(finding.summary.contains("90 % of the time"), "{}", finding.summary);
        assert_eq!(beside(8, 80).classes(), [], "some pieces always wait");
        assert_eq!(beside(6, 10).classes(), [], "seen too seldom");
    }
}

//! Rule for bytes that TCP keeps back: Nagle's algorithm against the other side's delayed acknowledgements.

use dyno_record::finding::{Class, Confidence};

use super::draft::{Draft, Outcome, percent};
use super::facts::Facts;

/// Share of the looks at connections that found bytes kept back. A write behind another is kept for as long as a packet
/// takes to be acknowledged: for microseconds on one machine, but for 40 ms and more where the other side waits for more.
const HELD_SHARE_MIN: f64 = 0.2;
/// Fewer looks prove nothing.
const LOOKS_MIN: u64 = 10;

/// Small pieces wait until the other side acknowledges the piece before, which it delays.
pub(super) fn delayed_ack(facts: &Facts<'_>) -> Outcome {
    let packets = facts.seen.packets.as_ref();
    let sending = packets.and_then(|packets| packets.sending);
    if sending.is_none() && packets.is_some_and(|packets| packets.connections == 0) {
        return Outcome::Against("it holds no TCP connection".to_owned());
    }
    let Some(sending) = sending else {
        return Outcome::Unseen("what TCP keeps back on its connections (the right to trace it)");
    };
    let share = sending.held as f64 / sending.looks.max(1) as f64;
    if sending.looks < LOOKS_MIN || share < HELD_SHARE_MIN {
        let text = format!(
            "at {} of {} looks at connections TCP kept small pieces back",
            sending.held, sending.looks
        );
        return Outcome::Against(text);
    }
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
}

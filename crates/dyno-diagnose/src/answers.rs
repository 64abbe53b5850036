//! Workers that wait in `poll` and its like for an answer, and not for something to do: a gateway before a slow backend, a
//! name that is looked up.
//!
//! The call does not say which; what waits for the workers does. Who waits for work is woken as soon as there is some. Where
//! work lies there all the time, more than one piece for each of them, and they sleep on for milliseconds, they wait for
//! something else. An epoll holds all that a loop serves, and is never told so. Called by `pool`.

use dyno_record::observation::{Asked, Limit};

use super::draft::{Draft, percent};
use super::facts::Facts;
use super::limits::{pool_draft, queue, untaken};
use super::waits::{OffCpu, ThreadTime};

/// A mean wait of 5 ms: waking a thread takes a hundredth of it.
const WAIT_NS_MIN: u64 = 5_000_000;
/// Of the looks, those at which something waits: a busy server shows that at many of them by chance.
const WAITING_SHARE_MIN: f64 = 0.9;

/// Of these threads, taken to wait for answers in `poll`, whether they do: work lies before them, and nobody else explains
/// why. `ran_min` is their part of the CPU time at least: one among the others that is overloaded runs more.
pub(super) fn are_waited_for(
    facts: &Facts<'_>,
    off: &OffCpu<'_>,
    those: &[&ThreadTime],
    ran_min: f64,
) -> bool {
    let Some(sending) = facts.seen.packets.as_ref().and_then(|packets| packets.sending) else { return false };
    let ran: u64 = those.iter().map(|time| time.run).sum();
    // A connection that came this moment wakes its own worker; the others wait for theirs. At a listener anybody may take it.
    let of_each = sending.waiting >= sending.rounds * those.len() as u64;
    let in_line = of_each || queue(facts, WAITING_SHARE_MIN).is_some();
    let serve = ran as f64 >= ran_min * off.sum(|time| time.run) as f64;
    in_line && serve && untaken(facts, WAITING_SHARE_MIN).is_some()
}

/// Requests in flight for each connection to whom they are passed on, from which on they may wait for one of those.
const FOR_EACH_CONNECTION_MIN: f64 = 4.0;
/// Fewer in flight are no line.
const IN_FLIGHT_MIN: f64 = 8.0;

/// Many requests are in flight and few connections to another server are open: they may stand in line for one of those, inside
/// an event loop whose threads do not show it. A note: a protocol that carries several at a time looks the same.
pub(super) fn in_line_for_connections(facts: &Facts<'_>, spare: f64) -> Option<Draft> {
    let load = facts.seen.load.as_ref().filter(|load| load.limited != Limit::Yes)?;
    let in_flight = load.replies_per_s * load.p50_ns as f64 / 1e9;
    let Asked { remote, connections } = facts.seen.packets.as_ref()?.asked.first()?;
    if in_flight < IN_FLIGHT_MIN || in_flight < FOR_EACH_CONNECTION_MIN * connections {
        return None;
    }
    let summary = format!(
        "{in_flight:.0} requests are in flight while {connections:.1} connections to {remote} are open and {} of the CPUs is \
         free",
        percent(spare)
    );
    let turns = "where a connection carries one request at a time, the others wait for a turn: a limit of connections, or a pool";
    Some(
        pool_draft(spare, summary)
            .fact(format!("{connections:.1} connections to {remote} on average"), *connections, "connections")
            .sign(turns),
    )
}

/// What a thread slept in `poll`, where its waits are long.
pub(super) fn polled_ns(time: &ThreadTime) -> u64 {
    if time.polled >= WAIT_NS_MIN * time.polls { time.polled } else { 0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::{Asked, Load, Packets, Queue, Sending};
    use dyno_record::profile::WaitClass;

    use crate::scene::{Scene, busy_load};

    /// Planted faults: what waits at the listener counted for each worker (`of_each` alone); a queue now and then is enough.
    #[test]
    fn one_connection_that_nobody_accepts_waits_for_all_workers() {
        let queued = |looks_waiting: u64| {
            let sending =
                Sending { rounds: 80, rounds_waiting: looks_waiting, waiting: 160, ..Sending::default() };
            let queue = Queue { looks: 80, looks_waiting, waiting: 160, most: 3, ..Queue::default() };
            let packets = Packets { sending: Some(sending), queues: vec![queue], ..Packets::default() };
            server(&[0.3; 8], "poll", 180).with(|seen| seen.packets = Some(packets)).classes()
        };
        assert_eq!(queued(80), [Class::PoolLimit]);
        assert_eq!(queued(60), [], "at times somebody is there who accepts");
        assert_eq!(asked(server(&[0.3; 8], "poll", 180), 80, 160), [], "they lie in connections of two");
    }

    /// Planted fault: no least number for each connection (`FOR_EACH_CONNECTION_MIN` of 0).
    #[test]
    fn many_requests_in_flight_over_few_connections_are_noted() {
        let noted = |connections: f64, p50_ms: u64| {
            let asked = Asked { remote: "127.0.0.1:9000".to_owned(), connections };
            let load = Load { replies_per_s: 40.0, p50_ns: p50_ms * 1_000_000, ..busy_load() };
            let packets = Packets { asked: vec![asked], ..Packets::default() };
            let scene = server(&[0.3], "epoll_wait", 180).load(load);
            let said = scene.with(|seen| seen.packets = Some(packets)).diagnosed();
            assert_eq!(said.findings, []);
            said.notes.iter().any(|note| note.class == Class::PoolLimit)
        };
        assert!(noted(2.0, 800));
        assert!(!noted(32.0, 800), "each has its own");
        assert!(!noted(1.0, 100), "few are in flight");
    }

    /// Threads that wait for nine of ten seconds in calls that many times each.
    fn server(run_s: &[f64], call: &str, waits: u64) -> Scene {
        let mut scene = Scene::new(run_s).on("main;serve;ask", 100);
        for tid in 1..=run_s.len() as u32 {
            scene = scene.off(tid, WaitClass::Network, "main;serve;ask", 9.0);
            let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
            stack.wait.as_mut().unwrap().system_call = Some(call.to_owned());
            stack.samples = waits;
        }
        scene
    }

    /// Of eighty looks, those at which something waited, and how much in all.
    fn asked(scene: Scene, rounds_waiting: u64, waiting: u64) -> Vec<Class> {
        let sending = Sending { rounds: 80, rounds_waiting, waiting, ..Sending::default() };
        scene
            .with(|seen| seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() }))
            .classes()
    }

    /// Planted fault: `poll` is for work whatever waits (`are_waited_for` always false).
    #[test]
    fn who_sleeps_in_poll_while_work_lies_before_him_waits_for_an_answer() {
        for call in ["poll", "ppoll", "select", "pselect6"] {
            assert_eq!(asked(server(&[0.3; 4], call, 180), 80, 800), [Class::PoolLimit], "{call}");
            assert_eq!(asked(server(&[0.3], call, 180), 76, 700), [Class::PoolLimit], "{call}");
        }
    }

    /// Planted faults: no least mean wait; half of the looks are enough; epoll counts.
    #[test]
    fn who_is_woken_as_soon_as_there_is_work_waits_for_work() {
        assert_eq!(asked(server(&[0.3; 4], "poll", 9_000), 80, 800), [], "waits of a millisecond");
        assert_eq!(asked(server(&[0.3; 4], "poll", 180), 60, 800), [], "now and then nothing waits");
        assert_eq!(asked(server(&[0.3; 4], "poll", 180), 0, 0), [], "idle");
        assert_eq!(asked(server(&[0.3; 4], "epoll_wait", 180), 80, 800), [], "a loop");
        assert_eq!(asked(server(&[0.3; 4], "accept4", 180), 80, 800), [], "its listener is empty");
    }

    /// Planted fault: `in_line` always true.
    #[test]
    fn many_workers_with_a_client_each_wait_for_their_own() {
        assert_eq!(asked(server(&[0.05; 64], "poll", 180), 80, 240), []);
    }

    /// Planted faults: `serve` always true; threads in `poll` counted beside those that sleep.
    #[test]
    fn workers_beside_one_that_is_overloaded_or_sleeps_are_not_at_fault() {
        let mut busy = server(&[0.3, 0.3, 0.3, 0.3, 9.0], "poll", 180);
        busy.seen.off_cpu.as_mut().unwrap().stacks.pop();
        assert!(!asked(busy, 80, 800).contains(&Class::PoolLimit));
        let mut one = server(&[0.3; 8], "poll", 180);
        let stacks = &mut one.seen.off_cpu.as_mut().unwrap().stacks;
        stacks.last_mut().unwrap().wait.as_mut().unwrap().class = WaitClass::Sleep;
        assert_eq!(asked(one, 80, 800), []);
    }
}

//! What is asked for in a ring of io_uring: the kernel says that a thread waits at it, and not for which of all that was asked for.
//!
//! A loop that waits there counts as waiting for something to do; it may wait for a disk or for another's answer.

use dyno_record::observation::NotLookedAt;

use super::facts::Facts;
use super::idle::RING;

pub(super) const WHAT: &str = "what io_uring's rings wait for";

/// Of the window, what threads must wait at rings to be told: a tenth of one thread's time.
const WAITS_MIN: f64 = 0.1;

/// What rings are waited at for, where that is done for long.
pub(super) fn of(facts: &Facts<'_>) -> Option<NotLookedAt> {
    let off = facts.off.as_ref()?;
    let calls = |call: Option<&str>| call == Some(RING);
    let waits = off.profile.stacks.iter().filter_map(|stack| Some((stack.wait.as_ref()?, stack.weight_ns)));
    let at_rings = waits.filter(|(wait, _)| calls(wait.system_call.as_deref())).map(|(_, ns)| ns);
    let waited_ns: u64 = at_rings.sum();
    (waited_ns as f64 >= WAITS_MIN * off.window_ns).then(|| NotLookedAt {
        what: WHAT.to_owned(),
        why: "the kernel tells no wait of a disk's answer from one of a peer's or of a new request: all count as waits for \
              something to do"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::profile::WaitClass;

    use super::*;
    use crate::scene::{S, Scene};

    /// Planted faults: any call is a ring's; however short it is (`WAITS_MIN` of nought).
    #[test]
    fn what_is_waited_for_at_a_ring_is_told_as_not_seen() {
        let told = |call: &str, seconds: f64| {
            let scene = Scene::new(&[5.0]).on("main;work", 100);
            let mut scene = scene.off(1, WaitClass::Network, "main;io_uring_enter", seconds);
            let wait = scene.seen.off_cpu.as_mut().unwrap().stacks[0].wait.as_mut().unwrap();
            wait.system_call = Some(call.to_owned());
            scene.diagnosed().not_looked_at.iter().any(|one| one.what == "what io_uring's rings wait for")
        };
        assert!(told("io_uring_enter", 4.0));
        assert!(!told("io_uring_enter", 0.5) && !told("epoll_wait", 4.0));
    }

    /// Planted fault: what a ring waits for is no disk (`sync_io` does not ask).
    #[test]
    fn who_waits_at_a_ring_may_wait_for_a_disk() {
        let rules_out = |call: &str| {
            let mut scene =
                Scene::new(&[5.0]).on("main;work", 100).off(1, WaitClass::Network, "main;wait", 4.0);
            let wait = scene.seen.off_cpu.as_mut().unwrap().stacks[0].wait.as_mut().unwrap();
            wait.system_call = Some(call.to_owned());
            scene.diagnosed().ruled_out.iter().any(|one| one.class == Class::SyncIo)
        };
        assert_eq!([rules_out("epoll_wait"), rules_out("io_uring_enter")], [true, false]);
    }

    /// Planted fault: a ring is asked for an answer (`EVENTS` without it).
    #[test]
    fn who_waits_at_a_ring_waits_for_something_to_do() {
        let answers_ns = |call: &str| {
            let mut scene = Scene::new(&[5.0]).off(1, WaitClass::Network, "main;wait", 4.0);
            let wait = scene.seen.off_cpu.as_mut().unwrap().stacks[0].wait.as_mut().unwrap();
            wait.system_call = Some(call.to_owned());
            Facts::new(&scene.seen).off.unwrap().threads[&1].answers
        };
        assert_eq!([answers_ns("io_uring_enter"), answers_ns("recvfrom")], [0, 4 * S]);
    }
}

//! System calls that are made again and again for nothing: each of them fails, or finds that there is nothing, and is made anew.
//!
//! The rule for spinning asks. Counted calls say it, whatever the time around them is spent on: who accepts without a descriptor left
//! is told at once that there is somebody, and spends most of its time in being told.

use dyno_record::finding::{Class, Confidence};
use dyno_record::profile::{Profile, SystemCall};

use super::draft::{Draft, percent};
use super::facts::Facts;
use super::names;

/// Calls that come back with an error where there is nothing, or no room.
const ASKS: &[&str] = &[
    "accept",
    "accept4",
    "connect",
    "mq_timed*",
    "read",
    "readv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "semtimedop",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "write",
    "writev",
];
/// Calls that wait for something, or look for it where they are given no time.
const LOOKS: &[&str] = &["epoll_pwait*", "epoll_wait", "poll", "ppoll", "pselect6", "select"];
/// So many a second are no waiting: each takes a microsecond, with what is around it.
const PER_S_MIN: f64 = 20_000.0;
/// Of these calls, those that failed, and of all calls, those that are these.
const FAIL_MIN: f64 = 0.95;
const OF_ALL_MIN: f64 = 1.0 / 3.0;
/// Of the looks, all other calls at most: who finds something does something with it, so that nine of ten find nothing.
const OTHERS_MAX: f64 = 0.1;
/// From so many on it may find something often, each time work for long: then looking is so much of what those threads do.
const OTHERS_FEW: f64 = 0.02;
const LOOKING_MIN: f64 = 0.3;
/// And of the time of one thread, what they take themselves: who looks now and then between pieces of work spends less on it.
const TAKES_MIN: f64 = 0.1;

/// A call that is made for nothing.
struct Vain<'o> {
    name: &'o str,
    per_s: f64,
    fails: bool,
}

pub(super) fn calls(facts: &Facts<'_>) -> Option<Draft> {
    let counted = facts.seen.off_cpu.as_ref().filter(|profile| !profile.system_calls.is_empty())?;
    let Vain { name, per_s, fails } = failing(counted).or_else(|| looking(facts, counted))?;
    let share = facts.on.as_ref().map_or(0.0, |on| on.share_of_callers(name));
    let does = if fails { "fails" } else { "finds nothing" };
    let summary = format!("{name} {does} {per_s:.0} times a second, and is made again");
    let next = if fails {
        "see why it fails (strace -f -e trace=NAME -p PID): no descriptor is left (EMFILE: ulimit -n, or close what is not used); nothing is there, or no room (EAGAIN): wait for it with poll or epoll"
    } else {
        "let it wait: a timeout that is not zero, a message or an eventfd from whoever has something"
    };
    Some(
        Draft::new(Class::Spinning, share, summary)
            .sure(if fails { Confidence::High } else { Confidence::Medium })
            .fact(
                format!(
                    "{per_s:.0} calls of {name} a second that {}",
                    if fails { "fail" } else { "bring nothing" }
                ),
                per_s,
                "calls/s",
            )
            .fact(format!("the threads that make them take {} of the CPU", percent(share)), share, "share")
            .next(next.replace("NAME", name))
            .specimen("spin-barrier"),
    )
}

fn per_s(profile: &Profile, call: &SystemCall) -> f64 {
    call.count as f64 / profile.duration_s.max(1e-9)
}

/// One that nearly always fails, and is much of what is called.
fn failing(profile: &Profile) -> Option<Vain<'_>> {
    let all: u64 = profile.system_calls.values().map(|call| call.count).sum();
    let fails = |(name, call): &(&String, &SystemCall)| {
        names::is(name, ASKS)
            && call.errors as f64 >= FAIL_MIN * call.count as f64
            && call.count as f64 >= OF_ALL_MIN * all as f64
            && per_s(profile, call) >= PER_S_MIN
    };
    let (name, call) = profile.system_calls.iter().filter(fails).max_by_key(|(_, call)| call.errors)?;
    Some(Vain { name, per_s: per_s(profile, call), fails: true })
}

/// One that looks, and hardly anything else is called: nobody sleeps in it either.
fn looking<'o>(facts: &Facts<'_>, profile: &'o Profile) -> Option<Vain<'o>> {
    let all: u64 = profile.system_calls.values().map(|call| call.count).sum();
    let looks = profile.system_calls.iter().filter(|(name, _)| names::is(name, LOOKS));
    let (name, call) = looks.max_by_key(|(_, call)| call.count)?;
    let is_it = |stack: &&dyno_record::profile::Stack| {
        stack.wait.as_ref().is_some_and(|wait| wait.system_call.as_deref() == Some(name))
    };
    let slept: u64 = profile.stacks.iter().filter(is_it).map(|stack| stack.samples).sum();
    let others = (all - call.count + slept) as f64;
    let takes = call.total_ns as f64 / 1e9 / profile.duration_s.max(1e-9);
    let is_vain =
        per_s(profile, call) >= PER_S_MIN && takes >= TAKES_MIN && others <= OTHERS_MAX * call.count as f64;
    let does_little_else = || {
        others <= OTHERS_FEW * call.count as f64
            || facts.on.as_ref().is_some_and(|on| on.share_in_of_callers(name) >= LOOKING_MIN)
    };
    (is_vain && does_little_else()).then(|| Vain { name, per_s: per_s(profile, call), fails: false })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use dyno_record::finding::Class;
    use dyno_record::profile::{SystemCall, WaitClass};

    use crate::scene::Scene;

    /// Calls of ten seconds, each with how many of them failed, by a thread that has a CPU for itself.
    fn calling(calls: &[(&str, u64, u64)], slept: u64) -> Vec<Class> {
        let scene = Scene::new(&[9.9])
            .on("main;serve;epoll_wait;do_syscall_64_[k];__x64_sys_epoll_wait_[k]", 30)
            .on("main;serve;work", 70)
            .off(1, WaitClass::Network, "main;epoll_wait", 0.05);
        let call = |(name, count, errors): &(&str, u64, u64)| {
            let (count, errors) = (*count, *errors);
            // A microsecond and a half each.
            let total_ns = 1_500 * count;
            ((*name).to_owned(), SystemCall { count, errors, total_ns, ..SystemCall::default() })
        };
        scene
            .with(|seen| {
                let off = seen.off_cpu.as_mut().unwrap();
                off.system_calls = calls.iter().map(call).collect::<BTreeMap<_, _>>();
                off.stacks[0].samples = slept;
                off.stacks[0].wait.as_mut().unwrap().system_call = Some("epoll_wait".to_owned());
            })
            .classes()
    }

    /// Planted faults: errors are not counted (`FAIL_MIN` of zero); however seldom (`PER_S_MIN` of one); whatever else is called.
    #[test]
    fn a_call_that_always_fails_and_is_made_again_spins() {
        let accepts = |count, errors| {
            calling(&[("accept4", count, errors), ("epoll_wait", count, 0), ("read", 9_000, 0)], 0)
        };
        assert_eq!(accepts(2_000_000, 2_000_000), [Class::Spinning]);
        assert_eq!(accepts(2_000_000, 1_000_000), [], "each second one finds somebody");
        assert_eq!(accepts(150_000, 150_000), [], "now and then");
        let beside = [("read", 300_000, 300_000), ("getpid", 900_000, 0)];
        assert_eq!(calling(&beside, 0), [], "most of what it does is something else");
        assert_eq!(calling(&[("futex", 2_000_000, 2_000_000)], 0), [], "a lock's own business");
    }

    /// Planted faults: who sleeps in it looks in vain (`slept` of zero); what is found is not asked (`OTHERS_MAX` of one);
    /// however little of the time it takes (`TAKES_MIN` of zero).
    #[test]
    fn a_look_that_finds_nothing_and_waits_for_nothing_spins() {
        let looks = |others, slept| calling(&[("epoll_wait", 1_000_000, 0), ("read", others, 0)], slept);
        assert_eq!(looks(300, 0), [Class::Spinning]);
        assert_eq!(looks(90_000, 0), [Class::Spinning], "it finds something one time in ten");
        assert_eq!(looks(500_000, 0), [], "it finds something");
        assert_eq!(looks(300, 900_000), [], "it sleeps until there is something");
        assert_eq!(calling(&[("epoll_wait", 500_000, 0)], 0), [], "most of its time is work");
    }

    /// An event loop that works on one of a list's items between two looks (Node's `setImmediate`). Planted fault: what looking takes of
    /// the threads' time is not asked (`LOOKING_MIN` of zero).
    #[test]
    fn who_works_between_looks_at_what_often_brings_something_does_not_spin() {
        let node = |looking: u64, reads: u64| {
            let stack = "main;uv_run;epoll_wait;do_syscall_64_[k];__x64_sys_epoll_wait_[k]";
            let scene = Scene::new(&[9.9]).on(stack, looking).on("main;uv_run;work", 100 - looking);
            let call = |count| SystemCall { count, total_ns: 1_500 * count, ..SystemCall::default() };
            let calls = [("epoll_wait", call(1_000_000)), ("read", call(reads))];
            let scene = scene.off(1, WaitClass::Network, "main;epoll_wait", 0.05).with(|seen| {
                let off = seen.off_cpu.as_mut().unwrap();
                off.system_calls = calls.into_iter().map(|(name, call)| (name.to_owned(), call)).collect();
            });
            scene.classes().contains(&Class::Spinning)
        };
        assert!(!node(15, 80_000));
        assert!(node(48, 43_000), "it looks half of the time");
        assert!(node(15, 300), "it never finds anything");
    }
}

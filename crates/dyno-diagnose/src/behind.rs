//! Requests in line inside of the target for threads that sleep: all that came was read, nothing lies in a socket, and who took it
//! waits for one of a pool's few threads.
//!
//! A wait for a thread that sleeps is a wait for the sleep, as one for a thread at a disk is for the disk (`flushers`). Only sleeps by
//! the clock are asked: who reads others' answers may carry those of many requests. Called by `pool`.

use std::collections::BTreeSet;

use super::answers;
use super::draft::{Draft, counted, percent};
use super::facts::Facts;
use super::limits::pool_draft;
use super::waits::{OffCpu, ThreadTime, sends};

/// Requests that are held for each thread that sleeps, from which on they stand in line for it.
const IN_LINE_MIN: f64 = 4.0;
/// Of the requests that are held, those that threads must be seen to wait with for the sleepers: there are such waits of which it is
/// not seen who ends them.
const SEEN_MIN: f64 = 0.25;
/// Waits that a sleeper ends each time that it sleeps, at most: who ends many at once brings news for all, and no turn.
const ENDED_MAX: f64 = 2.0;

/// More requests are held than there are threads that sleep, and others wait for these, one wait for each sleep. `sleepers` are
/// all that sleep by the clock for most of the time.
pub(super) fn in_line_for_sleepers(
    facts: &Facts<'_>,
    off: &OffCpu<'_>,
    sleepers: &BTreeSet<u32>,
    spare: f64,
) -> Option<Draft> {
    let owed = facts.seen.packets.as_ref()?.serving?.owed();
    let ended = off.ended_by(sleepers);
    let waiting = ended.ns as f64 / off.window_ns.max(1.0);
    let sleeps: u64 = ended.by.iter().filter_map(|tid| off.threads.get(tid)).map(|time| time.sleeps).sum();
    let many = ended.by.len() as u64;
    let in_line = owed >= IN_LINE_MIN * many as f64 && waiting >= SEEN_MIN * owed;
    let one_by_one = ended.waits as f64 <= ENDED_MAX * sleeps as f64;
    (many > 0 && in_line && one_by_one).then(|| {
        let threads = counted(many, "thread");
        let summary = format!(
            "{owed:.1} requests are held while others wait for {threads} asleep most of the time, and {} of the CPUs' time is free",
            percent(spare)
        );
        pool_draft(spare, summary).fact(
            format!("{waiting:.1} threads wait for {threads} asleep, on average"),
            waiting,
            "threads",
        )
    })
}

/// Of the looks at clients, those at which they wait for an answer: all of them do, all the time.
const ALL_MIN: f64 = 0.9;
const OWED_MIN: f64 = 2.0;
/// Of the requests that are held, those that wait for a CPU, a lock, a disk or another server, at most.
const EXPLAINED_MAX: f64 = 0.3;
/// How often such a thread sleeps.
const SLEEPS_MIN: u64 = 10;
/// Waits of others that it ends for each of its sleeps, where it answers no client itself: a run-time's watchman ends few.
const ENDS_MIN: f64 = 0.5;
/// A request that comes at random waits for half of a sleep.
const SLEEP_OF_WAIT_MAX: f64 = 2.0;

/// All clients wait all the time, CPUs are free, and nothing holds the requests up but threads that sleep by the clock, one of which
/// answers them or hands the answers on each time that it wakes.
pub(super) fn all_wait_for_the_clock(facts: &Facts<'_>, off: &OffCpu<'_>, spare: f64) -> Option<Draft> {
    let packets = facts.seen.packets.as_ref()?;
    let serving = packets.serving?;
    let owed = serving.owed();
    if owed < OWED_MIN || (serving.looks_owed as f64) < ALL_MIN * serving.looks as f64 {
        return None;
    }
    let asked: f64 = packets.asked.iter().map(answers::awaiting).sum();
    let held_up = off.sum(|time| {
        let locks = time.contended + time.allocator + time.behind_disk + time.for_flusher;
        locks + time.disk + time.syncing + time.fault + time.run_queue
    });
    let explained = asked + facts.seen.cpus_used() + held_up as f64 / off.window_ns;
    let slept = |time: &ThreadTime| (time.sleep + time.timed, time.sleeps + time.timeouts);
    let is_one = |tid: u32, time: &ThreadTime| {
        let (ns, sleeps) = slept(time);
        let short = ns as f64 / 1e6 <= SLEEP_OF_WAIT_MAX * 2.0 * serving.owed_ms * sleeps as f64;
        time.does_mostly(ns, off.window_ns)
            && (sleeps >= SLEEPS_MIN && short)
            && (sends(facts.seen, tid) || off.ended(tid) as f64 >= ENDS_MIN * sleeps as f64)
    };
    let those: Vec<&ThreadTime> =
        off.threads.iter().filter(|(tid, time)| is_one(**tid, time)).map(|(_, time)| time).collect();
    if those.is_empty() || explained > EXPLAINED_MAX * owed {
        return None;
    }
    let (ns, sleeps) = those.iter().map(|time| slept(time)).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    let ms = ns as f64 / sleeps.max(1) as f64 / 1e6;
    let threads = counted(those.len() as u64, "thread");
    let summary = format!(
        "all {owed:.1} clients wait while {threads} that answers them sleeps for {ms:.1} ms again and again, and {} of the CPUs' time is \
         free",
        percent(spare)
    );
    Some(
        pool_draft(spare, summary)
            .fact(format!("{threads} slept {sleeps} times by the clock, {ms:.1} ms on average"), ms, "ms")
            .fact(format!("a request waits for {:.1} ms, on average", 2.0 * serving.owed_ms), 2.0 * serving.owed_ms, "ms")
            .sign("no CPU, lock, disk or other server explains what they wait for")
            .next("wait for what comes (a condition, a queue, poll on a descriptor) in place of sleeping between looks; where the sleep is the work, more such threads"),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::{Asked, Packets, Serving};
    use dyno_record::profile::WaitClass;

    use crate::scene::Scene;

    /// Eight threads, one for each connection, that wait for what a pool of one thread does; it sleeps so long and so often.
    fn served(owed: u64, slept_s: f64, sleeps: u64) -> Vec<Class> {
        let mut scene =
            Scene::new(&[0.2, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05]).on("run;work", 100);
        scene = scene.off(1, WaitClass::Sleep, "run;nanosleep;hrtimer_nanosleep_[k]", slept_s);
        scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = sleeps;
        for tid in 2..=9 {
            let future = "serve;get;pthread_cond_wait;futex_wait_[k]";
            scene = scene.off(tid, WaitClass::Lock, future, 9.5).woken("0x7f", 1, "run;pthread_cond_signal");
        }
        let serving = Serving { connections: 8.0, looks: 80, looks_owed: 10 * owed, ..Serving::default() };
        let packets = Packets { serving: Some(serving), ..Packets::default() };
        scene.with(|seen| seen.packets = Some(packets)).classes()
    }

    /// Planted faults: few requests are a line as well (`IN_LINE_MIN` of 0); who wakes many at once is waited for (`ENDED_MAX` of
    /// 100); whoever ends waits sleeps.
    #[test]
    fn requests_whose_threads_wait_for_a_sleeper_are_in_line_for_it_though_all_was_read() {
        assert_eq!(served(8, 9.5, 800), [Class::PoolLimit]);
        assert_eq!(served(3, 9.5, 800), []);
        assert_eq!(served(8, 9.5, 100), [], "news for all of them, ten times a second");
        assert_eq!(served(8, 5.0, 800), [], "it does something else for half of the time");
    }

    /// A server whose one worker looks each 8 ms for what its readers have put down, and then answers.
    fn looking(change: impl Fn(&mut Scene, &mut Packets)) -> Vec<Class> {
        let mut scene =
            Scene::new(&[0.05, 0.02, 0.02, 0.02]).on("run;work", 60).on("run;send;tcp_sendmsg_[k]", 40);
        scene = scene.off(1, WaitClass::Sleep, "run;nanosleep;hrtimer_nanosleep_[k]", 9.8);
        scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = 1_200;
        for tid in 2..=4 {
            scene = scene.off(tid, WaitClass::Network, "read;recv;sk_wait_data_[k]", 9.9);
        }
        let serving =
            Serving { connections: 4.0, looks: 200, looks_owed: 198, owed_ms: 4.2, ..Serving::default() };
        let mut packets = Packets { serving: Some(serving), ..Packets::default() };
        change(&mut scene, &mut packets);
        scene.with(|seen| seen.packets = Some(packets)).classes()
    }

    /// Planted faults: clients who wait now and then (`ALL_MIN` of 0.5); what others' answers explain is not left out
    /// (`EXPLAINED_MAX` of 10); a sleep of any length (`SLEEP_OF_WAIT_MAX` of 100).
    #[test]
    fn clients_who_all_wait_for_a_worker_that_looks_by_the_clock_are_told() {
        assert_eq!(looking(|_, _| ()), [Class::PoolLimit]);
        let now_and_then = |_: &mut Scene, packets: &mut Packets| {
            packets.serving.as_mut().unwrap().looks_owed = 150;
        };
        assert_eq!(looking(now_and_then), []);
        let behind_another = |_: &mut Scene, packets: &mut Packets| {
            let asked = Asked {
                connections: 4.0,
                looks: 200,
                looks_awaiting: 190,
                awaited_ms: 0.5,
                ..Asked::default()
            };
            packets.asked.push(asked);
        };
        assert_eq!(looking(behind_another), []);
        let keeps_house = |scene: &mut Scene, _: &mut Packets| {
            let stacks = &mut scene.seen.off_cpu.as_mut().unwrap().stacks;
            stacks.iter_mut().filter(|stack| stack.thread == 0).for_each(|stack| stack.samples = 20);
        };
        assert_eq!(looking(keeps_house), [], "it sleeps for half a second at a time");
    }

    /// As a helper that sleeps in `select`. Planted faults: only sleeps that are called so count; who ends nobody's waits and sends
    /// nothing is asked as well (`ENDS_MIN` of 0).
    #[test]
    fn a_helper_whose_polls_only_the_clock_ends_sleeps() {
        let helper = |ends: bool, clock: &str| {
            let mut scene = Scene::new(&[0.4, 0.1]).on("run;work", 100);
            scene = scene.off(2, WaitClass::Network, "ask;select;do_select_[k]", 9.6).woken("", 0, clock);
            let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
            stack.samples = 3_000;
            stack.wait.as_mut().unwrap().system_call = Some("pselect6".to_owned());
            scene = scene.off(1, WaitClass::Network, "loop;epoll_wait;ep_poll_[k]", 9.0);
            if ends {
                scene = scene.woken("", 2, "run;write;unix_stream_sendmsg_[k]");
                scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = 2_900;
            }
            let serving = Serving {
                connections: 16.0,
                looks: 784,
                looks_owed: 783,
                owed_ms: 25.0,
                ..Serving::default()
            };
            let packets = Packets { serving: Some(serving), ..Packets::default() };
            scene.with(|seen| seen.packets = Some(packets)).classes()
        };
        let timer = "irq;hrtimer_interrupt_[k];hrtimer_wakeup_[k]";
        assert_eq!(helper(true, timer), [Class::PoolLimit]);
        assert_eq!(helper(true, "net;sock_def_readable_[k]"), [], "data ended its waits");
        assert_eq!(helper(false, timer), [], "nobody waits for it");
    }
}

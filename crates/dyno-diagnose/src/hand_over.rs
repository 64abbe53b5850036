//! Threads that are put to sleep and woken for so little work that this takes most of the CPU: all are told of what one can do
//! (`notify_all`), or each piece is handed over by itself.
//!
//! Or goroutines that hand such pieces to each other, which the kernel never sees.
//!
//! Called by `blocking`, where nothing else says that threads wait for each other.

use dyno_record::finding::{Class, Confidence};
use dyno_record::profile::{Frame, Origin};

use super::draft::{Draft, percent};
use super::facts::{Cost, Facts};
use super::names;
use super::system_calls::is_on_the_network;

/// Of the CPU time: without it there were twice as much for work.
const SHARE_MIN: f64 = 0.5;
/// CPUs that are used, from which on it is time that somebody misses: who hardly works hardly does anything but wait.
const CPUS_MIN: f64 = 0.5;
/// Waits a second: each costs some 10 µs with its wake-up.
const WAITS_PER_S_MIN: f64 = 20_000.0;

/// Where threads wait at descriptors; how they wake each other by these, `names` knows.
const DESCRIPTORS: &[&str] =
    &["do_sys_poll*", "do_epoll_wait*", "eventfd_read*", "pipe_read", "anon_pipe_read"];

/// Sleeps for each system call from which on who sleeps is woken again and again inside of one call, and finds nothing.
const SLEEPS_PER_CALL_MIN: f64 = 3.0;

/// All who wait for the same are woken for each thing that comes; one of them takes it, and the others go to sleep again.
fn woken_for_nothing(facts: &Facts<'_>) -> Option<Draft> {
    let (on, off) = (facts.on_both_sides()?, facts.off.as_ref()?);
    let sleeps = facts.seen.process.voluntary as f64 / facts.seen.duration_s.max(1e-9);
    let calls = off.profile.system_calls.values().map(|call| call.count).sum::<u64>() as f64;
    let calls = calls / off.profile.duration_s.max(1e-9);
    let is_often = sleeps >= WAITS_PER_S_MIN && calls > 0.0 && sleeps >= SLEEPS_PER_CALL_MIN * calls;
    if !is_often || facts.seen.cpus_used() < CPUS_MIN {
        return None;
    }
    let switches = |frame: &&Frame| frame.origin == Origin::Kernel && names::is(&frame.name, names::SWITCH);
    let share = on.share_where(|frames| frames.iter().any(switches));
    if share < SHARE_MIN {
        return None;
    }
    let each = sleeps / calls;
    let summary = format!(
        "{} of the CPU goes into waking threads that find nothing and sleep again: {each:.0} sleeps for each system call",
        percent(share)
    );
    Some(
        Draft::new(Class::LockContention, share, summary)
            .sure(Confidence::Medium)
            .fact(format!("{sleeps:.0} sleeps and {calls:.0} system calls a second"), sleeps, "per second")
            .next("wake one for each thing that comes: EPOLLEXCLUSIVE, a listener for each (SO_REUSEPORT), or one that takes them for all")
            .at(on.place_with(names::SWITCH))
            .specimen("wait-notify"),
    )
}

/// How a goroutine hands something to another one, begins one for it, or lets the thread run that one is locked to.
const HANDS: &[&str] = &[
    "runtime.chansend*",
    "runtime.chanrecv*",
    "runtime.selectgo",
    "runtime.selectnb*",
    "runtime.newproc*",
    "runtime.startlockedm",
    "runtime.stoplockedm",
    "sync.(*Cond).*",
];
/// What Go's scheduler does to stop one goroutine and run another.
const SCHEDULES: &[&str] =
    &["runtime.park_m", "runtime.schedule", "runtime.goready*", "runtime.goexit0", "runtime.wakep"];
/// Of the CPU time, what handing itself takes at least: the scheduler also serves who waits for the network.
const HANDS_MIN: f64 = 0.2;
/// And what the scheduler takes: who looks into a channel and goes on, as a select with a default does, hands nothing over.
const SCHEDULES_MIN: f64 = 0.1;

/// The same of goroutines.
fn goroutines_hand_over(facts: &Facts<'_>) -> Option<Draft> {
    let on = facts.on.as_ref()?;
    let has = |frames: &[&Frame], table: names::Table| {
        frames.iter().any(|frame| frame.origin == Origin::User && names::is(&frame.name, table))
    };
    let hands = on.share_where(|frames| has(frames, HANDS));
    let share = on.share_where(|frames| has(frames, HANDS) || has(frames, SCHEDULES));
    let schedules = on.share_where(|frames| has(frames, SCHEDULES));
    if hands < HANDS_MIN
        || schedules < SCHEDULES_MIN
        || share < SHARE_MIN
        || facts.seen.cpus_used() < CPUS_MIN
    {
        return None;
    }
    let summary =
        format!("{} of the CPU goes into handing pieces from goroutine to goroutine", percent(share));
    Some(
        Draft::new(Class::LockContention, share, summary)
            .sure(Confidence::Medium)
            .fact(format!("{} in channels, selects, beginning goroutines and threads that one is locked to, the rest in the scheduler", percent(hands)), hands, "share")
            .next("hand over many pieces at a time (slices, a buffered channel), or let one goroutine do both parts")
            .at(on.place_with(HANDS))
            .specimen("wait-notify"),
    )
}

/// Processes of the target ask each other over unix sockets, in pieces so small that sending and waking take most of the CPU: a
/// table that is kept in one of them for all, say.
fn asked_over_sockets(facts: &Facts<'_>) -> Option<Draft> {
    let (on, off) = (facts.on_both_sides()?, facts.off.as_ref()?);
    let per_s = off.at_sockets as f64 / (off.window_ns / 1e9).max(1e-9);
    if per_s < WAITS_PER_S_MIN || facts.seen.cpus_used() < CPUS_MIN || is_on_the_network(facts.seen) {
        return None;
    }
    let hands = |frame: &&Frame| {
        let mut tables = [names::UNIX_SOCKETS, names::SWITCH].into_iter();
        frame.origin == Origin::Kernel && tables.any(|table| names::is(&frame.name, table))
    };
    let share = on.share_where(|frames| frames.iter().any(hands));
    if share < SHARE_MIN {
        return None;
    }
    let summary = format!(
        "{} of the CPU goes into small messages between its own processes, {per_s:.0} waits a second for an answer",
        percent(share)
    );
    Some(
        Draft::new(Class::LockContention, share, summary)
            .sure(Confidence::Medium)
            .fact(format!("{per_s:.0} waits at unix sockets a second, for what another of its threads sends"), per_s, "per second")
            .next("ask for many things at a time, count or change apart and join seldom, or keep what all need in shared memory in place of one process that is asked for it")
            .at(on.place_with(names::UNIX_SOCKETS))
            .specimen("wait-notify"),
    )
}

/// Sleeping and waking take more of the CPU than the work does.
pub(super) fn costs_more_than_work(facts: &Facts<'_>) -> Option<Draft> {
    // Who runs Go's goroutines sleeps when there are none, whatever they wait for.
    if facts.seen.goroutines.is_some() {
        return goroutines_hand_over(facts);
    }
    if let Some(draft) = woken_for_nothing(facts).or_else(|| asked_over_sockets(facts)) {
        return Some(draft);
    }
    let (on, off) = (facts.on_both_sides()?, facts.off.as_ref()?);
    // Who calls futex(2) himself says nothing of what it is for.
    let costs = [Cost::Waking, Cost::LockCall];
    // Run-times wake by descriptors of their own, too; on the network these are others' words.
    let by_descriptors = |frame: &&Frame| {
        let mut tables = [DESCRIPTORS, names::WRITES_DESCRIPTOR].into_iter();
        frame.origin == Origin::Kernel && tables.any(|table| names::is(&frame.name, table))
    };
    let share = on.share(&costs)
        + if is_on_the_network(facts.seen) {
            0.0
        } else {
            on.share_where(|frames| frames.iter().any(by_descriptors))
        };
    let (waits, threads) = off.waits_for_others();
    let per_s = waits as f64 / (off.window_ns / 1e9).max(1e-9);
    if share < SHARE_MIN || facts.seen.cpus_used() < CPUS_MIN || per_s < WAITS_PER_S_MIN {
        return None;
    }
    let summary = format!("{} of the CPU goes into putting threads to sleep and waking them", percent(share));
    let place = on.places(&costs).first().map(|place| place.0.clone());
    Some(
        Draft::new(Class::LockContention, share, summary)
            .sure(Confidence::Medium)
            .fact(format!("{per_s:.0} waits a second, by {threads} threads for each other"), per_s, "per second")
            .next("wake one thread for one piece of work (notify_one, not notify_all), hand over many pieces at a time, or let one thread do both parts")
            .at(place)
            .specimen("wait-notify"),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::{Goroutines, Transfers};
    use dyno_record::profile::{SystemCall, WaitClass};

    use crate::scene::Scene;

    const WAITS: &str = "run;pthread_cond_wait;do_syscall_64_[k];futex_wait_[k];schedule_[k]";

    /// Eight threads that wait for what one tells all of them, so often in ten seconds, while so many hundredths of the CPU time
    /// go into that.
    fn told(waits: u64, hundredths: u64, run_s: f64) -> Vec<Class> {
        let mut times = vec![run_s; 9];
        times[0] = 1.0;
        let mut scene = Scene::new(&times).on(WAITS, hundredths).on("run;work", 100 - hundredths);
        for tid in 2..=9 {
            scene = scene.off(tid, WaitClass::Lock, WAITS, 8.0).woken(
                "0x7f",
                1,
                "main;pthread_cond_broadcast;futex_wake_[k]",
            );
            scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = waits / 8;
        }
        scene.classes()
    }

    /// Planted faults, each of the three lines at nought.
    #[test]
    fn threads_that_are_woken_for_next_to_no_work_contend() {
        assert_eq!(told(1_000_000, 70, 1.0), [Class::LockContention]);
        assert_eq!(told(1_000_000, 40, 1.0), [], "most of it is work");
        assert_eq!(told(1_000_000, 70, 0.02), [], "they hardly run");
        assert_eq!(told(10_000, 70, 1.0), [], "seldom");
    }

    /// Eight processes at one listener, of whose CPU time so many hundredths go into waking and sleeping. Planted faults: each of the
    /// lines at nought; sleeps of all, however many calls there are.
    #[test]
    fn processes_that_are_all_woken_for_what_one_takes_are_told() {
        let herd = |hundredths: u64, sleeps: u64, calls: u64| {
            let way = "main;epoll_wait;do_epoll_wait_[k];schedule_[k]";
            let mut scene =
                Scene::new(&[1.0; 8]).on(way, hundredths).on("main;work;tcp_sendmsg_[k]", 100 - hundredths);
            scene.seen.process.voluntary = sleeps;
            let call = SystemCall { count: calls, ..SystemCall::default() };
            scene.seen.off_cpu.as_mut().unwrap().system_calls.insert("epoll_wait".to_owned(), call);
            scene.classes().contains(&Class::LockContention)
        };
        assert!(herd(70, 2_000_000, 100_000));
        assert!(!herd(40, 2_000_000, 100_000), "most of it is work");
        assert!(!herd(70, 2_000_000, 1_000_000), "two for each call");
        assert!(!herd(70, 100_000, 10_000), "seldom");
    }

    /// Two workers and a process that keeps a table for both. Planted faults: each of the lines at nought; whoever sends is one of its
    /// own.
    #[test]
    fn processes_that_ask_each_other_for_every_thing_are_told() {
        let asks = |hundredths: u64, waits: u64, by: u32, packets: u64| {
            let read = "worker;read;do_syscall_64_[k];unix_stream_recvmsg_[k];schedule_timeout_[k]";
            let mut scene =
                Scene::new(&[4.0, 4.0, 6.0]).on(read, hundredths).on("worker;work", 100 - hundredths);
            for tid in 1..=2 {
                scene = scene.off(tid, WaitClass::Network, read, 5.0).woken(
                    "socket:[7]",
                    by,
                    "keeper;write;do_syscall_64_[k];unix_stream_sendmsg_[k]",
                );
                scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = waits / 2;
            }
            let scene = scene.with(|seen| {
                seen.process.reads = Some(Transfers { calls: 2 * waits, bytes: 40 * waits });
                seen.packets.as_mut().unwrap().loopback_packets = packets;
            });
            let said = scene.diagnosed();
            said.findings.iter().any(|one| one.summary.contains("between its own processes"))
        };
        assert!(asks(60, 400_000, 3, 0));
        assert!(!asks(45, 400_000, 3, 0), "most of it is work");
        assert!(!asks(60, 100_000, 3, 0), "seldom");
        assert!(!asks(60, 400_000, 99, 0), "another program's");
        assert!(!asks(60, 400_000, 3, 400_000), "requests come over the network as often");
    }

    /// Of a Go program's CPU time so many hundredths in a channel, in the scheduler, and at the network.
    fn handed(channel: u64, scheduler: u64, run_s: f64) -> Vec<Class> {
        let scene = Scene::new(&[run_s; 2])
            .on("main.main;main.give;runtime.chansend1;runtime.chansend;runtime.send", channel)
            .on("runtime.mcall;runtime.park_m;runtime.schedule;runtime.findRunnable", scheduler)
            .on("main.main;main.work", 100 - channel - scheduler);
        scene.with(|seen| seen.goroutines = Some(Goroutines { looks: 50, ..Goroutines::default() })).classes()
    }

    /// Planted faults: each of the four lines at nought; the scheduler's time left out.
    #[test]
    fn goroutines_that_hand_over_more_than_they_work_contend() {
        assert_eq!(handed(40, 30, 9.0), [Class::LockContention]);
        assert_eq!(handed(25, 26, 9.0), [Class::LockContention]);
        assert_eq!(handed(25, 20, 9.0), [], "most of it is work");
        assert_eq!(handed(10, 60, 9.0), [], "the scheduler serves the network");
        assert_eq!(handed(60, 5, 9.0), [], "they look and go on");
        assert_eq!(handed(40, 30, 0.5), [], "they hardly run");
    }
}

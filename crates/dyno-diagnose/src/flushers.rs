//! Who waits for a thread that is at a disk: group commit, in which one thread syncs and the others wait for its word.
//!
//! A wait in a condition, a channel or a queue is for work, mostly. It is for the disk where the thread that ends it spends at
//! a disk most of what it does, and most of the time for which it is waited for. Both are asked: a producer that writes a
//! file now and then is at the disk for little of that time, and for who waits for no word of a writer nobody waits. Called
//! by `waits`.

use std::collections::{BTreeMap, BTreeSet};

/// Of what a thread does, and of the time for which others wait for it, the disk's share from which on it is the disk.
pub(super) const MOSTLY: f64 = 0.5;
/// Of a thread's waits, what must be ended by flushers, or by others whom they wake, for it to be woken from one to the next.
const IN_ROUNDS_MIN: f64 = 0.7;
/// Run-times wake one of all who wait for a word, and he the next: of all waits of so many threads one each is the flusher's.
/// Half of it is enough, for some come too late for a round.
const OF_ROUNDS_MIN: f64 = 0.5;

/// Waits of one thread that another ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Awaited {
    pub(super) ns: u64,
    pub(super) waits: u64,
}

/// Waits for a word, by who waited and who ended it; nobody is 0.
pub(super) type Waits = BTreeMap<(u32, u32), Awaited>;

/// Of each thread, how long it waited for those that are at a disk; these come with their time there.
pub(super) fn waited_for(waits: &Waits, flushers: &BTreeMap<u32, u64>) -> BTreeMap<u32, u64> {
    let rounds = in_rounds(waits, flushers);
    let mut waited = BTreeMap::<u32, u64>::new();
    let mut enders = BTreeSet::new();
    for ((waiter, waker), awaited) in waits.iter().filter(|((waiter, _), _)| !flushers.contains_key(waiter)) {
        let by_one_of_them = rounds.contains(waiter) && rounds.contains(waker);
        if flushers.contains_key(waker) || by_one_of_them {
            *waited.entry(*waiter).or_default() += awaited.ns;
        }
        enders.extend(flushers.get_key_value(waker));
    }
    let at_disk_ns: u64 = enders.into_iter().map(|(_, ns)| ns).sum();
    waited.retain(|_, ns| at_disk_ns as f64 >= MOSTLY * *ns as f64);
    waited.values_mut().for_each(|ns| *ns = at_disk_ns.min(*ns));
    waited
}

/// Threads whom flushers wake one after another: each wakes the next. None where flushers wake too few of them.
fn in_rounds(waits: &Waits, flushers: &BTreeMap<u32, u64>) -> BTreeSet<u32> {
    let waiters = waits.keys().map(|(waiter, _)| *waiter);
    let mut group: BTreeSet<u32> = waiters.filter(|waiter| !flushers.contains_key(waiter)).collect();
    loop {
        let is_of_it = |waiter: &u32| {
            let of = |counts: &dyn Fn(u32) -> bool| {
                let those = waits.iter().filter(|((by, waker), _)| by == waiter && counts(*waker));
                those.map(|(_, awaited)| awaited.ns).sum::<u64>() as f64
            };
            let inside = |waker: u32| flushers.contains_key(&waker) || group.contains(&waker);
            of(&inside) >= IN_ROUNDS_MIN * of(&|_| true)
        };
        let rest: BTreeSet<u32> = group.iter().copied().filter(is_of_it).collect();
        if rest.len() == group.len() {
            break;
        }
        group = rest;
    }
    let of_group = || waits.iter().filter(|((waiter, _), _)| group.contains(waiter));
    let all: u64 = of_group().map(|(_, awaited)| awaited.waits).sum();
    let begun = of_group().filter(|((_, waker), _)| flushers.contains_key(waker));
    let begun: u64 = begun.map(|(_, awaited)| awaited.waits).sum();
    if begun as f64 * group.len() as f64 >= OF_ROUNDS_MIN * all as f64 { group } else { BTreeSet::new() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::Transfers;
    use dyno_record::profile::WaitClass;

    use crate::scene::Scene;

    const AWAIT: &str = "run;commit;pthread_cond_wait;futex_wait_[k]";

    /// Four workers that run for a part of ten seconds and wait for the rest, each woken by `waker`; thread 5 is at the disk
    /// for so many seconds, and waits for work besides.
    fn commits(waited_s: f64, at_disk_s: f64, waker: impl Fn(u32) -> u32) -> Scene {
        let run_s = (10.0 - waited_s).min(0.4);
        let mut scene = Scene::new(&[run_s, run_s, run_s, run_s, 0.2]).on("run;work", 100);
        for tid in 1..=4 {
            scene =
                scene.off(tid, WaitClass::Lock, AWAIT, waited_s).woken("0x7f00", waker(tid), "flush;cond");
        }
        let flush = "flush;fdatasync;do_fsync_[k];jbd2_log_wait_commit_[k]";
        scene
            .off(5, WaitClass::Disk, flush, at_disk_s)
            .off(5, WaitClass::Lock, "flush;pthread_cond_wait;futex_wait_[k]", 9.8 - at_disk_s)
            .woken("0x7f40", 1, "run;commit;pthread_cond_signal")
            .with(|seen| seen.process.disk_write_bytes = Some(100 * 4_096))
    }

    /// Planted fault: conditions are for work whoever ends them (`waited_for` empty).
    #[test]
    fn who_waits_for_a_thread_that_syncs_waits_for_the_disk() {
        let said = commits(9.5, 9.4, |_| 5).diagnosed();
        assert_eq!(said.findings.iter().map(|found| found.class).collect::<Vec<_>>(), [Class::SyncIo]);
        let text = format!("{:?}", said.findings[0]);
        assert!(text.contains("waits for another thread to come back from the disk: t (5)"), "{text}");
        assert!(text.contains("one thread gathers already"), "{text}");
        // Fault: parts that do not add up to the whole by a rounding, told as goroutines'.
        let wholly = commits(9.1, 9.3, |_| 5).diagnosed().findings.remove(0).summary;
        assert!(wholly.contains("of the working threads' time"), "{wholly}");
        // Few requests: each of them waits all the same.
        assert_eq!(commits(2.0, 2.2, |_| 5).classes(), [Class::SyncIo]);
    }

    /// Planted faults: the writer's time at the disk alone; a wait ended by whoever has been at a disk (`MOSTLY` of 0).
    #[test]
    fn who_waits_for_work_waits_for_no_disk() {
        assert_eq!(commits(9.5, 9.4, |_| 77).classes(), [], "a writer behind, for whom nobody waits");
        assert_eq!(commits(9.5, 0.1, |_| 5).classes(), [], "idle, and syncs once a second");
        let producer = |at_disk_s: f64, run_s: f64| {
            let scene = commits(9.5, at_disk_s, |_| 5).with(|seen| {
                seen.threads[4].run_ns = (run_s * 1e9) as u64;
            });
            scene.classes()
        };
        assert_eq!(producer(0.6, 0.3), [], "it is at the disk for a sixteenth of what they wait");
        assert_eq!(producer(0.5, 3.0), [], "and works besides");
    }

    /// `tar c | gzip` from a disk that is slower than gzip. Planted faults: pipes are not asked; whoever writes into them counts
    /// (`MOSTLY` of 0).
    #[test]
    fn who_waits_at_a_pipe_for_one_that_reads_from_a_disk_waits_for_the_disk() {
        let pipeline = |at_disk_s: f64, run_s: f64| {
            let read = "main;read;filemap_read_[k];io_schedule_[k]";
            let mut scene = Scene::new(&[run_s, 5.0])
                .on("main;work", 100)
                .off(1, WaitClass::Disk, read, at_disk_s)
                .off(2, WaitClass::Network, "main;read;anon_pipe_read_[k]", 4.5)
                .woken("pipe:[7]", 1, "main;write;anon_pipe_write_[k]");
            for stack in &mut scene.seen.off_cpu.as_mut().unwrap().stacks {
                stack.wait.as_mut().unwrap().system_call = Some("read".to_owned());
            }
            scene
                .with(|seen| seen.process.reads = Some(Transfers { calls: 10_000, bytes: 100_000_000 }))
                .first()
        };
        assert_eq!(pipeline(5.0, 0.4), Some(Class::SyncIo));
        assert_ne!(pipeline(2.0, 3.0), Some(Class::SyncIo), "what comes is worked on first");
        assert_eq!(pipeline(0.02, 0.4), None, "it waits for somebody else");
    }

    /// A thread at the disk that uses much of the CPU, beside two that work for so long; `change` says what else is known.
    fn behind(work_s: f64, change: impl FnOnce(Scene) -> Scene) -> Vec<Class> {
        let flush = "flush;fdatasync;do_fsync_[k];jbd2_log_wait_commit_[k]";
        let scene = Scene::new(&[work_s, work_s, 1.2]).on("run;work", 100);
        let scene = scene.off(3, WaitClass::Disk, flush, 8.0);
        let scene = scene.off(3, WaitClass::Lock, "flush;pthread_cond_wait;futex_wait_[k]", 0.5);
        change(scene.woken("0x7f40", 1, "run;pthread_cond_signal")).classes()
    }

    /// Planted faults: a writer's own time at the disk alone (`behind_all` left at 0); whoever is at a disk beside others
    /// (`is_awaited` false, `network` not looked at); however little those do (`WORKS_BESIDE_MIN` of 0).
    #[test]
    fn a_writer_for_whom_nobody_waits_holds_nobody_up() {
        assert_eq!(behind(0.8, |scene| scene), []);
        assert_eq!(behind(0.05, |scene| scene), [Class::SyncIo], "it is the program's only work");
        let serves = |scene: Scene| scene.off(3, WaitClass::Network, "serve;recv", 0.3);
        assert_eq!(behind(0.8, serves), [Class::SyncIo]);
        let awaited = |ended: &'static str| {
            let at = "run;pthread_cond_wait;futex_wait_[k]";
            move |scene: Scene| scene.off(1, WaitClass::Lock, at, 1.0).woken("0x7f50", 3, ended)
        };
        assert_eq!(behind(0.8, awaited("flush;pthread_cond_signal")), [Class::SyncIo]);
    }

    /// Planted faults: only who is woken by the flusher itself (`in_rounds` empty); whoever hands on, whatever woke it (no
    /// `OF_ROUNDS_MIN`); turns that no flusher begins (`is_turn` not asked in `share_out_locks`).
    #[test]
    fn who_is_woken_from_one_to_the_next_waits_for_whom_the_first_waited() {
        let rounds = commits(9.5, 9.4, |tid| if tid == 1 { 5 } else { tid - 1 });
        assert_eq!(rounds.classes(), [Class::SyncIo]);
        // Fewer at once: as if they waited for their turn at a lock.
        let turns = commits(8.5, 8.6, |tid| if tid == 1 { 5 } else { tid - 1 });
        let turns = turns.with(|seen| {
            seen.off_cpu.as_mut().unwrap().wakers.iter_mut().for_each(|waker| waker.frames.clear());
        });
        assert_eq!(turns.classes(), [Class::SyncIo]);
        let share = rounds.diagnosed().findings[0].weight;
        assert!(share > 0.9, "all four: {share}");
        // They hand work to each other, and wait for the writer's word once.
        let peers = commits(9.5, 9.4, |tid| tid % 4 + 1);
        let mut leak = peers.off(1, WaitClass::Lock, AWAIT, 0.01).woken("0x7f00", 5, "flush;cond");
        leak.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = 1;
        assert!(!leak.classes().contains(&Class::SyncIo), "{:?}", leak.classes());
    }
}

//! What is wrong with a running server: written rules, from an observation to findings.
//!
//! `dyno diagnose` watches and calls [`diagnose`]; nothing here reads a clock or a file, and the same observation gives
//! the same answer. Each rule is a function in one of the files beside; adding one touches its file and the list below.
//! Rules know functions of the C library, of allocators, of the kernel and of run-times by name, never the program's.

mod ahead;
mod allocators;
mod answers;
mod askers;
mod at_work;
mod atomics;
pub mod audit;
mod behind;
mod blocking;
mod channels;
mod children;
mod code;
mod cpu;
mod draft;
mod equals;
mod facts;
mod flushers;
mod frames;
#[cfg(test)]
mod golden;
mod goroutines;
mod hand_over;
mod handshakes;
mod idle;
mod in_vain;
mod kernel;
mod limits;
#[cfg(test)]
mod lines;
mod makes;
mod memory;
mod names;
mod network;
mod one_call;
mod one_sync;
mod pool;
mod rings;
mod scans;
#[cfg(test)]
mod scene;
mod set_up;
mod shortened;
mod spin;
mod system_calls;
mod temporary;
mod threads_begun;
#[cfg(test)]
mod told;
mod unsampled;
mod waits;
mod whose_lock;

use dyno_record::finding::{Class, Confidence, Finding, RuledOut};
use dyno_record::observation::{NotLookedAt, Observation};

use draft::Outcome;
use facts::Facts;

/// What the rules said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diagnosed {
    /// What is wrong, the deepest cause first.
    pub findings: Vec<Finding>,
    /// What was seen and is no fault by itself.
    pub notes: Vec<Finding>,
    /// What is not wrong, and the figure that says so.
    pub ruled_out: Vec<RuledOut>,
    /// Of it, what came nearest to being found.
    pub nearest: Vec<RuledOut>,
    /// What could not be looked at.
    pub not_looked_at: Vec<NotLookedAt>,
    /// The program in which most of the CPU time is, where that is not the process that was named.
    pub works_in: Option<String>,
}

/// A rule and how deep its cause lies: 0 voids what stands below it, and the deeper cause explains the shallower.
struct Rule {
    class: Class,
    depth: u8,
    look: fn(&Facts<'_>) -> Outcome,
}

/// From others' doings, over waiting for the world and for each other, to what the program's own code does with its CPU.
const RULES: [Rule; 24] = [
    rule(Class::GeneratorLimited, 0, limits::generator_limited),
    rule(Class::Throttled, 0, limits::throttled),
    rule(Class::SyncIo, 1, blocking::sync_io),
    rule(Class::DelayedAck, 1, network::delayed_ack),
    rule(Class::AllocatorContention, 2, blocking::allocator_contention),
    rule(Class::Spinning, 2, spin::spinning),
    rule(Class::LockContention, 2, blocking::lock_contention),
    rule(Class::PoolLimit, 3, pool::pool_limit),
    rule(Class::SingleThreadLimit, 3, limits::single_thread_limit),
    rule(Class::FalseSharingSuspected, 4, memory::false_sharing),
    rule(Class::PageFaults, 4, memory::page_faults),
    rule(Class::TlbReach, 4, memory::tlb_reach),
    rule(Class::CacheMissesSuspected, 4, memory::cache_misses),
    rule(Class::RepeatedSetup, 4, set_up::repeated_setup),
    rule(Class::Formatting, 4, cpu::formatting),
    rule(Class::AllocationChurn, 4, cpu::allocation_churn),
    rule(Class::Copying, 4, cpu::copying),
    rule(Class::SyscallHeavy, 4, system_calls::syscall_heavy),
    rule(Class::UserHotSpot, 5, cpu::user_hot_spot),
    rule(Class::KernelNetwork, 5, kernel::kernel_network),
    rule(Class::FilteredSyscalls, 6, kernel::filtered_syscalls),
    rule(Class::PacketTap, 6, kernel::packet_tap),
    rule(Class::WrongCore, 6, kernel::wrong_core),
    rule(Class::NoisyNeighbor, 7, limits::noisy_neighbor),
];

const fn rule(class: Class, depth: u8, look: fn(&Facts<'_>) -> Outcome) -> Rule {
    Rule { class, depth, look }
}

/// Less CPU than this, in CPUs, and nothing to wait for: nothing ran.
const IDLE_CPUS: f64 = 0.005;
/// At most so many other readings stand under a finding.
const RULED_OUT_MAX: usize = 6;

/// Looks at an observation through every rule.
#[must_use]
pub fn diagnose(seen: &Observation) -> Diagnosed {
    let seen = &*allocators::named(seen);
    let seen = &*handshakes::named(seen);
    let seen = &*askers::among_peers(seen);
    let facts = Facts::new(seen);
    let (not_looked_at, works_in) = (seen.not_looked_at.clone(), at_work::elsewhere(seen));
    let mut said = Diagnosed { not_looked_at, works_in, ..Diagnosed::default() };
    if nothing_ran(&facts) {
        let what = "nothing ran: there was no load while it was watched".to_owned();
        said.not_looked_at.push(NotLookedAt { what, why: "give it load, or --load URL".to_owned() });
        return said;
    }
    let (mut found, mut alone, mut near) = (Vec::new(), Vec::new(), Vec::new());
    for rule in &RULES {
        match (rule.look)(&facts) {
            Outcome::Found(draft) | Outcome::Alone(draft) if is_beside_the_point(rule, &facts) => {
                said.notes.push(draft.finding);
            }
            Outcome::Alone(draft) => alone.push((rule.depth, draft.finding)),
            Outcome::Found(draft) => found.push((rule.depth, draft.finding)),
            Outcome::Noted(draft) => said.notes.push(draft.finding),
            Outcome::Partly(draft, what) => {
                said.notes.push(draft.finding);
                said.not_looked_at.push(unseen(rule.class, what));
            }
            Outcome::Against(by) => said.ruled_out.push(RuledOut { class: rule.class, by }),
            Outcome::Near(short) => {
                near.push((short.part, RuledOut { class: rule.class, by: short.in_words() }));
                said.ruled_out.push(RuledOut { class: rule.class, by: short.by });
            }
            Outcome::Unseen(what) => said.not_looked_at.push(unseen(rule.class, what)),
        }
    }
    said.not_looked_at.extend(unsampled::of(&facts).into_iter().chain(rings::of(&facts)));
    // Whatever else was found, by a rule before or after, is what it looks like.
    if found.is_empty() {
        found = alone;
    } else {
        said.notes.extend(alone.into_iter().map(|(_, finding)| finding));
    }
    weigh_work_of_one_thread(&mut found, &facts);
    weigh_collectors(&mut found, &facts);
    said.findings = in_order(found);
    shortened::tell(&mut said.findings, seen);
    said.nearest = nearest(near);
    name_what_was_ruled_out(&mut said);
    said
}

/// A figure below this part of what a finding takes is not near to it.
const NEAR_MIN: f64 = 0.25;
/// At most so many are told.
const NEAREST_MAX: usize = 2;

/// What came nearest to being found.
fn nearest(mut near: Vec<(f64, RuledOut)>) -> Vec<RuledOut> {
    near.retain(|(part, _)| *part >= NEAR_MIN);
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(NEAREST_MAX).map(|(_, out)| out).collect()
}

/// Whether the target did next to nothing and nothing held it up either.
fn nothing_ran(facts: &Facts<'_>) -> bool {
    let seen = facts.seen;
    let waits = facts.off.as_ref().map_or(0, |off| {
        off.sum(|time| time.disk + time.contended + time.behind_disk + time.for_flusher + time.allocator)
    });
    let held = waits as f64 >= 0.01 * seen.duration_s * 1e9;
    // What waits for acknowledgements needs no CPU to be slow.
    let sending = seen.packets.as_ref().and_then(|packets| packets.sending).unwrap_or_default();
    let held = held || network::held_share(&sending) >= HELD_MIN;
    // Nor does who sleeps, or waits for another's answer, while somebody waits for its own.
    let held = held || limits::is_waited_for(facts) || limits::is_owed(facts) || answers::in_line(facts);
    let held = held || facts.at_mutexes.as_ref().is_some_and(|at| at.waiting >= AT_MUTEXES_MIN);
    let loaded = seen.load.as_ref().is_some_and(|load| load.replies > 0 || load.lost > 0);
    seen.duration_s > 0.0 && seen.cpus_used() < IDLE_CPUS && !held && !loaded
}

/// Goroutines at mutexes, on average, from which on somebody waits for them.
const AT_MUTEXES_MIN: f64 = 0.5;
/// Share of the looks at connections that found bytes kept back, from which on it is not idle.
const HELD_MIN: f64 = 0.1;

/// Depths of the rules about what the CPU is spent on.
const OF_CPU_USE: std::ops::RangeInclusive<u8> = 4..=6;
/// Kinds of work that can be saved, whatever the program is for.
const OF_WORK: [Class; 5] =
    [Class::RepeatedSetup, Class::Formatting, Class::AllocationChurn, Class::Copying, Class::PageFaults];
/// A depth behind those.
const BEHIND_WORK: u8 = 5;
/// Where CPUs are no scarce thing, a request waits for something else if it takes so many times the CPU time that it
/// needs: up to two in a row and a round trip are usual.
const WAITS_FOR_CPU: f64 = 4.0;

/// Share of one CPU below which a target that nobody loads here is mostly idle.
const IDLE_CPU_MAX: f64 = 0.2;

/// What little CPU is used is spent so or so, but requests wait for something else, or nobody waits at all.
fn is_beside_the_point(rule: &Rule, facts: &Facts<'_>) -> bool {
    // Who waits for pages needs no CPU to be slow.
    let waits = rule.class == Class::PageFaults && memory::waits_for_pages(facts);
    if waits || !OF_CPU_USE.contains(&rule.depth) || !facts.has_cpu_to_spare() {
        return false;
    }
    let seen = facts.seen;
    match &seen.load {
        None => seen.cpus_used() < IDLE_CPU_MAX && !limits::is_waited_for(facts),
        Some(load) => {
            let cpu_ns = seen.process.cpu_ns as f64 / load.replies as f64;
            load.replies > 0 && load.p50_ns as f64 >= WAITS_FOR_CPU * cpu_ns
        }
    }
}

fn unseen(class: Class, what: &str) -> NotLookedAt {
    NotLookedAt { what: class.name().to_owned(), why: format!("it needs {what}") }
}

/// Deepest first, then by weight. A neighbour stands last: the other rules rest on shares of the target's own time, which
/// hold however little of it there is.
fn in_order(mut found: Vec<(u8, Finding)>) -> Vec<Finding> {
    found.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.weight.total_cmp(&a.1.weight)));
    found.into_iter().map(|(_, finding)| finding).collect()
}

/// One thread is at its limit, and most of what it does is work of a kind that can be saved: without it the same thread does more than
/// all CPUs could with it, and that is what stands first.
fn weigh_work_of_one_thread(found: &mut [(u8, Finding)], facts: &Facts<'_>) {
    let others = facts.gain_at_most().unwrap_or(f64::INFINITY);
    let is_kind_of_work =
        |(_, one): &&(u8, Finding)| OF_WORK.contains(&one.class) && one.confidence >= Confidence::Medium;
    let share = found.iter().filter(is_kind_of_work).map(|(_, one)| one.weight).fold(0.0, f64::max);
    let saved = share / (1.0 - share).max(f64::EPSILON);
    if saved > others {
        let limit = found.iter_mut().find(|(_, one)| one.class == Class::SingleThreadLimit);
        limit.into_iter().for_each(|(depth, _)| *depth = BEHIND_WORK);
    }
}

/// Of the CPU time, what collectors take from which on who waits at a lock waits for them: whoever has it is stopped by them as well.
const COLLECTORS_MIN: f64 = 0.5;

/// Collectors take most of the CPU time, and more of it than locks take of the working time: they stand first.
fn weigh_collectors(found: &mut [(u8, Finding)], facts: &Facts<'_>) {
    let Some(on) = &facts.on else { return };
    // Those beside stop nobody: locks are told of only where CPUs are free.
    let collectors = on.share_of_collectors() - on.share_of_collectors_beside();
    let is_told = found.iter().any(|(_, one)| one.class == Class::AllocationChurn);
    if is_told && collectors >= COLLECTORS_MIN {
        let is_less = |one: &Finding| one.class == Class::LockContention && one.weight < collectors;
        found.iter_mut().filter(|(_, one)| is_less(one)).for_each(|(depth, _)| *depth = BEHIND_WORK);
    }
}

/// Under each finding stand the readings that its figures might also have had.
fn name_what_was_ruled_out(said: &mut Diagnosed) {
    for finding in &mut said.findings {
        let near = rivals(finding.class);
        let out = said.ruled_out.iter().filter(|out| near.contains(&out.class));
        finding.ruled_out = out.take(RULED_OUT_MAX).cloned().collect();
    }
}

/// What could look the same from outside.
fn rivals(class: Class) -> &'static [Class] {
    use Class::{
        AllocationChurn, AllocatorContention, CacheMissesSuspected, Copying, DelayedAck,
        FalseSharingSuspected, FilteredSyscalls, Formatting, GeneratorLimited, KernelNetwork, LockContention,
        NoisyNeighbor, PacketTap, PageFaults, PoolLimit, RepeatedSetup, SingleThreadLimit, Spinning, SyncIo,
        SyscallHeavy, Throttled, TlbReach, UserHotSpot, WrongCore,
    };
    match class {
        // The CPU is not full: something is waited for.
        SyncIo | DelayedAck | LockContention | AllocatorContention | PoolLimit | SingleThreadLimit => &[
            SyncIo,
            DelayedAck,
            LockContention,
            AllocatorContention,
            PoolLimit,
            SingleThreadLimit,
            Throttled,
            NoisyNeighbor,
            GeneratorLimited,
            Spinning,
        ],
        // The CPU is full with waiting or with memory.
        Spinning | FalseSharingSuspected | CacheMissesSuspected | TlbReach | PageFaults | UserHotSpot => &[
            Spinning,
            LockContention,
            FalseSharingSuspected,
            TlbReach,
            CacheMissesSuspected,
            PageFaults,
            NoisyNeighbor,
        ],
        // The CPU is full with one kind of work.
        AllocationChurn | Copying | Formatting | RepeatedSetup => {
            &[AllocatorContention, PageFaults, Copying, Formatting, AllocationChurn, SyscallHeavy, Spinning]
        }
        SyscallHeavy | KernelNetwork | FilteredSyscalls | PacketTap | WrongCore => {
            &[FilteredSyscalls, PacketTap, WrongCore, KernelNetwork, PageFaults, SyncIo, NoisyNeighbor]
        }
        GeneratorLimited | Throttled | NoisyNeighbor => {
            &[GeneratorLimited, Throttled, NoisyNeighbor, SingleThreadLimit]
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use dyno_record::finding::Class;
    use dyno_record::observation::{Load, Packets, Sending, Serving};
    use dyno_record::profile::{SystemCall, WaitClass};

    use crate::scene::{ROWS, Scene, busy_load};

    #[test]
    fn nothing_that_ran_gives_no_finding_and_says_so() {
        let idle = Scene::new(&[0.001; 4]).off(1, WaitClass::Network, "main;epoll_wait", 10.0);
        assert_eq!(idle.classes(), []);
        assert!(idle.diagnosed().not_looked_at[0].what.starts_with("nothing ran"));
        // Planted fault: a load is one though nothing came of it.
        let loaded = |replies, lost| {
            let idle = Scene::new(&[0.001]).load(Load { replies, lost, ..Load::default() });
            idle.diagnosed().not_looked_at.iter().all(|one| !one.what.starts_with("nothing ran"))
        };
        assert_eq!([loaded(0, 0), loaded(1, 0), loaded(0, 1)], [false, true, true]);
        // And little that runs is no more than 5 ms of each second.
        let ran = |seconds: f64| {
            let said = Scene::new(&[seconds]).diagnosed();
            !said.not_looked_at.iter().any(|one| one.what.starts_with("nothing ran"))
        };
        assert_eq!([ran(0.049), ran(0.05)], [false, true]);
        // Who waits at a disk for a hundredth of the time does something.
        let waits = |seconds: f64| {
            let idle = Scene::new(&[0.001]).off(1, WaitClass::Disk, "main;read;vfs_read_[k]", seconds);
            idle.diagnosed().not_looked_at.iter().all(|one| !one.what.starts_with("nothing ran"))
        };
        assert_eq!([waits(0.099), waits(0.1)], [false, true]);
    }

    /// Planted fault: only the CPU that it uses says that it is asked. An event loop that waits 50 ms for a database on each
    /// of 20 requests a second uses a five-hundredth of a CPU.
    #[test]
    fn who_waits_for_answers_while_somebody_waits_for_its_own_is_not_without_load() {
        let asked = |rounds_waiting: u64| {
            let looked =
                Sending { rounds: 80, rounds_waiting, waiting: rounds_waiting, ..Sending::default() };
            let scene = Scene::new(&[0.02]).off(1, WaitClass::Network, "main;recv;tcp_recvmsg_[k]", 9.9);
            scene.with(|seen| {
                let wait = seen.off_cpu.as_mut().unwrap().stacks[0].wait.as_mut().unwrap();
                wait.system_call = Some("recvfrom".to_owned());
                seen.packets = Some(Packets { sending: Some(looked), ..Packets::default() });
            })
        };
        assert_eq!(asked(80).classes(), [Class::PoolLimit]);
        assert_eq!(asked(0).classes(), []);
        assert!(asked(0).diagnosed().not_looked_at[0].what.starts_with("nothing ran"));
    }

    /// Handlers that queue before a mutex under which one sleeps: all was read, and next to no CPU is used. Planted faults: only what
    /// lies in sockets is waited for; a client now and then.
    #[test]
    fn who_owes_answers_all_the_time_is_not_without_load() {
        let ran = |looks_owed: u64| {
            let serving = Serving { connections: 20.0, looks: 100, looks_owed, ..Serving::default() };
            let scene = Scene::new(&[0.01]).with(|seen| {
                seen.packets = Some(Packets { serving: Some(serving), ..Packets::default() });
            });
            scene.diagnosed().not_looked_at.iter().all(|one| !one.what.starts_with("nothing ran"))
        };
        assert_eq!([ran(95), ran(30)], [true, false]);
    }

    /// One function of a thread that always runs, beside a neighbour that takes its CPU. Planted fault: only rules that were asked
    /// before are set against it.
    #[test]
    fn what_is_so_alone_is_a_note_whatever_rule_finds_something() {
        let beside = |foreign_s: u64| {
            let scene = Scene::new(&[6.7]).on("main;digest", 99).on("main;other", 1).with(|seen| {
                seen.host.foreign_ns = foreign_s * 1_000_000_000;
                seen.threads[0].wait_ns = 3_300_000_000;
            });
            let said = scene.diagnosed();
            (scene.classes(), said.notes.iter().any(|note| note.class == Class::UserHotSpot))
        };
        assert_eq!(beside(13), (vec![Class::NoisyNeighbor], true));
        assert_eq!(
            Scene::new(&[9.9]).on("main;digest", 99).on("main;other", 1).classes(),
            [Class::UserHotSpot]
        );
    }

    /// A heap that is too small, under threads that meet at a lock. Planted faults: locks always stand first; the collector always does; one
    /// that runs beside the program stops it.
    #[test]
    fn a_collector_that_takes_most_stands_before_locks_at_which_its_pauses_are_waited_out() {
        let meet_by = |collector: &str, collected: u64, waited: f64| {
            let mut scene = Scene::new(&[4.0; 3]).on(collector, collected).on("java;work", 100 - collected);
            for (tid, other) in [(1, 2), (2, 1)] {
                scene = scene
                    .off(tid, WaitClass::Lock, "java;take;pthread_mutex_lock;futex_wait_[k]", waited)
                    .woken("0x1", other, "java;give;pthread_mutex_unlock;futex_wake_[k]");
            }
            scene.classes()
        };
        let stops = "VMThread::run();VM_GenCollectForAllocation::doit();GenMarkSweep::mark";
        let meet = |collected, waited| meet_by(stops, collected, waited);
        assert_eq!(meet(70, 2.0), [Class::AllocationChurn, Class::LockContention]);
        assert_eq!(meet(30, 2.0), [Class::LockContention, Class::AllocationChurn]);
        assert_eq!(meet(55, 9.0), [Class::LockContention, Class::AllocationChurn], "locks take more");
        let beside = "ConcurrentGCThread::run;ZMark::work()";
        assert_eq!(meet_by(beside, 70, 2.0), [Class::LockContention, Class::AllocationChurn]);
    }

    /// Planted faults: a thread at its limit always stands first; work always does.
    #[test]
    fn work_that_can_be_saved_stands_before_the_thread_it_fills_where_it_would_bring_more() {
        let formats = |percent: u64| {
            let scene = Scene::new(&[9.9]).on("main;work", 100 - percent);
            let scene = scene.on("main;snprintf;__vfprintf_internal", percent);
            scene.load(Load { p50_ns: 6_000_000, ..busy_load() }).classes()
        };
        assert_eq!(formats(70), [Class::Formatting, Class::SingleThreadLimit]);
        assert_eq!(formats(35), [Class::SingleThreadLimit, Class::Formatting]);
    }

    #[test]
    fn what_was_not_seen_is_not_taken_for_nothing() {
        let blind = Scene::new(&[5.0]).with(|seen| {
            (seen.on_cpu, seen.off_cpu, seen.memory, seen.packets) = (None, None, None, None);
        });
        let said = blind.diagnosed();
        assert!(said.findings.is_empty());
        let unseen: Vec<&str> = said.not_looked_at.iter().map(|one| one.what.as_str()).collect();
        for class in
            ["sync_io", "lock_contention", "formatting", "tlb_reach", "packet_tap", "generator_limited"]
        {
            assert!(unseen.contains(&class), "{class}: {unseen:?}");
        }
    }

    #[test]
    fn every_class_has_one_rule() {
        let mut classes: Vec<Class> = crate::RULES.iter().map(|rule| rule.class).collect();
        classes.sort_unstable();
        assert_eq!(classes, Class::ALL);
    }

    #[test]
    fn a_busy_healthy_program_gives_nothing_and_says_what_was_ruled_out() {
        let scene = Scene::new(&[9.0, 9.0])
            .on("run;work", 60)
            .on("run;work;malloc", 10)
            .on("run;send;tcp_sendmsg_[k]", 30);
        let said = scene.diagnosed();
        assert!(said.findings.is_empty(), "{:#?}", said.findings);
        assert!(said.ruled_out.len() > 12);
    }

    #[test]
    fn what_little_cpu_is_spent_on_is_a_note_while_requests_wait_for_something_else() {
        let served = |run_s: f64| {
            let call = SystemCall { count: 2_500_000, ..SystemCall::default() };
            Scene::new(&[run_s]).on("main;do_syscall_64_[k];tcp_sendmsg_[k]", 100).load(busy_load()).with(
                |seen| {
                    seen.off_cpu.as_mut().unwrap().system_calls =
                        BTreeMap::from([("write".to_owned(), call)]);
                },
            )
        };
        assert!(served(9.5).classes().contains(&Class::SyscallHeavy));
        let idle = served(0.8).diagnosed();
        assert!(idle.findings.is_empty(), "{:?}", idle.findings);
        assert!(idle.notes.iter().any(|note| note.class == Class::SyscallHeavy), "{:?}", idle.notes);
    }

    #[test]
    fn what_an_idle_daemon_spends_its_little_cpu_on_is_a_note_unless_somebody_waits_for_it() {
        let served = |run_s: f64, rounds_waiting: u64| {
            let sending =
                Sending { rounds: 80, rounds_waiting, waiting: rounds_waiting, ..Sending::default() };
            Scene::new(&[run_s]).on("main;work", 60).on("main;work;malloc", 40).with(|seen| {
                seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() });
            })
        };
        let idle = served(0.3, 0).diagnosed();
        assert!(idle.findings.is_empty(), "{:?}", idle.findings);
        assert!(idle.notes.iter().any(|note| note.class == Class::AllocationChurn), "{:?}", idle.notes);
        assert_eq!(served(0.3, 60).classes(), [Class::AllocationChurn], "connections wait");
        assert_eq!(served(3.0, 0).classes(), [Class::AllocationChurn], "it does something");
    }

    /// Planted faults: a rule that is silent below its line (`Against` in place of `near`); the figure without its line.
    #[test]
    fn what_falls_just_short_of_a_line_is_told_with_both() {
        for (stack, line, class) in [
            ("main;work;malloc", 24, Class::AllocationChurn),
            ("main;work;memcpy", 24, Class::Copying),
            ("main;work;snprintf", 24, Class::Formatting),
            ("main;work;asm_exc_page_fault_[k];clear_page_erms_[k]", 14, Class::PageFaults),
            ("main;sched_yield;__x64_sys_sched_yield_[k]", 19, Class::Spinning),
            ("main;write;do_syscall_64_[k];nft_do_chain_[k]", 9, Class::KernelNetwork),
        ] {
            let scene =
                Scene::new(&[9.0, 9.0]).on("run;work", 100 - line).on(stack, line).hot(ROWS, 0.1, vec![]);
            let said = scene.diagnosed();
            assert!(said.findings.is_empty(), "{class}: {:?}", said.findings);
            let nearest = &said.nearest[0];
            assert_eq!(nearest.class, class);
            assert!(nearest.by.ends_with(" on)") && nearest.by.contains(" (a finding from "), "{nearest:?}");
        }
    }

    /// Two threads that wait for each other at a futex inside `around`.
    fn meet_in(around: &str) -> Vec<Class> {
        let stack = format!("run;{around};syscall;do_futex_[k]");
        let wait = |scene: Scene, tid: u32, waker: u32| {
            scene.off(tid, WaitClass::Lock, &stack, 6.0).woken("futex 0x1", waker, &stack)
        };
        let scene = Scene::new(&[4.0, 4.0]).on("run;work", 100);
        wait(wait(scene, 1, 2), 2, 1).classes()
    }

    #[test]
    fn who_waits_until_all_have_come_holds_no_lock() {
        assert_eq!(meet_in("somewhere"), [Class::LockContention]);
        for barrier in ["GOMP_barrier;gomp_team_barrier_wait_end", "__kmp_join_barrier"] {
            assert_eq!(meet_in(barrier), [], "{barrier}");
        }
    }
}

//! Tests of the rules for threads and pools that are too few.
#![allow(clippy::unwrap_used)]

use dyno_record::finding::Class;
use dyno_record::observation::{
    Datagrams, Goroutines, Limit, Load, NotLookedAt, Packets, Queue, Quota, Sending, Serving,
};
use dyno_record::profile::{SystemCall, ThreadTime, WaitClass};
use std::collections::BTreeMap;

use crate::scene::{S, Scene, busy_load, synchronous_log};

/// So many connections found the queue of its own listener full.
fn overflowing(many: u64) -> Packets {
    let queue = Queue { local: "0.0.0.0:80".into(), dropped: many, ..Queue::default() };
    Packets { listen_overflows: many, listen_drops: many, queues: vec![queue], ..Packets::default() }
}

/// Another server on the machine is overrun. Planted faults: whatever overflows is the target's (`refused` without its queues); a
/// unix listener that is full; what a queue without a limit holds fills it.
#[test]
fn connections_that_find_anothers_queue_full_wait_for_nobody_here() {
    let told = |local: &str, change: &dyn Fn(&mut Queue)| {
        let mut packets = overflowing(12);
        packets.queues[0] = Queue { local: local.into(), most: 128, ..Queue::default() };
        change(&mut packets.queues[0]);
        let scene = Scene::new(&[9.9]).on("main;work", 100).with(|seen| seen.packets = Some(packets));
        let found = scene.diagnosed().findings.into_iter().next()?;
        found.evidence.into_iter().map(|one| one.text).find(|text| text.contains("queue full"))
    };
    let tcp = "0.0.0.0:80";
    assert_eq!(told(tcp, &|_| ()), None);
    assert_eq!(told(tcp, &|queue| queue.backlog = Some(129)), None);
    assert_eq!(told("/run/srv", &|queue| queue.backlog = Some(128)), None);
    let full = told(tcp, &|queue| queue.backlog = Some(128)).unwrap();
    assert_eq!(full, "12 connections found a listener's queue full, as that of 0.0.0.0:80 was");
    let own = told(tcp, &|queue| queue.dropped = 5).unwrap();
    assert_eq!(own, "5 connections found its listener's queue full");
    // Nobody may look at its listeners. Planted fault: then nobody found one full.
    let mut unseen = overflowing(12);
    unseen.queues.clear();
    let scene = Scene::new(&[9.9]).on("main;work", 100).with(|seen| seen.packets = Some(unseen));
    assert_eq!(scene.classes(), [Class::SingleThreadLimit]);
}

#[test]
fn one_full_thread_leads_only_when_somebody_waits_for_it() {
    let alone = Scene::new(&[9.9]).on("main;work", 100);
    assert_eq!(alone.classes(), []);
    assert!(alone.diagnosed().notes.iter().any(|note| note.class == Class::SingleThreadLimit));
    let refused = Scene::new(&[9.9]).on("main;work", 100).with(|seen| seen.packets = Some(overflowing(12)));
    assert_eq!(refused.classes(), [Class::SingleThreadLimit]);
    // 64 connections at 100 µs of CPU each: the last one waits 6.4 ms.
    let in_line = Scene::new(&[9.9]).on("main;work", 100).load(Load { p50_ns: 6_000_000, ..busy_load() });
    assert_eq!(in_line.classes(), [Class::SingleThreadLimit]);
    // Planted fault: a helper that hardly runs waits for work as well (`OTHERS_WORK_MIN` of 0).
    let waiting = |each: f64, name: &str| {
        let mut scene = Scene::new(&[9.9, each, each]).on("main;work", 100);
        let threads = &mut scene.seen.off_cpu.as_mut().unwrap().threads;
        threads[1..].iter_mut().for_each(|thread| thread.name = name.to_owned());
        for tid in [2, 3] {
            scene = scene.off(tid, WaitClass::Lock, "run;pthread_cond_wait;futex_wait_[k]", 9.5).woken(
                "0x7f",
                1,
                "main;pthread_cond_signal",
            );
        }
        scene.classes()
    };
    assert_eq!(waiting(0.1, "t"), [Class::SingleThreadLimit]);
    assert_eq!(waiting(0.02, "t"), []);
    // Planted fault: a virtual machine's compiler waits for the program.
    assert_eq!(waiting(0.1, "C2 CompilerThre"), []);
    let two = Scene::new(&[9.9, 9.9]).on("main;work", 100).load(busy_load());
    assert_eq!(two.classes(), []);
}

/// Planted faults: a headline of 50 % under which 7 % have a name; who gives way is not told.
#[test]
fn what_neighbours_used_adds_up() {
    let told = |named_ds: u64, yielding: u64| {
        let scene = Scene::new(&[6.0]).on("main;work", 100).with(|seen| {
            (seen.host.foreign_ns, seen.host.yielding_ns) = (10 * S, yielding * S);
            seen.host.neighbours = vec![("cc1".into(), named_ds * S / 10)];
            seen.threads[0].wait_ns = 3 * S;
        });
        let finding = scene.diagnosed().findings.into_iter().find(|one| one.class == Class::NoisyNeighbor);
        finding.unwrap().evidence.into_iter().map(|fact| fact.text).collect::<Vec<_>>().join("; ")
    };
    assert!(told(14, 0).contains("cc1 7.0 %, and 43 % in processes that ended meanwhile"), "{}", told(14, 0));
    assert!(!told(90, 0).contains("ended meanwhile") && !told(90, 0).contains("give way"));
    assert!(told(90, 4).contains("20 % more went to processes that give way"), "{}", told(90, 4));
}

/// Planted faults: what is dropped is not asked; datagrams are told as connections.
#[test]
fn datagrams_without_room_wait_for_a_full_thread_and_so_do_those_that_nobody_reads() {
    let said = |dropped: u64, looks_waiting: u64| {
        let scene = Scene::new(&[9.9]).on("main;work", 100).with(|seen| {
            let packets = seen.packets.as_mut().unwrap();
            packets.datagrams = Some(Datagrams { sockets: 1, looks: 60, looks_waiting, dropped });
            let waiting = looks_waiting;
            let looked = Sending { rounds: 60, rounds_waiting: waiting, waiting, ..Sending::default() };
            packets.sending = Some(looked);
        });
        let first = scene.diagnosed().findings.into_iter().next();
        first.map(|one| (one.class, one.evidence.into_iter().map(|fact| fact.text).collect::<String>()))
    };
    let (class, text) = said(7, 0).unwrap();
    assert!(class == Class::SingleThreadLimit && text.contains("7 datagrams found no room"), "{text}");
    let (class, text) = said(0, 60).unwrap();
    assert!(class == Class::SingleThreadLimit && text.contains("datagrams waited to be read"), "{text}");
    assert_eq!(said(0, 0), None);
}

/// Node with one thread for its pool. Planted fault: what idle helpers wait is set against it (`run` of each not asked).
#[test]
fn who_waits_for_a_full_thread_is_set_against_those_who_work() {
    let mut scene = Scene::new(&[9.4, 0.8, 0.05, 0.05, 0.05, 0.05]).on("run;work", 100);
    scene = scene.off(2, WaitClass::Network, "main;epoll_pwait;ep_poll_[k]", 8.5).woken(
        "anon_inode:[eventpoll]",
        1,
        "run;work",
    );
    for tid in 3..=6 {
        scene = scene.off(tid, WaitClass::Lock, "run;pthread_cond_wait;futex_wait_[k]", 9.9).woken(
            "0x7f",
            2,
            "main;pthread_cond_signal",
        );
    }
    assert_eq!(scene.classes(), [Class::SingleThreadLimit]);
}

/// Planted faults: whoever runs all the time is waited for (`sends` not asked); what others are asked for is in line
/// (`awaiting` not taken off).
#[test]
fn requests_that_are_held_stand_in_line_before_the_full_thread_that_answers() {
    let held = |owed: u64, awaiting: f64, stack: &str| {
        let serving =
            Serving { connections: 8.0, looks: 80, looks_owed: 10 * owed, awaiting, ..Serving::default() };
        let scene = Scene::new(&[9.6]).on("main;work", 90).on(stack, 10);
        let packets = Packets { serving: Some(serving), ..Packets::default() };
        scene.with(|seen| seen.packets = Some(packets)).classes()
    };
    let sends = "main;send;tcp_sendmsg_[k]";
    assert_eq!(held(8, 0.0, sends), [Class::SingleThreadLimit]);
    assert_eq!(held(3, 0.0, sends), []);
    assert_eq!(held(8, 6.0, sends), [], "a gateway's, which wait for another server");
    assert_eq!(held(8, 0.0, "main;work"), [], "it computes beside who answers");
}

/// A database's one long query beside short ones; a machine's compiler. Planted faults: whatever waits in connections waits for the
/// thread that runs most; a compiler is one that clients wait for.
#[test]
fn clients_wait_for_those_who_answer_and_not_for_whoever_runs_most() {
    let full = |pid: u32, name: &str| {
        let sends = "serve;send;tcp_sendmsg_[k]";
        let mut scene = Scene::new(&[9.9, 1.0]).on("main;work", 90).on(sends, 10);
        let on = scene.seen.on_cpu.as_mut().unwrap();
        on.stacks.last_mut().unwrap().thread = 1;
        on.threads[0].pid = pid;
        scene.seen.threads[0].name = name.to_owned();
        let sending = Sending { rounds: 80, rounds_waiting: 60, waiting: 90, ..Sending::default() };
        let packets = Packets { sending: Some(sending), ..Packets::default() };
        scene.with(|seen| seen.packets = Some(packets)).classes()
    };
    assert_eq!(full(1, "t"), [Class::SingleThreadLimit]);
    assert_eq!(full(7, "t"), [], "another process answers");
    assert_eq!(full(1, "C2 CompilerThre"), []);
}

/// Planted faults: waiting set against what threads run alone (`cost` never given); a full thread's set against all that is held
/// (`full` of none); what is gone waited for nothing (`SEEN_MIN` of 0).
#[test]
fn a_neighbour_that_costs_next_to_nothing_is_a_note() {
    let beside = |threads: &[f64], wait_ms: u64, owed: u64| {
        let serving = Serving { connections: 16.0, looks: 160, looks_owed: 10 * owed, ..Serving::default() };
        let packets = Packets { serving: Some(serving), ..Packets::default() };
        let scene = Scene::new(threads).on("main;work", 100).with(|seen| {
            (seen.host.foreign_ns, seen.packets) = (9 * S, Some(packets));
            seen.threads.iter_mut().for_each(|thread| thread.wait_ns = wait_ms * S / 1_000);
        });
        let said = scene.diagnosed();
        let is_it = |class| class == Class::NoisyNeighbor;
        let found = said.findings.iter().any(|one| is_it(one.class));
        (found, said.notes.iter().any(|one| is_it(one.class)))
    };
    let (found, noted) = ((true, false), (false, true));
    assert_eq!(beside(&[0.2; 16], 300, 16), noted, "3 % of what a request takes");
    assert_eq!(beside(&[0.2; 16], 300, 4), found, "12 % of it");
    assert_eq!(beside(&[6.0], 3_000, 16), found, "all wait for this thread");
    assert_eq!(beside(&[0.3], 200, 0), noted, "it waits for something else");
    assert_eq!(beside(&[0.3], 2_000, 0), found);
    let gone = beside_children();
    assert!(gone.classes().contains(&Class::NoisyNeighbor), "most is done by processes that are gone");
}

fn beside_children() -> Scene {
    Scene::new(&[0.3]).on("main;work", 100).with(|seen| {
        (seen.host.foreign_ns, seen.process.cpu_ns) = (9 * S, 8 * S);
        seen.threads[0].wait_ns = S / 5;
    })
}

/// A server and its client beside a build. Planted fault: what others take counts as free for a second thread, and not for who
/// asks (`kept_off` of 0 in `gain_at_most`).
#[test]
fn what_others_take_from_who_asks_is_free_for_nobody() {
    let beside = |wait_s: u64, foreign_s: u64, peers_s: u64| {
        let scene = Scene::new(&[5.1]).on("main;work", 100).with(|seen| {
            seen.threads[0].wait_ns = wait_s * S;
            (seen.host.foreign_ns, seen.host.peers_ns) = (foreign_s * S, peers_s * S);
            seen.packets = Some(Packets { unread: 40, ..Packets::default() });
        });
        scene.classes().contains(&Class::SingleThreadLimit)
    };
    assert!(!beside(4, 10, 5), "its client would have run as well");
    assert!(beside(4, 10, 0), "its client does next to nothing");
}

/// Planted faults: what a second process may bring a little of is found, or not told at all; it is told where nobody waits.
#[test]
fn a_full_thread_whose_clients_use_the_other_cpus_is_a_note() {
    let full = |peers_s: u64, listen_overflows: u64| {
        let scene = Scene::new(&[9.9]).on("main;work", 100).with(|seen| {
            (seen.host.peers_ns, seen.host.idle_ns) = (peers_s * S, (10 - peers_s) * S);
            seen.packets = Some(overflowing(listen_overflows));
        });
        let is_noted = scene.diagnosed().notes.iter().any(|note| note.class == Class::SingleThreadLimit);
        (scene.classes().contains(&Class::SingleThreadLimit), is_noted)
    };
    // 55, 26 and 18 % more at most.
    assert_eq!([full(3, 9), full(6, 9), full(7, 9)], [(true, false), (false, true), (false, false)]);
    assert_eq!([full(3, 0), full(6, 0)], [(false, true), (false, false)]);
}

/// A thread runs and waits for a CPU for so many of ten seconds, while a client on the same machine runs for three, and
/// something waits at so many of a hundred looks.
fn demand(run_s: f64, wait_s: f64, rounds_waiting: u64) -> Scene {
    let sending = Sending { rounds: 100, rounds_waiting, waiting: rounds_waiting, ..Sending::default() };
    Scene::new(&[run_s]).on("main;work", 100).with(|seen| {
        seen.threads[0].wait_ns = (wait_s * 1e9) as u64;
        (seen.host.peers_ns, seen.host.own_ns) = (3 * S, S);
        seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() });
    })
}

/// Planted fault: only the share of that waiting that is others' doing (`facts.crowd()` times `waits`).
#[test]
fn a_thread_that_waits_for_a_cpu_while_it_does_not_run_is_at_its_limit() {
    let said = demand(8.4, 0.9, 80).diagnosed();
    assert_eq!(said.findings.iter().map(|found| found.class).collect::<Vec<_>>(), [Class::SingleThreadLimit]);
    let summary = &said.findings[0].summary;
    assert!(summary.contains("runs 84 % of the time and waits 9.0 % of it for a CPU"), "{summary}");
    assert!(!demand(9.8, 0.0, 80).diagnosed().findings[0].summary.contains("waits"));
}

/// Planted faults: a quarter of the looks whatever the thread waits for (`WAITING_WHILE_IT_RUNS_NOT` of 0); a quota's
/// waiting taken for demand; so is that of a thread which hardly runs (`RUNS_HALF_MIN` of 0).
#[test]
fn what_waits_for_a_cpu_is_no_limit_of_one_thread_by_itself() {
    assert_eq!(
        demand(7.0, 2.5, 40).classes(),
        [],
        "one client that asks again finds it without a CPU as often"
    );
    assert_eq!(demand(7.0, 2.5, 70).classes(), [Class::SingleThreadLimit]);
    assert_eq!(demand(4.0, 5.5, 100).classes(), [], "others keep it from running");
    let unread =
        |seen: &mut dyno_record::observation::Observation| seen.packets.as_mut().unwrap().unread = 40;
    assert_eq!(demand(4.0, 5.5, 100).with(unread).classes(), [], "though requests lie unread");
    let held = |throttled_ns| {
        let quota = Quota { cpus: Some(0.7), periods: 100, throttled: 60, throttled_ns };
        demand(7.0, 2.5, 70).with(|seen| seen.quota = Some(quota)).classes()
    };
    assert_eq!(held(3 * S), [Class::Throttled]);
}

/// Planted fault: below the line nothing comes near (`is_near` false).
#[test]
fn a_thread_just_below_its_limit_is_told_as_what_came_nearest() {
    let near = |waiting| demand(8.2, 0.4, waiting).diagnosed().nearest;
    let told = near(80);
    assert_eq!(told[0].class, Class::SingleThreadLimit);
    assert!(
        told[0].by.contains("runs 82 % of the time") && told[0].by.ends_with("(a finding from 88 % on)"),
        "{told:?}"
    );
    assert!(near(10).iter().all(|out| out.class != Class::SingleThreadLimit), "nobody waits for it");
}

#[test]
fn outside_limits_come_before_everything() {
    let generator = |limited| {
        Scene::new(&[9.0])
            .on("main;work;malloc", 60)
            .on("main;work", 40)
            .load(Load { limited, busy: 0.99, ..busy_load() })
            .with(|seen| seen.host.own_ns = 10 * S)
    };
    assert_eq!(generator(Limit::Yes).classes(), [Class::GeneratorLimited, Class::AllocationChurn]);
    assert_eq!(generator(Limit::No).classes(), [Class::AllocationChurn]);
    let quota = |throttled| {
        synchronous_log().with(|seen| {
            seen.quota = Some(Quota { cpus: Some(0.5), periods: 100, throttled, throttled_ns: S });
        })
    };
    assert_eq!(quota(60).classes(), [Class::Throttled, Class::SyncIo]);
    assert_eq!(quota(1).classes(), [Class::SyncIo]);
}

/// `docker --cpus=1` on four CPUs, of which three are idle. Planted faults: a quota bounds nothing (`usable_ns` without it); it
/// bounds where it pays for more than there is; what was used of it is free.
#[test]
fn beyond_a_quota_no_cpu_is_free() {
    let paid = |cpus: f64| {
        let scene = Scene::new(&[9.5]).on("main;work", 100).with(|seen| {
            (seen.host.cpus, seen.host.all_ns, seen.host.idle_ns) = (4, 40 * S, 30 * S);
            seen.quota = Some(Quota { cpus: Some(cpus), periods: 100, ..Quota::default() });
            seen.packets = Some(Packets { unread: 40, ..Packets::default() });
        });
        let said = scene.diagnosed();
        let found = said.findings.iter().find(|found| found.class == Class::SingleThreadLimit);
        found.map(|found| (found.summary.clone(), found.evidence[1].text.clone()))
    };
    assert_eq!(paid(1.0), None);
    let (summary, left) = paid(2.0).unwrap();
    assert!(summary.ends_with("while 1.1 CPUs are free"), "{summary}");
    assert_eq!(left, "1.1 CPUs are free of the 2 that its quota pays for");
    assert!(paid(9.0).unwrap().0.ends_with("while 3.0 CPUs are free"));
}

/// Planted fault: periods counted, however short each was held.
#[test]
fn a_quota_that_holds_it_for_moments_is_no_finding() {
    let held = |ns| {
        let scene = Scene::new(&[5.0]).on("main;work", 100);
        scene.with(|seen| {
            seen.quota = Some(Quota { cpus: Some(0.5), periods: 25, throttled: 2, throttled_ns: ns });
        })
    };
    assert!(!held(S / 150).classes().contains(&Class::Throttled));
    assert!(held(S).classes().contains(&Class::Throttled));
}

#[test]
fn a_neighbour_comes_last_and_only_where_somebody_waited_for_a_cpu() {
    let foreign = |seconds: u64| {
        Scene::new(&[8.0]).on("main;work;malloc", 60).on("main;work", 40).with(|seen| {
            seen.host.foreign_ns = seconds * S;
            seen.threads[0].wait_ns = 2 * S;
            seen.host.neighbours = vec![("cc1plus".into(), seconds * S)];
        })
    };
    assert_eq!(foreign(3).classes(), [Class::AllocationChurn, Class::NoisyNeighbor]);
    assert_eq!(foreign(10).classes(), [Class::AllocationChurn, Class::NoisyNeighbor]);
    assert_eq!(foreign(1).classes(), [Class::AllocationChurn]);
    let left_over = Scene::new(&[8.0]).on("main;work", 100).with(|seen| seen.host.foreign_ns = 10 * S);
    assert_eq!(left_over.classes(), [], "nobody waited for a CPU");
    let stolen = Scene::new(&[8.0]).on("main;work", 100).with(|seen| seen.host.steal_ns = 2 * S);
    assert_eq!(stolen.classes(), [Class::NoisyNeighbor]);
}

/// Planted faults: more busy threads than CPUs are held up by whoever is there; its own peers hold up nobody.
#[test]
fn who_waits_for_its_own_threads_and_peers_does_not_wait_for_neighbours() {
    let crowded = |own: f64, foreign_s: u64, peers_s: u64| {
        Scene::new(&[own; 4]).on("main;work", 100).with(|seen| {
            (seen.host.foreign_ns, seen.host.peers_ns) = (foreign_s * S, peers_s * S);
            seen.threads.iter_mut().for_each(|thread| thread.wait_ns = 3 * S / 2);
        })
    };
    let is_told = |scene: Scene| scene.classes().contains(&Class::NoisyNeighbor);
    assert!(!is_told(crowded(4.4, 2, 0)) && is_told(crowded(2.4, 10, 0)));
    let of_one = |foreign_s: u64, peers_s: u64| {
        Scene::new(&[7.0]).on("main;work", 100).with(|seen| {
            (seen.host.foreign_ns, seen.host.peers_ns) = (foreign_s * S, peers_s * S);
            seen.threads[0].wait_ns = S;
        })
    };
    assert!(!is_told(of_one(2, 9)) && is_told(of_one(9, 2)));
    // Planted fault: who never waits is not busy (`Facts::runs` without what it ran).
    let unevenly = |wait_s: u64| {
        crowded(4.4, 2, 0).with(|seen| {
            seen.threads.iter_mut().for_each(|thread| thread.wait_ns = 0);
            seen.threads[0].wait_ns = wait_s * S;
        })
    };
    assert!(!is_told(unevenly(6)));
}

#[test]
fn who_asks_from_the_same_machine_is_no_neighbour() {
    let asked = |seconds: u64| {
        Scene::new(&[8.0]).on("main;work", 100).with(|seen| {
            seen.host.peers_ns = seconds * S;
            seen.threads[0].wait_ns = 2 * S;
            seen.host.peers = vec![("wrk".into(), seconds * S)];
        })
    };
    let noted = |scene: Scene| scene.diagnosed().notes.iter().any(|note| note.class == Class::NoisyNeighbor);
    assert_eq!(asked(9).classes(), []);
    assert!(noted(asked(9)), "it is noted all the same");
    assert!(!noted(asked(1)));
}

#[test]
fn who_asks_over_a_unix_socket_is_no_neighbour_either() {
    let asked = |by: &str| {
        let scene = Scene::new(&[8.0]).on("main;work", 100);
        let scene = scene.off(1, WaitClass::Network, "main;read;unix_stream_read_[k]", 1.0);
        let mut scene = scene.woken("socket", 77, by).with(|seen| {
            seen.host.foreign_ns = 9 * S;
            seen.threads[0].wait_ns = 2 * S;
            seen.host.neighbours = vec![("pgbench".into(), 9 * S)];
        });
        let waker = scene.seen.off_cpu.as_mut().unwrap().wakers.last_mut().unwrap();
        (waker.pid, waker.name) = (77, "pgbench".into());
        scene.classes()
    };
    assert_eq!(asked("main;send;unix_stream_sendmsg_[k]"), []);
    assert_eq!(
        asked("main;work;hrtimer_wakeup_[k]"),
        [Class::NoisyNeighbor],
        "it only ran when a timer fired"
    );
}

/// A client over datagrams beside a thread that is full. Planted fault: what it uses counts as free.
#[test]
fn what_those_use_who_ask_is_not_free_for_more_of_the_target() {
    let asked = |by: &str| {
        let scene = Scene::new(&[9.9]).on("main;work", 100);
        let scene = scene.off(1, WaitClass::Network, "main;recvfrom;udp_recvmsg_[k]", 0.1);
        let mut scene = scene.woken("socket", 77, by).with(|seen| {
            seen.host.foreign_ns = 9 * S;
            seen.host.neighbours = vec![("dnsperf".into(), 9 * S)];
            let datagrams = Datagrams { sockets: 1, looks: 60, looks_waiting: 60, dropped: 7 };
            seen.packets = Some(Packets { datagrams: Some(datagrams), ..Packets::default() });
        });
        let waker = scene.seen.off_cpu.as_mut().unwrap().wakers.last_mut().unwrap();
        (waker.pid, waker.name) = (77, "dnsperf".into());
        scene.classes()
    };
    assert_eq!(asked("main;sendto;udp_sendmsg_[k]"), []);
    assert_eq!(asked("main;work;hrtimer_wakeup_[k]"), [Class::SingleThreadLimit]);
}

#[test]
fn a_thread_at_its_limit_leads_where_requests_lie_unread() {
    let full = |unread: u64| {
        Scene::new(&[9.8])
            .on("main;work", 100)
            .with(|seen| seen.packets = Some(Packets { unread, ..Packets::default() }))
    };
    assert_eq!(full(40).classes(), [Class::SingleThreadLimit]);
    assert_eq!(full(1).classes(), []);
}

/// Planted faults: the thread's waits not asked; what it takes not asked, so that who spins is taken for who is full; a program
/// without connections taken for a server.
#[test]
fn a_thread_that_never_waits_for_an_event_and_takes_something_each_time_is_at_its_limit() {
    let served = |waiting_ms: u64, taken: u64, rounds: u64| {
        let call = |count| SystemCall { count, ..SystemCall::default() };
        let sending = Sending { rounds, ..Sending::default() };
        Scene::new(&[9.8])
            .on("main;work", 100)
            .off(1, WaitClass::RunQueue, "main;work", 0.01)
            .with(|seen| {
                seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() });
                let off = seen.off_cpu.as_mut().unwrap();
                let waiting_ns = waiting_ms * 1_000_000;
                off.thread_times =
                    vec![ThreadTime { thread: 0, running_ns: 10 * S, runnable_ns: 0, waiting_ns }];
                off.system_calls = BTreeMap::from([
                    ("epoll_wait".to_owned(), call(1_000)),
                    ("recvfrom".to_owned(), SystemCall { errors: 500, ..call(taken + 500) }),
                ]);
            })
            .classes()
    };
    assert_eq!(served(5, 1_500, 45), [Class::SingleThreadLimit]);
    assert_eq!(served(50, 1_500, 45), [], "it rests now and then");
    assert_eq!(served(5, 900, 45), [], "it asks for nothing again and again");
    assert_eq!(served(5, 1_500, 0), [], "nobody is connected");
}

/// `GOMAXPROCS=1`. Planted fault: goroutines that are ready are not asked for.
#[test]
fn a_thread_at_its_limit_leads_where_goroutines_are_ready_to_run() {
    let ready = |many: f64, others_s: f64| {
        let scene = Scene::new(&[9.8, others_s]).on("main.work", 100);
        let states = BTreeMap::from([("running".to_owned(), 1.0), ("runnable".to_owned(), many)]);
        scene
            .with(|seen| {
                seen.goroutines = Some(Goroutines { looks: 80, states, ..Goroutines::default() });
            })
            .classes()
    };
    assert_eq!(ready(3.0, 0.1), [Class::SingleThreadLimit]);
    assert_eq!(ready(0.4, 0.1), [], "one is made ready now and then");
    assert_eq!(ready(3.0, 9.8), [], "as many threads run as there are CPUs");
}

/// Planted fault: the note says that nobody waits, and not that it was not looked.
#[test]
fn of_a_run_time_whose_tasks_are_not_seen_it_is_said_that_some_may_be_ready() {
    let noted = |what: &str| {
        let scene = Scene::new(&[9.8]).on("main;work", 100);
        let one = NotLookedAt { what: what.to_owned(), why: String::new() };
        let said = scene.with(|seen| seen.not_looked_at.push(one)).diagnosed();
        format!("{:?}", said.notes)
    };
    assert!(
        noted("what processes of Erlang wait for").contains("whether more processes of Erlang are ready")
    );
    assert!(!noted("what threads wait for").contains("are ready"));
}

#[test]
fn a_thread_at_its_limit_leads_where_something_waits_at_a_quarter_of_the_looks() {
    let looked = |rounds, rounds_waiting| {
        let sending = Sending { rounds, rounds_waiting, waiting: rounds_waiting, ..Sending::default() };
        Scene::new(&[9.8])
            .on("main;work", 100)
            .with(|seen| seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() }))
            .classes()
    };
    assert_eq!(looked(100, 25), [Class::SingleThreadLimit]);
    assert_eq!(looked(100, 24), [], "one client that asks again at once");
    assert_eq!(looked(19, 19), [], "looked at too seldom");
}

//! Programs that something bounds from outside or by their shape: pools, one thread, the load, a quota, neighbours.

use std::collections::BTreeMap;

use dyno_record::observation::{
    Asked, Goroutines, Limit, Load, NotLookedAt, Packets, Place, Queue, Quota, Sending, Serving,
};
use dyno_record::profile::{SystemCall, ThreadTime, WaitClass};

use super::Told;
use crate::scene::{S, Scene, busy_load};

fn looked(rounds_waiting: u64, waiting: u64) -> Option<Sending> {
    Some(Sending { rounds: 80, rounds_waiting, waiting, ..Sending::default() })
}

fn sleepers(threads: usize, run_s: f64, packets: Packets) -> Scene {
    let mut scene = Scene::new(&vec![run_s; threads]).on("run;work", 100);
    for tid in 1..=threads as u32 {
        scene = scene.off(tid, WaitClass::Sleep, "run;nanosleep;hrtimer_nanosleep_[k]", 9.0);
    }
    scene.with(|seen| seen.packets = Some(packets))
}

fn for_answers(threads: usize, call: &str, times: u64, packets: Packets) -> Scene {
    let mut scene = Scene::new(&vec![0.3; threads]).on("main;serve;query", 100);
    for tid in 1..=threads as u32 {
        scene = scene.off(tid, WaitClass::Network, "main;serve;query;recv", 9.3);
        let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
        stack.samples = times;
        stack.wait.as_mut().unwrap().system_call = Some(call.to_owned());
    }
    scene.with(|seen| seen.packets = Some(packets))
}

fn gateway(connections: f64, most_awaiting: u64, owed: u64, sent_per_s: f64) -> Packets {
    let asked = Asked {
        remote: "10.0.0.2:5432".to_owned(),
        connections,
        looks: 160,
        looks_awaiting: 155,
        rounds: 80,
        most_awaiting,
        awaited_ms: 25.0,
        sent_per_s,
        ..Asked::default()
    };
    let serving = Serving {
        connections: 20.0,
        looks: 1_600,
        looks_owed: owed,
        owed_ms: 250.0,
        awaiting: 2.0,
        received_per_s: 40.0,
    };
    Packets { asked: vec![asked], serving: Some(serving), connections: 20, ..Packets::default() }
}

fn listener(looks_waiting: u64, most: u64, backlog: Option<u32>) -> Vec<Queue> {
    let local = "0.0.0.0:80".to_owned();
    vec![Queue { local, looks: 80, looks_waiting, waiting: 5 * looks_waiting, most, backlog, dropped: 0 }]
}

fn pools() -> Vec<Told> {
    let asked = |rounds_waiting| Packets {
        sending: looked(rounds_waiting, 2 * rounds_waiting),
        ..Packets::default()
    };
    let lookups = {
        let mut scene = Scene::new(&[0.1; 3]).off(3, WaitClass::Network, "main;epoll_wait", 9.8);
        for tid in 1..=2 {
            let way = "worker;getaddrinfo;__res_context_send;poll";
            scene = scene.off(tid, WaitClass::Network, way, 9.6);
            let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
            (stack.samples, stack.wait.as_mut().unwrap().system_call) = (400, Some("poll".to_owned()));
        }
        let serving =
            Serving { connections: 30.0, looks: 100, looks_owed: 90, owed_ms: 250.0, ..Serving::default() };
        scene.with(|seen| seen.packets = Some(Packets { serving: Some(serving), ..Packets::default() }))
    };
    let looks = {
        let mut scene = sleepers(2, 0.4, Packets::default());
        scene.seen.off_cpu.as_mut().unwrap().stacks.iter_mut().for_each(|stack| stack.samples = 4_500);
        scene
    };
    let full = Packets { queues: listener(76, 128, Some(128)), ..asked(78) };
    let idle = Scene::new(&[0.01; 4]).on("main;serve", 1);
    vec![
        ("all of a pool sleep while somebody waits", sleepers(6, 0.2, asked(70))),
        ("all of a pool sleep and nobody waits", sleepers(6, 0.2, Packets::default())),
        (
            "half of a pool sleeps a little",
            sleepers(5, 4.0, asked(70)).with(|seen| {
                seen.off_cpu.as_mut().unwrap().stacks.iter_mut().for_each(|stack| stack.weight_ns = 3 * S);
                seen.host.cpus = 4;
                (seen.host.all_ns, seen.host.idle_ns) = (40 * S, 20 * S);
            }),
        ),
        (
            "the only thread sleeps while somebody waits",
            sleepers(1, 0.3, Packets { queues: listener(60, 7, Some(511)), ..asked(70) }),
        ),
        ("threads sleep for a moment between looks", looks),
        (
            "workers wait for a slow database",
            for_answers(4, "recvfrom", 100, Packets { asked: gateway(4.0, 4, 0, 0.0).asked, ..asked(70) }),
        ),
        (
            "workers wait in poll",
            for_answers(2, "poll", 90, Packets { sending: looked(80, 400), ..Packets::default() }),
        ),
        (
            "requests are in line for connections",
            for_answers(1, "epoll_wait", 180, gateway(2.0, 2, 1_560, 0.0)),
        ),
        (
            "requests are in line for one connection",
            for_answers(1, "epoll_wait", 180, gateway(1.0, 1, 1_560, 0.0)),
        ),
        ("each request asks many times", for_answers(1, "epoll_wait", 180, gateway(8.0, 8, 1_200, 4_000.0))),
        ("names are looked up", lookups),
        ("nobody accepts", idle.with(|seen| seen.packets = Some(full))),
        ("goroutines hand work to sleepers", {
            let timers = ("main.worker;time.Sleep;runtime.gopark", 40);
            let hands = ("main.worker;runtime.chanrecv;runtime.gopark", 30);
            let scene = Scene::new(&[2.0, 2.0]).on(timers.0, timers.1).on(hands.0, hands.1);
            let states = BTreeMap::from([("chan send".to_owned(), 1.5)]);
            scene.on("runtime.schedule", 30).with(|seen| {
                seen.goroutines = Some(Goroutines { looks: 50, states, ..Goroutines::default() });
            })
        }),
        ("requests wait in channels", channels(60)),
        ("requests may wait in channels", channels(30)),
    ]
}

fn channels(busy_looks: u32) -> Scene {
    let serve = "net/http.(*conn).serve;net/http.serverHandler.ServeHTTP";
    let place = |state: &str, stack: String, many| Place { state: state.to_owned(), stack, many };
    let places = vec![
        place("chan receive", format!("{serve};main.list;database/sql.(*DB).conn"), 30.0),
        place("chan send", format!("{serve};main.put"), 8.0),
        place("sleep", "main.worker;time.Sleep".to_owned(), 2.0),
        place("IO wait", "main.client;net.(*conn).Read".to_owned(), 1.0),
    ];
    let states = [("running", 0.5), ("runnable", 0.25), ("in a system call", 0.25)];
    let states = states.map(|(name, many)| (name.to_owned(), many)).into();
    let seen = Goroutines { looks: 60, states, places, busy_looks, ..Goroutines::default() };
    let scene = Scene::new(&[0.5, 0.5]).on("main.serve;main.work", 100).load(busy_load());
    scene.with(|all| all.goroutines = Some(seen))
}

fn threads() -> Vec<Told> {
    let full = |packets: Packets| {
        Scene::new(&[9.1, 0.5]).on("main;work", 100).with(|seen| {
            seen.packets = Some(packets);
            (seen.threads[0].wait_ns, seen.host.peers_ns) = (S / 2, 2 * S);
        })
    };
    let spins = {
        let call = |count, errors| SystemCall { count, errors, ..SystemCall::default() };
        let calls =
            [("epoll_wait", call(1_000, 0)), ("recvfrom", call(2_500, 500)), ("accept4", call(300, 100))];
        let calls = calls.map(|(name, call)| (name.to_owned(), call)).into();
        full(Packets { sending: looked(0, 0), ..Packets::default() }).with(|seen| {
            let off = seen.off_cpu.as_mut().unwrap();
            off.thread_times =
                vec![ThreadTime { thread: 0, running_ns: 9 * S, runnable_ns: S, waiting_ns: S / 200 }];
            off.system_calls = calls;
        })
    };
    let mut waked = full(Packets::default());
    waked = waked.off(2, WaitClass::Lock, "run;pthread_cond_wait;futex_wait_[k]", 8.0);
    waked = waked.woken("0x7f", 1, "main;pthread_cond_signal").off(2, WaitClass::Network, "run;recv", 2.0);
    let ready = BTreeMap::from([("runnable".to_owned(), 2.5)]);
    let tasks = NotLookedAt { what: "what tasks of tokio wait for".to_owned(), why: String::new() };
    vec![
        (
            "a full thread, refused connections",
            full({
                let queues = vec![Queue { dropped: 9, ..listener(0, 0, Some(8)).remove(0) }];
                Packets { listen_overflows: 3, listen_drops: 4, queues, ..Packets::default() }
            }),
        ),
        ("a full thread, lost connections", full(Packets::default()).load(Load { lost: 5, ..busy_load() })),
        (
            "a full thread, requests in line",
            full(Packets::default()).load(Load { p50_ns: 8_000_000, replies_per_s: 5_000.0, ..busy_load() }),
        ),
        ("a full thread, unread bytes", full(Packets { unread: 2, connections: 4, ..Packets::default() })),
        (
            "a full thread, waits at looks",
            full(Packets { sending: looked(40, 100), queues: listener(40, 9, None), ..Packets::default() }),
        ),
        ("a full thread that never rests", spins),
        ("a full thread that wakes others", waked),
        (
            "a full thread, ready goroutines",
            full(Packets::default()).with(|seen| {
                seen.goroutines = Some(Goroutines { looks: 50, states: ready, ..Goroutines::default() });
            }),
        ),
        ("a full thread, nobody waits", full(Packets::default()).with(|seen| seen.not_looked_at.push(tasks))),
        (
            "a full thread whose clients use the rest",
            full(Packets { unread: 9, ..Packets::default() }).with(|seen| seen.host.peers_ns = 6 * S),
        ),
        (
            "a thread that is nearly full",
            Scene::new(&[8.2])
                .on("main;work", 100)
                .with(|seen| seen.packets = Some(Packets { unread: 9, ..Packets::default() })),
        ),
    ]
}

fn from_outside() -> Vec<Told> {
    let quota = |cpus, throttled, throttled_ns| {
        Scene::new(&[5.0]).on("main;work", 100).with(|seen| {
            seen.quota = Some(Quota { cpus, periods: 100, throttled, throttled_ns });
        })
    };
    let crowd = |foreign_s: u64, steal_s: u64, peers_s: u64| {
        Scene::new(&[6.0, 2.0]).on("main;work", 100).with(|seen| {
            seen.threads[0].wait_ns = 2 * S;
            (seen.host.foreign_ns, seen.host.steal_ns, seen.host.peers_ns) =
                (foreign_s * S, steal_s * S, peers_s * S);
            seen.host.neighbours =
                vec![("cc1".to_owned(), foreign_s * S * 3 / 4), ("sh".to_owned(), foreign_s * S / 4)];
            seen.host.peers = vec![("wrk".to_owned(), peers_s * S)];
        })
    };
    let limited_why = "all of its threads were busy".to_owned();
    vec![
        ("a quota holds it", quota(Some(0.5), 40, 3 * S)),
        ("a quota holds it for moments", quota(None, 6, S / 100)),
        ("a quota nearly holds it", quota(Some(2.0), 4, S)),
        ("others use its CPUs", crowd(5, 0, 1)),
        ("the hypervisor takes its CPUs", crowd(1, 2, 0)),
        ("others delay it a little", {
            let scene = Scene::new(&[6.0, 2.0]).on("main;page", 50).on("main;other", 50);
            scene.with(|seen| {
                (seen.threads[0].wait_ns, seen.host.foreign_ns, seen.host.peers_ns) = (S / 2, 5 * S, S);
            })
        }),
        ("its own peers use its CPUs", crowd(1, 0, 4)),
        ("others use a little", crowd(1, 0, 0)),
        (
            "the generator is the limit",
            Scene::new(&[6.0]).on("main;work", 100).load(Load {
                limited: Limit::Yes,
                limited_why,
                busy: 0.97,
                ..busy_load()
            }),
        ),
    ]
}

pub(super) fn all() -> Vec<Told> {
    [pools(), threads(), from_outside()].into_iter().flatten().collect()
}

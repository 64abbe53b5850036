//! Lines of what bounds from outside or by shape: pools, one thread, neighbours, a quota.

use std::collections::BTreeMap;

use dyno_record::finding::Class;
use dyno_record::observation::{Asked, Goroutines, Load, Packets, Place, Quota, Sending, Serving};
use dyno_record::profile::WaitClass;

use super::Line;
use crate::scene::{S, Scene, busy_load};

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn looked(rounds_waiting: u64) -> Packets {
    let sending = Sending { rounds: 80, rounds_waiting, waiting: rounds_waiting, ..Sending::default() };
    Packets { sending: Some(sending), ..Packets::default() }
}

/// So many that run and sleep for so long each, and something waits at so many of 80 looks.
fn sleepers(many: usize, run_s: f64, sleep_s: f64, waiting: u64) -> Scene {
    let scene = Scene::new(&vec![run_s; many]).on("run;work", 1);
    let sleeps = "run;nanosleep;hrtimer_nanosleep_[k]";
    let scene = (1..=many as u32).fold(scene, |scene, tid| scene.off(tid, WaitClass::Sleep, sleeps, sleep_s));
    scene.with(|seen| seen.packets = Some(looked(waiting)))
}

/// One that sleeps while something waits, beside a thread that runs for so long.
fn beside(run_s: f64) -> Scene {
    let scene = Scene::new(&[0.3, run_s]).on("run;work", 1);
    let scene = scene.off(1, WaitClass::Sleep, "run;nanosleep;hrtimer_nanosleep_[k]", 9.0);
    scene.with(|seen| seen.packets = Some(looked(70)))
}

/// A gateway before a slow server.
fn gateway(change: impl Fn(&mut Asked, &mut Serving)) -> Scene {
    let mut asked = Asked {
        remote: "127.0.0.1:9000".to_owned(),
        connections: 2.0,
        looks: 160,
        looks_awaiting: 160,
        rounds: 80,
        most_awaiting: 2,
        awaited_ms: 25.0,
        ..Asked::default()
    };
    let mut serving = Serving {
        connections: 20.0,
        looks: 100,
        looks_owed: 100,
        owed_ms: 250.0,
        awaiting: 2.0,
        ..Serving::default()
    };
    change(&mut asked, &mut serving);
    let packets = Packets { asked: vec![asked], serving: Some(serving), ..Packets::default() };
    let scene = Scene::new(&[0.2]).on("main;work", 1).off(1, WaitClass::Network, "main;epoll_wait", 9.5);
    scene.with(|seen| seen.packets = Some(packets))
}

/// A server that asks another one so often, for so many requests, of which so many are held.
fn asks(sent_per_s: f64, received_per_s: f64, looks_owed: u64) -> Scene {
    let asked = Asked { connections: 8.0, looks: 100, looks_awaiting: 100, sent_per_s, ..Asked::default() };
    let serving = Serving { connections: 8.0, looks: 100, looks_owed, received_per_s, ..Serving::default() };
    let packets = Packets { asked: vec![asked], serving: Some(serving), ..Packets::default() };
    let sends = "main;query;write;tcp_sendmsg_[k]";
    Scene::new(&[9.0, 9.0]).on(sends, 50).on("main;work", 50).with(|seen| seen.packets = Some(packets))
}

fn channels(waiting: f64, running: f64, looks: u32, busy_looks: u32) -> Scene {
    let serve = "net/http.(*conn).serve;net/http.serverHandler.ServeHTTP;main.ask";
    let places = vec![Place { state: "chan receive".to_owned(), stack: serve.to_owned(), many: waiting }];
    let states = BTreeMap::from([("running".to_owned(), running)]);
    let seen = Goroutines { looks, states, places, busy_looks, ..Goroutines::default() };
    let scene = Scene::new(&[0.5, 0.5]).on("main.serve;main.work", 100).load(busy_load());
    scene.with(|all| all.goroutines = Some(seen))
}

/// A thread that runs for so long, while this lies before it.
fn full(run_s: f64, packets: Packets) -> Scene {
    Scene::new(&[run_s]).on("main;work", 100).with(|seen| seen.packets = Some(packets))
}

fn unread(unread: u64, connections: u64) -> Packets {
    Packets { unread, connections, ..Packets::default() }
}

/// A full thread that ends another's waits for so long, which runs and waits for others for so long.
fn waker(by_it_s: f64, run_s: f64, for_others_s: f64) -> Scene {
    let way = "run;pthread_cond_wait;futex_wait_[k]";
    let scene = Scene::new(&[9.9, run_s]).on("main;work", 100).off(2, WaitClass::Lock, way, by_it_s);
    let scene = scene.woken("0x7f", 1, "main;pthread_cond_signal").off(
        2,
        WaitClass::Network,
        "run;recv",
        for_others_s,
    );
    scene.with(|seen| seen.packets = None)
}

fn crowd(foreign_s: f64, steal_s: f64, wait_s: f64, peers_s: f64) -> Scene {
    Scene::new(&[8.0]).on("main;work", 100).with(|seen| {
        seen.threads[0].wait_ns = ns(wait_s);
        let host = &mut seen.host;
        (host.foreign_ns, host.steal_ns, host.peers_ns) = (ns(foreign_s), ns(steal_s), ns(peers_s));
    })
}

fn quota(throttled: u64, held_s: f64) -> Scene {
    Scene::new(&[9.5]).on("main;work", 100).with(|seen| {
        seen.quota = Some(Quota { cpus: Some(0.5), periods: 100, throttled, throttled_ns: ns(held_s) });
    })
}

/// A Go program of whose CPU time so many thousandths are timers of sleepers, and work that is handed over.
fn goroutine_pool(timed: f64, handed: f64) -> Scene {
    let (timed, handed) = (timed as u64, handed as u64);
    let scene = Scene::new(&[2.0, 2.0]).on("main.worker;time.Sleep;runtime.gopark", timed);
    let scene = scene.on("main.worker;runtime.chanrecv;runtime.gopark", handed);
    let states = BTreeMap::from([("chan send".to_owned(), 0.5)]);
    scene.on("runtime.schedule", 1_000 - timed - handed).with(|seen| {
        seen.goroutines = Some(Goroutines { looks: 50, states, ..Goroutines::default() });
    })
}

pub(super) const LINES: &[Line] = &[
    (Class::PoolLimit, "sleep", |s| sleepers(6, 0.3, s, 60), 7.49, 7.5),
    (
        Class::PoolLimit,
        "looks at which something waits",
        |looks| sleepers(6, 0.3, 9.0, looks as u64),
        39.0,
        40.0,
    ),
    (Class::PoolLimit, "work", |run| sleepers(6, run, 9.0, 60), 0.004, 0.005),
    (Class::PoolLimit, "free CPUs", |run| sleepers(6, run, 9.0, 60), 2.6, 2.4),
    (Class::PoolLimit, "of the CPU time, those that serve", beside, 0.11, 0.1),
    (
        Class::PoolLimit,
        "looks at connections",
        |looks| {
            gateway(|asked, _| {
                (asked.looks, asked.looks_awaiting, asked.rounds) =
                    (looks as u64, looks as u64, looks as u64 / 2);
            })
        },
        19.0,
        20.0,
    ),
    (
        Class::PoolLimit,
        "taken",
        |looks| gateway(|asked, _| asked.looks_awaiting = looks as u64),
        143.0,
        144.0,
    ),
    (Class::PoolLimit, "milliseconds", |ms| gateway(|asked, _| asked.awaited_ms = ms), 1.4, 1.5),
    (Class::PoolLimit, "held for each", |owed| gateway(|_, serving| serving.connections = owed), 4.9, 5.0),
    // 40 requests in a second, and a twelfth of a second and more for each question.
    (
        Class::PoolLimit,
        "questions for each request",
        |ms| gateway(|asked, _| asked.awaited_ms = ms),
        83.4,
        83.3,
    ),
    (
        Class::PoolLimit,
        "of what it asks others work on",
        |most| gateway(|_, serving| serving.awaiting = most),
        12.1,
        12.0,
    ),
    (Class::SyscallHeavy, "questions for each request", |sent| asks(sent, 10.0, 90), 199.0, 200.0),
    (Class::SyscallHeavy, "requests in a second", |received| asks(1_000.0, received, 90), 4.9, 5.0),
    (Class::SyscallHeavy, "held for each question", |owed| asks(1_000.0, 10.0, owed as u64), 49.0, 50.0),
    (Class::PoolLimit, "timers of sleepers", |parts| goroutine_pool(parts, 300.0), 99.0, 100.0),
    (Class::PoolLimit, "handed to sleepers", |parts| goroutine_pool(300.0, parts), 49.0, 50.0),
    (Class::PoolLimit, "requests in channels", |many| channels(many, 0.5, 60, 60), 3.9, 4.0),
    (Class::PoolLimit, "requests in channels for each", |many| channels(many, 2.0, 60, 60), 7.9, 8.0),
    (
        Class::PoolLimit,
        "looks at goroutines",
        |looks| channels(30.0, 1.0, looks as u32, looks as u32),
        9.0,
        10.0,
    ),
    (Class::PoolLimit, "looks at work", |busy| channels(30.0, 1.0, 60, busy as u32), 56.0, 57.0),
    (Class::SingleThreadLimit, "runs", |run| full(run, unread(9, 20)), 8.79, 8.8),
    (
        Class::SingleThreadLimit,
        "connections with unread bytes",
        |many| full(9.5, unread(many as u64, 90)),
        3.0,
        4.0,
    ),
    (Class::SingleThreadLimit, "of few connections", |all| full(9.5, unread(2, all as u64)), 5.0, 4.0),
    (Class::SingleThreadLimit, "two at least", |many| full(9.5, unread(many as u64, 2)), 1.0, 2.0),
    (
        Class::SingleThreadLimit,
        "looks before a full thread",
        |looks| full(9.9, looked(looks as u64)),
        19.0,
        20.0,
    ),
    (
        Class::SingleThreadLimit,
        "requests in line",
        |p50| full(10.0, Packets::default()).load(Load { p50_ns: p50 as u64, ..busy_load() }),
        399_999.0,
        400_000.0,
    ),
    (
        Class::SingleThreadLimit,
        "one client has no line",
        |many| full(10.0, Packets::default()).load(Load { connections: many as u32, ..busy_load() }),
        1.0,
        2.0,
    ),
    (
        Class::SingleThreadLimit,
        "goroutines that are ready",
        |many| {
            let states = BTreeMap::from([("runnable".to_owned(), many)]);
            full(9.9, Packets::default()).with(|seen| {
                seen.goroutines = Some(Goroutines { looks: 9, states, ..Goroutines::default() });
            })
        },
        0.99,
        1.0,
    ),
    (Class::SingleThreadLimit, "ends waits for so long", |s| waker(s, 0.5, 0.0), 1.99, 2.0),
    (Class::SingleThreadLimit, "works", |run| waker(5.0, run, 0.0), 0.099, 0.1),
    (Class::SingleThreadLimit, "of the waits", |others| waker(3.0, 0.5, others), 7.01, 7.0),
    (Class::NoisyNeighbor, "used by others", |s| crowd(s, 0.0, 2.0, 0.0), 1.99, 2.0),
    (Class::NoisyNeighbor, "waits because of others", |wait| crowd(4.0, 0.0, wait, 4.0), 0.99, 1.0),
    (Class::NoisyNeighbor, "taken by the hypervisor", |s| crowd(0.0, s, 0.0, 0.0), 0.99, 1.0),
    (Class::Throttled, "periods", |periods| quota(periods as u64, 1.0), 4.0, 5.0),
    (Class::Throttled, "held for", |s| quota(20, s), 0.49, 0.5),
    (
        Class::SingleThreadLimit,
        "who would use the rest as well",
        |peers| {
            full(9.0, unread(9, 20)).with(|seen| (seen.host.peers_ns, seen.host.own_ns) = (ns(peers), S / 10))
        },
        4.8,
        4.6,
    ),
];

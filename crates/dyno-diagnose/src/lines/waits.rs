//! Lines of what is waited for: disks, locks, pages, what TCP keeps back.

use dyno_record::finding::Class;
use dyno_record::observation::{Packets, Sending, Transfers};
use dyno_record::profile::WaitClass;

use super::Line;
use crate::scene::{S, Scene};

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// One thread that works for eight seconds and is at the disk for so many.
fn at_disk(seconds: f64) -> Scene {
    Scene::new(&[8.0]).on("main;work", 100).off(1, WaitClass::Disk, "main;put;vfs_fsync_[k]", seconds)
}

fn writes(times: u64, bytes_each: u64) -> Scene {
    at_disk(8.0).with(|seen| {
        seen.off_cpu.as_mut().unwrap().stacks[0].samples = times;
        seen.process.disk_write_bytes = Some(times * bytes_each);
    })
}

fn reads(bytes: f64) -> Scene {
    at_disk(8.0).with(|seen| {
        let wait = seen.off_cpu.as_mut().unwrap().stacks[0].wait.as_mut().unwrap();
        wait.system_call = Some("read".to_owned());
        seen.process.reads = Some(Transfers { calls: 10, bytes: 10 * bytes as u64 });
    })
}

/// Threads that run for so long each and wait for each other at a lock.
fn meet(runs_s: &[f64], waits_s: f64, lock: &str) -> Scene {
    let many = runs_s.len() as u32;
    (1..=many).fold(Scene::new(runs_s).on("run;work", 100), |scene, tid| {
        let way = format!("run;{lock};futex_wait_[k]");
        scene.off(tid, WaitClass::Lock, &way, waits_s).woken(
            "0x7f",
            tid % many + 1,
            "run;give;futex_wake_[k]",
        )
    })
}

/// Two threads that fill their CPUs, and of a thousand parts of their time those that locks and their calls take.
fn busy_locks(lock: u64, call: u64) -> Scene {
    Scene::new(&[10.0, 10.0])
        .on("run;work", 1_000 - lock - call)
        .on("run;pthread_mutex_lock", lock)
        .on("run;pthread_mutex_unlock;do_futex_[k];futex_wake_[k]", call)
}

/// One of them slept so often, for a moment.
fn slept(scene: Scene, times: u64) -> Scene {
    let mut scene = scene.off(1, WaitClass::Lock, "run;pthread_mutex_lock;futex_wait_[k]", 0.01);
    scene.seen.off_cpu.as_mut().unwrap().stacks[0].samples = times;
    scene
}

/// Two that wake each other.
fn turns(run_s: f64, waits_s: f64, times: u64) -> Scene {
    let mut pair = Scene::new(&[run_s, run_s]).on("0x77", 100);
    for (tid, by, lock) in [(1, 2, "0xa"), (2, 1, "0xb")] {
        let way = format!("0x77;0x9{tid};futex_wait_[k]");
        pair = pair.off(tid, WaitClass::Lock, &way, waits_s).woken(lock, by, "0x77;0x11;futex_wake_[k]");
        pair.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = times;
    }
    pair
}

/// The first of them is woken by a third for so long as well.
fn with_a_third(seconds: f64) -> Scene {
    let scene = turns(4.0, 4.0, 60_000);
    scene.off(1, WaitClass::Lock, "0x77;0x91;futex_wait_[k]", seconds).woken(
        "0xa",
        9,
        "0x77;0x11;futex_wake_[k]",
    )
}

fn pages(seconds: f64) -> Scene {
    let way = "main;work;exc_page_fault_[k];filemap_fault_[k]";
    Scene::new(&[10.0 - seconds]).on("main;work", 100).off(1, WaitClass::PageFault, way, seconds)
}

fn held(sending: Sending) -> Scene {
    Scene::new(&[0.5]).on("main;work", 1).with(|seen| {
        seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() });
    })
}

/// Others use so much of the CPUs, and its own threads a part.
fn on_full_cpus(own_s: f64, foreign_s: f64, waits_s: f64) -> Scene {
    meet(&[own_s / 4.0; 4], waits_s, "pthread_mutex_lock").with(|seen| {
        (seen.host.foreign_ns, seen.host.idle_ns) = (ns(foreign_s), 0);
        seen.threads.iter_mut().for_each(|thread| thread.wait_ns = 5 * S);
    })
}

pub(super) const LINES: &[Line] = &[
    (Class::SyncIo, "of the working time", at_disk, 1.99, 2.0),
    (Class::SyncIo, "bytes that are gathered", |bytes| writes(100, bytes as u64), 65_536.0, 65_535.0),
    (Class::SyncIo, "waits, however much each writes", |times| writes(times as u64, 131_072), 999.0, 1_000.0),
    (Class::SyncIo, "bytes that are read at once", reads, 131_072.0, 131_071.0),
    (Class::LockContention, "of the working time", |s| meet(&[8.0; 2], s, "pthread_mutex_lock"), 1.99, 2.0),
    (
        Class::LockContention,
        "of one thread's time",
        |s| meet(&[0.05; 4], s, "pthread_mutex_lock"),
        0.249,
        0.25,
    ),
    (
        Class::LockContention,
        "where few CPUs are free",
        |run| meet(&[run; 2], 2.9, "pthread_mutex_lock"),
        9.1,
        8.9,
    ),
    (Class::LockContention, "where others use the CPUs", |s| on_full_cpus(8.0, 12.0, s), 1.3, 1.4),
    (
        Class::LockContention,
        "where it uses them itself",
        |own| on_full_cpus(own, 20.0 - own, 4.0),
        15.1,
        14.9,
    ),
    (Class::LockContention, "CPU time", |lock| slept(busy_locks(lock as u64, 0), 40_000), 149.0, 150.0),
    (
        Class::LockContention,
        "waits that explain it",
        |times| slept(busy_locks(150, 0), times as u64),
        37_499.0,
        37_500.0,
    ),
    (Class::LockContention, "calls", |call| slept(busy_locks(100, call as u64), 1), 19.0, 20.0),
    (
        Class::LockContention,
        "CPU time beside calls",
        |lock| slept(busy_locks(lock as u64, 20), 1),
        79.0,
        80.0,
    ),
    (Class::LockContention, "locks beside calls", |lock| slept(busy_locks(lock as u64, 20), 1), 141.0, 140.0),
    (Class::LockContention, "turns in a second", |times| turns(4.0, 4.0, times as u64), 49_999.0, 50_000.0),
    (Class::LockContention, "of the time in turns", |s| turns(4.0, s, 60_000), 0.99, 1.0),
    (Class::LockContention, "together in turns", |run| turns(run, 2.0, 60_000), 5.76, 5.75),
    (Class::LockContention, "alone in turns", with_a_third, 1.01, 1.0),
    (
        Class::LockContention,
        "in the kernel",
        |share| {
            let spins = "run;epoll_wait;native_queued_spin_lock_slowpath_[k]";
            Scene::new(&[9.0, 9.0]).on("run;work", 100 - share as u64).on(spins, share as u64)
        },
        19.0,
        20.0,
    ),
    (
        Class::AllocatorContention,
        "of the working time",
        |s| meet(&[8.0; 2], s, "malloc;__lll_lock_wait_private"),
        1.99,
        2.0,
    ),
    (
        Class::AllocatorContention,
        "CPU time",
        |lock| {
            let scene = Scene::new(&[9.0, 9.0]).on("run;work", 100 - lock as u64);
            scene.on("run;malloc;pthread_mutex_lock", lock as u64)
        },
        14.0,
        15.0,
    ),
    (
        Class::AllocatorContention,
        "both together",
        |lock| {
            let scene = meet(&[9.0 / 1.25; 2], 0.8, "malloc;__lll_lock_wait_private");
            scene.on("run;malloc;pthread_mutex_lock", lock as u64)
        },
        11.0,
        12.0,
    ),
    (Class::PageFaults, "of the working time", pages, 1.49, 1.5),
    (
        Class::DelayedAck,
        "of the looks",
        |held_| held(Sending { looks: 100, held: held_ as u64, ..Sending::default() }),
        19.0,
        20.0,
    ),
    (
        Class::DelayedAck,
        "looks",
        |looks| held(Sending { looks: looks as u64, held: 9, ..Sending::default() }),
        9.0,
        10.0,
    ),
    (
        Class::DelayedAck,
        "looks at one connection",
        |looks| held(Sending { looks: 900, most_looks: looks as u64, most_held: 20, ..Sending::default() }),
        29.0,
        30.0,
    ),
];

//! Programs that wait: for disks, locks, pages, each other's word.

use std::collections::BTreeMap;

use dyno_record::observation::{Goroutines, Load, Packets, Sending, Transfers};
use dyno_record::profile::WaitClass;

use super::Told;
use crate::scene::{Scene, busy_load, synchronous_log};

/// The last wait was in this call, so often.
fn in_call(mut scene: Scene, call: &str, times: u64) -> Scene {
    let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
    stack.samples = times;
    stack.wait.as_mut().unwrap().system_call = Some(call.to_owned());
    scene
}

/// Two threads that wait for each other at a mutex.
fn two_at_a_mutex(run_s: f64, waits_s: f64, lock: &str) -> Scene {
    let mut scene = Scene::new(&[run_s, run_s]).on("run;work", 90).on("run;pthread_mutex_lock", 10);
    for (tid, by) in [(1, 2), (2, 1)] {
        let way = format!("run;{lock};futex_wait_[k]");
        scene = scene.off(tid, WaitClass::Lock, &way, waits_s).woken("0x7f00", by, "run;give;futex_wake_[k]");
    }
    scene
}

fn group_commit() -> Scene {
    let mut scene = Scene::new(&[0.4, 0.4, 0.2]).on("run;work", 100);
    for tid in [1, 2] {
        let way = "run;commit;pthread_cond_wait;futex_wait_[k]";
        scene = scene.off(tid, WaitClass::Lock, way, 9.0).woken("0x7f00", 3, "flush;pthread_cond_signal");
    }
    let mut scene = scene.off(3, WaitClass::Disk, "flush;fdatasync;do_fsync_[k]", 9.2);
    scene = scene.on("flush;fdatasync;do_fsync_[k]", 20);
    scene.seen.on_cpu.as_mut().unwrap().stacks.last_mut().unwrap().thread = 2;
    in_call(scene, "fdatasync", 500).with(|seen| seen.process.disk_write_bytes = Some(500 * 8_192))
}

fn goroutines(at_mutexes: f64, running: f64, scene: Scene) -> Scene {
    let states = [("running", running), ("runnable", 0.5), ("in a system call", 0.5), ("IO wait", 40.0)];
    let states = states.map(|(name, many)| (name.to_owned(), many));
    scene.with(|seen| {
        seen.goroutines = Some(Goroutines {
            looks: 50,
            states: BTreeMap::from(states),
            at_mutexes: at_mutexes + 1.0,
            mutexes_in: BTreeMap::from([
                ("main.count".to_owned(), at_mutexes / 3.0),
                ("main.serve".to_owned(), at_mutexes * 2.0 / 3.0),
                ("sync.(*WaitGroup).Wait".to_owned(), 1.0),
            ]),
            ..Goroutines::default()
        });
    })
}

/// Two threads that wait for a lock of the kernel's.
fn at_inode(stack: &str) -> Scene {
    let scene = Scene::new(&[1.0; 3]).on("main;work", 100).off(1, WaitClass::Lock, stack, 4.0);
    scene.woken("a lock", 2, stack).off(2, WaitClass::Lock, stack, 3.0).woken("a lock", 1, stack)
}

fn disks() -> Vec<Told> {
    let files = [("/var/a.log".to_owned(), "O_WRONLY|O_DSYNC".to_owned())];
    let writes = |bytes: u64| {
        let scene = Scene::new(&[2.0, 1.0]).on("main;put;work", 80).on("main;put;fdatasync;do_fsync_[k]", 20);
        let scene =
            in_call(scene.off(1, WaitClass::Disk, "main;put;fdatasync;do_fsync_[k]", 6.0), "fdatasync", 600);
        let scene = in_call(scene.off(2, WaitClass::Disk, "main;get;vfs_read_[k]", 1.0), "pread64", 100);
        scene.with(|seen| seen.process.disk_write_bytes = Some(600 * bytes))
    };
    let reads = |bytes: u64| {
        let scene = Scene::new(&[1.0]).on("main;get;work", 100);
        let scene = in_call(scene.off(1, WaitClass::Disk, "main;get;vfs_read_[k]", 6.0), "pread64", 3_000);
        let scene = in_call(scene.off(1, WaitClass::Disk, "main;list;vfs_read_[k]", 1.0), "getdents64", 50);
        scene.with(|seen| seen.process.reads = Some(Transfers { calls: 4_000, bytes: 4_000 * bytes }))
    };
    let named = synchronous_log().with(|seen| {
        seen.files = files.into();
        for stack in &mut seen.off_cpu.as_mut().unwrap().stacks {
            if let Some(wait) = stack.wait.as_mut().filter(|wait| wait.class == WaitClass::Disk) {
                wait.object = Some("/var/a.log".to_owned());
            }
        }
    });
    let syncs = Scene::new(&[0.5, 0.5]).on("main.serve;os.(*File).Sync;do_fsync_[k]", 100);
    let syncs = syncs.off(1, WaitClass::Disk, "main.serve;os.(*File).Sync;do_fsync_[k]", 2.0);
    let mut inode = at_inode("main;write;ext4_file_write_iter_[k];rwsem_down_write_slowpath_[k]");
    inode = inode.off(3, WaitClass::Disk, "main;write;ext4_file_write_iter_[k];folio_wait_bit_[k]", 2.0);
    vec![
        ("threads wait for a file's lock, and one for its disk", inode),
        ("a log whose lines are synced one by one, and its lock", named),
        ("small records are synced", writes(2_048)),
        ("large records are synced", writes(131_072)),
        ("small pieces are read", reads(4_096)),
        ("large pieces are read", reads(1 << 20)),
        ("one thread syncs what others write", group_commit()),
        ("goroutines wait for a mutex that is held at a disk", goroutines(6.0, 1.0, syncs)),
    ]
}

fn locks() -> Vec<Told> {
    let turns = |times: u64| {
        let mut pair = Scene::new(&[3.0, 2.0]).on("0x77", 100);
        for (tid, by, lock) in [(1, 2, "0xa"), (2, 1, "0xb")] {
            let way = format!("0x77;0x9{tid};futex_wait_[k]");
            pair = pair.off(tid, WaitClass::Lock, &way, 5.0).woken(lock, by, "0x77;0x11;futex_wake_[k]");
            pair.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = times;
        }
        pair
    };
    let in_kernel = Scene::new(&[9.0, 9.0])
        .on("run;epoll_wait;__x64_sys_epoll_wait_[k];native_queued_spin_lock_slowpath_[k]", 30)
        .on("run;write;__x64_sys_write_[k];native_queued_spin_lock_slowpath_[k]", 15)
        .on("run;work", 55);
    let costs = Scene::new(&[9.4, 9.4])
        .on("run;work", 70)
        .on("run;pthread_mutex_lock", 18)
        .on("run;pthread_mutex_unlock;do_futex_[k];futex_wake_[k]", 12);
    let go = Scene::new(&[5.0, 5.0]).on("main.serve;main.count", 90).on("main.serve;runtime.lock2", 10);
    let mut blind = goroutines(0.0, 1.0, Scene::new(&[1.0]).on("main.serve", 100));
    blind.seen.goroutines.as_mut().unwrap().looks = 0;
    vec![
        ("two threads wait for each other at a mutex", two_at_a_mutex(4.0, 5.0, "pthread_mutex_lock")),
        ("two threads wait for each other for a while", two_at_a_mutex(4.0, 1.5, "pthread_mutex_lock")),
        ("two threads wait in malloc", two_at_a_mutex(4.0, 3.0, "malloc;__lll_lock_wait_private")),
        (
            "two threads wait in malloc for a while",
            two_at_a_mutex(4.0, 0.5, "malloc;__lll_lock_wait_private"),
        ),
        ("two threads run in turns", turns(80_000)),
        ("two threads run in turns now and then", turns(40_000)),
        ("threads meet in the kernel", in_kernel),
        ("locks cost CPU time", costs.off(1, WaitClass::Lock, "run;pthread_mutex_lock;futex_wait_[k]", 0.3)),
        ("goroutines wait for a mutex", goroutines(6.0, 1.0, go)),
        ("goroutines could not be read", blind),
    ]
}

fn pages_and_packets() -> Vec<Told> {
    let faults = |major: u64| {
        let way = "main;look_up;exc_page_fault_[k];filemap_fault_[k]";
        let scene = Scene::new(&[2.0]).on("main;look_up", 100).off(1, WaitClass::PageFault, way, 4.0);
        scene.with(|seen| (seen.process.major_faults, seen.process.minor_faults) = (major, 3_000))
    };
    let held = |held: u64, held_by_peers: u64, most_held: u64| {
        let sending = Sending {
            looks: 400,
            held,
            held_by_peers,
            without_nodelay: held / 2,
            most_looks: 40,
            most_held,
            ..Sending::default()
        };
        Scene::new(&[0.5]).on("main;work", 100).with(|seen| {
            seen.packets = Some(Packets { sending: Some(sending), connections: 10, ..Packets::default() });
        })
    };
    let load = Load { reconnects: 90_000, ..busy_load() };
    let spaces = |way: &str| at_inode(&format!("main;{way};vm_mmap_pgoff_[k];rwsem_down_write_slowpath_[k]"));
    vec![
        ("threads map memory", spaces("mmap")),
        ("threads map memory in malloc", spaces("malloc;mmap")),
        ("threads wait for pages from a disk", faults(7_000)),
        ("threads wait for pages", faults(0)),
        ("it sends in small pieces", held(200, 20, 20)),
        ("one connection sends in small pieces", held(30, 30, 30)),
        ("a few pieces wait", held(60, 0, 5)),
        (
            "connections are made anew",
            Scene::new(&[9.5]).on("main;work", 70).on("main;accept;inet_csk_accept_[k]", 30).load(load),
        ),
    ]
}

pub(super) fn all() -> Vec<Told> {
    [disks(), locks(), pages_and_packets()].into_iter().flatten().collect()
}

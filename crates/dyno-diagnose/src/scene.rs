//! Every class by an observation that has it, its healthy twin, and what comes first when several fit.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use dyno_record::finding::{Class, Confidence};
use dyno_record::observation::{
    Host, HotSpot, Limit, Load, Memory, Observation, Packets, ProcessCost, Quota, Registers, SoftIrq, Tap,
    ThreadCost, Transfers,
};
use dyno_record::profile::{
    Frame, Kind, Module, Origin, Profile, Stack, SystemCall, Thread, Wait, WaitClass, Waker,
};

use super::{Diagnosed, diagnose};

const S: u64 = 1_000_000_000;
/// Machine code of small loops, as in the tests of `code`.
const COLUMNS: (&str, u64) =
    ("4863c631d2488d0487488db00090d0034863084805803e00004801ca4839f075ef4889d0c3", 0x10);
const ROWS: (&str, u64) = ("488d8f803e000031c00f1f80000000004863174883c7044801d04839cf75f1c3", 0x13);
const WAIT: (&str, u64) = ("488b074839f074f8c3", 0x3);
const FIND: (&str, u64) = ("eb17660f1f44000048397710741a488b07480f4e47084889c74885ff75ea31c0c3", 0x16);
const COUNT: (&str, u64) = ("bae80300000f1f00488b074883c00148890783ea0175f1c3", 0xf);
const WALK: (&str, u64) = (
    "49b8cdcccccccccccccc4889f0be00100000660f1f4400004889c248c1e20d4831c24889d048c1e8074831d04889c148c1e1114831c1\
     4889c849f7e048c1ea1b488d04924889ca48c1e0194829c2488b04d783e0014801c84883c80183ee0175b7c3",
    0x52,
);

/// Ten seconds of a process on two CPUs; nothing is wrong with it until a test says so.
struct Scene {
    seen: Observation,
}

impl Scene {
    /// Threads that ran for so many seconds each.
    fn new(run_s: &[f64]) -> Scene {
        let ns = |s: f64| (s * 1e9) as u64;
        let thread = |(at, s): (usize, &f64)| ThreadCost {
            tid: at as u32 + 1,
            name: "t".into(),
            run_ns: ns(*s),
            ..ThreadCost::default()
        };
        let cpu_ns = ns(run_s.iter().sum());
        let profile = |kind| Profile {
            kind,
            duration_s: 10.0,
            threads: (1..=run_s.len() as u32).map(|tid| Thread { pid: 1, tid, name: "t".into() }).collect(),
            modules: vec![
                Module { path: "/usr/bin/x".into(), ..Module::default() },
                Module { path: "/lib/libc.so.6".into(), ..Module::default() },
            ],
            ..Profile::default()
        };
        let seen = Observation {
            duration_s: 10.0,
            host: Host {
                cpus: 2,
                all_ns: 20 * S,
                idle_ns: (20 * S).saturating_sub(cpu_ns),
                ..Host::default()
            },
            threads: run_s.iter().enumerate().map(thread).collect(),
            process: ProcessCost { cpu_ns, ..ProcessCost::default() },
            memory: Some(Memory {
                rss_bytes: 8 << 20,
                anonymous_bytes: 4 << 20,
                huge_pages: "madvise".into(),
                ..Memory::default()
            }),
            packets: Some(Packets::default()),
            on_cpu: Some(profile(Kind::OnCpu)),
            off_cpu: Some(profile(Kind::OffCpu)),
            ..Observation::default()
        };
        Scene { seen }
    }

    /// CPU time: `main;work;malloc` from the root to the leaf, the kernel's functions marked as `tcp_sendmsg_[k]`.
    fn on(mut self, folded: &str, weight: u64) -> Scene {
        let profile = self.seen.on_cpu.as_mut().unwrap();
        let frames = frames(profile, folded);
        profile.stacks.push(Stack {
            frames,
            samples: weight,
            weight_ns: weight * S / 100,
            ..Stack::default()
        });
        self
    }

    /// A wait of thread `tid` for so many seconds.
    fn off(mut self, tid: u32, class: WaitClass, folded: &str, seconds: f64) -> Scene {
        let profile = self.seen.off_cpu.as_mut().unwrap();
        let frames = frames(profile, folded);
        let wait = Some(Wait { class, system_call: Some("call".into()), object: None });
        profile.stacks.push(Stack {
            frames,
            thread: tid - 1,
            samples: 100,
            weight_ns: (seconds * 1e9) as u64,
            wait,
            waker: None,
        });
        self
    }

    /// The last wait was for this object, ended by this thread in this stack.
    fn woken(mut self, object: &str, tid: u32, folded: &str) -> Scene {
        let profile = self.seen.off_cpu.as_mut().unwrap();
        let frames = frames(profile, folded);
        profile.wakers.push(Waker { pid: 1, tid, name: "t".into(), frames });
        let waker = profile.wakers.len() as u32 - 1;
        let stack = profile.stacks.last_mut().unwrap();
        stack.waker = Some(waker);
        stack.wait.as_mut().unwrap().object = Some(object.into());
        self
    }

    fn hot(mut self, code: (&str, u64), share: f64, seen: Vec<Registers>) -> Scene {
        let at = 0x40_0000 + 0x1000 * self.seen.hot.len() as u64;
        let spot = HotSpot {
            address: at + code.1,
            function: "work".into(),
            share,
            code_at: at,
            code: code.0.into(),
            seen,
            ..HotSpot::default()
        };
        self.seen.hot.push(spot);
        self
    }

    fn load(mut self, load: Load) -> Scene {
        self.seen.load = Some(load);
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Observation)) -> Scene {
        change(&mut self.seen);
        self
    }

    fn diagnosed(&self) -> Diagnosed {
        diagnose(&self.seen)
    }

    fn classes(&self) -> Vec<Class> {
        self.diagnosed().findings.iter().map(|finding| finding.class).collect()
    }

    fn first(&self) -> Option<Class> {
        self.classes().first().copied()
    }
}

fn frames(profile: &mut Profile, folded: &str) -> Vec<u32> {
    let mut frame = |name: &str| {
        let kernel = name.strip_suffix("_[k]");
        let library = super::names::is(name, super::names::ALLOCATOR)
            || name.starts_with("pthread")
            || name.starts_with("mem");
        let frame = Frame {
            name: kernel.unwrap_or(name).into(),
            origin: if kernel.is_some() { Origin::Kernel } else { Origin::User },
            module: kernel.is_none().then_some(u32::from(library)),
            ..Frame::default()
        };
        let at = profile.frames.iter().position(|one| *one == frame);
        at.unwrap_or_else(|| {
            profile.frames.push(frame);
            profile.frames.len() - 1
        }) as u32
    };
    folded.split(';').map(&mut frame).collect()
}

fn registers(tid: u32, rdi: u64, rdx: u64) -> Registers {
    let mut values = [0; 16];
    (values[5], values[3]) = (rdi, rdx);
    Registers { tid, values }
}

fn busy_load() -> Load {
    Load {
        connections: 64,
        replies: 100_000,
        replies_per_s: 10_000.0,
        p50_ns: 2_000_000,
        p99_ns: 9_000_000,
        busy: 0.4,
        ..Load::default()
    }
}

/// Eight threads, one of which always writes while the others wait for its lock.
fn synchronous_log() -> Scene {
    let mut scene = Scene::new(&[0.2; 8]).on("conn_main;write_[k];ext4_file_write_iter_[k]", 100);
    for tid in 1..=8 {
        scene = scene
            .off(tid, WaitClass::Disk, "conn_main;fdatasync;do_fsync_[k];jbd2_log_wait_commit_[k]", 1.2)
            .off(tid, WaitClass::Lock, "conn_main;pthread_mutex_lock;futex_wait_[k]", 8.0)
            .woken("0x7f00", tid % 8 + 1, "conn_main;pthread_mutex_unlock;futex_wake_[k]");
    }
    scene.with(|seen| seen.process.disk_write_bytes = Some(8 * 100 * 4_096))
}

#[test]
fn a_lock_whose_holder_waits_for_the_disk_is_synchronous_io_and_no_lock() {
    assert_eq!(synchronous_log().classes(), [Class::SyncIo]);
    let finding = synchronous_log().diagnosed().findings.remove(0);
    assert_eq!(finding.confidence, Confidence::High);
    assert!(
        finding.evidence.iter().any(|fact| fact.text.contains("the lock is not the cause")),
        "{finding:#?}"
    );
    assert!(finding.ruled_out.iter().any(|out| out.class == Class::LockContention));
}

#[test]
fn a_writer_beside_the_workers_holds_nobody_up() {
    let scene = Scene::new(&[6.0, 6.0, 0.1])
        .on("conn_main;work", 90)
        .off(3, WaitClass::Disk, "writer_main;fdatasync;do_fsync_[k]", 9.0)
        .off(1, WaitClass::Network, "conn_main;epoll_wait", 4.0)
        .with(|seen| seen.process.disk_write_bytes = Some(1 << 20));
    assert_eq!(scene.classes(), []);
}

#[test]
fn writes_that_gather_many_records_are_noted_and_no_finding() {
    let writes = |bytes: u64| {
        Scene::new(&[0.5])
            .on("main;work", 50)
            .off(1, WaitClass::Disk, "main;pwrite;ext4_file_write_iter_[k]", 9.4)
            .with(|seen| seen.process.disk_write_bytes = Some(100 * bytes))
    };
    assert_eq!(writes(4_096).classes(), [Class::SyncIo]);
    assert_eq!(writes(16_384).classes(), []);
    assert_eq!(writes(16_384).diagnosed().notes[0].class, Class::SyncIo);
}

/// Threads that run one at a time, and who wakes whom.
fn global_lock(stack: &str, unlock: &str) -> Scene {
    let mut scene = Scene::new(&[1.25; 8]).on("run;work", 98);
    for tid in 1..=8 {
        scene = scene.off(tid, WaitClass::Lock, stack, 8.7).woken("0x7f00", tid % 8 + 1, unlock);
    }
    scene
}

#[test]
fn threads_that_run_one_at_a_time_contend_for_a_lock() {
    let named = global_lock(
        "run;std::sys::sync::mutex::futex::Mutex::lock_contended;syscall;futex_wait_[k]",
        "run;syscall;futex_wake_[k]",
    );
    assert_eq!(named.first(), Some(Class::LockContention));
    // Without a name: several threads wait at one place and wake each other.
    let unnamed = global_lock("run;0x1234;futex_wait_[k]", "run;0x1250;futex_wake_[k]");
    assert_eq!(unnamed.first(), Some(Class::LockContention));
}

#[test]
fn workers_that_wait_for_work_contend_for_nothing() {
    let mut scene = Scene::new(&[2.0, 1.0, 1.0, 1.0]).on("run;work", 100);
    for tid in 2..=4 {
        scene = scene.off(tid, WaitClass::Lock, "run;pthread_cond_wait;futex_wait_[k]", 9.0).woken(
            "0x7f00",
            1,
            "main;pthread_cond_signal;futex_wake_[k]",
        );
    }
    assert_eq!(scene.classes(), []);
    // Without names: work comes from a thread that never waits there.
    let mut scene = Scene::new(&[2.0, 1.0, 1.0, 1.0]).on("run;work", 100);
    for tid in 2..=4 {
        scene = scene.off(tid, WaitClass::Lock, "run;0x99;futex_wait_[k]", 9.0).woken(
            "0x7f00",
            1,
            "main;0x11;futex_wake_[k]",
        );
    }
    assert_eq!(scene.classes(), []);
}

#[test]
fn two_threads_that_run_in_turns_contend_and_a_barrier_of_four_does_not() {
    let wait = |scene: Scene, tid: u32, by: u32, seconds: f64, lock: &str| {
        let mut scene = scene.off(tid, WaitClass::Lock, "0x77;0x99;futex_wait_[k]", seconds).woken(
            lock,
            by,
            "0x77;0x11;futex_wake_[k]",
        );
        scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = 200_000;
        scene
    };
    let pair = wait(wait(Scene::new(&[4.0, 4.0]).on("0x77", 100), 1, 2, 5.0, "0xa"), 2, 1, 5.0, "0xb");
    assert_eq!(pair.classes(), [Class::LockContention]);
    let mut four = Scene::new(&[4.0; 4]).on("run;work", 100);
    for tid in 1..=4 {
        for by in (1..=4).filter(|by| *by != tid) {
            four = four.off(tid, WaitClass::Lock, "run;pthread_barrier_wait;futex_wait_[k]", 1.8).woken(
                "0xa",
                by,
                "run;pthread_barrier_wait;futex_wake_[k]",
            );
            four.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = 200_000;
        }
    }
    assert_eq!(four.classes(), []);
}

#[test]
fn a_full_cpu_with_a_rare_lock_is_not_the_locks_fault() {
    let mut scene = Scene::new(&[2.5; 8]).on("run;work", 97).on("run;pthread_mutex_lock;futex_wait_[k]", 3);
    for tid in 1..=8 {
        scene = scene.off(tid, WaitClass::Lock, "run;pthread_mutex_lock;futex_wait_[k]", 3.0).woken(
            "0x7f",
            tid % 8 + 1,
            "run;pthread_mutex_unlock",
        );
    }
    assert_eq!(scene.classes(), []);
}

#[test]
fn a_lock_that_is_taken_all_the_time_costs_cpu() {
    let mut scene = Scene::new(&[2.5; 8])
        .on("run;work", 60)
        .on("run;pthread_mutex_lock", 20)
        .on("run;pthread_mutex_unlock;do_futex_[k];futex_wake_[k]", 20);
    for tid in 1..=8 {
        scene = scene.off(tid, WaitClass::Lock, "run;pthread_mutex_lock;futex_wait_[k]", 2.0).woken(
            "0x7f",
            tid % 8 + 1,
            "run;pthread_mutex_unlock",
        );
    }
    assert_eq!(scene.classes(), [Class::LockContention]);
}

#[test]
fn waits_inside_malloc_are_the_allocators() {
    let mut scene = Scene::new(&[1.5; 8]).on("run;malloc", 60).on("run;work", 40);
    for tid in 1..=8 {
        scene = scene
            .off(tid, WaitClass::Lock, "run;malloc;__lll_lock_wait_private;futex_wait_[k]", 8.0)
            .woken("0x7f", tid % 8 + 1, "run;malloc;futex_wake_[k]");
    }
    assert_eq!(scene.first(), Some(Class::AllocatorContention));
    assert!(!scene.classes().contains(&Class::LockContention));
}

#[test]
fn a_loop_that_only_looks_is_spinning_before_it_is_a_hot_spot() {
    let scene = Scene::new(&[5.0; 4]).on("run;work", 100).hot(WAIT, 0.6, vec![registers(1, 0x1000, 0)]);
    assert_eq!(scene.classes(), [Class::Spinning]);
    assert_eq!(
        scene.diagnosed().notes.iter().map(|note| note.class).collect::<Vec<_>>(),
        [Class::UserHotSpot]
    );
    let yields = Scene::new(&[5.0; 4]).on("run;work", 50).on("run;sched_yield;__x64_sys_sched_yield_[k]", 50);
    assert_eq!(yields.first(), Some(Class::Spinning));
}

#[test]
fn a_walk_from_node_to_node_is_a_hot_spot_and_one_hot_function_alone_is_a_note() {
    let walk = Scene::new(&[10.0]).on("main;work", 100).hot(FIND, 0.8, vec![]);
    assert_eq!(walk.classes(), [Class::UserHotSpot]);
    let hash = Scene::new(&[10.0]).on("main;work", 100).hot(FIND, 0.2, vec![]).hot(ROWS, 0.7, vec![]);
    assert_eq!(hash.classes(), []);
    assert!(hash.diagnosed().notes.iter().any(|note| note.class == Class::UserHotSpot));
}

#[test]
fn kinds_of_work_are_told_by_their_deepest_cause() {
    let shares = |heavy: &str, weight: u64| {
        Scene::new(&[10.0]).on("main;work", 100 - weight).on(heavy, weight).first()
    };
    for (stack, class) in [
        ("main;work;malloc;_int_malloc", Class::AllocationChurn),
        ("main;work;operator new(unsigned long);malloc", Class::AllocationChurn),
        ("main.main;runtime.newobject;runtime.mallocgc", Class::AllocationChurn),
        ("runtime.gcBgMarkWorker;runtime.gcDrain", Class::AllocationChurn),
        ("main;work;memcpy", Class::Copying),
        ("main;work;snprintf;__vsnprintf_internal", Class::Formatting),
        ("main;work;std::ostream::_M_insert<long>(long);malloc", Class::Formatting),
        ("main;work;asm_exc_page_fault_[k];clear_page_erms_[k]", Class::PageFaults),
        ("main;work;munmap;__x64_sys_munmap_[k];unmap_region_[k]", Class::PageFaults),
    ] {
        assert_eq!(shares(stack, 40), Some(class), "{stack}");
        assert_eq!(shares(stack, 8), None, "{stack}");
    }
    assert_eq!(
        shares("main.write;runtime.morestack;runtime.newstack;runtime.copystack", 15),
        Some(Class::AllocationChurn)
    );
}

#[test]
fn many_calls_for_few_bytes_are_told_from_many_bytes() {
    let reads = |bytes: u64| {
        Scene::new(&[10.0])
            .on("main;work", 30)
            .on("main;read;entry_SYSCALL_64_[k];vfs_read_[k]", 70)
            .with(|seen| seen.process.reads = Some(Transfers { calls: 5_000_000, bytes: 5_000_000 * bytes }))
    };
    assert_eq!(reads(1).classes(), [Class::SyscallHeavy]);
    assert_eq!(reads(65_536).classes(), []);
}

#[test]
fn calls_per_request_count_where_requests_are_counted() {
    let calls = |per_request: u64| {
        let call = SystemCall { count: 100_000 * per_request, ..SystemCall::default() };
        Scene::new(&[9.0])
            .on("main;work", 40)
            .on("main;do_syscall_64_[k];tcp_sendmsg_[k]", 60)
            .load(busy_load())
            .with(|seen| {
                seen.host.own_ns = 9 * S;
                seen.off_cpu.as_mut().unwrap().system_calls = BTreeMap::from([("write".to_owned(), call)]);
            })
    };
    assert_eq!(calls(6).first(), Some(Class::SyscallHeavy));
    assert_eq!(calls(3).classes(), []);
    // Requests of fifty bytes make reads of fifty bytes: that is no fault while there are few of them.
    let small = |per_request| {
        calls(per_request)
            .with(|seen| seen.process.reads = Some(Transfers { calls: 2_000_000, bytes: 50_000_000 }))
    };
    assert_eq!(small(3).classes(), []);
    assert_eq!(small(6).first(), Some(Class::SyscallHeavy));
}

#[test]
fn what_little_cpu_is_spent_on_is_a_note_while_requests_wait_for_something_else() {
    let served = |run_s: f64| {
        let call = SystemCall { count: 2_500_000, ..SystemCall::default() };
        Scene::new(&[run_s]).on("main;do_syscall_64_[k];tcp_sendmsg_[k]", 100).load(busy_load()).with(
            |seen| {
                seen.off_cpu.as_mut().unwrap().system_calls = BTreeMap::from([("write".to_owned(), call)]);
            },
        )
    };
    assert!(served(9.5).classes().contains(&Class::SyscallHeavy));
    let idle = served(0.8).diagnosed();
    assert!(idle.findings.is_empty(), "{:?}", idle.findings);
    assert!(idle.notes.iter().any(|note| note.class == Class::SyscallHeavy), "{:?}", idle.notes);
}

#[test]
fn a_function_of_many_lines_is_one_function() {
    let lines = Scene::new(&[10.0]).on("main;digest", 60).on("main;other", 40).with(|seen| {
        let profile = seen.on_cpu.as_mut().unwrap();
        let digest = profile.frames.iter().position(|frame| frame.name == "digest").unwrap() as u32;
        let whole = profile.stacks.iter().position(|stack| stack.frames.last() == Some(&digest)).unwrap();
        let whole = profile.stacks.remove(whole);
        for line in 1..=10 {
            let frame = Frame { line: Some(line), ..profile.frames[digest as usize].clone() };
            profile.frames.push(frame);
            let mut frames = whole.frames.clone();
            *frames.last_mut().unwrap() = profile.frames.len() as u32 - 1;
            profile.stacks.push(Stack { frames, weight_ns: whole.weight_ns / 10, ..whole.clone() });
        }
    });
    let notes = lines.diagnosed().notes;
    assert!(
        notes.iter().any(|note| note.summary.contains("digest") && note.summary.contains("60 %")),
        "{notes:?}"
    );
}

#[test]
fn a_large_table_in_small_pages_is_beyond_the_tlb_and_huge_pages_cure_it() {
    let scattered = (0..32_u64)
        .map(|at| registers(1, 0x7000_0000, at.wrapping_mul(0x9e37_79b9) % (160 << 20)))
        .collect::<Vec<_>>();
    let table = |huge: u64| {
        Scene::new(&[10.0]).on("main;work", 100).hot(WALK, 0.7, scattered.clone()).with(|seen| {
            seen.memory = Some(Memory {
                rss_bytes: 1280 << 20,
                anonymous_bytes: 1280 << 20,
                huge_bytes: huge,
                huge_pages: "madvise".into(),
            });
        })
    };
    assert_eq!(table(0).classes(), [Class::TlbReach]);
    assert_eq!(table(1278 << 20).classes(), []);
}

#[test]
fn columns_miss_the_cache_and_rows_do_not() {
    let table = |code| Scene::new(&[10.0]).on("main;work", 100).hot(code, 0.9, vec![]).classes();
    assert_eq!(table(COLUMNS), [Class::CacheMissesSuspected]);
    assert_eq!(table(ROWS), []);
}

#[test]
fn stores_of_two_threads_into_one_line_are_false_sharing() {
    let stores = |distance: u64| {
        let seen =
            (0..8).flat_map(|_| [registers(1, 0x1000, 0), registers(2, 0x1000 + distance, 0)]).collect();
        Scene::new(&[10.0, 10.0]).on("run;work", 100).hot(COUNT, 0.5, seen).classes()
    };
    assert_eq!(stores(8), [Class::FalseSharingSuspected]);
    assert_eq!(stores(128), []);
}

#[test]
fn the_network_path_is_a_note_unless_part_of_it_can_be_avoided() {
    let server = |extra: &str, weight: u64| {
        Scene::new(&[9.0])
            .on("main;send;tcp_sendmsg_[k];ip_output_[k]", 80 - weight)
            .on("main;work", 20)
            .on(extra, weight)
            .load(busy_load())
            .with(|seen| seen.host.own_ns = 9 * S)
    };
    let plain = server("main;send;tcp_sendmsg_[k]", 10);
    assert_eq!(plain.classes(), []);
    assert!(plain.diagnosed().notes.iter().any(|note| note.class == Class::KernelNetwork));
    assert_eq!(
        server("main;send;tcp_sendmsg_[k];nf_hook_slow_[k];nft_do_chain_[k]", 30).classes(),
        [Class::KernelNetwork]
    );
    assert_eq!(
        server("main;accept;__x64_sys_accept4_[k];inet_csk_accept_[k]", 30).classes(),
        [Class::KernelNetwork]
    );
}

#[test]
fn filters_and_taps_are_told_by_their_functions() {
    let filtered = Scene::new(&[10.0])
        .on("main;work", 90)
        .on("main;read;syscall_trace_enter_[k];__seccomp_filter_[k]", 10);
    assert_eq!(filtered.classes(), [Class::FilteredSyscalls]);
    let tap = |taps: usize| {
        Scene::new(&[10.0])
            .on("main;work", 95)
            .on(
                "main;send;tcp_sendmsg_[k];dev_queue_xmit_nit_[k];packet_rcv_[k]",
                if taps > 0 { 5 } else { 0 },
            )
            .with(|seen| {
                let taps = vec![Tap { protocol: 3, device: 0, owner: Some((9, "tcpdump".into())) }; taps];
                seen.packets = Some(Packets { taps, device_packets: 1_000, ..Packets::default() });
            })
    };
    assert_eq!(tap(1).classes(), [Class::PacketTap]);
    assert_eq!(tap(0).classes(), []);
    assert!(tap(1).diagnosed().findings[0].evidence.iter().any(|fact| fact.text.contains("tcpdump (9)")));
}

#[test]
fn packets_on_other_cpus_are_a_finding_only_where_they_come_over_a_device() {
    let received = |device: u64, loopback: u64, handed: u64| {
        let working = Scene::new(&[10.0]).on("main;work", 80);
        working.on("main;send;tcp_sendmsg_[k]", 20).with(|seen| {
            seen.packets =
                Some(Packets { device_packets: device, loopback_packets: loopback, ..Packets::default() });
            seen.host.softirq = vec![
                SoftIrq { cpu: 0, net_rx: 10, targets: true, handed_over: handed, ..SoftIrq::default() },
                SoftIrq { cpu: 1, net_rx: 990, targets: false, ..SoftIrq::default() },
            ];
        })
    };
    assert_eq!(received(1_000, 0, 0).classes(), [Class::WrongCore]);
    assert_eq!(received(0, 1_000, 0).classes(), []);
    assert_eq!(received(100, 900, 800).classes(), [Class::WrongCore]);
    let mut idle = received(1_000, 0, 0);
    idle.seen.on_cpu.as_mut().unwrap().stacks.truncate(1);
    idle = idle.on("main;work", 20);
    assert_eq!(idle.classes(), [], "who hardly sends loses nothing");
}

#[test]
fn locks_that_take_a_part_of_little_cpu_time_are_no_finding() {
    let locking = |run_s: f64| {
        let scene = Scene::new(&[run_s, run_s]).on("main;work", 160).on("main;runtime.lock2", 40);
        // Nothing is known of waits: the CPU's share alone speaks.
        scene.with(|seen| seen.off_cpu = None)
    };
    assert_eq!(locking(0.4).classes(), [], "nine tenths of the CPUs are free");
    assert_eq!(locking(9.0).classes(), [Class::LockContention]);
}

#[test]
fn few_samples_are_no_share() {
    let filtered = |samples: u64| {
        Scene::new(&[0.1])
            .on("main;work", samples * 19 / 20)
            .on("main;read;do_syscall_64_[k];__seccomp_filter_[k]", samples / 20)
    };
    assert_eq!(filtered(40).classes(), []);
    assert_eq!(filtered(400).classes(), [Class::FilteredSyscalls]);
}

#[test]
fn where_the_kernel_could_not_be_sampled_shares_are_of_all_cpu_time_and_its_costs_are_not_seen() {
    let unprivileged = |kernel: f64| {
        Scene::new(&[10.0]).on("main;work;malloc", 30).on("main;work", 70).with(|seen| {
            seen.on_cpu.as_mut().unwrap().sampling.event = "cpu-clock:u".into();
            seen.process.kernel_share = Some(kernel);
        })
    };
    assert_eq!(unprivileged(0.8).classes(), [], "30 % of a fifth");
    assert_eq!(unprivileged(0.05).classes(), [Class::AllocationChurn]);
    let said = unprivileged(0.8).diagnosed();
    let is_unseen = |class| !said.ruled_out.iter().any(|out| out.class == class);
    assert!(is_unseen(Class::PageFaults) && is_unseen(Class::FilteredSyscalls), "{:?}", said.ruled_out);
    assert!(!is_unseen(Class::Copying));
    // Loops are seen in user code only: half of a tenth is no half.
    let walks = |kernel| {
        let scene = Scene::new(&[10.0]).on("main;work", 100).hot(FIND, 0.9, vec![]);
        scene.with(|seen| {
            seen.on_cpu.as_mut().unwrap().sampling.event = "cpu-clock:u".into();
            seen.process.kernel_share = Some(kernel);
        })
    };
    assert_eq!((walks(0.0).classes(), walks(0.8).classes()), (vec![Class::UserHotSpot], vec![]));
}

#[test]
fn what_waits_for_reads_is_told_to_keep_and_read_ahead() {
    let reader = |bytes_per_call: u64| {
        let mut scene = Scene::new(&[1.0]).on("main;read;filemap_read_[k]", 100).off(
            1,
            WaitClass::Disk,
            "main;read;filemap_read_[k];folio_wait_bit_[k]",
            8.0,
        );
        let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
        stack.wait.as_mut().unwrap().system_call = Some("read".into());
        scene
            .with(|seen| seen.process.reads = Some(Transfers { calls: 1_000, bytes: 1_000 * bytes_per_call }))
    };
    let small = reader(4_096).diagnosed();
    assert_eq!((small.findings[0].class, small.findings[0].next.len()), (Class::SyncIo, 1));
    assert!(small.findings[0].next[0].text.contains("read ahead"));
    assert_eq!(reader(1 << 20).classes(), [], "the disk itself is what is left");
}

#[test]
fn a_lock_inside_a_pipe_is_no_disk() {
    let mut piped = Scene::new(&[1.0, 1.0]).on("main;work", 200);
    for tid in [1, 2] {
        let stack = "main;write;ksys_write_[k];vfs_write_[k];pipe_write_[k];__mutex_lock_[k]";
        piped = piped.off(tid, WaitClass::Lock, stack, 8.0);
    }
    assert!(!piped.classes().contains(&Class::SyncIo), "{:?}", piped.classes());
}

#[test]
fn who_waits_for_pages_from_a_disk_is_told_so() {
    let cold = Scene::new(&[1.0])
        .on("main;look_up", 100)
        .off(1, WaitClass::PageFault, "main;look_up;exc_page_fault_[k];filemap_fault_[k]", 8.0)
        .with(|seen| seen.process.major_faults = 9_000);
    let finding = cold.diagnosed().findings.remove(0);
    assert_eq!(finding.class, Class::PageFaults);
    assert!(finding.summary.contains("waits for pages from a disk"), "{}", finding.summary);
}

#[test]
fn one_full_thread_leads_only_when_somebody_waits_for_it() {
    let alone = Scene::new(&[9.9]).on("main;work", 100);
    assert_eq!(alone.classes(), []);
    assert!(alone.diagnosed().notes.iter().any(|note| note.class == Class::SingleThreadLimit));
    let refused = Scene::new(&[9.9])
        .on("main;work", 100)
        .with(|seen| seen.packets.as_mut().unwrap().listen_overflows = 12);
    assert_eq!(refused.classes(), [Class::SingleThreadLimit]);
    // 64 connections at 100 µs of CPU each: the last one waits 6.4 ms.
    let in_line = Scene::new(&[9.9]).on("main;work", 100).load(Load { p50_ns: 6_000_000, ..busy_load() });
    assert_eq!(in_line.classes(), [Class::SingleThreadLimit]);
    let mut waiting = Scene::new(&[9.9, 0.1, 0.1]).on("main;work", 100);
    for tid in [2, 3] {
        waiting = waiting.off(tid, WaitClass::Lock, "run;pthread_cond_wait;futex_wait_[k]", 9.5).woken(
            "0x7f",
            1,
            "main;pthread_cond_signal",
        );
    }
    assert_eq!(waiting.classes(), [Class::SingleThreadLimit]);
    let two = Scene::new(&[9.9, 9.9]).on("main;work", 100).load(busy_load());
    assert_eq!(two.classes(), []);
}

#[test]
fn a_pool_of_sleepers_leaves_the_cpus_free() {
    let mut pool = Scene::new(&[0.05; 8]).on("run;work", 100);
    for tid in 1..=8 {
        pool = pool.off(tid, WaitClass::Sleep, "run;nanosleep;hrtimer_nanosleep_[k]", 9.9);
    }
    assert_eq!(pool.classes(), [Class::PoolLimit]);
    let goroutines = |cpu: f64| {
        Scene::new(&[cpu, cpu])
            .on("main.worker;time.Sleep;runtime.gopark", 40)
            .on("main.worker;runtime.chanrecv;runtime.gopark", 30)
            .on("runtime.schedule", 30)
    };
    assert_eq!(goroutines(2.0).classes(), [Class::PoolLimit]);
    assert_eq!(goroutines(9.5).classes(), []);
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

#[test]
fn a_neighbour_is_told_last_and_only_when_he_is_felt() {
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
    assert!(noted(asked(9)), "it is told all the same");
    assert!(!noted(asked(1)));
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

#[test]
fn nothing_that_ran_gives_no_finding_and_says_so() {
    let idle = Scene::new(&[0.001; 4]).off(1, WaitClass::Network, "main;epoll_wait", 10.0);
    assert_eq!(idle.classes(), []);
    assert!(idle.diagnosed().not_looked_at[0].what.starts_with("nothing ran"));
}

#[test]
fn what_was_not_seen_is_not_taken_for_nothing() {
    let blind = Scene::new(&[5.0]).with(|seen| {
        (seen.on_cpu, seen.off_cpu, seen.memory, seen.packets) = (None, None, None, None);
    });
    let said = blind.diagnosed();
    assert!(said.findings.is_empty());
    let unseen: Vec<&str> = said.not_looked_at.iter().map(|one| one.what.as_str()).collect();
    for class in ["sync_io", "lock_contention", "formatting", "tlb_reach", "packet_tap", "generator_limited"]
    {
        assert!(unseen.contains(&class), "{class}: {unseen:?}");
    }
}

#[test]
fn every_class_has_one_rule() {
    let mut classes: Vec<Class> = super::RULES.iter().map(|rule| rule.class).collect();
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

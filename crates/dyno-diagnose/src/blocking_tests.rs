//! Tests of what threads wait for: who is a lock's, a disk's or nobody's, and where the lines lie.

#![allow(clippy::unwrap_used)]

use dyno_record::finding::{Class, Confidence, RuledOut};
use dyno_record::observation::Transfers;
use dyno_record::profile::{Span, ThreadState, ThreadTime, WaitClass};

use crate::scene::{Scene, synchronous_log};

/// Six threads at one lock beside a compiler's thread. Planted fault: what the whole process uses says that nothing is left
/// (`has_room` of `fills_cpus` alone).
#[test]
fn a_lock_holds_up_those_who_meet_there_whatever_others_of_the_process_do() {
    let beside =
        |each_s: f64, other_s: f64| {
            let mut scene =
                Scene::new(&[each_s, each_s, each_s, each_s, each_s, each_s, other_s]).on("run;work", 100);
            for tid in 1..=6 {
                scene = scene
                    .off(tid, WaitClass::Lock, "run;log;pthread_mutex_lock;futex_wait_[k]", 6.5)
                    .woken("0x7f00", tid % 6 + 1, "run;log;pthread_mutex_unlock;futex_wake_[k]");
            }
            scene.classes()
        };
    assert_eq!(beside(1.6, 9.0), [Class::LockContention]);
    assert_eq!(beside(3.1, 0.1), [], "they fill the CPUs");
}

/// Two processes whose threads wait for work at a queue's lock, on CPUs that they and who asks them fill. Planted fault: those
/// of one process alone are asked how much they use (`elsewhere` of 0).
#[test]
fn a_lock_in_each_of_several_processes_holds_nobody_up_where_all_of_them_fill_the_cpus() {
    let classes =
        |one_process: bool| {
            let mut scene = Scene::new(&[1.5, 1.5, 1.5, 4.0, 4.0, 1.0]).on("run;work", 100);
            for tid in 1..=3 {
                scene = scene
                    .off(tid, WaitClass::Lock, "run;pop;pthread_mutex_lock;futex_wait_[k]", 6.5)
                    .woken("0x7f00", tid % 3 + 1, "run;pop;pthread_mutex_unlock;futex_wake_[k]");
            }
            for thread in &mut scene.seen.off_cpu.as_mut().unwrap().threads {
                thread.pid = if one_process || thread.tid <= 3 { 1 } else { 2 };
            }
            scene.with(|seen| seen.host.peers_ns = 6_000_000_000).classes()
        };
    assert_eq!(classes(false), []);
    assert_eq!(classes(true), [Class::LockContention], "what others of the process do is beside it");
}

/// A thread that polls and one that waits at a condition, and each wakes the other. Planted faults: who polls waits for the network
/// whoever ends it (`is_handed_by_descriptor` never); whoever ends a poll hands something over (always).
#[test]
fn who_wakes_a_poller_by_a_descriptor_runs_in_turns_with_it() {
    let pair = |wakes: &str| {
        let mut scene = Scene::new(&[4.0, 4.0])
            .on("main;work", 100)
            .off(1, WaitClass::Network, "main;poll;do_sys_poll_[k]", 5.0)
            .woken("anon_inode:[eventfd]", 2, wakes)
            .off(2, WaitClass::Lock, "run;pthread_cond_wait;futex_wait_[k]", 5.0)
            .woken("0x7f00", 1, "main;pthread_cond_signal;futex_wake_[k]");
        scene.seen.off_cpu.as_mut().unwrap().stacks.iter_mut().for_each(|stack| stack.samples = 100_000);
        scene.classes()
    };
    assert_eq!(pair("run;write;ksys_write_[k];eventfd_write_[k]"), [Class::LockContention]);
    assert_eq!(pair("run;write;ksys_write_[k];tcp_sendmsg_[k]"), []);
}

/// A question and its answer through two pipes, for which both run 6.5 s of ten; `shift_us` is how much sooner the other begins.
/// Planted faults: only futexes hand over (`hand_over_pipe` empty); what both run is summed whatever the timeline shows; one
/// pipe is as good as two (`both_ways` true).
#[test]
fn two_that_ask_and_answer_through_pipes_run_in_turns() {
    let pair = |pipes: [&str; 2], shift_us: Option<u64>| {
        let mut scene = Scene::new(&[6.5, 6.4]).on("main;work", 100);
        for (tid, by) in [(1, 2), (2, 1)] {
            scene = scene.off(tid, WaitClass::Network, "main;read;anon_pipe_read_[k]", 2.2).woken(
                pipes[tid as usize - 1],
                by,
                "main;write;anon_pipe_write_[k]",
            );
            scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = 200_000;
        }
        let span = |at: u64, shift_us: u64| {
            let from_ns = at * 20_000 - shift_us * 1_000 * (at % 2);
            let (thread, to_ns, state) = ((at % 2) as u32, from_ns + 20_000, ThreadState::Running);
            Span { thread, from_ns, to_ns, state, class: None }
        };
        scene.seen.off_cpu.as_mut().unwrap().timeline =
            shift_us.map_or(vec![], |shift_us| (1..1_000).map(|at| span(at, shift_us)).collect());
        scene.classes().contains(&Class::LockContention)
    };
    let two = ["pipe:[7]", "pipe:[8]"];
    assert!(pair(two, Some(1)));
    assert!(!pair(two, Some(15)), "both run for most of the time");
    assert!(!pair(two, None), "it is not known when they ran");
    assert!(!pair(["pipe:[7]"; 2], Some(1)), "one fills it and the other empties it");
}

/// The same log on a machine that others fill: whoever holds the lock is at the disk for a little of the time, and waits for a CPU
/// for most of it. Planted fault: what a holder waits for a CPU counts as what it does (`on_full` of all that is waited); what
/// they do elsewhere counts (`spent_at_disks` in place of what runs inside).
#[test]
fn a_lock_that_is_held_for_the_disk_is_so_on_a_full_machine_too() {
    let at = |work: &str, disk_s: f64, for_cpu_s: f64, run_s: f64| {
        let mut scene = Scene::new(&[run_s; 8]);
        for tid in 1..=8 {
            scene = scene.on(work, 100);
            let stacks = scene.seen.on_cpu.as_mut().unwrap().stacks.iter_mut().rev();
            stacks.take(2).for_each(|stack| stack.thread = tid - 1);
            let sync = "conn_main;fdatasync;do_fsync_[k];jbd2_log_wait_commit_[k]";
            scene = scene
                .off(tid, WaitClass::Disk, sync, disk_s)
                .off(tid, WaitClass::RunQueue, sync, for_cpu_s)
                .off(tid, WaitClass::Lock, "conn_main;pthread_mutex_lock;futex_wait_[k]", 8.0)
                .woken("0x7f00", tid % 8 + 1, "conn_main;pthread_mutex_unlock;futex_wake_[k]");
        }
        scene.with(|seen| {
            seen.process.disk_write_bytes = Some(8 * 100 * 4_096);
            // A build and a stressor.
            seen.host.foreign_ns = seen.host.idle_ns * 9 / 10;
        })
    };
    let log = |disk_s, for_cpu_s, run_s| at("conn_main;work", disk_s, for_cpu_s, run_s);
    assert_eq!(log(1.2, 0.0, 0.02).first(), Some(Class::SyncIo));
    assert_eq!(log(0.3, 0.8, 0.02).first(), Some(Class::SyncIo));
    assert_eq!(log(0.3, 0.2, 0.02).first(), Some(Class::LockContention), "it is held for something else");
    assert_eq!(log(0.3, 0.8, 0.8).first(), Some(Class::LockContention), "for work");
    let besides = at("answer;work", 0.3, 0.8, 0.8).first();
    assert_eq!(besides, Some(Class::SyncIo), "what they do without the lock holds nobody up");
    assert_eq!(log(0.05, 1.15, 0.02).first(), Some(Class::SyncIo), "twenty want each CPU");
    assert_eq!(log(0.01, 1.25, 0.005).first(), Some(Class::LockContention), "hardly at the disk");
}

/// Four threads wait for a queue's semaphore in turn; all of them for half of the time, or one of them never.
#[test]
fn a_lock_around_a_queue_is_no_lock_while_all_wait_for_work() {
    let pool = |lock: &str, all_wait: bool| {
        let mut scene = Scene::new(&[1.0; 4]).on("run;work", 100);
        for tid in 1..=4_u32 {
            scene = scene.off(tid, WaitClass::Lock, &format!("take;{lock};futex_wait_[k]"), 7.0);
            scene = scene.woken("0x1", tid % 4 + 1, "take;sem_post");
        }
        let span = |thread: u32, from: u64, to: u64| Span {
            thread,
            from_ns: from * 1_000_000_000,
            to_ns: to * 1_000_000_000,
            state: ThreadState::Waiting,
            class: Some(WaitClass::Lock),
        };
        scene.with(|seen| {
            let begin = |thread: u64| if all_wait { 3 } else { thread * 2 };
            let waits = (0..4).flat_map(|thread| {
                // Where they take turns each leaves the others waiting for its part.
                let (from, rest) = (begin(u64::from(thread)), begin(u64::from(thread)) + 2);
                let second = if all_wait { (rest, 10) } else { (rest.min(8), 8) };
                let first = if all_wait { (from, rest) } else { (0, from) };
                let last = if all_wait { second } else { (rest, 8) };
                [span(thread, first.0, first.1), span(thread, last.0, last.1)]
            });
            let waits: Vec<Span> = waits.filter(|span| span.to_ns > span.from_ns).collect();
            seen.off_cpu.as_mut().unwrap().timeline = waits;
        })
    };
    for lock in ["sem_wait", "pthread_mutex_lock"] {
        assert_eq!(pool(lock, true).classes(), [], "{lock}");
        assert_eq!(pool(lock, false).classes(), [Class::LockContention], "{lock}");
    }
}

/// Planted fault: the disk is named where nobody waits behind it, and not where all do.
#[test]
fn a_lock_whose_holder_waits_for_the_disk_is_synchronous_io_and_no_lock() {
    assert_eq!(synchronous_log().classes(), [Class::SyncIo]);
    let finding = synchronous_log().diagnosed().findings.remove(0);
    assert_eq!(finding.confidence, Confidence::High);
    assert!(
        finding.evidence.iter().any(|fact| fact.text.contains("the lock is not the cause")),
        "{finding:#?}"
    );
    let against_lock = |out: &RuledOut| {
        out.class == Class::LockContention && out.by.contains("holders that wait for a disk")
    };
    assert!(finding.ruled_out.iter().any(against_lock), "{finding:#?}");
    let mut slow = Scene::new(&[0.2; 8]).on("main;work", 100);
    for tid in 1..=8 {
        slow = slow.off(tid, WaitClass::Disk, "conn_main;fdatasync;do_fsync_[k]", 9.2);
    }
    let slow = slow.with(|seen| seen.process.disk_write_bytes = Some(8 * 100 * 4_096));
    let finding = slow.diagnosed().findings.remove(0);
    assert_eq!(finding.class, Class::SyncIo);
    assert!(!finding.ruled_out.iter().any(against_lock), "{finding:#?}");
}

/// Rows of a database are locked, and the log is synced every second. Planted fault: whoever was at the disk once inside a
/// function that gives a lock back held it for the disk.
#[test]
fn a_lock_whose_holders_are_hardly_at_the_disk_is_no_synchronous_io() {
    let rows = |disk_s: f64| {
        let mut scene = Scene::new(&[2.0; 4]).on("conn;handle;commit;work", 100);
        for tid in 1..=4 {
            let way = "conn;handle;commit;pthread_mutex_lock;futex_wait_[k]";
            scene = scene
                .off(tid, WaitClass::Lock, way, 7.0)
                .woken("0x1", tid % 4 + 1, "conn;handle;commit;pthread_mutex_unlock;futex_wake_[k]")
                .off(tid, WaitClass::Disk, "conn;handle;commit;fdatasync;do_fsync_[k]", disk_s);
        }
        scene.with(|seen| seen.process.disk_write_bytes = Some(1 << 20)).first()
    };
    assert_eq!(rows(0.01), Some(Class::LockContention));
    assert_eq!(rows(1.5), Some(Class::SyncIo));
}

/// Five threads of an interpreter, one of which writes and syncs at a time under its lock; they take it anywhere. Planted faults: only
/// functions in which a lock is taken say who holds it; whoever else works beside those that wait.
#[test]
fn who_alone_does_not_wait_holds_what_the_others_wait_for_and_a_disk_it_is_at_is_theirs() {
    let turns = |lock_s: f64| {
        let mut scene = Scene::new(&[0.6; 5]).on("run;work", 100);
        for tid in 1..=5 {
            let by = "run;d;e;f;gives_it;pthread_mutex_unlock;futex_wake_[k]";
            scene = scene
                .off(tid, WaitClass::Lock, "run;a;b;c;takes_it;pthread_mutex_lock;futex_wait_[k]", lock_s)
                .woken("0x7f00", tid % 5 + 1, by)
                .off(tid, WaitClass::Disk, "run;g;h;i;store;fdatasync;do_fsync_[k]", 1.3);
        }
        scene.with(|seen| seen.process.disk_write_bytes = Some(5 * 100 * 4_096)).first()
    };
    assert_eq!(turns(7.7), Some(Class::SyncIo));
    assert_eq!(turns(7.0), Some(Class::LockContention), "others work meanwhile");
}

/// A log's two writers, one of which syncs, beside eight workers that hardly run and wait for what one of them holds. Planted fault: all
/// locks are the writers'.
#[test]
fn locks_of_others_are_not_held_for_the_disk_of_two_writers() {
    let mut scene = Scene::new(&[vec![0.5; 2], vec![0.09; 8]].concat()).on("run;work", 100);
    let at = |scene: Scene, tid: u32, by: u32, word: &str, lock_s: f64| {
        let way = format!("run;a;b;c;takes_{word};pthread_mutex_lock;futex_wait_[k]");
        let back = format!("run;d;e;f;gives_{word};pthread_mutex_unlock;futex_wake_[k]");
        scene.off(tid, WaitClass::Lock, &way, lock_s).woken(word, by, &back)
    };
    scene = at(at(scene, 1, 2, "0x1", 4.5), 2, 1, "0x1", 4.5);
    for tid in 1..=2 {
        scene = scene.off(tid, WaitClass::Disk, "run;g;h;i;store;fdatasync;do_fsync_[k]", 4.5);
    }
    for tid in 3..=10 {
        scene = at(scene, tid, (tid - 2) % 8 + 3, "0x2", 8.5);
    }
    let scene = scene.with(|seen| seen.process.disk_write_bytes = Some(200 * 4_096));
    let facts = crate::facts::Facts::new(&scene.seen);
    let locks = &facts.off.as_ref().unwrap().locks;
    let behind: Vec<bool> = locks.values().map(|lock| lock.behind_disk).collect();
    assert_eq!(behind, [true, false], "{:?}", locks.keys());
}

/// A database whose eight helpers wait for whatever disks may say, and whose sessions wait for one lock. Planted fault: who waits there
/// for nothing is at a disk.
#[test]
fn helpers_that_wait_for_what_disks_may_say_are_at_no_disk() {
    let waits = |helpers_run_s: f64| {
        let runs = [vec![0.2; 4], vec![helpers_run_s; 8]].concat();
        let mut scene = Scene::new(&runs).on("run;work", 100);
        for tid in 1..=4 {
            let way = "run;pthread_mutex_lock;futex_wait_[k]";
            let by = "run;pthread_mutex_unlock;futex_wake_[k]";
            scene = scene.off(tid, WaitClass::Lock, way, 7.5).woken("0x7f00", tid % 4 + 1, by);
        }
        for tid in 5..=12 {
            scene = scene.off(tid, WaitClass::Disk, "io_handler;io_getevents;read_events_[k]", 9.9);
            let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
            stack.wait.as_mut().unwrap().system_call = Some("io_getevents".to_owned());
        }
        scene
    };
    assert_eq!(waits(0.001).first(), Some(Class::LockContention));
    let at_disks = |scene: Scene| {
        let facts = crate::facts::Facts::new(&scene.seen);
        facts.off.as_ref().unwrap().sum(|time| time.disk) > 0
    };
    assert_eq!([at_disks(waits(0.001)), at_disks(waits(0.1))], [false, true], "who works waits for answers");
}

/// Who has a lock of Ruby's sleeps, in a futex and in a function without a name; nobody runs. Planted fault: only names tell
/// a sleep.
#[test]
fn a_lock_whose_holder_sleeps_until_a_timer_ends_it_is_a_lock() {
    let mut scene = Scene::new(&[0.05; 4]).on("run;work", 100);
    let slept = "run;0x20a240;pthread_cond_timedwait;futex_wait_[k]";
    scene = scene.off(1, WaitClass::Lock, slept, 9.9).woken("0x1", 0, "hrtimer_wakeup_[k]");
    for tid in 2..=4 {
        let way = "run;rb_mutex_synchronize;0x2142f0;rb_native_cond_wait;pthread_cond_wait;futex_wait_[k]";
        let by = "run;rb_mutex_unlock;rb_native_cond_signal;pthread_cond_signal;futex_wake_[k]";
        scene = scene.off(tid, WaitClass::Lock, way, 9.9).woken(&format!("0x{tid}"), 1, by);
    }
    let all_wait = |thread| Span {
        thread,
        from_ns: 0,
        to_ns: 10_000_000_000,
        state: ThreadState::Waiting,
        class: Some(WaitClass::Lock),
    };
    let scene = scene.with(|seen| {
        seen.off_cpu.as_mut().unwrap().timeline = (0..4).map(all_wait).collect();
    });
    assert_eq!(scene.classes(), [Class::LockContention]);
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
    assert_eq!(writes(8_192).classes(), [Class::SyncIo], "a page of a database's log");
    assert_eq!(writes(131_072).classes(), []);
    let often = writes(131_072).with(|seen| seen.off_cpu.as_mut().unwrap().stacks[0].samples = 20_000);
    let often = often.with(|seen| seen.process.disk_write_bytes = Some(20_000 * 131_072));
    assert_eq!(often.classes(), [Class::SyncIo], "other ways write as well");
    assert_eq!(writes(131_072).diagnosed().notes[0].class, Class::SyncIo);
}

/// Planted faults: `sync`, as the record once had it, in place of the kernel's names; a path that another begins with.
#[test]
fn a_file_that_syncs_each_write_is_named_and_no_other() {
    let opened = |path: &str, flags: &str| {
        let mut scene = Scene::new(&[0.5]).on("main;work", 50).off(1, WaitClass::Disk, "main;write", 9.4);
        let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
        stack.wait.as_mut().unwrap().object = Some("/var/log.1".to_owned());
        let mut found =
            scene.with(|seen| seen.files = [(path.to_owned(), flags.to_owned())].into()).diagnosed();
        let facts = found.findings.remove(0).evidence;
        facts.into_iter().find(|fact| fact.text.contains("was opened with")).map(|fact| fact.text)
    };
    let told = "/var/log.1 was opened with O_DSYNC: every write waits by itself";
    assert_eq!(opened("/var/log.1", "O_DSYNC").as_deref(), Some(told));
    assert_eq!(opened("/var/log.1", "O_DIRECT"), None);
    assert_eq!(opened("/var/log", "O_SYNC"), None);
}

#[test]
fn what_waits_for_reads_is_advised_to_keep_and_read_ahead() {
    let reader = |bytes_per_call: u64| {
        let mut scene = Scene::new(&[1.0]).on("main;read;filemap_read_[k]", 100).off(
            1,
            WaitClass::Disk,
            "main;read;filemap_read_[k];folio_wait_bit_[k]",
            8.0,
        );
        let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
        stack.wait.as_mut().unwrap().system_call = Some("read".into());
        scene.with(|seen| {
            seen.process.reads = Some(Transfers { calls: 1_000, bytes: 1_000 * bytes_per_call });
        })
    };
    let small = reader(4_096).diagnosed();
    assert_eq!((small.findings[0].class, small.findings[0].next.len()), (Class::SyncIo, 1));
    assert!(small.findings[0].next[0].text.contains("read ahead"));
    assert_eq!(reader(1 << 20).classes(), [], "the disk itself is what is left");
}

/// Planted faults: one call that syncs makes all that is read a write; `openat` and `sendfile` taken for writes.
#[test]
fn what_mostly_reads_is_not_told_to_gather_what_it_writes() {
    let waits = |calls: &[(&str, f64)]| {
        let mut scene = Scene::new(&[1.0]).on("main;work", 100);
        for (call, seconds) in calls {
            scene = scene.off(1, WaitClass::Disk, "main;serve;folio_wait_bit_[k]", *seconds);
            let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
            stack.wait.as_mut().unwrap().system_call = Some((*call).to_owned());
        }
        let finding = scene.diagnosed().findings.remove(0);
        assert_eq!(finding.class, Class::SyncIo);
        finding.next.iter().any(|next| next.text.contains("read ahead"))
    };
    assert!(waits(&[("pread64", 8.0), ("fdatasync", 0.1)]));
    assert!(waits(&[("openat", 3.0), ("newfstatat", 2.0), ("sendfile", 3.0)]));
    assert!(!waits(&[("pread64", 1.0), ("fdatasync", 7.0)]));
}

/// Two threads of sysbench with one mutex: where the kernel is slow, more goes into its calls than into the lock, and they
/// hardly ever sleep. Planted fault: calls count only beside no less in the locks (`by_locks` never).
#[test]
fn a_lock_whose_calls_cost_more_than_itself_is_contended_and_no_call_too_many() {
    let meet = |lock: &str, wake: &str| {
        let ways = [("run;pthread_mutex_lock", 22), ("run;pthread_mutex_unlock", 12), ("run;work", 14)];
        let scene = ways.iter().fold(Scene::new(&[9.9, 9.9]), |scene, (way, many)| scene.on(way, *many));
        let waits = format!("run;{lock};do_syscall_64_[k];__x64_sys_futex_[k];futex_wait_[k]");
        let wakes = format!("run;{wake};do_syscall_64_[k];__x64_sys_futex_[k];futex_wake_[k]");
        let enters = format!("run;{lock};entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k]");
        let scene = scene.on(&waits, 18).on(&wakes, 18).on(&enters, 16);
        let calls = dyno_record::profile::SystemCall { count: 18_000_000, ..Default::default() };
        scene.off(1, WaitClass::Lock, &waits, 0.01).with(|seen| {
            let off = seen.off_cpu.as_mut().unwrap();
            off.system_calls.insert("futex".to_owned(), calls);
        })
    };
    let locks = meet("pthread_mutex_lock;__lll_lock_wait", "pthread_mutex_unlock;__lll_lock_wake");
    assert_eq!(locks.classes(), [Class::LockContention]);
    assert_eq!(meet("ask;syscall", "tell;syscall").first(), Some(Class::SyscallHeavy));
}

/// Planted fault: where waits cannot be seen, any lock that costs CPU time is contended.
#[test]
fn one_thread_contends_with_nobody_also_where_waits_cannot_be_seen() {
    let unseen = |run_s: &[f64]| {
        let scene = Scene::new(run_s).on("run;work", 80).on("run;pthread_mutex_lock", 20);
        scene.with(|seen| seen.off_cpu = None).classes()
    };
    assert!(!unseen(&[9.9]).contains(&Class::LockContention));
    assert!(unseen(&[9.9, 9.9]).contains(&Class::LockContention));
}

/// Planted fault: the lock of a file taken for its disk where nobody waits for one.
#[test]
fn the_lock_of_a_file_in_memory_is_a_lock() {
    let appends = |at_disk_s: Option<f64>| {
        let mut scene = Scene::new(&[1.5; 8]).on("main;write;vfs_write_[k]", 100);
        let stack = "main;write;shmem_file_write_iter_[k];rwsem_down_write_slowpath_[k]";
        for tid in 1..=8 {
            scene = scene.off(tid, WaitClass::Lock, stack, 8.0).woken("0x7f", tid % 8 + 1, stack);
        }
        match at_disk_s {
            Some(seconds) => scene.off(1, WaitClass::Disk, "main;write;folio_wait_bit_[k]", seconds),
            None => scene,
        }
    };
    assert_eq!(appends(None).first(), Some(Class::LockContention));
    assert_eq!(appends(Some(8.0)).first(), Some(Class::SyncIo));
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

/// Planted fault: silence below the line (`nearer_turns` that never looks at turns).
#[test]
fn two_threads_that_run_in_turns_contend_and_a_barrier_of_four_does_not() {
    let pair = |samples: u64| {
        let mut pair = Scene::new(&[4.0, 4.0]).on("0x77", 100);
        for (tid, by, lock) in [(1, 2, "0xa"), (2, 1, "0xb")] {
            let way = format!("0x77;0x9{tid};futex_wait_[k]");
            pair = pair.off(tid, WaitClass::Lock, &way, 5.0).woken(lock, by, "0x77;0x11;futex_wake_[k]");
            pair.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = samples;
        }
        pair
    };
    assert_eq!(pair(200_000).classes(), [Class::LockContention]);
    let seldom = pair(40_000).diagnosed();
    assert!(seldom.findings.is_empty());
    let told = "two threads run in turns, 8000 times a second (a finding from 10000 on)";
    assert!(seldom.nearest[0].by.ends_with(told), "{:?}", seldom.nearest);
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

/// Planted fault: who was woken for a lock and waits for a CPU waits for that alone (`is_place_of_turns` never).
#[test]
fn who_is_woken_for_a_lock_and_is_not_there_yet_waits_for_the_lock() {
    let meets = |woken_at: &str| {
        let lock = "run;0x1234;futex_wait_[k]";
        let mut scene = Scene::new(&[7.0, 7.0]).on("run;work", 100);
        for (tid, by) in [(1, 2), (2, 1)] {
            scene =
                scene.off(tid, WaitClass::Lock, lock, 1.5).woken("0x7f00", by, "run;0x1250;futex_wake_[k]");
            scene = scene.off(tid, WaitClass::RunQueue, woken_at, 1.5);
        }
        scene.classes()
    };
    assert_eq!(meets("run;0x1234;futex_wait_[k]"), [Class::LockContention], "3 of 10 s");
    assert_eq!(meets("run;work"), [], "1.5 of 10 s");
}

/// Planted fault: whoever waits for a CPU stands at a lock (`is_place_of_turns` always).
#[test]
fn who_waits_for_a_cpu_waits_for_no_lock() {
    let scene = Scene::new(&[5.0, 5.0]).on("main;work", 100);
    let scene =
        [1, 2].into_iter().fold(scene, |scene, tid| scene.off(tid, WaitClass::RunQueue, "main;work", 5.0));
    assert_eq!(scene.classes(), []);
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
fn locks_that_are_taken_are_met_where_they_call_the_kernel() {
    let taking = |in_kernel: u64| {
        Scene::new(&[9.8; 2])
            .on("run;work", 85 - in_kernel)
            .on("run;pthread_mutex_lock", 15)
            .on("run;pthread_mutex_unlock;do_futex_[k];futex_wake_[k]", in_kernel)
            .off(1, WaitClass::Lock, "run;pthread_mutex_lock;futex_wait_[k]", 0.02)
            .classes()
    };
    assert_eq!(taking(3), [Class::LockContention], "hardly anybody sleeps, but locks are found taken");
    assert_eq!(taking(1), [], "the price of taking them");
}

/// memcached's four threads: locks cost a third of the CPU time, next to all of it for taking them. Planted fault: calls of
/// two percent are enough, whatever else the locks cost (`explained` always).
#[test]
fn a_few_calls_beside_many_locks_that_are_free_are_no_contention() {
    let scene = Scene::new(&[4.9; 4]).on("run;work", 610).on("run;pthread_mutex_lock", 365);
    let scene = scene.on("run;pthread_mutex_unlock;do_futex_[k];futex_wake_[k]", 25);
    let scene = scene.off(1, WaitClass::Lock, "run;pthread_mutex_lock;futex_wait_[k]", 0.02);
    assert_eq!(scene.classes(), []);
}

#[test]
fn a_moment_at_a_lock_is_no_loss_where_little_is_done() {
    let waits =
        |seconds: f64| {
            let mut scene = Scene::new(&[0.05; 4]).on("run;work", 100);
            for tid in 1..=4 {
                scene = scene
                    .off(tid, WaitClass::Lock, "run;pthread_mutex_lock;futex_wait_[k]", seconds)
                    .woken("0x7f", tid % 4 + 1, "run;pthread_mutex_unlock");
            }
            scene.classes()
        };
    assert_eq!(waits(0.2), [], "0.8 of 40 s, a tenth of one thread's ten would be one");
    assert_eq!(waits(0.3), [Class::LockContention]);
}

/// News for all at once: everybody who waited for it meets the others for a moment. Planted faults: what clients wait for is
/// not asked (`are_few_of_those_owed`); an event loop's time counts as one request's.
#[test]
fn where_hardly_any_of_those_who_wait_for_answers_stand_at_a_lock_it_is_not_what_keeps_them() {
    use dyno_record::observation::{Packets, Serving};
    let meets = |seconds: [f64; 4], owed: f64| {
        let mut scene = Scene::new(&[0.2; 4]);
        for (tid, seconds) in (1..=4).zip(seconds) {
            scene = scene.off(tid, WaitClass::Lock, "run;pthread_mutex_lock;futex_wait_[k]", seconds).woken(
                "0x7f",
                tid % 4 + 1,
                "run;pthread_mutex_unlock",
            );
        }
        let serving =
            Serving { connections: owed, looks: 100, looks_owed: 100, owed_ms: 250.0, ..Serving::default() };
        let packets = Packets { serving: Some(serving), ..Packets::default() };
        scene.with(|seen| seen.packets = Some(packets)).classes()
    };
    assert_eq!(meets([0.4; 4], 24.0), [], "0.16 of 24");
    assert_eq!(meets([0.4; 4], 1.0), [Class::LockContention], "of one");
    assert_eq!(meets([4.0; 4], 24.0), [Class::LockContention], "each thread's clients wait with it");
}

/// Who finds SQLite's file locked sleeps and looks again. Planted faults: such a sleep is one like others; whatever the
/// program sleeps for is a lock.
#[test]
fn a_busy_handler_that_sleeps_waits_for_a_lock() {
    let sleeps = |folded: &str| {
        let scene = Scene::new(&[0.2, 0.2]).off(1, WaitClass::Sleep, "main;serve;nanosleep", 9.0);
        scene.off(2, WaitClass::Sleep, folded, 8.0).classes()
    };
    let busy = "main;put;sqlite3_step;sqlite3InvokeBusyHandler;sqliteDefaultBusyCallback;unixSleep;nanosleep";
    assert_eq!(sleeps(busy), [Class::LockContention]);
    assert_eq!(sleeps("main;put;nanosleep"), []);
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

/// A program that is started again and again: its threads began since the counters were read. Planted fault: who was not counted did
/// not run (`thread_times` left out).
#[test]
fn threads_that_began_since_work_as_long_as_they_were_seen_to() {
    let started = |running_ns: u64| {
        let mut scene = Scene::new(&[0.1, 0.0, 0.0]).on("run;work", 100);
        for (tid, by) in [(2, 3), (3, 2)] {
            scene = scene.off(tid, WaitClass::Lock, "run;pthread_mutex_lock;futex_wait_[k]", 1.5).woken(
                "0x7f00",
                by,
                "run;pthread_mutex_unlock;futex_wake_[k]",
            );
        }
        let scene = scene.with(|seen| {
            seen.threads.truncate(1);
            let of = |thread| ThreadTime { thread, running_ns, ..ThreadTime::default() };
            seen.off_cpu.as_mut().unwrap().thread_times = vec![of(1), of(2)];
        });
        scene.classes()
    };
    assert_eq!(started(8_000_000_000), []);
    assert_eq!(started(4_000_000_000), [Class::LockContention]);
}

/// Threads that take and give back memory in turns, and have been woken for the address space and wait for a CPU. Planted fault: the
/// kernel's lock there is one of theirs (`for_pages` false).
#[test]
fn who_is_woken_for_the_address_space_waits_for_pages() {
    let takes = |call: &str| {
        let at = format!("run;{call};__vm_munmap_[k];down_write_killable_[k];rwsem_down_write_slowpath_[k]");
        let mut scene = Scene::new(&[2.5; 4]).on("run;work", 100);
        for tid in 1..=4 {
            scene = scene
                .off(tid, WaitClass::Lock, &at, 0.8)
                .woken("0x1", tid % 4 + 1, "run;munmap;up_write_[k]")
                .off(tid, WaitClass::RunQueue, &at, 1.9);
        }
        scene.classes()
    };
    assert_eq!(takes("munmap"), [Class::PageFaults]);
}

/// Eight requests wait for a lock in memory that two processes share; whoever holds it waits for an answer through a pipe. Planted
/// fault: the word of each process is a lock by itself (`across_processes` that changes nothing).
#[test]
fn a_word_in_shared_memory_is_one_lock_of_all_processes() {
    let locks = |shared: &[[u64; 2]]| {
        let mut scene = Scene::new(&[0.05; 8]).on("run;work", 100);
        for tid in 1..=8 {
            let object = format!("0x7000 (pid {})", if tid <= 4 { 1 } else { 2 });
            scene = scene.off(tid, WaitClass::Lock, "run;pthread_mutex_lock;futex_wait_[k]", 8.0).woken(
                &object,
                tid % 8 + 1,
                "run;pthread_mutex_unlock;futex_wake_[k]",
            );
        }
        let said = scene.with(|seen| seen.shared = shared.to_vec()).diagnosed();
        let facts = said.findings[0].evidence.iter().filter(|fact| fact.text.contains("0x7000"));
        facts.count()
    };
    assert_eq!([locks(&[[0x7000, 0x8000]]), locks(&[])], [1, 2]);
}

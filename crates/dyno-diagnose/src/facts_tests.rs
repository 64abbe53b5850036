//! Tests of the facts: what is counted, who is meant, and where the line lies.

#![allow(clippy::unwrap_used)]

use dyno_record::observation::Quota;

use super::*;
use crate::scene::{S, Scene};

/// Stacks with what their time is spent on. Planted faults: an arm that never holds; the kernel's side of a lock without its name;
/// whatever is done under a lock takes one.
const KINDS: &[(&str, Cost)] = &[
    ("main;read;__seccomp_filter_[k]", Cost::Filter),
    ("main;write;tcp_sendmsg_[k];packet_rcv_[k]", Cost::Tap),
    ("main;write;tcp_sendmsg_[k];nft_do_chain_[k]", Cost::Firewall),
    ("main;malloc;asm_exc_page_fault_[k];clear_page_erms_[k]", Cost::PageFault),
    ("main;fork;kernel_clone_[k];dup_mmap_[k]", Cost::PageFault),
    ("main;munmap;__x64_sys_munmap_[k];unmap_vmas_[k]", Cost::PageFault),
    ("main;malloc;__lll_lock_wait_private;do_futex_[k]", Cost::AllocatorLock),
    ("main;pthread_cond_wait;do_futex_[k]", Cost::Waking),
    ("main;pthread_mutex_lock;do_futex_[k]", Cost::LockCall),
    ("main;pthread_mutex_unlock;do_futex_[k]", Cost::LockCall),
    ("main;syscall;do_futex_[k]", Cost::Futex),
    ("main;epoll_wait;native_queued_spin_lock_slowpath_[k]", Cost::KernelSpin),
    ("main;sched_yield;__x64_sys_sched_yield_[k]", Cost::Yield),
    ("main;accept;inet_csk_accept_[k]", Cost::Connect),
    ("main;write;tcp_sendmsg_[k]", Cost::Network),
    ("main;fdatasync;do_fsync_[k];ext4_sync_file_[k]", Cost::Sync),
    ("main;read;vfs_read_[k];filemap_read_[k]", Cost::Files),
    ("main;write;vfs_write_[k]", Cost::Files),
    ("main;malloc;some_function_[k]", Cost::Allocation),
    ("main;pthread_mutex_lock;entry_SYSCALL_64_[k]", Cost::LockCall),
    ("main;getpid;entry_SYSCALL_64_[k]", Cost::SystemCall),
    ("main;work;asm_sysvec_apic_timer_interrupt_[k]", Cost::Interrupt),
    ("main;malloc;__lll_lock_wait_private", Cost::AllocatorLock),
    ("main;pthread_mutex_lock", Cost::UserLock),
    ("main;pthread_mutex_unlock", Cost::UserLock),
    ("main;rb_mutex_synchronize;rb_mutex_lock", Cost::UserLock),
    ("main;rb_mutex_synchronize;yield;block;page;malloc", Cost::Allocation),
    ("main;rb_mutex_synchronize;yield;block;page;read;vfs_read_[k]", Cost::Files),
    ("main;runtime.newstack;runtime.copystack", Cost::StackGrowth),
    ("main;snprintf;vfprintf", Cost::Format),
    ("main;page;malloc", Cost::Allocation),
    ("main;page;memcpy", Cost::Copy),
    ("main;memcpy;part", Cost::Copy),
    ("main;memcpy;part;part", Cost::Own),
    ("main;work_it", Cost::Own),
];

#[test]
fn time_is_spent_on_one_kind_of_work_the_deepest_cause_first() {
    for (stack, kind) in KINDS {
        let scene = Scene::new(&[9.0]).on(stack, 100);
        let profile = scene.seen.on_cpu.as_ref().unwrap();
        let found = cost(&leaf_first(profile, &profile.stacks[0]));
        assert_eq!(found, *kind, "{stack}");
        let user =
            [Cost::Own, Cost::Allocation, Cost::AllocatorLock, Cost::Format, Cost::Copy, Cost::StackGrowth];
        assert_eq!(kind.is_the_kernels(), !user.contains(kind) && *kind != Cost::UserLock, "{kind:?}");
    }
}

/// Planted faults: what this program or a peer uses counts as free; a machine of which nothing is known is wholly free.
#[test]
fn spare_is_what_nobody_who_belongs_to_it_wanted() {
    let of = |own_ns, peers_ns, interrupts_ns, wait_ns, foreign_ns| {
        let scene = Scene::new(&[8.0]).with(|seen| {
            let host = &mut seen.host;
            (host.own_ns, host.peers_ns, host.interrupts_ns) = (own_ns, peers_ns, interrupts_ns);
            (host.foreign_ns, seen.threads[0].wait_ns) = (foreign_ns, wait_ns);
        });
        let facts = Facts::new(&scene.seen);
        (facts.spare().unwrap() * 20.0, facts.spare_cpus().unwrap() * 10.0)
    };
    let close = |found: (f64, f64), wanted: f64| {
        assert!((found.0 - wanted).abs() < 1e-9 && (found.1 - wanted).abs() < 1e-9, "{found:?} {wanted}");
    };
    close(of(0, 0, 0, 0, 0), 12.0);
    close(of(S, 2 * S, 3 * S, 0, 0), 6.0);
    // Half of what was used is others': so much of its waiting is their doing, and no more than they took.
    close(of(0, 0, 0, 4 * S, 8 * S), 10.0);
    close(of(0, 0, 0, 40 * S, 8 * S), 4.0);
    close(of(0, 40 * S, 0, 0, 0), 0.0);
    let unknown = Scene::new(&[8.0]).with(|seen| seen.host.all_ns = 0);
    assert_eq!(Facts::new(&unknown.seen).spare(), None);
}

/// A second and a half of a CPU's ten are left. Planted fault: free is what the CPUs have left (`usable_ns` of all).
#[test]
fn of_a_quota_is_free_what_it_leaves() {
    let of = |cpus, peers_ns| {
        let scene = Scene::new(&[8.5]).with(|seen| {
            seen.quota = Some(Quota { cpus, ..Quota::default() });
            seen.host.peers_ns = peers_ns;
        });
        let facts = Facts::new(&scene.seen);
        let all = [facts.spare().unwrap(), facts.spare_cpus().unwrap(), facts.gain_at_most().unwrap()];
        all.map(|one| (one * 1_000.0).round())
    };
    assert_eq!(of(Some(1.0), 0), [150.0, 150.0, 176.0]);
    assert_eq!(of(Some(1.0), 11 * S), [50.0, 50.0, 26.0], "its peers leave less than the quota");
    assert_eq!(of(Some(0.5), 0), [0.0; 3], "it had more than its due");
    assert_eq!([of(Some(2.0), 0), of(None, 0)], [[575.0, 1_150.0, 1_353.0]; 2]);
}

/// Planted faults: who asks gains nothing; what others keep from running is not given back.
#[test]
fn a_gain_is_what_is_free_against_all_that_is_done() {
    let gain = |peers_ns, wait_ns, foreign_ns| {
        let scene = Scene::new(&[8.0]).with(|seen| {
            (seen.host.peers_ns, seen.host.foreign_ns, seen.threads[0].wait_ns) =
                (peers_ns, foreign_ns, wait_ns);
        });
        (Facts::new(&scene.seen).gain_at_most().unwrap() * 1_000.0).round()
    };
    assert_eq!([gain(0, 0, 0), gain(2 * S, 0, 0)], [1_500.0, 1_000.0]);
    // 4 s × 12/20 are others' doing, three tenths of its own 8: 10 × 1.3 would be done, and 7.6 s less those of who asks are free.
    assert_eq!(gain(2 * S, 4 * S, 10 * S), 538.0);
}

/// Planted faults: one line of two is enough; one that is busy counts as free.
#[test]
fn cpus_are_plenty_where_most_is_free_and_nobody_is_busy() {
    let plenty = |runs: &[f64]| {
        let scene = Scene::new(runs);
        Facts::new(&scene.seen).has_cpu_to_spare()
    };
    assert!(plenty(&[2.5, 2.5]) && plenty(&[4.9]));
    assert!(!plenty(&[2.6, 2.5]) && !plenty(&[5.0]));
}

/// Planted faults: per request where none was counted; a share of the wrong window.
#[test]
fn counts_are_told_for_each_request_or_second() {
    let scene = Scene::new(&[8.0]);
    assert_eq!(Facts::new(&scene.seen).per(50), (5.0, "per second"));
    let loaded = Scene::new(&[8.0]).load(crate::scene::busy_load());
    assert_eq!(Facts::new(&loaded.seen).per(50_000), (0.5, "per request"));
    let kept_off = Scene::new(&[3.0, 6.0]).with(|seen| {
        seen.threads[1].wait_ns = 2 * S;
        seen.host.foreign_ns = 9 * S;
    });
    let facts = Facts::new(&kept_off.seen);
    assert_eq!(facts.busiest().map(|(thread, share)| (thread.tid, share)), Some((2, 0.7)));
}

/// Of an ordinary user's profile the kernel's part is missing. Planted faults: what was sampled is all; kinds of the kernel's work
/// are told as none.
#[test]
fn shares_are_of_all_time_also_where_the_kernels_was_not_sampled() {
    let scene = Scene::new(&[8.0]).on("main;page;memcpy", 50).on("main;work_it", 50).with(|seen| {
        seen.on_cpu.as_mut().unwrap().sampling.event = "cpu-clock:u".to_owned();
        seen.process.kernel_share = Some(0.5);
    });
    let facts = Facts::new(&scene.seen);
    assert_eq!(facts.cpu_share(&[Cost::Copy]), Some(0.25));
    assert_eq!(
        (facts.cpu_share(&[Cost::Network]), facts.cpu_share(&[Cost::Network, Cost::Own])),
        (None, Some(0.25))
    );
    assert!(facts.on_both_sides().is_none() && facts.on.is_some());
    // Samples below a hundred are an accident.
    let few = |samples: u64| {
        let scene = Scene::new(&[8.0]).on("main;work_it", samples);
        Facts::new(&scene.seen).on.is_some()
    };
    assert_eq!([few(99), few(100)], [false, true]);
}

/// Planted faults: what was folded into its caller is a function of its own; a leaf in the kernel is its caller's.
#[test]
fn the_hottest_function_is_that_of_most_leaves_in_user_code() {
    let scene = Scene::new(&[8.0])
        .on("main;digest;tiny", 30)
        .on("main;digest", 25)
        .on("main;other", 40)
        .on("main;other;tcp_sendmsg_[k]", 60)
        .with(|seen| {
            let profile = seen.on_cpu.as_mut().unwrap();
            let tiny = profile.frames.iter_mut().find(|frame| frame.name == "tiny").unwrap();
            tiny.inlined = true;
            profile.stacks[2].thread = 7;
        });
    let facts = Facts::new(&scene.seen);
    let on = facts.on.as_ref().unwrap();
    assert_eq!(
        on.top_function().map(|(name, share)| (name, (share * 155.0).round())),
        Some(("digest".into(), 55.0))
    );
    let of_thread = on.top_function_of(1).map(|top| (top.place, (top.share * 115.0).round()));
    assert_eq!(of_thread, Some(("digest".into(), 55.0)), "what nobody's thread did is not its");
    assert_eq!(on.top_function_of(9), None);
}

/// Planted faults: what old processes do is new; other kinds of work count.
#[test]
fn of_the_time_in_which_pages_are_made_the_part_of_new_processes_is_told() {
    let faults = "main;touch;asm_exc_page_fault_[k];clear_page_erms_[k]";
    let scene =
        Scene::new(&[8.0]).on("main;work_it", 50).on(faults, 30).on(faults, 60).on(faults, 30).with(|seen| {
            let profile = seen.on_cpu.as_mut().unwrap();
            profile.threads.extend([77, 78].map(|pid| dyno_record::profile::Thread {
                pid,
                tid: pid,
                name: "cc1".into(),
            }));
            (profile.stacks[2].thread, profile.stacks[3].thread) = (1, 2);
        });
    let facts = Facts::new(&scene.seen);
    let on = facts.on.as_ref().unwrap();
    assert_eq!(on.in_new_processes(Cost::PageFault, facts.seen), (0.75, 2));
    assert_eq!(on.in_new_processes(Cost::Own, facts.seen), (0.0, 0));
    assert_eq!(on.in_new_processes(Cost::Network, facts.seen), (0.0, 0));
}

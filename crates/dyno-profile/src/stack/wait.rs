//! What a wait was for, read from the kernel's functions that it waited in and the system call around them.
//!
//! Called when stacks become rows. A pure function over tables: functions first, because they say what really happened (a read may
//! wait for a disk, a peer or a lock), then the call (`calls`), then what the call was about.

use dyno_record::profile::{Wait, WaitClass};

use crate::calls::{self, WaitsFor};

/// Where the kernel waits for a lock of its own: mutexes, semaphores, real-time mutexes.
const KERNEL_LOCK: [&str; 19] = [
    "__mutex_lock",
    "__mutex_lock_slowpath",
    "__mutex_lock_killable_slowpath",
    "__mutex_lock_interruptible_slowpath",
    "__ww_mutex_lock",
    "rwsem_down_read_slowpath",
    "rwsem_down_write_slowpath",
    "percpu_rwsem_wait",
    "__percpu_down_read",
    "percpu_down_write",
    "__down",
    "__down_common",
    "__down_timeout",
    "__down_interruptible",
    "__down_killable",
    "rt_mutex_slowlock",
    "__rt_mutex_slowlock",
    "rwbase_read_lock",
    "rwbase_write_lock",
];

/// Where a thread of user space waits at a futex: locks, conditions, joins.
const FUTEX: [&str; 7] = [
    "futex_wait",
    "__futex_wait",
    "futex_wait_queue",
    "futex_wait_queue_me",
    "futex_wait_multiple",
    "futex_lock_pi",
    "futex_wait_requeue_pi",
];

/// The way into the kernel of a page that is not there, on x86-64 and arm64.
const FAULT: [&str; 8] = [
    "exc_page_fault",
    "asm_exc_page_fault",
    "do_user_addr_fault",
    "do_page_fault",
    "handle_mm_fault",
    "do_mem_abort",
    "el0_da",
    "el0_ia",
];

/// A time that was asked for.
const SLEEP: [&str; 4] = ["hrtimer_nanosleep", "do_nanosleep", "common_nsleep", "common_nsleep_timens"];

/// Disks and file systems: block layer, page cache, journals, file systems of the network and of user space.
const DISK: [&str; 38] = [
    "io_schedule",
    "io_schedule_timeout",
    "bit_wait_io",
    "folio_wait_bit",
    "folio_wait_bit_common",
    "folio_wait_writeback",
    "__folio_lock",
    "wait_on_page_bit",
    "wait_on_page_bit_common",
    "__wait_on_buffer",
    "__filemap_fdatawait_range",
    "file_write_and_wait_range",
    "__iomap_dio_rw",
    "iomap_dio_rw",
    "iomap_dio_complete",
    "__blockdev_direct_IO",
    "submit_bio_wait",
    "blkdev_issue_flush",
    "blk_mq_get_tag",
    "blk_execute_rq",
    "rq_qos_wait",
    "wbt_wait",
    "jbd2_log_wait_commit",
    "jbd2_complete_transaction",
    "wait_transaction_locked",
    "add_transaction_credits",
    "ext4_sync_file",
    "ext4_fc_commit",
    "xlog_wait_on_iclog",
    "xfs_file_fsync",
    "xfs_log_force_seq",
    "btrfs_sync_file",
    "balance_dirty_pages",
    "sync_inodes_sb",
    "wb_wait_for_completion",
    "request_wait_answer",
    "fuse_simple_request",
    "rpc_wait_bit_killable",
];

/// Sockets, pipes and what waits for several of them.
const NETWORK: [&str; 37] = [
    "sk_wait_data",
    "sk_stream_wait_memory",
    "sk_stream_wait_connect",
    "inet_csk_accept",
    "inet_csk_wait_for_connect",
    "inet_wait_for_connect",
    "__inet_stream_connect",
    "__skb_wait_for_more_packets",
    "__skb_recv_datagram",
    "sock_alloc_send_pskb",
    "unix_stream_data_wait",
    "unix_stream_read_generic",
    "unix_wait_for_peer",
    "unix_accept",
    "netlink_recvmsg",
    "vsock_connectible_wait_data",
    "sock_recvmsg",
    "ep_poll",
    "do_epoll_wait",
    "do_poll",
    "do_sys_poll",
    "do_select",
    "core_sys_select",
    "poll_schedule_timeout",
    "schedule_hrtimeout_range",
    "pipe_read",
    "pipe_write",
    "anon_pipe_read",
    "anon_pipe_write",
    "fifo_pipe_read",
    "wait_for_partner",
    "eventfd_read",
    "eventfd_write",
    "signalfd_read_iter",
    "n_tty_read",
    "n_tty_write",
    "tun_do_read",
];

/// Where the kernel waits for something to come back from a ring of io_uring. It goes to sleep there as for a disk (`io_schedule`,
/// since 6.5), whatever is waited for.
const RING: [&str; 3] = ["io_cqring_wait", "io_cqring_wait_schedule", "io_cqring_schedule_timeout"];

/// How the kernel's functions of system calls begin.
const CALLS: [&str; 2] = ["__x64_sys_", "__arm64_sys_"];

/// Why a thread is off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Off {
    /// It could run.
    Runnable,
    /// It waits.
    Waiting,
}

/// What a thread waits for, as far as the kernel's functions alone say, from the leaf to the root.
pub(crate) fn cause(off: Off, kernel: &[&str]) -> Wait {
    let call = kernel.iter().find_map(|name| CALLS.iter().find_map(|begin| name.strip_prefix(begin)));
    let class = match off {
        Off::Runnable => WaitClass::RunQueue,
        Off::Waiting => class(call, kernel, None),
    };
    Wait { class, system_call: call.map(str::to_owned), object: None }
}

/// A kernel stack, leaf first, without the functions of leaving the CPU.
pub(crate) fn without_switch<T>(stack: &[T], mut is_scheduler: impl FnMut(&T) -> bool) -> &[T] {
    let inner = stack.iter().take_while(|frame| is_scheduler(frame)).count();
    &stack[inner..]
}

/// The class of a wait. `kernel` holds the functions from the leaf to the root, `object` what the call's descriptor is.
pub(crate) fn class(call: Option<&str>, kernel: &[&str], object: Option<&str>) -> WaitClass {
    by_functions(kernel).or_else(|| by_call(call?)).or_else(|| by_object(object?)).unwrap_or_default()
}

/// The deepest cause first: a fault that waits for a lock of the address space waits for that lock.
fn by_functions(kernel: &[&str]) -> Option<WaitClass> {
    if waits_at_ring(kernel) {
        return Some(WaitClass::Network);
    }
    let tables: [(&[&str], WaitClass); 6] = [
        (&KERNEL_LOCK, WaitClass::Lock),
        (&FUTEX, WaitClass::Lock),
        (&FAULT, WaitClass::PageFault),
        (&SLEEP, WaitClass::Sleep),
        (&DISK, WaitClass::Disk),
        (&NETWORK, WaitClass::Network),
    ];
    let is_in = |table: &[&str]| kernel.iter().any(|name| table.contains(&base(name)));
    tables.into_iter().find(|(table, _)| is_in(table)).map(|(_, class)| class)
}

/// Whether nothing lies between a ring and the sleep there: what is done meanwhile for others' requests waits for what it says.
fn waits_at_ring(kernel: &[&str]) -> bool {
    let inner = kernel.iter().take_while(|name| !RING.contains(&base(name)));
    let sleeps = |name: &&str| is_scheduler(name) || base(name).contains("schedule");
    inner.clone().count() < kernel.len() && inner.clone().all(sleeps)
}

/// What the call's name says, where no function did.
fn by_call(call: &str) -> Option<WaitClass> {
    match calls::named(call)?.waits_for {
        WaitsFor::Lock => Some(WaitClass::Lock),
        WaitsFor::Sleep => Some(WaitClass::Sleep),
        WaitsFor::Disk => Some(WaitClass::Disk),
        WaitsFor::Peer => Some(WaitClass::Network),
        WaitsFor::Either | WaitsFor::Unsaid => None,
    }
}

fn by_object(object: &str) -> Option<WaitClass> {
    let peers = ["socket:", "pipe:", "anon_inode:", "/dev/pts", "/dev/tty"];
    match object {
        _ if peers.iter().any(|peer| object.contains(peer)) => Some(WaitClass::Network),
        _ if object.starts_with('/') => Some(WaitClass::Disk),
        _ => None,
    }
}

/// A function's name without what the compiler put behind it (`.constprop.0`, `.part.0`).
fn base(name: &str) -> &str {
    name.split_once('.').map_or(name, |(base, _)| base)
}

/// The functions through which an interrupt comes in: what runs below them was not asked for by the thread.
pub(crate) fn is_interrupt(function: &str) -> bool {
    let name = base(function);
    let entries =
        ["asm_common_interrupt", "common_interrupt", "irq_exit_rcu", "run_ksoftirqd", "el1_interrupt"];
    name.starts_with("asm_sysvec_") || name.starts_with("sysvec_") || entries.contains(&name)
}

/// The functions of leaving the CPU itself, and of looking at it; every stack has them, so they say nothing about any.
pub(crate) fn is_scheduler(function: &str) -> bool {
    let name = base(function);
    let exact = ["__schedule", "schedule", "preempt_schedule_irq", "preempt_schedule", "ret_from_fork"];
    name.starts_with("bpf_")
        || name.starts_with("__traceiter_")
        || name.starts_with("__bpf_")
        || exact.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_read_waits_for_is_told_by_the_kernels_functions() {
        let cases: [(&[&str], WaitClass); 5] = [
            (&["schedule", "io_schedule", "folio_wait_bit_common", "filemap_read"], WaitClass::Disk),
            (&["schedule", "anon_pipe_read", "vfs_read"], WaitClass::Network),
            (&["schedule", "rwsem_down_read_slowpath", "ext4_file_read_iter"], WaitClass::Lock),
            (&["schedule", "io_schedule", "filemap_fault", "exc_page_fault"], WaitClass::PageFault),
            (&["schedule", "some_driver_read"], WaitClass::Other),
        ];
        for (kernel, expected) in cases {
            assert_eq!(class(Some("read"), kernel, None), expected, "{kernel:?}");
        }
    }

    #[test]
    fn a_fault_that_waits_for_the_lock_of_its_address_space_waits_for_a_lock() {
        let kernel = ["schedule", "rwsem_down_read_slowpath", "do_user_addr_fault", "asm_exc_page_fault"];
        assert_eq!(class(None, &kernel, None), WaitClass::Lock);
    }

    #[test]
    fn without_functions_the_call_speaks_and_then_its_object() {
        assert_eq!(class(Some("futex"), &[], None), WaitClass::Lock);
        assert_eq!(class(Some("clock_nanosleep"), &[], None), WaitClass::Sleep);
        assert_eq!(class(Some("fdatasync"), &[], None), WaitClass::Disk);
        assert_eq!(class(Some("epoll_wait"), &[], None), WaitClass::Network);
        assert_eq!(class(Some("read"), &[], Some("/var/log/x")), WaitClass::Disk);
        assert_eq!(class(Some("read"), &[], Some("socket:[123]")), WaitClass::Network);
        assert_eq!(class(Some("splice"), &[], Some("pipe:[7]")), WaitClass::Network);
        assert_eq!(class(Some("splice"), &[], Some("/srv/file")), WaitClass::Disk);
        assert_eq!(class(Some("wait4"), &[], None), WaitClass::Other);
        assert_eq!(class(None, &[], None), WaitClass::Other);
    }

    /// Planted faults: a sleep in `io_schedule` is a disk's wherever it is; all that a ring has below it is a wait for events.
    #[test]
    fn a_ring_waits_for_events_and_what_is_done_there_meanwhile_for_what_it_says() {
        let ring = |inner: &[&'static str]| {
            let outer = ["io_cqring_wait", "__do_sys_io_uring_enter", "__x64_sys_io_uring_enter"];
            class(Some("io_uring_enter"), &[inner, &outer].concat(), None)
        };
        assert_eq!(ring(&["schedule", "io_schedule", "io_cqring_wait_schedule"]), WaitClass::Network);
        assert_eq!(ring(&["schedule", "schedule_hrtimeout_range_clock"]), WaitClass::Network);
        let read = ["schedule", "io_schedule", "folio_wait_bit_common", "filemap_read", "io_read"];
        assert_eq!(ring(&read), WaitClass::Disk);
        assert_eq!(ring(&["schedule", "__mutex_lock", "io_run_task_work"]), WaitClass::Lock);
        assert_eq!(
            class(Some("io_uring_enter"), &["schedule", "io_schedule", "io_read"], None),
            WaitClass::Disk
        );
        assert_eq!(class(Some("io_uring_enter"), &[], Some("/dev/null")), WaitClass::Network);
    }

    #[test]
    fn what_the_compiler_put_behind_a_name_does_not_hide_it() {
        assert_eq!(class(None, &["rwsem_down_write_slowpath.constprop.0"], None), WaitClass::Lock);
        assert_eq!(class(None, &["futex_wait_queue.isra.0"], None), WaitClass::Lock);
    }

    #[test]
    fn page_faults_are_no_interrupts() {
        assert!(is_interrupt("asm_sysvec_apic_timer_interrupt") && is_interrupt("irq_exit_rcu"));
        assert!(!is_interrupt("asm_exc_page_fault") && !is_interrupt("__do_softirq"));
    }
}

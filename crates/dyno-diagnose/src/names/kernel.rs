//! The kernel's functions by what they do, and system calls. Used by `names`, which is all that others see.

/// The kernel gives a page.
pub(crate) const PAGE_FAULT: &[&str] = &[
    "asm_exc_page_fault",
    "exc_page_fault",
    "do_user_addr_fault",
    "handle_mm_fault",
    "__handle_mm_fault",
    "do_page_fault",
    "do_mem_abort",
    "el0_da",
];

/// The kernel copies an address space for a child, or makes one for a program that begins.
pub(crate) const FORK: &[&str] = &["dup_mm", "dup_mmap", "copy_page_range", "begin_new_exec", "exec_mmap"];

/// The kernel takes pages away, as many as were given.
pub(crate) const UNMAP: &[&str] = &[
    "__x64_sys_munmap",
    "__vm_munmap",
    "do_vmi_munmap",
    "unmap_region",
    "exit_mmap",
    "__x64_sys_madvise",
    "do_madvise",
];

/// The kernel brings pages of mapped files, or makes them dirty, and changes a file's length.
pub(crate) const FILE_PAGES: &[&str] = &[
    "filemap_fault",
    "filemap_map_pages",
    "do_page_mkwrite",
    "*_page_mkwrite",
    "do_shared_fault",
    "do_read_fault",
    "do_cow_fault",
    "__do_fault",
];

/// What takes the lock of the address space.
pub(crate) const ADDRESS_SPACE: &[&str] = &[
    "do_user_addr_fault",
    "lock_mm_and_find_vma",
    "vm_mmap_pgoff",
    "__vm_munmap",
    "do_mprotect_pkey",
    "do_madvise",
    "__x64_sys_brk",
];

/// A filter runs before every system call.
pub(crate) const FILTER: &[&str] = &[
    "__seccomp_filter",
    "seccomp_run_filters",
    "__secure_computing",
    "__audit_syscall*",
    "audit_filter*",
    "audit_reset_context*",
    "syscall_trace_enter*",
    "syscall_exit_work*",
    "audit_log*",
];

/// Probes that somebody has set: in the program's code, at the kernel's functions, at tracepoints; and programs of BPF that they run.
pub(crate) const PROBES: &[&str] = &[
    "uprobe_*",
    "__uprobe_*",
    "handle_swbp",
    "handler_chain",
    "uretprobe_*",
    "arch_uprobe_*",
    "arch_uretprobe_*",
    "kprobe_*",
    "__kprobe_*",
    "kretprobe_*",
    "aggr_pre_handler",
    "opt_pre_handler",
    "optimized_callback",
    "bpf_trace_run*",
    "trace_call_bpf",
    "kprobe_multi_link_*",
    "perf_trace_*",
    "trace_event_raw_event_*",
    "perf_syscall_enter",
    "perf_syscall_exit",
    "ftrace_syscall_*",
];

/// The kernel looks for pages to take back before it can give one: memory is short, or a group's limit is reached.
pub(crate) const RECLAIM: &[&str] = &[
    "try_to_free_pages",
    "try_to_free_mem_cgroup_pages",
    "do_try_to_free_pages",
    "__alloc_pages_direct_reclaim",
    "__alloc_pages_direct_compact",
    "shrink_lruvec",
    "shrink_node",
];

/// A tap gets a copy of every packet.
pub(crate) const TAP: &[&str] = &[
    "packet_rcv*",
    "tpacket_rcv*",
    "dev_queue_xmit_nit",
    "packet_sendmsg",
    "run_filter",
    "packet_direct_xmit",
];

/// Rules look at every packet.
pub(crate) const FIREWALL: &[&str] = &[
    "nft_do_chain*",
    "ipt_do_table",
    "ip6t_do_table",
    "nf_hook_slow*",
    "nf_conntrack_in",
    "nf_nat_*",
    "nf_confirm",
];

/// A kernel lock is waited for by burning CPU.
pub(crate) const KERNEL_SPIN: &[&str] = &[
    "queued_spin_lock_slowpath",
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "osq_lock",
    "rwsem_spin_on_owner",
    "mutex_spin_on_owner",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
];

/// The kernel's part of a user lock.
pub(crate) const FUTEX: &[&str] =
    &["__x64_sys_futex*", "__arm64_sys_futex*", "do_futex", "futex_wait*", "futex_wake*", "__futex_wait*"];

/// A thread goes to sleep, sets the timer that is to wake it, or wakes another.
pub(crate) const SWITCH: &[&str] = &[
    "schedule",
    "__schedule",
    "schedule_hrtimeout*",
    "schedule_timeout*",
    "do_nanosleep",
    "hrtimer_nanosleep",
    "try_to_wake_up",
    "wake_up_q",
    "__wake_up*",
    "autoremove_wake_function",
    "ep_poll_callback",
];

/// A thread gives its turn away, to look again.
pub(crate) const YIELD: &[&str] =
    &["__x64_sys_sched_yield", "__arm64_sys_sched_yield", "__do_sys_sched_yield", "do_sched_yield"];

/// Connections are made and ended.
pub(crate) const CONNECT: &[&str] = &[
    "__x64_sys_accept*",
    "__sys_accept4*",
    "inet_csk_accept",
    "__x64_sys_connect",
    "tcp_v4_connect",
    "tcp_conn_request",
    "tcp_v4_conn_request",
    "tcp_v4_syn_recv_sock",
    "tcp_close",
    "inet_release",
    "tcp_fin",
    "tcp_check_req",
];

/// Sockets, packets and waiting for them.
pub(crate) const NETWORK: &[&str] = &[
    "tcp_*",
    "__tcp_*",
    "sock_*",
    "__sock_*",
    "inet_*",
    "inet6_*",
    "unix_stream_*",
    "__x64_sys_sendto",
    "__sys_sendto",
    "__x64_sys_recvfrom",
    "__sys_recvfrom",
    "__x64_sys_sendmsg",
    "__x64_sys_recvmsg",
    "net_rx_action",
    "__netif_receive_skb*",
    "netif_receive_skb*",
    "__napi_poll",
    "process_backlog",
    "ip_*",
    "__ip_*",
    "ip6_*",
    "skb_*",
    "__dev_queue_xmit",
    "dev_hard_start_xmit",
    "__x64_sys_epoll*",
    "do_epoll_wait",
    "ep_*",
    "__ep_*",
    "do_epoll_ctl",
    "__x64_sys_poll",
    "do_sys_poll",
    "__x64_sys_ppoll",
    "veth_*",
    "loopback_xmit",
];

/// Waiting for events of descriptors, and looking through a list of them.
pub(crate) const WAITS_FOR_EVENTS: &[&str] =
    &["do_epoll_wait", "ep_poll", "do_sys_poll", "do_select", "core_sys_select"];
pub(crate) const LOOKS_THROUGH: &[&str] = &["do_sys_poll", "do_select", "core_sys_select"];

/// Where system calls on descriptors enter: of files, and of pipes, terminals and sockets too.
pub(crate) const DESCRIPTORS: &[&str] =
    &["vfs_write", "vfs_read", "vfs_writev", "ksys_write", "ksys_read", "ksys_pwrite64", "ksys_pread64"];

/// File systems and the page cache.
pub(crate) const FILES: &[&str] = &[
    "ext4_*",
    "xfs_*",
    "btrfs_*",
    "generic_perform_write",
    "generic_file_*",
    "iomap_*",
    "vfs_fsync*",
    "do_fsync",
    "filemap_*",
    "shmem_*",
    "overlay_*",
    "ovl_*",
    "jbd2_*",
];

/// System calls that bring bytes, requests among them.
pub(crate) const CALLS_IN: &[&str] = &["read", "readv", "recvfrom", "recvmsg", "recvmmsg"];

/// System calls that ask about files, or end with them, besides opening, listing and reading.
pub(crate) const CALLS_FOR_FILES: &[&str] = &[
    "stat",
    "lstat",
    "fstat",
    "statx",
    "newfstatat",
    "access",
    "faccessat*",
    "readlink*",
    "getxattr*",
    "lgetxattr*",
    "listxattr*",
    "llistxattr*",
    "close",
    "chdir",
    "fchdir",
    "fcntl",
    "lseek",
    "fadvise64",
];

/// System calls that give bytes away.
pub(crate) const CALLS_OUT: &[&str] = &[
    "write",
    "writev",
    "pwrite64",
    "pwritev*",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "sendfile*",
    "splice",
    "tee",
];

/// Bytes must be on a disk before the call comes back.
pub(crate) const SYNC: &[&str] = &[
    "do_fsync",
    "vfs_fsync*",
    "__x64_sys_fsync",
    "__x64_sys_fdatasync",
    "__arm64_sys_fsync",
    "__arm64_sys_fdatasync",
    "ksys_sync*",
    "__x64_sys_sync*",
    "__x64_sys_msync",
    "ext4_sync_file",
    "xfs_file_fsync",
    "btrfs_sync_file",
    "generic_write_sync",
];

/// Entry into the kernel by a system call.
pub(crate) const SYSTEM_CALL: &[&str] = &[
    "entry_SYSCALL_64*",
    "do_syscall_64",
    "x64_sys_call",
    "__x64_sys_*",
    "el0_svc*",
    "invoke_syscall",
    "syscall_enter_from_user_mode*",
    "syscall_exit_to_user_mode*",
    "syscall_return_via_sysret",
];

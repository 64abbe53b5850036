//! System call numbers to names and back, for the machine that this is built for. Used by the tracer and the profilers.

use std::borrow::Cow;

/// The call's name, or `syscall_NNN`.
pub fn name(number: u64) -> Cow<'static, str> {
    let known = TABLE.iter().find(|row| row.0.cast_unsigned() == number);
    known.map_or_else(|| Cow::Owned(format!("syscall_{number}")), |row| Cow::Borrowed(row.1))
}

/// The number of a call by its name; none where this build or this machine knows no such call.
pub fn number(name: &str) -> Option<u32> {
    let known = TABLE.iter().find(|row| row.1 == name)?;
    u32::try_from(known.0).ok()
}

/// The names of all calls that this build knows, for who asked for one that it does not.
pub fn all() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.1)
}

macro_rules! rows {
    ($($constant:ident $name:literal)*) => { &[$((libc::$constant, $name)),*] };
}

/// What a server plausibly calls while it serves, on every machine.
const COMMON: &[(libc::c_long, &str)] = rows! {
    SYS_read "read" SYS_write "write" SYS_readv "readv" SYS_writev "writev" SYS_pread64 "pread64"
    SYS_pwrite64 "pwrite64" SYS_preadv "preadv" SYS_pwritev "pwritev" SYS_preadv2 "preadv2" SYS_pwritev2 "pwritev2"
    SYS_openat "openat" SYS_openat2 "openat2" SYS_close "close" SYS_close_range "close_range" SYS_fstat "fstat"
    SYS_newfstatat "newfstatat" SYS_statx "statx" SYS_lseek "lseek" SYS_fsync "fsync" SYS_fdatasync "fdatasync"
    SYS_sync "sync" SYS_syncfs "syncfs" SYS_fallocate "fallocate" SYS_ftruncate "ftruncate"
    SYS_fadvise64 "fadvise64" SYS_getdents64 "getdents64" SYS_readlinkat "readlinkat" SYS_unlinkat "unlinkat" SYS_renameat2 "renameat2"
    SYS_faccessat "faccessat" SYS_faccessat2 "faccessat2" SYS_sendfile "sendfile" SYS_splice "splice" SYS_tee "tee"
    SYS_vmsplice "vmsplice" SYS_copy_file_range "copy_file_range" SYS_dup "dup" SYS_dup3 "dup3" SYS_pipe2 "pipe2"
    SYS_fcntl "fcntl" SYS_ioctl "ioctl" SYS_flock "flock" SYS_semop "semop" SYS_semtimedop "semtimedop"
    SYS_getcwd "getcwd" SYS_chdir "chdir"
    SYS_socket "socket" SYS_socketpair "socketpair" SYS_bind "bind" SYS_listen "listen" SYS_accept "accept"
    SYS_accept4 "accept4" SYS_connect "connect" SYS_getsockname "getsockname" SYS_getpeername "getpeername"
    SYS_sendto "sendto" SYS_recvfrom "recvfrom" SYS_sendmsg "sendmsg" SYS_recvmsg "recvmsg" SYS_sendmmsg "sendmmsg"
    SYS_recvmmsg "recvmmsg" SYS_shutdown "shutdown" SYS_setsockopt "setsockopt" SYS_getsockopt "getsockopt"
    SYS_epoll_create1 "epoll_create1" SYS_epoll_ctl "epoll_ctl" SYS_epoll_pwait "epoll_pwait"
    SYS_epoll_pwait2 "epoll_pwait2" SYS_ppoll "ppoll" SYS_pselect6 "pselect6" SYS_eventfd2 "eventfd2"
    SYS_signalfd4 "signalfd4" SYS_timerfd_create "timerfd_create" SYS_timerfd_settime "timerfd_settime"
    SYS_timerfd_gettime "timerfd_gettime" SYS_inotify_init1 "inotify_init1" SYS_inotify_add_watch "inotify_add_watch"
    SYS_io_uring_setup "io_uring_setup" SYS_io_uring_enter "io_uring_enter" SYS_io_uring_register "io_uring_register"
    SYS_io_setup "io_setup" SYS_io_submit "io_submit" SYS_io_getevents "io_getevents" SYS_io_destroy "io_destroy"
    SYS_futex "futex" SYS_futex_waitv "futex_waitv" SYS_sched_yield "sched_yield" SYS_nanosleep "nanosleep"
    SYS_clock_nanosleep "clock_nanosleep" SYS_clock_gettime "clock_gettime" SYS_clock_getres "clock_getres"
    SYS_gettimeofday "gettimeofday" SYS_times "times" SYS_getrusage "getrusage" SYS_setitimer "setitimer"
    SYS_getitimer "getitimer" SYS_timer_create "timer_create" SYS_timer_settime "timer_settime"
    SYS_timer_delete "timer_delete" SYS_mmap "mmap" SYS_munmap "munmap" SYS_mprotect "mprotect" SYS_mremap "mremap"
    SYS_madvise "madvise" SYS_brk "brk" SYS_mlock "mlock" SYS_mlock2 "mlock2" SYS_munlock "munlock" SYS_msync "msync"
    SYS_mincore "mincore" SYS_memfd_create "memfd_create" SYS_membarrier "membarrier" SYS_rseq "rseq"
    SYS_clone "clone" SYS_clone3 "clone3" SYS_execve "execve" SYS_execveat "execveat" SYS_exit "exit"
    SYS_exit_group "exit_group" SYS_wait4 "wait4" SYS_waitid "waitid" SYS_kill "kill" SYS_tkill "tkill"
    SYS_tgkill "tgkill" SYS_rt_sigaction "rt_sigaction" SYS_rt_sigprocmask "rt_sigprocmask"
    SYS_rt_sigreturn "rt_sigreturn" SYS_rt_sigtimedwait "rt_sigtimedwait" SYS_rt_sigsuspend "rt_sigsuspend"
    SYS_rt_sigqueueinfo "rt_sigqueueinfo" SYS_sigaltstack "sigaltstack" SYS_restart_syscall "restart_syscall"
    SYS_getpid "getpid" SYS_getppid "getppid" SYS_gettid "gettid" SYS_getuid "getuid" SYS_geteuid "geteuid"
    SYS_getgid "getgid" SYS_getegid "getegid" SYS_setuid "setuid" SYS_setgid "setgid" SYS_setsid "setsid"
    SYS_getcpu "getcpu" SYS_sched_getaffinity "sched_getaffinity" SYS_sched_setaffinity "sched_setaffinity"
    SYS_sched_setattr "sched_setattr" SYS_sched_getattr "sched_getattr" SYS_setpriority "setpriority"
    SYS_getpriority "getpriority" SYS_prlimit64 "prlimit64" SYS_prctl "prctl" SYS_seccomp "seccomp" SYS_bpf "bpf"
    SYS_uname "uname" SYS_sysinfo "sysinfo" SYS_syslog "syslog" SYS_umask "umask" SYS_getrandom "getrandom"
    SYS_set_robust_list "set_robust_list" SYS_set_tid_address "set_tid_address" SYS_pidfd_open "pidfd_open"
    SYS_pidfd_send_signal "pidfd_send_signal" SYS_pidfd_getfd "pidfd_getfd" SYS_process_vm_readv "process_vm_readv"
    SYS_perf_event_open "perf_event_open"
};

/// Calls that newer machines do without.
#[cfg(target_arch = "x86_64")]
const OLD: &[(libc::c_long, &str)] = rows! {
    SYS_open "open" SYS_creat "creat" SYS_stat "stat" SYS_lstat "lstat" SYS_access "access" SYS_poll "poll"
    SYS_select "select" SYS_epoll_create "epoll_create" SYS_epoll_wait "epoll_wait" SYS_eventfd "eventfd"
    SYS_signalfd "signalfd" SYS_inotify_init "inotify_init" SYS_pipe "pipe" SYS_dup2 "dup2" SYS_fork "fork"
    SYS_vfork "vfork" SYS_pause "pause" SYS_alarm "alarm" SYS_time "time" SYS_getdents "getdents"
    SYS_readlink "readlink" SYS_unlink "unlink" SYS_rename "rename" SYS_mkdir "mkdir" SYS_rmdir "rmdir"
    SYS_chmod "chmod" SYS_chown "chown" SYS_utimes "utimes" SYS_getpgrp "getpgrp" SYS_arch_prctl "arch_prctl"
    SYS_sync_file_range "sync_file_range"
};
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[(libc::c_long, &str)] = &[];

const TABLE: [(libc::c_long, &str); COMMON.len() + OLD.len()] = {
    let mut table = [(0, ""); COMMON.len() + OLD.len()];
    let mut at = 0;
    while at < table.len() {
        table[at] = if at < COMMON.len() { COMMON[at] } else { OLD[at - COMMON.len()] };
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_have_one_name_each() {
        let (numbers, names): (BTreeSet<_>, BTreeSet<_>) = TABLE.iter().copied().unzip();
        assert_eq!((numbers.len(), names.len()), (TABLE.len(), TABLE.len()));
    }

    #[test]
    fn what_is_unknown_is_named_by_its_number() {
        assert_eq!(name(libc::SYS_recvfrom.cast_unsigned()), "recvfrom");
        assert_eq!(name(99_999), "syscall_99999");
    }
}

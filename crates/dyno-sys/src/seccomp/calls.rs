//! System calls by what they are needed for: the groups of which filters are made.
//!
//! A group names what this product, its libraries and the C library call for the purpose. Numbers are the architecture's own.

use super::rule::{Action, Rule};

/// What calls are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To run at all: memory that is never executed, threads, time, waiting, what is open already, and the end.
    Run,
    /// To accept, read, write and close connections, and to take packets with descriptors.
    Connect,
    /// To open and look at files, and to list folders.
    Read,
    /// To make, write, rename and remove files.
    Write,
    /// To watch folders, and to make memory that others are handed.
    Build,
    /// To keep a log: to see that it is on the disk, to take back a torn line, to be handed another file.
    Log,
}

/// To become another program, to look into others, or to change the kernel: no accident does that.
const KILLED: [libc::c_long; 14] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_kexec_load,
    libc::SYS_mount,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_unshare,
];

const RUN: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getpriority,
    libc::SYS_setpriority,
    libc::SYS_getcpu,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_prlimit64,
    libc::SYS_sysinfo,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_ppoll,
    libc::SYS_eventfd2,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_dup3,
];

/// The kernel's own way back into a probe that somebody else has set (Linux 6.11): who profiles a server must not kill it.
#[cfg(target_arch = "x86_64")]
const RUN_OLD: &[libc::c_long] = &[libc::SYS_epoll_wait, libc::SYS_poll, 335, 336];
#[cfg(not(target_arch = "x86_64"))]
const RUN_OLD: &[libc::c_long] = &[];

const CONNECT: &[libc::c_long] = &[
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendfile,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
];

const READ: &[libc::c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_getdents64,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_preadv2,
    libc::SYS_getcwd,
    libc::SYS_geteuid,
    libc::SYS_getuid,
];
#[cfg(target_arch = "x86_64")]
const READ_OLD: &[libc::c_long] = &[libc::SYS_open, libc::SYS_stat, libc::SYS_lstat, libc::SYS_readlink];
#[cfg(not(target_arch = "x86_64"))]
const READ_OLD: &[libc::c_long] = &[];

const WRITE: &[libc::c_long] = &[
    libc::SYS_mkdirat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_ftruncate,
    libc::SYS_pwrite64,
];
#[cfg(target_arch = "x86_64")]
const WRITE_OLD: &[libc::c_long] = &[libc::SYS_mkdir, libc::SYS_rename, libc::SYS_unlink];
#[cfg(not(target_arch = "x86_64"))]
const WRITE_OLD: &[libc::c_long] = &[];

const BUILD: &[libc::c_long] = &[
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch,
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
];

const LOG: &[libc::c_long] = &[
    libc::SYS_getppid,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_statx,
    libc::SYS_newfstatat,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_recvmsg,
];

/// The rules for some purposes: a call that one of them needs is allowed.
pub fn rules(purposes: &[Purpose]) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for purpose in purposes {
        let (calls, old): (&[libc::c_long], &[libc::c_long]) = match purpose {
            Purpose::Run => {
                rules.extend(run());
                (RUN, RUN_OLD)
            }
            Purpose::Connect => (CONNECT, &[]),
            Purpose::Read => (READ, READ_OLD),
            Purpose::Write => (WRITE, WRITE_OLD),
            Purpose::Build => (BUILD, &[]),
            Purpose::Log => (LOG, &[]),
        };
        rules.extend(calls.iter().chain(old).map(|number| (*number, Action::Allow)));
    }
    rules
}

/// What is allowed in part, and what ends a process.
fn run() -> Vec<Rule> {
    let is = |argument, mask: libc::c_int, value: libc::c_int| Action::AllowIf {
        argument,
        mask: mask.cast_unsigned(),
        value: value.cast_unsigned(),
    };
    let all = libc::c_int::from_ne_bytes(u32::MAX.to_ne_bytes());
    let mut rules = vec![
        // Memory is never both written and executed, nor executed at all if it was not from the start.
        (libc::SYS_mmap, is(2, libc::PROT_EXEC, 0)),
        (libc::SYS_mprotect, is(2, libc::PROT_EXEC, 0)),
        // Threads, and no processes. The newer call hides its flags behind a pointer.
        (libc::SYS_clone, is(0, libc::CLONE_THREAD, libc::CLONE_THREAD)),
        (libc::SYS_clone3, Action::Unknown),
        // The name of a thread.
        (libc::SYS_prctl, is(0, all, libc::PR_SET_NAME)),
        // How much of what was sent is still here, and how much has come.
        (libc::SYS_ioctl, is(1, all, libc::TIOCOUTQ as libc::c_int)),
        (libc::SYS_ioctl, is(1, all, libc::FIONREAD as libc::c_int)),
    ];
    rules.extend(KILLED.map(|number| (number, Action::Kill)));
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const ALL: [Purpose; 6] =
        [Purpose::Run, Purpose::Connect, Purpose::Read, Purpose::Write, Purpose::Build, Purpose::Log];

    #[test]
    fn no_two_groups_contradict_each_other() {
        let mut seen: BTreeMap<libc::c_long, Action> = BTreeMap::new();
        for (number, action) in rules(&ALL) {
            if let Action::AllowIf { .. } = action {
                continue;
            }
            let before = seen.insert(number, action);
            assert!(before.is_none_or(|before| before == action), "call {number} has two answers");
        }
    }

    #[test]
    fn nothing_that_runs_another_program_or_opens_a_socket_is_in_any_group() {
        let allowed = |number| rules(&ALL).contains(&(number, Action::Allow));
        for number in
            [libc::SYS_execve, libc::SYS_socket, libc::SYS_connect, libc::SYS_kill, libc::SYS_setuid]
        {
            assert!(!allowed(number), "{number}");
        }
    }
}

//! What system calls are about: what each waits for, what its first argument is, and whether it moves data.
//!
//! One table, read for waits off the CPU, causal sites and progress points. It has names only: numbers depend on the
//! machine. Where the kernel's functions of a wait were seen (`stack::wait`), they decide before this table does.

use dyno_sys::trace::call_number;

/// One system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) waits_for: WaitsFor,
    pub(crate) first: First,
    pub(crate) moves: Moves,
}

/// What a call waits for, as far as its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// A lock, a condition, another process's hold on a file.
    Lock,
    /// A time that was asked for.
    Sleep,
    /// A disk or a file system.
    Disk,
    /// The process at the other end of a socket or a pipe.
    Peer,
    /// A disk or a peer: its descriptor decides.
    Either,
    /// The name does not say.
    Unsaid,
}

/// What the first argument says about a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// The address that is waited at.
    Address,
    /// The descriptor that is waited for.
    Descriptor,
    /// Something else, or the folder that a path begins in.
    Other,
}

/// Whether data goes through it, so that an answer of zero means that none did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moves {
    /// Into the caller's memory.
    In,
    /// On to a file, a pipe or a peer.
    Out,
    /// None.
    Nothing,
}

use First::{Address, Descriptor, Other};
use Moves::{In, Nothing, Out};
use WaitsFor::{Disk, Either, Lock, Peer, Sleep, Unsaid};

/// A call that is not in it waits for something else, which has no name.
pub(crate) const CALLS: &[Call] = &[
    row("futex", Lock, Address, Nothing),
    row("futex_waitv", Lock, Other, Nothing),
    row("flock", Lock, Descriptor, Nothing),
    // What it does but take a file's lock comes back at once.
    row("fcntl", Lock, Descriptor, Nothing),
    row("semop", Lock, Other, Nothing),
    row("semtimedop", Lock, Other, Nothing),
    row("nanosleep", Sleep, Other, Nothing),
    row("clock_nanosleep", Sleep, Other, Nothing),
    row("read", Either, Descriptor, In),
    row("readv", Either, Descriptor, In),
    row("write", Either, Descriptor, Out),
    row("writev", Either, Descriptor, Out),
    row("sendfile", Either, Descriptor, Out),
    // One end is a pipe; the other, which may be the first argument, may be anything.
    row("splice", Either, Descriptor, Out),
    // At an offset: pipes and sockets refuse them.
    row("pread64", Disk, Descriptor, In),
    row("preadv", Disk, Descriptor, In),
    row("preadv2", Disk, Descriptor, In),
    row("pwrite64", Disk, Descriptor, Out),
    row("pwritev", Disk, Descriptor, Out),
    row("pwritev2", Disk, Descriptor, Out),
    row("copy_file_range", Disk, Descriptor, Out),
    row("fsync", Disk, Descriptor, Nothing),
    row("fdatasync", Disk, Descriptor, Nothing),
    row("sync_file_range", Disk, Descriptor, Nothing),
    row("syncfs", Disk, Descriptor, Nothing),
    row("fallocate", Disk, Descriptor, Nothing),
    row("ftruncate", Disk, Descriptor, Nothing),
    row("fadvise64", Disk, Descriptor, Nothing),
    row("getdents64", Disk, Descriptor, Nothing),
    row("sync", Disk, Other, Nothing),
    row("msync", Disk, Other, Nothing),
    row("io_getevents", Disk, Other, Nothing),
    row("open", Disk, Other, Nothing),
    row("openat", Disk, Other, Nothing),
    row("openat2", Disk, Other, Nothing),
    row("newfstatat", Disk, Other, Nothing),
    row("statx", Disk, Other, Nothing),
    row("unlinkat", Disk, Other, Nothing),
    row("renameat2", Disk, Other, Nothing),
    row("accept", Peer, Descriptor, Nothing),
    row("accept4", Peer, Descriptor, Nothing),
    row("connect", Peer, Descriptor, Nothing),
    row("shutdown", Peer, Descriptor, Nothing),
    row("recvfrom", Peer, Descriptor, In),
    row("recvmsg", Peer, Descriptor, In),
    row("recvmmsg", Peer, Descriptor, In),
    row("sendto", Peer, Descriptor, Out),
    row("sendmsg", Peer, Descriptor, Out),
    row("sendmmsg", Peer, Descriptor, Out),
    row("tee", Peer, Descriptor, Out),
    row("vmsplice", Peer, Descriptor, Out),
    row("epoll_wait", Peer, Descriptor, Nothing),
    row("epoll_pwait", Peer, Descriptor, Nothing),
    row("epoll_pwait2", Peer, Descriptor, Nothing),
    row("poll", Peer, Other, Nothing),
    row("ppoll", Peer, Other, Nothing),
    row("select", Peer, Other, Nothing),
    row("pselect6", Peer, Other, Nothing),
    // Whatever was asked for in the ring; the ring is a descriptor, or a number that it was registered under.
    row("io_uring_enter", Peer, Other, Nothing),
    row("ioctl", Unsaid, Descriptor, Nothing),
    row("close", Unsaid, Descriptor, Nothing),
    row("lseek", Unsaid, Descriptor, Nothing),
];

const fn row(name: &'static str, waits_for: WaitsFor, first: First, moves: Moves) -> Call {
    Call { name, waits_for, first, moves }
}

/// The row of a call.
pub(crate) fn named(name: &str) -> Option<&'static Call> {
    CALLS.iter().find(|call| call.name == name)
}

/// What `of` has for a call, for all calls that it has something for, by their numbers on this machine.
pub(crate) fn numbered<T>(of: impl Fn(&Call) -> Option<T>) -> Vec<(u32, T)> {
    CALLS.iter().filter_map(|call| Some((call_number(call.name)?, of(call)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_one_row() {
        for (at, call) in CALLS.iter().enumerate() {
            assert!(CALLS[..at].iter().all(|other| other.name != call.name), "{} stands twice", call.name);
        }
    }

    /// Older calls are not everywhere: arm64 has no `open`, `poll` or `select`.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn each_call_is_one_of_the_kernels() {
        let unknown: Vec<&str> =
            CALLS.iter().map(|call| call.name).filter(|name| call_number(name).is_none()).collect();
        assert_eq!(unknown, [""; 0]);
        assert_eq!(numbered(|call| Some(call.name)).len(), CALLS.len());
    }

    #[test]
    fn only_what_has_an_end_to_send_to_moves_data_out() {
        let out = CALLS.iter().filter(|call| call.moves == Out);
        assert!(out.clone().all(|call| call.first == Descriptor), "{:?}", out.collect::<Vec<_>>());
        assert_eq!(named("write").map(|call| call.moves), Some(Out));
        assert_eq!(named("wait4"), None);
    }
}

//! The only crate that talks to the kernel.
//!
//! Everything dyno asks of Linux goes through here: clocks, epoll, sockets, processes, shared memory, perf events,
//! procfs, knobs. Each module wraps one kernel interface under the kernel's own names and is safe to call; it decides
//! nothing, prints nothing and never exits. It knows none of the other crates.
//!
//! Descriptors are `OwnedFd` and always close-on-exec; sockets are always nonblocking.
// This is the one crate where `unsafe` may stand: it exists to keep system calls behind safe wrappers. Each block
// holds one operation and says why it is sound.
#![allow(unsafe_code)]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("dyno-sys speaks to 64-bit Linux only: its structures and system call numbers are Linux's");

pub mod affinity;
pub mod alloc;
pub mod bpf;
pub mod child;
pub mod clock;
pub mod connections;
pub mod epoll;
mod errno;
pub mod event;
pub mod exec;
pub mod filter;
pub mod folder;
pub mod huge;
pub mod idle_call;
pub mod inotify;
pub mod keeper;
pub mod knob;
pub mod landlock;
pub mod mark;
pub mod memfd;
pub mod namespace;
pub mod netlink;
pub mod perf;
pub mod priority;
pub mod proc;
pub mod resident;
pub mod seccomp;
pub mod setting;
pub mod shm;
pub mod signal;
pub mod socket;
pub mod tap;
mod tasks;
pub mod trace;
pub mod tty;
pub mod user;
pub mod xtables;

/// What is asked until it is as wanted, for what ends with the last copy of a descriptor: a child that another test of this
/// process forks holds a copy of each until it is another program. Panics with what was answered last.
#[cfg(test)]
#[track_caller]
fn assert_soon<T: PartialEq + std::fmt::Debug>(wanted: &T, mut asked: impl FnMut() -> T) {
    let begun = std::time::Instant::now();
    loop {
        let answer = asked();
        if answer == *wanted {
            return;
        }
        assert!(begun.elapsed().as_secs() < 20, "it is {answer:?} and not {wanted:?}");
        std::thread::yield_now();
    }
}

/// A process, by the number the kernel gave it (`pid_t`).
pub type Pid = libc::pid_t;
/// A thread, by the number the kernel gave it (`gettid(2)`); the first thread's number is its process's.
pub type Tid = libc::pid_t;

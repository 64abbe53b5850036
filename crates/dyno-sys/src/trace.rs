//! Which system calls other threads make while something is going on (`ptrace(2)`): the proof that a server serves a
//! request the way its setting says. Called before measuring; a traced thread runs many times slower.
//!
//! A dedicated thread seizes the targets and is the only one to wait for them, so that nobody's exit is ever taken off
//! the process table here. Targets are let go when it ends, whatever happens: the kernel detaches what a tracer leaves.
//! Threads that start meanwhile are not followed.

mod filters;
mod names;
mod watched;

pub use filters::filters_of;
pub use names::{all as call_names, name as call_name, number as call_number};
pub use watched::Seen;

use crate::Tid;
use crate::clock::{mono_ns, sleep_ns};
use crate::errno::{checked, checked_long};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::mpsc;
use watched::{AtCall, Watched};

/// How often each system call was entered, by name; `syscall_NNN` where this build knows none.
pub type Counts = BTreeMap<Cow<'static, str>, u64>;

/// A thread stops within microseconds unless it hangs in the kernel (a dead disk): such a one is not traced.
const STOP_NS_MAX: u64 = 2_000_000_000;
/// Looks without a stop before sleeping: a busy target's next stop comes within a few.
const SPINS_MAX: u32 = 100;
/// Sleep between looks at idle targets; adds at most this to each of their stops.
const LOOK_NS: u64 = 50_000;

/// Why nothing was counted. Every target runs as before.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The tracing thread could not be started.
    #[error("cannot start the tracing thread")]
    Thread {
        /// The kernel's word.
        source: io::Error,
    },
    /// Not ours to trace: another user's, traced by somebody else already, or no descendant under yama.
    #[error("cannot trace thread {tid}")]
    Attach {
        /// The thread.
        tid: Tid,
        /// The kernel's word.
        source: io::Error,
    },
    /// Its filters may not be read, or this kernel cannot tell them.
    #[error("cannot read the filters of thread {tid}")]
    Filters {
        /// The thread.
        tid: Tid,
        /// The kernel's word.
        source: io::Error,
    },
    /// It did not stop in time.
    #[error("thread {tid} does not stop to be traced")]
    Unstoppable {
        /// The thread.
        tid: Tid,
    },
}

/// Counts the system calls that the threads `tids` enter while `during` runs.
///
/// A thread that waits in a call (epoll_wait) is made to leave and enter it again, which counts as one. Targets may be
/// any descendants, of several processes; one that ends meanwhile keeps what it was counted.
pub fn count_syscalls(tids: &[Tid], during: &mut dyn FnMut()) -> Result<Counts, TraceError> {
    let counts = traced(tids, 0, during)?.calls;
    Ok(counts.iter().map(|(&number, &count)| (names::name(number), count)).collect())
}

/// The calls that the threads `tids` make while `during` runs, in their order, `calls_max` at most: then they are let go, and run
/// on at their own speed until `during` ends.
///
/// # Errors
/// When they cannot be traced; they run as before.
pub fn watch_syscalls(
    tids: &[Tid],
    calls_max: usize,
    during: &mut dyn FnMut(),
) -> Result<Vec<Seen>, TraceError> {
    Ok(traced(tids, calls_max, during)?.watched.seen)
}

/// Has `tids` traced while `during` runs, by a thread that answers with what it saw: counts, and as many calls as asked for.
fn traced(tids: &[Tid], calls_max: usize, during: &mut dyn FnMut()) -> Result<Tracer, TraceError> {
    let done = AtomicBool::new(false);
    let (ready, is_ready) = mpsc::channel();
    std::thread::scope(|scope| {
        let tracer = std::thread::Builder::new().name("dyno-trace".to_owned());
        let flag = &done;
        // The sender moves in, so that a failed seizing closes the channel at once.
        let life = move || Tracer::seize(tids, calls_max).map(|tracer| tracer.run(flag, &ready));
        let tracer = tracer.spawn_scoped(scope, life).map_err(|source| TraceError::Thread { source })?;
        {
            // Also when `during` panics: or the scope would wait for the tracer for ever.
            let _end = SetAtEnd(&done);
            // No message comes when seizing failed: then there is nothing to do.
            if is_ready.recv_timeout(std::time::Duration::from_nanos(2 * STOP_NS_MAX)).is_ok() {
                during();
            }
        }
        tracer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Release);
    }
}

/// Where a target stands in its turn of enter and leave.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// Seized, and not yet stopped for the first time.
    Fresh,
    /// Its system calls stop it.
    Traced,
}

struct Tracer {
    targets: BTreeMap<Tid, Target>,
    calls: BTreeMap<u64, u64>,
    watched: Watched,
}

/// Why a target stopped.
enum Stop {
    /// At a system call's entry or exit.
    Syscall,
    /// At the tracer's wish, or when the target began to follow a stop signal's end.
    Trap,
    /// All of its process is stopped (SIGSTOP): it stays so.
    Group,
    /// It is about to end.
    Exit,
    /// A signal is to be delivered.
    Signal(i32),
}

impl Tracer {
    fn seize(tids: &[Tid], calls_max: usize) -> Result<Tracer, TraceError> {
        let watched = Watched::of_at_most(calls_max);
        let mut tracer = Tracer { targets: BTreeMap::new(), calls: BTreeMap::new(), watched };
        if let Err(refused) = tracer.seize_all(tids) {
            // Here, and not by this thread's end: a thread that joins it goes on before the kernel detaches the targets.
            tracer.let_go();
            return Err(refused);
        }
        // What they did until all were ready is not part of the answer.
        tracer.calls.clear();
        tracer.watched.clear();
        Ok(tracer)
    }

    fn seize_all(&mut self, tids: &[Tid]) -> Result<(), TraceError> {
        for &tid in tids {
            let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACEEXIT;
            ptrace(libc::PTRACE_SEIZE, tid, 0, options as usize)
                .map_err(|source| TraceError::Attach { tid, source })?;
            self.targets.insert(tid, Target::Fresh);
        }
        self.interrupt();
        let deadline_ns = mono_ns() + STOP_NS_MAX;
        while let Some(tid) = self.first_fresh() {
            if self.step(resume_traced) {
                continue;
            }
            if mono_ns() > deadline_ns {
                return Err(TraceError::Unstoppable { tid });
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    fn first_fresh(&self) -> Option<Tid> {
        self.targets.iter().find(|target| *target.1 == Target::Fresh).map(|target| *target.0)
    }

    fn run(mut self, done: &AtomicBool, ready: &mpsc::Sender<()>) -> Tracer {
        // Nobody to tell means that the caller has given up, and then `done` is set.
        let _ = ready.send(());
        let mut idle = 0;
        while !done.load(Acquire) && !self.targets.is_empty() && !self.watched.is_full() {
            if self.step(resume_traced) {
                idle = 0;
                continue;
            }
            idle += 1;
            if idle < SPINS_MAX { std::thread::yield_now() } else { sleep_ns(LOOK_NS) }
        }
        let seen = std::mem::take(&mut self.calls);
        self.watched.end();
        self.let_go();
        self.calls = seen;
        self
    }

    /// Detaches each at a stop of its own; those that will not stop are let go when this thread ends.
    fn let_go(&mut self) {
        self.interrupt();
        let deadline_ns = mono_ns() + STOP_NS_MAX;
        while !self.targets.is_empty() && mono_ns() < deadline_ns {
            if !self.step(detach) {
                std::thread::yield_now();
            }
        }
    }

    fn interrupt(&self) {
        for &tid in self.targets.keys() {
            // One that is gone needs no stop; one that is stopped already is met in that stop.
            let _ = ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0);
        }
    }

    /// Takes one stop, if there is one, and sends the target on its way; whether there was one.
    fn step(&mut self, on: fn(&mut Tracer, Tid, &Stop)) -> bool {
        match next_stop() {
            Looked::Stopped(tid, stop) => {
                if matches!(stop, Stop::Syscall) {
                    self.count(tid);
                }
                let on = if matches!(stop, Stop::Exit) { detach } else { on };
                on(self, tid, &stop);
                true
            }
            Looked::Running => false,
            Looked::NoneLeft => {
                self.targets.clear();
                false
            }
        }
    }

    fn count(&mut self, tid: Tid) {
        let Some(at) = at_call(tid) else { return };
        if let AtCall::Entry { number, .. } = at {
            *self.calls.entry(number).or_default() += 1;
        }
        self.watched.take(tid, at);
    }
}

/// Lets a target run to its next system call, with the signal that is due.
fn resume_traced(tracer: &mut Tracer, tid: Tid, stop: &Stop) {
    let (request, signal) = match *stop {
        // It stays stopped, but tells when it is continued.
        Stop::Group => (libc::PTRACE_LISTEN, 0),
        Stop::Signal(number) => (libc::PTRACE_SYSCALL, number),
        Stop::Syscall | Stop::Trap | Stop::Exit => (libc::PTRACE_SYSCALL, 0),
    };
    if ptrace(request, tid, 0, signal as usize).is_ok() {
        tracer.targets.insert(tid, Target::Traced);
    } else {
        // Killed while it was stopped.
        tracer.targets.remove(&tid);
    }
}

/// Ends the tracing of a target that is stopped; it goes on, or stays stopped if all of its process is.
fn detach(tracer: &mut Tracer, tid: Tid, stop: &Stop) {
    let signal = if let Stop::Signal(number) = *stop { number } else { 0 };
    // One that was killed meanwhile is no target any more either.
    let _ = ptrace(libc::PTRACE_DETACH, tid, 0, signal as usize);
    tracer.targets.remove(&tid);
}

enum Looked {
    Stopped(Tid, Stop),
    Running,
    NoneLeft,
}

/// Looks for a stopped target of this thread, and only for that: without WEXITED no exit can be taken off the table.
fn next_stop() -> Looked {
    // SAFETY: all zeroes is a valid siginfo_t: it holds numbers only.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let look = libc::WSTOPPED | libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: `info` is writable for the length of the call.
    if checked(unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, look) }).is_err() {
        return Looked::NoneLeft;
    }
    // SAFETY: waitid has filled the child fields, or left them zero when nothing stopped.
    let tid = unsafe { info.si_pid() };
    // SAFETY: as above.
    let status = unsafe { info.si_status() };
    if tid == 0 { Looked::Running } else { Looked::Stopped(tid, stop_of(status)) }
}

/// What a stop's status means (`ptrace(2)`, "Stopped states"): an event in the second byte, a signal in the first.
fn stop_of(status: i32) -> Stop {
    match (status >> 8, status & 0xff) {
        (libc::PTRACE_EVENT_EXIT, _) => Stop::Exit,
        (libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => Stop::Trap,
        (libc::PTRACE_EVENT_STOP, _) => Stop::Group,
        (0, number) if number == libc::SIGTRAP | 0x80 => Stop::Syscall,
        (0, number) => Stop::Signal(number),
        _ => Stop::Trap,
    }
}

/// The first fields of `struct ptrace_syscall_info` (uapi/linux/ptrace.h): all that an entry and an exit need.
#[repr(C)]
#[derive(Default)]
struct SyscallInfo {
    op: u8,
    pad: [u8; 3],
    arch: u32,
    instruction: u64,
    stack: u64,
    /// The number at an entry, the answer at an exit.
    first: u64,
    /// The first argument at an entry.
    second: u64,
}
/// `PTRACE_SYSCALL_INFO_ENTRY` and `PTRACE_SYSCALL_INFO_EXIT`.
const ENTRY: u8 = 1;
const EXIT: u8 = 2;

/// The call that a target is about to make, or the answer that it is about to get (Linux 5.3).
fn at_call(tid: Tid) -> Option<AtCall> {
    let mut info = SyscallInfo::default();
    let place = (&raw mut info) as usize;
    ptrace(libc::PTRACE_GET_SYSCALL_INFO, tid, size_of::<SyscallInfo>(), place).ok()?;
    match info.op {
        ENTRY => Some(AtCall::Entry { number: info.first, first: info.second }),
        EXIT => Some(AtCall::Exit { answer: info.first.cast_signed() }),
        _ => None,
    }
}

/// `address` and `data` are numbers, but for PTRACE_GET_SYSCALL_INFO: the size and address of a live `SyscallInfo`.
fn ptrace(request: u32, tid: Tid, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the requests of this file write at most `address` bytes at `data`, and only GET_SYSCALL_INFO writes.
    let answer = unsafe { libc::ptrace(request, tid, address, data) };
    checked_long(answer).map(drop)
}

#[cfg(test)]
mod tests;

//! The off-CPU probe: bpf/offcpu.bpf.c loaded and attached, its records and sums as values.
//!
//! Called by the off-CPU profiler. It classifies nothing and knows no symbols: addresses and numbers come out as the
//! kernel saw them. Rows of tables stand in `rows`, records of the ring in `records`, the shared memory in `layout`.

mod code;
mod layout;
mod records;
mod rows;
mod word;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::Relaxed;

use aya::maps::MapError;

use super::runs::Ran;
use super::{BpfError, Hook, Object, Ring, Words};
use crate::clock::mono_ns;
use crate::{Pid, Tid};

use code::{mark, packed};
use layout::{BLOCKED, RawCall, RawCode, RawSum, RawThread, RawWait, RawWaker};
use records::event;
use rows::{call, thread, wait, waker};

pub use layout::{LOG2_ROWS, RANGES_MAX, STACK_BYTES, SYSTEM_CALLS};
pub use records::{Event, Shape, Span};
pub use rows::{Call, Open, Part, State, Thread, Wait, Waker};

/// Built by `cargo xtask gen bpf`; the source lies beside it.
static OBJECT: &[u8] = include_bytes!("../../bpf/offcpu.bpf.o");

/// Whether each stretch of a thread is a record of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spans {
    /// Each, as a record.
    Recorded,
    /// Only their sums.
    Summed,
}

/// Whether every system call is watched: it makes each of the whole machine dearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// Counted and timed.
    Watched,
    /// Only the one that a thread waits in is known.
    Passed,
}

/// What the first argument of a system call says about its wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// The address it waits at.
    Address,
    /// The descriptor it waits for.
    Descriptor,
}

/// What was counted beside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Times a thread left its CPU.
    pub switches: u64,
    /// Waits without a row: the table was full.
    pub lost_waits: u64,
    /// Stretches without a record: the ring was full.
    pub lost_spans: u64,
    /// Stacks that could not be kept.
    pub lost_stacks: u64,
    /// Processes that were forked and found no room in the table.
    pub lost_processes: u64,
    /// Page faults in user mode.
    pub faults: u64,
    /// Waits that were put together with others for want of rows: without who ended them, what for, or their stack.
    pub coarse: u64,
    /// Times that a thread found no room in the table: what it did is not counted.
    pub lost_threads: u64,
}

/// How to watch.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Shorter waits are summed per thread and not kept by stack.
    pub min_ns: u64,
    /// Whether stretches are recorded.
    pub spans: Spans,
    /// Whether system calls are watched.
    pub calls: Calls,
    /// Rows of the table of kernel stacks, a power of two: [`KERNEL_STACKS`].
    pub kernel_stacks: u32,
}

/// Kernel stacks that are told apart at most. A stack has one place in their table, by its addresses, and some more where others have
/// that one: of a thousand stacks sixteen times as many rows take all.
pub const KERNEL_STACKS: u32 = 16_384;

/// Where the programs of system calls stand.
const HOOKS_OF_CALLS: [(&str, &str); 2] = [("on_return", "sys_exit"), ("on_call", "sys_enter")];

/// Where the others stand. The last may be missing: it only says which page a fault was for.
const HOOKS: [(&str, &str); 6] = [
    ("on_fork", "sched_process_fork"),
    ("on_exec", "sched_process_exec"),
    ("on_exit", "sched_process_exit"),
    ("on_waking", "sched_waking"),
    ("on_switch", "sched_switch"),
    ("on_fault", "page_fault_user"),
];

/// The probe. Dropped, it is gone from the kernel.
#[derive(Debug)]
pub struct Probe {
    object: Object,
    ring: Ring,
    control: Words,
}

impl Probe {
    /// Loads the programs; nothing runs yet. Needs CAP_BPF and CAP_PERFMON, or root.
    pub fn load(settings: Settings) -> Result<Probe, BpfError> {
        let mut object = Object::load_sized(OBJECT, Some(("kernel_stacks", settings.kernel_stacks)))?;
        let ring = object.ring("ring")?;
        let control = object.words("controls", word::COUNT)?;
        control.all()[word::MIN_NS].store(settings.min_ns, Relaxed);
        control.all()[word::SPANS].store(u64::from(settings.spans == Spans::Recorded), Relaxed);
        control.all()[word::CALLS].store(u64::from(settings.calls == Calls::Watched), Relaxed);
        Ok(Probe { object, ring, control })
    }

    /// Says of some system calls what their first argument is.
    pub fn name_objects(&mut self, calls: &[(u32, Says)]) -> Result<(), BpfError> {
        let mut named = self.object.array_mut::<u32>("named")?;
        for &(number, says) in calls.iter().filter(|(number, _)| (*number as usize) < SYSTEM_CALLS) {
            let kind = if says == Says::Descriptor { 2 } else { 1 };
            named.set(number, kind, 0).map_err(|source| BpfError::Map { map: "named", source })?;
        }
        Ok(())
    }

    /// Watches a process with all its threads, and the processes that it will start.
    pub fn watch(&mut self, pid: Pid) -> Result<(), BpfError> {
        assert!(pid > 0, "{pid} is no process");
        let mut processes = self.object.hash_mut::<u32, u32>("processes")?;
        let inserted = processes.insert(pid.cast_unsigned(), 1, 0);
        inserted.map_err(|source| BpfError::Map { map: "processes", source })?;
        let (word, bit) = mark(pid);
        self.control.all()[word::MARKS + word].fetch_or(bit, Relaxed);
        Ok(())
    }

    /// Tells where a process has its code; neighbours are joined until they are few enough.
    pub fn set_code(&mut self, pid: Pid, ranges: &[(u64, u64)]) -> Result<(), BpfError> {
        let code = packed(ranges);
        let mut codes = self.object.hash_mut::<u32, RawCode>("codes")?;
        let inserted = codes.insert(pid.cast_unsigned(), code, 0);
        inserted.map_err(|source| BpfError::Map { map: "codes", source })
    }

    /// Attaches everything and begins; the time on the monotonic clock from which on all is counted.
    pub fn start(&mut self) -> Result<u64, BpfError> {
        assert!(self.start_ns() == 0, "started twice, the programs would count everything twice");
        let calls = if self.watches_calls() { &HOOKS_OF_CALLS[..] } else { &[] };
        for &(program, tracepoint) in calls.iter().chain(&HOOKS) {
            if program == "on_fault" && !self.object.has_tracepoint(tracepoint) {
                continue;
            }
            self.object.attach(program, Hook::Typed(tracepoint))?;
        }
        let now = mono_ns();
        self.control.all()[word::START_NS].store(now, Relaxed);
        self.control.all()[word::ACTIVE].store(1, Relaxed);
        Ok(now)
    }

    /// Puts a thread into the table that waits since before the start, with the system call and the number that its user
    /// stack is to be known by. One that was seen by now stays as it was seen.
    pub fn seed(&mut self, tid: Tid, pid: Pid, shape: u64, system_call: Option<u32>) -> Result<(), BpfError> {
        let since_ns = self.start_ns();
        assert!(since_ns > 0, "before the start nobody knows since when a thread waits");
        let fresh = RawThread {
            since_ns,
            woken_ns: 0,
            entered_ns: since_ns,
            running_ns: 0,
            runnable_ns: 0,
            waiting_ns: 0,
            object: 0,
            shape,
            waker: 0,
            fault: 0,
            tgid: pid.cast_unsigned(),
            kernel_stack: -1,
            system_call: system_call.map_or(-1, u32::cast_signed),
            state: BLOCKED,
        };
        const NEW_ONLY: u64 = 1;
        let mut threads = self.object.hash_mut::<u32, RawThread>("threads")?;
        match threads.insert(tid.cast_unsigned(), fresh, NEW_ONLY) {
            Ok(()) => Ok(()),
            // The kernel has seen it switch meanwhile: that row is the newer one.
            Err(MapError::SyscallError(error)) if error.io_error.raw_os_error() == Some(libc::EEXIST) => {
                Ok(())
            }
            Err(source) => Err(BpfError::Map { map: "threads", source }),
        }
    }

    /// Takes a thread out again that ended before it was put in.
    pub fn unseed(&mut self, tid: Tid) -> Result<(), BpfError> {
        let mut threads = self.object.hash_mut::<u32, RawThread>("threads")?;
        match threads.remove(&tid.cast_unsigned()) {
            Err(source) if !is_absent(&source) => Err(BpfError::Map { map: "threads", source }),
            _ => Ok(()),
        }
    }

    /// Stops counting at once; sums stay readable. The time of the stop.
    pub fn stop(&mut self) -> u64 {
        assert!(self.start_ns() > 0, "what never began is stopped");
        self.control.all()[word::ACTIVE].store(0, Relaxed);
        mono_ns()
    }

    /// When it began; 0 before.
    fn start_ns(&self) -> u64 {
        self.control.all()[word::START_NS].load(Relaxed)
    }

    fn watches_calls(&self) -> bool {
        self.control.all()[word::CALLS].load(Relaxed) == 1
    }

    /// No more stretches are recorded.
    pub fn stop_spans(&self) {
        self.control.all()[word::SPANS].store(0, Relaxed);
    }

    /// Hands on what came through the ring; how many records there were.
    pub fn drain(&mut self, each: &mut dyn FnMut(Event<'_>)) -> usize {
        self.ring.drain(&mut |record| {
            if let Some(event) = event(record) {
                each(event);
            }
        })
    }

    /// What was counted beside.
    pub fn counts(&self) -> Counts {
        let word = |at: usize| self.control.all()[at].load(Relaxed);
        Counts {
            switches: word(word::SWITCHES),
            lost_waits: word(word::LOST_WAITS),
            lost_spans: word(word::LOST_SPANS),
            lost_stacks: word(word::LOST_STACKS),
            lost_processes: word(word::LOST_PROCESSES),
            faults: word(word::FAULTS),
            coarse: word(word::COARSE),
            lost_threads: word(word::LOST_THREADS),
        }
    }

    /// How long its programs ran, all together, while [`super::runs::Counting`] lived.
    pub fn ran(&self) -> Result<Ran, BpfError> {
        self.object.ran(|_any| true)
    }

    /// Threads that live, or lived last when it was stopped; and those whose ends found no room in the ring.
    pub fn threads(&self) -> Result<Vec<Thread>, BpfError> {
        let threads = self.object.hash::<u32, RawThread>("threads")?;
        let rows = threads.iter().map(|row| row.map(|(tid, raw)| thread(tid.cast_signed(), &raw)));
        rows.collect::<Result<_, _>>().map_err(|source| BpfError::Map { map: "threads", source })
    }

    /// All rows of time off the CPU.
    pub fn waits(&self) -> Result<Vec<Wait>, BpfError> {
        let waits = self.object.hash::<RawWait, RawSum>("waits")?;
        let rows = waits.iter().map(|row| row.map(|(key, sum)| wait(&key, &sum)));
        rows.collect::<Result<_, _>>().map_err(|source| BpfError::Map { map: "waits", source })
    }

    /// All who ended waits.
    pub fn wakers(&self) -> Result<Vec<Waker>, BpfError> {
        let wakers = self.object.hash::<u64, RawWaker>("wakers")?;
        let rows = wakers.iter().map(|row| row.map(|(id, raw)| waker(id, &raw)));
        rows.collect::<Result<_, _>>().map_err(|source| BpfError::Map { map: "wakers", source })
    }

    /// The addresses of a kernel stack, from the leaf up; empty when it is not kept.
    pub fn kernel_stack(&self, id: i32) -> Result<Vec<u64>, BpfError> {
        assert!(id >= 0, "{id} names no stack: it is the kernel's error number");
        let stacks = self.object.stacks("kernel_stacks")?;
        match stacks.get(&id.cast_unsigned(), 0) {
            Ok(stack) => Ok(stack.frames().iter().map(|frame| frame.ip).collect()),
            Err(error) if is_absent(&error) => Ok(Vec::new()),
            Err(source) => Err(BpfError::Map { map: "kernel_stacks", source }),
        }
    }

    /// System calls that returned.
    pub fn calls(&self) -> Result<Vec<Call>, BpfError> {
        let calls = self.object.per_cpu::<RawCall>("calls")?;
        let mut all = Vec::new();
        for number in 0..SYSTEM_CALLS as u32 {
            let rows = calls.get(&number, 0).map_err(|source| BpfError::Map { map: "calls", source })?;
            all.extend(call(number, rows.iter()));
        }
        Ok(all)
    }
}

/// Whether a map has no such row.
fn is_absent(error: &MapError) -> bool {
    match error {
        MapError::KeyNotFound => true,
        MapError::SyscallError(error) => error.io_error.raw_os_error() == Some(libc::ENOENT),
        _ => false,
    }
}

impl AsFd for Probe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

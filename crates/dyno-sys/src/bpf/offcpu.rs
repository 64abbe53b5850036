//! The off-CPU probe: bpf/offcpu.bpf.c loaded and attached, its records and sums as values.
//!
//! Called by the off-CPU profiler. It classifies nothing and knows no symbols: addresses and numbers come out as the
//! kernel saw them. The layouts below are those of bpf/offcpu.h, tied by assertions on both sides.

use super::runs::Ran;
use super::{BpfError, Hook, Object, Ring, Words};
use crate::clock::mono_ns;
use crate::{Pid, Tid};
use aya::Pod;
use aya::maps::MapError;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::Relaxed;

/// Built by `cargo xtask gen bpf`; the source lies beside it.
static OBJECT: &[u8] = include_bytes!("../../bpf/offcpu.bpf.o");

/// System calls counted apart; the last row takes the numbers above.
pub const SYSTEM_CALLS: usize = 512;
/// Rows of a histogram of lengths: row `i` holds those below 2^i ns.
pub const LOG2_ROWS: usize = 40;
/// Executable ranges that are kept of a process.
pub const RANGES_MAX: usize = 24;
/// Bytes of user stack that are copied at most.
pub const STACK_BYTES: usize = 16_384;
/// Frames that are walked by frame pointers at most.
const FRAME_POINTERS: usize = 64;
/// Stretches of addresses that hold all ranges: a program's own, and its libraries'.
const STRETCHES: usize = 2;
/// Words with a bit for each process number: most strangers are told by it alone.
const MARK_WORDS: usize = 1_024;

/// States of a thread in the kernel's table.
const RUNNING: u32 = 1;
const RUNNABLE: u32 = 2;
const BLOCKED: u32 = 3;
const WOKEN: u32 = 4;

/// Words of `struct control`.
mod word {
    pub(super) const ACTIVE: usize = 0;
    pub(super) const START_NS: usize = 1;
    pub(super) const MIN_NS: usize = 2;
    pub(super) const SPANS: usize = 3;
    pub(super) const SWITCHES: usize = 4;
    pub(super) const LOST_WAITS: usize = 5;
    pub(super) const LOST_SPANS: usize = 6;
    pub(super) const LOST_STACKS: usize = 7;
    pub(super) const LOST_PROCESSES: usize = 8;
    pub(super) const FAULTS: usize = 9;
    /// A bit for each process number, the rest of it by 65,536.
    pub(super) const MARKS: usize = 10;
    pub(super) const COUNT: usize = MARKS + super::MARK_WORDS;
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawThread {
    since_ns: u64,
    woken_ns: u64,
    entered_ns: u64,
    running_ns: u64,
    runnable_ns: u64,
    waiting_ns: u64,
    object: u64,
    shape: u64,
    waker: u64,
    fault: u64,
    tgid: u32,
    kernel_stack: i32,
    system_call: i32,
    state: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawWait {
    shape: u64,
    waker: u64,
    object: u64,
    tid: u32,
    tgid: u32,
    kernel_stack: i32,
    system_call: i32,
    part: u32,
    unused: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawSum {
    ns: u64,
    count: u64,
    max_ns: u64,
    fault: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawWaker {
    shape: u64,
    tid: u32,
    tgid: u32,
    kernel_stack: i32,
    unused: u32,
    comm: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawCall {
    count: u64,
    errors: u64,
    total_ns: u64,
    max_ns: u64,
    log2_ns: [u64; LOG2_ROWS],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawCode {
    low: [u64; STRETCHES],
    bytes: [u64; STRETCHES],
    from: [u64; RANGES_MAX],
    to: [u64; RANGES_MAX],
}

const _: () = assert!(size_of::<RawThread>() == 96, "struct thread of offcpu.h");
const _: () = assert!(size_of::<RawWait>() == 48, "struct wait_key of offcpu.h");
const _: () = assert!(size_of::<RawSum>() == 32, "struct wait_sum of offcpu.h");
const _: () = assert!(size_of::<RawWaker>() == 40, "struct waker of offcpu.h");
const _: () = assert!(size_of::<RawCall>() == 352, "struct call_sum of offcpu.h");
const _: () = assert!(size_of::<RawCode>() == 416, "struct code of offcpu.h");
const _: () = assert!(word::COUNT * 8 == 80 + 8 * MARK_WORDS, "struct control of offcpu.h");

// SAFETY: numbers only, no padding (the sizes are asserted above): every pattern of bytes is a value.
unsafe impl Pod for RawThread {}
// SAFETY: the same.
unsafe impl Pod for RawWait {}
// SAFETY: the same.
unsafe impl Pod for RawSum {}
// SAFETY: the same.
unsafe impl Pod for RawWaker {}
// SAFETY: the same.
unsafe impl Pod for RawCall {}
// SAFETY: the same.
unsafe impl Pod for RawCode {}

/// Whether each stretch of a thread is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spans {
    /// Each, as a record.
    Told,
    /// Only their sums.
    Summed,
}

/// What the first argument of a system call says about its wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// The address it waits at.
    Address,
    /// The descriptor it waits for.
    Descriptor,
}

/// What a thread did in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It had a CPU.
    Running,
    /// It wanted one.
    Runnable,
    /// It waited.
    Blocked,
}

/// Which part of the time off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// From leaving the CPU to being woken.
    Wait,
    /// From being woken to having a CPU.
    Queue,
    /// From losing the CPU to having one again.
    Preemption,
}

/// Something that came through the ring.
#[derive(Debug)]
pub enum Event<'r> {
    /// A user stack of a shape that was not seen before. It is to be unwound now, while its code is mapped.
    Shape(Shape<'r>),
    /// A thread's stretch of time.
    Span(Span),
    /// A thread ended.
    Exit {
        /// It, with its sums.
        thread: Thread,
        /// Its name.
        name: String,
    },
    /// A process now runs another program.
    Exec {
        /// The process.
        pid: Pid,
    },
    /// Something was waited for in a place where nobody waited for it before.
    Object {
        /// The process.
        pid: Pid,
        /// The system call.
        system_call: u32,
        /// What its first argument said, as in [`Wait::object`].
        object: u64,
    },
    /// A process was born; it is watched from now on.
    Fork {
        /// The process.
        pid: Pid,
        /// Its parent.
        parent: Pid,
    },
}

/// A user stack as it lay in memory.
#[derive(Debug)]
pub struct Shape<'r> {
    /// The number that waits and wakers name it by.
    pub id: u64,
    /// Whose.
    pub pid: Pid,
    /// Instruction pointer in user mode.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub bp: u64,
    /// The walk by frame pointers, from the leaf up.
    pub by_frame_pointers: Vec<u64>,
    /// Memory from the stack pointer up.
    pub stack: &'r [u8],
}

/// A thread's stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The thread.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// What it did.
    pub state: State,
    /// On the monotonic clock.
    pub from_ns: u64,
    /// On the monotonic clock.
    pub to_ns: u64,
    /// Where it waited in the kernel, see [`Probe::kernel_stack`].
    pub kernel_stack: Option<i32>,
    /// The system call that it was in.
    pub system_call: Option<u32>,
}

/// A thread and its sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// Time on a CPU.
    pub running_ns: u64,
    /// Time it wanted one.
    pub runnable_ns: u64,
    /// Time it waited.
    pub waiting_ns: u64,
    /// What it is in the middle of: a wait or run that goes on, to be added as it stands.
    pub open: Option<Open>,
}

/// A stretch that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// What the thread does.
    pub state: State,
    /// Since when.
    pub since_ns: u64,
    /// The row that its time belongs to.
    pub wait: Wait,
}

/// Time off the CPU: one row for each thread, stack, system call, object and waker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The thread.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// Which part.
    pub part: Part,
    /// Its user stack; none when it had none.
    pub shape: Option<u64>,
    /// Its kernel stack.
    pub kernel_stack: Option<i32>,
    /// The system call that it was in.
    pub system_call: Option<u32>,
    /// What that call's first argument said, see [`Says`].
    pub object: Option<u64>,
    /// Who ended it.
    pub waker: Option<u64>,
    /// The address of a page fault before it.
    pub fault: Option<u64>,
    /// Time.
    pub ns: u64,
    /// How often.
    pub count: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Who ended waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waker {
    /// The number that waits name it by.
    pub id: u64,
    /// The thread that was running when the wake-up came; not the cause of it when an interrupt was.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// Its name.
    pub name: String,
    /// Its user stack, if its process is watched.
    pub shape: Option<u64>,
    /// Its kernel stack.
    pub kernel_stack: Option<i32>,
}

/// A system call, over all threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its number; the last row is all numbers from there on.
    pub number: u32,
    /// Returns.
    pub count: u64,
    /// Returns with an error.
    pub errors: u64,
    /// Time from entry to return.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Counts by length.
    pub log2_ns: Vec<u64>,
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
    /// Processes that were born and found no room in the table.
    pub lost_processes: u64,
    /// Page faults in user mode.
    pub faults: u64,
}

/// How to watch.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Shorter waits are summed per thread and not kept by stack.
    pub min_ns: u64,
    /// Whether stretches are told.
    pub spans: Spans,
}

/// Where the programs stand. The last may be missing: it only says which page a fault was for.
const HOOKS: [(&str, &str); 8] = [
    ("on_fork", "sched_process_fork"),
    ("on_exec", "sched_process_exec"),
    ("on_exit", "sched_process_exit"),
    ("on_return", "sys_exit"),
    ("on_call", "sys_enter"),
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
        let mut object = Object::load(OBJECT)?;
        let ring = object.ring("ring")?;
        let control = object.words("controls", word::COUNT)?;
        control.all()[word::MIN_NS].store(settings.min_ns, Relaxed);
        control.all()[word::SPANS].store(u64::from(settings.spans == Spans::Told), Relaxed);
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
        for (program, tracepoint) in HOOKS {
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
        let since_ns = self.control.all()[word::START_NS].load(Relaxed);
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
            // Somebody was quicker: the kernel saw it switch.
            Err(MapError::SyscallError(error)) if error.io_error.raw_os_error() == Some(libc::EEXIST) => {
                Ok(())
            }
            Err(source) => Err(BpfError::Map { map: "threads", source }),
        }
    }

    /// Stops counting at once; sums stay readable. The time of the stop.
    pub fn stop(&mut self) -> u64 {
        self.control.all()[word::ACTIVE].store(0, Relaxed);
        mono_ns()
    }

    /// No more stretches are told.
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
        }
    }

    /// How long its programs ran, all together, while [`super::runs::Counting`] lived.
    pub fn ran(&self) -> Result<Ran, BpfError> {
        self.object.ran(|_any| true)
    }

    /// Threads that live, or lived last when it was stopped.
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
        let stacks = self.object.stacks("kernel_stacks")?;
        match stacks.get(&id.cast_unsigned(), 0) {
            Ok(stack) => Ok(stack.frames().iter().map(|frame| frame.ip).collect()),
            Err(MapError::KeyNotFound) => Ok(Vec::new()),
            Err(MapError::SyscallError(error)) if error.io_error.raw_os_error() == Some(libc::ENOENT) => {
                Ok(Vec::new())
            }
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

impl AsFd for Probe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

fn packed(ranges: &[(u64, u64)]) -> RawCode {
    let mut sorted: Vec<(u64, u64)> = ranges.iter().copied().filter(|(from, to)| from < to).collect();
    sorted.sort_unstable();
    while sorted.len() > RANGES_MAX {
        // The two that lie closest become one: the words between them are rare on stacks.
        let gap = |at: &usize| sorted[at + 1].0.saturating_sub(sorted[*at].1);
        let closest = (0..sorted.len() - 1).min_by_key(gap).expect("there are more than two");
        sorted[closest].1 = sorted[closest].1.max(sorted[closest + 1].1);
        sorted.remove(closest + 1);
    }
    let (low, bytes) = stretches(&sorted);
    // Ranges that are not there begin beyond every address: the search ends at them.
    let mut code = RawCode { low, bytes, from: [u64::MAX; RANGES_MAX], to: [0; RANGES_MAX] };
    for (at, (from, to)) in sorted.into_iter().enumerate() {
        code.from[at] = from;
        code.to[at] = to;
    }
    code
}

/// Where the ranges begin and how far they reach, in two stretches with the widest gap between them: what lies there, the
/// heap and all stacks of a program that is loaded high, is then told from code by two comparisons.
fn stretches(sorted: &[(u64, u64)]) -> ([u64; STRETCHES], [u64; STRETCHES]) {
    let gap = |at: &usize| sorted[*at].0.saturating_sub(sorted[at - 1].1);
    let widest = (1..sorted.len()).max_by_key(gap).unwrap_or(sorted.len());
    let (own, libraries) = sorted.split_at(widest);
    let low = |part: &[(u64, u64)]| part.first().map_or(0, |range| range.0);
    let bytes = |part: &[(u64, u64)]| part.last().map_or(0, |range| range.1) - low(part);
    ([low(own), low(libraries)], [bytes(own), bytes(libraries)])
}

/// The word of a process's bit, and the bit in it.
fn mark(pid: Pid) -> (usize, u64) {
    let number = pid.cast_unsigned();
    (number as usize / 64 % MARK_WORDS, 1 << (number % 64))
}

fn thread(tid: Tid, raw: &RawThread) -> Thread {
    let (state, part) = match raw.state {
        RUNNING => (State::Running, Part::Wait),
        RUNNABLE => (State::Runnable, Part::Preemption),
        WOKEN => (State::Runnable, Part::Queue),
        _ => (State::Blocked, Part::Wait),
    };
    let pid = raw.tgid.cast_signed();
    let kernel_stack = some_stack(raw.kernel_stack);
    let of_wait = part == Part::Wait;
    let wait = Wait {
        tid,
        pid,
        part,
        shape: some(raw.shape),
        kernel_stack,
        system_call: some_call(raw.system_call),
        object: some(raw.object).filter(|_| of_wait),
        waker: some(raw.waker).filter(|_| of_wait),
        fault: some(raw.fault),
        ns: 0,
        count: 1,
        max_ns: 0,
    };
    // What was waited before the wake-up has not been added yet either.
    let waited = if raw.state == WOKEN { raw.woken_ns.saturating_sub(raw.since_ns) } else { 0 };
    let since_ns = if raw.state == WOKEN { raw.woken_ns } else { raw.since_ns };
    Thread {
        tid,
        pid,
        running_ns: raw.running_ns,
        runnable_ns: raw.runnable_ns,
        waiting_ns: raw.waiting_ns + waited,
        open: Some(Open { state, since_ns, wait }),
    }
}

fn wait(key: &RawWait, sum: &RawSum) -> Wait {
    Wait {
        tid: key.tid.cast_signed(),
        pid: key.tgid.cast_signed(),
        part: match key.part {
            0 => Part::Wait,
            1 => Part::Queue,
            _ => Part::Preemption,
        },
        shape: some(key.shape),
        kernel_stack: some_stack(key.kernel_stack),
        system_call: some_call(key.system_call),
        object: some(key.object),
        waker: some(key.waker),
        fault: some(sum.fault),
        ns: sum.ns,
        count: sum.count,
        max_ns: sum.max_ns,
    }
}

fn waker(id: u64, raw: &RawWaker) -> Waker {
    Waker {
        id,
        tid: raw.tid.cast_signed(),
        pid: raw.tgid.cast_signed(),
        name: name(&raw.comm),
        shape: some(raw.shape),
        kernel_stack: some_stack(raw.kernel_stack),
    }
}

fn call<'r>(number: u32, rows: impl Iterator<Item = &'r RawCall>) -> Option<Call> {
    let none = Call { number, count: 0, errors: 0, total_ns: 0, max_ns: 0, log2_ns: vec![0; LOG2_ROWS] };
    let sum = rows.fold(none, |mut sum, row| {
        sum.count += row.count;
        sum.errors += row.errors;
        sum.total_ns += row.total_ns;
        sum.max_ns = sum.max_ns.max(row.max_ns);
        sum.log2_ns.iter_mut().zip(row.log2_ns).for_each(|(into, count)| *into += count);
        sum
    });
    (sum.count > 0).then_some(sum)
}

fn some(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

fn some_stack(id: i32) -> Option<i32> {
    (id >= 0).then_some(id)
}

fn some_call(number: i32) -> Option<u32> {
    u32::try_from(number).ok()
}

/// A thread's name, up to its zero.
fn name(comm: &[u8]) -> String {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    String::from_utf8_lossy(&comm[..end]).into_owned()
}

/// Reads a record's numbers one after the other, and stops where it ends.
struct Fields<'r>(&'r [u8]);

impl<'r> Fields<'r> {
    fn bytes(&mut self, count: usize) -> Option<&'r [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn i32(&mut self) -> Option<i32> {
        self.u32().map(u32::cast_signed)
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().ok()?))
    }
}

/// A record of the ring; none when its kind is unknown or it is too short.
fn event(record: &[u8]) -> Option<Event<'_>> {
    let mut fields = Fields(record);
    match fields.u32()? {
        1 => shape(fields).map(Event::Shape),
        2 => span(fields).map(Event::Span),
        6 => object(fields),
        kind => life(kind, fields),
    }
}

fn shape(mut fields: Fields<'_>) -> Option<Shape<'_>> {
    let pid = fields.i32()?;
    let (id, ip, sp, bp) = (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
    let (bytes, frames) = (fields.u32()? as usize, fields.u32()? as usize);
    let mut walked = Fields(fields.bytes(8 * FRAME_POINTERS)?);
    let by_frame_pointers = (0..frames.min(FRAME_POINTERS)).map_while(|_| walked.u64()).collect();
    let stack = fields.bytes(bytes.min(STACK_BYTES))?;
    Some(Shape { id, pid, ip, sp, bp, by_frame_pointers, stack })
}

fn span(mut fields: Fields<'_>) -> Option<Span> {
    let (tid, pid) = (fields.i32()?, fields.i32()?);
    let state = match fields.u32()? {
        RUNNING => State::Running,
        RUNNABLE => State::Runnable,
        _ => State::Blocked,
    };
    let (from_ns, to_ns) = (fields.u64()?, fields.u64()?);
    let (kernel_stack, system_call) = (some_stack(fields.i32()?), some_call(fields.i32()?));
    Some(Span { tid, pid, state, from_ns, to_ns, kernel_stack, system_call })
}

fn object(mut fields: Fields<'_>) -> Option<Event<'static>> {
    let (pid, system_call, _unused) = (fields.i32()?, fields.u32()?, fields.u32()?);
    Some(Event::Object { pid, system_call, object: fields.u64()? })
}

fn life(kind: u32, mut fields: Fields<'_>) -> Option<Event<'static>> {
    let (tid, pid, parent) = (fields.i32()?, fields.i32()?, fields.i32()?);
    let comm = fields.bytes(16)?;
    // The six times of `struct thread` come first: since, woken, entered, running, runnable, waiting.
    let mut sums = [0; 6];
    for sum in &mut sums {
        *sum = fields.u64()?;
    }
    let [_, _, _, running_ns, runnable_ns, waiting_ns] = sums;
    match kind {
        3 => {
            let thread = Thread { tid, pid, running_ns, runnable_ns, waiting_ns, open: None };
            Some(Event::Exit { thread, name: name(comm) })
        }
        4 => Some(Event::Exec { pid }),
        5 => Some(Event::Fork { pid, parent }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ranges_are_joined_where_they_lie_closest() {
        let many: Vec<(u64, u64)> = (0..30).map(|at| (at * 100 + at * at, at * 100 + at * at + 10)).collect();
        let code = packed(&many);
        let (first, last) = (many[0].0, many[29].1);
        // The widest gap is the last one: behind it lies one range alone.
        assert_eq!(code.low, [first, many[29].0]);
        assert_eq!(code.bytes, [many[28].1 - first, last - many[29].0]);
        // Gaps grow with the number, so that the first ranges are the ones that became one.
        assert_eq!((code.from[0], code.to[0]), (0, 6 * 100 + 36 + 10));
        assert!(
            many.iter()
                .all(|(from, to)| { (0..RANGES_MAX).any(|at| code.from[at] <= *from && *to <= code.to[at]) })
        );
    }

    #[test]
    fn no_range_and_one_range_have_their_stretches() {
        assert_eq!(stretches(&[]), ([0, 0], [0, 0]));
        assert_eq!(stretches(&[(16, 48)]), ([16, 0], [32, 0]));
    }

    #[test]
    fn process_numbers_have_a_bit_each() {
        assert_eq!((mark(0), mark(63), mark(64)), ((0, 1), (0, 1 << 63), (1, 1)));
        assert_eq!((mark(65_535), mark(65_536)), ((1_023, 1 << 63), (0, 1)));
    }

    #[test]
    fn a_record_cut_anywhere_is_no_record_and_no_panic() {
        let mut record = vec![2_u32, 7, 6, 3].into_iter().flat_map(u32::to_ne_bytes).collect::<Vec<u8>>();
        record.extend([10_u64, 20].into_iter().flat_map(u64::to_ne_bytes));
        record.extend([-1_i32, 35].into_iter().flat_map(i32::to_ne_bytes));
        assert_eq!(record.len(), 40);
        let Some(Event::Span(span)) = event(&record) else { panic!("a span") };
        let expected = Span {
            tid: 7,
            pid: 6,
            state: State::Blocked,
            from_ns: 10,
            to_ns: 20,
            kernel_stack: None,
            system_call: Some(35),
        };
        assert_eq!(span, expected);
        assert!((0..record.len()).all(|cut| event(&record[..cut]).is_none()));
    }

    #[test]
    fn a_wait_that_goes_on_is_open() {
        let raw = RawThread {
            since_ns: 100,
            woken_ns: 150,
            entered_ns: 0,
            running_ns: 5,
            runnable_ns: 6,
            waiting_ns: 7,
            object: 9,
            shape: 3,
            waker: 4,
            fault: 0,
            tgid: 1,
            kernel_stack: 8,
            system_call: -1,
            state: WOKEN,
        };
        let woken = thread(2, &raw);
        let open = woken.open.unwrap();
        assert_eq!((woken.waiting_ns, open.since_ns, open.state), (57, 150, State::Runnable));
        assert_eq!((open.wait.part, open.wait.object), (Part::Queue, None));
        let blocked = thread(2, &RawThread { state: BLOCKED, ..raw });
        assert_eq!(blocked.open.unwrap().wait.object, Some(9));
    }

    #[test]
    fn per_cpu_rows_are_added_and_unused_calls_left_out() {
        let row = |count, max_ns| RawCall { count, errors: 1, total_ns: 10, max_ns, log2_ns: [1; LOG2_ROWS] };
        let sum = call(3, [row(2, 7), row(3, 5)].iter()).unwrap();
        assert_eq!((sum.count, sum.errors, sum.total_ns, sum.max_ns), (5, 2, 20, 7));
        assert_eq!(sum.log2_ns, vec![2; LOG2_ROWS]);
        assert_eq!(call(3, [row(0, 0)].iter()), None);
    }
}

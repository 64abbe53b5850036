//! Rows of the off-CPU probe's tables as values: threads, waits, who ended them, system calls.
//!
//! The probe reads the tables and calls it; records of the ring carry threads too. It classifies nothing.

use super::layout::{
    ENDED, LOG2_ROWS, RUNNABLE, RUNNING, RawCall, RawSum, RawThread, RawWait, RawWaker, WOKEN,
};
use crate::{Pid, Tid};

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
    /// What it is in the middle of, to be added as it stands: one stretch, or two where it was woken and has no CPU yet.
    pub open: Vec<Open>,
}

/// A stretch that was not added yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// What the thread does.
    pub state: State,
    /// Since when.
    pub since_ns: u64,
    /// Until when; none for one that goes on.
    pub until_ns: Option<u64>,
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
    /// What that call's first argument said, see [`super::Says`].
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

pub(super) fn thread(tid: Tid, raw: &RawThread) -> Thread {
    let open = |state, part, since_ns, until_ns| {
        let wait = open_wait(tid, raw, part);
        Open { state, since_ns, until_ns, wait }
    };
    let (since, woken) = (raw.since_ns, raw.woken_ns);
    let open = match raw.state {
        ENDED => vec![],
        RUNNING => vec![open(State::Running, Part::Wait, since, None)],
        RUNNABLE => vec![open(State::Runnable, Part::Preemption, since, None)],
        WOKEN => vec![
            open(State::Blocked, Part::Wait, since, Some(woken)),
            open(State::Runnable, Part::Queue, woken, None),
        ],
        _ => vec![open(State::Blocked, Part::Wait, since, None)],
    };
    Thread {
        tid,
        pid: raw.tgid.cast_signed(),
        running_ns: raw.running_ns,
        runnable_ns: raw.runnable_ns,
        waiting_ns: raw.waiting_ns,
        open,
    }
}

/// The row of a stretch that was not added yet.
fn open_wait(tid: Tid, raw: &RawThread, part: Part) -> Wait {
    let of_wait = part == Part::Wait;
    Wait {
        tid,
        pid: raw.tgid.cast_signed(),
        part,
        shape: some(raw.shape),
        kernel_stack: some_stack(raw.kernel_stack),
        system_call: some_call(raw.system_call),
        object: some(raw.object).filter(|_| of_wait),
        waker: some(raw.waker).filter(|_| of_wait),
        fault: some(raw.fault),
        ns: 0,
        count: 1,
        max_ns: 0,
    }
}

pub(super) fn wait(key: &RawWait, sum: &RawSum) -> Wait {
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

pub(super) fn waker(id: u64, raw: &RawWaker) -> Waker {
    Waker {
        id,
        tid: raw.tid.cast_signed(),
        pid: raw.tgid.cast_signed(),
        name: name(&raw.comm),
        shape: some(raw.shape),
        kernel_stack: some_stack(raw.kernel_stack),
    }
}

pub(super) fn call<'r>(number: u32, rows: impl Iterator<Item = &'r RawCall>) -> Option<Call> {
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

pub(super) fn some(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

pub(super) fn some_stack(id: i32) -> Option<i32> {
    (id >= 0).then_some(id)
}

pub(super) fn some_call(number: i32) -> Option<u32> {
    u32::try_from(number).ok()
}

/// A thread's name, up to its zero.
pub(super) fn name(comm: &[u8]) -> String {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    String::from_utf8_lossy(&comm[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::bpf::offcpu::layout::BLOCKED;

    /// Fault: `thread` that gives a woken thread its second stretch alone.
    #[test]
    fn a_wait_that_goes_on_is_open_and_one_that_was_woken_has_both_its_parts() {
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
        let stretches = |raw: &RawThread| {
            let thread = thread(2, raw);
            assert_eq!(thread.waiting_ns, 7, "what is open is not added yet");
            let stretch = |open: Open| (open.wait.part, open.since_ns, open.until_ns, open.wait.object);
            thread.open.into_iter().map(stretch).collect::<Vec<_>>()
        };
        let woken = [(Part::Wait, 100, Some(150), Some(9)), (Part::Queue, 150, None, None)];
        assert_eq!(stretches(&raw), woken);
        assert_eq!(stretches(&RawThread { state: BLOCKED, ..raw }), [(Part::Wait, 100, None, Some(9))]);
        assert_eq!(stretches(&RawThread { state: ENDED, ..raw }), [], "its end was not told, and is not now");
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

//! Records of the off-CPU probe's ring as values. One that is cut short or of an unknown kind is none.
//!
//! The probe drains its ring through it; nothing here calls the kernel.

use super::layout::{FRAME_POINTERS, RUNNABLE, RUNNING, STACK_BYTES};
use super::rows::{State, Thread, name, some_call, some_stack};
use crate::{Pid, Tid};

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
    /// A wait for an object that this process had not waited for in this system call before.
    Object {
        /// The process.
        pid: Pid,
        /// The system call.
        system_call: u32,
        /// What its first argument said, as in [`super::Wait::object`].
        object: u64,
    },
    /// A process was forked; it is watched from now on.
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
    /// Where it waited in the kernel, see [`super::Probe::kernel_stack`].
    pub kernel_stack: Option<i32>,
    /// The system call that it was in.
    pub system_call: Option<u32>,
}

/// A record of the ring; none when its kind is unknown or it is too short.
pub(super) fn event(record: &[u8]) -> Option<Event<'_>> {
    let mut fields = Fields(record);
    match fields.u32()? {
        1 => shape(fields).map(Event::Shape),
        2 => span(fields).map(Event::Span),
        6 => object(fields),
        kind => life(kind, fields),
    }
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
            let thread = Thread { tid, pid, running_ns, runnable_ns, waiting_ns, open: Vec::new() };
            Some(Event::Exit { thread, name: name(comm) })
        }
        4 => Some(Event::Exec { pid }),
        5 => Some(Event::Fork { pid, parent }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}

//! The filters of system calls that a thread of somebody else is behind, as they were written (`PTRACE_SECCOMP_GET_FILTER`).
//!
//! An audit that measures reads them, to put a child of its own behind the same. The thread is stopped for as long as that takes:
//! some ten microseconds. It needs root, a kernel that can save processes (CONFIG_CHECKPOINT_RESTORE), and a reader that is
//! behind no filter itself.

use super::{Looked, Stop, TraceError, next_stop, ptrace};
use crate::Tid;
use crate::clock::mono_ns;
use crate::errno::checked_long;
use crate::seccomp::Filter;
use std::io;

/// `PTRACE_SECCOMP_GET_FILTER` (uapi/linux/ptrace.h).
const GET_FILTER: u32 = 0x420c;
/// Filters on top of one another that are read at most: container engine, service manager and sandbox make three.
const FILTERS_MAX: usize = 32;
/// A thread stops within microseconds unless it hangs in the kernel.
const STOP_NS_MAX: u64 = 500_000_000;

/// The filters of thread `tid`, the oldest first.
///
/// # Errors
/// When the thread may not be traced, does not stop, or its filters may not be read; it runs as before.
pub fn filters_of(tid: Tid) -> Result<Vec<Filter>, TraceError> {
    // A thread of its own, so that whatever happens here the kernel lets the target go when it ends.
    let reader = std::thread::Builder::new().name("dyno-filters".to_owned()).spawn(move || read(tid));
    let reader = reader.map_err(|source| TraceError::Thread { source })?;
    reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn read(tid: Tid) -> Result<Vec<Filter>, TraceError> {
    let attach = |source| TraceError::Attach { tid, source };
    ptrace(libc::PTRACE_SEIZE, tid, 0, 0).map_err(attach)?;
    ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0).map_err(attach)?;
    let deadline_ns = mono_ns() + STOP_NS_MAX;
    let stop = loop {
        match next_stop() {
            Looked::Stopped(_, stop) => break stop,
            Looked::NoneLeft => return Err(attach(io::Error::from_raw_os_error(libc::ESRCH))),
            Looked::Running if mono_ns() > deadline_ns => return Err(TraceError::Unstoppable { tid }),
            Looked::Running => std::thread::yield_now(),
        }
    };
    let all: io::Result<Vec<Option<Filter>>> = (0..FILTERS_MAX).map(|at| filter(tid, at)).collect();
    let signal = if let Stop::Signal(number) = stop { number } else { 0 };
    // One that was killed meanwhile needs no letting go.
    let _ = ptrace(libc::PTRACE_DETACH, tid, 0, signal as usize);
    Ok(all.map_err(|source| TraceError::Filters { tid, source })?.into_iter().flatten().collect())
}

/// The filter with this number; none when there are not as many.
fn filter(tid: Tid, at: usize) -> io::Result<Option<Filter>> {
    let nothing = std::ptr::null_mut::<libc::sock_filter>();
    // SAFETY: with no place to write to the kernel answers the number of instructions and writes nothing.
    let length = checked_long(unsafe { libc::ptrace(GET_FILTER, tid, at, nothing) });
    let length = match length {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
        other => usize::try_from(other?).map_err(io::Error::other)?,
    };
    let mut filter = vec![libc::sock_filter { code: 0, jt: 0, jf: 0, k: 0 }; length];
    // SAFETY: `filter` has room for as many instructions as the kernel has just said; the target is stopped and gets no other.
    checked_long(unsafe { libc::ptrace(GET_FILTER, tid, at, filter.as_mut_ptr()) })?;
    Ok(Some(Filter(filter)))
}

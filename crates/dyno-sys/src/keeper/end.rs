//! Ending every descendant of this process, whatever it did to get away. Called by the keeper and by wardens, which are
//! subreapers: a process that loses its parent becomes their child and is found again.

use crate::child::{self, Exit};
use crate::clock::mono_ns;
use crate::signal::{self, Signal, SignalFd};
use crate::{Pid, proc, socket};
use std::os::fd::{AsFd, AsRawFd};

/// A killed process ends within microseconds unless the kernel holds it (a dead disk): then waiting longer is in vain.
pub(super) const KILL_NS_MAX: u64 = 5_000_000_000;
/// Orphans arrive without a signal when their parent was no child of ours, so the tree is looked at this often.
pub(super) const LOOK_NS: u64 = 5_000_000;
/// Ancestors to walk up before giving up; a tree this deep is a fork bomb's, met again in the next round.
const DEPTH_MAX: usize = 1_024;

/// Waits for every ended child and hands each to `seen`.
pub(super) fn reap(seen: &mut dyn FnMut(Pid, Exit)) {
    while let Some((pid, exit)) = child::wait_any() {
        seen(pid, exit);
    }
}

/// Kills all descendants, again and again until none is left or `deadline_ns` has come; how many would not end.
pub(super) fn kill_descendants(signals: &SignalFd, deadline_ns: u64, seen: &mut dyn FnMut(Pid, Exit)) -> u64 {
    loop {
        reap(seen);
        if !child::has_children() {
            return 0;
        }
        if mono_ns() >= deadline_ns {
            return descendants().len() as u64;
        }
        descendants().into_iter().for_each(|pid| send(pid, Signal::Kill));
        pause(signals, deadline_ns.min(mono_ns() + LOOK_NS));
    }
}

/// Sleeps until a child ended or `until_ns`.
fn pause(signals: &SignalFd, until_ns: u64) {
    let mut asked = [socket::poll_for(signals.as_fd().as_raw_fd())];
    // Interrupted or not: the caller looks for itself.
    let _ = socket::poll(&mut asked, until_ns);
    while signals.next().is_some() {}
}

/// Everything under this process, itself excepted.
pub(super) fn descendants() -> Vec<Pid> {
    let me = child::this();
    proc::tree(me).into_iter().filter(|&pid| pid != me).collect()
}

/// This process's own children.
pub(super) fn children() -> Vec<Pid> {
    let me = child::this();
    let is_mine = |pid: &Pid| proc::stat(*pid).is_ok_and(|stat| stat.parent == me);
    descendants().into_iter().filter(is_mine).collect()
}

/// Signals `pid` if it is a descendant of ours. The descriptor is opened before the check: if the number was given to
/// a stranger meanwhile, the check sees the stranger; if afterwards, the descriptor still means the dead one.
pub(super) fn send(pid: Pid, signal: Signal) {
    let pidfd = child::pidfd_open(pid);
    if !descends(pid) {
        return;
    }
    // One that ended meanwhile needs no signal. Without pidfds (Linux 5.2, some sandboxes) the number has to do.
    let _ = match &pidfd {
        Ok(pidfd) => child::pidfd_kill(pidfd, signal.number()),
        Err(_) => signal::kill(pid, signal),
    };
}

fn descends(pid: Pid) -> bool {
    let (me, mut at) = (child::this(), pid);
    for _ in 0..DEPTH_MAX {
        match proc::stat(at) {
            Ok(stat) if stat.parent == me => return true,
            Ok(stat) if stat.parent > 1 => at = stat.parent,
            _ => return false,
        }
    }
    false
}

/// Whether waiting on this descriptor showed anything: data, end of file, an end.
pub(super) fn is_ready(fd: impl AsFd) -> bool {
    let mut asked = [socket::poll_for(fd.as_fd().as_raw_fd())];
    socket::poll(&mut asked, 0).is_ok_and(|ready| ready > 0)
}

/// The number behind an error, for the wire.
pub(super) fn number_of(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

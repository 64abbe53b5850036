//! The keeper itself: forked from dyno at the start, it outlives it by as long as cleaning up takes.
//!
//! It forks a warden for each launch, remembers how changes of the host are undone and which folders to remove, and waits for
//! dyno's end. It speaks only when spoken to. It never touches a launch that has a warden: only what a killed warden left behind.

use super::end::{self, KILL_NS_MAX, LOOK_NS};
use super::limits::{CHANGES_MAX, FOLDERS_MAX};
use super::undo::Undo;
use super::wire::{Order, REQUEST_BYTES_MAX, Reply, Request};
use super::{setup, warden};
use crate::clock::mono_ns;
use crate::signal::{self, Signal, SignalFd};
use crate::socket::{self, rights};
use crate::{Pid, child};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// How the keeper ends: all put back, or not.
pub(super) const CLEAN: i32 = 0;
pub(super) const NOT_CLEAN: i32 = 3;
/// It looks around this often when nothing happens: cheap, and finds ends that no signal reported.
const IDLE_NS: u64 = 1_000_000_000;

struct Keeper {
    channel: OwnedFd,
    /// Readable when dyno is gone; none where the kernel has no pidfds. The channel alone would stay open if a process
    /// that dyno forked held a copy of its end.
    dyno: Option<OwnedFd>,
    signals: SignalFd,
    wardens: BTreeSet<Pid>,
    changes: Vec<Change>,
    folders: Vec<PathBuf>,
}

struct Change {
    token: u64,
    steps: Vec<Undo>,
}

// Assertions of this process are those of debug builds: a keeper that panics undoes nothing, and the host comes first.

/// Changes are few, each is known once, and each can be undone.
fn check_changes(changes: &[Change]) {
    let tokens: BTreeSet<u64> = changes.iter().map(|change| change.token).collect();
    debug_assert!(tokens.len() == changes.len(), "a change is remembered twice");
    debug_assert!(changes.len() <= CHANGES_MAX, "more changes than there may be");
    let fault = changes.iter().flat_map(|change| &change.steps).find_map(Undo::fault);
    debug_assert!(fault.is_none(), "a change that cannot be undone: {fault:?}");
}

/// The keeper's whole life, in the forked process; its exit code. `locks` stay open until its end.
pub(super) fn live(channel: OwnedFd, dyno: Pid, locks: &[RawFd]) -> i32 {
    setup::keep_only(locks.iter().copied().chain([channel.as_raw_fd()]).collect());
    signal::block_all();
    let Ok(signals) = begin() else { return NOT_CLEAN };
    let watched = child::pidfd_open(dyno).ok();
    let (wardens, changes, folders) = (BTreeSet::new(), Vec::new(), Vec::new());
    let mut keeper = Keeper { channel, dyno: watched, signals, wardens, changes, folders };
    // Only now is it certain that the descriptor means dyno and no later process of that number.
    if child::parent() == dyno {
        keeper.answer(0, Reply::Ready, &[]);
        keeper.serve();
    }
    keeper.end()
}

fn begin() -> io::Result<SignalFd> {
    child::set_session()?;
    child::set_name(c"dyno-keeper")?;
    child::become_subreaper()?;
    SignalFd::new(&[Signal::Child])
}

impl Keeper {
    /// Until dyno is gone.
    fn serve(&mut self) {
        loop {
            self.sleep();
            self.tend();
            if self.dyno.as_ref().is_some_and(end::is_ready) {
                return;
            }
            match rights::receive(self.channel.as_fd(), REQUEST_BYTES_MAX) {
                Ok(packet) if packet.bytes.is_empty() => return,
                Ok(packet) => match Request::decode(&packet.bytes) {
                    Some((number, request)) => self.handle(number, request, packet.fds),
                    // Only a broken dyno sends what cannot be read; it gets no answer and times out.
                    None => continue,
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                Err(_) => return,
            }
        }
    }

    fn handle(&mut self, number: u64, request: Request, fds: Vec<OwnedFd>) {
        let refused = |errno| Reply::Refused { errno };
        let reply = match request {
            Request::Hold(order) => match self.hold(&order, fds) {
                Ok(channel) => return self.answer(number, Reply::Warden, &[channel]),
                Err(error) => refused(end::number_of(&error)),
            },
            Request::Undo { token, steps } => match self.remember(token, steps) {
                Ok(()) => Reply::Done,
                Err(errno) => refused(errno),
            },
            Request::Forget { token } => {
                self.changes.retain(|change| change.token != token);
                Reply::Done
            }
            Request::Remove { .. } if self.folders.len() >= FOLDERS_MAX => refused(libc::ENOSPC),
            Request::Remove { folder } => {
                let folder = PathBuf::from(OsString::from_vec(folder));
                debug_assert!(folder.is_absolute(), "{} would be another folder here", folder.display());
                self.folders.push(folder);
                Reply::Done
            }
        };
        self.answer(number, reply, &[]);
    }

    /// A change that is known already keeps its place: undoing goes backwards in the order of first changes.
    fn remember(&mut self, token: u64, steps: Vec<Undo>) -> Result<(), i32> {
        let known = self.changes.iter().position(|change| change.token == token);
        match known {
            Some(at) => self.changes[at].steps = steps,
            None if self.changes.len() >= CHANGES_MAX => return Err(libc::ENOSPC),
            None => self.changes.push(Change { token, steps }),
        }
        check_changes(&self.changes);
        Ok(())
    }

    /// Forks a warden; dyno's end of its channel.
    fn hold(&mut self, order: &Order, fds: Vec<OwnedFd>) -> io::Result<OwnedFd> {
        if fds.len() != 1 + order.targets.len() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let (ours, theirs) = socket::pair()?;
        let me = child::this();
        let pid = child::fork(move || warden::live(theirs, me, order, fds))?;
        let is_new = self.wardens.insert(pid);
        debug_assert!(is_new, "warden {pid} is known already, and was never seen to end");
        Ok(ours)
    }

    fn answer(&self, number: u64, reply: Reply, fds: &[OwnedFd]) {
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        // Dyno waits for this one answer, so the channel is never full; one that is closed ends the keeper soon.
        let _ = rights::send(self.channel.as_fd(), &reply.encode(number), &fds);
    }

    /// Takes ended children off the table and ends what a killed warden left: whatever became our child and is none.
    fn tend(&mut self) {
        let wardens = &mut self.wardens;
        end::reap(&mut |pid, _| {
            wardens.remove(&pid);
        });
        for pid in self.strangers() {
            crate::proc::tree(pid).into_iter().rev().for_each(|pid| end::send(pid, Signal::Kill));
        }
    }

    fn strangers(&self) -> Vec<Pid> {
        end::children().into_iter().filter(|pid| !self.wardens.contains(pid)).collect()
    }

    fn sleep(&self) {
        let fds =
            [Some(self.channel.as_fd()), Some(self.signals.as_fd()), self.dyno.as_ref().map(AsFd::as_fd)];
        let mut asked: Vec<_> = fds.iter().flatten().map(|fd| socket::poll_for(fd.as_raw_fd())).collect();
        let ns = if self.strangers().is_empty() { IDLE_NS } else { LOOK_NS };
        // Interrupted or not: the caller looks for itself.
        let _ = socket::poll(&mut asked, mono_ns() + ns);
        while self.signals.next().is_some() {}
    }

    /// Ends everything, undoes every change in reverse order, and tells by the exit code whether that worked. Folders
    /// stay where it did not: a journal in them is then the only word of what a setting was.
    fn end(mut self) -> i32 {
        let left = end::kill_descendants(&self.signals, mono_ns() + KILL_NS_MAX, &mut |_, _| {});
        let mut clean = left == 0;
        while let Some(change) = self.changes.pop() {
            clean = change.steps.iter().rev().fold(clean, |clean, step| step.carry_out() && clean);
        }
        if clean {
            // Dyno may have removed them itself. Links in them are removed and not followed.
            self.folders.iter().for_each(|folder| drop(std::fs::remove_dir_all(folder)));
        }
        if clean { CLEAN } else { NOT_CLEAN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(token: u64, path: &str) -> Change {
        Change { token, steps: vec![Undo::write(path, b"0")] }
    }

    #[test]
    #[should_panic(expected = "a change is remembered twice")]
    fn a_change_is_never_remembered_twice() {
        check_changes(&[change(1, "/proc/sys/a"), change(2, "/proc/sys/b")]);
        check_changes(&[change(1, "/proc/sys/a"), change(1, "/proc/sys/b")]);
    }

    #[test]
    #[should_panic(expected = "a change that cannot be undone")]
    fn a_change_of_a_file_that_is_somewhere_is_never_remembered() {
        check_changes(&[change(1, "sys/a")]);
    }
}

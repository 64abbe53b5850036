//! Starting servers so that none outlives dyno, whatever happens to it (climb: everything started runs under a keeper).
//!
//! ```text
//! dyno ── keeper ─┬─ warden ── server ── its workers
//!    └────────────┼─ warden ── server
//! ```
//! The **keeper** is forked while dyno has one thread. It forks a **warden** per launch, hands dyno a channel to it, and
//! remembers how changes of the host are undone. Both are subreapers: a daemon that left its parent becomes the warden's child, so that a
//! launch is everything under its warden, by the kernel's own account. When dyno is gone (end of file, or its pidfd), the
//! wardens and the keeper kill all that is under them and the keeper undoes the changes. A killed warden takes its
//! server along and the keeper ends the rest; when the keeper is killed the wardens end their launches.
//!
//! Used by the lab for every server, the generator's own included. Nothing here knows what is started.

mod end;
mod error;
mod launch;
mod limits;
mod packet;
mod process;
mod setting_wire;
mod setup;
mod step;
mod undo;
mod warden;
mod wire;

pub use error::KeeperError;
pub use launch::Launch;
pub use limits::{CHANGES_MAX, FOLDERS_MAX, INHERIT_MAX};
pub use undo::Undo;

use crate::Pid;
use crate::child::{self, Exit, Wait};
use crate::clock::mono_ns;
use crate::socket::{self, Ready, rights};
use limits::{HOLD_NS_MAX, RELEASE_NS_MAX};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use wire::{Command, Event, NOTE_BYTES_MAX, REQUEST_BYTES_MAX, Reply, Request};

/// The keeper answers at once; it may have to kill what a dead warden left first.
const ANSWER_NS_MAX: u64 = 5_000_000_000;
/// Beyond what the other side allows itself, so that its own answer comes first.
const MARGIN_NS: u64 = 1_000_000_000;

/// The keeper's handle. Dropping it ends everything it keeps and waits for that, as [`Keeper::close`] does.
#[derive(Debug)]
pub struct Keeper {
    pid: Pid,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once closed.
    channel: Option<OwnedFd>,
    number: u64,
    token: u64,
    launches: BTreeMap<Pid, Launched>,
    /// Launches that ended to the last process; stopping them again is no error.
    ended: BTreeSet<Pid>,
    exits: Vec<(Pid, Exit)>,
}

/// A launch whose warden lives, as far as is known.
#[derive(Debug)]
struct Launched {
    channel: OwnedFd,
    exit_reported: bool,
}

/// A child that exists, whole but for exec: the moment to open perf events on it. It blocks until
/// [`Keeper::release`]; one that is never released is ended by [`Keeper::stop`] or with the keeper.
#[derive(Debug)]
#[must_use = "a held child waits until it is released or stopped"]
pub struct Held {
    pid: Pid,
    program: OsString,
}

/// A remembered change, for [`Keeper::amend`] and [`Keeper::forget`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "without it the change cannot be forgotten"]
pub struct Token(u64);

/// Whether the keeper left the host as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Every process ended, every remembered change was undone.
    Clean,
    /// A process would not end, a change could not be undone, or another program had changed the same setting.
    NotClean,
}

impl Keeper {
    /// Forks the keeper. Only while this process has one thread; refused otherwise.
    pub fn start() -> Result<Keeper, KeeperError> {
        Keeper::start_with(&[])
    }

    /// The same; the keeper keeps `locks` open until its own end. A lock on the open file (flock(2)) that they hold lasts
    /// until everything has ended and every setting is back, also when dyno is killed before.
    pub fn start_with(locks: &[BorrowedFd<'_>]) -> Result<Keeper, KeeperError> {
        let locks: Vec<RawFd> = locks.iter().map(AsRawFd::as_raw_fd).collect();
        let start = |source| KeeperError::Start { source };
        let (ours, theirs) = socket::pair().map_err(start)?;
        let dyno = child::this();
        let pid = child::fork(|| process::live(theirs, dyno, &locks)).map_err(start)?;
        let state = State {
            channel: Some(ours),
            number: 0,
            token: 0,
            launches: BTreeMap::new(),
            ended: BTreeSet::new(),
            exits: Vec::new(),
        };
        let keeper = Keeper { pid, state: Mutex::new(state) };
        let (reply, _) = keeper.state().await_reply("start", 0)?;
        if reply == Reply::Ready { Ok(keeper) } else { Err(KeeperError::Gone) }
    }

    /// The keeper's own process number.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Makes the child and everything about it but the program: user, CPUs, descriptors, folder. Takes a millisecond.
    pub fn hold(&self, launch: &Launch) -> Result<Held, KeeperError> {
        let order = launch::order(launch)?;
        let program = launch.argv.first().cloned().unwrap_or_default();
        let fds: Vec<_> =
            std::iter::once(&launch.output).chain(launch.inherit.iter().map(|pair| &pair.0)).collect();
        let mut state = self.state();
        let (reply, mut fds) = state.ask("fork a warden", &Request::Hold(Box::new(order)), &fds)?;
        let channel = match (reply, fds.pop()) {
            (Reply::Warden, Some(channel)) => channel,
            _ => return Err(KeeperError::Gone),
        };
        let pid = state.await_held(&channel, &program)?;
        state.ended.remove(&pid);
        state.launches.insert(pid, Launched { channel, exit_reported: false });
        state.check();
        Ok(Held { pid, program })
    }

    /// Lets the program start; returns when exec has happened.
    pub fn release(&self, held: Held) -> Result<Pid, KeeperError> {
        let Held { pid, program } = held;
        let mut state = self.state();
        let source = io::Error::from_raw_os_error;
        match state.command(pid, Command::Release, "release", RELEASE_NS_MAX + MARGIN_NS)? {
            Some(Event::Released) => Ok(pid),
            Some(Event::NotRun { errno }) => {
                // That exit is no exit of a program.
                state.give_up(pid);
                Err(KeeperError::Exec { program, source: source(errno) })
            }
            _ => Err(state.gone_or(KeeperError::Died { program })),
        }
    }

    /// Ends the launch whose direct child is `pid`: SIGTERM to it and to every orphan of the launch, SIGKILL to whatever
    /// is left after `grace_ns`. Returns when all are gone. A launch that has ended is no error.
    pub fn stop(&self, pid: Pid, grace_ns: u64) -> Result<(), KeeperError> {
        let mut state = self.state();
        if state.ended.contains(&pid) {
            return Ok(());
        }
        let ns_max = grace_ns.saturating_add(end::KILL_NS_MAX + MARGIN_NS);
        let answer = state.command(pid, Command::Stop { grace_ns }, "stop", ns_max)?;
        state.finish(pid);
        match answer {
            // A warden also ends when its keeper did, and without a word when nothing of the launch was left.
            _ if !state.is_here() => Err(KeeperError::Gone),
            Some(Event::Stopped { left: left @ 1.. }) => Err(KeeperError::Left { pid, left }),
            _ => Ok(()),
        }
    }

    /// How direct children ended, each once, since the last call. Never blocks: while another thread is in a call here,
    /// the answer is empty and the exits come next time.
    pub fn exits(&self) -> Vec<(Pid, Exit)> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Vec::new(),
        };
        state.collect();
        std::mem::take(&mut state.exits)
    }

    /// The keeper will carry out these steps, the last first, if dyno dies. Returns when the keeper knows: only then change
    /// the host.
    pub fn undo_on_death(&self, steps: &[Undo]) -> Result<Token, KeeperError> {
        let mut state = self.state();
        let token = Token(state.token);
        state.token += 1;
        state.remember(&token, steps).map(|()| token)
    }

    /// The keeper will carry out these steps instead. Returns when the keeper knows.
    pub fn amend(&self, token: &Token, steps: &[Undo]) -> Result<(), KeeperError> {
        self.state().remember(token, steps)
    }

    /// The change was undone, or is to stay: the keeper leaves it alone from now on.
    pub fn forget(&self, token: Token) -> Result<(), KeeperError> {
        let mut state = self.state();
        state.check_token(&token);
        state.ask("forget a change", &Request::Forget { token: token.0 }, &[])?;
        Ok(())
    }

    /// The keeper will remove the folder at `path` (absolute) with all that is in it when everything has ended, if every
    /// setting that it remembered is back then. Returns when the keeper knows.
    pub fn remove_at_end(&self, path: &Path) -> Result<(), KeeperError> {
        if !path.is_absolute() {
            let why = format!("{} is no absolute path of a folder", path.display());
            return Err(KeeperError::Invalid { why });
        }
        let folder = path.as_os_str().as_bytes().to_vec();
        self.state().ask("remember a folder", &Request::Remove { folder }, &[])?;
        Ok(())
    }

    /// Ends everything as dyno's death would, and waits until the keeper has done so.
    pub fn close(self) -> Result<Closing, KeeperError> {
        self.end()
    }

    fn end(&self) -> Result<Closing, KeeperError> {
        let mut state = self.state();
        if state.channel.take().is_none() {
            return Err(KeeperError::Gone);
        }
        state.launches.clear();
        state.check();
        await_end(self.pid)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // A caller that needs the outcome calls `close`.
        let _ = self.end();
    }
}

/// The keeper allows itself KILL_NS_MAX; writing settings takes no time.
fn await_end(pid: Pid) -> Result<Closing, KeeperError> {
    if let Ok(pidfd) = child::pidfd_open(pid) {
        let deadline_ns = mono_ns() + end::KILL_NS_MAX + ANSWER_NS_MAX;
        if matches!(socket::wait_readable(&pidfd, deadline_ns), Ok(Ready::TimedOut)) {
            return Err(KeeperError::Late { operation: "close" });
        }
    }
    match child::wait(pid, Wait::Block) {
        Ok(Some(Exit::Code(process::CLEAN))) => Ok(Closing::Clean),
        Ok(Some(Exit::Code(_))) => Ok(Closing::NotClean),
        // Killed, or waited for by somebody else: nobody knows.
        _ => Err(KeeperError::Gone),
    }
}

impl Held {
    /// The child's number, which the program keeps.
    pub fn pid(&self) -> Pid {
        self.pid
    }
}

impl State {
    /// A launch either goes on or has ended, and none goes on without the keeper.
    fn check(&self) {
        let both = self.launches.keys().find(|pid| self.ended.contains(pid));
        assert!(both.is_none(), "launch {both:?} goes on and has ended");
        assert!(
            self.channel.is_some() || self.launches.is_empty(),
            "a launch goes on behind a closed keeper"
        );
    }

    /// Another keeper's token would change what it does not name here.
    fn check_token(&self, token: &Token) {
        assert!(token.0 < self.token, "token {} was never handed out here", token.0);
    }

    fn remember(&mut self, token: &Token, steps: &[Undo]) -> Result<(), KeeperError> {
        self.check_token(token);
        assert!(!steps.is_empty(), "a change is remembered that nothing would undo");
        if let Some(why) = steps.iter().find_map(Undo::fault) {
            return Err(KeeperError::Invalid { why });
        }
        let request = Request::Undo { token: token.0, steps: steps.to_vec() };
        self.ask("remember a change", &request, &[])?;
        Ok(())
    }

    /// One question to the keeper and its answer.
    fn ask(
        &mut self,
        operation: &'static str,
        request: &Request,
        fds: &[&OwnedFd],
    ) -> Result<(Reply, Vec<OwnedFd>), KeeperError> {
        self.number += 1;
        let packet = request.encode(self.number);
        debug_assert!(
            Request::decode(&packet).as_ref() == Some(&(self.number, request.clone())),
            "the keeper would read something else than {request:?}"
        );
        if packet.len() > REQUEST_BYTES_MAX {
            let why = format!("arguments and environment take {} bytes of {REQUEST_BYTES_MAX}", packet.len());
            return Err(KeeperError::Invalid { why });
        }
        debug_assert!(fds.len() <= 1 + INHERIT_MAX, "{} descriptors in a packet", fds.len());
        let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
        let channel = self.channel.as_ref().ok_or(KeeperError::Gone)?;
        match rights::send(channel.as_fd(), &packet, &fds) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(KeeperError::Late { operation });
            }
            Err(_) => return Err(KeeperError::Gone),
        }
        match self.await_reply(operation, self.number)? {
            (Reply::Refused { errno }, _) => {
                Err(KeeperError::Refused { operation, source: io::Error::from_raw_os_error(errno) })
            }
            answer => Ok(answer),
        }
    }

    /// Answers to questions that were given up come late; they are passed over, and their descriptors closed.
    fn await_reply(
        &self,
        operation: &'static str,
        number: u64,
    ) -> Result<(Reply, Vec<OwnedFd>), KeeperError> {
        let channel = self.channel.as_ref().ok_or(KeeperError::Gone)?;
        let deadline_ns = mono_ns() + ANSWER_NS_MAX;
        loop {
            let packet = next_packet(channel, deadline_ns, operation)?;
            let (answered, reply) = Reply::decode(&packet.bytes).ok_or(KeeperError::Gone)?;
            debug_assert!(answered <= number, "answer {answered} came before its question");
            if answered == number {
                return Ok((reply, packet.fds));
            }
        }
    }

    fn await_held(&self, channel: &OwnedFd, program: &OsString) -> Result<Pid, KeeperError> {
        let packet = next_packet(channel, mono_ns() + HOLD_NS_MAX + MARGIN_NS, "hold")?;
        match Event::decode(&packet.bytes) {
            Some(Event::Held { pid }) => Ok(pid),
            Some(Event::NotReady { step, errno }) => {
                let source = io::Error::from_raw_os_error(errno);
                Err(KeeperError::Setup { program: program.clone(), step: step.words(), source })
            }
            _ => Err(self.gone_or(KeeperError::Died { program: program.clone() })),
        }
    }

    /// Tells a warden something and waits for what it answers; exits on the way are kept. `None` when it ended.
    fn command(
        &mut self,
        pid: Pid,
        command: Command,
        operation: &'static str,
        ns_max: u64,
    ) -> Result<Option<Event>, KeeperError> {
        let channel = match self.launches.get(&pid) {
            Some(launched) => &launched.channel,
            None if self.ended.contains(&pid) => return Ok(None),
            None => return Err(KeeperError::Unknown { pid }),
        };
        let deadline_ns = mono_ns().saturating_add(ns_max);
        // A warden that has ended reads no command; what it wrote before is still to be read.
        let _ = rights::send(channel.as_fd(), &command.encode(), &[]);
        loop {
            let packet = match next_packet(&self.launches[&pid].channel, deadline_ns, operation) {
                Ok(packet) => packet,
                Err(KeeperError::Gone) => {
                    self.finish(pid);
                    return Ok(None);
                }
                Err(late) => {
                    self.give_up(pid);
                    return Err(late);
                }
            };
            match Event::decode(&packet.bytes) {
                Some(Event::Exited(exit)) => self.note_exit(pid, exit),
                event => return Ok(event),
            }
        }
    }

    /// Reads what wardens said without being asked.
    fn collect(&mut self) {
        let pids: Vec<Pid> = self.launches.keys().copied().collect();
        for pid in pids {
            while let Some(launched) = self.launches.get(&pid) {
                match rights::receive(launched.channel.as_fd(), NOTE_BYTES_MAX) {
                    Ok(packet) => match Event::decode(&packet.bytes) {
                        Some(Event::Exited(exit)) => self.note_exit(pid, exit),
                        // Nothing else comes unasked; an empty packet is the end.
                        _ => self.finish(pid),
                    },
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => self.finish(pid),
                }
            }
        }
    }

    fn note_exit(&mut self, pid: Pid, exit: Exit) {
        let launched =
            self.launches.get_mut(&pid).expect("its channel, on which this was said, is the launch's");
        let was_reported = std::mem::replace(&mut launched.exit_reported, true);
        assert!(!was_reported, "the exit of {pid} is reported twice");
        self.exits.push((pid, exit));
    }

    /// The launch is over. A warden that ended without reporting its child's exit was killed, and its child with it.
    fn finish(&mut self, pid: Pid) {
        if let Some(Launched { exit_reported: false, .. }) = self.give_up(pid) {
            self.exits.push((pid, Exit::Signal(libc::SIGKILL)));
        }
    }

    /// Closes the channel: the warden then kills what it has, and no exit of it is reported any more.
    fn give_up(&mut self, pid: Pid) -> Option<Launched> {
        self.ended.insert(pid);
        let launched = self.launches.remove(&pid);
        self.check();
        launched
    }

    fn gone_or(&self, error: KeeperError) -> KeeperError {
        if self.is_here() { error } else { KeeperError::Gone }
    }

    /// The keeper never speaks unasked, so anything readable here is its end or a late answer.
    fn is_here(&self) -> bool {
        let Some(channel) = &self.channel else { return false };
        !matches!(rights::receive(channel.as_fd(), NOTE_BYTES_MAX), Ok(packet) if packet.bytes.is_empty())
    }
}

/// The next packet of a channel; [`KeeperError::Gone`] when the other side has ended.
fn next_packet(
    channel: &OwnedFd,
    deadline_ns: u64,
    operation: &'static str,
) -> Result<rights::Packet, KeeperError> {
    match socket::wait_readable(channel, deadline_ns) {
        Ok(Ready::Yes) => {}
        Ok(Ready::TimedOut) => return Err(KeeperError::Late { operation }),
        Err(_) => return Err(KeeperError::Gone),
    }
    match rights::receive(channel.as_fd(), NOTE_BYTES_MAX) {
        Ok(packet) if packet.bytes.is_empty() => Err(KeeperError::Gone),
        Ok(packet) => Ok(packet),
        Err(_) => Err(KeeperError::Gone),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_keeper_is_not_forked_from_a_process_with_threads() {
        let release = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| release.wait());
            let refused = Keeper::start().unwrap_err();
            release.wait();
            assert!(matches!(refused, KeeperError::Start { .. }), "{refused}");
        });
    }

    /// What dyno knows of a keeper, without one.
    fn state() -> (State, OwnedFd) {
        let (ours, theirs) = socket::pair().unwrap();
        let state = State {
            channel: Some(ours),
            number: 0,
            token: 0,
            launches: BTreeMap::new(),
            ended: BTreeSet::new(),
            exits: Vec::new(),
        };
        (state, theirs)
    }

    fn with_launch(state: &mut State, pid: Pid) -> OwnedFd {
        let (channel, warden) = socket::pair().unwrap();
        state.launches.insert(pid, Launched { channel, exit_reported: false });
        warden
    }

    #[test]
    fn a_launch_whose_warden_ended_without_a_word_was_killed() {
        let (mut state, _keeper) = state();
        drop(with_launch(&mut state, 7));
        crate::assert_soon(&vec![(7, Exit::Signal(libc::SIGKILL))], || {
            state.collect();
            state.exits.clone()
        });
        assert!(state.launches.is_empty() && state.ended.contains(&7));
    }

    #[test]
    #[should_panic(expected = "goes on and has ended")]
    fn a_launch_never_goes_on_after_its_end() {
        let (mut state, _keeper) = state();
        let _warden = with_launch(&mut state, 7);
        state.ended.insert(7);
        state.check();
    }

    #[test]
    #[should_panic(expected = "behind a closed keeper")]
    fn no_launch_goes_on_without_its_keeper() {
        let (mut state, _keeper) = state();
        let _warden = with_launch(&mut state, 7);
        state.channel = None;
        state.check();
    }

    #[test]
    #[should_panic(expected = "is reported twice")]
    fn an_exit_is_never_reported_twice() {
        let (mut state, _keeper) = state();
        let _warden = with_launch(&mut state, 7);
        state.note_exit(7, Exit::Code(0));
        state.note_exit(7, Exit::Code(0));
    }

    #[test]
    #[should_panic(expected = "was never handed out here")]
    fn another_keepers_token_changes_nothing_here() {
        let (mut state, _keeper) = state();
        let _ = state.remember(&Token(3), &[Undo::write("/proc/sys/a", b"0")]);
    }

    #[test]
    #[should_panic(expected = "that nothing would undo")]
    fn a_change_without_an_undo_is_never_remembered() {
        let (mut state, _keeper) = state();
        state.token = 1;
        let _ = state.remember(&Token(0), &[]);
    }
}

//! One warden per launch: a process between the keeper and the server, so that everything the server starts, daemons
//! included, belongs to exactly one launch. Forked by the keeper, spoken to by dyno over its own channel.
//!
//! It ends its launch when told to, when dyno is gone (end of file), and when the keeper is gone; it ends itself when
//! nothing of the launch is left. If it is killed, the server dies with it and the keeper ends the rest.

use super::end::{self, KILL_NS_MAX};
use super::limits::{HOLD_NS_MAX, RELEASE_NS_MAX};
use super::setup::{self, Given, NOTE_BYTES};
use super::step::Step;
use super::wire::{Command, Event, NOTE_BYTES_MAX, Order};
use crate::Pid;
use crate::child::{self, Exit};
use crate::clock::mono_ns;
use crate::signal::{Signal, SignalFd};
use crate::socket::{self, Io, Ready, rights};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

/// How often a launch that was asked to end is looked at, for orphans that have to be asked too.
const ASK_NS: u64 = 10_000_000;
/// A look at everybody this often costs nothing and finds an end that no signal reported.
const IDLE_NS: u64 = 1_000_000_000;

struct Warden {
    channel: OwnedFd,
    /// Readable when the keeper is gone; none where the kernel has no pidfds.
    keeper: Option<OwnedFd>,
    signals: SignalFd,
    child: Pid,
    exited: bool,
    go: OwnedFd,
    notes: OwnedFd,
}

/// The warden's whole life; its exit code. `fds` are the output and the inherited ones, in the order's order.
pub(super) fn live(channel: OwnedFd, keeper: Pid, order: &Order, fds: Vec<OwnedFd>) -> i32 {
    let used: Vec<RawFd> = fds.iter().chain([&channel]).map(AsRawFd::as_raw_fd).collect();
    setup::keep_only(used);
    match begin(keeper, order, fds) {
        Ok((child, go, notes, signals, keeper)) => {
            let mut warden = Warden { channel, keeper, signals, child, exited: false, go, notes };
            warden.hold();
            warden.watch()
        }
        Err(error) => {
            let failed = Event::NotReady { step: Step::Ready, errno: end::number_of(&error) };
            // Dyno sees the end of the channel all the same.
            let _ = rights::send(channel.as_fd(), &failed.encode(), &[]);
            1
        }
    }
}

type Begun = (Pid, OwnedFd, OwnedFd, SignalFd, Option<OwnedFd>);

fn begin(keeper: Pid, order: &Order, mut fds: Vec<OwnedFd>) -> io::Result<Begun> {
    child::set_name(c"dyno-warden")?;
    child::become_subreaper()?;
    let watched = child::pidfd_open(keeper).ok();
    if child::parent() != keeper || fds.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    let signals = SignalFd::new(&[Signal::Child])?;
    let ((go, go_writer), (notes_reader, notes)) = (socket::pipe()?, socket::pipe()?);
    let given = Given { output: fds.remove(0), inherit: fds, go, notes };
    let child = child::fork(|| {
        let pipes = given.inherit.iter().chain([&given.output, &given.go, &given.notes]);
        setup::keep_only(pipes.map(AsRawFd::as_raw_fd).collect());
        setup::live(order, &given)
    })?;
    Ok((child, go_writer, notes_reader, signals, watched))
}

impl Warden {
    /// Waits until the child is whole and reports it.
    fn hold(&mut self) {
        let failed = |errno| Event::NotReady { step: Step::Ready, errno };
        let event = match self.note(HOLD_NS_MAX) {
            Some((Step::Ready, _)) => Event::Held { pid: self.child },
            Some((step, errno)) => Event::NotReady { step, errno },
            // End of file without a note: it was killed.
            None if end::is_ready(&self.notes) => failed(libc::ECHILD),
            None => failed(libc::ETIMEDOUT),
        };
        self.tell(event);
    }

    fn watch(&mut self) -> i32 {
        loop {
            self.reap();
            if self.exited && !child::has_children() {
                return 0;
            }
            self.sleep(mono_ns() + IDLE_NS);
            match self.heard() {
                Heard::Nothing => {}
                Heard::Command(Command::Release) => self.release(),
                Heard::Command(Command::Stop { grace_ns }) => return self.stop(grace_ns),
                Heard::End => return self.stop(0),
            }
        }
    }

    fn release(&mut self) {
        self.reap();
        if self.exited {
            // Killed while it was held: dyno learns it from the end of the channel.
            return;
        }
        // A child that ends just now has closed its end; its exit is reported by `reap`.
        let _ = socket::write(&self.go, b"g");
        match self.note(RELEASE_NS_MAX) {
            Some((_, errno)) => self.tell(Event::NotRun { errno }),
            None if end::is_ready(&self.notes) => self.tell(Event::Released),
            None => self.tell(Event::NotRun { errno: libc::ETIMEDOUT }),
        }
    }

    /// Asks, then kills; the exit code says whether all are gone.
    fn stop(&mut self, grace_ns: u64) -> i32 {
        let deadline_ns = mono_ns().saturating_add(grace_ns);
        let mut asked = BTreeSet::new();
        while mono_ns() < deadline_ns && child::has_children() && !self.must_hurry() {
            self.ask(&mut asked);
            self.sleep(deadline_ns.min(mono_ns() + ASK_NS));
            self.reap();
        }
        let (channel, child, exited) = (&self.channel, self.child, &mut self.exited);
        let mut seen = |pid, exit| note_exit(channel, child, exited, pid, exit);
        let left = end::kill_descendants(&self.signals, mono_ns() + KILL_NS_MAX, &mut seen);
        debug_assert!(left > 0 || self.exited, "all have ended, and the direct child was not seen to");
        self.tell(Event::Stopped { left });
        i32::from(left > 0)
    }

    /// SIGTERM goes to those without a parent in the launch: a master ends its workers in its own good order, and a
    /// second signal would cut that short. A process that becomes an orphan later is asked then.
    fn ask(&self, asked: &mut BTreeSet<Pid>) {
        for pid in end::children().into_iter().filter(|&pid| asked.insert(pid)) {
            end::send(pid, Signal::Term);
        }
    }

    /// Anything on the channel now is its end: dyno waits for our answer. Then grace is over.
    fn must_hurry(&self) -> bool {
        end::is_ready(&self.channel) || self.keeper.as_ref().is_some_and(end::is_ready)
    }

    fn heard(&self) -> Heard {
        if self.keeper.as_ref().is_some_and(end::is_ready) {
            return Heard::End;
        }
        match rights::receive(self.channel.as_fd(), NOTE_BYTES_MAX) {
            Ok(packet) => Command::decode(&packet.bytes).map_or(Heard::End, Heard::Command),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Heard::Nothing,
            Err(_) => Heard::End,
        }
    }

    fn reap(&mut self) {
        let (channel, child, exited) = (&self.channel, self.child, &mut self.exited);
        end::reap(&mut |pid, exit| note_exit(channel, child, exited, pid, exit));
    }

    fn sleep(&self, until_ns: u64) {
        let fds =
            [Some(self.channel.as_fd()), Some(self.signals.as_fd()), self.keeper.as_ref().map(AsFd::as_fd)];
        let mut asked: Vec<_> = fds.iter().flatten().map(|fd| socket::poll_for(fd.as_raw_fd())).collect();
        // Interrupted or not: the caller looks for itself.
        let _ = socket::poll(&mut asked, until_ns);
        while self.signals.next().is_some() {}
    }

    fn note(&self, ns_max: u64) -> Option<(Step, i32)> {
        let ready = socket::wait_readable(&self.notes, mono_ns() + ns_max);
        if !matches!(ready, Ok(Ready::Yes)) {
            return None;
        }
        let mut note = [0; NOTE_BYTES];
        match socket::read(&self.notes, &mut note) {
            Io::Done(len) => setup::read_note(&note[..len]),
            _ => None,
        }
    }

    fn tell(&self, event: Event) {
        tell(&self.channel, event);
    }
}

enum Heard {
    Nothing,
    Command(Command),
    End,
}

fn note_exit(channel: &OwnedFd, child: Pid, exited: &mut bool, pid: Pid, exit: Exit) {
    // A number is given again: a later process of it is not the launch's direct child.
    if pid == child && !*exited {
        *exited = true;
        tell(channel, Event::Exited(exit));
    }
}

fn tell(channel: &OwnedFd, event: Event) {
    // Few notes are ever under way, so the channel is never full; one that is closed ends this warden soon.
    let _ = rights::send(channel.as_fd(), &event.encode(), &[]);
}

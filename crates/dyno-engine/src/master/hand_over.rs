//! SIGUSR2: the sockets go to the program at the same path, started anew. Until it says that it serves, and for good if it
//! does not say so in time, this one goes on; then it retires.

use super::handed::{self, Role, VARIABLE};
use super::program::{self, Program};
use super::sockets::Sockets;
use super::successor::{READY, Successor, TOKEN};
use super::{Master, Stopping};
use crate::orders::Order;
use crate::supervisor::{Event, Life};
use dyno_sys::child::{self, Exit};
use dyno_sys::epoll::Interest;
use dyno_sys::exec;
use dyno_sys::signal::{self, Signal};
use dyno_sys::socket::{self, Addr, Io, Ready};
use dyno_sys::{Pid, clock, user};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What its process ends with when it could not become the program.
const NOT_FOUND: i32 = 127;

impl Master<'_> {
    pub(super) fn hand_over(&mut self, on_event: &mut dyn FnMut(Event)) {
        if self.stopping != Stopping::No || self.has_handed_over {
            return;
        }
        if self.program.is_none() {
            return on_event(Event::SignalIgnored { signal: Signal::Usr2 });
        }
        if self.next.is_some() {
            self.asked.hand_over = true;
            return;
        }
        let is_able = self.successor.is_none() && self.current.is_some();
        let started = if is_able { self.start_successor() } else { Err(io::ErrorKind::ResourceBusy.into()) };
        match started {
            Ok(pid) => on_event(Event::HandingOver { pid }),
            Err(error) => on_event(Event::NotHandedOver { why: error.to_string() }),
        }
    }

    fn start_successor(&mut self) -> io::Result<Pid> {
        let Some(program) = &self.program else { return Err(io::ErrorKind::NotFound.into()) };
        program.check(user::current().0)?;
        let (ready, theirs) = socket::pipe()?;
        let is_hangup_ignored = signal::is_ignored(Signal::Hup);
        let pid = child::fork(|| {
            let error = become_program(program, &self.sockets, &theirs, is_hangup_ignored);
            let _ = socket::write(&theirs, error.to_string().as_bytes());
            NOT_FOUND
        })?;
        drop(theirs);
        if let Some(ears) = &self.ears {
            ears.epoll.add(&ready, TOKEN, Interest::READ)?;
        }
        let until_ns = clock::mono_ns().saturating_add(self.setup.config.hand_over_ns);
        self.successor = Some(Successor { pid, until_ns, ready });
        Ok(pid)
    }

    /// Takes in what the successor says, and ends one that says nothing in time.
    pub(super) fn look_at_successor(&mut self, on_event: &mut dyn FnMut(Event)) {
        let Some(successor) = &self.successor else { return };
        let mut word = [0; 512];
        // What it has said counts, however late it is read: one that serves must not be killed.
        let is_late = successor.until_ns <= clock::mono_ns();
        let has_spoken = matches!(socket::wait_readable(&successor.ready, 0), Ok(Ready::Yes));
        match has_spoken.then(|| socket::read(&successor.ready, &mut word)) {
            Some(Io::Done(length)) if word[..length] == *READY => self.give_way(on_event),
            Some(Io::Done(length)) => {
                let why = String::from_utf8_lossy(&word[..length]).into_owned();
                self.not_handed_over(why, on_event);
            }
            _ if is_late => self.not_handed_over("it was not ready in time".to_owned(), on_event),
            Some(_) => {
                // It has closed it unsaid: its death, or the deadline, tells the rest.
                if let Some(ears) = &self.ears {
                    let _ = ears.epoll.remove(&successor.ready);
                }
            }
            None => {}
        }
    }

    pub(super) fn successor_ended(&mut self, exit: Exit, on_event: &mut dyn FnMut(Event)) {
        self.successor = None;
        self.not_handed_over(format!("it ended: {exit}"), on_event);
    }

    fn not_handed_over(&mut self, why: String, on_event: &mut dyn FnMut(Event)) {
        self.end_successor();
        on_event(Event::NotHandedOver { why });
        if self.stopping == Stopping::No {
            self.do_asked(on_event);
        }
    }

    /// The other one serves. Sockets and their files are its own from now on.
    fn give_way(&mut self, on_event: &mut dyn FnMut(Event)) {
        let Some(successor) = self.successor.take() else { return };
        self.has_handed_over = true;
        self.sockets.close();
        // Nobody is replaced any more, and who was to take a dead supervisor's place retires with those who serve.
        self.place.life = Life::Vacant;
        on_event(Event::HandedOver { pid: successor.pid });
        let next = self.next.take().map(|next| next.generation);
        for generation in self.current.take().into_iter().chain(next) {
            generation.order(Order::Retire);
            self.old.push(generation);
        }
    }

    pub(super) fn end_successor(&mut self) {
        if let Some(successor) = self.successor.take() {
            // It may have ended by itself meanwhile; it is waited for in either case.
            let _ = signal::kill(successor.pid, Signal::Kill);
            let _ = child::wait(successor.pid, child::Wait::Block);
        }
    }
}

/// Becomes the program, in a child; comes back only with the reason why not.
fn become_program(
    program: &Program,
    sockets: &Sockets,
    ready: &OwnedFd,
    is_hangup_ignored: bool,
) -> io::Error {
    let mut kept: Vec<BorrowedFd<'_>> = vec![ready.as_fd()];
    let mut told: Vec<(Role, Vec<i32>, &Addr)> = Vec::new();
    for (role, asked, own) in sockets.each() {
        let first = exec::FIRST + kept.len() as i32;
        told.push((role, (first..first + own.len() as i32).collect(), asked));
        kept.extend(own.iter().map(AsFd::as_fd));
    }
    let pid = child::this();
    let set = [(VARIABLE, handed::text(pid, exec::FIRST, &told)), ("WATCHDOG_PID", pid.to_string())];
    let prepared = || -> io::Result<_> {
        let environment = program.environment(&set, &["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"])?;
        Ok((program::path(&program.path)?, program.words()?, environment))
    };
    match prepared() {
        Ok((path, words, environment)) => {
            signal::unblock_all_in_child();
            if is_hangup_ignored {
                signal::ignore_hangup();
            }
            exec::become_program(&path, &words, &environment, &kept)
        }
        Err(error) => error,
    }
}

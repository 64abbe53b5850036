//! The master: the process that `dyno serve` is started as. It holds the sockets, starts generations, and never serves.
//!
//! A generation is a supervisor with its workers, in processes of their own, for one reading of the settings. On SIGHUP the
//! settings are read again and a new generation starts beside the old one; only when it serves the old one retires. Whatever
//! new settings do, they do it to the new generation, and a generation that cannot start changes nothing. On SIGUSR2 the
//! sockets go to a program started anew in the same way (`hand_over`).
//!
//! `dyno serve` calls `run` while it has one thread. Nothing is printed here: what happens is told to a callback, some of it
//! in the process of a generation.

mod generation;
mod hand_over;
mod handed;
mod program;
mod reload;
mod setup;
mod sockets;
mod start;
mod successor;

use crate::config::SECOND_NS;
use crate::error::{EngineError, refused};
use crate::ledger::Ledger;
use crate::orders::{Order, Report};
use crate::sandbox::{self, Sandbox};
use crate::stats::Counters;
use crate::supervisor::{CUT, Drained, Event, ExitReport, FAILED, Life, OK, Place};
use dyno_sys::child::{self, Exit};
use dyno_sys::epoll::{Epoll, Events, Interest, Timeout};
use dyno_sys::signal::{self, Signal, SignalFd};
use dyno_sys::{Pid, clock, proc, tty};
use generation::{Generation, Next};
pub use handed::{Inheritance, VARIABLE};
pub use program::Program;
pub use setup::{Again, Own, Setup};
use sockets::Sockets;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use successor::Successor;

/// A generation that was ordered to end and has not is killed after this: its own end takes as long as the log's writer
/// needs, two seconds at most.
const END_NS_MAX: u64 = 5 * SECOND_NS;

/// Successors and generations have other tokens.
const SIGNALS: u64 = 0;

/// Serves until SIGTERM or SIGINT, then drains; a second signal ends at once. SIGHUP has `again` asked for new settings,
/// SIGUSR2 hands over to `own.program`.
///
/// Call it while the process has one thread: it forks. All signals named here, SIGUSR1 and SIGCHLD are taken over.
///
/// # Errors
/// [`EngineError`] when the server could not start, [`EngineError::Listen`] naming a busy address above all. What a
/// generation could not do has been told as [`Event::NotStarted`] when [`EngineError::NotStarted`] comes.
pub fn run(
    setup: Setup,
    own: Own,
    again: &mut Again<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<ExitReport, EngineError> {
    let mut master = Master::new(setup, own, again)?;
    if master.setup.config.sandbox == Sandbox::On && !sandbox::keeps_files() {
        on_event(Event::FilesOpen);
    }
    let ended = master.serve(on_event);
    // Who has not taken over yet, or no more, has nothing to take away.
    if !master.has_handed_over && master.predecessor.is_none() {
        master.sockets.remove_files();
    }
    ended?;
    let ledger = master.ledger;
    Ok(ExitReport { drained: master.drained, deaths: ledger.deaths(), counts: ledger.counts() })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopping {
    No,
    Draining,
    /// Whoever is there at this moment is killed.
    AtOnce {
        until_ns: u64,
    },
}

/// What was asked for while a generation or a successor was starting.
#[derive(Default)]
struct Asked {
    /// To read the settings once more.
    reload: bool,
    hand_over: bool,
}

/// What the master listens to; a child drops it.
struct Ears {
    epoll: Epoll,
    signals: SignalFd,
}

struct Master<'a> {
    /// What the current generation serves.
    setup: Setup,
    again: &'a mut Again<'a>,
    sockets: Sockets,
    control: Option<OwnedFd>,
    predecessor: Option<OwnedFd>,
    program: Option<Program>,
    ears: Option<Ears>,
    ledger: Ledger,
    /// Counters of generations that have ended, to be used again: shared memory is never given back.
    spare: Vec<Counters>,
    /// The place of the current generation: when one that died is replaced.
    place: Place,
    current: Option<Generation>,
    /// The generation that starts.
    next: Option<Next>,
    /// Those that retire.
    old: Vec<Generation>,
    successor: Option<Successor>,
    has_handed_over: bool,
    /// How many generations there have been.
    generations: u64,
    /// What to do when the generation that starts has done so, or the successor has not.
    asked: Asked,
    /// Whether there was a terminal at the start.
    has_terminal: bool,
    stopping: Stopping,
    drained: Drained,
}

impl<'a> Master<'a> {
    fn new(mut setup: Setup, own: Own, again: &'a mut Again<'_>) -> Result<Master<'a>, EngineError> {
        signal::ignore_sigpipe();
        signal::ignore_sigxfsz();
        // The usual 1,024 descriptors are for programs that use select(2). Where it cannot be raised, workers fit themselves.
        let _ = proc::raise_nofile_to_hard();
        let config = &mut setup.config;
        config.limits.check(config.dials.workers.get())?;
        let Inheritance { sockets: handed, predecessor } = own.inheritance;
        let mut sockets = Sockets::new(std::mem::take(&mut config.inherited), handed)?;
        sockets.prepare(config)?;
        Ok(Master {
            sockets,
            control: config.control.take(),
            predecessor,
            program: own.program,
            setup,
            again,
            ears: Some(ears()?),
            ledger: Ledger::new().map_err(refused("share memory for figures"))?,
            spare: Vec::new(),
            place: Place::vacant(),
            current: None,
            next: None,
            old: Vec::new(),
            successor: None,
            has_handed_over: false,
            generations: 0,
            asked: Asked::default(),
            has_terminal: tty::is_terminal(std::io::stderr()),
            stopping: Stopping::No,
            drained: Drained::Wholly,
        })
    }

    fn serve(&mut self, on_event: &mut dyn FnMut(Event)) -> Result<(), EngineError> {
        self.start(None, on_event)?;
        let mut events = Events::with_capacity(16);
        loop {
            self.listen_once(&mut events, on_event);
            self.hear_reports(on_event);
            self.reap(on_event)?;
            self.look_at_successor(on_event);
            self.replace_due(on_event);
            if let Stopping::AtOnce { until_ns } = self.stopping
                && until_ns <= clock::mono_ns()
            {
                self.all().for_each(|generation| drop(signal::kill(generation.pid, Signal::Kill)));
            }
            let is_over = self.stopping != Stopping::No || self.has_handed_over;
            if is_over && self.all().next().is_none() {
                return Ok(());
            }
        }
    }

    /// Every generation that lives.
    fn all(&self) -> impl Iterator<Item = &Generation> {
        let next = self.next.as_ref().map(|next| &next.generation);
        self.current.iter().chain(next).chain(&self.old)
    }

    /// Sleeps until something happens or is due, and takes signals.
    fn listen_once(&mut self, events: &mut Events, on_event: &mut dyn FnMut(Event)) {
        let timeout = self.next_due();
        let ears = self.ears.as_ref().expect("only children have dropped it");
        if ears.epoll.wait(events, timeout).is_err() {
            return;
        }
        while let Some(signal) = self.ears.as_ref().and_then(|ears| ears.signals.next()) {
            match signal {
                Signal::Term | Signal::Int | Signal::Quit => self.on_stop(on_event),
                // A terminal that is gone takes what was started in it along.
                Signal::Hup if self.has_terminal && !tty::is_terminal(std::io::stderr()) => {
                    self.on_stop(on_event);
                }
                Signal::Hup => self.reload(on_event),
                Signal::Usr1 => self.reopen_logs(),
                Signal::Usr2 => self.hand_over(on_event),
                _ => {}
            }
        }
    }

    /// Each generation opens its logs anew, and tells of it; what the master says itself goes into the error log too.
    fn reopen_logs(&self) {
        self.all().for_each(|generation| drop(signal::kill(generation.pid, Signal::Usr1)));
        // Those of a generation that starts have a descriptor of their own, and are the master's when it has.
        let next = self.next.as_ref().and_then(|next| next.setup.as_ref());
        let setups = [Some(&self.setup), next].into_iter().flatten();
        for errors in setups.filter_map(|setup| setup.config.error_log.as_ref()) {
            if let Some((_, Ok(new))) = errors.open_anew() {
                // The old file goes on being written where that fails, which generations tell of.
                let _ = errors.change(&new);
            }
        }
    }

    fn next_due(&self) -> Timeout {
        let end = match self.stopping {
            Stopping::AtOnce { until_ns } => Some(until_ns),
            _ => None,
        };
        let successor = self.successor.as_ref().map(|successor| successor.until_ns);
        // While one starts another one is not due.
        let replaced = self.place.due_ns().filter(|_| self.next.is_none());
        match [replaced, successor, end].into_iter().flatten().min() {
            None => Timeout::Forever,
            Some(due_ns) => {
                let wait_ms = due_ns.saturating_sub(clock::mono_ns()).div_ceil(1_000_000);
                Timeout::Millis(i32::try_from(wait_ms).unwrap_or(i32::MAX))
            }
        }
    }

    fn on_stop(&mut self, on_event: &mut dyn FnMut(Event)) {
        self.end_successor();
        self.place.life = Life::Vacant;
        if self.stopping != Stopping::No {
            self.stopping = Stopping::AtOnce { until_ns: clock::mono_ns() + END_NS_MAX };
            return self.all().for_each(|generation| generation.order(Order::End));
        }
        self.stopping = Stopping::Draining;
        self.all().for_each(|generation| generation.order(Order::Drain));
        on_event(Event::Draining { within_ns: self.setup.config.drain_ns });
        self.sockets.close();
    }

    fn hear_reports(&mut self, on_event: &mut dyn FnMut(Event)) {
        while let Some(report) = self.next.as_ref().and_then(|next| next.generation.report()) {
            match report {
                // It was told to drain, and will end.
                _ if self.stopping != Stopping::No => {}
                Report::Ready { workers } => self.take_over(workers, on_event),
                Report::Failed(why) => {
                    if let Some(next) = &mut self.next {
                        next.why = Some(why);
                    }
                }
                Report::Alive => {}
            }
        }
        while let Some(report) = self.current.as_ref().and_then(Generation::report) {
            // It attests the generation that serves, and this process with it.
            if report == Report::Alive && self.stopping == Stopping::No {
                on_event(Event::Alive);
            }
        }
        for old in &self.old {
            while old.report().is_some() {}
        }
    }

    fn reap(&mut self, on_event: &mut dyn FnMut(Event)) -> Result<(), EngineError> {
        while let Some((pid, exit)) = child::wait_any() {
            // What it said last is heard first.
            self.hear_reports(on_event);
            if self.successor.as_ref().is_some_and(|successor| successor.pid == pid) {
                self.successor_ended(exit, on_event);
            } else if self.current.as_ref().is_some_and(|current| current.pid == pid) {
                self.current_ended(pid, exit, on_event);
            } else if let Some(next) = self.next.take_if(|next| next.generation.pid == pid) {
                self.next_ended(next, exit, on_event)?;
            } else if let Some(at) = self.old.iter().position(|old| old.pid == pid) {
                let old = self.old.swap_remove(at);
                self.close_books(&old, exit);
                let generation = old.number;
                self.cut_by(exit);
                if self.stopping == Stopping::No {
                    let drained = if exit == Exit::Code(OK) { Drained::Wholly } else { Drained::Cut };
                    on_event(Event::Retired { generation, drained });
                }
            }
        }
        Ok(())
    }

    fn cut_by(&mut self, exit: Exit) {
        if self.stopping != Stopping::No && exit != Exit::Code(OK) {
            self.drained = Drained::Cut;
        }
    }

    /// Writes down what an ended generation has counted, where it could not do so itself: it was killed. Who may still write
    /// there then (a log's writer outlives its supervisor) shares it with nobody else.
    fn close_books(&mut self, generation: &Generation, exit: Exit) {
        let counters = generation.counters;
        match exit {
            Exit::Code(OK | CUT | FAILED) => self.spare.push(counters),
            _ => self.ledger.add(counters.deaths().load(Ordering::Relaxed), &counters.total()),
        }
    }

    /// The generation that serves has ended: by order, or its supervisor died, and its workers with it.
    fn current_ended(&mut self, pid: Pid, exit: Exit, on_event: &mut dyn FnMut(Event)) {
        let current = self.current.take();
        current.iter().for_each(|current| self.close_books(current, exit));
        self.cut_by(exit);
        if self.stopping == Stopping::No {
            let workers = current.map_or(0, |current| current.counters.rows());
            self.ledger.count_deaths_together(workers as u64);
            let replaced_in_ns = self.place.die(pid, clock::mono_ns());
            on_event(Event::SupervisorDied { pid, exit, replaced_in_ns });
        }
    }

    fn replace_due(&mut self, on_event: &mut dyn FnMut(Event)) {
        let is_due = self.place.due_ns().is_some_and(|due_ns| due_ns <= clock::mono_ns());
        if is_due && self.next.is_none() && self.start(None, on_event).is_err() {
            self.put_off();
        }
    }

    /// Nobody serves, and the next try is later.
    fn put_off(&mut self) {
        let until_ns = clock::mono_ns() + crate::supervisor::PAUSE_NS_MAX;
        self.place.life = Life::Waiting { until_ns, old: child::this() };
    }
}

fn ears() -> Result<Ears, EngineError> {
    // A terminal sends SIGQUIT (Ctrl-\) to all of a server's processes: children inherit that it waits to be asked for.
    let mut heard = vec![Signal::Term, Signal::Int, Signal::Quit, Signal::Child, Signal::Usr1, Signal::Usr2];
    // Whoever started it with nohup wants it to outlive the terminal.
    heard.extend(Some(Signal::Hup).filter(|hup| !signal::is_ignored(*hup)));
    let signals = SignalFd::new(&heard).map_err(refused("take signals by descriptor"))?;
    let epoll = Epoll::new().map_err(refused("open an epoll instance"))?;
    epoll.add(&signals, SIGNALS, Interest::READ).map_err(refused("watch for signals"))?;
    Ok(Ears { epoll, signals })
}

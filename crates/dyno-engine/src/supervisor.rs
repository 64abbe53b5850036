//! The supervisor: the parent of worker processes. It binds, starts workers one at a time in CPU order, watches and
//! replaces them, passes orders on, and never serves.
//!
//! `dyno serve` calls `run` while it has one thread. Nothing is printed here: what happens is told to a callback.
//! Workers are forked with what they need and nothing of their siblings; when the supervisor dies they die.

mod fork;

use crate::config::{Config, SECOND_NS};
use crate::control;
use crate::dials::Log;
use crate::error::{EngineError, refused};
use crate::listen;
use crate::log;
use crate::route::Router;
use crate::stats::{Counters, Counts};
use dyno_sys::affinity;
use dyno_sys::child::{self, Exit, Wait};
use dyno_sys::epoll::{Epoll, Events, Interest, Timeout};
use dyno_sys::event::EventFd;
use dyno_sys::shm::Ring;
use dyno_sys::signal::{self, Signal, SignalFd};
use dyno_sys::socket::{self, Addr};
use dyno_sys::{Pid, clock, proc};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A worker that lived less than this died at its start, not at its work.
const SHORT_LIFE_NS: u64 = SECOND_NS / 5;

/// So many short lives in a row are replaced at once; after them the pause doubles from `PAUSE_NS` to `PAUSE_NS_MAX`.
const SHORT_LIVES_FREE: u32 = 3;
const PAUSE_NS: u64 = 10_000_000;
const PAUSE_NS_MAX: u64 = 5 * SECOND_NS;

/// What workers get beyond the time for draining to end in, before they are killed.
const LATE_NS: u64 = 50_000_000;

/// How often a writer that should end is looked at.
const LOOK_NS: u64 = 1_000_000;

/// How often it is looked whether log lines get lost, until they are: soon enough for whoever watches a disk fill up.
const LOST_LOOK_NS: u64 = SECOND_NS;

/// How often lack of memory is looked for and told.
const MEMORY_LOOK_NS: u64 = 60 * SECOND_NS;

const SIGNALS: u64 = 0;
const CONTROL: u64 = 1;

/// What happens while a server runs.
#[derive(Debug)]
pub enum Event {
    /// All workers are ready.
    Listening {
        /// Where, with the ports that the kernel chose.
        addrs: Vec<Addr>,
        /// The workers, in their order.
        pids: Vec<Pid>,
    },
    /// A worker ended without being told to.
    WorkerDied {
        /// Which.
        pid: Pid,
        /// How.
        exit: Exit,
        /// Nanoseconds until its replacement is started.
        replaced_in_ns: u64,
    },
    /// A replacement is ready.
    WorkerReplaced {
        /// The dead one.
        old: Pid,
        /// The new one.
        new: Pid,
    },
    /// A replacement could not be started; it will be tried again.
    WorkerNotReplaced {
        /// The reason.
        why: EngineError,
    },
    /// The process that writes the access log ended; it is replaced at once.
    LogWriterDied {
        /// How.
        exit: Exit,
    },
    /// The access log does not take every line; told once.
    LogLinesLost {
        /// How many were lost when this was seen.
        lines: u64,
    },
    /// Connections hold more than `buffer_bytes_max`; told once a minute while it goes on.
    MemoryShort {
        /// Bodies that were refused since this was told last.
        refused: u64,
        /// Connections that were cut since then.
        cut: u64,
    },
    /// No more connections are accepted; what was accepted is answered.
    Draining,
}

/// How a server ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitReport {
    /// Whether everything that was accepted was answered.
    pub drained: Drained,
    /// Workers that died and were replaced.
    pub deaths: u64,
    /// What all workers counted.
    pub counts: Counts,
}

/// Whether everything that was accepted was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every worker ended on its own within the time given.
    Wholly,
    /// The time was over, or a second signal came: connections were cut.
    Cut,
}

/// Serves until SIGTERM or SIGINT, then drains; a second signal ends at once. `routes` is called in each worker.
///
/// Call it while the process has one thread: it forks. SIGTERM, SIGINT and SIGCHLD are taken over.
///
/// # Errors
/// [`EngineError`] when the server could not start, [`EngineError::Listen`] naming a busy address above all.
pub fn run(
    config: Config,
    routes: &dyn Fn() -> Router,
    on_event: &mut dyn FnMut(Event),
) -> Result<ExitReport, EngineError> {
    let mut supervisor = Supervisor::new(config, routes)?;
    supervisor.start_all()?;
    on_event(Event::Listening { addrs: supervisor.addrs.clone(), pids: supervisor.pids() });
    let drained = supervisor.watch(on_event);
    supervisor.finish();
    Ok(ExitReport { drained, deaths: supervisor.deaths, counts: supervisor.counters.total() })
}

/// A worker's place, whether there is one in it or not.
struct Place {
    listeners: Vec<OwnedFd>,
    life: Life,
    short_lives: u32,
}

enum Life {
    /// `orders` is the supervisor's end of a pipe: closing it tells the worker to drain.
    Running {
        pid: Pid,
        since_ns: u64,
        orders: Option<OwnedFd>,
    },
    Waiting {
        until_ns: u64,
        old: Pid,
    },
    Vacant,
}

/// What was counted when lack of memory was looked for last.
struct MemoryReported {
    looked_ns: u64,
    refused: u64,
    cut: u64,
}

/// The process that empties the rings, and the pipe whose end tells it to finish.
struct Writer {
    pid: Pid,
    stop: OwnedFd,
}

/// What the supervisor listens to; a child drops it.
struct Ears {
    epoll: Epoll,
    signals: SignalFd,
    control: Option<OwnedFd>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopping {
    No,
    Draining { end_ns: u64 },
    AtOnce,
}

struct Supervisor<'r> {
    config: Config,
    routes: &'r dyn Fn() -> Router,
    addrs: Vec<Addr>,
    places: Vec<Place>,
    cpus: Vec<usize>,
    log: Option<OwnedFd>,
    rings: Vec<&'static Ring>,
    writer: Option<Writer>,
    counters: Counters,
    /// Tells workers that one of them is full, or no longer.
    full: Arc<EventFd>,
    ears: Option<Ears>,
    deaths: u64,
    stopping: Stopping,
    drained: Drained,
    /// Whether lost log lines were told of.
    lost_reported: bool,
    memory: MemoryReported,
}

impl<'r> Supervisor<'r> {
    fn new(mut config: Config, routes: &'r dyn Fn() -> Router) -> Result<Supervisor<'r>, EngineError> {
        signal::ignore_sigpipe();
        // The usual 1,024 descriptors are for programs that use select(2). Where it cannot be raised, workers fit themselves.
        let _ = proc::raise_nofile_to_hard();
        let workers = config.dials.workers.get();
        let bound = listen::bind(&config.listen, &config.dials)?;
        let vacant = |listeners| Place { listeners, life: Life::Vacant, short_lives: 0 };
        Ok(Supervisor {
            log: open_log(&config)?,
            rings: rings(&config)?,
            ears: Some(ears(config.control.take())?),
            full: Arc::new(EventFd::new().map_err(refused("make a signal for full workers"))?),
            counters: Counters::new(workers, config.dials.spin.us())
                .map_err(refused("share memory for counters"))?,
            cpus: affinity::allowed().iter().collect(),
            places: bound.by_worker.into_iter().map(vacant).collect(),
            addrs: bound.addrs,
            config,
            routes,
            writer: None,
            deaths: 0,
            stopping: Stopping::No,
            drained: Drained::Wholly,
            lost_reported: false,
            memory: MemoryReported { looked_ns: clock::mono_ns(), refused: 0, cut: 0 },
        })
    }

    fn start_all(&mut self) -> Result<(), EngineError> {
        assert!(self.pids().is_empty(), "workers are started once");
        assert_eq!(self.places.len(), self.config.dials.workers.get(), "each worker has a place");
        let started = self.try_start_all();
        if started.is_err() {
            self.kill_all();
            self.finish();
        }
        started
    }

    fn try_start_all(&mut self) -> Result<(), EngineError> {
        if !self.rings.is_empty() {
            self.start_writer()?;
        }
        (0..self.places.len()).try_for_each(|number| self.start_worker(number).map(|_pid| ()))
    }

    fn pids(&self) -> Vec<Pid> {
        self.places.iter().filter_map(Place::pid).collect()
    }

    fn watch(&mut self, on_event: &mut dyn FnMut(Event)) -> Drained {
        let mut events = Events::with_capacity(8);
        loop {
            self.listen_once(&mut events, on_event);
            self.reap(on_event);
            self.replace_due(on_event);
            self.tell_lost(on_event);
            self.tell_memory(on_event);
            match self.stopping {
                Stopping::No => continue,
                Stopping::Draining { end_ns } if clock::mono_ns() < end_ns => {}
                Stopping::Draining { .. } | Stopping::AtOnce => {
                    self.drained = Drained::Cut;
                    self.kill_all();
                }
            }
            if self.pids().is_empty() {
                return self.drained;
            }
        }
    }

    /// Sleeps until something happens or is due, and takes it in.
    fn listen_once(&mut self, events: &mut Events, on_event: &mut dyn FnMut(Event)) {
        let timeout = self.next_due();
        let ears = self.ears.as_ref().expect("only children have dropped it");
        let Ok(ready) = ears.epoll.wait(events, timeout) else { return };
        let has_control = ready.iter().any(|event| event.token() == CONTROL);
        // Signals are asked for every time: reading none costs a call, and a wake-up is rare.
        while let Some(signal) = self.ears.as_ref().and_then(|ears| ears.signals.next()) {
            if matches!(signal, Signal::Term | Signal::Int) {
                self.on_stop(on_event);
            }
        }
        if has_control {
            self.on_control();
        }
    }

    fn next_due(&self) -> Timeout {
        let replacements = self.places.iter().filter_map(|place| match place.life {
            Life::Waiting { until_ns, .. } => Some(until_ns),
            _ => None,
        });
        let end = match self.stopping {
            Stopping::Draining { end_ns } => Some(end_ns),
            _ => None,
        };
        let minute = Some(self.memory.looked_ns + MEMORY_LOOK_NS);
        let look = (self.log.is_some() && !self.lost_reported).then(|| clock::mono_ns() + LOST_LOOK_NS);
        match replacements.chain(end).chain(look).chain(minute).min() {
            None => Timeout::Forever,
            Some(due_ns) => {
                let wait_ms = due_ns.saturating_sub(clock::mono_ns()).div_ceil(1_000_000);
                Timeout::Millis(i32::try_from(wait_ms).unwrap_or(i32::MAX))
            }
        }
    }

    fn tell_lost(&mut self, on_event: &mut dyn FnMut(Event)) {
        let lines = self.counters.total().log_drops;
        if lines > 0 && !self.lost_reported {
            self.lost_reported = true;
            on_event(Event::LogLinesLost { lines });
        }
    }

    /// Says once a minute what lack of memory has cost.
    fn tell_memory(&mut self, on_event: &mut dyn FnMut(Event)) {
        let now_ns = clock::mono_ns();
        if now_ns < self.memory.looked_ns + MEMORY_LOOK_NS {
            return;
        }
        let Counts { budget_refusals, budget_cuts, .. } = self.counters.total();
        let (refused, cut) = (budget_refusals - self.memory.refused, budget_cuts - self.memory.cut);
        self.memory = MemoryReported { looked_ns: now_ns, refused: budget_refusals, cut: budget_cuts };
        if refused + cut > 0 {
            on_event(Event::MemoryShort { refused, cut });
        }
    }

    fn on_stop(&mut self, on_event: &mut dyn FnMut(Event)) {
        if self.stopping != Stopping::No {
            self.stopping = Stopping::AtOnce;
            return;
        }
        self.stopping = Stopping::Draining { end_ns: clock::mono_ns() + self.config.drain_ns + LATE_NS };
        for place in &mut self.places {
            place.listeners.clear();
            match &mut place.life {
                Life::Running { orders, .. } => *orders = None,
                other => *other = Life::Vacant,
            }
        }
        on_event(Event::Draining);
    }

    fn on_control(&mut self) {
        let Some(ears) = &mut self.ears else { return };
        let Some(socket) = &ears.control else { return };
        if control::serve(socket, &self.counters) == control::Peer::Gone {
            let _ = ears.epoll.remove(socket);
            ears.control = None;
        }
    }

    fn reap(&mut self, on_event: &mut dyn FnMut(Event)) {
        while let Some((pid, exit)) = child::wait_any() {
            if self.writer.as_ref().is_some_and(|writer| writer.pid == pid) {
                self.writer = None;
                on_event(Event::LogWriterDied { exit });
                // It empties the rings from where the dead one stopped. If it cannot start, lines are dropped and counted.
                let _ = self.start_writer();
            } else if let Some(number) = self.places.iter().position(|place| place.pid() == Some(pid)) {
                self.worker_ended(number, pid, exit, on_event);
            }
        }
    }

    fn worker_ended(&mut self, number: usize, pid: Pid, exit: Exit, on_event: &mut dyn FnMut(Event)) {
        let place = &mut self.places[number];
        assert_eq!(place.pid(), Some(pid), "a worker's place is its own");
        if self.stopping != Stopping::No {
            place.life = Life::Vacant;
            if exit != Exit::Code(0) {
                self.drained = Drained::Cut;
            }
            return;
        }
        self.deaths += 1;
        let replaced_in_ns = place.die(pid, clock::mono_ns());
        on_event(Event::WorkerDied { pid, exit, replaced_in_ns });
    }

    fn replace_due(&mut self, on_event: &mut dyn FnMut(Event)) {
        for number in 0..self.places.len() {
            let Life::Waiting { until_ns, old } = self.places[number].life else { continue };
            if until_ns > clock::mono_ns() {
                continue;
            }
            match self.start_worker(number) {
                Ok(new) => on_event(Event::WorkerReplaced { old, new }),
                Err(why) => {
                    let now_ns = clock::mono_ns();
                    self.places[number].life = Life::Waiting { until_ns: now_ns + PAUSE_NS_MAX, old };
                    on_event(Event::WorkerNotReplaced { why });
                }
            }
        }
    }

    fn kill_all(&mut self) {
        for place in &mut self.places {
            if let Some(pid) = place.pid() {
                // It may have ended by itself meanwhile; it is waited for in either case.
                let _ = signal::kill(pid, Signal::Kill);
                let _ = child::wait(pid, Wait::Block);
                place.life = Life::Vacant;
            }
        }
    }

    /// Lets the log writer finish and takes away what lies in the file system.
    fn finish(&mut self) {
        assert!(self.pids().is_empty(), "the log's writer outlives every worker");
        if let Some(Writer { pid, stop }) = self.writer.take() {
            drop(stop);
            let end_ns = clock::mono_ns() + log::WRITER_NS_MAX;
            while matches!(child::wait(pid, Wait::NoHang), Ok(None)) {
                if clock::mono_ns() > end_ns {
                    let _ = signal::kill(pid, Signal::Kill);
                }
                clock::sleep_ns(LOOK_NS);
            }
        }
        for addr in &self.addrs {
            if let Addr::Unix(path) = addr {
                // Somebody else may have removed it: then there is nothing to do.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

impl Place {
    fn pid(&self) -> Option<Pid> {
        match self.life {
            Life::Running { pid, .. } => Some(pid),
            _ => None,
        }
    }

    /// The worker is dead; says in how many nanoseconds it is replaced.
    fn die(&mut self, pid: Pid, now_ns: u64) -> u64 {
        let lived_ns = match self.life {
            Life::Running { since_ns, .. } => now_ns.saturating_sub(since_ns),
            _ => 0,
        };
        self.short_lives = if lived_ns < SHORT_LIFE_NS { self.short_lives + 1 } else { 0 };
        let pause_ns = pause_ns(self.short_lives);
        self.life = Life::Waiting { until_ns: now_ns + pause_ns, old: pid };
        pause_ns
    }
}

/// How long a place stays empty after so many short lives in a row.
fn pause_ns(short_lives: u32) -> u64 {
    match short_lives.checked_sub(SHORT_LIVES_FREE + 1) {
        None => 0,
        Some(doublings) => (PAUSE_NS << doublings.min(10)).min(PAUSE_NS_MAX),
    }
}

fn ears(control: Option<OwnedFd>) -> Result<Ears, EngineError> {
    let signals = SignalFd::new(&[Signal::Term, Signal::Int, Signal::Child])
        .map_err(refused("take signals by descriptor"))?;
    let epoll = Epoll::new().map_err(refused("open an epoll instance"))?;
    epoll.add(&signals, SIGNALS, Interest::READ).map_err(refused("watch for signals"))?;
    if let Some(control) = &control {
        socket::set_nonblocking(control).map_err(refused("use the control socket"))?;
        epoll.add(control, CONTROL, Interest::READ).map_err(refused("watch the control socket"))?;
    }
    Ok(Ears { epoll, signals, control })
}

fn open_log(config: &Config) -> Result<Option<OwnedFd>, EngineError> {
    if config.dials.log == Log::Off {
        return Ok(None);
    }
    let path = config.log_file.clone();
    log::open(path.as_deref()).map(Some).map_err(|source| EngineError::Log { path, source })
}

fn rings(config: &Config) -> Result<Vec<&'static Ring>, EngineError> {
    let count = if config.dials.log == Log::Ring { config.dials.workers.get() } else { 0 };
    (0..count).map(|_| log::ring().map_err(refused("share memory for the log"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_dies_at_its_start_is_replaced_more_and_more_slowly() {
        let pauses: Vec<u64> = (0..16).map(pause_ns).collect();
        assert_eq!(pauses[..6], [0, 0, 0, 0, PAUSE_NS, 2 * PAUSE_NS]);
        assert!(pauses.is_sorted());
        assert_eq!(pauses[15], PAUSE_NS_MAX);
    }

    #[test]
    fn a_worker_that_dies_at_its_work_is_replaced_at_once() {
        let mut place = Place { listeners: Vec::new(), life: Life::Vacant, short_lives: 9 };
        place.life = Life::Running { pid: 7, since_ns: 0, orders: None };
        assert_eq!(place.die(7, SHORT_LIFE_NS), 0);
        assert_eq!(place.short_lives, 0);
    }
}

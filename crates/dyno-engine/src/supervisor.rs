//! The supervisor: the parent of the worker processes of one generation of settings. It starts workers one at a time in CPU
//! order, watches and replaces them, passes orders on, and never serves.
//!
//! The master (`master`) forks it with the sockets that it has bound, and calls `live` in it. Nothing is printed here: what
//! happens is told to a callback. Workers are forked with what they need and nothing of their siblings; when the supervisor
//! dies they die.

mod alive;
mod check;
mod event;
mod fork;
mod images;
mod leave;
mod logs;
mod place;
mod pulse;
mod scraped;
mod supply;
mod tell;
mod writing;

use crate::config::{Config, SECOND_NS};
use crate::control;
use crate::error::{EngineError, refused};
use crate::host;
use crate::hosts::Hosts;
use crate::ledger::Ledger;
use crate::listen;
use crate::meter::Meters;
use crate::orders::Report;
use crate::route::Router;
use crate::stats::{Accepting, Counters, Counts};
pub use check::check;
use dyno_sys::child::{self, Exit, Wait};
use dyno_sys::epoll::{Epoll, Events, Interest, Timeout};
use dyno_sys::event::EventFd;
use dyno_sys::signal::{self, Signal, SignalFd};
use dyno_sys::socket::{self, Addr};
use dyno_sys::{Pid, clock};
pub use event::{Drained, Event};
use images::Images;
pub use logs::LogTrouble;
use logs::Logs;
pub(crate) use place::{CUT, FAILED, Life, OK, PAUSE_NS_MAX, Place};
use pulse::Pulse;
use scraped::Scraped;
use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What workers get beyond the time for draining to end in, before they are killed.
const LATE_NS: u64 = 50_000_000;

/// How often lack of memory is looked for, and what goes on being short is told.
const MEMORY_LOOK_NS: u64 = 60 * SECOND_NS;

const SIGNALS: u64 = 0;
const CONTROL: u64 = 1;
const FULL: u64 = 2;
const SUPPLY: u64 = 3;
const MASTER: u64 = 4;

/// What the process that serves metrics calls itself, so that it can be found among its siblings.
///
/// ```
/// # use dyno_engine::*;
/// assert!(!supervisor::METRICS_NAME.is_empty());
/// ```
pub const METRICS_NAME: &CStr = scraped::NAME;

/// How a server ended.
///
/// ```no_run
/// # use dyno_engine::*;
/// let config = Config { listen: vec!["127.0.0.1:8080".parse()?], ..Config::default() };
/// let setup = master::Setup { config, routes: Box::new(Router::new) };
/// let mut again = || Err("nothing is read again".to_owned());
/// let report = master::run(setup, master::Own::default(), &mut again, &mut |_event| {})?;
/// println!("{} requests, {} deaths", report.counts.requests, report.deaths);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitReport {
    /// Whether everything that was accepted was answered.
    pub drained: Drained,
    /// Workers that died and were replaced.
    pub deaths: u64,
    /// What all workers counted.
    pub counts: Counts,
}

/// What the master gives a supervisor, in the process that it has forked for it.
pub(crate) struct Given {
    pub(crate) config: Config,
    /// Where is listened, with the ports that the kernel chose, and the listeners of each worker.
    pub(crate) addrs: Vec<Addr>,
    pub(crate) by_worker: Vec<Vec<OwnedFd>>,
    /// Where metrics are served.
    pub(crate) metrics: Option<(Addr, OwnedFd)>,
    /// Which of the first worker's listeners are of a group that is steered by CPU.
    pub(crate) steered: Vec<usize>,
    /// Where orders come in and reports go out.
    pub(crate) master: OwnedFd,
    pub(crate) ledger: Ledger,
    /// What its workers count in. It is the master's, so that it outlives a supervisor that is killed.
    pub(crate) counters: Counters,
}

/// A supervisor's life: serves until it is ordered to retire or to drain. `routes` is called in each worker. The answer is
/// the exit status of its process.
pub(crate) fn live(given: Given, routes: &dyn Fn() -> Router, on_event: &mut dyn FnMut(Event)) -> i32 {
    let (ledger, master) = (given.ledger, given.master.try_clone());
    let followed = child::die_with_parent().map_err(refused("follow the master"));
    let mut supervisor = match followed.and_then(|()| Supervisor::new(given, routes)) {
        Ok(supervisor) => supervisor,
        Err(error) => {
            let report = Report::Failed(crate::error::chain(&error));
            on_event(Event::NotStarted { error });
            let _ = master.map(|master| report.send(&master));
            return FAILED;
        }
    };
    // From here on there are children, and what stands here only they could not let go of.
    drop(master);
    match serve(&mut supervisor, on_event) {
        Ok(report) => {
            ledger.add(report.deaths, &report.counts);
            if report.drained == Drained::Wholly { OK } else { CUT }
        }
        Err(error) => {
            let report = Report::Failed(crate::error::chain(&error));
            on_event(Event::NotStarted { error });
            supervisor.report(&report);
            FAILED
        }
    }
}

fn serve(
    supervisor: &mut Supervisor<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<ExitReport, EngineError> {
    supervisor.start_all()?;
    let (asked, fitting) = (supervisor.config.limits.connections_max, supervisor.fitting);
    if fitting < asked {
        on_event(Event::Fitted { asked, fitting });
    }
    supervisor.tell_supply(on_event);
    on_event(Event::Listening { addrs: supervisor.addrs.clone(), pids: supervisor.pids() });
    if let Some(scraped) = &supervisor.scraped {
        on_event(Event::Metrics { addr: scraped.addr.clone() });
    }
    supervisor.report(&Report::Ready { workers: supervisor.places.len() });
    let drained = supervisor.watch(on_event);
    supervisor.finish();
    let deaths = supervisor.counters.deaths().load(Ordering::Relaxed);
    Ok(ExitReport { drained, deaths, counts: supervisor.counters.total() })
}

/// What was counted when lack of memory was looked for last.
struct MemoryReported {
    looked_ns: u64,
    refused: u64,
    cut: u64,
}

/// What the supervisor listens to; a child drops it.
struct Ears {
    epoll: Epoll,
    signals: SignalFd,
    master: OwnedFd,
    control: Option<OwnedFd>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopping {
    No,
    /// Another generation serves; clients have time to come once more.
    Retiring {
        end_ns: u64,
    },
    Draining {
        end_ns: u64,
    },
    AtOnce,
}

struct Supervisor<'r> {
    config: Config,
    routes: &'r dyn Fn() -> Router,
    addrs: Vec<Addr>,
    /// The listeners of each worker, for as long as workers may be started.
    listeners: Vec<Vec<OwnedFd>>,
    /// Which of the first worker's are of a group that is steered by CPU.
    steered: Vec<usize>,
    /// Until all workers are ready each of them waits for the end of this pipe: who cannot start takes no connection from
    /// who serves.
    held: Option<(OwnedFd, OwnedFd)>,
    /// The workers' places.
    places: Vec<Place>,
    /// How many connections each worker can hold, by what they have said: it knows what else it holds open.
    fitting: usize,
    cpus: Vec<usize>,
    logs: Logs,
    /// The place of the process that writes the log from the rings.
    writer: Place,
    /// What is served of folders.
    images: Images,
    /// What is said of hosts.
    hosts: Option<Arc<Hosts>>,
    counters: Counters,
    ledger: Ledger,
    /// The process that serves metrics, where one is asked for.
    scraped: Option<Scraped>,
    /// Whether workers get on, where metrics are served.
    pulse: Option<Pulse>,
    /// Tells workers that one of them is full, or no longer.
    full: Arc<EventFd>,
    /// When it was said last that workers are full.
    full_told_ns: Option<u64>,
    /// When it is said next that the supervisor is alive.
    alive_due_ns: Option<u64>,
    ears: Option<Ears>,
    stopping: Stopping,
    drained: Drained,
    memory: MemoryReported,
}

impl<'r> Supervisor<'r> {
    fn new(given: Given, routes: &'r dyn Fn() -> Router) -> Result<Supervisor<'r>, EngineError> {
        let Given { mut config, addrs, by_worker, metrics, steered, master, ledger, counters } = given;
        let workers = config.dials.workers.get();
        let full = Arc::new(EventFd::new().map_err(refused("make a signal for full workers"))?);
        let (mounts, hosts) =
            host::prepare(std::mem::take(&mut config.content), std::mem::take(&mut config.hosts))?;
        let images = Images::new(mounts);
        Ok(Supervisor {
            logs: Logs::open(&config)?,
            pulse: metrics.is_some().then(|| Pulse::new(workers)),
            scraped: Scraped::new(metrics, workers, ledger)?,
            ears: Some(ears(config.control.take(), master, &full)?),
            full,
            full_told_ns: None,
            alive_due_ns: config.alive_ns.map(|_| clock::mono_ns()),
            counters,
            ledger,
            cpus: listen::cpus(),
            fitting: config.limits.connections_max,
            places: by_worker.iter().map(|_| Place::vacant()).collect(),
            listeners: by_worker,
            steered,
            held: Some(socket::pipe().map_err(refused("open a pipe"))?),
            addrs,
            config,
            routes,
            writer: Place::vacant(),
            images,
            hosts,
            stopping: Stopping::No,
            drained: Drained::Wholly,
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
        if self.logs.has_writer() {
            self.start_writer()?;
        }
        self.start_supply()?;
        (0..self.places.len()).try_for_each(|number| self.start_worker(number).map(|_pid| ()))?;
        self.start_scraped()?;
        self.begin()
    }

    /// All workers are ready: what was only bound listens from now on, and they accept.
    fn begin(&mut self) -> Result<(), EngineError> {
        listen::begin(&self.listeners)?;
        for first in &self.steered {
            listen::steer(&self.listeners[0][*first], &self.config.dials, &self.cpus)?;
        }
        self.held = None;
        Ok(())
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
            self.tell_log(on_event);
            self.tell_memory(on_event);
            self.tell_full(on_event);
            self.look_at_workers(on_event);
            self.tell_alive();
            match self.stopping {
                Stopping::No => continue,
                Stopping::Retiring { end_ns } | Stopping::Draining { end_ns }
                    if clock::mono_ns() < end_ns => {}
                // Who asked for metrics has had its time too.
                Stopping::Retiring { .. } if self.pids().is_empty() => return self.drained,
                Stopping::Retiring { .. } | Stopping::Draining { .. } | Stopping::AtOnce => {
                    self.drained = Drained::Cut;
                    self.kill_all();
                }
            }
            if self.pids().is_empty() && !self.answers_for_metrics() {
                return self.drained;
            }
        }
    }

    /// Whether somebody who asked for metrics may be owed an answer, though another generation's process serves them by now.
    fn answers_for_metrics(&self) -> bool {
        let is_there = self.scraped.as_ref().is_some_and(|scraped| scraped.place.pid().is_some());
        is_there && matches!(self.stopping, Stopping::Retiring { .. })
    }

    /// Sleeps until something happens or is due, and takes it in.
    fn listen_once(&mut self, events: &mut Events, on_event: &mut dyn FnMut(Event)) {
        let timeout = self.next_due();
        let ears = self.ears.as_ref().expect("only children have dropped it");
        let Ok(ready) = ears.epoll.wait(events, timeout) else { return };
        let has_control = ready.iter().any(|event| event.token() == CONTROL);
        let has_supply = ready.iter().any(|event| event.token() == SUPPLY);
        // Signals are asked for every time: reading none costs a call, and a wake-up is rare.
        while let Some(signal) = self.ears.as_ref().and_then(|ears| ears.signals.next()) {
            if signal == Signal::Usr1 {
                self.reopen_logs(signal, on_event);
            }
        }
        while let Some(order) = self.order() {
            self.on_order(order);
        }
        if has_control {
            self.on_control();
        }
        if has_supply {
            self.on_supply(on_event);
        }
    }

    fn next_due(&self) -> Timeout {
        let scraped = self.scraped.as_ref().map(|scraped| &scraped.place);
        let helpers = [&self.writer, &self.images.builder].into_iter().chain(scraped);
        let replacements = self.places.iter().chain(helpers).filter_map(Place::due_ns);
        let end = match self.stopping {
            Stopping::Retiring { end_ns } | Stopping::Draining { end_ns } => Some(end_ns),
            Stopping::No | Stopping::AtOnce => None,
        };
        let minute = Some(self.memory.looked_ns + MEMORY_LOOK_NS);
        let looks = self.logs.look_due_ns().into_iter().chain(self.pulse.as_ref().map(Pulse::due_ns));
        match replacements.chain(end).chain(looks).chain(minute).chain(self.alive_due_ns).min() {
            None => Timeout::Forever,
            Some(due_ns) => {
                let wait_ms = due_ns.saturating_sub(clock::mono_ns()).div_ceil(1_000_000);
                Timeout::Millis(i32::try_from(wait_ms).unwrap_or(i32::MAX))
            }
        }
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
            if self.writer.pid() == Some(pid) {
                let replaced_in_ns = self.writer.die(pid, clock::mono_ns());
                on_event(Event::LogWriterDied { exit, replaced_in_ns });
            } else if self.images.builder.pid() == Some(pid) {
                let replaced_in_ns = self.images.builder.die(pid, clock::mono_ns());
                on_event(Event::BuilderDied { exit, replaced_in_ns });
            } else if let Some(scraped) = self.scraped.as_mut().filter(|scraped| scraped.is(pid)) {
                if scraped.is_retired() {
                    scraped.place.life = Life::Vacant;
                    continue;
                }
                let replaced_in_ns = scraped.place.die(pid, clock::mono_ns());
                on_event(Event::MetricsDied { exit, replaced_in_ns });
            } else if let Some(number) = self.places.iter().position(|place| place.pid() == Some(pid)) {
                self.worker_ended(number, pid, exit, on_event);
            }
        }
    }

    fn worker_ended(&mut self, number: usize, pid: Pid, exit: Exit, on_event: &mut dyn FnMut(Event)) {
        let place = &mut self.places[number];
        assert_eq!(place.pid(), Some(pid), "a worker's place is its own");
        if let Some(scraped) = &self.scraped {
            scraped.meters.set_pid(number, None);
        }
        if self.stopping != Stopping::No {
            place.life = Life::Vacant;
            if exit != Exit::Code(0) {
                self.drained = Drained::Cut;
            }
            return;
        }
        let replaced_in_ns = place.die(pid, clock::mono_ns());
        // Until it is replaced the others accept what the kernel gives to its listeners.
        self.counters.set_accepting(number, Accepting::Leaving);
        self.full.signal();
        if matches!(exit, Exit::Code(OK | CUT)) {
            // Somebody sent it a SIGTERM of its own.
            return on_event(Event::WorkerDrained { pid });
        }
        self.counters.deaths().fetch_add(1, Ordering::Relaxed);
        self.tell_scraped(|meters| meters.count_restart());
        on_event(Event::WorkerDied { pid, exit, replaced_in_ns });
    }

    fn replace_due(&mut self, on_event: &mut dyn FnMut(Event)) {
        if self.writer.due_ns().is_some_and(|due_ns| due_ns <= clock::mono_ns()) {
            // It empties the rings from where the dead one stopped. While none can start, lines are dropped and counted.
            if let (Err(_), Life::Waiting { until_ns, .. }) = (self.start_writer(), &mut self.writer.life) {
                *until_ns = clock::mono_ns() + PAUSE_NS_MAX;
            }
        }
        if self.images.builder.due_ns().is_some_and(|due_ns| due_ns <= clock::mono_ns())
            && let (Err(_), Life::Waiting { until_ns, .. }) =
                (self.start_builder(), &mut self.images.builder.life)
        {
            *until_ns = clock::mono_ns() + PAUSE_NS_MAX;
        }
        self.replace_scraped();
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
                    // It may have said that it accepts before it could not.
                    self.counters.set_accepting(number, Accepting::Leaving);
                    self.full.signal();
                    on_event(Event::WorkerNotReplaced { why });
                }
            }
        }
    }

    fn replace_scraped(&mut self) {
        let due_ns = self.scraped.as_ref().and_then(|scraped| scraped.place.due_ns());
        if due_ns.is_some_and(|due_ns| due_ns <= clock::mono_ns())
            && self.start_scraped().is_err()
            && let Some(scraped) = &mut self.scraped
        {
            scraped.put_off();
        }
    }

    fn tell_scraped(&self, tell: impl FnOnce(Meters)) {
        if let Some(scraped) = &self.scraped {
            tell(scraped.meters);
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

    /// Lets the log's writer finish and takes away what lies in the file system.
    fn finish(&mut self) {
        assert!(self.pids().is_empty(), "the log's writer outlives every worker");
        self.end_supply();
        self.end_writer();
        if let Some(scraped) = self.scraped.take() {
            scraped.end();
        }
    }
}

impl Ears {
    fn watch_supply(&self, channel: &OwnedFd) -> io::Result<()> {
        self.epoll.add(channel, SUPPLY, Interest::READ)
    }
}

fn ears(control: Option<OwnedFd>, master: OwnedFd, full: &EventFd) -> Result<Ears, EngineError> {
    // What ends a server or changes its settings is the master's to hear. Ctrl-C comes to the whole terminal group, and stays
    // blocked here, as the master has it.
    let signals =
        SignalFd::new(&[Signal::Child, Signal::Usr1]).map_err(refused("take signals by descriptor"))?;
    let epoll = Epoll::new().map_err(refused("open an epoll instance"))?;
    epoll.add(&signals, SIGNALS, Interest::READ).map_err(refused("watch for signals"))?;
    epoll.add(&master, MASTER, Interest::READ).map_err(refused("watch for orders"))?;
    epoll.add(full, FULL, Interest::READ.edge()).map_err(refused("watch for full workers"))?;
    if let Some(control) = &control {
        socket::set_nonblocking(control).map_err(refused("use the control socket"))?;
        epoll.add(control, CONTROL, Interest::READ).map_err(refused("watch the control socket"))?;
    }
    Ok(Ears { epoll, signals, master, control })
}

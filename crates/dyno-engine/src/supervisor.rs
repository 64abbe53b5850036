//! The supervisor: the parent of worker processes. It binds, starts workers one at a time in CPU order, watches and
//! replaces them, passes orders on, and never serves.
//!
//! `dyno serve` calls `run` while it has one thread. Nothing is printed here: what happens is told to a callback.
//! Workers are forked with what they need and nothing of their siblings; when the supervisor dies they die.

mod check;
mod fork;
mod images;
mod logs;
mod place;
mod scraped;
mod supply;
mod writing;

use crate::config::{Config, SECOND_NS};
use crate::control;
use crate::dials::Reuseport;
use crate::error::{EngineError, refused};
use crate::host;
use crate::hosts::Hosts;
use crate::listen::{self, SocketFile};
use crate::meter::Meters;
use crate::route::Router;
use crate::stats::{Accepting, Counters, Counts, RunsIn};
use crate::worker::connections_max;
pub use check::check;
use dyno_sys::affinity;
use dyno_sys::child::{self, Exit, Wait};
use dyno_sys::epoll::{Epoll, Events, Interest, Timeout};
use dyno_sys::event::EventFd;
use dyno_sys::signal::{self, Signal, SignalFd};
use dyno_sys::socket::{self, Addr};
use dyno_sys::{Pid, clock, proc};
use images::Images;
pub use logs::LogTrouble;
use logs::Logs;
use place::{CUT, Life, OK, PAUSE_NS_MAX, Place};
use scraped::Scraped;
use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// What workers get beyond the time for draining to end in, before they are killed.
const LATE_NS: u64 = 50_000_000;

/// How often lack of memory is looked for, and what goes on being short is told.
const MEMORY_LOOK_NS: u64 = 60 * SECOND_NS;

const SIGNALS: u64 = 0;
const CONTROL: u64 = 1;
const FULL: u64 = 2;
const SUPPLY: u64 = 3;

/// What the process that serves metrics calls itself, so that it can be found among its siblings.
///
/// ```
/// # use dyno_engine::*;
/// assert!(!supervisor::METRICS_NAME.is_empty());
/// ```
pub const METRICS_NAME: &CStr = scraped::NAME;

/// What happens while a server runs.
///
/// ```
/// # use dyno_engine::*;
/// use supervisor::Event;
///
/// fn tell(event: Event) {
///     if let Event::WorkerDied { pid, exit, .. } = event {
///         eprintln!("worker {pid} died ({exit})");
///     }
/// }
/// tell(Event::Draining);
/// ```
#[derive(Debug)]
pub enum Event {
    /// All workers are ready.
    Listening {
        /// Where, with the ports that the kernel chose.
        addrs: Vec<Addr>,
        /// The workers, in their order.
        pids: Vec<Pid>,
    },
    /// The process for metrics listens; told after `Listening`.
    Metrics {
        /// Where, with the port that the kernel chose.
        addr: Addr,
    },
    /// The process for metrics ended; it is replaced.
    MetricsDied {
        /// How.
        exit: Exit,
        /// How soon it is replaced; 0 unless it keeps dying.
        replaced_in_ns: u64,
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
    /// A worker was told alone to drain, and did.
    WorkerDrained {
        /// Which.
        pid: Pid,
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
    /// The process that writes the access log ended; it is replaced.
    LogWriterDied {
        /// How.
        exit: Exit,
        /// How soon it is replaced; 0 unless it keeps dying.
        replaced_in_ns: u64,
    },
    /// A folder was read, before anything was served.
    Content {
        /// Which.
        folder: PathBuf,
        /// How many files of it are served.
        files: usize,
        /// How many could not be read.
        unread: usize,
    },
    /// The process that reads the folders ended; it is replaced, and what was read goes on being served.
    BuilderDied {
        /// How.
        exit: Exit,
        /// How soon it is replaced; 0 unless it keeps dying.
        replaced_in_ns: u64,
    },
    /// A folder cannot be read any more; what was read of it goes on being served.
    ContentStale {
        /// The reason.
        why: String,
    },
    /// A worker can hold fewer connections than it was asked to: descriptors are limited.
    Fitted {
        /// How many were asked for.
        asked: usize,
        /// How many a worker can hold.
        fitting: usize,
    },
    /// Workers accept no more: they hold as many connections as they can. Told once a minute while it goes on.
    Full {
        /// How many workers.
        workers: usize,
    },
    /// The supervisor is alive; told every `alive_ns`.
    Alive,
    /// A signal came that means nothing here.
    SignalIgnored {
        /// Which.
        signal: Signal,
    },
    /// The access log does not take every line; told once, until [`Event::LogRecovered`].
    LogTrouble {
        /// What is wrong with it.
        why: LogTrouble,
    },
    /// The access log takes every line again.
    LogRecovered {
        /// How many were lost since it did not.
        lost: u64,
    },
    /// A log was opened anew, as SIGUSR1 asks for; it is written there from now on.
    LogReopened {
        /// Where.
        path: PathBuf,
    },
    /// A log could not be opened anew; the file that was open goes on being written.
    LogNotReopened {
        /// The reason.
        why: EngineError,
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
///
/// ```no_run
/// # use dyno_engine::*;
/// let config = Config { listen: vec!["127.0.0.1:8080".parse()?], ..Config::default() };
/// let report = supervisor::run(config, &Router::new, &mut |_event| {})?;
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

/// Whether everything that was accepted was answered.
///
/// ```
/// # use dyno_engine::*;
/// let running = Server::new().listen("127.0.0.1:0").start()?;
/// match running.stop() {
///     Drained::Wholly => {}
///     Drained::Cut => eprintln!("connections were cut"),
/// }
/// # Ok::<(), EngineError>(())
/// ```
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
/// ```no_run
/// # use dyno_engine::*;
/// let config = Config { listen: vec!["127.0.0.1:8080".parse()?], ..Config::default() };
/// let routes = || {
///     let mut router = Router::new();
///     let added = router.route(Method::Get, "/", |_request, reply| reply.text("Hello!\n"));
///     added.expect("the pattern is a path");
///     router
/// };
/// supervisor::run(config, &routes, &mut |event| eprintln!("{event:?}"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    let asked = supervisor.config.limits.connections_max;
    let fitting = connections_max(&supervisor.config.limits, &supervisor.config.dials, RunsIn::Process);
    if fitting < asked {
        on_event(Event::Fitted { asked, fitting });
    }
    supervisor.tell_supply(on_event);
    on_event(Event::Listening { addrs: supervisor.addrs.clone(), pids: supervisor.pids() });
    if let Some(scraped) = &supervisor.scraped {
        on_event(Event::Metrics { addr: scraped.addr.clone() });
    }
    let drained = supervisor.watch(on_event);
    supervisor.finish();
    Ok(ExitReport { drained, deaths: supervisor.deaths, counts: supervisor.counters.total() })
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
    files: Vec<SocketFile>,
    /// The listeners of each worker, for as long as workers may be started.
    listeners: Vec<Vec<OwnedFd>>,
    /// The workers' places.
    places: Vec<Place>,
    cpus: Vec<usize>,
    logs: Logs,
    /// The place of the process that writes the log from the rings.
    writer: Place,
    /// What is served of folders.
    images: Images,
    /// What is said of hosts.
    hosts: Option<Arc<Hosts>>,
    counters: Counters,
    /// The process that serves metrics, where one is asked for.
    scraped: Option<Scraped>,
    /// Tells workers that one of them is full, or no longer.
    full: Arc<EventFd>,
    /// When it was said last that workers are full.
    full_told_ns: Option<u64>,
    /// When it is said next that the supervisor is alive.
    alive_due_ns: Option<u64>,
    ears: Option<Ears>,
    deaths: u64,
    stopping: Stopping,
    drained: Drained,
    memory: MemoryReported,
}

impl<'r> Supervisor<'r> {
    fn new(mut config: Config, routes: &'r dyn Fn() -> Router) -> Result<Supervisor<'r>, EngineError> {
        signal::ignore_sigpipe();
        signal::ignore_sigxfsz();
        // The usual 1,024 descriptors are for programs that use select(2). Where it cannot be raised, workers fit themselves.
        let _ = proc::raise_nofile_to_hard();
        let workers = config.dials.workers.get();
        config.limits.check(workers)?;
        let full = Arc::new(EventFd::new().map_err(refused("make a signal for full workers"))?);
        let inherited = std::mem::take(&mut config.inherited);
        let bound = if inherited.is_empty() {
            listen::bind(&config.listen, &config.dials, config.socket_mode)?
        } else {
            // There is one socket of each, whatever there could have been.
            config.dials.reuseport = Reuseport::Off;
            listen::adopt(inherited, workers)?
        };
        let (mounts, hosts) =
            host::prepare(std::mem::take(&mut config.content), std::mem::take(&mut config.hosts))?;
        let images = Images::new(mounts);
        Ok(Supervisor {
            logs: Logs::open(&config)?,
            scraped: Scraped::new(&config)?,
            ears: Some(ears(config.control.take(), &full)?),
            full,
            full_told_ns: None,
            alive_due_ns: config.alive_ns.map(|_| clock::mono_ns()),
            counters: Counters::new(workers, config.dials.spin.us())
                .map_err(refused("share memory for counters"))?,
            cpus: affinity::allowed().iter().collect(),
            places: bound.by_worker.iter().map(|_| Place::vacant()).collect(),
            listeners: bound.by_worker,
            addrs: bound.addrs,
            files: bound.files,
            config,
            routes,
            writer: Place::vacant(),
            images,
            hosts,
            deaths: 0,
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
        self.start_scraped()
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
            self.tell_alive(on_event);
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
        let has_supply = ready.iter().any(|event| event.token() == SUPPLY);
        // Signals are asked for every time: reading none costs a call, and a wake-up is rare.
        while let Some(signal) = self.ears.as_ref().and_then(|ears| ears.signals.next()) {
            match signal {
                Signal::Term | Signal::Int | Signal::Hup => self.on_stop(on_event),
                Signal::Usr1 => self.reopen_logs(signal, on_event),
                Signal::Usr2 => on_event(Event::SignalIgnored { signal }),
                _ => {}
            }
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
            Stopping::Draining { end_ns } => Some(end_ns),
            _ => None,
        };
        let minute = Some(self.memory.looked_ns + MEMORY_LOOK_NS);
        let look = self.logs.look_due_ns();
        match replacements.chain(end).chain(look).chain(minute).chain(self.alive_due_ns).min() {
            None => Timeout::Forever,
            Some(due_ns) => {
                let wait_ms = due_ns.saturating_sub(clock::mono_ns()).div_ceil(1_000_000);
                Timeout::Millis(i32::try_from(wait_ms).unwrap_or(i32::MAX))
            }
        }
    }

    /// Whoever watches the supervisor hears of it in time.
    fn tell_alive(&mut self, on_event: &mut dyn FnMut(Event)) {
        let now_ns = clock::mono_ns();
        if let (Some(due_ns), Some(alive_ns)) = (self.alive_due_ns, self.config.alive_ns)
            && due_ns <= now_ns
        {
            self.alive_due_ns = Some(now_ns + alive_ns);
            on_event(Event::Alive);
        }
    }

    /// Says at once that workers are full, and then once a minute.
    fn tell_full(&mut self, on_event: &mut dyn FnMut(Event)) {
        let is_full = |number: &usize| self.counters.accepting(*number) == Accepting::Full;
        let workers = (0..self.places.len()).filter(is_full).count();
        let now_ns = clock::mono_ns();
        let is_news = self.full_told_ns.is_none_or(|told_ns| now_ns >= told_ns + MEMORY_LOOK_NS);
        if workers > 0 && is_news {
            self.full_told_ns = Some(now_ns);
            on_event(Event::Full { workers });
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
        let end_ns = clock::mono_ns().saturating_add(self.config.drain_ns).saturating_add(LATE_NS);
        self.stopping = Stopping::Draining { end_ns };
        self.end_supply();
        self.tell_scraped(|meters| meters.begin_drain());
        self.listeners.clear();
        for place in &mut self.places {
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
            if self.writer.pid() == Some(pid) {
                let replaced_in_ns = self.writer.die(pid, clock::mono_ns());
                on_event(Event::LogWriterDied { exit, replaced_in_ns });
            } else if self.images.builder.pid() == Some(pid) {
                let replaced_in_ns = self.images.builder.die(pid, clock::mono_ns());
                on_event(Event::BuilderDied { exit, replaced_in_ns });
            } else if let Some(scraped) = self.scraped.as_mut().filter(|scraped| scraped.is(pid)) {
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
        self.deaths += 1;
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
        self.files.iter().for_each(SocketFile::remove);
    }
}

impl Ears {
    fn watch_supply(&self, channel: &OwnedFd) -> io::Result<()> {
        self.epoll.add(channel, SUPPLY, Interest::READ)
    }
}

fn ears(control: Option<OwnedFd>, full: &EventFd) -> Result<Ears, EngineError> {
    let mut heard = vec![Signal::Term, Signal::Int, Signal::Child, Signal::Usr1, Signal::Usr2];
    // Whoever started it with nohup wants it to outlive the terminal.
    heard.extend(Some(Signal::Hup).filter(|hup| !signal::is_ignored(*hup)));
    let signals = SignalFd::new(&heard).map_err(refused("take signals by descriptor"))?;
    let epoll = Epoll::new().map_err(refused("open an epoll instance"))?;
    epoll.add(&signals, SIGNALS, Interest::READ).map_err(refused("watch for signals"))?;
    epoll.add(full, FULL, Interest::READ.edge()).map_err(refused("watch for full workers"))?;
    if let Some(control) = &control {
        socket::set_nonblocking(control).map_err(refused("use the control socket"))?;
        epoll.add(control, CONTROL, Interest::READ).map_err(refused("watch the control socket"))?;
    }
    Ok(Ears { epoll, signals, control })
}

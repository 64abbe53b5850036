//! Forks: how the supervisor starts a worker, and what the child does before it serves.
//!
//! A child first becomes the user that serves, lets go of everything that is its parent's or its siblings', pins itself,
//! builds its worker, and says that it is ready. Nothing of the parent runs on in it: it ends with its work's outcome as
//! its exit status.

use super::images::Images;
use super::place::{CUT, FAILED, Life, OK, Place};
use super::{Supervisor, scraped};
use crate::config::{Config, SECOND_NS};
use crate::content::{ContentError, Mount, sites, table_of};
use crate::error::{EngineError, refused};
use crate::error_log::{self, Errors};
use crate::gate::Gate;
use crate::kernel::Extras;
use crate::listen;
use crate::meter::Meter;
use crate::neighbours::Neighbours;
use crate::sandbox::Kind;
use crate::stats::RunsIn;
use crate::table::Site;
use crate::worker::{Input, Leaving, Left, Worker};
use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::child::{self, Wait};
use dyno_sys::signal::{self, Signal, SignalFd};
use dyno_sys::socket::{self, Io, Ready};
use dyno_sys::user::become_identity;
use dyno_sys::{Pid, clock};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A worker must be ready this long after its fork; it takes about a millisecond.
const READY_NS_MAX: u64 = 10 * SECOND_NS;

/// What a worker writes when it listens, and then how many connections it can hold; anything else is the reason why it does
/// not.
const READY: &str = "ready ";

impl Supervisor<'_> {
    /// Forks a worker and waits until it listens; only then may the next one start.
    pub(super) fn start_worker(&mut self, number: usize) -> Result<Pid, EngineError> {
        assert!(self.places[number].pid().is_none(), "a place has one worker at a time");
        let (orders, order) = socket::pair().map_err(refused("open a channel"))?;
        let (ready, readiness) = socket::pipe().map_err(refused("open a pipe"))?;
        let mut parents = Some((order, ready));
        let forked = child::fork(|| {
            drop(parents.take());
            self.live_as_worker(number, orders, &readiness)
        });
        // Without the parent's copies of the child's ends the end of file tells of the child's death.
        let pid = forked.map_err(refused("fork a worker"))?;
        drop(readiness);
        let (order, ready) = parents.expect("only the child has taken them");
        self.fitting = self.fitting.min(wait_until_ready(number, pid, &ready)?);
        self.places[number].life = Life::Running { pid, since_ns: clock::mono_ns(), orders: Some(order) };
        self.tell_scraped(|meters| meters.set_pid(number, Some(pid)));
        Ok(pid)
    }

    /// Forks the process that serves metrics, where one is asked for.
    pub(super) fn start_scraped(&mut self) -> Result<(), EngineError> {
        let Some(scraped) = &self.scraped else { return Ok(()) };
        assert!(scraped.place.pid().is_none(), "a place has one process at a time");
        let (orders, order) = socket::pipe().map_err(refused("open a pipe"))?;
        let mut parents = Some(order);
        let forked = child::fork(|| {
            drop(parents.take());
            self.live_as_scraped(orders).map_or(FAILED, |()| OK)
        });
        let pid = forked.map_err(refused("fork the process for metrics"))?;
        if let Some(scraped) = &mut self.scraped {
            scraped.place.life = Life::Running { pid, since_ns: clock::mono_ns(), orders: parents };
        }
        Ok(())
    }

    fn live_as_scraped(&mut self, orders: OwnedFd) -> io::Result<()> {
        let Some(scraped) = &mut self.scraped else { return Ok(()) };
        let (listeners, board) = scraped.take(self.counters, &self.config.limits);
        self.give_up_rights()?;
        // After the change of user, which clears it.
        child::die_with_parent()?;
        self.leave_parent();
        self.logs.leave_all();
        self.leave_error_log();
        scraped::serve(listeners, board, orders, self.config.sandbox)
    }

    fn live_as_worker(&mut self, number: usize, orders: OwnedFd, readiness: &OwnedFd) -> i32 {
        let held = self.held.take().map(|(held, _)| held);
        let worker = match self.become_worker(number, orders) {
            Ok(worker) => worker,
            Err(error) => {
                let _ = socket::write(readiness, error.to_string().as_bytes());
                return FAILED;
            }
        };
        let ready = format!("{READY}{}", worker.connections_max());
        if socket::write(readiness, ready.as_bytes()) != Io::Done(ready.len()) {
            return FAILED;
        }
        if let Some(held) = held {
            // Its end: all others are ready too, or the supervisor is dead and this process with it.
            let _ = socket::read(&held, &mut [0]);
        }
        match worker.run() {
            Left::Drained => OK,
            Left::Cut => CUT,
            Left::Broken => FAILED,
        }
    }

    fn become_worker(&mut self, number: usize, orders: OwnedFd) -> io::Result<Worker> {
        self.give_up_rights()?;
        // After the change of user, which clears it.
        child::die_with_parent()?;
        let by_worker = std::mem::take(&mut self.listeners);
        let others = listen::of_others(&by_worker, number, &self.config.dials)?;
        let neighbours = Neighbours::new(number, self.counters, others, Arc::clone(&self.full));
        let listeners = by_worker.into_iter().nth(number).unwrap_or_default();
        if let Some(errors) = &self.config.error_log {
            error_log::tell_panics(errors);
        }
        let log = self.logs.of_worker(&self.config, number, self.counters)?;
        let images = self.images.files()?;
        let mounts = std::mem::take(&mut self.images.mounts);
        self.leave_parent();
        if let Some(cpu) = listen::home(number, &self.config.dials, &self.cpus) {
            affinity::set_current(&CpuSet::single(cpu))?;
        }
        let input = Input {
            number,
            runs_in: RunsIn::Process,
            listeners,
            neighbours,
            orders,
            // SIGINT comes to the whole terminal group: the supervisor hears it and gives the order.
            signals: Some(SignalFd::new(&[Signal::Term, Signal::Int])?),
            router: Arc::new((self.routes)()),
            sites: sites_of(&mounts, images)?,
            mounts,
            log,
            errors: self.config.error_log.clone().map(Errors::new),
            counters: self.counters,
            extras: Extras {
                meter: self.scraped.as_ref().map(|scraped| Meter::new(scraped.meters, number)),
                gate: Gate::new(&self.config.limits.address, &self.config.clients),
                hosts: self.hosts.clone(),
            },
        };
        let Config { drain_ns, retire_ns, .. } = self.config;
        let kept = input.mounts.clone();
        let worker =
            Worker::new(input, &self.config.dials, &self.config.limits, Leaving { drain_ns, retire_ns })?;
        self.config.sandbox.enter(Kind::Worker, &kept)?;
        Ok(worker)
    }

    /// Becomes the user that serves; nothing that it ever starts gains rights again.
    pub(super) fn give_up_rights(&self) -> io::Result<()> {
        if let Some(user) = &self.config.user {
            let denied = |error: io::Error| {
                let kind = error.kind();
                io::Error::new(kind, format!("cannot become user {}, group {}: {error}", user.uid, user.gid))
            };
            become_identity(user).map_err(denied)?;
        }
        child::no_new_privs()
    }

    /// Closes, in a child, what belongs to the parent: its ears, workers' listeners and orders. A worker keeps the log's
    /// `stop` open for as long as it lives, so that the writer outlives it.
    pub(super) fn leave_parent(&mut self) {
        self.ears = None;
        if let Some(scraped) = &mut self.scraped {
            scraped.leave();
        }
        self.listeners.clear();
        self.held = None;
        self.places.clear();
        self.writer = Place::vacant();
        self.images = Images::new(Vec::new());
        self.logs.leave();
    }
}

/// A worker's sites, of the newest images.
fn sites_of(mounts: &[Mount], images: Vec<File>) -> io::Result<Vec<Site>> {
    let table = |(mount, image): (_, File)| Ok((mount, Arc::new(table_of(image, mount)?)));
    let tables = mounts.iter().zip(images).map(table).collect::<Result<Vec<_>, ContentError>>();
    tables.map(sites).map_err(io::Error::other)
}

/// How many connections the worker can hold, once it listens.
fn wait_until_ready(number: usize, pid: Pid, ready: &OwnedFd) -> Result<usize, EngineError> {
    let failed = |how: String| EngineError::WorkerStart { worker: number, how };
    let mut word = [0; 512];
    let heard = match socket::wait_readable(ready, clock::mono_ns() + READY_NS_MAX) {
        Ok(Ready::Yes) => socket::read(ready, &mut word),
        Ok(Ready::TimedOut) | Err(_) => Io::WouldBlock,
    };
    match heard {
        Io::Done(length) => {
            let why = String::from_utf8_lossy(&word[..length]).into_owned();
            if let Some(fitting) = why.strip_prefix(READY).and_then(|number| number.parse().ok()) {
                return Ok(fitting);
            }
            let _ = child::wait(pid, Wait::Block);
            return Err(failed(why));
        }
        Io::WouldBlock => {
            let _ = signal::kill(pid, Signal::Kill);
        }
        Io::Closed | Io::Failed(_) => {}
    }
    let exit = child::wait(pid, Wait::Block);
    Err(failed(exit.ok().flatten().map_or("it is gone".to_owned(), |exit| exit.to_string())))
}

//! `/metrics` and `/healthz` of an embedded server: one more worker, in a thread of its own, with these two routes.
//!
//! `Server::start` makes it where an address was given. It reads the workers' shared counters and asks none of them
//! anything; what it serves itself is in no figure.

use crate::config::{Config, Limits};
use crate::dials::Dials;
use crate::error::{EngineError, refused};
use crate::kernel::Extras;
use crate::ledger::Ledger;
use crate::listen::{self, SocketFile};
use crate::log::AccessLog;
use crate::meter::{Meter, Meters};
use crate::metrics::{self, Board};
use crate::neighbours::Neighbours;
use crate::stats::{Counters, RunsIn};
use crate::worker::{Input, Leaving, Left, Worker};
use dyno_sys::event::EventFd;
use dyno_sys::socket::{self, Addr};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Who still asks when the server ends gets this long: a scraper asks again, elsewhere.
const DRAIN_NS: u64 = 100_000_000;

/// What is bound and counted, before there is a thread.
pub(super) struct Scraped {
    addr: Addr,
    listeners: Vec<OwnedFd>,
    files: Vec<SocketFile>,
    meters: Meters,
}

/// The thread, and what is told to it.
pub(super) struct Scraping {
    pub(super) addr: Addr,
    files: Vec<SocketFile>,
    meters: Meters,
    orders: OwnedFd,
    thread: JoinHandle<Left>,
}

impl Scraped {
    /// Binds the address.
    pub(super) fn bind(addr: Addr, config: &Config, workers: usize) -> Result<Scraped, EngineError> {
        let mut bound = listen::bind(&[addr], &one_worker(), config.socket_mode)?;
        Ok(Scraped {
            addr: bound.addrs.remove(0),
            listeners: bound.by_worker.remove(0),
            files: bound.files,
            meters: Meters::new(workers).map_err(refused("share memory for metrics"))?,
        })
    }

    /// What a worker counts in.
    pub(super) fn meter(&self, worker: usize) -> Meter {
        Meter::new(self.meters, worker)
    }

    /// Starts the thread.
    pub(super) fn start(self, counters: Counters, limits: &Limits) -> Result<Scraping, EngineError> {
        let Scraped { addr, listeners, files, meters } = self;
        let (orders, order) = socket::pipe().map_err(refused("open a pipe"))?;
        let input = input(listeners, board(counters, meters, limits)?, orders)?;
        let leaving = Leaving::soon(DRAIN_NS);
        let worker = Worker::new(input, &one_worker(), &metrics::limits(), leaving)
            .map_err(refused("start the worker for metrics"))?;
        let thread = thread::Builder::new().name("dyno-metrics".to_owned());
        let thread = thread.spawn(move || worker.run()).map_err(refused("start the thread for metrics"))?;
        Ok(Scraping { addr, files, meters, orders: order, thread })
    }
}

impl Scraping {
    /// From now on `/healthz` says that the server ends.
    pub(super) fn begin_drain(&self) {
        self.meters.begin_drain();
    }

    /// Ends it, when there is nothing more to tell of.
    pub(super) fn end(self) {
        let Scraping { orders, thread, files, .. } = self;
        drop(orders);
        // A thread that panicked has nothing more to say.
        let _ = thread.join();
        files.iter().for_each(SocketFile::remove);
    }

    /// Takes its socket files away while it may still be asked by whoever is connected.
    pub(super) fn remove_files(&self) {
        self.files.iter().for_each(SocketFile::remove);
    }
}

fn one_worker() -> Dials {
    Dials::for_workers(NonZeroU32::MIN)
}

fn board(counters: Counters, meters: Meters, limits: &Limits) -> Result<Board, EngineError> {
    let ledger = Ledger::new().map_err(refused("share memory for metrics"))?;
    let (started_s, started_ns) = ledger.started();
    let buffer_bytes_max = limits.buffer_bytes_max;
    let version = env!("CARGO_PKG_VERSION");
    Ok(Board { counters, meters, ledger, buffer_bytes_max, started_s, started_ns, version })
}

/// One worker, which is nobody's neighbour.
fn input(listeners: Vec<OwnedFd>, board: Board, orders: OwnedFd) -> Result<Input, EngineError> {
    let counters = Counters::new(1, 0).map_err(refused("make counters"))?;
    let full = EventFd::new().map_err(refused("make a signal for full workers"))?;
    let routes = metrics::routes(board).map_err(|source| EngineError::Route { source })?;
    Ok(Input {
        number: 0,
        runs_in: RunsIn::Thread,
        listeners,
        neighbours: Neighbours::new(0, counters, Vec::new(), Arc::new(full)),
        orders,
        signals: None,
        router: Arc::new(routes),
        sites: Vec::new(),
        mounts: Vec::new(),
        log: AccessLog::off(),
        errors: None,
        counters,
        extras: Extras::default(),
    })
}

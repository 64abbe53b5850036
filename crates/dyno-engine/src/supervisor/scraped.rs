//! The process that serves `/metrics` and `/healthz`: forked beside the workers, replaced like them, ended last.
//!
//! It is a worker like theirs with its own listener, two routes and no rights, so that the supervisor never serves and
//! no worker is asked anything. It outlives the workers, so that a drain can be seen, and is killed when they are gone. Where
//! another generation serves it answers first what it has accepted.

use super::place::{Life, PAUSE_NS_MAX, Place};
use crate::config::{DRAIN_NS_DEFAULT, Limits};
use crate::dials::Dials;
use crate::error::{EngineError, refused};
use crate::kernel::Extras;
use crate::ledger::Ledger;
use crate::log::AccessLog;
use crate::meter::Meters;
use crate::metrics::{self, Board};
use crate::neighbours::Neighbours;
use crate::sandbox::{Kind, Sandbox};
use crate::stats::{Counters, RunsIn};
use crate::worker::{Input, Leaving, Worker};
use dyno_sys::child::{self, Wait};
use dyno_sys::event::EventFd;
use dyno_sys::signal::{self, Signal};
use dyno_sys::socket::Addr;
use dyno_sys::{Pid, clock};
use std::ffi::CStr;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What it calls itself (at most 15 bytes, prctl(2)).
pub(super) const NAME: &CStr = c"dyno-metrics";

/// What the supervisor keeps of it.
pub(super) struct Scraped {
    pub(super) addr: Addr,
    pub(super) meters: Meters,
    pub(super) place: Place,
    listeners: Vec<OwnedFd>,
    ledger: Ledger,
}

impl Scraped {
    /// Serves at this address, if there is one.
    pub(super) fn new(
        metrics: Option<(Addr, OwnedFd)>,
        workers: usize,
        ledger: Ledger,
    ) -> Result<Option<Scraped>, EngineError> {
        let Some((addr, listener)) = metrics else { return Ok(None) };
        Ok(Some(Scraped {
            addr,
            meters: Meters::new(workers).map_err(refused("share memory for metrics"))?,
            place: Place::vacant(),
            listeners: vec![listener],
            ledger,
        }))
    }

    /// Whether this is its process.
    pub(super) fn is(&self, pid: Pid) -> bool {
        self.place.pid() == Some(pid)
    }

    /// What its process serves from, and what it tells; called in it.
    pub(super) fn take(&mut self, counters: Counters, limits: &Limits) -> (Vec<OwnedFd>, Board) {
        let (started_s, started_ns) = self.ledger.started();
        let board = Board {
            counters,
            meters: self.meters,
            ledger: self.ledger,
            buffer_bytes_max: limits.buffer_bytes_max,
            started_s,
            started_ns,
            version: env!("CARGO_PKG_VERSION"),
        };
        (std::mem::take(&mut self.listeners), board)
    }

    /// A replacement could not be started: it is tried again later.
    pub(super) fn put_off(&mut self) {
        if let Life::Waiting { until_ns, .. } = &mut self.place.life {
            *until_ns = clock::mono_ns() + PAUSE_NS_MAX;
        }
    }

    /// Lets it answer what it has accepted: another generation's serves by now.
    pub(super) fn retire(&mut self) {
        self.meters.retire();
        self.listeners.clear();
        match &mut self.place.life {
            Life::Running { orders, .. } => *orders = None,
            other => *other = Life::Vacant,
        }
    }

    /// Whether another generation's serves in its place: it is not replaced.
    pub(super) fn is_retired(&self) -> bool {
        self.listeners.is_empty()
    }

    /// Ends it: the server that it tells of is no more.
    pub(super) fn end(self) {
        if let Some(pid) = self.place.pid() {
            // It may have ended by itself meanwhile; it is waited for in either case.
            let _ = signal::kill(pid, Signal::Kill);
            let _ = child::wait(pid, Wait::Block);
        }
    }

    /// Lets go, in a child, of what is its parent's.
    pub(super) fn leave(&mut self) {
        self.listeners.clear();
        self.place = Place::vacant();
    }
}

/// One worker, which does as little as can be.
fn dials() -> Dials {
    Dials::for_workers(NonZeroU32::MIN)
}

/// Serves, in its process, until it is killed.
pub(super) fn serve(
    listeners: Vec<OwnedFd>,
    board: Board,
    orders: OwnedFd,
    sandbox: Sandbox,
) -> io::Result<()> {
    child::set_name(NAME)?;
    // Its own traffic is nobody's figure.
    let counters = Counters::new(1, 0)?;
    let input = Input {
        number: 0,
        runs_in: RunsIn::Process,
        listeners,
        neighbours: Neighbours::new(0, counters, Vec::new(), Arc::new(EventFd::new()?)),
        orders,
        // SIGTERM, which a service manager sends to all processes, stays blocked: a drain can be seen to its end.
        signals: None,
        router: Arc::new(metrics::routes(board).map_err(io::Error::other)?),
        sites: Vec::new(),
        mounts: Vec::new(),
        log: AccessLog::off(),
        errors: None,
        counters,
        extras: Extras::default(),
    };
    let worker = Worker::new(input, &dials(), &metrics::limits(), Leaving::soon(DRAIN_NS_DEFAULT))?;
    sandbox.enter(Kind::Metrics, &[])?;
    worker.run();
    Ok(())
}

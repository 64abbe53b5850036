//! Several sessions as one load: a thread for each load CPU, each with its share of the connections.
//!
//! Connections stay open between blocks; threads do not: each block starts one pinned thread per CPU and joins it. That
//! costs some 50 µs before the block's settling part, leaves nothing behind that could spin or wake, and lets thread 0
//! call the caller's closure itself, exactly at the edge. Used by `dyno load` and by climbs with several load CPUs.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::clock::mono_ns;

use crate::check::Expect;
use crate::connections::Share;
use crate::report::{BlockReport, BlockSpec, Edge, OpenError, SessionPlan};
use crate::session::{Course, Gauge, Lap, Session};

/// Sessions on several CPUs that run their blocks together.
#[derive(Debug)]
pub struct Crew {
    seats: Vec<Seat>,
}

/// How far a running block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Since the block was started.
    pub elapsed_ns: u64,
    /// Right answers so far, up to 20 ms old.
    pub replies: u64,
    /// Errors of all classes so far, up to 20 ms old.
    pub errors: u64,
}

/// Who looks at a running block, and how often.
pub(crate) struct Watcher<'w> {
    pub(crate) every_ns: u64,
    pub(crate) watch: &'w mut dyn FnMut(&Progress),
}

/// The caller's closure, called on thread 0.
type AtEdge<'e> = dyn FnMut(Edge) + Send + 'e;

#[derive(Debug)]
struct Seat {
    cpu: usize,
    session: Session,
}

/// What a seat's thread leaves.
struct Part {
    lap: Lap,
    report: BlockReport,
}

impl Crew {
    /// Opens the plan's connections, shared out evenly over one session per entry of `cpus`. The first session opens
    /// first: with [`crate::Body::Same`] its first answer is what all others expect.
    ///
    /// # Errors
    /// See [`OpenError`]: the plan, a CPU that cannot be used, the server.
    pub fn open(plan: &SessionPlan, cpus: &[usize]) -> Result<Self, OpenError> {
        check(plan, cpus)?;
        let mut plan = plan.clone();
        let mut seats = Vec::with_capacity(cpus.len());
        let mut before = 0;
        for (index, cpu) in cpus.iter().enumerate() {
            let connections =
                plan.connections / cpus.len() + usize::from(index < plan.connections % cpus.len());
            let share = Share { connections, before, all: plan.connections };
            let session = open_on(*cpu, &plan, share)?;
            plan.expect = session.expect().clone();
            before += connections;
            seats.push(Seat { cpu: *cpu, session });
        }
        Ok(Self { seats })
    }

    /// Runs one block on all threads. Thread 0 calls `at_edge` when settling ends, and again when nothing is in flight
    /// on any thread.
    ///
    /// # Panics
    /// When the process may start no thread any more; it could when the crew was opened.
    pub fn block(&mut self, spec: &BlockSpec, at_edge: &mut (dyn FnMut(Edge) + Send)) -> BlockReport {
        self.watched_block(spec, None, at_edge, None)
    }

    /// How many threads run a block.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.seats.len()
    }

    /// The whole bytes of one right answer; empty when longer than 256 KiB.
    #[must_use]
    pub fn sample_answer(&self) -> &[u8] {
        self.seats[0].session.sample_answer()
    }

    /// What answers are held against; [`crate::Body::Same`] is the learned body by now.
    #[must_use]
    pub fn expect(&self) -> &Expect {
        self.seats[0].session.expect()
    }

    pub(crate) fn watched_block(
        &mut self,
        spec: &BlockSpec,
        stop: Option<&AtomicBool>,
        at_edge: &mut (dyn FnMut(Edge) + Send),
        watcher: Option<Watcher<'_>>,
    ) -> BlockReport {
        let start_ns = mono_ns();
        let course = Course::new(spec, start_ns, stop);
        let gauges: Vec<Gauge> = self.seats.iter().map(|_| Gauge::default()).collect();
        let running = Running::new(self.seats.len());
        let parts: Vec<Part> = std::thread::scope(|scope| {
            let mut at_edge = Some(at_edge);
            let seats = self.seats.iter_mut().zip(&gauges);
            let threads: Vec<_> = seats
                .map(|(seat, gauge)| {
                    let (course, running, at_edge) = (&course, &running, at_edge.take());
                    start(scope, move || seat.run(course, gauge, running, at_edge))
                })
                .collect();
            if let Some(watcher) = watcher {
                watcher.watch_until_done(&running, &gauges, start_ns);
            }
            threads.into_iter().map(joined).collect()
        });
        merged(parts)
    }
}

impl Seat {
    /// Thread 0 has the caller's closure.
    fn run(
        &mut self,
        course: &Course<'_>,
        gauge: &Gauge,
        running: &Running,
        at_edge: Option<&mut AtEdge<'_>>,
    ) -> Part {
        let runs = running.one();
        let unpinned = usize::from(affinity::set_current(&CpuSet::single(self.cpu)).is_err());
        let lap = match at_edge {
            Some(at_edge) => {
                let lap = self.session.run(course, gauge, &mut || at_edge(Edge::SettleEnd));
                drop(runs);
                running.wait_for_all();
                at_edge(Edge::End);
                lap
            }
            None => {
                let lap = self.session.run(course, gauge, &mut || {});
                drop(runs);
                lap
            }
        };
        let mut report = self.session.report(&lap);
        report.unpinned = unpinned;
        Part { lap, report }
    }
}

impl Watcher<'_> {
    fn watch_until_done(self, running: &Running, gauges: &[Gauge], start_ns: u64) {
        let sum = |read: fn(&Gauge) -> u64| gauges.iter().map(read).sum();
        let mut next_ns = start_ns.saturating_add(self.every_ns);
        loop {
            let left_ns = next_ns.saturating_sub(mono_ns());
            if running.wait(Some(Duration::from_nanos(left_ns))) == Waited::AllDone {
                return;
            }
            let now_ns = mono_ns();
            if now_ns < next_ns {
                continue;
            }
            next_ns = now_ns.saturating_add(self.every_ns);
            (self.watch)(&Progress {
                elapsed_ns: now_ns - start_ns,
                replies: sum(|gauge| gauge.replies.load(Ordering::Relaxed)),
                errors: sum(|gauge| gauge.errors.load(Ordering::Relaxed)),
            });
        }
    }
}

/// How many threads have not drained yet.
struct Running {
    left: Mutex<usize>,
    changed: Condvar,
}

/// Counts one thread out when it is dropped, so that one that panics is not waited for.
struct One<'r>(&'r Running);

#[derive(Debug, PartialEq, Eq)]
enum Waited {
    AllDone,
    TimedOut,
}

impl Running {
    fn new(threads: usize) -> Self {
        Self { left: Mutex::new(threads), changed: Condvar::new() }
    }

    fn one(&self) -> One<'_> {
        One(self)
    }

    fn wait_for_all(&self) {
        while self.wait(None) != Waited::AllDone {}
    }

    /// Sleeps until all threads have drained, or the time is up, or something woke it early.
    fn wait(&self, timeout: Option<Duration>) -> Waited {
        let left = self.lock();
        let left = match timeout {
            _ if *left == 0 => left,
            Some(timeout) => {
                self.changed.wait_timeout(left, timeout).unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.changed.wait(left).unwrap_or_else(PoisonError::into_inner),
        };
        if *left == 0 { Waited::AllDone } else { Waited::TimedOut }
    }

    /// A poisoned lock still holds a number that is right: it is changed by one subtraction.
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for One<'_> {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.changed.notify_all();
    }
}

fn check(plan: &SessionPlan, cpus: &[usize]) -> Result<(), OpenError> {
    if cpus.is_empty() {
        return Err(OpenError::Plan { why: "no load CPU is named" });
    }
    if plan.connections < cpus.len() {
        return Err(OpenError::Plan { why: "at least one connection per thread is needed" });
    }
    let allowed = affinity::allowed();
    match cpus.iter().find(|cpu| !allowed.contains(**cpu)) {
        Some(cpu) => Err(OpenError::Cpu { cpu: *cpu, allowed: allowed.to_string() }),
        None => Ok(()),
    }
}

/// Opens a session on the CPU that will drive it, in a thread like those of the blocks: what they need is tried here.
fn open_on(cpu: usize, plan: &SessionPlan, share: Share) -> Result<Session, OpenError> {
    std::thread::scope(|scope| {
        let open = || {
            affinity::set_current(&CpuSet::single(cpu))
                .map_err(|source| OpenError::Thread { cpu, source })?;
            Session::open_share(plan, share)
        };
        let thread = spawn(scope, open).map_err(|source| OpenError::Thread { cpu, source })?;
        joined(thread)
    })
}

fn start<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    spawn(scope, work).unwrap_or_else(|error| panic!("cannot start a load thread: {error}"))
}

fn spawn<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().name("dyno-load".to_owned()).spawn_scoped(scope, work)
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// One report of all parts: its wall is from thread 0's edge to the last thread's drained end.
fn merged(parts: Vec<Part>) -> BlockReport {
    let ended_ns = parts.iter().map(|part| part.lap.ended_ns).max();
    let mut parts = parts.into_iter();
    let Part { lap, report: mut all } = parts.next().expect("a crew is opened with at least one CPU");
    all.wall_ns = ended_ns.unwrap_or(lap.ended_ns).saturating_sub(lap.began_ns);
    for Part { report, .. } in parts {
        all.replies += report.replies;
        all.wrong += report.wrong;
        all.bytes += report.bytes;
        all.errors.add(&report.errors);
        all.latencies.merge(&report.latencies);
        all.events += report.events;
        all.waits += report.waits;
        all.cpu_ns += report.cpu_ns;
        all.threads += report.threads;
        all.unpinned += report.unpinned;
        all.reconnects += report.reconnects;
        all.first_wrong = all.first_wrong.or(report.first_wrong);
        all.first_error = all.first_error.or(report.first_error);
        all.drained &= report.drained;
    }
    all
}

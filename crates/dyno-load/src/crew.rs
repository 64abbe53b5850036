//! Several sessions as one load: a thread for each, with its share of the connections.
//!
//! Connections stay open between blocks; threads do not: each block starts its threads and joins them. That costs some
//! 50 µs before the block's settling part, leaves nothing behind that could spin or wake, and lets thread 0 call the
//! caller's closure itself, exactly at the edge. Where the threads run is said once, by a [`Placement`]: a thread is bound
//! before its first connection is opened, and nobody moves it later. Used by [`crate::run`] and by climbs.

use std::collections::BTreeSet;
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::clock::mono_ns;

use crate::beside::{Beside, Running};
use crate::check::Expect;
use crate::connections::Share;
use crate::down;
use crate::report::{BlockReport, BlockSpec, Edge, OpenError, SessionPlan};
use crate::session::{Block, LiveCounts, Measured, Opening, Session, Wrong};

/// Where the threads of a load run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// One thread for each entry, bound to that CPU. A CPU may be named more than once.
    Pinned(Vec<usize>),
    /// So many threads, each wherever the thread that starts it may run: the scheduler places them, as wrk's.
    Unpinned(usize),
    /// One session, whose blocks run on the calling thread; beside something else on one thread that may run where the
    /// caller may.
    Caller,
}

/// Sessions that run their blocks together, each on a thread of its own.
#[derive(Debug)]
pub struct Crew {
    threads: Vec<LoadThread>,
    placement: Placement,
}

/// The caller's closure, called on thread 0.
type AtEdge<'e> = dyn FnMut(Edge) + Send + 'e;

/// One thread's part of the load; the thread itself lives for one block.
#[derive(Debug)]
struct LoadThread {
    /// The CPU that it is bound to, if any.
    cpu: Option<usize>,
    session: Session,
}

/// What a thread leaves.
struct Part {
    measured: Measured,
    report: BlockReport,
}

impl Placement {
    /// How many threads that is.
    #[must_use]
    pub fn threads(&self) -> usize {
        match self {
            Self::Pinned(cpus) => cpus.len(),
            Self::Unpinned(threads) => *threads,
            Self::Caller => 1,
        }
    }

    /// On how many CPUs they can run at a time: threads that share one are no busier together than one alone.
    #[must_use]
    pub fn at_a_time(&self) -> usize {
        match self {
            Self::Pinned(cpus) => cpus.iter().collect::<BTreeSet<_>>().len(),
            Self::Unpinned(threads) => (*threads).min(affinity::allowed().len()).max(1),
            Self::Caller => 1,
        }
    }

    /// The same with no more threads than there are connections: a thread without one has nothing to do.
    #[must_use]
    pub fn at_most(&self, connections: usize) -> Self {
        match self {
            Self::Pinned(cpus) => Self::Pinned(cpus.iter().copied().take(connections).collect()),
            Self::Unpinned(threads) => Self::Unpinned((*threads).min(connections)),
            Self::Caller => Self::Caller,
        }
    }

    /// The CPU of each thread.
    fn cpus(&self) -> Vec<Option<usize>> {
        match self {
            Self::Pinned(cpus) => cpus.iter().copied().map(Some).collect(),
            Self::Unpinned(threads) => vec![None; *threads],
            Self::Caller => vec![None],
        }
    }
}

impl Crew {
    /// Opens the plan's connections, shared out evenly over one session per thread. The first session opens first: with
    /// [`crate::Body::Same`] its first answer is what all others expect.
    ///
    /// # Errors
    /// See [`OpenError`]: the plan, a CPU that cannot be used, the server.
    pub fn open(plan: &SessionPlan, placement: &Placement) -> Result<Self, OpenError> {
        let opening =
            Opening { answer_ns_max: plan.timeout_ns, stop: &AtomicBool::new(false), wrong: Wrong::Refused };
        Self::open_as(plan, placement, opening)
    }

    /// The same, with a bound of its own for first answers, and stopped at any time.
    pub(crate) fn open_as(
        plan: &SessionPlan,
        placement: &Placement,
        opening: Opening<'_>,
    ) -> Result<Self, OpenError> {
        check(plan, placement)?;
        let mut plan = plan.clone();
        let cpus = placement.cpus();
        let mut threads = Vec::with_capacity(cpus.len());
        let mut before = 0;
        for (index, cpu) in cpus.iter().enumerate() {
            let connections =
                plan.connections / cpus.len() + usize::from(index < plan.connections % cpus.len());
            let share = Share { connections, before, all: plan.connections };
            let session = open_on(*cpu, &plan, share, opening)?;
            plan.expect = session.expect().clone();
            before += connections;
            threads.push(LoadThread { cpu: *cpu, session });
        }
        let crew = Self { threads, placement: placement.clone() };
        crew.check_shares(plan.connections);
        Ok(crew)
    }

    /// Runs one block on all threads. Thread 0 calls `at_edge` when settling ends, and again when nothing is in flight
    /// on any thread.
    ///
    /// # Panics
    /// When the process may start no thread any more; it could when the crew was opened.
    pub fn block(&mut self, spec: &BlockSpec, at_edge: &mut (dyn FnMut(Edge) + Send)) -> BlockReport {
        if let (Placement::Caller, [thread]) = (&self.placement, &mut self.threads[..]) {
            return thread.session.block(spec, at_edge);
        }
        self.beside(spec, &AtomicBool::new(false), at_edge, Beside::wait_until_over).0
    }

    /// Runs one block while `look` runs on the calling thread: what both came to. The block ends early when `look` returns,
    /// and when `stop` becomes true. `at_edge` is called as by [`Crew::block`], on thread 0.
    ///
    /// # Panics
    /// With what `look`, `at_edge` or a thread panicked with, once all threads have ended; and as [`Crew::block`].
    pub fn beside<T>(
        &mut self,
        spec: &BlockSpec,
        stop: &AtomicBool,
        at_edge: &mut (dyn FnMut(Edge) + Send),
        look: impl FnOnce(&Beside) -> T,
    ) -> (BlockReport, T) {
        let start_ns = mono_ns();
        let beside = Beside::new(self.threads.len(), start_ns);
        let stops = [stop, beside.stop_flag()];
        let block = Block::new(spec, start_ns, &stops);
        std::thread::scope(|scope| {
            let ends = beside.stop_at_end();
            let mut at_edge = Some(at_edge);
            let threads = self.threads.iter_mut().zip(beside.counts());
            let threads: Vec<_> = threads
                .map(|(thread, live)| {
                    let (block, running, at_edge) = (&block, beside.running(), at_edge.take());
                    start(scope, move || thread.run(block, live, running, at_edge))
                })
                .collect();
            let found = look(&beside);
            drop(ends);
            let parts = threads.into_iter().map(joined).collect();
            beside.check_over();
            (BlockReport { cpus: self.placement.at_a_time(), ..merged(parts) }, found)
        })
    }

    /// How many threads run a block.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The whole bytes of one right answer; empty when longer than 256 KiB.
    #[must_use]
    pub fn sample_answer(&self) -> &[u8] {
        self.threads[0].session.sample_answer()
    }

    /// What answers are held against; [`crate::Body::Same`] is the learned body by now.
    #[must_use]
    pub fn expect(&self) -> &Expect {
        self.threads[0].session.expect()
    }

    /// Every connection of the plan belongs to one session, and no session is without work.
    fn check_shares(&self, connections: usize) {
        assert!(!self.threads.is_empty(), "a crew has at least one thread");
        assert!(
            self.threads.iter().all(|thread| thread.session.connections() > 0),
            "a thread has no connection"
        );
        let is_one = self.threads.len() == 1;
        assert!(
            is_one || self.placement != Placement::Caller,
            "the calling thread cannot drive several sessions"
        );
        let all: usize = self.threads.iter().map(|thread| thread.session.connections()).sum();
        assert_eq!(all, connections, "the threads' connections are not those of the plan");
    }
}

impl LoadThread {
    /// Thread 0 has the caller's closure.
    fn run(
        &mut self,
        block: &Block<'_>,
        live: &LiveCounts,
        running: &Running,
        at_edge: Option<&mut AtEdge<'_>>,
    ) -> Part {
        let runs = running.one();
        let unpinned = self.cpu.is_some_and(|cpu| affinity::set_current(&CpuSet::single(cpu)).is_err());
        let measured = match at_edge {
            Some(at_edge) => {
                let measured = self.session.run(block, live, &mut || at_edge(Edge::SettleEnd));
                drop(runs);
                running.wait_until_over();
                at_edge(Edge::End);
                measured
            }
            None => {
                let measured = self.session.run(block, live, &mut || {});
                drop(runs);
                measured
            }
        };
        let mut report = self.session.report(&measured);
        report.unpinned = usize::from(unpinned);
        Part { measured, report }
    }
}

fn check(plan: &SessionPlan, placement: &Placement) -> Result<(), OpenError> {
    let cpus = placement.cpus();
    if cpus.is_empty() {
        return Err(OpenError::Plan { why: "no load CPU is named" });
    }
    if plan.connections < cpus.len() {
        return Err(OpenError::Plan { why: "at least one connection per thread is needed" });
    }
    let allowed = affinity::allowed();
    match cpus.into_iter().flatten().find(|cpu| !allowed.contains(*cpu)) {
        Some(cpu) => Err(OpenError::Cpu { cpu, allowed: allowed.to_string() }),
        None => Ok(()),
    }
}

/// Opens a session where it will be driven. One with a CPU of its own is opened in a thread like those of the blocks: what
/// they need is tried here, before a server is measured.
fn open_on(
    cpu: Option<usize>,
    plan: &SessionPlan,
    share: Share,
    opening: Opening<'_>,
) -> Result<Session, OpenError> {
    let Some(cpu) = cpu else { return Session::open_share(plan, share, opening) };
    std::thread::scope(|scope| {
        let open = || {
            affinity::set_current(&CpuSet::single(cpu))
                .map_err(|source| OpenError::Thread { cpu, source })?;
            Session::open_share(plan, share, opening)
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

/// One report of all parts: its wall is from thread 0's edge to the last thread's drained end, and no connection is up when
/// no thread has one; it is silent when no thread receives anything.
fn merged(parts: Vec<Part>) -> BlockReport {
    let ended_ns = parts.iter().map(|part| part.measured.ended_ns).max();
    let mut parts = parts.into_iter();
    let Part { measured, report: mut all } = parts.next().expect("a crew is opened with at least one CPU");
    all.wall_ns = ended_ns.unwrap_or(measured.ended_ns).saturating_sub(measured.began_ns);
    let mut down = measured.down;
    for Part { measured, report } in parts {
        down = down::common(&down, &measured.down);
        all.replies += report.replies;
        all.loaded = all.loaded.and(report.loaded);
        all.wrong += report.wrong;
        all.bytes += report.bytes;
        all.errors.add(&report.errors);
        all.unanswered += report.unanswered;
        all.timed_out += report.timed_out;
        all.unfinished.extend(report.unfinished);
        all.latencies.merge(&report.latencies);
        all.wrong_latencies.merge(&report.wrong_latencies);
        all.events += report.events;
        all.waits += report.waits;
        all.cpu_ns += report.cpu_ns;
        all.threads += report.threads;
        all.unpinned += report.unpinned;
        all.reconnects += report.reconnects;
        all.first_wrong = all.first_wrong.or(report.first_wrong);
        all.first_error = all.first_error.or(report.first_error);
        all.drained &= report.drained;
        all.silent_ns = all.silent_ns.min(report.silent_ns);
    }
    all.down_ns = down::sum(&down);
    assert_eq!(all.replies, all.latencies.len(), "a thread's answers were merged without their latencies");
    assert!(all.unpinned <= all.threads, "more threads were not bound than there were");
    all
}

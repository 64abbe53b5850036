//! A whole load run as one long block: what `dyno load` does between its arguments and its table.
//!
//! wrk's semantics: threads, connections, a duration, every connection busy all the time (closed loop: a slow answer
//! delays the next request, so latencies are those under saturation). Unlike wrk the answers in flight at the end are
//! awaited, for two seconds, or for twice as long as the longest answer took, so that their latencies are in the figures;
//! rates are of the time before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::beside::{Beside, Progress, Waited};
use crate::crew::{Crew, Placement};
use crate::limit::{Limited, Signs};
use crate::report::{BlockReport, BlockSpec, Edge, OpenError, SessionPlan};
use crate::session::{Opening, Wrong};

/// How often wrk-like tools say something.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// How long the answers in flight are awaited at the end of a run whose answers were quick: most servers' slowest, and a run
/// of a second on one that has died takes no more than three.
const DRAIN_NS_MAX: u64 = 2_000_000_000;
/// A load beside something runs until it is told to stop; a day only bounds it when nobody does.
const BESIDE_NS_MAX: u64 = 24 * 3_600_000_000_000;
/// The first answers are awaited for three times as long as the run is to last: one that is slower than the run can still be
/// told, and a run of some seconds on a server that accepts and is silent is no matter of minutes …
pub const OPENING_RUNS: u32 = 3;
/// … but for five seconds at least, which is what a server may need that begins its work with its first request.
const OPENING_NS_MIN: u64 = 5_000_000_000;

/// A run from its first connection to its last answer.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// What is sent, over how many connections in all.
    pub session: SessionPlan,
    /// By how many threads, and where they run.
    pub placement: Placement,
    /// How long requests are issued, in nanoseconds.
    pub duration_ns: u64,
    /// How long each of the first answers is awaited, those on connections that are being opened.
    pub opening_ns_max: u64,
}

/// What the run came to.
#[derive(Debug, Clone)]
pub struct LoadReport {
    /// All counts, latencies and errors.
    pub block: BlockReport,
    /// Whether the figure is the server's, as far as the generator alone can know.
    pub limited: Limited,
    /// How it ended.
    pub ended: Ended,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// After its whole duration.
    Whole,
    /// Earlier, because it was stopped.
    Stopped,
}

impl LoadPlan {
    /// A run of so many nanoseconds.
    #[must_use]
    pub fn new(session: SessionPlan, placement: Placement, duration_ns: u64) -> Self {
        let of_run_ns = duration_ns.saturating_mul(u64::from(OPENING_RUNS)).max(OPENING_NS_MIN);
        let opening_ns_max = session.timeout_ns.min(of_run_ns);
        Self { session, placement, duration_ns, opening_ns_max }
    }

    /// The same beside a look of about so many nanoseconds, for as long as that takes: it is opened as a run of that length.
    #[must_use]
    pub fn beside(self, look_ns: u64) -> Self {
        Self { duration_ns: BESIDE_NS_MAX, ..Self::new(self.session, self.placement, look_ns) }
    }
}

impl LoadReport {
    /// Right answers per second of the time in which requests were sent; 0 when no time passed.
    #[must_use]
    pub fn replies_per_s(&self) -> f64 {
        per_s(self.block.loaded.replies, self.block.loaded.wall_ns)
    }

    /// Share of the time in which requests were sent that no connection was up, 0 to 1.
    #[must_use]
    pub fn down(&self) -> f64 {
        self.share(self.block.down_ns)
    }

    /// Share of that time, up to its end, that nothing was received, and nothing came afterwards; 0 to 1.
    #[must_use]
    pub fn silent(&self) -> f64 {
        self.share(self.block.silent_ns)
    }

    fn share(&self, ns: u64) -> f64 {
        let wall_ns = self.block.loaded.wall_ns;
        if wall_ns == 0 { 0.0 } else { (ns as f64 / wall_ns as f64).min(1.0) }
    }

    /// Bytes of right answers per second of the same time; 0 when no time passed.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        per_s(self.block.loaded.bytes, self.block.loaded.wall_ns)
    }
}

/// Opens, loads for the plan's duration, drains, and reports.
///
/// `at_edge` is called when the load starts and when all is drained, `progress` about once a second on the calling
/// thread. `stop` may become true at any time: before the load starts that is an error, later it drains for two seconds at
/// most and reports what it has.
///
/// # Errors
/// Before the load starts: see [`OpenError`]. What happens later is in the report.
pub fn load(
    plan: &LoadPlan,
    stop: &AtomicBool,
    at_edge: &mut (dyn FnMut(Edge) + Send),
    progress: &mut dyn FnMut(&Progress),
) -> Result<LoadReport, OpenError> {
    let look = |load: &Beside| {
        while load.wait(PROGRESS_EVERY) == Waited::TimedOut {
            progress(&load.progress());
        }
    };
    Ok(beside(plan, stop, at_edge, look)?.0)
}

/// Opens, loads while `look` runs on the calling thread and for the plan's duration at most, drains, and reports; and what
/// `look` found. Its first moments see connections that were answered once each and a server that is not warm yet.
///
/// # Errors
/// Before the load starts, and before `look`: see [`OpenError`]. What happens later is in the report.
pub fn beside<T>(
    plan: &LoadPlan,
    stop: &AtomicBool,
    at_edge: &mut (dyn FnMut(Edge) + Send),
    look: impl FnOnce(&Beside) -> T,
) -> Result<(LoadReport, T), OpenError> {
    let mut crew = opened(&plan.session, &plan.placement, plan.opening_ns_max, stop)?;
    let spec = BlockSpec {
        settle_ns: 0,
        measure_ns: plan.duration_ns,
        replies_min: 0,
        ns_max: plan.duration_ns,
        drain_ns_max: plan.session.timeout_ns.min(DRAIN_NS_MAX),
        drain_slow_ns_max: plan.session.timeout_ns,
    };
    let (block, found) = crew.beside(&spec, stop, at_edge, look);
    let limited = Signs::of(&block, plan.session.connections).limited();
    // One may also be stopped while its last answers are awaited.
    let is_stopped = block.loaded.wall_ns < plan.duration_ns || stop.load(Ordering::Relaxed);
    let ended = if is_stopped { Ended::Stopped } else { Ended::Whole };
    Ok((LoadReport { block, limited, ended }, found))
}

/// One step of a sweep: the plan's load over so many connections, placed as the plan says, `blocks` times. `stop` ends the
/// opening.
///
/// # Errors
/// When the connections cannot be opened: see [`OpenError`].
pub fn step(
    plan: &LoadPlan,
    connections: usize,
    spec: &BlockSpec,
    blocks: usize,
    stop: &AtomicBool,
) -> Result<Vec<BlockReport>, OpenError> {
    let session = SessionPlan { connections, ..plan.session.clone() };
    let mut crew = opened(&session, &plan.placement.at_most(connections), plan.opening_ns_max, stop)?;
    Ok((0..blocks).map(|_| crew.block(spec, &mut |_edge| {})).collect())
}

/// Opens all connections; where nobody listens, at the other address that the name stands for.
fn opened(
    session: &SessionPlan,
    placement: &Placement,
    answer_ns_max: u64,
    stop: &AtomicBool,
) -> Result<Crew, OpenError> {
    let opening = Opening { answer_ns_max, stop, wrong: Wrong::Counted };
    let refused = match Crew::open_as(session, placement, opening) {
        Err(error @ OpenError::Refused { .. }) => error,
        other => return other,
    };
    let Some(target) = session.target.elsewhere() else { return Err(refused) };
    Crew::open_as(&SessionPlan { target, ..session.clone() }, placement, opening).map_err(|_| refused)
}

fn per_s(count: u64, wall_ns: u64) -> f64 {
    if wall_ns == 0 { 0.0 } else { count as f64 / (wall_ns as f64 / 1e9) }
}

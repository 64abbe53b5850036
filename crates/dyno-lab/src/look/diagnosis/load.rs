//! The load of a diagnosis, on a thread of its own, from before the first counter to after the last.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use dyno_load::limit::{Limited, Signs};
use dyno_load::run::{LoadPlan, LoadReport, PROGRESS_EVERY_NS};
use dyno_load::{Edge, OpenError, Progress};
use dyno_record::observation::{Limit, Load, Observation};
use dyno_sys::affinity::CpuSet;
use dyno_sys::clock::mono_ns;

use crate::failure::Failure;
use crate::launch::loose::Loose;

/// The first moments are not the server's usual ones: buffers grow, connections begin.
const SETTLE: Duration = Duration::from_millis(500);
/// A server that takes longer to answer for the first time than any `--timeout` will not answer.
const OPENS_WITHIN: Duration = Duration::from_secs(60);

/// A load that is to run beside a diagnosis.
#[derive(Debug, Clone)]
pub struct Beside {
    /// What is asked of whom, on which CPUs. Its duration only bounds it when nobody stops it.
    pub plan: LoadPlan,
    /// Whether its threads stay on the CPUs of the plan.
    pub placing: Placing,
}

/// Where the threads of a load may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placing {
    /// Each on its CPU of the plan.
    Pinned,
    /// Where the scheduler puts them.
    Loose,
}

/// Why a load gave no answer.
#[derive(Debug)]
pub enum LoadTrouble {
    /// It could not be opened.
    NotOpened(OpenError),
    /// Its thread could not be started, or died, or it ended before it began.
    Failed(Failure),
}

/// When it was looked at, and the replies until then.
type Seen = Vec<(u64, u64)>;

/// A load that is running.
pub(super) struct Running {
    thread: JoinHandle<Result<LoadReport, OpenError>>,
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    started: Receiver<()>,
}

impl Beside {
    /// Starts it and waits until its first answers came.
    pub(super) fn start(&self) -> Result<Running, LoadTrouble> {
        let (plan, stop) = (self.plan.clone(), Arc::new(AtomicBool::new(false)));
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let (tell, started) = channel();
        let (own_stop, own_seen) = (Arc::clone(&stop), Arc::clone(&seen));
        let placing = self.placing;
        let life = move || drive(&plan, &own_stop, &own_seen, &tell, placing);
        let thread = std::thread::Builder::new().name("dyno-load".to_owned()).spawn(life);
        let thread = thread.map_err(|error| {
            LoadTrouble::Failed(Failure::error("cannot start the load's thread").because(&error))
        })?;
        let running = Running { thread, stop, seen, started };
        running.wait()
    }
}

fn drive(
    plan: &LoadPlan,
    stop: &AtomicBool,
    seen: &Mutex<Seen>,
    tell: &Sender<()>,
    placing: Placing,
) -> Result<LoadReport, OpenError> {
    let everywhere = CpuSet::single(plan.cpus.first().copied().unwrap_or(0));
    let loose = Loose::unless_pinned((placing == Placing::Pinned).then_some(&everywhere), plan.cpus.len());
    let mut at_edge = |edge| match edge {
        Edge::SettleEnd => {
            loose.start();
            // Nobody listens any more when the diagnosis has given up.
            let _ = tell.send(());
        }
        Edge::End => loose.stop(),
    };
    let mut progress = |progress: &Progress| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push((mono_ns(), progress.replies));
    };
    dyno_load::run::load(plan, stop, &mut at_edge, &mut progress)
}

impl Running {
    fn wait(self) -> Result<Running, LoadTrouble> {
        if self.started.recv_timeout(OPENS_WITHIN).is_ok() {
            std::thread::sleep(SETTLE);
            return Ok(self);
        }
        self.end()?;
        Err(LoadTrouble::Failed(Failure::error("the load ended before it began")))
    }

    /// Answers per second between two moments, as far as it was told about once a second.
    pub(super) fn rate(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // The last word before the window belongs to it: a short one holds only one more.
        let from_ns = from_ns.saturating_sub(PROGRESS_EVERY_NS);
        let inside: Vec<&(u64, u64)> = seen.iter().filter(|(at, _)| *at >= from_ns && *at <= to_ns).collect();
        let (first, last) = (inside.first()?, inside.last()?);
        let seconds = (last.0 - first.0) as f64 / 1e9;
        (seconds > 0.0).then(|| (last.1 - first.1) as f64 / seconds)
    }

    fn end(self) -> Result<LoadReport, LoadTrouble> {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let ended = self.thread.join();
        let ended = ended.map_err(|_| LoadTrouble::Failed(Failure::error("the load's thread died")))?;
        ended.map_err(LoadTrouble::NotOpened)
    }

    /// Stops it and says what it saw; `rate` is the one of the window that was watched.
    pub(super) fn finish(
        self,
        plan: &LoadPlan,
        rate: Option<f64>,
        seen: &Observation,
    ) -> Result<Load, LoadTrouble> {
        Ok(in_figures(plan, &self.end()?, rate, seen))
    }
}

fn in_figures(plan: &LoadPlan, report: &LoadReport, rate: Option<f64>, seen: &Observation) -> Load {
    let block = &report.block;
    let connections = plan.session.connections;
    let signs = Signs { server_busy: server_busy(seen), ..Signs::of(block, connections) };
    let limited = signs.limited();
    let errors = &block.errors;
    let request_bytes = plan.session.target.request().len() as u64;
    Load {
        connections: connections as u32,
        replies: block.replies,
        replies_per_s: rate.unwrap_or_else(|| report.replies_per_s()),
        wire_bytes: block.bytes + request_bytes * block.replies,
        p50_ns: block.latencies.quantile(0.5),
        p99_ns: block.latencies.quantile(0.99),
        lost: errors.connect + errors.read + errors.write + errors.timeout,
        reconnects: block.reconnects,
        limited: match limited {
            Limited::No => Limit::No,
            Limited::Both => Limit::Both,
            Limited::Yes => Limit::Yes,
            Limited::CannotTell => Limit::Unknown,
        },
        limited_why: limited.in_words().to_owned(),
        busy: signs.busy(),
    }
}

/// How near the server is to a limit of its own: its busiest thread, or all it could have of the CPUs.
fn server_busy(seen: &Observation) -> Option<f64> {
    let wall_ns = seen.duration_s * 1e9;
    let busiest = seen.threads.iter().map(|thread| thread.run_ns).max()? as f64 / wall_ns;
    let could = seen.host.all_ns.saturating_sub(seen.host.own_ns + seen.host.foreign_ns + seen.host.steal_ns);
    let all = if could > 0 { seen.process.cpu_ns as f64 / could as f64 } else { 0.0 };
    Some(busiest.max(all).min(1.0))
}

//! The load of a diagnosis: `dyno load` on a thread of its own, from before the first counter to after the last.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use clap::Parser;
use dyno_load::limit::{Limited, Signs};
use dyno_load::run::{LoadPlan, LoadReport, PROGRESS_EVERY_NS};
use dyno_load::{Edge, OpenError, Progress};
use dyno_record::observation::{Limit, Load, Observation};
use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::clock::mono_ns;

use crate::cli::{self, Cli, Verb};
use crate::cmd::failure::Failure;
use crate::cmd::load as verb;

/// A load runs until it is told to stop; this only bounds it when nobody does.
const LONGEST_NS: u64 = 24 * 3_600_000_000_000;
/// The first moments are not the server's usual ones: buffers grow, connections begin.
const SETTLE: Duration = Duration::from_millis(500);
/// A server that takes longer to answer for the first time than any `--timeout` will not answer.
const OPENS_WITHIN: Duration = Duration::from_secs(60);

/// What `--load` says.
pub(super) struct Asked {
    pub(super) args: Box<cli::Load>,
    pub(super) plan: LoadPlan,
    pinned: bool,
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

impl Asked {
    /// Reads the words of `--load` as `dyno load` would, and takes CPUs that the server leaves.
    pub(super) fn parse(words: &str, server: &CpuSet) -> Result<Asked, Failure> {
        let mut args = parsed(words)?;
        verb::refuse_what_is_not_there_yet(&args)?;
        // wrk's two threads would take a small machine from the server: one is enough until the figures say otherwise.
        args.threads = args.threads.or(std::num::NonZeroUsize::new(1).filter(|_| args.pin.is_none()));
        let free: CpuSet = affinity::allowed().iter().filter(|cpu| !server.contains(*cpu)).collect();
        let threads = verb::threads(&args)?;
        let mut plan = verb::plan(&args, threads)?;
        let pinned = args.pin.is_some() || !free.is_empty();
        if args.pin.is_none() && !free.is_empty() {
            plan.cpus = free.iter().collect::<Vec<_>>().into_iter().cycle().take(threads).collect();
        }
        verb::make_room(args.connections.get() as u64 + threads as u64)?;
        plan.duration_ns = LONGEST_NS;
        Ok(Asked { args, plan, pinned })
    }

    /// Starts it and waits until its first answers came.
    pub(super) fn start(&self) -> Result<Running, Failure> {
        let (plan, stop) = (self.plan.clone(), Arc::new(AtomicBool::new(false)));
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let (tell, started) = channel();
        let (own_stop, own_seen) = (Arc::clone(&stop), Arc::clone(&seen));
        let pinned = self.pinned;
        let life = move || drive(&plan, &own_stop, &own_seen, &tell, pinned);
        let thread = std::thread::Builder::new().name("dyno-load".to_owned()).spawn(life);
        let thread =
            thread.map_err(|error| Failure::error("cannot start the load's thread").because(&error))?;
        let running = Running { thread, stop, seen, started };
        running.wait(self)
    }
}

fn parsed(words: &str) -> Result<Box<cli::Load>, Failure> {
    let words = words.split_whitespace().filter(|word| *word != "dyno" && *word != "load");
    let line = ["dyno", "load"].into_iter().chain(words);
    match Cli::try_parse_from(line).map(|cli| cli.verb) {
        Ok(Some(Verb::Load(args))) => Ok(args),
        Ok(_) => {
            Err(Failure::usage("--load names no load").try_this("--load 'http://127.0.0.1:8080/ -c 64'"))
        }
        Err(error) => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Err(Failure::usage(format!("--load: {first}"))
                .likely("it takes what stands after 'dyno load'")
                .try_this("--load 'http://127.0.0.1:8080/ -c 64'"))
        }
    }
}

fn drive(
    plan: &LoadPlan,
    stop: &AtomicBool,
    seen: &Mutex<Seen>,
    tell: &Sender<()>,
    pinned: bool,
) -> Result<LoadReport, OpenError> {
    let everywhere = CpuSet::single(plan.cpus.first().copied().unwrap_or(0));
    let loose = verb::Loose::unless_pinned(pinned.then_some(&everywhere), plan.cpus.len());
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
    fn wait(self, asked: &Asked) -> Result<Running, Failure> {
        if self.started.recv_timeout(OPENS_WITHIN).is_ok() {
            std::thread::sleep(SETTLE);
            return Ok(self);
        }
        match self.end() {
            Ok(_) => Err(Failure::error("the load ended before it began")),
            Err(Some(error)) => Err(verb::not_opened(&error, &asked.args)),
            Err(None) => Err(Failure::error("the load's thread died")),
        }
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

    fn end(self) -> Result<LoadReport, Option<OpenError>> {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        self.thread.join().map_err(|_| None)?.map_err(Some)
    }

    /// Stops it and says what it saw; `rate` is the one of the window that was watched.
    pub(super) fn finish(
        self,
        asked: &Asked,
        rate: Option<f64>,
        seen: &Observation,
    ) -> Result<Load, Failure> {
        let report = self.end().map_err(|error| match error {
            Some(error) => verb::not_opened(&error, &asked.args),
            None => Failure::error("the load's thread died"),
        })?;
        Ok(in_figures(asked, &report, rate, seen))
    }
}

fn in_figures(asked: &Asked, report: &LoadReport, rate: Option<f64>, seen: &Observation) -> Load {
    let block = &report.block;
    let connections = asked.plan.session.connections;
    let signs = Signs { server_busy: server_busy(seen), ..Signs::of(block, connections) };
    let limited = signs.limited();
    let errors = &block.errors;
    let request_bytes = asked.plan.session.target.request().len() as u64;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_load_are_those_of_dyno_load() {
        let asked = Asked::parse("http://127.0.0.1:1/json -c 8", &affinity::allowed()).ok();
        let asked = asked.expect("a plain load is understood");
        assert_eq!((asked.plan.session.connections, asked.plan.cpus.len(), asked.pinned), (8, 1, false));
        let whole = Asked::parse("dyno load http://127.0.0.1:1/ -c 2 -t 2", &affinity::allowed()).ok();
        assert_eq!(whole.expect("the verb itself may stand there").plan.cpus.len(), 2);
    }

    #[test]
    fn a_load_that_makes_no_sense_is_told_in_three_lines() {
        for words in ["", "-c 8", "http://h/ --nonsense"] {
            let lines = Asked::parse(words, &affinity::allowed()).err().expect("it is no load").lines();
            assert_eq!(lines.lines().count(), 3, "{lines}");
        }
    }
}

//! `dyno load`: wrk's question, wrk's answer, with every reply checked and the generator's own limit told.
//!
//! Builds a plan from flags, lets `dyno_load` run it, and prints: wrk's text, or one JSON object. Measures nothing itself
//! but the server's clocks at the edges, when a process was named.

mod ask;
mod outcome;
mod record;
mod text;

use crate::out;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use dyno_load::limit::Signs;
use dyno_load::run::{Ended, LoadPlan, LoadReport, OPENING_RUNS, PROGRESS_EVERY, load};
use dyno_load::{Edge, Loaded, OpenError, Placement, Progress, SessionPlan};
use dyno_sys::affinity::CpuSet;
use dyno_sys::proc;
use dyno_sys::socket::Addr;

use super::{exit, gate, stop};
use crate::cli::{self, Format};
use dyno_lab::Failure;
use dyno_lab::chain;
use dyno_lab::file;
use dyno_lab::measure::cost::{ServerClock, ServerCost};
use dyno_record::condition::Known;
use dyno_record::load::{LoadRun, Server};
use dyno_record::sheet::of_load;
use dyno_report::export::{self, Subject};
use outcome::{Failed, Outcome, failed};

/// Descriptors beside the connections: standard ones, one event queue per thread, one signal descriptor, and what reading
/// /proc takes for a moment.
const DESCRIPTORS_BESIDE: u64 = 32;

/// Threads without a number, as with wrk.
const THREADS_DEFAULT: usize = 2;

/// Runs the verb.
pub(crate) fn run(args: &cli::Load) -> Result<ExitCode, Failure> {
    refuse_what_is_not_there_yet(args)?;
    let conditions = gate::Conditions::read(&args.gate)?;
    conditions.check(&figures(args))?;
    let format = format(args);
    // Whether it can be written is known before anything is measured.
    args.output.iter().filter(|path| !is_stdout(path)).try_for_each(|path| file::can_be_written(path))?;
    let threads = threads(args)?;
    let plan = plan(args, threads)?;
    let clock = args.pid.map(ServerClock::new).transpose()?;
    make_room(args.connections.get() as u64 + threads as u64)?;
    stop::listen()?;
    if format == Format::Table {
        out::print(&text::head(args, threads))?;
    }
    let (report, server, rates) = measure(args, &plan, clock)?;
    let signs = Signs {
        server_busy: server.as_ref().and_then(|cost| cost.busiest),
        ..Signs::of(&report.block, args.connections.get())
    };
    let (limited, digests) = (signs.limited(), ask::digests(args, &plan.session));
    let cpus = dyno_sys::affinity::allowed().len();
    let outcome = Outcome { args, threads, cpus, report: &report, signs, limited, server, rates, digests };
    let run = record::record(&outcome);
    let held = conditions.hold(&of_load(&run))?;
    let why = failed(&report).map(|Failed { what, why, .. }| match why {
        Some(why) => format!("{what}: {why}"),
        None => what,
    });
    out::print(&match format.exporter() {
        Some(exporter) => export::write(exporter, Subject::Load(&run, why.as_deref()), &held),
        None if format == Format::Json => json(&run)?,
        None => text::body(&outcome),
    })?;
    // Behind what was printed: a full disk must not take away what was measured.
    if let Some(path) = args.output.as_deref().filter(|path| !is_stdout(path)) {
        file::write_file(path, json(&run)?.as_bytes(), dyno_lab::user::caller())?;
        out::say(&format!("record    {}\n", path.display()));
    }
    if why.is_some() && format == Format::Github {
        crate::failed::stands_in_the_format();
    }
    let met = gate::told(&held);
    ending(&report, met)
}

/// `-o -` prints the record and nothing else, as `--json` does.
fn format(args: &cli::Load) -> Format {
    let record = args.json || args.output.as_deref().is_some_and(is_stdout);
    args.format.wanted(cli::Json::of(record))
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Figures that a load will have, by name: the server's CPU only where its process is named.
fn figures(args: &cli::Load) -> Vec<Known> {
    let server = args.pid.map(|_| Server::default());
    Known::of(&of_load(&LoadRun { server, ..LoadRun::default() }))
}

fn json(run: &LoadRun) -> Result<String, Failure> {
    let text = serde_json::to_string(run);
    let text =
        text.map_err(|error| Failure::error("the result cannot be written as JSON").because(&error))?;
    Ok(text + "\n")
}

pub(super) fn refuse_what_is_not_there_yet(args: &cli::Load) -> Result<(), Failure> {
    let not_yet = |flag: &str, what: &str, instead: &str| {
        let failure = Failure::usage(format!("{flag} is not there yet: {what}"));
        Err(failure
            .likely("it is wrk's flag, and left out it would measure something else")
            .try_this(instead))
    };
    match (&args.script, &args.rate) {
        (Some(_), _) => {
            not_yet("-s/--script", "no Lua is run", "give the request by --method, -H and --body")
        }
        (_, Some(_)) => not_yet("-R/--rate", "the load is a closed loop", "dyno load without a rate"),
        _ => Ok(()),
    }
}

/// As many threads as asked for, else one for each CPU of `--pin`, else two.
pub(super) fn threads(args: &cli::Load) -> Result<usize, Failure> {
    let pinned = args.pin.as_ref().map(CpuSet::len);
    let threads = args.threads.map_or(pinned.unwrap_or(THREADS_DEFAULT), std::num::NonZeroUsize::get);
    if let Some(cpus) = pinned.filter(|cpus| *cpus > threads) {
        let what = format!("--pin names {cpus} CPUs for {threads} threads");
        return Err(Failure::usage(what).likely("a thread runs on one CPU").try_this(format!("-t{cpus}")));
    }
    if args.connections.get() < threads {
        let what = "number of connections must be >= threads";
        let likely = format!("-c is {}, -t is {threads}", args.connections);
        return Err(Failure::usage(what).likely(likely).try_this(format!("-t{threads} -c{threads}")));
    }
    Ok(threads)
}

pub(super) fn plan(args: &cli::Load, threads: usize) -> Result<LoadPlan, Failure> {
    let session = SessionPlan {
        target: ask::target(args)?,
        expect: ask::expect(&args.expect)?,
        connections: args.connections.get(),
        pipeline: args.pipeline.get(),
        timeout_ns: ns(args.timeout),
    };
    // A generator that nobody placed must be free to get out of the server's way, as wrk is.
    let placement = args.pin.as_ref().map_or(Placement::Unpinned(threads), |cpus| pinned(cpus, threads));
    Ok(LoadPlan::new(session, placement, ns(args.duration)))
}

/// More than five centuries are one.
pub(super) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// So many threads, each bound to one of the CPUs, in turn.
pub(super) fn pinned(cpus: &CpuSet, threads: usize) -> Placement {
    Placement::Pinned(cpus.iter().collect::<Vec<_>>().into_iter().cycle().take(threads).collect())
}

/// Every connection is a descriptor: the soft limit is raised as far as needed, the hard one is the world's.
pub(super) fn make_room(connections: u64) -> Result<(), Failure> {
    let needed = connections + DESCRIPTORS_BESIDE;
    let (soft, hard) = proc::nofile();
    if soft >= needed || (hard >= needed && proc::raise_nofile_to_hard().is_ok()) {
        return Ok(());
    }
    Err(Failure::error(format!("{connections} connections and threads need {needed} open descriptors"))
        .likely(format!("this process may have {hard} (ulimit -Hn)"))
        .try_this(format!(
            "-c{}, or as root: ulimit -Hn {needed}",
            hard.saturating_sub(DESCRIPTORS_BESIDE + 1).max(1)
        )))
}

type Measured = (LoadReport, Option<ServerCost>, Vec<f64>);

fn measure(args: &cli::Load, plan: &LoadPlan, mut clock: Option<ServerClock>) -> Result<Measured, Failure> {
    let mut at_edge = |edge: Edge| {
        if let Some(clock) = &mut clock {
            clock.read(edge);
        }
    };
    let mut rates = Rates::new(plan.placement.threads());
    let screen = format(args) == Format::Table && std::io::stderr().is_terminal();
    let mut progress = |progress: &Progress| {
        rates.add(progress.elapsed_ns, progress.replies);
        if screen {
            out::say(&text::progress(progress));
        }
    };
    let report = load(plan, &stop::STOP, &mut at_edge, &mut progress);
    if screen {
        out::say(text::CLEAR);
    }
    let report = report.map_err(|error| not_opened(&error, args, "-d"))?;
    let loaded = report.block.loaded;
    let cost = clock.and_then(|clock| clock.cost(loaded.wall_ns, report.block.replies));
    Ok((report, cost, rates.ended(loaded)))
}

/// Requests per second of a thread, sampled: the mean over all threads, once per progress.
struct Rates {
    threads: f64,
    /// Nanoseconds since the beginning, and right answers so far.
    points: Vec<(u64, u64)>,
}

impl Rates {
    fn new(threads: usize) -> Rates {
        Rates { threads: threads as f64, points: Vec::new() }
    }

    fn add(&mut self, elapsed_ns: u64, replies: u64) {
        self.points.push((elapsed_ns, replies));
    }

    /// The samples up to the end of sending: what comes later is the wait for the last answers. The rest of the run is a
    /// sample of its own when it is long enough to be one.
    fn ended(mut self, loaded: Loaded) -> Vec<f64> {
        self.points.retain(|(elapsed_ns, _)| *elapsed_ns < loaded.wall_ns);
        let rest_ns = loaded.wall_ns - self.points.last().map_or(0, |(elapsed_ns, _)| *elapsed_ns);
        if self.points.is_empty() || u128::from(rest_ns) >= PROGRESS_EVERY.as_nanos() / 2 {
            self.add(loaded.wall_ns, loaded.replies);
        }
        let from = std::iter::once((0, 0)).chain(self.points.iter().copied());
        let pieces = from.zip(&self.points).map(|(from, to)| (to.0 - from.0, to.1.saturating_sub(from.1)));
        let pieces = pieces.filter(|(ns, _)| *ns > 0);
        pieces.map(|(ns, count)| count as f64 / (ns as f64 / 1e9) / self.threads).collect()
    }
}

fn ending(report: &LoadReport, conditions_met: bool) -> Result<ExitCode, Failure> {
    if report.ended == Ended::Stopped {
        return Ok(ExitCode::from(exit::INTERRUPTED));
    }
    let Some(Failed { what, why, try_this }) = failed(report) else {
        return Ok(if conditions_met { exit::DONE } else { ExitCode::from(exit::NO) });
    };
    let failure = Failure::error(what).try_this(try_this);
    Err(match why {
        Some(why) => failure.likely(why),
        None => failure,
    })
}

/// Why the load never began; `lasts` is the flag that says for how long first answers are awaited.
pub(super) fn not_opened(error: &OpenError, args: &cli::Load, lasts: &str) -> Failure {
    let failure = Failure::error(chain(error));
    let (likely, try_this) = match error {
        OpenError::Refused { addr, .. } => {
            ("no server listens there".to_owned(), format!("dyno serve --listen {addr}"))
        }
        OpenError::TimedOut { answered, connections, .. } if answered < connections && *answered > 0 => {
            ("it serves fewer connections at a time than were opened".to_owned(), format!("-c{answered}"))
        }
        OpenError::TimedOut { timeout_ns, .. } if u128::from(*timeout_ns) < args.timeout.as_nanos() => {
            let duration_s = args.timeout.as_secs_f64() / f64::from(OPENING_RUNS);
            (
                "it hangs, or is too slow for a run as short as this".to_owned(),
                format!("curl -si URL, or {lasts}{:.0}s to await it for all of --timeout", duration_s.ceil()),
            )
        }
        OpenError::TimedOut { .. } | OpenError::Late { .. } | OpenError::Unreached { .. } => {
            ("it hangs, or is slower than --timeout".to_owned(), "--timeout 10s, or curl -si URL".to_owned())
        }
        OpenError::WrongAnswer { .. } => {
            ("the URL or what is expected of it is not right".to_owned(), curl(args))
        }
        OpenError::NotHttp { .. }
        | OpenError::Closed { .. }
        | OpenError::Owed { .. }
        | OpenError::Broken { .. } => ("it speaks TLS, HTTP/2, or something else".to_owned(), curl(args)),
        OpenError::Connect { addr: Addr::Unix(path), source } => not_connected(path, source),
        OpenError::Connect { .. } => (
            "too many connections for one address and port, or no way there".to_owned(),
            "fewer connections, or: cat /proc/sys/net/ipv4/ip_local_port_range".to_owned(),
        ),
        OpenError::Cpu { .. } | OpenError::Thread { .. } => {
            ("the CPU is offline, or taken from this process".to_owned(), "taskset -cp $$".to_owned())
        }
        OpenError::Plan { .. } => {
            ("the flags contradict each other".to_owned(), "dyno load --help".to_owned())
        }
        OpenError::Stopped { .. } => return Failure::interrupted().because(error),
        OpenError::Epoll { .. } => {
            ("descriptors or kernel memory are short".to_owned(), "ulimit -a".to_owned())
        }
    };
    failure.likely(likely).try_this(try_this)
}

/// Why a socket file could not be connected to, though something is there.
fn not_connected(path: &std::path::Path, source: &std::io::Error) -> (String, String) {
    let likely = match source.kind() {
        std::io::ErrorKind::PermissionDenied => "this user may not write to the socket file",
        std::io::ErrorKind::WouldBlock => "its server does not accept as fast, and its queue is short",
        _ => "it is no socket that a server listens on",
    };
    (likely.to_owned(), format!("ls -l {}", quoted(&path.display().to_string())))
}

/// The same request by hand.
fn curl(args: &cli::Load) -> String {
    let over = args
        .unix_socket
        .as_ref()
        .map_or_else(String::new, |path| format!("--unix-socket {} ", quoted(&path.display().to_string())));
    format!("curl -si {over}{}", quoted(&args.url))
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::Parser;
    use dyno_climb::load::LoadSpec;
    use dyno_lab::launch::load::LoadCommand;

    pub(super) fn load_args(words: &[&str]) -> Box<cli::Load> {
        let line = ["dyno", "load", "http://127.0.0.1:1/"];
        let Some(Verb::Load(args)) = Cli::try_parse_from(line.iter().chain(words)).unwrap().verb else {
            panic!("load was asked for")
        };
        args
    }

    fn loaded(wall_ns: u64, replies: u64) -> Loaded {
        Loaded { wall_ns, replies, ..Loaded::default() }
    }

    #[test]
    fn threads_are_two_or_one_for_each_pinned_cpu() {
        assert_eq!(threads(&load_args(&[])).unwrap(), 2);
        assert_eq!(threads(&load_args(&["--pin", "0-2,5"])).unwrap(), 4);
        assert_eq!(threads(&load_args(&["--pin", "1", "-t3"])).unwrap(), 3);
        assert!(threads(&load_args(&["--pin", "0,1", "-t1"])).is_err());
    }

    #[test]
    fn fewer_connections_than_threads_is_refused_in_wrks_words() {
        let lines = threads(&load_args(&["-t4", "-c3"])).unwrap_err().lines();
        assert!(lines.starts_with("error: number of connections must be >= threads\n"), "{lines}");
    }

    #[test]
    fn wrks_flags_that_are_not_there_are_never_ignored() {
        assert!(refuse_what_is_not_there_yet(&load_args(&["-s", "x.lua"])).is_err());
        assert!(refuse_what_is_not_there_yet(&load_args(&["-R", "1000"])).is_err());
        assert!(refuse_what_is_not_there_yet(&load_args(&[])).is_ok());
    }

    #[test]
    fn more_connections_than_descriptors_is_an_error_with_both_numbers() {
        let (_, hard) = proc::nofile();
        let lines = make_room(hard).unwrap_err().lines();
        assert!(lines.contains(&format!("this process may have {hard}")), "{lines}");
    }

    /// Planted fault: a longer timeout is what is to be tried where the run's length was the limit.
    #[test]
    fn a_first_answer_that_is_slower_than_a_short_run_says_which_run_would_await_it() {
        let lines = |timeout_ns: u64, words: &[&str]| {
            let addr = "127.0.0.1:1".parse().unwrap();
            let error = OpenError::TimedOut { addr, timeout_ns, answered: 0, connections: 10 };
            not_opened(&error, &load_args(words), "-d").lines()
        };
        let short = lines(5_000_000_000, &["-d1s", "-T31s"]);
        assert!(short.contains("did not answer within 5000 ms") && short.contains("-d11s"), "{short}");
        let whole = lines(2_000_000_000, &[]);
        assert!(whole.contains("--timeout 10s") && !whole.contains("-d"), "{whole}");
    }

    #[test]
    fn rates_are_per_thread_and_the_last_part_of_a_second_counts_if_it_is_long() {
        let second = 1_000_000_000;
        let mut rates = Rates::new(2);
        rates.add(second, 2_000);
        rates.add(2 * second, 6_000);
        assert_eq!(rates.ended(loaded(2 * second + second / 10, 6_100)), [1_000.0, 2_000.0]);
        assert_eq!(Rates::new(1).ended(loaded(second / 2, 100)), [200.0]);
        assert!(Rates::new(1).ended(loaded(0, 0)).is_empty());
    }

    /// Planted fault: seconds in which the last answers are awaited are seconds of the run, in which nobody answers.
    #[test]
    fn waiting_for_a_straggler_is_no_part_of_the_rates() {
        let second = 1_000_000_000;
        let mut rates = Rates::new(1);
        for (tenths, replies) in [(10, 100), (20, 200), (30, 301), (40, 301)] {
            rates.add(tenths * second / 10 + 200_000, replies);
        }
        let told = rates.ended(loaded(3 * second, 300));
        assert_eq!(told.iter().map(|rate| rate.round()).collect::<Vec<_>>(), [100.0; 3]);
    }

    #[test]
    fn the_load_beside_experiments_is_the_plans() {
        let mut load = LoadSpec { path: "/json?a=b".into(), pipeline: 16, ..LoadSpec::default() };
        load.headers.insert("X-Name".into(), "some words".into());
        load.expect_body = Some("it = that".into());
        let words = LoadCommand::of_spec(&load, 8_080, CpuSet::single(1)).unwrap().words;
        let cli = Cli::try_parse_from(std::iter::once("dyno".to_owned()).chain(words)).unwrap();
        let Some(Verb::Load(parsed)) = cli.verb else { panic!("it is a load") };
        assert_eq!((parsed.url.as_str(), parsed.pipeline.get()), ("http://127.0.0.1:8080/json?a=b", 16));
        assert_eq!((parsed.connections.get(), parsed.pin), (load.connections, Some(CpuSet::single(1))));
        assert_eq!(parsed.headers, ["X-Name: some words"]);
        assert_eq!(parsed.expect, ["status=200", "body=it = that"]);
    }

    #[test]
    fn a_plans_texts_may_begin_with_a_hyphen() {
        let mut load = LoadSpec { body: "-x=1".into(), method: "-M".into(), ..LoadSpec::default() };
        load.headers.insert("-Name".into(), "-1".into());
        load.expect_body = Some("--ok".into());
        let words = LoadCommand::of_spec(&load, 1, CpuSet::single(0)).unwrap().words;
        let cli = Cli::try_parse_from(std::iter::once("dyno".to_owned()).chain(words)).unwrap();
        let Some(Verb::Load(parsed)) = cli.verb else { panic!("it is a load") };
        assert_eq!((parsed.body.as_deref(), parsed.method.as_str()), (Some("-x=1"), "-M"));
        assert_eq!(
            (&parsed.headers[..], &parsed.expect[1..]),
            (&["-Name: -1".to_owned()][..], &["body=--ok".to_owned()][..])
        );
    }
}

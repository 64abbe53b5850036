//! `dyno serve`: the engine's supervisor with its configuration from flags, environment and file.
//!
//! Started as root its workers become somebody else, see [`user`]. Standard output is the access log's; everything that happens is told on standard error. It forks, so nothing here
//! starts a thread.

mod bytes;
mod clients;
mod content;
mod file;
mod hosts;
mod layers;
mod logs;
mod manager;
mod settings;
mod show;
mod user;
mod what;

use crate::out;
use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::process::ExitCode;
use std::time::Duration;

use dyno_engine::supervisor::{self, Event, ExitReport};
use dyno_engine::{Addr, Config, DialError, Dials, Drained, EngineError, Limits, Router, handler};
use dyno_measure::units::thousands;
use dyno_sys::socket::SocketError;
use dyno_sys::{child, proc};

use super::exit;
use crate::cli;
use dyno_lab::Failure;
use dyno_lab::chain;
use layers::Origin;
use manager::Manager;

/// What opening a pipe for writing answers that nobody has opened for reading (ENXIO, fifo(7)).
const NOBODY_READS: i32 = 6;

/// Ports below this one belong to root (ip_unprivileged_port_start, ip-sysctl).
const PRIVILEGED_PORTS: u16 = 1_024;

/// Runs the verb.
pub(crate) fn run(args: &cli::Serve) -> Result<ExitCode, Failure> {
    // First of all, before anything else could be opened under its number.
    let control = match args.control_fd {
        Some(number) => Some(child::take_inherited(number).map_err(|error| {
            let what = format!("cannot take orders on descriptor {number}");
            let likely = "whoever started it left nothing open under that number";
            Failure::error(what).because(&error).likely(likely).try_this("dyno serve, without --control-fd")
        })?),
        None => None,
    };
    let line: Vec<OsString> = std::env::args_os().collect();
    let effective =
        layers::effective(&line, settings::all(), |name| std::env::var_os(name)).map_err(all_but_one)?;
    let args = &effective.args;
    let config = config(args).map_err(|error| unknown_word(&error))?;
    private(args)?;
    clients::check(&args.clients)?;
    logs::check(&args.logs, &config)?;
    if args.show_config {
        out::print(&show::shown(&effective, &config))?;
        return Ok(exit::DONE);
    }
    let hosts = hosts::of(&effective)?;
    let content = content::mounts(&args.content, hosts::roots(&effective))?;
    let is_demo = content.is_empty() && hosts.is_empty();
    let user = user::of_workers(args.user.as_deref())?;
    if args.bytes.bytes_report.is_some() {
        let replies = dyno_engine::account(content, hosts).map_err(|error| engine_failure(&error))?;
        out::print(&bytes::report(&args.bytes, &replies)?)?;
        return Ok(exit::DONE);
    }
    if args.check {
        return check(args, &Config { content, hosts, ..config });
    }
    if let (dyno_engine::Log::Off, Some(path)) = (config.dials.log, &config.log_file) {
        // Not an error: whoever turns the log off may leave the rest of the command as it is, as a climb does.
        let path = path.display();
        out::say(&format!(
            "warning: nothing is written to {path}: the access log is off (--log ring turns it on)\n"
        ));
    }
    let who = user.as_ref().map_or_else(String::new, |user| format!("as user {}\n", user.name));
    let config = Config { control, content, hosts, user: user.map(|user| user.identity), ..config };
    let mut manager = Manager::of(|name| std::env::var_os(name), child::this())?;
    let config = Config { inherited: manager.take_listeners()?, alive_ns: manager.alive_ns(), ..config };
    let is_set = effective
        .settings
        .iter()
        .any(|(setting, _, origin)| setting.id == "listen" && *origin != Origin::Default);
    if !config.inherited.is_empty() && is_set {
        out::say("warning: it is listened where the service manager says, not where listen is set\n");
    }
    let drain = args.drain_timeout;
    let dials = config.dials.clone();
    let routes = || match is_demo {
        true => handler::demo(&dials).expect("the routes are fixed, and a test of the engine adds them all"),
        false => Router::new(),
    };
    let errors = logs::open_errors(&args.logs)?;
    let config = Config { error_log: Some(errors.clone()), ..config };
    let report = supervisor::run(config, &routes, &mut |event| {
        manager.tell(&event);
        logs::tell(&errors, logs::When::of(&event), &told(&event, drain));
        if matches!(event, Event::Listening { .. }) {
            logs::tell(&errors, logs::When::Start, &who);
        }
    });
    let report = report.map_err(|error| engine_failure(&error))?;
    logs::tell(&errors, logs::When::Later, &end(&report));
    Ok(exit::DONE)
}

/// Says whether these settings would serve.
fn check(args: &cli::Serve, config: &Config) -> Result<ExitCode, Failure> {
    logs::check_errors(&args.logs)?;
    let busy = supervisor::check(config).map_err(|error| engine_failure(&error))?;
    for addr in busy {
        let place = url(&addr);
        out::say(&format!(
            "warning: {place} is in use now; that is as it should be if this server runs there\n"
        ));
    }
    let what = args.what.as_deref().map_or_else(|| "dyno".to_owned(), dyno_lab::file::name);
    out::print(&format!("{what} would serve\n"))?;
    Ok(exit::DONE)
}

/// Metrics are nobody else's business, unless that is said.
fn private(args: &cli::Serve) -> Result<(), Failure> {
    match &args.metrics {
        Some(Addr::Tcp(addr)) if !addr.ip().is_loopback() && !args.metrics_public => {
            Err(Failure::usage(format!("others than this machine could read the metrics on {addr}"))
                .likely("it is no address of this machine's own (127.0.0.1, [::1] or unix:/path)")
                .try_this(format!("--metrics 127.0.0.1:{}, or --metrics-public", addr.port())))
        }
        _ => Ok(()),
    }
}

/// Says every mistake but the last, which is the failure's to say.
fn all_but_one(mut mistakes: Vec<Failure>) -> Failure {
    let last = mistakes.pop().expect("who fails has a reason");
    mistakes.iter().for_each(|mistake| out::say(&mistake.lines()));
    last
}

/// The engine's configuration for these flags.
///
/// # Errors
/// When a dial does not know its word.
pub(crate) fn config(args: &cli::Serve) -> Result<Config, DialError> {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let usual = Limits::default();
    let limits = Limits {
        buffer_bytes_max: args.buffer_bytes_max.unwrap_or(usual.buffer_bytes_max),
        line_bytes_max: args.line_bytes_max.get(),
        head_bytes_max: args.head_bytes_max.get(),
        body_bytes_max: args.body_bytes_max,
        connections_max: args.connections_max.get(),
        head_ns: ns(args.header_timeout),
        idle_ns: ns(args.idle_timeout),
        body_ns: ns(args.body_timeout),
        write_ns: ns(args.write_timeout),
        address: clients::limits(&args.clients),
        ..usual
    };
    Ok(Config {
        listen: args.listen.clone(),
        dials: dials(args)?,
        limits,
        log_file: args.logs.log_file.clone(),
        log_format: args.logs.log_format.clone(),
        log_fsync: args.logs.log_fsync,
        drain_ns: ns(args.drain_timeout),
        socket_mode: args.socket_mode,
        metrics: args.metrics.clone(),
        clients: clients::of(&args.clients),
        error_log: None,
        inherited: Vec::new(),
        alive_ns: None,
        control: None,
        user: None,
        content: Vec::new(),
        hosts: Vec::new(),
    })
}

/// The start, which depends on the number of workers, and over it every dial that was given.
fn dials(args: &cli::Serve) -> Result<Dials, DialError> {
    let mut dials = if args.naive { Dials::naive() } else { Dials::default() };
    if let Some(word) = args.dials.word("workers") {
        dials.set("workers", word)?;
        if !args.naive {
            dials = Dials::for_workers(dials.workers.count());
        }
    }
    for (name, word) in args.dials.given() {
        dials.set(name, word)?;
    }
    Ok(dials)
}

fn unknown_word(error: &DialError) -> Failure {
    match error {
        DialError::UnknownWord { dial, word, choices } => {
            let what = format!("dial {dial} cannot stand at \"{word}\"");
            Failure::usage(what).likely(format!("it takes {choices}")).try_this("dyno serve --help")
        }
        DialError::UnknownDial { .. } => Failure::usage(error.to_string()).try_this("dyno serve --help"),
    }
}

fn told(event: &Event, drain: Duration) -> String {
    match event {
        Event::Listening { addrs, pids } => {
            let lines: String = addrs.iter().map(|addr| format!("listening on {}\n", url(addr))).collect();
            let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
            let noun = if pids.len() == 1 { "worker" } else { "workers" };
            format!("{lines}{noun} {}\n", pids.join(" "))
        }
        Event::Metrics { addr } => match addr {
            Addr::Tcp(_) => format!("metrics on {}/metrics\n", url(addr)),
            Addr::Unix(_) => format!("metrics on {addr}\n"),
        },
        Event::MetricsDied { exit, replaced_in_ns } => {
            format!(
                "warning: the process for metrics died ({exit}); it is replaced {}\n",
                soon(*replaced_in_ns)
            )
        }
        Event::WorkerDied { pid, exit, replaced_in_ns } => {
            format!("warning: worker {pid} died ({exit}); it is replaced {}\n", soon(*replaced_in_ns))
        }
        Event::WorkerDrained { pid } => {
            format!("worker {pid} was told to drain and has ended; it is replaced\n")
        }
        Event::WorkerReplaced { old, new } => format!("worker {new} replaces {old}\n"),
        Event::WorkerNotReplaced { why } => {
            format!("warning: a worker could not be replaced: {}; it is tried again\n", chain(why))
        }
        Event::LogWriterDied { exit, replaced_in_ns } => {
            format!(
                "warning: the access log's writer died ({exit}); it is replaced {}\n",
                soon(*replaced_in_ns)
            )
        }
        Event::Content { folder, files, unread } => {
            let lost = match unread {
                0 => String::new(),
                unread => format!(" (warning: {unread} cannot be read by whoever serves)"),
            };
            let noun = if *files == 1 { "file" } else { "files" };
            format!("{} {noun} of {}{lost}\n", thousands(*files as f64), folder.display())
        }
        Event::BuilderDied { exit, replaced_in_ns } => format!(
            "warning: the process that reads the folder died ({exit}); it is replaced {}\n",
            soon(*replaced_in_ns)
        ),
        Event::ContentStale { why } => {
            format!("warning: changes of the folder are not served: {why}; it is tried again\n")
        }
        Event::Fitted { asked, fitting } => format!(
            "warning: a worker can hold {} connections, not {}: descriptors are limited (ulimit -n)\n",
            thousands(*fitting as f64),
            thousands(*asked as f64)
        ),
        Event::Full { workers } => {
            let who = if *workers == 1 {
                "a worker accepts".to_owned()
            } else {
                format!("{workers} workers accept")
            };
            format!(
                "warning: {who} no more connections: no descriptor is free, or --connections-max is reached\n"
            )
        }
        Event::Alive => String::new(),
        Event::SignalIgnored { signal } => format!("{signal} means nothing here and is ignored\n"),
        Event::LogTrouble { why } => logs::trouble(why),
        Event::LogRecovered { lost } => logs::recovered(*lost),
        Event::LogReopened { path } => format!("the access log was opened anew: {}\n", path.display()),
        Event::LogNotReopened { why } => {
            format!("warning: {}; the file that was open goes on being written\n", chain(why))
        }
        Event::MemoryShort { refused, cut } => format!(
            "warning: connections hold more than --buffer-bytes-max: {refused} bodies were refused, {cut} connections \
             cut in the last minute\n"
        ),
        Event::Draining => {
            let seconds = drain.as_secs_f64();
            format!("draining for at most {seconds} s; a second signal ends at once\n")
        }
    }
}

pub(crate) fn url(addr: &Addr) -> String {
    match addr {
        Addr::Tcp(addr) => format!("http://{addr}"),
        Addr::Unix(_) => addr.to_string(),
    }
}

fn soon(pause_ns: u64) -> String {
    match pause_ns / 1_000_000 {
        0 => "at once".to_owned(),
        pause_ms => format!("in {pause_ms} ms"),
    }
}

fn end(report: &ExitReport) -> String {
    let lost = match report.counts.log_drops {
        0 => String::new(),
        1 => "warning: 1 line of the access log was lost\n".to_owned(),
        lines => format!("warning: {lines} lines of the access log were lost\n"),
    };
    lost + &drained(report)
}

fn drained(report: &ExitReport) -> String {
    let requests = report.counts.requests;
    let noun = if requests == 1 { "request" } else { "requests" };
    match report.drained {
        Drained::Wholly => format!("drained after {requests} {noun}\n"),
        Drained::Cut => {
            format!(
                "warning: the drain was cut short: open connections were closed, after {requests} {noun}\n"
            )
        }
    }
}

/// An engine's error with its likely cause; `dyno floor` has the same ones.
pub(crate) fn engine_failure(error: &EngineError) -> Failure {
    let failure = Failure::error(error.to_string());
    match error {
        EngineError::Listen { addr, source } => not_listening(failure.because(error), addr, source),
        EngineError::Log { source, .. } if source.raw_os_error() == Some(NOBODY_READS) => failure
            .because(source)
            .likely("it is a pipe that nobody reads")
            .try_this("start its reader first"),
        EngineError::Log { path, source } => {
            let failure = dyno_lab::file::refused(&error.to_string(), source);
            match path {
                Some(_) => failure,
                None => failure.try_this("dyno serve --log-file access.log"),
            }
        }
        EngineError::ErrorLog { source, .. } => dyno_lab::file::refused(&error.to_string(), source),
        EngineError::System { source, .. } if source.raw_os_error().is_some_and(is_short_of_memory) => {
            failure.because(error).likely("memory or processes are limited here").try_this("ulimit -a")
        }
        EngineError::WorkerStart { how, .. } if how.contains("cannot become user") => failure
            .because(error)
            .likely("this root may not become other users, as in some containers")
            .try_this("dyno serve --user root, if what it serves may have all of root's rights"),
        EngineError::Content { source } => Failure::error(chain(source))
            .likely("whoever serves may not read it (dyno serve --help, --user), or it is another's")
            .try_this("ls -ld, on the folder and those above it"),
        EngineError::System { .. } | EngineError::WorkerStart { .. } => {
            failure.because(error).try_this("dyno serve --workers 1 --pin none --reuseport off")
        }
        EngineError::Limit { limit, .. } => Failure::usage(error.to_string())
            .try_this(format!("another --{} (dyno serve --help)", limit.replace('_', "-"))),
        EngineError::Inherited { .. } => failure
            .because(error)
            .likely("a mistake in the socket unit")
            .try_this("systemctl cat dyno.socket"),
        EngineError::Host { source } => Failure::usage(chain(source))
            .likely("two settings of hosts contradict each other")
            .try_this("docs/manual/hosts.md"),
        EngineError::NoAddress | EngineError::Address { .. } | EngineError::Route { .. } => {
            failure.because(error).try_this("dyno serve --help")
        }
    }
}

/// ENOMEM and EAGAIN: what fork(2) and mmap(2) answer where a limit was reached.
fn is_short_of_memory(number: i32) -> bool {
    matches!(
        io::Error::from_raw_os_error(number).kind(),
        io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock
    )
}

fn not_listening(failure: Failure, addr: &Addr, source: &SocketError) -> Failure {
    let cause = source.source().and_then(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    match (source, cause) {
        (SocketError::InUse { .. }, _) => busy(failure, addr),
        (SocketError::Option { .. }, Some(io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)) => {
            failure
                .likely("the kernel has no congestion control of that name, or only root may choose it")
                .try_this("cat /proc/sys/net/ipv4/tcp_allowed_congestion_control")
        }
        (_, Some(io::ErrorKind::PermissionDenied)) if is_privileged(addr) => failure
            .likely("ports below 1024 need root or CAP_NET_BIND_SERVICE")
            .try_this("--listen 127.0.0.1:8080"),
        (_, Some(io::ErrorKind::PermissionDenied)) => {
            failure.likely("this user may not make a file there").try_this("name a socket file in /tmp")
        }
        (_, Some(io::ErrorKind::NotFound)) => failure
            .likely("the folder of the socket file does not exist")
            .try_this("name a socket file in /tmp"),
        (_, Some(io::ErrorKind::AddrNotAvailable)) => {
            failure.likely("this machine has no such address").try_this("ip -brief address")
        }
        _ => failure.try_this("another address: --listen 127.0.0.1:0"),
    }
}

fn busy(failure: Failure, addr: &Addr) -> Failure {
    if let Addr::Unix(path) = addr
        && std::fs::symlink_metadata(path).is_ok_and(|file| !file.file_type().is_socket())
    {
        return failure
            .likely("a file of that name is there, and it is no socket: it is left alone")
            .try_this(format!("another name: --listen {}", elsewhere(addr)));
    }
    let pids: Vec<String> = proc::listeners(addr).iter().map(ToString::to_string).collect();
    let likely = match &pids[..] {
        [] => "another program listens there".to_owned(),
        [pid] => format!("process {pid} listens there"),
        _ => format!("processes {} listen there", pids.join(", ")),
    };
    let try_this = match pids.first() {
        Some(pid) => format!("ps -p {pid}, or another address: --listen {}", elsewhere(addr)),
        None => format!("another address: --listen {}", elsewhere(addr)),
    };
    failure.likely(likely).try_this(try_this)
}

/// The same place with a port that the kernel chooses.
fn elsewhere(addr: &Addr) -> String {
    match addr {
        Addr::Tcp(addr) => std::net::SocketAddr::new(addr.ip(), 0).to_string(),
        Addr::Unix(path) => format!("unix:{}.2", path.display()),
    }
}

fn is_privileged(addr: &Addr) -> bool {
    matches!(addr, Addr::Tcp(addr) if addr.port() < PRIVILEGED_PORTS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::Parser;
    use dyno_climb::built_in::built_in;
    use dyno_climb::plan::Plan;
    use dyno_climb::rung::Surroundings;

    fn serve(words: &[&str]) -> Box<cli::Serve> {
        let cli = Cli::try_parse_from(["dyno", "serve"].iter().chain(words)).unwrap();
        let Some(Verb::Serve(args)) = cli.verb else { panic!("serve was asked for") };
        args
    }

    fn dials_of(words: &[&str]) -> Dials {
        config(&serve(words)).unwrap().dials
    }

    #[test]
    fn without_flags_everything_is_as_the_engine_has_it() {
        let (ours, theirs) = (config(&serve(&[])).unwrap(), Config::default());
        assert_eq!((ours.listen, ours.dials, ours.limits), (theirs.listen, theirs.dials, theirs.limits));
        assert_eq!((ours.log_file, ours.drain_ns), (theirs.log_file, theirs.drain_ns));
    }

    #[test]
    fn a_dial_that_is_given_wins_over_naive_in_any_order() {
        let wanted = Dials { log: dyno_engine::Log::Ring, ..Dials::naive() };
        assert_eq!(dials_of(&["--naive", "--log", "ring"]), wanted);
        assert_eq!(dials_of(&["--log", "ring", "--naive"]), wanted);
    }

    #[test]
    fn several_workers_get_their_own_defaults_unless_told_otherwise() {
        assert_eq!(dials_of(&["--workers", "3"]), Dials::for_workers(3.try_into().unwrap()));
        let told = dials_of(&["--workers", "3", "--reuseport", "cpu", "--pin", "none"]);
        assert_eq!((told.reuseport, told.pin), (dyno_engine::Reuseport::Cpu, dyno_engine::Pin::None));
        assert_eq!(dials_of(&["--naive", "--workers", "3"]).reuseport, dyno_engine::Reuseport::Off);
    }

    #[test]
    fn every_dial_has_a_flag_of_its_name() {
        for name in Dials::NAMES {
            let word = Dials::default().get(name).unwrap();
            let flag = format!("--{name}");
            assert_eq!(dials_of(&["--naive", &flag, &word]).get(name), Some(word));
        }
    }

    #[test]
    fn a_word_that_a_dial_does_not_know_is_answered_with_its_choices() {
        let lines = unknown_word(&config(&serve(&["--log", "loud"])).unwrap_err()).lines();
        assert!(lines.starts_with(
            "error: dial log cannot stand at \"loud\"\n  likely: it takes sync, ring, commit or off\n"
        ));
    }

    /// The climb turns dials by the words of these flags; it must not invent any.
    #[test]
    fn every_value_of_the_built_in_plan_is_a_flag_that_the_engine_takes() {
        let surroundings = Surroundings {
            program: "dyno".into(),
            server_cpus: 4,
            congestion_controls: vec!["reno".into(), "cubic".into()],
            allocators: vec!["/usr/lib/libmimalloc.so.2".into()],
        };
        let plan: Plan = built_in(&surroundings);
        let words: Vec<&str> = plan
            .dials
            .iter()
            .flat_map(|dial| &dial.values)
            .flat_map(|value| &value.words)
            .map(String::as_str)
            .collect();
        assert!(words.len() > 20, "the plan turns dials by words");
        for dial in &plan.dials {
            for value in &dial.values {
                let words: Vec<&str> = value.words.iter().map(String::as_str).collect();
                config(&serve(&words)).unwrap_or_else(|error| panic!("{words:?}: {error}"));
            }
        }
    }

    #[test]
    fn events_are_told_in_a_line_each() {
        let addrs = vec!["127.0.0.1:8080".parse().unwrap(), "unix:/tmp/x".parse().unwrap()];
        let listening = told(&Event::Listening { addrs, pids: vec![7, 8] }, Duration::ZERO);
        assert_eq!(listening, "listening on http://127.0.0.1:8080\nlistening on unix:/tmp/x\nworkers 7 8\n");
        let died = Event::WorkerDied { pid: 7, exit: child::Exit::Signal(9), replaced_in_ns: 20_000_000 };
        assert_eq!(
            told(&died, Duration::ZERO),
            "warning: worker 7 died (killed by SIGKILL); it is replaced in 20 ms\n"
        );
    }
}

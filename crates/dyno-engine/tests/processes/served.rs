//! This program again as a server process, and what the tests do with it.

use crate::common::DEADLINE;
use dyno_engine::master::{self, Inheritance, Own, Program, Setup};
use dyno_engine::supervisor::Event;
use dyno_engine::{
    Addr, AddressLimits, Config, Content, Dials, EngineError, ErrorLog, Level, Limits, Method, Mount, Reply,
    Request, Response, Router, Sandbox, handler,
};
use dyno_sys::Pid;
use dyno_sys::signal::{self, Signal};
use dyno_sys::socket::{self, Io, Ready};
use std::collections::VecDeque;
use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitCode, ExitStatus, Stdio};

/// A server process.
pub(crate) struct Served {
    pub(crate) child: Child,
    lines: BufReader<ChildStdout>,
    /// Lines that were told before it was ready.
    told: VecDeque<String>,
    addr: Addr,
    pub(crate) pids: Vec<Pid>,
    /// How many connections a worker can hold, where it said that these are fewer than it may.
    pub(crate) fits: Option<usize>,
    control: OwnedFd,
    /// Programs that took over, which are nobody's children any more when their predecessors have ended.
    pub(crate) successors: Vec<Pid>,
}

impl Served {
    pub(crate) fn start(settings: &[(&str, &str)]) -> Served {
        let (ours, theirs) = socket::pair().unwrap();
        let limits = settings.iter().find_map(|(name, limit)| match *name {
            "nofile" => Some(format!("ulimit -n {limit}")),
            "file_blocks" => Some(format!("ulimit -f {limit}")),
            // A descriptor that whoever started the server has left open.
            "extra" => Some(format!("exec 9<{limit}")),
            _ => None,
        });
        let mut command = match limits {
            None => program(),
            Some(limits) => {
                let mut shell = Command::new("sh");
                shell
                    .args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")])
                    .arg(std::env::current_exe().unwrap());
                shell
            }
        };
        // The control socket comes in as standard input: that needs no descriptor to be passed by number.
        command.arg("serve").args(words(settings)).stdin(Stdio::from(theirs)).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = next_line(&mut lines);
        let fits = line.strip_prefix("fits ").map(|most| most.parse().unwrap());
        if fits.is_some() {
            line = next_line(&mut lines);
        }
        let said: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(said.first(), Some(&"listening"), "{line}");
        let pids = said[2..].iter().map(|pid| pid.parse().unwrap()).collect();
        // The supervisor has told where it listens; the master replaces it from when it has heard that all workers are ready. A
        // supervisor that is killed before has not started, and neither has the server.
        let mut told = VecDeque::new();
        loop {
            match next_line(&mut lines) {
                line if line == READY => break,
                line => {
                    assert!(!line.is_empty(), "the server has ended");
                    told.push_back(line);
                }
            }
        }
        Served {
            child,
            lines,
            told,
            addr: said[1].parse().unwrap(),
            pids,
            fits,
            control: ours,
            successors: Vec::new(),
        }
    }

    /// Where it listens, over TCP.
    pub(crate) fn addr(&self) -> SocketAddr {
        match &self.addr {
            Addr::Tcp(addr) => *addr,
            Addr::Unix(path) => panic!("not a TCP address: {path:?}"),
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.child.id().cast_signed()
    }

    /// The supervisor of the workers.
    pub(crate) fn supervisor(&self) -> Pid {
        parent(self.pids[0])
    }

    /// Hears of the workers of a new generation; what else is told before is passed over.
    pub(crate) fn hear_pids(&mut self) {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "the server has ended");
            if self.heard_pids(&line) {
                return;
            }
        }
    }

    /// Whether this line tells them.
    pub(crate) fn heard_pids(&mut self, line: &str) -> bool {
        let Some(told) = line.strip_prefix("listening ") else { return false };
        self.pids = told.split(' ').skip(1).map(|pid| pid.parse().unwrap()).collect();
        true
    }

    /// Hears that a program which takes over is ready; what else is told before is passed over.
    pub(crate) fn hear_ready(&mut self) {
        loop {
            match next_line(&mut self.lines) {
                line if line == READY => return,
                line => assert!(!line.is_empty(), "the server has ended"),
            }
        }
    }

    /// The next thing that the server tells, but that a generation in the place of a dead one is ready.
    pub(crate) fn line(&mut self) -> String {
        loop {
            let line = self.told.pop_front().unwrap_or_else(|| next_line(&mut self.lines));
            if line != READY {
                return line;
            }
        }
    }

    /// Drains the server: its exit status and its report.
    pub(crate) fn stop(&mut self) -> (ExitStatus, String) {
        signal::kill(self.pid(), Signal::Term).unwrap();
        self.ended()
    }

    pub(crate) fn ended(&mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        let report = rest.lines().find(|line| line.starts_with("report")).unwrap_or(&rest).to_owned();
        (self.child.wait().unwrap(), report)
    }

    pub(crate) fn order(&self, order: &str) -> String {
        assert_eq!(socket::send(&self.control, order.as_bytes()), Io::Done(order.len()));
        let deadline_ns = dyno_sys::clock::mono_ns() + DEADLINE.as_nanos() as u64;
        assert_eq!(
            socket::wait_readable(&self.control, deadline_ns).unwrap(),
            Ready::Yes,
            "{order} is answered"
        );
        let mut text = [0; 1024];
        let Io::Done(length) = socket::recv(&self.control, &mut text) else { panic!("no answer to {order}") };
        String::from_utf8_lossy(&text[..length]).into_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Those that ended by order are gone.
        self.successors.iter().for_each(|pid| drop(signal::kill(*pid, Signal::Kill)));
    }
}

/// What the master tells when it has heard from the first generation, or from one in the place of a dead one.
const READY: &str = "ready";

/// Nothing when the server has ended.
fn next_line(lines: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// This program again. What starts the tests may ignore hangups, as nohup(1) does, and a server would inherit that.
pub(crate) fn program() -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP").arg(std::env::current_exe().unwrap());
    // Some tests have handlers panic: that is not to be told at length.
    command.stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
    command
}

pub(crate) fn words(settings: &[(&str, &str)]) -> Vec<String> {
    settings.iter().map(|(name, word)| format!("{name}={word}")).collect()
}

pub(crate) fn temporary(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("dyno-engine-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

pub(crate) fn state(pid: Pid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

pub(crate) fn is_alive(pid: Pid) -> bool {
    state(pid).is_some()
}

pub(crate) fn is_zombie(pid: Pid) -> bool {
    state(pid) == Some('Z')
}

pub(crate) fn figure(text: &str, name: &str) -> u64 {
    let word = text.split_whitespace().find_map(|word| word.strip_prefix(&format!("{name}=")));
    word.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

/// The server itself: a process of one thread.
pub(crate) fn be_server(settings: &[String]) -> ExitCode {
    let handed = std::env::var(master::VARIABLE);
    let is_alone = settings.iter().any(|word| word == "successor=none");
    let own = Own {
        inheritance: handed.map(|text| Inheritance::take(&text).unwrap()).unwrap_or_default(),
        program: (!is_alone).then(|| Program {
            path: std::env::current_exe().unwrap(),
            words: std::env::args_os().collect(),
            environment: std::env::vars_os().collect(),
        }),
    };
    let control = std::io::stdin().as_fd().try_clone_to_owned();
    let mut first = setup(settings).unwrap();
    first.config.control = control.ok().filter(|fd| socket::local_addr(fd).is_ok());
    match master::run(first, own, &mut || setup(settings), &mut tell) {
        Ok(report) => {
            println!("report {:?} deaths={} {}", report.drained, report.deaths, report.counts);
            ExitCode::SUCCESS
        }
        Err(EngineError::NotStarted { .. }) => ExitCode::from(2),
        Err(error) => {
            println!("{}", failure(&error));
            ExitCode::from(2)
        }
    }
}

fn failure(error: &EngineError) -> String {
    let source = error.source().map(ToString::to_string).unwrap_or_default();
    format!("error: {error}: {source}")
}

/// What is served: as the words say, and those of the file that one of them names.
fn setup(settings: &[String]) -> Result<Setup, String> {
    let mut config = Config {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        dials: Dials::for_workers(NonZeroU32::MIN),
        limits: Limits::default(),
        ..Config::default()
    };
    let file = settings.iter().find_map(|setting| setting.strip_prefix("settings="));
    let more = file.map(|file| std::fs::read_to_string(file).unwrap()).unwrap_or_default();
    let ms = |word: &str| word.parse::<u64>().unwrap() * 1_000_000;
    for (name, word) in
        settings.iter().map(String::as_str).chain(more.lines()).filter_map(|line| line.split_once('='))
    {
        match name {
            "addr" => config.listen = word.split(' ').map(|addr| addr.parse().unwrap()).collect(),
            "metrics" => config.metrics = Some(word.parse().unwrap()),
            "address_max" => {
                let many = Some(word.parse().unwrap());
                config.limits.address = AddressLimits {
                    connections_max: many,
                    requests_per_second: many,
                    ..AddressLimits::default()
                };
            }
            "drain_ms" => config.drain_ns = ms(word),
            "retire_ms" => config.retire_ns = ms(word),
            "idle_ms" => config.limits.idle_ns = ms(word),
            "hand_over_ms" => config.hand_over_ns = ms(word),
            "log_file" => config.log_file = Some(word.into()),
            "log_format" => config.log_format = word.parse().unwrap(),
            "error_log" => config.error_log = Some(ErrorLog::open(word.as_ref(), Level::Info).unwrap()),
            "log_fsync" => config.log_fsync = word.parse().unwrap(),
            "socket_mode" => config.socket_mode = Some(u32::from_str_radix(word, 8).unwrap()),
            "content" => config.content.push(Mount::new("/", word).unwrap()),
            "content_in_files" => {
                let content = Content::new(word).memory_bytes_max(1_000);
                config.content.push(Mount::new("/", content).unwrap());
            }
            "sandbox" if word == "on" => config.sandbox = Sandbox::On,
            "sandbox" => config.sandbox = Sandbox::Off,
            "workers" => {
                let workers: NonZeroU32 = word.parse().unwrap();
                config.dials.set("workers", &workers.to_string()).unwrap();
            }
            // What takes over may be broken in this way.
            "stall" => std::thread::park_timeout(DEADLINE),
            "nofile" | "file_blocks" | "extra" | "settings" | "hold" | "successor" => {}
            dial => config.dials.set(dial, word).map_err(|error| error.to_string())?,
        }
    }
    let dials = config.dials.clone();
    let hold = settings.iter().find_map(|setting| setting.strip_prefix("hold=")).map(PathBuf::from);
    let routes = move || {
        hold.as_ref().inspect(|hold| wait_while_held(hold));
        routes(&dials)
    };
    Ok(Setup { config, routes: Box::new(routes) })
}

/// Waits, in a worker that starts, for as long as the file names all, or the master of this one.
fn wait_while_held(hold: &std::path::Path) {
    let master = || parent(std::os::unix::process::parent_id().cast_signed()).to_string();
    crate::common::wait_for("the start", || {
        let held = std::fs::read_to_string(hold).unwrap_or_default();
        held != "all" && held != master()
    });
}

fn parent(pid: Pid) -> Pid {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
}

/// The demonstration, a handler that panics, and what nobody should be able to do.
fn routes(dials: &Dials) -> Router {
    let mut router = handler::demo(dials).unwrap();
    let panics = |_: &Request<'_>, _: Reply<'_>| -> Response { panic!("it was asked to\n\x1b[31m panic") };
    router.route(Method::Get, "/panic", panics).unwrap();
    crate::kills::with_pid(crate::sandbox::with_faults(router))
}

fn tell(event: Event) {
    match event {
        Event::Listening { addrs, pids } => {
            let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
            println!("listening {} {}", addrs[0], pids.join(" "));
        }
        Event::WorkerDied { pid, exit, replaced_in_ns } => {
            println!("died {pid} {exit} after_ns {replaced_in_ns}");
        }
        Event::Alive => println!("alive"),
        Event::Metrics { addr } => println!("metrics {addr}"),
        Event::MetricsDied { exit, .. } => println!("metrics died {exit}"),
        Event::WorkerStuck { pid, for_ns } => println!("stuck {pid} for_ns {for_ns}"),
        Event::WorkerGetsOn { pid } => println!("gets on {pid}"),
        Event::WorkerDrained { pid } => println!("drained {pid}"),
        Event::WorkerReplaced { old, new } => println!("replaced {old} {new}"),
        Event::WorkerNotReplaced { why } => println!("not replaced: {why}"),
        Event::LogWriterDied { .. } => println!("writer died"),
        Event::Content { .. } => {}
        Event::BuilderDied { exit, .. } => println!("builder died {exit}"),
        Event::ContentStale { why } => println!("stale: {why}"),
        Event::Fitted { fitting, .. } => println!("fits {fitting}"),
        Event::Full { workers } => println!("full {workers}"),
        Event::SignalIgnored { signal } => println!("ignored {signal}"),
        Event::LogTrouble { why } => println!("log trouble: {why:?}"),
        Event::LogRecovered { lost } => println!("log recovered after {lost}"),
        Event::LogReopened { .. } => println!("log reopened"),
        Event::LogNotReopened { why } => println!("log not reopened: {why}"),
        Event::MemoryShort { refused, cut } => println!("memory short: {refused} refused, {cut} cut"),
        Event::Draining { .. } => println!("draining"),
        Event::FilesOpen => println!("files open"),
        Event::NotStarted { error } => println!("{}", failure(&error)),
        Event::Ready { .. } => println!("{READY}"),
        Event::SupervisorDied { pid, exit, .. } => println!("supervisor died {pid} {exit}"),
        Event::Reloading => println!("reloading"),
        Event::Reloaded { generation, workers, kept } => {
            println!("reloaded {generation} {workers} {}", kept.join(","));
        }
        Event::NotReloaded { why } => println!("not reloaded: {why}"),
        Event::Retired { generation, drained } => println!("retired {generation} {drained:?}"),
        Event::HandingOver { pid } => println!("handing over {pid}"),
        Event::HandedOver { pid } => println!("handed over {pid}"),
        Event::NotHandedOver { why } => println!("not handed over: {why}"),
    }
}

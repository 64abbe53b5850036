//! The supervisor and its workers as processes: started, asked, killed, drained. Also the floor.
//!
//! The tests start this same program again as the server, because only a process of one thread may fork. So there is a
//! small runner at the end instead of the usual harness.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, DEADLINE, wait_for};
use dyno_engine::supervisor::{self, Event};
use dyno_engine::{Addr, Config, Dials, Limits, floor, handler};
use dyno_sys::Pid;
use dyno_sys::signal::{self, Signal};
use dyno_sys::socket::{self, Io, Ready};
use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

const JSON: &str = "GET /json HTTP/1.1\r\nHost: a\r\n\r\n";

const TESTS: [(&str, fn()); 14] = [
    ("a_term_signal_drains_and_ends_with_a_report", a_term_signal_drains_and_ends_with_a_report),
    ("a_busy_port_is_named", a_busy_port_is_named),
    ("no_request_is_lost_when_it_drains_under_load", no_request_is_lost_when_it_drains_under_load),
    ("a_second_signal_ends_at_once", a_second_signal_ends_at_once),
    ("a_drain_is_over_at_its_deadline", a_drain_is_over_at_its_deadline),
    ("a_killed_worker_is_replaced_and_leaves_no_zombie", a_killed_worker_is_replaced_and_leaves_no_zombie),
    (
        "a_worker_that_is_told_to_end_drains_and_is_replaced",
        a_worker_that_is_told_to_end_drains_and_is_replaced,
    ),
    ("workers_die_with_their_supervisor", workers_die_with_their_supervisor),
    ("workers_are_pinned_in_cpu_order", workers_are_pinned_in_cpu_order),
    ("a_line_in_the_ring_survives_its_worker", a_line_in_the_ring_survives_its_worker),
    ("a_killed_log_writer_is_replaced", a_killed_log_writer_is_replaced),
    ("orders_come_in_over_the_control_socket", orders_come_in_over_the_control_socket),
    (
        "at_its_descriptor_limit_a_server_waits_without_spinning",
        at_its_descriptor_limit_a_server_waits_without_spinning,
    ),
    ("the_floor_answers_what_it_was_given", the_floor_answers_what_it_was_given),
];

fn a_term_signal_drains_and_ends_with_a_report() {
    let mut served = Served::start(&[("workers", "2")]);
    assert_eq!(served.pids.len(), 2);
    let mut client = Client::connect(served.addr);
    assert_eq!(client.ask(JSON).status, 200);
    drop(client);
    let (status, report) = served.stop();
    assert!(status.success(), "{status}");
    assert!(report.starts_with("report Wholly deaths=0 requests=1 "), "{report}");
    for pid in &served.pids {
        assert!(!is_alive(*pid), "worker {pid} is gone");
    }
}

fn a_busy_port_is_named() {
    let served = Served::start(&[("reuseport", "hash"), ("workers", "2")]);
    let busy = served.addr.to_string();
    for reuseport in ["off", "hash"] {
        let arguments = words(&[("addr", &busy), ("reuseport", reuseport)]);
        let output = program().arg("serve").args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.starts_with(&format!("error: cannot listen on {busy}: ")), "{said}");
        assert_eq!(output.status.code(), Some(2));
    }
}

fn no_request_is_lost_when_it_drains_under_load() {
    for reuseport in ["off", "hash"] {
        let mut served = Served::start(&[("workers", "2"), ("reuseport", reuseport)]);
        let (answered, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let mut client = Client::connect(served.addr);
                    // Every request that is sent gets its answer, up to the one that says that it was the last.
                    while client.ask(JSON).header("connection").is_none() {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    assert!(stopped.load(Ordering::SeqCst), "closed before anybody asked for it");
                    client.assert_closed();
                });
            }
            wait_for("some load", || answered.load(Ordering::Relaxed) > 2_000);
            stopped.store(true, Ordering::SeqCst);
            signal::kill(served.pid(), Signal::Term).unwrap();
        });
        let (status, report) = served.ended();
        assert!(status.success() && report.starts_with("report Wholly"), "{status}: {report}");
    }
}

fn a_second_signal_ends_at_once() {
    let mut served = Served::start(&[]);
    let mut half = Client::connect(served.addr);
    half.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
    signal::kill(served.pid(), Signal::Int).unwrap();
    assert_eq!(served.line(), "draining");
    let start = Instant::now();
    signal::kill(served.pid(), Signal::Term).unwrap();
    let (_, report) = served.ended();
    assert!(report.starts_with("report Cut"), "{report}");
    assert!(start.elapsed() < DEADLINE / 4, "the drain's ten seconds were not waited for");
}

fn a_drain_is_over_at_its_deadline() {
    let mut served = Served::start(&[("drain_ms", "300")]);
    let mut half = Client::connect(served.addr);
    assert_eq!(half.ask(JSON).status, 200);
    half.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
    let (_, report) = served.stop();
    assert!(report.starts_with("report Cut"), "{report}");
}

fn a_killed_worker_is_replaced_and_leaves_no_zombie() {
    for reuseport in ["off", "hash", "cpu"] {
        let mut served = Served::start(&[("workers", "2"), ("reuseport", reuseport)]);
        let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(served.addr)).collect();
        clients.iter_mut().for_each(|client| assert_eq!(client.ask(JSON).status, 200));
        let victim = served.pids[0];
        signal::kill(victim, Signal::Kill).unwrap();
        assert_eq!(served.line(), format!("died {victim} killed by SIGKILL after_ns 0"));
        let replaced = served.line();
        let new: Pid = replaced.strip_prefix(&format!("replaced {victim} ")).unwrap().parse().unwrap();
        assert!(is_alive(new) && !is_alive(victim) && !is_zombie(victim), "{reuseport}");
        // New connections reach both workers, and none is refused.
        for _ in 0..16 {
            assert_eq!(Client::connect(served.addr).ask(JSON).status, 200);
        }
        drop(clients);
        let (status, report) = served.stop();
        assert!(status.success() && report.starts_with("report Wholly deaths=1 "), "{report}");
        let requests: u64 = figure(&report, "requests");
        assert!((16..=24).contains(&requests), "the dead worker's row was not lost: {report}");
    }
}

fn a_worker_that_is_told_to_end_drains_and_is_replaced() {
    let mut served = Served::start(&[]);
    let mut client = Client::connect(served.addr);
    assert_eq!(client.ask(JSON).status, 200);
    signal::kill(served.pids[0], Signal::Term).unwrap();
    wait_for("the worker to say that it drains", || client.ask(JSON).header("connection") == Some("close"));
    drop(client);
    assert!(served.line().starts_with(&format!("died {} exit status 0", served.pids[0])));
    assert!(served.line().starts_with("replaced "));
    assert_eq!(Client::connect(served.addr).ask(JSON).status, 200);
}

fn workers_die_with_their_supervisor() {
    let served = Served::start(&[("workers", "2"), ("log", "ring")]);
    let family = dyno_sys::proc::tree(served.pid());
    assert_eq!(family.len(), 4, "the supervisor, two workers, the log writer");
    signal::kill(served.pid(), Signal::Kill).unwrap();
    for pid in family.into_iter().filter(|pid| *pid != served.pid()) {
        wait_for("the orphan to end", || !is_alive(pid) || is_zombie(pid));
    }
}

fn workers_are_pinned_in_cpu_order() {
    let served = Served::start(&[("workers", "2"), ("pin", "cpu")]);
    let allowed: Vec<usize> = dyno_sys::affinity::allowed().iter().collect();
    for (number, pid) in served.pids.iter().enumerate() {
        let cpus: Vec<usize> = dyno_sys::proc::cpus_allowed(*pid).unwrap().iter().collect();
        assert_eq!(cpus, [allowed[number % allowed.len()]]);
    }
}

fn a_line_in_the_ring_survives_its_worker() {
    let path = temporary("ring.log");
    let mut served = Served::start(&[("log", "ring"), ("log_file", path.to_str().unwrap())]);
    let mut client = Client::connect(served.addr);
    for _ in 0..100 {
        assert_eq!(client.ask("GET /json?\"x HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    }
    signal::kill(served.pids[0], Signal::Kill).unwrap();
    assert!(served.line().starts_with("died "));
    assert!(served.line().starts_with("replaced "));
    let (status, _) = served.stop();
    assert!(status.success());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(text.lines().count(), 100);
    assert!(text.lines().all(|line| line.ends_with("\"GET /json?\\x22x HTTP/1.1\" 200 27")), "{text}");
}

fn a_killed_log_writer_is_replaced() {
    let path = temporary("writer.log");
    let mut served = Served::start(&[("log", "ring"), ("log_file", path.to_str().unwrap())]);
    let family = dyno_sys::proc::tree(served.pid());
    let writer = family.into_iter().find(|pid| *pid != served.pid() && !served.pids.contains(pid)).unwrap();
    signal::kill(writer, Signal::Kill).unwrap();
    assert_eq!(served.line(), "writer died");
    assert_eq!(Client::connect(served.addr).ask(JSON).status, 200);
    assert!(served.stop().0.success());
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
    std::fs::remove_file(&path).unwrap();
}

fn orders_come_in_over_the_control_socket() {
    let served = Served::start(&[("workers", "2")]);
    assert_eq!(served.order("set spin 300"), "ok");
    assert!(served.order("set pin cpu").starts_with("error: "));
    let mut client = Client::connect(served.addr);
    assert_eq!(client.ask(JSON).status, 200);
    wait_for("spins", || {
        assert_eq!(client.ask(JSON).status, 200);
        figure(&served.order("counters"), "spins") > 0
    });
    assert_eq!(served.order("set spin 0"), "ok");
}

fn at_its_descriptor_limit_a_server_waits_without_spinning() {
    let mut served = Served::start(&[("nofile", "64")]);
    let mut clients: Vec<Client> = (0..100).map(|_| Client::connect(served.addr)).collect();
    clients.iter_mut().for_each(|client| {
        client.send(JSON);
    });
    wait_for("the server to be full", || figure(&served.order("counters"), "accept_pauses") > 0);
    let accepted = figure(&served.order("counters"), "accepts") as usize;
    assert!((20..60).contains(&accepted), "{accepted} connections were accepted under a limit of 64");
    // The kernel hands connections out in their order: the first ones are served, and keep being so.
    assert_eq!(clients[0].reply().status, 200);
    let (start, before) = (Instant::now(), figure(&served.order("counters"), "turns"));
    for _ in 0..50 {
        assert_eq!(clients[0].ask(JSON).status, 200);
    }
    let turns = figure(&served.order("counters"), "turns") - before;
    let looks = 4 + start.elapsed().as_millis() as u64 / 100;
    assert!(turns <= 50 + looks, "{turns} turns for 50 requests");
    for mut client in clients.into_iter().skip(1) {
        assert_eq!(client.reply().status, 200, "each is served as others leave");
    }
    assert!(served.stop().0.success());
}

fn the_floor_answers_what_it_was_given() {
    let mut child = program().arg("floor").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let mut client = Client::connect(line.trim().parse().unwrap());
    for count in [1, 3, 100] {
        client.send(JSON.repeat(count));
        for _ in 0..count {
            assert_eq!(client.reply().text(), "floor");
        }
    }
    signal::kill(child.id().cast_signed(), Signal::Term).unwrap();
    assert!(child.wait().unwrap().success());
}

/// A server process.
struct Served {
    child: Child,
    lines: BufReader<ChildStdout>,
    addr: SocketAddr,
    pids: Vec<Pid>,
    control: OwnedFd,
}

impl Served {
    fn start(settings: &[(&str, &str)]) -> Served {
        let (ours, theirs) = socket::pair().unwrap();
        let mut command = match settings.iter().find(|(name, _)| *name == "nofile") {
            None => program(),
            Some((_, limit)) => {
                let mut shell = Command::new("sh");
                shell
                    .args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")])
                    .arg(std::env::current_exe().unwrap());
                shell
            }
        };
        // The control socket comes in as standard input: that needs no descriptor to be passed by number.
        command.arg("serve").args(words(settings)).stdin(Stdio::from(theirs)).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let said: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(said.first(), Some(&"listening"), "{line}");
        let pids = said[2..].iter().map(|pid| pid.parse().unwrap()).collect();
        Served { child, lines, addr: said[1].parse().unwrap(), pids, control: ours }
    }

    fn pid(&self) -> Pid {
        self.child.id().cast_signed()
    }

    /// The next thing that the server tells.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Drains the server: its exit status and its report.
    fn stop(&mut self) -> (ExitStatus, String) {
        signal::kill(self.pid(), Signal::Term).unwrap();
        self.ended()
    }

    fn ended(&mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        let report = rest.lines().find(|line| line.starts_with("report")).unwrap_or(&rest).to_owned();
        (self.child.wait().unwrap(), report)
    }

    fn order(&self, order: &str) -> String {
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
    }
}

fn program() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.stdin(Stdio::null());
    command
}

fn words(settings: &[(&str, &str)]) -> Vec<String> {
    settings.iter().map(|(name, word)| format!("{name}={word}")).collect()
}

fn temporary(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("dyno-engine-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn state(pid: Pid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn is_alive(pid: Pid) -> bool {
    state(pid).is_some()
}

fn is_zombie(pid: Pid) -> bool {
    state(pid) == Some('Z')
}

fn figure(text: &str, name: &str) -> u64 {
    let word = text.split_whitespace().find_map(|word| word.strip_prefix(&format!("{name}=")));
    word.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

/// The server itself: a process of one thread.
fn be_server(settings: &[String]) -> ExitCode {
    let mut config = Config {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        dials: Dials::for_workers(NonZeroU32::MIN),
        limits: Limits::default(),
        control: std::io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .ok()
            .filter(|fd| socket::local_addr(fd).is_ok()),
        ..Config::default()
    };
    for (name, word) in settings.iter().filter_map(|setting| setting.split_once('=')) {
        match name {
            "addr" => config.listen = vec![word.parse().unwrap()],
            "drain_ms" => config.drain_ns = word.parse::<u64>().unwrap() * 1_000_000,
            "log_file" => config.log_file = Some(word.into()),
            "nofile" => {}
            dial => config.dials.set(dial, word).unwrap(),
        }
    }
    let dials = config.dials.clone();
    match supervisor::run(config, &|| handler::demo(&dials).unwrap(), &mut tell) {
        Ok(report) => {
            println!("report {:?} deaths={} {}", report.drained, report.deaths, report.counts);
            ExitCode::SUCCESS
        }
        Err(error) => {
            let source = error.source().map(ToString::to_string).unwrap_or_default();
            println!("error: {error}: {source}");
            ExitCode::from(2)
        }
    }
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
        Event::WorkerReplaced { old, new } => println!("replaced {old} {new}"),
        Event::WorkerNotReplaced { why } => println!("not replaced: {why}"),
        Event::LogWriterDied { .. } => println!("writer died"),
        Event::LogLinesLost { .. } => println!("log lines lost"),
        Event::MemoryShort { refused, cut } => println!("memory short: {refused} refused, {cut} cut"),
        Event::Draining => println!("draining"),
    }
}

fn be_floor() -> ExitCode {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfloor".to_vec();
    let addr: Addr = "127.0.0.1:0".parse().unwrap();
    let floor = floor::Floor { addr, answer, request_bytes: None, cpu: None };
    floor::run(&floor, &mut |addr| println!("{addr}")).unwrap();
    ExitCode::SUCCESS
}

/// What the usual harness takes on its command line, as far as it decides which tests run.
struct Selection {
    filters: Vec<String>,
    skipped: Vec<String>,
}

impl Selection {
    fn from(mut arguments: impl Iterator<Item = String>) -> Selection {
        let mut selection = Selection { filters: Vec::new(), skipped: Vec::new() };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--skip" => selection.skipped.extend(arguments.next()),
                "--test-threads" | "--format" | "--color" | "--logfile" | "-Z" => drop(arguments.next()),
                // None of these tests is an ignored one.
                "--ignored" => selection.skipped.push(String::new()),
                flag if flag.starts_with('-') => {}
                _ => selection.filters.push(argument),
            }
        }
        selection
    }

    fn takes(&self, name: &str) -> bool {
        let among = |list: &[String]| list.iter().any(|part| name.contains(part.as_str()));
        (self.filters.is_empty() || among(&self.filters)) && !among(&self.skipped)
    }
}

/// The runner. With `serve` or `floor` as its first argument the program is what the tests test.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("serve") => return be_server(&arguments[1..]),
        Some("floor") => return be_floor(),
        _ => {}
    }
    let lists = arguments.iter().any(|argument| argument == "--list");
    let selection = Selection::from(arguments.into_iter());
    let mut failed = 0;
    for (name, test) in TESTS.into_iter().filter(|(name, _)| selection.takes(name)) {
        if lists {
            println!("{name}: test");
            continue;
        }
        let outcome = catch_unwind(AssertUnwindSafe(test));
        failed += u32::from(outcome.is_err());
        println!("test {name} ... {}", if outcome.is_ok() { "ok" } else { "FAILED" });
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(101) }
}

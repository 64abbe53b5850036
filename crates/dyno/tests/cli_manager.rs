//! `dyno serve` under a service manager: what it is told, and the sockets that it hands over.
#![allow(clippy::unwrap_used)]

mod common;

use common::{DEADLINE, Folder, Server, ask, dyno, run};
use dyno_sys::signal::Signal;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

const REQUEST: &[u8] = b"GET /json HTTP/1.1\r\nHost: x\r\n\r\n";

fn heard(socket: &UnixDatagram, wanted: &str) -> String {
    let mut bytes = [0; 4_096];
    let begun = Instant::now();
    // Signs of life come all the time: they are no reason to wait on.
    while begun.elapsed() < DEADLINE {
        let count = socket.recv(&mut bytes).unwrap_or_else(|error| panic!("{wanted} was not told: {error}"));
        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
        if text.contains(wanted) {
            return text;
        }
    }
    panic!("{wanted} was not told");
}

#[test]
fn a_manager_hears_of_the_start_of_life_and_of_the_end() {
    let folder = Folder::new("notify");
    let path = folder.path("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(DEADLINE)).unwrap();
    // Where the tests run under nohup(1), hang-ups are ignored, and a server goes by that.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_dyno"), "serve"]);
    command.args(["--listen", "127.0.0.1:0", "--workers", "1"]).stdin(Stdio::null());
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "1000000");
    let mut server = Server::start(&mut command);
    let ready = heard(&manager, "READY=1\n");
    assert!(ready.contains(&format!("MAINPID={}\n", server.pid())) && ready.contains("STATUS="), "{ready}");
    heard(&manager, "WATCHDOG=1\n");
    heard(&manager, "WATCHDOG=1\n");
    server.signal(Signal::Hup);
    assert!(heard(&manager, "RELOADING=1\n").contains("\nMONOTONIC_USEC="));
    assert!(heard(&manager, "READY=1\n").contains("generation 2"));
    server.signal(Signal::Term);
    heard(&manager, "STOPPING=1\n");
    assert!(server.end().success());
}

/// Planted fault: the socket is opened once, at the start. Then every worker has it, and could tell anybody anything.
#[test]
fn no_worker_has_the_socket_by_which_a_manager_is_told() {
    let folder = Folder::new("notify-open");
    let path = folder.path("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut command = dyno(["serve", "--listen", "127.0.0.1:0", "--workers", "1"]);
    let server = Server::start(command.env("NOTIFY_SOCKET", &path));
    heard(&manager, "READY=1\n");
    let sockets = |pid: dyno_sys::Pid| -> BTreeSet<PathBuf> {
        let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let links = fds.filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket:")).collect()
    };
    let own = sockets(server.pid());
    for child in dyno_sys::proc::tree(server.pid()).into_iter().filter(|pid| *pid != server.pid()) {
        let both: Vec<PathBuf> = sockets(child).intersection(&own).cloned().collect();
        assert!(both.len() <= 1, "more than the listener: {both:?}");
    }
}

/// `dyno serve` started by a shell that hands over one descriptor as a manager does.
fn activated(socket: OwnedFd, words: &str) -> Command {
    let line = format!(
        "LISTEN_PID=$$ LISTEN_FDS=1 exec {} serve --workers 2 {words} 3<&0 </dev/null",
        env!("CARGO_BIN_EXE_dyno")
    );
    let mut command = Command::new("sh");
    command.args(["-c", &line]).stdin(Stdio::from(socket));
    command
}

#[test]
fn a_socket_that_is_handed_over_is_served_on_and_outlives_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    for _ in 0..2 {
        let mut server = Server::start(&mut activated(listener.try_clone().unwrap().into(), ""));
        assert_eq!(server.addr(), place);
        for _ in 0..10 {
            assert_eq!(ask(place, REQUEST, 15), b"HTTP/1.1 200 OK");
        }
        server.signal(Signal::Term);
        assert!(server.end().success());
    }
    let folder = Folder::new("activated");
    let path = folder.path("x.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut server = Server::start(&mut activated(listener.into(), "--listen 127.0.0.1:0"));
    server.hear_again("warning: it is listened where the service manager says");
    assert_eq!(server.place, format!("unix:{}", path.display()));
    server.signal(Signal::Term);
    assert!(server.end().success());
    assert!(path.exists(), "the file is the manager's");
}

#[test]
fn a_descriptor_that_is_no_listener_is_refused() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let datagrams = UnixDatagram::unbound().unwrap();
    let stream = std::os::unix::net::UnixStream::pair().unwrap().0;
    for (fd, says) in [
        (OwnedFd::from(file), "cannot be read"),
        (datagrams.into(), "it does not listen"),
        (stream.into(), "it does not listen"),
    ] {
        let ended = common::Ended::of(
            activated(fd, "").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(),
        );
        let lines = ended.failed();
        assert!(lines[0].contains("socket 0 of the service manager") && lines[0].contains(says), "{lines:?}");
    }
}

#[test]
fn variables_of_another_process_are_left_alone() {
    let mut command = dyno(["serve", "--listen", "127.0.0.1:0", "--workers", "1"]);
    let server = Server::start(command.env("LISTEN_PID", "1").env("LISTEN_FDS", "3"));
    assert_eq!(ask(server.addr(), REQUEST, 15), b"HTTP/1.1 200 OK");
}

const UNIT: &str = include_str!("../../../dist/dyno.service");

#[test]
fn the_unit_starts_a_command_that_exists() {
    let commands: Vec<&str> =
        UNIT.lines().filter_map(|line| line.split_once("=/usr/bin/dyno ")).map(|(_, words)| words).collect();
    assert_eq!(commands.len(), 3, "{UNIT}");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/dyno.toml");
    for words in commands {
        let words = words.replace("/etc/dyno/dyno.toml", file);
        let ended = run(words.split(' ').chain(["--show-config"]).filter(|word| *word != "--check"));
        ended.done();
    }
}

/// Without them no worker starts where systemd is older than 254 (Debian 12 has 252): its set of a service's calls does not have
/// the calls by which a process gives up calls and files.
#[test]
fn the_unit_lets_workers_give_up_what_they_do_not_need() {
    let filters: Vec<&str> = UNIT.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")).collect();
    let taken_away = filters.iter().position(|filter| *filter == "~@privileged").unwrap();
    let given = filters[taken_away + 1..].join(" ");
    for call in ["seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"] {
        assert!(given.split(' ').any(|word| word == call), "{call} is not in {filters:?}");
    }
}

//! What only root can try of `dyno serve`: its workers give up root's rights, and everything goes on as before.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, Server, ask, dyno, run, wait_for};
use dyno_sys::signal::{self, Signal};
use dyno_sys::{Pid, proc};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

const REQUEST: &[u8] = b"GET /plaintext HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
const NOBODY: &str = "65534";

/// A field of /proc/PID/status, its words joined by blanks.
fn status(pid: Pid, field: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:"))).unwrap().to_owned();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The supervisor of the generation that serves: the master's only child.
fn supervisor(server: &Server) -> Pid {
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.pid())).unwrap();
    children.trim().parse().unwrap()
}

fn workers(server: &Server) -> Vec<Pid> {
    let supervisor = supervisor(server);
    proc::tree(supervisor).into_iter().filter(|pid| *pid != supervisor).collect()
}

/// Waits until it is nobody: whoever was just born is root for a moment, and serves nobody yet.
fn gives_up_root(pid: Pid) {
    wait_for("it gives up root", || {
        status(pid, "Uid") == [NOBODY; 4].join(" ") && status(pid, "NoNewPrivs") == "1"
    });
}

/// Asserts that this process is that user in every respect, and can do nothing that others cannot.
#[track_caller]
fn is_only(pid: Pid, uid: &str, gid: &str) {
    assert_eq!(status(pid, "Uid"), [uid; 4].join(" "));
    assert_eq!(status(pid, "Gid"), [gid; 4].join(" "));
    for set in ["CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(status(pid, set), "0".repeat(16), "{set}");
    }
}

fn answers(server: &Server) {
    let answer = ask(server.addr(), REQUEST, 15);
    assert_eq!(answer, b"HTTP/1.1 200 OK");
}

#[test]
#[ignore = "needs root: CAP_SETUID, CAP_SETGID"]
fn workers_and_the_logs_writer_are_nobody_and_the_supervisor_stays_root() {
    let folder = Folder::new("root-log");
    for log in ["ring", "sync"] {
        let path = folder.file(&format!("{log}.log"), "");
        let mut server = Server::serve(&["--log", log, "--log-file", &path]);
        server.hear("as user nobody");
        answers(&server);
        let children = workers(&server);
        assert_eq!(children.len(), if log == "ring" { 2 } else { 1 });
        for pid in children {
            gives_up_root(pid);
            is_only(pid, NOBODY, NOBODY);
            assert_eq!(status(pid, "Groups"), NOBODY);
            assert_eq!(status(pid, "NoNewPrivs"), "1");
        }
        for pid in [server.pid(), supervisor(&server)] {
            assert_eq!(status(pid, "Uid"), "0 0 0 0");
        }
        // The file belongs to root, in a folder of root: it was opened before.
        wait_for("a line in the log", || std::fs::read_to_string(&path).unwrap().contains("GET /plaintext"));
        server.signal(Signal::Term);
        server.hear("drained");
        assert!(server.end().success());
    }
}

#[test]
#[ignore = "needs root: CAP_SETUID, CAP_SETGID"]
fn the_process_for_metrics_is_nobody_and_holds_its_own_listener_alone() {
    let mut server = Server::serve(&["--metrics", "127.0.0.1:0"]);
    let line = server.hear("metrics on http://");
    let place = line["metrics on http://".len()..].strip_suffix("/metrics").unwrap();
    let place: dyno_sys::socket::Addr = place.parse().unwrap();
    let workers = workers(&server);
    // It is told of when it is born, and becomes what it is after that.
    wait_for("the process for metrics", || {
        workers.iter().any(|pid| proc::name(*pid).unwrap() == "dyno-metrics")
    });
    for pid in workers {
        gives_up_root(pid);
        is_only(pid, NOBODY, NOBODY);
        assert_eq!(status(pid, "NoNewPrivs"), "1");
        wait_for("one listener alone", || proc::listens_on(pid).len() == 1);
        let is_metrics = proc::name(pid).unwrap() == "dyno-metrics";
        let listens: Vec<_> = proc::listens_on(pid);
        assert_eq!(listens.contains(&place), is_metrics, "{listens:?}");
        assert_eq!(listens.len(), 1, "{listens:?}");
    }
    // It reads the workers' times as nobody.
    let dyno_sys::socket::Addr::Tcp(place) = place else { panic!("a TCP address was asked for") };
    let mut stream = TcpStream::connect(place).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.contains("\ndyno_worker_cpu_seconds_total{worker=\"0\",mode=\"user\"} "), "{page}");
}

#[test]
#[ignore = "needs root: CAP_SETUID, CAP_SETGID"]
fn a_user_and_a_group_can_be_named_and_root_can_stay() {
    let mut server = Server::serve(&["--user", "daemon:mail"]);
    server.hear("as user daemon:mail");
    let (uid, _) = dyno_sys::user::find("daemon").unwrap().unwrap();
    let gid = dyno_sys::user::find_group("mail").unwrap().unwrap();
    is_only(workers(&server)[0], &uid.to_string(), &gid.to_string());
    assert!(status(workers(&server)[0], "Groups").split(' ').any(|group| group == gid.to_string()));
    let server = Server::serve(&["--user", "12345:23456"]);
    is_only(workers(&server)[0], "12345", "23456");
    assert_eq!(status(workers(&server)[0], "Groups"), "23456");
    let server = Server::serve(&["--user", "root"]);
    assert_eq!(status(workers(&server)[0], "Uid"), "0 0 0 0");
    answers(&server);
}

#[test]
#[ignore = "needs root: CAP_SETUID, CAP_SETGID"]
fn a_user_that_is_not_there_is_named_in_the_error() {
    let ended = run(["serve", "--listen", "127.0.0.1:0", "--user", "no-such-user"]);
    assert_eq!(ended.failed()[0], "error: there is no user \"no-such-user\"");
}

#[test]
#[ignore = "needs root: CAP_SETUID, CAP_NET_BIND_SERVICE"]
fn a_low_port_and_a_socket_file_are_bound_before_root_is_given_up() {
    let folder = Folder::new("root-unix");
    let path = folder.path("socket");
    let low = (600..1_024).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap();
    let (tcp, unix) = (format!("127.0.0.1:{low}"), format!("unix:{}", path.display()));
    let words = ["serve", "--listen", &tcp, "--listen", &unix, "--workers", "2", "--pin", "cpu"];
    let mut server = Server::start(&mut dyno(words));
    server.hear("as user nobody");
    answers(&server);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(REQUEST).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    for pid in workers(&server) {
        is_only(pid, NOBODY, NOBODY);
        assert_eq!(status(pid, "NoNewPrivs"), "1");
    }
    server.signal(Signal::Term);
    assert!(server.end().success());
    assert!(!path.exists(), "the socket file is taken away");
}

#[test]
#[ignore = "needs root: CAP_SETUID, CAP_KILL"]
fn a_worker_that_is_replaced_is_nobody_too_and_all_die_with_the_supervisor() {
    let mut server = Server::serve(&[]);
    let old = workers(&server)[0];
    signal::kill(old, Signal::Kill).unwrap();
    let line = server.hear("worker ");
    let line = if line.contains("replaces") { line } else { server.hear("worker ") };
    let new: Pid = line.split(' ').nth(1).unwrap().parse().unwrap();
    is_only(new, NOBODY, NOBODY);
    answers(&server);
    server.signal(Signal::Kill);
    server.end();
    wait_for("the worker is gone", || std::fs::metadata(format!("/proc/{new}")).is_err());
}

#[test]
#[ignore = "needs root: CAP_SETUID, CAP_SETGID"]
fn a_folder_is_read_by_nobody_and_what_nobody_may_not_read_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("root-folder");
    std::fs::create_dir(folder.path("site")).unwrap();
    folder.file("site/plaintext", "for all");
    let secret = folder.file("site/secret", "for root");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let site = folder.path("site").to_str().unwrap().to_owned();
    let mut server = Server::serve(&[&site]);
    server.hear("as user nobody");
    answers(&server);
    assert_eq!(ask(server.addr(), b"GET /secret HTTP/1.1\r\nHost: x\r\n\r\n", 12), b"HTTP/1.1 404");
    let children = workers(&server);
    assert_eq!(children.len(), 2, "a worker, and who reads the folder");
    for pid in children {
        is_only(pid, NOBODY, NOBODY);
        assert_eq!(status(pid, "NoNewPrivs"), "1");
    }
    server.signal(Signal::Term);
    server.hear("drained");
    assert!(server.end().success());
    // A folder that is closed to nobody is not served at all.
    std::fs::set_permissions(&site, std::fs::Permissions::from_mode(0o700)).unwrap();
    let ended = run(["serve", &site, "--listen", "127.0.0.1:0"]);
    assert_eq!(ended.code, Some(2), "{}", ended.err);
    assert!(
        ended.err.contains("cannot read the folder") && ended.err.contains("ermission denied"),
        "{}",
        ended.err
    );
}

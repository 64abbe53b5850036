//! `dyno load` against `dyno serve`, end to end.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Ended, Folder, Server, dyno, run, wait_for};
use dyno_sys::affinity;
use dyno_sys::clock;
use dyno_sys::proc;
use dyno_sys::signal::{self, Signal};
use dyno_sys::socket::{self, Addr, ListenOptions};
use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Long enough for thousands of answers, short enough for a test.
const SHORT: [&str; 3] = ["-d300ms", "-t1", "-c4"];

fn load(words: &[&str], url: &str) -> Ended {
    run(["load"].iter().chain(words).chain(&[url]))
}

/// A load that runs until it is interrupted.
fn endless(words: &[&str], url: &str) -> Child {
    let words = ["load", "-d1h"].into_iter().chain(words.iter().copied()).chain([url]);
    dyno(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupted(child: Child) -> Ended {
    signal::kill(child.id().cast_signed(), Signal::Int).unwrap();
    Ended::of(child)
}

/// The generator's threads that run a block now: their sets of CPUs.
fn threads_of(child: &Child) -> Vec<affinity::CpuSet> {
    let pid = child.id().cast_signed();
    let named = |tid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
        name.is_ok_and(|name| name.trim() == "dyno-load")
    };
    proc::tasks(pid).iter().filter(|tid| named(tid)).filter_map(|tid| affinity::of(*tid).ok()).collect()
}

#[test]
fn the_text_has_wrks_shape() {
    let server = Server::serve(&[]);
    let url = server.url("/json");
    let ended = load(&["-d300ms", "-t2", "-c4", "--latency"], &url);
    // A machine that stopped for a third of that time has a line of its own for it.
    let held_back = |line: &&str| line.starts_with("  Long waits held requests back");
    let lines: Vec<&str> = ended.done().lines().filter(|line| !held_back(line)).collect();
    let starts = [
        &format!("Running 300ms test @ {url}"),
        "  2 threads and 4 connections",
        "  Thread Stats   Avg      Stdev     Max   +/- Stdev",
        "    Latency  ",
        "    Req/Sec  ",
        "  Latency Distribution",
        "     50%  ",
        "     75%  ",
        "     90%  ",
        "     99%  ",
        "  ",
        "Requests/sec: ",
        "Transfer/sec: ",
    ];
    assert!(lines.len() >= starts.len(), "{}", ended.out);
    assert!(lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{}", ended.out);
    assert!(lines[10].contains(" requests in ") && lines[10].ends_with("B read"), "{}", ended.out);
    assert!(!ended.out.contains("errors") && !ended.out.contains("Non-2xx"), "{}", ended.out);
    assert_eq!(ended.err, "");
}

#[test]
fn the_object_tells_the_server_s_cpu_with_its_children() {
    let server = Server::serve(&[]);
    let pid = server.pid().to_string();
    let ended = load(&[&SHORT[..], &["--json", "-p", &pid]].concat(), &server.url("/json"));
    let value: serde_json::Value = serde_json::from_str(ended.done()).unwrap();
    let requests = value["requests"].as_u64().unwrap();
    assert!(requests > 0 && value["bytes_read"].as_u64().unwrap() > requests, "{value:#}");
    assert!(value["errors"].as_object().unwrap().values().all(|count| count == 0), "{value:#}");
    assert!(value["duration_s"].as_f64().unwrap() >= 0.3, "{value:#}");
    let latency = |name: &str| value["latency_us"][name].as_f64().unwrap();
    assert!(latency("min") <= latency("p50") && latency("p50") <= latency("p99"), "{value:#}");
    assert!(latency("p99_99") <= latency("max"), "{value:#}");
    assert!(value["generator"]["limited"].is_boolean(), "{value:#}");
    let server_us = value["server"]["cpu_us_per_request"]["total"].as_f64().unwrap();
    assert!(server_us > 0.0, "the workers are children, and they worked: {value:#}");
}

#[test]
fn pipelines_bodies_and_expectations_are_as_told() {
    let server = Server::serve(&[]);
    let folder = Folder::new("load-body");
    let file = folder.file("hello", "Hello, World!");
    let expect = format!("body=@{file}");
    let words = ["--pipeline", "16", "--expect", "status=200", "--expect", &expect];
    load(&[&SHORT[..], &words].concat(), &server.url("/plaintext")).done();
    let body = format!("@{file}");
    let words = ["-mPOST", "-HContent-Type: text/x", "--body", &body, "--expect", &expect];
    load(&[&SHORT[..], &words].concat(), &server.url("/echo")).done();
    // SHA-256 of "Hello, World!".
    let digest = "body-sha256=dffd6021bb2bd5b0af676290809ec3a53191dd81c7f70a4b28688a362182986f";
    load(&[&SHORT[..], &["--expect", digest]].concat(), &server.url("/plaintext")).done();
}

#[test]
fn a_socket_file_is_loaded_under_the_name_of_the_url_as_curl_does() {
    let folder = Folder::new("load-unix");
    let path = folder.path("dyno.sock").display().to_string();
    let listen = format!("unix:{path}");
    let _server = Server::start(&mut dyno(["serve", "--listen", &listen, "--workers", "1"]));
    let over = ["-d300ms", "-t2", "-c64", "--unix-socket", &path, "--expect", "status=200"];
    let ended = load(&over, "http://localhost/json");
    let head = format!("Running 300ms test @ http://localhost/json over {path}\n");
    assert!(ended.done().starts_with(&head) && !ended.out.contains("errors"), "{}", ended.out);
    let pipelined = [&over[..], &["--pipeline", "8", "--json"]].concat();
    let value: serde_json::Value =
        serde_json::from_str(load(&pipelined, "http://x.invalid/json").done()).unwrap();
    assert!(value["requests"].as_u64().unwrap() > 100, "the URL's name is not looked up: {value:#}");
    assert!(value["errors"].as_object().unwrap().values().all(|count| count == 0), "{value:#}");
}

#[test]
fn a_socket_file_without_a_server_is_said_to_be_one() {
    let folder = Folder::new("load-no-unix");
    let none = folder.path("none.sock").display().to_string();
    let over = |path: &str| load(&["--json", "--unix-socket", path], "http://localhost/");
    let lines = over(&none).failed().join("\n");
    assert!(lines.contains(&format!("unix:{none}")) && lines.contains("no server listens"), "{lines}");
    let file = folder.file("file", "text");
    assert!(over(&file).failed()[0].contains(&format!("unix:{file}")));
}

/// A queue of one, and a server that takes its time: nobody is turned away.
#[test]
fn a_socket_file_with_a_short_queue_is_waited_for() {
    let folder = Folder::new("load-queue");
    let path = folder.path("short.sock");
    let options = ListenOptions { backlog: 1, ..ListenOptions::default() };
    let listener = socket::listen(&Addr::Unix(path.clone()), &options).unwrap();
    let listener = std::os::unix::net::UnixListener::from(listener);
    listener.set_nonblocking(false).unwrap();
    let accepted = std::thread::spawn(move || {
        for _ in 0..16 {
            let stream = listener.accept().unwrap().0;
            std::thread::spawn(move || answer_all(stream));
            // The next one has to wait.
            clock::sleep_ns(2_000_000);
        }
    });
    let path = path.display().to_string();
    let ended = load(&["-d200ms", "-t1", "-c16", "--json", "--unix-socket", &path], "http://localhost/");
    let value: serde_json::Value = serde_json::from_str(ended.done()).unwrap();
    assert_eq!(value["errors"]["connect"], 0, "{value:#}");
    accepted.join().unwrap();
}

/// Answers every request of a connection until it ends.
fn answer_all(mut stream: std::os::unix::net::UnixStream) {
    use std::io::{Read, Write};
    let mut request = [0; 4_096];
    while matches!(stream.read(&mut request), Ok(length) if length > 0) {
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

#[test]
fn ipv6_is_loaded_by_its_address_in_brackets() {
    if TcpListener::bind("[::1]:0").is_err() {
        return common::not_tested("::1");
    }
    let server = Server::start(&mut dyno(["serve", "--listen", "[::1]:0", "--workers", "1"]));
    assert!(server.place.starts_with("[::1]:"), "{}", server.place);
    load(&[&SHORT[..], &["--expect", "status=200"]].concat(), &server.url("/json")).done();
}

#[test]
fn a_wrong_answer_is_an_error_and_says_what_came() {
    let server = Server::serve(&[]);
    let ended = load(&[&SHORT[..], &["--expect", "body=nope", "--json"]].concat(), &server.url("/plaintext"));
    let lines = ended.failed();
    assert!(lines[0].contains("nope") && lines[0].contains("Hello, World!"), "{lines:?}");
    let ended = load(&[&SHORT[..], &["--json"]].concat(), &server.url("/nowhere"));
    assert!(ended.failed()[0].contains("404"), "{}", ended.err);
    load(&[&SHORT[..], &["--expect", "status=404"]].concat(), &server.url("/nowhere")).done();
}

#[test]
fn where_nobody_listens_is_said() {
    // The kernel gives a port below 1,024 to nobody who does not ask for it.
    let ended = load(&["--json"], "http://127.0.0.1:1/");
    let lines = ended.failed();
    assert!(lines[0].contains("refuses connections") && lines[1].contains("no server listens"), "{lines:?}");
}

#[test]
fn a_server_that_never_answers_is_told_as_such() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let ended = load(&["--json", "--timeout", "50ms"], &url);
    assert!(ended.failed()[0].contains("did not answer within 50 ms"), "{}", ended.err);
}

#[test]
fn more_connections_than_descriptors_is_an_error_before_anything_is_opened() {
    let too_many = (proc::nofile().1 + 1).to_string();
    let ended = load(&["--json", "-t1", "-c", &too_many], "http://127.0.0.1:1/");
    assert!(ended.failed()[1].contains("ulimit -Hn"), "{}", ended.err);
}

/// A server whose log tells when a load has begun: opening asks once on each connection.
fn logging(folder: &Folder) -> (Server, String) {
    let log = folder.file("access.log", "");
    (Server::serve(&["--log", "sync", "--log-file", &log]), log)
}

fn wait_for_load(log: &str) {
    wait_for("the load", || std::fs::read_to_string(log).unwrap().lines().count() > 20);
}

#[test]
fn an_interrupt_prints_what_was_measured() {
    let folder = Folder::new("load-interrupt");
    let (server, log) = logging(&folder);
    let child = endless(&["-t1", "-c2"], &server.url("/json"));
    wait_for_load(&log);
    let ended = interrupted(child);
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert!(ended.out.contains("Requests/sec: "), "{}", ended.out);
}

/// Planted fault: an interrupt is heard when all connections were answered, or their time is over.
#[test]
fn an_interrupt_while_connections_are_opened_ends_it_with_what_is_known() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let child = endless(&["-T1h", "-c100", "--json"], &url);
    let _first = silent.accept().unwrap();
    let ended = interrupted(child);
    assert_eq!((ended.code, ended.out.as_str()), (Some(130), ""), "{}", ended.err);
    assert!(ended.err.contains("0 of 100 were answered"), "{}", ended.err);
}

#[test]
fn threads_are_left_where_the_scheduler_puts_them_unless_they_are_pinned() {
    let server = Server::serve(&[]);
    let allowed = affinity::allowed();
    let child = endless(&["-t2", "-c2", "--json"], &server.url("/json"));
    wait_for("two free threads", || {
        let threads = threads_of(&child);
        threads.len() == 2 && threads.iter().all(|cpus| *cpus == allowed)
    });
    assert_eq!(interrupted(child).code, Some(130));
    let last = allowed.iter().last().unwrap();
    let child = endless(&["--pin", &last.to_string(), "--json"], &server.url("/json"));
    wait_for("a pinned thread", || threads_of(&child) == [affinity::CpuSet::single(last)]);
    assert_eq!(interrupted(child).code, Some(130));
}

/// The sockets that a process holds.
fn sockets_of(child: &Child) -> BTreeSet<PathBuf> {
    let all = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().flatten();
    let links = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).collect()
}

/// Planted fault: a connection that the server's end broke is no error.
#[test]
fn a_server_that_dies_meanwhile_is_told_by_what_was_lost() {
    let folder = Folder::new("load-dead");
    let (server, log) = logging(&folder);
    let addr = server.addr();
    let child = endless(&["-t1", "-c2", "--json"], &server.url("/json"));
    wait_for_load(&log);
    let before = sockets_of(&child);
    assert!(!before.is_empty());
    // The worker dies with its supervisor.
    drop(server);
    wait_for("the end of the worker", || TcpStream::connect(addr).is_err());
    // On a busy machine it gets a CPU some time after that.
    wait_for("the load has given its connections up", || sockets_of(&child).is_disjoint(&before));
    let ended = interrupted(child);
    let value: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let lost: u64 =
        ["connect", "read", "write"].iter().map(|class| value["errors"][class].as_u64().unwrap()).sum();
    assert_eq!(ended.code, Some(130));
    assert!(lost > 0, "{value:#}");
}

/// Planted fault: what was answered while it lived is divided by the whole run, and all is well.
#[test]
fn a_server_that_dies_early_makes_a_run_that_failed() {
    let folder = Folder::new("load-died");
    let (server, log) = logging(&folder);
    let url = server.url("/json");
    let words = ["load", "-d4s", "-t2", "-c4", &url];
    let child = dyno(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_load(&log);
    drop(server);
    let ended = Ended::of(child);
    assert_eq!(ended.code, Some(2), "{}", ended.out);
    assert!(ended.out.contains("  No connection was up for "), "{}", ended.out);
    assert!(ended.err.contains("error: no connection was up for "), "{}", ended.err);
    assert!(ended.err.contains("the server's own log"), "{}", ended.err);
}

/// Answers each request after so many milliseconds, on any number of connections.
fn slow(ms: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            std::thread::spawn(move || answer_after(stream, || ms));
        }
    });
    url
}

fn answer_after(mut stream: TcpStream, ms: impl Fn() -> u64) {
    use std::io::{Read, Write};
    let mut request = [0; 4_096];
    while matches!(stream.read(&mut request), Ok(length) if length > 0) {
        clock::sleep_ns(ms() * 1_000_000);
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

/// Answers so many requests at once, on any number of connections, and each later one after so many milliseconds.
fn quick_then_slow(quick: i64, ms: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let left = Arc::new(AtomicI64::new(quick));
    std::thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            let left = left.clone();
            let is_slow = move || left.fetch_sub(1, Ordering::Relaxed) <= 0;
            std::thread::spawn(move || answer_after(stream, || if is_slow() { ms } else { 0 }));
        }
    });
    url
}

/// Planted fault: its connections stand and no request is as old as its timeout, so all is well.
#[test]
fn a_server_that_hangs_for_the_rest_of_a_run_makes_it_fail_and_one_that_only_pauses_does_not() {
    let words = ["-d1s", "-T30s", "-t2", "-c4", "--expect", "status=200"];
    let hangs = load(&words, &quick_then_slow(200, 600_000));
    assert_eq!(hangs.code, Some(2), "{}", hangs.out);
    assert!(hangs.out.contains("  Nothing was received for the last "), "{}", hangs.out);
    assert!(hangs.err.starts_with("error: nothing was received for the last "), "{}", hangs.err);
    assert!(hangs.err.contains("4 were unfinished at the end"), "{}", hangs.err);
    let pauses = load(&words, &quick_then_slow(200, 1_500));
    assert!(!pauses.done().contains("Nothing was received"), "{}", pauses.out);
}

/// Planted fault: answers that are younger than the timeout timed out because the run is over, and no condition is met.
#[test]
fn answers_that_take_longer_than_the_end_of_a_run_are_awaited_and_not_called_timed_out() {
    let words = ["-d200ms", "-T30s", "-t1", "-c2", "--json", "--fail-under", "p99<=10s, errors<=0"];
    let ended = load(&words, &slow(2_300));
    let value: serde_json::Value = serde_json::from_str(ended.done()).unwrap();
    assert!(value["errors"].as_object().unwrap().values().all(|count| count == 0), "{value:#}");
    assert!(value["latency_us"]["p99"].as_f64().unwrap() >= 2.3e6, "{value:#}");
    assert_eq!(value["answered_late"], 2, "{value:#}");
}

/// Planted fault: the table alone is printed, and the record of a long run is lost.
#[test]
fn a_record_is_written_beside_the_table_where_one_is_asked_for() {
    let folder = common::Folder::new("load-record");
    let server = Server::serve(&[]);
    let url = format!("http://{}/json", server.place);
    let file = common::word(&folder.path("load.json"));
    let ended = run(["load", "-d", "500ms", "-o", &file, &url]);
    assert!(
        ended.done().starts_with("Running ") && ended.err.contains(&format!("record    {file}\n")),
        "{}",
        ended.err
    );
    assert!(run(["report", &file]).done().contains("/json"));
    let printed = run(["load", "-d", "500ms", "-o", "-", &url]);
    let record: dyno_record::load::LoadRun = serde_json::from_str(printed.done()).unwrap();
    assert!(record.requests > 0);
    let nowhere = common::word(&folder.path("missing/load.json"));
    let refused = run(["load", "-o", &nowhere, &url]);
    assert!(refused.failed()[0].contains("cannot write") && refused.out.is_empty(), "{}", refused.out);
}

//! `dyno serve` and `dyno floor` from outside: they listen, answer, say why they cannot, and end in order.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Background, Ended, Folder, Server, ask, dyno, run, wait_for, word};
use dyno_sys::proc;
use dyno_sys::signal::{self, Signal};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;

const REQUEST: &[u8] = b"GET /plaintext HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

fn answer_of(mut stream: impl Read + Write) -> String {
    stream.write_all(REQUEST).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn is_hello(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nHello, World!")
}

#[test]
fn it_says_where_it_listens_answers_and_drains_when_told() {
    for signal in [Signal::Term, Signal::Int, Signal::Quit] {
        let mut server = Server::serve(&[]);
        let workers = server.hear("worker");
        let worker: i32 = workers["worker ".len()..].parse().unwrap();
        assert!(proc::tree(server.pid()).contains(&worker), "{workers}");
        let answer = answer_of(TcpStream::connect(server.addr()).unwrap());
        assert!(is_hello(&answer), "{answer}");
        server.signal(signal);
        server.hear("draining");
        assert_eq!(server.hear("drained"), "drained after 1 request");
        assert!(server.end().success());
    }
}

#[test]
fn an_idle_connection_does_not_keep_it_from_ending() {
    let mut server = Server::serve(&[]);
    let mut idle = TcpStream::connect(server.addr()).unwrap();
    idle.write_all(b"GET /json HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    idle.read_exact(&mut [0; 15]).unwrap();
    server.signal(Signal::Term);
    server.hear("drained");
    assert!(server.end().success());
}

#[test]
fn the_naive_start_and_every_log_answer_the_same_bytes() {
    for words in [
        &["--naive"][..],
        &["--naive", "--log", "off", "--trigger", "edge"],
        &["--log", "ring"],
        &["--log", "sync", "--send", "split", "--calls", "read-write", "--spin", "50"],
    ] {
        let server = Server::serve(words);
        let answer = answer_of(TcpStream::connect(server.addr()).unwrap());
        assert!(is_hello(&answer), "{words:?}: {answer}");
    }
}

#[test]
fn the_access_log_goes_where_it_is_told() {
    let folder = Folder::new("log");
    let log = folder.file("access.log", "");
    let server = Server::serve(&["--log", "sync", "--log-file", &log]);
    answer_of(TcpStream::connect(server.addr()).unwrap());
    wait_for("a line in the log", || {
        std::fs::read_to_string(&log).unwrap().contains("GET /plaintext HTTP/1.1")
    });
}

/// Planted fault: nothing is said of it, and whoever misses his lines learns nothing.
#[test]
fn a_log_file_beside_a_log_that_is_off_is_a_warning_and_no_error() {
    let folder = Folder::new("empty-log");
    let path = folder.path("access.log");
    let mut server = Server::serve(&["--log-file", path.to_str().unwrap()]);
    let said = server.hear_again("warning: nothing is written to ");
    assert_eq!(
        said,
        format!(
            "warning: nothing is written to {}: the access log is off (--log ring turns it on)",
            path.display()
        )
    );
    assert!(is_hello(&answer_of(TcpStream::connect(server.addr()).unwrap())));
    server.signal(Signal::Term);
    assert!(server.end().success() && !path.exists());
}

/// As many nanoseconds as a number holds, nearly. Planted fault: they are added to the time without a bound.
#[test]
fn a_drain_may_take_as_long_as_anybody_wants() {
    let mut server = Server::serve(&["--drain-timeout", "18446744073s", "--log", "ring"]);
    assert!(is_hello(&answer_of(TcpStream::connect(server.addr()).unwrap())));
    server.signal(Signal::Term);
    assert_eq!(server.hear("drained"), "drained after 1 request");
    assert!(server.end().success());
}

#[test]
fn a_socket_file_is_listened_on_and_taken_away() {
    let folder = Folder::new("unix");
    let path = folder.path("x.sock");
    let listen = format!("unix:{}", path.display());
    let mut server = Server::start(&mut dyno(["serve", "--workers", "1", "--listen", &listen]));
    assert_eq!(server.place, listen);
    assert!(is_hello(&answer_of(UnixStream::connect(&path).unwrap())));
    server.signal(Signal::Term);
    assert!(server.end().success());
    assert!(!path.exists());
}

#[test]
fn limits_are_those_of_the_flags() {
    let server = Server::serve(&["--line-bytes-max", "32", "--body-bytes-max", "4"]);
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(40));
    assert_eq!(ask(server.addr(), long.as_bytes(), 12), b"HTTP/1.1 414");
    let large = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(ask(server.addr(), large, 12), b"HTTP/1.1 413");
}

#[test]
fn limits_with_which_nothing_could_be_served_are_refused_by_name() {
    for (flag, value) in [("--buffer-bytes-max", "0"), ("--head-bytes-max", "1G")] {
        let ended = run(["serve", flag, value, "--listen", "127.0.0.1:0"]);
        assert_eq!(ended.code, Some(2), "{}", ended.err);
        assert!(ended.err.contains(&format!("another {flag}")), "{}", ended.err);
    }
}

#[test]
fn a_busy_port_is_told_with_the_process_that_has_it() {
    let server = Server::serve(&[]);
    for verb in [&["serve"][..], &["serve", "--workers", "2"]] {
        let ended = run(verb.iter().chain(&["--listen", &server.place]));
        let lines = ended.failed();
        assert!(lines[0].contains(&format!("cannot listen on {}", server.place)), "{lines:?}");
        assert!(lines[0].ends_with("is in use"), "{lines:?}");
        assert!(lines[1].contains(&server.pid().to_string()), "{lines:?}");
    }
}

#[test]
fn a_port_that_is_no_dynos_is_busy_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let ended = run(["serve", "--listen", &place]);
    // A child of another test holds it too until it has become its program.
    let told = ended.failed()[1];
    assert!(told.contains("listen") && told.contains(&std::process::id().to_string()), "{}", ended.err);
}

#[test]
fn an_address_of_another_machine_and_a_missing_folder_are_told_apart() {
    // 192.0.2.0/24 is for documentation (RFC 5737): no machine has it.
    let ended = run(["serve", "--listen", "192.0.2.1:8080"]);
    assert!(ended.failed()[1].contains("no such address"), "{}", ended.err);
    let ended = run(["serve", "--listen", "unix:/nowhere/x.sock"]);
    assert!(ended.failed()[1].contains("folder of the socket file"), "{}", ended.err);
    let ended = run(["serve", "--log", "sync", "--log-file", "/nowhere/log", "--listen", "127.0.0.1:0"]);
    assert!(ended.failed()[0].contains("cannot open the access log /nowhere/log"), "{}", ended.err);
    let ended = run(["serve", "--congestion", "nosuchalgorithm", "--listen", "127.0.0.1:0"]);
    assert!(ended.failed()[1].contains("no congestion control of that name"), "{}", ended.err);
}

#[test]
fn the_floor_answers_every_request_with_the_same_bytes() {
    let folder = Folder::new("floor");
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let file = folder.file("answer", answer);
    let words = ["floor", "--listen", "127.0.0.1:0", "--answer", &file];
    let mut server = Server::start(&mut dyno(words));
    assert_eq!(ask(server.addr(), REQUEST, answer.len()), answer.as_bytes());
    let twice = [REQUEST, REQUEST].concat();
    assert_eq!(ask(server.addr(), &twice, 2 * answer.len()), answer.repeat(2).as_bytes());
    server.signal(Signal::Term);
    assert!(server.end().success());
}

#[test]
fn the_floor_counts_requests_by_the_bytes_it_is_told() {
    let folder = Folder::new("floor-bytes");
    let file = folder.file("answer", "ok");
    let words = ["floor", "--listen", "127.0.0.1:0", "--answer", &file, "--request-bytes", "4"];
    let server = Server::start(&mut dyno(words));
    assert_eq!(ask(server.addr(), b"0123456789ab", 6), b"okokok");
}

#[test]
fn a_floor_without_an_answer_is_an_error() {
    let folder = Folder::new("floor-empty");
    let file = folder.file("answer", "");
    assert!(
        run(["floor", "--answer", &file]).failed()[0].ends_with("is empty: there is nothing to answer with")
    );
}

#[test]
fn a_regular_file_in_the_place_of_a_socket_is_said_to_be_none() {
    let folder = Folder::new("no-socket");
    let path = folder.file("plain", "text");
    let ended = run(["serve", "--listen", &format!("unix:{path}")]);
    assert!(ended.failed()[1].contains("it is no socket"), "{}", ended.err);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "text");
}

/// Planted fault: threads that cannot be counted mean that /proc is not mounted.
#[test]
fn with_too_few_descriptors_the_reason_is_that() {
    for most in [8, 16] {
        let words = format!("ulimit -n {most}; exec \"$0\" serve --listen 127.0.0.1:0");
        let output = Command::new("sh").args(["-c", &words, env!("CARGO_BIN_EXE_dyno")]).output().unwrap();
        let ended = Ended::from(output);
        let lines = ended.failed();
        assert!(lines[0].contains("Too many open files") && !lines[0].contains("mounted"), "{lines:?}");
        assert!(
            lines[1].contains(&format!("this process may have {most} open files (ulimit -n)")),
            "{lines:?}"
        );
    }
}

/// Planted fault: with `--log sync` nobody keeps what the write has answered.
#[test]
fn log_lines_that_get_lost_are_told_of_at_once_and_counted_at_the_end() {
    for log in ["sync", "ring"] {
        let mut server = Server::serve(&["--log", log, "--log-file", "/dev/full"]);
        ask(server.addr(), b"GET /json HTTP/1.1\r\nHost: x\r\n\r\n", 15);
        let told = server.hear("warning: the access log does not take every line: ");
        assert!(told.contains(": No space left on device (os error 28); "), "{log}: {told}");
        server.signal(Signal::Term);
        assert_eq!(server.hear("warning: 1 line"), "warning: 1 line of the access log was lost");
        assert_eq!(server.end().code(), Some(0));
    }
}

#[test]
fn a_folder_is_served_in_place_of_the_demonstration_routes() {
    let folder = Folder::new("serve-folder");
    std::fs::create_dir(folder.path("site")).unwrap();
    folder.file("site/index.html", "<p>home".repeat(100));
    let site = word(&folder.path("site"));
    let mut server = Server::serve(&[&site, "--no-cache", "--maxage-max", "60"]);
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(server.addr()).unwrap();
        stream
            .write_all(format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let home = ask("GET /?maxage=60");
    assert!(home.starts_with("HTTP/1.1 200 OK\r\n") && home.ends_with(&"<p>home".repeat(100)), "{home}");
    assert!(home.contains("Cache-Control: max-age=60\r\n"), "{home}");
    assert!(ask("GET /?maxage=61").starts_with("HTTP/1.1 400 "));
    assert!(ask("GET /json").starts_with("HTTP/1.1 404 "));
    server.signal(Signal::Term);
    server.hear("drained");
    assert!(server.end().success());
}

#[test]
fn a_folder_that_cannot_be_served_is_told_with_the_reason() {
    for (words, reason) in [
        (&["/nowhere"][..], "likely: there is no such file or folder"),
        (&["--content-root", "/nowhere"], "likely: there is no such folder"),
        (&["--content-root", "/etc/passwd"], "likely: it is no folder"),
        (&["/", "--force-encoding", "zip"], "likely: it takes gzip, deflate or br"),
        (&["--no-compress"], "error: --no-compress means nothing without a folder"),
    ] {
        let ended = run(["serve"].iter().chain(words));
        assert!(ended.err.contains(reason), "{words:?}: {}", ended.err);
        assert_eq!(ended.code, Some(2), "{words:?}");
    }
}

/// Red, as an ordinary user, with a default cache that must be there. (As root there is no default.)
#[test]
fn who_has_no_home_is_served_without_a_cache() {
    let folder = Folder::new("homeless");
    std::fs::write(folder.path("index.html"), "here").unwrap();
    let path = folder.path("");
    let words = ["serve", path.to_str().unwrap(), "--listen", "127.0.0.1:0", "--workers", "1"];
    let mut command = dyno(words);
    let server = Server::start(command.env_remove("XDG_CACHE_HOME").env("HOME", "/proc"));
    let answer = ask(server.addr(), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 15);
    assert_eq!(answer, b"HTTP/1.1 200 OK");
}

#[test]
fn an_error_log_has_what_is_told_with_the_time_and_standard_error_the_start_alone() {
    let folder = Folder::new("error-log");
    let path = folder.file("errors.log", "");
    let mut server = Server::serve(&["--error-log", &path, "--log", "ring", "--log-file", "/dev/full"]);
    let family = dyno_sys::proc::tree(server.pid());
    let text = || std::fs::read_to_string(&path).unwrap();
    wait_for("the start to be told", || text().contains("listening on http://"));
    ask(server.addr(), b"GET /json HTTP/1.1\r\nHost: x\r\n\r\n", 12);
    wait_for("the trouble to be told", || {
        text().contains(": the access log does not take every line: No space left")
    });
    server.signal(Signal::Term);
    assert!(server.end().success());
    let text = text();
    // The master tells of the end, and its supervisor of what it looks after.
    let is_ours = |line: &str| family.iter().any(|pid| line.contains(&format!(" {pid}: ")));
    assert!(text.lines().all(|line| is_ours(line) && line.starts_with("20")), "{text}");
    let levels = [
        ("listening on ", "notice"),
        ("the access log does not", "warn"),
        ("1 line of the", "warn"),
        ("drained after 1 request", "notice"),
    ];
    for (says, level) in levels {
        let is_told =
            |line: &str| line.contains(&format!(" {level} ")) && line.contains(&format!(": {says}"));
        assert!(text.lines().any(is_told), "{says}: {text}");
    }
}

#[test]
fn a_level_leaves_out_what_matters_less() {
    let folder = Folder::new("error-level");
    let path = folder.file("errors.log", "");
    let mut server = Server::serve(&["--error-log", &path, "--error-level", "warn"]);
    assert_eq!(ask(server.addr(), b"GET / HTTP/9\r\n\r\n", 12), b"HTTP/1.1 505");
    server.signal(Signal::Term);
    assert!(server.end().success());
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.lines().all(|line| line.contains(" warn ")), "{text}");
    let ended = run(["serve", "--error-level", "loud"]);
    assert!(ended.failed().iter().any(|line| line.contains("it is error, warn, notice or info")));
    let ended = run(["serve", "--check", "--error-log", "/nowhere/errors.log"]);
    assert!(
        ended.failed()[0].starts_with("error: cannot open the error log /nowhere/errors.log: No such file")
    );
}

/// A pipe that was full before it began. Fault: talk waits for its reader (`out::say` in place of `out::mention`), and orders wait for the
/// talk.
#[test]
fn a_server_whose_talk_nobody_reads_serves_and_hears_its_orders() {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;

    /// As on x86-64 and arm64 (open(2)).
    const O_NONBLOCK: i32 = 0o4000;
    let folder = Folder::new("unread");
    let socket = folder.path("socket");
    let (_unread, talk) = std::io::pipe().unwrap();
    // Opened anew, so that only this end does not wait.
    let own = format!("/proc/self/fd/{}", talk.as_raw_fd());
    let mut filled = std::fs::File::options().write(true).custom_flags(O_NONBLOCK).open(own).unwrap();
    while filled.write(&[b'x'; 4096]).is_ok() {}
    while filled.write(b"x").is_ok() {}
    let listen = format!("unix:{}", socket.display());
    let mut server = Background(dyno(["serve", "--listen", &listen]).stderr(talk).spawn().unwrap());
    let tell = |what| signal::kill(server.pid().parse().unwrap(), what).unwrap();
    let answers = || {
        let Ok(mut connection) = UnixStream::connect(&socket) else { return false };
        connection.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
        let _ = connection.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut begin = [0; 12];
        connection.read_exact(&mut begin).is_ok() && &begin == b"HTTP/1.1 404"
    };
    wait_for("it serves", answers);
    tell(Signal::Hup);
    wait_for("it serves while settings are read again", answers);
    tell(Signal::Term);
    wait_for("it has ended", || server.0.try_wait().unwrap().is_some());
}

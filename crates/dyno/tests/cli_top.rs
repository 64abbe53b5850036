//! `dyno top` from outside: on a terminal, without one, and where there is nothing to see.
#![allow(clippy::unwrap_used)]

mod common;

use common::{DEADLINE, Ended, Server, ask, dyno, run, wait_for};
use dyno_sys::proc;
use dyno_sys::signal::{self, Signal};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const REQUEST: &[u8] = b"GET /json HTTP/1.1\r\nHost: x\r\n\r\n";

fn watched() -> (Server, String) {
    let mut server = Server::serve(&["--metrics", "127.0.0.1:0"]);
    let line = server.hear("metrics on http://");
    let place = line["metrics on http://".len()..].strip_suffix("/metrics").unwrap().to_owned();
    // It is told of when its process is born, which becomes what it is after that.
    wait_for("the process for metrics", || {
        let all = proc::tree(server.pid());
        all.into_iter().any(|pid| proc::name(pid).is_ok_and(|name| name == "dyno-metrics"))
    });
    (server, place)
}

#[test]
fn without_a_terminal_it_prints_a_line_for_each_look() {
    let (server, place) = watched();
    let mut top = dyno(["top", "--metrics", &place, "--interval", "50ms"]);
    let mut top = top.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let start = std::time::Instant::now();
    loop {
        ask(server.addr(), REQUEST, 15);
        let line = lines.next().unwrap().unwrap();
        assert!(line.starts_with("requests/s ") && !line.contains('\x1b'), "{line}");
        if !line.starts_with("requests/s 0 ") && line.contains("CPU/request") {
            break;
        }
        assert!(start.elapsed() < DEADLINE, "no request was ever seen");
    }
    signal::kill(top.id().cast_signed(), Signal::Int).unwrap();
    assert!(top.wait().unwrap().success());
}

#[test]
fn a_server_is_found_by_its_process() {
    let (server, _) = watched();
    let ended = run(["top", &server.pid().to_string(), "-n", "2", "--interval", "1ms"]);
    assert_eq!(ended.done().lines().count(), 2, "{}", ended.out);
}

#[test]
fn a_terminal_is_left_as_it_was() {
    let (_server, place) = watched();
    // script(1) gives its command a terminal.
    let line = format!(
        "stty rows 9 cols 40; stty -g; {} top --metrics {place} --interval 20ms; stty -g",
        env!("CARGO_BIN_EXE_dyno")
    );
    let mut script = Command::new("script");
    let mut script = script
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = script.stdout.take().unwrap();
    let (mut seen, mut byte) = (Vec::new(), [0]);
    // Until it has drawn twice.
    while seen.windows(3).filter(|bytes| bytes == b"\x1b[H").count() < 2 {
        assert_eq!(out.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
    }
    let top = dyno_sys::proc::tree(script.id().cast_signed());
    let top =
        top.into_iter().find(|pid| dyno_sys::proc::name(*pid).is_ok_and(|name| name == "dyno")).unwrap();
    signal::kill(top, Signal::Int).unwrap();
    out.read_to_end(&mut seen).unwrap();
    assert!(script.wait().unwrap().success());
    let text = String::from_utf8(seen).unwrap();
    let begins = text.find("\x1b[?1049h\x1b[?25l").unwrap();
    let ends = text.rfind("\x1b[?25h\x1b[?1049l").unwrap();
    assert!(begins < ends);
    let mode = |text: &str| text.lines().find(|line| line.contains(':')).map(|line| line.trim().to_owned());
    let after = mode(&text[ends + "\x1b[?25h\x1b[?1049l".len()..]);
    assert_eq!((mode(&text), after.is_some()), (after, true), "{text:?}");
    let frame = &text[begins..ends];
    assert!(frame.contains("dyno top · ") && frame.contains("requests/s"), "{frame}");
}

#[test]
fn where_there_is_nothing_to_see_that_is_said() {
    let server = Server::serve(&[]);
    for (words, what, likely) in [
        (
            &["--metrics", &server.place][..],
            "answers with something else than dyno's metrics",
            "another server",
        ),
        (
            &["--metrics", "unix:/nowhere/x.sock"],
            "unix:/nowhere/x.sock does not answer",
            "the server has ended",
        ),
        (&[&server.pid().to_string()], "serves no metrics", "without --metrics"),
        (&["2147483646"], "there is no process 2147483646", "it has ended"),
        (&[], "required", ""),
    ] {
        let ended: Ended = run(["top"].iter().chain(words));
        let lines = ended.failed();
        assert!(lines[0].contains(what) && lines[1].contains(likely), "{lines:#?}");
    }
}

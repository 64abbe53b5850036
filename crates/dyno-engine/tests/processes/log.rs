//! The access log over the deaths of those who write it: every request that was answered has its line, or is counted as
//! lost.

use crate::common::{Client, wait_for};
use crate::served::{Served, figure, temporary};
use dyno_sys::Pid;
use dyno_sys::signal::{self, Signal};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

fn ask(client: &mut Client, number: usize) {
    assert_eq!(client.ask(format!("GET /json?{number} HTTP/1.1\r\nHost: a\r\n\r\n")).status, 200);
}

/// Whether a server that may be dying still answers.
fn is_answered(stream: &mut TcpStream, number: usize) -> bool {
    let mut reply = [0; 1024];
    stream.write_all(format!("GET /json?{number} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).is_ok()
        && stream.read(&mut reply).is_ok_and(|count| reply[..count].ends_with(b"}"))
}

fn writer_of(served: &Served) -> Option<Pid> {
    let family = dyno_sys::proc::tree(served.supervisor());
    family.into_iter().find(|pid| *pid != served.supervisor() && !served.pids.contains(pid))
}

/// The numbers of the requests that have a line; every line must be whole.
fn numbers_in(text: &str) -> BTreeSet<usize> {
    let number = |line: &str| -> Option<usize> {
        assert!(line.ends_with(" HTTP/1.1\" 200 27"), "a torn line: {line}");
        line.split_once("/json?")?.1.split_once(' ')?.0.parse().ok()
    };
    text.lines().map(|line| number(line).unwrap_or_else(|| panic!("a torn line: {line}"))).collect()
}

fn read_and_remove(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::remove_file(path).unwrap();
    text
}

pub(crate) fn a_line_in_the_ring_survives_its_worker() {
    let path = temporary("ring.log");
    let mut served = Served::start(&[("log", "ring"), ("log_file", path.to_str().unwrap())]);
    let mut client = Client::connect(served.addr());
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

pub(crate) fn no_line_is_lost_when_the_writer_is_killed() {
    (0..4).for_each(|_| no_line_is_lost_in_eight_kills());
}

/// A writer that is killed again and again is replaced more and more slowly: eight in a row take half a second.
fn no_line_is_lost_in_eight_kills() {
    const KILLS: usize = 8;
    // All of them fit the ring: a writer may be killed before it has written anything.
    const BETWEEN: usize = 100;
    let path = temporary("writer.log");
    let mut served = Served::start(&[("log", "ring"), ("log_file", path.to_str().unwrap())]);
    let mut client = Client::connect(served.addr());
    for kill in 0..KILLS {
        (0..BETWEEN).for_each(|number| ask(&mut client, kill * BETWEEN + number));
        let mut writer = None;
        wait_for("a writer", || {
            writer = writer_of(&served);
            writer.is_some()
        });
        signal::kill(writer.unwrap(), Signal::Kill).unwrap();
        assert_eq!(served.line(), "writer died");
    }
    let (status, report) = served.stop();
    assert!(status.success(), "{status}");
    let text = read_and_remove(&path);
    assert_eq!(numbers_in(&text), (0..KILLS * BETWEEN).collect(), "{report}");
    assert_eq!(figure(&report, "log_drops"), 0, "{report}");
}

pub(crate) fn no_line_is_lost_when_the_supervisor_is_killed() {
    let path = temporary("orphans.log");
    for round in 0..5 {
        let mut served = Served::start(&[("log", "ring"), ("log_file", path.to_str().unwrap())]);
        let writer = writer_of(&served).unwrap();
        let mut client = Client::connect(served.addr());
        (0..50).for_each(|number| ask(&mut client, number));
        let victim = served.pid();
        let killer = std::thread::spawn(move || signal::kill(victim, Signal::Kill).unwrap());
        // The worker answers on until the kernel tells it that its parent is gone.
        let mut answered = 50;
        while is_answered(&mut client.stream, answered) {
            answered += 1;
        }
        killer.join().unwrap();
        served.child.wait().unwrap();
        wait_for("the writer to end", || {
            !crate::served::is_alive(writer) || crate::served::is_zombie(writer)
        });
        let numbers = numbers_in(&read_and_remove(&path));
        let missing: Vec<usize> = (0..answered).filter(|number| !numbers.contains(number)).collect();
        assert!(
            missing.is_empty(),
            "round {round}: {answered} were answered, these have no line: {missing:?}"
        );
    }
}

pub(crate) fn lines_that_a_stalled_reader_leaves_are_counted() {
    const REQUESTS: usize = 2_000;
    let path = temporary("stalled.fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    // Open for reading before the server opens it for writing, and read only when all is over.
    let mut reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let settings = [("log", "ring"), ("log_file", path.to_str().unwrap()), ("drain_ms", "100")];
    let mut served = Served::start(&settings);
    let mut client = Client::connect(served.addr());
    (0..REQUESTS).for_each(|number| ask(&mut client, number));
    drop(client);
    let (status, report) = served.stop();
    assert!(status.success(), "{status}");
    let lost: usize = figure(&report, "log_drops") as usize;
    assert!(lost > 0, "the pipe holds less than {REQUESTS} lines: {report}");
    let mut text = vec![0; REQUESTS * 200];
    let length = reader.read(&mut text).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines = numbers_in(std::str::from_utf8(&text[..length]).unwrap()).len();
    assert_eq!(lines + lost, REQUESTS, "{report}");
}

pub(crate) fn a_file_size_limit_costs_lines_and_no_process() {
    let path = temporary("limited.log");
    // In blocks of 512 bytes, as POSIX has it: room for some 50 lines.
    let settings = [("log", "ring"), ("log_file", path.to_str().unwrap()), ("file_blocks", "8")];
    let mut served = Served::start(&settings);
    let writer = writer_of(&served).unwrap();
    let mut client = Client::connect(served.addr());
    (0..500).for_each(|number| ask(&mut client, number));
    wait_for("a lost line", || figure(&served.order("counters"), "log_drops") > 0);
    assert_eq!(writer_of(&served), Some(writer), "the writer is the one that it was");
    drop(client);
    let (_, report) = served.stop();
    let lines = read_and_remove(&path).matches('\n').count();
    assert_eq!(lines + figure(&report, "log_drops") as usize, 500, "{report}");
}

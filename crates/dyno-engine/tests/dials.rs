//! Dials: each position answers the same bytes, and each really takes another way.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, addr, one_worker, patient, serve, server, wait_for, without_dates};
use dyno_engine::{Counts, Dials, Drained};
use dyno_sys::child;
use dyno_sys::socket::{self, SockOpt};
use std::path::PathBuf;

/// A conversation over the whole range of replies, pipelined and ended by the client's wish.
const SCRIPT: &str = "GET /json HTTP/1.1\r\nHost: a\r\n\r\n\
    GET /plaintext HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nX-One: 2\r\n\r\n\
    POST /echo HTTP/1.1\r\nHost: a\r\nCONTENT-TYPE: text/html\r\nContent-Length: 4\r\n\r\nbody\
    POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n\
    GET /hello/%E4%B8%96 HTTP/1.1\r\nHost: a\r\n\r\n\
    HEAD /json HTTP/1.1\r\nHost: a\r\n\r\n\
    GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n\
    PUT /json HTTP/1.1\r\nHost: a\r\n\r\n\
    GET /json HTTP/1.0\r\nConnection: keep-alive\r\n\r\n\
    GET /json HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const REQUESTS: u64 = 10;

/// Every dial's every word that this machine can take.
const WORDS: [(&str, &str); 15] = [
    ("log", "off sync ring"),
    ("send", "joined split"),
    ("calls", "recv-send read-write"),
    ("read", "once drain"),
    ("trigger", "level edge"),
    ("body", "outbox generic"),
    ("headers", "borrowed owned"),
    ("date", "second reply"),
    ("replies", "batch single"),
    ("congestion", "default reno"),
    ("spin", "0 100"),
    ("busy-poll", "0 100"),
    ("workers", "1 2"),
    ("reuseport", "off hash cpu"),
    ("pin", "none cpu"),
];

fn log_file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("dyno-engine-{}-{name}.log", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// Runs the script on a server with these dials: what was answered, what was counted, what was logged.
fn converse(dials: Dials, name: &str) -> (String, Counts, String) {
    let path = log_file(name);
    let running = server(dials, patient()).log_file(&path).start().unwrap();
    let answer = without_dates(&Client::connect(addr(&running)).send(SCRIPT).rest());
    wait_for("the counters to be published", || running.counts().requests == REQUESTS);
    let counts = running.counts();
    assert_eq!(running.stop(), Drained::Wholly);
    let log = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    (answer, counts, log)
}

#[test]
fn every_position_of_every_dial_answers_the_same_bytes() {
    let (expected, _, _) = converse(one_worker(), "expected");
    assert_eq!(expected.matches("HTTP/1.1 ").count() as u64, REQUESTS, "{expected}");
    for base in [one_worker(), Dials { log: dyno_engine::Log::Off, ..Dials::naive() }] {
        for (dial, word) in
            WORDS.iter().flat_map(|(dial, words)| words.split(' ').map(move |word| (dial, word)))
        {
            let mut dials = base.clone();
            dials.set(dial, word).unwrap();
            let (answer, _, log) = converse(dials.clone(), &format!("{dial}-{word}"));
            assert_eq!(answer, expected, "{dial} = {word} in {dials:?}");
            let lines = if *dial == "log" && word != "off" { REQUESTS as usize } else { 0 };
            assert_eq!(log.lines().count(), lines, "{dial} = {word}: {log}");
        }
    }
    assert_eq!(converse(Dials::naive(), "naive").0, expected);
}

#[test]
fn each_dial_shows_in_the_counters_and_nothing_shows_by_default() {
    let counts = |dial: &str, word: &str| {
        let mut dials = one_worker();
        dials.set(dial, word).unwrap();
        converse(dials, &format!("counts-{dial}-{word}")).1
    };
    let base = counts("log", "off");
    assert_eq!((base.owned_heads, base.generic_bodies), (0, 0));
    assert!(base.dates_formatted <= 1, "once a second at most");
    assert_eq!((base.log_writes, base.sends, base.spins), (0, 1, 0));
    assert_eq!(counts("log", "sync").log_writes, REQUESTS);
    assert_eq!(counts("log", "ring").log_writes, 0);
    assert_eq!(counts("replies", "single").sends, REQUESTS);
    // Every reply but the one to HEAD has a body of its own.
    assert_eq!(counts("send", "split").sends, 2 * REQUESTS - 1);
    // What a first version does in its handlers is not done where no handler is found: an unknown path and a method.
    assert_eq!(counts("body", "generic").generic_bodies, REQUESTS - 2);
    assert_eq!(counts("headers", "owned").owned_heads, REQUESTS - 2);
    let dates = counts("date", "reply").dates_formatted;
    assert!((REQUESTS - 2..REQUESTS).contains(&dates), "one for each, and once a second: {dates}");
}

#[test]
fn draining_reads_once_more_than_it_must() {
    for (word, reads) in [("once", 1), ("drain", 2)] {
        let mut dials = one_worker();
        dials.set("read", word).unwrap();
        let running = serve(dials, patient());
        let mut client = Client::connect(addr(&running));
        assert_eq!(client.ask("GET /json HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
        wait_for("the counters to be published", || running.counts().requests == 1);
        assert_eq!(running.counts().reads, reads, "{word}");
    }
}

#[test]
fn spinning_can_be_turned_while_the_server_runs() {
    let running = serve(one_worker(), patient());
    let mut client = Client::connect(addr(&running));
    let mut ask = || assert_eq!(client.ask("GET /json HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    ask();
    assert_eq!(running.counts().spins, 0);
    running.set_spin(2_000);
    // The worker learns of it at its next turn, and publishes at its next work.
    wait_for("a spin to be counted", || {
        ask();
        running.counts().spins > 0
    });
    running.set_spin(0);
    wait_for("no spin to be counted over a request", || {
        let spins = running.counts().spins;
        ask();
        running.counts().spins == spins
    });
}

#[test]
fn the_congestion_control_and_no_delay_are_in_force_on_accepted_sockets() {
    let mut dials = one_worker();
    dials.set("congestion", "reno").unwrap();
    let running = serve(dials, patient());
    let mut client = Client::connect(addr(&running));
    assert_eq!(client.ask("GET /json HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    let this = child::this();
    let pidfd = child::pidfd_open(this).unwrap();
    let accepted = dyno_sys::proc::sockets_accepted(this, addr(&running).port());
    let sockets: Vec<_> = accepted.into_iter().map(|fd| child::pidfd_getfd(&pidfd, fd).unwrap()).collect();
    assert!(!sockets.is_empty());
    for socket in sockets {
        assert_eq!(socket::congestion(&socket).unwrap(), "reno");
        assert_eq!(socket::int_option(&socket, SockOpt::NoDelay).unwrap(), 1);
    }
}

#[test]
fn a_log_line_tells_the_peer_the_request_and_the_outcome() {
    for log in ["sync", "ring"] {
        let mut dials = one_worker();
        dials.set("log", log).unwrap();
        let (_, _, text) = converse(dials, &format!("line-{log}"));
        let lines: Vec<&str> = text.lines().collect();
        let first = lines[0];
        assert!(first.starts_with("127.0.0.1 - - ["), "{first}");
        assert!(first.ends_with(" +0000] \"GET /json HTTP/1.1\" 200 27"), "{first}");
        assert!(lines[5].ends_with("\"HEAD /json HTTP/1.1\" 200 0"), "{}", lines[5]);
        assert!(lines[6].ends_with("\"GET /nowhere HTTP/1.1\" 404 9"), "{}", lines[6]);
    }
}

#[test]
fn a_busy_address_is_named_whatever_the_sharing() {
    for word in ["off", "hash"] {
        let mut dials = one_worker();
        dials.set("reuseport", word).unwrap();
        let running = serve(dials.clone(), patient());
        let busy = addr(&running).to_string();
        let second = dyno_engine::Server::new().listen(&busy).dials(dials).start();
        let error = second.err().expect("the port is busy").to_string();
        assert_eq!(error, format!("cannot listen on {busy}"));
    }
}

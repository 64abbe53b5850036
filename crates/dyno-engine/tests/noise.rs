//! Chance on real sockets: mutated, pipelined requests are answered the same however they were cut and whatever the dials, and
//! the server lives on.
//!
//! The parser's own tests mutate millions of heads; here few go all the way, through reading, framing, routing, the outbox
//! and closing. What is right is told by the same stream sent in one piece to a server of one setting.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, addr, one_worker, patient, serve, wait_for};
use dyno_engine::{Dials, Limits, Log, Running};
use dyno_measure::Prng;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;

const REQUESTS: &[&[u8]] = &[
    b"GET /json HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /plaintext?q=%20 HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\n\r\n",
    b"HEAD /json HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nGET / HTTP/1",
    b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n",
    b"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
    b"GET /hello/w%C3%B6rld HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    b"DELETE /nowhere HTTP/1.1\r\nHost: a\r\n\r\n",
];
const PIECES: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b":",
    b"\0",
    b"%",
    b"%zz",
    b"0",
    b"f",
    b";",
    b"\x80",
    b"Host: b\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"Expect: 100-continue\r\n",
    b"ffffffffffffffff",
    b"\r\n\r\n",
    b"HTTP/1.0",
    b"X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
];
/// A few seconds where nothing is optimised.
const STREAMS: usize = 1_500;

/// Limits that mutations reach.
fn small() -> Limits {
    Limits { head_bytes_max: 160, line_bytes_max: 60, headers_max: 6, body_bytes_max: 40, ..patient() }
}

/// One to five requests, up to three of them mutated.
fn stream(chance: &mut Prng) -> Vec<u8> {
    let mut pick = |limit: usize| chance.below(limit as u64) as usize;
    let mut bytes = Vec::new();
    for _ in 0..=pick(5) {
        bytes.extend_from_slice(REQUESTS[pick(REQUESTS.len())]);
    }
    for _ in 0..pick(4) {
        let at = pick(bytes.len() + 1);
        let end = (at + pick(6)).min(bytes.len());
        match pick(4) {
            0 => drop(bytes.splice(at..at, PIECES[pick(PIECES.len())].iter().copied())),
            1 => drop(bytes.drain(at..end)),
            2 if at < bytes.len() => bytes[at] = pick(256) as u8,
            _ => drop(bytes.splice(at..end, PIECES[pick(PIECES.len())].iter().copied())),
        }
    }
    bytes
}

/// Everything that a server says to these pieces until it closes. What it does not want to read any more it need not.
fn answers(running: &Running, pieces: &[&[u8]]) -> String {
    let mut client = Client::connect(addr(running));
    for (number, piece) in pieces.iter().enumerate().filter(|(_, piece)| !piece.is_empty()) {
        let reads = running.counts().reads;
        if client.stream.write_all(piece).is_err() {
            break;
        }
        if number + 1 < pieces.len() {
            wait_for("a piece to be read", || running.counts().reads > reads || client.poll());
        }
    }
    let _ = client.stream.shutdown(Shutdown::Write);
    let mut said = client.taken();
    let mut bytes = [0; 4_096];
    loop {
        match client.stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => said.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("the connection hangs: {error}"),
        }
    }
    // Who has sent the whole body already is not told to go on.
    common::without_dates(&said).replace("HTTP/1.1 100 Continue\r\n\r\n", "")
}

#[test]
fn mutated_streams_get_the_same_answers_however_they_are_cut_and_the_dials_stand() {
    for (seed, limits) in [(0x0e17_0001, patient()), (0x0e17_0002, small())] {
        println!("seed {seed:#x}");
        let servers =
            [serve(one_worker(), limits.clone()), serve(Dials { log: Log::Off, ..Dials::naive() }, limits)];
        let mut chance = Prng::new(seed);
        for _ in 0..STREAMS / 2 {
            let bytes = stream(&mut chance);
            let cut = chance.below(bytes.len() as u64 + 1) as usize;
            let whole = answers(&servers[0], &[&bytes]);
            for (name, server) in ["climbed", "naive"].into_iter().zip(&servers) {
                let parts = answers(server, &[&bytes[..cut], &bytes[cut..]]);
                assert_eq!(parts, whole, "{name}, {cut} of {}", bytes.escape_ascii());
            }
        }
        for server in &servers {
            let reply = Client::connect(addr(server)).ask("GET /json HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(reply.status, 200, "it serves on");
            let counts = server.counts();
            let refused = counts.rejects as f64 / counts.requests as f64;
            println!("{} requests, {refused:.2} refused", counts.requests);
            assert!((0.05..0.6).contains(&refused), "{refused}: the streams are too tame, or too wild");
        }
    }
}

/// Byte by byte, all at once on many connections that are left in the middle: nothing of one reaches another.
#[test]
fn connections_that_end_anywhere_leave_nothing_behind() {
    let running = serve(one_worker(), patient());
    let mut chance = Prng::new(0x0e17_0003);
    println!("seed 0xe170003");
    for _ in 0..STREAMS / 4 {
        let mut left: Vec<Client> = (0..4).map(|_| Client::connect(addr(&running))).collect();
        let streams: Vec<Vec<u8>> = (0..4).map(|_| stream(&mut chance)).collect();
        for at in 0..chance.below(120) as usize {
            for (client, bytes) in left.iter_mut().zip(&streams) {
                // It may be closed already: then nobody listens.
                let _ = bytes.get(at).map(|byte| client.stream.write_all(&[*byte]));
            }
        }
    }
    let reply = Client::connect(addr(&running)).ask("GET /json HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((reply.status, reply.text().as_str()), (200, r#"{"message":"Hello, World!"}"#));
    wait_for("all connections to be closed", || {
        let counts = running.counts();
        counts.accepts == counts.closes && counts.panics == 0
    });
}

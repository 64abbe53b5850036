//! Every row of the table over a socket, to a server of threads: whole, and in writes of one byte.
//!
//! Where writes end up in segments is the kernel's business; `core.rs` has every cut. Here it is known that the same holds
//! with what stands around the core. The fault that turns it red is that of the core's runner: a server that reads on after
//! a refusal executes `/next`.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod table;

use common::{addr, one_worker, patient, server};
use dyno_engine::{Limits, Method, Router, Running};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use table::{BODY_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX, LINE_BYTES_MAX, Row, Want, rows};

const NEXT: &str = "GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

type Calls = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

fn start(calls: &Calls) -> Running {
    let mut router = Router::new();
    let methods = [Method::Get, Method::Post, Method::Put, Method::Delete, Method::Patch, Method::Options];
    for (method, pattern) in methods.iter().flat_map(|method| [(*method, "/"), (*method, "/{*rest}")]) {
        let calls = Arc::clone(calls);
        let record = move |request: &dyno_engine::Request<'_>, reply: dyno_engine::Reply<'_>| {
            calls.lock().unwrap().push((request.path().to_owned(), request.body().to_vec()));
            reply.text("done")
        };
        router.route(method, pattern, record).unwrap();
    }
    let limits = Limits {
        line_bytes_max: LINE_BYTES_MAX,
        head_bytes_max: HEAD_BYTES_MAX,
        headers_max: HEADERS_MAX,
        body_bytes_max: BODY_BYTES_MAX,
        ..patient()
    };
    server(one_worker(), limits).router(router).start().unwrap()
}

/// Sends everything, `piece_bytes` at a time, and takes everything.
fn ask(running: &Running, bytes: &[u8], piece_bytes: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(addr(running)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(common::DEADLINE)).unwrap();
    for piece in bytes.chunks(piece_bytes) {
        // A server that has refused need not take the rest.
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
    let mut output = Vec::new();
    stream.read_to_end(&mut output).unwrap_or_else(|error| panic!("{error} after {}", bytes.escape_ascii()));
    output
}

/// The statuses of the final replies, which this server's handlers keep short and without a line that looks like one.
fn statuses(output: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(output);
    let starts = text.match_indices("HTTP/1.1 ").map(|(at, start)| &text[at + start.len()..][..3]);
    starts.map(|status| status.parse().unwrap()).filter(|status| *status >= 200).collect()
}

fn expected(row: &Row) -> (Vec<u16>, Vec<Vec<u8>>) {
    let next = (200, Vec::new());
    let (replies, bodies): (Vec<u16>, Vec<Vec<u8>>) = match row.want {
        Want::Refused(status) | Want::DeclinedLast(status) => (vec![status], vec![]),
        Want::Declined(status) => (vec![status, next.0], vec![next.1]),
        Want::Served(body) => (vec![200, next.0], vec![body.into(), next.1]),
        Want::ServedLast(body) => (vec![200], vec![body.into()]),
        Want::Awaited => (vec![], vec![]),
    };
    (replies, bodies)
}

#[test]
fn every_row_has_its_outcome_over_a_socket() {
    let calls = Calls::default();
    let running = start(&calls);
    let mut wrong = Vec::new();
    for row in rows() {
        let next = if row.want == Want::Awaited { "" } else { NEXT };
        let bytes = [&row.bytes, next.as_bytes()].concat();
        for piece_bytes in [bytes.len(), 1] {
            let output = ask(&running, &bytes, piece_bytes);
            let called: Vec<Vec<u8>> = calls.lock().unwrap().drain(..).map(|(_, body)| body).collect();
            let seen = (statuses(&output), called);
            if seen != expected(&row) {
                wrong.push(format!("{}: {seen:?} of {}", row.class, bytes.escape_ascii()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

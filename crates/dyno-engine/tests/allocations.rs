//! No allocation per request: the whole test binary counts its allocations, and the client makes none.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, addr, one_worker, patient, serve, wait_for};
use dyno_engine::{AddressLimits, Limits};
use dyno_sys::alloc::CountingAlloc;
use std::io::{Read, Write};
use std::num::NonZeroU32;

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc;

const INPUT: &[u8] = b"GET /json HTTP/1.1\r\nHost: a\r\n\r\n\
    GET /plaintext HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nUser-Agent: none\r\n\r\n\
    POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
    POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n\
    HEAD /json HTTP/1.1\r\nHost: a\r\n\r\n\
    GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n";
const REQUESTS: u64 = 6;

/// Asks the same again and again without allocating. Every answer has the length of the first.
fn ask(client: &mut Client, answer_bytes: usize, rounds: u32) {
    let mut buffer = [0; 4096];
    for _ in 0..rounds {
        client.stream.write_all(INPUT).unwrap();
        client.stream.read_exact(&mut buffer[..answer_bytes]).unwrap();
    }
}

/// Limits of one address that are asked for each request and never reached.
fn limited() -> Limits {
    let many = NonZeroU32::new(1_000_000);
    let address =
        AddressLimits { connections_max: many, requests_per_second: many, ..AddressLimits::default() };
    Limits { address, ..patient() }
}

// One test only: others would allocate beside it.
#[test]
fn a_warm_server_allocates_nothing_and_the_naive_one_for_every_request() {
    let mut drain = one_worker();
    drain.set("read", "drain").unwrap();
    drain.set("trigger", "edge").unwrap();
    let naive = dyno_engine::Dials { log: dyno_engine::Log::Off, ..dyno_engine::Dials::naive() };
    for (dials, limits) in
        [(one_worker(), patient()), (one_worker(), limited()), (drain, patient()), (naive, patient())]
    {
        let is_naive = dials.body == dyno_engine::Body::Generic;
        let running = serve(dials, limits);
        let mut client = Client::connect(addr(&running));
        client.send(INPUT);
        let mut answer_bytes = 0;
        for number in 0..REQUESTS {
            let reply = if number == 4 { client.head_of_reply() } else { client.reply() };
            answer_bytes += reply.head.len() + reply.body.len();
        }
        ask(&mut client, answer_bytes, 100);
        wait_for("the counters to be published", || running.counts().requests == 101 * REQUESTS);
        let before = running.counts();
        ask(&mut client, answer_bytes, 500);
        wait_for("the counters to be published", || running.counts().requests == 601 * REQUESTS);
        let after = running.counts();
        let allocations = after.allocations - before.allocations;
        if is_naive {
            assert!(allocations > 500 * REQUESTS, "{allocations} allocations");
        } else {
            assert_eq!(allocations, 0);
            let sends = after.sends - before.sends;
            assert!(sends == 500, "{sends} sends for 500 batches of {REQUESTS}");
        }
        drop(client);
    }
}

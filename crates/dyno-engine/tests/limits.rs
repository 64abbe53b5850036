//! Limits: time that runs out, readers that do not read, more connections than there is room for.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, DEADLINE, addr, one_worker, patient, serve, server, wait_for};
use dyno_engine::{EngineError, Limits, Method, Router, Running};
use std::time::{Duration, Instant};

const JSON: &str = "GET /json HTTP/1.1\r\nHost: a\r\n\r\n";

/// Long enough that a busy machine does not reach it by accident in the middle of a test's step.
const SHORT_NS: u64 = 1_000_000_000;

/// Sends one byte at a time, again and again, until the server answers or closes.
fn trickle(client: &mut Client, bytes: &mut dyn Iterator<Item = u8>) {
    let start = Instant::now();
    for byte in bytes {
        assert!(start.elapsed() < DEADLINE, "a trickle is never cut off");
        client.send([byte]);
        if client.poll() || client.has_bytes() {
            return;
        }
    }
}

#[test]
fn limits_that_no_memory_holds_are_refused() {
    for limits in [
        Limits { headers_max: usize::MAX, ..patient() },
        Limits { head_bytes_max: usize::MAX, ..patient() },
        Limits { buffer_bytes_max: 0, ..patient() },
    ] {
        let refused = server(one_worker(), limits).start();
        assert!(matches!(refused, Err(EngineError::Limit { .. })), "{:?}", refused.err());
    }
}

#[test]
fn a_head_that_trickles_in_is_cut_off_with_408() {
    let running = serve(one_worker(), Limits { head_ns: SHORT_NS, ..patient() });
    let mut client = Client::connect(addr(&running));
    assert_eq!(client.ask(JSON).status, 200);
    client.send("GET /");
    trickle(&mut client, &mut std::iter::repeat(b'x'));
    let reply = client.reply();
    assert_eq!((reply.status, reply.header("connection")), (408, Some("close")));
    client.assert_closed();
}

#[test]
fn a_body_that_makes_no_progress_is_cut_off_with_408() {
    let running = serve(one_worker(), Limits { body_ns: SHORT_NS, ..patient() });
    for head in ["Content-Length: 900", "Transfer-Encoding: chunked"] {
        let mut client = Client::connect(addr(&running));
        client.send(format!("POST /echo HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n"));
        if head.starts_with('T') {
            client.send("384\r\n");
        }
        // A byte now and then is no progress.
        trickle(&mut client, &mut std::iter::repeat(b'x'));
        assert_eq!(client.reply().status, 408, "{head}");
        client.assert_closed();
    }
}

#[test]
fn a_slow_body_that_makes_progress_is_waited_for() {
    let running = serve(one_worker(), Limits { body_ns: SHORT_NS, ..patient() });
    let mut client = Client::connect(addr(&running));
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    let (start, mut sent) = (Instant::now(), 0);
    while sent < 100_000 {
        std::thread::sleep(Duration::from_millis(30));
        client.send([b'x'; 2_000]);
        sent += 2_000;
        assert!(!client.poll() && (!client.has_bytes() || sent == 100_000));
    }
    assert!(start.elapsed() > Duration::from_nanos(SHORT_NS), "the test is slow enough to tell");
    assert_eq!(client.reply().body.len(), 100_000);
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let running = serve(one_worker(), Limits { idle_ns: SHORT_NS, ..patient() });
    let mut fresh = Client::connect(addr(&running));
    fresh.assert_closed();
    let mut used = Client::connect(addr(&running));
    assert_eq!(used.ask(JSON).status, 200);
    used.assert_closed();
    wait_for("both to be counted", || running.counts().timeouts == 2);
}

#[test]
fn a_connection_in_use_is_not_idle() {
    let running = serve(one_worker(), Limits { idle_ns: SHORT_NS, ..patient() });
    let mut client = Client::connect(addr(&running));
    let start = Instant::now();
    while start.elapsed() < Duration::from_nanos(2 * SHORT_NS) {
        assert_eq!(client.ask(JSON).status, 200);
    }
}

#[test]
fn a_closed_connection_does_not_linger_for_ever() {
    let running = serve(one_worker(), Limits { linger_ns: SHORT_NS, ..patient() });
    let mut client = Client::connect(addr(&running));
    assert_eq!(client.ask("nonsense\r\n\r\n").status, 400);
    client.assert_closed();
    // The client keeps its own half open.
    wait_for("the server to let go", || running.counts().closes == 1);
}

/// A server with a reply of 64 KiB, of which only so many fit into the kernel's buffers.
fn serve_large(limits: Limits, dial: (&str, &str)) -> Running {
    let body = vec![b'x'; 64 << 10];
    let mut router = Router::new();
    router.route(Method::Get, "/large", move |_, reply| reply.bytes("a/b", &body)).unwrap();
    let mut dials = one_worker();
    dials.set(dial.0, dial.1).unwrap();
    server(dials, limits).router(router).start().unwrap()
}

const LARGE: &str = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n";

/// Waits until the server has stopped answering a client that does not read.
fn wait_until_blocked(running: &Running) -> u64 {
    let (mut last, mut unchanged_since) = (0, Instant::now());
    wait_for("the server to stop answering", || {
        let requests = running.counts().requests;
        if requests != last {
            (last, unchanged_since) = (requests, Instant::now());
        }
        last > 0 && unchanged_since.elapsed() > Duration::from_millis(100)
    });
    last
}

#[test]
fn a_client_that_does_not_read_is_not_read_from() {
    const REQUESTS: usize = 2_000;
    let settings = [
        ("trigger", "level"),
        ("trigger", "edge"),
        ("replies", "single"),
        ("send", "split"),
        ("read", "drain"),
    ];
    for dial in settings {
        let running = serve_large(patient(), dial);
        let mut client = Client::connect(addr(&running));
        client.send(LARGE.repeat(REQUESTS));
        let answered = wait_until_blocked(&running);
        assert!(answered < REQUESTS as u64 / 2, "{answered} replies were made for a client that reads none");
        for number in 0..REQUESTS {
            let reply = client.reply();
            assert!(reply.body.len() == 64 << 10, "{dial:?}: reply {number}");
        }
        wait_for("every request to be counted", || running.counts().requests == REQUESTS as u64);
        client.send("GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!(client.reply().header("connection"), Some("close"));
        client.assert_closed();
    }
}

#[test]
fn a_reader_that_makes_no_progress_is_cut_off() {
    let running = serve_large(Limits { write_ns: SHORT_NS, ..patient() }, ("trigger", "level"));
    let mut client = Client::connect(addr(&running));
    client.send(LARGE.repeat(2_000));
    wait_for("the connection to be cut", || running.counts().closes == 1);
    assert_eq!(running.counts().timeouts, 1);
    assert!(
        std::io::copy(&mut client.stream, &mut std::io::sink()).is_err(),
        "by a reset: what is queued is gone"
    );
}

#[test]
fn a_full_server_waits_without_spinning_and_goes_on_when_there_is_room() {
    let running = serve(one_worker(), Limits { connections_max: 2, ..patient() });
    let mut held: Vec<Client> = (0..2).map(|_| Client::connect(addr(&running))).collect();
    held.iter_mut().for_each(|client| assert_eq!(client.ask(JSON).status, 200));
    let mut waiting: Vec<Client> = (0..3).map(|_| Client::connect(addr(&running))).collect();
    for client in &mut waiting {
        client.send(JSON);
    }
    wait_for("the server to be full", || running.counts().accept_pauses == 1);
    let (start, before) = (Instant::now(), running.counts());
    for _ in 0..50 {
        assert_eq!(held[0].ask(JSON).status, 200, "held connections keep full service");
    }
    let after = running.counts();
    // A turn for each request, and the slow look at the door ten times a second.
    let looks = 2 + start.elapsed().as_millis() as u64 / 100;
    assert!(after.turns - before.turns <= 50 + looks, "{} turns for 50 requests", after.turns - before.turns);
    assert_eq!(after.accepts, 2);
    drop(held);
    for mut client in waiting {
        assert_eq!(client.reply().status, 200);
        drop(client);
    }
}

//! No allocation per request: the whole test binary counts its allocations, and the client makes none.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, addr, one_worker, patient, serve, wait_for};
use dyno_engine::{AddressLimits, Limits, Running};
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

/// Waits until the caller is the only thread of this process that runs. A thread that was started and has not run yet, as
/// one that gives way may be for long on a busy machine, allocates what it waits with when it does: no request's price.
fn until_others_wait() {
    let this = std::process::id().cast_signed();
    let runs = |tid: &i32| dyno_sys::proc::state(*tid).is_ok_and(|state| state != 'S');
    let running = || dyno_sys::proc::tasks(this).iter().filter(|tid| runs(tid)).count();
    wait_for("every other thread to wait", || running() == 1);
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
        until_others_wait();
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
    content_allocates_nothing();
    hosts_allocate_nothing();
    logs_allocate_nothing();
}

const LOGGED: &[u8] =
    b"GET /json?\"a HTTP/1.1\r\nHost: a\r\nReferer: http://x/\r\nUser-Agent: \xff\xc3\xbc\r\n\r\n\
    GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n\
    POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
    GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n";
const LOGGED_REQUESTS: u64 = 4;

/// Whatever a line says and wherever it goes. The log's writer, which is a thread of this process, allocates nothing
/// either. Replies that wait for their lines are kept in memory of their own until then: that is another mode's price.
fn logs_allocate_nothing() {
    for (log, format) in [("ring", "common"), ("ring", "combined"), ("ring", "json"), ("sync", "json")] {
        let mut dials = one_worker();
        dials.set("log", log).unwrap();
        let server =
            common::server(dials, patient()).log_file("/dev/null").log_format(format.parse().unwrap());
        let running = server.start().unwrap();
        let mut client = Client::connect(addr(&running));
        client.send(LOGGED);
        let replies = (0..LOGGED_REQUESTS).map(|_| client.reply());
        let answer_bytes = replies.map(|reply| reply.head.len() + reply.body.len()).sum();
        let mut buffer = vec![0; answer_bytes];
        let mut ask = |client: &mut Client, rounds| {
            for _ in 0..rounds {
                client.stream.write_all(LOGGED).unwrap();
                client.stream.read_exact(&mut buffer).unwrap();
            }
        };
        until_others_wait();
        ask(&mut client, 200);
        wait_for("the counters", || running.counts().requests == 201 * LOGGED_REQUESTS);
        let before = running.counts();
        ask(&mut client, 500);
        wait_for("the counters", || running.counts().requests == 701 * LOGGED_REQUESTS);
        assert_eq!(running.counts().allocations - before.allocations, 0, "{log} {format}");
    }
}

const CONTENT: &[u8] = b"GET /small.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\r\n\
    GET /middle.bin?maxage=60 HTTP/1.1\r\nHost: a\r\n\r\n\
    GET /%6diddle.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=5-9999\r\nIf-Range: \"x\"\r\n\r\n\
    GET /middle.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=5-9999\r\n\r\n\
    GET /middle.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=0-9,100-5000,-5\r\n\r\n\
    GET /middle.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=99999-\r\n\r\n\
    GET /small.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n\
    GET /small.txt HTTP/1.1\r\nHost: a\r\nIf-Match: \"x\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n\
    GET /docs?a=b HTTP/1.1\r\nHost: a\r\n\r\n\
    GET /docs/ HTTP/1.1\r\nHost: a\r\n\r\n\
    GET /none HTTP/1.1\r\nHost: a\r\n\r\n\
    GET /../none HTTP/1.1\r\nHost: a\r\n\r\n\
    HEAD /large.bin HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n";
const CONTENT_REQUESTS: u64 = 13;

/// Whatever is asked of a folder, once its table stands.
fn content_allocates_nothing() {
    let folder = std::env::temp_dir().join(format!("dyno-allocations-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("docs")).unwrap();
    for (name, bytes) in
        [("small.txt", 3_000), ("middle.bin", 15_000), ("large.bin", 300_000), ("docs/index.html", 100)]
    {
        std::fs::write(folder.join(name), vec![b'x'; bytes]).unwrap();
    }
    let content = dyno_engine::Content::new(&folder).watch(dyno_engine::Watch::No);
    let server = dyno_engine::Server::new().listen("127.0.0.1:0").dials(one_worker()).limits(patient());
    let running = server.content("/", content).start().unwrap();
    answers_without_allocating(&running, CONTENT, CONTENT_REQUESTS);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Asks for all of `input`, whose last request is a HEAD, again and again.
fn answers_without_allocating(running: &Running, input: &[u8], requests: u64) {
    let mut client = Client::connect(addr(running));
    client.send(input);
    let mut answer_bytes = 0;
    for number in 1..=requests {
        let reply = if number == requests { client.head_of_reply() } else { client.reply() };
        answer_bytes += reply.head.len() + reply.body.len();
    }
    let mut buffer = vec![0; answer_bytes];
    let mut ask = |client: &mut Client, rounds| {
        for _ in 0..rounds {
            client.stream.write_all(input).unwrap();
            client.stream.read_exact(&mut buffer).unwrap();
        }
    };
    until_others_wait();
    ask(&mut client, 100);
    wait_for("the counters to be published", || running.counts().requests == 101 * requests);
    let before = running.counts();
    ask(&mut client, 500);
    wait_for("the counters to be published", || running.counts().requests == 601 * requests);
    assert_eq!(running.counts().allocations - before.allocations, 0);
}

const HOSTS: &[u8] = b"GET /small.txt HTTP/1.1\r\nHost: one.example\r\n\r\n\
    GET /small.txt HTTP/1.1\r\nHost: A.B.TWO.example:80\r\n\r\n\
    GET /old/x%20y?z HTTP/1.1\r\nHost: one.example\r\n\r\n\
    GET /none HTTP/1.1\r\nHost: one.example\r\n\r\n\
    DELETE /small.txt HTTP/1.1\r\nHost: one.example\r\n\r\n\
    GET /small.txt?maxage=5 HTTP/1.1\r\nHost: nobody.example\r\nRange: bytes=1-5\r\n\r\n\
    HEAD /none HTTP/1.1\r\nHost: one.example\r\n\r\n";
const HOSTS_REQUESTS: u64 = 7;

/// Hosts with all that can be said of them.
fn hosts_allocate_nothing() {
    use dyno_engine::{Content, Host, Redirect, Security, Server, Watch};
    let folder = std::env::temp_dir().join(format!("dyno-allocations-hosts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, bytes) in [("small.txt", 3_000), ("404.html", 9_000)] {
        std::fs::write(folder.join(name), vec![b'x'; bytes]).unwrap();
    }
    let host = |name| {
        let content = Content::new(&folder).watch(Watch::No);
        let host = Host::new([name]).unwrap().content("/", content).unwrap().security(Security::Preset);
        let host = host.redirect(Redirect::new("/old/*", "/new/*", 301).unwrap());
        host.header("X-Own", name).unwrap().error_page(404, "404.html").unwrap()
    };
    let server = Server::new().listen("127.0.0.1:0").dials(one_worker()).limits(patient());
    let running = server.host(host("one.example")).host(host("*.two.example")).start().unwrap();
    answers_without_allocating(&running, HOSTS, HOSTS_REQUESTS);
    std::fs::remove_dir_all(folder).unwrap();
}

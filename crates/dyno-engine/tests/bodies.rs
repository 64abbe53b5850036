//! Replies and requests of every kind over real sockets: shared, files, streams, later, uploads; and what they may hold.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, DEADLINE, addr, one_worker, patient, server, wait_for};
use dyno_engine::{
    Answer, BodyError, Dials, FilePart, Filled, Flow, Limits, Method, Reply, Response, Router, Running,
    Shared, Upload, Waker,
};
use std::io::{Read, Write};
use std::num::NonZeroU32;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough that a busy machine does not reach it by accident in the middle of a test's step.
const SHORT_NS: u64 = 300_000_000;

fn start(limits: Limits, routes: impl FnOnce(&mut Router)) -> Running {
    let mut router = Router::new();
    routes(&mut router);
    server(one_worker(), limits).router(router).start().unwrap()
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// A text that shows where a byte of it is missing.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

fn file_of(bytes: &[u8], name: &str) -> FilePart {
    let path = std::env::temp_dir().join(format!("dyno-bodies-{}-{name}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let part = FilePart::whole(std::fs::File::open(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    part
}

#[test]
fn shared_bodies_and_files_of_any_size_arrive_whole_and_in_order() {
    let bytes = pattern(3_000_000);
    let (shared, file) = (Shared::from(bytes.clone()), file_of(&bytes, "whole"));
    let running = start(patient(), |router| {
        router.route(Method::Get, "/shared", move |_, reply| reply.shared("a/b", shared.clone())).unwrap();
        let whole = file.clone();
        router.route(Method::Get, "/file", move |_, reply| reply.file("a/b", whole.clone())).unwrap();
        let part = file.part(1_000..2_000).unwrap();
        router.route(Method::Get, "/part", move |_, reply| reply.file("a/b", part.clone())).unwrap();
        router.route(Method::Get, "/fixed", |_, reply| reply.fixed("a/b", b"fixed")).unwrap();
    });
    let mut client = Client::connect(addr(&running));
    let all = ["/fixed", "/file", "/part", "/shared", "/fixed", "/file"];
    client.send(all.map(get).concat());
    for path in all {
        let expected = match path {
            "/fixed" => &b"fixed"[..],
            "/part" => &bytes[1_000..2_000],
            _ => &bytes[..],
        };
        assert!(client.reply().body == expected, "{path}");
    }
    // A GET's handler answers HEAD: the same head, and no byte of the file.
    client.send("HEAD /file HTTP/1.1\r\nHost: a\r\n\r\n".to_owned() + &get("/fixed"));
    assert_eq!(client.head_of_reply().header("content-length"), Some("3000000"));
    assert_eq!(client.reply().body, b"fixed");
}

#[test]
fn a_file_that_has_shrunk_closes_the_connection_and_nothing_is_padded() {
    let path = std::env::temp_dir().join(format!("dyno-bodies-{}-shrinks", std::process::id()));
    std::fs::write(&path, pattern(100_000)).unwrap();
    let part = FilePart::whole(std::fs::File::open(&path).unwrap()).unwrap();
    let running = start(patient(), |router| {
        router.route(Method::Get, "/file", move |_, reply| reply.file("a/b", part.clone())).unwrap();
    });
    std::fs::write(&path, b"short").unwrap();
    let mut client = Client::connect(addr(&running));
    client.send(get("/file"));
    let head = client.head_of_reply();
    assert_eq!(head.header("content-length"), Some("100000"));
    assert_eq!(
        client.rest(),
        b"",
        "what is there now is another version: none of it is sent, and nothing is padded"
    );
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_stream_is_made_as_it_is_taken_and_chunked_for_whom_it_can_be() {
    let running = start(patient(), |router| {
        let pieces = |_: Waker| {
            let mut left = 100;
            move |out: &mut Vec<u8>| {
                left -= 1;
                out.extend_from_slice(&[b'x'; 10_000]);
                if left == 0 { Filled::End } else { Filled::More }
            }
        };
        router.route(Method::Get, "/stream", move |_, reply| reply.stream("a/b", pieces)).unwrap();
        router
            .route(Method::Get, "/sized", move |_, reply| reply.stream_sized("a/b", 1_000_000, pieces))
            .unwrap();
        router
            .route(Method::Get, "/wrong", move |_, reply| reply.stream_sized("a/b", 999_999, pieces))
            .unwrap();
    });
    let mut client = Client::connect(addr(&running));
    assert_eq!(client.ask(get("/sized")).body.len(), 1_000_000);
    client.send(get("/stream") + "GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let head = client.head_of_reply();
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    let rest = client.rest();
    let text = String::from_utf8_lossy(&rest[rest.len() - 400..]).into_owned();
    let (stream, next) = rest.split_at(rest.len() - text.len() + text.find("HTTP/1.1 404").unwrap());
    assert_eq!(stream.iter().filter(|&&byte| byte == b'x').count(), 1_000_000);
    assert!(!next.is_empty());
    assert!(text.contains("\r\n0\r\n\r\nHTTP/1.1 404 "), "the last chunk, then the next reply: {text}");

    let mut old = Client::connect(addr(&running));
    old.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let head = old.head_of_reply();
    assert_eq!((head.header("connection"), head.header("transfer-encoding")), (Some("close"), None));
    assert_eq!(old.rest().len(), 1_000_000);

    // One byte more than was promised is not sent: what was promised cannot become whole.
    let mut wrong = Client::connect(addr(&running));
    wrong.send(get("/wrong"));
    wrong.head_of_reply();
    assert!(wrong.rest().len() < 999_999);
}

#[test]
fn a_source_that_waits_is_asked_again_when_it_is_woken() {
    let waker: Arc<Mutex<Option<Waker>>> = Arc::default();
    let kept = Arc::clone(&waker);
    let running = start(patient(), |router| {
        let make = move |_: &dyno_engine::Request<'_>, reply: Reply<'_>| {
            reply.stream("text/event-stream", |waker| {
                *kept.lock().unwrap() = Some(waker);
                let mut asked = 0;
                move |out: &mut Vec<u8>| {
                    asked += 1;
                    out.extend_from_slice(format!("data: {asked}\n\n").as_bytes());
                    if asked == 3 { Filled::End } else { Filled::Wait }
                }
            })
        };
        router.route(Method::Get, "/events", make).unwrap();
    });
    let mut client = Client::connect(addr(&running));
    client.send(get("/events"));
    client.head_of_reply();
    for number in 1..=3 {
        let event = format!("data: {number}\n\n");
        wait_for("an event", || {
            client.poll();
            String::from_utf8_lossy(client.held()).contains(&event)
        });
        let text = String::from_utf8_lossy(client.held()).into_owned();
        assert!(!text.contains(&format!("data: {}", number + 1)), "not before it was woken: {text}");
        waker.lock().unwrap().as_ref().unwrap().wake();
    }
}

#[test]
fn answers_that_come_later_come_in_the_order_of_their_requests() {
    let (jobs, queue) = channel::<(String, dyno_engine::Responder)>();
    let running = start(patient(), move |router| {
        let later = move |request: &dyno_engine::Request<'_>, reply: Reply<'_>| {
            let name = request.param("name").unwrap().to_owned();
            reply.later(|responder| jobs.send((name, responder)).unwrap())
        };
        router.route(Method::Get, "/later/{name}", later).unwrap();
        router.route(Method::Get, "/now", |_, reply| reply.text("now")).unwrap();
    });
    let pool = thread::spawn(move || {
        for (name, responder) in queue {
            match name.as_str() {
                "forgotten" => drop(responder),
                _ => responder.answer(Answer::text(name).status(201).header("X-Made", "there")),
            }
        }
    });
    let mut client = Client::connect(addr(&running));
    let log = ["/later/one", "/now", "/later/forgotten", "/later/two", "/now"];
    client.send(log.map(get).concat());
    let statuses: Vec<(u16, String)> =
        log.iter().map(|_| client.reply()).map(|r| (r.status, r.text())).collect();
    let expected =
        [(201, "one"), (200, "now"), (500, "the request was not answered\n"), (201, "two"), (200, "now")];
    assert_eq!(statuses, expected.map(|(status, text)| (status, text.to_owned())));
    // While one connection waits the worker serves others.
    drop((client, running));
    pool.join().unwrap();
}

#[test]
fn an_answer_that_takes_too_long_is_a_504_and_whoever_makes_it_learns_so() {
    let (jobs, queue) = channel();
    let limits = Limits { later_ns: SHORT_NS, ..patient() };
    let running = start(limits, move |router| {
        let later = move |_: &dyno_engine::Request<'_>, reply: Reply<'_>| {
            reply.later(|responder| jobs.send(responder).unwrap())
        };
        router.route(Method::Get, "/later", later).unwrap();
        router.route(Method::Get, "/now", |_, reply| reply.text("now")).unwrap();
    });
    let mut client = Client::connect(addr(&running));
    client.send(get("/later") + &get("/now"));
    assert_eq!(client.reply().status, 504);
    assert_eq!(client.reply().text(), "now");
    let late = queue.recv().unwrap();
    assert!(late.is_gone());
    late.answer(Answer::text("too late"));
    assert_eq!(client.ask(get("/now")).text(), "now", "an answer that nobody awaits reaches nobody");
}

/// Planted fault: they are framed as was right when their heads came. Then their clients send another request, which is reset.
#[test]
fn an_answer_and_an_upload_that_end_in_a_drain_say_that_they_are_the_last() {
    let (jobs, queue) = channel();
    let running = start(patient(), move |router| {
        let later = move |_: &dyno_engine::Request<'_>, reply: Reply<'_>| {
            reply.later(|responder| jobs.send(responder).unwrap())
        };
        router.route(Method::Get, "/later", later).unwrap();
        router.upload(Method::Put, "/up", |_, _| Ok(Box::new(Silent) as Box<dyn Upload>)).unwrap();
    });
    let to = addr(&running);
    let (mut asks, mut sends) = (Client::connect(to), Client::connect(to));
    asks.send(get("/later"));
    let responder = queue.recv().unwrap();
    sends.send("PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
    wait_for("both connections", || running.counts().accepts == 2);
    let stopped = thread::spawn(move || running.stop());
    wait_for("the drain", || std::net::TcpStream::connect(to).is_err());
    responder.answer(Answer::text("late"));
    let replies = [asks.reply(), sends.send("ha").reply()];
    for (mut client, reply) in [asks, sends].into_iter().zip(replies) {
        assert_eq!((reply.status, reply.header("connection")), (200, Some("close")), "{}", reply.text());
        client.assert_closed();
    }
    assert_eq!(stopped.join().unwrap(), dyno_engine::Drained::Wholly);
}

/// An upload that answers 200 whatever it gets, and panics when it gets `!`.
struct Silent;

impl Upload for Silent {
    fn data(&mut self, bytes: &[u8]) -> Flow {
        assert_ne!(bytes, b"!", "it was asked to");
        if bytes == b"?" { Flow::Refuse(409) } else { Flow::More }
    }

    fn end(self: Box<Self>, reply: Reply<'_>) -> Response {
        reply.text("whole")
    }
}

/// Planted faults: a panic is counted only where an upload ends; whatever is refused counts as the parser's.
#[test]
fn each_refusal_is_counted_as_what_it_is() {
    let limits = Limits { body_ns: SHORT_NS, body_bytes_max: 10, ..patient() };
    let running = start(limits, |router| {
        router.upload(Method::Put, "/up", |_, _| Ok(Box::new(Silent) as Box<dyn Upload>)).unwrap();
        router.upload(Method::Put, "/panics", |_, _| panic!("it was asked to")).unwrap();
        router.route(Method::Post, "/", |_, reply| reply.text("here")).unwrap();
    });
    let put = |path: &str, body: &str| {
        let length = body.len();
        format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let post = |length: u64| format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n".to_owned();
    let (mut rejects, mut panics) = (0, 0);
    for (request, status, is_reject, is_panic) in [
        ("nonsense\r\n\r\n".to_owned(), 400, 1, 0),
        (chunked, 400, 1, 0),
        (post(11), 413, 1, 0),
        (post(10), 408, 0, 0),
        (put("/up", "?"), 409, 0, 0),
        (put("/up", "!"), 500, 0, 1),
        (put("/panics", "x"), 500, 0, 1),
        (put("/panics", ""), 500, 0, 1),
    ] {
        assert_eq!(Client::connect(addr(&running)).ask(&request).status, status, "{request}");
        (rejects, panics) = (rejects + is_reject, panics + is_panic);
        let told = || (running.counts().rejects, running.counts().panics);
        wait_for(&format!("{request} to be counted"), || told() == (rejects, panics));
    }
    wait_for("each to be counted", || running.counts().requests == 8);
}

/// Planted fault: their sum is not kept from running over.
#[test]
fn a_body_of_any_length_is_refused_where_any_is_taken() {
    let limits = Limits { body_bytes_max: usize::MAX, ..patient() };
    let running = start(limits, |router| {
        router.route(Method::Post, "/", |_, reply| reply.text("here")).unwrap();
    });
    let request = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", u64::MAX);
    assert_eq!(Client::connect(addr(&running)).ask(request).status, 503);
    wait_for("it to be counted", || running.counts().budget_refusals == 1);
}

/// Panics when it is dropped.
struct Falls;

impl Drop for Falls {
    fn drop(&mut self) {
        panic!("it was asked to");
    }
}

/// Planted fault: what is a handler's own is dropped where its connection ends, with nothing around it. Then there is no worker any
/// more.
#[test]
fn a_destructor_that_panics_costs_nobody_anything() {
    struct Bytes(Vec<u8>, Falls);
    impl AsRef<[u8]> for Bytes {
        fn as_ref(&self) -> &[u8] {
            let _with = &self.1;
            &self.0
        }
    }
    let running = start(patient(), |router| {
        let stream = |_: &dyno_engine::Request<'_>, reply: Reply<'_>| {
            let falls = Falls;
            reply.stream("a/b", move |_| {
                move |out: &mut Vec<u8>| {
                    let _with = &falls;
                    out.extend_from_slice(b"piece");
                    Filled::End
                }
            })
        };
        router.route(Method::Get, "/stream", stream).unwrap();
        let shared = |_: &dyno_engine::Request<'_>, reply: Reply<'_>| {
            reply.shared("a/b", Shared::new(Bytes(vec![b'x'; 100_000], Falls)))
        };
        router.route(Method::Get, "/shared", shared).unwrap();
    });
    for path in ["/stream", "/shared", "/stream"] {
        for method in ["GET", "HEAD"] {
            let fields = "Host: a\r\nConnection: close";
            let mut client = Client::connect(addr(&running));
            client.send(format!("{method} {path} HTTP/1.1\r\n{fields}\r\n\r\n"));
            assert_eq!(client.head_of_reply().status, 200, "{method} {path}");
            client.rest();
        }
    }
    assert_eq!(running.stop(), dyno_engine::Drained::Wholly);
}

#[test]
fn whoever_works_on_an_answer_learns_that_its_client_has_closed() {
    let (jobs, queue) = channel();
    let running = start(patient(), move |router| {
        let later = move |_: &dyno_engine::Request<'_>, reply: Reply<'_>| {
            reply.later(|responder| jobs.send(responder).unwrap())
        };
        router.route(Method::Get, "/later", later).unwrap();
    });
    let mut client = Client::connect(addr(&running));
    client.send(get("/later"));
    let responder = queue.recv().unwrap();
    assert!(!responder.is_gone());
    drop(client);
    wait_for("its client to be missed", || responder.is_gone());

    // Who has closed one half only still reads, and still gets its answers.
    let mut half = Client::connect(addr(&running));
    half.send(get("/later") + &get("/later")).shutdown_write();
    for _ in 0..2 {
        let responder = queue.recv().unwrap();
        wait_for("the half's end to be told", || responder.is_gone());
        responder.answer(Answer::text("all the same"));
        assert_eq!(half.reply().text(), "all the same");
    }
    half.assert_closed();
}

/// Says when it is dropped.
struct Held(Sender<()>);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn a_silent_stream_ends_soon_after_its_client_has_closed_and_not_before() {
    let (dropped, drops) = channel();
    let waker: Arc<Mutex<Option<Waker>>> = Arc::default();
    let kept = Arc::clone(&waker);
    let limits = Limits { linger_ns: SHORT_NS, idle_ns: SHORT_NS, ..patient() };
    let running = start(limits, |router| {
        let make = move |_: &dyno_engine::Request<'_>, reply: Reply<'_>| {
            let (held, kept) = (Held(dropped.clone()), Arc::clone(&kept));
            reply.stream("text/event-stream", move |waker| {
                *kept.lock().unwrap() = Some(waker);
                let mut events = ["data: 1\n\n", "data: 2\n\n"].into_iter();
                move |out: &mut Vec<u8>| {
                    let _is_held = &held;
                    out.extend_from_slice(events.next().unwrap_or_default().as_bytes());
                    Filled::Wait
                }
            })
        };
        router.route(Method::Get, "/events", make).unwrap();
    });
    let mut there = Client::connect(addr(&running));
    there.send(get("/events"));
    there.head_of_reply();
    let is_kept = drops.recv_timeout(Duration::from_nanos(3 * SHORT_NS));
    assert!(is_kept.is_err(), "a silent stream has a client that waits for it");
    waker.lock().unwrap().as_ref().unwrap().wake();
    wait_for("what comes after a long silence", || {
        there.poll();
        String::from_utf8_lossy(there.held()).contains("data: 2")
    });
    drop(there);
    drops.recv_timeout(DEADLINE).expect("the stream of a client that has closed is given up");
}

/// An upload that says what it gets, and pauses after each piece.
struct Told {
    events: Sender<Event>,
    waker: Waker,
    length: usize,
}

#[derive(Debug, PartialEq)]
enum Event {
    Data(usize),
    Whole(usize),
    Failed(BodyError),
}

impl Upload for Told {
    fn data(&mut self, bytes: &[u8]) -> Flow {
        self.length += bytes.len();
        self.events.send(Event::Data(bytes.len())).unwrap();
        let waker = self.waker.clone();
        thread::spawn(move || waker.wake());
        Flow::Pause
    }

    fn end(self: Box<Self>, reply: Reply<'_>) -> Response {
        self.events.send(Event::Whole(self.length)).unwrap();
        reply.status(201).text(&self.length.to_string())
    }

    fn failed(self: Box<Self>, why: BodyError) {
        self.events.send(Event::Failed(why)).unwrap();
    }
}

#[test]
fn an_upload_gets_its_body_piece_by_piece_and_holds_its_client_back() {
    let (events, seen) = channel();
    let limits = Limits { body_ns: 1_000_000_000, upload_bytes_max: 5_000_000, ..patient() };
    let running = start(limits, move |router| {
        let begin = move |_: &dyno_engine::Request<'_>, waker: Waker| {
            Ok(Box::new(Told { events: events.clone(), waker, length: 0 }) as Box<dyn Upload>)
        };
        router.upload(Method::Put, "/up", begin).unwrap();
        router.upload(Method::Put, "/refused", |_, _| Err(403)).unwrap();
    });
    let body = pattern(4_000_000);
    let mut client = Client::connect(addr(&running));
    client.send(format!("PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len())).send(&body);
    let reply = client.reply();
    assert_eq!((reply.status, reply.text()), (201, "4000000".to_owned()));
    let (mut pieces, mut sum) = (0, 0);
    while let Ok(Event::Data(length)) = seen.recv() {
        (pieces, sum) = (pieces + 1, sum + length);
    }
    assert!(sum == 4_000_000 && pieces > 10, "{pieces} pieces of {sum} bytes");

    client.send("PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
    assert_eq!(seen.recv().unwrap(), Event::Data(4));
    assert_eq!(client.reply().status, 408);
    assert_eq!(seen.recv().unwrap(), Event::Failed(BodyError::TimedOut));

    for (head, length, status) in [("PUT /up", 5_000_001, 413), ("PUT /refused", 10, 403)] {
        let mut client = Client::connect(addr(&running));
        client.send(format!("{head} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"));
        assert_eq!(client.reply().status, status, "{head}");
    }
    let mut client = Client::connect(addr(&running));
    client.send("PUT /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nwrong");
    assert_eq!(client.reply().status, 400);
    let events: Vec<Event> = seen.iter().take(2).collect();
    assert_eq!(events, [Event::Data(3), Event::Failed(BodyError::Malformed(400))]);
}

/// Nobody who reads a little all the time is cut, though the kernel tells of room only now and then: with a buffer of
/// megabytes a third of it is free once in a second here, and the limit is a third of that.
#[test]
fn an_honest_slow_reader_gets_all_of_a_large_reply() {
    let body = Shared::from(pattern(12 << 20));
    let running = start(Limits { write_ns: SHORT_NS, ..patient() }, move |router| {
        router.route(Method::Get, "/large", move |_, reply| reply.shared("a/b", body.clone())).unwrap();
    });
    let whole = (12 << 20) + client_head_bytes();
    // A reader who had no CPU for half of the limit was no honest one: then nothing was tried.
    let read = || {
        let mut client = Client::connect(addr(&running));
        client.send(get("/large"));
        let (start, mut taken, mut buffer) = (Instant::now(), 0, vec![0; 32 << 10]);
        let (mut last, mut pause) = (start, Duration::ZERO);
        while taken < whole {
            let count = client.stream.read(&mut buffer).unwrap();
            pause = pause.max(last.elapsed());
            last = Instant::now();
            if count == 0 && pause.as_nanos() > u128::from(SHORT_NS / 2) {
                return None;
            }
            assert!(count > 0, "cut after {taken} of {whole} bytes, though read from every {pause:?}");
            taken += count;
            // Three megabytes a second.
            let due = start + Duration::from_nanos(taken as u64 * 1_000 / 3);
            while Instant::now() < due {
                thread::yield_now();
            }
        }
        Some(start.elapsed())
    };
    let took = (0..10).find_map(|_| read()).expect("ten times this test had no CPU");
    assert!(took > Duration::from_secs(3), "it was slow enough to tell");
}

/// The head of the large reply: its length is the same whatever the date.
fn client_head_bytes() -> usize {
    "HTTP/1.1 200 OK\r\nServer: dyno\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: a/b\r\n\
     Content-Length: 12582912\r\n\r\n"
        .len()
}

#[test]
fn a_reply_that_fits_the_kernels_buffer_and_is_not_read_does_not_stay_there() {
    let body = Shared::from(pattern(7 << 20));
    let limits = Limits { idle_ns: SHORT_NS, write_ns: SHORT_NS, ..patient() };
    let running = start(limits, move |router| {
        router
            .route(Method::Get, "/fits", move |_, reply| reply.shared("a/b", body.part(0..3 << 20).unwrap()))
            .unwrap();
    });
    let mut client = Client::connect(addr(&running));
    client.send(get("/fits"));
    wait_for("the connection to be cut", || running.counts().closes == 1);
    let ended = std::io::copy(&mut client.stream, &mut std::io::sink());
    assert!(ended.is_err(), "by a reset, so that the kernel lets go of what nobody reads: {ended:?}");
}

#[test]
fn bodies_beyond_the_budget_are_refused_and_hoarders_are_cut_before_readers() {
    let limits = Limits { buffer_bytes_max: 3 << 20, ..patient() };
    let running = start(limits, |router| {
        router.route(Method::Post, "/echo", |request, reply| reply.bytes("a/b", request.body())).unwrap();
    });
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
    // Three who begin a body and leave it at that.
    let mut hoarders: Vec<Client> = (0..3).map(|_| Client::connect(addr(&running))).collect();
    for hoarder in &mut hoarders {
        hoarder.send(head).send(vec![b'x'; 900_000]);
    }
    let statuses = |client: &mut Client| {
        client.send(head).send(vec![b'y'; 1_000_000]);
        client.reply().status
    };
    wait_for("somebody to be refused, or cut", || {
        let mut client = Client::connect(addr(&running));
        // Bytes after a refusal may find the connection closed.
        client.stream.set_write_timeout(Some(DEADLINE)).unwrap();
        client.stream.write_all(head.as_bytes()).unwrap();
        let _ = client.stream.write_all(&vec![b'y'; 1_000_000]);
        // It may be this one that is cut, which ends the connection without a word.
        let mut line = [0; 12];
        let refused = client.stream.read_exact(&mut line).is_ok() && line == *b"HTTP/1.1 503";
        refused || running.counts().budget_cuts > 0
    });
    // A turn's figures are published at its end, after its replies have left.
    wait_for("it to be counted", || running.counts().budget_refusals + running.counts().budget_cuts > 0);
    // When they have gone all is as it was.
    drop(hoarders);
    wait_for("the hoarders to be gone", || running.counts().accepts - running.counts().closes == 0);
    assert_eq!(statuses(&mut Client::connect(addr(&running))), 200);
}

/// With a listener for each worker the kernel goes on choosing one that is full.
#[test]
fn a_full_worker_strands_nobody_whom_another_could_serve() {
    let dials = Dials { pin: dyno_engine::Pin::None, ..Dials::for_workers(NonZeroU32::new(2).unwrap()) };
    assert_eq!(dials.reuseport, dyno_engine::Reuseport::Hash);
    let limits = Limits { connections_max: 4, ..patient() };
    let mut router = Router::new();
    router.route(Method::Get, "/now", |_, reply| reply.text("now")).unwrap();
    let running = server(dials, limits).router(router).start().unwrap();
    // Eight find room in all, whomever the kernel's hash chooses for each.
    for round in 0..5 {
        let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(addr(&running))).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.ask(get("/now")).text(), "now", "client {number} of round {round}");
        }
        drop(clients);
        wait_for("all to be gone", || running.counts().accepts == running.counts().closes);
    }
}

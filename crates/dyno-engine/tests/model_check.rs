//! The simulator's model of HTTP against what it will judge: every vector and every mutation of the parser's own tests, at
//! every cut; the simulator's traffic; and a real server over loopback.
//!
//! Where they differ, the RFC says who is right.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "simulator/model.rs"]
mod model;
#[path = "simulator/traffic.rs"]
mod traffic;

// The parser's tests, which call `support` for everything they check.
#[path = "../../dyno-proto/tests/http1/chunk_table.rs"]
mod chunk_table;
#[path = "../../dyno-proto/tests/http1/fuzz.rs"]
mod fuzz;
#[path = "../../dyno-proto/tests/http1/support.rs"]
#[allow(dead_code)]
mod parser;
#[path = "../../dyno-proto/tests/http1/request_field_table.rs"]
mod request_field_table;
#[path = "../../dyno-proto/tests/http1/request_limits.rs"]
mod request_limits;
#[path = "../../dyno-proto/tests/http1/request_line_table.rs"]
mod request_line_table;
#[path = "simulator/support.rs"]
mod support;

use common::{Client, addr, one_worker, patient, server};
use dyno_engine::{Method, Router, Running};
use dyno_measure::Prng;
use model::{Asked, Limits, Reply, RequestKind, Step, read_replies, read_replies_so_far, understand};
use parser::shown;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex};
use traffic::{CLASSES, Class, Mix, conversation, hostile, valid};

/// The server's own default limits.
const LIMITS: Limits =
    Limits { line_bytes_max: 8_000, head_bytes_max: 32_768, headers_max: 100, body_bytes_max: 1 << 20 };
const MIX: Mix = Mix { requests_max: 6, body_bytes_max: 200_000, hostile_percent: 40, limits: LIMITS };
/// Limits that mutations reach.
const SMALL: Limits = Limits { line_bytes_max: 60, head_bytes_max: 200, headers_max: 6, body_bytes_max: 100 };
const SMALL_MIX: Mix = Mix { requests_max: 4, body_bytes_max: 120, hostile_percent: 50, limits: SMALL };
/// Conversations with each server: a few seconds of loopback.
const SEEDS: u64 = 2_000;

#[test]
fn the_model_accepts_all_valid_traffic() {
    let mut prng = Prng::new(0xacce_0001);
    for _ in 0..3_000 {
        let bytes = valid(&mut prng, &Mix { body_bytes_max: 2_000, ..MIX });
        match understand(&bytes, &LIMITS).as_slice() {
            [Step::Request(request)] if request.ends_at == bytes.len() => {}
            steps => panic!("{steps:?} of {}", shown(&bytes)),
        }
    }
}

#[test]
fn the_model_refuses_every_hostile_class_and_understands_nothing_after_it() {
    let mut prng = Prng::new(0xacce_0002);
    assert!(!Class::Mutated.is_always_refused());
    for class in CLASSES.iter().filter(|class| class.is_always_refused()) {
        for _ in 0..200 {
            let wrong = hostile(&mut prng, *class, &MIX);
            let bytes = [&wrong[..], b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
            match understand(&bytes, &LIMITS).as_slice() {
                [Step::Reject { at_or_before, .. }] if *at_or_before <= wrong.len() + 1 => {}
                steps => panic!("{steps:?} of {class:?}: {}", shown(&bytes)),
            }
        }
    }
}

#[test]
fn replies_are_read_strictly() {
    let plain = RequestKind { version: model::Version::Http11, ..RequestKind::default() };
    let head = RequestKind { asked: Asked::Head, ..plain };
    let waits = RequestKind { expect_continue: true, ..plain };
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let read = |text: &str, kinds: &[RequestKind]| read_replies(text.replace("DATE", date).as_bytes(), kinds);
    let ok = "HTTP/1.1 200 OK\r\nDATEContent-Length: 2\r\n\r\nok";
    let replies = read(&ok.repeat(2), &[plain, plain]).unwrap();
    assert!(replies.len() == 2 && replies.iter().all(|reply| reply.body == b"ok" && !reply.closes));
    let chunked = "HTTP/1.1 200 OK\r\nDATETransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    assert_eq!(read(chunked, &[plain]).unwrap()[0].body, b"ok");
    assert_eq!(read("HTTP/1.1 200 OK\r\nDATEContent-Length: 2\r\n\r\n", &[head]).unwrap()[0].body, b"");
    let interim = format!("HTTP/1.1 100 Continue\r\n\r\n{ok}");
    assert!(read(&interim, &[waits]).unwrap()[0].is_interim());
    assert!(
        read("HTTP/1.1 200 \r\nDATEConnection: x, close\r\nContent-Length: 0\r\n\r\n", &[plain]).unwrap()[0]
            .closes
    );
    for (wrong, kinds) in [
        (ok.repeat(2), vec![plain]),
        (ok.to_owned(), vec![head]),
        (ok[..ok.len() - 1].to_owned(), vec![plain]),
        (ok.replace("DATE", ""), vec![plain]),
        (ok.replace("200 OK", "200"), vec![plain]),
        (ok.replace("200", "099"), vec![plain]),
        (ok.replace("1.1", "1.0"), vec![plain]),
        (ok.replace(": 2", ": 2, 2"), vec![plain]),
        (ok.replace(": 2", ": 2\r\nContent-Length: 2"), vec![plain]),
        (ok.replace("Content-Length: 2\r\n", ""), vec![plain]),
        (ok.replace("Length:", "Length :"), vec![plain]),
        (ok.replace("\r\n", "\n"), vec![plain]),
        (ok.replace("DATE", "DATEConnection: close\r\n").repeat(2), vec![plain, plain]),
        (ok.replace("200", "204"), vec![plain]),
        (ok.replace("200", "405"), vec![plain]),
        (ok.to_owned(), vec![RequestKind { asked: Asked::Connect, ..plain }]),
        (chunked.to_owned(), vec![RequestKind::default()]),
        (chunked.replace("2\r\nok", "3\r\nok"), vec![plain]),
        (interim.clone(), vec![plain]),
        (interim.replace("100", "103"), vec![waits]),
        (format!("HTTP/1.1 100 Continue\r\n\r\n{interim}"), vec![waits]),
    ] {
        assert!(read(&wrong, &kinds).is_err(), "{wrong:?}");
    }
}

#[test]
fn replies_cut_anywhere_are_read_as_far_as_they_are_whole() {
    let plain = RequestKind { version: model::Version::Http11, ..RequestKind::default() };
    let head = "Server: dyno\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let first = format!("HTTP/1.1 200 OK\r\n{head}Content-Length: 2\r\n\r\nok");
    let second =
        format!("HTTP/1.1 404 Not Found\r\n{head}Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n");
    let both = [first.as_bytes(), second.as_bytes()].concat();
    for cut in 0..=both.len() {
        let (replies, used) = read_replies_so_far(&both[..cut], &[plain, plain]).unwrap();
        let ends = [0, first.len(), both.len()];
        let whole = ends.iter().rposition(|end| *end <= cut).unwrap();
        assert_eq!((replies.len(), used), (whole, ends[whole]), "cut at {cut}");
        assert_eq!(read_replies(&both[..cut], &[plain, plain]).is_ok(), ends.contains(&cut), "cut at {cut}");
    }
}

/// A check that never sees a kind of outcome says nothing about it.
#[test]
fn traffic_has_every_kind_of_outcome() {
    let (mut seen, mut expecting, mut incomplete) = (std::collections::BTreeMap::new(), 0, 0);
    for seed in 0..SEEDS {
        for step in understand(&conversation(&mut Prng::new(seed), &MIX), &LIMITS) {
            match step {
                Step::Request(request) => expecting += u32::from(request.expect_continue),
                Step::Reject { statuses, .. } => *seen.entry(statuses).or_insert(0) += 1,
                Step::Incomplete { .. } => incomplete += 1,
            }
        }
    }
    for status in [400, 413, 414, 417, 431, 501, 505] {
        assert!(seen.get(&vec![status]).is_some_and(|count| *count >= 5), "{status}: {seen:?}");
    }
    assert!(expecting > 50 && incomplete > 20, "{expecting} expect a 100, {incomplete} are cut");
}

/// What a handler was called with.
type Call = (Vec<u8>, Vec<u8>, Vec<u8>);

/// A server whose handlers write down how they were called, and say it in their replies.
struct Recorder {
    running: Running,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Recorder {
    fn start(limits: &Limits) -> Self {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let mut router = Router::new();
        for method in [Method::Get, Method::Post, Method::Put, Method::Delete, Method::Patch, Method::Options]
        {
            for pattern in ["/", "/{*rest}"] {
                let calls = Arc::clone(&calls);
                let record = move |request: &dyno_engine::Request<'_>, reply: dyno_engine::Reply<'_>| {
                    let query = request.query().map(|query| format!("?{query}")).unwrap_or_default();
                    let target = format!("{}{query}", request.path()).into_bytes();
                    let call = (request.method().as_bytes().to_vec(), target, request.body().to_vec());
                    let text = told(&call);
                    calls.lock().unwrap().push(call);
                    reply.text(&text)
                };
                router.route(method, pattern, record).unwrap();
            }
        }
        let limits = dyno_engine::Limits {
            line_bytes_max: limits.line_bytes_max,
            head_bytes_max: limits.head_bytes_max,
            headers_max: limits.headers_max,
            body_bytes_max: limits.body_bytes_max,
            ..patient()
        };
        Self { running: server(one_worker(), limits).router(router).start().unwrap(), calls }
    }

    /// The server's answer to a whole input, and the calls of its handlers meanwhile.
    fn ask(&self, input: &[u8]) -> (Vec<u8>, Vec<Call>) {
        let mut client = Client::connect(addr(&self.running));
        // A server that has refused need not take the rest.
        let _ = client.stream.write_all(input);
        let _ = client.stream.shutdown(Shutdown::Write);
        let mut output = Vec::new();
        client
            .stream
            .read_to_end(&mut output)
            .unwrap_or_else(|error| panic!("{error} after {}", shown(input)));
        (output, std::mem::take(&mut *self.calls.lock().unwrap()))
    }
}

/// A call in few words: bodies may be long.
fn told((method, target, body): &Call) -> String {
    let sum = body.iter().fold(0_u32, |sum, byte| sum.rotate_left(5) ^ u32::from(*byte));
    let (method, target) = (String::from_utf8_lossy(method), String::from_utf8_lossy(target));
    format!("{method} {target} {} {sum:08x}", body.len())
}

/// Whether a route's handler takes it; the router answers the others by itself.
fn is_routed(request: &model::Request) -> bool {
    let methods: [&[u8]; 7] = [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS"];
    let path = request.target.split(|byte| *byte == b'?').next().unwrap();
    methods.contains(&request.method.as_slice()) && path.starts_with(b"/") && is_text_when_decoded(path)
}

/// A path that cannot be text gets 400 from the router.
fn is_text_when_decoded(path: &[u8]) -> bool {
    let (mut decoded, mut at) = (Vec::new(), 0);
    while at < path.len() {
        let escaped = (path[at] == b'%').then(|| std::str::from_utf8(&path[at + 1..at + 3]).unwrap());
        decoded.push(escaped.map_or(path[at], |digits| u8::from_str_radix(digits, 16).unwrap()));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    !decoded.contains(&0) && String::from_utf8(decoded).is_ok()
}

/// What the server did differs from what the model says.
fn disagreement(input: &[u8], limits: &Limits, output: &[u8], calls: &[Call]) -> Option<String> {
    let steps = understand(input, limits);
    let kinds: Vec<RequestKind> = steps.iter().map(kind).collect();
    let replies = match read_replies(output, &kinds) {
        Ok(replies) => replies,
        Err(error) => return Some(error),
    };
    let mut finals = replies.iter().filter(|reply| !reply.is_interim());
    let mut calls = calls.iter();
    for step in &steps {
        let differs = match step {
            Step::Incomplete { .. } => None,
            Step::Request(request) => of_request(request, finals.next(), &mut calls),
            Step::Reject { statuses, why, .. } => of_refusal(statuses, why, finals.next()),
        };
        if differs.is_some() {
            return differs;
        }
    }
    match (finals.next(), calls.next()) {
        (None, None) => None,
        (reply, call) => Some(format!("too much: {reply:?} {:?}", call.map(told))),
    }
}

fn kind(step: &Step) -> RequestKind {
    match step {
        Step::Request(request) => request.kind(),
        Step::Reject { kind, .. } | Step::Incomplete { kind, .. } => *kind,
    }
}

fn of_request<'a>(
    request: &model::Request,
    reply: Option<&Reply>,
    calls: &mut impl Iterator<Item = &'a Call>,
) -> Option<String> {
    let expected = (request.method.clone(), request.target.clone(), request.body.clone());
    let Some(reply) = reply else { return Some(format!("no reply to {}", told(&expected))) };
    if reply.closes == request.keep_alive {
        return Some(format!("{} closes wrongly: {reply:?}", told(&expected)));
    }
    if !is_routed(request) {
        let is_answered = match request.target.as_slice() {
            b"*" => reply.status == 200,
            _ => matches!(reply.status, 400 | 404 | 405 | 501),
        };
        return (!is_answered).then(|| format!("{} got {reply:?}", told(&expected)));
    }
    let call = calls.next();
    if call != Some(&expected) {
        return Some(format!("handled {:?} instead of {}", call.map(told), told(&expected)));
    }
    let body = told(&expected);
    let length = reply.header("content-length") == Some(body.len().to_string().as_bytes());
    let is_head = request.method == b"HEAD";
    let is_right = reply.status == 200 && length && (is_head || reply.body == body.as_bytes());
    (!is_right).then(|| format!("{} got {reply:?}", told(&expected)))
}

fn of_refusal(statuses: &[u16], why: &str, reply: Option<&Reply>) -> Option<String> {
    match reply {
        Some(reply) if statuses.contains(&reply.status) && reply.closes => None,
        other => Some(format!("not refused with {statuses:?} ({why}) but {other:?}")),
    }
}

/// All conversations are had before the test fails, so that each kind of disagreement is seen.
fn check_with_a_server(limits: &Limits, mix: &Mix) {
    let recorder = Recorder::start(limits);
    let mut differing = Vec::new();
    for seed in 0..SEEDS {
        let input = conversation(&mut Prng::new(seed), mix);
        let (output, calls) = recorder.ask(&input);
        if let Some(what) = disagreement(&input, limits, &output, &calls) {
            differing.push(format!(
                "seed {seed}: {what}\n  input {}\n  output {}",
                brief(&input),
                brief(&output)
            ));
        }
    }
    let shown = differing.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(differing.is_empty(), "{} of {SEEDS} conversations differ:\n{shown}", differing.len());
}

/// Both ends of something long.
fn brief(bytes: &[u8]) -> String {
    match bytes.len() {
        0..3_000 => shown(bytes),
        length => format!("{} ... {}", shown(&bytes[..1_500]), shown(&bytes[length - 1_500..])),
    }
}

#[test]
fn a_server_of_usual_limits_does_what_the_model_says() {
    check_with_a_server(&LIMITS, &MIX);
}

#[test]
fn a_server_of_small_limits_does_what_the_model_says() {
    check_with_a_server(&SMALL, &SMALL_MIX);
}

/// The whole input but for what follows the first head that expects a 100, until that comes; then the rest.
fn ask_and_wait_for_the_interim(
    recorder: &Recorder,
    input: &[u8],
    kinds: &[RequestKind],
    head_ends_at: usize,
) {
    let mut client = Client::connect(addr(&recorder.running));
    client.send(&input[..head_ends_at]);
    let (mut output, mut piece) = (Vec::new(), [0; 4_096]);
    while !read_replies_so_far(&output, kinds).unwrap().0.iter().any(Reply::is_interim) {
        let count = client.stream.read(&mut piece).unwrap();
        assert!(count > 0, "closed after {} and {}", brief(&input[..head_ends_at]), shown(&output));
        output.extend_from_slice(&piece[..count]);
    }
    let _ = client.stream.write_all(&input[head_ends_at..]);
    let _ = client.stream.shutdown(Shutdown::Write);
    client.stream.read_to_end(&mut output).unwrap();
    let calls = std::mem::take(&mut *recorder.calls.lock().unwrap());
    assert_eq!(disagreement(input, &LIMITS, &output, &calls), None, "{}", brief(input));
}

#[test]
fn a_client_that_waits_gets_its_100_where_the_model_allows_one() {
    let (recorder, mut waited) = (Recorder::start(&LIMITS), 0);
    for seed in 0..SEEDS {
        let input = conversation(&mut Prng::new(seed), &MIX);
        let steps = understand(&input, &LIMITS);
        let kinds: Vec<RequestKind> = steps.iter().map(kind).collect();
        let expecting = steps.iter().find_map(|step| match step {
            Step::Request(request) if request.expect_continue => Some(request),
            _ => None,
        });
        // Who has no handler is told so at once, instead of a 100, and the connection closes (RFC 9110 §10.1.1).
        if let Some(request) = expecting.filter(|request| is_routed(request)) {
            ask_and_wait_for_the_interim(&recorder, &input, &kinds, request.head_ends_at);
            waited += 1;
        }
    }
    assert!(waited > 50, "only {waited} waited: the test says nothing");
}

#[test]
fn a_refused_head_request_gets_no_body() {
    let recorder = Recorder::start(&LIMITS);
    for input in [
        "HEAD / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n",
        "HEAD / HTTP/2.0\r\nHost: a\r\n\r\n",
    ] {
        let input = input.as_bytes();
        let (output, calls) = recorder.ask(input);
        assert_eq!(disagreement(input, &LIMITS, &output, &calls), None);
    }
}

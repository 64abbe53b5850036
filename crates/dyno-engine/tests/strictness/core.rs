//! Every row of the table before the engine's core: whole, cut at every place, byte by byte, in random pieces, alone and
//! behind another request, for routes that take bodies whole and for such that take them piece by piece.
//!
//! The core is the real one, on the simulator's network; the plain model of HTTP must say the same of each row. That the
//! runner sees what it is for is known from faults that are planted: see `every_planted_fault_turns_a_row_red`.

#[path = "table.rs"]
mod table;

use crate::config::Limits;
use crate::core::Core;
use crate::fault::{self, Fault};
use crate::http1::Http1;
use crate::log::AccessLog;
use crate::mailbox::Mailbox;
use crate::model::{self, RequestKind, Step, read_replies_so_far, understand};
use crate::reply::Reply;
use crate::request::Request;
use crate::response::Response;
use crate::route::Router;
use crate::scratch::Scratch;
use crate::simulator::net::{Manner, SimNet};
use crate::stats::{Counters, RunsIn, Tally};
use crate::upload::{BodyError, Flow, Upload};
use dyno_measure::Prng;
use dyno_proto::http1::Method;
use std::sync::{Arc, Mutex};
use table::{BODY_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX, LINE_BYTES_MAX, Row, Want, rows};

const BEFORE: &str = "GET /before HTTP/1.1\r\nHost: a\r\n\r\n";
const NEXT: &str = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n";

/// Ways in which a row is split besides the cuts in two and the cut in single bytes.
const RANDOM_SPLITS: usize = 20;

/// Rows may keep nobody waiting: the clock of these tests stands still.
const NOW_NS: u64 = 1_000_000_000;

/// How handlers take bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Routes {
    Buffered,
    Streamed,
}

/// What handlers were called with: the path, and the body. An upload that begins is no call, one that ends is.
type Calls = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// What came of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    /// Final replies, and whether each says that it is the last.
    replies: Vec<(u16, bool)>,
    calls: Vec<(String, String)>,
    /// The server has ended the connection before its client did.
    has_ended: bool,
}

struct Bench {
    core: Core<SimNet>,
    calls: Calls,
    manner: Manner,
    /// Whether another request stands before each row.
    stands_behind: bool,
}

impl Bench {
    fn new(routes: Routes, manner: Manner) -> Bench {
        let calls = Calls::default();
        let limits = limits();
        let scratch = Scratch::new(
            Tally::new(counters(), 0, RunsIn::Process),
            Mailbox::new(None),
            limits.outstanding_max,
            limits.later_ns,
            1_700_000_000,
        );
        let router = Arc::new(router(routes, &calls));
        let http = Http1::new(router, &limits, AccessLog::off(), scratch, limits.buffer_bytes_max);
        let net = SimNet::new(Prng::new(1), Prng::new(2), manner, 1 << 20);
        Bench { core: Core::new(net, http, &limits, NOW_NS), calls, manner, stands_behind: false }
    }

    /// Sends the pieces, each read before the next comes, then ends.
    fn converse<'p>(
        &mut self,
        pieces: impl IntoIterator<Item = &'p [u8]>,
        kinds: &[RequestKind],
    ) -> Result<Seen, String> {
        let socket = self.core.net.connect();
        let id = self.core.net.links.len() - 1;
        assert!(self.core.admit(socket, None), "it can be watched");
        for piece in pieces {
            let link = &mut self.core.net.links[id];
            if link.is_closed() {
                break;
            }
            link.arrived.extend(piece);
            link.has_edge = true;
            self.settle(id);
        }
        let received: Vec<u8> = std::mem::take(&mut self.core.net.links[id].received);
        let has_ended = self.core.net.links[id].output_ended || self.core.net.links[id].is_closed();
        let calls: Vec<_> = self.calls.lock().expect("no handler panics").drain(..).collect();
        self.leave(id);
        let late = self.core.net.links[id].received.len() + self.calls.lock().expect("as above").len();
        let (replies, used) = read_replies_so_far(&received, kinds)?;
        if late > 0 || used < received.len() {
            return Err("a reply is cut off, or something happened because the client has gone".to_owned());
        }
        let finals = replies.iter().filter(|reply| !reply.is_interim());
        Ok(Seen {
            replies: finals.map(|reply| (reply.status, reply.closes)).collect(),
            calls: calls
                .into_iter()
                .map(|(path, body)| (path, String::from_utf8_lossy(&body).into()))
                .collect(),
            has_ended,
        })
    }

    /// Turns until there is nothing to do; the client takes all that comes.
    fn settle(&mut self, id: usize) {
        for _ in 0..1_000 {
            self.core.net.take(id, usize::MAX);
            let link = &mut self.core.net.links[id];
            let Some((token, ready)) = link.token.zip(link.readiness(self.manner)) else { return };
            link.has_edge = false;
            self.core.begin_turn(NOW_NS);
            if let Some(index) = self.core.conns.index_of(token) {
                self.core.on_event(index, ready);
            }
            self.core.end_turn();
        }
        panic!("a connection does not come to rest");
    }

    /// The client closes, and the server lets go of everything.
    fn leave(&mut self, id: usize) {
        let link = &mut self.core.net.links[id];
        (link.has_fin, link.has_edge) = (true, true);
        self.settle(id);
        assert!(self.core.net.links[id].is_closed(), "who has left is let go");
        assert_eq!(self.core.http.budget.used(), 0, "nothing is held for who has left");
    }
}

fn limits() -> Limits {
    Limits {
        line_bytes_max: LINE_BYTES_MAX,
        head_bytes_max: HEAD_BYTES_MAX,
        headers_max: HEADERS_MAX,
        body_bytes_max: BODY_BYTES_MAX,
        upload_bytes_max: BODY_BYTES_MAX as u64,
        ..Limits::default()
    }
}

fn model_limits() -> model::Limits {
    model::Limits {
        line_bytes_max: LINE_BYTES_MAX,
        head_bytes_max: HEAD_BYTES_MAX,
        headers_max: HEADERS_MAX,
        body_bytes_max: BODY_BYTES_MAX,
    }
}

/// Counters are mapped for the life of the process.
fn counters() -> Counters {
    thread_local! {
        static COUNTERS: Counters = Counters::new(1, 0).expect("counters can be mapped");
    }
    COUNTERS.with(|counters| *counters)
}

/// Every path for these methods.
fn router(routes: Routes, calls: &Calls) -> Router {
    let mut router = Router::new();
    let methods = [
        Method::Get,
        Method::Head,
        Method::Post,
        Method::Put,
        Method::Delete,
        Method::Patch,
        Method::Options,
    ];
    for (method, pattern) in methods.iter().flat_map(|method| [(*method, "/"), (*method, "/{*rest}")]) {
        let calls = Arc::clone(calls);
        let added = match routes {
            Routes::Buffered => {
                router.route(method, pattern, move |request: &Request<'_>, reply: Reply<'_>| {
                    let call = (request.path().to_owned(), request.body().to_vec());
                    calls.lock().expect("no handler panics").push(call);
                    reply.text("done")
                })
            }
            Routes::Streamed => router.upload(method, pattern, move |request: &Request<'_>, _waker| {
                let taking =
                    Taking { calls: Arc::clone(&calls), path: request.path().to_owned(), body: Vec::new() };
                Ok(Box::new(taking) as Box<dyn Upload>)
            }),
        };
        added.expect("the routes are fixed");
    }
    router
}

/// A body that is taken piece by piece: only its end is a call.
struct Taking {
    calls: Calls,
    path: String,
    body: Vec<u8>,
}

impl Upload for Taking {
    fn data(&mut self, bytes: &[u8]) -> Flow {
        self.body.extend_from_slice(bytes);
        Flow::More
    }

    fn end(self: Box<Self>, reply: Reply<'_>) -> Response {
        self.calls.lock().expect("no handler panics").push((self.path, self.body));
        reply.text("done")
    }

    fn failed(self: Box<Self>, why: BodyError) {
        assert!(matches!(why, BodyError::Malformed(_) | BodyError::Refused | BodyError::Cut), "{why}");
    }
}

/// A row with what stands around it.
struct Case<'r> {
    row: &'r Row,
    bytes: Vec<u8>,
    kinds: Vec<RequestKind>,
    expected: Seen,
}

impl<'r> Case<'r> {
    fn new(row: &'r Row, before: &str) -> Case<'r> {
        let next = if row.want == Want::Awaited { "" } else { NEXT };
        let bytes = [before.as_bytes(), &row.bytes, next.as_bytes()].concat();
        let steps = understand(&bytes, &model_limits());
        let kinds = steps.iter().map(|step| match step {
            Step::Request(request) => request.kind(),
            Step::Reject { kind, .. } | Step::Incomplete { kind, .. } => *kind,
        });
        let expected =
            expected(row, &steps[usize::from(!before.is_empty()).min(steps.len())..], !before.is_empty());
        Case { row, kinds: kinds.collect(), expected, bytes }
    }

    fn check(&self, bench: &mut Bench, pieces: Vec<&[u8]>) -> Result<(), String> {
        let lengths: Vec<usize> = pieces.iter().take(8).map(|piece| piece.len()).collect();
        let seen = bench.converse(pieces, &self.kinds);
        if seen.as_ref() == Ok(&self.expected) {
            return Ok(());
        }
        let (class, bytes) = (self.row.class, self.bytes.escape_ascii());
        Err(format!(
            "{class}: {seen:?}\n  instead of {:?}\n  in pieces of {lengths:?}…: {bytes}",
            self.expected
        ))
    }
}

/// What must be seen of a row. The path of its call is the model's word, its body the table's.
fn expected(row: &Row, steps: &[Step], has_before: bool) -> Seen {
    let target = match steps.first() {
        Some(Step::Request(request)) => request.target.clone(),
        _ => Vec::new(),
    };
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let path = if path.is_empty() { "/".to_owned() } else { String::from_utf8_lossy(path).into_owned() };
    let (mut replies, mut calls) = (Vec::new(), Vec::new());
    if has_before {
        replies.push((200, false));
        calls.push(("/before".to_owned(), String::new()));
    }
    let goes_on = match row.want {
        Want::Refused(status) | Want::DeclinedLast(status) => {
            replies.push((status, true));
            false
        }
        Want::Declined(status) => {
            replies.push((status, false));
            true
        }
        Want::Served(body) | Want::ServedLast(body) => {
            let goes_on = matches!(row.want, Want::Served(_));
            replies.push((200, !goes_on));
            calls.push((path, body.to_owned()));
            goes_on
        }
        Want::Awaited => false,
    };
    if goes_on {
        replies.push((200, false));
        calls.push(("/next".to_owned(), String::new()));
    }
    Seen { replies, calls, has_ended: !goes_on && row.want != Want::Awaited }
}

/// One row in every way, up to the first that goes wrong.
fn check_row(row: &Row, benches: &mut [Bench]) -> Result<(), String> {
    let mut chance = Prng::new(row.bytes.len() as u64);
    for bench in benches {
        let before = if bench.stands_behind { BEFORE } else { "" };
        let case = Case::new(row, before);
        case.check(bench, vec![&case.bytes])?;
        case.check(bench, case.bytes.chunks(1).collect())?;
        for cut in (before.len()..case.bytes.len()).filter(|cut| !is_filler(*cut, case.bytes.len())) {
            case.check(bench, vec![&case.bytes[..cut], &case.bytes[cut..]])?;
        }
        for _ in 0..RANDOM_SPLITS {
            case.check(bench, split(&case.bytes, &mut chance))?;
        }
    }
    Ok(())
}

/// Rows that reach a bound of thousands of bytes are the same byte again and again: there every 41st place will do.
fn is_filler(cut: usize, length: usize) -> bool {
    length > 2_000 && (300..length - 300).contains(&cut) && !cut.is_multiple_of(41)
}

fn split<'b>(mut bytes: &'b [u8], chance: &mut Prng) -> Vec<&'b [u8]> {
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(1 + chance.below(bytes.len().min(40) as u64) as usize);
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

/// Both kinds of routes; and behind another request a server that reads, tells and sends as the first version did.
fn benches() -> Vec<Bench> {
    let plain = Manner { reads_on: false, tells_once: false, replies_alone: false, splits: false };
    let first = Manner { reads_on: true, tells_once: true, replies_alone: true, splits: true };
    let behind = Bench { stands_behind: true, ..Bench::new(Routes::Buffered, first) };
    vec![Bench::new(Routes::Buffered, plain), Bench::new(Routes::Streamed, plain), behind]
}

/// All rows of a part, on every CPU; what went wrong.
fn check_all(rows: &[Row]) -> Vec<String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for first in 0..threads {
            let wrong = &wrong;
            scope.spawn(move || {
                for row in rows.iter().skip(first).step_by(threads) {
                    // Benches of its own: a simulated network keeps every connection that it ever had.
                    if let Err(what) = check_row(row, &mut benches()) {
                        wrong.lock().expect("nobody panics with it").push(what);
                    }
                }
            });
        }
    });
    wrong.into_inner().expect("nobody panics with it")
}

#[test]
fn every_row_has_its_outcome_whole_cut_at_each_byte_and_byte_by_byte() {
    let rows = rows();
    let wrong = check_all(&rows);
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    let refused = rows.iter().filter(|row| matches!(row.want, Want::Refused(_))).count();
    println!("{} rows, of which {refused} are refused", rows.len());
}

/// Two opinions written apart: the table's and the model's.
#[test]
fn the_model_says_the_same_of_every_row() {
    for row in rows() {
        let steps = understand(&[&row.bytes[..], NEXT.as_bytes()].concat(), &model_limits());
        let agrees = match (row.want, steps.first()) {
            (Want::Refused(status), Some(Step::Reject { statuses, .. })) => statuses.contains(&status),
            (Want::Served(body), Some(Step::Request(request))) => {
                request.keep_alive && request.body == body.as_bytes()
            }
            (Want::ServedLast(body), Some(Step::Request(request))) => {
                !request.keep_alive && request.body == body.as_bytes()
            }
            (Want::Declined(_), Some(Step::Request(request))) => request.keep_alive,
            (Want::DeclinedLast(_), Some(Step::Request(request))) => !request.keep_alive,
            (Want::Awaited, _) => {
                matches!(understand(&row.bytes, &model_limits()).as_slice(), [] | [Step::Incomplete { .. }])
            }
            _ => false,
        };
        assert!(
            agrees,
            "{}: {:?}, and the model {steps:?} of {}",
            row.class,
            row.want,
            row.bytes.escape_ascii()
        );
    }
}

/// A table that a broken server passes says nothing: what follows a refusal is executed, what follows a close is, a handler
/// is called before its body is whole.
#[test]
fn every_planted_fault_turns_a_row_red() {
    for planted in [Fault::ReadOnAfterRefusal, Fault::AnswerAfterClose, Fault::CalledTooEarly] {
        let search = move || {
            fault::plant(planted);
            // What is valid or not whole stands last, and shows them soonest.
            rows().iter().rev().any(|row| check_row(row, &mut benches()).is_err())
        };
        // An assertion of the engine itself sees it as well as a row does.
        let thread = std::thread::Builder::new().name("simulator".to_owned());
        let is_seen = thread.spawn(search).expect("a thread can be started").join().unwrap_or(true);
        assert!(is_seen, "{planted:?} is not seen");
    }
}

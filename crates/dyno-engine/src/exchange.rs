//! The exchange: received bytes in, replies into the outbox and out of the socket. One per worker, for all connections.
//!
//! It parses, finds the route, collects bodies, calls the handler, and flushes. It neither reads sockets nor keeps
//! time; the worker does. After an error nothing more of a connection is understood.

use crate::config::Limits;
use crate::conn::{Afterwards, Conn, Framing, Incoming, PROGRESS_BYTES_MIN};
use crate::dials::{Dials, Headers, Replies};
use crate::log::{AccessLog, Entry};
use crate::outbox::{Connection, Content, Flushed, Media, OUTBOX_BYTES_FLUSH, Outbox, Plan};
use crate::reply::{Answered, Reply};
use crate::request::Request;
use crate::route::{Found, Handler, Router};
use crate::stats::{Counts, Tally};
use dyno_proto::http1::chunk::Decoder;
use dyno_proto::http1::encode;
use dyno_proto::http1::request::{self, BodyLength, Head, Method, Parsed, Slots, Version};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How far a turn of a connection came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything that was whole is answered; more input is needed.
    More,
    /// The socket is full: what it refused is in the connection's backlog.
    Blocked,
    /// The last reply was sent.
    Close,
    /// The socket is broken.
    Broken,
}

/// The outcome of a turn: `used` bytes of the input are done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) used: usize,
    pub(crate) end: End,
}

/// What follows a step over one request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Request,
    MoreInput,
    Close,
}

/// A step over the front of the input.
struct Step {
    used: usize,
    next: Next,
}

/// Everything of a worker that makes replies.
pub(crate) struct Exchange {
    pub(crate) outbox: Outbox,
    pub(crate) tally: Tally,
    /// Set while draining: every reply is its connection's last.
    pub(crate) keep: Afterwards,
    router: Arc<Router>,
    log: AccessLog,
    http_limits: request::Limits,
    body_bytes_max: usize,
    headers: Headers,
    /// Bytes in the outbox at which it is flushed before the next request.
    flush_bytes: usize,
    /// The decoded path of the request at hand.
    path: Vec<u8>,
    /// The decoded body of a chunked request that came whole.
    chunked: Vec<u8>,
}

impl Exchange {
    pub(crate) fn new(
        router: Arc<Router>,
        dials: &Dials,
        limits: &Limits,
        log: AccessLog,
        tally: Tally,
    ) -> Exchange {
        Exchange {
            outbox: Outbox::new(dials),
            tally,
            keep: Afterwards::Serve,
            router,
            log,
            http_limits: limits.http(),
            body_bytes_max: limits.body_bytes_max,
            headers: dials.headers,
            flush_bytes: match dials.replies {
                Replies::Single => 1,
                Replies::Batch => OUTBOX_BYTES_FLUSH,
            },
            path: Vec::new(),
            chunked: Vec::new(),
        }
    }

    /// Whether lines are written that need the peer's address.
    pub(crate) fn wants_peer(&self) -> bool {
        !self.log.is_off()
    }

    /// Answers every request that is whole in `input`, which continues what the connection holds of a body.
    pub(crate) fn digest(&mut self, conn: &mut Conn, slots: &mut Slots, input: &[u8]) -> Digest {
        debug_assert!(
            self.outbox.len() == 0 && !conn.has_backlog(),
            "one connection at a time, and only when writable"
        );
        let mut used = 0;
        let mut next = Next::Request;
        if conn.rest.as_ref().is_some_and(|rest| rest.incoming.is_some()) {
            let step = self.resume(conn, slots, input);
            (used, next) = (step.used, step.next);
        }
        while next == Next::Request && used < input.len() {
            let step = self.step(conn, slots, &input[used..]);
            used += step.used;
            next = step.next;
            if self.outbox.len() >= self.flush_bytes && self.flush_early(conn, next) != Flushed::All {
                return self.stopped(conn, used);
            }
        }
        if self.flush(conn, next) != Flushed::All {
            return self.stopped(conn, used);
        }
        Digest { used, end: if next == Next::Close { End::Close } else { End::More } }
    }

    /// Answers on the worker's behalf that the connection's time is up, and flushes: 408.
    pub(crate) fn out_of_time(&mut self, conn: &mut Conn) -> End {
        self.refuse(conn, 408);
        match self.flush_early(conn, Next::Close) {
            Flushed::All => End::Close,
            _ => self.stopped(conn, 0).end,
        }
    }

    fn step(&mut self, conn: &mut Conn, slots: &mut Slots, input: &[u8]) -> Step {
        match &request::parse(input, &self.http_limits, slots) {
            Ok(Parsed::Whole { head, used }) if head.body == BodyLength::None => {
                Step { used: *used, next: self.answer(conn, head, &[]) }
            }
            Ok(Parsed::Whole { head, used }) => {
                self.step_with_body(conn, head, &input[..*used], &input[*used..])
            }
            Ok(Parsed::NeedMore) => Step { used: 0, next: Next::MoreInput },
            Err(reject) => self.reject(conn, reject.status(), input.len()),
        }
    }

    /// A head that announces a body: answered at once when the body is all there, collected otherwise.
    fn step_with_body(&mut self, conn: &mut Conn, head: &Head<'_>, head_bytes: &[u8], input: &[u8]) -> Step {
        let mut body = std::mem::take(&mut self.chunked);
        body.clear();
        let step = match head.body {
            BodyLength::Chunked => self.step_chunked(conn, head, head_bytes, input, &mut body),
            BodyLength::Length(length) => match self.admitted(length) {
                Some(length) if length <= input.len() => {
                    Step { used: length, next: self.answer(conn, head, &input[..length]) }
                }
                Some(length) => self.collect(conn, head, head_bytes, input, Framing::Length(length), input),
                None => self.reject(conn, 413, input.len()),
            },
            BodyLength::None => Step { used: 0, next: self.answer(conn, head, &[]) },
        };
        self.chunked = body;
        Step { used: head_bytes.len() + step.used, next: step.next }
    }

    fn step_chunked(
        &mut self,
        conn: &mut Conn,
        head: &Head<'_>,
        head_bytes: &[u8],
        input: &[u8],
        body: &mut Vec<u8>,
    ) -> Step {
        let mut decoder = Decoder::new();
        match unchunk(&mut decoder, input, body, self.body_bytes_max) {
            Unchunked::Whole { used } => Step { used, next: self.answer(conn, head, body) },
            Unchunked::NeedMore => {
                self.collect(conn, head, head_bytes, input, Framing::Chunked(decoder), body)
            }
            Unchunked::Rejected { status } => self.reject(conn, status, input.len()),
        }
    }

    /// Keeps an incomplete request in its connection, and says `100 Continue` when the client waits for it.
    fn collect(
        &mut self,
        conn: &mut Conn,
        head: &Head<'_>,
        head_bytes: &[u8],
        input: &[u8],
        framing: Framing,
        body: &[u8],
    ) -> Step {
        // A client that has begun to send the body does not wait (RFC 9110 §10.1.1).
        if head.expect_continue && input.is_empty() {
            let found = self.router.find(head.method, head.path(), &mut self.path);
            if !matches!(found, Found::Handler { .. }) {
                // Whether the body follows all the same is not known: the connection cannot be used again.
                self.answer_as(conn, head, &[], Connection::Closed);
                return Step { used: 0, next: Next::Close };
            }
            self.outbox.interim();
        }
        let rest = conn.rest_mut();
        rest.incoming = Some(Incoming { head: head_bytes.to_vec(), body: body.to_vec(), framing });
        // A new body gets a whole stretch of time, as if progress had been made.
        rest.progress = PROGRESS_BYTES_MIN;
        Step { used: input.len(), next: Next::MoreInput }
    }

    /// More of a body has come.
    #[cold]
    fn resume(&mut self, conn: &mut Conn, slots: &mut Slots, input: &[u8]) -> Step {
        let rest = conn.rest_mut();
        let Some(mut incoming) = rest.incoming.take() else { return Step { used: 0, next: Next::Request } };
        rest.progress += input.len();
        let (used, whole) = match feed(&mut incoming, input, self.body_bytes_max) {
            Unchunked::Whole { used } => (used, true),
            Unchunked::NeedMore => (input.len(), false),
            Unchunked::Rejected { status } => return self.reject(conn, status, input.len()),
        };
        if !whole {
            rest.incoming = Some(incoming);
            return Step { used, next: Next::MoreInput };
        }
        match request::parse(&incoming.head, &self.http_limits, slots) {
            Ok(Parsed::Whole { head, .. }) => Step { used, next: self.answer(conn, &head, &incoming.body) },
            // The same bytes were a whole head before; if they are not now, the fault is ours.
            Ok(Parsed::NeedMore) | Err(_) => self.reject(conn, 500, input.len()),
        }
    }

    fn answer(&mut self, conn: &mut Conn, head: &Head<'_>, body: &[u8]) -> Next {
        let connection = self.connection_after(head);
        self.answer_as(conn, head, body, connection);
        next_after(connection)
    }

    #[inline]
    fn connection_after(&self, head: &Head<'_>) -> Connection {
        match (head.keep_alive, self.keep, head.version) {
            (false, _, _) | (_, Afterwards::Close, _) => Connection::Closed,
            (_, _, Version::Http10) => Connection::KeptAloud,
            _ => Connection::Kept,
        }
    }

    fn answer_as(&mut self, conn: &mut Conn, head: &Head<'_>, body: &[u8], connection: Connection) {
        self.tally.counts.requests += 1;
        let answered = self.answer_found(head, body, connection, content_for(head));
        if !self.log.is_off() {
            self.log_request(conn, Some(head), &answered);
        }
    }

    fn answer_found(
        &mut self,
        head: &Head<'_>,
        body: &[u8],
        connection: Connection,
        content: Content,
    ) -> Answered {
        let (outbox, counts) = (&mut self.outbox, &mut self.tally.counts);
        match self.router.find(head.method, head.path(), &mut self.path) {
            Found::Handler { handler, params } => {
                let request = Request::new(head, body, &params, self.headers);
                call(handler, &request, outbox, counts, connection, content)
            }
            Found::Options { allow } => short(outbox, counts, 200, Some(allow), connection, content),
            Found::MethodMissing { allow } => short(outbox, counts, 405, Some(allow), connection, content),
            Found::NotImplemented => short(outbox, counts, 501, None, connection, content),
            Found::BadPath => short(outbox, counts, 400, None, connection, content),
            Found::Nowhere => short(outbox, counts, 404, None, connection, content),
        }
    }

    /// Refuses what cannot be a request; `used` is all of the input, for nothing after it is understood.
    #[cold]
    fn reject(&mut self, conn: &mut Conn, status: u16, used: usize) -> Step {
        self.refuse(conn, status);
        Step { used, next: Next::Close }
    }

    #[cold]
    fn refuse(&mut self, conn: &mut Conn, status: u16) {
        let counts = &mut self.tally.counts;
        counts.requests += 1;
        counts.rejects += 1;
        let answered = short(&mut self.outbox, counts, status, None, Connection::Closed, Content::Sent);
        if !self.log.is_off() {
            self.log_request(conn, None, &answered);
        }
    }

    #[inline(never)]
    fn log_request(&mut self, conn: &Conn, head: Option<&Head<'_>>, answered: &Answered) {
        let version = |head: &Head<'_>| if head.version == Version::Http10 { "HTTP/1.0" } else { "HTTP/1.1" };
        let request = head.map(|head| (head.method.as_bytes(), head.target, version(head)));
        let entry = Entry {
            peer: conn.peer,
            date: self.outbox.log_date(),
            request,
            status: answered.status,
            body_bytes: answered.body_bytes,
        };
        self.log.entry(&entry, &mut self.tally.counts);
    }

    /// In the middle of a turn, or on the worker's behalf.
    #[inline(never)]
    fn flush_early(&mut self, conn: &mut Conn, next: Next) -> Flushed {
        self.flush(conn, next)
    }

    #[inline(always)] // Once in each turn of a connection, and once above.
    fn flush(&mut self, conn: &mut Conn, next: Next) -> Flushed {
        if self.outbox.len() == 0 {
            return Flushed::All;
        }
        let flushed = self.outbox.flush(conn.socket(), &mut self.tally.counts);
        if flushed == Flushed::Blocked {
            self.keep_backlog(conn, next);
        }
        flushed
    }

    #[cold]
    fn keep_backlog(&mut self, conn: &mut Conn, next: Next) {
        let rest = conn.rest_mut();
        rest.backlog = self.outbox.take_rest();
        (rest.sent, rest.progress) = (0, 0);
        conn.afterwards = if next == Next::Close { Afterwards::Close } else { Afterwards::Serve };
    }

    #[cold]
    fn stopped(&self, conn: &Conn, used: usize) -> Digest {
        Digest { used, end: if conn.has_backlog() { End::Blocked } else { End::Broken } }
    }

    fn admitted(&self, length: u64) -> Option<usize> {
        usize::try_from(length).ok().filter(|&length| length <= self.body_bytes_max)
    }
}

#[inline]
fn content_for(head: &Head<'_>) -> Content {
    if head.method == Method::Head { Content::Omitted } else { Content::Sent }
}

#[inline]
fn next_after(connection: Connection) -> Next {
    if connection == Connection::Closed { Next::Close } else { Next::Request }
}

/// Calls a handler; one that panics costs its request a 500 and nothing else.
#[inline(always)] // Catching a panic costs nothing when there is no call around it.
fn call(
    handler: &Handler,
    request: &Request<'_>,
    outbox: &mut Outbox,
    counts: &mut Counts,
    connection: Connection,
    content: Content,
) -> Answered {
    counts.owned_heads += u64::from(request.is_owned());
    let mark = outbox.mark();
    let reply = Reply::new(outbox, counts, connection, content);
    match catch_unwind(AssertUnwindSafe(|| handler(request, reply))) {
        Ok(answered) => answered,
        Err(_) => {
            // Whatever the handler had begun to say is taken back: one request, one whole reply.
            outbox.take_back(mark);
            counts.panics += 1;
            short(outbox, counts, 500, None, connection, content)
        }
    }
}

/// How far a body came.
enum Unchunked {
    Whole { used: usize },
    NeedMore,
    Rejected { status: u16 },
}

fn feed(incoming: &mut Incoming, input: &[u8], body_bytes_max: usize) -> Unchunked {
    match &mut incoming.framing {
        Framing::Chunked(decoder) => unchunk(decoder, input, &mut incoming.body, body_bytes_max),
        Framing::Length(length) => {
            let used = input.len().min(*length - incoming.body.len());
            incoming.body.extend_from_slice(&input[..used]);
            if incoming.body.len() == *length { Unchunked::Whole { used } } else { Unchunked::NeedMore }
        }
    }
}

fn unchunk(decoder: &mut Decoder, input: &[u8], body: &mut Vec<u8>, body_bytes_max: usize) -> Unchunked {
    let mut used = 0;
    while used < input.len() {
        let rest = &input[used..];
        let chunk = match decoder.push(rest) {
            Ok(chunk) => chunk,
            Err(reject) => return Unchunked::Rejected { status: reject.status() },
        };
        let data = &rest[chunk.data];
        if decoder.announced() > body_bytes_max as u64 {
            return Unchunked::Rejected { status: 413 };
        }
        body.extend_from_slice(data);
        used += chunk.used;
        if chunk.done {
            return Unchunked::Whole { used };
        }
        if chunk.used == 0 {
            break;
        }
    }
    debug_assert_eq!(used, input.len(), "the decoder takes everything that it is given");
    Unchunked::NeedMore
}

/// A reply of the engine's own: the status in words as text, nothing for 200.
#[cold]
fn short(
    outbox: &mut Outbox,
    counts: &mut Counts,
    status: u16,
    allow: Option<&str>,
    connection: Connection,
    content: Content,
) -> Answered {
    if let Some(allow) = allow {
        for piece in ["Allow: ", allow, "\r\n"] {
            outbox.extra.extend_from_slice(piece.as_bytes());
        }
    }
    let words = if status == 200 { "" } else { encode::reason(status) };
    let plan = Plan { status, media: Some(Media::Text), connection, content };
    Answered { status, body_bytes: outbox.reply(&plan, words.as_bytes(), counts) }
}

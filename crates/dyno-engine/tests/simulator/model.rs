//! What a server of HTTP/1.1 must make of a client's bytes, written from RFC 9110, RFC 9112 and RFC 3986 alone.
//!
//! The simulator and `model_check` judge the engine by it. It is slow and obvious on purpose: it looks at the whole input
//! at once, one byte after the other, and copies what it finds. It shares nothing with what it judges: no code of the parser
//! or the engine, no type, no constant. It knows no sockets, no time and no routes.
//!
//! The RFCs leave some choices to a server. Where the tables of the parser's tests make one, the model follows: what is
//! malformed is refused with the first byte that no valid request could have, the value of a field when its line has
//! ended; lists with empty members, repeated equal lengths, folded lines and bare line feeds are refused; so are the bounds
//! of [`bounds`].
#![allow(dead_code)]

#[path = "model/authority.rs"]
mod authority;
#[path = "model/chunks.rs"]
mod chunks;
#[path = "model/fields.rs"]
mod fields;
#[path = "model/head.rs"]
mod head;
#[path = "model/reader.rs"]
mod reader;
#[path = "model/replies.rs"]
mod replies;

pub(crate) use chunks::dechunk;
#[allow(unused_imports)] // Each of its users takes a part.
pub(crate) use head::{Framing, Head, read_head};
pub(crate) use reader::{Refusal, Stop};
#[allow(unused_imports)] // As above.
pub(crate) use replies::{Reply, read_replies, read_replies_so_far};

/// Bounds that no RFC gives a number for and that nobody can set: the engine's documented ones.
pub(crate) mod bounds {
    /// Bytes of a method; RFC 9112 §3 wants 501 for longer ones than are implemented.
    pub(crate) const METHOD_BYTES_MAX: usize = 32;
    /// Empty lines before a request line (RFC 9112 §2.2: at least one).
    pub(crate) const EMPTY_LINES_MAX: usize = 2;
    /// Digits of a chunk's size, leading zeros counted.
    pub(crate) const SIZE_DIGITS_MAX: usize = 16;
    /// Bytes of one chunk's extensions, with the carriage return after them.
    pub(crate) const EXTENSION_BYTES_MAX: usize = 1_024;
    /// Bytes of frame that each chunk has for nothing.
    pub(crate) const CHUNK_ALLOWANCE: u64 = 16;
    /// How far the bytes of frames may get ahead of the allowance and twice the data (CVE-2023-39326). Whether a chunk's
    /// frame has a byte more or less is nobody's business: traffic keeps away from the very border.
    pub(crate) const OVERHEAD_BYTES_MAX: u64 = 16_384;
    /// Bytes of a trailer section; its line feeds do not count.
    pub(crate) const TRAILER_BYTES_MAX: usize = 4_096;
    /// Field lines of a trailer section.
    pub(crate) const TRAILERS_MAX: usize = 32;
}

/// What the server was told to take at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of a request line without its line end.
    pub(crate) line_bytes_max: usize,
    /// Bytes of a head with the empty lines around it.
    pub(crate) head_bytes_max: usize,
    /// Field lines of a head.
    pub(crate) headers_max: usize,
    /// Bytes of a body without its chunks' frames.
    pub(crate) body_bytes_max: usize,
}

/// The minor versions that make a difference; a later one than 1.1 is read as 1.1 (RFC 9110 §2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Version {
    /// Also what is assumed of a client whose version was not reached: it gets nothing that 1.0 does not know.
    #[default]
    Http10,
    Http11,
}

/// The methods that change how a reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Asked {
    Head,
    Connect,
    #[default]
    Other,
}

impl Asked {
    pub(crate) fn by(method: &[u8]) -> Self {
        match method {
            b"HEAD" => Self::Head,
            b"CONNECT" => Self::Connect,
            _ => Self::Other,
        }
    }
}

/// What a reader of the reply must know of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RequestKind {
    pub(crate) asked: Asked,
    pub(crate) version: Version,
    /// A 100 may come before the reply.
    pub(crate) expect_continue: bool,
}

/// What one stretch of the input means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A valid whole request: dispatched once, answered once.
    Request(Request),
    /// Refused with one of these statuses (several where the RFC leaves the choice). Nothing after it is understood; the
    /// connection closes.
    Reject {
        statuses: Vec<u16>,
        /// The bytes of the input after which it must be known.
        at_or_before: usize,
        why: &'static str,
        /// As much as was known when it was refused.
        kind: RequestKind,
        /// The request without its body, if its head was understood.
        head: Option<Box<Request>>,
    },
    /// The input ends within a request (half-close inside): no dispatch, no answer but perhaps a 100.
    Incomplete { kind: RequestKind, head: Option<Box<Request>> },
}

/// A whole request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: Vec<u8>,
    /// Path and query; of the absolute form too. `*` for OPTIONS, host and port for CONNECT.
    pub(crate) target: Vec<u8>,
    /// The host with its port: the target's if it has one, else the field's.
    pub(crate) host: Option<Vec<u8>>,
    pub(crate) version: Version,
    /// In their order, without the blanks around values, without trailers.
    pub(crate) headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) keep_alive: bool,
    /// The client may wait for a 100 before it sends the body. Before the body comes, a server may also answer for good,
    /// and then closes or takes the body as if nothing had been (RFC 9110 §10.1.1).
    pub(crate) expect_continue: bool,
    /// The offset in the input behind the head.
    pub(crate) head_ends_at: usize,
    /// The offset in the input behind the request.
    pub(crate) ends_at: usize,
}

impl Request {
    pub(crate) fn kind(&self) -> RequestKind {
        RequestKind {
            asked: Asked::by(&self.method),
            version: self.version,
            expect_continue: self.expect_continue,
        }
    }
}

/// What a whole input means: all bytes that a client will ever send, then a half-close.
pub(crate) fn understand(input: &[u8], limits: &Limits) -> Vec<Step> {
    let (mut steps, mut at) = (Vec::new(), 0);
    while has_more_than_empty_lines(&input[at..]) {
        let step = understand_one(input, at, limits);
        let goes_on_at = match &step {
            Step::Request(request) if request.keep_alive => Some(request.ends_at),
            _ => None,
        };
        steps.push(step);
        match goes_on_at {
            Some(next) => at = next,
            None => break,
        }
    }
    steps
}

/// A stray line end after the last request is not the beginning of one.
fn has_more_than_empty_lines(rest: &[u8]) -> bool {
    let lines = rest.chunks(2).take_while(|pair| pair == b"\r\n").count();
    lines > bounds::EMPTY_LINES_MAX || rest.len() > 2 * lines
}

/// The step that begins at `at`.
fn understand_one(input: &[u8], at: usize, limits: &Limits) -> Step {
    let mut kind = RequestKind::default();
    let (head, stop) = match read_head(input, at, limits, &mut kind) {
        Ok(head) => match body_of(input, &head, limits) {
            Ok((body, ends_at)) => return Step::Request(request(head, body, ends_at)),
            Err(stop) => (Some(Box::new(request(head, Vec::new(), at))), stop),
        },
        Err(stop) => (None, stop),
    };
    match stop {
        Stop::Ended => Step::Incomplete { kind, head },
        Stop::Wrong(Refusal { statuses, at, why }) => {
            Step::Reject { statuses, at_or_before: at, why, kind, head }
        }
    }
}

fn body_of(input: &[u8], head: &Head, limits: &Limits) -> Result<(Vec<u8>, usize), Stop> {
    match head.framing {
        Framing::None => Ok((Vec::new(), head.ends_at)),
        Framing::Length(bytes) => body_of_length(input, head.ends_at, bytes, limits),
        Framing::Chunked => dechunk(input, head.ends_at, limits.body_bytes_max),
    }
}

fn request(head: Head, body: Vec<u8>, ends_at: usize) -> Request {
    Request {
        method: head.method,
        target: head.target,
        host: head.host,
        version: head.version,
        headers: head.headers,
        body,
        keep_alive: head.keep_alive,
        expect_continue: head.expect_continue,
        head_ends_at: head.ends_at,
        ends_at,
    }
}

/// A body that is too long is refused before it comes.
fn body_of_length(input: &[u8], at: usize, bytes: u64, limits: &Limits) -> Result<(Vec<u8>, usize), Stop> {
    if bytes > limits.body_bytes_max as u64 {
        return Err(Stop::Wrong(Refusal { statuses: vec![413], at, why: "the body is too long" }));
    }
    let end = at + bytes as usize;
    match input.get(at..end) {
        Some(body) => Ok((body.to_vec(), end)),
        None => Err(Stop::Ended),
    }
}

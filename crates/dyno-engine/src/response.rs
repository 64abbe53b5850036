//! A reply as a value: what a handler returns. The engine makes the head, HEAD, Content-Length, chunking and Connection
//! of it, the same for every protocol.

use crate::file::FilePart;
use crate::foreign::Foreign;
use crate::later::Waited;
use crate::shared::Shared;
use dyno_proto::semantics::range::Part;
use std::sync::Arc;

/// What a handler answers, made by [`Reply`](crate::Reply).
///
/// Inline bodies and the handler's own header lines stand in the worker's buffers already; the value says how long they
/// are. It is small, so that returning it costs a few stores.
///
/// ```
/// # use dyno_engine::*;
/// fn not_here(reply: Reply<'_>) -> Response {
///     reply.status(404).text("not here\n")
/// }
/// Server::new().route(Method::Get, "/", |_request, reply| not_here(reply));
/// ```
#[derive(Debug)]
#[must_use = "a request is answered by returning its response"]
pub struct Response {
    pub(crate) status: u16,
    pub(crate) media: Media,
    pub(crate) body: Body,
}

const _: () = assert!(size_of::<Response>() <= 48, "a response is returned by value for every request");

/// A body's media type; the three common ones have their heads prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Text,
    Octets,
    /// Its name stands in the worker's scratch.
    Named,
    /// There is no content, and nothing is said of its type.
    Absent,
}

impl Media {
    /// The type as it stands in a head; empty for those that have no fixed name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Media::Json => "application/json",
            Media::Text => "text/plain",
            Media::Octets => "application/octet-stream",
            Media::Named | Media::Absent => "",
        }
    }

    /// The one that is prepared for this name, if any.
    pub(crate) fn prepared(name: &str) -> Option<Media> {
        [Media::Json, Media::Text, Media::Octets].into_iter().find(|media| media.name() == name)
    }
}

/// Where a reply's content comes from.
pub(crate) enum Body {
    /// `Content-Length: 0`.
    Empty,
    /// In the worker's buffer, behind `head` bytes of a head that was predicted.
    Inline { head: usize, body: usize },
    /// A whole reply in the worker's buffer, `head` bytes of which are its head: made by who knows how replies look.
    Whole { head: usize, body: usize },
    /// In the program; never copied.
    Static(&'static [u8]),
    /// In memory that others use as well; never copied.
    Shared(Shared),
    /// Of a file.
    File(FilePart),
    /// Of a table, with its header lines.
    Prepared { site: u16, variant: u32, portion: Portion },
    /// Made piece by piece, as the peer takes it.
    Stream(Box<Streamed>),
    /// Not known yet.
    Later(Box<Promised>),
}

/// How much of a prepared variant is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Portion {
    Whole,
    Part(Part),
    /// Those that stand in the worker's scratch.
    Parts,
    /// Nothing: the client has it.
    Unchanged,
    /// All of it, as the words for a status: without what is said of a file that was asked for.
    Page,
}

/// A body that is made piece by piece.
pub(crate) struct Streamed {
    pub(crate) source: Foreign<Box<dyn Source>>,
    pub(crate) serial: u32,
    /// Its length, when it is known before.
    pub(crate) length: Option<u64>,
}

/// A reply that somebody owes.
pub(crate) struct Promised {
    pub(crate) serial: u32,
    /// Whether the answer is waited for.
    pub(crate) waited: Arc<Waited>,
    /// How long it is waited for, in nanoseconds.
    pub(crate) wait_ns: u64,
}

impl std::fmt::Debug for Body {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Body::Empty => out.write_str("Empty"),
            Body::Inline { head, body } => write!(out, "Inline({head} + {body} bytes)"),
            Body::Whole { head, body } => write!(out, "Whole({head} + {body} bytes)"),
            Body::Static(bytes) => write!(out, "Static({} bytes)", bytes.len()),
            Body::Shared(shared) => write!(out, "{shared:?}"),
            Body::File(file) => write!(out, "File({} bytes)", file.length),
            Body::Prepared { site, variant, portion } => {
                write!(out, "Prepared({site}.{variant} {portion:?})")
            }
            Body::Stream(streamed) => write!(out, "Stream({:?} bytes)", streamed.length),
            Body::Later(promised) => write!(out, "Later({})", promised.serial),
        }
    }
}

/// What a source did when it was asked for more.
///
/// ```
/// # use dyno_engine::*;
/// let mut left = 3;
/// let mut source = move |out: &mut Vec<u8>| {
///     out.extend_from_slice(b"tick\n");
///     left -= 1;
///     if left > 0 { Filled::More } else { Filled::End }
/// };
/// assert_eq!(source.fill(&mut Vec::new()), Filled::More);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// It appended something and has more.
    More,
    /// It has nothing now (what it appended is sent) and will wake its [`Waker`] when it has.
    Wait,
    /// That was all.
    End,
    /// It cannot go on: the connection is closed in the middle of the body, so that the client knows.
    Broken,
}

/// A body made piece by piece. It lives on its worker's thread and must not block; what takes time happens elsewhere and
/// wakes it.
///
/// ```
/// # use dyno_engine::*;
/// struct Countdown(u32);
///
/// impl Source for Countdown {
///     fn fill(&mut self, out: &mut Vec<u8>) -> Filled {
///         out.extend_from_slice(format!("{}\n", self.0).as_bytes());
///         self.0 -= 1;
///         if self.0 > 0 { Filled::More } else { Filled::End }
///     }
/// }
/// Server::new().route(Method::Get, "/", |_request, reply| reply.stream("text/plain", |_waker| Countdown(10)));
/// ```
pub trait Source: Send {
    /// Appends more of the body to `out`, some kilobytes at a time: a piece waits in memory until the peer has taken it,
    /// and the source is asked for the next one only then.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let mut source = |out: &mut Vec<u8>| {
    ///     out.extend_from_slice(b"all of it");
    ///     Filled::End
    /// };
    /// let mut out = Vec::new();
    /// assert_eq!((source.fill(&mut out), out.len()), (Filled::End, 9));
    /// ```
    fn fill(&mut self, out: &mut Vec<u8>) -> Filled;
}

impl<F: FnMut(&mut Vec<u8>) -> Filled + Send> Source for F {
    fn fill(&mut self, out: &mut Vec<u8>) -> Filled {
        self(out)
    }
}

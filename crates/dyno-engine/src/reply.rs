//! A reply in the making. A handler gets one, and the type lets it be answered exactly once.

use crate::field::{OWN_BYTES_MAX, is_settable, is_value};
use crate::file::FilePart;
use crate::foreign::Foreign;
use crate::later::Responder;
use crate::mailbox::Waker;
use crate::response::{Body, Media, Promised, Response, Source, Streamed};
use crate::scratch::Scratch;
use crate::shared::Shared;
use dyno_proto::json::Encode;
use std::sync::Arc;

/// A reply in the making: status and headers first, then one of the bodies, which finishes it.
///
/// ```
/// # use dyno_engine::*;
/// Server::new().route(Method::Get, "/", |_request, reply| reply.status(202).header("X-Own", "1").text("taken\n"));
/// ```
#[must_use = "a request is answered by finishing its reply"]
pub struct Reply<'w> {
    scratch: &'w mut Scratch,
    status: u16,
    is_refused: bool,
}

impl<'w> Reply<'w> {
    #[inline]
    pub(crate) fn new(scratch: &'w mut Scratch) -> Reply<'w> {
        Reply { scratch, status: 200, is_refused: false }
    }

    /// Sets the status; 200 unless told otherwise. A number outside 200..=599 turns the reply into a 500.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |_request, reply| reply.status(404).text("not here\n"));
    /// ```
    pub fn status(mut self, status: u16) -> Reply<'w> {
        self.is_refused |= !(200..=599).contains(&status);
        self.status = status;
        self
    }

    /// Adds a header. A name that is no token, a value with a control character (CR and LF above all), a header that
    /// the engine writes itself, and more than 32 KiB of headers turn the reply into a 500.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |_request, reply| reply.header("Cache-Control", "no-store").empty());
    /// ```
    pub fn header(mut self, name: &str, value: &str) -> Reply<'w> {
        let fields = &mut self.scratch.own_fields;
        if fields.len() + name.len() + value.len() > OWN_BYTES_MAX || !is_settable(name) || !is_value(value) {
            self.is_refused = true;
            return self;
        }
        for piece in [name, ": ", value, "\r\n"] {
            fields.extend_from_slice(piece.as_bytes());
        }
        self
    }

    /// Finishes with a JSON body, encoded straight into the send buffer.
    ///
    /// The head goes in with the length of the last such reply and is corrected if this body has another one: that is
    /// cheaper than asking the encoder first, and what is told is always the length that was written.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |_request, reply| reply.json(&vec![1, 2, 3]));
    /// ```
    #[inline]
    pub fn json(self, value: &impl Encode) -> Response {
        if self.is_refused {
            return self.refuse();
        }
        let Scratch { out, heads, .. } = self.scratch;
        let start = out.mark();
        heads.json.copy_to(out.bytes());
        let head = out.since(start);
        value.json_write(out.bytes());
        let body = Body::Inline { head, body: out.since(start) - head };
        Response { status: self.status, media: Media::Json, body }
    }

    /// Finishes with what a writer appends to the send buffer; `false` takes it back and turns the reply into a 500.
    pub(crate) fn written(
        mut self,
        content_type: &str,
        write: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> Response {
        let media = self.media(content_type);
        if self.is_refused {
            return self.refuse();
        }
        let Scratch { out, heads, .. } = &mut *self.scratch;
        let start = out.mark();
        if let Some(ready) = heads.ready(media) {
            ready.copy_to(out.bytes());
        }
        let head = out.since(start);
        if !write(out.bytes()) {
            out.take_back(start);
            return self.refuse();
        }
        let body = Body::Inline { head, body: out.since(start) - head };
        Response { status: self.status, media, body }
    }

    /// Finishes with a text body (`text/plain`).
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |_request, reply| reply.text("Hello!\n"));
    /// ```
    #[inline]
    pub fn text(self, text: &str) -> Response {
        self.inline(Media::Text, text.as_bytes())
    }

    /// Finishes with a copy of any bytes. A content type that could not stand in a header turns the reply into a 500.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |_request, reply| reply.bytes("image/gif", b"GIF89a"));
    /// ```
    pub fn bytes(mut self, content_type: &str, body: &[u8]) -> Response {
        let media = self.media(content_type);
        self.inline(media, body)
    }

    /// Finishes with bytes of the program, which are not copied.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |_request, reply| reply.fixed("text/html", b"<h1>home</h1>"));
    /// ```
    pub fn fixed(self, content_type: &str, body: &'static [u8]) -> Response {
        self.with(content_type, Body::Static(body))
    }

    /// Finishes with bytes that are shared, not copied.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let page = Shared::from("a page that many replies share");
    /// Server::new().route(Method::Get, "/", move |_request, reply| reply.shared("text/plain", page.clone()));
    /// ```
    pub fn shared(self, content_type: &str, body: Shared) -> Response {
        self.with(content_type, Body::Shared(body))
    }

    /// Finishes with a part of a file, which is read piece by piece as the client takes it.
    ///
    /// ```no_run
    /// # use dyno_engine::*;
    /// let movie = FilePart::whole(std::fs::File::open("movie.mp4")?)?;
    /// Server::new().route(Method::Get, "/", move |_request, reply| reply.file("video/mp4", movie.clone()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn file(self, content_type: &str, file: FilePart) -> Response {
        self.with(content_type, Body::File(file))
    }

    /// Finishes without a body: `Content-Length: 0`, or no such header where the status forbids one (204, 304).
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |_request, reply| reply.status(204).empty());
    /// ```
    pub fn empty(self) -> Response {
        if self.is_refused {
            return self.refuse();
        }
        Response { status: self.status, media: Media::Text, body: Body::Empty }
    }

    /// Finishes with a body that is made piece by piece, as the client takes it: chunked, or up to the close for
    /// HTTP/1.0. `make` gets the waker with which a source that had nothing says that it has something again.
    ///
    /// Where too many requests are outstanding already the reply is a 503 and `make` is not called.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/count", |_request, reply| reply.stream("text/plain", |_waker| {
    ///     let mut number = 0;
    ///     move |out: &mut Vec<u8>| {
    ///         number += 1;
    ///         out.extend_from_slice(format!("{number}\n").as_bytes());
    ///         if number < 1_000 { Filled::More } else { Filled::End }
    ///     }
    /// }));
    /// ```
    pub fn stream<S: Source + 'static>(self, content_type: &str, make: impl FnOnce(Waker) -> S) -> Response {
        self.stream_of(content_type, None, make)
    }

    /// The same for a body whose length is known: Content-Length tells it, and a source that gives more or less breaks
    /// the connection.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/zeros", |_request, reply| {
    ///     reply.stream_sized("application/octet-stream", 4_096, |_waker| |out: &mut Vec<u8>| {
    ///         out.resize(4_096, 0);
    ///         Filled::End
    ///     })
    /// });
    /// ```
    pub fn stream_sized<S: Source + 'static>(
        self,
        content_type: &str,
        length: u64,
        make: impl FnOnce(Waker) -> S,
    ) -> Response {
        self.stream_of(content_type, Some(length), make)
    }

    fn stream_of<S: Source + 'static>(
        self,
        content_type: &str,
        length: Option<u64>,
        make: impl FnOnce(Waker) -> S,
    ) -> Response {
        let Some(address) = self.scratch.owing.reserve() else { return self.overloaded() };
        let waker = Waker::new(Arc::clone(&self.scratch.owing.mailbox), address);
        let streamed =
            Streamed { source: Foreign::new(Box::new(make(waker))), serial: address.serial, length };
        self.with(content_type, Body::Stream(Box::new(streamed)))
    }

    /// Leaves the answer to whoever gets the [`Responder`], from any thread: it is waited for as long as
    /// [`Limits::later_ns`](crate::Limits::later_ns) says, then the client is told 504.
    ///
    /// Take out of the request what the answer needs, as owned data. Status and headers set before are dropped: the
    /// answer has its own. Where too many requests are outstanding already the reply is a 503 and `hand_over` is not
    /// called.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |_request, reply| reply.later(|responder| {
    ///     std::thread::spawn(move || responder.answer(Answer::text("done\n")));
    /// }));
    /// ```
    pub fn later(self, hand_over: impl FnOnce(Responder)) -> Response {
        let wait_ns = self.scratch.owing.wait_ns;
        self.later_within(wait_ns, hand_over)
    }

    /// The same with a deadline of its own, in nanoseconds.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |_request, reply| {
    ///     // Half a second, then 504.
    ///     reply.later_within(500_000_000, |responder| {
    ///         std::thread::spawn(move || responder.answer(Answer::text("done\n")));
    ///     })
    /// });
    /// ```
    pub fn later_within(self, wait_ns: u64, hand_over: impl FnOnce(Responder)) -> Response {
        let owing = &mut self.scratch.owing;
        let Some(address) = owing.reserve() else { return self.overloaded() };
        let waited = Arc::default();
        let promised = Promised { serial: address.serial, waited: Arc::clone(&waited), wait_ns };
        hand_over(Responder::new(Arc::clone(&owing.mailbox), address, waited));
        self.scratch.own_fields.clear();
        Response { status: 200, media: Media::Absent, body: Body::Later(Box::new(promised)) }
    }

    /// Takes a whole reply as it stands, head and all, from a handler that makes replies in a way of its own. The head
    /// must be what the engine would have said: only handlers of this crate may.
    pub(crate) fn whole(self, head: &[u8], body: &[u8]) -> Response {
        let bytes = self.scratch.out.bytes();
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(body);
        let body = Body::Whole { head: head.len(), body: body.len() };
        Response { status: self.status, media: Media::Absent, body }
    }

    /// The Connection header that a reply made by another's hand must have.
    pub(crate) fn connection_header(&self) -> Option<&'static str> {
        self.scratch.asked.connection.option()
    }

    /// What handlers of this crate count, and whose date they may format anew.
    pub(crate) fn scratch(&mut self) -> &mut Scratch {
        self.scratch
    }

    #[inline]
    fn inline(self, media: Media, bytes: &[u8]) -> Response {
        if self.is_refused {
            return self.refuse();
        }
        let Scratch { out, heads, .. } = self.scratch;
        let start = out.mark();
        if let Some(ready) = heads.ready(media) {
            ready.with_length(bytes.len()).copy_to(out.bytes());
        }
        let head = out.since(start);
        out.bytes().extend_from_slice(bytes);
        Response { status: self.status, media, body: Body::Inline { head, body: bytes.len() } }
    }

    fn with(mut self, content_type: &str, body: Body) -> Response {
        let media = self.media(content_type);
        if self.is_refused {
            return self.refuse();
        }
        Response { status: self.status, media, body }
    }

    /// Notes a content type. One that could not stand in a head refuses the reply.
    fn media(&mut self, name: &str) -> Media {
        if let Some(media) = Media::prepared(name) {
            return media;
        }
        self.is_refused |= name.is_empty() || !is_value(name);
        self.scratch.media_name.clear();
        self.scratch.media_name.push_str(name);
        Media::Named
    }

    #[cold]
    fn refuse(mut self) -> Response {
        self.scratch.own_fields.clear();
        (self.is_refused, self.status) = (false, 500);
        self.inline(Media::Text, b"the handler's reply could not be sent\n")
    }

    #[cold]
    fn overloaded(mut self) -> Response {
        self.scratch.own_fields.clear();
        (self.is_refused, self.status) = (false, 503);
        self.inline(Media::Text, b"too many requests are outstanding\n")
    }
}

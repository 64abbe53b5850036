//! A reply in the making. A handler gets one, and the type lets it be answered exactly once.

use crate::outbox::{Connection, Content, Media, Outbox, Plan};
use crate::stats::Counts;
use dyno_proto::json::Encode;
use serde::Serialize;

/// Bytes that one reply's own header lines may take together: the head that we would accept ourselves.
const EXTRA_BYTES_MAX: usize = 32 << 10;

/// Headers that frame the reply or that the engine writes itself; a handler cannot set them.
const OWN_HEADERS: [&str; 8] = [
    "connection",
    "content-length",
    "content-type",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "upgrade",
];

/// A reply in the making: status and headers first, then one of the bodies, which finishes it.
#[must_use = "a request is answered by finishing its reply"]
pub struct Reply<'w> {
    outbox: &'w mut Outbox,
    counts: &'w mut Counts,
    connection: Connection,
    content: Content,
    status: u16,
    refused: bool,
    /// Nothing asks for another head than the one that is ready: 200, kept alive, a body, no header, no such dial.
    is_plain: bool,
}

/// The proof that a request was answered.
#[derive(Debug)]
pub struct Answered {
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
}

impl<'w> Reply<'w> {
    #[inline]
    pub(crate) fn new(
        outbox: &'w mut Outbox,
        counts: &'w mut Counts,
        connection: Connection,
        content: Content,
    ) -> Reply<'w> {
        let is_plain = connection == Connection::Kept && content == Content::Sent && outbox.is_short();
        Reply { outbox, counts, connection, content, status: 200, refused: false, is_plain }
    }

    /// Sets the status; 200 unless told otherwise. A number outside 200..=599 turns the reply into a 500.
    pub fn status(mut self, status: u16) -> Reply<'w> {
        self.refused |= !(200..=599).contains(&status);
        self.is_plain &= status == 200;
        self.status = status;
        self
    }

    /// Adds a header. A name that is no token, a value with a control character (CR and LF above all), a header that
    /// the engine writes itself, and more than 32 KiB of headers turn the reply into a 500.
    pub fn header(mut self, name: &str, value: &str) -> Reply<'w> {
        self.is_plain = false;
        let extra = &mut self.outbox.extra;
        if extra.len() + name.len() + value.len() > EXTRA_BYTES_MAX || !is_settable(name) || !is_value(value)
        {
            self.refused = true;
            return self;
        }
        for piece in [name, ": ", value, "\r\n"] {
            extra.extend_from_slice(piece.as_bytes());
        }
        self
    }

    /// Finishes with a JSON body, encoded straight into the send buffer.
    #[inline]
    pub fn json(self, value: &impl Encode) -> Answered {
        if self.is_plain {
            return Answered { status: 200, body_bytes: self.outbox.reply_json_plain(value) };
        }
        self.json_in_full(value)
    }

    #[inline(never)]
    fn json_in_full(self, value: &impl Encode) -> Answered {
        if self.refused {
            return self.refuse();
        }
        let plan = self.plan(Media::Json);
        let body_bytes = self.outbox.reply_json(&plan, value, self.counts);
        Answered { status: plan.status, body_bytes }
    }

    /// Like `json`, by serde when the dials ask for a first version's way.
    #[inline]
    pub(crate) fn json_either<T: Encode + Serialize>(self, value: &T) -> Answered {
        if self.is_plain {
            return Answered { status: 200, body_bytes: self.outbox.reply_json_plain(value) };
        }
        self.json_either_in_full(value)
    }

    #[inline(never)]
    fn json_either_in_full<T: Encode + Serialize>(self, value: &T) -> Answered {
        if !self.outbox.is_generic() {
            return self.json_in_full(value);
        }
        match serde_json::to_string(value) {
            Ok(text) => self.finish(Media::Json, text.as_bytes()),
            Err(_) => self.refuse(),
        }
    }

    /// Finishes with a text body (`text/plain`).
    #[inline]
    pub fn text(self, text: &str) -> Answered {
        self.finish(Media::Text, text.as_bytes())
    }

    /// Finishes with any body. A content type that could not stand in a header turns the reply into a 500.
    pub fn bytes(mut self, content_type: &str, body: &[u8]) -> Answered {
        if content_type.is_empty() || !is_value(content_type) {
            (self.refused, self.is_plain) = (true, false);
        }
        self.finish(Media::of(content_type), body)
    }

    /// Finishes without a body: `Content-Length: 0`, or no such header where the status forbids one (204, 304).
    pub fn empty(self) -> Answered {
        self.finish(Media::Text, b"")
    }

    #[inline]
    fn finish(self, media: Media<'_>, body: &[u8]) -> Answered {
        if self.is_plain
            && let Some(body_bytes) = self.outbox.reply_plain(media, body)
        {
            return Answered { status: 200, body_bytes };
        }
        self.finish_in_full(media, body)
    }

    #[inline(never)]
    fn finish_in_full(self, media: Media<'_>, body: &[u8]) -> Answered {
        if self.refused {
            return self.refuse();
        }
        let plan = self.plan(media);
        let body_bytes = self.outbox.reply(&plan, body, self.counts);
        Answered { status: plan.status, body_bytes }
    }

    #[inline]
    fn plan<'m>(&self, media: Media<'m>) -> Plan<'m> {
        // RFC 9110 §15.3.5 and §15.4.5: these two have no content, and 204 no Content-Length either.
        let media = (self.status != 204 && self.status != 304).then_some(media);
        Plan { status: self.status, media, connection: self.connection, content: self.content }
    }

    #[cold]
    fn refuse(mut self) -> Answered {
        self.outbox.extra.clear();
        self.refused = false;
        self.status = 500;
        self.finish_in_full(Media::Text, b"the handler's reply could not be sent\n")
    }
}

fn is_settable(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty()
        && name.bytes().all(token)
        && !OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Field values are visible, spaces or tabs (RFC 9110 §5.5); blanks at the ends would not survive a parser.
fn is_value(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)) && value.trim_ascii() == value
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::dials::Dials;

    fn reply(answer: impl FnOnce(Reply<'_>) -> Answered) -> (Answered, String) {
        let mut outbox = Outbox::new(&Dials::for_workers(std::num::NonZeroU32::MIN));
        let mut counts = Counts::default();
        let answered = answer(Reply::new(&mut outbox, &mut counts, Connection::Kept, Content::Sent));
        (answered, String::from_utf8(outbox.take_rest()).unwrap())
    }

    #[test]
    fn a_header_stands_between_the_length_and_the_body() {
        let (answered, text) = reply(|reply| reply.status(201).header("X-Seen", "yes").text("made"));
        assert!(text.starts_with("HTTP/1.1 201 Created\r\n"), "{text}");
        assert!(text.ends_with("Content-Length: 4\r\nX-Seen: yes\r\n\r\nmade"), "{text}");
        assert_eq!((answered.status, answered.body_bytes), (201, 4));
    }

    #[test]
    fn what_would_forge_or_break_a_head_becomes_a_500() {
        for (name, value) in [
            ("X", "a\r\nSet-Cookie: b"),
            ("X", "a\nb"),
            ("X", "\0"),
            ("X", " a"),
            ("X Y", "a"),
            ("", "a"),
            ("X:", "a"),
            ("Content-Length", "0"),
            ("transfer-encoding", "chunked"),
        ] {
            let (answered, text) =
                reply(|reply| reply.header("X-Before", "1").header(name, value).text("fine"));
            assert_eq!(answered.status, 500, "{name:?}: {value:?}");
            assert!(text.starts_with("HTTP/1.1 500 ") && !text.contains("X-Before"), "{text}");
        }
        assert_eq!(reply(|reply| reply.status(100).empty()).0.status, 500);
        assert_eq!(reply(|reply| reply.bytes("text/html\r\nX: y", b"")).0.status, 500);
        let large = "x".repeat(EXTRA_BYTES_MAX);
        assert_eq!(reply(|reply| reply.header("X", &large).text("")).0.status, 500);
    }

    #[test]
    fn a_status_without_content_has_no_length() {
        let (answered, text) = reply(|reply| reply.status(204).text("dropped"));
        assert!(!text.contains("Content-") && text.ends_with("GMT\r\n\r\n"), "{text}");
        assert_eq!(answered.body_bytes, 0);
    }
}

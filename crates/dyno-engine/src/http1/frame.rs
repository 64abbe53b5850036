//! Framing: from a response to the bytes of an HTTP/1.1 reply. HEAD, Content-Length, chunking and Connection are made
//! here and nowhere else.

use super::prepared;
use crate::asked::{Asked, Chunks, Connection, Content, has_content};
use crate::conn::{Owed, OwedWhat, StreamFraming};
use crate::fault::{Fault, planted};
use crate::response::{Body, Media, Promised, Response, Streamed};
use crate::scratch::Scratch;
use crate::segment::Piece;
use dyno_proto::http1::encode;

/// What was answered, as the access log tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) head_bytes: u64,
    pub(super) body_bytes: u64,
}

/// What was answered by a reply that was owed.
pub(super) fn answered(owed: &Owed) -> Answered {
    Answered { status: owed.status, head_bytes: owed.head_bytes, body_bytes: owed.body_bytes }
}

/// What became of a response.
pub(super) enum Framed {
    /// The whole reply is in the outbox.
    Whole(Answered),
    /// It, or the rest of it, is owed.
    Owed(Box<FramedOwed>),
}

/// What is owed, and for how long it may be.
pub(super) struct FramedOwed {
    pub(super) owed: Owed,
    pub(super) wait_ns: Option<u64>,
}

/// How the end of a reply's content is told.
#[derive(Clone, Copy)]
enum Length {
    Known(u64),
    Chunked,
    /// By the close, which the Connection header announces.
    Close,
    /// There is no content, and nothing is said of it (204, 304).
    Absent,
}

/// Whether the reply is whole: an inline body stands in the outbox behind the head that was predicted for it, and when
/// the prediction holds nothing is left to do. Such a reply is 200 and keeps its connection.
#[inline]
pub(super) fn is_predicted(scratch: &Scratch, asked: Asked, response: &Response) -> bool {
    matches!(response.body, Body::Inline { head, body }
        if is_plain(scratch, asked, response.status) && scratch.heads.tells(response.media, head, body))
}

/// Puts the reply into the outbox.
pub(super) fn frame(scratch: &mut Scratch, asked: Asked, response: Response, splits: bool) -> Framed {
    let Response { status, media, body } = response;
    // Of a reply that comes later they are said when it comes.
    let is_forgotten = planted(Fault::LinesForgotten) && matches!(body, Body::Prepared { .. });
    if !matches!(body, Body::Later(_)) && !is_forgotten {
        scratch.put_host_lines();
    }
    let mut head_bytes = 0;
    let body_bytes = match body {
        Body::Empty => {
            compose(scratch, status, media, length_of(status, 0), asked.connection);
            put_head(scratch, 0, splits);
            0
        }
        Body::Inline { head, body } if head > 0 && is_plain(scratch, asked, status) && !splits => {
            head_bytes = correct(scratch, media, head, body);
            body as u64
        }
        Body::Inline { head, body } => {
            compose(scratch, status, media, length_of(status, body as u64), asked.connection);
            put_head(scratch, head, false);
            let composed = scratch.head.len();
            cut_inline(scratch, asked, status, composed, body, splits)
        }
        Body::Whole { head, body } => {
            head_bytes = head;
            cut_inline(scratch, asked, status, head, body, splits)
        }
        Body::Static(bytes) => {
            let length = bytes.len() as u64;
            put_piece(scratch, asked, (status, media), length, Piece::Static(bytes), splits)
        }
        Body::Shared(shared) => {
            let length = shared.len() as u64;
            put_piece(scratch, asked, (status, media), length, Piece::Shared(shared), splits)
        }
        Body::File(file) => {
            let length = file.length;
            put_piece(scratch, asked, (status, media), length, Piece::File(file), splits)
        }
        Body::Prepared { site, variant, portion } => {
            let (head, body) = prepared::put(scratch, asked, status, (site, variant), portion, splits);
            head_bytes = head;
            body
        }
        Body::Stream(streamed) => return begin_stream(scratch, asked, status, media, *streamed, splits),
        Body::Later(promised) => return promise(asked, *promised),
    };
    scratch.own_fields.clear();
    // What was put together in the scratch is the head of all others.
    let head_bytes = if head_bytes == 0 { scratch.head.len() } else { head_bytes } as u64;
    Framed::Whole(Answered { status, head_bytes, body_bytes })
}

/// 204 has no Content-Length either (RFC 9110 §8.6).
fn length_of(status: u16, bytes: u64) -> Length {
    if has_content(status) { Length::Known(bytes) } else { Length::Absent }
}

/// An inline body behind a head of `head` bytes: cut off where it must not be sent.
fn cut_inline(
    scratch: &mut Scratch,
    asked: Asked,
    status: u16,
    head: usize,
    body: usize,
    splits: bool,
) -> u64 {
    let mark = scratch.mark;
    debug_assert_eq!(scratch.out.since(mark), head + body, "a reply is its head and its body");
    let sent = if asked.is_sent(status) { body } else { 0 };
    scratch.out.truncate(mark, head + sent);
    if splits {
        scratch.out.cut(mark, head);
        if sent > 0 {
            scratch.out.cut(mark, head + sent);
        }
    }
    sent as u64
}

fn put_piece(
    scratch: &mut Scratch,
    asked: Asked,
    (status, media): (u16, Media),
    length: u64,
    piece: Piece,
    splits: bool,
) -> u64 {
    compose(scratch, status, media, length_of(status, length), asked.connection);
    put_head(scratch, 0, splits);
    if !asked.is_sent(status) {
        return 0;
    }
    scratch.out.push(piece);
    length
}

/// Whether a head that is ready says all that must be said.
#[inline]
fn is_plain(scratch: &Scratch, asked: Asked, status: u16) -> bool {
    status == 200
        && (asked.connection, asked.content) == (Connection::Kept, Content::Sent)
        && scratch.own_fields.is_empty()
}

/// The body has another length than its head says. The next prediction is this length.
fn correct(scratch: &mut Scratch, media: Media, head: usize, body: usize) -> usize {
    let Scratch { out, heads, mark, .. } = scratch;
    let ready = heads.ready(media).expect("a head was predicted, so there is one");
    let right = ready.with_length(body).as_bytes();
    out.replace_head(*mark, head, right);
    right.len()
}

/// Puts the composed head in the place of the predicted one.
fn put_head(scratch: &mut Scratch, predicted: usize, splits: bool) {
    let mark = scratch.mark;
    scratch.out.replace_head(mark, predicted, &scratch.head);
    if splits {
        scratch.out.cut(mark, scratch.head.len());
    }
}

fn begin_stream(
    scratch: &mut Scratch,
    mut asked: Asked,
    status: u16,
    media: Media,
    streamed: Streamed,
    splits: bool,
) -> Framed {
    let (length, framing) = match (streamed.length, asked.chunks) {
        (Some(bytes), _) => (Length::Known(bytes), StreamFraming::Length(bytes)),
        (None, Chunks::Known) => (Length::Chunked, StreamFraming::Chunked),
        (None, Chunks::Unknown) => (Length::Close, StreamFraming::Close),
    };
    let length = if has_content(status) { length } else { Length::Absent };
    if framing == StreamFraming::Close && asked.is_sent(status) {
        asked.connection = Connection::Closed;
    }
    compose(scratch, status, media, length, asked.connection);
    put_head(scratch, 0, splits);
    scratch.own_fields.clear();
    let head_bytes = scratch.head.len() as u64;
    if !asked.is_sent(status) {
        return Framed::Whole(Answered { status, head_bytes, body_bytes: 0 });
    }
    let Streamed { source, serial, .. } = streamed;
    let what = OwedWhat::Stream { source, framing, is_waiting: false };
    let owed = Owed { serial, asked, what, line: None, is_told: false, status, head_bytes, body_bytes: 0 };
    Framed::Owed(Box::new(FramedOwed { owed, wait_ns: None }))
}

fn promise(asked: Asked, promised: Promised) -> Framed {
    let what = OwedWhat::Answer { waited: promised.waited };
    let serial = promised.serial;
    let owed =
        Owed { serial, asked, what, line: None, is_told: false, status: 0, head_bytes: 0, body_bytes: 0 };
    Framed::Owed(Box::new(FramedOwed { owed, wait_ns: Some(promised.wait_ns) }))
}

/// Puts a head together in the scratch.
fn compose(scratch: &mut Scratch, status: u16, media: Media, length: Length, connection: Connection) {
    let Scratch { head, heads, own_fields, media_name, .. } = scratch;
    head.clear();
    encode::reply_start(head, status);
    field(head, "Server", b"dyno");
    field(head, "Date", &heads.date);
    let name = if media == Media::Named { media_name.as_bytes() } else { media.name().as_bytes() };
    if !name.is_empty() && !matches!(length, Length::Absent) {
        field(head, "Content-Type", name);
    }
    match length {
        Length::Known(bytes) => encode::content_length(head, bytes),
        Length::Chunked => field(head, "Transfer-Encoding", b"chunked"),
        Length::Close | Length::Absent => {}
    }
    head.extend_from_slice(own_fields);
    if let Some(option) = connection.option() {
        field(head, "Connection", option.as_bytes());
    }
    encode::head_end(head);
}

fn field(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
        head.extend_from_slice(piece);
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;

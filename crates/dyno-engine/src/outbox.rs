//! The outbox: the send buffer that all connections of a worker share, and the making of replies in it.
//!
//! Handlers reach it through `Reply`, the exchange flushes it once per turn of a connection (or after every reply,
//! when a dial says so). What the socket refuses stays in the outbox until the connection takes it away. It never
//! allocates per reply once its buffers have grown, unless `body = generic` asks for exactly that.

mod heads;

pub(crate) use heads::Media;

use crate::dials::{Body, Calls, Date, Dials, Send};
use crate::stats::Counts;
use dyno_proto::http1::encode;
use dyno_proto::json::Encode;
use dyno_sys::clock;
use dyno_sys::socket::{self, Io};
use heads::{Heads, LOG_DATE_BYTES};
use std::os::fd::BorrowedFd;

/// Replies that have gathered this many bytes leave before more requests are read from the receive buffer:
/// as much as a default send buffer grows to without tuning (net.ipv4.tcp_wmem, 16 kB to 4 MB).
pub(crate) const OUTBOX_BYTES_FLUSH: usize = 256 << 10;

/// An outbox that one large reply has blown up beyond this gives the memory back.
const OUTBOX_BYTES_KEEP: usize = 1 << 20;

/// The Date is at most this stale: a quarter of a second past the turn of the second.
const DATE_NS: u64 = 250_000_000;

/// What the Connection header of a reply says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connection {
    /// Nothing: HTTP/1.1 keeps the connection.
    Kept,
    /// `keep-alive`, which an HTTP/1.0 client must be told.
    KeptAloud,
    /// `close`: this reply is the last one.
    Closed,
}

/// Whether the body's bytes follow the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Head and body.
    Sent,
    /// The head only, as an answer to HEAD (RFC 9110 §9.3.2).
    Omitted,
}

/// Everything of a reply but its body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'m> {
    pub(crate) status: u16,
    /// `None` for a reply without content, such as 204.
    pub(crate) media: Option<Media<'m>>,
    pub(crate) connection: Connection,
    pub(crate) content: Content,
}

/// A place in the outbox to which it can be taken back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    bytes: usize,
    cuts: usize,
}

/// How a flush ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Everything was taken and the outbox is empty.
    All,
    /// The socket is full; the rest is in the outbox.
    Blocked,
    /// The connection is broken.
    Broken,
}

/// The shared send buffer.
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
    /// Where one send must end and another begin (`send = split`); empty otherwise.
    cuts: Vec<usize>,
    /// Header lines that the handler added to the reply in the making.
    pub(crate) extra: Vec<u8>,
    /// Where a body is encoded whose head is not ready.
    scratch: Vec<u8>,
    heads: Heads,
    send: Send,
    calls: Calls,
    body: Body,
    date: Date,
    /// No dial asks for another way of making replies than the shortest.
    is_short: bool,
}

impl Outbox {
    pub(crate) fn new(dials: &Dials) -> Outbox {
        Outbox {
            bytes: Vec::with_capacity(OUTBOX_BYTES_FLUSH),
            sent: 0,
            cuts: Vec::new(),
            extra: Vec::new(),
            scratch: Vec::new(),
            heads: Heads::new(),
            send: dials.send,
            calls: dials.calls,
            body: dials.body,
            date: dials.date,
            is_short: dials.body == Body::Outbox && dials.date == Date::Second && dials.send == Send::Joined,
        }
    }

    /// Formats the date when it may have changed; called once per loop turn.
    #[inline]
    pub(crate) fn turn(&mut self, now_ns: u64, counts: &mut Counts) {
        if self.date == Date::Second && now_ns >= self.heads.stale_ns {
            self.heads.stale_ns = now_ns + DATE_NS;
            let unix_s = clock::real_coarse_s();
            if unix_s != self.heads.unix_s {
                self.heads.stamp(unix_s);
                counts.dates_formatted += 1;
            }
        }
    }

    /// The date as the access log writes it: `21/Nov/2026:01:37:58 +0000`.
    pub(crate) fn log_date(&self) -> &[u8; LOG_DATE_BYTES] {
        &self.heads.log_date
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), cuts: self.cuts.len() }
    }

    /// Forgets what was added since the mark; only before a flush.
    pub(crate) fn take_back(&mut self, mark: Mark) {
        debug_assert!(mark.bytes >= self.sent, "sent bytes cannot be taken back");
        self.bytes.truncate(mark.bytes);
        self.cuts.truncate(mark.cuts);
        self.extra.clear();
    }

    /// Whether replies are put together the slow way.
    pub(crate) fn is_generic(&self) -> bool {
        self.body == Body::Generic
    }

    /// Adds an interim reply, `100 Continue`, which has no fields.
    pub(crate) fn interim(&mut self) {
        self.bytes.extend_from_slice(encode::CONTINUE);
        self.cut();
    }

    /// Whether plain replies can go the short way, by `reply_plain` and `reply_json_plain`.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Adds a plain reply - 200, kept alive, with its body and no header of its own - by the short way.
    #[inline]
    pub(crate) fn reply_plain(&mut self, media: Media<'_>, body: &[u8]) -> Option<u64> {
        self.heads.ready(media)?.with_length(body.len()).copy_to(&mut self.bytes);
        append(&mut self.bytes, body);
        Some(body.len() as u64)
    }

    /// Adds a plain JSON reply by the short way.
    ///
    /// The head goes in with the length of the last such reply and is corrected if this body has another one: that is
    /// cheaper than asking the encoder first, and what is told is always the length that was written.
    #[inline]
    pub(crate) fn reply_json_plain(&mut self, value: &impl Encode) -> u64 {
        let mark = self.mark();
        self.heads.json.copy_to(&mut self.bytes);
        let start = self.bytes.len();
        value.json_write(&mut self.bytes);
        let length = self.bytes.len() - start;
        if length != self.heads.json.length {
            self.correct_head(mark, start, length);
        }
        length as u64
    }

    /// Adds a reply whose body is at hand. Returns the bytes of its body.
    #[inline(never)]
    pub(crate) fn reply(&mut self, plan: &Plan<'_>, body: &[u8], counts: &mut Counts) -> u64 {
        self.stamp_for_reply(counts);
        if self.is_generic() {
            return self.reply_generic(plan, body, counts);
        }
        self.head(plan, body.len());
        if plan.content == Content::Omitted || plan.media.is_none() {
            return 0;
        }
        self.bytes.extend_from_slice(body);
        self.cut_body(body.len());
        body.len() as u64
    }

    /// Adds a reply whose body must be encoded.
    #[inline(never)]
    pub(crate) fn reply_json(&mut self, plan: &Plan<'_>, value: &impl Encode, counts: &mut Counts) -> u64 {
        // A first version's way starts from nothing each time; otherwise the memory is used again.
        let mut body = if self.is_generic() { Vec::new() } else { std::mem::take(&mut self.scratch) };
        body.clear();
        value.json_write(&mut body);
        let body_bytes = self.reply(plan, &body, counts);
        body.shrink_to(OUTBOX_BYTES_KEEP);
        self.scratch = body;
        body_bytes
    }

    /// The body that starts at `start` has another length than its head says.
    #[inline(never)]
    fn correct_head(&mut self, mark: Mark, start: usize, length: usize) {
        let head = self.heads.json.with_length(length).as_bytes();
        if head.len() == start - mark.bytes {
            self.bytes[mark.bytes..start].copy_from_slice(head);
        } else {
            self.bytes.splice(mark.bytes..start, head.iter().copied());
        }
    }

    /// Sends what is in the outbox, which is not empty, one call per piece. A short send means that the socket is full.
    #[inline(always)] // Into the exchange's own, which is called once in each turn of a connection.
    pub(crate) fn flush(&mut self, socket: BorrowedFd<'_>, counts: &mut Counts) -> Flushed {
        let flushed = match self.cuts.is_empty() {
            true => self.flush_to(self.bytes.len(), socket, counts),
            false => self.flush_pieces(socket, counts),
        };
        if flushed != Flushed::Blocked {
            self.clear();
        }
        flushed
    }

    #[inline(never)]
    fn flush_pieces(&mut self, socket: BorrowedFd<'_>, counts: &mut Counts) -> Flushed {
        for piece in 0..self.cuts.len() {
            let flushed = self.flush_to(self.cuts[piece], socket, counts);
            if flushed != Flushed::All {
                return flushed;
            }
        }
        debug_assert_eq!(self.sent, self.bytes.len(), "the last reply ends with a cut");
        Flushed::All
    }

    #[inline]
    fn flush_to(&mut self, end: usize, socket: BorrowedFd<'_>, counts: &mut Counts) -> Flushed {
        counts.sends += 1;
        match send(self.calls, socket, &self.bytes[self.sent..end]) {
            Io::Done(taken) => {
                self.sent += taken;
                if self.sent == end { Flushed::All } else { Flushed::Blocked }
            }
            Io::WouldBlock => Flushed::Blocked,
            Io::Closed | Io::Failed(_) => Flushed::Broken,
        }
    }

    /// Hands over what the socket refused and empties the outbox.
    pub(crate) fn take_rest(&mut self) -> Vec<u8> {
        let rest = self.bytes[self.sent..].to_vec();
        self.clear();
        rest
    }

    #[inline]
    fn clear(&mut self) {
        self.bytes.clear();
        self.cuts.clear();
        self.sent = 0;
        if self.bytes.capacity() > OUTBOX_BYTES_KEEP {
            self.give_back();
        }
    }

    #[cold]
    fn give_back(&mut self) {
        self.bytes.shrink_to(OUTBOX_BYTES_FLUSH);
    }

    /// Whether the head is one of those that are ready.
    #[inline]
    fn is_plain(&self, plan: &Plan<'_>) -> bool {
        plan.status == 200 && plan.connection == Connection::Kept && self.extra.is_empty()
    }

    #[inline]
    fn stamp_for_reply(&mut self, counts: &mut Counts) {
        if self.date == Date::Reply {
            self.heads.stamp(clock::real_coarse_s());
            counts.dates_formatted += 1;
        }
    }

    #[inline]
    fn head(&mut self, plan: &Plan<'_>, length: usize) {
        let is_plain = self.is_plain(plan);
        match plan.media.and_then(|media| self.heads.ready(media)) {
            Some(ready) if is_plain => ready.with_length(length).copy_to(&mut self.bytes),
            _ => self.head_in_pieces(plan, length),
        }
        self.cut();
    }

    #[inline(never)]
    fn head_in_pieces(&mut self, plan: &Plan<'_>, length: usize) {
        self.head_start(plan);
        if plan.media.is_some() {
            encode::decimal(&mut self.bytes, length as u64);
            self.bytes.extend_from_slice(b"\r\n");
        }
        self.bytes.extend_from_slice(&self.extra);
        self.extra.clear();
        if let Some(option) = connection_option(plan.connection) {
            self.bytes.extend_from_slice(b"Connection: ");
            self.bytes.extend_from_slice(option.as_bytes());
            self.bytes.extend_from_slice(b"\r\n");
        }
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// The head of a reply that is not one of the prepared ones, up to the value of Content-Length.
    fn head_start(&mut self, plan: &Plan<'_>) {
        encode::reply_start(&mut self.bytes, plan.status);
        self.bytes.extend_from_slice(b"Server: dyno\r\nDate: ");
        self.bytes.extend_from_slice(&self.heads.date);
        self.bytes.extend_from_slice(b"\r\n");
        if let Some(media) = plan.media {
            self.bytes.extend_from_slice(b"Content-Type: ");
            self.bytes.extend_from_slice(media.as_str().as_bytes());
            self.bytes.extend_from_slice(b"\r\nContent-Length: ");
        }
    }

    #[inline]
    fn cut(&mut self) {
        self.cut_at(self.bytes.len());
    }

    #[inline]
    fn cut_at(&mut self, at: usize) {
        if self.send == Send::Split {
            self.cuts.push(at);
        }
    }

    #[inline]
    fn cut_body(&mut self, length: usize) {
        if length > 0 {
            self.cut();
        }
    }

    /// The way of a first version, kept as the climb's starting point: every piece is a string of its own.
    #[inline(never)]
    fn reply_generic(&mut self, plan: &Plan<'_>, body: &[u8], counts: &mut Counts) -> u64 {
        counts.generic_bodies += 1;
        let mut head = format!("HTTP/1.1 {} {}\r\n", plan.status, encode::reason(plan.status));
        for (name, value) in self.generic_headers(plan, body.len()) {
            head = head + &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        let body = if plan.content == Content::Omitted || plan.media.is_none() { &[] } else { body };
        let whole = [head.as_bytes(), body].concat();
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&whole);
        self.cut_at(start + head.len());
        self.cut_body(body.len());
        body.len() as u64
    }

    fn generic_headers(&mut self, plan: &Plan<'_>, length: usize) -> Vec<(String, String)> {
        let mut headers = vec![
            ("Server".to_string(), "dyno".to_string()),
            ("Date".to_string(), String::from_utf8_lossy(&self.heads.date).into_owned()),
        ];
        if let Some(media) = plan.media {
            headers.push(("Content-Type".to_string(), media.as_str().to_string()));
            headers.push(("Content-Length".to_string(), length.to_string()));
        }
        let extra = String::from_utf8_lossy(&self.extra).into_owned();
        headers.extend(
            extra.lines().filter_map(|line| line.split_once(": ")).map(|(n, v)| (n.into(), v.into())),
        );
        self.extra.clear();
        let option = connection_option(plan.connection);
        headers.extend(option.map(|option| ("Connection".to_string(), option.to_string())));
        headers
    }
}

/// Appends a body: a short one by two copies of fixed length that overlap, as `copy_to` says why.
#[inline]
fn append(out: &mut Vec<u8>, body: &[u8]) {
    match (body.first_chunk::<8>(), body.last_chunk::<8>()) {
        (Some(first), Some(last)) if body.len() <= 16 => {
            let overlap = 16 - body.len();
            out.extend_from_slice(first);
            out.truncate(out.len() - overlap);
            out.extend_from_slice(last);
        }
        _ => out.extend_from_slice(body),
    }
}

fn connection_option(connection: Connection) -> Option<&'static str> {
    match connection {
        Connection::Kept => None,
        Connection::KeptAloud => Some("keep-alive"),
        Connection::Closed => Some("close"),
    }
}

/// One send by the calls that the dial names.
#[inline]
pub(crate) fn send(calls: Calls, socket: BorrowedFd<'_>, bytes: &[u8]) -> Io {
    match calls {
        Calls::RecvSend => socket::send(socket, bytes),
        Calls::ReadWrite => socket::write(socket, bytes),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    const PLAN: Plan<'static> =
        Plan { status: 200, media: Some(Media::Json), connection: Connection::Kept, content: Content::Sent };

    fn outbox(turn: impl FnOnce(&mut Dials)) -> (Outbox, Counts) {
        let mut dials = Dials::for_workers(std::num::NonZeroU32::MIN);
        turn(&mut dials);
        (Outbox::new(&dials), Counts::default())
    }

    fn text(outbox: &Outbox) -> String {
        String::from_utf8(outbox.bytes.clone()).unwrap()
    }

    #[test]
    fn a_prepared_head_is_the_head_that_is_made_piece_by_piece() {
        let (mut outbox, mut counts) = outbox(|_| ());
        for length in [0, 2, 2, 123_456, 7] {
            outbox.clear();
            outbox.head(&PLAN, length);
            let ready = text(&outbox);
            outbox.clear();
            outbox.head_in_pieces(&PLAN, length);
            assert_eq!(ready, text(&outbox));
            assert!(ready.starts_with("HTTP/1.1 200 OK\r\nServer: dyno\r\nDate: "), "{ready}");
        }
        outbox.clear();
        outbox.reply(&PLAN, b"{}", &mut counts);
        assert!(text(&outbox).ends_with("Content-Length: 2\r\n\r\n{}"));
    }

    #[test]
    fn the_generic_way_makes_the_same_bytes() {
        let plans = [
            PLAN,
            Plan { status: 404, media: Some(Media::Text), ..PLAN },
            Plan { status: 204, media: None, ..PLAN },
            Plan { connection: Connection::Closed, media: Some(Media::Other("image/png")), ..PLAN },
            Plan { connection: Connection::KeptAloud, content: Content::Omitted, ..PLAN },
        ];
        for plan in plans {
            let (mut fast, mut counts) = outbox(|_| ());
            let (mut generic, _) = outbox(|dials| dials.body = Body::Generic);
            // One clock for both: the date may not turn between them.
            generic.heads.stamp(fast.heads.unix_s);
            for outbox in [&mut fast, &mut generic] {
                outbox.extra.extend_from_slice(b"X-One: 1\r\nX-Two: a: b\r\n");
                outbox.reply(&plan, b"body", &mut counts);
            }
            assert_eq!(text(&fast), text(&generic));
            assert_eq!(counts.generic_bodies, 1);
        }
    }

    #[test]
    fn the_length_that_is_told_is_the_length_that_was_written() {
        struct Liar(usize, String);
        impl Encode for Liar {
            fn json_len(&self) -> usize {
                self.0
            }
            fn json_write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.1.as_bytes());
            }
        }
        for send in [Send::Joined, Send::Split] {
            let (mut outbox, mut counts) = outbox(|dials| dials.send = send);
            let mut expected = String::new();
            for (foretold, length) in [(0, 0), (9, 9), (9, 8), (9, 98), (100, 3), (0, 997), (12, 12)] {
                let value = Liar(foretold, "x".repeat(length));
                let body_bytes = match outbox.is_short() {
                    true => outbox.reply_json_plain(&value),
                    false => outbox.reply_json(&PLAN, &value, &mut counts),
                };
                assert_eq!(body_bytes, length as u64);
                let head = std::str::from_utf8(outbox.heads.json.as_bytes()).unwrap();
                assert!(head.ends_with(&format!("Content-Length: {length}\r\n\r\n")), "{head}");
                expected += &[head, &value.1].concat();
                assert_eq!(text(&outbox), expected);
                assert!(send == Send::Joined || outbox.cuts.last() == Some(&expected.len()));
            }
        }
    }

    #[test]
    fn the_short_way_makes_the_same_bytes_for_bodies_of_every_length() {
        let (mut short, mut counts) = outbox(|_| ());
        let (mut full, _) = outbox(|_| ());
        // One clock for both: the date may not turn between them.
        full.heads.stamp(short.heads.unix_s);
        for length in (0..40).chain([100, 1_000, 100_000]) {
            let body: Vec<u8> = (0..length).map(|at| b' ' + (at % 90) as u8).collect();
            for media in [Media::Json, Media::Text, Media::Octets] {
                assert_eq!(short.reply_plain(media, &body), Some(length as u64));
                full.reply(&Plan { media: Some(media), ..PLAN }, &body, &mut counts);
            }
        }
        assert_eq!(short.bytes, full.bytes);
        assert_eq!(short.reply_plain(Media::Other("a/b"), b"x"), None);
        assert_eq!(short.bytes, full.bytes, "nothing was added");
    }

    #[test]
    fn every_dial_that_makes_replies_otherwise_turns_the_short_way_off() {
        assert!(outbox(|_| ()).0.is_short());
        assert!(!outbox(|dials| dials.send = Send::Split).0.is_short());
        assert!(!outbox(|dials| dials.body = Body::Generic).0.is_short());
        assert!(!outbox(|dials| dials.date = Date::Reply).0.is_short());
    }

    #[test]
    fn split_sends_the_head_and_the_body_apart_and_joined_together() {
        for (send, sends) in [(Send::Joined, 1), (Send::Split, 4)] {
            let (mut outbox, mut counts) = outbox(|dials| dials.send = send);
            let (here, mut there) = UnixStream::pair().unwrap();
            outbox.reply(&PLAN, b"{}", &mut counts);
            outbox.reply(&PLAN, b"[]", &mut counts);
            let expected = outbox.bytes.clone();
            assert_eq!(outbox.flush(here.as_fd(), &mut counts), Flushed::All);
            assert_eq!(counts.sends, sends);
            let mut received = vec![0; expected.len()];
            there.read_exact(&mut received).unwrap();
            assert_eq!(received, expected);
            assert_eq!(outbox.len(), 0);
        }
    }

    #[test]
    fn what_the_socket_refuses_is_handed_over_whole() {
        let (mut outbox, mut counts) = outbox(|_| ());
        let (here, mut there) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        let body = vec![b'x'; 4 << 20];
        outbox.reply(&PLAN, &body, &mut counts);
        let expected = outbox.bytes.clone();
        assert_eq!(outbox.flush(here.as_fd(), &mut counts), Flushed::Blocked);
        let rest = outbox.take_rest();
        drop(here);
        let mut received = Vec::new();
        there.read_to_end(&mut received).unwrap();
        received.extend_from_slice(&rest);
        assert_eq!(received, expected);
        assert!(outbox.bytes.capacity() <= OUTBOX_BYTES_KEEP, "the memory is given back");
    }
}

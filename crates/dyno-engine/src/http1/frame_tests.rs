//! What replies look like, from the handler's call to the bytes.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::field::OWN_BYTES_MAX as EXTRA_BYTES_MAX;
use crate::mailbox::Mailbox;
use crate::reply::Reply;
use crate::scripted::{Scripted, file};
use crate::segment::Flushed;
use crate::shared::Shared;
use crate::stats::{Counters, Counts, RunsIn, Tally};

const KEPT: Asked =
    Asked { connection: Connection::Kept, content: Content::Sent, chunks: Chunks::Known, host: 0 };

fn scratch() -> Scratch {
    let tally = Tally::new(Counters::new(1, 0).unwrap(), 0, RunsIn::Process);
    Scratch::new(tally, Mailbox::new(None), 1, 1_000_000, 1_700_000_000)
}

fn reply_as(asked: Asked, answer: impl FnOnce(Reply<'_>) -> Response) -> (Answered, String) {
    let mut scratch = scratch();
    scratch.begin(KEPT);
    let response = answer(Reply::new(&mut scratch));
    let Framed::Whole(answered) = frame(&mut scratch, asked, response, false) else { panic!("owed") };
    (answered, String::from_utf8(scratch.out.bytes().clone()).unwrap())
}

fn reply(answer: impl FnOnce(Reply<'_>) -> Response) -> (Answered, String) {
    reply_as(KEPT, answer)
}

#[test]
fn a_predicted_head_is_the_head_that_is_put_together() {
    for length in [0, 2, 16, 17, 123_456] {
        let body = "x".repeat(length);
        let plain = reply(|reply| reply.text(&body)).1;
        // A header of one's own takes the long way.
        let long = reply(|reply| reply.header("X", "y").text(&body)).1;
        assert_eq!(plain, long.replace("X: y\r\n", ""));
        assert!(
            plain.starts_with("HTTP/1.1 200 OK\r\nServer: dyno\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\n")
        );
    }
}

#[test]
fn every_kind_of_body_has_the_same_head() {
    let inline = reply(|reply| reply.bytes("a/b", b"1234")).1;
    let head = inline.strip_suffix("1234").unwrap();
    assert_eq!(reply(|reply| reply.fixed("a/b", b"1234")).1, head);
    assert_eq!(reply(|reply| reply.shared("a/b", Shared::from(b"1234".to_vec()))).1, head);
}

#[test]
fn an_answer_to_head_is_the_head_alone() {
    let asked = Asked { content: Content::Omitted, ..KEPT };
    let (answered, text) = reply_as(asked, |reply| reply.text("four"));
    assert!(text.ends_with("Content-Length: 4\r\n\r\n"), "{text}");
    assert_eq!(answered.body_bytes, 0);
    let (_, text) = reply_as(asked, |reply| reply.stream("a/b", |_| |_: &mut Vec<u8>| crate::Filled::End));
    assert!(text.ends_with("Transfer-Encoding: chunked\r\n\r\n"), "{text}");
}

#[test]
fn too_many_outstanding_requests_get_503() {
    let mut scratch = scratch();
    scratch.owing.take_on();
    scratch.begin(KEPT);
    let response = Reply::new(&mut scratch).later(|_| panic!("nobody may answer"));
    assert_eq!(response.status, 503);
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
        let (answered, text) = reply(|reply| reply.header("X-Before", "1").header(name, value).text("fine"));
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

/// Planted faults: head and body leave together, or a call is made for a body that is not sent.
#[test]
fn a_head_and_a_body_are_sent_apart_where_a_seam_splits() {
    type Answers = fn(Reply<'_>) -> Response;
    let ways: [(&str, Answers, &str); 6] = [
        ("inline", |reply| reply.text("four"), "four"),
        ("with a line of its own", |reply| reply.header("X", "y").text("four"), "four"),
        ("fixed", |reply| reply.fixed("a/b", b"four"), "four"),
        ("shared", |reply| reply.shared("a/b", Shared::from("four")), "four"),
        ("of a file", |reply| reply.file("a/b", file(4)), "####"),
        ("none", |reply| reply.empty(), ""),
    ];
    for (name, answer, body) in ways {
        for content in [Content::Sent, Content::Omitted] {
            let mut scratch = scratch();
            scratch.begin(KEPT);
            let response = answer(Reply::new(&mut scratch));
            let asked = Asked { content, ..KEPT };
            let Framed::Whole(answered) = frame(&mut scratch, asked, response, true) else { panic!("owed") };
            let mut net = Scripted { has_split: true, ..Scripted::default() };
            let flushed = scratch.out.flush(&mut net, &(), &mut Counts::default());
            assert_eq!(flushed, Flushed::All, "{name}");
            let sent = if content == Content::Sent { body } else { "" };
            let (head, rest) = net.text().split_at(net.text().len() - sent.len());
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{name}: {head}");
            assert_eq!((rest, net.calls.len()), (sent, if sent.is_empty() { 1 } else { 2 }), "{name}");
            let counted = (answered.head_bytes, answered.body_bytes);
            assert_eq!(counted, (head.len() as u64, sent.len() as u64), "{name}");
            assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{name}: {head}");
        }
    }
}

fn owed(asked: Asked, answer: impl FnOnce(Reply<'_>) -> Response) -> (StreamFraming, Owed, String) {
    let mut scratch = scratch();
    scratch.begin(KEPT);
    let response = answer(Reply::new(&mut scratch));
    let Framed::Owed(framed) = frame(&mut scratch, asked, response, false) else { panic!("it is whole") };
    assert_eq!(framed.wait_ns, None, "a stream is not waited for like an answer");
    let OwedWhat::Stream { framing, is_waiting: false, .. } = framed.owed.what else { panic!("no stream") };
    let text = String::from_utf8(scratch.out.bytes().clone()).unwrap();
    (framing, framed.owed, text)
}

/// Planted faults: a client that knows no chunks gets them, or keeps a connection whose close is the end of its body.
#[test]
fn the_end_of_a_stream_is_told_as_its_client_understands() {
    let unknown = Asked { chunks: Chunks::Unknown, connection: Connection::KeptAloud, ..KEPT };
    let source = |_: &mut Vec<u8>| crate::Filled::End;
    let (framing, owing, text) = owed(KEPT, |reply| reply.stream("a/b", |_| source));
    assert_eq!(framing, StreamFraming::Chunked);
    assert!(text.ends_with("Transfer-Encoding: chunked\r\n\r\n"), "{text}");
    assert_eq!((owing.status, owing.head_bytes, owing.body_bytes), (200, text.len() as u64, 0));
    assert_eq!(owing.asked.connection, Connection::Kept);
    let (framing, owing, text) = owed(unknown, |reply| reply.stream("a/b", |_| source));
    assert_eq!((framing, owing.asked.connection), (StreamFraming::Close, Connection::Closed));
    assert!(text.ends_with("Connection: close\r\n\r\n") && !text.contains("Transfer-Encoding"), "{text}");
    assert!(!text.contains("Content-Length"), "{text}");
    for asked in [KEPT, unknown] {
        let (framing, owing, text) = owed(asked, |reply| reply.stream_sized("a/b", 5, |_| source));
        assert_eq!((framing, owing.asked.connection), (StreamFraming::Length(5), asked.connection));
        assert!(text.contains("Content-Length: 5\r\n"), "{text}");
    }
    let (answered, text) = reply(|reply| reply.status(204).stream("a/b", |_| source));
    assert!(text.ends_with("GMT\r\n\r\n") && answered.body_bytes == 0, "{text}");
}

#[test]
fn a_reply_says_what_becomes_of_its_connection() {
    for (connection, says) in [
        (Connection::Kept, None),
        (Connection::KeptAloud, Some("Connection: keep-alive\r\n")),
        (Connection::Closed, Some("Connection: close\r\n")),
    ] {
        let (_, text) = reply_as(Asked { connection, ..KEPT }, |reply| reply.text("four"));
        assert_eq!(text.contains("Connection:"), says.is_some(), "{text}");
        assert!(says.is_none_or(|says| text.contains(says)) && text.ends_with("\r\n\r\nfour"), "{text}");
    }
}

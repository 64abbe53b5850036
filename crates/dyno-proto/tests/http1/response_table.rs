//! Replies written from RFC 9112, and what a client must make of them, at every cut.

use crate::support::shown;
use dyno_proto::http1::Version;
use dyno_proto::http1::response::{
    Asked, BodyLength, HEAD_BYTES_MAX, Head, INTERIM_MAX, Parsed, Reject, parse,
};

/// The outcome, after a check that every prefix is undecided or leads to it.
fn outcome(bytes: &[u8], asked: Asked) -> Result<Parsed<'_>, Reject> {
    let whole = parse(bytes, asked);
    let expected = format!("{whole:?}");
    for cut in 0..bytes.len() {
        let part = format!("{:?}", parse(&bytes[..cut], asked));
        assert!(
            part == "Ok(NeedMore)" || part == expected,
            "{part}, then {expected}: {cut} of {}",
            shown(bytes)
        );
    }
    whole
}

#[track_caller]
fn accepted(bytes: &str) -> (Head<'_>, usize) {
    match outcome(bytes.as_bytes(), Asked::Other) {
        Ok(Parsed::Whole { head, used }) => (head, used),
        other => panic!("{other:?} for {bytes:?}"),
    }
}

#[track_caller]
fn refused(bytes: &str, reject: Reject) {
    match outcome(bytes.as_bytes(), Asked::Other) {
        Err(other) => assert_eq!(other, reject, "{bytes:?}"),
        Ok(parsed) => panic!("{parsed:?} for {bytes:?}"),
    }
}

#[test]
fn each_reason_of_a_refusal_has_words_of_its_own() {
    let reasons = [
        Reject::StatusLine,
        Reject::Field,
        Reject::ContentLength,
        Reject::Coding,
        Reject::LengthAndCoding,
        Reject::HeadLong,
        Reject::Interims,
    ];
    let words: std::collections::BTreeSet<String> = reasons.iter().map(ToString::to_string).collect();
    assert!(words.len() == reasons.len() && words.iter().all(|words| words.contains(' ')), "{words:?}");
}

fn with_fields(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")
}

#[test]
fn an_ordinary_reply_is_read() {
    let bytes =
        "HTTP/1.1 200 OK\r\nServer: dyno\r\ncontent-type:\ttext/plain \r\nContent-Length: 5\r\n\r\nhello";
    let (head, used) = accepted(bytes);
    assert_eq!((head.status, head.version, head.body), (200, Version::Http11, BodyLength::Length(5)));
    assert!(head.keep_alive);
    assert_eq!(&bytes[used..], "hello");
    assert_eq!(head.header(b"Content-Type"), Some(&b"text/plain"[..]));
    assert_eq!(head.header(b"SERVER"), Some(&b"dyno"[..]));
    assert_eq!(head.header(b"Date"), None);
}

#[test]
fn the_status_decides_whether_there_is_a_body() {
    for (status, body) in [
        (101, BodyLength::None),
        (200, BodyLength::Length(5)),
        (204, BodyLength::None),
        (206, BodyLength::Length(5)),
        (304, BodyLength::None),
        (404, BodyLength::Length(5)),
        (500, BodyLength::Length(5)),
        (999, BodyLength::Length(5)),
    ] {
        let bytes = format!("HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\n");
        let (head, _) = accepted(&bytes);
        assert_eq!((head.status, head.body), (status, body));
        let Ok(Parsed::Whole { head, .. }) = outcome(bytes.as_bytes(), Asked::Head) else {
            panic!("{bytes}")
        };
        assert_eq!((head.status, head.body), (status, BodyLength::None));
    }
}

#[test]
fn framing_is_read_from_the_fields() {
    for (fields, body, keep_alive) in [
        ("Content-Length: 0", BodyLength::Length(0), true),
        ("Content-Length: 5\r\nContent-Length: 5", BodyLength::Length(5), true),
        ("Content-Length: 5, 5", BodyLength::Length(5), true),
        ("Content-Length: 5\r\nConnection: close", BodyLength::Length(5), false),
        ("Content-Length: 5\r\nConnection: Keep-Alive, CLOSE", BodyLength::Length(5), false),
        ("Transfer-Encoding: Chunked", BodyLength::Chunked, true),
        ("Transfer-Encoding: chunked\r\nConnection: close", BodyLength::Chunked, false),
        ("X: y", BodyLength::UntilClose, false),
        ("Connection: keep-alive", BodyLength::UntilClose, false),
    ] {
        let bytes = with_fields(fields);
        let (head, _) = accepted(&bytes);
        assert_eq!((head.body, head.keep_alive), (body, keep_alive), "{fields:?}");
    }
}

#[test]
fn ambiguous_framing_is_refused() {
    for fields in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 6",
        "Content-Length: ",
        "Content-Length: -1",
        "Content-Length: 5,",
        "Content-Length: +5",
        "Content-Length: 0x5",
        "Content-Length: 18446744073709551616",
        "Content-Length: 5\r\n 6",
        "Content-Length:\r\n 5",
    ] {
        refused(&with_fields(fields), Reject::ContentLength);
    }
    for fields in [
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding:",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\n gzip",
        "Transfer-Encoding: identity",
    ] {
        refused(&with_fields(fields), Reject::Coding);
    }
    refused(&with_fields("Content-Length: 5\r\nTransfer-Encoding: chunked"), Reject::LengthAndCoding);
    refused(&with_fields("Transfer-Encoding: chunked\r\nContent-Length: 5"), Reject::LengthAndCoding);
    refused("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Reject::Coding);
    refused(&with_fields("Connection: close\r\n , x"), Reject::Field);
}

#[test]
fn an_old_server_keeps_a_connection_only_if_it_says_so() {
    for (fields, keep_alive) in
        [("X: y", false), ("Connection: keep-alive", true), ("Connection: keep-alive, close", false)]
    {
        let bytes = format!("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n{fields}\r\n\r\n");
        let (head, _) = accepted(&bytes);
        assert_eq!((head.version, head.keep_alive), (Version::Http10, keep_alive));
    }
}

#[test]
fn interim_replies_are_passed_over() {
    let final_reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    for count in [1, 2, INTERIM_MAX] {
        let bytes = format!("{}{final_reply}ok", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".repeat(count));
        let (head, used) = accepted(&bytes);
        assert_eq!((head.status, &bytes[used..]), (200, "ok"));
    }
    let bytes = format!("{}{final_reply}", "HTTP/1.1 100 Continue\r\n\r\n".repeat(INTERIM_MAX + 1));
    refused(&bytes, Reject::Interims);
    let (head, _) = accepted("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
    assert!(!head.keep_alive);
}

#[test]
fn what_only_looks_odd_is_accepted() {
    for bytes in [
        "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 Very \t well \u{e9}\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n",
        "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\tc\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX:\r\nContent-Length:0\r\n\r\n",
    ] {
        let (head, used) = accepted(bytes);
        assert_eq!((head.status, head.body, used), (200, BodyLength::Length(0), bytes.len()));
    }
}

#[test]
fn what_is_no_reply_is_refused() {
    for line in [
        "",
        "HTTP",
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1 20",
        "HTTP/1.1 2000",
        "HTTP/1.1 20x",
        "HTTP/1.1 099",
        "HTTP/1.1 +20",
        "HTTP/1.1  200",
        "HTTP/1.1\t200",
        "HTTP/2.0 200 OK",
        "HTTP/2 200 OK",
        "HTTP/1.x 200 OK",
        "http/1.1 200 OK",
        "ICY 200 OK",
        " HTTP/1.1 200 OK",
        "HTTP/1.1 200OK",
        "HTTP/1.1 200 \0",
        "HTTP/1.1 200 a\rb",
        "SSH-2.0-OpenSSH",
        "<html>",
    ] {
        refused(&format!("{line}\r\nContent-Length: 0\r\n\r\n"), Reject::StatusLine);
    }
    for fields in [
        "X",
        "X : y",
        ": y",
        "X y: z",
        "X: \0",
        "X: \x7f",
        "X: a\rb",
        "\u{e9}: x",
        "Content-Length : 5",
        "(: a",
    ] {
        refused(&with_fields(fields), Reject::Field);
    }
}

#[test]
fn something_else_than_http_is_refused_at_its_first_bytes() {
    for bytes in ["S", "HTTX", "HTTP/2", "\x15\x03\x01", "\n", "<!doctype html>", "220 smtp"] {
        assert!(matches!(parse(bytes.as_bytes(), Asked::Other), Err(Reject::StatusLine)), "{bytes:?}");
    }
    for bytes in ["", "H", "HTTP/1.", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\nX"] {
        assert!(matches!(parse(bytes.as_bytes(), Asked::Other), Ok(Parsed::NeedMore)), "{bytes:?}");
    }
}

#[test]
fn a_head_without_an_end_is_refused_at_its_limit() {
    let endless = [b"HTTP/1.1 200 OK\r\n", &b"X: y\r\n".repeat(HEAD_BYTES_MAX / 6 + 1)[..]].concat();
    assert!(matches!(parse(&endless[..HEAD_BYTES_MAX - 1], Asked::Other), Ok(Parsed::NeedMore)));
    assert!(matches!(parse(&endless[..HEAD_BYTES_MAX], Asked::Other), Err(Reject::HeadLong)));
    assert!(matches!(parse(&endless, Asked::Other), Err(Reject::HeadLong)));
    let endless = [b"HTTP/1.1 200 ", &b"x".repeat(HEAD_BYTES_MAX)[..]].concat();
    assert!(matches!(parse(&endless, Asked::Other), Err(Reject::HeadLong)));
}

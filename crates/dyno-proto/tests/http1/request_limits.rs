//! Limits of request heads: to the byte, and at every cut.

use crate::support::{Outcome, read_at_every_cut};
use dyno_proto::http1::request::{Limits, Reject};

const SMALL: Limits = Limits { line_bytes_max: 64, head_bytes_max: 256, headers_max: 4 };

/// Whole, or the reason.
fn outcome(bytes: &[u8], limits: &Limits) -> Result<usize, Reject> {
    match read_at_every_cut(bytes, limits) {
        Outcome::Whole(request) => Ok(request.used),
        Outcome::Reject(reject) => Err(reject),
        Outcome::NeedMore => panic!("still waiting after {} bytes", bytes.len()),
    }
}

/// A request whose line has exactly that many bytes.
fn with_line_of(bytes: usize, before: &str) -> Vec<u8> {
    let filler = bytes - "GET / HTTP/1.1".len();
    format!("{before}GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(filler)).into_bytes()
}

/// A request whose head has exactly that many bytes.
fn with_head_of(bytes: usize) -> Vec<u8> {
    let start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    format!("{start}{}\r\n\r\n", "x".repeat(bytes - start.len() - 4)).into_bytes()
}

#[test]
fn a_line_may_be_as_long_as_allowed_and_no_byte_longer() {
    for before in ["", "\r\n", "\r\n\r\n"] {
        assert!(outcome(&with_line_of(64, before), &SMALL).is_ok());
        for bytes in 65..80 {
            assert_eq!(outcome(&with_line_of(bytes, before), &SMALL), Err(Reject::TargetLong), "{bytes}");
        }
    }
    let limits = Limits::default();
    let bytes = with_line_of(limits.line_bytes_max, "");
    assert!(outcome(&bytes, &limits).is_ok());
    let bytes = with_line_of(limits.line_bytes_max + 1, "");
    assert_eq!(outcome(&bytes, &limits), Err(Reject::TargetLong));
    assert_eq!(Reject::TargetLong.status(), 414);
}

#[test]
fn a_line_without_an_end_is_refused_at_its_limit() {
    let endless = format!("GET /{}", "x".repeat(59));
    assert_eq!(endless.len(), 64);
    assert_eq!(outcome(endless.as_bytes(), &SMALL), Err(Reject::TargetLong));
    assert!(matches!(read_at_every_cut(&endless.as_bytes()[..63], &SMALL), Outcome::NeedMore));
}

#[test]
fn a_wrong_byte_within_the_limit_counts_before_the_limit() {
    let bytes = format!("GET /\x01{}", "x".repeat(100));
    assert_eq!(outcome(bytes.as_bytes(), &SMALL), Err(Reject::TargetByte));
    let bytes = format!("GET /{}\x01", "x".repeat(100));
    assert_eq!(outcome(bytes.as_bytes(), &SMALL), Err(Reject::TargetLong));
}

#[test]
fn a_head_may_be_as_long_as_allowed_and_no_byte_longer() {
    assert_eq!(outcome(&with_head_of(256), &SMALL), Ok(256));
    for bytes in 257..270 {
        assert_eq!(outcome(&with_head_of(bytes), &SMALL), Err(Reject::HeadLong), "{bytes}");
    }
    let with_body = [&with_head_of(256)[..], &[b'x'; 300]].concat();
    assert_eq!(outcome(&with_body, &SMALL), Ok(256));
    assert_eq!(Reject::HeadLong.status(), 431);
}

#[test]
fn a_head_without_an_end_is_refused_at_its_limit() {
    for filler in ["x", " ", "\t", "\u{e9}"] {
        let mut bytes = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", filler.repeat(300)).into_bytes();
        bytes.truncate(255);
        assert!(matches!(read_at_every_cut(&bytes, &SMALL), Outcome::NeedMore));
        bytes.push(filler.as_bytes()[0]);
        assert_eq!(outcome(&bytes, &SMALL), Err(Reject::HeadLong));
    }
}

#[test]
fn as_many_fields_as_allowed_and_none_more() {
    let with_fields =
        |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A:\r\n".repeat(count - 1));
    assert!(outcome(with_fields(4).as_bytes(), &SMALL).is_ok());
    assert_eq!(outcome(with_fields(5).as_bytes(), &SMALL), Err(Reject::FieldsMany));
    assert_eq!(Reject::FieldsMany.status(), 431);
    let limits = Limits::default();
    assert!(outcome(with_fields(limits.headers_max).as_bytes(), &limits).is_ok());
    assert_eq!(outcome(with_fields(limits.headers_max + 1).as_bytes(), &limits), Err(Reject::FieldsMany));
}

#[test]
fn limits_of_nothing_refuse_everything_without_a_panic() {
    let request = with_line_of(20, "\r\n");
    for line_bytes_max in [0, 1, 3, 5, 20, usize::MAX] {
        for head_bytes_max in [0, 1, 2, 3, 21, 22, 23, 24, 30, 35, usize::MAX] {
            for headers_max in [0, 1] {
                let limits = Limits { line_bytes_max, head_bytes_max, headers_max };
                let generous = line_bytes_max >= 20 && head_bytes_max >= request.len() && headers_max == 1;
                assert_eq!(outcome(&request, &limits).is_ok(), generous, "{limits:?}");
            }
        }
    }
}

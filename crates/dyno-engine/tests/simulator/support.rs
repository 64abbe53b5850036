//! Stands between the parser's tests and their own `support`: everything that goes through here is also given to the model,
//! and both must say the same, also of every part of it.

use crate::model::{self, Asked, Framing, RequestKind, Stop, Version};
use crate::parser;
pub(crate) use crate::parser::{
    Body, Chance, Outcome, Request, shown, with_fields, with_line, with_old_fields, with_target,
};
use dyno_proto::http1::request::{BodyLength, Limits, Reject, Version as ParserVersion};

pub(crate) fn read(bytes: &[u8]) -> Outcome {
    read_within(bytes, &Limits::default())
}

pub(crate) fn read_within(bytes: &[u8], limits: &Limits) -> Outcome {
    let outcome = parser::read_within(bytes, limits);
    compare(bytes, limits, &outcome);
    outcome
}

pub(crate) fn read_at_every_cut(bytes: &[u8], limits: &Limits) -> Outcome {
    for length in 0..=bytes.len() {
        read_within(&bytes[..length], limits);
    }
    parser::read_at_every_cut(bytes, limits)
}

pub(crate) fn decided_at(bytes: &[u8]) -> Option<usize> {
    (0..=bytes.len()).find(|&length| read(&bytes[..length]) != Outcome::NeedMore)
}

pub(crate) fn outcome(bytes: &[u8]) -> Outcome {
    read_at_every_cut(bytes, &Limits::default())
}

#[track_caller]
pub(crate) fn accepted(bytes: &[u8]) -> Request {
    outcome(bytes);
    parser::accepted(bytes)
}

#[track_caller]
pub(crate) fn refused(status: u16, bytes: &[u8]) -> Reject {
    outcome(bytes);
    parser::refused(status, bytes)
}

pub(crate) fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Body {
    let pieces: Vec<&[u8]> = pieces.into_iter().collect();
    let body = parser::decode(pieces.iter().copied());
    let bytes = pieces.concat();
    match (model::dechunk(&bytes, 0, usize::MAX), &body) {
        (Ok((data, used)), Body::Whole { data: theirs, used: theirs_used }) => {
            assert_eq!((&data, used), (theirs, *theirs_used), "{}", shown(&bytes));
        }
        (Err(Stop::Ended), Body::NeedMore { .. }) => {}
        (Err(Stop::Wrong(refusal)), Body::Reject(reject)) if refusal.statuses.contains(&reject.status()) => {}
        (ours, theirs) => panic!("{ours:?}, the parser {theirs:?}, of {}", shown(&bytes)),
    }
    body
}

/// One reading of a head by both.
fn compare(bytes: &[u8], limits: &Limits, outcome: &Outcome) {
    let kind = &mut RequestKind::default();
    let ours = model::read_head(bytes, 0, &limits_of(limits), kind);
    match (&ours, outcome) {
        (Ok(head), Outcome::Whole(request)) => compare_heads(head, request, bytes),
        (Err(Stop::Ended), Outcome::NeedMore) => {}
        (Err(Stop::Wrong(refusal)), Outcome::Reject(reject))
            if refusal.statuses.contains(&reject.status()) && refusal.at <= bytes.len() => {}
        _ => panic!("the model {ours:?}, the parser {outcome:?}, of {} within {limits:?}", shown(bytes)),
    }
}

fn limits_of(limits: &Limits) -> model::Limits {
    model::Limits {
        line_bytes_max: limits.line_bytes_max,
        head_bytes_max: limits.head_bytes_max,
        headers_max: limits.headers_max,
        body_bytes_max: usize::MAX,
    }
}

fn compare_heads(ours: &model::Head, theirs: &Request, bytes: &[u8]) {
    let shown = shown(bytes);
    assert_eq!(ours.method, theirs.method.as_bytes(), "{shown}");
    assert_eq!(Asked::by(&ours.method) == Asked::Head, theirs.method == "HEAD", "{shown}");
    assert_eq!(ours.target, path_and_query(theirs), "{shown}");
    assert_eq!(ours.host, theirs.host, "{shown}");
    assert_eq!(ours.version == Version::Http11, theirs.version == ParserVersion::Http11, "{shown}");
    assert_eq!(ours.headers, theirs.headers, "{shown}");
    let framing = match theirs.body {
        BodyLength::None => Framing::None,
        BodyLength::Length(bytes) => Framing::Length(bytes),
        BodyLength::Chunked => Framing::Chunked,
    };
    assert_eq!(ours.framing, framing, "{shown}");
    assert_eq!(ours.keep_alive, theirs.keep_alive, "{shown}");
    assert_eq!(ours.expect_continue, theirs.expect_continue, "{shown}");
    assert_eq!(ours.ends_at, theirs.used, "{shown}");
}

/// The target without what its form leaves out: an absolute one may have no path before its query.
fn path_and_query(request: &Request) -> Vec<u8> {
    let query = request.query.as_ref().map(|query| [b"?", &query[..]].concat());
    [request.path.clone(), query.unwrap_or_default()].concat()
}

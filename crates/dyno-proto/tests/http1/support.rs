//! What the tests of the readers share: outcomes that can be compared, the check that they do not depend on
//! cuts, and seeded chance.

use dyno_proto::http1::chunk::Decoder;
use dyno_proto::http1::request::{BodyLength, Head, Limits, Parsed, Reject, Slots, Version, parse};
use std::fmt::Write;

/// A request head as values of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: Vec<u8>,
    pub(crate) path: Vec<u8>,
    pub(crate) query: Option<Vec<u8>>,
    pub(crate) host: Option<Vec<u8>>,
    pub(crate) version: Version,
    pub(crate) body: BodyLength,
    pub(crate) keep_alive: bool,
    pub(crate) expect_continue: bool,
    pub(crate) headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) used: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Whole(Box<Request>),
    NeedMore,
    Reject(Reject),
}

pub(crate) fn read(bytes: &[u8]) -> Outcome {
    read_within(bytes, &Limits::default())
}

pub(crate) fn read_within(bytes: &[u8], limits: &Limits) -> Outcome {
    match parse(bytes, limits, &mut Slots::new(limits)) {
        Err(reject) => Outcome::Reject(reject),
        Ok(Parsed::NeedMore) => Outcome::NeedMore,
        Ok(Parsed::Whole { head, used }) => whole(&head, used),
    }
}

fn whole(head: &Head<'_>, used: usize) -> Outcome {
    Outcome::Whole(Box::new(Request {
        method: head.method.to_string(),
        target: head.target.to_vec(),
        path: head.path().to_vec(),
        query: head.query().map(<[u8]>::to_vec),
        host: head.host().map(<[u8]>::to_vec),
        version: head.version,
        body: head.body,
        keep_alive: head.keep_alive,
        expect_continue: head.expect_continue,
        headers: head.headers().map(|header| (header.name.to_vec(), header.value.to_vec())).collect(),
        used,
    }))
}

/// The outcome of the bytes, after a check that every cut of them leads to it: each prefix is right so far
/// until one decides, and from there on all say the same.
pub(crate) fn read_at_every_cut(bytes: &[u8], limits: &Limits) -> Outcome {
    let mut decided = None;
    for length in 0..=bytes.len() {
        let outcome = read_within(&bytes[..length], limits);
        match &decided {
            Some(first) => assert_eq!(&outcome, first, "at {length} bytes of {}", shown(bytes)),
            None if outcome != Outcome::NeedMore => decided = Some(outcome),
            None => {}
        }
    }
    decided.unwrap_or(Outcome::NeedMore)
}

/// How many bytes it takes until the outcome is known.
pub(crate) fn decided_at(bytes: &[u8]) -> Option<usize> {
    (0..=bytes.len()).find(|&length| read(&bytes[..length]) != Outcome::NeedMore)
}

pub(crate) fn outcome(bytes: &[u8]) -> Outcome {
    read_at_every_cut(bytes, &Limits::default())
}

#[track_caller]
pub(crate) fn accepted(bytes: &[u8]) -> Request {
    match outcome(bytes) {
        Outcome::Whole(request) => *request,
        other => panic!("{other:?} for {}", shown(bytes)),
    }
}

#[track_caller]
pub(crate) fn refused(status: u16, bytes: &[u8]) -> Reject {
    match outcome(bytes) {
        Outcome::Reject(reject) => {
            assert_eq!(reject.status(), status, "{reject:?} for {}", shown(bytes));
            reject
        }
        other => panic!("{other:?} for {}", shown(bytes)),
    }
}

/// A request with this request line, with or without its end.
pub(crate) fn with_line(line: &[u8]) -> Vec<u8> {
    [line, b"\r\nHost: a\r\n\r\n"].concat()
}

/// A POST with these field lines besides Host.
pub(crate) fn with_fields(fields: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n").into_bytes()
}

pub(crate) fn with_old_fields(fields: &str) -> Vec<u8> {
    format!("POST / HTTP/1.0\r\n{fields}\r\n\r\n").into_bytes()
}

pub(crate) fn with_target(target: &str) -> Vec<u8> {
    with_line(format!("GET {target} HTTP/1.1").as_bytes())
}

/// What a chunked body turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    Whole { data: Vec<u8>, used: usize },
    NeedMore { data: Vec<u8> },
    Reject(Reject),
}

/// Decodes the pieces one after the other.
pub(crate) fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Body {
    let (mut decoder, mut data, mut used) = (Decoder::new(), Vec::new(), 0);
    for mut piece in pieces {
        while !piece.is_empty() {
            let chunk = match decoder.push(piece) {
                Ok(chunk) => chunk,
                Err(reject) => return Body::Reject(reject),
            };
            assert!(chunk.used > 0 && chunk.data.end <= chunk.used, "no progress: {chunk:?}");
            data.extend_from_slice(&piece[chunk.data.clone()]);
            used += chunk.used;
            if chunk.done {
                assert_eq!(decoder.announced(), data.len() as u64);
                return Body::Whole { data, used };
            }
            piece = &piece[chunk.used..];
        }
    }
    Body::NeedMore { data }
}

/// Bytes as text that can be read, with everything but printable ASCII escaped.
pub(crate) fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().fold(String::new(), |mut text, byte| {
        let _ = text.write_char(byte.into());
        text
    })
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and good enough to choose test cases.
pub(crate) struct Chance(u64);

impl Chance {
    /// The seed is printed, so that a failing run can be had again.
    pub(crate) fn new(seed: u64) -> Self {
        println!("seed {seed:#x}");
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Some bytes of the set, at most `length_max`.
    pub(crate) fn bytes(&mut self, set: &[u8], length_max: usize) -> Vec<u8> {
        let length = self.below(length_max + 1);
        (0..length).map(|_| self.one_of(set)).collect()
    }
}

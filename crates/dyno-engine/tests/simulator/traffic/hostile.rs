//! Requests that a server must refuse, by class, with good fields and chunks around what is wrong; and two classes of
//! which anything may come: cut and mutated ones.

use super::{Mix, below, bytes, chunked, chunks, field, one_of, valid, written};
use dyno_measure::Prng;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    LengthAndCoding,
    TwoLengths,
    LengthNoNumber,
    LengthBeyondLimit,
    CodingRefused,
    OldClientsCoding,
    Folded,
    BareLineEnd,
    FieldName,
    FieldValue,
    HostRefused,
    ConnectionRefused,
    ExpectationRefused,
    RequestLine,
    TargetRefused,
    Oldest,
    VersionRefused,
    LongLine,
    LongHead,
    ManyFields,
    ManyEmptyLines,
    ChunkSize,
    ChunkExtension,
    ChunkEnd,
    ChunkBeyondLimit,
    ChunkOverhead,
    Trailer,
    OtherProtocol,
    Cut,
    Mutated,
}

pub(crate) const CLASSES: &[Class] = &[
    Class::LengthAndCoding,
    Class::TwoLengths,
    Class::LengthNoNumber,
    Class::LengthBeyondLimit,
    Class::CodingRefused,
    Class::OldClientsCoding,
    Class::Folded,
    Class::BareLineEnd,
    Class::FieldName,
    Class::FieldValue,
    Class::HostRefused,
    Class::ConnectionRefused,
    Class::ExpectationRefused,
    Class::RequestLine,
    Class::TargetRefused,
    Class::Oldest,
    Class::VersionRefused,
    Class::LongLine,
    Class::LongHead,
    Class::ManyFields,
    Class::ManyEmptyLines,
    Class::ChunkSize,
    Class::ChunkExtension,
    Class::ChunkEnd,
    Class::ChunkBeyondLimit,
    Class::ChunkOverhead,
    Class::Trailer,
    Class::OtherProtocol,
    Class::Cut,
    Class::Mutated,
    // Again: there are many ways to be cut and mutated.
    Class::Cut,
    Class::Mutated,
    Class::Mutated,
];

impl Class {
    /// Whether the model must refuse every request of the class.
    pub(crate) fn is_always_refused(self) -> bool {
        !matches!(self, Self::Cut | Self::Mutated)
    }
}

/// One request of the class.
pub(crate) fn hostile(prng: &mut Prng, class: Class, mix: &Mix) -> Vec<u8> {
    let limits = &mix.limits;
    match class {
        Class::LengthAndCoding => with_field(prng, LENGTH_AND_CODING, b"0\r\n\r\n"),
        Class::TwoLengths => with_field(prng, TWO_LENGTHS, b"hello"),
        Class::LengthNoNumber => with_field(prng, LENGTHS, b"hello"),
        Class::LengthBeyondLimit => {
            let length = match prng.below(3) {
                0 => u64::MAX,
                1 => 1 << 32,
                _ => (limits.body_bytes_max + a_few_more(prng)) as u64,
            };
            with_field(prng, &[&format!("Content-Length: {length}")], b"hello")
        }
        Class::CodingRefused => with_field(prng, CODINGS, b"0\r\n\r\n"),
        Class::OldClientsCoding => {
            let fields = [
                field(prng),
                one_of(prng, &["Transfer-Encoding: chunked", "Transfer-Encoding: gzip"]).to_owned(),
            ];
            written("POST / HTTP/1.0", &fields, b"0\r\n\r\n")
        }
        Class::Folded => with_field(prng, FOLDED, b""),
        Class::BareLineEnd => bare_line_end(prng),
        Class::FieldName => with_field(prng, NAMES, b""),
        Class::FieldValue => control_in_value(prng),
        Class::HostRefused => host_refused(prng),
        Class::ConnectionRefused => with_field(prng, CONNECTIONS, b""),
        Class::ExpectationRefused => with_field(prng, EXPECTATIONS, b""),
        Class::RequestLine => with_line(prng, LINES),
        Class::TargetRefused => with_target(prng),
        Class::Oldest => one_of(prng, &["GET /\r\n", "GET /\n", "GET /index.html\r\n\r\n"]).into(),
        Class::VersionRefused => with_line(prng, VERSIONS),
        Class::LongLine => long_line(prng, mix),
        Class::LongHead => long_head(prng, mix),
        Class::ManyFields => many_fields(prng, mix),
        Class::ManyEmptyLines => [b"\r\n".repeat(3 + below(prng, 9)), valid(prng, mix)].concat(),
        Class::ChunkSize => with_chunk(prng, SIZES),
        Class::ChunkExtension => with_chunk(prng, EXTENSIONS),
        Class::ChunkEnd => with_chunk(prng, ENDS),
        Class::ChunkBeyondLimit => {
            let size = limits.body_bytes_max + a_few_more(prng);
            with_chunk(prng, &[&format!("{size:x}\r\n")])
        }
        Class::ChunkOverhead => {
            // Far beyond the bound, long before the data is too long for any limits.
            let chunk = format!("1;{}\r\nx\r\n", "a".repeat(700 + below(prng, 300)));
            with_chunk(prng, &[&chunk.repeat(40)])
        }
        Class::Trailer => trailer(prng),
        Class::OtherProtocol => one_of(
            prng,
            &["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01\x02", "SSH-2.0-x\r\n", "{\"a\":1}\n"],
        )
        .into(),
        Class::Cut => cut(prng, mix),
        Class::Mutated => mutated(prng, mix),
    }
}

const LENGTH_AND_CODING: &[&str] = &[
    "Content-Length: 5\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 5",
    "Content-Length: 0\r\nX: y\r\ntransfer-encoding:chunked",
    "Content-Length: 5\r\nTransfer-Encoding: identity",
];
const TWO_LENGTHS: &[&str] = &[
    "Content-Length: 5\r\nContent-Length: 6",
    "Content-Length: 5\r\ncontent-length: 5",
    "Content-Length: 5\r\nX: y\r\nContent-Length: 0",
    "Content-Length: 5, 5",
    "Content-Length: 5,6",
];
const LENGTHS: &[&str] = &[
    "Content-Length:",
    "Content-Length: -5",
    "Content-Length: +5",
    "Content-Length: 0x5",
    "Content-Length: 5h",
    "Content-Length: 5 5",
    "Content-Length: 1_0",
    "Content-Length: 18446744073709551616",
    "Content-Length: 18446744073709551621",
    "Content-Length: 99999999999999999999999999999",
    "Content-Length: \u{665}",
];
const CODINGS: &[&str] = &[
    "Transfer-Encoding: gzip",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, gzip",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding:",
    "Transfer-Encoding: ,chunked",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding: chunked;q=1",
    "Transfer-Encoding: \x0bchunked",
    "Transfer-Encoding\t: chunked",
    "Transfer-Encoding: chunked\r\n ,gzip",
];
const FOLDED: &[&str] = &["X: y\r\n z", "X:\r\n\ty", "Content-Length: 5\r\n 6", "X: y\r\n "];
const NAMES: &[&str] = &[
    "X : y",
    "Content-Length : 5",
    "X\t: y",
    ": y",
    "X",
    "X y: z",
    "(X): y",
    "X\0: y",
    "X\u{e9}: y",
    "X\x7f: y",
    "[X]: y",
    "\"X\": y",
];
const CONNECTIONS: &[&str] = &[
    "Connection: close keep-alive",
    "Connection: close;",
    "Connection: \"close\"",
    "Connection: a/b",
    "Connection: clos\u{e9}",
];
const EXPECTATIONS: &[&str] = &[
    "Expect: 200-ok",
    "Expect:",
    "Expect: 100-continue, x",
    "Expect: 100 continue",
    "Expect: 100-continue;q=1",
];
const LINES: &[&str] = &[
    " GET / HTTP/1.1",
    "GET  / HTTP/1.1",
    "GET /  HTTP/1.1",
    "GET / HTTP/1.1 ",
    "GET\t/ HTTP/1.1",
    "GET / a HTTP/1.1",
    "G\u{c8}T / HTTP/1.1",
    "G{} / HTTP/1.1",
    "GET",
    "GET ",
    "/ HTTP/1.1",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1",
    "GET /\0 HTTP/1.1",
    ":",
];
const VERSIONS: &[&str] = &[
    "GET / HTTP/2.0",
    "GET / HTTP/0.9",
    "GET / HTTP/3",
    "GET / HTTP/1",
    "GET / HTTP/1.",
    "GET / HTTP/1.10",
    "GET / HTTP/11.1",
    "GET / HTTP/1,1",
    "GET / http/1.1",
    "GET / HTTP/01.1",
    "GET / HTTPS/1.1",
    "GET / ICY",
    "GET / ",
];
const TARGETS: &[&str] = &[
    "*",
    "a",
    "a.example:80/b",
    "/#b",
    "/a?b#c",
    "/%",
    "/%4",
    "/%zz",
    "/\u{e9}",
    "/\x7f",
    "http:/a",
    "http:///a",
    "http://u@a/",
    "http://a:65536/",
    "http://a:b/",
    "http://[::1/",
    "http://[1.2.3.4]/",
    "ftp://a/",
    "\\a",
    "../a",
];
const HOSTS: &[&str] = &[
    "Host: a\r\nHost: a",
    "Host: a\r\nX: y\r\nhost: b",
    "X-Host: a",
    "Host: a b",
    "Host: a, b",
    "Host: u@a",
    "Host: a/b",
    "Host: http://a",
    "Host: a:65536",
    "Host: a:80:80",
    "Host: :80",
    "Host: [::1",
    "Host: ::1",
    "Host: a\\b",
    "Host: \u{e9}",
    "Host: %zz",
    "Host : a",
    "Host: a\0",
];
const SIZES: &[&str] = &[
    "\r\nhello\r\n",
    " 5\r\nhello\r\n",
    "5 \r\nhello\r\n",
    "0x5\r\nhello\r\n",
    "5h\r\nhello\r\n",
    "5_\r\nhello\r\n",
    "+5\r\nhello\r\n",
    "-5\r\nhello\r\n",
    "5,5\r\nhello\r\n",
    "5\nhello\r\n",
    "5\rhello\r\n",
    "5\r\r\nhello\r\n",
    "g\r\n",
    "00000000000000005\r\nhello\r\n",
    "10000000000000000\r\n",
    "ffffffffffffffffff\r\n",
    "ffffffffffffffff\r\nhello\r\n",
    "\u{665}\r\nhello\r\n",
];
const EXTENSIONS: &[&str] = &[
    "5;\r\nhello\r\n",
    "5;a=\r\nhello\r\n",
    "5;=b\r\nhello\r\n",
    "5;a b\r\nhello\r\n",
    "5;a=\"b\r\nhello\r\n",
    "5;a\nhello\r\n",
    "5;a=\"\0\"\r\nhello\r\n",
    "5;a\rb\r\nhello\r\n",
    "5 a\r\nhello\r\n",
    "5;a=\"b\"c\r\nhello\r\n",
    "5;a=\"\n\"\r\nhello\r\n",
    "5; \r\nhello\r\n",
];
const ENDS: &[&str] = &[
    "5\r\nhello!\r\n",
    "4\r\nhello\r\n",
    "6\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\n0\r\n\r\n",
    "5\r\nhello0\r\n\r\n",
    "5\r\nhello\r\r\n",
];
const TRAILERS: &[&str] = &[
    " X: y\r\n",
    "X : y\r\n",
    "X\r\n",
    ": y\r\n",
    "X: \0\r\n",
    "X: y\n\r\n",
    "X: y\r\n z\r\n",
    "\r\r\n",
    "\n",
    "GET / HTTP/1.1\r\nHost: a\r\n",
];

/// A POST with one of these among good fields.
fn with_field(prng: &mut Prng, wrong: &[&str], body: &[u8]) -> Vec<u8> {
    let mut fields = good_fields(prng);
    fields.insert(below(prng, fields.len() + 1), "Host: a".to_owned());
    fields.insert(below(prng, fields.len() + 1), one_of(prng, wrong).to_owned());
    written(one_of(prng, &["POST / HTTP/1.1", "GET /json HTTP/1.1", "HEAD / HTTP/1.1"]), &fields, body)
}

fn good_fields(prng: &mut Prng) -> Vec<String> {
    (0..prng.below(6)).map(|_| field(prng)).collect()
}

fn with_line(prng: &mut Prng, lines: &[&str]) -> Vec<u8> {
    written(one_of(prng, lines), &["Host: a".to_owned()], b"")
}

fn with_target(prng: &mut Prng) -> Vec<u8> {
    let line = match prng.below(6) {
        0 => one_of(prng, &["CONNECT / HTTP/1.1", "CONNECT a HTTP/1.1", "CONNECT a: HTTP/1.1"]).to_owned(),
        1 => one_of(prng, &["OPTIONS ** HTTP/1.1", "options * HTTP/1.1", "OPTIONS *?a HTTP/1.1"]).to_owned(),
        _ => format!("GET {} HTTP/1.1", one_of(prng, TARGETS)),
    };
    written(&line, &["Host: a".to_owned()], b"")
}

fn host_refused(prng: &mut Prng) -> Vec<u8> {
    let mut fields = good_fields(prng);
    fields.insert(below(prng, fields.len() + 1), one_of(prng, HOSTS).to_owned());
    written("GET / HTTP/1.1", &fields, b"")
}

/// One line end of a head without its half, or with another half.
fn bare_line_end(prng: &mut Prng) -> Vec<u8> {
    let mut fields = good_fields(prng);
    fields.push("Host: a".to_owned());
    let bytes = written("GET / HTTP/1.1", &fields, b"");
    let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\r').collect();
    let at = ends[below(prng, ends.len())];
    let instead = one_of(prng, &["\n", "\r", "\r\r\n", "\n\r", "\x0b", "\0\r\n"]);
    [&bytes[..at], instead.as_bytes(), &bytes[at + 2..]].concat()
}

fn control_in_value(prng: &mut Prng) -> Vec<u8> {
    let control = loop {
        match below(prng, 33) as u8 {
            b'\t' | b'\r' | b'\n' => {}
            32 => break 0x7f,
            byte => break byte,
        }
    };
    with_field(prng, &[&format!("X: a{}b", char::from(control))], b"")
}

/// One more than allowed, or many.
fn a_few_more(prng: &mut Prng) -> usize {
    1 + if prng.coin() { 0 } else { below(prng, 1_000) }
}

/// Whole, or without an end.
fn long_line(prng: &mut Prng, mix: &Mix) -> Vec<u8> {
    let target = "x".repeat(mix.limits.line_bytes_max - "GET / HTTP/1.1".len() + a_few_more(prng));
    match prng.coin() {
        true => with_line(prng, &[&format!("GET /{target} HTTP/1.1")]),
        false => format!("GET /{target}xxxxxxxxx").into_bytes(),
    }
}

/// By one value, or by several that are each allowed.
fn long_head(prng: &mut Prng, mix: &Mix) -> Vec<u8> {
    let count = 1 + below(prng, 4);
    let value = "x".repeat(mix.limits.head_bytes_max / count + 1);
    let mut fields = vec![format!("X: {value}"); count];
    fields.insert(below(prng, count + 1), "Host: a".to_owned());
    written("GET / HTTP/1.1", &fields, b"")
}

fn many_fields(prng: &mut Prng, mix: &Mix) -> Vec<u8> {
    let mut fields = vec!["Host: a".to_owned()];
    fields
        .resize(mix.limits.headers_max + a_few_more(prng).min(30), one_of(prng, &["X: y", "A:"]).to_owned());
    written("GET / HTTP/1.1", &fields, b"")
}

/// A chunked body with good chunks and then one of these.
fn with_chunk(prng: &mut Prng, wrong: &[&str]) -> Vec<u8> {
    let data = bytes(prng, 60);
    let good = chunks(prng, &data);
    let body = [&good[..], one_of(prng, wrong).as_bytes(), b"0\r\n\r\n"].concat();
    written(chunked_line(prng), &chunked_fields(prng), &body)
}

fn trailer(prng: &mut Prng) -> Vec<u8> {
    let data = bytes(prng, 60);
    let whole = chunked(prng, &data);
    let many = "T: v\r\n".repeat(33 + below(prng, 9));
    let long = format!("T: {}\r\n", "v".repeat(4_096 + below(prng, 900)));
    let wrong = match prng.below(5) {
        0 => many.as_str(),
        1 => long.as_str(),
        _ => one_of(prng, TRAILERS),
    };
    // Before the empty line that ends the body.
    let body = [&whole[..whole.len() - 2], wrong.as_bytes(), b"\r\n"].concat();
    written(chunked_line(prng), &chunked_fields(prng), &body)
}

fn chunked_line(prng: &mut Prng) -> &'static str {
    one_of(prng, &["POST / HTTP/1.1", "PUT /echo HTTP/1.1", "GET / HTTP/1.1"])
}

fn chunked_fields(prng: &mut Prng) -> Vec<String> {
    let mut fields = vec!["Host: a".to_owned(), "Transfer-Encoding: chunked".to_owned()];
    if prng.below(5) == 0 {
        fields.push("Expect: 100-continue".to_owned());
    }
    fields
}

/// The beginning of a valid request.
fn cut(prng: &mut Prng, mix: &Mix) -> Vec<u8> {
    let mut whole = valid(prng, mix);
    whole.truncate(below(prng, whole.len()));
    whole
}

/// Bytes that decide something.
const PIECES: &[&str] = &[
    "\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    ":",
    ",",
    ";",
    "=",
    "\"",
    "\0",
    "%",
    "%zz",
    "#",
    "?",
    "*",
    "0",
    "5",
    "f",
    "@",
    "[",
    "\u{e9}",
    "\r\n\r\n",
    "0\r\n\r\n",
    "GET ",
    "HEAD ",
    "HTTP/1.1",
    "HTTP/1.0",
    "Host: b\r\n",
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "Expect: 100-continue\r\n",
    "ffffffffffffffff",
];

/// A valid request with a few bytes put in, left out or changed.
fn mutated(prng: &mut Prng, mix: &Mix) -> Vec<u8> {
    let mut bytes = valid(prng, mix);
    for _ in 0..=prng.below(4) {
        let at = below(prng, bytes.len().min(1_000) + 1);
        let end = (at + below(prng, 6)).min(bytes.len());
        let piece = one_of(prng, PIECES).bytes();
        match prng.below(4) {
            0 => drop(bytes.splice(at..at, piece)),
            1 => drop(bytes.drain(at..end)),
            2 if at < bytes.len() => bytes[at] = prng.next_u64() as u8,
            _ => drop(bytes.splice(at..end, piece)),
        }
    }
    bytes
}

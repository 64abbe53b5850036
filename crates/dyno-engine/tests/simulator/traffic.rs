//! Clients by seed: what well-behaved ones of all kinds send (here), and what attackers and broken ones send (`hostile`).
//! The simulator and `model_check` play it. Nothing here says what must come of it: that is the model's business.
#![allow(dead_code)]

#[path = "traffic/hostile.rs"]
mod hostile;

use crate::model::Limits;
use dyno_measure::Prng;

#[allow(unused_imports)] // Each of its users takes a part.
pub(crate) use hostile::{CLASSES, Class, hostile};

/// What a connection's traffic is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mix {
    /// Valid requests of one connection.
    pub(crate) requests_max: u64,
    /// Bytes of a valid request's body.
    pub(crate) body_bytes_max: usize,
    /// Of a hundred connections so many have a hostile stretch, half of them at the end.
    pub(crate) hostile_percent: u64,
    /// What the server takes: hostile traffic goes just beyond, some valid traffic just as far.
    pub(crate) limits: Limits,
}

/// All bytes that one client sends before it closes its half.
pub(crate) fn conversation(prng: &mut Prng, mix: &Mix) -> Vec<u8> {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    for _ in 0..=prng.below(mix.requests_max) {
        let request = valid(prng, mix);
        // Clients that ask for the same again and again are the most usual ones.
        let repeats = if prng.below(5) == 0 && request.len() < 1_000 { 1 + below(prng, 20) } else { 1 };
        pieces.push(request.repeat(repeats));
    }
    if prng.below(100) < mix.hostile_percent {
        let at = if prng.coin() { pieces.len() } else { below(prng, pieces.len() + 1) };
        let class = CLASSES[below(prng, CLASSES.len())];
        pieces.insert(at, hostile(prng, class, mix));
    }
    pieces.concat()
}

/// So many valid requests, one behind the other. One that closes may stand anywhere among them.
pub(crate) fn requests(prng: &mut Prng, how_many: usize, mix: &Mix) -> Vec<u8> {
    (0..how_many).flat_map(|_| valid(prng, mix)).collect()
}

/// One valid request of any shape.
pub(crate) fn valid(prng: &mut Prng, mix: &Mix) -> Vec<u8> {
    match prng.below(20) {
        0..3 => WRK.to_vec(),
        3..5 => TECHEMPOWER.to_vec(),
        5..7 => browser(prng),
        7 => old(prng),
        8 => at_the_limits(prng, mix),
        9 => uncommon(prng),
        10..14 => any_request(prng, mix, &["GET", "HEAD", "GET", "OPTIONS", "DELETE"], 15),
        _ => any_request(prng, mix, &["POST", "PUT", "PATCH", "POST", "DELETE", "GET"], 90),
    }
}

/// What wrk sends.
const WRK: &[u8] = b"GET /json HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
/// What TechEmpower's rounds send: an Accept of 90 bytes.
const TECHEMPOWER: &[u8] = b"GET /json HTTP/1.1\r\nHost: tfb-server:8080\r\n\
    Accept: application/json,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7\r\n\
    Connection: keep-alive\r\n\r\n";

/// Twelve headers, about 650 bytes.
fn browser(prng: &mut Prng) -> Vec<u8> {
    let host = host(prng);
    let target = target(prng);
    let session: String = (0..prng.below(90)).map(|_| char::from(letter(prng))).collect();
    format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: keep-alive\r\n\
         Cache-Control: max-age=0\r\nUpgrade-Insecure-Requests: 1\r\n\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Safari/537.36\r\n\
         Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
         Referer: http://{host}/\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
         Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\nCookie: _ga=GA1.1.1234567890.1700000000; session={session}\r\n\
         If-None-Match: \"5f3e-60c1\"\r\nSec-Fetch-Mode: navigate\r\n\r\n"
    )
    .into_bytes()
}

/// A client of HTTP/1.0: Host and keep-alive are its choice, chunks are not.
fn old(prng: &mut Prng) -> Vec<u8> {
    let mut fields = Vec::new();
    if prng.coin() {
        fields.push(format!("Host: {}", host(prng)));
    }
    if prng.coin() {
        fields.push(one_of(prng, &["Connection: keep-alive", "Connection: Keep-Alive, x"]).to_owned());
    }
    if prng.below(4) == 0 {
        // To be ignored (RFC 9110 §10.1.1).
        fields.push("Expect: 100-continue".to_owned());
    }
    let body = if prng.coin() { bytes(prng, 300) } else { Vec::new() };
    if !body.is_empty() || prng.coin() {
        fields.push(format!("Content-Length: {}", body.len()));
    }
    let (method, target) = (one_of(prng, &["GET", "HEAD", "POST"]), target(prng));
    written(&format!("{method} {target} HTTP/1.0"), &fields, &body)
}

/// As long a line, head or body or as many fields as are taken, and no byte more.
fn at_the_limits(prng: &mut Prng, mix: &Mix) -> Vec<u8> {
    let limits = &mix.limits;
    let fill = |bytes: usize, used: usize| "x".repeat(bytes.saturating_sub(used));
    match prng.below(4) {
        0 => {
            let target = fill(limits.line_bytes_max, "GET / HTTP/1.1".len());
            written(&format!("GET /{target} HTTP/1.1"), &["Host: a".to_owned()], b"")
        }
        1 => {
            let start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
            let value = fill(limits.head_bytes_max, start.len() + 4);
            format!("{start}{value}\r\n\r\n").into_bytes()
        }
        2 if limits.body_bytes_max <= mix.body_bytes_max => {
            let mut fields = vec!["Host: a".to_owned()];
            let body = framed(prng, fill(limits.body_bytes_max, 0).into_bytes(), &mut fields);
            written("PUT / HTTP/1.1", &fields, &body)
        }
        _ => {
            let mut fields = vec!["A:".to_owned(); limits.headers_max.saturating_sub(1)];
            fields.insert(below(prng, fields.len() + 1), "Host: a".to_owned());
            written("GET / HTTP/1.1", &fields, b"")
        }
    }
}

/// Methods and targets that no handler is asked for as a rule.
fn uncommon(prng: &mut Prng) -> Vec<u8> {
    let lines = [
        "OPTIONS * HTTP/1.1",
        "OPTIONS http://a.example HTTP/1.1",
        "OPTIONS http://a.example:80 HTTP/1.1",
        "TRACE / HTTP/1.1",
        "CONNECT a.example:443 HTTP/1.1",
        "CONNECT [::1]:80 HTTP/1.1",
        "PROPFIND /a HTTP/1.1",
        "get /json HTTP/1.1",
        "!#$%&'*+-.^_`|~09azAZ / HTTP/1.1",
        "GET /%00 HTTP/1.1",
        "HEAD /%ff?%ff HTTP/1.1",
    ];
    written(one_of(prng, &lines), &["Host: a.example".to_owned()], b"")
}

/// Any method of the list with any fields; of a hundred so many have a body.
fn any_request(prng: &mut Prng, mix: &Mix, methods: &[&str], with_body: u64) -> Vec<u8> {
    let method = one_of(prng, methods);
    let version = if prng.below(30) == 0 { "1.2" } else { "1.1" };
    let line = format!("{method} {} HTTP/{version}", any_target(prng));
    let mut fields: Vec<String> = (0..field_count(prng)).map(|_| field(prng)).collect();
    fields.push(format!("{}: {}", one_of(prng, &["Host", "host", "HOST", "hOsT"]), host(prng)));
    if prng.below(4) == 0 {
        fields.push(connection(prng));
    }
    let mut body = Vec::new();
    if prng.below(100) < with_body {
        body = framed_body(prng, mix, &mut fields);
        if prng.below(6) == 0 {
            fields.push(one_of(prng, &["Expect: 100-continue", "expect:100-Continue"]).to_owned());
        }
    }
    prng.shuffle(&mut fields);
    let empty_lines = if prng.below(8) == 0 { 1 + below(prng, 2) } else { 0 };
    [b"\r\n".repeat(empty_lines), written(&line, &fields, &body)].concat()
}

/// Few as a rule, many now and then.
fn field_count(prng: &mut Prng) -> u64 {
    match prng.below(10) {
        0 => prng.below(80),
        _ => prng.below(8),
    }
}

/// A body of any length in its frame.
fn framed_body(prng: &mut Prng, mix: &Mix, fields: &mut Vec<String>) -> Vec<u8> {
    let bytes_max = match prng.below(20) {
        0 => mix.body_bytes_max,
        1..5 => mix.body_bytes_max.min(8_000),
        _ => mix.body_bytes_max.min(200),
    };
    let data = bytes(prng, bytes_max);
    framed(prng, data, fields)
}

/// The data in its frame; the field that announces it is added.
fn framed(prng: &mut Prng, data: Vec<u8>, fields: &mut Vec<String>) -> Vec<u8> {
    if prng.coin() {
        let zeros = if prng.below(8) == 0 { "00" } else { "" };
        fields.push(format!(
            "{}: {zeros}{}",
            one_of(prng, &["Content-Length", "content-length"]),
            data.len()
        ));
        return data;
    }
    let coding = ["Transfer-Encoding: chunked", "transfer-encoding:CHUNKED", "Transfer-Encoding: \tChunked "];
    fields.push(one_of(prng, &coding).to_owned());
    chunked(prng, &data)
}

/// The data in chunks of any length, with extensions and trailers now and then.
pub(crate) fn chunked(prng: &mut Prng, data: &[u8]) -> Vec<u8> {
    let mut framed = chunks(prng, data);
    let zeros = one_of(prng, &["0", "0", "0", "00", "0000000000000000"]);
    framed.extend_from_slice(format!("{zeros}{}\r\n", extension(prng)).as_bytes());
    for _ in 0..if prng.below(5) == 0 { prng.below(4) } else { 0 } {
        let trailer = one_of(prng, &["X: y", "Content-Length: 5", "Checksum:\tabc= ", "Host: b", "T:"]);
        framed.extend_from_slice(format!("{trailer}\r\n").as_bytes());
    }
    framed.extend_from_slice(b"\r\n");
    framed
}

/// The chunks without the last one.
pub(crate) fn chunks(prng: &mut Prng, mut data: &[u8]) -> Vec<u8> {
    let mut framed = Vec::new();
    let piece_max = 1 + below(prng, data.len() / 2 + 40);
    while !data.is_empty() {
        let (piece, rest) = data.split_at((1 + below(prng, piece_max)).min(data.len()));
        let size = match prng.below(4) {
            0 => format!("{:X}", piece.len()),
            1 => format!("{:08x}", piece.len()),
            _ => format!("{:x}", piece.len()),
        };
        framed.extend_from_slice(format!("{size}{}\r\n", extension(prng)).as_bytes());
        framed.extend_from_slice(piece);
        framed.extend_from_slice(b"\r\n");
        data = rest;
    }
    framed
}

fn extension(prng: &mut Prng) -> &'static str {
    match prng.below(10) {
        0 => one_of(prng, &[";a", ";a=b", " ; a = b", ";a=\"b;\\\"c\"", ";a;b=\"\"", ";n=0123456789"]),
        _ => "",
    }
}

/// The origin form as a rule.
fn any_target(prng: &mut Prng) -> String {
    match prng.below(12) {
        0 => format!("{}://{}{}", one_of(prng, &["http", "HTTP", "https"]), named_host(prng), target(prng)),
        1 => format!("http://{}/?{}", named_host(prng), prng.below(100)),
        _ => target(prng),
    }
}

/// A path, escaped where it must be, and often a query.
fn target(prng: &mut Prng) -> String {
    let mut target =
        one_of(prng, &["/", "/json", "/plaintext", "/echo", "/hello/", "//", "/a/b/../c/"]).to_owned();
    for _ in 0..if prng.below(3) == 0 { prng.below(12) } else { prng.below(3) } {
        let part =
            ["x", "long-segment_of.a~path", "%20", "%C3%B6", "%2f", ":@", ";v=1", "'(){}|", "/", "abc123"];
        target.push_str(one_of(prng, &part));
    }
    if prng.below(3) == 0 {
        target.push_str(one_of(prng, &["?", "?a=b&c=%26", "??/x", "?q=%E2%82%AC&page=12", "?x[]={}|"]));
    }
    target
}

fn named_host(prng: &mut Prng) -> &'static str {
    one_of(prng, &["a", "a.example", "www.a-long-name.example:8080", "127.0.0.1:80", "[::1]:8080", "a%2db:"])
}

/// An empty value is one too (RFC 9110 §7.2).
fn host(prng: &mut Prng) -> &'static str {
    match prng.below(12) {
        0 => "",
        _ => named_host(prng),
    }
}

fn connection(prng: &mut Prng) -> String {
    let values = [
        "keep-alive",
        "keep-alive, x",
        "Keep-Alive",
        "upgrade, keep-alive",
        ", ,x",
        "",
        "TE",
        "close",
        "keep-alive, close",
        "Close ,x",
        "not-close",
    ];
    format!("{}: {}", one_of(prng, &["Connection", "connection"]), one_of(prng, &values))
}

/// A field that means nothing to a server.
pub(crate) fn field(prng: &mut Prng) -> String {
    let name = one_of(
        prng,
        &[
            "Accept",
            "User-Agent",
            "cookie",
            "X-Forwarded-For",
            "x_1",
            "Accept-Encoding",
            "TE",
            "!#$%&'*+-.^`|~",
        ],
    );
    let value: String = (0..prng.below(60)).map(|_| char::from(letter(prng))).collect();
    match prng.below(8) {
        0 => format!("{name}:{value}"),
        1 => format!("{name}: \t{value}, \u{e9}:;=\"\t "),
        2 => format!("{name}:"),
        _ => format!("{name}: {value}"),
    }
}

/// A head and a body.
pub(crate) fn written(line: &str, fields: &[String], body: &[u8]) -> Vec<u8> {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    [format!("{line}\r\n{fields}\r\n").as_bytes(), body].concat()
}

/// Data of a body: often with what looks like a frame or a request.
pub(crate) fn bytes(prng: &mut Prng, count_max: usize) -> Vec<u8> {
    let count = below(prng, count_max + 1);
    match prng.below(4) {
        0 => WRK.iter().copied().cycle().take(count).collect(),
        1 => b"0\r\n\r\n".iter().copied().cycle().take(count).collect(),
        _ => (0..count).map(|_| prng.next_u64() as u8).collect(),
    }
}

fn letter(prng: &mut Prng) -> u8 {
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/ ="[below(prng, 68)]
}

pub(crate) fn below(prng: &mut Prng, bound: usize) -> usize {
    prng.below(bound as u64) as usize
}

pub(crate) fn one_of<'a>(prng: &mut Prng, choices: &[&'a str]) -> &'a str {
    choices[below(prng, choices.len())]
}

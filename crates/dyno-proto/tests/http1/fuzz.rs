//! Chance: mutations of real messages never panic, and no outcome depends on how the bytes were cut.

use crate::support::{Body, Chance, Outcome, decode, read, read_at_every_cut, read_within, shown};
use dyno_proto::http1::request::Limits;
use dyno_proto::http1::response;

const REQUESTS: &[&[u8]] = &[
    b"GET /json HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n",
    b"POST /a/%20b?c=d HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\nhello, world",
    b"\r\nPUT http://a:1/b HTTP/1.0\r\nConnection: keep-alive, x\r\nContent-Length: 0\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nhost:\t\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
    b"GET /a-path/of/some-length?and=a-query HTTP/1.1\r\nHost: www.example.org:65535\r\nUser-Agent: an agent of more \
than thirty-two bytes\r\nUpgrade-Insecure-Requests: 1\r\nConnection: keep-alive\r\nX_1: \xc3\xa9\r\n\r\n",
    b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nX-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n",
];
const REPLIES: &[&[u8]] = &[
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
    b"HTTP/1.0 404\nContent-Length: 3, 3\nX: a\n b\n\nabc",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nServer: x\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
];
const BODIES: &[&[u8]] = &[
    b"5\r\nhello\r\n6;a=b;c=\"d\\\"e\"\r\n world\r\n0\r\nX: y\r\nZ:\r\n\r\n",
    b"1 ; a = b\r\nx\r\n00A\r\n0123456789\r\n000;z\r\n\r\n",
];
/// What mutations put in: the bytes that decide something, and pieces of fields.
const PIECES: &[&[u8]] = &[
    b"\r\n",
    b"\r",
    b"\n",
    b" ",
    b"\t",
    b":",
    b",",
    b";",
    b"=",
    b"\"",
    b"\\",
    b"%",
    b"%41",
    b"/",
    b"?",
    b"#",
    b"*",
    b"0",
    b"5",
    b"f",
    b"\0",
    b"\x7f",
    b"\x80",
    b"[",
    b"]",
    b"@",
    b"GET ",
    b"HTTP/1.1",
    b"HTTP/1.0",
    b"Host: b\r\n",
    b"Host: b:1\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"Expect: 100-continue\r\n",
    b"ffffffffffffffff",
    b"\r\n\r\n",
];
/// Enough to meet every pair of piece and place many times, in about a second each.
const ROUNDS: usize = 60_000;

fn mutated(chance: &mut Chance, seeds: &[&[u8]]) -> Vec<u8> {
    let mut bytes = chance.one_of(seeds).to_vec();
    for _ in 0..chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        match chance.below(4) {
            0 => drop(bytes.splice(at..at, chance.one_of(PIECES).iter().copied())),
            1 => drop(bytes.drain(at..(at + chance.below(5)).min(bytes.len()))),
            2 if at < bytes.len() => bytes[at] = chance.next() as u8,
            _ if at < bytes.len() => bytes[at] = chance.one_of(PIECES)[0],
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// Two outcomes fit when the shorter input was undecided, or both are the same.
fn check_cut(bytes: &[u8], cut: usize, whole: &Outcome, limits: &Limits) {
    let part = read_within(&bytes[..cut], limits);
    assert!(
        part == Outcome::NeedMore || &part == whole,
        "{part:?}, then {whole:?}: {cut} of {}",
        shown(bytes)
    );
}

#[test]
fn mutated_requests_never_depend_on_cuts() {
    let mut chance = Chance::new(0x0f0f_0001);
    let small = Limits { line_bytes_max: 30, head_bytes_max: 90, headers_max: 3 };
    for _ in 0..ROUNDS {
        let bytes = mutated(&mut chance, REQUESTS);
        for limits in [&Limits::default(), &small] {
            let whole = read_within(&bytes, limits);
            check_cut(&bytes, chance.below(bytes.len() + 1), &whole, limits);
        }
        if chance.below(50) == 0 {
            assert_eq!(read_at_every_cut(&bytes, &small), read_within(&bytes, &small));
        }
    }
}

/// What follows a decided head must not change it.
#[test]
fn bytes_after_a_head_never_change_it() {
    let mut chance = Chance::new(0x0f0f_0002);
    for _ in 0..ROUNDS / 4 {
        let mut bytes = mutated(&mut chance, REQUESTS);
        let alone = read(&bytes);
        bytes.extend_from_slice(chance.one_of(PIECES));
        assert!(alone == Outcome::NeedMore || alone == read(&bytes), "{}", shown(&bytes));
    }
}

#[test]
fn mutated_bodies_never_depend_on_cuts() {
    let mut chance = Chance::new(0x0f0f_0003);
    for _ in 0..ROUNDS {
        let bytes = mutated(&mut chance, BODIES);
        let whole = decode([&bytes[..]]);
        let cut = chance.below(bytes.len() + 1);
        assert_eq!(decode([&bytes[..cut], &bytes[cut..]]), whole, "{cut} of {}", shown(&bytes));
        if chance.below(20) == 0 {
            assert_eq!(decode(bytes.chunks(1)), whole, "{}", shown(&bytes));
        }
        if let Body::Whole { used, .. } = whole {
            assert!(used <= bytes.len());
        }
    }
}

#[test]
fn mutated_replies_never_depend_on_cuts() {
    let mut chance = Chance::new(0x0f0f_0004);
    for _ in 0..ROUNDS {
        let bytes = mutated(&mut chance, REPLIES);
        let asked = chance.one_of(&[response::Asked::Head, response::Asked::Other]);
        let whole = format!("{:?}", response::parse(&bytes, asked));
        let cut = chance.below(bytes.len() + 1);
        let part = format!("{:?}", response::parse(&bytes[..cut], asked));
        assert!(part == "Ok(NeedMore)" || part == whole, "{part}, then {whole}: {cut} of {}", shown(&bytes));
    }
}

#[test]
fn noise_is_refused_or_waited_for() {
    let mut chance = Chance::new(0x0f0f_0005);
    for _ in 0..ROUNDS {
        let noise: Vec<u8> = (0..chance.below(64)).map(|_| chance.next() as u8).collect();
        assert!(!matches!(read(&noise), Outcome::Whole(_)), "{}", shown(&noise));
        let _ = decode([&noise[..]]);
        let _ = response::parse(&noise, response::Asked::Other);
    }
}

//! The short way: which requests take it, and that what it remembers never shows.
//! That its answers are those of the careful way is checked wherever a test reads a request (`support`).

use crate::support::{Chance, Outcome, accepted, read, read_within, shown};
use dyno_proto::http1::request::{Limits, Slots, parse_usual};

fn request(target: &str, host: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
}

fn takes(slots: &mut Slots, bytes: &[u8]) -> bool {
    parse_usual(bytes, &Limits::default(), slots).is_some()
}

/// With something after it, as when requests are pipelined: ends are looked for in whole words.
fn takes_pipelined(slots: &mut Slots, bytes: &[u8]) -> bool {
    takes(slots, &[bytes, b"GET / HTTP/1.1\r\n"].concat())
}

#[test]
fn what_simple_clients_send_takes_the_short_way() {
    let slots = &mut Slots::new(&Limits::default());
    for target in [
        "/",
        "/json",
        "/a/b-c_d.e~f",
        "/a?b=c&d=e?f",
        "/?",
        &format!("/{}?{}", "p".repeat(99), "q".repeat(99)),
    ] {
        for host in ["a", "example.com", "127.0.0.1:8080", "a-b.c:1", "a:65535", "a:", &"h".repeat(200)] {
            let bytes = request(target, host);
            let head = accepted(&bytes);
            assert_eq!((head.target.as_slice(), head.host), (target.as_bytes(), Some(host.into())));
            assert!(takes_pipelined(slots, &bytes), "{}", shown(&bytes));
        }
    }
    assert!(takes(slots, b"GET /json HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"), "also alone");
}

#[test]
fn everything_else_is_left_to_the_careful_way() {
    let slots = &mut Slots::new(&Limits::default());
    assert!(takes_pipelined(slots, &request("/a", "example.com")), "so that something is remembered");
    for odd in [
        "POST /a HTTP/1.1\r\nHost: example.com\r\n\r\n",
        "GET /a HTTP/1.0\r\nHost: example.com\r\n\r\n",
        "GET /%61 HTTP/1.1\r\nHost: example.com\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: example.com\r\n\r\n",
        "GET http://example.com/a HTTP/1.1\r\nHost: example.com\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: example.com\r\nHost: example.com\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: example.community\r\nA: b\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: example.com \r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: example.com\n\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: example.com:65536\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: example.com:8a\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: exa/mple.com\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: \r\n\r\n",
        "GET /a HTTP/1.1\r\nHost:example.com\r\n\r\n",
        "\r\nGET /a HTTP/1.1\r\nHost: example.com\r\n\r\n",
    ] {
        assert!(!takes_pipelined(slots, odd.as_bytes()), "{odd:?}");
    }
}

#[test]
fn a_part_of_a_request_never_takes_the_short_way() {
    let slots = &mut Slots::new(&Limits::default());
    let bytes = request("/json?a", "127.0.0.1:8080");
    for _ in 0..2 {
        for cut in 0..bytes.len() {
            assert!(!takes(slots, &bytes[..cut]), "{cut} bytes");
        }
        assert!(takes(slots, &bytes), "and from now on the host is remembered");
    }
}

#[test]
fn limits_hold_on_the_short_way() {
    let bytes = request("/json", "example.com:8080");
    let line_bytes = "GET /json HTTP/1.1".len();
    let limits = Limits { line_bytes_max: line_bytes, head_bytes_max: bytes.len(), headers_max: 1 };
    assert!(parse_usual(&bytes, &limits, &mut Slots::new(&limits)).is_some());
    for short in [
        Limits { line_bytes_max: line_bytes - 1, ..limits },
        Limits { head_bytes_max: bytes.len() - 1, ..limits },
        Limits { headers_max: 0, ..limits },
    ] {
        assert!(parse_usual(&bytes, &short, &mut Slots::new(&short)).is_none(), "{short:?}");
        assert!(parse_usual(&bytes, &limits, &mut Slots::new(&short)).is_none() == (short.headers_max == 0));
        assert!(matches!(read_within(&bytes, &short), Outcome::Reject(_)), "{short:?}");
    }
}

/// Each request follows one with a host that differs in one byte or in length; `read` compares the ways.
#[test]
fn a_host_that_is_almost_the_remembered_one_is_not_taken_for_it() {
    let mut chance = Chance::new(0x0f0f_0006);
    for length in 1..70 {
        let host: String = (0..length).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
        let bytes = [&request("/a", &host)[..], b"GET /b HTTP/1.1\r\n"].concat();
        for _ in 0..100 {
            assert!(matches!(read(&bytes), Outcome::Whole(_)));
            let mut other = bytes.clone();
            let at = chance.below(other.len());
            match chance.below(3) {
                0 => other[at] = chance.next() as u8,
                1 => drop(other.remove(at)),
                _ => other.insert(at, chance.next() as u8),
            }
            read(&other);
        }
    }
}

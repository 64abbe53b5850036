//! Names, values, hosts and targets of every length, with every byte at every place: heads are read by blocks, and no
//! edge of one may show.

use crate::support::{Outcome, accepted, outcome, read, shown};
use dyno_proto::http1::request::{Limits, Parsed, Reject, Slots, parse};

const TOKEN_SIGNS: &[u8] = b"!#$%&'*+-.^_`|~";

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || TOKEN_SIGNS.contains(&byte)
}

/// What is wrong with the request, if anything is.
fn reject_of(bytes: &[u8]) -> Option<Reject> {
    match read(bytes) {
        Outcome::Whole(_) => None,
        Outcome::Reject(reject) => Some(reject),
        Outcome::NeedMore => panic!("cut: {}", shown(bytes)),
    }
}

/// Requests with a part of each length in the middle, and in it each byte at each place.
fn each_byte(before: &str, after: &str, lengths: &[usize], mut check: impl FnMut(&[u8], usize, u8)) {
    for &length in lengths {
        for place in 0..length {
            let mut bytes = [before, &"a".repeat(length), after].concat().into_bytes();
            for byte in 0..=255 {
                bytes[before.len() + place] = byte;
                check(&bytes, place, byte);
            }
        }
    }
}

const LENGTHS: &[usize] = &[1, 2, 7, 8, 9, 14, 15, 16, 17, 24, 31, 32, 33, 40];

#[test]
fn a_byte_that_no_name_has_is_found_wherever_it_stands() {
    for after in [": b\r\n\r\n", ": a value that is longer than a block\r\nA: b\r\n\r\n"] {
        each_byte("GET / HTTP/1.1\r\nHost: a\r\n", after, LENGTHS, |bytes, place, byte| {
            let expected = match byte {
                b':' if place > 0 => None,
                b' ' | b'\t' if place == 0 => Some(Reject::Folded),
                b' ' | b'\t' => Some(Reject::BlankBeforeColon),
                b'\n' if place == 0 => Some(Reject::BareFeed),
                b'\r' if place == 0 => Some(Reject::BareReturn),
                _ if is_token(byte) => None,
                _ => Some(Reject::FieldName),
            };
            assert_eq!(reject_of(bytes), expected, "{}", shown(bytes));
        });
    }
}

#[test]
fn a_control_in_a_value_is_found_wherever_it_stands() {
    for after in ["\r\n\r\n", " and more of it\r\nAnother: field\r\n\r\n"] {
        each_byte("GET / HTTP/1.1\r\nHost: a\r\nName: ", after, LENGTHS, |bytes, _, byte| {
            let expected = match byte {
                b'\t' | b' '..=b'~' | 0x80.. => None,
                b'\r' => Some(Reject::BareReturn),
                b'\n' => Some(Reject::BareFeed),
                _ => Some(Reject::FieldValue),
            };
            assert_eq!(reject_of(bytes), expected, "{}", shown(bytes));
        });
    }
}

#[test]
fn a_byte_that_no_host_has_is_found_wherever_it_stands() {
    for after in ["z\r\n\r\n", "z:8080\r\n\r\n", "z:12345\r\nAnother: field\r\n\r\n"] {
        each_byte("GET / HTTP/1.1\r\nHost: a", after, LENGTHS, |bytes, _, byte| {
            let expected = match byte {
                // What these begin is the business of other tests.
                b':' | b'%' => return,
                b'\r' => Some(Reject::BareReturn),
                b'\n' => Some(Reject::BareFeed),
                0..0x20 | 0x7f if byte != b'\t' => Some(Reject::FieldValue),
                _ if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte) => None,
                _ => Some(Reject::HostValue),
            };
            assert_eq!(reject_of(bytes), expected, "{}", shown(bytes));
        });
    }
}

#[test]
fn a_byte_that_no_target_has_is_found_wherever_it_stands() {
    for after in [" HTTP/1.1\r\nHost: a\r\n\r\n", "?and-a-query HTTP/1.1\r\nHost: a\r\n\r\n"] {
        each_byte("GET /", after, LENGTHS, |bytes, _, byte| {
            let expected = match byte {
                b'#' | 0..0x20 | 0x7f.. if byte != b'\r' && byte != b'\n' => Some(Reject::TargetByte),
                b'\r' | b'\n' | b' ' => Some(Reject::Version),
                b'%' => return,
                _ => None,
            };
            assert_eq!(reject_of(bytes), expected, "{}", shown(bytes));
        });
    }
}

#[test]
fn names_and_values_of_every_length_come_out_as_they_went_in() {
    for length in 1..70 {
        let (name, value) = ("n".repeat(length), "v".repeat(length));
        let text =
            format!("GET / HTTP/1.1\r\n{name}: {value}\r\nHost: a\r\nB:\t \r\nC:\t{value}\t{value} \r\n\r\n");
        let request = accepted(text.as_bytes());
        let own: Vec<_> = request.headers.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let two = format!("{value}\t{value}");
        let expected = [(name.as_str(), value.as_str()), ("Host", "a"), ("B", ""), ("C", &two)];
        assert_eq!(own, expected.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    }
}

#[test]
fn hosts_and_ports_of_every_length_are_known() {
    for length in 1..40 {
        for port in ["", ":", ":1", ":80", ":8080", ":10000", ":65535", ":00080"] {
            for more in ["", "A: b\r\n", "Another-Field: with a value\r\n"] {
                let host = format!("{}{port}", "h".repeat(length));
                let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
                assert_eq!(accepted(text.as_bytes()).host, Some(host.into_bytes()));
            }
        }
        for port in [":65536", ":99999", ":100000", ":8a", ":8:8"] {
            let text = format!("GET / HTTP/1.1\r\nHost: {}{port}\r\n\r\n", "h".repeat(length));
            assert_eq!(outcome(text.as_bytes()), Outcome::Reject(Reject::HostValue), "{text}");
        }
    }
}

#[test]
fn a_header_is_found_by_its_name_and_by_nothing_else() {
    let limits = Limits::default();
    let mut slots = Slots::new(&limits);
    let bytes = b"GET / HTTP/1.1\r\nHost: a\r\nA: b: c\r\nAB:\r\na: second\r\n\r\n";
    let Ok(Parsed::Whole { head, .. }) = parse(bytes, &limits, &mut slots) else { panic!("it is whole") };
    assert_eq!(head.headers().len(), 4);
    assert_eq!(head.header(b"hOST"), Some(&b"a"[..]));
    assert_eq!(head.header(b"a"), Some(&b"b: c"[..]), "the first of them");
    assert_eq!(head.header(b"ab"), Some(&b""[..]));
    for missing in ["", "A:", "A: b", "Hos", "b", "Host: a\r\nA"] {
        assert_eq!(head.header(missing.as_bytes()), None, "{missing:?}");
    }
}

#[test]
fn slots_with_less_room_than_the_limits_bound_the_fields() {
    let limits = Limits::default();
    let mut slots = Slots::new(&Limits { headers_max: 2, ..limits });
    let two = b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n";
    assert!(matches!(parse(two, &limits, &mut slots), Ok(Parsed::Whole { .. })));
    let three = b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\nB: c\r\n\r\n";
    assert!(matches!(parse(three, &limits, &mut slots), Err(Reject::FieldsMany)));
}

//! Hosts and ports, as they stand in Host and in absolute targets (RFC 3986 §3.2, RFC 9110 §4.2, §7.2).

use crate::scan::{digits_in_front, hex_value, host_bytes, is_reg_name_byte};
use core::net::Ipv6Addr;

/// Whether an authority must name a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    Optional,
    Required,
}

/// The highest port of TCP.
const PORT_MAX: u32 = 0xffff;

/// Bytes that an authority can hold at all; what order they must have is for [`is_authority`]. There is no
/// `@`: user information in a request is an error (RFC 9110 §4.2.4).
#[inline]
pub(crate) fn is_authority_byte(byte: u8) -> bool {
    is_reg_name_byte(byte) || matches!(byte, b':' | b'[' | b']' | b'%')
}

/// Whether this is `uri-host [ ":" port ]` with a host that is not empty.
pub(crate) fn is_authority(bytes: &[u8], port: Port) -> bool {
    let Some((host, rest)) = split_host(bytes) else { return false };
    if host.is_empty() {
        return false;
    }
    match rest {
        [] => port == Port::Optional,
        [b':', digits @ ..] => is_port(digits, port),
        _ => false,
    }
}

/// Bytes of the authority of the plain kind that the text starts with: a name in small letters or an IPv4 address,
/// with or without a port of at most five digits. `None` says nothing but that [`is_authority`] must look.
#[inline(always)]
pub(crate) fn plain_authority_bytes(text: &[u8]) -> Option<usize> {
    let bytes = host_bytes(text);
    if bytes == 0 {
        return None;
    }
    let [b':', port @ ..] = text.get(bytes..)? else { return Some(bytes) };
    match digits_in_front(port)? {
        digits @ 0..5 => Some(bytes + 1 + digits),
        // Digits of one number stand in the order of their values when there are as many of them.
        5 if port[..5] <= b"65535"[..] => Some(bytes + 6),
        _ => None,
    }
}

/// Splits off the host, if it is one; the rest starts with the colon of the port or is empty.
fn split_host(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if let [b'[', literal @ ..] = bytes {
        let end = literal.iter().position(|&byte| byte == b']')?;
        return is_ip_literal(&literal[..end]).then_some((&literal[..end], &literal[end + 1..]));
    }
    let (host, rest) = bytes.split_at(host_bytes(bytes));
    match rest {
        [] | [b':', ..] => Some((host, rest)),
        _ => split_odd_host(bytes),
    }
}

/// Registered names may have escapes and many signs, though few clients write them: kept out of the usual
/// way.
fn split_odd_host(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'%' => {
                hex_value(*bytes.get(at + 1)?)?;
                hex_value(*bytes.get(at + 2)?)?;
                at += 3;
            }
            _ if is_reg_name_byte(byte) => at += 1,
            _ => break,
        }
    }
    Some(bytes.split_at(at))
}

fn is_ip_literal(literal: &[u8]) -> bool {
    match literal {
        [b'v' | b'V', future @ ..] => is_ip_future(future),
        _ => std::str::from_utf8(literal).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()),
    }
}

/// `1*HEXDIG "." 1*( unreserved / sub-delims / ":" )` (RFC 3986 §3.2.2).
fn is_ip_future(bytes: &[u8]) -> bool {
    let digits = bytes.iter().take_while(|&&byte| hex_value(byte).is_some()).count();
    match bytes.split_at(digits) {
        ([_, ..], [b'.', rest @ ..]) => {
            !rest.is_empty() && rest.iter().all(|&byte| byte == b':' || is_reg_name_byte(byte))
        }
        _ => false,
    }
}

/// `*DIGIT` by the grammar, but a number above 65,535 is no port. An empty one means the default.
fn is_port(digits: &[u8], port: Port) -> bool {
    let mut value = 0u32;
    for &byte in digits {
        if !byte.is_ascii_digit() || value > PORT_MAX {
            return false;
        }
        value = value * 10 + u32::from(byte - b'0');
    }
    value <= PORT_MAX && (port == Port::Optional || !digits.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_told_from_what_only_looks_like_them() {
        let valid = [
            "a",
            "127.0.0.1:8080",
            "example.com",
            "example.com:",
            "a:0",
            "a:65535",
            "a:00080",
            "[::1]",
            "[::1]:80",
            "[::ffff:1.2.3.4]",
            "[v1.a:b]",
            "a_b~c!$&'()*+,;=",
            "%41",
            "a%2eb:1",
            "xn--bcher-kva.example",
        ];
        let wrong = [
            ":80",
            "",
            "a:65536",
            "a:99999999999",
            "a:8a",
            "a:-1",
            "a:1:2",
            "a b",
            "a/b",
            "u@a",
            "[::1",
            "::1",
            "[]",
            "[::1]80",
            "[::1]:x",
            "[::g]",
            "[1.2.3.4]",
            "[v.a]",
            "[v1.]",
            "[v1]",
            "%4",
            "%zz",
            "a%",
            "a\u{80}",
            "a?b",
            "a#b",
            "a\\b",
            "<a>",
            "\"a\"",
            "a|b",
            "[::1%25eth0]",
            "a[",
            "a]",
        ];
        for text in valid {
            assert!(is_authority(text.as_bytes(), Port::Optional), "{text:?}");
        }
        for text in wrong {
            assert!(!is_authority(text.as_bytes(), Port::Optional), "{text:?}");
        }
    }

    #[test]
    fn a_required_port_is_required() {
        assert!(is_authority(b"a:1", Port::Required));
        assert!(!is_authority(b"a", Port::Required));
        assert!(!is_authority(b"a:", Port::Required));
    }

    #[test]
    fn every_byte_of_an_authority_is_an_authority_byte() {
        assert!(b"[v1.a:b]:80%41".iter().all(|&byte| is_authority_byte(byte)));
        assert!(b"@/?# \t\r\n\x00\x7f\x80\"<>\\^`{|}".iter().all(|&byte| !is_authority_byte(byte)));
    }
}

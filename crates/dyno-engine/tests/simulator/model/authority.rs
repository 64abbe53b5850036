//! Host and port, as they stand in a target and in Host (RFC 3986 §3.2.2, §3.2.3; RFC 9110 §4.2.4 for what is left out:
//! nobody may give a user's name to a server).

use super::reader::{Read, Reader};
use std::net::Ipv6Addr;

/// Whether the port may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    Optional,
    /// CONNECT names one always (RFC 9112 §3.2.3).
    Needed,
}

/// Takes host and port, never empty (RFC 9110 §4.2.1). What follows them must be there, and stays: the caller knows what
/// may stand there. Like the value of a field it is judged when it has ended.
pub(crate) fn take_authority(reader: &mut Reader<'_>, port: Port) -> Read<Vec<u8>> {
    let authority = reader.take_while(|byte| is_name_byte(byte) || b":[]".contains(&byte))?;
    if is_authority(&authority, port) {
        return Ok(authority);
    }
    reader.next()?;
    reader.wrong(400, "no host and port")
}

/// Whether a value of Host is one: empty, or host and port and nothing else (RFC 9110 §7.2).
pub(crate) fn is_host(value: &[u8]) -> bool {
    value.is_empty() || is_authority(value, Port::Optional)
}

fn is_authority(text: &[u8], port: Port) -> bool {
    let end_of_literal = text.iter().position(|byte| *byte == b']').map(|at| at + 1);
    let end_of_name = text.iter().position(|byte| *byte == b':');
    let (host, rest) = match text.first() {
        Some(b'[') => text.split_at(end_of_literal.unwrap_or(text.len())),
        _ => text.split_at(end_of_name.unwrap_or(text.len())),
    };
    (is_literal(host) || is_name(host)) && is_port(rest, port)
}

/// unreserved, sub-delims, and the sign that begins an escape.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&byte)
}

/// A registered name or an IPv4 address, which is one too by its bytes.
fn is_name(host: &[u8]) -> bool {
    let is_escaped = |at: usize| {
        let digits = host.get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let mut bytes = host.iter().enumerate();
    !host.is_empty() && bytes.all(|(at, byte)| is_name_byte(*byte) && (*byte != b'%' || is_escaped(at)))
}

/// An address in brackets.
fn is_literal(host: &[u8]) -> bool {
    match host {
        [b'[', inner @ .., b']'] => is_ipv6(inner) || is_future(inner),
        _ => false,
    }
}

fn is_ipv6(inner: &[u8]) -> bool {
    std::str::from_utf8(inner).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )
fn is_future(inner: &[u8]) -> bool {
    let Some(dot) = inner.iter().position(|byte| *byte == b'.') else { return false };
    let (version, rest) = (&inner[..dot], &inner[dot + 1..]);
    version.len() > 1
        && version[0].eq_ignore_ascii_case(&b'v')
        && version[1..].iter().all(u8::is_ascii_hexdigit)
        && !rest.is_empty()
        && rest.iter().all(|byte| *byte == b':' || *byte != b'%' && is_name_byte(*byte))
}

/// A colon and the digits of a number that a port can have; none at all is the scheme's own port (RFC 3986 §3.2.3).
fn is_port(rest: &[u8], port: Port) -> bool {
    match rest {
        [] | [b':'] => port == Port::Optional,
        [b':', digits @ ..] => {
            let number = digits.iter().try_fold(0_u32, |number, digit| {
                let next = number * 10 + u32::from(digit.wrapping_sub(b'0'));
                (digit.is_ascii_digit() && next <= 65_535).then_some(next)
            });
            number.is_some()
        }
        _ => false,
    }
}

//! The PROXY protocol, versions 1 and 2 (HAProxy, "The PROXY protocol", 2020/03/05): what a proxy says in front of a
//! connection's first byte.
//!
//! A header is read whole or refused; the outcome does not depend on how its bytes were cut. What follows it is left alone.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest line of version 1, with its end (§2.1).
pub const LINE_BYTES_MAX: usize = 107;

/// A header of version 2, with what vendors add to it; the specification asks for 536 bytes of room at least (§2.2), and a
/// cloud's identifiers need some hundred.
pub const BLOCK_BYTES_MAX: usize = 4_096;

/// What version 2 begins with.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// What version 1 begins with.
const WORD: &[u8; 6] = b"PROXY ";

/// How far a header came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// It may become one.
    NeedMore,
    /// It is whole; the connection's own bytes begin after `used`.
    Whole {
        /// Who connected to the proxy; `None` where the proxy speaks for itself, or does not know.
        source: Option<SocketAddr>,
        /// The header's bytes.
        used: usize,
    },
}

/// Why bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyError {
    /// Neither version begins so.
    NoHeader,
    /// A line of version 1 that is too long, or whose words are wrong.
    Line,
    /// A block of version 2 whose version, command, family or lengths are wrong.
    Block,
}

/// Reads a header from the front of a connection.
///
/// # Errors
/// [`ProxyError`] as soon as the bytes can become no header.
pub fn parse(input: &[u8]) -> Result<Parsed, ProxyError> {
    if begins(input, SIGNATURE) {
        return block(input);
    }
    if begins(input, WORD) {
        return line(input);
    }
    Err(ProxyError::NoHeader)
}

/// Whether the input begins like this, as far as it goes.
fn begins(input: &[u8], with: &[u8]) -> bool {
    let both = input.len().min(with.len());
    input[..both] == with[..both]
}

fn line(input: &[u8]) -> Result<Parsed, ProxyError> {
    let room = &input[..input.len().min(LINE_BYTES_MAX)];
    let Some(end) = room.iter().position(|&byte| byte == b'\n') else {
        let is_over = room.len() == LINE_BYTES_MAX;
        return if is_over { Err(ProxyError::Line) } else { Ok(Parsed::NeedMore) };
    };
    let text = room[..end].strip_suffix(b"\r").and_then(|text| text.strip_prefix(WORD));
    let text = text.and_then(|text| str::from_utf8(text).ok()).ok_or(ProxyError::Line)?;
    let source = words(text).ok_or(ProxyError::Line)?;
    Ok(Parsed::Whole { source, used: end + 1 })
}

/// What stands behind PROXY.
fn words(text: &str) -> Option<Option<SocketAddr>> {
    let (family, rest) = text.split_once(' ').unwrap_or((text, ""));
    if family == "UNKNOWN" {
        // Whatever follows is to be ignored (§2.1).
        return Some(None);
    }
    let words: Vec<&str> = rest.split(' ').collect();
    let [source, destination, source_port, destination_port] = words[..] else { return None };
    let (source, _) = (address(family, source)?, address(family, destination)?);
    let (port, _) = (port(source_port)?, port(destination_port)?);
    Some(Some(SocketAddr::new(source, port)))
}

fn address(family: &str, word: &str) -> Option<IpAddr> {
    match family {
        "TCP4" => word.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        "TCP6" => word.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        _ => None,
    }
}

/// Decimal, without leading zeros (§2.1).
fn port(word: &str) -> Option<u16> {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
    word.parse().ok().filter(|_| is_plain)
}

/// Signature, version and command, family, length, addresses, and what vendors add.
fn block(input: &[u8]) -> Result<Parsed, ProxyError> {
    let (Some(&command), family, length) = (input.get(12), input.get(13), input.get(14..16)) else {
        return Ok(Parsed::NeedMore);
    };
    if !matches!(command, 0x20 | 0x21) {
        return Err(ProxyError::Block);
    }
    let Some(&family) = family else { return Ok(Parsed::NeedMore) };
    // Of the families, those of streams, and the unknown one. A proxy that speaks for itself may name any (§2.2).
    let least = match family {
        _ if command == 0x20 => 0,
        0x00 => 0,
        0x11 => 12,
        0x21 => 36,
        0x31 => 216,
        _ => return Err(ProxyError::Block),
    };
    let Some(length) = length else { return Ok(Parsed::NeedMore) };
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    if length < least || 16 + length > BLOCK_BYTES_MAX {
        return Err(ProxyError::Block);
    }
    let Some(payload) = input.get(16..16 + length) else { return Ok(Parsed::NeedMore) };
    // The proxy speaks for itself (a health check): what else it says is to be ignored (§2.2).
    let source = if command == 0x20 { None } else { source(family, payload) };
    if command == 0x21 && family != 0x00 && !are_additions(&payload[least..]) {
        return Err(ProxyError::Block);
    }
    Ok(Parsed::Whole { source, used: 16 + length })
}

fn source(family: u8, payload: &[u8]) -> Option<SocketAddr> {
    let port = |at: usize| Some(u16::from_be_bytes(*payload.get(at..)?.first_chunk()?));
    match family {
        0x11 => Some(SocketAddr::new(Ipv4Addr::from(*payload.first_chunk::<4>()?).into(), port(8)?)),
        0x21 => Some(SocketAddr::new(Ipv6Addr::from(*payload.first_chunk::<16>()?).into(), port(32)?)),
        _ => None,
    }
}

/// Whether these bytes are pieces of a type, a length and so many bytes each (§2.2.1).
fn are_additions(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let [_, high, low, rest @ ..] = bytes else { return false };
        let Some(after) = rest.get(usize::from(u16::from_be_bytes([*high, *low]))..) else { return false };
        bytes = after;
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn v2(command: u8, family: u8, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
        [SIGNATURE, &[command, family][..], &length, payload].concat()
    }

    fn whole(header: &[u8]) -> Option<SocketAddr> {
        let bytes = [header, b"GET / HTTP/1.1\r\n"].concat();
        match parse(&bytes) {
            Ok(Parsed::Whole { source, used }) if used == header.len() => source,
            other => panic!("{}: {other:?}", header.escape_ascii()),
        }
    }

    /// The outcome is the same with every cut: "more" up to some byte, and then what it is.
    #[track_caller]
    fn cut_everywhere(bytes: &[u8], outcome: Result<Parsed, ProxyError>) {
        assert_eq!(parse(bytes), outcome, "{}", bytes.escape_ascii());
        let mut decided = false;
        for end in 0..bytes.len() {
            match parse(&bytes[..end]) {
                Ok(Parsed::NeedMore) => assert!(!decided, "{} at {end}", bytes.escape_ascii()),
                early => {
                    decided = true;
                    assert_eq!(early, outcome, "{} at {end}", bytes.escape_ascii());
                }
            }
        }
    }

    #[test]
    fn lines_of_version_1_are_read() {
        for (line, source) in [
            ("PROXY TCP4 192.0.2.7 192.0.2.8 56324 443\r\n", Some("192.0.2.7:56324")),
            ("PROXY TCP6 2001:db8::7 2001:db8::8 1 65535\r\n", Some("[2001:db8::7]:1")),
            ("PROXY UNKNOWN\r\n", None),
            ("PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n", None),
            ("PROXY TCP4 255.255.255.255 255.255.255.255 0 0\r\n", Some("255.255.255.255:0")),
        ] {
            let source = source.map(|text: &str| text.parse().unwrap());
            assert_eq!(whole(line.as_bytes()), source, "{line}");
            cut_everywhere(line.as_bytes(), Ok(Parsed::Whole { source, used: line.len() }));
        }
    }

    #[test]
    fn blocks_of_version_2_are_read() {
        let four = [&[192, 0, 2, 7, 192, 0, 2, 8][..], &[0xdc, 0x04, 0x01, 0xbb]].concat();
        let six = [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[7], &[0; 16], &[0, 1, 0, 2]].concat();
        let added = [&four[..], &[0x01, 0, 2, b'h', b'2', 0x04, 0, 0]].concat();
        for (block, source) in [
            (v2(0x21, 0x11, &four), Some("192.0.2.7:56324")),
            (v2(0x21, 0x11, &added), Some("192.0.2.7:56324")),
            (v2(0x21, 0x21, &six), Some("[2001:db8::7]:1")),
            (v2(0x21, 0x31, &[b'/'; 216]), None),
            (v2(0x21, 0x00, &[]), None),
            (v2(0x21, 0x00, &[9; 5]), None),
            (v2(0x20, 0x00, &[]), None),
            (v2(0x20, 0x11, &[1, 2, 3]), None),
            (v2(0x20, 0x12, &four), None),
            (v2(0x20, 0xff, &[]), None),
        ] {
            let source = source.map(|text: &str| text.parse().unwrap());
            assert_eq!(whole(&block), source, "{block:?}");
            cut_everywhere(&block, Ok(Parsed::Whole { source, used: block.len() }));
        }
    }

    #[test]
    fn what_is_no_header_is_refused_at_the_first_byte_that_shows_it() {
        for (bytes, error) in [
            (&b"GET / HTTP/1.1\r\n"[..], ProxyError::NoHeader),
            (b"PROXI TCP4", ProxyError::NoHeader),
            (b"proxy TCP4 192.0.2.7 192.0.2.8 1 2\r\n", ProxyError::NoHeader),
            (b"\r\n\r\n\0\r\nQUIT\r", ProxyError::NoHeader),
            (b" PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n", ProxyError::NoHeader),
            (b"PROXY TCP4 192.0.2.7 192.0.2.8 1 2\n", ProxyError::Line),
            (b"PROXY  TCP4 192.0.2.7 192.0.2.8 1 2\r\n", ProxyError::Line),
            (b"PROXY TCP4 192.0.2.7 192.0.2.8 1 2 \r\n", ProxyError::Line),
            (b"PROXY TCP4 192.0.2.7 192.0.2.8 1\r\n", ProxyError::Line),
            (b"PROXY TCP4 192.0.2.7 192.0.2.8 01 2\r\n", ProxyError::Line),
            (b"PROXY TCP4 192.0.2.7 192.0.2.8 +1 2\r\n", ProxyError::Line),
            (b"PROXY TCP4 192.0.2.7 192.0.2.8 1 65536\r\n", ProxyError::Line),
            (b"PROXY TCP4 192.0.2.07 192.0.2.8 1 2\r\n", ProxyError::Line),
            (b"PROXY TCP4 2001:db8::7 2001:db8::8 1 2\r\n", ProxyError::Line),
            (b"PROXY TCP6 192.0.2.7 192.0.2.8 1 2\r\n", ProxyError::Line),
            (b"PROXY UDP4 192.0.2.7 192.0.2.8 1 2\r\n", ProxyError::Line),
            (b"PROXY \r\n", ProxyError::Line),
            (b"PROXY TCP4 \xff\r\n", ProxyError::Line),
        ] {
            cut_everywhere(bytes, Err(error));
        }
        let long = [b"PROXY UNKNOWN ", &[b'x'; LINE_BYTES_MAX][..]].concat();
        cut_everywhere(&long, Err(ProxyError::Line));
    }

    #[test]
    fn a_block_with_wrong_numbers_is_refused() {
        let four = [0; 12];
        for block in [
            v2(0x22, 0x11, &four),
            v2(0x11, 0x11, &four),
            v2(0x31, 0x11, &four),
            v2(0x21, 0x12, &four),
            v2(0x21, 0x41, &four),
            v2(0x21, 0x11, &four[..11]),
            v2(0x21, 0x21, &[0; 35]),
            v2(0x21, 0x11, &[&four[..], &[1, 0]].concat()),
            v2(0x21, 0x11, &[&four[..], &[1, 0, 2, 9]].concat()),
            v2(0x21, 0x11, &[0; BLOCK_BYTES_MAX - 15]),
        ] {
            cut_everywhere(&block, Err(ProxyError::Block));
        }
    }
}

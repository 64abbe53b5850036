//! Percent-encoding of paths (RFC 3986 §2.1): the router calls it before and after it matches.
//!
//! A route is matched against the *normal* path, in which only bytes that never mean anything are decoded;
//! a parameter is decoded whole, after the match. So `%2F` is part of a parameter and never ends a segment.

use crate::scan::hex_value;
use std::fmt;

/// A percent sign that is not followed by two hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadEscape {
    /// Where the percent sign stands.
    pub at: usize,
}

impl fmt::Display for BadEscape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the percent sign at byte {} is not followed by two hexadecimal digits", self.at)
    }
}

impl std::error::Error for BadEscape {}

/// Whether there is anything to decode; if not, the bytes can be used as they are.
#[inline]
pub fn has_escapes(raw: &[u8]) -> bool {
    raw.contains(&b'%')
}

/// Appends `raw` to `out` with every escape decoded: for one parameter or one query value. Any byte can
/// come out, also NUL and `/`. A plus sign stays one.
///
/// # Errors
/// [`BadEscape`]; `out` then holds what was decoded before it.
pub fn decode(raw: &[u8], out: &mut Vec<u8>) -> Result<(), BadEscape> {
    rewrite(raw, out, |byte, out| out.push(byte))
}

/// Appends the normal form of a path to `out` (RFC 3986 §6.2.2): escaped letters, digits and `-._~` are
/// decoded, all other escapes stay, in upper case. Two paths that mean the same have the same normal form.
///
/// # Errors
/// [`BadEscape`]; `out` then holds what was rewritten before it.
pub fn normalize(raw: &[u8], out: &mut Vec<u8>) -> Result<(), BadEscape> {
    rewrite(raw, out, |byte, out| match byte {
        b'-' | b'.' | b'_' | b'~' => out.push(byte),
        _ if byte.is_ascii_alphanumeric() => out.push(byte),
        _ => out.extend_from_slice(&escape(byte)),
    })
}

/// The escape of a byte.
pub(crate) fn escape(byte: u8) -> [u8; 3] {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    [b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

/// Copies `raw`, giving each escaped byte to `put`.
fn rewrite(raw: &[u8], out: &mut Vec<u8>, put: impl Fn(u8, &mut Vec<u8>)) -> Result<(), BadEscape> {
    let mut at = 0;
    while let Some(length) = raw[at..].iter().position(|&byte| byte == b'%') {
        out.extend_from_slice(&raw[at..at + length]);
        at += length;
        let byte = escaped_byte(&raw[at..]).ok_or(BadEscape { at })?;
        put(byte, out);
        at += 3;
    }
    out.extend_from_slice(&raw[at..]);
    Ok(())
}

fn escaped_byte(raw: &[u8]) -> Option<u8> {
    match raw {
        [b'%', high, low, ..] => Some(hex_value(*high)? << 4 | hex_value(*low)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn decoded(raw: &str) -> Result<Vec<u8>, BadEscape> {
        let mut out = Vec::new();
        decode(raw.as_bytes(), &mut out).map(|()| out)
    }

    fn normal(raw: &str) -> Result<String, BadEscape> {
        let mut out = Vec::new();
        normalize(raw.as_bytes(), &mut out).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn every_byte_comes_back_from_its_escape_in_either_case() {
        for byte in 0..=255u8 {
            assert_eq!(decoded(&format!("a%{byte:02X}b")).unwrap(), [b'a', byte, b'b']);
            assert_eq!(decoded(&format!("%{byte:02x}")).unwrap(), [byte]);
            assert_eq!(escape(byte).as_slice(), format!("%{byte:02X}").as_bytes());
        }
    }

    #[test]
    fn an_escape_is_decoded_once_only() {
        assert_eq!(decoded("%2541").unwrap(), b"%41");
        assert_eq!(normal("%2541").unwrap(), "%2541");
        assert_eq!(decoded("a+b").unwrap(), b"a+b");
    }

    #[test]
    fn a_cut_or_wrong_escape_is_refused_where_it_stands() {
        for (raw, at) in [("%", 0), ("a%", 1), ("a%4", 1), ("%4g", 0), ("%g4", 0), ("%41%%41", 3), ("%+1", 0)]
        {
            assert_eq!(decoded(raw), Err(BadEscape { at }), "{raw}");
            assert_eq!(normal(raw), Err(BadEscape { at }), "{raw}");
        }
    }

    #[test]
    fn only_bytes_without_meaning_are_decoded_in_a_normal_path() {
        assert_eq!(normal("/%6aso%6E/a%2fb/%7e%3F%25%00%c3%a9").unwrap(), "/json/a%2Fb/~%3F%25%00%C3%A9");
        assert_eq!(normal("/plain").unwrap(), "/plain");
    }

    #[test]
    fn a_normal_path_is_its_own_normal_form_and_means_the_same() {
        for byte in 0..=255u8 {
            let raw = format!("/%{byte:02x}");
            let once = normal(&raw).unwrap();
            assert_eq!(normal(&once).unwrap(), once);
            assert_eq!(decoded(&once), decoded(&raw));
        }
    }

    #[test]
    fn escapes_are_seen() {
        assert!(has_escapes(b"a%41") && !has_escapes(b"a41"));
    }
}

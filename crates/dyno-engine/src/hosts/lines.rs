//! Header lines that stand in every reply of a host: a preset for safety, and the operator's own, which go before it.

use super::error::HostError;
use crate::fault::{Fault, planted};
use crate::field::{is_settable, is_value};

/// Bytes of all lines of a host: each reply carries them.
const LINES_BYTES_MAX: usize = 8 << 10;

/// What each reply says for itself; a second line would contradict it.
const OF_EACH_REPLY: [&str; 8] = [
    "accept-ranges",
    "allow",
    "content-encoding",
    "content-range",
    "etag",
    "last-modified",
    "location",
    "vary",
];

/// The preset. No Strict-Transport-Security: over a connection without TLS it must not be sent (RFC 6797 §7.2), and this
/// server has no TLS of its own. No further policy: one that fits every site does not exist.
const PRESET: [(&str, &str); 4] = [
    // A file is what its media type says: a text that looks like a script is none.
    ("X-Content-Type-Options", "nosniff"),
    // Other sites learn which site a visitor comes from, not which page.
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
    // Only this site shows its pages in frames; the second is for browsers that do not know the first.
    ("Content-Security-Policy", "frame-ancestors 'self'"),
    ("X-Frame-Options", "SAMEORIGIN"),
];

/// Lines in the making.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    preset: bool,
    own: Vec<(String, String)>,
}

impl Wanted {
    pub(crate) fn with_preset(&mut self) {
        self.preset = true;
    }

    /// One more; an empty value takes the preset's line of that name away.
    pub(crate) fn add(&mut self, name: &str, value: &str) -> Result<(), HostError> {
        let refused = |why| Err(HostError::Header { name: name.to_owned(), why });
        let is_each = OF_EACH_REPLY.iter().any(|own| name.eq_ignore_ascii_case(own));
        if is_each || !is_settable(name) {
            return refused("it is no header's name, or each reply has its own");
        }
        if !is_value(value) {
            return refused("a value is visible, without blanks at its ends");
        }
        if self.own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)) {
            return refused("it is told twice");
        }
        let bytes: usize = self.own.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        if bytes + name.len() + value.len() > LINES_BYTES_MAX {
            return refused("all of a host's have 8,192 bytes at most");
        }
        self.own.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    pub(crate) fn made(&self) -> Lines {
        let has = |name: &str| self.own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let preset = PRESET.iter().filter(|(name, _)| self.preset && !has(name));
        let own = self.own.iter().filter(|(_, value)| !value.is_empty());
        let all = preset.copied().chain(own.map(|(name, value)| (&**name, &**value)));
        let mut lines = Lines::default();
        for (name, value) in all {
            let start = lines.bytes.len();
            for piece in [name, ": ", value, "\r\n"] {
                lines.bytes.extend_from_slice(piece.as_bytes());
            }
            lines.each.push((start, name.len()));
        }
        lines
    }
}

/// Lines as they are sent.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    /// Where each begins, and how long its name is.
    each: Vec<(usize, usize)>,
}

impl Lines {
    /// Appends those that are not there yet: what a handler has said of its own reply goes before.
    pub(crate) fn put(&self, fields: &mut Vec<u8>) {
        if fields.is_empty() || planted(Fault::LineTwice) {
            return fields.extend_from_slice(&self.bytes);
        }
        let own = fields.len();
        for (at, &(start, name_bytes)) in self.each.iter().enumerate() {
            let end = self.each.get(at + 1).map_or(self.bytes.len(), |(next, _)| *next);
            if !has_line(&fields[..own], &self.bytes[start..start + name_bytes]) {
                fields.extend_from_slice(&self.bytes[start..end]);
            }
        }
    }
}

/// Whether a line of this name is among lines that each end with CRLF.
fn has_line(lines: &[u8], name: &[u8]) -> bool {
    let mut lines = lines.split(|&byte| byte == b'\n');
    lines.any(|line| line.get(name.len()) == Some(&b':') && line[..name.len()].eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(wanted: &Wanted, before: &str) -> String {
        let mut fields = before.as_bytes().to_vec();
        wanted.made().put(&mut fields);
        String::from_utf8(fields).unwrap()
    }

    #[test]
    fn own_lines_replace_those_of_the_preset_and_an_empty_one_takes_it_away() {
        let mut wanted = Wanted::default();
        assert_eq!(text(&wanted, ""), "");
        wanted.with_preset();
        assert_eq!(text(&wanted, "").lines().count(), PRESET.len());
        wanted.add("x-frame-options", "DENY").unwrap();
        wanted.add("Referrer-Policy", "").unwrap();
        wanted.add("X-Own", "a b").unwrap();
        let lines = text(&wanted, "");
        assert!(lines.contains("x-frame-options: DENY\r\n") && !lines.contains("SAMEORIGIN"), "{lines}");
        assert!(!lines.contains("Referrer") && lines.contains("nosniff\r\n"), "{lines}");
        assert!(lines.ends_with("X-Own: a b\r\n"), "{lines}");
    }

    #[test]
    fn what_a_reply_says_itself_goes_before() {
        let mut wanted = Wanted::default();
        wanted.add("Cache-Control", "no-store").unwrap();
        wanted.add("X-Own", "1").unwrap();
        assert_eq!(text(&wanted, "cache-control: max-age=1\r\n"), "cache-control: max-age=1\r\nX-Own: 1\r\n");
        assert_eq!(text(&wanted, "X-Other: X-Own: 2\r\n").matches("\r\n").count(), 3);
    }

    #[test]
    fn a_line_that_breaks_out_or_contradicts_is_refused() {
        let mut wanted = Wanted::default();
        for (name, value) in [
            ("", "x"),
            ("a b", "x"),
            ("X:", "x"),
            ("X\r\nY", "x"),
            ("X", "a\r\nSet-Cookie: b"),
            ("X", " a"),
            ("X", "\u{7f}"),
            ("Content-Length", "0"),
            ("connection", "close"),
            ("ETag", "\"x\""),
            ("Vary", "*"),
            ("Location", "/"),
            ("Server", "x"),
        ] {
            assert!(wanted.add(name, value).is_err(), "{name}: {value}");
        }
        wanted.add("X", "1").unwrap();
        assert!(wanted.add("x", "2").is_err());
        assert!(wanted.add("Y", &"y".repeat(LINES_BYTES_MAX)).is_err());
    }
}

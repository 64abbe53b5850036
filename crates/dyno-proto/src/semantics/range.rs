//! Byte ranges (RFC 9110 §14): which parts of a representation a Range field asks for, and the fields that answer it.
//!
//! The engine's content calls it for GET. What is malformed, of another unit, or asks for more than there is, is answered
//! with the whole: a client that sends ranges must take that.

use crate::http1::encode;
use crate::scan::{decimal, trim_blanks};

/// Parts of one reply: what viewers of documents ask for at once. Many small ones are how a server is made to work for
/// nothing (RFC 9110 §17.15), so more of them are answered with the whole.
pub const PARTS_MAX: usize = 16;

/// A part: the bytes from `from` up to, not including, `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// The first byte.
    pub from: u64,
    /// Behind the last one; more than `from`.
    pub to: u64,
}

impl Part {
    /// How many bytes it has: at least one.
    pub fn bytes(self) -> u64 {
        self.to - self.from
    }
}

/// Up to [`PARTS_MAX`] parts, in the order in which they were asked for: room that is used again from request to request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts {
    parts: [Part; PARTS_MAX],
    count: usize,
}

impl Parts {
    /// All of them.
    pub fn as_slice(&self) -> &[Part] {
        &self.parts[..self.count]
    }
}

/// What a Range field asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The whole, as if there were no such field: 200.
    Whole,
    /// The parts that were put down: 206.
    Parts,
    /// Nothing that there is: 416.
    Nothing,
}

/// Reads a Range field for a representation of `length` bytes; its parts are put into `parts`.
pub fn asked(value: &[u8], length: u64, parts: &mut Parts) -> Asked {
    parts.count = 0;
    match read(value, length, parts) {
        None => Asked::Whole,
        Some(()) if parts.count == 0 => Asked::Nothing,
        // Who asks for some bytes more than once gets the whole, which is less.
        Some(()) if parts.as_slice().iter().map(|part| part.bytes()).sum::<u64>() > length => Asked::Whole,
        Some(()) => Asked::Parts,
    }
}

/// Puts down the parts that there are of those that are asked for; `None` when the field is to be ignored.
fn read(value: &[u8], length: u64, parts: &mut Parts) -> Option<()> {
    let equals = value.iter().position(|&byte| byte == b'=')?;
    let (unit, list) = (&value[..equals], &value[equals + 1..]);
    if !unit.eq_ignore_ascii_case(b"bytes") {
        return None;
    }
    let mut members = 0;
    for member in list.split(|&byte| byte == b',').map(trim_blanks).filter(|member| !member.is_empty()) {
        members += 1;
        if members > PARTS_MAX {
            return None;
        }
        match one(member, length)? {
            One::Part(part) => {
                parts.parts[parts.count] = part;
                parts.count += 1;
            }
            One::Beyond => {}
        }
    }
    (members > 0).then_some(())
}

enum One {
    Part(Part),
    /// It is well-formed, and nothing of it is there.
    Beyond,
}

/// `first-last`, `first-` or `-count`.
fn one(member: &[u8], length: u64) -> Option<One> {
    let dash = member.iter().position(|&byte| byte == b'-')?;
    let (first, last) = (&member[..dash], &member[dash + 1..]);
    let (from, to) = match (first, last) {
        ([], count) => {
            let count = number(count)?;
            // The last bytes of nothing are the whole (§14.1.2), which no Content-Range can say.
            if length == 0 && count > 0 {
                return None;
            }
            (length.saturating_sub(count), length)
        }
        (first, []) => (number(first)?, length),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            (first, last.saturating_add(1).min(length))
        }
    };
    Some(if from < to { One::Part(Part { from, to }) } else { One::Beyond })
}

/// A number of any length: what does not fit 64 bits is beyond any file.
fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| decimal(digits).unwrap_or(u64::MAX))
}

/// Appends `Content-Range: bytes FIRST-LAST/LENGTH` and its line end.
pub fn content_range(out: &mut Vec<u8>, part: Part, length: u64) {
    debug_assert!(part.from < part.to && part.to <= length, "a part lies in the whole: {part:?} of {length}");
    out.extend_from_slice(b"Content-Range: bytes ");
    encode::decimal(out, part.from);
    out.push(b'-');
    encode::decimal(out, part.to - 1);
    out.push(b'/');
    encode::decimal(out, length);
    out.extend_from_slice(b"\r\n");
}

/// Bytes that [`content_range`] appends.
pub fn content_range_len(part: Part, length: u64) -> usize {
    let digits = [part.from, part.to - 1, length].map(encode::decimal_len);
    b"Content-Range: bytes -/\r\n".len() + digits.iter().sum::<usize>()
}

/// Appends the `Content-Range: bytes */LENGTH` of a 416 and its line end.
pub fn content_range_of_nothing(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"Content-Range: bytes */");
    encode::decimal(out, length);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &str, length: u64) -> String {
        let mut parts = Parts::default();
        match asked(value.as_bytes(), length, &mut parts) {
            Asked::Whole => "whole".to_owned(),
            Asked::Nothing => "nothing".to_owned(),
            Asked::Parts => {
                let shown = parts.as_slice().iter().map(|part| format!("{}..{}", part.from, part.to));
                shown.collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn every_form_is_read() {
        for (value, expected) in [
            ("bytes=0-0", "0..1"),
            ("bytes=0-", "0..100"),
            ("bytes=0-99", "0..100"),
            ("bytes=0-100", "0..100"),
            ("bytes=99-", "99..100"),
            ("bytes=100-", "nothing"),
            ("bytes=100-200", "nothing"),
            ("bytes=-1", "99..100"),
            ("bytes=-100", "0..100"),
            ("bytes=-101", "0..100"),
            ("bytes=-0", "nothing"),
            ("bytes=10-19", "10..20"),
            ("BYTES=10-19", "10..20"),
            ("bytes= 10-19", "10..20"),
            ("bytes=10-19,30-39", "10..20 30..40"),
            ("bytes=30-39 ,\t10-19", "30..40 10..20"),
            ("bytes=,10-19,,", "10..20"),
            ("bytes=10-19,200-", "10..20"),
            ("bytes=200-,300-", "nothing"),
            ("bytes=-0,5-5", "5..6"),
            ("bytes=0-18446744073709551615", "0..100"),
            ("bytes=0-99999999999999999999999999", "0..100"),
            ("bytes=99999999999999999999999999-", "nothing"),
            ("bytes=18446744073709551615-18446744073709551615", "nothing"),
            ("bytes=-99999999999999999999999999", "0..100"),
            ("bytes=00010-00019", "10..20"),
            // Ignored.
            ("bytes", "whole"),
            ("bytes=", "whole"),
            ("bytes=,", "whole"),
            ("bytes=-", "whole"),
            ("bytes=x-", "whole"),
            ("bytes=1", "whole"),
            ("bytes=19-10", "whole"),
            ("bytes=1 -2", "whole"),
            ("bytes=+1-2", "whole"),
            ("bytes=1--2", "whole"),
            ("bytes=1-2-3", "whole"),
            ("bytes =1-2", "whole"),
            ("items=1-2", "whole"),
            ("bytes=10-19,x", "whole"),
            ("", "whole"),
            // More than there is.
            ("bytes=0-,0-", "whole"),
            ("bytes=0-60,40-99", "whole"),
            ("bytes=0-5,5-9", "0..6 5..10"),
        ] {
            assert_eq!(shown(value, 100), expected, "{value}");
        }
    }

    #[test]
    fn nothing_has_no_part() {
        assert_eq!(shown("bytes=0-", 0), "nothing");
        assert_eq!(shown("bytes=0-0", 0), "nothing");
        assert_eq!(shown("bytes=-5", 0), "whole");
        assert_eq!(shown("bytes=-0", 0), "nothing");
    }

    #[test]
    fn more_parts_than_a_reply_may_have_are_the_whole() {
        let list = |count: u64| (0..count).map(|at| format!("{at}-{at}")).collect::<Vec<_>>().join(",");
        let most = PARTS_MAX as u64;
        assert_eq!(shown(&format!("bytes={}", list(most)), 100).split(' ').count(), PARTS_MAX);
        assert_eq!(shown(&format!("bytes={}", list(most + 1)), 100), "whole");
    }

    /// Any list of small numbers against the definition, byte by byte.
    #[test]
    fn a_part_has_exactly_the_bytes_that_were_asked_for() {
        for length in 0..8_u64 {
            for first in 0..10_u64 {
                for last in 0..10_u64 {
                    let expected: Vec<u64> = (0..length).filter(|at| (first..=last).contains(at)).collect();
                    compare(&format!("bytes={first}-{last}"), length, first <= last, &expected);
                }
                let rest: Vec<u64> = (first..length).collect();
                compare(&format!("bytes={first}-"), length, true, &rest);
                let suffix: Vec<u64> = (length.saturating_sub(first)..length).collect();
                compare(&format!("bytes=-{first}"), length, length > 0 || first == 0, &suffix);
            }
        }
    }

    fn compare(value: &str, length: u64, is_valid: bool, expected: &[u64]) {
        let mut parts = Parts::default();
        match asked(value.as_bytes(), length, &mut parts) {
            Asked::Whole => assert!(!is_valid, "{value} of {length}"),
            Asked::Nothing => assert!(is_valid && expected.is_empty(), "{value} of {length}"),
            Asked::Parts => {
                let [part] = parts.as_slice() else { panic!("{value} of {length}: {parts:?}") };
                assert!(is_valid && (part.from..part.to).eq(expected.iter().copied()), "{value} of {length}");
            }
        }
    }

    #[test]
    fn what_was_sent_is_told() {
        for (part, length) in [(Part { from: 0, to: 1 }, 1), (Part { from: 9, to: 1_000 }, u64::MAX)] {
            let mut out = Vec::new();
            content_range(&mut out, part, length);
            assert_eq!(out.len(), content_range_len(part, length));
            let text = format!("Content-Range: bytes {}-{}/{length}\r\n", part.from, part.to - 1);
            assert_eq!(out, text.as_bytes());
        }
        let mut out = Vec::new();
        content_range_of_nothing(&mut out, 12);
        assert_eq!(out, b"Content-Range: bytes */12\r\n");
    }
}

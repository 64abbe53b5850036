//! Writes heads of replies and requests by appending to a buffer: the engine's outbox, the generator's
//! request bytes. Nothing is formatted and nothing allocated but the buffer's own growth.

use super::method::Method;
use crate::scan::{after_text, is_token};
use std::fmt;

/// Digits of the largest number that is written.
const DIGITS_MAX: usize = 20;

/// A field that cannot be written: it would end its line, or the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldError {
    /// The name is no token.
    Name,
    /// The value holds a control byte other than the tab.
    Value,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "the field name is no token",
            Self::Value => "the field value holds a control byte",
        })
    }
}

impl std::error::Error for FieldError {}

macro_rules! statuses {
    ($($code:literal $reason:literal)*) => {
        /// The reason phrase that goes with a status code (RFC 9110 §15); empty for one without a name.
        pub fn reason(status: u16) -> &'static str {
            match status {
                $($code => $reason,)*
                _ => "",
            }
        }

        /// The whole status line with its line end, for a status that has a name.
        pub fn status_line(status: u16) -> Option<&'static [u8]> {
            match status {
                $($code => Some(concat!("HTTP/1.1 ", $code, " ", $reason, "\r\n").as_bytes()),)*
                _ => None,
            }
        }

        #[cfg(test)]
        const NAMED: &[u16] = &[$($code),*];
    };
}

statuses! {
    100 "Continue" 101 "Switching Protocols" 103 "Early Hints"
    200 "OK" 201 "Created" 202 "Accepted" 203 "Non-Authoritative Information" 204 "No Content"
    205 "Reset Content" 206 "Partial Content"
    300 "Multiple Choices" 301 "Moved Permanently" 302 "Found" 303 "See Other" 304 "Not Modified"
    307 "Temporary Redirect" 308 "Permanent Redirect"
    400 "Bad Request" 401 "Unauthorized" 402 "Payment Required" 403 "Forbidden" 404 "Not Found"
    405 "Method Not Allowed" 406 "Not Acceptable" 407 "Proxy Authentication Required" 408 "Request Timeout"
    409 "Conflict" 410 "Gone" 411 "Length Required" 412 "Precondition Failed" 413 "Content Too Large"
    414 "URI Too Long" 415 "Unsupported Media Type" 416 "Range Not Satisfiable" 417 "Expectation Failed"
    421 "Misdirected Request" 422 "Unprocessable Content" 425 "Too Early" 426 "Upgrade Required"
    428 "Precondition Required" 429 "Too Many Requests" 431 "Request Header Fields Too Large"
    451 "Unavailable For Legal Reasons"
    500 "Internal Server Error" 501 "Not Implemented" 502 "Bad Gateway" 503 "Service Unavailable"
    504 "Gateway Timeout" 505 "HTTP Version Not Supported" 507 "Insufficient Storage"
    511 "Network Authentication Required"
}

/// The interim reply that a client waits for that sent `Expect: 100-continue`.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Appends the status line of a reply. The status must have three digits.
#[inline]
pub fn reply_start(out: &mut Vec<u8>, status: u16) {
    debug_assert!((100..=999).contains(&status), "a status has three digits");
    match status_line(status) {
        Some(line) => out.extend_from_slice(line),
        None => unnamed_status_line(out, status),
    }
}

/// The blank before the reason stays when there is none (RFC 9112 §4).
fn unnamed_status_line(out: &mut Vec<u8>, status: u16) {
    out.extend_from_slice(b"HTTP/1.1 ");
    decimal(out, u64::from(status));
    out.extend_from_slice(b" \r\n");
}

/// Appends the request line and the Host field of a request. All three parts are written as they are: the
/// caller has them from a parsed address.
pub fn request_start(out: &mut Vec<u8>, method: Method<'_>, target: &[u8], host: &[u8]) {
    for part in [method.as_bytes(), b" ", target, b" HTTP/1.1\r\nHost: ", host, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Appends a field line.
///
/// # Errors
/// [`FieldError`] if name or value would break out of the line; nothing is appended then.
pub fn header(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), FieldError> {
    if !is_token(name) {
        return Err(FieldError::Name);
    }
    if !is_field_value(value) {
        return Err(FieldError::Value);
    }
    out.reserve(name.len() + value.len() + 4);
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
    Ok(())
}

/// Whether a value can stand in a field line: no control byte other than the tab.
pub fn is_field_value(value: &[u8]) -> bool {
    let mut rest = after_text(value);
    while let [b'\t', after @ ..] = rest {
        rest = after_text(after);
    }
    rest.is_empty()
}

/// Appends `Content-Length: n`.
#[inline]
pub fn content_length(out: &mut Vec<u8>, bytes: u64) {
    out.extend_from_slice(b"Content-Length: ");
    decimal(out, bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends the empty line that ends a head.
#[inline]
pub fn head_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Appends one chunk (RFC 9112 §7.1). Empty data is not written: it would end the body.
pub fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    chunk_size(out, data.len() as u64);
    for part in [data, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Appends the size of a chunk and its line end, for a caller that writes the data itself, and a line end after it.
/// A chunk of size 0 ends the body: [`last_chunk`] writes it.
#[inline]
pub fn chunk_size(out: &mut Vec<u8>, bytes: u64) {
    debug_assert!(bytes > 0, "a chunk of nothing ends the body");
    hexadecimal(out, bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends the end of a chunked body, without trailers.
pub fn last_chunk(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

fn hexadecimal(out: &mut Vec<u8>, value: u64) {
    let digits = (64 - (value | 1).leading_zeros()).div_ceil(4);
    for place in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(value >> (4 * place) & 15) as usize]);
    }
}

/// Appends a number in decimal digits.
#[inline]
pub fn decimal(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(Decimal::new(value).as_bytes());
}

/// A number in decimal digits, without leading zeros and without memory of its own.
#[derive(Debug, Clone, Copy)]
pub struct Decimal {
    /// The digits at the end.
    digits: [u8; DIGITS_MAX],
    at: usize,
}

impl Decimal {
    /// The digits of `value`.
    #[inline]
    pub fn new(mut value: u64) -> Self {
        let mut digits = [b'0'; DIGITS_MAX];
        let mut at = DIGITS_MAX;
        loop {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                return Self { digits, at };
            }
        }
    }

    /// One to twenty digits.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[self.at..]
    }
}

/// How many digits a number has.
#[inline]
pub fn decimal_len(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_as_formatting_writes_them() {
        let mut edges = vec![0, 1, u64::MAX];
        edges.extend((1..20).flat_map(|power| [10u64.pow(power) - 1, 10u64.pow(power)]));
        edges.extend((1..64).flat_map(|bit| [(1u64 << bit) - 1, 1u64 << bit]));
        for value in edges {
            assert_eq!(written(|out| decimal(out, value)), value.to_string());
            assert_eq!(decimal_len(value), value.to_string().len());
            assert_eq!(written(|out| hexadecimal(out, value)), format!("{value:x}"));
        }
    }

    #[test]
    fn a_status_line_is_made_of_its_code_and_reason() {
        for &status in NAMED {
            let expected = format!("HTTP/1.1 {status} {}\r\n", reason(status));
            assert_eq!(written(|out| reply_start(out, status)), expected);
        }
        assert_eq!(written(|out| reply_start(out, 299)), "HTTP/1.1 299 \r\n");
        assert_eq!(reason(299), "");
    }

    #[test]
    fn every_status_of_a_reject_has_a_name() {
        for status in [400, 408, 413, 414, 417, 431, 500, 501, 503, 505] {
            assert!(NAMED.contains(&status));
        }
    }

    #[test]
    fn a_head_is_lines_and_an_empty_line() {
        let head = written(|out| {
            request_start(out, Method::Post, b"/a?b", b"h:1");
            header(out, b"X-A", b"1\t2").unwrap();
            content_length(out, 12);
            head_end(out);
        });
        assert_eq!(head, "POST /a?b HTTP/1.1\r\nHost: h:1\r\nX-A: 1\t2\r\nContent-Length: 12\r\n\r\n");
    }

    #[test]
    fn a_field_cannot_break_out_of_its_line() {
        let mut out = Vec::new();
        for value in ["a\r\nB: c", "a\nb", "a\rb", "a\0", "a\x7f", "\x1b[31m"] {
            assert_eq!(header(&mut out, b"A", value.as_bytes()), Err(FieldError::Value), "{value:?}");
        }
        for name in ["", "A B", "A:", "A\r\n", "\u{e9}"] {
            assert_eq!(header(&mut out, name.as_bytes(), b"a"), Err(FieldError::Name), "{name:?}");
        }
        assert!(out.is_empty());
    }

    #[test]
    fn chunks_are_framed_and_an_empty_one_is_not_written() {
        let body = written(|out| {
            chunk(out, b"0123456789abcdef!");
            chunk(out, b"");
            chunk(out, b"x");
            last_chunk(out);
        });
        assert_eq!(body, "11\r\n0123456789abcdef!\r\n1\r\nx\r\n0\r\n\r\n");
        assert_eq!(written(|out| chunk_size(out, 0x1_0000)), "10000\r\n");
    }
}

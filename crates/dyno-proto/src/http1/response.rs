//! Reads reply heads (RFC 9112 §4 to §6): the load generator calls [`parse`] with what a server has sent.
//!
//! A client may be more patient than a server: nothing is forwarded, so what only looks odd does no harm.
//! A line may end with a line feed alone (RFC 9112 §2.2), a reason may be missing, a value may be folded
//! (§5.2), equal lengths may be repeated (RFC 9110 §8.6). Where the body ends is never guessed.

use super::head::Version;
use crate::scan::{after_text, bytes_to_colon, decimal, is_blank, trim_blanks};
use crate::word::Word;
use std::fmt;

const CONTENT_LENGTH: Word<14> = Word::new(b"content-length");
const TRANSFER_ENCODING: Word<17> = Word::new(b"transfer-encoding");
const CONNECTION: Word<10> = Word::new(b"connection");

/// Bytes of one reply head; a server that sends more is refused. Twice what this crate's request reader
/// takes by default, as cookies are set one per field.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Interim replies (1xx) that are passed over before a final one. One `100 Continue` is usual.
pub const INTERIM_MAX: usize = 16;

/// What the client had asked with: the reply to HEAD has no body, whatever its fields say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// HEAD
    Head,
    /// Any method other than HEAD and CONNECT.
    Other,
}

/// How the end of a reply's body is found (RFC 9112 §6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body: HEAD, 1xx, 204, 304.
    None,
    /// As many bytes as Content-Length says; 0 is possible.
    Length(u64),
    /// Chunked: [`Decoder`](super::chunk::Decoder) finds the end.
    Chunked,
    /// The body ends with the connection.
    UntilClose,
}

/// A reply head, read and found sane.
#[derive(Debug, Clone, Copy)]
pub struct Head<'b> {
    /// The status code, 100 to 999; 1xx only for 101.
    pub status: u16,
    /// The version.
    pub version: Version,
    /// How the body's end is found.
    pub body: BodyLength,
    /// Whether another request may be sent on this connection.
    pub keep_alive: bool,
    fields: &'b [u8],
}

/// A head, or not enough bytes of one yet.
#[derive(Debug, Clone, Copy)]
pub enum Parsed<'b> {
    /// The head is whole; `used` bytes of the buffer belong to it and to interim replies before it.
    Whole {
        /// What it says.
        head: Head<'b>,
        /// Its bytes; the body follows them.
        used: usize,
    },
    /// Right so far: call again, from the start, when the buffer holds more.
    NeedMore,
}

/// A reply that is refused. The connection cannot be used any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reject {
    /// The first line is no status line of HTTP/1.
    StatusLine,
    /// A field line has no name, no colon or a control byte.
    Field,
    /// Content-Length is no number, or there are two different ones.
    ContentLength,
    /// A transfer coding other than chunked alone, or one in an HTTP/1.0 reply.
    Coding,
    /// Content-Length together with Transfer-Encoding.
    LengthAndCoding,
    /// The head is longer than [`HEAD_BYTES_MAX`].
    HeadLong,
    /// More than [`INTERIM_MAX`] interim replies.
    Interims,
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StatusLine => "the first line is no HTTP/1 status line",
            Self::Field => "a field line is malformed",
            Self::ContentLength => "Content-Length is malformed or contradicts itself",
            Self::Coding => "the transfer coding is not chunked alone",
            Self::LengthAndCoding => "Content-Length and Transfer-Encoding are both given",
            Self::HeadLong => "the head is too long",
            Self::Interims => "there are too many interim replies",
        })
    }
}

impl std::error::Error for Reject {}

/// Reads the reply head at the start of `buf`, passing over interim replies.
///
/// # Errors
/// A [`Reject`] if the bytes cannot be the reply to one request.
pub fn parse(buf: &[u8], asked: Asked) -> Result<Parsed<'_>, Reject> {
    let mut at = 0;
    for _ in 0..=INTERIM_MAX {
        let Some((head, used)) = read_head(&buf[at..], asked)? else { return Ok(Parsed::NeedMore) };
        at += used;
        // 101 is final for the one who did not ask to switch protocols.
        if head.status >= 200 || head.status == 101 {
            return Ok(Parsed::Whole { head, used: at });
        }
    }
    Err(Reject::Interims)
}

impl<'b> Head<'b> {
    /// The value of the first field of that name, in any case; of a folded value only the first line.
    pub fn header(&self, name: &[u8]) -> Option<&'b [u8]> {
        let mut rest = self.fields;
        // The fields are whole lines, each of which has been read once: the loop ends with them.
        while let Some((line, used)) = next_line(rest).ok()? {
            rest = &rest[used..];
            if let Some((field, value)) = split_field(line)
                && field.eq_ignore_ascii_case(name)
            {
                return Some(value);
            }
        }
        None
    }
}

fn read_head(buf: &[u8], asked: Asked) -> Result<Option<(Head<'_>, usize)>, Reject> {
    let window = &buf[..buf.len().min(HEAD_BYTES_MAX)];
    let more = if window.len() == HEAD_BYTES_MAX { Err(Reject::HeadLong) } else { Ok(None) };
    let Some((line, mut at)) = next_line(window).map_err(|_| Reject::StatusLine)? else {
        return if may_be_status_line(window) { more } else { Err(Reject::StatusLine) };
    };
    let (version, status) = read_status_line(line)?;
    let (fields_at, mut framing) = (at, Framing::default());
    while let Some((line, used)) = next_line(&window[at..])? {
        if line.is_empty() {
            let head = framing.finish(version, status, asked, &window[fields_at..at])?;
            return Ok(Some((head, at + used)));
        }
        framing.take(line, version)?;
        at += used;
    }
    more
}

/// The line at the start without its end, and its bytes with it. No line holds a control but the tab.
fn next_line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Reject> {
    let mut rest = after_text(bytes);
    while let [b'\t', after @ ..] = rest {
        rest = after_text(after);
    }
    let end = bytes.len() - rest.len();
    match rest {
        [b'\r', b'\n', ..] => Ok(Some((&bytes[..end], end + 2))),
        [b'\n', ..] => Ok(Some((&bytes[..end], end + 1))),
        [] | [b'\r'] => Ok(None),
        _ => Err(Reject::Field),
    }
}

/// Something that is not HTTP at all is distinguished from a slow server by its first bytes.
fn may_be_status_line(bytes: &[u8]) -> bool {
    bytes.iter().zip(b"HTTP/1.").all(|(byte, expected)| byte == expected)
}

/// `HTTP/1.1 200 OK`, where the reason and the blank before it may be missing.
fn read_status_line(line: &[u8]) -> Result<(Version, u16), Reject> {
    let [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor, b' ', a, b, c, reason @ ..] = line else {
        return Err(Reject::StatusLine);
    };
    let status = decimal(&[*a, *b, *c]).and_then(|status| u16::try_from(status).ok());
    let version = match minor {
        b'0' => Version::Http10,
        b'1'..=b'9' => Version::Http11,
        _ => return Err(Reject::StatusLine),
    };
    match (status, reason) {
        (Some(status @ 100..), [] | [b' ', ..]) => Ok((version, status)),
        _ => Err(Reject::StatusLine),
    }
}

/// Name and value, if the line begins with a name and a colon.
fn split_field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let name_bytes = bytes_to_colon(line).filter(|&bytes| bytes > 0)?;
    Some((&line[..name_bytes], trim_blanks(&line[name_bytes + 1..])))
}

/// What the fields say about the end of the body and of the connection.
#[derive(Default)]
struct Framing {
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    /// The reason to refuse a continuation of the line before.
    unfoldable: Option<Reject>,
}

impl Framing {
    fn take(&mut self, line: &[u8], version: Version) -> Result<(), Reject> {
        if is_blank(line[0]) {
            return self.unfoldable.map_or(Ok(()), Err);
        }
        let (name, value) = split_field(line).ok_or(Reject::Field)?;
        self.interpret(name, value, version)
    }

    /// A value that decides something must stand on one line.
    fn interpret(&mut self, name: &[u8], value: &[u8], version: Version) -> Result<(), Reject> {
        self.unfoldable = None;
        if CONTENT_LENGTH.is(name) {
            self.unfoldable = Some(Reject::ContentLength);
            self.content_length(value)?;
        } else if TRANSFER_ENCODING.is(name) {
            self.unfoldable = Some(Reject::Coding);
            self.transfer_encoding(value, version)?;
        } else if CONNECTION.is(name) {
            self.unfoldable = Some(Reject::Field);
            self.connection(value);
        }
        Ok(())
    }

    /// `5, 5` and two fields with 5 mean 5 (RFC 9110 §8.6); 5 and 6 mean nothing.
    fn content_length(&mut self, value: &[u8]) -> Result<(), Reject> {
        for element in value.split(|&byte| byte == b',') {
            let bytes = decimal(trim_blanks(element)).ok_or(Reject::ContentLength)?;
            if self.content_length.is_some_and(|earlier| earlier != bytes) {
                return Err(Reject::ContentLength);
            }
            self.content_length = Some(bytes);
        }
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8], version: Version) -> Result<(), Reject> {
        if self.chunked || version == Version::Http10 || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(Reject::Coding);
        }
        self.chunked = true;
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) {
        for element in value.split(|&byte| byte == b',').map(trim_blanks) {
            self.close |= element.eq_ignore_ascii_case(b"close");
            self.keep_alive |= element.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn finish<'b>(
        &self,
        version: Version,
        status: u16,
        asked: Asked,
        fields: &'b [u8],
    ) -> Result<Head<'b>, Reject> {
        let body = match (asked, status) {
            (Asked::Head, _) | (_, 100..=199 | 204 | 304) => BodyLength::None,
            _ => self.body()?,
        };
        let persistent = !self.close && (version == Version::Http11 || self.keep_alive);
        let keep_alive = persistent && body != BodyLength::UntilClose && status != 101;
        Ok(Head { status, version, body, keep_alive, fields })
    }

    /// A length beside a coding is an attempt at smuggling (RFC 9112 §6.3).
    fn body(&self) -> Result<BodyLength, Reject> {
        match (self.content_length, self.chunked) {
            (Some(_), true) => Err(Reject::LengthAndCoding),
            (Some(bytes), false) => Ok(BodyLength::Length(bytes)),
            (None, true) => Ok(BodyLength::Chunked),
            (None, false) => Ok(BodyLength::UntilClose),
        }
    }
}

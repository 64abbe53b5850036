//! The fields of a request that decide its framing and its connection, interpreted while the head is read.
//!
//! Called by the request reader, once per field line and once at the end. It decides as soon as a line is
//! whole, so that the outcome never depends on what follows.

use super::authority::{Port, is_authority};
use super::head::{BodyLength, Version};
use super::reject::Reject;
use crate::scan::{decimal, is_token, trim_blanks};
use crate::word::Word;

const HOST: Word<4> = Word::new(b"host");
/// With its colon and the blank that nearly every client puts after it.
const HOST_START: Word<6> = Word::new(b"host: ");
const EXPECT: Word<6> = Word::new(b"expect");
const CONNECTION: Word<10> = Word::new(b"connection");
const CONTENT_LENGTH: Word<14> = Word::new(b"content-length");
const TRANSFER_ENCODING: Word<17> = Word::new(b"transfer-encoding");

const CLOSE: Word<5> = Word::new(b"close");
const KEEP_ALIVE: Word<10> = Word::new(b"keep-alive");
const CHUNKED: Word<7> = Word::new(b"chunked");
const CONTINUE: Word<12> = Word::new(b"100-continue");

/// For each first letter, by the five bits that its two cases share, one bit for each length of a name above.
static LENGTHS: [u32; 32] = {
    let mut lengths = [0; 32];
    lengths[(b'h' & 31) as usize] = 1 << 4;
    lengths[(b'e' & 31) as usize] = 1 << 6;
    lengths[(b'c' & 31) as usize] = 1 << 10 | 1 << 14;
    lengths[(b't' & 31) as usize] = 1 << 17;
    lengths
};

/// What the fields of one head have said so far.
#[derive(Debug)]
pub(crate) struct Fields<'b> {
    pub(crate) body: BodyLength,
    close: bool,
    keep_alive: bool,
    expect_continue: bool,
    pub(crate) host: Option<&'b [u8]>,
}

impl<'b> Fields<'b> {
    /// Before the first field.
    #[inline]
    pub(crate) fn new() -> Self {
        Self { body: BodyLength::None, close: false, keep_alive: false, expect_continue: false, host: None }
    }

    /// Whether a name that starts with this byte and has this length can be one that [`take`](Self::take) looks at:
    /// nearly all others are known by that alone.
    #[inline(always)]
    pub(crate) fn may_ask_for(first: u8, name_bytes: usize) -> bool {
        LENGTHS[usize::from(first & 31)] >> (name_bytes & 31) & 1 != 0
    }

    /// What is left after the name Host, its colon and a blank, if the line starts with them and goes on.
    #[inline(always)]
    pub(crate) fn after_host_name(line: &[u8]) -> Option<&[u8]> {
        HOST_START.strip(line)
    }

    /// Takes one field line.
    #[inline]
    pub(crate) fn take(&mut self, version: Version, name: &[u8], value: &'b [u8]) -> Result<(), Reject> {
        match name.len() {
            4 if HOST.is(name) => self.host(value),
            6 if EXPECT.is(name) => self.expect(version, value),
            10 if CONNECTION.is(name) => self.connection(value),
            14 if CONTENT_LENGTH.is(name) => self.content_length(value),
            17 if TRANSFER_ENCODING.is(name) => self.transfer_encoding(version, value),
            _ => Ok(()),
        }
    }

    /// The end of the head: what must be there is there.
    #[inline]
    pub(crate) fn finish(&self, version: Version) -> Result<(), Reject> {
        match (version, self.host) {
            (Version::Http11, None) => Err(Reject::HostMissing),
            _ => Ok(()),
        }
    }

    /// Close wins over keep-alive, whichever came first (RFC 9112 §9.3).
    #[inline]
    pub(crate) fn keep_alive(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }

    /// Without a body there is nothing to continue with.
    #[inline]
    pub(crate) fn expect_continue(&self) -> bool {
        self.expect_continue && !matches!(self.body, BodyLength::None | BodyLength::Length(0))
    }

    /// An empty value is right when the target has no authority (RFC 9112 §3.2).
    fn host(&mut self, value: &'b [u8]) -> Result<(), Reject> {
        if value.is_empty() || is_authority(value, Port::Optional) {
            return self.take_sane_host(value);
        }
        Err(if self.host.is_some() { Reject::HostTwice } else { Reject::HostValue })
    }

    /// Takes a host whose bytes have been looked at.
    #[inline]
    pub(crate) fn take_sane_host(&mut self, value: &'b [u8]) -> Result<(), Reject> {
        match self.host.replace(value) {
            Some(_) => Err(Reject::HostTwice),
            None => Ok(()),
        }
    }

    /// HTTP/1.0 knows no expectations (RFC 9110 §10.1.1).
    fn expect(&mut self, version: Version, value: &[u8]) -> Result<(), Reject> {
        if version == Version::Http10 {
            return Ok(());
        }
        if !CONTINUE.is(value) {
            return Err(Reject::Expectation);
        }
        self.expect_continue = true;
        Ok(())
    }

    /// Nearly all values are one of two words.
    #[inline]
    fn connection(&mut self, value: &[u8]) -> Result<(), Reject> {
        if KEEP_ALIVE.is(value) {
            self.keep_alive = true;
            return Ok(());
        }
        self.connection_list(value)
    }

    /// The value is a list, and the list may go on in another field line. Empty elements are allowed
    /// (RFC 9110 §5.6.1.2); their number is bounded by the head's size.
    fn connection_list(&mut self, value: &[u8]) -> Result<(), Reject> {
        for element in value.split(|&byte| byte == b',').map(trim_blanks) {
            match element {
                [] => {}
                _ if CLOSE.is(element) => self.close = true,
                _ if KEEP_ALIVE.is(element) => self.keep_alive = true,
                _ if is_token(element) => {}
                _ => return Err(Reject::Connection),
            }
        }
        Ok(())
    }

    /// Equal duplicates are refused too: RFC 9112 §6.3 allows it, and nobody needs them.
    fn content_length(&mut self, value: &[u8]) -> Result<(), Reject> {
        match self.body {
            BodyLength::Chunked => return Err(Reject::LengthAndCoding),
            BodyLength::Length(_) => return Err(Reject::ContentLengthTwice),
            BodyLength::None => {}
        }
        self.body = BodyLength::Length(decimal(value).ok_or(Reject::ContentLength)?);
        Ok(())
    }

    fn transfer_encoding(&mut self, version: Version, value: &[u8]) -> Result<(), Reject> {
        if version == Version::Http10 {
            return Err(Reject::CodingInOldVersion);
        }
        match self.body {
            BodyLength::Length(_) => return Err(Reject::LengthAndCoding),
            BodyLength::Chunked => return Err(Reject::Coding),
            BodyLength::None => {}
        }
        if !CHUNKED.is(value) {
            return Err(judge_codings(value));
        }
        self.body = BodyLength::Chunked;
        Ok(())
    }
}

/// Why a value other than "chunked" is refused: an unknown coding alone or before a final chunked is 501
/// (RFC 9112 §6.1); chunked anywhere else leaves the length open, 400 (RFC 9112 §6.3).
fn judge_codings(value: &[u8]) -> Reject {
    let mut elements = value.split(|&byte| byte == b',').map(trim_blanks);
    let last = elements.next_back().unwrap_or_default();
    let is_chunked = |element: &[u8]| CHUNKED.is(element);
    let mut before = elements;
    if !is_coding(last) || before.any(|element| !is_coding(element) || is_chunked(element)) {
        return Reject::Coding;
    }
    Reject::CodingUnsupported
}

/// A token, perhaps with parameters, which are not looked at: no coding that has any is known.
fn is_coding(element: &[u8]) -> bool {
    let name = element.split(|&byte| byte == b';').next().unwrap_or_default();
    is_token(trim_blanks(name))
}

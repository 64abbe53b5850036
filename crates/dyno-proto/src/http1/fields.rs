//! The fields of a request that decide its framing and its connection, interpreted while the head is read.
//!
//! Called by the request reader, once per field line and once at the end. It decides as soon as a line is
//! whole, so that the outcome never depends on what follows.

use super::authority::{Port, is_authority};
use super::reject::Reject;
use super::{BodyLength, Version};
use crate::scan::{decimal, is_token, trim_blanks};

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

    /// Takes one field line. Names are told apart by their length first: most need no comparison.
    #[inline]
    pub(crate) fn take(&mut self, version: Version, name: &[u8], value: &'b [u8]) -> Result<(), Reject> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.host(value),
            6 if name.eq_ignore_ascii_case(b"expect") => self.expect(version, value),
            10 if name.eq_ignore_ascii_case(b"connection") => self.connection(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => self.content_length(value),
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.transfer_encoding(version, value),
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
        if !value.eq_ignore_ascii_case(b"100-continue") {
            return Err(Reject::Expectation);
        }
        self.expect_continue = true;
        Ok(())
    }

    /// The value is a list, and the list may go on in another field line. Empty elements are allowed
    /// (RFC 9110 §5.6.1.2); their number is bounded by the head's size.
    fn connection(&mut self, value: &[u8]) -> Result<(), Reject> {
        for element in value.split(|&byte| byte == b',').map(trim_blanks) {
            match element {
                [] => {}
                _ if element.eq_ignore_ascii_case(b"close") => self.close = true,
                _ if element.eq_ignore_ascii_case(b"keep-alive") => self.keep_alive = true,
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
        if !value.eq_ignore_ascii_case(b"chunked") {
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
    let is_chunked = |element: &[u8]| element.eq_ignore_ascii_case(b"chunked");
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

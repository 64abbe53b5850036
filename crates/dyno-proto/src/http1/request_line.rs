//! Reads request lines (RFC 9112 §3): method, target and version, from left to right.
//!
//! Called by the request reader with the part of its buffer that a request line may fill. What ends in
//! `NeedMore` here was right so far.

use super::Version;
use super::authority::{Port, is_authority, is_authority_byte};
use super::method::METHOD_BYTES_MAX;
use super::reject::{Reject, Stop};
use super::request::starts_with;
use crate::scan::{hex_value, target_end, token_end};

/// A request line without its line end.
pub(crate) struct RequestLine<'b> {
    /// A token, not looked at any further: the head names it when all is well.
    pub(crate) method: &'b [u8],
    pub(crate) target: Target<'b>,
    pub(crate) version: Version,
    pub(crate) end: usize,
}

/// A target and the blank that ends it.
pub(crate) struct Target<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) path_bytes: usize,
    pub(crate) authority: Option<&'b [u8]>,
    end: usize,
}

#[inline]
pub(crate) fn read_line(line: &[u8], start: usize) -> Result<RequestLine<'_>, Stop> {
    let method_end = read_method(line, start)?;
    let method = &line[start..method_end];
    let target = read_target(line, method_end + 1, method)?;
    let (version, end) = read_version(line, target.end + 1)?;
    Ok(RequestLine { method, target, version, end })
}

/// Where the blank after the method stands.
#[inline]
fn read_method(line: &[u8], start: usize) -> Result<usize, Stop> {
    if starts_with(line, start, b"GET ") {
        return Ok(start + 3);
    }
    read_other_method(line, start)
}

fn read_other_method(line: &[u8], start: usize) -> Result<usize, Stop> {
    let end = token_end(&line[..line.len().min(start + METHOD_BYTES_MAX + 1)], start);
    if end - start > METHOD_BYTES_MAX {
        return Err(Reject::MethodLong.into());
    }
    match line.get(end) {
        Some(b' ') if end > start => Ok(end),
        Some(b'\n') if end == start => Err(Reject::BareFeed.into()),
        Some(_) => Err(Reject::Method.into()),
        None => Err(Stop::NeedMore),
    }
}

/// The four forms of RFC 9112 §3.2 are told apart by the method and the first byte.
#[inline]
fn read_target<'b>(line: &'b [u8], at: usize, method: &[u8]) -> Result<Target<'b>, Stop> {
    match line.get(at) {
        Some(b'/') if method != b"CONNECT" => read_path(line, at, None),
        Some(&first) => read_other_target(line, at, method, first),
        None => Err(Stop::NeedMore),
    }
}

#[cold]
fn read_other_target<'b>(line: &'b [u8], at: usize, method: &[u8], first: u8) -> Result<Target<'b>, Stop> {
    match (method, first) {
        (b"CONNECT", _) => read_authority_form(line, at),
        (b"OPTIONS", b'*') => read_asterisk_form(line, at),
        (_, b'h' | b'H') => read_absolute_form(line, at, method),
        _ => Err(Reject::TargetForm.into()),
    }
}

/// Path and query up to the blank, escapes checked on the way.
#[inline]
fn read_path<'b>(line: &'b [u8], start: usize, authority: Option<&'b [u8]>) -> Result<Target<'b>, Stop> {
    let mut query_at = None;
    let mut at = start;
    loop {
        at = target_end(line, at);
        match line.get(at) {
            Some(b' ') => break,
            Some(b'?') => {
                query_at.get_or_insert(at);
                at += 1;
            }
            Some(&byte) => at = read_odd_byte(line, at, byte)?,
            None => return Err(Stop::NeedMore),
        }
    }
    let bytes = &line[start..at];
    Ok(Target { bytes, path_bytes: query_at.unwrap_or(at) - start, authority, end: at })
}

/// The byte after one that the scan of a target stops at, if a target may have it.
fn read_odd_byte(line: &[u8], at: usize, byte: u8) -> Result<usize, Stop> {
    match byte {
        b'!' | b'"' | b'$' => Ok(at + 1),
        b'%' => escape_end(line, at),
        _ => Err(target_reject(byte).into()),
    }
}

/// The byte after the escape that starts at `at`.
fn escape_end(line: &[u8], at: usize) -> Result<usize, Stop> {
    for digit_at in [at + 1, at + 2] {
        let digit = line.get(digit_at).ok_or(Stop::NeedMore)?;
        hex_value(*digit).ok_or(Reject::TargetEscape)?;
    }
    Ok(at + 3)
}

/// A line that ends with its target is HTTP/0.9.
fn target_reject(byte: u8) -> Reject {
    match byte {
        b'\r' | b'\n' => Reject::Version,
        _ => Reject::TargetByte,
    }
}

/// `OPTIONS *`: the server as a whole.
fn read_asterisk_form(line: &[u8], at: usize) -> Result<Target<'_>, Stop> {
    match line.get(at + 1) {
        Some(b' ') => Ok(Target { bytes: &line[at..=at], path_bytes: 1, authority: None, end: at + 1 }),
        Some(_) => Err(Reject::TargetForm.into()),
        None => Err(Stop::NeedMore),
    }
}

/// `CONNECT host:port`: the port must be there (RFC 9110 §9.3.6).
fn read_authority_form(line: &[u8], at: usize) -> Result<Target<'_>, Stop> {
    let (authority, end) = read_authority(line, at, Port::Required)?;
    match line[end] {
        b' ' => Ok(Target { bytes: authority, path_bytes: authority.len(), authority: Some(authority), end }),
        byte => Err(target_reject(byte).into()),
    }
}

/// `http://host/path`: every server must take it (RFC 9112 §3.2.2). Other schemes are not ours.
fn read_absolute_form<'b>(line: &'b [u8], at: usize, method: &[u8]) -> Result<Target<'b>, Stop> {
    let authority_at = scheme_end(line, at)?;
    let (authority, end) = read_authority(line, authority_at, Port::Optional)?;
    match (line[end], method) {
        (b'/' | b'?', _) => read_path(line, end, Some(authority)),
        (b' ', b"OPTIONS") => Ok(Target { bytes: b"*", path_bytes: 1, authority: Some(authority), end }),
        (b' ', _) => Ok(Target { bytes: b"/", path_bytes: 1, authority: Some(authority), end }),
        (byte, _) => Err(target_reject(byte).into()),
    }
}

/// The byte after `http://` or `https://`, in any case.
fn scheme_end(line: &[u8], start: usize) -> Result<usize, Stop> {
    let mut at = match_ignoring_case(line, start, b"http")?;
    if line.get(at).ok_or(Stop::NeedMore)?.eq_ignore_ascii_case(&b's') {
        at += 1;
    }
    match_ignoring_case(line, at, b"://")
}

fn match_ignoring_case(line: &[u8], start: usize, expected: &[u8]) -> Result<usize, Stop> {
    for (at, byte) in (start..).zip(expected) {
        if !line.get(at).ok_or(Stop::NeedMore)?.eq_ignore_ascii_case(byte) {
            return Err(Reject::TargetForm.into());
        }
    }
    Ok(start + expected.len())
}

/// An authority, and where the byte after it stands, which is there.
fn read_authority(line: &[u8], start: usize, port: Port) -> Result<(&[u8], usize), Stop> {
    let length = line[start..].iter().position(|&byte| !is_authority_byte(byte)).ok_or(Stop::NeedMore)?;
    let authority = &line[start..start + length];
    if !is_authority(authority, port) {
        return Err(Reject::TargetAuthority.into());
    }
    Ok((authority, start + length))
}

/// The version and the byte after it.
#[inline]
fn read_version(line: &[u8], at: usize) -> Result<(Version, usize), Stop> {
    if starts_with(line, at, b"HTTP/1.1") {
        return Ok((Version::Http11, at + 8));
    }
    read_other_version(line, at)
}

/// Names are case-sensitive, numbers have one digit (RFC 9112 §2.3). A later minor version is read as the
/// highest that is known (RFC 9110 §6.2).
#[cold]
fn read_other_version(line: &[u8], at: usize) -> Result<(Version, usize), Stop> {
    for (at, byte) in (at..).zip(b"HTTP/") {
        if line.get(at).ok_or(Stop::NeedMore)? != byte {
            return Err(Reject::Version.into());
        }
    }
    match line.get(at + 5).ok_or(Stop::NeedMore)? {
        b'1' => {}
        b'0'..=b'9' => return Err(Reject::VersionUnsupported.into()),
        _ => return Err(Reject::Version.into()),
    }
    match (line.get(at + 6).ok_or(Stop::NeedMore)?, line.get(at + 7)) {
        (b'.', None) => Err(Stop::NeedMore),
        (b'.', Some(b'0')) => Ok((Version::Http10, at + 8)),
        (b'.', Some(b'1'..=b'9')) => Ok((Version::Http11, at + 8)),
        _ => Err(Reject::Version.into()),
    }
}

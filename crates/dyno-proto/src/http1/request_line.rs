//! Reads request lines (RFC 9112 §3): method, target and version, from left to right.
//!
//! Called by the request reader with the part of its buffer that a request line may fill. What ends in
//! `NeedMore` here was right so far.

use super::authority::{Port, is_authority, is_authority_byte};
use super::head::Version;
use super::method::METHOD_BYTES_MAX;
use super::reject::{Reject, Stop};
use crate::scan::{hex_value, plain_target_bytes, token_bytes};

/// A request line without its line end.
pub(crate) struct RequestLine<'b> {
    /// Bytes of the method, which is a token.
    pub(crate) method_bytes: usize,
    pub(crate) target: Target<'b>,
    pub(crate) version: Version,
}

/// A target, whatever its form.
pub(crate) struct Target<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) path_bytes: usize,
    pub(crate) authority: Option<&'b [u8]>,
}

/// Something that was read, and what is left after it.
type Split<'b, T> = Result<(T, &'b [u8]), Stop>;

#[inline(always)]
pub(crate) fn split_line(line: &[u8]) -> Split<'_, RequestLine<'_>> {
    let method_bytes = method_bytes(line)?;
    let (method, rest) = line.split_at(method_bytes);
    let (target, rest) = split_target(&rest[1..], method)?;
    let (version, rest) = split_version(rest)?;
    Ok((RequestLine { method_bytes, target, version }, rest))
}

/// Bytes of the method, after which a blank stands.
#[inline(always)]
fn method_bytes(line: &[u8]) -> Result<usize, Stop> {
    match line.first_chunk() {
        Some(first) if u32::from_le_bytes(*first) == u32::from_le_bytes(*b"GET ") => Ok(3),
        _ => other_method_bytes(line),
    }
}

#[inline(never)]
fn other_method_bytes(line: &[u8]) -> Result<usize, Stop> {
    let bytes = token_bytes(&line[..line.len().min(METHOD_BYTES_MAX + 1)]);
    if bytes > METHOD_BYTES_MAX {
        return Err(Reject::MethodLong.into());
    }
    match line.get(bytes) {
        Some(b' ') if bytes > 0 => Ok(bytes),
        Some(b'\n') if bytes == 0 => Err(Reject::BareFeed.into()),
        Some(_) => Err(Reject::Method.into()),
        None => Err(Stop::NeedMore),
    }
}

/// The target, without the blank after it.
#[inline(always)]
fn split_target<'b>(rest: &'b [u8], method: &[u8]) -> Split<'b, Target<'b>> {
    if rest.first() != Some(&b'/') || method == b"CONNECT" {
        let (Target { bytes, path_bytes, authority }, after) = split_other_target(rest, method)?;
        return Ok((Target { bytes, path_bytes, authority }, after));
    }
    let path_bytes = plain_target_bytes(rest);
    if let Some((bytes, [b' ', after @ ..])) = rest.split_at_checked(path_bytes) {
        return Ok((Target { bytes, path_bytes, authority: None }, after));
    }
    let (Target { bytes, path_bytes, authority }, after) = split_path(rest, path_bytes, None)?;
    Ok((Target { bytes, path_bytes, authority }, after))
}

/// The four forms of RFC 9112 §3.2 are told apart by the method and the first byte.
#[inline(never)]
fn split_other_target<'b>(rest: &'b [u8], method: &[u8]) -> Split<'b, Target<'b>> {
    match (method, rest.first()) {
        (_, None) => Err(Stop::NeedMore),
        (b"CONNECT", _) => split_authority_form(rest),
        (b"OPTIONS", Some(b'*')) => split_asterisk_form(rest),
        (_, Some(b'h' | b'H')) => split_absolute_form(rest, method),
        _ => Err(Reject::TargetForm.into()),
    }
}

/// Path and query up to the blank, looked at from `at` on; what stands before is part of a path.
#[inline(never)]
fn split_path<'b>(path: &'b [u8], mut at: usize, authority: Option<&'b [u8]>) -> Split<'b, Target<'b>> {
    let mut query_at = None;
    loop {
        at = match &path[at..] {
            [b' ', after @ ..] => {
                let path_bytes = query_at.unwrap_or(at);
                return Ok((Target { bytes: &path[..at], path_bytes, authority }, after));
            }
            [b'?', ..] => {
                query_at.get_or_insert(at);
                at + 1
            }
            [b'/' | b'!' | b'"' | b'$', ..] => at + 1,
            [b'%', after @ ..] => path.len() - after_escape(after)?.len(),
            [byte, ..] => return Err(target_reject(*byte).into()),
            [] => return Err(Stop::NeedMore),
        };
        at += plain_target_bytes(&path[at..]);
    }
}

/// What is left after the two digits of an escape.
fn after_escape(mut rest: &[u8]) -> Result<&[u8], Stop> {
    for _ in 0..2 {
        let (&digit, after) = rest.split_first().ok_or(Stop::NeedMore)?;
        hex_value(digit).ok_or(Reject::TargetEscape)?;
        rest = after;
    }
    Ok(rest)
}

/// A line that ends with its target is HTTP/0.9.
fn target_reject(byte: u8) -> Reject {
    match byte {
        b'\r' | b'\n' => Reject::Version,
        _ => Reject::TargetByte,
    }
}

/// `OPTIONS *`: the server as a whole.
fn split_asterisk_form(rest: &[u8]) -> Split<'_, Target<'_>> {
    match &rest[1..] {
        [b' ', after @ ..] => Ok((Target { bytes: &rest[..1], path_bytes: 1, authority: None }, after)),
        [_, ..] => Err(Reject::TargetForm.into()),
        [] => Err(Stop::NeedMore),
    }
}

/// `CONNECT host:port`: the port must be there (RFC 9110 §9.3.6).
fn split_authority_form(rest: &[u8]) -> Split<'_, Target<'_>> {
    let (authority, rest) = split_authority(rest, Port::Required)?;
    match rest {
        [b' ', after @ ..] => {
            Ok((Target { bytes: authority, path_bytes: authority.len(), authority: Some(authority) }, after))
        }
        [byte, ..] => Err(target_reject(*byte).into()),
        [] => Err(Stop::NeedMore),
    }
}

/// `http://host/path`: every server must take it (RFC 9112 §3.2.2). Other schemes are not ours.
fn split_absolute_form<'b>(rest: &'b [u8], method: &[u8]) -> Split<'b, Target<'b>> {
    let (authority, rest) = split_authority(after_scheme(rest)?, Port::Optional)?;
    let whole: &[u8] = if method == b"OPTIONS" { b"*" } else { b"/" };
    match rest {
        [b'/' | b'?', ..] => split_path(rest, 0, Some(authority)),
        [b' ', after @ ..] => Ok((Target { bytes: whole, path_bytes: 1, authority: Some(authority) }, after)),
        [byte, ..] => Err(target_reject(*byte).into()),
        [] => Err(Stop::NeedMore),
    }
}

/// What is left after `http://` or `https://`, in any case.
fn after_scheme(rest: &[u8]) -> Result<&[u8], Stop> {
    let mut rest = after_ignoring_case(rest, b"http")?;
    if let [b's' | b'S', after @ ..] = rest {
        rest = after;
    }
    after_ignoring_case(rest, b"://")
}

fn after_ignoring_case<'b>(mut rest: &'b [u8], expected: &[u8]) -> Result<&'b [u8], Stop> {
    for byte in expected {
        let (first, after) = rest.split_first().ok_or(Stop::NeedMore)?;
        if !first.eq_ignore_ascii_case(byte) {
            return Err(Reject::TargetForm.into());
        }
        rest = after;
    }
    Ok(rest)
}

/// An authority, and what is left after it, which is not empty.
fn split_authority(rest: &[u8], port: Port) -> Split<'_, &[u8]> {
    let length = rest.iter().position(|&byte| !is_authority_byte(byte)).ok_or(Stop::NeedMore)?;
    let (authority, after) = rest.split_at(length);
    if !is_authority(authority, port) {
        return Err(Reject::TargetAuthority.into());
    }
    Ok((authority, after))
}

/// The version.
#[inline(always)]
fn split_version(rest: &[u8]) -> Split<'_, Version> {
    if let Some((version, after)) = rest.split_first_chunk()
        && u64::from_le_bytes(*version) == u64::from_le_bytes(*b"HTTP/1.1")
    {
        return Ok((Version::Http11, after));
    }
    let (version, left) = split_other_version(rest)?;
    Ok((version, left))
}

/// Names are case-sensitive, numbers have one digit (RFC 9112 §2.3). A later minor version is read as the
/// highest that is known (RFC 9110 §6.2).
#[cold]
fn split_other_version(rest: &[u8]) -> Split<'_, Version> {
    const NAME: &[u8] = b"HTTP/";
    let number = match rest.strip_prefix(NAME) {
        Some(number) => number,
        None if NAME.starts_with(rest) => return Err(Stop::NeedMore),
        None => return Err(Reject::Version.into()),
    };
    match number {
        [b'1', b'.', b'0', after @ ..] => Ok((Version::Http10, after)),
        [b'1', b'.', b'1'..=b'9', after @ ..] => Ok((Version::Http11, after)),
        [] | [b'1'] | [b'1', b'.'] => Err(Stop::NeedMore),
        [b'0' | b'2'..=b'9', ..] => Err(Reject::VersionUnsupported.into()),
        _ => Err(Reject::Version.into()),
    }
}

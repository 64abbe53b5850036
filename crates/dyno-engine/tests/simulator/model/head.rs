//! A request's head: empty lines, request line (RFC 9112 §3), field lines, and what follows from them together.

use super::authority::{Port, take_authority};
use super::bounds::{EMPTY_LINES_MAX, METHOD_BYTES_MAX};
use super::fields::{Field, Meaning, take_line};
use super::reader::{Bound, Read, Reader, is_token_byte};
use super::{Asked, Limits, RequestKind, Stop, Version};

/// How the body is told from what comes after it (RFC 9112 §6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    None,
    Length(u64),
    Chunked,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) method: Vec<u8>,
    pub(crate) target: Vec<u8>,
    pub(crate) host: Option<Vec<u8>>,
    pub(crate) version: Version,
    pub(crate) headers: Vec<Field>,
    pub(crate) framing: Framing,
    pub(crate) keep_alive: bool,
    pub(crate) expect_continue: bool,
    pub(crate) ends_at: usize,
}

/// What the request line asks for.
#[derive(Debug)]
struct Target {
    text: Vec<u8>,
    /// Of the absolute form and of CONNECT's.
    host: Option<Vec<u8>>,
}

/// The head that begins at `at`, with the empty lines before it. `kind` tells as much as was known when it stopped.
pub(crate) fn read_head(
    input: &[u8],
    at: usize,
    limits: &Limits,
    kind: &mut RequestKind,
) -> Result<Head, Stop> {
    let mut reader = Reader::new(input, at);
    reader.bound(Bound::Head, limits.head_bytes_max, 431, "the head is too long");
    skip_empty_lines(&mut reader)?;
    reader.bound(Bound::Line, limits.line_bytes_max, 414, "the request line is too long");
    let method = take_method(&mut reader)?;
    kind.asked = Asked::by(&method);
    let target = take_target(&mut reader, &method)?;
    let version = take_version(&mut reader)?;
    kind.version = version;
    end_request_line(&mut reader)?;
    let (headers, meaning) = take_fields(&mut reader, version, limits)?;
    if version == Version::Http11 && meaning.host.is_none() {
        return reader.wrong(400, "no Host");
    }
    let head = put_together(method, target, version, headers, meaning, reader.at);
    kind.expect_continue = head.expect_continue;
    Ok(head)
}

/// RFC 9112 §2.2.
fn skip_empty_lines(reader: &mut Reader<'_>) -> Read<()> {
    for _ in 0..EMPTY_LINES_MAX {
        if reader.peek()? != b'\r' {
            break;
        }
        reader.line_end()?;
    }
    Ok(())
}

/// The method and the space after it.
fn take_method(reader: &mut Reader<'_>) -> Read<Vec<u8>> {
    let mut method = Vec::new();
    loop {
        match reader.next()? {
            b' ' if !method.is_empty() => return Ok(method),
            byte if !is_token_byte(byte) => return reader.wrong(400, "a method is a token"),
            _ if method.len() == METHOD_BYTES_MAX => return reader.wrong(501, "the method is too long"),
            byte => method.push(byte),
        }
    }
}

/// The target in the form that the method allows (RFC 9112 §3.2), and the space after it.
fn take_target(reader: &mut Reader<'_>, method: &[u8]) -> Read<Target> {
    if method == b"CONNECT" {
        let authority = take_authority(reader, Port::Needed)?;
        reader.expect(b' ', "something after the port")?;
        return Ok(Target { text: authority.clone(), host: Some(authority) });
    }
    match reader.next()? {
        b'/' => Ok(Target { text: take_path(reader, b"/")?, host: None }),
        b'*' if method == b"OPTIONS" => {
            reader.expect(b' ', "something after the asterisk")?;
            Ok(Target { text: b"*".to_vec(), host: None })
        }
        b'h' | b'H' => take_absolute(reader, method),
        _ => reader.wrong(400, "a target of no form"),
    }
}

/// The rest of path and query, and the space after them (RFC 3986 §3.3, §3.4; bytes that should be escaped and that mean
/// nothing else are let through).
fn take_path(reader: &mut Reader<'_>, begun: &[u8]) -> Read<Vec<u8>> {
    let mut path = begun.to_vec();
    loop {
        match reader.next()? {
            b' ' => return Ok(path),
            b'#' => return reader.wrong(400, "a fragment"),
            b'%' => {
                path.push(b'%');
                path.extend(reader.escape()?);
            }
            byte if byte.is_ascii_graphic() => path.push(byte),
            _ => return reader.wrong(400, "a byte that no target has"),
        }
    }
}

/// http: and https: URIs, behind their first letter (RFC 9112 §3.2.2).
fn take_absolute(reader: &mut Reader<'_>, method: &[u8]) -> Read<Target> {
    for letter in *b"ttp" {
        if !reader.next()?.eq_ignore_ascii_case(&letter) {
            return reader.wrong(400, "another scheme than http");
        }
    }
    if reader.peek()?.eq_ignore_ascii_case(&b's') {
        reader.next()?;
    }
    for mark in *b"://" {
        reader.expect(mark, "another scheme than http")?;
    }
    let host = take_authority(reader, Port::Optional)?;
    let text = match reader.next()? {
        b'/' => take_path(reader, b"/")?,
        b'?' => take_path(reader, b"/?")?,
        // RFC 9112 §3.2.4: without a path, OPTIONS asks about the whole server.
        b' ' if method == b"OPTIONS" => b"*".to_vec(),
        b' ' => b"/".to_vec(),
        _ => return reader.wrong(400, "a byte that no host has"),
    };
    Ok(Target { text, host: Some(host) })
}

/// RFC 9112 §2.3; 505 for another major version (RFC 9110 §15.6.6).
fn take_version(reader: &mut Reader<'_>) -> Read<Version> {
    for letter in *b"HTTP/" {
        reader.expect(letter, "no version, or none of HTTP")?;
    }
    match reader.next()? {
        b'1' => {}
        byte if byte.is_ascii_digit() => return reader.wrong(505, "another version than 1"),
        _ => return reader.wrong(400, "a version is a digit, a dot and a digit"),
    }
    reader.expect(b'.', "a version is a digit, a dot and a digit")?;
    match reader.next()? {
        b'0' => Ok(Version::Http10),
        byte if byte.is_ascii_digit() => Ok(Version::Http11),
        _ => reader.wrong(400, "a version is a digit, a dot and a digit"),
    }
}

/// The line end does not count for the line's bound. Of a longer line both may be said: that it is, and what its byte is.
fn end_request_line(reader: &mut Reader<'_>) -> Read<()> {
    let is_full = matches!(reader.peek(), Err(Stop::Wrong(_)));
    reader.lift(Bound::Line);
    if is_full && reader.peek()? != b'\r' {
        reader.next()?;
        return reader.wrong_in_one_way(&[400, 414], "something after the version, and too much of it");
    }
    reader.line_end()
}

fn take_fields(reader: &mut Reader<'_>, version: Version, limits: &Limits) -> Read<(Vec<Field>, Meaning)> {
    let (mut headers, mut meaning) = (Vec::new(), Meaning::default());
    loop {
        if headers.len() == limits.headers_max && reader.peek()? != b'\r' {
            reader.next()?;
            return reader.wrong_in_one_way(&[431], "too many fields");
        }
        let Some(field) = take_line(reader, None)? else { return Ok((headers, meaning)) };
        meaning.add(&field, version, reader)?;
        headers.push(field);
    }
}

fn put_together(
    method: Vec<u8>,
    target: Target,
    version: Version,
    headers: Vec<Field>,
    meaning: Meaning,
    ends_at: usize,
) -> Head {
    let framing = match (meaning.is_chunked, meaning.length) {
        (true, _) => Framing::Chunked,
        (false, Some(length)) => Framing::Length(length),
        (false, None) => Framing::None,
    };
    let is_tunnel = Asked::by(&method) == Asked::Connect;
    Head {
        method,
        target: target.text,
        host: target.host.or(meaning.host),
        version,
        headers,
        framing,
        // RFC 9112 §9.3: close wins; an old client has to ask. Behind a CONNECT stands what is meant for the tunnel.
        keep_alive: !is_tunnel
            && !meaning.says_close
            && (version == Version::Http11 || meaning.says_keep_alive),
        expect_continue: meaning.expects_continue && !matches!(framing, Framing::None | Framing::Length(0)),
        ends_at,
    }
}

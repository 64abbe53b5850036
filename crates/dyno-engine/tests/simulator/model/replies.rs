//! What a client must make of a server's bytes (RFC 9112 §4, §6.3; RFC 9110 §15): as strict as can be, because these bytes
//! are our own. Every fault is told with its offset.

use super::chunks::dechunk;
use super::fields::{Coding, Field, coding, decimal, is_named, options, take_line};
use super::reader::{Read, Reader};
use super::{Asked, RequestKind, Stop, Version};

/// One reply, or an interim one, which stands in the list before the reply it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<Field>,
    /// Without its chunks' frames.
    pub(crate) body: Vec<u8>,
    /// The server sends nothing after this one and takes no further request.
    pub(crate) closes: bool,
    pub(crate) starts_at: usize,
    pub(crate) ends_at: usize,
}

impl Reply {
    pub(crate) fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// The value of the only field of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|field| is_named(field, name)).map(|field| field.1.as_slice())
    }
}

/// The replies to these requests, in their order, of a connection that has ended. Fewer replies than requests are no fault
/// here; one that is cut off is, and so is a byte after the last.
pub(crate) fn read_replies(output: &[u8], requests: &[RequestKind]) -> Result<Vec<Reply>, String> {
    let (replies, used) = read_replies_so_far(output, requests)?;
    match used == output.len() {
        true => Ok(replies),
        false => Err(format!("the reply at {used} is cut off: {}", shown(&output[used..]))),
    }
}

/// The same of a connection that may go on: the whole replies, and the offset behind them.
pub(crate) fn read_replies_so_far(
    output: &[u8],
    requests: &[RequestKind],
) -> Result<(Vec<Reply>, usize), String> {
    let (mut replies, mut at, mut waiting) = (Vec::<Reply>::new(), 0, requests.iter());
    let mut request = waiting.next();
    while at < output.len() {
        if replies.last().is_some_and(|reply| reply.closes) {
            return Err(format!("bytes at {at} after a reply that closes: {}", shown(&output[at..])));
        }
        let Some(kind) = request else {
            return Err(format!("bytes at {at} that nobody asked for: {}", shown(&output[at..])));
        };
        let reply = match take_reply(output, at, *kind) {
            Ok(reply) => reply,
            Err(Stop::Ended) => break,
            Err(Stop::Wrong(refusal)) => {
                return Err(format!("at {}: {} in {}", refusal.at, refusal.why, shown(&output[at..])));
            }
        };
        check_interim(&reply, replies.last(), *kind)?;
        at = reply.ends_at;
        if !reply.is_interim() {
            request = waiting.next();
        }
        replies.push(reply);
    }
    Ok((replies, at))
}

/// One 100, and only for whom it is meant (RFC 9110 §10.1.1, §15.2).
fn check_interim(reply: &Reply, before: Option<&Reply>, kind: RequestKind) -> Result<(), String> {
    let at = reply.starts_at;
    match reply.is_interim() {
        false => Ok(()),
        true if reply.status != 100 => Err(format!("at {at}: an interim reply {}", reply.status)),
        true if !kind.expect_continue => Err(format!("at {at}: a 100 that nobody waits for")),
        true if before.is_some_and(Reply::is_interim) => Err(format!("at {at}: a second 100")),
        true => Ok(()),
    }
}

fn take_reply(output: &[u8], at: usize, kind: RequestKind) -> Read<Reply> {
    let mut reader = Reader::new(output, at);
    let status = take_status_line(&mut reader)?;
    let mut headers = Vec::new();
    while let Some(field) = take_line(&mut reader, None)? {
        headers.push(field);
    }
    check_fields(&reader, status, &headers)?;
    let closes = says_that_it_closes(&reader, status, &headers, kind)?;
    let (body, ends_at) = take_body(&reader, output, status, &headers, kind, closes)?;
    Ok(Reply { status, headers, body, closes, starts_at: at, ends_at })
}

fn take_status_line(reader: &mut Reader<'_>) -> Read<u16> {
    for byte in *b"HTTP/1.1 " {
        reader.expect(byte, "no status line")?;
    }
    let mut status = 0;
    for _ in 0..3 {
        let digit = reader.next()?;
        if !digit.is_ascii_digit() {
            return reader.wrong(0, "a status is three digits");
        }
        status = status * 10 + u16::from(digit - b'0');
    }
    if !(100..600).contains(&status) {
        return reader.wrong(0, "a status of no class");
    }
    // The space stands there also when the reason is empty (RFC 9112 §4).
    reader.expect(b' ', "no space after the status")?;
    reader.take_while(|byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..))?;
    reader.line_end()?;
    Ok(status)
}

/// Fields that stand at most once, and those that a status must have or must not.
fn check_fields(reader: &Reader<'_>, status: u16, headers: &[Field]) -> Read<()> {
    for name in
        ["content-length", "transfer-encoding", "date", "server", "content-type", "connection", "allow"]
    {
        if headers.iter().filter(|field| is_named(field, name)).count() > 1 {
            return reader.wrong(0, "a field twice");
        }
    }
    let has = |name| headers.iter().any(|field| is_named(field, name));
    // RFC 9110 §8.6, RFC 9112 §6.1.
    if (status < 200 || status == 204) && (has("content-length") || has("transfer-encoding")) {
        return reader.wrong(0, "a framing where there can be no body");
    }
    if status >= 200 && !headers.iter().any(|field| is_named(field, "date") && is_date(&field.1)) {
        return reader.wrong(0, "no Date");
    }
    if status == 405 && !has("allow") {
        return reader.wrong(0, "405 without Allow");
    }
    Ok(())
}

/// The shape of IMF-fixdate (RFC 9110 §5.6.7): a digit for each 0, a letter for each a.
fn is_date(value: &[u8]) -> bool {
    const SHAPE: &[u8] = b"aaa, 00 aaa 0000 00:00:00 GMT";
    let fits = |(byte, shape): (&u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        b'a' => byte.is_ascii_alphabetic(),
        other => byte == other,
    };
    value.len() == SHAPE.len() && value.iter().zip(SHAPE).all(fits)
}

fn says_that_it_closes(reader: &Reader<'_>, status: u16, headers: &[Field], kind: RequestKind) -> Read<bool> {
    let field = headers.iter().find(|field| is_named(field, "connection"));
    let Some(said) = field.map_or(Some(Vec::new()), |field| options(&field.1)) else {
        return reader.wrong(0, "Connection is no list of tokens");
    };
    let (closes, keeps) = (said.contains(&b"close".to_vec()), said.contains(&b"keep-alive".to_vec()));
    if closes && keeps {
        return reader.wrong(0, "close and keep-alive");
    }
    // What is not said to an old client means the end (RFC 9112 §9.3).
    Ok(status >= 200 && (closes || kind.version == Version::Http10 && !keeps))
}

/// RFC 9112 §6.3.
fn take_body(
    reader: &Reader<'_>,
    output: &[u8],
    status: u16,
    headers: &[Field],
    kind: RequestKind,
    closes: bool,
) -> Read<(Vec<u8>, usize)> {
    let at = reader.at;
    let length = headers.iter().find(|field| is_named(field, "content-length"));
    let codings = headers.iter().find(|field| is_named(field, "transfer-encoding"));
    if kind.asked == Asked::Connect && (200..300).contains(&status) {
        return reader.wrong(0, "a tunnel");
    }
    if length.is_some_and(|field| decimal(&field.1).is_none()) {
        return reader.wrong(0, "a length that is no number");
    }
    if codings.is_some_and(|field| kind.version == Version::Http10 || coding(&field.1) != Coding::Chunked) {
        return reader.wrong(0, "a coding that the client did not ask for");
    }
    let has_none = status < 200 || matches!(status, 204 | 304) || kind.asked == Asked::Head;
    match (length, codings) {
        (Some(_), Some(_)) => reader.wrong(0, "a length and a coding"),
        _ if has_none => Ok((Vec::new(), at)),
        (Some(field), None) => {
            let bytes = decimal(&field.1).unwrap_or(0);
            let end = usize::try_from(bytes).ok().and_then(|bytes| at.checked_add(bytes));
            let body = end.and_then(|end| output.get(at..end)).ok_or(Stop::Ended)?;
            Ok((body.to_vec(), at + body.len()))
        }
        (None, Some(_)) => dechunk(output, at, usize::MAX),
        // The end of the connection ends the body: the last resort, for clients that know no chunks.
        (None, None) if closes && kind.version == Version::Http10 => {
            Ok((output[at..].to_vec(), output.len()))
        }
        (None, None) => reader.wrong(0, "no framing"),
    }
}

/// The beginning of what was found, as text.
fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(120)].escape_ascii().to_string()
}

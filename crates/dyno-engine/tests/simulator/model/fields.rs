//! Field lines (RFC 9112 §5) and what those mean that decide how a message goes on: Host, Content-Length,
//! Transfer-Encoding, Connection, Expect. Names and values are kept as they are.

use super::Version;
use super::authority::is_host;
use super::reader::{Bound, Read, Reader, is_blank, is_token, is_token_byte, trimmed};

/// A name and its value without the blanks around it.
pub(crate) type Field = (Vec<u8>, Vec<u8>);

/// The next field line, or `None` for the empty line that ends the section. `uncounted` is a bound for which the line feeds
/// do not count.
pub(crate) fn take_line(reader: &mut Reader<'_>, uncounted: Option<Bound>) -> Read<Option<Field>> {
    if reader.peek()? == b'\r' {
        take_line_end(reader, uncounted)?;
        return Ok(None);
    }
    if is_blank(reader.peek()?) {
        reader.next()?;
        return reader.wrong(400, "a folded line");
    }
    let name = reader.token("a field name is a token")?;
    reader.expect(b':', "no colon after a field name")?;
    let value = reader.take_while(is_value_byte)?;
    take_line_end(reader, uncounted)?;
    Ok(Some((name, trimmed(&value).to_vec())))
}

fn take_line_end(reader: &mut Reader<'_>, uncounted: Option<Bound>) -> Read<()> {
    reader.expect(b'\r', "a control byte in a field value, or a bare line feed")?;
    if let Some(bound) = uncounted {
        reader.allow_one_more(bound);
    }
    reader.expect(b'\n', "a carriage return without a line feed")
}

/// Visible bytes, blanks and bytes beyond ASCII (RFC 9110 §5.5).
fn is_value_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}

pub(crate) fn is_named(field: &Field, name: &str) -> bool {
    field.0.eq_ignore_ascii_case(name.as_bytes())
}

/// What the fields of a request have said so far.
#[derive(Debug, Default)]
pub(crate) struct Meaning {
    pub(crate) host: Option<Vec<u8>>,
    pub(crate) length: Option<u64>,
    pub(crate) is_chunked: bool,
    pub(crate) says_close: bool,
    pub(crate) says_keep_alive: bool,
    pub(crate) expects_continue: bool,
}

impl Meaning {
    /// Takes in a field whose line has just ended.
    pub(crate) fn add(&mut self, field: &Field, version: Version, reader: &Reader<'_>) -> Read<()> {
        let value = &field.1;
        match field.0.to_ascii_lowercase().as_slice() {
            b"host" => self.add_host(value, reader),
            b"content-length" => self.add_length(value, reader),
            b"transfer-encoding" => self.add_coding(value, version, reader),
            b"connection" => self.add_connection(value, reader),
            // An old client's expectation is ignored (RFC 9110 §10.1.1).
            b"expect" if version == Version::Http11 => self.add_expectation(value, reader),
            _ => Ok(()),
        }
    }

    /// RFC 9112 §3.2: 400 for more than one and for a value that is none.
    fn add_host(&mut self, value: &[u8], reader: &Reader<'_>) -> Read<()> {
        if self.host.is_some() {
            return reader.wrong(400, "a second Host");
        }
        if !is_host(value) {
            return reader.wrong(400, "a Host that is none");
        }
        self.host = Some(value.to_vec());
        Ok(())
    }

    /// RFC 9112 §6.3, 3 to 5: one number; with Transfer-Encoding it is an attack.
    fn add_length(&mut self, value: &[u8], reader: &Reader<'_>) -> Read<()> {
        if self.is_chunked || self.length.is_some() {
            return reader.wrong(400, "a length where there is a framing already");
        }
        match decimal(value) {
            Some(length) => self.length = Some(length),
            None => return reader.wrong(400, "a length that is no number"),
        }
        Ok(())
    }

    fn add_coding(&mut self, value: &[u8], version: Version, reader: &Reader<'_>) -> Read<()> {
        if self.is_chunked || self.length.is_some() {
            return reader.wrong(400, "a coding where there is a framing already");
        }
        if version == Version::Http10 {
            return reader.wrong(400, "a coding from a client that cannot know it");
        }
        match coding(value) {
            Coding::Chunked => self.is_chunked = true,
            Coding::Malformed => return reader.wrong(400, "no list of codings that ends in one chunked"),
            Coding::Unknown => return reader.wrong(501, "another coding than chunked"),
            Coding::Doubtful => return reader.wrong_in_one_way(&[400, 501], "a coding with odd parameters"),
        }
        Ok(())
    }

    /// RFC 9110 §7.6.1; empty members of a list are passed over (§5.6.1.2).
    fn add_connection(&mut self, value: &[u8], reader: &Reader<'_>) -> Read<()> {
        match options(value) {
            Some(options) => {
                self.says_close |= options.contains(&b"close".to_vec());
                self.says_keep_alive |= options.contains(&b"keep-alive".to_vec());
                Ok(())
            }
            None => reader.wrong(400, "Connection is no list of tokens"),
        }
    }

    fn add_expectation(&mut self, value: &[u8], reader: &Reader<'_>) -> Read<()> {
        if !value.eq_ignore_ascii_case(b"100-continue") {
            return reader.wrong(417, "another expectation than 100-continue");
        }
        self.expects_continue = true;
        Ok(())
    }
}

/// The members of Connection in lower case.
pub(crate) fn options(value: &[u8]) -> Option<Vec<Vec<u8>>> {
    let members = value.split(|byte| *byte == b',').map(trimmed).filter(|member| !member.is_empty());
    members.map(|member| is_token(member).then(|| member.to_ascii_lowercase())).collect()
}

/// 1*DIGIT of a number that fits 64 bits.
pub(crate) fn decimal(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    let mut number = 0_u64;
    for byte in value {
        if !byte.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
    }
    Some(number)
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Chunked,
    /// No list, or chunked stands elsewhere than once at its end (RFC 9112 §6.1, §7.1).
    Malformed,
    /// RFC 9112 §6.1: 501.
    Unknown,
    /// What is wrong with it first is a matter of taste.
    Doubtful,
}

pub(crate) fn coding(value: &[u8]) -> Coding {
    if value.contains(&b';') {
        return coding_with_parameters(value);
    }
    let members: Vec<&[u8]> = value.split(|byte| *byte == b',').map(trimmed).collect();
    if !members.iter().all(|member| is_token(member)) {
        return Coding::Malformed;
    }
    let is_chunked = |member: &&[u8]| member.eq_ignore_ascii_case(b"chunked");
    match members.iter().rposition(is_chunked) {
        Some(0) if members.len() == 1 => Coding::Chunked,
        Some(at) if at + 1 < members.len() => Coding::Malformed,
        Some(at) if members[..at].iter().any(is_chunked) => Coding::Malformed,
        _ => Coding::Unknown,
    }
}

/// Simple parameters are a coding that nobody knows; of others, both refusals are right.
fn coding_with_parameters(value: &[u8]) -> Coding {
    let plain = |byte: &u8| is_token_byte(*byte) || b";=, ".contains(byte);
    let members: Vec<&[u8]> = value.split(|byte| *byte == b',').map(trimmed).collect();
    let is_chunked = |member: &&[u8]| member.eq_ignore_ascii_case(b"chunked");
    let before_last = &members[..members.len() - 1];
    let is_simple = value.iter().all(plain) && members.iter().all(|member| has_simple_parameters(member));
    match is_simple && !before_last.iter().any(is_chunked) {
        true => Coding::Unknown,
        false => Coding::Doubtful,
    }
}

/// A token, or a token, a semicolon, a token, an equals sign and a token.
fn has_simple_parameters(member: &[u8]) -> bool {
    let mut parts = member.split(|byte| *byte == b';');
    parts.next().is_some_and(is_token)
        && parts.all(|part| {
            let mut sides = part.split(|byte| *byte == b'=');
            sides.next().is_some_and(is_token) && sides.next().is_some_and(is_token) && sides.next().is_none()
        })
}

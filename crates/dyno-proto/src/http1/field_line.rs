//! Reads the field lines of a request head (RFC 9112 §5) from left to right.
//!
//! Called by the request reader after the request line. Of a field that decides nothing it looks only whether
//! each byte may stand where it stands, and notes where the line starts; what the others mean is for `fields`.

use super::authority::plain_authority_bytes;
use super::fields::Fields;
use super::head::Version;
use super::line::{after_line_end, strip_line_end};
use super::reject::{Reject, Stop};
use crate::scan::{after_text, bytes_to_colon, token_bytes, trim_blanks};

/// Reads the field lines that `rest` starts with, and gives what is left from the empty line on. `places` takes how
/// much is left from the start of each line on, of the empty one too; what it has room for bounds their number.
#[inline(always)]
pub(crate) fn read_fields<'b>(
    mut rest: &'b [u8],
    version: Version,
    places: &mut [u32],
    fields: &mut Fields<'b>,
) -> Result<(usize, &'b [u8]), Stop> {
    let room = places.len();
    let mut places = places.iter_mut();
    *places.next().ok_or(Reject::FieldsMany)? = rest.len() as u32;
    loop {
        let Some(&first) = rest.first() else { return Err(Stop::NeedMore) };
        if first == b'\r' {
            return Ok((room - places.len(), rest));
        }
        let place = places.next().ok_or(Reject::FieldsMany)?;
        rest = read_field(rest, first, version, fields)?;
        *place = rest.len() as u32;
    }
}

/// One field line: gives what is left after it.
#[inline(always)]
fn read_field<'b>(
    line: &'b [u8],
    first: u8,
    version: Version,
    fields: &mut Fields<'b>,
) -> Result<&'b [u8], Stop> {
    if let Some((host, after)) = split_plain_host(line, first) {
        fields.take_sane_host(host)?;
        return Ok(after);
    }
    let Some(name_bytes @ 1..) = bytes_to_colon(line) else { return Err(no_name(line)) };
    if Fields::may_ask_for(first, name_bytes) {
        let left = read_asked(line, name_bytes, version, fields)?;
        return Ok(&line[line.len() - left..]);
    }
    after_line(line)
}

/// The value of Host, and what is left after its line, if there is nothing odd in it. The scan that looks whether it is
/// a host also finds its end. `None` says nothing.
#[inline(always)]
fn split_plain_host(line: &[u8], first: u8) -> Option<(&[u8], &[u8])> {
    if first | 0x20 != b'h' {
        return None;
    }
    let value = Fields::after_host_name(line)?;
    let (host, rest) = value.split_at_checked(plain_authority_bytes(value)?)?;
    Some((host, strip_line_end(rest)?))
}

/// A field that may decide something: gives how much is left after it.
#[inline(never)]
fn read_asked<'b>(
    line: &'b [u8],
    name_bytes: usize,
    version: Version,
    fields: &mut Fields<'b>,
) -> Result<usize, Stop> {
    let left = after_line(line)?.len();
    let value = &line[name_bytes + 1..line.len() - left - 2];
    fields.take(version, &line[..name_bytes], trim_blanks(value))?;
    Ok(left)
}

/// Why no name and colon stand first.
#[cold]
fn no_name(line: &[u8]) -> Stop {
    let name_bytes = token_bytes(line);
    let reject = match line.get(name_bytes) {
        None => return Stop::NeedMore,
        Some(b' ' | b'\t') if name_bytes == 0 => Reject::Folded,
        Some(b' ' | b'\t') => Reject::BlankBeforeColon,
        Some(b'\n') if name_bytes == 0 => Reject::BareFeed,
        Some(_) => Reject::FieldName,
    };
    reject.into()
}

/// What is left after a line of which the name is known to be one, and after its line end, which has two bytes. The
/// name is passed over once more: to know where the value starts would take longer.
#[inline(always)]
fn after_line(line: &[u8]) -> Result<&[u8], Stop> {
    let rest = after_text(line);
    match strip_line_end(rest) {
        Some(after) => Ok(after),
        None => after_odd_text(rest),
    }
}

/// The same for a value of which a tab is left first, and for what is no value.
#[cold]
fn after_odd_text(mut rest: &[u8]) -> Result<&[u8], Stop> {
    while let [b'\t', after @ ..] = rest {
        rest = after_text(after);
    }
    after_line_end(rest, Reject::FieldValue)
}

//! Reads the field lines of a request head (RFC 9112 §5) from left to right.
//!
//! Called by the request reader after the request line. What a field means, `fields` tells.

use super::Version;
use super::authority::usual_authority_bytes;
use super::fields::Fields;
use super::head::Line;
use super::reject::{Reject, Stop};
use super::request::{line_end, starts_with};
use crate::scan::{is_blank, text_end, token_end, word_at};

/// Reads field lines to the empty line: their number, and the byte after the head.
#[inline]
pub(crate) fn read_fields<'b>(
    window: &'b [u8],
    mut at: usize,
    version: Version,
    lines: &mut [Line],
    fields: &mut Fields<'b>,
) -> Result<(usize, usize), Stop> {
    let mut count = 0;
    while window.get(at).ok_or(Stop::NeedMore)? != &b'\r' {
        let slot = lines.get_mut(count).ok_or(Reject::FieldsMany)?;
        (*slot, at) = match read_usual_host(window, at) {
            Some((line, next)) => {
                fields.take_sane_host(line.value(window))?;
                (line, next)
            }
            None => read_field(window, at, version, fields)?,
        };
        count += 1;
    }
    Ok((count, line_end(window, at, Reject::FieldName)?))
}

/// The field that every request has, in the form that nearly every client gives it. It is read at once
/// with what it means; whatever looks different is left to [`read_field`].
#[inline]
fn read_usual_host(window: &[u8], at: usize) -> Option<(Line, usize)> {
    const NAME: u64 = u64::from_le_bytes(*b"host: \0\0");
    const SMALL: u64 = u64::from_le_bytes(*b"    \0\0\0\0");
    const SIX_BYTES: u64 = 0xffff_ffff_ffff;
    if (word_at(window, at)? | SMALL) & SIX_BYTES != NAME {
        return None;
    }
    let end = at + 6 + usual_authority_bytes(window.get(at + 6..)?)?;
    starts_with(window, end, b"\r\n").then(|| (Line::new(at, at + 4, at + 6, end), end + 2))
}

/// One field line, and the byte after it.
#[inline]
fn read_field<'b>(
    window: &'b [u8],
    at: usize,
    version: Version,
    fields: &mut Fields<'b>,
) -> Result<(Line, usize), Stop> {
    let name_end = read_name(window, at)?;
    let (value_at, value_end, next) = read_value(window, name_end + 1)?;
    let line = Line::new(at, name_end, value_at, value_end);
    fields.take(version, line.name(window), line.value(window))?;
    Ok((line, next))
}

/// Where the colon after a field name stands.
#[inline]
fn read_name(window: &[u8], start: usize) -> Result<usize, Stop> {
    let end = token_end(window, start);
    match window.get(end) {
        Some(b':') if end > start => Ok(end),
        Some(&byte) => Err(name_reject(byte, end == start).into()),
        None => Err(Stop::NeedMore),
    }
}

#[cold]
fn name_reject(byte: u8, first: bool) -> Reject {
    match (byte, first) {
        (b' ' | b'\t', true) => Reject::Folded,
        (b' ' | b'\t', false) => Reject::BlankBeforeColon,
        (b'\n', true) => Reject::BareFeed,
        _ => Reject::FieldName,
    }
}

/// Start and end of a value without its blanks, and the byte after its line.
#[inline]
fn read_value(window: &[u8], colon_end: usize) -> Result<(usize, usize, usize), Stop> {
    let mut start = colon_end;
    while window.get(start).is_some_and(|&byte| is_blank(byte)) {
        start += 1;
    }
    let mut end = text_end(window, start);
    while window.get(end) == Some(&b'\t') {
        end = text_end(window, end + 1);
    }
    let next = line_end(window, end, Reject::FieldValue)?;
    while end > start && is_blank(window[end - 1]) {
        end -= 1;
    }
    Ok((start, end, next))
}

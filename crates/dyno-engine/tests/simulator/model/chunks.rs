//! The chunked coding of a body (RFC 9112 §7.1). Extensions and trailers are read, bounded and dropped.

use super::bounds::{
    CHUNK_ALLOWANCE, EXTENSION_BYTES_MAX, OVERHEAD_BYTES_MAX, SIZE_DIGITS_MAX, TRAILER_BYTES_MAX,
    TRAILERS_MAX,
};
use super::fields::take_line;
use super::reader::{Bound, Read, Reader, is_blank};

/// The data of the chunks that begin at `at`, and the offset behind them. More data than `bytes_max` is refused when it
/// is announced.
pub(crate) fn dechunk(input: &[u8], at: usize, bytes_max: usize) -> Read<(Vec<u8>, usize)> {
    let mut reader = Reader::new(input, at);
    let (mut data, mut overhead) = (Vec::new(), 0_u64);
    loop {
        let line_at = reader.at;
        let size = take_size_line(&mut reader)?;
        let Some(whole) = size.checked_add(data.len() as u64) else {
            return reader.wrong_in_one_way(&[400, 413], "a sum of sizes that does not fit");
        };
        // The size's line, and the line end after the data; a last chunk is charged like any other.
        let frame = (reader.at - line_at + 2) as u64;
        overhead = (overhead + frame).saturating_sub(CHUNK_ALLOWANCE.saturating_add(size.saturating_mul(2)));
        match (whole > bytes_max as u64, overhead > OVERHEAD_BYTES_MAX) {
            (true, true) => {
                return reader.wrong_in_one_way(&[400, 413], "too long, and too much of it is frame");
            }
            (true, false) => return reader.wrong(413, "the chunks are too long"),
            (false, true) => return reader.wrong(400, "the frames outweigh the data"),
            (false, false) => {}
        }
        if size == 0 {
            take_trailers(&mut reader)?;
            return Ok((data, reader.at));
        }
        data.extend(reader.take(size)?);
        reader.line_end()?;
    }
}

/// A size, its extensions and the line end.
fn take_size_line(reader: &mut Reader<'_>) -> Read<u64> {
    let mut digits = Vec::new();
    while reader.peek()?.is_ascii_hexdigit() {
        digits.push(reader.next()?);
        if digits.len() > SIZE_DIGITS_MAX {
            return reader.wrong_in_one_way(&[400, 413], "a size that does not fit");
        }
    }
    if digits.is_empty() {
        reader.next()?;
        return reader.wrong(400, "a size is made of hexadecimal digits");
    }
    reader.bound(Bound::Extension, EXTENSION_BYTES_MAX, 400, "an extension is too long");
    take_extensions(reader)?;
    reader.lift(Bound::Extension);
    reader.expect(b'\n', "a carriage return without a line feed")?;
    Ok(digits.iter().fold(0, |size, digit| size << 4 | u64::from(hexadecimal(*digit))))
}

fn hexadecimal(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit.to_ascii_lowercase() - b'a' + 10,
    }
}

/// All extensions and the carriage return after them (RFC 9112 §7.1.1).
fn take_extensions(reader: &mut Reader<'_>) -> Read<()> {
    loop {
        let blanks = reader.take_while(is_blank)?.len();
        match reader.next()? {
            b';' => take_extension(reader)?,
            b'\r' if blanks == 0 => return Ok(()),
            _ => return reader.wrong(400, "something after a size that is no extension"),
        }
    }
}

/// A name, and perhaps a value, behind the semicolon.
fn take_extension(reader: &mut Reader<'_>) -> Read<()> {
    reader.take_while(is_blank)?;
    reader.token("an extension's name is a token")?;
    let after_name = reader.at;
    reader.take_while(is_blank)?;
    if reader.peek()? != b'=' {
        // The blanks belong to what comes next, or are too many.
        reader.at = after_name;
        return Ok(());
    }
    reader.next()?;
    reader.take_while(is_blank)?;
    match reader.peek()? {
        b'"' => take_quoted(reader),
        _ => reader.token("an extension's value is a token or quoted").map(drop),
    }
}

/// RFC 9110 §5.6.4.
fn take_quoted(reader: &mut Reader<'_>) -> Read<()> {
    reader.next()?;
    loop {
        let is_escaped = reader.peek()? == b'\\';
        if is_escaped {
            reader.next()?;
        }
        match reader.next()? {
            b'"' if !is_escaped => return Ok(()),
            b'\t' | b' '..=b'~' | 0x80.. => {}
            _ => return reader.wrong(400, "a control byte within quotes"),
        }
    }
}

/// The trailer section and the empty line after it.
fn take_trailers(reader: &mut Reader<'_>) -> Read<()> {
    reader.bound(Bound::Trailers, TRAILER_BYTES_MAX, 431, "the trailers are too long");
    let mut lines = 0;
    loop {
        if lines == TRAILERS_MAX && reader.peek()? != b'\r' {
            reader.next()?;
            return reader.wrong(431, "too many trailers");
        }
        if take_line(reader, Some(Bound::Trailers))?.is_none() {
            return Ok(());
        }
        lines += 1;
    }
}

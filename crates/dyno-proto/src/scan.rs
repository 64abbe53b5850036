//! Byte classes, and the scans that run over them eight bytes at a time.
//!
//! Every reader of this crate calls it. A scan answers where the first byte outside a class stands, or
//! the length of the input when there is none: it never judges and never looks past the end, so a caller
//! that ran out of bytes knows that it did.
//!
//! Words are searched with the arithmetic of "Hacker's Delight", §6-1: `(x - n) & !x & 0x80` marks each
//! byte below `n`. A borrow can mark a byte above a true hit wrongly, never one below it, and words are
//! read little-endian: the lowest mark is therefore always the first true one, also in a union of marks.
//! Where marks are inverted they must be exact: those helpers say so.

/// The lowest bit of each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte of a word.
const TOPS: u64 = 0x8080_8080_8080_8080;

/// Bytes that long texts are passed over at a time: one vector of SSE2 or NEON.
const BLOCK_BYTES: usize = 16;

/// Bytes of a token (RFC 9110 §5.6.2): names of methods and fields, elements of lists.
static TOKEN: [bool; 256] = alphanumeric_and(b"!#$%&'*+-.^_`|~");
/// Bytes of a registered name, escapes aside (RFC 3986 §3.2.2: unreserved and sub-delims).
static REG_NAME: [bool; 256] = alphanumeric_and(b"-._~!$&'()*+,;=");

const fn alphanumeric_and(more: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < more.len() {
        table[more[at] as usize] = true;
        at += 1;
    }
    table
}

#[inline]
pub(crate) fn is_token_byte(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

#[inline]
pub(crate) fn is_reg_name_byte(byte: u8) -> bool {
    REG_NAME[usize::from(byte)]
}

/// Whether these bytes are one token: not empty, and token bytes only.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_token_byte(byte))
}

/// Space and tab are the only blanks of a head (OWS, RFC 9110 §5.6.3).
#[inline]
pub(crate) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// The bytes without blanks at either end.
#[inline]
pub(crate) fn trim_blanks(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The value of a hexadecimal digit.
#[inline]
pub(crate) fn hex_value(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Reads `1*DIGIT` (RFC 9110 §8.6) that fits 64 bits: no sign, no blank, no list.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    let (&first, rest) = digits.split_first()?;
    let mut value = digit(first)?;
    for &byte in rest {
        value = value.checked_mul(10)?.checked_add(digit(byte)?)?;
    }
    Some(value)
}

#[inline]
fn digit(byte: u8) -> Option<u64> {
    byte.is_ascii_digit().then(|| u64::from(byte - b'0'))
}

/// Where, from `at` on, the first byte stands that is no token byte. Nearly all names are letters and
/// dashes, which are looked for word by word; whatever else stops that scan is looked up.
#[inline]
pub(crate) fn token_end(bytes: &[u8], at: usize) -> usize {
    let mut at = find(bytes, at, |word| !(letters(word) | equal_ascii(word, b'-')) & TOPS);
    if bytes.get(at) == Some(&b':') {
        return at;
    }
    while at < bytes.len() && is_token_byte(bytes[at]) {
        at += 1;
    }
    at
}

/// Where, from `at` on, the first byte stands that is no small letter, digit, dash or dot: the end of nearly
/// all hosts.
#[inline]
pub(crate) fn host_end(bytes: &[u8], at: usize) -> usize {
    find(bytes, at, outside_host)
}

/// The same from the start on, if it is found before the last few bytes.
#[inline]
pub(crate) fn host_end_in_words(bytes: &[u8]) -> Option<usize> {
    find_in_words(bytes, outside_host)
}

#[inline]
fn outside_host(word: u64) -> u64 {
    // In ASCII order: the dash, the dot, the slash, the digits, others, the letters, others.
    let between = at_least(word, b'9' + 1) & !at_least(word, b'a');
    let outside = between | at_least(word, b'z' + 1) | word.wrapping_sub(ONES * u64::from(b'-')) | word;
    (outside | equal(word, b'/')) & TOPS
}

/// How many digits the text starts with, up to eight; fewer bytes than eight are not looked at.
#[inline]
pub(crate) fn digits_in_front(bytes: &[u8]) -> Option<usize> {
    let values = u64::from_le_bytes(*bytes.first_chunk()?) ^ (ONES * u64::from(b'0'));
    let others = (values.wrapping_add(ONES * (0x80 - 10)) | values) & TOPS;
    Some(first_mark(others))
}

/// Where, from `at` on, the first byte stands that a request target cannot simply pass over: blanks,
/// controls, bytes from 0x7f, `#`, `%` and `?`, which mean something; and `!`, `"`, `$`, which only stand
/// between them in ASCII: leaving them out costs a comparison per word.
#[inline]
pub(crate) fn target_end(bytes: &[u8], at: usize) -> usize {
    find(bytes, at, outside_target)
}

/// The same from the start on, if it is found before the last few bytes.
#[inline]
pub(crate) fn target_end_in_words(bytes: &[u8]) -> Option<usize> {
    find_in_words(bytes, outside_target)
}

#[inline]
fn outside_target(word: u64) -> u64 {
    // Seven-bit sums and differences have their top bit where they leave the class; others bring their own.
    let outside = word.wrapping_sub(ONES * u64::from(b'%' + 1)) | word.wrapping_add(ONES) | word;
    (outside | equal(word, b'?')) & TOPS
}

/// Where, from `at` on, the first control stands (below 0x20, or 0x7f). A tab stops it too; bytes from
/// 0x80 (obs-text, RFC 9110 §5.5) do not.
#[inline]
pub(crate) fn text_end(bytes: &[u8], at: usize) -> usize {
    let at = pass_blocks(bytes, at, |byte| u8::from(byte < 0x20) | u8::from(byte == 0x7f));
    find(bytes, at, |word| below(word, 0x20) | equal(word, 0x7f))
}

/// Where, from `at` on, the first byte stands that a JSON string cannot hold as it is (RFC 8259 §7).
#[inline]
pub(crate) fn json_plain_end(bytes: &[u8], at: usize) -> usize {
    let at = pass_blocks(bytes, at, |byte| {
        u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\')
    });
    find(bytes, at, outside_json)
}

/// Whether a JSON string can hold all eight bytes as they are.
#[inline]
pub(crate) fn is_plain_word(bytes: [u8; 8]) -> bool {
    outside_json(u64::from_le_bytes(bytes)) == 0
}

#[inline]
fn outside_json(word: u64) -> u64 {
    below(word, 0x20) | equal(word, b'"') | equal(word, b'\\')
}

/// Passes over whole blocks in which no byte stops the scan. The question has no branch and no place in its
/// answer, so that the compiler asks it of a block at once with the vectors that every machine has.
#[inline]
fn pass_blocks(bytes: &[u8], at: usize, stops: impl Fn(u8) -> u8) -> usize {
    let mut rest = &bytes[at..];
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK_BYTES>() {
        if block.iter().fold(0, |any, &byte| any | stops(byte)) != 0 {
            break;
        }
        rest = after;
    }
    bytes.len() - rest.len()
}

/// Runs `marks` over words, the last one filled up with zeros: each class stops at a zero, so that the
/// bytes after the end are never passed over.
#[inline]
fn find(bytes: &[u8], at: usize, marks: impl Fn(u64) -> u64) -> usize {
    let mut rest = &bytes[at..];
    while let Some((word, after)) = rest.split_first_chunk() {
        let found = marks(u64::from_le_bytes(*word));
        if found != 0 {
            return bytes.len() - rest.len() + first_mark(found);
        }
        rest = after;
    }
    if rest.is_empty() {
        return bytes.len();
    }
    bytes.len() - rest.len() + first_mark(marks(last_word(bytes, rest)))
}

/// Runs `marks` over whole words only: a loop that keeps nothing for its end.
#[inline]
fn find_in_words(bytes: &[u8], marks: impl Fn(u64) -> u64) -> Option<usize> {
    let mut at = 0;
    for word in bytes.as_chunks().0 {
        let found = marks(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(at + first_mark(found));
        }
        at += 8;
    }
    None
}

/// In which byte of a word the lowest mark is.
#[inline]
fn first_mark(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// Eight bytes from `at` on, the first one lowest.
#[inline]
pub(crate) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The one to seven last bytes of the input, zeros after them.
#[inline]
fn last_word(bytes: &[u8], rest: &[u8]) -> u64 {
    match bytes.last_chunk() {
        Some(last) => u64::from_le_bytes(*last) >> (8 * (8 - rest.len())),
        None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// Marks the bytes below `limit`, and perhaps bytes above the first one of them.
#[inline]
fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(limit)) & !word & TOPS
}

/// Marks the bytes that equal `byte`, and perhaps bytes above the first one of them.
#[inline]
fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

/// Marks, exactly, the bytes that are at least `limit` when their top bits are taken off: sums of seven
/// bits never carry. Other bits than the top ones are left over.
#[inline]
fn at_least(word: u64, limit: u8) -> u64 {
    (word & !TOPS) + ONES * u64::from(0x80 - limit)
}

/// Marks, exactly, the bytes that equal `byte`, which is ASCII.
#[inline]
fn equal_ascii(word: u64, byte: u8) -> u64 {
    let zeros = word ^ (ONES * u64::from(byte));
    !(at_least(zeros, 1) | zeros)
}

/// Marks, exactly, the letters in either case.
#[inline]
fn letters(word: u64) -> u64 {
    let small = word | (ONES * 0x20);
    at_least(small, b'a') & !at_least(small, b'z' + 1) & !word
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Each byte is put at each place among each neighbour in inputs of many lengths, and the scan is started
    /// at places before and after it: whole words, last words and short inputs all see it.
    fn agree(scan: fn(&[u8], usize) -> usize, stops: fn(u8) -> bool, neighbours: &[u8]) {
        for (byte, &neighbour) in (0..=255u8).flat_map(|byte| neighbours.iter().map(move |n| (byte, n))) {
            for length in [1, 5, 7, 8, 9, 15, 16, 19, 35] {
                for place in 0..length {
                    let mut bytes = vec![neighbour; length];
                    bytes[place] = byte;
                    for start in [0, place, (place + 1).min(length), length] {
                        let expected = (start..length).find(|&at| stops(bytes[at])).unwrap_or(length);
                        assert_eq!(scan(&bytes, start), expected, "from {start} of {bytes:x?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_target_scan_stops_where_the_table_says() {
        let stops = |byte: u8| byte <= b'%' || byte >= 0x7f || byte == b'?';
        agree(target_end, stops, b"a!~$@\x00\x80\xff");
    }

    #[test]
    fn a_text_scan_stops_at_controls_only() {
        agree(text_end, |byte| byte < 0x20 || byte == 0x7f, b"a ~\x80\xff\x00\x7e");
    }

    #[test]
    fn a_json_scan_stops_at_what_needs_an_escape() {
        agree(json_plain_end, |byte| byte < 0x20 || byte == b'"' || byte == b'\\', b"a ~\x80\xff!#[]");
    }

    #[test]
    fn a_token_scan_stops_at_the_first_byte_outside() {
        let stops = |byte: u8| !byte.is_ascii_alphanumeric() && !b"!#$%&'*+-.^_`|~".contains(&byte);
        agree(token_end, stops, b"aZ-_\x00:\xe1");
    }

    #[test]
    fn a_host_scan_stops_at_all_but_small_letters_digits_dashes_and_dots() {
        let stops = |byte: u8| !matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
        agree(host_end, stops, b"aZz09-./:\x00\xad\xe1");
    }

    #[test]
    fn a_scan_of_whole_words_finds_the_same_or_nothing() {
        for (scan, in_words) in [
            (target_end as fn(&[u8], usize) -> usize, target_end_in_words as fn(&[u8]) -> Option<usize>),
            (host_end, host_end_in_words),
        ] {
            for length in 0..40 {
                for place in 0..=length {
                    let mut bytes = vec![b'a'; length];
                    bytes[place..].fill(b' ');
                    let expected = Some(scan(&bytes, 0)).filter(|&end| end < length / 8 * 8);
                    assert_eq!(in_words(&bytes), expected, "{place} of {length}");
                }
            }
        }
    }

    #[test]
    fn digits_in_front_are_counted_where_eight_bytes_stand() {
        for byte in 0..=255u8 {
            for place in 0..8 {
                for neighbour in [b'0', b'9', b'/', b':', b'a', 0, 0x7f, 0x80, 0xff] {
                    let mut bytes = [b'5'; 9];
                    bytes[place] = byte;
                    bytes[place + 1] = neighbour;
                    let expected = bytes[..8].iter().take_while(|byte| byte.is_ascii_digit()).count();
                    assert_eq!(digits_in_front(&bytes), Some(expected), "{bytes:x?}");
                    assert_eq!(digits_in_front(&bytes[..7]), None);
                }
            }
        }
    }

    #[test]
    fn decimals_are_digits_that_fit() {
        assert_eq!(decimal(b"0"), Some(0));
        assert_eq!(decimal(b"007"), Some(7));
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for wrong in
            ["", "18446744073709551616", "99999999999999999999", "+1", "-1", " 1", "1 ", "1,1", "0x1"]
        {
            assert_eq!(decimal(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    #[test]
    fn blanks_are_trimmed_at_both_ends() {
        assert_eq!(trim_blanks(b" \t a b\t "), b"a b");
        assert_eq!(trim_blanks(b" \t "), b"");
    }
}

//! Byte classes, and the scans that run over them sixteen bytes at a time.
//!
//! Every reader of this crate calls it. A scan tells how many bytes the input starts with that are of a class, or what
//! is left after them: it never judges and never looks past the end, so a caller that ran out of bytes knows that it did.
//!
//! How a class is asked of sixteen bytes stands in `block`.

mod block;

use block::{BLOCK_BYTES, Class, every, first_stop, reaching};

/// Declares a class: how it is asked of a block, and of a word.
macro_rules! class {
    ($(#[$doc:meta])* $name:ident, |$block:ident| $passes:expr, |$word:ident| $stops:expr) => {
        $(#[$doc])*
        struct $name;

        impl Class for $name {
            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            fn passes($block: block::vector::Block) -> block::vector::Passed {
                $passes
            }

            #[cfg(any(test, not(target_arch = "x86_64")))]
            #[inline(always)]
            fn stops($word: u64) -> u64 {
                $stops
            }
        }
    };
}

class! {
    /// Letters and dashes: nearly all names of fields are made of them.
    Name,
    |block| block.with(0x20).between(b'a', b'z').or(block.is(b'-')),
    |word| {
        let upper = word & every(0x5f);
        // A byte's top bit says in turn: below A or above Z; no dash.
        let no_letter = every(0xc0).wrapping_sub(upper) | reaching(upper, b'Z' + 1);
        let no_dash = reaching(word ^ every(b'-'), 1);
        no_letter & no_dash | word
    }
}

class! {
    /// Small letters, digits and signs that a registered name can have; `&'()*+,` only stand before these in ASCII.
    Host,
    |block| block.between(b'&', b'.').or(block.between(b'0', b'9')).or(block.between(b'a', b'z')),
    |word| {
        // Each sum has a byte's top bit from some byte value on, the first from the colon, the next from the first
        // small letter, the last from the byte after them: together they mark what is between and what is behind.
        let outside = reaching(word, b':') ^ reaching(word, b'a') ^ reaching(word, b'z' + 1);
        outside | word.wrapping_sub(every(b'&')) | (word ^ every(b'/')).wrapping_sub(every(1)) | word
    }
}

class! {
    /// What a request target can simply have: from `&` to `~`, but no question mark.
    PlainTarget,
    |block| block.between(b'&', b'~').and_not(block.is(b'?')),
    |word| {
        // Seven-bit sums and differences have their top bit where they leave the class; others bring their own.
        let no_mark = (word ^ every(b'?')).wrapping_sub(every(1));
        word.wrapping_sub(every(b'&')) | word.wrapping_add(every(1)) | no_mark | word
    }
}

class! {
    /// Text without controls: from the blank on, but not 0x7f.
    Text,
    |block| block.between(b' ', 0xff).and_not(block.is(0x7f)),
    |word| {
        const TOPS: u64 = every(0x80);
        (word.wrapping_sub(every(0x20)) | reaching(word & !TOPS, 0x7f)) & !word
    }
}

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
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
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

/// How many token bytes the text starts with, if a colon follows them. Nearly all names are letters and dashes, which
/// are looked for by blocks; whatever else stops that scan is looked up.
#[inline(always)]
pub(crate) fn bytes_to_colon(text: &[u8]) -> Option<usize> {
    let count = count::<Name>(text);
    if text.get(count) == Some(&b':') { Some(count) } else { odd_bytes_to_colon(text) }
}

#[inline(never)]
fn odd_bytes_to_colon(text: &[u8]) -> Option<usize> {
    let count = token_bytes(text);
    (text.get(count) == Some(&b':')).then_some(count)
}

/// How many token bytes the text starts with.
pub(crate) fn token_bytes(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| is_token_byte(byte)).count()
}

/// How many bytes the text starts with that are small letters, digits or signs that a registered name can have: nearly
/// all hosts are made of letters, digits, dots and dashes.
#[inline(always)]
pub(crate) fn host_bytes(text: &[u8]) -> usize {
    count::<Host>(text)
}

/// How many digits the text starts with, up to eight; fewer bytes than eight are not looked at.
#[inline(always)]
pub(crate) fn digits_in_front(text: &[u8]) -> Option<usize> {
    let values = u64::from_le_bytes(*text.first_chunk()?) ^ every(b'0');
    Some(first_mark((reaching(values, 10) | values) & every(0x80)))
}

/// How many bytes the text starts with that a request target can simply have. Blanks, controls, bytes from 0x7f, `#`,
/// `%` and `?` mean something; `!`, `"`, `$` only stand between them in ASCII: leaving them out costs a comparison
/// per word.
#[inline(always)]
pub(crate) fn plain_target_bytes(text: &[u8]) -> usize {
    count::<PlainTarget>(text)
}

/// What is left after text without controls (below 0x20, or 0x7f). A tab stops it too; bytes from 0x80 (obs-text,
/// RFC 9110 §5.5) do not.
#[inline(always)]
pub(crate) fn after_text(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let Some((block, after)) = rest.split_first_chunk() {
        match first_stop::<Text>(block) {
            BLOCK_BYTES => rest = after,
            first => return &rest[first..],
        }
    }
    after_last_text(rest)
}

/// The same for fewer bytes than a block.
#[inline(never)]
fn after_last_text(rest: &[u8]) -> &[u8] {
    &rest[count_at_end::<Text>(rest)..]
}

/// How many bytes of the class the text starts with.
#[inline(always)]
fn count<C: Class>(text: &[u8]) -> usize {
    let Some((block, rest)) = text.split_first_chunk() else { return count_on::<C>(text) };
    match first_stop::<C>(block) {
        BLOCK_BYTES => BLOCK_BYTES + count_on::<C>(rest),
        first => first,
    }
}

/// The same for what is left after a block, and near the end.
#[inline(never)]
fn count_on<C: Class>(text: &[u8]) -> usize {
    let (blocks, rest) = text.as_chunks();
    for (at, block) in blocks.iter().enumerate() {
        let first = first_stop::<C>(block);
        if first < BLOCK_BYTES {
            return at * BLOCK_BYTES + first;
        }
    }
    blocks.len() * BLOCK_BYTES + count_at_end::<C>(rest)
}

/// The same for fewer bytes than a block.
#[inline(always)]
fn count_at_end<C: Class>(rest: &[u8]) -> usize {
    first_stop::<C>(&filled_up(rest)).min(rest.len())
}

/// A block of fewer bytes than it holds, and zeros, which every class marks. Of two words that overlap each says the
/// same of a byte.
#[inline]
fn filled_up(rest: &[u8]) -> [u8; BLOCK_BYTES] {
    debug_assert!(rest.len() < BLOCK_BYTES, "there is a whole block");
    let whole = match (rest.first_chunk(), rest.last_chunk()) {
        (Some(first), Some(last)) => {
            let [first, last] = [first, last].map(|word| u128::from(u64::from_le_bytes(*word)));
            first | last << (8 * (rest.len() - 8))
        }
        _ => rest.iter().rev().fold(0, |whole, &byte| whole << 8 | u128::from(byte)),
    };
    whole.to_le_bytes()
}

/// In which byte of a word the lowest mark is; 8 if there is none.
#[inline(always)]
fn first_mark(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Each byte is put at each place among each neighbour in inputs of many lengths: whole words, last words and
    /// short inputs all see it.
    fn agree(scan: fn(&[u8]) -> usize, stops: fn(u8) -> bool, neighbours: &[u8]) {
        for (byte, &neighbour) in (0..=255u8).flat_map(|byte| neighbours.iter().map(move |n| (byte, n))) {
            for length in (0..20).chain([31, 32, 35]) {
                for place in 0..length {
                    let mut bytes = vec![neighbour; length];
                    bytes[place] = byte;
                    let expected = bytes.iter().position(|&byte| stops(byte)).unwrap_or(length);
                    assert_eq!(scan(&bytes), expected, "{bytes:x?}");
                }
            }
        }
    }

    /// Both forms of a class stop at the same byte.
    fn are_one<C: Class>(neighbours: &[u8]) {
        for (byte, &neighbour) in (0..=255u8).flat_map(|byte| neighbours.iter().map(move |n| (byte, n))) {
            for place in 0..BLOCK_BYTES {
                let mut block = [neighbour; BLOCK_BYTES];
                block[place] = byte;
                assert_eq!(block::words::first_stop::<C>(&block), first_stop::<C>(&block), "{block:x?}");
            }
        }
    }

    #[test]
    fn blocks_and_words_say_the_same_of_every_byte() {
        let all: Vec<u8> = (0..=255).collect();
        are_one::<Name>(&all);
        are_one::<Host>(&all);
        are_one::<PlainTarget>(&all);
        are_one::<Text>(&all);
    }

    #[test]
    fn a_target_scan_stops_where_the_table_says() {
        let stops = |byte: u8| byte <= b'%' || byte >= 0x7f || byte == b'?';
        agree(plain_target_bytes, stops, b"a!~$@\x00\x80\xff");
    }

    #[test]
    fn a_text_scan_stops_at_controls_only() {
        let scan = |text: &[u8]| text.len() - after_text(text).len();
        agree(scan, |byte| byte < 0x20 || byte == 0x7f, b"a ~\x80\xff\x00\x7e");
    }

    #[test]
    fn a_token_scan_stops_at_the_first_byte_outside() {
        let stops = |byte: u8| !byte.is_ascii_alphanumeric() && !b"!#$%&'*+-.^_`|~".contains(&byte);
        agree(token_bytes, stops, b"aZ-_\x00:\xe1");
        agree(
            |text| bytes_to_colon(&[text, b":"].concat()).unwrap_or(text.len()),
            |byte| byte == b':',
            b"aZ-_",
        );
    }

    #[test]
    fn a_host_scan_passes_only_what_a_name_can_have() {
        let stops = |byte: u8| !matches!(byte, b'&'..=b'.' | b'0'..=b'9' | b'a'..=b'z');
        agree(host_bytes, stops, b"aZz09-./:&%\x00\xad\xe1");
        assert!((0..=255).all(|byte| stops(byte) || is_reg_name_byte(byte)));
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

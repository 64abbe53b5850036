//! Which part of a text a JSON string can hold as it is: `json` asks before it copies.
//!
//! In arithmetic that the compiler does itself when it knows the text, as it does for most of what handlers say.
//! Words are searched as in "Hacker's Delight", §6-1: `(x - n) & !x & 0x80` marks each byte below `n`. A borrow can
//! mark a byte above a true hit wrongly, never one below it, and words are read little-endian: the lowest mark is
//! therefore always the first true one, also in a union of marks.

/// The lowest bit of each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte of a word.
const TOPS: u64 = 0x8080_8080_8080_8080;
/// Bytes that long texts are passed over at a time: one vector of SSE2 or NEON.
const BLOCK_BYTES: usize = 16;

/// Where, from `at` on, the first byte stands that a JSON string cannot hold as it is (RFC 8259 §7); the length of
/// the text when there is none.
#[inline]
pub(crate) fn plain_end(bytes: &[u8], at: usize) -> usize {
    let mut rest = after_plain_blocks(&bytes[at..]);
    while let Some((word, after)) = rest.split_first_chunk() {
        let found = outside(u64::from_le_bytes(*word));
        if found != 0 {
            return bytes.len() - rest.len() + first_mark(found);
        }
        rest = after;
    }
    if rest.is_empty() {
        return bytes.len();
    }
    bytes.len() - rest.len() + first_mark(outside(last_word(bytes, rest)))
}

/// What is left after whole blocks in which no byte needs an escape. The question has no branch and no place in its
/// answer, so that the compiler asks it of a block at once with the vectors that every machine has.
#[inline]
fn after_plain_blocks(mut rest: &[u8]) -> &[u8] {
    let stops = |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK_BYTES>() {
        if block.iter().fold(0, |any, &byte| any | stops(byte)) != 0 {
            break;
        }
        rest = after;
    }
    rest
}

/// In which byte of a word the lowest mark is.
#[inline]
fn first_mark(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// The one to seven last bytes of the input, zeros after them: a zero needs an escape, so that nothing behind the end
/// is passed over.
#[inline]
fn last_word(bytes: &[u8], rest: &[u8]) -> u64 {
    match bytes.last_chunk() {
        Some(last) => u64::from_le_bytes(*last) >> (8 * (8 - rest.len())),
        None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

#[inline]
fn outside(word: u64) -> u64 {
    below(word, 0x20) | equal(word, b'"') | equal(word, b'\\')
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte is put at each place among each neighbour in texts of many lengths, and looked for from places before
    /// and after it: whole blocks, words, last words and short texts all see it.
    #[test]
    fn a_plain_part_ends_at_what_needs_an_escape() {
        let stops = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
        for (byte, &neighbour) in
            (0..=255u8).flat_map(|byte| b"a ~\x80\xff!#[]".iter().map(move |n| (byte, n)))
        {
            for length in [1, 5, 7, 8, 9, 15, 16, 19, 35] {
                for place in 0..length {
                    let mut bytes = vec![neighbour; length];
                    bytes[place] = byte;
                    for start in [0, place, (place + 1).min(length), length] {
                        let expected = (start..length).find(|&at| stops(bytes[at])).unwrap_or(length);
                        assert_eq!(plain_end(&bytes, start), expected, "from {start} of {bytes:x?}");
                    }
                }
            }
        }
    }
}

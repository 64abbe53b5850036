//! Words compared without regard to case, eight bytes at a time: names of fields, and values of a few.
//!
//! The readers of requests and replies call it for the fields that decide something. A word is a constant: what is left
//! of it is a few comparisons.

/// A word in either case.
pub(crate) struct Word<const N: usize> {
    small: [u8; N],
    /// The bits in which the two cases of each byte differ.
    cases: [u8; N],
}

impl<const N: usize> Word<N> {
    /// The word is given in small letters. Three parts of eight bytes must cover it.
    pub(crate) const fn new(small: &[u8; N]) -> Self {
        assert!(N >= 4 && N <= 24, "at least half a part, at most three");
        let mut cases = [0; N];
        let mut at = 0;
        while at < N {
            assert!(!small[at].is_ascii_uppercase(), "in small letters");
            cases[at] = if small[at].is_ascii_lowercase() { 0x20 } else { 0 };
            at += 1;
        }
        Self { small: *small, cases }
    }

    /// Whether these bytes are the word. Parts may overlap: each says the same of a byte.
    #[inline(always)]
    pub(crate) fn is(&self, bytes: &[u8]) -> bool {
        let Ok(bytes) = <&[u8; N]>::try_from(bytes) else { return false };
        if N < 8 {
            return self.half_differs(bytes, 0) | self.half_differs(bytes, N - 4) == 0;
        }
        let middle = if N > 16 { self.part_differs(bytes, 8) } else { 0 };
        self.part_differs(bytes, 0) | middle | self.part_differs(bytes, N - 8) == 0
    }

    /// What is left after the word, if the bytes start with it and there are at least eight: they are compared at once.
    #[inline(always)]
    pub(crate) fn strip<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        const { assert!(N <= 8, "one comparison covers it") };
        let first = u64::from_le_bytes(*bytes.first_chunk()?);
        let differs = (first | padded(&self.cases)) ^ padded(&self.small);
        (differs << (8 * (8 - N)) == 0).then_some(&bytes[N..])
    }

    #[inline(always)]
    fn part_differs(&self, bytes: &[u8; N], at: usize) -> u64 {
        (part_at(bytes, at) | part_at(&self.cases, at)) ^ part_at(&self.small, at)
    }

    #[inline(always)]
    fn half_differs(&self, bytes: &[u8; N], at: usize) -> u32 {
        (half_at(bytes, at) | half_at(&self.cases, at)) ^ half_at(&self.small, at)
    }
}

/// Up to eight bytes, the first one lowest, and zeros above them.
#[inline(always)]
fn padded(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |part, &byte| part << 8 | u64::from(byte))
}

/// Eight bytes from `at` on, which are there.
#[inline(always)]
fn part_at(bytes: &[u8], at: usize) -> u64 {
    debug_assert!(at + 8 <= bytes.len(), "a whole part");
    bytes[at..].first_chunk().map_or(0, |part| u64::from_le_bytes(*part))
}

/// Four bytes from `at` on, which are there.
#[inline(always)]
fn half_at(bytes: &[u8], at: usize) -> u32 {
    debug_assert!(at + 4 <= bytes.len(), "a whole half");
    bytes[at..].first_chunk().map_or(0, |half| u32::from_le_bytes(*half))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte at each place of the word, and the word cut and longer.
    fn agree<const N: usize>(small: &[u8; N]) {
        let word = Word::new(small);
        for place in 0..N {
            for byte in 0..=255 {
                let mut bytes = *small;
                bytes[place] = byte;
                assert_eq!(word.is(&bytes), bytes.eq_ignore_ascii_case(small), "{}", bytes.escape_ascii());
            }
        }
        assert!(word.is(&small.to_ascii_uppercase()));
        assert!(!word.is(&small[1..]) && !word.is(&[&small[..], b"x"].concat()) && !word.is(b""));
    }

    #[test]
    fn a_word_is_itself_in_either_case_and_nothing_else() {
        agree(b"host");
        agree(b"close");
        agree(b"chunked");
        agree(b"12345678");
        agree(b"keep-alive");
        agree(b"content-length: 1");
        agree(b"a-word-of-24-letters-now");
    }

    #[test]
    fn a_word_is_stripped_where_eight_bytes_stand() {
        const WORD: Word<6> = Word::new(b"host: ");
        assert_eq!(WORD.strip(b"hOsT: ab"), Some(&b"ab"[..]));
        assert_eq!(WORD.strip(b"Host: \r\n\r\n"), Some(&b"\r\n\r\n"[..]));
        assert_eq!(WORD.strip(b"Host: a"), None);
        for place in 0..6 {
            for byte in 0..=255 {
                let mut bytes = *b"host: abc";
                bytes[place] = byte;
                let expected = bytes[..6].eq_ignore_ascii_case(b"host: ").then_some(&b"abc"[..]);
                assert_eq!(WORD.strip(&bytes), expected, "{}", bytes.escape_ascii());
            }
        }
    }
}

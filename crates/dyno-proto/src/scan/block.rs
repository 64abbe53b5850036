//! Sixteen bytes at a time: where the first one stands that is not of a class.
//!
//! With SSE2, which every x86-64 has, a class is asked of a whole block and its answer is a bit for each byte. Elsewhere
//! it is asked of two words, with the arithmetic of "Hacker's Delight", §6-1. Neither has a branch: a processor cannot
//! predict where the names and values of different requests end, and pays for each guess.

/// Bytes that are looked at together.
pub(super) const BLOCK_BYTES: usize = 16;

/// Bytes that a scan passes over.
pub(super) trait Class {
    /// The class of blocks.
    #[cfg(target_arch = "x86_64")]
    fn passes(block: vector::Block) -> vector::Passed;

    /// The class of words: sets the top bit of each byte that is not of it, exactly up to the first one. Other bits are
    /// left over.
    #[cfg(any(test, not(target_arch = "x86_64")))]
    fn stops(word: u64) -> u64;
}

/// In which byte of a block the first one stands that is not of the class; 16 if there is none.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn first_stop<C: Class>(block: &[u8; BLOCK_BYTES]) -> usize {
    C::passes(vector::Block::new(block)).first_stop()
}

/// In which byte of a block the first one stands that is not of the class; 16 if there is none.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn first_stop<C: Class>(block: &[u8; BLOCK_BYTES]) -> usize {
    words::first_stop::<C>(block)
}

/// Blocks as vectors of SSE2.
#[cfg(target_arch = "x86_64")]
pub(super) mod vector {
    use super::BLOCK_BYTES;
    use safe_arch::{
        bitandnot_m128i, bitor_m128i, cmp_eq_mask_i8_m128i, load_unaligned_m128i, m128i, min_u8_m128i,
        move_mask_i8_m128i, set_splat_i8_m128i, sub_i8_m128i,
    };

    /// Sixteen bytes.
    #[derive(Clone, Copy)]
    pub(crate) struct Block(m128i);

    /// For each of sixteen bytes whether it is of a class.
    #[derive(Clone, Copy)]
    pub(crate) struct Passed(m128i);

    impl Block {
        #[inline(always)]
        pub(crate) fn new(bytes: &[u8; BLOCK_BYTES]) -> Block {
            Block(load_unaligned_m128i(bytes))
        }

        /// Which bytes are this one.
        #[inline(always)]
        pub(crate) fn is(self, byte: u8) -> Passed {
            Passed(cmp_eq_mask_i8_m128i(self.0, every(byte)))
        }

        /// Which bytes lie between these two, both included.
        #[inline(always)]
        pub(crate) fn between(self, first: u8, last: u8) -> Passed {
            let above = sub_i8_m128i(self.0, every(first));
            Passed(cmp_eq_mask_i8_m128i(min_u8_m128i(above, every(last - first)), above))
        }

        /// With these bits set in each byte.
        #[inline(always)]
        pub(crate) fn with(self, bits: u8) -> Block {
            Block(bitor_m128i(self.0, every(bits)))
        }
    }

    impl Passed {
        #[inline(always)]
        pub(crate) fn or(self, other: Passed) -> Passed {
            Passed(bitor_m128i(self.0, other.0))
        }

        #[inline(always)]
        pub(crate) fn and_not(self, other: Passed) -> Passed {
            Passed(bitandnot_m128i(other.0, self.0))
        }

        #[inline(always)]
        pub(super) fn first_stop(self) -> usize {
            // A bit for each byte that passes; the ones behind it stop at the seventeenth.
            (!move_mask_i8_m128i(self.0)).trailing_zeros() as usize
        }
    }

    #[inline(always)]
    fn every(byte: u8) -> m128i {
        set_splat_i8_m128i(byte.cast_signed())
    }
}

/// Blocks as two words.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) mod words {
    use super::{BLOCK_BYTES, Class, every};

    /// The highest bit of each byte of a word.
    const TOPS: u64 = every(0x80);

    /// A carry or a borrow can mark a byte above a true stop wrongly, never one below it, and words are read
    /// little-endian: the lowest mark is therefore always the first true one, also in a union of marks.
    #[inline(always)]
    pub(crate) fn first_stop<C: Class>(block: &[u8; BLOCK_BYTES]) -> usize {
        let whole = u128::from_le_bytes(*block);
        let low = C::stops(whole as u64) & TOPS;
        let high = C::stops((whole >> 64) as u64) & TOPS;
        (u128::from(low) | u128::from(high) << 64).trailing_zeros() as usize / 8
    }
}

/// A word of eight times the same byte.
#[inline(always)]
pub(super) const fn every(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Sets the top bit of the bytes that are at least `limit`, exactly below the first byte that had one before: sums of
/// seven bits never carry. Other bits than the top ones are left over.
#[inline(always)]
pub(super) fn reaching(word: u64, limit: u8) -> u64 {
    word.wrapping_add(every(0x80 - limit))
}

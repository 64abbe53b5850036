//! A short name for bytes that are too long for a record: what is equal has the same name, and two that are not hardly ever.
//!
//! Whoever makes a record of a load names its request and its right answer so; comparisons hold the names against each other.

/// FNV-1a of 64 bits (Fowler, Noll, Vo): no secret hangs on it.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The name of these parts in this order, 16 hexadecimal digits. Where one part ends and the next begins counts too.
#[must_use]
pub fn digest<'b>(parts: impl IntoIterator<Item = &'b [u8]>) -> String {
    let byte = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    let part = |hash: u64, part: &[u8]| {
        let length = (part.len() as u64).to_le_bytes();
        length.iter().chain(part).fold(hash, byte)
    };
    format!("{:016x}", parts.into_iter().fold(OFFSET, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: parts are joined without their lengths.
    #[test]
    fn parts_that_join_to_the_same_bytes_have_other_names() {
        let of = |parts: &[&str]| digest(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["ab"]), of(&["ab", ""]));
        assert_eq!(of(&[]), format!("{OFFSET:016x}"));
    }
}

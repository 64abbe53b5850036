//! The index of the unwind tables (`.eh_frame_hdr`): where each function begins, and where its table stands.
//!
//! The unwinder looks functions up in it, and for a file without symbols it says where functions begin. Only its usual
//! shape is read, which every linker writes: pairs of 32-bit distances from the index's own address.

use super::section::Section;

const USUAL: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
const HEADER_BYTES: usize = 12;
const ROW_BYTES: usize = 8;

/// A function, and its table.
struct Row {
    function: i32,
    table: i32,
}

fn number(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn rows(index: &Section) -> Option<impl Iterator<Item = Row>> {
    index.bytes.starts_with(&USUAL).then_some(())?;
    let row = |row: &[u8]| Some(Row { function: number(row, 0)?, table: number(row, 4)? });
    Some(index.bytes.get(HEADER_BYTES..)?.chunks_exact(ROW_BYTES).filter_map(row))
}

/// Where functions begin, as the file says addresses; none for an index of another shape.
pub(crate) fn starts(index: &Section) -> Vec<u64> {
    let address = |row: Row| index.addresses.start.wrapping_add_signed(i64::from(row.function));
    rows(index).map_or_else(Vec::new, |rows| rows.map(address).collect())
}

/// Whether all tables stand behind the first one, and none beyond all addresses: who looks up a function subtracts the one
/// from the other.
pub(super) fn is_sound(index: &Section) -> bool {
    // The first table's distance is counted from where it is written.
    let first = number(&index.bytes, 4).map(|distance| i64::from(distance) + 4);
    let (Some(first), Some(mut rows)) = (first, rows(index)) else { return false };
    let is_address = |distance: i64| index.addresses.start.checked_add_signed(distance).is_some();
    is_address(first)
        && is_address(i64::from(i32::MAX))
        && rows.all(|row| i64::from(row.table) >= first && is_address(i64::from(row.function)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::elf::Bytes;

    fn index(shape: [u8; 4], words: &[i32]) -> Section {
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        Section { addresses: 0x1000..0x2000, bytes: Bytes::from_iter(shape.into_iter().chain(words)) }
    }

    #[test]
    fn functions_begin_where_the_index_says_and_tables_stand_behind_the_first() {
        let good = index(USUAL, &[0x100 - 4, 2, -0x800, 0x100, 0x10, 0x120]);
        assert_eq!((starts(&good), is_sound(&good)), (vec![0x800, 0x1010], true));
        assert!(!is_sound(&index(USUAL, &[0x100 - 4, 2, -0x800, 0x100, 0x10, 0xff])));
        assert!(!is_sound(&index([1, 0x1b, 0x03, 0x3c], &[0, 0])));
        let beyond = Section { addresses: u64::MAX - 9..u64::MAX, ..good.clone() };
        assert!(!is_sound(&beyond));
        let torn = Section { bytes: Bytes::from(&good.bytes[..7]), ..good };
        assert_eq!((starts(&torn), is_sound(&torn)), (vec![], false));
    }
}

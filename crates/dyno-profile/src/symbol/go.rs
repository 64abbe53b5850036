//! The functions of a Go program by the table that its run-time walks stacks with: no linker's flag and no `strip` takes it out.
//!
//! It is laid out as since Go 1.18; that of older ones is not read. Bytes in, functions out; called by `table`, and by who
//! looks for what the run-time keeps.

use std::ops::Range;

use crate::image::elf::{Bytes, Elf, Header};

/// Tables larger than this are not read: the largest programs have a hundred megabytes.
const TABLE_BYTES_MAX: u64 = 512 << 20;
/// Functions of one program, for the same reason: they have some hundred bytes each there.
const FUNCTIONS_MAX: usize = 5_000_000;
/// How the table begins: the numbers of Go 1.18 and of 1.20.
const MAGIC: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
/// Behind it: two zeros, the least length of an instruction, the size of a pointer.
const POINTER_SIZE_AT: usize = 7;
/// How many functions there are, where the code begins (0 since Go 1.26), where names stand, what stands behind them, and where
/// functions stand.
const COUNT_AT: usize = 8;
const TEXT_AT: usize = 24;
const NAMES_AT: usize = 32;
const BEHIND_NAMES_AT: usize = 40;
const FUNCTIONS_AT: usize = 64;
/// Bytes of a row: how far behind the code's beginning a function begins, and where more is said of it.
const ROW: usize = 8;
/// Where in that the function's name is told.
const NAME_BEHIND: usize = 4;
/// Where the run-time's own record of the program tells its code's beginning, and its end behind it: since Go 1.26 in a
/// section of its own.
const RECORD_TEXT_AT: u64 = 176;
const RECORD: &str = ".go.module";
/// A relocation by the program's own address, and the bytes of each.
const RELATIVE: u64 = 8;
const RELOCATION: usize = 24;
const RELOCATIONS_BYTES_MAX: u64 = 256 << 20;

/// One function: its addresses, and where its name begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoFunction {
    pub(crate) addresses: Range<u64>,
    pub(crate) name: u32,
}

/// All of them by address, and the names, each up to its zero byte.
#[derive(Debug)]
pub(crate) struct GoFunctions {
    pub(crate) all: Vec<GoFunction>,
    pub(crate) names: Bytes,
}

impl GoFunctions {
    /// Those of a file; none where it is not Go's, or another Go's than is known here.
    pub(crate) fn read(elf: &Elf) -> Option<GoFunctions> {
        // Before Go 1.26 a program that may lie anywhere kept it with what is relocated.
        let header = [".gopclntab", ".data.rel.ro.gopclntab"].iter().find_map(|name| elf.header(name))?;
        let table = elf.contents(header, TABLE_BYTES_MAX).ok()?;
        let code = elf.header(".text")?.addresses()?;
        let text = loaded(elf, header, &table, TEXT_AT as u64)
            .filter(|text| *text > 0)
            .or_else(|| told_by_record(elf))
            .filter(|text| code.contains(text))?;
        parsed(&table, text, code.end)
    }

    /// The addresses of the function with this name.
    pub(crate) fn named(&self, name: &str) -> Option<Range<u64>> {
        let is_it = |function: &&GoFunction| {
            let text = self.names.get(function.name as usize..).unwrap_or_default();
            text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
        };
        self.all.iter().find(is_it).map(|function| function.addresses.clone())
    }
}

/// Where the code begins, as the run-time's record of the program tells it.
fn told_by_record(elf: &Elf) -> Option<u64> {
    let header = elf.header(RECORD)?;
    let record = elf.contents(header, TABLE_BYTES_MAX).ok()?;
    loaded(elf, header, &record, RECORD_TEXT_AT)
}

/// A word of a section as the loader makes it: what stands there, or what is to be put there.
fn loaded(elf: &Elf, header: &Header, bytes: &[u8], at: u64) -> Option<u64> {
    let stands = word(bytes, usize::try_from(at).ok()?)?;
    if stands > 0 {
        return Some(stands);
    }
    let address = header.addresses()?.start.checked_add(at)?;
    let mut tables = [".rela.dyn", ".rela"].into_iter().filter_map(|name| elf.header(name));
    tables.find_map(|table| {
        let rows = elf.contents(table, RELOCATIONS_BYTES_MAX).ok()?;
        let mut rows = rows.chunks_exact(RELOCATION);
        let row = rows.find(|row| word(row, 0) == Some(address) && word(row, 8) == Some(RELATIVE))?;
        word(row, 16)
    })
}

/// The table's functions, of code that begins at `text` and ends at `end`; none where anything does not fit.
fn parsed(table: &[u8], text: u64, end: u64) -> Option<GoFunctions> {
    let is_known = MAGIC.contains(&half(table, 0)?) && table.get(POINTER_SIZE_AT) == Some(&8);
    let count = usize::try_from(word(table, COUNT_AT)?).ok().filter(|count| *count <= FUNCTIONS_MAX)?;
    let from = |at: usize| table.get(usize::try_from(word(table, at)?).ok()?..);
    let (names, functions) = (from(NAMES_AT)?, from(FUNCTIONS_AT)?);
    // One more than there are: where the last one ends.
    let begins = |row: usize| text.checked_add(u64::from(half(functions, row * ROW)?));
    let mut all = Vec::with_capacity(count.min(functions.len() / ROW));
    for row in 0..count {
        let addresses = begins(row)?..begins(row + 1)?;
        let more = usize::try_from(half(functions, row * ROW + 4)?).ok()?;
        let name = half(functions, more.checked_add(NAME_BEHIND)?)?;
        if addresses.end < addresses.start || addresses.end > end {
            return None;
        }
        all.push(GoFunction { addresses, name });
    }
    // Names end where the next part begins.
    let names = names
        .get(..usize::try_from(word(table, BEHIND_NAMES_AT)?.checked_sub(word(table, NAMES_AT)?)?).ok()?)?;
    (is_known && count > 0).then(|| GoFunctions { all, names: Bytes::from(names) })
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Two functions, `a.b` and `a.c`, of 16 and 48 bytes.
    fn table() -> Vec<u8> {
        let mut bytes = vec![0; 72];
        bytes[..4].copy_from_slice(&MAGIC[1].to_le_bytes());
        (bytes[6], bytes[POINTER_SIZE_AT]) = (1, 8);
        let put = |bytes: &mut Vec<u8>, at: usize, value: u64| {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        };
        put(&mut bytes, COUNT_AT, 2);
        put(&mut bytes, NAMES_AT, 72);
        put(&mut bytes, BEHIND_NAMES_AT, 80);
        put(&mut bytes, FUNCTIONS_AT, 80);
        bytes.extend_from_slice(b"a.b\0a.c\0");
        let (rows, records) = ([0_u32, 20, 16, 28, 64], [0_u32, 0, 16, 4]);
        for half in rows.into_iter().chain(records) {
            bytes.extend_from_slice(&half.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn functions_have_the_addresses_and_names_that_the_table_says() {
        let found = parsed(&table(), 0x40_1000, 0x40_1040).unwrap();
        assert_eq!(found.named("a.b"), Some(0x40_1000..0x40_1010));
        assert_eq!(found.named("a.c"), Some(0x40_1010..0x40_1040));
        assert_eq!((found.named("a"), &found.names[..]), (None, &b"a.b\0a.c\0"[..]));
    }

    /// Planted faults: a table is believed whose functions lie beyond the code, or that is cut off; the number of another Go.
    #[test]
    fn a_table_that_does_not_fit_is_none() {
        assert!(parsed(&table(), 0x40_1000, 0x40_103f).is_none(), "beyond the code");
        for (at, value) in [(0, 0xfa), (POINTER_SIZE_AT, 4), (COUNT_AT + 3, 1), (NAMES_AT + 2, 1)] {
            let mut other = table();
            other[at] = value;
            assert!(parsed(&other, 0x40_1000, 0x40_1040).is_none(), "byte {at}");
        }
        for length in 0..table().len() {
            assert!(parsed(&table()[..length], 0x40_1000, 0x40_1040).is_none(), "{length} bytes");
        }
    }
}

//! A file's symbol table: functions by address. Where it was stripped, the starts of functions that the unwind tables
//! know: nameless, but each function is still one.

use crate::elf::{Absent, Bytes, Elf, quad, text_at, word};

/// A symbol table beyond this is not read: at 24 bytes a symbol it would be 40 million functions.
const TABLE_BYTES_MAX: u64 = 1 << 30;

/// Bytes of one symbol.
const SYMBOL_BYTES: usize = 24;

/// `STT_NOTYPE`, `STT_FUNC`, `STT_GNU_IFUNC`.
const NO_TYPE: u8 = 0;
const FUNCTION: u8 = 2;
const INDIRECT: u8 = 10;

/// Functions by address.
#[derive(Debug, Default)]
pub(crate) struct Table {
    symbols: Vec<Symbol>,
    /// Other names of the same addresses.
    aliases: Vec<Symbol>,
    names: Option<Bytes>,
    /// Starts of functions without names.
    starts: Vec<u64>,
}

/// `size` 0: up to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Symbol {
    address: u64,
    size: u64,
    name: u32,
    /// Assembly marks places within functions; a function's own symbol is preferred.
    function: bool,
}

impl Table {
    /// Reads the best table there is.
    pub(crate) fn read(elf: &Elf, beside: Option<&Elf>, path: &str, notes: &mut Vec<String>) -> Table {
        let holders = beside.into_iter().chain([elf]);
        let all = holders.map(|holder| (holder, ".symtab")).chain([(elf, ".dynsym")]);
        let mut table = Table::default();
        for (holder, section) in all {
            match names(holder, section) {
                Ok((symbols, aliases, names)) if !symbols.is_empty() => {
                    table = Table { symbols, aliases, names: Some(names), starts: Vec::new() };
                    break;
                }
                Err(Absent::TooLarge(bytes)) => {
                    let gigabytes = bytes as f64 / 1e9;
                    notes.push(format!("{path} has {gigabytes:.1} GB of symbols; they were not read"));
                }
                Ok(_) | Err(Absent::None) => {}
            }
        }
        // What is exported is not all: nameless functions must not take their neighbours' names.
        table.starts = starts(elf).unwrap_or_default();
        table
    }

    /// Whether it has any name.
    pub(super) fn has_names(&self) -> bool {
        !self.symbols.is_empty()
    }

    /// Every function: its address, the address behind it, and its name, mangled; `0x…` where only the unwind tables
    /// know it.
    pub(crate) fn functions(&self) -> Vec<(u64, u64, String)> {
        let named = self.symbols.iter().map(|symbol| symbol.address);
        let mut begins: Vec<u64> = named.chain(self.starts.iter().copied()).collect();
        begins.sort_unstable();
        begins.dedup();
        let next = |address: u64| begins.get(begins.partition_point(|begin| *begin <= address)).copied();
        let mut found = Vec::new();
        for symbol in self.symbols.iter().chain(&self.aliases).filter(|symbol| symbol.function) {
            let end = if symbol.size > 0 { Some(symbol.address + symbol.size) } else { next(symbol.address) };
            let name =
                self.names.as_ref().map(|names| text_at(names, symbol.name as usize)).unwrap_or_default();
            found.extend(end.map(|end| (symbol.address, end, String::from_utf8_lossy(name).into_owned())));
        }
        let nameless = self.starts.iter().filter(|start| self.symbol(**start).is_none());
        found.extend(nameless.filter_map(|start| Some((*start, next(*start)?, format!("{start:#x}")))));
        found
    }

    /// The name of the function at an address, mangled; `0x…`, its first address, when only that is known.
    pub(super) fn find(&self, address: u64) -> Option<String> {
        self.symbol(address).or_else(|| {
            let after = self.starts.partition_point(|start| *start <= address);
            Some(format!("{:#x}", self.starts.get(after.checked_sub(1)?)?))
        })
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        if symbol.size > 0 && address >= symbol.address + symbol.size {
            return None;
        }
        let name = text_at(self.names.as_ref()?, symbol.name as usize);
        Some(String::from_utf8_lossy(name).into_owned())
    }
}

/// One symbol for each address, the other names of those addresses, and the names.
fn names(elf: &Elf, section: &str) -> Result<(Vec<Symbol>, Vec<Symbol>, Bytes), Absent> {
    let header = elf.header(section).ok_or(Absent::None)?;
    let names = elf.contents(elf.linked(header).ok_or(Absent::None)?, TABLE_BYTES_MAX)?;
    let raw = elf.contents(header, TABLE_BYTES_MAX)?;
    let mut symbols: Vec<Symbol> =
        raw.chunks_exact(SYMBOL_BYTES).filter_map(|raw| symbol(raw, &names)).collect();
    symbols.sort_by_key(|symbol| (symbol.address, symbol.function, symbol.size));
    let mut aliases = Vec::new();
    symbols.dedup_by(|later, kept| {
        let same = later.address == kept.address;
        if same {
            aliases.push(*kept);
            *kept = *later;
        }
        same
    });
    Ok((symbols, aliases, names))
}

fn symbol(raw: &[u8], names: &[u8]) -> Option<Symbol> {
    let (name, kind, section) =
        (quad(raw, 0)?, raw.get(4)? & 15, u16::from_le_bytes(*raw.get(6..)?.first_chunk()?));
    let (address, size) = (word(raw, 8)?, word(raw, 16)?);
    let text = text_at(names, name as usize);
    // `$x` and such mark code and data on ARM; `.L` is the compiler's own.
    let real = !text.is_empty() && !text.starts_with(b"$") && !text.starts_with(b".L");
    let code = matches!(kind, FUNCTION | INDIRECT) || kind == NO_TYPE;
    let function = kind != NO_TYPE;
    (real && code && section != 0 && address != 0).then_some(Symbol { address, size, name, function })
}

/// The starts of functions in the index of the unwind tables (`.eh_frame_hdr`), when it has its usual shape: pairs of
/// 32-bit distances from the index's own address.
fn starts(elf: &Elf) -> Option<Vec<u64>> {
    const USUAL: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    const HEADER_BYTES: usize = 12;
    const ROW_BYTES: usize = 8;
    let section = elf.section(".eh_frame_hdr")?;
    if section.bytes.get(..4)? != USUAL {
        return None;
    }
    let base = section.addresses.start;
    let start = |row: &[u8]| Some(base.wrapping_add_signed(i64::from(quad(row, 0)?.cast_signed())));
    Some(section.bytes.get(HEADER_BYTES..)?.chunks_exact(ROW_BYTES).filter_map(start).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(symbols: Vec<Symbol>, starts: Vec<u64>) -> Table {
        Table { symbols, aliases: Vec::new(), names: Some(Bytes::from(&b"\0first\0second\0"[..])), starts }
    }

    #[test]
    fn an_address_behind_a_function_is_not_that_function() {
        let first = Symbol { address: 0x10, size: 8, name: 1, function: true };
        let second = Symbol { address: 0x20, size: 0, name: 7, function: false };
        let table = table(vec![first, second], vec![0x10, 0x18, 0x20]);
        assert_eq!(table.find(0x17).as_deref(), Some("first"));
        assert_eq!(table.find(0x19).as_deref(), Some("0x18"), "nameless, but a function of its own");
        assert_eq!(table.find(0x99).as_deref(), Some("second"));
        assert_eq!(table.find(0x1), None);
    }

    #[test]
    fn a_torn_symbol_is_no_symbol() {
        assert_eq!(symbol(&[1, 0, 0, 0, 2, 0, 1], b"\0a\0"), None);
        assert_eq!(symbol(&[9; SYMBOL_BYTES], b"\0a\0"), None, "a name beyond the names");
    }
}

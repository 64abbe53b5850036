//! A file's symbol table: functions by address. Where it was stripped, what Go's run-time knows, or the starts of functions
//! that the unwind tables know: nameless, but each function is still one.

use std::iter::once_with;

use object::LittleEndian;
use object::elf::{SHN_UNDEF, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Sym64};
use object::read::elf::Sym as _;

use super::demangle::NAME_BYTES_MAX;
use super::go::{GoFunction, GoFunctions};
use crate::image::elf::{Absent, Bytes, Elf, in_words, starts, strings};

/// A symbol table, or its names, beyond this is not read: at 24 bytes a symbol it would be 40 million functions.
const TABLE_BYTES_MAX: u64 = 1 << 30;

/// How often names may be copied that stand within each other, of all the bytes there are: a linker lets `_start` share
/// the end of `my_start`, which saves a tenth, and a stranger could let a million symbols share one name of a megabyte.
const NAMES_SHARED_MAX: usize = 8;

/// A symbol without a size, as assembly has them, reaches to the next symbol or function, and no further than this: where names
/// were stripped, other functions stand behind it. The longest of a library's that were written by hand are about as long.
const UNSIZED_BYTES_MAX: u64 = 4_096;

/// Labels in a row that are looked over for the function in which they stand.
const LABELS_MAX: usize = 64;

const ENDIAN: LittleEndian = LittleEndian;

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

/// `size` 0: not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Symbol {
    address: u64,
    size: u64,
    name: u32,
    /// Assembly marks places within functions; a function's own symbol is preferred.
    function: bool,
}

/// What a section of symbols holds: one symbol for each address, the other names of those addresses, and the names.
type Named = (Vec<Symbol>, Vec<Symbol>, Bytes);

impl Table {
    /// Reads the best table there is.
    pub(crate) fn read(elf: &Elf, beside: Option<&Elf>, path: &str, notes: &mut Vec<String>) -> Table {
        let linked = beside.into_iter().chain([elf]).map(|holder| named(holder, ".symtab"));
        // Most of what is exported are names of other files; the table of Go's run-time has all of its own.
        let kept = once_with(|| of_go(elf)).chain(once_with(|| named(elf, ".dynsym")));
        let mut table = Table::default();
        for found in linked.chain(kept) {
            match found {
                Ok((symbols, aliases, names)) if !symbols.is_empty() => {
                    table = Table { symbols, aliases, names: Some(names), starts: Vec::new() };
                    break;
                }
                Err(Absent::TooLarge(bytes)) => {
                    notes.push(format!("{path} has {} of symbols; they were not read", in_words(bytes)));
                }
                Ok(_) | Err(Absent::None) => {}
            }
        }
        // What is exported is not all: nameless functions must not take their neighbours' names.
        table.starts = elf.unwind_tables().eh_frame_hdr.as_ref().map(starts).unwrap_or_default();
        debug_assert!(
            table.symbols.is_sorted_by(|a, b| a.address < b.address),
            "each address has one symbol"
        );
        table
    }

    /// Whether it has any name.
    pub(super) fn has_names(&self) -> bool {
        !self.symbols.is_empty()
    }

    /// Every function: its address, the address behind it, and its name, mangled; `0x…` where only the unwind tables
    /// know it. Those whose names are copied too often are left out.
    pub(crate) fn functions(&self) -> Vec<(u64, u64, String)> {
        let named = self.symbols.iter().map(|symbol| symbol.address);
        let mut begins: Vec<u64> = named.chain(self.starts.iter().copied()).collect();
        begins.sort_unstable();
        begins.dedup();
        let next = |address: u64| begins.get(begins.partition_point(|begin| *begin <= address)).copied();
        let mut left = self.names.as_ref().map_or(0, |names| names.len().saturating_mul(NAMES_SHARED_MAX));
        let mut found = Vec::new();
        for symbol in self.symbols.iter().chain(&self.aliases).filter(|symbol| symbol.function) {
            let Some(name) = self.name(symbol) else { continue };
            let Some(less) = left.checked_sub(name.len()) else { break };
            left = less;
            let behind = next(symbol.address).filter(|_| symbol.size == 0);
            let end = self
                .end(symbol)
                .and_then(|end| if symbol.size == 0 { Some(end.min(behind?)) } else { Some(end) });
            found.extend(end.map(|end| (symbol.address, end, String::from_utf8_lossy(name).into_owned())));
        }
        let nameless = self.starts.iter().filter(|start| self.symbol(**start).is_none());
        found.extend(nameless.filter_map(|start| Some((*start, next(*start)?, format!("{start:#x}")))));
        found
    }

    /// The name of the function at an address, mangled; `0x…` where only the place is known at which a function without a name
    /// begins, and `0x…+` behind a function that has one, where others may stand.
    pub(super) fn find(&self, address: u64) -> Option<String> {
        self.symbol(address).or_else(|| {
            let named_before = self.before(address).and_then(|symbol| self.end(symbol));
            let after = self.starts.partition_point(|start| *start <= address);
            let begins = after.checked_sub(1).map(|at| self.starts[at]);
            match named_before.filter(|end| *end <= address && begins.is_none_or(|begins| begins < *end)) {
                Some(end) => Some(format!("{end:#x}+")),
                None => Some(format!("{:#x}", begins?)),
            }
        })
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let last = self.symbols.partition_point(|symbol| symbol.address <= address).checked_sub(1)?;
        let reaches = |symbol: &Symbol| self.end(symbol).is_none_or(|end| address < end);
        // Behind a label that reaches no further the function goes on in which it stands.
        let around = || {
            let before = self.symbols[..last].iter().rev().take(LABELS_MAX);
            before.filter(|symbol| symbol.function && symbol.size > 0).find(|symbol| reaches(symbol))
        };
        let symbol = Some(&self.symbols[last]).filter(|symbol| reaches(symbol)).or_else(around)?;
        Some(String::from_utf8_lossy(self.name(symbol)?).into_owned())
    }

    /// The last symbol that begins there or before.
    fn before(&self, address: u64) -> Option<&Symbol> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        self.symbols.get(after.checked_sub(1)?)
    }

    /// The address behind a symbol; `None` beyond all addresses.
    fn end(&self, symbol: &Symbol) -> Option<u64> {
        if symbol.size > 0 {
            return symbol.address.checked_add(symbol.size);
        }
        let start = self.starts.partition_point(|start| *start <= symbol.address);
        let most = symbol.address.checked_add(UNSIZED_BYTES_MAX)?;
        Some(self.starts.get(start).map_or(most, |start| most.min(*start)))
    }

    /// `None` for a name that is torn or too long.
    fn name(&self, symbol: &Symbol) -> Option<&[u8]> {
        let rest = self.names.as_deref()?.get(symbol.name as usize..)?;
        strings(&rest[..rest.len().min(NAME_BYTES_MAX)]).get(0).ok()
    }
}

/// What Go's run-time knows by itself.
fn of_go(elf: &Elf) -> Result<Named, Absent> {
    let GoFunctions { all, names } = GoFunctions::read(elf).ok_or(Absent::None)?;
    let symbol = |GoFunction { addresses, name }: &GoFunction| {
        let (address, size) = (addresses.start, addresses.end - addresses.start);
        (size > 0).then_some(Symbol { address, size, name: *name, function: true })
    };
    Ok((all.iter().filter_map(symbol).collect(), Vec::new(), names))
}

fn named(elf: &Elf, section: &str) -> Result<Named, Absent> {
    let header = elf.header(section).ok_or(Absent::None)?;
    let names = elf.contents(elf.linked(header).ok_or(Absent::None)?, TABLE_BYTES_MAX)?;
    let raw = elf.contents(header, TABLE_BYTES_MAX)?;
    let count = raw.len() / size_of::<Sym64<LittleEndian>>();
    let (all, _) = object::pod::slice_from_bytes(&raw, count).map_err(|_torn| Absent::None)?;
    let mut symbols: Vec<Symbol> = all.iter().filter_map(|raw| symbol(raw, &names)).collect();
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

fn symbol(raw: &Sym64<LittleEndian>, names: &[u8]) -> Option<Symbol> {
    let (name, kind) = (raw.st_name(ENDIAN), raw.st_type());
    let (address, size) = (raw.st_value(ENDIAN), raw.st_size(ENDIAN));
    // Only how it begins: a table could let all its symbols share one name that never ends.
    let text = names.get(name as usize..).unwrap_or_default();
    // `$x` and such mark code and data on ARM; `.L` is the compiler's own.
    let is_named = !matches!(text.first(), None | Some(0 | b'$')) && !text.starts_with(b".L");
    let is_code = matches!(kind, STT_FUNC | STT_GNU_IFUNC | STT_NOTYPE);
    let is_here = raw.st_shndx(ENDIAN) != SHN_UNDEF && address != 0;
    let function = kind != STT_NOTYPE;
    (is_named && is_code && is_here).then_some(Symbol { address, size, name, function })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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

    /// Of a stripped library's assembly only what is exported has a name. Planted faults: a name without a size reaches as far
    /// as the next; also over functions that unwind tables know.
    #[test]
    fn a_name_without_a_size_does_not_reach_over_what_stands_far_behind_it() {
        let label = Symbol { address: 0x1000, size: 0, name: 1, function: false };
        let next = Symbol { address: 0x9_0000, size: 0, name: 7, function: true };
        let table = table(vec![label, next], vec![0x9_0010]);
        let found = [0x1000, 0x1fff, 0x2000, 0x8_0000, 0x9_000f, 0x9_0020].map(|at| table.find(at).unwrap());
        assert_eq!(found, ["first", "first", "0x2000+", "0x2000+", "second", "0x90010"]);
        assert_eq!(table.functions()[0], (0x9_0000, 0x9_0010, "second".to_owned()));
    }

    /// Planted fault: a label takes what stands behind it in a function that has a size.
    #[test]
    fn a_label_within_a_function_reaches_no_further_than_its_bound_and_then_it_is_the_function() {
        let function = Symbol { address: 0x1000, size: 0x5000, name: 1, function: true };
        let label = Symbol { address: 0x1010, size: 0, name: 7, function: false };
        let table = table(vec![function, label], vec![0x1000, 0x6000]);
        assert_eq!([0x1008, 0x1010, 0x5fff].map(|at| table.find(at).unwrap()), ["first", "second", "first"]);
        assert_eq!(table.functions(), [(0x1000, 0x6000, "first".to_owned())]);
    }

    fn parsed(raw: &[u8; 24], names: &[u8]) -> Option<Symbol> {
        symbol(object::pod::from_bytes(raw).unwrap().0, names)
    }

    #[test]
    fn a_symbol_without_a_name_or_a_place_is_none() {
        let good = [1, 0, 0, 0, 2, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(parsed(&good, b"\0a\0").map(|symbol| (symbol.address, symbol.size)), Some((9, 4)));
        assert_eq!(parsed(&[9; 24], b"\0a\0"), None, "a name beyond the names");
        for (at, wrong) in [(0, 0), (0, 2), (4, 1), (6, 0), (8, 0)] {
            let mut raw = good;
            raw[at] = wrong;
            assert_eq!(parsed(&raw, b"\0a\0"), None, "byte {at}");
        }
        assert_eq!(parsed(&good, b"\0.L1\0"), None);
        assert_eq!(parsed(&good, b"\0$x\0"), None);
    }

    #[test]
    fn a_function_beyond_all_addresses_and_a_name_without_an_end_do_no_harm() {
        let last = Symbol { address: u64::MAX - 1, size: 9, name: 1, function: true };
        let mut table = table(vec![last], Vec::new());
        assert_eq!(table.find(u64::MAX).as_deref(), Some("first"));
        assert_eq!(table.functions(), []);
        table.names = Some(Bytes::from(vec![b'n'; NAME_BYTES_MAX + 9]));
        assert_eq!(table.find(u64::MAX), None, "the search for its end is bounded");
    }

    #[test]
    fn names_that_stand_within_each_other_are_copied_as_often_as_there_are_bytes() {
        let symbols =
            (1..=2_000).map(|at| Symbol { address: at, size: 1, name: 0, function: true }).collect();
        let mut table = table(symbols, Vec::new());
        table.names = Some(Bytes::from([&[b'n'; 99][..], &[0]].concat()));
        assert_eq!(table.functions().len(), 100 * NAMES_SHARED_MAX / 99);
    }
}

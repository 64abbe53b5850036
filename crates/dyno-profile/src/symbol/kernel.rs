//! The kernel's symbols (/proc/kallsyms), read once when a kernel address is first seen.

use std::fs;

/// Where names come from.
const KALLSYMS: &str = "/proc/kallsyms";

/// The kernel's functions by address.
#[derive(Debug, Default)]
pub(crate) struct KernelSymbols {
    symbols: Vec<Symbol>,
}

#[derive(Debug, PartialEq, Eq)]
struct Symbol {
    address: u64,
    name: String,
    /// Which loadable module it is in; empty for the kernel itself.
    module: String,
}

impl KernelSymbols {
    /// Reads the names; empty when the user may not see addresses (kernel.kptr_restrict).
    pub(crate) fn read() -> KernelSymbols {
        KernelSymbols::parse(&fs::read_to_string(KALLSYMS).unwrap_or_default())
    }

    pub(crate) fn parse(text: &str) -> KernelSymbols {
        let mut symbols: Vec<Symbol> = text.lines().filter_map(symbol).collect();
        symbols.sort_by_key(|symbol| symbol.address);
        KernelSymbols { symbols }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Whether a symbol of this name lies at an address: several may, `_text` and `__pi__text` for one.
    pub(crate) fn has(&self, name: &str, address: u64) -> bool {
        let from = self.symbols.partition_point(|symbol| symbol.address < address);
        let here = self.symbols[from..].iter().take_while(|symbol| symbol.address == address);
        here.into_iter().any(|symbol| symbol.name == name)
    }

    /// The function at an address and its module: `[kernel]`, `[nf_tables]` …
    pub(crate) fn find(&self, address: u64) -> Option<(&str, String)> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let last = &self.symbols[after.checked_sub(1)?];
        // Of several names of one place the first is the function's own; aliases (`__pi_…`) stand behind it.
        let first = self.symbols.partition_point(|symbol| symbol.address < last.address);
        let symbol = &self.symbols[first];
        let module = if symbol.module.is_empty() { "[kernel]".to_owned() } else { symbol.module.clone() };
        Some((&symbol.name, module))
    }
}

/// `ffffffff81000000 T _text`, or `… t name\t[module]`. Only code, and only where the address is shown.
fn symbol(line: &str) -> Option<Symbol> {
    let mut words = line.split_whitespace();
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let address = u64::from_str_radix(address, 16).ok().filter(|address| *address != 0)?;
    let module = words.next().unwrap_or_default().to_owned();
    matches!(kind, "t" | "T" | "w" | "W").then(|| Symbol { address, name: name.to_owned(), module })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let text = "ffffffff81000100 T second\nffffffff81000000 t first\nffffffffc0000000 t third\t[wheel]\n\
                    ffffffff81000050 d datum\n0000000000000000 T hidden\n";
        let symbols = KernelSymbols::parse(text);
        let name = |address| symbols.find(address).map(|(name, module)| (name.to_owned(), module));
        assert_eq!(name(0xffff_ffff_8100_00ff), Some(("first".into(), "[kernel]".into())));
        assert_eq!(name(0xffff_ffff_8100_0100), Some(("second".into(), "[kernel]".into())));
        assert_eq!(name(0xffff_ffff_c000_1000), Some(("third".into(), "[wheel]".into())));
        assert_eq!(name(0x40_0000), None);
    }

    /// Fault: `has` that looks at one of the names only.
    #[test]
    fn a_place_with_several_names_is_known_by_each_and_called_by_the_first() {
        let text = "ffffffff81000000 T _text\nffffffff81000000 T __pi__text\nffffffff81000010 T entry\n";
        let symbols = KernelSymbols::parse(text);
        let start = 0xffff_ffff_8100_0000;
        assert!(symbols.has("_text", start) && symbols.has("__pi__text", start));
        assert!(!symbols.has("entry", start) && !symbols.has("_text", start + 1));
        assert_eq!(symbols.find(start + 4).map(|(name, _)| name), Some("_text"));
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        assert!(KernelSymbols::parse("0000000000000000 T _text\n").is_empty());
    }
}

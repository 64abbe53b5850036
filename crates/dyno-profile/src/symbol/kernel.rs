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

    /// The function at an address and its module: `[kernel]`, `[nf_tables]` …
    pub(crate) fn find(&self, address: u64) -> Option<(&str, String)> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = &self.symbols[after.checked_sub(1)?];
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

    #[test]
    fn hidden_addresses_are_no_symbols() {
        assert!(KernelSymbols::parse("0000000000000000 T _text\n").is_empty());
    }
}

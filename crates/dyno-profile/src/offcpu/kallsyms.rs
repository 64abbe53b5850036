//! Functions of the kernel by address, as /proc/kallsyms lists them.
//!
//! Read once at the end of a recording. Without the right to see addresses the kernel lists zeroes: then no function has
//! a name, and the recording says so.

/// The kernel's functions in order of address.
#[derive(Debug, Default)]
pub(crate) struct Kallsyms {
    functions: Vec<(u64, String)>,
}

/// What a function's name is where none is known.
pub(crate) fn unnamed(address: u64) -> String {
    format!("{address:#x}")
}

impl Kallsyms {
    /// Of the running kernel.
    pub(crate) fn read() -> Kallsyms {
        std::fs::read_to_string("/proc/kallsyms").map(|text| Kallsyms::parse(&text)).unwrap_or_default()
    }

    pub(crate) fn parse(text: &str) -> Kallsyms {
        let mut functions: Vec<(u64, String)> = text.lines().filter_map(function).collect();
        functions.sort_by_key(|(address, _)| *address);
        Kallsyms { functions }
    }

    /// Whether the kernel let us see addresses.
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function that an address lies in.
    pub(crate) fn name(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|(start, _)| *start <= address);
        after.checked_sub(1).map(|at| self.functions[at].1.as_str())
    }
}

/// A line of a function: address, kind, name, and a module in brackets.
fn function(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    let name = words.next()?;
    is_code.then(|| (address, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_that_begins_before_it() {
        let text = "ffff000000000010 T a\nffff000000000030 t b [mod]\nffff000000000020 D data\n0 T hidden\n";
        let names = Kallsyms::parse(text);
        assert_eq!(names.name(0xffff_0000_0000_002f), Some("a"));
        assert_eq!(names.name(0xffff_0000_0000_0030), Some("b"));
        assert_eq!(names.name(0xffff_0000_0000_000f), None);
        assert!(Kallsyms::parse("0000000000000000 T a\n").is_empty());
    }
}

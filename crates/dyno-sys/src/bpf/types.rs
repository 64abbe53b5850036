//! What the running kernel's types say beyond what the loader asks of them: numbers of its functions, and places of its
//! variables of each CPU.
//!
//! Called by the wrappers of objects that need one of them. Bytes in, numbers out (the kernel's Documentation/bpf/btf.rst).

use std::fs;
use std::io;

/// `/sys/kernel/btf/vmlinux`, read once.
#[derive(Debug)]
pub struct Types {
    raw: Vec<u8>,
    /// Where in `raw` the types lie.
    types: std::ops::Range<usize>,
    /// Where the names begin.
    names: usize,
}

/// Kinds of types.
mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const FUNCTION: u32 = 12;
    pub(super) const PROTOTYPE: u32 = 13;
    pub(super) const VARIABLE: u32 = 14;
    pub(super) const SECTION: u32 = 15;
    pub(super) const DECLARATION_TAG: u32 = 17;
    pub(super) const ENUM_64: u32 = 19;
}

const MAGIC: u32 = 0xeb9f;

/// A type: its number is its place in the list, from 1 up.
struct Type {
    id: u32,
    name: usize,
    kind: u32,
    rows: usize,
    /// Where what follows the fixed part lies.
    at: usize,
}

impl Types {
    /// Reads those of the running kernel.
    pub fn of_kernel() -> io::Result<Types> {
        let odd = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's types have an unknown shape");
        Types::parse(fs::read("/sys/kernel/btf/vmlinux")?).ok_or_else(odd)
    }

    fn parse(raw: Vec<u8>) -> Option<Types> {
        let header = |at| word(&raw, at).map(|number| number as usize);
        if word(&raw, 0)? & 0xffff != MAGIC {
            return None;
        }
        let start = header(4)?;
        let from = start.checked_add(header(8)?)?;
        let to = from.checked_add(header(12)?)?;
        let names = start.checked_add(header(16)?)?;
        (to <= raw.len() && names <= raw.len()).then_some(Types { raw, types: from..to, names })
    }

    /// The number of a function that programs may call.
    pub fn function(&self, name: &str) -> Option<u32> {
        let wanted = |found: &Type| found.kind == kind::FUNCTION && self.name(found.name) == name.as_bytes();
        self.all().find(wanted).map(|found| found.id)
    }

    /// Where a variable that each CPU has of its own lies, from the beginning of all of them.
    pub fn of_each_cpu(&self, name: &str) -> Option<u64> {
        let is = |found: &Type| found.kind == kind::VARIABLE && self.name(found.name) == name.as_bytes();
        let variable = self.all().find(is)?.id;
        let section = |found: &Type| {
            found.kind == kind::SECTION && matches!(self.name(found.name), b".data..percpu" | b".data.percpu")
        };
        let section = self.all().find(section)?;
        // Rows of three words: the variable, its place, its size.
        let mut rows = (0..section.rows).map(|row| section.at + row * 12);
        let row = rows.find(|at| word(&self.raw, *at) == Some(variable))?;
        word(&self.raw, row + 4).map(u64::from)
    }

    fn all(&self) -> impl Iterator<Item = Type> {
        let (mut at, mut id) = (self.types.start, 0);
        std::iter::from_fn(move || {
            if at + 12 > self.types.end {
                return None;
            }
            let info = word(&self.raw, at + 4)?;
            let (kind, rows) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            id += 1;
            let found = Type { id, name: word(&self.raw, at)? as usize, kind, rows, at: at + 12 };
            at += 12 + extra(kind, rows);
            Some(found)
        })
    }

    fn name(&self, offset: usize) -> &[u8] {
        let rest = self.raw.get(self.names + offset..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        &rest[..end]
    }
}

/// Bytes that follow the fixed part of a type.
fn extra(kind: u32, rows: usize) -> usize {
    match kind {
        kind::INT | kind::VARIABLE | kind::DECLARATION_TAG => 4,
        kind::ARRAY => 12,
        kind::STRUCT | kind::UNION | kind::SECTION | kind::ENUM_64 => 12 * rows,
        kind::ENUM | kind::PROTOTYPE => 8 * rows,
        _ => 0,
    }
}

fn word(raw: &[u8], at: usize) -> Option<u32> {
    let bytes = raw.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A variable `b` in the section of each CPU at 64, after an integer and before a function `f`.
    fn sample() -> Vec<u8> {
        let names = b"\0int\0b\0.data..percpu\0f\0";
        let types: [u32; 21] = [
            1,
            1 << 24,
            4,
            32, // int: number 1
            5,
            14 << 24,
            1,
            1, // b: number 2
            7,
            15 << 24 | 1,
            68,
            2,
            64,
            4, // the section: number 3
            0,
            13 << 24,
            0, // a prototype: number 4
            21,
            12 << 24,
            4, // f: number 5
            0,
        ];
        let bytes = (types.len() as u32 - 1) * 4;
        let header = [0x0001_eb9f, 24, 0, bytes, bytes, names.len() as u32];
        let words = header.iter().chain(&types[..types.len() - 1]);
        words.flat_map(|word| word.to_le_bytes()).chain(names.iter().copied()).collect()
    }

    #[test]
    fn a_function_is_found_by_its_number_and_a_variable_by_its_place() {
        let types = Types::parse(sample()).unwrap();
        assert_eq!((types.function("f"), types.function("b"), types.function("g")), (Some(5), None, None));
        assert_eq!((types.of_each_cpu("b"), types.of_each_cpu("f")), (Some(64), None));
    }

    #[test]
    fn types_cut_anywhere_are_no_panic() {
        let whole = sample();
        for cut in 0..whole.len() {
            if let Some(types) = Types::parse(whole[..cut].to_vec()) {
                let _ = (types.function("f"), types.of_each_cpu("b"));
            }
        }
    }

    #[test]
    fn this_kernel_tells_where_its_run_queues_lie() {
        if let Ok(types) = Types::of_kernel() {
            assert!(types.of_each_cpu("runqueues").is_some());
            assert!(types.function("schedule").is_some());
        }
    }
}

//! Where two BPF objects differ, in words: which program at which instruction, which relocation, which section.
//!
//! `gen bpf --check` asks. Objects are equal only to the last byte; this says where one would look.

/// Bytes of a BPF instruction, and of a relocation in such objects (Elf64_Rel).
const INSTRUCTION: usize = 8;
const RELOCATION: usize = 16;

/// Kinds of sections (elf(5)).
const PROGBITS: u64 = 1;
const REL: u64 = 9;
/// The flag of sections that hold instructions.
const EXECUTED: u64 = 4;

/// One line for each section that differs; none if the objects are equal.
pub(super) fn differences(committed: &[u8], fresh: &[u8]) -> Vec<String> {
    if committed == fresh {
        return vec![];
    }
    let (Some(old), Some(new)) = (Object::read(committed), Object::read(fresh)) else {
        return vec!["one of the two is no object".to_owned()];
    };
    let gone = old.sections.iter().filter(|section| new.find(section.name).is_none());
    let mut found: Vec<String> = gone.map(|section| format!("{} is not built", section.name)).collect();
    for section in &new.sections {
        match old.find(section.name) {
            None => found.push(format!("{} is not in it", section.name)),
            Some(before) if before.bytes != section.bytes => {
                found.push(first_difference((&old, before), (&new, section)));
            }
            Some(_) => {}
        }
    }
    if found.is_empty() {
        found.push("what tells of the sections differs, not their content".to_owned());
    }
    found
}

/// An object and one of its sections.
type Placed<'a> = (&'a Object<'a>, &'a Section<'a>);

fn first_difference(old: Placed<'_>, new: Placed<'_>) -> String {
    let (before, after) = (old.1, new.1);
    let at = before.bytes.iter().zip(after.bytes).position(|(a, b)| a != b);
    let at = at.unwrap_or(before.bytes.len().min(after.bytes.len()));
    if after.kind == REL {
        let told = |(object, section): Placed<'_>| object.relocation(section, at / RELOCATION);
        let (was, is) = (told(old), told(new));
        return format!("{}: relocation {} is {was}, built {is}", after.name, at / RELOCATION);
    }
    if after.kind == PROGBITS && after.flags & EXECUTED != 0 {
        let told = |section: &Section<'_>| instruction(section.bytes, at / INSTRUCTION);
        let (was, is) = (told(before), told(after));
        return format!("{}: instruction {} is {was}, built {is}", after.name, at / INSTRUCTION);
    }
    let (was, is) = (before.bytes.len(), after.bytes.len());
    format!("{}: byte {at} differs (it has {was} bytes, built {is})", after.name)
}

fn instruction(code: &[u8], number: usize) -> String {
    match code.get(number * INSTRUCTION..(number + 1) * INSTRUCTION) {
        Some(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        None => "missing".to_owned(),
    }
}

/// A 64-bit little-endian ELF file, as clang writes it for BPF.
struct Object<'a> {
    sections: Vec<Section<'a>>,
}

struct Section<'a> {
    name: &'a str,
    kind: u64,
    flags: u64,
    bytes: &'a [u8],
}

impl<'a> Object<'a> {
    fn read(file: &'a [u8]) -> Option<Object<'a>> {
        // Places in the ELF header and in section headers (elf(5)).
        let (table, size) = (number(file, 40, 8)?, number(file, 58, 2)?);
        let (count, names) = (number(file, 60, 2)?, number(file, 62, 2)?);
        let header = |at: u64| at.checked_mul(size)?.checked_add(table);
        let names = bytes_of(file, header(names)?)?;
        let section = |at: u64| {
            let header = header(at)?;
            let (name, kind) = (number(file, header, 4)?, number(file, header + 4, 4)?);
            let flags = number(file, header + 8, 8)?;
            Some(Section { name: text(names, name)?, kind, flags, bytes: bytes_of(file, header)? })
        };
        // The first header stands for no section.
        Some(Object { sections: (1..count).map(section).collect::<Option<_>>()? })
    }

    fn find(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// "SYMBOL at OFFSET, type KIND".
    fn relocation(&self, section: &Section<'_>, number_of_it: usize) -> String {
        let at = (number_of_it * RELOCATION) as u64;
        let (Some(offset), Some(kind), Some(symbol)) = (
            number(section.bytes, at, 8),
            number(section.bytes, at + 8, 4),
            number(section.bytes, at + 12, 4),
        ) else {
            return "missing".to_owned();
        };
        let name = self.symbol(symbol).unwrap_or("a symbol that is not there");
        format!("{name} at {offset:#x}, type {kind}")
    }

    /// The name of a symbol, or of its section if it has none.
    fn symbol(&self, index: u64) -> Option<&'a str> {
        let (table, names) = (self.find(".symtab")?.bytes, self.find(".strtab")?.bytes);
        // Elf64_Sym: the name's place, then two bytes, then the section's number.
        let entry = index.checked_mul(24)?;
        match text(names, number(table, entry, 4)?)? {
            "" => {
                let section = usize::try_from(number(table, entry + 6, 2)?).ok()?;
                self.sections.get(section.checked_sub(1)?).map(|section| section.name)
            }
            name => Some(name),
        }
    }
}

fn bytes_of(file: &[u8], header: u64) -> Option<&[u8]> {
    let (start, length) = (number(file, header + 24, 8)?, number(file, header + 32, 8)?);
    let end = start.checked_add(length)?;
    file.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

fn number(bytes: &[u8], at: u64, size: usize) -> Option<u64> {
    let taken = bytes.get(usize::try_from(at).ok()?..)?.get(..size)?;
    Some(taken.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn text(names: &[u8], at: u64) -> Option<&str> {
    let rest = names.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn committed() -> Vec<u8> {
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/dyno-sys/bpf/offcpu.bpf.o")).unwrap()
    }

    /// The object with one byte of a section changed.
    fn with_fault(name: &str, at: usize) -> Vec<u8> {
        let mut object = committed();
        let read = Object::read(&object).unwrap();
        let section = read.find(name).unwrap().bytes;
        let place = section.as_ptr() as usize - object.as_ptr() as usize + at;
        object[place] ^= 1;
        object
    }

    #[test]
    fn an_object_equals_itself() {
        assert_eq!(differences(&committed(), &committed()), Vec::<String>::new());
    }

    #[test]
    fn one_changed_instruction_is_named() {
        let found = differences(&with_fault("tp_btf/sched_switch", 5 * INSTRUCTION), &committed());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("tp_btf/sched_switch: instruction 5 is "), "{found:?}");
    }

    #[test]
    fn one_changed_relocation_is_named_with_what_it_leads_to() {
        // The lowest byte of the second relocation's symbol.
        let found = differences(&with_fault(".reltp_btf/sched_switch", RELOCATION + 12), &committed());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(".reltp_btf/sched_switch: relocation 1 is "), "{found:?}");
        let names = found[0].split(" is ").nth(1).unwrap().split(", built ");
        let names: Vec<&str> = names.map(|told| told.split(" at ").next().unwrap()).collect();
        assert_ne!(names[0], names[1], "{found:?}");
    }

    #[test]
    fn changed_types_maps_and_licences_are_named() {
        for (name, at) in [(".BTF", 100), (".BTF.ext", 100), (".maps", 1), ("license", 0), (".symtab", 30)] {
            let found = differences(&with_fault(name, at), &committed());
            assert!(found.iter().any(|line| line.starts_with(&format!("{name}: byte {at}"))), "{found:?}");
        }
    }

    #[test]
    fn a_change_outside_every_section_is_one_too() {
        let mut object = committed();
        // The flags of the file, which its header has at 48.
        object[48] ^= 1;
        assert_eq!(differences(&object, &committed()).len(), 1);
    }

    #[test]
    fn what_was_cut_or_is_empty_is_no_object() {
        let whole = committed();
        for length in [0, 40, 63, whole.len() / 2] {
            assert_eq!(differences(&whole[..length], &whole), ["one of the two is no object"]);
        }
    }
}

//! A file's lines and folded functions (DWARF).

use std::borrow::Cow;
use std::sync::Arc;

use gimli::{EndianArcSlice, LittleEndian, SectionId};

use super::Function;
use crate::elf::{Absent, Elf};

/// Debug information beyond this is not read: names then come from the symbol table alone. A large C++ server has some
/// 500 MB of it; reading a gigabyte takes about as many seconds as this has sections.
pub const DEBUG_BYTES_MAX: u64 = 1 << 30;

/// Bytes of a section, shared.
pub(crate) type Reader = EndianArcSlice<LittleEndian>;

/// Functions and lines by address.
pub(super) struct Lines(addr2line::Context<Reader>);

impl Lines {
    /// Reads what the file has; `None` when it has none or too much.
    pub(super) fn read(elf: &Elf, path: &str, notes: &mut Vec<String>) -> Option<Lines> {
        addr2line::Context::from_dwarf(dwarf(elf, path, notes)?).ok().map(Lines)
    }

    /// The functions at an address, innermost first; an empty name where only the line is known.
    pub(super) fn find(&self, address: u64) -> Vec<Function> {
        let mut found = Vec::new();
        let Ok(mut frames) = self.0.find_frames(address).skip_all_loads() else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|name| name.demangle().ok());
            let location = frame.location.as_ref();
            found.push(Function {
                name: name.map(Cow::into_owned).unwrap_or_default(),
                file: location.and_then(|location| location.file).map(str::to_owned),
                line: location.and_then(|location| location.line),
                inlined: true,
            });
        }
        if let Some(outermost) = found.last_mut() {
            outermost.inlined = false;
        }
        found
    }
}

/// A file's debug information; `None` when it has none or too much.
pub(crate) fn dwarf(elf: &Elf, path: &str, notes: &mut Vec<String>) -> Option<gimli::Dwarf<Reader>> {
    elf.header(".debug_info")?;
    let mut left = DEBUG_BYTES_MAX;
    let section = |id: SectionId| bytes(elf, id, &mut left);
    match gimli::Dwarf::load(section) {
        Ok(dwarf) => Some(dwarf),
        Err(size) => {
            let gigabytes = size as f64 / 1e9;
            notes.push(format!(
                "{path} has {gigabytes:.1} GB of debug information; its names come from its symbol table alone, without lines"
            ));
            None
        }
    }
}

/// A section's bytes; the error is the size of what is too large.
fn bytes(elf: &Elf, id: SectionId, left: &mut u64) -> Result<Reader, u64> {
    // Only what addr2line asks for: the rest of a debug file tells of variables and types.
    let used = !matches!(
        id,
        SectionId::DebugLoc
            | SectionId::DebugLocLists
            | SectionId::DebugTypes
            | SectionId::DebugMacro
            | SectionId::DebugMacinfo
            | SectionId::DebugNames
    );
    let header = elf.header(id.name()).filter(|_| used);
    let bytes = match header.map(|header| elf.contents(header, *left)) {
        Some(Ok(bytes)) => bytes,
        Some(Err(Absent::TooLarge(size))) => return Err(size),
        Some(Err(Absent::None)) | None => Arc::from([]),
    };
    *left -= bytes.len() as u64;
    Ok(Reader::new(bytes, LittleEndian))
}

/// A name as its language writes it; what is no mangled name stays.
pub(crate) fn demangled(name: &str) -> String {
    // `name@@GLIBC_2.2.5` in some tables: which version of a library made it is no part of a function's name.
    let plain = name.split_once("@@").map_or(name, |(plain, _)| plain);
    addr2line::demangle_auto(Cow::Borrowed(plain), None).into_owned()
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn names_of_rust_and_cpp_are_written_as_in_their_source() {
        assert_eq!(demangled("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangled("_ZN3app5serveEi"), "app::serve(int)");
        assert_eq!(demangled("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        assert_eq!(demangled("main.(*Server).serve"), "main.(*Server).serve");
        assert_eq!(demangled("memcpy@@GLIBC_2.14"), "memcpy");
    }
}

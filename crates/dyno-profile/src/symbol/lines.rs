//! A file's lines and folded functions (DWARF).

use gimli::SectionId;

use super::demangle::{NAME_BYTES_MAX, of_language};
use super::function::Function;
use super::metered::{Meter, Metered};
use crate::image::elf::{Absent, Bytes, Elf, in_words};

/// Debug information beyond this is not read: names then come from the symbol table alone. A large C++ server has some
/// 500 MB of it; reading a gigabyte takes about as many seconds as this has sections.
const DEBUG_BYTES_MAX: u64 = 1 << 30;

/// The path of a source file: what Linux opens (`PATH_MAX`).
const PATH_BYTES_MAX: usize = 4_096;

/// Functions and lines by address.
pub(super) struct Lines(addr2line::Context<Metered>);

impl Lines {
    /// Reads what the file has; `None` when it has none or too much.
    pub(super) fn read(elf: &Elf, path: &str, notes: &mut Vec<String>) -> Option<Lines> {
        addr2line::Context::from_dwarf(dwarf(elf, path, notes)?).ok().map(Lines)
    }

    /// The functions at an address, innermost first; an empty name where only the line is known.
    pub(super) fn find(&self, address: u64) -> Vec<Function> {
        let mut found = Vec::new();
        // addr2line looks for what lies before the next address, and the last has none.
        let probe = address.min(u64::MAX - 1);
        let Ok(mut frames) = self.0.find_frames(probe).skip_all_loads() else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let location = frame.location.as_ref();
            let file = location.and_then(|location| location.file);
            found.push(Function {
                name: frame.function.as_ref().and_then(name).unwrap_or_default(),
                file: file.filter(|file| file.len() <= PATH_BYTES_MAX).map(str::to_owned),
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

/// As its language writes it; `None` for one that is too long to be one.
fn name(function: &addr2line::FunctionName<Metered>) -> Option<String> {
    let raw = Some(function.name.bytes()).filter(|name| name.len() <= NAME_BYTES_MAX)?;
    Some(of_language(&String::from_utf8_lossy(raw), function.language))
}

/// A file's debug information; `None` when it has none or too much.
pub(crate) fn dwarf(elf: &Elf, path: &str, notes: &mut Vec<String>) -> Option<gimli::Dwarf<Metered>> {
    elf.header(".debug_info")?;
    let (mut left, meter) = (DEBUG_BYTES_MAX, Meter::default());
    let loaded =
        gimli::Dwarf::load(|id| section(elf, id, &mut left).map(|bytes| Metered::new(bytes, &meter)));
    meter.set(DEBUG_BYTES_MAX - left);
    match loaded {
        Ok(dwarf) => Some(dwarf),
        Err(size) => {
            notes.push(format!(
                "{path} has {} of debug information; its names come from its symbol table alone, without lines",
                in_words(size)
            ));
            None
        }
    }
}

/// A section's bytes; the error is the size of what is too large.
fn section(elf: &Elf, id: SectionId, left: &mut u64) -> Result<Bytes, u64> {
    // Only what addr2line asks for: the rest of a debug file describes variables and types.
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
        Some(Err(Absent::None)) | None => Bytes::from([]),
    };
    *left -= bytes.len() as u64;
    Ok(bytes)
}

//! From addresses to functions, source lines and the functions that were folded into them.
//!
//! A file's symbols are read when its first name is asked for: its symbol table, and its lines (DWARF), from a separate
//! debug file where the distribution keeps one. What is larger than a limit is left out, and a note says so.

mod demangle;
mod function;
mod go;
mod jit;
mod kernel;
mod lines;
mod metered;
mod table;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use dyno_sys::Pid;

use crate::hotspot;
use crate::image::elf::{Elf, Source};
use crate::image::spaces::{AddressSpaces, Place};
use crate::image::{Image, ImageId, Images, Kind, hex};

pub(crate) use demangle::demangled;
pub use function::Function;
pub(crate) use go::GoFunctions;
use jit::JitSymbols;
use kernel::KernelSymbols;
use lines::Lines;
pub(crate) use lines::dwarf;
pub(crate) use metered::Metered;
pub(crate) use table::Table;

/// Where distributions keep the symbols that they strip.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// Names of addresses, of all files that were seen and of the kernel.
#[derive(Default)]
pub struct Symbols {
    files: HashMap<ImageId, FileSymbols>,
    jits: HashMap<Pid, JitSymbols>,
    /// What Java virtual machines had compiled when they were last there.
    compiled: HashMap<Pid, Vec<hotspot::Function>>,
    kernel: Option<KernelSymbols>,
    notes: Vec<String>,
}

/// What one file knows.
#[derive(Default)]
struct FileSymbols {
    table: Table,
    lines: Option<Lines>,
}

impl Symbols {
    /// No names yet: each is read when it is first asked for.
    pub fn new() -> Symbols {
        Symbols::default()
    }

    /// The same, knowing what Java virtual machines have compiled that may be gone.
    pub(crate) fn knowing(compiled: HashMap<Pid, Vec<hotspot::Function>>) -> Symbols {
        Symbols { compiled, ..Symbols::default() }
    }

    /// Of a kernel whose /proc/kallsyms would read so.
    #[cfg(test)]
    pub(crate) fn of_kernel(kallsyms: &str) -> Symbols {
        Symbols { kernel: Some(KernelSymbols::parse(kallsyms)), ..Symbols::default() }
    }

    /// The functions at an address of a process, innermost first; one where nothing was folded into it.
    pub fn symbolize(&mut self, spaces: &mut AddressSpaces, pid: Pid, address: u64) -> Vec<Function> {
        match spaces.locate(pid, address) {
            Some(place) => self.functions(spaces.images(), place),
            None => vec![unnamed(address)],
        }
    }

    /// The functions at a place in a file, innermost first.
    pub fn functions(&mut self, images: &Images, place: Place) -> Vec<Function> {
        let image = images.get(place.image);
        if let Kind::Jit(pid) = image.kind() {
            let Symbols { jits, compiled, .. } = self;
            let map = jits.entry(*pid).or_insert_with(|| JitSymbols::read(*pid, compiled.remove(pid)));
            return vec![map.find(place.address).map_or_else(|| unnamed(place.address), named)];
        }
        let Symbols { files, notes, .. } = self;
        files.entry(place.image).or_insert_with(|| FileSymbols::read(image, notes)).functions(place.address)
    }

    /// Whether a file has names of functions.
    pub fn has_names(&mut self, images: &Images, image: ImageId) -> bool {
        if let Kind::Jit(pid) = images.get(image).kind() {
            return self.jits.get(pid).is_some_and(|map| !map.is_empty());
        }
        let Symbols { files, notes, .. } = self;
        let file = files.entry(image).or_insert_with(|| FileSymbols::read(images.get(image), notes));
        file.table.has_names() || file.lines.is_some()
    }

    /// The kernel's function at an address, and its module (`[kernel]` …).
    pub fn kernel(&mut self, address: u64) -> (Function, String) {
        let kernel = self.kernel.get_or_insert_with(KernelSymbols::read);
        match kernel.find(address) {
            Some((name, module)) => (named(name), module),
            None => (unnamed(address), "[kernel]".to_owned()),
        }
    }

    /// Whether one of the kernel's symbols at an address has this name.
    pub(crate) fn kernel_has(&mut self, name: &str, address: u64) -> bool {
        self.kernel.get_or_insert_with(KernelSymbols::read).has(name, address)
    }

    /// Whether the kernel shows its names.
    pub fn kernel_has_names(&mut self) -> bool {
        !self.kernel.get_or_insert_with(KernelSymbols::read).is_empty()
    }

    /// What could not be read, as sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl FileSymbols {
    fn read(image: &Image, notes: &mut Vec<String>) -> FileSymbols {
        let Some(elf) = image.elf() else {
            if *image.kind() == Kind::File {
                notes.push(format!(
                    "{} could not be read any more: its functions have no names",
                    image.path()
                ));
            }
            return FileSymbols::default();
        };
        let complete = elf.header(".symtab").is_some() && elf.header(".debug_info").is_some();
        let beside = if complete { None } else { debug_file(elf, Path::new(image.path())) };
        let table = Table::read(elf, beside.as_ref(), image.path(), notes);
        let holder = beside.as_ref().filter(|beside| beside.header(".debug_info").is_some()).unwrap_or(elf);
        FileSymbols { table, lines: Lines::read(holder, image.path(), notes) }
    }

    fn functions(&self, address: u64) -> Vec<Function> {
        let symbol =
            || self.table.find(address).map_or_else(|| unnamed(address).name, |name| demangled(&name));
        let found = self.lines.as_ref().map(|lines| lines.find(address)).unwrap_or_default();
        with_names(found, symbol)
    }
}

/// Functions that all have names. `symbol` is what the symbol table calls the outermost.
fn with_names(mut found: Vec<Function>, symbol: impl FnOnce() -> String) -> Vec<Function> {
    // Names may stand in a file that several share (`.gnu_debugaltlink`, as dwz writes it), which is not read: what was
    // folded in is then told by whom it was folded into.
    found.retain(|function| !function.inlined || !function.name.is_empty());
    match found.last_mut() {
        None => found.push(named(&symbol())),
        // A line without a function: assembly, or code of a unit that has lines only.
        Some(outermost) if outermost.name.is_empty() => outermost.name = symbol(),
        Some(_) => {}
    }
    found
}

/// The file with the symbols that were taken out of `elf`: by its build-id, or by the name that it gives.
pub(crate) fn debug_file(elf: &Elf, path: &Path) -> Option<Elf> {
    by_build_id(elf).into_iter().chain(by_link(elf, path)).find_map(|path| {
        let found = Elf::open(Source::open(&path)?)?;
        belongs(&found, elf).then_some(found)
    })
}

/// Whether symbols are those of this build: another's would be wrong without a word. Builds without an id know their
/// symbols by a checksum.
fn belongs(symbols: &Elf, elf: &Elf) -> bool {
    match (elf.build_id(), symbols.build_id()) {
        (None, None) => elf.debug_link().is_some_and(|(_, sum)| symbols.checksum() == Some(sum)),
        (own, of_symbols) => own == of_symbols,
    }
}

fn by_build_id(elf: &Elf) -> Option<PathBuf> {
    let id = hex(elf.build_id()?);
    let (folder, rest) = id.split_at_checked(2)?;
    Some(format!("{DEBUG_ROOT}/.build-id/{folder}/{rest}.debug").into())
}

fn by_link(elf: &Elf, path: &Path) -> Vec<PathBuf> {
    let (Some((name, _)), Some(folder)) = (elf.debug_link(), path.parent()) else { return Vec::new() };
    let under_root = Path::new(DEBUG_ROOT).join(folder.strip_prefix("/").unwrap_or(folder));
    // Where the symbols were not taken out, a file may name itself.
    let beside = Some(folder.join(&name)).filter(|beside| beside != path);
    beside.into_iter().chain([folder.join(".debug").join(&name), under_root.join(&name)]).collect()
}

fn named(name: &str) -> Function {
    Function { name: name.to_owned(), ..Function::default() }
}

fn unnamed(address: u64) -> Function {
    named(&format!("{address:#x}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_sys::child;

    #[test]
    fn this_function_knows_its_name_file_and_line() {
        let (mut symbols, mut spaces) = (Symbols::new(), AddressSpaces::new());
        let here = this_function_knows_its_name_file_and_line as *const () as usize as u64;
        let found = symbols.symbolize(&mut spaces, child::this(), here + 1);
        let outermost = found.last().unwrap();
        assert!(outermost.name.ends_with("this_function_knows_its_name_file_and_line"), "{found:?}");
        assert!(
            outermost.file.as_ref().unwrap().ends_with("symbol.rs") && outermost.line.is_some(),
            "{found:?}"
        );
        assert!(!outermost.inlined && symbols.notes().is_empty());
    }

    #[test]
    fn a_library_without_lines_still_has_its_exported_names() {
        let (mut symbols, mut spaces) = (Symbols::new(), AddressSpaces::new());
        let here = dyno_sys::proc::mappings(child::this()).unwrap();
        let vdso = here.iter().find(|mapping| mapping.path == "[vdso]").unwrap();
        let names = (vdso.start..vdso.end).step_by(16).flat_map(|address| {
            symbols.symbolize(&mut spaces, child::this(), address).into_iter().map(|function| function.name)
        });
        assert!(names.collect::<Vec<_>>().iter().any(|name| name.contains("clock_gettime")));
    }

    /// Planted fault: two files without an id are taken to be of one build (`None == None`).
    #[test]
    fn of_builds_without_an_id_only_the_symbols_whose_checksum_is_named_are_taken() {
        let folder = std::env::temp_dir().join(format!("dyno-link-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let script = "cd \"$0\" && for n in 1 2; do
            echo \"int f$n; int main(void) { return f$n; }\" > p.c && cc -g -Wl,--build-id=none -o p p.c &&
            objcopy --only-keep-debug p p.debug.$n || exit 1
        done && cp p.debug.2 p.debug && objcopy --strip-all --add-gnu-debuglink=p.debug p && rm p.debug && mkdir .debug";
        let made = std::process::Command::new("sh").args(["-c", script]).arg(&folder).status();
        // Without a compiler there is nothing to look at.
        if made.is_ok_and(|made| made.success()) {
            let path = folder.join("p");
            let elf = Elf::open(Source::open(&path).unwrap()).unwrap();
            let found = |debug: &str, place: &str| {
                std::fs::copy(folder.join(debug), folder.join(place)).unwrap();
                let found = debug_file(&elf, &path).is_some();
                std::fs::remove_file(folder.join(place)).unwrap();
                found
            };
            for place in ["p.debug", ".debug/p.debug"] {
                assert_eq!([found("p.debug.2", place), found("p.debug.1", place)], [true, false], "{place}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Fault: `with_names` that lets functions without a name pass.
    #[test]
    fn what_was_folded_in_and_has_no_name_is_told_by_what_it_was_folded_into() {
        let of = |name: &str, line, inlined| Function {
            name: name.to_owned(),
            line: Some(line),
            inlined,
            ..Function::default()
        };
        let symbol = || "outer".to_owned();
        let found = vec![of("", 3, true), of("middle", 9, true), of("", 27, false)];
        assert_eq!(with_names(found, symbol), [of("middle", 9, true), of("outer", 27, false)]);
        assert_eq!(with_names(Vec::new(), symbol), [named("outer")]);
    }

    #[test]
    fn nowhere_is_its_address() {
        let found = Symbols::new().symbolize(&mut AddressSpaces::new(), child::this(), 0x10);
        assert_eq!(found, [unnamed(0x10)]);
        assert_eq!(found[0].name, "0x10");
    }
}

//! A file of code (ELF, 64 bits): where its parts lie, and on demand the bytes of a section.
//!
//! `object` knows how such a file is laid out; what stands here is how much a file may ask for. Files come from strangers,
//! and a profiler reads them as root: what a header claims is compared with a limit, and with what the file has, before
//! room is made for it. Bytes in, places out: what symbols and lines mean is known in `symbol`.

mod checksum;
mod index;
mod inflate;
mod section;
mod source;

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use object::LittleEndian;
use object::elf::{self, CompressionHeader64, FileHeader64, ProgramHeader64, SectionHeader64, Sym64};
use object::read::elf::{FileHeader as _, NoteIterator, SectionHeader as _, Sym as _};
use object::read::{ReadCache, ReadRef, StringTable};

use checksum::checked;
pub(crate) use index::starts;
use inflate::{Format, inflated};
pub(crate) use section::{Bytes, Section};
pub(crate) use source::Source;

/// Segments of one file: Linux runs nothing with more than 64 KiB of their headers (fs/binfmt_elf.c).
const SEGMENTS_MAX: u32 = (64 << 10) / 56;
/// Sections of one file: more than a header can count without tricks. Programs have some forty.
const SECTIONS_MAX: u32 = 65_535;
/// The names of all sections together.
const SECTION_NAMES_BYTES_MAX: u64 = 4 << 20;
/// Unwind tables beyond this are no tables: the largest browsers have some ten megabytes.
const UNWIND_BYTES_MAX: u64 = 256 << 20;
/// Notes, and the name of a debug file: some hundred bytes.
const NOTES_BYTES_MAX: u64 = 64 << 10;
/// Tables of symbols larger than this are not read.
const TABLE_BYTES_MAX: u64 = 256 << 20;
/// A build-id: 20 bytes are usual (SHA-1), 64 are the longest digest in use.
const BUILD_ID_BYTES_MAX: usize = 64;
/// What comes of a compressed section, as a multiple of it. Debug information is a fifth to a tenth of itself when it is
/// compressed; zlib could say a thousand times as much as it takes, zstd thirty thousand times.
const INFLATION_MAX: u64 = 64;
/// What comes of all of a file's sections together, as a multiple of the file: its sections may not all be made of the same
/// bytes. Of 16 KiB come 256 at most.
const FILE_INFLATION_MAX: u64 = 16;
/// And however large the file is: what debug information may have (1 GiB, see `symbol`), and as much again for symbols and
/// unwind tables. While a section is copied it takes twice its size for that moment.
const FILE_BYTES_MAX: u64 = 2 << 30;

/// Bytes that are read at once for a checksum.
const CHECKED_AT_ONCE: usize = 1 << 20;

/// The page that addresses and offsets of segments are rounded to. Larger ones (aarch64) are multiples.
const PAGE: u64 = 0xfff;

const ENDIAN: LittleEndian = LittleEndian;
type Head = FileHeader64<LittleEndian>;

/// A piece of the file that is loaded as one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    file: Range<u64>,
    address: u64,
    executable: bool,
}

/// A section's header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header(SectionHeader64<LittleEndian>);

/// What stacks are unwound by.
#[derive(Debug, Default)]
pub(crate) struct UnwindTables {
    pub(crate) eh_frame: Option<Section>,
    pub(crate) eh_frame_hdr: Option<Section>,
    /// What Go has; only where there is no `.eh_frame`, which covers what runs.
    pub(crate) debug_frame: Option<Section>,
}

/// A file of code.
#[derive(Debug)]
pub(crate) struct Elf {
    source: Source,
    segments: Vec<Segment>,
    headers: Vec<Header>,
    names: Vec<u8>,
    /// Bytes that may still be made of its sections.
    left: Cell<u64>,
    unwind: OnceCell<UnwindTables>,
    build_id: OnceCell<Option<Vec<u8>>>,
}

/// Why a section's bytes are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// The file has no such section, or it cannot be read.
    None,
    /// It has so many bytes, or says so: more than are allowed.
    TooLarge(u64),
}

/// Headers of segments and sections, and where the sections' names lie.
#[derive(Default)]
struct Headers {
    segments: Vec<Segment>,
    sections: Vec<Header>,
    names: Option<Header>,
}

impl Elf {
    /// Reads the headers; `None` when it is no ELF file of 64 bits, or torn.
    pub(crate) fn open(source: Source) -> Option<Elf> {
        let length = source.len().ok()?;
        let found = match &source {
            Source::File(file) => headers(&ReadCache::<&File>::new(file))?,
            Source::Memory(bytes) => headers(bytes.as_slice())?,
        };
        let names = found.names.and_then(|names| names.file(SECTION_NAMES_BYTES_MAX).ok());
        let names = names.and_then(|names| source.read_at(names)).unwrap_or_default();
        let left = Cell::new(length.saturating_mul(FILE_INFLATION_MAX).min(FILE_BYTES_MAX));
        let (unwind, build_id) = (OnceCell::new(), OnceCell::new());
        Some(Elf { source, segments: found.segments, headers: found.sections, names, left, unwind, build_id })
    }

    /// The lowest address that the file wants its code at.
    pub(crate) fn base(&self) -> u64 {
        self.segments.iter().map(|segment| segment.address & !PAGE).min().unwrap_or(0)
    }

    /// What has to be added to the file's addresses where `offset` of the file is mapped at `start`.
    ///
    /// Segments begin within a page and are mapped from its beginning, so the page of the offset counts, not the offset.
    pub(crate) fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let holds = |segment: &&Segment| {
            let from = segment.file.start & !PAGE;
            (from..segment.file.end.max(from + 1)).contains(&offset)
        };
        // Where two share a page, the one that is mapped to run is meant.
        let segment = self.segments.iter().filter(holds).max_by_key(|segment| segment.executable)?;
        let address = segment.address.wrapping_add(offset.wrapping_sub(segment.file.start));
        Some(start.wrapping_sub(address))
    }

    /// Where in the file the byte at an address stands.
    pub(crate) fn file_offset(&self, address: u64) -> Option<u64> {
        let size = |segment: &Segment| segment.file.end - segment.file.start;
        let holds = |segment: &&Segment| {
            address.checked_sub(segment.address).is_some_and(|behind| behind < size(segment))
                && segment.executable
        };
        let segment = self.segments.iter().find(holds)?;
        Some(segment.file.start + (address - segment.address))
    }

    /// Bytes of code at an address.
    pub(crate) fn bytes_at(&self, address: u64, length: u64) -> Option<Vec<u8>> {
        let offset = self.file_offset(address)?;
        self.source.read_at(offset..offset.checked_add(length)?)
    }

    /// Whether Go's linker made it: such code keeps frame pointers.
    pub(crate) fn is_go(&self) -> bool {
        self.header(".gopclntab").is_some() || self.header(".note.go.buildid").is_some()
    }

    /// The address of a symbol of one of its tables (`.symtab`, `.dynsym`).
    pub(crate) fn defined(&self, table: &str, name: &str) -> Option<u64> {
        let header = self.header(table)?;
        let names = self.contents(self.linked(header)?, TABLE_BYTES_MAX).ok()?;
        let raw = self.contents(header, TABLE_BYTES_MAX).ok()?;
        let count = raw.len() / size_of::<Sym64<LittleEndian>>();
        let (all, _) = object::pod::slice_from_bytes::<Sym64<LittleEndian>>(&raw, count).ok()?;
        let is_it = |symbol: &&Sym64<LittleEndian>| {
            let text = names.get(symbol.st_name(ENDIAN) as usize..).unwrap_or_default();
            text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
        };
        all.iter().find(is_it).map(|symbol| symbol.st_value(ENDIAN))
    }

    /// Whether it asks for a dynamic loader.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.header(".interp").is_some()
    }

    /// The header of a section.
    pub(crate) fn header(&self, name: &str) -> Option<&Header> {
        let names = strings(&self.names);
        let is_it = |header: &&Header| names.get(header.0.sh_name(ENDIAN)) == Ok(name.as_bytes());
        self.headers.iter().find(is_it)
    }

    /// The header that another one belongs to: a symbol table's names.
    pub(crate) fn linked(&self, header: &Header) -> Option<&Header> {
        self.headers.get(header.0.sh_link(ENDIAN) as usize)
    }

    /// A section's bytes, uncompressed.
    pub(crate) fn contents(&self, header: &Header, bytes_max: u64) -> Result<Bytes, Absent> {
        let file = header.file(bytes_max)?;
        if !header.is_compressed() {
            self.take(file.end - file.start)?;
            return self.source.read_at(file).map(Arc::from).ok_or(Absent::None);
        }
        let raw = self.source.read_at(file).ok_or(Absent::None)?;
        let (format, size, compressed) = compression(&raw).ok_or(Absent::None)?;
        if size > bytes_max.min((compressed.len() as u64).saturating_mul(INFLATION_MAX)) {
            return Err(Absent::TooLarge(size));
        }
        self.take(size)?;
        inflated(format, compressed, size).map(Arc::from).ok_or(Absent::None)
    }

    /// Room for so many bytes more of this file.
    fn take(&self, bytes: u64) -> Result<(), Absent> {
        let left = self.left.get().checked_sub(bytes).ok_or(Absent::TooLarge(bytes))?;
        self.left.set(left);
        Ok(())
    }

    /// A section with bytes and addresses.
    fn section(&self, name: &str, bytes_max: u64) -> Option<Section> {
        let header = self.header(name)?;
        let addresses = header.addresses()?;
        let bytes = self.contents(header, bytes_max).ok()?;
        (!bytes.is_empty()).then_some(Section { addresses, bytes })
    }

    /// What stacks are unwound by; read once, however many processes map the file.
    pub(crate) fn unwind_tables(&self) -> &UnwindTables {
        self.unwind.get_or_init(|| {
            let table = |name| self.section(name, UNWIND_BYTES_MAX);
            let eh_frame = table(".eh_frame");
            // Without an index that can be believed one is made from the tables.
            let eh_frame_hdr = table(".eh_frame_hdr").filter(index::is_sound);
            let debug_frame = if eh_frame.is_some() { None } else { table(".debug_frame") };
            UnwindTables { eh_frame, eh_frame_hdr, debug_frame }
        })
    }

    /// The build-id that the linker wrote.
    pub(crate) fn build_id(&self) -> Option<&[u8]> {
        let read = || {
            let header = self.header(".note.gnu.build-id")?;
            let notes = self.contents(header, NOTES_BYTES_MAX).ok()?;
            build_id_in(&notes, header.0.sh_addralign(ENDIAN))
        };
        self.build_id.get_or_init(read).as_deref()
    }

    /// The name of the file with its debug information, when that stands in a file of its own, and that file's checksum.
    pub(crate) fn debug_link(&self) -> Option<(String, u32)> {
        let link = self.contents(self.header(".gnu_debuglink")?, NOTES_BYTES_MAX).ok()?;
        let name = strings(&link).get(0).ok()?;
        // Behind the name and its end, where the next word of four bytes begins.
        let sum = link.get((name.len() + 1).next_multiple_of(4)..)?.first_chunk()?;
        let name = String::from_utf8_lossy(name).into_owned();
        // It names a file beside this one. A path is refused: it could lead to any file of the machine.
        let is_name = !name.is_empty() && !name.contains('/') && name != "..";
        is_name.then(|| (name, u32::from_le_bytes(*sum)))
    }

    /// The checksum of the whole file, as a debug link names it.
    pub(crate) fn checksum(&self) -> Option<u32> {
        let length = self.source.len().ok().filter(|length| *length <= FILE_BYTES_MAX)?;
        let mut sum = 0;
        for start in (0..length).step_by(CHECKED_AT_ONCE) {
            let bytes = self.source.read_at(start..length.min(start + CHECKED_AT_ONCE as u64))?;
            sum = checked(sum, &bytes);
        }
        Some(sum)
    }
}

impl Header {
    /// Addresses, as the file says them; none where they lead beyond all addresses.
    pub(crate) fn addresses(&self) -> Option<Range<u64>> {
        let start = self.0.sh_addr(ENDIAN);
        Some(start..start.checked_add(self.0.sh_size(ENDIAN))?)
    }

    /// Where its bytes stand in the file, if they are not too many; nowhere for one that only takes room in memory.
    fn file(&self, bytes_max: u64) -> Result<Range<u64>, Absent> {
        let (offset, size) = self.0.file_range(ENDIAN).unwrap_or_default();
        if size > bytes_max {
            return Err(Absent::TooLarge(size));
        }
        Ok(offset..offset.checked_add(size).ok_or(Absent::None)?)
    }

    fn is_compressed(&self) -> bool {
        self.0.sh_flags(ENDIAN).contains(elf::SHF_COMPRESSED)
    }
}

/// The build-id among notes.
pub(crate) fn build_id_in(notes: &[u8], align: u64) -> Option<Vec<u8>> {
    let notes = NoteIterator::<Head>::new(ENDIAN, align, notes).ok()?;
    let mut ids = notes.flatten().filter(|note| note.n_type(ENDIAN) == elf::NT_GNU_BUILD_ID);
    let id = ids.find(|note| note.name() == elf::ELF_NOTE_GNU)?.desc();
    (1..=BUILD_ID_BYTES_MAX).contains(&id.len()).then(|| id.to_vec())
}

/// Reads what the file's header points at, and no more than a limited number of headers.
fn headers<'d, R: ReadRef<'d>>(data: R) -> Option<Headers> {
    let head = Head::parse(data).ok()?;
    head.endian().ok()?;
    if head.phnum(ENDIAN, data).ok()? > SEGMENTS_MAX {
        return None;
    }
    let segments = head.program_headers(ENDIAN, data).ok()?;
    let segments = segments.iter().filter_map(segment).collect();
    // A file that was stripped of its section headers still runs.
    let is_counted = head.shnum(ENDIAN, data).is_ok_and(|count| count <= SECTIONS_MAX);
    let sections = if is_counted { head.section_headers(ENDIAN, data).unwrap_or_default() } else { &[] };
    let names = head.section_strings_index(ENDIAN, data).ok();
    let names = names.and_then(|index| sections.get(index.0)).copied().map(Header);
    Some(Headers { segments, sections: sections.iter().copied().map(Header).collect(), names })
}

fn segment(raw: &ProgramHeader64<LittleEndian>) -> Option<Segment> {
    let (offset, size) = (raw.p_offset.get(ENDIAN), raw.p_filesz.get(ENDIAN));
    let file = offset..offset.checked_add(size)?;
    let address = raw.p_vaddr.get(ENDIAN);
    let executable = raw.p_flags.get(ENDIAN).contains(elf::PF_X);
    (raw.p_type.get(ENDIAN) == elf::PT_LOAD).then_some(Segment { file, address, executable })
}

/// How a compressed section says that it was, how long it says that it is without, and the rest of it.
fn compression(raw: &[u8]) -> Option<(Format, u64, &[u8])> {
    let (head, rest) = object::pod::from_bytes::<CompressionHeader64<LittleEndian>>(raw).ok()?;
    let format = match head.ch_type.get(ENDIAN) {
        elf::ELFCOMPRESS_ZLIB => Format::Zlib,
        elf::ELFCOMPRESS_ZSTD => Format::Zstd,
        _ => return None,
    };
    Some((format, head.ch_size.get(ENDIAN), rest))
}

/// A size for readers.
pub(crate) fn in_words(bytes: u64) -> String {
    const LARGE: u64 = 100_000_000;
    let (unit, name) = if bytes < LARGE { (1e6, "MB") } else { (1e9, "GB") };
    format!("{:.1} {name}", bytes as f64 / unit)
}

/// A table of names, each up to its zero byte.
pub(crate) fn strings(names: &[u8]) -> StringTable<'_, &[u8]> {
    StringTable::new(names, 0, names.len() as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn opened(path: &str) -> Option<Elf> {
        Elf::open(Source::File(File::open(path).unwrap()))
    }

    fn this() -> Elf {
        opened("/proc/self/exe").unwrap()
    }

    #[test]
    fn this_program_has_tables_and_a_bias_that_finds_its_code() {
        let elf = this();
        assert!(elf.unwind_tables().eh_frame.is_some() && elf.header(".symtab").is_some());
        assert!(!elf.is_go() && elf.is_dynamic());
        let here = std::fs::read_link("/proc/self/exe").unwrap();
        let maps = dyno_sys::proc::mappings(std::process::id().cast_signed()).unwrap();
        let code = maps.iter().find(|map| map.executable && here.to_str() == Some(&map.path)).unwrap();
        let bias = elf.bias(code.start, code.offset).unwrap();
        let first = maps.iter().find(|map| map.offset == 0 && here.to_str() == Some(&map.path)).unwrap();
        assert_eq!(bias, first.start, "a position-independent program is moved as one");
    }

    #[test]
    fn a_segment_that_begins_within_a_page_is_mapped_from_the_pages_beginning() {
        let segments = vec![
            Segment { file: 0..0x6a8, address: 0x40_0000, executable: false },
            Segment { file: 0x6a8..0x1200, address: 0x40_16a8, executable: true },
        ];
        let elf = Elf { segments, ..this() };
        assert_eq!(elf.bias(0x40_1000, 0), Some(0), "the executable of two that share a page");
        assert_eq!(elf.bias(0x7f00_0000_1000, 0x1000), Some(0x7f00_0000_1000 - 0x40_2000));
        assert_eq!(elf.bias(0x40_1000, 0x9000), None);
    }

    #[test]
    fn what_is_no_code_is_none_and_what_is_too_large_says_its_size() {
        assert!(opened("/proc/self/maps").is_none());
        assert!(opened("/dev/null").is_none());
        let elf = this();
        let symbols = elf.header(".symtab").unwrap();
        assert!(matches!(elf.contents(symbols, 10), Err(Absent::TooLarge(size)) if size > 10));
        let mut torn = *symbols;
        torn.0.sh_size.set(ENDIAN, u64::MAX);
        assert_eq!(elf.contents(&torn, u64::MAX).unwrap_err(), Absent::None);
        assert_eq!(torn.addresses(), Some(0..u64::MAX), "it has no address of its own");
    }

    #[test]
    fn a_file_gives_no_more_than_its_limit_however_often_it_is_asked() {
        let elf = this();
        let symbols = *elf.header(".symtab").unwrap();
        let size = elf.contents(&symbols, u64::MAX).unwrap().len() as u64;
        elf.left.set(2 * size - 1);
        assert!(elf.contents(&symbols, u64::MAX).is_ok());
        assert_eq!(elf.contents(&symbols, u64::MAX).unwrap_err(), Absent::TooLarge(size));
    }
}

//! A file of code (ELF, 64 bits): where its parts lie, and on demand the bytes of a section.
//!
//! Read piece by piece with `pread`, never mapped: a file that is truncated while it is read is an error, not a SIGBUS,
//! and of a file of ten gigabytes only headers and what is asked for are read. Sections beyond a limit are not read; the
//! caller tells the user. Bytes in, places out: what symbols and lines mean is told in `symbol`.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use object::read::{CompressedData, CompressionFormat};

/// Unwind tables beyond this are no tables: the largest browsers have some ten megabytes.
const UNWIND_BYTES_MAX: u64 = 256 << 20;

/// The page that addresses and offsets of segments are rounded to. Larger ones (aarch64) are multiples.
const PAGE: u64 = 0xfff;

/// Values of elf.h.
const ELF_64_LITTLE: &[u8] = b"\x7fELF\x02\x01";
const PT_LOAD: u32 = 1;
const PF_X: u32 = 1;
const SHT_NOBITS: u32 = 8;
const SHF_COMPRESSED: u64 = 1 << 11;
const NT_GNU_BUILD_ID: u32 = 3;

/// Bytes of a section, shared by all who use them.
pub(crate) type Bytes = Arc<[u8]>;

/// A piece of the file that is loaded as one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    file: Range<u64>,
    address: u64,
    executable: bool,
}

/// A section's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// Its name.
    pub(crate) name: String,
    /// Addresses, as the file says them.
    pub(crate) addresses: Range<u64>,
    /// Which other section it belongs to: a symbol table's names.
    pub(crate) link: usize,
    file: Range<u64>,
    compressed: bool,
}

/// A section's bytes and addresses.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// Addresses, as the file says them.
    pub(crate) addresses: Range<u64>,
    /// Its bytes.
    pub(crate) bytes: Bytes,
}

/// Where bytes are read from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A file, piece by piece.
    File(File),
    /// Bytes that never were a file: the vDSO.
    Memory(Vec<u8>),
}

/// A file of code.
#[derive(Debug)]
pub(crate) struct Elf {
    source: Source,
    segments: Vec<Segment>,
    headers: Vec<Header>,
}

/// Why a section's bytes are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// The file has no such section, or it cannot be read.
    None,
    /// It has so many bytes, more than were allowed.
    TooLarge(u64),
}

impl Elf {
    /// Reads the headers; `None` when it is no ELF file of 64 bits, or torn.
    pub(crate) fn open(source: Source) -> Option<Elf> {
        let head = source.read_at(0..64)?;
        if !head.starts_with(ELF_64_LITTLE) {
            return None;
        }
        let segments = table(&source, word(&head, 32)?, half(&head, 54)?, half(&head, 56)?)?;
        let segments = segments.iter().filter_map(|raw| segment(raw)).collect();
        let (size, count) = (half(&head, 58)?, half(&head, 60)?);
        // A file that was stripped of its section headers still runs.
        let raw = table(&source, word(&head, 40)?, size, count).unwrap_or_default();
        let names = raw.get(usize::from(half(&head, 62)?)).and_then(|raw| header(raw, &[]));
        let names = names.and_then(|names| source.read_at(names.file)).unwrap_or_default();
        let headers = raw.iter().filter_map(|raw| header(raw, &names)).collect();
        Some(Elf { source, segments, headers })
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

    /// Whether it asks for a dynamic loader.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.header(".interp").is_some()
    }

    /// The header of a section.
    pub(crate) fn header(&self, name: &str) -> Option<&Header> {
        self.headers.iter().find(|header| header.name == name)
    }

    /// The bytes of a section with few of them.
    pub(crate) fn section(&self, name: &str) -> Option<Section> {
        let header = self.header(name)?;
        let bytes = self.contents(header, UNWIND_BYTES_MAX).ok()?;
        (!bytes.is_empty()).then(|| Section { addresses: header.addresses.clone(), bytes })
    }

    /// The header that another one belongs to.
    pub(crate) fn linked(&self, header: &Header) -> Option<&Header> {
        self.headers.get(header.link)
    }

    /// A section's bytes, uncompressed.
    pub(crate) fn contents(&self, header: &Header, bytes_max: u64) -> Result<Bytes, Absent> {
        let size = header.file.end.saturating_sub(header.file.start);
        if size > bytes_max {
            return Err(Absent::TooLarge(size));
        }
        let raw = self.source.read_at(header.file.clone()).ok_or(Absent::None)?;
        if header.compressed { uncompressed(&raw, bytes_max) } else { Ok(Arc::from(raw)) }
    }

    /// The build-id that the linker wrote.
    pub(crate) fn build_id(&self) -> Option<Vec<u8>> {
        let note = self.section(".note.gnu.build-id")?.bytes;
        let (name_bytes, bytes, kind) = (quad(&note, 0)?, quad(&note, 4)?, quad(&note, 8)?);
        let from = 12 + name_bytes.next_multiple_of(4) as usize;
        let id = note.get(from..from + bytes as usize)?;
        (kind == NT_GNU_BUILD_ID).then(|| id.to_vec())
    }
}

fn segment(raw: &[u8]) -> Option<Segment> {
    let (kind, flags) = (quad(raw, 0)?, quad(raw, 4)?);
    let (offset, address, size) = (word(raw, 8)?, word(raw, 16)?, word(raw, 32)?);
    let file = offset..offset.checked_add(size)?;
    (kind == PT_LOAD).then_some(Segment { file, address, executable: flags & PF_X != 0 })
}

fn header(raw: &[u8], names: &[u8]) -> Option<Header> {
    let (name, kind, flags) = (quad(raw, 0)? as usize, quad(raw, 4)?, word(raw, 8)?);
    let (address, offset, size) = (word(raw, 16)?, word(raw, 24)?, word(raw, 32)?);
    let size_in_file = if kind == SHT_NOBITS { 0 } else { size };
    Some(Header {
        name: String::from_utf8_lossy(text_at(names, name)).into_owned(),
        addresses: address..address.checked_add(size)?,
        link: quad(raw, 40)? as usize,
        file: offset..offset.checked_add(size_in_file)?,
        compressed: flags & SHF_COMPRESSED != 0,
    })
}

/// A compressed section begins with how, how long it is without, and its alignment.
fn uncompressed(raw: &[u8], bytes_max: u64) -> Result<Bytes, Absent> {
    const ZLIB: u32 = 1;
    const ZSTD: u32 = 2;
    const HEADER_BYTES: usize = 24;
    let format = match quad(raw, 0) {
        Some(ZLIB) => CompressionFormat::Zlib,
        Some(ZSTD) => CompressionFormat::Zstandard,
        _ => return Err(Absent::None),
    };
    let uncompressed_size = word(raw, 8).ok_or(Absent::None)?;
    if uncompressed_size > bytes_max {
        return Err(Absent::TooLarge(uncompressed_size));
    }
    let data = raw.get(HEADER_BYTES..).ok_or(Absent::None)?;
    let plain = CompressedData { format, data, uncompressed_size }.decompress();
    plain.map(|bytes| Arc::from(&*bytes)).map_err(|_| Absent::None)
}

/// Rows of a table of headers.
fn table(source: &Source, offset: u64, row_bytes: u16, rows: u16) -> Option<Vec<Vec<u8>>> {
    let size = u64::from(row_bytes) * u64::from(rows);
    let bytes = source.read_at(offset..offset.checked_add(size)?)?;
    Some(bytes.chunks_exact(usize::from(row_bytes).max(1)).map(<[u8]>::to_vec).collect())
}

impl Source {
    /// Bytes that are really there: what a header claims may be anything.
    fn read_at(&self, range: Range<u64>) -> Option<Vec<u8>> {
        let size = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        match self {
            Source::Memory(bytes) => {
                let start = usize::try_from(range.start).ok()?;
                bytes.get(start..start.checked_add(size)?).map(<[u8]>::to_vec)
            }
            Source::File(file) => {
                if range.end > file.metadata().ok()?.len() {
                    return None;
                }
                let mut bytes = vec![0; size];
                file.read_exact_at(&mut bytes, range.start).ok()?;
                Some(bytes)
            }
        }
    }
}

/// A name in a table of names.
pub(crate) fn text_at(names: &[u8], at: usize) -> &[u8] {
    names.get(at..).and_then(|rest| rest.split(|byte| *byte == 0).next()).unwrap_or_default()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Four bytes as a number.
pub(crate) fn quad(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Eight bytes as a number.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
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
        assert!(elf.section(".eh_frame").is_some() && elf.header(".symtab").is_some());
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
        let torn = Header { file: 0..u64::MAX, ..symbols.clone() };
        assert_eq!(elf.contents(&torn, u64::MAX).unwrap_err(), Absent::None);
    }
}

//! What tells one program's code from another's.
//!
//! Two builds of the same source with the same flags may differ in a time stamp, a path or a build id and be the same program.
//! So of an ELF file the sections are digested that hold instructions; of any other file all of it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// Larger files are no programs that anybody builds for a climb.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// `PT_LOAD` and `SHT_NOBITS`, and the flags of what is executed (`elf.h`).
const LOAD: u32 = 1;
const NOBITS: u32 = 8;
const EXECUTED_SEGMENT: u64 = 1;
const EXECUTED_SECTION: u64 = 4;

/// A digest of a program's code in twelve letters, and how many bytes it is.
pub(super) fn code_of(path: &Path) -> io::Result<(String, usize)> {
    let file = File::open(path)?;
    if file.metadata()?.len() > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    let parts = parts(&bytes);
    let mut digest = Sha256::new();
    parts.iter().for_each(|part| digest.update(part));
    let hex: String = digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    Ok((hex, parts.iter().map(|part| part.len()).sum()))
}

/// The parts with instructions: of the sections where there are any, else of the segments; everything where it is no ELF file
/// of 64 bits in this machine's order.
fn parts(bytes: &[u8]) -> Vec<&[u8]> {
    let elf = bytes.starts_with(b"\x7fELF\x02\x01") && cfg!(target_endian = "little");
    let found = if elf { executed_sections(bytes).or_else(|| executed_segments(bytes)) } else { None };
    found.unwrap_or_else(|| vec![bytes])
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut eight = [0; 8];
    eight[..N].copy_from_slice(bytes.get(at..at.checked_add(N)?)?);
    Some(u64::from_le_bytes(eight))
}

/// Entries of a table whose place, size and count stand in the file's head.
fn table(bytes: &[u8], place: usize, size: usize, count: usize) -> Option<impl Iterator<Item = &[u8]>> {
    let at = usize::try_from(number::<8>(bytes, place)?).ok()?;
    let size = usize::try_from(number::<2>(bytes, size)?).ok()?;
    let count = usize::try_from(number::<2>(bytes, count)?).ok()?;
    let whole = bytes.get(at..at.checked_add(size.checked_mul(count)?)?)?;
    (at > 0 && count > 0 && size >= 56).then(|| whole.chunks_exact(size))
}

fn slice(bytes: &[u8], offset: Option<u64>, length: Option<u64>) -> Option<&[u8]> {
    let (offset, length) = (usize::try_from(offset?).ok()?, usize::try_from(length?).ok()?);
    bytes.get(offset..offset.checked_add(length)?)
}

/// By the section headers (`Elf64_Shdr`): type at 4, flags at 8, offset at 24, size at 32.
fn executed_sections(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let executed = |head: &&[u8]| {
        number::<8>(head, 8).is_some_and(|flags| flags & EXECUTED_SECTION != 0)
            && number::<4>(head, 4) != Some(u64::from(NOBITS))
    };
    let heads = table(bytes, 0x28, 0x3a, 0x3c)?.filter(executed);
    let parts: Option<Vec<_>> =
        heads.map(|head| slice(bytes, number::<8>(head, 24), number::<8>(head, 32))).collect();
    parts.filter(|parts| !parts.is_empty())
}

/// By the program headers (`Elf64_Phdr`): type at 0, flags at 4, offset at 8, size in the file at 32.
fn executed_segments(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let executed = |head: &&[u8]| {
        number::<4>(head, 0) == Some(u64::from(LOAD))
            && number::<4>(head, 4).is_some_and(|flags| flags & EXECUTED_SEGMENT != 0)
    };
    let heads = table(bytes, 0x20, 0x36, 0x38)?.filter(executed);
    let parts: Option<Vec<_>> =
        heads.map(|head| slice(bytes, number::<8>(head, 8), number::<8>(head, 32))).collect();
    parts.filter(|parts| !parts.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn own() -> Vec<u8> {
        std::fs::read("/proc/self/exe").unwrap()
    }

    /// Planted fault: the whole file is digested, and a changed byte of its data counts as another program.
    #[test]
    fn what_is_no_instruction_does_not_tell_programs_apart() {
        let mut bytes = own();
        let whole = bytes.len();
        let code: Vec<Vec<u8>> = parts(&bytes).into_iter().map(<[u8]>::to_vec).collect();
        assert!((1_000..whole).contains(&code.iter().map(Vec::len).sum()), "a part of the file is code");
        // Padding of the file's identification, which nothing reads.
        bytes[15] ^= 1;
        assert_eq!(parts(&bytes), code);
        let text = parts(&bytes).iter().map(|part| part.len()).max().unwrap();
        let at = bytes.windows(text).position(|window| code.iter().any(|part| part == window)).unwrap();
        bytes[at + text / 2] ^= 1;
        assert_ne!(parts(&bytes), code);
    }

    #[test]
    fn without_section_headers_the_segments_are_taken_and_what_is_no_program_is_taken_whole() {
        let mut bytes = own();
        bytes[0x28..0x30].fill(0);
        assert!((1_000..bytes.len()).contains(&parts(&bytes).iter().map(|part| part.len()).sum()));
        assert_eq!(parts(b"PK\x03\x04 a jar"), [b"PK\x03\x04 a jar"]);
        for cut in [0, 4, 6, 0x27, 0x3d, 0x40, 200, 4_096] {
            assert_eq!(parts(&bytes[..cut]).len(), 1, "cut at {cut}");
        }
    }
}

//! Where a file's bytes come from: a file, piece by piece, or memory that never was one.
//!
//! Read with `pread`, never mapped: a file that is truncated while it is read is an error, not a SIGBUS, and of a file of ten
//! gigabytes only what is asked for is read. What lies beyond the file's end is never made room for.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// `O_NONBLOCK`: opening a pipe without a writer would wait for one for ever. The same on x86-64 and arm64.
const NONBLOCK: i32 = 0o4000;

/// Where bytes are read from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A file, piece by piece.
    File(File),
    /// Bytes that never were a file: the vDSO.
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a path that a stranger may have named: whatever is no regular file is left alone, since opening a device
    /// may do something.
    pub(crate) fn open(path: &Path) -> Option<Source> {
        let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
        if !is_file {
            return None;
        }
        let file = File::options().read(true).custom_flags(NONBLOCK).open(path).ok()?;
        // Another thing may have taken its place since it was looked at.
        file.metadata().is_ok_and(|found| found.is_file()).then_some(Source::File(file))
    }

    /// Bytes in all.
    pub(crate) fn len(&self) -> io::Result<u64> {
        match self {
            Source::File(file) => Ok(file.metadata()?.len()),
            Source::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// Bytes that are really there: what a header claims may be anything.
    pub(crate) fn read_at(&self, range: Range<u64>) -> Option<Vec<u8>> {
        let size = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        if range.end > self.len().ok()? {
            return None;
        }
        match self {
            Source::Memory(bytes) => {
                let start = usize::try_from(range.start).ok()?;
                bytes.get(start..start.checked_add(size)?).map(<[u8]>::to_vec)
            }
            Source::File(file) => {
                let mut bytes = vec![0; size];
                file.read_exact_at(&mut bytes, range.start).ok()?;
                Some(bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_no_file_is_not_opened_and_what_is_not_there_is_not_read() {
        assert!(Source::open(Path::new("/dev/zero")).is_none());
        assert!(Source::open(Path::new("/proc/self")).is_none());
        let here = Source::open(Path::new("/proc/self/exe")).unwrap();
        assert_eq!(here.read_at(0..4).unwrap(), b"\x7fELF");
        let end = here.len().unwrap();
        assert_eq!((here.read_at(end..end + 1), here.read_at(0..u64::MAX)), (None, None));
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = here.read_at(4..0);
        assert_eq!(backwards, None);
        assert_eq!(Source::Memory(vec![1, 2, 3]).read_at(1..3).unwrap(), [2, 3]);
        assert_eq!(Source::Memory(vec![1, 2, 3]).read_at(1..4), None);
    }
}

//! Debug information that is read no more often than it is long.
//!
//! What is made of debug information grows with what is read of it, and a stranger's file can have the same bytes read over
//! and over: a thousand units that share one table of abbreviations, one line program, or one list of ranges. Each byte
//! that is read, looked through or copied is therefore counted, over all sections of a file together; a file that wants
//! more than an honest one needs ends there, as if it were torn.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use gimli::{EndianArcSlice, Error, LittleEndian, Reader, ReaderOffsetId, Result};

use crate::image::elf::Bytes;

/// How often each byte may be read. Programs of C, C++, Rust and Go are read 0.8 to 1.5 times until every address has its
/// name, and as often until every function has its code. What is made of a byte is below 64 bytes (a row of a line program,
/// of a list of ranges, a part of an abbreviation), so a file makes at most 512 times as much as its debug information has.
const READS_MAX: u64 = 8;

/// What a small file may have beyond that: its abbreviations are few and are read again for each unit.
const READS_MIN: u64 = 64 << 10;

/// What is left of a file's reads, shared by all of its sections.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter(Rc<Cell<u64>>);

impl Meter {
    /// For sections of so many bytes together.
    pub(super) fn set(&self, bytes: u64) {
        self.0.set(bytes.saturating_mul(READS_MAX).saturating_add(READS_MIN));
    }

    fn spend(&self, bytes: usize, at: ReaderOffsetId) -> Result<()> {
        let left = self.0.get().checked_sub(bytes as u64).ok_or(Error::UnexpectedEof(at))?;
        self.0.set(left);
        Ok(())
    }
}

/// Bytes of a section, shared, and the meter of its file.
#[derive(Debug, Clone)]
pub(crate) struct Metered {
    bytes: EndianArcSlice<LittleEndian>,
    meter: Meter,
}

impl Metered {
    pub(super) fn new(bytes: Bytes, meter: &Meter) -> Metered {
        Metered { bytes: EndianArcSlice::new(bytes, LittleEndian), meter: meter.clone() }
    }

    /// What is left of it, uncounted: for names, which are looked at again and again.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }
}

impl Reader for Metered {
    type Endian = LittleEndian;
    type Offset = usize;

    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn empty(&mut self) {
        self.bytes.empty();
    }

    fn truncate(&mut self, length: usize) -> Result<()> {
        self.bytes.truncate(length)
    }

    fn offset_from(&self, base: &Metered) -> usize {
        self.bytes.offset_from(&base.bytes)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        self.bytes.offset_id()
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        self.bytes.lookup_offset_id(id)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let found = self.bytes.find(byte);
        // Looked through to the end where it is not there.
        self.meter.spend(*found.as_ref().unwrap_or(&self.bytes.len()), self.offset_id())?;
        found
    }

    fn skip(&mut self, length: usize) -> Result<()> {
        self.meter.spend(1, self.offset_id())?;
        self.bytes.skip(length)
    }

    fn split(&mut self, length: usize) -> Result<Metered> {
        self.meter.spend(1, self.offset_id())?;
        Ok(Metered { bytes: self.bytes.split(length)?, meter: self.meter.clone() })
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        self.meter.spend(self.bytes.len(), self.offset_id())?;
        self.bytes.to_slice()
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        self.meter.spend(self.bytes.len(), self.offset_id())?;
        self.bytes.to_string()
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        self.meter.spend(self.bytes.len(), self.offset_id())?;
        self.bytes.to_string_lossy()
    }

    fn read_slice(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.meter.spend(buffer.len(), self.offset_id())?;
        self.bytes.read_slice(buffer)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn all_readers_of_a_file_spend_from_one_purse_until_it_is_empty() {
        let meter = Meter::default();
        let text = Bytes::from(&b"abcdefgh\0tail"[..]);
        let (mut first, second) = (Metered::new(text.clone(), &meter), Metered::new(text, &meter));
        meter.0.set(4 + 8 + 1 + 1);
        assert_eq!(first.read_u32().unwrap(), u32::from_le_bytes(*b"abcd"));
        assert_eq!(second.find(0).unwrap(), 8);
        first.skip(1).unwrap();
        let mut split = first.split(2).unwrap();
        assert_eq!((split.bytes(), meter.0.get()), (&b"fg"[..], 0));
        assert!(
            split.read_u8().is_err() && first.clone().skip(1).is_err() && second.to_string_lossy().is_err()
        );
        assert_eq!(first.bytes(), b"h\0tail", "a name is looked at for nothing");
    }

    #[test]
    fn what_is_not_there_is_looked_for_to_the_end_and_counted() {
        let meter = Meter::default();
        meter.set(1);
        let before = meter.0.get();
        assert!(Metered::new(Bytes::from(&b"abc"[..]), &meter).find(0).is_err());
        assert_eq!(before - meter.0.get(), 3);
    }
}

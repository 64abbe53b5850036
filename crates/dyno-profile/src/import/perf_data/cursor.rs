//! Little-endian numbers from bytes that may end anywhere.

use crate::import::gather::error::ImportError;

/// A place in the file and what follows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'f> {
    rest: &'f [u8],
    place: u64,
}

impl<'f> Cursor<'f> {
    /// A part of a file; none when the file is shorter.
    pub(super) fn of(file: &'f [u8], from: u64, bytes: u64) -> Option<Cursor<'f>> {
        let start = usize::try_from(from).ok()?;
        let end = start.checked_add(usize::try_from(bytes).ok()?)?;
        Some(Cursor { rest: file.get(start..end)?, place: from })
    }

    /// Bytes from the file's beginning.
    pub(super) fn place(&self) -> u64 {
        self.place
    }

    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn take(&mut self, bytes: usize) -> Option<&'f [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        (self.rest, self.place) = (rest, self.place + bytes as u64);
        Some(taken)
    }

    pub(super) fn skip(&mut self, bytes: u64) -> Option<()> {
        self.take(usize::try_from(bytes).ok()?).map(|_| ())
    }

    /// The next bytes as a file of their own.
    pub(super) fn part(&mut self, bytes: usize) -> Option<Cursor<'f>> {
        let place = self.place;
        self.take(bytes).map(|rest| Cursor { rest, place })
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A text that ends with a zero byte, or here.
    pub(super) fn text(&mut self) -> &'f str {
        let end = self.rest.iter().position(|byte| *byte == 0).unwrap_or(self.rest.len());
        let text = &self.rest[..end];
        // Names of files and threads are bytes to the kernel: what is no text is shown up to there.
        match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
        }
    }

    /// A text with its length before it.
    pub(super) fn counted_text(&mut self) -> Option<&'f str> {
        let bytes = self.u32()? as usize;
        Some(self.part(bytes)?.text())
    }

    /// A file that ends too early, or contradicts itself, here.
    pub(super) fn damaged(&self, what: &'static str) -> ImportError {
        ImportError::Damaged { what, at: self.place }
    }
}

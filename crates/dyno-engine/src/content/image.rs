//! The image of a folder: all bodies and what is known of them in one sealed piece of memory, made once and mapped by every
//! worker.
//!
//! `build` writes it, `load` reads it. It comes from a process that handles what others have written, so that a reader
//! believes none of its numbers: whatever cannot be is an error.

use crate::file::Facts;
use dyno_proto::semantics::coding::Coding;
use dyno_sys::memfd;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;

/// What an image ends with: where its records are, how long they are, and the form's name.
const END_BYTES: usize = 24;
const FORM: [u8; 8] = *b"dyno-c/2";

/// Images of this many bytes and more are filled up to whole huge pages and put into such: less than the half of one would
/// be mostly filling.
const HUGE_BYTES_MIN: u64 = 1 << 20;

/// Bytes of a large file that are read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes within an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    at: u64,
    bytes: u64,
}

/// A file as an image has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Escaped as in a request, with its first slash.
    pub(crate) path: String,
    pub(crate) media: String,
    pub(crate) modified_s: u64,
    pub(crate) plain: Plain,
    pub(crate) coded: Vec<Coded>,
}

/// A file as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Plain {
    Here(Tagged),
    /// In its file, which each worker opens for itself and sends as long as it is so.
    InFile(Facts),
}

/// A file in a coding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Coded {
    /// Its registered name.
    pub(crate) coding: String,
    pub(crate) body: Tagged,
}

/// Bytes with a tag that no other bytes have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tagged {
    pub(crate) tag: String,
    pub(crate) span: Span,
}

/// An image in the making.
pub(crate) struct Writer {
    file: BufWriter<File>,
    bytes: u64,
    bytes_max: u64,
}

impl Writer {
    /// An empty one that takes so many bytes of bodies.
    pub(crate) fn new(bytes_max: u64) -> io::Result<Writer> {
        Ok(Writer { file: BufWriter::new(memfd::create(c"dyno-content")?), bytes: 0, bytes_max })
    }

    /// One whose memory takes nothing, as when there is none left.
    #[cfg(test)]
    pub(crate) fn broken() -> Writer {
        let file = File::open("/dev/null").expect("there is one everywhere");
        Writer { file: BufWriter::new(file), bytes: 0, bytes_max: u64::MAX }
    }

    /// Adds a body; `None` when there is no room for it.
    pub(crate) fn add(&mut self, body: &[u8]) -> io::Result<Option<Span>> {
        let bytes = body.len() as u64;
        if !self.has_room(bytes) {
            return Ok(None);
        }
        let span = Span { at: self.bytes, bytes };
        self.file.write_all(body)?;
        self.bytes += bytes;
        Ok(Some(span))
    }

    /// Whether a body of so many bytes finds room.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        bytes <= self.bytes_max.saturating_sub(self.bytes)
    }

    /// Adds the first `bytes` bytes of a file, for which there is room; `None` when it has fewer, or they cannot be read.
    ///
    /// # Errors
    /// Only those of the image itself, to which nothing can be added after one.
    pub(crate) fn add_file(&mut self, file: &File, bytes: u64) -> io::Result<Option<Span>> {
        let span = Span { at: self.bytes, bytes };
        let mut piece = vec![0; PIECE_BYTES];
        let mut left = bytes;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
            match (&*file).read(&mut piece[..most]) {
                Ok(0) => break,
                Ok(count) => {
                    self.file.write_all(&piece[..count])?;
                    left -= count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if left > 0 {
            self.take_back(span)?;
            return Ok(None);
        }
        self.bytes += bytes;
        Ok(Some(span))
    }

    /// Forgets what was added last.
    pub(crate) fn take_back(&mut self, span: Span) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(span.at))?;
        self.file.get_ref().set_len(span.at)?;
        self.bytes = span.at;
        Ok(())
    }

    /// Adds the records and seals it all.
    pub(crate) fn finish(mut self, records: &[Record]) -> io::Result<File> {
        let text = serde_json::to_vec(records)?;
        let end_bytes = text.len() as u64 + END_BYTES as u64;
        if self.bytes >= HUGE_BYTES_MIN {
            let whole = (self.bytes + end_bytes).next_multiple_of(memfd::HUGE_BYTES as u64);
            let gap = whole - end_bytes - self.bytes;
            io::copy(&mut io::repeat(0).take(gap), &mut self.file)?;
            self.bytes += gap;
        }
        self.file.write_all(&text)?;
        for piece in [self.bytes.to_le_bytes(), (text.len() as u64).to_le_bytes(), FORM] {
            self.file.write_all(&piece)?;
        }
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        if self.bytes >= HUGE_BYTES_MIN {
            let whole = usize::try_from(self.bytes + end_bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
            // Where there are none it stands in small ones.
            let _ = memfd::make_huge(&file, whole);
        }
        memfd::seal(&file)?;
        Ok(file)
    }
}

/// The records of an image.
pub(crate) fn records(image: &[u8]) -> io::Result<Vec<Record>> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "this is no image of a folder");
    let (rest, end) = image.split_last_chunk::<END_BYTES>().ok_or_else(wrong)?;
    let number = |at: usize| {
        let bytes = end[at..].first_chunk().expect("an end has three numbers");
        usize::try_from(u64::from_le_bytes(*bytes)).map_err(|_| wrong())
    };
    let (at, bytes) = (number(0)?, number(8)?);
    if end[16..] != FORM || at.checked_add(bytes) != Some(rest.len()) {
        return Err(wrong());
    }
    let records: Vec<Record> = serde_json::from_slice(&rest[at..])?;
    let spans = records.iter().flat_map(Record::spans);
    if spans.into_iter().all(|span| span.is_within(at as u64)) { Ok(records) } else { Err(wrong()) }
}

impl Record {
    fn spans(&self) -> Vec<Span> {
        let plain = match &self.plain {
            Plain::Here(body) => Some(body.span),
            Plain::InFile(_) => None,
        };
        plain.into_iter().chain(self.coded.iter().map(|coded| coded.body.span)).collect()
    }
}

impl Coded {
    /// `None` for one that this program does not know.
    pub(crate) fn coding(&self) -> Option<Coding> {
        Coding::of_name(self.coding.as_bytes()).filter(|coding| *coding != Coding::Identity)
    }
}

impl Span {
    /// Where the bytes are, for who has asked [`records`].
    pub(crate) fn range(self) -> Range<usize> {
        let at = |number: u64| {
            usize::try_from(number).expect("an image is mapped, so that its bytes can be counted")
        };
        at(self.at)..at(self.at + self.bytes)
    }

    pub(crate) fn bytes(self) -> u64 {
        self.bytes
    }

    fn is_within(self, bytes: u64) -> bool {
        self.at.checked_add(self.bytes).is_some_and(|end| end <= bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_sys::memfd::Mapping;

    fn record(span: Span) -> Record {
        let body = Tagged { tag: "t".to_owned(), span };
        let coded = vec![Coded { coding: "br".to_owned(), body: body.clone() }];
        Record { path: "/a".into(), media: "a/b".into(), modified_s: 7, plain: Plain::Here(body), coded }
    }

    #[test]
    fn what_was_written_is_read() {
        let mut writer = Writer::new(10).unwrap();
        let span = writer.add(b"12345").unwrap().unwrap();
        assert_eq!(writer.add(b"123456").unwrap(), None, "there is no room");
        let other = writer.add(b"67890").unwrap().unwrap();
        let written = [record(span), record(other)];
        let mapping = Mapping::of_sealed(writer.finish(&written).unwrap()).unwrap();
        let read = records(mapping.as_ref()).unwrap();
        assert_eq!(read, written);
        assert_eq!((&mapping.as_ref()[other.range()], other.bytes()), (&b"67890"[..], 5));
    }

    #[test]
    fn what_was_taken_back_leaves_no_trace() {
        let path = std::env::temp_dir().join(format!("dyno-image-{}", std::process::id()));
        std::fs::write(&path, vec![7; 3 << 20]).unwrap();
        let open = || File::open(&path).unwrap();
        let mut writer = Writer::new(4 << 20).unwrap();
        let first = writer.add(b"12345").unwrap().unwrap();
        let second = writer.add_file(&open(), 3 << 20).unwrap().unwrap();
        writer.take_back(second).unwrap();
        assert_eq!(writer.add_file(&open(), (3 << 20) + 1).unwrap(), None, "it has fewer");
        let third = writer.add(b"67890").unwrap().unwrap();
        let records_of = [record(first), record(third)];
        let mapping = Mapping::of_sealed(writer.finish(&records_of).unwrap()).unwrap();
        assert_eq!(records(mapping.as_ref()).unwrap(), records_of);
        assert_eq!((third.range(), &mapping.as_ref()[third.range()]), (5..10, &b"67890"[..]));
        let mut writer = Writer::new(4 << 20).unwrap();
        let large = writer.add_file(&open(), 3 << 20).unwrap().unwrap();
        let mapping = Mapping::of_sealed(writer.finish(&[record(large)]).unwrap()).unwrap();
        assert_eq!(mapping.as_ref().len(), 4 << 20, "whole huge pages");
        assert_eq!(records(mapping.as_ref()).unwrap(), [record(large)]);
        assert!(mapping.as_ref()[large.range()].iter().all(|byte| *byte == 7));
        std::fs::remove_file(path).unwrap();
    }

    /// Red where a file's errors and the image's are one: a file would be left out, and the image go on with a hole.
    #[test]
    fn only_what_the_image_does_not_take_is_an_error() {
        let path = std::env::temp_dir().join(format!("dyno-image-errors-{}", std::process::id()));
        std::fs::write(&path, vec![7; 3 << 20]).unwrap();
        let unreadable = File::options().write(true).open(&path).unwrap();
        let mut writer = Writer::new(4 << 20).unwrap();
        assert_eq!(writer.add_file(&unreadable, 3 << 20).unwrap(), None, "it cannot be read");
        assert_eq!(writer.add(b"12345").unwrap().unwrap().range(), 0..5, "and leaves no trace");
        assert!(Writer::broken().add_file(&File::open(&path).unwrap(), 3 << 20).is_err());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_image_that_cannot_be_is_refused() {
        let bad = [Span { at: 0, bytes: 6 }, Span { at: u64::MAX, bytes: 2 }, Span { at: 6, bytes: 0 }];
        for span in bad {
            let mut writer = Writer::new(10).unwrap();
            writer.add(b"12345").unwrap();
            let mapping = Mapping::of_sealed(writer.finish(&[record(span)]).unwrap()).unwrap();
            assert!(records(mapping.as_ref()).is_err(), "{span:?}");
        }
        let mut writer = Writer::new(10).unwrap();
        let span = writer.add(b"12345").unwrap().unwrap();
        let mapping = Mapping::of_sealed(writer.finish(&[record(span)]).unwrap()).unwrap();
        let whole = mapping.as_ref();
        for cut in 0..whole.len() {
            assert!(
                records(&whole[..cut]).is_err() && (cut == 0 || records(&whole[cut..]).is_err()),
                "cut at {cut}"
            );
        }
    }
}

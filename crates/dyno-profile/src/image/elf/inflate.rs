//! Compressed sections, decompressed in pieces: the size that a header claims is not trusted.
//!
//! The reader of files calls it. Memory grows with what really comes out, up to a limit of the caller's, and never with
//! what a header says.

use std::io::{self, Read};

use flate2::read::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

/// What zstd looks back over at its usual levels, up to 19. A section that is larger may be looked back over as a whole.
const WINDOW_BYTES_MAX: u64 = 8 << 20;

/// How a section was compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Zlib,
    Zstd,
}

/// `size` bytes that come of these; `None` when fewer come, or none.
pub(super) fn inflated(format: Format, compressed: &[u8], size: u64) -> Option<Vec<u8>> {
    let plain = match format {
        Format::Zlib => taken(ZlibDecoder::new(compressed), size),
        Format::Zstd => frames(compressed, size),
    };
    plain.ok().filter(|plain| plain.len() as u64 == size)
}

/// At most `size` bytes.
fn taken(reader: impl Read, size: u64) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    reader.take(size).read_to_end(&mut plain)?;
    Ok(plain)
}

/// All frames, one after the other: linkers compress the parts of a section beside each other.
fn frames(mut compressed: &[u8], size: u64) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    while !compressed.is_empty() && (plain.len() as u64) < size {
        let window = size.max(WINDOW_BYTES_MAX);
        match StreamingDecoder::new_with_max_window_size(&mut compressed, window) {
            Ok(frame) => plain.extend(taken(frame, size - plain.len() as u64)?),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                compressed = compressed.get(length as usize..).unwrap_or_default();
            }
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    /// A frame of one block that says a byte so many times (RFC 8878 §3.1.1).
    fn frame(byte: u8, times: u32) -> Vec<u8> {
        let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0];
        out.extend(&(times << 3 | 1 << 1 | 1).to_le_bytes()[..3]);
        out.push(byte);
        out
    }

    #[test]
    fn a_section_is_what_all_its_frames_say_and_not_more_than_it_claims() {
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0][..], b"xx"].concat();
        let all = [frame(b'a', 3), skipped, frame(b'b', 2)].concat();
        assert_eq!(inflated(Format::Zstd, &all, 5).unwrap(), b"aaabb");
        assert_eq!(inflated(Format::Zstd, &all, 4).unwrap(), b"aaab");
        assert_eq!(inflated(Format::Zstd, &all, 6), None, "fewer than it claims");
        for cut in 0..all.len() {
            assert_eq!(inflated(Format::Zstd, &all[..cut], 5), None, "cut at {cut}");
        }
        // A window of 128 MiB for nothing.
        let mut wide = frame(b'a', 3);
        wide[5] = 0x88;
        assert_eq!(inflated(Format::Zstd, &wide, 3), None);
    }

    #[test]
    fn zlib_is_cut_where_it_says_more_and_refused_where_it_says_less() {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"sections and symbols").unwrap();
        let compressed = encoder.finish().unwrap();
        assert_eq!(inflated(Format::Zlib, &compressed, 8).unwrap(), b"sections");
        assert_eq!(inflated(Format::Zlib, &compressed, 20).unwrap(), b"sections and symbols");
        assert_eq!(inflated(Format::Zlib, &compressed, 21), None);
        assert_eq!(inflated(Format::Zlib, b"nonsense", 3), None);
    }
}

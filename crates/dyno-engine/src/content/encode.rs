//! Codings: which files are worth encoding, making a coding, and checking one that somebody else has made.
//!
//! `build` calls it, in a thread or process that serves nobody: encoding once may take long.

use dyno_proto::semantics::coding::Coding;
use flate2::Compression;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, Read, Write};

/// Below this a reply's head is longer than what could be saved, and it fits one packet in any case.
pub(crate) const BYTES_MIN: u64 = 256;

/// Above this a file is not encoded: at the slowest setting that takes some seconds of one CPU.
pub(crate) const BYTES_MAX: u64 = 10 << 20;

/// Brotli's slowest quality makes half a megabyte per second; beyond this many bytes the one that makes ten is used.
const BR_BEST_BYTES_MAX: usize = 1 << 20;

/// The codings that a file may be kept in: made here, or found beside it. zstd is made where the program was built with it.
pub(crate) const KEPT: [Coding; 4] = [Coding::Br, Coding::Zstd, Coding::Gzip, Coding::Deflate];

/// The window that a client must have for zstd (RFC 9659 §3). A form that was made with a larger one is not sent.
const ZSTD_WINDOW_BYTES_MAX: u64 = 8 << 20;

/// Whether a coding is made here, and not only found beside a file.
pub(crate) fn is_made(coding: Coding) -> bool {
    coding != Coding::Identity && (coding != Coding::Zstd || cfg!(feature = "zstd"))
}

/// A coding with the ending of files that hold it.
pub(crate) const SIBLINGS: [(Coding, &[u8]); 3] =
    [(Coding::Gzip, b".gz"), (Coding::Br, b".br"), (Coding::Zstd, b".zst")];

/// What names an encoder in a cache: another one, or another setting, makes other bytes.
pub(crate) fn encoder(coding: Coding) -> &'static str {
    match coding {
        Coding::Identity => "identity",
        Coding::Gzip => "gzip-9-zlib-rs",
        Coding::Deflate => "deflate-9-zlib-rs",
        Coding::Br => "br-11-22-brotli",
        Coding::Zstd => "zstd-19-structured",
    }
}

/// Whether files of this media type become smaller: texts, and the few binary forms that are not packed already.
pub(crate) fn is_worthwhile(media: &str) -> bool {
    const OTHERS: [&str; 16] = [
        "application/javascript",
        "application/json",
        "application/ld+json",
        "application/manifest+json",
        "application/rss+xml",
        "application/atom+xml",
        "application/rtf",
        "application/wasm",
        "application/x-javascript",
        "application/xhtml+xml",
        "application/xml",
        "application/vnd.ms-fontobject",
        "font/otf",
        "font/ttf",
        "image/bmp",
        "image/x-icon",
    ];
    let bare = media.split(';').next().unwrap_or_default();
    bare.starts_with("text/") || bare.ends_with("+xml") || bare.ends_with("+json") || OTHERS.contains(&bare)
}

/// Whether an encoded form is worth keeping: it saves a twentieth, and more than its own header line.
pub(crate) fn is_smaller(encoded: usize, plain: usize) -> bool {
    encoded + b"Content-Encoding: deflate\r\n".len() < plain - plain / 20
}

/// The bytes in a coding.
pub(crate) fn encode(coding: Coding, plain: &[u8]) -> io::Result<Vec<u8>> {
    match coding {
        Coding::Identity => Ok(plain.to_vec()),
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(plain)?;
            encoder.finish()
        }
        Coding::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(plain)?;
            encoder.finish()
        }
        Coding::Br => {
            let quality = if plain.len() <= BR_BEST_BYTES_MAX { 11 } else { 9 };
            let params = brotli::enc::BrotliEncoderParams { quality, ..Default::default() };
            let mut out = Vec::new();
            brotli::BrotliCompress(&mut &plain[..], &mut out, &params)?;
            Ok(out)
        }
        Coding::Zstd => zstd(plain),
    }
}

/// The level from which on more costs much and brings nothing on files of this size.
#[cfg(feature = "zstd")]
fn zstd(plain: &[u8]) -> io::Result<Vec<u8>> {
    use structured_zstd::encoding::{CompressionLevel, compress_to_vec};
    let form = compress_to_vec(plain, CompressionLevel::from_level(19));
    // Another program's decoder must understand it: what it does not is not kept.
    if encodes(Coding::Zstd, &form, plain) {
        Ok(form)
    } else {
        Err(io::Error::new(io::ErrorKind::Unsupported, "zstd asks for too large a window, or is wrong"))
    }
}

#[cfg(not(feature = "zstd"))]
fn zstd(_plain: &[u8]) -> io::Result<Vec<u8>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this program was built without zstd"))
}

/// Unpacks one frame of zstd, with nothing behind it and a window that every client has.
fn unzstd(encoded: &[u8], limit: u64, out: &mut Vec<u8>) -> io::Result<usize> {
    let mut rest = encoded;
    let decoder = StreamingDecoder::new_with_max_window_size(&mut rest, ZSTD_WINDOW_BYTES_MAX);
    let read = decoder.map_err(io::Error::other)?.take(limit).read_to_end(out)?;
    if rest.is_empty() { Ok(read) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Whether these bytes are exactly `plain` in a coding. No more than `plain` is long is ever unpacked.
pub(crate) fn encodes(coding: Coding, encoded: &[u8], plain: &[u8]) -> bool {
    let limit = plain.len() as u64 + 1;
    let mut out = Vec::new();
    let read = match coding {
        Coding::Identity => return encoded == plain,
        Coding::Gzip => MultiGzDecoder::new(encoded).take(limit).read_to_end(&mut out),
        Coding::Deflate => ZlibDecoder::new(encoded).take(limit).read_to_end(&mut out),
        Coding::Br => brotli::Decompressor::new(encoded, 4_096).take(limit).read_to_end(&mut out),
        Coding::Zstd => unzstd(encoded, limit, &mut out),
    };
    read.is_ok() && out == plain
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_encoded_is_what_it_was() {
        let text = b"one two three one two three ".repeat(200);
        for coding in KEPT.into_iter().filter(|coding| is_made(*coding)) {
            let encoded = encode(coding, &text).unwrap();
            assert!(encoded.len() < text.len() / 10 && encodes(coding, &encoded, &text), "{coding:?}");
            assert!(
                !encodes(coding, &encoded, &text[1..])
                    && !encodes(coding, &encoded, &[&text[..], b"x"].concat())
            );
            assert!(!encodes(coding, &encoded[..encoded.len() - 1], &text), "{coding:?} cut short");
            assert!(!encodes(coding, b"none of it", &text));
            assert!(encodes(coding, &encode(coding, b"").unwrap(), b""));
        }
        // RFC 9110 §8.4.1.2: deflate is the zlib format, whose first byte says so.
        assert_eq!(encode(Coding::Deflate, b"x").unwrap()[0], 0x78);
        assert_eq!(encode(Coding::Gzip, b"x").unwrap()[..2], [0x1f, 0x8b]);
    }

    #[test]
    fn zstd_is_one_frame_of_a_window_that_every_client_has() {
        use ruzstd::encoding::{CompressionLevel, compress_to_vec};
        let text = b"one two three one two three ".repeat(200);
        let encoded = compress_to_vec(&text[..], CompressionLevel::Fastest);
        assert!(encodes(Coding::Zstd, &encoded, &text) && !encodes(Coding::Zstd, &encoded, &text[1..]));
        assert!(!encodes(Coding::Zstd, &[&encoded[..], b"x"].concat(), &text), "something behind it");
        assert!(!encodes(Coding::Zstd, &encoded[..encoded.len() - 1], &text), "cut short");
        // A frame that says that its window has 16 MiB: exponent 14, no mantissa (RFC 8878, 3.1.1.1.2), one raw block "x".
        let frame =
            |window: u8| [&0xfd2f_b528_u32.to_le_bytes()[..], &[0, window << 3, 0b1001, 0, 0, b'x']].concat();
        assert!(encodes(Coding::Zstd, &frame(13), b"x") && !encodes(Coding::Zstd, &frame(14), b"x"));
    }

    #[test]
    fn texts_are_worthwhile_and_packed_forms_are_not() {
        for media in
            ["text/html; charset=utf-8", "text/css", "application/json", "image/svg+xml", "application/wasm"]
        {
            assert!(is_worthwhile(media), "{media}");
        }
        for media in ["image/png", "video/mp4", "application/zip", "font/woff2", "application/octet-stream"] {
            assert!(!is_worthwhile(media), "{media}");
        }
        assert!(is_smaller(100, 1_000) && !is_smaller(960, 1_000) && !is_smaller(240, 256));
    }
}

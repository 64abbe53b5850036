//! Framing of what tables hold: header lines that are ready, and bodies by reference; whole, in part, or in parts.
//!
//! `frame` calls it. Nothing is allocated, and nothing looked up but the variant.

use crate::asked::Asked;
use crate::fault::{Fault, planted};
use crate::response::Portion;
use crate::scratch::Scratch;
use crate::segment::Piece;
use crate::shared::Shared;
use crate::table::{Stored, Variant};
use dyno_proto::http1::encode;
use dyno_proto::semantics::range::{Part, content_range, content_range_len};

/// Up to here a copy costs less than another piece of a gathering write, and replies in a row leave in one send.
const INLINE_BYTES_MAX: u64 = 4 << 10;

/// What a boundary begins with. The variant's tag follows: a digest of the content, or of a large file the nanosecond in
/// which it was written. Neither was known when the content was written, so that it does not stand in there.
const BOUNDARY: &[u8] = b"dyno-";
const MULTIPART: &[u8] = b"Content-Type: multipart/byteranges; boundary=";
const DELIMITER: &[u8] = b"\r\n--";

/// Puts the reply into the outbox; how many bytes its head and its body have.
pub(super) fn put(
    scratch: &mut Scratch,
    asked: Asked,
    status: u16,
    (site, number): (u16, u32),
    portion: Portion,
    splits: bool,
) -> (usize, u64) {
    let Scratch { out, heads, own_fields, sites, parts, mark, .. } = scratch;
    let variant = sites[usize::from(site)].table.variant(number);
    let length = variant.body.bytes();
    let parts: &[Part] = match &portion {
        Portion::Whole | Portion::Page if length > 0 => &[Part { from: 0, to: length }],
        Portion::Part(part) => std::slice::from_ref(part),
        Portion::Parts => parts.as_slice(),
        Portion::Whole | Portion::Page | Portion::Unchanged => &[],
    };
    let bytes = out.bytes();
    heads.begin(bytes, status);
    let told = if planted(Fault::FormMistaken) { sites[usize::from(site)].table.variant(0) } else { variant };
    put_lines(bytes, told, &portion, parts);
    bytes.extend_from_slice(own_fields);
    if let Some(option) = asked.connection.option() {
        for piece in ["Connection: ", option, "\r\n"] {
            bytes.extend_from_slice(piece.as_bytes());
        }
    }
    encode::head_end(bytes);
    let head = out.since(*mark);
    if splits {
        out.cut(*mark, head);
    }
    if !asked.is_sent(status) {
        return (head, 0);
    }
    if portion == Portion::Parts {
        return (head, put_parts(out, variant, parts));
    }
    for &part in parts {
        put_part(out, variant, part);
    }
    if splits && out.since(*mark) > head {
        let whole = out.since(*mark);
        out.cut(*mark, whole);
    }
    (head, parts.iter().map(|part| part.bytes()).sum())
}

/// The header lines that depend on the variant and on how much of it is sent.
fn put_lines(out: &mut Vec<u8>, variant: &Variant, portion: &Portion, parts: &[Part]) {
    match portion {
        Portion::Whole => out.extend_from_slice(variant.lines()),
        Portion::Unchanged => out.extend_from_slice(variant.validators()),
        Portion::Page => {
            out.extend_from_slice(variant.type_line());
            out.extend_from_slice(variant.length_line());
        }
        Portion::Part(part) => {
            out.extend_from_slice(variant.lines_of_part());
            content_range(out, *part, variant.body.bytes());
            encode::content_length(out, part.bytes());
        }
        Portion::Parts => {
            for piece in [MULTIPART, BOUNDARY, bare_tag(variant), b"\r\n"] {
                out.extend_from_slice(piece);
            }
            out.extend_from_slice(variant.lines_of_parts());
            encode::content_length(out, bytes_of_parts(variant, parts));
        }
    }
}

/// The tag without its quotes.
fn bare_tag(variant: &Variant) -> &[u8] {
    let tag = variant.tag();
    &tag[1..tag.len() - 1]
}

/// Puts a body's part behind what is in the outbox; small ones are copied.
fn put_part(out: &mut crate::outbox::Outbox, variant: &Variant, part: Part) {
    match &variant.body {
        Stored::Memory(whole) => {
            let range = part.from as usize..part.to as usize;
            if part.bytes() <= INLINE_BYTES_MAX {
                out.bytes().extend_from_slice(&whole.as_bytes()[range]);
            } else {
                out.push(Piece::Shared(part_of(whole, range)));
            }
        }
        Stored::File(whole) => {
            let piece = whole.part(part.from..part.to).expect("a part lies in the whole");
            out.push(Piece::File(piece));
        }
    }
}

fn part_of(whole: &Shared, range: std::ops::Range<usize>) -> Shared {
    if range == (0..whole.len()) {
        whole.clone()
    } else {
        whole.part(range).expect("a part lies in the whole")
    }
}

/// The body of RFC 9110 §14.6; how many bytes it has.
fn put_parts(out: &mut crate::outbox::Outbox, variant: &Variant, parts: &[Part]) -> u64 {
    for &part in parts {
        let bytes = out.bytes();
        for piece in [DELIMITER, BOUNDARY, bare_tag(variant), b"\r\n", variant.type_line()] {
            bytes.extend_from_slice(piece);
        }
        content_range(bytes, part, variant.body.bytes());
        bytes.extend_from_slice(b"\r\n");
        put_part(out, variant, part);
    }
    for piece in [DELIMITER, BOUNDARY, bare_tag(variant), b"--\r\n"] {
        out.bytes().extend_from_slice(piece);
    }
    bytes_of_parts(variant, parts)
}

/// How many bytes [`put_parts`] puts.
fn bytes_of_parts(variant: &Variant, parts: &[Part]) -> u64 {
    let boundary = DELIMITER.len() + b"\r\n".len() + BOUNDARY.len() + bare_tag(variant).len();
    let of_part = |part: &Part| {
        let head = boundary
            + variant.type_line().len()
            + content_range_len(*part, variant.body.bytes())
            + b"\r\n".len();
        head as u64 + part.bytes()
    };
    parts.iter().map(of_part).sum::<u64>() + (boundary + b"--".len()) as u64
}

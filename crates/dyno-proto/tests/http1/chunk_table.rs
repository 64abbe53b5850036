//! Chunked bodies written from RFC 9112 §7.1, and what must become of them, at every cut.

use crate::support::{Body, Chance, decode, shown};
use dyno_proto::http1::chunk::{
    Decoder, EXTENSION_BYTES_MAX, OVERHEAD_BYTES_MAX, TRAILER_BYTES_MAX, TRAILERS_MAX,
};
use dyno_proto::http1::encode;
use dyno_proto::http1::request::Reject;

/// The outcome, after a check that every cut into two and the cut into single bytes lead to it.
fn outcome(bytes: &[u8]) -> Body {
    let whole = decode([bytes]);
    for cut in 0..=bytes.len() {
        assert_eq!(decode([&bytes[..cut], &bytes[cut..]]), whole, "{cut} of {}", shown(bytes));
    }
    assert_eq!(decode(bytes.chunks(1)), whole, "{}", shown(bytes));
    whole
}

#[track_caller]
fn accepted(bytes: &str, expected: &str) {
    let with_rest = format!("{bytes}GET / HTTP/1.1\r\n");
    let body = Body::Whole { data: expected.into(), used: bytes.len() };
    assert_eq!(outcome(with_rest.as_bytes()), body, "{bytes:?}");
}

#[track_caller]
fn refused(bytes: &[u8], reject: Reject) {
    assert_eq!(outcome(bytes), Body::Reject(reject), "{}", shown(bytes));
}

#[test]
fn chunks_are_joined() {
    accepted("0\r\n\r\n", "");
    accepted("5\r\nhello\r\n0\r\n\r\n", "hello");
    accepted("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world");
    accepted("A\r\n0123456789\r\n0\r\n\r\n", "0123456789");
    accepted("a\r\n0123456789\r\n0\r\n\r\n", "0123456789");
    accepted("00000005\r\nhello\r\n00\r\n\r\n", "hello");
    accepted("0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n", "hello");
    accepted("4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n");
    accepted("5\r\n0\r\n\r\n\r\n0\r\n\r\n", "0\r\n\r\n");
}

#[test]
fn extensions_are_checked_and_dropped() {
    for extension in [
        ";a",
        ";a=b",
        ";a=\"b\"",
        ";a=\"\"",
        ";a;b;c=d",
        ";a=\"b;c\"",
        ";a=\"\\\"\"",
        ";a=\"\\\\\"",
        ";a=\"\tb\u{e9}\"",
        " ;a",
        "\t;a=b",
        "; a",
        ";a =b",
        ";a= b",
        "; a = b",
        ";a=\"b\" ;c",
        ";a=b ;c",
        ";a ;b",
        ";!#$%&'*+-.^_`|~=0",
    ] {
        accepted(&format!("5{extension}\r\nhello\r\n0{extension}\r\n\r\n"), "hello");
    }
    for extension in [
        ";",
        ";;",
        ";a;",
        ";a=",
        ";=b",
        ";=",
        ";a==b",
        ";a=b=c",
        ";a b",
        ";a=b c",
        ";a=\"b\"c",
        ";a=\"b\" c",
        ";a,b",
        ";a=\"b\"\"c\"",
        "; ",
        ";a ",
        ";a=b ",
        ";a=\"b\" ",
        ";(a)",
        ";a=(b)",
        ";\u{e9}",
        ";a=\u{e9}",
        ";a\0",
        ";a=\"\0\"",
        ";a=\"\x7f\"",
        ";a=\"\\\0\"",
        ";a=\x0bb",
        ";a=\"b",
    ] {
        // A quoted string that is not closed runs into the line end.
        let bytes = format!("5{extension}\r\nhello\r\n0\r\n\r\n");
        refused(bytes.as_bytes(), Reject::ChunkExtension);
    }
    for extension in [";a\n", ";a=b\n", ";\n", ";a=\"b\n", ";a=\"b\"\n", " \n", ";a \n"] {
        refused(format!("5{extension}hello\r\n0\r\n\r\n").as_bytes(), Reject::BareFeed);
    }
    for extension in [";a\rb", ";a=b\r;", ";a\r\r\n"] {
        refused(format!("5{extension}\r\nhello\r\n0\r\n\r\n").as_bytes(), Reject::BareReturn);
    }
}

#[test]
fn a_size_is_hexadecimal_digits_and_nothing_else() {
    for size in [
        "", " ", "-5", "+5", "0x5", "0X5", "5h", "5_", "_5", "5_0", "g", " 5", "\t5", "5 ", "5\t", "5 5",
        "5,5", "5.", "5.0", "\u{665}", "\"5\"", "5\0", "\x005", "x5", "5x", "#5", "5:", "5=", "0x", "5 a",
        "\x0b5", "5\x0b", "5\x0c", "{5}", "5-", "5+", "'5'", "5\x7f", "5\u{a0}", "$5",
    ] {
        refused(format!("{size}\r\nhello\r\n0\r\n\r\n").as_bytes(), Reject::ChunkSize);
    }
    refused(b"5\nhello\r\n0\r\n\r\n", Reject::BareFeed);
    refused(b"5\rhello\r\n0\r\n\r\n", Reject::BareReturn);
    refused(b"5\r\rhello\r\n0\r\n\r\n", Reject::BareReturn);
    refused(b"\r\n5\r\nhello\r\n0\r\n\r\n", Reject::ChunkSize);
    refused(b"\n5\r\nhello\r\n0\r\n\r\n", Reject::ChunkSize);
}

#[test]
fn a_size_that_does_not_fit_is_refused() {
    refused(b"10000000000000000\r\n", Reject::ChunkSizeLong);
    refused(b"00000000000000005\r\n", Reject::ChunkSizeLong);
    refused(b"ffffffffffffffffffffffff", Reject::ChunkSizeLong);
    assert_eq!(outcome(b"ffffffffffffffff\r\nab"), Body::NeedMore { data: b"ab".to_vec() });
    refused(b"2\r\nab\r\nffffffffffffffff\r\n", Reject::ChunkSizeLong);
    refused(b"2\r\nab\r\nfffffffffffffffe\r\n", Reject::ChunkSizeLong);
}

#[test]
fn a_size_is_announced_before_its_data_comes() {
    let mut decoder = Decoder::new();
    decoder.push(b"1\r\nx").unwrap();
    assert_eq!(decoder.announced(), 1);
    decoder.push(b"\r\n7fffffff\r").unwrap();
    assert_eq!(decoder.announced(), 1);
    decoder.push(b"\n").unwrap();
    assert_eq!(decoder.announced(), 0x8000_0000);
}

#[test]
fn data_ends_where_its_size_says() {
    for bytes in [
        "5\r\nhello!\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello\r0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello\r\r\n",
        "4\r\nhello\r\n0\r\n\r\n",
    ] {
        refused(bytes.as_bytes(), Reject::ChunkEnd);
    }
    // A size that is too large swallows the next line, and what follows is no line end.
    refused(b"6\r\nhello\r\n0\r\n\r\n", Reject::ChunkEnd);
}

#[test]
fn trailers_are_checked_and_dropped() {
    for trailers in
        ["X: y\r\n", "X:\r\n", "X: \t y \r\nZ: \u{e9}\r\n", "Content-Length: 5\r\nHost: b\r\n", "a:b\r\n"]
    {
        accepted(&format!("1\r\nx\r\n0\r\n{trailers}\r\n"), "x");
    }
    for (trailers, reject) in [
        (" X: y\r\n", Reject::Folded),
        ("X: y\r\n z\r\n", Reject::Folded),
        ("X : y\r\n", Reject::BlankBeforeColon),
        ("X\t: y\r\n", Reject::BlankBeforeColon),
        (": y\r\n", Reject::FieldName),
        ("X\r\n", Reject::FieldName),
        ("X y: z\r\n", Reject::BlankBeforeColon),
        ("X(: y\r\n", Reject::FieldName),
        ("\u{e9}: y\r\n", Reject::FieldName),
        ("X: \0\r\n", Reject::FieldValue),
        ("X: \x7f\r\n", Reject::FieldValue),
        ("X: y\n", Reject::BareFeed),
        ("\n", Reject::BareFeed),
        ("X\n", Reject::FieldName),
        ("X: y\rZ: a\r\n", Reject::BareReturn),
        ("\r\r\n", Reject::BareReturn),
        ("\rX: y\r\n", Reject::BareReturn),
    ] {
        refused(format!("1\r\nx\r\n0\r\n{trailers}\r\n").as_bytes(), reject);
    }
}

#[test]
fn extensions_and_trailers_are_bounded() {
    let extension = |bytes: usize| format!("1;{}\r\nx\r\n0\r\n\r\n", "a".repeat(bytes));
    let fits = usize::from(EXTENSION_BYTES_MAX) - 2;
    assert!(matches!(decode([extension(fits).as_bytes()]), Body::Whole { .. }));
    assert_eq!(decode([extension(fits + 1).as_bytes()]), Body::Reject(Reject::ChunkExtensionLong));
    let trailer = |bytes: usize| format!("0\r\nX:{}\r\n\r\n", "a".repeat(bytes));
    // The name, the colon, its line end without the line feed, and the last carriage return count.
    let fits = usize::from(TRAILER_BYTES_MAX) - 4;
    assert!(matches!(decode([trailer(fits).as_bytes()]), Body::Whole { .. }));
    assert_eq!(decode([trailer(fits + 1).as_bytes()]), Body::Reject(Reject::TrailersLong));
    let trailers = |count: u8| format!("0\r\n{}\r\n", "X:\r\n".repeat(count.into()));
    assert!(matches!(decode([trailers(TRAILERS_MAX).as_bytes()]), Body::Whole { .. }));
    assert_eq!(decode([trailers(TRAILERS_MAX + 1).as_bytes()]), Body::Reject(Reject::TrailersLong));
}

#[test]
fn frames_must_not_outweigh_the_data() {
    // Each chunk has 5 bytes of frame and 100 of extension for one byte of data.
    let chunk = format!("1;{}\r\nx\r\n", "a".repeat(99));
    let body = chunk.repeat(OVERHEAD_BYTES_MAX as usize / 50);
    assert_eq!(decode([body.as_bytes()]), Body::Reject(Reject::ChunkOverhead));
    // The same extension is paid for by more data.
    let chunk = format!("64;{}\r\n{}\r\n", "a".repeat(99), "x".repeat(100));
    let body = format!("{}0\r\n\r\n", chunk.repeat(2_000));
    assert!(matches!(decode([body.as_bytes()]), Body::Whole { .. }));
    // Single bytes without extensions are slow but honest.
    let body = format!("{}0\r\n\r\n", "1\r\nx\r\n".repeat(20_000));
    assert!(matches!(decode([body.as_bytes()]), Body::Whole { .. }));
}

#[test]
fn frames_are_counted_to_the_byte_and_the_last_chunk_s_too() {
    // A chunk with an extension of `bytes` bytes gets `bytes - 13` ahead: a digit, two line ends, 18 bytes paid for.
    let chunk = |bytes: usize| format!("1;{}\r\nx\r\n", "a".repeat(bytes - 1));
    let last = |bytes: usize| format!("0;{}\r\n\r\n", "a".repeat(bytes - 1));
    let ahead = chunk(1_000).repeat(16);
    let left = OVERHEAD_BYTES_MAX as usize - 16 * 987;
    let whole = |body: String| matches!(decode([body.as_bytes()]), Body::Whole { .. });
    assert!(whole(format!("{ahead}{}0\r\n\r\n", chunk(left + 13))));
    assert!(!whole(format!("{ahead}{}0\r\n\r\n", chunk(left + 14))));
    // The last chunk has no data, so it pays for 16 bytes only.
    assert!(whole(format!("{ahead}{}", last(left + 11))));
    assert!(!whole(format!("{ahead}{}", last(left + 12))));
}

#[test]
fn every_prefix_of_a_body_is_waited_for() {
    let bytes = b"5;a=\"b\"\r\nhello\r\n0\r\nX: y\r\n\r\n";
    for length in 0..bytes.len() {
        assert!(matches!(decode([&bytes[..length]]), Body::NeedMore { .. }), "{length}");
    }
}

#[test]
fn a_body_that_has_ended_takes_no_more() {
    let mut decoder = Decoder::new();
    assert!(decoder.push(b"0\r\n\r\n").unwrap().done);
    let after = decoder.push(b"5\r\n").unwrap();
    assert_eq!((after.used, after.data.len(), after.done), (0, 0, true));
}

#[test]
fn what_is_written_in_chunks_is_read_back() {
    let mut chance = Chance::new(0x0c0c_0001);
    for _ in 0..500 {
        let (mut data, mut body) = (Vec::new(), Vec::new());
        for _ in 0..chance.below(8) {
            let piece = chance.bytes(b"\r\n0a;\xff", 70);
            encode::chunk(&mut body, &piece);
            data.extend_from_slice(&piece);
        }
        encode::last_chunk(&mut body);
        assert_eq!(outcome(&body), Body::Whole { data, used: body.len() });
    }
}

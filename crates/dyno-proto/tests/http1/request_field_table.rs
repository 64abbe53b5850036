//! Fields of requests written from RFC 9110 and RFC 9112 §5 to §9, and what must become of them, at every cut.

use crate::support::{accepted, refused, with_fields, with_old_fields, with_target};
use dyno_proto::http1::request::{BodyLength, Reject};

#[test]
fn field_names_are_tokens() {
    for name in [
        "X",
        "x-y",
        "!#$%&'*+-.^_`|~09azAZ",
        "0",
        "-",
        "_",
        "A-Very-Long-Name-That-Fills-More-Than-Two-Words",
    ] {
        assert_eq!(accepted(&with_fields(&format!("{name}: 1"))).headers[1].0, name.as_bytes());
    }
    for byte in 0..=255u8 {
        if byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:".contains(&byte) {
            continue;
        }
        for place in 0..=9 {
            let mut line = b"Name-Long: 1".to_vec();
            line.insert(place, byte);
            refused(400, &[b"GET / HTTP/1.1\r\nHost: a\r\n", &line[..], b"\r\n\r\n"].concat());
        }
    }
    for line in [
        ":", ": a", ":a", "\0: a", "a", "a b", "=", "a=b", "\"a\": b", "(a): b", "a/b: c", "a@b: c",
        "[a]: b", "{a}: b",
    ] {
        refused(400, &with_fields(line));
    }
}

#[test]
fn blanks_stand_nowhere_around_a_field_name() {
    for (fields, reject) in [
        ("X : 1", Reject::BlankBeforeColon),
        ("X\t: 1", Reject::BlankBeforeColon),
        ("X  : 1", Reject::BlankBeforeColon),
        ("Content-Length : 5", Reject::BlankBeforeColon),
        ("Transfer-Encoding : chunked", Reject::BlankBeforeColon),
        (" X: 1", Reject::Folded),
        ("\tX: 1", Reject::Folded),
        ("X: 1\r\n 2", Reject::Folded),
        ("X: 1\r\n\t2", Reject::Folded),
        ("X: 1\r\n ", Reject::Folded),
        ("X:\r\n 1", Reject::Folded),
        // The empty value is judged when its line ends.
        ("Transfer-Encoding:\r\n chunked", Reject::Coding),
        ("Content-Length: 5\r\n 6", Reject::Folded),
    ] {
        assert_eq!(refused(400, &with_fields(fields)), reject, "{fields:?}");
    }
    refused(400, b"GET / HTTP/1.1\r\n Host: a\r\n\r\n");
    refused(400, b"GET / HTTP/1.1\r\nHost : a\r\n\r\n");
}

#[test]
fn field_values_hold_no_controls() {
    for byte in 0..=255u8 {
        for place in 0..20 {
            let mut value = b"0123456789abcdefghij".to_vec();
            value.insert(place, byte);
            let bytes = [b"GET / HTTP/1.1\r\nHost: a\r\nX:", &value[..], b"\r\nY: z\r\n\r\n"].concat();
            match byte {
                b'\t' | b' '..=b'~' | 0x80.. => {
                    let request = accepted(&bytes);
                    assert_eq!(request.headers[1].1, trimmed(&value));
                }
                _ => {
                    refused(400, &bytes);
                }
            }
        }
    }
}

/// Trimming by other means than the reader's.
fn trimmed(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().position(|byte| !blank(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !blank(byte)).map_or(start, |at| at + 1);
    &value[start..end]
}

#[test]
fn blanks_around_a_value_are_no_part_of_it() {
    for (line, value) in [
        ("X:", ""),
        ("X: ", ""),
        ("X:\t ", ""),
        ("X:a", "a"),
        ("X: a", "a"),
        ("X:\ta\t", "a"),
        ("X:   a b  \t ", "a b"),
        ("X: a\tb", "a\tb"),
        ("X: a \t", "a"),
        ("X::", ":"),
        ("X: :a:", ":a:"),
        ("X: \t\t.", "."),
        ("X: \u{e9}", "\u{e9}"),
    ] {
        assert_eq!(accepted(&with_fields(line)).headers[1].1, value.as_bytes(), "{line:?}");
    }
}

#[test]
fn host_is_given_exactly_once_in_http_1_1() {
    for bytes in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nX-Host: a\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.3\r\n\r\n",
    ] {
        assert_eq!(refused(400, bytes.as_bytes()), Reject::HostMissing, "{bytes:?}");
    }
    for (first, second) in
        [("a", "a"), ("a", "b"), ("", ""), ("a", ""), ("", "a"), ("a", "[::1]"), ("[::1]", "a")]
    {
        for version in ["HTTP/1.1", "HTTP/1.0"] {
            let bytes = format!("GET / {version}\r\nHost: {first}\r\nX: 1\r\nhOST: {second}\r\n\r\n");
            assert_eq!(refused(400, bytes.as_bytes()), Reject::HostTwice, "{bytes:?}");
        }
    }
    let request = accepted(b"GET / HTTP/1.0\r\n\r\n");
    assert_eq!(request.host, None);
}

#[test]
fn the_host_of_the_target_wins() {
    assert_eq!(accepted(&with_target("http://b:1/c")).host.as_deref(), Some(&b"b:1"[..]));
    let request = accepted(b"GET http://b/ HTTP/1.0\r\n\r\n");
    assert_eq!(request.host.as_deref(), Some(&b"b"[..]));
}

#[test]
fn host_is_a_host_with_an_optional_port() {
    for host in [
        "",
        "a",
        "a:",
        "a:1",
        "a:65535",
        "a.b.c",
        "127.0.0.1:8080",
        "localhost:12345",
        "[::1]",
        "[::1]:8080",
        "[fe80::1]",
        "A-B.C:80",
        "xn--nxasmq6b",
        "a_b",
        "a~b",
        "a%20b",
        "%41:1",
        "!$&'()*+,;=",
        "1",
        "a.",
        "[v7.x:y]:1",
        "0123456789abcdef.example:1",
    ] {
        for blank in ["", " ", "\t", "  "] {
            let bytes = format!("GET / HTTP/1.1\r\nHost:{blank}{host}{blank}\r\n\r\n");
            assert_eq!(accepted(bytes.as_bytes()).host.as_deref(), Some(host.as_bytes()), "{bytes:?}");
        }
    }
    for host in [
        ":",
        ":80",
        "a b",
        "a, b",
        "a\tb",
        "a:80:80",
        "a:x",
        "a:-1",
        "a:+1",
        "a:65536",
        "a:080000",
        "a:100000",
        "a: 80",
        "a :80",
        "a/b",
        "a/",
        "http://a",
        "u@a",
        "a@",
        "a?b",
        "a#b",
        "a\\b",
        "a|b",
        "a^b",
        "a`b",
        "a{b}",
        "a<b>",
        "\"a\"",
        "a[b]",
        "[",
        "]",
        "[]",
        "[::1",
        "::1",
        "[::1]a",
        "[::1]:x",
        "[::1::2]",
        "[1]",
        "[v]",
        "[v1]",
        "%",
        "%4",
        "%zz",
        "\u{e9}",
        "a\u{e9}",
        "a:\u{661}",
        "a:8\u{e9}",
    ] {
        let bytes = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(refused(400, bytes.as_bytes()), Reject::HostValue, "{host:?}");
    }
}

#[test]
fn content_length_is_one_decimal_number() {
    for (value, bytes) in [
        ("0", 0),
        ("5", 5),
        ("005", 5),
        ("18446744073709551615", u64::MAX),
        ("00000000000000000000000000001", 1),
        ("  7\t", 7),
    ] {
        let request = accepted(&with_fields(&format!("Content-Length: {value}")));
        assert_eq!(request.body, BodyLength::Length(bytes), "{value}");
    }
    for value in [
        "",
        " ",
        "-1",
        "-0",
        "+5",
        "5,5",
        "5, 5",
        "5,",
        ",5",
        "5 5",
        "5;",
        "5.0",
        "5e1",
        "0x5",
        "0X5",
        "5h",
        "a",
        "five",
        "\"5\"",
        "'5'",
        "1_0",
        "18446744073709551616",
        "18446744073709551617",
        "99999999999999999999",
        "184467440737095516150",
        "\u{665}",
        "5\u{a0}",
        "5 \t6",
        "--5",
        "5-",
        "340282366920938463463374607431768211456",
        "0b1",
        "0o7",
        "NaN",
        "null",
        "5\\",
        "5/1",
        "(5)",
    ] {
        assert_eq!(
            refused(400, &with_fields(&format!("Content-Length: {value}"))),
            Reject::ContentLength,
            "{value:?}"
        );
    }
    for (first, second) in [("5", "5"), ("5", "6"), ("0", "0"), ("05", "5"), ("5", "x")] {
        let fields = format!("Content-Length: {first}\r\nContent-length: {second}");
        assert_eq!(refused(400, &with_fields(&fields)), Reject::ContentLengthTwice, "{fields:?}");
    }
}

#[test]
fn transfer_encoding_is_chunked_once() {
    for fields in [
        "Transfer-Encoding: chunked",
        "transfer-encoding:chunked",
        "TRANSFER-ENCODING: CHUNKED",
        "Transfer-Encoding: \t ChUnKeD \t",
    ] {
        assert_eq!(accepted(&with_fields(fields)).body, BodyLength::Chunked, "{fields:?}");
    }
    for value in [
        "",
        " ",
        ",",
        "chunked,",
        ",chunked",
        "chunked, chunked",
        "chunked,,",
        "chunked chunked",
        "chunked, gzip",
        "chunked, identity",
        "gzip, chunked, chunked",
        "chunked, gzip, chunked",
        "\"chunked\"",
        "'chunked' ,",
        "chunked\\",
        "chunked/1",
        "(chunked)",
        "chunk ed",
        "chunked \u{e9}",
        "[chunked]",
        "=chunked",
        "chunked@",
        "gzip,, chunked",
        "gzip,",
    ] {
        assert_eq!(
            refused(400, &with_fields(&format!("Transfer-Encoding: {value}"))),
            Reject::Coding,
            "{value:?}"
        );
    }
    for value in [
        "gzip",
        "identity",
        "deflate",
        "compress",
        "br",
        "x-chunked",
        "xchunked",
        "chunkedx",
        "chunke",
        "chunked;q=1",
        "gzip, chunked",
        "identity, chunked",
        "gzip,chunked",
        "x, y",
        "chunked-",
        "'chunked'",
        "gzip;a=b, chunked",
        "trailers",
    ] {
        assert_eq!(
            refused(501, &with_fields(&format!("Transfer-Encoding: {value}"))),
            Reject::CodingUnsupported,
            "{value:?}"
        );
    }
    for second in ["chunked", "gzip", "identity", ""] {
        let fields = format!("Transfer-Encoding: chunked\r\nTransfer-Encoding: {second}");
        assert_eq!(refused(400, &with_fields(&fields)), Reject::Coding, "{fields:?}");
    }
    for (value, byte) in [("chunked", 0x0b), ("chunked", 0x0c), ("chunked", 0x00), ("chunked", 0x7f)] {
        for field in [[&[byte][..], value.as_bytes()].concat(), [value.as_bytes(), &[byte]].concat()] {
            refused(
                400,
                &[b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ", &field[..], b"\r\n\r\n"].concat(),
            );
        }
    }
}

#[test]
fn length_and_coding_together_are_refused_in_either_order() {
    for fields in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 0\r\nX: 1\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nX: 1\r\nContent-Length: 0",
        "Content-Length: 5\r\nTransfer-Encoding: identity",
        "Content-Length: 5\r\nTransfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: x",
    ] {
        assert_eq!(refused(400, &with_fields(fields)), Reject::LengthAndCoding, "{fields:?}");
    }
}

#[test]
fn http_1_0_knows_no_coding_and_no_expectation() {
    assert_eq!(refused(400, &with_old_fields("Transfer-Encoding: chunked")), Reject::CodingInOldVersion);
    assert_eq!(refused(400, &with_old_fields("Transfer-Encoding: gzip")), Reject::CodingInOldVersion);
    refused(400, &with_old_fields("Content-Length: 5\r\nTransfer-Encoding: chunked"));
    let request = accepted(&with_old_fields("Content-Length: 5\r\nExpect: 100-continue"));
    assert!(!request.expect_continue);
    assert_eq!(request.body, BodyLength::Length(5));
    accepted(&with_old_fields("Expect: something-else"));
}

#[test]
fn connection_decides_whether_it_stays_open() {
    for (fields, new, old) in [
        ("X: 1", true, false),
        ("Connection: close", false, false),
        ("Connection: CLOSE", false, false),
        ("Connection: keep-alive", true, true),
        ("Connection: Keep-Alive", true, true),
        ("Connection: keep-alive, close", false, false),
        ("Connection: close, keep-alive", false, false),
        ("Connection: keep-alive\r\nConnection: close", false, false),
        ("Connection: close\r\nConnection: keep-alive", false, false),
        ("Connection: X , close", false, false),
        ("Connection: ,,close,,", false, false),
        ("Connection:\tclose\t,\tX", false, false),
        ("Connection: closed", true, false),
        ("Connection: not-close", true, false),
        ("Connection: upgrade\r\nUpgrade: websocket", true, false),
        ("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA", true, false),
        ("Connection:", true, false),
        ("Connection: , ,", true, false),
        ("Connection: X, keep-alive", true, true),
        ("Proxy-Connection: close", true, false),
        ("Keep-Alive: timeout=5", true, false),
    ] {
        assert_eq!(accepted(&with_fields(fields)).keep_alive, new, "{fields:?}");
        assert_eq!(accepted(&with_old_fields(fields)).keep_alive, old, "{fields:?}");
    }
    for value in
        ["close keep-alive", "close;", "\"close\"", "a/b", "close=1", "(close)", "clos\u{e9}", "a, b c"]
    {
        assert_eq!(
            refused(400, &with_fields(&format!("Connection: {value}"))),
            Reject::Connection,
            "{value:?}"
        );
    }
}

#[test]
fn the_only_expectation_is_100_continue() {
    for (fields, expected) in [
        ("Content-Length: 5\r\nExpect: 100-continue", true),
        ("Expect: 100-Continue\r\nContent-Length: 5", true),
        ("Transfer-Encoding: chunked\r\nExpect: 100-CONTINUE", true),
        ("Content-Length: 0\r\nExpect: 100-continue", false),
        ("Expect: 100-continue", false),
        ("X: 100-continue\r\nContent-Length: 5", false),
        ("Content-Length: 5\r\nExpect: 100-continue\r\nExpect: 100-continue", true),
    ] {
        assert_eq!(accepted(&with_fields(fields)).expect_continue, expected, "{fields:?}");
    }
    for value in [
        "",
        "100",
        "101-continue",
        "continue",
        "100-continue, x",
        "100 continue",
        "x=y",
        "100-continue;q=1",
        "200-ok",
    ] {
        assert_eq!(refused(417, &with_fields(&format!("Expect: {value}"))), Reject::Expectation, "{value:?}");
    }
}

//! Chunked bodies: sizes, extensions, line ends, trailers, and frames that outweigh the data (RFC 9112 §7.1).

use super::Want::Refused;
use super::{Table, with_each_byte};

pub(super) fn add(table: &mut Table) {
    sizes(table);
    ends(table);
    extensions(table);
    trailers(table);
    bounds(table);
}

fn sizes(table: &mut Table) {
    table.class("chunk size");
    let sizes = [
        "", " ", "\t", "-5", "+5", "-0", "+0", "0x5", "0X5", "0x", "x5", "5h", "5x", "5_", "_5", "5_0",
        "0_5", "g", "G", " 5", "\t5", "5 ", "5\t", "5  ", "5 5", "5\t5", "5,5", "5,", "5.", "5.0", "5e",
        "\u{665}", "\u{ff15}", "\"5\"", "'5'", "5\0", "\x005", "#5", "$5", "%35", "5:", "5=", "5 a", "\x0b5",
        "5\x0b", "5\x0c", "\x0c5", "{5}", "[5]", "5-", "5+", "5\x7f", "5\u{a0}", "\u{a0}5", "5\\", "5/",
        "5h\r\n", "five", "5\"", "5 \t",
    ];
    for size in sizes {
        // What is meant by "5e" is 94 bytes, which are too many here.
        let want = if size == "5e" { Refused(413) } else { Refused(400) };
        table.bodies(want, &[&format!("{size}\r\nhello\r\n0\r\n\r\n")]);
    }
    table.bodies(
        Refused(400),
        &[
            "10000000000000000\r\nhello",
            "10000000000000005\r\nhello\r\n0\r\n\r\n",
            "00000000000000005\r\nhello\r\n0\r\n\r\n",
            "fffffffffffffffff\r\n",
            "100000000000000000000000000000005\r\nhello",
            "2\r\nab\r\nffffffffffffffff\r\n",
            "5\r\nhello\r\n\r\n0\r\n\r\n",
            "\r\n5\r\nhello\r\n0\r\n\r\n",
            "5\r\nhello\r\n-0\r\n\r\n",
            "5\r\nhello\r\n0x0\r\n\r\n",
            "5\r\nhello\r\n0 \r\n\r\n",
            "5\r\nhello\r\n 0\r\n\r\n",
            "5\r\nhello\r\n0_0\r\n\r\n",
            "5\r\nhello\r\n\0\r\n\r\n",
        ],
    );
    let hex = b"0123456789abcdefABCDEF";
    let before = b"POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for bytes in with_each_byte(before, b"\r\nhello\r\n0\r\n\r\n", hex) {
        table.row(Refused(400), bytes);
    }
}

fn ends(table: &mut Table) {
    table.class("line ends of chunks");
    table.bodies(
        Refused(400),
        &[
            "5\nhello\r\n0\r\n\r\n",
            "5\nhello\n0\n\n",
            "5\rhello\r\n0\r\n\r\n",
            "5\r\rhello\r\n0\r\n\r\n",
            "5\r\n\nhello",
            "5\n\rhello\r\n",
            "5\r\nhello!\r\n0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "5\r\nhello\r0\r\n\r\n",
            "5\r\nhello0\r\n\r\n",
            "5\r\nhello\r\r\n0\r\n\r\n",
            "4\r\nhello\r\n0\r\n\r\n",
            "6\r\nhello\r\n0\r\n\r\n",
            "5\r\nhello \r\n0\r\n\r\n",
            "5\r\nhello\n\r0\r\n\r\n",
            "5\r\nhelloXX0\r\n\r\n",
            "5\r\nhello\r\n0\n\r\n",
            "5\r\nhello\r\n0\r\n\n",
            "5\r\nhello\r\n0\n\n",
            "5\r\nhello\r\n0\r\r\n",
            "5\r\nhello\r\n0\r\n\rX",
            "5\r\nhello\r\n0\r\n\r\r\n",
            "5\r\nhello\r\n0\rX",
            "0\n\n",
            "0\r\n\n",
            "0\n\r\n",
            "5;a\nhello\r\n0\r\n\r\n",
            "5;a\rhello\r\n0\r\n\r\n",
            "5;\nhello\r\n0\r\n\r\n",
            "5;a=b\nhello\r\n0\r\n\r\n",
            "5;a=\"b\nc\"\r\nhello\r\n0\r\n\r\n",
            "5;a=\"b\r\nc\"\r\nhello\r\n0\r\n\r\n",
            "5 ;\n5\r\nhello\r\n0\r\n\r\n",
            "2\r\nab\r\n1\nc\r\n0\r\n\r\n",
            "1\u{2028}a\r\n0\r\n\r\n",
        ],
    );
}

fn extensions(table: &mut Table) {
    table.class("chunk extension");
    let extensions = [
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
        ";a=\0",
        ";a=\"\0\"",
        ";a=\"\x7f\"",
        ";a=\"\\\0\"",
        ";a=\x0bb",
        ";a=\"b",
        ";a=\"b\\\"",
        ";a='b c'",
        ";a/b",
        ";a:b",
        ";\"a\"=b",
        ";a=b\"c\"",
        ";a=\"b\rc\"",
        " a",
        "\ta",
        " =b",
        ",a",
        "=a",
        ";a\x1b",
        ";a=\x1b",
        ";\r",
        "; ;a",
    ];
    for extension in extensions {
        table.bodies(Refused(400), &[&format!("5{extension}\r\nhello\r\n0\r\n\r\n")]);
        table.bodies(Refused(400), &[&format!("5\r\nhello\r\n0{extension}\r\n\r\n")]);
    }
}

fn trailers(table: &mut Table) {
    table.class("trailers");
    let trailers = [
        " X: y",
        "\tX: y",
        "X: y\r\n z",
        "X: y\r\n\tz",
        "X : y",
        "X\t: y",
        ": y",
        "X",
        "X y: z",
        "X(: y",
        "\u{e9}: y",
        "X: \0",
        "X: \x7f",
        "X: y\n",
        "X\n",
        "X: y\rZ: a",
        "\rX: y",
        "\nX: y",
        "X: a\nContent-Length: 5",
        "X: a\r\r\nY: b",
        "X: a\rb",
        "X:\x0b",
        "\0: a",
        "X\0: a",
        "X\r\n: a",
        "GET /smuggled HTTP/1.1",
        "X=y",
        "\"X\": y",
        "X: y\r\n \r\nZ: a",
        "Content-Length : 5",
        "Transfer-Encoding\t: chunked",
    ];
    for trailer in trailers {
        table.bodies(Refused(400), &[&format!("5\r\nhello\r\n0\r\n{trailer}\r\n\r\n")]);
    }
}

fn bounds(table: &mut Table) {
    table.class("bounds of chunks");
    table.bodies(
        Refused(400),
        &[&format!("5;{}\r\nhello\r\n0\r\n\r\n", "a".repeat(1_024)), &format!("5{}", " ".repeat(1_100))],
    );
    table.bodies(
        Refused(431),
        &[
            &format!("0\r\n{}\r\n", "X:\r\n".repeat(33)),
            &format!("0\r\nX:{}\r\n\r\n", "a".repeat(4_100)),
            &format!("0\r\n{}", "X".repeat(4_100)),
        ],
    );
    // Frames that outweigh the data (CVE-2023-39326): 1,000 bytes of extension for each byte.
    table.bodies(Refused(400), &[&format!("1;{}\r\nx\r\n", "a".repeat(999)).repeat(18)]);
}

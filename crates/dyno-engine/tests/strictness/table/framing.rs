//! Where a body ends: Content-Length, Transfer-Encoding, and both (RFC 9112 §6). Behind each stands a request that only a
//! server that reads it otherwise would execute.

use super::Table;
use super::Want::Refused;

/// A body of five bytes for who believes in the length, one chunk for who believes in the coding, and a request behind it.
const SMUGGLED: &str = "5\r\nhello\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

pub(super) fn add(table: &mut Table) {
    lengths(table);
    codings(table);
    both(table);
    too_long(table);
}

fn lengths(table: &mut Table) {
    table.class("Content-Length");
    let values = [
        "",
        " ",
        "\t",
        "-1",
        "-0",
        "-5",
        "+5",
        "+0",
        "5,5",
        "5, 5",
        "5 , 5",
        "5,6",
        "5,",
        ",5",
        ",",
        "5 5",
        "5\t5",
        "5;",
        "5;a=b",
        "5.0",
        "5.",
        ".5",
        "5e1",
        "5e0",
        "0x5",
        "0X5",
        "x5",
        "5h",
        "5a",
        "a",
        "five",
        "\"5\"",
        "'5'",
        "5_0",
        "0_5",
        "1_0",
        "5_",
        "_5",
        "18446744073709551616",
        "18446744073709551617",
        "18446744073709551621",
        "99999999999999999999",
        "184467440737095516150",
        "340282366920938463463374607431768211456",
        "-18446744073709551611",
        "\u{665}",
        "5\u{a0}",
        "\u{a0}5",
        "\u{ff15}",
        "--5",
        "++5",
        "5-",
        "0b101",
        "0o5",
        "NaN",
        "null",
        "inf",
        "5\\",
        "5/1",
        "(5)",
        "[5]",
        "{5}",
        "5=",
        "5:",
        "5\0",
        "\x005",
        "5\x0b",
        "\x0b5",
        "5\x0c",
        "\x0c5",
        "5\x7f",
        "5\x1f",
        "5\r",
        "0 5",
        "5 \t6",
        "%35",
        "&#53;",
        "5%",
        "$5",
        "#5",
        "5?",
    ];
    for value in values {
        table.fields(Refused(400), SMUGGLED, &[&format!("Content-Length: {value}")]);
    }
    table.fields(
        Refused(400),
        SMUGGLED,
        &[
            "Content-Length: 5\r\nContent-Length: 5",
            "Content-Length: 5\r\nContent-Length: 6",
            "Content-Length: 0\r\nContent-Length: 5",
            "Content-Length: 5\r\nContent-Length: 0",
            "Content-Length: 05\r\nContent-Length: 5",
            "Content-Length: 5\r\nContent-Length: x",
            "Content-Length: 5\r\nContent-Length:",
            "Content-Length: 5\r\nX: 1\r\nCONTENT-LENGTH: 5",
            "content-length: 0\r\ncontent-length: 0",
            "Content-Length:5\r\nContent-Length:+5",
        ],
    );
    table.old(
        Refused(400),
        "hello",
        &["Content-Length: 5\r\nContent-Length: 6", "Content-Length: +5", "Content-Length: 5, 5"],
    );
    // A method that usually has no body is no excuse.
    for method in ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"] {
        table.row(
            Refused(400),
            format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n{SMUGGLED}"),
        );
    }
}

fn codings(table: &mut Table) {
    table.class("Transfer-Encoding");
    let refused = [
        "",
        " ",
        ",",
        "chunked,",
        ",chunked",
        ", chunked",
        "chunked ,",
        "chunked, chunked",
        "chunked,,",
        "chunked,chunked",
        "chunked chunked",
        "chunked\tchunked",
        "chunked, gzip",
        "chunked, identity",
        "chunked, identity, chunked",
        "identity, chunked, identity, chunked",
        "gzip, chunked, chunked",
        "chunked, gzip, chunked",
        "\"chunked\"",
        "chunked\\",
        "chunked/1",
        "(chunked)",
        "chunk ed",
        "chunked \u{e9}",
        "[chunked]",
        "{chunked}",
        "<chunked>",
        "=chunked",
        "chunked=",
        "chunked@",
        "chunked:",
        ": chunked",
        "chunked?",
        "\u{a0}chunked",
        "chunked\u{a0}",
        "\u{feff}chunked",
        "chunke\u{212a}",
        "\u{2028}chunked",
        "\x0bchunked",
        "chunked\x0b",
        "\x0cchunked",
        "chunked\x0c",
        "\0chunked",
        "chunked\0",
        "chu\0nked",
        "chunked\x7f",
        "\x01chunked",
        "chunked\x1f",
        "\x08chunked",
        "chunked\r",
        "\rchunked",
        "\nchunked",
        "chunked\n",
        "gzip,, chunked",
        "gzip,",
        "gzip chunked",
        "identity chunked",
        "chunked; a b",
        "\"\"",
    ];
    for value in refused {
        // Behind a parameter nobody looks: a coding that has any is one that nobody knows.
        let want = if value == "chunked; a b" { Refused(501) } else { Refused(400) };
        table.fields(want, SMUGGLED, &[&format!("Transfer-Encoding: {value}")]);
    }
    let unknown = [
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
        "chunked;",
        "chunked; a=b",
        "gzip, chunked",
        "identity, chunked",
        "gzip,chunked",
        "x, y",
        "chunked-",
        "'chunked'",
        "cow",
        "trailers",
        "nothing",
        "chunked_",
        "CHUNKED2",
        "chunked.",
        "0",
        "5",
        "gzip;a=b, chunked",
        "pigeons",
        "deflate, identity",
    ];
    for value in unknown {
        table.fields(Refused(501), SMUGGLED, &[&format!("Transfer-Encoding: {value}")]);
    }
    table.fields(
        Refused(400),
        SMUGGLED,
        &[
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow",
            "Transfer-Encoding: chunked\r\ntransfer-encoding:",
            "Transfer-Encoding: chunked\r\nX: 1\r\nTRANSFER-ENCODING: gzip",
            "Transfer-Encoding:\r\nTransfer-Encoding: chunked",
        ],
    );
    table.class("a coding in HTTP/1.0");
    table.old(
        Refused(400),
        SMUGGLED,
        &[
            "Transfer-Encoding: chunked",
            "Transfer-Encoding: gzip",
            "Transfer-Encoding: identity",
            "Transfer-Encoding:",
            "Transfer-Encoding: chunked\r\nConnection: keep-alive",
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 5",
        ],
    );
}

fn both(table: &mut Table) {
    table.class("length and coding");
    table.fields(
        Refused(400),
        SMUGGLED,
        &[
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 5",
            "Content-Length: 0\r\nX: 1\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nX: 1\r\nContent-Length: 0",
            "Content-Length: 5\r\nTransfer-Encoding: identity",
            "Content-Length: 5\r\nTransfer-Encoding: gzip, chunked",
            "Content-Length: 5\r\nTransfer-Encoding:",
            "Content-Length: 5\r\nTransfer-Encoding: cow",
            "Transfer-Encoding: chunked\r\nContent-Length: x",
            "Transfer-Encoding: chunked\r\nContent-Length:",
            "Transfer-Encoding: chunked\r\nContent-Length: 18446744073709551616",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close",
            "Content-Length: 5\r\ntransfer-encoding:CHUNKED",
            "CONTENT-LENGTH:5\r\nTRANSFER-ENCODING: chunked",
            "Content-Length: 5\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
            "Content-Length: 5\r\nTransfer-Encoding: \x0bchunked",
            "Content-Length: 5\r\nTransfer-Encoding : chunked",
        ],
    );
}

fn too_long(table: &mut Table) {
    table.class("length of the body");
    for value in
        ["61", "100", "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551615"]
    {
        table.fields(Refused(413), SMUGGLED, &[&format!("Content-Length: {value}")]);
    }
    table.bodies(
        Refused(413),
        &[
            "3d\r\nhello",
            "100\r\nhello",
            "7fffffff\r\n",
            "80000000\r\n",
            "ffffffff\r\n",
            "100000000\r\nhello",
            "7fffffffffffffff\r\n",
            "8000000000000000\r\n",
            "ffffffffffffffff\r\nhello",
            "5\r\nhello\r\n38\r\n",
        ],
    );
}

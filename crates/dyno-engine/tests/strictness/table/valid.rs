//! What looks odd and is valid, what the engine answers by itself, and what is not whole.

use super::Want::{Awaited, Declined, DeclinedLast, Served, ServedLast};
use super::{BODY_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX, LINE_BYTES_MAX, Table};

pub(super) fn add(table: &mut Table) {
    lines(table);
    fields(table);
    connections(table);
    bodies(table);
    chunked(table);
    declined(table);
    awaited(table);
}

fn lines(table: &mut Table) {
    table.class("valid request line");
    table.lines(
        Served(""),
        &[
            "GET / HTTP/1.1",
            "HEAD / HTTP/1.1",
            "GET /a/b/c HTTP/1.1",
            "GET //a//b HTTP/1.1",
            "GET /. HTTP/1.1",
            "GET /../a HTTP/1.1",
            "GET /? HTTP/1.1",
            "GET /?? HTTP/1.1",
            "GET /?a=b&c=%20 HTTP/1.1",
            "GET /%41%2f%7e HTTP/1.1",
            "GET /a;b=c,d HTTP/1.1",
            "GET /a:b@c!$&'()*+,;= HTTP/1.1",
            "GET /a|b{c}[d]^`\"<>\\ HTTP/1.1",
            "GET /~a_b-c. HTTP/1.1",
            "GET /HTTP/1.1 HTTP/1.1",
            "GET http://a HTTP/1.1",
            "GET http://a/ HTTP/1.1",
            "GET HTTP://A/b HTTP/1.1",
            "GET https://a:443/b?c HTTP/1.1",
            "GET http://a?b HTTP/1.1",
            "GET http://[::1]:80/ HTTP/1.1",
            "GET http://a:/ HTTP/1.1",
            "GET http://b/ HTTP/1.1",
            "GET http://a%20b/ HTTP/1.1",
            "GET / HTTP/1.2",
            "GET / HTTP/1.9",
        ],
    );
    table.raw(
        Served(""),
        &[
            b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        ],
    );
    let fits = "x".repeat(LINE_BYTES_MAX - 14);
    table.lines(Served(""), &[&format!("GET /{fits} HTTP/1.1")]);
}

fn fields(table: &mut Table) {
    table.class("valid fields");
    table.heads(
        Served(""),
        &[
            "Host:",
            "Host: ",
            "Host:a",
            "Host: \ta \t",
            "hOsT: a",
            "Host: a:",
            "Host: a:80",
            "Host: a:65535",
            "Host: a:00080",
            "Host: [::1]",
            "Host: [::1]:8080",
            "Host: [fe80::1]",
            "Host: [::ffff:1.2.3.4]",
            "Host: [v7.x:y]:1",
            "Host: a_b",
            "Host: a%20b",
            "Host: a.",
            "Host: 127.0.0.1",
            "Host: 1",
            "Host: A-B.C",
            "Host: !$&'()*+,;=",
            "Host: xn--nxasmq6b",
            "Host: a\r\nX:",
            "Host: a\r\nX: ",
            "Host: a\r\nX:\t ",
            "Host: a\r\nX:b",
            "Host: a\r\nX: a\tb",
            "Host: a\r\nX: :a:",
            "Host: a\r\nX::",
            "Host: a\r\nX: \u{e9}\u{20ac}",
            "Host: a\r\n!#$%&'*+-.^_`|~0: 1",
            "Host: a\r\nX: a\r\nX: a\r\nX: b",
            "Host: a\r\nContent_Length: 5",
            "Host: a\r\nContent-Length-X: 5",
            "Host: a\r\nX-Transfer-Encoding: chunked",
            "Host: a\r\nTE: trailers",
            "Host: a\r\nTrailer: X",
            "Host: a\r\nExpect: 100-continue",
            "Host: a\r\nUpgrade: h2c",
            "Host: a\r\nUpgrade: websocket",
            "Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket",
            "Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA",
            "X: 1\r\nHost: a",
            "Host: a\r\n0: 0",
            "Host: a\r\nX: GET /smuggled HTTP/1.1",
            "Host: a\r\nProxy-Connection: close",
            "Host: a\r\nKeep-Alive: timeout=5",
        ],
    );
    table.raw(Served(""), &[b"GET / HTTP/1.1\r\nHost: a\r\nX: \x80\xfe\xff\r\n\r\n"]);
    table.heads(Served(""), &[&format!("Host: a{}", "\r\nA: b".repeat(HEADERS_MAX - 1))]);
    let start = "GET /h HTTP/1.1\r\nHost: a\r\nX: ";
    table.heads(Served(""), &[&format!("Host: a\r\nX: {}", "x".repeat(HEAD_BYTES_MAX - start.len() - 4))]);
}

fn connections(table: &mut Table) {
    table.class("valid Connection");
    table.heads(
        Served(""),
        &[
            "Host: a\r\nConnection: keep-alive",
            "Host: a\r\nConnection:",
            "Host: a\r\nConnection: , ,",
            "Host: a\r\nConnection: closed",
            "Host: a\r\nConnection: not-close",
            "Host: a\r\nConnection: X, Y, Z",
            "Host: a\r\nConnection: host",
        ],
    );
    table.heads(
        ServedLast(""),
        &[
            "Host: a\r\nConnection: close",
            "Host: a\r\nConnection: CLOSE",
            "Host: a\r\nConnection: keep-alive, close",
            "Host: a\r\nConnection: close, keep-alive",
            "Host: a\r\nConnection: keep-alive\r\nConnection: close",
            "Host: a\r\nConnection: close\r\nConnection: keep-alive",
            "Host: a\r\nConnection: X , close",
            "Host: a\r\nConnection: ,,close,,",
            "Host: a\r\nConnection:\tclose\t,\tX",
            "Connection: close\r\nHost: a",
        ],
    );
    table.old(
        Served("hello"),
        "hello",
        &["Connection: keep-alive\r\nContent-Length: 5", "Connection: X, Keep-Alive\r\nContent-Length: 5"],
    );
    table.old(
        ServedLast("hello"),
        "hello",
        &[
            "Content-Length: 5",
            "Connection: close\r\nContent-Length: 5",
            "Content-Length: 5\r\nExpect: 100-continue",
            "Content-Length: 5\r\nExpect: x",
        ],
    );
    table.raw(
        ServedLast(""),
        &[b"GET / HTTP/1.0\r\n\r\n", b"GET http://a/ HTTP/1.0\r\n\r\n", b"GET / HTTP/1.0\r\nHost: a\r\n\r\n"],
    );
}

fn bodies(table: &mut Table) {
    table.class("valid length");
    table.fields(
        Served("hello"),
        "hello",
        &[
            "Content-Length: 5",
            "Content-Length:5",
            "Content-Length:  5\t",
            "content-length: 005",
            "CONTENT-LENGTH: 00000000000000000000000000005",
            "Content-Length: 5\r\nExpect: 100-continue",
            "Content-Length: 5\r\nExpect: 100-CONTINUE\r\nExpect: 100-continue",
            "Content-Length: 5\r\nTE: chunked",
        ],
    );
    table.fields(
        Served(""),
        "",
        &["X: 1", "Content-Length: 0", "Content-Length: 000", "Content-Length: 0\r\nExpect: 100-continue"],
    );
    // A body that looks like a request is a body.
    table.fields(
        Served("GET /smuggled HTTP/1.1\r\n\r\n"),
        "GET /smuggled HTTP/1.1\r\n\r\n",
        &["Content-Length: 26"],
    );
    for method in ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"] {
        table.row(
            Served("hello"),
            format!("{method} /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
        );
    }
    table.row(Served("hello"), "HEAD /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    const FULL: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    assert_eq!(FULL.len(), BODY_BYTES_MAX);
    table.fields(Served(FULL), FULL, &["Content-Length: 60"]);
    table.bodies(Served(FULL), &[&format!("3c\r\n{FULL}\r\n0\r\n\r\n")]);
}

fn chunked(table: &mut Table) {
    table.class("valid chunks");
    table.bodies(
        Served(""),
        &["0\r\n\r\n", "00\r\n\r\n", "0000000000000000\r\n\r\n", "0;a\r\n\r\n", "0\r\nX: y\r\n\r\n"],
    );
    let hello = [
        "5\r\nhello\r\n0\r\n\r\n",
        "05\r\nhello\r\n0\r\n\r\n",
        "0000000000000005\r\nhello\r\n0\r\n\r\n",
        "1\r\nh\r\n4\r\nello\r\n0\r\n\r\n",
        "1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n",
        "5;a\r\nhello\r\n0\r\n\r\n",
        "5;a=b\r\nhello\r\n0;c=d\r\n\r\n",
        "5;a=\"b;c\"\r\nhello\r\n0\r\n\r\n",
        "5;a=\"\"\r\nhello\r\n0\r\n\r\n",
        "5;a=\"\\\"\"\r\nhello\r\n0\r\n\r\n",
        "5 ;a\r\nhello\r\n0\r\n\r\n",
        "5\t;\ta\t=\tb\r\nhello\r\n0\r\n\r\n",
        "5;a;b;c=d\r\nhello\r\n0\r\n\r\n",
        "5;a=\"\tb\u{e9}\"\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nX: y\r\n\r\n",
        "5\r\nhello\r\n0\r\nX:\r\nY: \t z \r\n\r\n",
        "5\r\nhello\r\n0\r\nX: \u{e9}\r\n\r\n",
        // What a trailer says of framing is not heard (RFC 9110 §6.5.1).
        "5\r\nhello\r\n0\r\nContent-Length: 500\r\nTransfer-Encoding: x\r\nHost: b\r\nConnection: close\r\n\r\n",
    ];
    table.bodies(Served("hello"), &hello);
    table.bodies(
        Served("0\r\n\r\nGET /x"),
        &["b\r\n0\r\n\r\nGET /x\r\n0\r\n\r\n", "B\r\n0\r\n\r\nGET /x\r\n0\r\n\r\n"],
    );
    table.fields(
        Served("hello"),
        hello[0],
        &[
            "transfer-encoding:chunked",
            "TRANSFER-ENCODING: CHUNKED",
            "Transfer-Encoding: \t ChUnKeD \t",
            "Transfer-Encoding: chunked\r\nExpect: 100-continue",
        ],
    );
}

fn declined(table: &mut Table) {
    table.class("answered by the engine itself");
    table.lines(Declined(200), &["OPTIONS * HTTP/1.1", "OPTIONS http://a HTTP/1.1"]);
    table.lines(Declined(405), &["TRACE / HTTP/1.1"]);
    table.lines(
        Declined(501),
        &[
            "BREW / HTTP/1.1",
            "get / HTTP/1.1",
            "!#$%&'*+-.^_`|~09az / HTTP/1.1",
            "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF / HTTP/1.1",
        ],
    );
    table.lines(Declined(400), &["GET /%00 HTTP/1.1", "GET /a%ff HTTP/1.1"]);
    // What follows is meant for a tunnel that nobody has opened.
    table.class("CONNECT");
    table.lines(
        DeclinedLast(501),
        &["CONNECT a:443 HTTP/1.1", "CONNECT [::1]:443 HTTP/1.1", "CONNECT 127.0.0.1:1 HTTP/1.1"],
    );
}

fn awaited(table: &mut Table) {
    table.class("not whole");
    table.raw(
        Awaited,
        &[
            b"\r",
            b"\r\n",
            b"\r\n\r\n",
            b"G",
            b"GET",
            b"GET ",
            b"GET /",
            b"GET / ",
            b"GET / H",
            b"GET / HTTP/1.1",
            b"GET / HTTP/1.1\r",
            b"GET / HTTP/1.1\r\n",
            b"GET / HTTP/1.1\r\nHost",
            b"GET / HTTP/1.1\r\nHost:",
            b"GET / HTTP/1.1\r\nHost: a",
            b"GET / HTTP/1.1\r\nHost: a\r",
            b"GET / HTTP/1.1\r\nHost: a\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n\r",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhell",
        ],
    );
    table.bodies(
        Awaited,
        &[
            "",
            "5",
            "5\r",
            "5;",
            "5;a",
            "5;a=\"b",
            "5 ",
            "5\r\n",
            "5\r\nhell",
            "5\r\nhello",
            "5\r\nhello\r",
            "5\r\nhello\r\n",
            "5\r\nhello\r\n0",
            "5\r\nhello\r\n0\r",
            "5\r\nhello\r\n0\r\n",
            "5\r\nhello\r\n0\r\n\r",
            "5\r\nhello\r\n0\r\nX",
            "5\r\nhello\r\n0\r\nX:",
            "5\r\nhello\r\n0\r\nX: y\r\n",
            "3c\r\nhello",
        ],
    );
}

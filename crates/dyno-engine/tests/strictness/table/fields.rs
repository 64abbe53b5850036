//! Field lines: names, values, folding, Host, Connection, Expect, and how many and how long (RFC 9110 §5 to §7, RFC 9112 §5).

use super::Want::Refused;
use super::{HEAD_BYTES_MAX, HEADERS_MAX, Table, with_each_byte};

pub(super) fn add(table: &mut Table) {
    names(table);
    values(table);
    folding(table);
    hosts(table);
    connections(table);
    expectations(table);
    sizes(table);
}

fn names(table: &mut Table) {
    table.class("field name");
    let token = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz:";
    for (before, after) in [("", "ame: 1"), ("Na", "me: 1"), ("Name", ": 1")] {
        let before = format!("GET / HTTP/1.1\r\nHost: a\r\n{before}");
        for bytes in with_each_byte(before.as_bytes(), format!("{after}\r\n\r\n").as_bytes(), token) {
            // An empty line ends the head: what follows is another request, of which the line is none.
            table.row(Refused(400), bytes);
        }
    }
    table.fields(
        Refused(400),
        "hello",
        &[
            ":",
            ": a",
            ":a",
            ":: a",
            "a",
            "a b",
            "=",
            "a=b",
            "\"a\": b",
            "(a): b",
            "a/b: c",
            "a@b: c",
            "[a]: b",
            "{a}: b",
            "a,b: c",
            "a;b: c",
            "<a>: b",
            "a?b: c",
            "a\\b: c",
            "\u{e9}: a",
            "a\u{a0}: b",
            "X : 1",
            "X\t: 1",
            "X  : 1",
            "Content-Length : 5",
            "Content-Length\t: 5",
            "Content-Length\x0b: 5",
            "Content-Length\0: 5",
            "Transfer-Encoding : chunked",
            "Transfer-Encoding\t: chunked",
            "Transfer-Encoding\x0c: chunked",
            "Content Length: 5",
            "Transfer Encoding: chunked",
            "Content-Length\u{a0}: 5",
            "Content-Length",
            "Content-Length=5",
            "Content-Length 5",
            "\0Content-Length: 5",
            "\x0bTransfer-Encoding: chunked",
        ],
    );
}

fn values(table: &mut Table) {
    table.class("field value");
    let sane: Vec<u8> = (b' '..=b'~').chain(0x80..=u8::MAX).chain([b'\t']).collect();
    for (before, after) in [("X: ", "b"), ("X: a", "b"), ("X: a", "")] {
        let before = format!("GET / HTTP/1.1\r\nHost: a\r\n{before}");
        // A line feed alone, a carriage return alone, NUL, DEL and every other control.
        for bytes in with_each_byte(before.as_bytes(), format!("{after}\r\n\r\n").as_bytes(), &sane) {
            // A carriage return before the line end is one alone too.
            table.row(Refused(400), bytes);
        }
    }
    table.fields(
        Refused(400),
        "hello",
        &[
            "Cookie: a\0b",
            "User-Agent: \x1b[31m",
            "X: a\x7f",
            "X: \x08",
            "Authorization: a\x01",
            "X: a\rb",
            "X: a\nb",
        ],
    );
}

fn folding(table: &mut Table) {
    table.class("folding");
    table.fields(
        Refused(400),
        "5\r\nhello\r\n0\r\n\r\n",
        &[
            " X: 1",
            "\tX: 1",
            "X: 1\r\n 2",
            "X: 1\r\n\t2",
            "X: 1\r\n ",
            "X: 1\r\n\t",
            "X:\r\n 1",
            "X:\r\n\t1",
            "X: 1\r\n \r\nY: 2",
            "Transfer-Encoding:\r\n chunked",
            "Transfer-Encoding: \r\n\tchunked",
            "Transfer-Encoding: chunked\r\n identity",
            "Transfer-Encoding: gzip,\r\n chunked",
            "Content-Length: 5\r\n 6",
            "Content-Length:\r\n 5",
            "Content-Length: 1\r\n\t0",
            "X: a\r\n Content-Length: 5",
            "X: a\r\n\tTransfer-Encoding: chunked",
            "Connection: keep-alive\r\n , close",
        ],
    );
    table.raw(
        Refused(400),
        &[
            b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost:\r\n a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
            b"GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\n\tX: a\r\nHost: a\r\n\r\n",
        ],
    );
}

fn hosts(table: &mut Table) {
    table.class("Host");
    table.heads(
        Refused(400),
        &[
            "X: 1",
            "X-Host: a",
            "Host: a\r\nHost: a",
            "Host: a\r\nHost: b",
            "Host: a\r\nhOST: b",
            "Host:\r\nHost:",
            "Host: a\r\nHost:",
            "Host:\r\nHost: a",
            "Host: a\r\nX: 1\r\nHost: a",
            "Host: a, b",
            "Host: a,b c",
            "Host: a b",
            "Host: a\tb",
            "Host: :",
            "Host: :80",
            "Host: a:80:80",
            "Host: a:x",
            "Host: a:-1",
            "Host: a:+1",
            "Host: a:65536",
            "Host: a:99999",
            "Host: a:080000",
            "Host: a:18446744073709551617",
            "Host: a: 80",
            "Host: a :80",
            "Host: a/b",
            "Host: a/",
            "Host: /",
            "Host: http://a",
            "Host: http://a/",
            "Host: u@a",
            "Host: u:p@a",
            "Host: a@",
            "Host: @",
            "Host: a?b",
            "Host: a#b",
            "Host: a\\b",
            "Host: a|b",
            "Host: a^b",
            "Host: a`b",
            "Host: a{b}",
            "Host: a<b>",
            "Host: \"a\"",
            "Host: a[b]",
            "Host: [",
            "Host: ]",
            "Host: []",
            "Host: [::1",
            "Host: ::1",
            "Host: [::1]a",
            "Host: [::1]:x",
            "Host: [::1]:65536",
            "Host: [::1::2]",
            "Host: [1]",
            "Host: [1.2.3.4]",
            "Host: [v]",
            "Host: [v1]",
            "Host: [::1%25eth0]",
            "Host: %",
            "Host: %4",
            "Host: %zz",
            "Host: \u{e9}",
            "Host: a\u{e9}",
            "Host: a:\u{661}",
            "Host: a\0b",
            "Host: a\0",
            "Host: \0",
            "Host: a\x7f",
            "Host: a\x0b",
            "Host : a",
            "Host\t: a",
            "Host\0: a",
            " Host: a",
            "Host",
            "Host a",
            "Host;a: a",
            "Host=a",
            "Ho st: a",
        ],
    );
    table.raw(
        Refused(400),
        &[b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", b"GET / HTTP/1.0\r\nHost: a b\r\n\r\n"],
    );
}

fn connections(table: &mut Table) {
    table.class("Connection");
    table.heads(
        Refused(400),
        &[
            "Host: a\r\nConnection: close keep-alive",
            "Host: a\r\nConnection: close;",
            "Host: a\r\nConnection: \"close\"",
            "Host: a\r\nConnection: a/b",
            "Host: a\r\nConnection: close=1",
            "Host: a\r\nConnection: (close)",
            "Host: a\r\nConnection: clos\u{e9}",
            "Host: a\r\nConnection: a, b c",
            "Host: a\r\nConnection: a\0",
            "Host: a\r\nConnection: close\x0b",
            "Host: a\r\nConnection : close",
            "Host: a\r\nConnection: {}",
        ],
    );
}

fn expectations(table: &mut Table) {
    table.class("Expect");
    table.fields(
        Refused(417),
        "hello",
        &[
            "Content-Length: 5\r\nExpect: 101-continue",
            "Content-Length: 5\r\nExpect: 100",
            "Content-Length: 5\r\nExpect: continue",
            "Content-Length: 5\r\nExpect:",
            "Expect:\r\n 100-continue",
            "Content-Length: 5\r\nExpect: 100-continue, x",
            "Content-Length: 5\r\nExpect: 100 continue",
            "Content-Length: 5\r\nExpect: 100-continue;q=1",
            "Content-Length: 5\r\nExpect: y100-continue",
            "Content-Length: 5\r\nExpect: 100-continue\r\nExpect: x",
            "Content-Length: 5\r\nExpect: 200-ok",
            "Expect: something",
            "Transfer-Encoding: chunked\r\nExpect: 100-continued",
        ],
    );
}

fn sizes(table: &mut Table) {
    table.class("number and length of fields");
    let fields = |count: usize| "A: b\r\n".repeat(count);
    for over in [1, 2, 20] {
        // Host is one of them.
        let many = fields(HEADERS_MAX - 1 + over);
        table.row(Refused(431), format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"));
    }
    let start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    for over in [1, 2, 50] {
        let value = "x".repeat(HEAD_BYTES_MAX - start.len() - 4 + over);
        table.row(Refused(431), format!("{start}{value}\r\n\r\n"));
    }
    table.row(Refused(431), format!("GET / HTTP/1.1\r\nHost: a\r\n{}", "n".repeat(HEAD_BYTES_MAX)));
    table.row(Refused(431), format!("GET / HTTP/1.1\r\nHost: a\r\nX:{}", " ".repeat(HEAD_BYTES_MAX)));
    table.row(Refused(431), format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", "a".repeat(HEAD_BYTES_MAX)));
    // A refusal that comes first is the one that is told.
    table.row(Refused(400), format!("GET / HTTP/1.1\r\nHost: a\r\nX : 1\r\n{}\r\n", fields(HEADERS_MAX)));
}

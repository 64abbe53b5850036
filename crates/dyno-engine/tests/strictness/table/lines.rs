//! Request lines: method, target, version, blanks and line ends (RFC 9112 §2 and §3).

use super::Want::Refused;
use super::{LINE_BYTES_MAX, Table, with_each_byte};

pub(super) fn add(table: &mut Table) {
    methods(table);
    targets(table);
    authorities(table);
    versions(table);
    blanks(table);
    line_ends(table);
    lengths(table);
}

fn methods(table: &mut Table) {
    table.class("method");
    let token = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz ";
    for bytes in with_each_byte(b"GE", b"T / HTTP/1.1\r\nHost: a\r\n\r\n", token) {
        table.row(Refused(400), bytes);
    }
    table.lines(
        Refused(400),
        &[
            "G(T / HTTP/1.1",
            "GET: / HTTP/1.1",
            "\"GET\" / HTTP/1.1",
            "GET, / HTTP/1.1",
            "GE\u{e9} / HTTP/1.1",
            "\0GET / HTTP/1.1",
            "GET\0 / HTTP/1.1",
            "\u{feff}GET / HTTP/1.1",
            "{GET} / HTTP/1.1",
            "/ HTTP/1.1",
            "HTTP/1.1 200 OK",
            "@GET / HTTP/1.1",
            "GET;x / HTTP/1.1",
            "GET=1 / HTTP/1.1",
        ],
    );
    table.lines(Refused(501), &["ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1"]);
    // The preface of HTTP/2, and the first bytes of TLS, SSL 2 and other protocols.
    table.class("another protocol");
    table.raw(
        Refused(400),
        &[
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10",
            b"\x00\x00\x00\x00",
            b"{\"jsonrpc\": \"2.0\"}\r\n",
            b"<?xml version=\"1.0\"?>\r\n",
            b"*1\r\n$4\r\nPING\r\n",
            b"EHLO a\r\nMAIL FROM:<a@b>\r\n",
            b"SSH-2.0-OpenSSH_9.2p1\r\n",
            b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\r\n\r\n\0\r\nQUIT\n",
        ],
    );
}

fn targets(table: &mut Table) {
    table.class("target");
    let graphic: Vec<u8> = (b'!'..=b'~').chain([b' ']).filter(|byte| *byte != b'#').collect();
    for bytes in with_each_byte(b"GET /a", b"b HTTP/1.1\r\nHost: a\r\n\r\n", &graphic) {
        table.row(Refused(400), bytes);
    }
    for bytes in with_each_byte(b"GET /?a", b"b HTTP/1.1\r\nHost: a\r\n\r\n", &graphic) {
        table.row(Refused(400), bytes);
    }
    table.lines(
        Refused(400),
        &[
            "GET a HTTP/1.1",
            "GET ?a HTTP/1.1",
            "GET . HTTP/1.1",
            "GET ../a HTTP/1.1",
            "GET \\a HTTP/1.1",
            "GET * HTTP/1.1",
            "POST * HTTP/1.1",
            "OPTIONS ** HTTP/1.1",
            "OPTIONS */a HTTP/1.1",
            "GET /%",
            "GET /% HTTP/1.1",
            "GET /%2 HTTP/1.1",
            "GET /%zz HTTP/1.1",
            "GET /%2\u{e9} HTTP/1.1",
            "GET /?%g0 HTTP/1.1",
            "GET /a#b HTTP/1.1",
            "GET #a HTTP/1.1",
            "GET a.b/c HTTP/1.1",
            "GET a.b:80 HTTP/1.1",
            "GET :80 HTTP/1.1",
            "GET %2f HTTP/1.1",
            "GET ;a HTTP/1.1",
            "GET & HTTP/1.1",
            "GET \"/\" HTTP/1.1",
            "GET </> HTTP/1.1",
            "GET {/} HTTP/1.1",
        ],
    );
}

fn authorities(table: &mut Table) {
    table.class("absolute form");
    table.lines(
        Refused(400),
        &[
            "GET http:/a HTTP/1.1",
            "GET http:// HTTP/1.1",
            "GET http:///a HTTP/1.1",
            "GET http://:80/ HTTP/1.1",
            "GET http://u@a/ HTTP/1.1",
            "GET http://u:p@a/ HTTP/1.1",
            "GET http://a@b@c/ HTTP/1.1",
            "GET http://a:65536/ HTTP/1.1",
            "GET http://a:99999999999999999999/ HTTP/1.1",
            "GET http://a:-1/ HTTP/1.1",
            "GET http://a:+80/ HTTP/1.1",
            "GET http://a:8o/ HTTP/1.1",
            "GET http://a:80:80/ HTTP/1.1",
            "GET http://a b/ HTTP/1.1",
            "GET http://a,b/ HTTP/1.1 ",
            "GET http://a\\b/ HTTP/1.1",
            "GET http://[::1/ HTTP/1.1",
            "GET http://::1/ HTTP/1.1",
            "GET http://[]/ HTTP/1.1",
            "GET http://[::g]/ HTTP/1.1",
            "GET http://[1.2.3.4]/ HTTP/1.1",
            "GET http://%zz/ HTTP/1.1",
            "GET http://a%/ HTTP/1.1",
            "GET http://\u{e9}/ HTTP/1.1",
            "GET http://a#b HTTP/1.1",
            "GET http://a/#b HTTP/1.1",
            "GET http:a HTTP/1.1",
            "GET http//a/ HTTP/1.1",
            "GET ftp://a/ HTTP/1.1",
            "GET file:///etc/passwd HTTP/1.1",
            "GET ws://a/ HTTP/1.1",
            "GET httpx://a/ HTTP/1.1",
            "GET //a/b://c d HTTP/1.1",
            "GET ://a/ HTTP/1.1",
            "GET urn:a:b HTTP/1.1",
            "GET javascript:1 HTTP/1.1",
            "GET http://a\0/ HTTP/1.1",
            "GET http:\\\\a\\ HTTP/1.1",
        ],
    );
    // RFC 9112 §3.2.2: a server must look at Host all the same.
    table.raw(
        Refused(400),
        &[
            b"GET http://a/ HTTP/1.1\r\n\r\n",
            b"GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            b"GET http://a/ HTTP/1.1\r\nHost: a b\r\n\r\n",
            b"GET http://a/ HTTP/1.1\r\nHost: u@a\r\n\r\n",
        ],
    );
    table.class("authority form");
    table.lines(
        Refused(400),
        &[
            "CONNECT / HTTP/1.1",
            "CONNECT /a HTTP/1.1",
            "CONNECT a HTTP/1.1",
            "CONNECT a: HTTP/1.1",
            "CONNECT :443 HTTP/1.1",
            "CONNECT a:x HTTP/1.1",
            "CONNECT a:65536 HTTP/1.1",
            "CONNECT * HTTP/1.1",
            "CONNECT http://a:443 HTTP/1.1",
            "CONNECT http://a:443/ HTTP/1.1",
            "CONNECT u@a:443 HTTP/1.1",
            "CONNECT a:443/ HTTP/1.1",
            "CONNECT a:443?b HTTP/1.1",
            "CONNECT a:443#b HTTP/1.1",
            "CONNECT a:443,b:443 HTTP/1.1",
            "CONNECT [::1:443 HTTP/1.1",
            "GET a:443 HTTP/1.1",
            "OPTIONS a:443 HTTP/1.1",
        ],
    );
}

fn versions(table: &mut Table) {
    table.class("version");
    table.lines(
        Refused(400),
        &[
            "GET / http/1.1",
            "GET / Http/1.1",
            "GET / HTTP/1",
            "GET / HTTP/1.",
            "GET / HTTP/.1",
            "GET / HTTP/1.x",
            "GET / HTTP/x.1",
            "GET / HTTP/1,1",
            "GET / HTTP/11.1",
            "GET / HTTP/1.10",
            "GET / HTTP/1.1.1",
            "GET / HTTP/1.01",
            "GET / HTTP1.1",
            "GET / HTTP//1.1",
            "GET / HTTP\\1.1",
            "GET / HTTPS/1.1",
            "GET / 1.1",
            "GET / HTTP/-1.1",
            "GET / HTTP/+1.1",
            "GET / HTTP/1.-1",
            "GET / HTTP/\u{661}.1",
            "GET / XTTP/1.1",
            "GET / HTTP/1.1x",
            "GET / HTTP/1.1;",
            "GET / HTTP/1.1,HTTP/1.0",
            "GET / SIP/2.0",
            "GET / RTSP/1.0",
            "GET / ICE/1.0",
            "GET / IHTTP/1.0",
            "GET / HTTP/1.1\0",
            "GET / HTTP/1.\x001",
            "GET / HTTP/1.1/",
            "GET / \"HTTP/1.1\"",
            "GET / HTTP /1.1",
            "GET / HTTP/ 1.1",
            "GET / HTTP/1 .1",
            "GET / HTTP/1.\u{e9}",
            "GET / HTTP/A.B",
        ],
    );
    table.lines(
        Refused(505),
        &[
            "GET / HTTP/0.9",
            "GET / HTTP/0.0",
            "GET / HTTP/2",
            "GET / HTTP/2.0",
            "GET / HTTP/3.0",
            "GET / HTTP/9.9",
            "GET / HTTP/01.1",
            "GET / HTTP/0x1.1",
        ],
    );
    table.class("HTTP/0.9");
    table.raw(
        Refused(400),
        &[
            b"GET /\r\n",
            b"GET /\n",
            b"GET /index.html\r\n\r\n",
            b"GET / \r\n",
            b"GET /\r\nHost: a\r\n\r\n",
            b"GET http://a/\r\n\r\n",
            b"POST /\r\n\r\n",
            b"GET /\r\r\n",
        ],
    );
}

fn blanks(table: &mut Table) {
    table.class("blanks of the request line");
    table.lines(
        Refused(400),
        &[
            " GET / HTTP/1.1",
            "\tGET / HTTP/1.1",
            "GET  / HTTP/1.1",
            "GET /  HTTP/1.1",
            "GET / HTTP/1.1 ",
            "GET / HTTP/1.1  ",
            "GET / HTTP/1.1\t",
            "GET\t/ HTTP/1.1",
            "GET /\tHTTP/1.1",
            "GET / a HTTP/1.1",
            "GET /\x0bHTTP/1.1",
            "GET\x0b/ HTTP/1.1",
            "GET\x0c/ HTTP/1.1",
            "GET /\x0cHTTP/1.1",
            "GET / HTTP/1.1\x0b",
            "GET /\u{a0}HTTP/1.1",
            "GET\u{a0}/ HTTP/1.1",
            "GET / HTTP/1.1 HTTP/1.1",
            "GET / HTTP/1.1 a",
            "GET HTTP/1.1",
            "GET",
            "GET ",
            " ",
            "GET \t/ HTTP/1.1",
            "GET /a b HTTP/1.1",
            "GET /a%20b c HTTP/1.1",
        ],
    );
}

fn line_ends(table: &mut Table) {
    table.class("line ends");
    table.raw(
        Refused(400),
        &[
            b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\r\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\r\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\r\n GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\nHost: a\n\n",
            b"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\rHost: a\r\r",
            b"GET / HTTP/1.1\n\rHost: a\n\r\n\r",
            b"GET / HTTP/1.1\r\n\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\n\rHost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r \r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n\rX",
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\r\n",
            b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
            b"GET / HTTP/1.1\r\nX: b\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nX: b\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nX: b\nContent-Length: 5\r\n\r\nhello",
            b"POST / HTTP/1.1\r\nHost: a\r\nX: b\rContent-Length: 5\r\n\r\nhello",
            b"GET /\nHost: a HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET /a\rb HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\xe2\x80\xa8Host: a\r\n\r\n",
            b"GET / HTTP/1.1\x85Host: a\r\n\r\n",
            b"GET / HTTP/1.1\0\r\nHost: a\r\n\r\n",
        ],
    );
}

fn lengths(table: &mut Table) {
    table.class("length of the request line");
    // Method, two blanks and version take 13 bytes.
    for over in 1..4 {
        let name = "x".repeat(LINE_BYTES_MAX - 14 + over);
        table.lines(
            Refused(414),
            &[&format!("GET /{name} HTTP/1.1"), &format!("GET /?{} HTTP/1.1", &name[1..])],
        );
    }
    table.row(Refused(414), format!("GET /{}", "x".repeat(LINE_BYTES_MAX * 2)));
    table
        .row(Refused(414), format!("GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(LINE_BYTES_MAX)));
    table.row(Refused(501), "A".repeat(LINE_BYTES_MAX * 2));
}

//! Requests and request lines written from RFC 9112 §2 and §3 and RFC 3986, and what must become of them, at
//! every cut.

use crate::support::{Outcome, accepted, decided_at, outcome, read, refused, with_line, with_target};
use dyno_proto::http1::request::{BodyLength, EMPTY_LINES_MAX, METHOD_BYTES_MAX, Reject, Version};

#[test]
fn an_ordinary_request_is_read() {
    let bytes =
        b"GET /json?a=1&b=?2 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept:\t*/* \r\nX-Empty:\r\n\r\nrest";
    let request = accepted(bytes);
    assert_eq!((request.method.as_str(), request.version), ("GET", Version::Http11));
    assert_eq!(request.target, b"/json?a=1&b=?2");
    assert_eq!((request.path.as_slice(), request.query.as_deref()), (&b"/json"[..], Some(&b"a=1&b=?2"[..])));
    assert_eq!(request.host.as_deref(), Some(&b"127.0.0.1:8080"[..]));
    assert_eq!(request.headers[0], (b"Host".to_vec(), b"127.0.0.1:8080".to_vec()));
    assert_eq!(request.headers[1], (b"Accept".to_vec(), b"*/*".to_vec()));
    assert_eq!(request.headers[2], (b"X-Empty".to_vec(), b"".to_vec()));
    assert_eq!(request.body, BodyLength::None);
    assert!(request.keep_alive && !request.expect_continue);
    assert_eq!(request.used, bytes.len() - 4);
}

#[test]
fn requests_of_one_buffer_are_read_one_after_the_other() {
    let bytes = [with_target("/1"), with_target("/22"), with_target("/333")].concat();
    let mut at = 0;
    for path in ["/1", "/22", "/333"] {
        let Outcome::Whole(request) = read(&bytes[at..]) else { panic!("{path} is not whole") };
        assert_eq!(request.path, path.as_bytes());
        at += request.used;
    }
    assert_eq!(at, bytes.len());
}

#[test]
fn every_method_that_is_a_token_is_read() {
    let long = "A".repeat(METHOD_BYTES_MAX);
    for method in [
        "GET",
        "HEAD",
        "POST",
        "PUT",
        "DELETE",
        "PATCH",
        "TRACE",
        "get",
        "Get",
        "GE",
        "GETT",
        "G",
        "M-SEARCH",
        "PROPFIND",
        "!#$%&'*+-.^_`|~09azAZ",
        &long,
    ] {
        let bytes = with_line(format!("{method} / HTTP/1.1").as_bytes());
        assert_eq!(accepted(&bytes).method, method);
    }
}

#[test]
fn a_method_with_any_other_byte_is_refused() {
    for byte in 0..=255u8 {
        let token = byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if token || byte == b' ' {
            continue;
        }
        for line in [vec![byte], vec![b'G', byte], vec![b'G', b'E', b'T', byte], vec![b'P', b'O', byte, b'T']]
        {
            // An empty line before the request is no method.
            if line == b"\r" {
                continue;
            }
            refused(400, &with_line(&[&line[..], b" / HTTP/1.1"].concat()));
        }
    }
}

#[test]
fn a_method_that_is_too_long_is_not_implemented() {
    for length in [METHOD_BYTES_MAX + 1, 100, 9_000] {
        let bytes = "A".repeat(length).into_bytes();
        assert_eq!(refused(501, &bytes), Reject::MethodLong);
        assert_eq!(decided_at(&bytes), Some(METHOD_BYTES_MAX + 1));
    }
}

#[test]
fn blanks_around_the_parts_of_a_request_line_are_refused() {
    for line in [
        " GET / HTTP/1.1",
        "\tGET / HTTP/1.1",
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET / HTTP/1.1\t",
        "GET\t/ HTTP/1.1",
        "GET /\tHTTP/1.1",
        "GET / HTTP/ 1.1",
        "GET / HTTP/1. 1",
        "GET / HTTP /1.1",
        "GET / a HTTP/1.1",
        "GET /\x0bHTTP/1.1",
        "GET\x0b/ HTTP/1.1",
        "GET\x0c/ HTTP/1.1",
        "GET / HTTP/1.1\x0b",
        "GET /\u{a0} HTTP/1.1",
        "\u{feff}GET / HTTP/1.1",
        "GET / HTTP/1.1 HTTP/1.1",
        " ",
        "  ",
        "GET",
        "GET ",
        "GET /",
        "GET / ",
        "/ HTTP/1.1",
        "HTTP/1.1",
        "GET HTTP/1.1",
        ":",
        "GET: /",
    ] {
        refused(400, &with_line(line.as_bytes()));
    }
}

#[test]
fn versions_are_told_apart() {
    for (version, read) in [
        ("HTTP/1.0", Version::Http10),
        ("HTTP/1.1", Version::Http11),
        ("HTTP/1.2", Version::Http11),
        ("HTTP/1.9", Version::Http11),
    ] {
        assert_eq!(accepted(&with_line(format!("GET / {version}").as_bytes())).version, read);
    }
    for version in ["HTTP/0.9", "HTTP/0.0", "HTTP/2.0", "HTTP/2", "HTTP/3.0", "HTTP/9.9", "HTTP/2.0 "] {
        assert_eq!(
            refused(505, &with_line(format!("GET / {version}").as_bytes())),
            Reject::VersionUnsupported
        );
    }
    for version in [
        "",
        "http/1.1",
        "Http/1.1",
        "HTTP/1",
        "HTTP/1.",
        "HTTP/1.x",
        "HTTP/x.1",
        "HTTP/1,1",
        "HTTP/11.1",
        "HTTP/1.10",
        "HTTP/1.1.1",
        "HTTP/01.1",
        "HTTP/1.01",
        "HTTP1.1",
        "HTTP//1.1",
        "HTTP\\1.1",
        "HTTPS/1.1",
        "HTTQ/1.1",
        "1.1",
        "HTTP/-1.1",
        "HTTP/+1.1",
        "HTTP/1.-1",
        "HTTP/\u{661}.1",
        "XTTP/1.1",
        "HTTP/1.1x",
        "HTTP/1.1;",
        "SIP/2.0",
        "RTSP/1.0",
        "ICY",
        "HTTP/1.1\0",
        "HTTP/1.\x001",
        "H",
        "HTTP",
        "HTTP/",
    ] {
        // "HTTP/01.1" begins like a version 0, which is none that is served.
        let status = if version.starts_with("HTTP/0") { 505 } else { 400 };
        refused(status, &with_line(format!("GET / {version}").as_bytes()));
    }
}

#[test]
fn requests_of_http_0_9_are_refused() {
    for bytes in ["GET /\r\n", "GET /\n", "GET /index.html\r\n\r\n", "GET / \r\n", "GET /\r"] {
        assert!(matches!(outcome(bytes.as_bytes()), Outcome::Reject(Reject::Version)), "{bytes:?}");
    }
}

#[test]
fn line_ends_are_carriage_return_and_line_feed() {
    for (bytes, reject) in [
        ("\n", Reject::BareFeed),
        ("\nGET / HTTP/1.1\r\n", Reject::BareFeed),
        ("\r\n\nGET / HTTP/1.1\r\n", Reject::BareFeed),
        ("\rGET / HTTP/1.1\r\n", Reject::BareReturn),
        ("\r\rGET / HTTP/1.1\r\n", Reject::BareReturn),
        ("GET / HTTP/1.1\n", Reject::BareFeed),
        ("GET / HTTP/1.1\r\r\n", Reject::BareReturn),
        ("GET / HTTP/1.1\rHost: a\r\n", Reject::BareReturn),
        ("GET / HTTP/1.1\r\n\n", Reject::BareFeed),
        ("GET / HTTP/1.1\r\n\rHost: a\r\n\r\n", Reject::BareReturn),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", Reject::BareFeed),
        ("GET / HTTP/1.1\r\nHost: a\r\r\n", Reject::BareReturn),
        ("GET / HTTP/1.1\r\nHost: a\rb: c\r\n", Reject::BareReturn),
        ("GET / HTTP/1.1\r\nHost: a\r \r\n", Reject::BareReturn),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", Reject::BareFeed),
        ("GET / HTTP/1.1\r\nHost: a\r\n\rX", Reject::BareReturn),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\r\n", Reject::BareReturn),
        ("GET / HTTP/1.1\r\nHost:\n a\r\n\r\n", Reject::BareFeed),
        ("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", Reject::BareFeed),
        ("GET / HTTP/1.1\r\nX: b\nContent-Length: 5\r\n\r\n", Reject::BareFeed),
        ("GET / HTTP/1.1\r\nX\r\n\r\n", Reject::FieldName),
        ("GET / HTTP/1.1\r\nX\n", Reject::FieldName),
    ] {
        assert_eq!(refused(400, bytes.as_bytes()), reject, "{bytes:?}");
    }
}

#[test]
fn a_few_empty_lines_before_a_request_are_passed_over() {
    for lines in 0..=EMPTY_LINES_MAX {
        let bytes = ["\r\n".repeat(lines).into_bytes(), with_target("/")].concat();
        assert_eq!(accepted(&bytes).used, bytes.len());
    }
    let bytes = ["\r\n".repeat(EMPTY_LINES_MAX + 1).into_bytes(), with_target("/")].concat();
    assert_eq!(refused(400, &bytes), Reject::Method);
    assert_eq!(read(b""), Outcome::NeedMore);
    assert_eq!(read(b"\r\n"), Outcome::NeedMore);
}

#[test]
fn a_target_may_have_any_byte_that_needs_no_escape() {
    for byte in 0x21..0x7fu8 {
        if b"#%?".contains(&byte) {
            continue;
        }
        let target = [b"/a", &[byte][..], b"b?c", &[byte], b"d"].concat();
        let request = accepted(&with_line(&[b"GET ", &target[..], b" HTTP/1.1"].concat()));
        assert_eq!(request.target, target);
        assert_eq!(request.path, [b'/', b'a', byte, b'b']);
    }
}

#[test]
fn a_target_with_a_byte_that_must_be_escaped_is_refused() {
    for byte in (0..0x20u8).chain(0x7f..=255).chain([b'#']) {
        for place in 0..12 {
            let mut target = b"/0123456?89a".to_vec();
            target.insert(place + 1, byte);
            refused(400, &with_line(&[b"GET ", &target[..], b" HTTP/1.1"].concat()));
        }
    }
}

#[test]
fn escapes_of_a_target_are_checked_and_kept() {
    for target in ["/%41", "/%2f%2F", "/%00", "/a%20b?c=%26", "/%c3%a9", "/%25zz", "/?%3f", "/%ff"] {
        assert_eq!(accepted(&with_target(target)).target, target.as_bytes());
    }
    for target in [
        "/%",
        "/%4",
        "/%4g",
        "/%g4",
        "/%%41",
        "/% 41",
        "/%\u{e9}1",
        "/a?%",
        "/a?b=%2",
        "/%+1",
        "/%0x",
        "/%u0041",
    ] {
        assert_eq!(refused(400, &with_target(target)), Reject::TargetEscape, "{target}");
    }
}

#[test]
fn path_and_query_are_parted_at_the_first_question_mark() {
    for (target, path, query) in [
        ("/", "/", None),
        ("/?", "/", Some("")),
        ("/a?b", "/a", Some("b")),
        ("/a??b", "/a", Some("?b")),
        ("/a?b?c/d", "/a", Some("b?c/d")),
        ("//a", "//a", None),
        ("/%3fa?b", "/%3fa", Some("b")),
        ("/..//../a", "/..//../a", None),
        ("/a:b@c;d=e", "/a:b@c;d=e", None),
        ("/*", "/*", None),
    ] {
        let request = accepted(&with_target(target));
        assert_eq!(request.path, path.as_bytes(), "{target}");
        assert_eq!(request.query.as_deref(), query.map(str::as_bytes), "{target}");
    }
}

#[test]
fn an_absolute_target_gives_host_and_path() {
    for (target, host, path, query) in [
        ("http://b/", "b", "/", None),
        ("http://b", "b", "/", None),
        ("HTTP://b/c", "b", "/c", None),
        ("https://b:443/c?d", "b:443", "/c", Some("d")),
        ("HttpS://b.example:8443/c?d?e", "b.example:8443", "/c", Some("d?e")),
        ("http://b?c=d", "b", "/", Some("c=d")),
        ("http://[::1]:80/c", "[::1]:80", "/c", None),
        ("http://1.2.3.4:80", "1.2.3.4:80", "/", None),
        ("http://b//c", "b", "//c", None),
        ("http://%62/c", "%62", "/c", None),
    ] {
        let request = accepted(&with_target(target));
        assert_eq!(request.host.as_deref(), Some(host.as_bytes()), "{target}");
        assert_eq!(request.path, path.as_bytes(), "{target}");
        assert_eq!(request.query.as_deref(), query.map(str::as_bytes), "{target}");
    }
}

#[test]
fn a_target_of_no_form_is_refused() {
    for target in [
        "a",
        "json",
        "*",
        "**",
        "?a",
        "127.0.0.1",
        "a:80",
        "a.example:80/b",
        "http",
        "https",
        "http:",
        "http:/",
        "http:/a",
        "http:///a",
        "http://",
        "http://?a",
        "http://:80/",
        "http://a:b/",
        "http://a:80:80/",
        "http://u@a/",
        "http://u:p@a/",
        "http://a b/",
        "http://[::1/",
        "http://::1/",
        "http://[1.2.3.4]/",
        "http://a:65536/",
        "http://a#b",
        "http://a/#b",
        "http://a\\b/",
        "http://a/%",
        "http://%zz/",
        "http://\u{e9}/",
        "httpx://a/",
        "httpss://a/",
        "ftp://a/",
        "file:///a",
        "ws://a/",
        "mailto:a",
        "//a",
        "\\a",
        "%2f",
        ".",
        "./a",
        "../a",
        "-",
        "\"/\"",
        "</>",
        "[::1]",
        "h",
        "ht",
        "\u{e9}",
    ] {
        // A path may begin with two slashes: its meaning is the router's business.
        if target != "//a" {
            refused(400, &with_target(target));
        }
    }
}

#[test]
fn the_asterisk_is_for_options_alone() {
    let request = accepted(&with_line(b"OPTIONS * HTTP/1.1"));
    assert_eq!((request.target.as_slice(), request.path.as_slice()), (&b"*"[..], &b"*"[..]));
    let request = accepted(&with_line(b"OPTIONS http://b:80 HTTP/1.1"));
    assert_eq!((request.target.as_slice(), request.host.as_deref()), (&b"*"[..], Some(&b"b:80"[..])));
    assert_eq!(accepted(&with_line(b"OPTIONS http://b/ HTTP/1.1")).target, b"/");
    assert_eq!(accepted(&with_line(b"OPTIONS /a HTTP/1.1")).target, b"/a");
    for line in
        ["GET *", "POST *", "OPTIONS **", "OPTIONS */", "OPTIONS *?a", "OPTIONS *a", "options *", "OPTION *"]
    {
        assert_eq!(refused(400, &with_line(format!("{line} HTTP/1.1").as_bytes())), Reject::TargetForm);
    }
}

#[test]
fn connect_wants_host_and_port() {
    let request = accepted(&with_line(b"CONNECT b.example:443 HTTP/1.1"));
    assert_eq!(
        (request.target.as_slice(), request.host.as_deref()),
        (&b"b.example:443"[..], Some(&b"b.example:443"[..]))
    );
    assert_eq!(request.query, None);
    accepted(&with_line(b"CONNECT [::1]:443 HTTP/1.1"));
    for target in [
        "b",
        "b:",
        ":443",
        "/",
        "/a",
        "*",
        "http://b:443/",
        "b:443/",
        "b:443?a",
        "u@b:443",
        "b:x",
        "b:443 ",
        "b:65536",
    ] {
        refused(400, &with_line(format!("CONNECT {target} HTTP/1.1").as_bytes()));
    }
}

#[test]
fn valid_oddities_are_accepted() {
    for bytes in [
        "GET / HTTP/1.1\r\nhost:a\r\n\r\n",
        "GET / HTTP/1.1\r\nHOST:\t\ta\t\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%7Euser/%e2%82%ac HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a/./b/../c//d HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /?? HTTP/1.1\r\nHost: a\r\n\r\n",
        "DELETE / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Type:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\nx: 3\r\n\r\n",
        "GET / HTTP/1.1\r\nX: 1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTrailer: X\r\nUpgrade: h2c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length-X: x\r\nX-Content-Length: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\nContent_Length: x\r\n\r\n",
        "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
        "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        accepted(bytes.as_bytes());
    }
}

#[test]
fn a_request_that_is_cut_is_waited_for() {
    let bytes =
        b"POST /a%20b?c HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    for length in 0..bytes.len() {
        assert_eq!(read(&bytes[..length]), Outcome::NeedMore, "{length}");
    }
    let absolute = b"OPTIONS https://b:1/c HTTP/1.0\r\nX: y\r\n\r\n";
    for length in 0..absolute.len() {
        assert_eq!(read(&absolute[..length]), Outcome::NeedMore, "{length}");
    }
}

#[test]
fn a_refusal_comes_with_the_first_wrong_byte() {
    for wrong in [
        "\n",
        "\rX",
        " ",
        "G(",
        "GET  ",
        "GET j",
        "GET *",
        "GET /#",
        "GET /%g",
        "GET /%4x",
        "GET /\r",
        "GET / h",
        "GET / HTTP/2",
        "GET / HTTP/x",
        "GET / HTTP/1.1 ",
        "GET / HTTP/1.1\n",
        "GET / HTTP/1.1\rX",
        "GET / HTTP/1.1\r\n ",
        "GET / HTTP/1.1\r\n:",
        "GET / HTTP/1.1\r\nA ",
        "GET / HTTP/1.1\r\nA\r",
        "GET / HTTP/1.1\r\nA: \0",
        "GET / HTTP/1.1\r\nA: b\n",
        "GET / HTTP/1.1\r\nA: b\rc",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\r\n\t",
        "GET / HTTP/1.1\r\nContent-Length: x\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n",
        "CONNECT /",
        "CONNECT a ",
        "GET http:x",
        "GET http://a@",
        "OPTIONS *x",
    ] {
        assert_eq!(decided_at(wrong.as_bytes()), Some(wrong.len()), "{wrong:?}");
        assert!(matches!(read(wrong.as_bytes()), Outcome::Reject(_)), "{wrong:?}");
    }
}

//! Conditional requests: 304 and 412, by tag and by date.

use super::common::{Client, addr};
use super::folder::{Folder, get, request, text};

const BEFORE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const AFTER: &str = "Fri, 06 Nov 2093 08:49:37 GMT";

#[test]
fn who_has_it_is_told_so_and_who_wants_another_too() {
    let folder = Folder::new("conditions").with("a.js", text(5_000));
    let running = folder.serve();
    let whole = get(&running, "/a.js", "");
    let (tag, date) = (whole.header("etag").unwrap(), whole.header("last-modified").unwrap());
    for (lines, status) in [
        (format!("If-None-Match: {tag}"), 304),
        (format!("If-None-Match: W/{tag}"), 304),
        (format!("If-None-Match: \"x\", {tag}"), 304),
        (format!("If-None-Match: \"x\"\r\nIf-None-Match: {tag}"), 304),
        ("If-None-Match: *".to_owned(), 304),
        ("If-None-Match: \"x\"".to_owned(), 200),
        (format!("If-Modified-Since: {date}"), 304),
        (format!("If-Modified-Since: {AFTER}"), 304),
        (format!("If-Modified-Since: {BEFORE}"), 200),
        ("If-Modified-Since: yesterday".to_owned(), 200),
        (format!("If-Modified-Since: {AFTER}\r\nIf-Modified-Since: {AFTER}"), 200),
        (format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {AFTER}"), 200),
        (format!("If-None-Match: {tag}\r\nIf-Modified-Since: {BEFORE}"), 304),
        (format!("If-Match: {tag}"), 200),
        ("If-Match: *".to_owned(), 200),
        (format!("If-Match: W/{tag}"), 412),
        ("If-Match: \"x\"".to_owned(), 412),
        (format!("If-Match: \"x\"\r\nIf-Match: \"y\", {tag}"), 200),
        (format!("If-Unmodified-Since: {date}"), 200),
        (format!("If-Unmodified-Since: {BEFORE}"), 412),
        (format!("If-Match: {tag}\r\nIf-Unmodified-Since: {BEFORE}"), 200),
        (format!("If-Match: \"x\"\r\nIf-None-Match: {tag}"), 412),
        (format!("If-Match: {tag}\r\nIf-None-Match: {tag}"), 304),
        (format!("If-None-Match: {tag}\r\nRange: bytes=0-1"), 304),
        (format!("If-Match: {tag}\r\nRange: bytes=0-1"), 206),
    ] {
        let reply = get(&running, "/a.js", &format!("{lines}\r\n"));
        assert_eq!(reply.status, status, "{lines}");
    }
}

#[test]
fn an_unchanged_file_has_its_validators_and_no_content() {
    let folder = Folder::new("unchanged").with("a.js", text(5_000));
    let running = folder.serve();
    let mut client = Client::connect(addr(&running));
    let whole = client.ask(request("GET", "/a.js?maxage=7", ""));
    let lines = format!("If-None-Match: {}\r\n", whole.header("etag").unwrap());
    let reply = client.ask(request("GET", "/a.js?maxage=7", &lines));
    assert_eq!(reply.status, 304);
    for name in ["etag", "last-modified", "vary", "cache-control"] {
        assert!(reply.header(name).is_some() && reply.header(name) == whole.header(name), "{name}");
    }
    for name in ["content-length", "content-type", "content-encoding"] {
        assert_eq!(reply.header(name), None, "{name}");
    }
    // The connection goes on where the reply ended.
    assert_eq!(client.ask(request("GET", "/a.js", "")).body, whole.body);
}

#[test]
fn each_coding_is_known_by_its_own_tag() {
    let folder = Folder::new("tags").with("a.js", text(5_000));
    let running = folder.serve();
    let br = get(&running, "/a.js", "Accept-Encoding: br\r\n");
    let lines = format!("If-None-Match: {}\r\n", br.header("etag").unwrap());
    assert_eq!(get(&running, "/a.js", &format!("{lines}Accept-Encoding: br\r\n")).status, 304);
    assert_eq!(get(&running, "/a.js", &format!("{lines}Accept-Encoding: gzip\r\n")).status, 200);
}

#[test]
fn the_tag_stays_from_start_to_start() {
    let folder = Folder::new("restart").with("a.js", text(5_000));
    let tags = |coding: &str| {
        let running = folder.serve();
        let lines = format!("Accept-Encoding: {coding}\r\n");
        get(&running, "/a.js", &lines).header("etag").unwrap().to_owned()
    };
    for coding in ["identity", "gzip", "br"] {
        assert_eq!(tags(coding), tags(coding), "{coding}");
    }
}

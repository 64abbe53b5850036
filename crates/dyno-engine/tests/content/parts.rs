//! Ranges: every part against the file, byte by byte, from memory and by `sendfile`.

use super::folder::{Folder, get, noise, text};
use dyno_engine::Running;

/// The parts of a multipart/byteranges reply: Content-Range and bytes.
fn parts_of(reply: &super::common::Reply) -> Vec<(String, Vec<u8>)> {
    let media = reply.header("content-type").unwrap();
    let boundary = media.strip_prefix("multipart/byteranges; boundary=").unwrap();
    let (delimiter, end) = (format!("\r\n--{boundary}\r\n"), format!("\r\n--{boundary}--\r\n"));
    let mut rest = reply.body.strip_suffix(end.as_bytes()).unwrap();
    let mut parts = Vec::new();
    while let Some(part) = rest.strip_prefix(delimiter.as_bytes()) {
        let head_end = part.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(part[..head_end].to_vec()).unwrap();
        let range = head.lines().find_map(|line| line.strip_prefix("Content-Range: ")).unwrap();
        assert!(head.starts_with("Content-Type: "), "{head}");
        let after = &part[head_end + 4..];
        let next = after.windows(delimiter.len()).position(|bytes| bytes == delimiter.as_bytes());
        let length = next.unwrap_or(after.len());
        parts.push((range.to_owned(), after[..length].to_vec()));
        rest = &after[length..];
    }
    assert!(rest.is_empty());
    parts
}

fn check(running: &Running, path: &str, file: &[u8]) {
    let length = file.len();
    let last = length - 1;
    for (first, end) in
        [(0, 1), (0, length), (1, 2), (last, length), (length / 3, length / 2), (7, length - 7)]
    {
        let reply = get(running, path, &format!("Range: bytes={first}-{}\r\n", end - 1));
        assert!(
            reply.status == 206 && reply.body == file[first..end],
            "{path} {first}..{end}: {}",
            reply.head
        );
        let told = format!("bytes {first}-{}/{length}", end - 1);
        assert_eq!(reply.header("content-range"), Some(told.as_str()));
    }
    for (value, range) in [
        (format!("{}-", length - 5), length - 5..length),
        ("-5".to_owned(), length - 5..length),
        (format!("-{}", length * 2), 0..length),
        (format!("5-{}", length * 2), 5..length),
    ] {
        let reply = get(running, path, &format!("Range: bytes={value}\r\n"));
        assert!(reply.status == 206 && reply.body == file[range], "{path} {value}");
    }
    let several = get(running, path, &format!("Range: bytes=0-9,{}-, 100-199\r\n", length - 3));
    assert_eq!(several.status, 206);
    let expected = [
        (format!("bytes 0-9/{length}"), file[..10].to_vec()),
        (format!("bytes {}-{last}/{length}", length - 3), file[length - 3..].to_vec()),
        (format!("bytes 100-199/{length}"), file[100..200].to_vec()),
    ];
    assert_eq!(parts_of(&several), expected, "{path}");
    let beyond = get(running, path, &format!("Range: bytes={length}-\r\n"));
    let told = format!("bytes */{length}");
    assert_eq!((beyond.status, beyond.header("content-range")), (416, Some(told.as_str())));
    for whole in ["bytes=5-2", "items=0-1", "bytes=x", "bytes=0-,0-"] {
        let reply = get(running, path, &format!("Range: {whole}\r\n"));
        assert!(reply.status == 200 && reply.body == file, "{path} {whole}");
    }
    let twice = get(running, path, "Range: bytes=0-1\r\nRange: bytes=2-3\r\n");
    assert!(twice.status == 200 && twice.body == file, "{path}");
}

#[test]
fn parts_are_the_bytes_of_the_file() {
    let (small, middle, large) = (noise(300), noise(50_000), noise(1_500_000));
    let folder = Folder::new("parts").with("small", &small).with("middle", &middle).with("large", &large);
    let running = folder.serve();
    check(&running, "/small", &small);
    check(&running, "/middle", &middle);
    check(&running, "/large", &large);
}

#[test]
fn parts_of_a_coding_are_parts_of_what_is_sent() {
    let folder = Folder::new("coded").with("a.js", text(500_000));
    let running = folder.serve();
    let whole = get(&running, "/a.js", "Accept-Encoding: gzip\r\n");
    assert_eq!(whole.header("content-encoding"), Some("gzip"));
    let part = get(&running, "/a.js", "Accept-Encoding: gzip\r\nRange: bytes=10-99\r\n");
    assert_eq!((part.status, part.header("content-encoding")), (206, Some("gzip")));
    assert_eq!(part.body, whole.body[10..100]);
    assert_eq!(part.header("etag"), whole.header("etag"));
}

#[test]
fn a_part_stands_only_for_the_version_that_it_is_of() {
    let folder = Folder::new("ifrange").with("a.bin", noise(1_000));
    let running = folder.serve();
    let whole = get(&running, "/a.bin", "");
    let (tag, date) = (whole.header("etag").unwrap(), whole.header("last-modified").unwrap());
    let other = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (value, status) in [(tag, 206), (date, 206), ("\"x\"", 200), (other, 200), (&format!("W/{tag}"), 200)]
    {
        let reply = get(&running, "/a.bin", &format!("Range: bytes=0-9\r\nIf-Range: {value}\r\n"));
        assert_eq!(reply.status, status, "{value}");
        assert_eq!(reply.body.len(), if status == 206 { 10 } else { 1_000 });
    }
    let twice = format!("Range: bytes=0-9\r\nIf-Range: {tag}\r\nIf-Range: {tag}\r\n");
    assert_eq!(get(&running, "/a.bin", &twice).status, 200);
}

#[test]
fn nothing_has_no_parts() {
    let folder = Folder::new("nothing").with("empty", "");
    let running = folder.serve();
    let reply = get(&running, "/empty", "Range: bytes=0-\r\n");
    assert_eq!((reply.status, reply.header("content-range")), (416, Some("bytes */0")));
    assert_eq!(get(&running, "/empty", "Range: bytes=-5\r\n").status, 200);
}

#[test]
fn more_parts_than_a_reply_has_are_the_whole() {
    let folder = Folder::new("many").with("a.bin", noise(1_000));
    let running = folder.serve();
    let list = |count: usize| (0..count).map(|at| format!("{at}-{at}")).collect::<Vec<_>>().join(",");
    let ask = |count| get(&running, "/a.bin", &format!("Range: bytes={}\r\n", list(count)));
    assert_eq!((ask(16).status, parts_of(&ask(16)).len()), (206, 16));
    assert_eq!((ask(17).status, ask(17).body), (200, noise(1_000)));
}

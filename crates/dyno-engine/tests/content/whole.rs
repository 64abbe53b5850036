//! Whole files: what is said of them, and in which coding they come.

use super::common::{Client, addr};
use super::folder::{Folder, get, noise, request, serve, text};
use dyno_engine::{Compress, Content};
use std::io::Read;
use std::process::{Command, Stdio};

/// What a program of the system makes of packed bytes: an oracle that shares nothing with us.
fn unpacked(program: &str, packed: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut child = Command::new(program)
        .args(["-d", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    let packed = packed.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&packed));
    let mut out = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    writer.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    out
}

#[test]
fn a_file_comes_with_all_that_is_known_of_it() {
    let folder =
        Folder::new("known").with("a.css", text(2_000)).with("b.png", noise(3_000)).with("empty.txt", "");
    let running = folder.serve();
    let css = get(&running, "/a.css", "");
    assert_eq!((css.status, &css.body), (200, &text(2_000)));
    assert_eq!(css.header("content-type"), Some("text/css; charset=utf-8"));
    assert_eq!(css.header("accept-ranges"), Some("bytes"));
    assert_eq!(css.header("vary"), Some("Accept-Encoding"));
    assert_eq!((css.header("content-encoding"), css.header("cache-control")), (None, None));
    assert!(
        css.header("etag").unwrap().starts_with('"') && css.header("last-modified").unwrap().ends_with("GMT")
    );
    let png = get(&running, "/b.png", "Accept-Encoding: gzip, br\r\n");
    assert_eq!((png.status, &png.body, png.header("content-type")), (200, &noise(3_000), Some("image/png")));
    assert_eq!((png.header("vary"), png.header("content-encoding")), (None, None));
    let empty = get(&running, "/empty.txt", "");
    assert_eq!((empty.status, empty.header("content-length")), (200, Some("0")));
}

#[test]
fn head_says_what_get_says_and_sends_nothing() {
    let folder = Folder::new("head").with("a.css", text(2_000)).with("large.bin", noise(300_000));
    let running = folder.serve();
    let mut client = Client::connect(addr(&running));
    for path in ["/a.css", "/large.bin", "/none", "/a.css?maxage=5"] {
        let whole = client.ask(request("GET", path, "Accept-Encoding: br\r\n"));
        client.send(request("HEAD", path, "Accept-Encoding: br\r\nRange: bytes=0-1\r\n"));
        let head = client.head_of_reply();
        assert_eq!((head.status, head.head), (whole.status, whole.head), "{path}");
    }
}

#[test]
fn every_coding_is_the_file_again_and_has_a_tag_of_its_own() {
    let folder = Folder::new("codings").with("a.js", text(60_000));
    let running = folder.serve();
    let ask = |accepted: &str| get(&running, "/a.js", &format!("Accept-Encoding: {accepted}\r\n"));
    let (plain, gzip, deflate, br) = (ask("identity"), ask("gzip"), ask("deflate"), ask("br"));
    assert_eq!(unpacked("gzip", &gzip.body), plain.body);
    let mut tags = Vec::new();
    for (reply, coding) in
        [(&plain, None), (&gzip, Some("gzip")), (&deflate, Some("deflate")), (&br, Some("br"))]
    {
        assert_eq!(reply.header("content-encoding"), coding, "{}", reply.head);
        assert_eq!((reply.status, reply.header("vary")), (200, Some("Accept-Encoding")));
        assert!(reply.body.len() < plain.body.len() / 4 || coding.is_none());
        tags.push(reply.header("etag").unwrap().to_owned());
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 4);
    // The zlib format and the gzip format hold the same packed bytes.
    assert_eq!(deflate.body[2..deflate.body.len() - 4], gzip.body[10..gzip.body.len() - 8]);
}

#[test]
fn who_accepts_nothing_that_there_is_is_told_so() {
    let folder = Folder::new("406").with("a.js", text(5_000)).with("b.png", noise(100));
    let running = folder.serve();
    let ask = |path, accepted: &str| get(&running, path, &format!("Accept-Encoding: {accepted}\r\n"));
    assert_eq!(ask("/a.js", "identity;q=0").status, 406);
    assert_eq!(ask("/b.png", "*;q=0").status, 406);
    assert_eq!(ask("/a.js", "identity;q=0, br;q=0.1").header("content-encoding"), Some("br"));
    assert_eq!(ask("/a.js", "br;q=0.1, gzip;q=0.2").header("content-encoding"), Some("gzip"));
}

#[test]
fn a_file_beside_it_is_taken_where_it_holds_the_same_and_never_else() {
    let plain = text(5_000);
    let packed = |bytes: &[u8]| {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let folder = Folder::new("siblings")
        .with("fresh.html", &plain)
        .with("fresh.html.gz", packed(&plain))
        .with("stale.html", &plain)
        .with("stale.html.gz", packed(b"of an older version"))
        .with("bomb.html", &plain)
        .with("bomb.html.gz", packed(&vec![0; 4_000_000]));
    let running = serve(Content::new(&folder.path).compress(Compress::No));
    let ask = |path| get(&running, path, "Accept-Encoding: gzip, br\r\n");
    let fresh = ask("/fresh.html");
    assert_eq!((fresh.header("content-encoding"), &fresh.body), (Some("gzip"), &packed(&plain)));
    for path in ["/stale.html", "/bomb.html"] {
        let reply = ask(path);
        assert_eq!((reply.header("content-encoding"), &reply.body), (None, &plain), "{path}");
    }
    assert_eq!(ask("/fresh.html.gz").header("content-type"), Some("application/gzip"));
}

#[test]
fn a_forced_coding_is_sent_to_everybody() {
    let folder = Folder::new("forced").with("a.js", text(5_000)).with("b.png", noise(300));
    let running = serve(Content::new(&folder.path).force_encoding("deflate").unwrap());
    for accepted in ["", "Accept-Encoding: br\r\n", "Accept-Encoding: identity\r\n"] {
        let reply = get(&running, "/a.js", accepted);
        assert_eq!((reply.header("content-encoding"), reply.header("vary")), (Some("deflate"), None));
        assert_eq!(get(&running, "/b.png", accepted).header("content-encoding"), None);
    }
}

#[test]
fn a_lifetime_is_what_the_address_says() {
    let folder = Folder::new("maxage").with("a.js", text(5_000));
    let running = serve(Content::new(&folder.path).maxage_max_s(3_600));
    for (query, status, control) in [
        ("", 200, None),
        ("?v=3", 200, None),
        ("?maxage=60", 200, Some("max-age=60")),
        ("?v=3&maxage=3600", 200, Some("max-age=3600")),
        ("?maxage=3601", 400, None),
        ("?maxage=x", 400, None),
        ("?maxage=", 400, None),
    ] {
        let reply = get(&running, &format!("/a.js{query}"), "");
        assert_eq!((reply.status, reply.header("cache-control")), (status, control), "{query}");
    }
}

#[test]
fn folders_have_an_index_and_a_slash() {
    let folder = Folder::new("index")
        .with("index.html", "home")
        .with("docs/index.html", "docs")
        .with("d \u{e9}/index.html", "odd")
        .with("bare/file.txt", "file");
    let running = folder.serve();
    for (path, body) in [("/", "home"), ("/index.html", "home"), ("/docs/", "docs"), ("/d%20%C3%A9/", "odd")]
    {
        let reply = get(&running, path, "");
        assert_eq!((reply.status, reply.text().as_str()), (200, body), "{path}");
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
    }
    for (path, location) in
        [("/docs", "/docs/"), ("/docs?a=b&maxage=1", "/docs/?a=b&maxage=1"), ("/d%20%C3%A9", "/d%20%C3%A9/")]
    {
        let reply = get(&running, path, "");
        assert_eq!((reply.status, reply.header("location")), (301, Some(location)), "{path}");
    }
    for path in ["/bare", "/bare/", "/docs/index.html/", "/none", "//docs", "/docs//"] {
        assert_eq!(get(&running, path, "").status, 404, "{path}");
    }
}

#[test]
fn only_reading_is_allowed() {
    let folder = Folder::new("methods").with("a.txt", "a");
    let running = folder.serve();
    let mut client = Client::connect(addr(&running));
    for (method, status) in [("POST", 405), ("PUT", 405), ("DELETE", 405), ("TRACE", 405), ("OPTIONS", 200)] {
        let reply = client.ask(request(method, "/a.txt", ""));
        assert_eq!((reply.status, reply.header("allow")), (status, Some("GET, HEAD, OPTIONS")), "{method}");
    }
    assert_eq!(client.ask(request("BREW", "/a.txt", "")).status, 501);
    assert_eq!(client.ask(request("POST", "/none", "")).status, 404);
}

#[test]
fn several_folders_and_routes_stand_beside_each_other() {
    use super::common::{one_worker, patient};
    use dyno_engine::{Method, Server};
    let (one, two) = (Folder::new("one").with("a.txt", "one"), Folder::new("two").with("a.txt", "two"));
    let two = two.with("index.html", "index");
    let server = Server::new().listen("127.0.0.1:0").dials(one_worker()).limits(patient());
    let server = server.content("/", &one.path).content("/static/two", &two.path);
    let server = server.route(Method::Get, "/hello/{name}", |_, reply| reply.text("route"));
    let running = server.start().unwrap();
    for (path, status, body) in [
        ("/a.txt", 200, "one"),
        ("/static/two/a.txt", 200, "two"),
        ("/static/two/", 200, "index"),
        ("/hello/x", 200, "route"),
        ("/hello/%FF", 400, "Bad Request"),
        ("/static/two/b.txt", 404, "Not Found"),
        ("/static", 404, "Not Found"),
    ] {
        let reply = get(&running, path, "");
        assert_eq!((reply.status, reply.text().as_str()), (status, body), "{path}");
    }
    assert_eq!(get(&running, "/static/two", "").header("location"), Some("/static/two/"));
}

#[test]
fn replies_in_a_row_come_in_their_order() {
    let folder = Folder::new("row")
        .with("small.txt", "s")
        .with("middle.txt", noise(20_000))
        .with("large.bin", noise(700_000));
    let running = folder.serve();
    let paths =
        ["/small.txt", "/large.bin", "/middle.txt", "/small.txt", "/none", "/middle.txt", "/large.bin"];
    let all: String = paths.iter().map(|path| request("GET", path, "")).collect();
    let mut client = Client::connect(addr(&running));
    client.send(all);
    for path in paths {
        let bytes = match path {
            "/small.txt" => b"s".to_vec(),
            "/middle.txt" => noise(20_000),
            "/large.bin" => noise(700_000),
            _ => b"Not Found".to_vec(),
        };
        assert!(client.reply().body == bytes, "{path}");
    }
}

/// Also where this program makes none: whoever puts one there wants it sent.
#[test]
fn a_zst_file_beside_a_file_is_sent_if_it_holds_it() {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    let packed = |text: &[u8]| compress_to_vec(text, CompressionLevel::Fastest);
    let folder = Folder::new("zst")
        .with("good.css", text(60_000))
        .with("good.css.zst", packed(&text(60_000)))
        .with("stale.css", text(60_000))
        .with("stale.css.zst", packed(&text(50_000)));
    let running = serve(Content::new(&folder.path).compress(Compress::No));
    let good = get(&running, "/good.css", "Accept-Encoding: zstd\r\n");
    assert_eq!(
        (good.header("content-encoding"), good.header("vary")),
        (Some("zstd"), Some("Accept-Encoding"))
    );
    assert_eq!(good.body, packed(&text(60_000)));
    assert_eq!(get(&running, "/good.css", "Accept-Encoding: br\r\n").body, text(60_000));
    let stale = get(&running, "/stale.css", "Accept-Encoding: zstd\r\n");
    assert_eq!((stale.header("content-encoding"), &stale.body), (None, &text(60_000)));
}

#[test]
fn zstd_is_made_where_the_library_was_built_with_it() {
    let folder = Folder::new("made-zstd").with("a.css", text(60_000));
    let reply = get(&folder.serve(), "/a.css", "Accept-Encoding: zstd\r\n");
    let coding = cfg!(feature = "zstd").then_some("zstd");
    assert_eq!(reply.header("content-encoding"), coding, "{}", reply.head);
    match coding {
        Some(_) => assert_eq!(unpacked("zstd", &reply.body), text(60_000)),
        None => assert_eq!(reply.body, text(60_000)),
    }
}

//! Hosts told apart: whose files come, where one is led, what is said with each reply, and what stands in an error's place.

use super::common::{Client, Reply, addr, one_worker, patient, wait_for};
use super::folder::{Folder, noise, text};
use dyno_engine::{Answer, Content, Host, Limits, Method, Redirect, Running, Security, Server};

fn start(hosts: impl IntoIterator<Item = Host>) -> Running {
    start_with(Server::new(), hosts)
}

fn start_with(server: Server, hosts: impl IntoIterator<Item = Host>) -> Running {
    let server = server.listen("127.0.0.1:0").dials(one_worker()).limits(patient());
    hosts.into_iter().fold(server, Server::host).start().unwrap()
}

fn host(name: &str, folder: &Folder) -> Host {
    Host::new([name]).unwrap().content("/", &folder.path).unwrap()
}

fn redirect(text: &str) -> Redirect {
    text.parse().unwrap()
}

fn ask(running: &Running, method: &str, host: &str, path: &str, lines: &str) -> Reply {
    let mut client = Client::connect(addr(running));
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n"));
    if method == "HEAD" { client.head_of_reply() } else { client.reply() }
}

fn get(running: &Running, host: &str, path: &str) -> Reply {
    ask(running, "GET", host, path, "")
}

#[test]
fn each_host_has_its_own_files_and_the_first_those_of_unknown_names() {
    let one = Folder::new("host-one").with("index.html", "one").with("only.txt", "1");
    let two = Folder::new("host-two").with("index.html", "two").with("deep/x.txt", "2");
    let below = Folder::new("host-below").with("index.html", "below");
    let running = start([
        host("one.example", &one),
        Host::new(["two.example", "[::1]"]).unwrap().content("/", &two.path).unwrap(),
        host("*.two.example", &below),
    ]);
    for (name, body) in [
        ("one.example", "one"),
        ("ONE.example:8080", "one"),
        ("two.example.", "two"),
        ("[::1]:1", "two"),
        ("a.b.two.example", "below"),
        ("nobody.example", "one"),
        ("", "one"),
    ] {
        assert_eq!(get(&running, name, "/").text(), body, "{name}");
    }
    assert_eq!(get(&running, "one.example", "/only.txt").status, 200);
    assert_eq!(get(&running, "two.example", "/only.txt").status, 404);
    assert_eq!(get(&running, "two.example", "/deep/x.txt").text(), "2");
    // The authority of an absolute target goes before Host (RFC 9112 §3.2.2), and HTTP/1.0 may have neither.
    assert_eq!(get(&running, "one.example", "http://two.example/").text(), "two");
    let old = Client::connect(addr(&running)).ask("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(old.text(), "one");
}

#[test]
fn one_connection_may_ask_for_many_hosts() {
    let one = Folder::new("many-one").with("a.css", text(3_000));
    let two = Folder::new("many-two").with("a.css", noise(200_000));
    let two_host = Host::new(["two"]).unwrap().content("/", &two.path).unwrap().header("X-Two", "2").unwrap();
    let running = start([host("one", &one), two_host]);
    let mut client = Client::connect(addr(&running));
    for _ in 0..3 {
        client.send("GET /a.css HTTP/1.1\r\nHost: one\r\n\r\nGET /a.css HTTP/1.1\r\nHost: two\r\n\r\n");
        let (first, second) = (client.reply(), client.reply());
        assert_eq!((first.body == text(3_000), first.header("X-Two")), (true, None));
        assert_eq!((second.body == noise(200_000), second.header("X-Two")), (true, Some("2")));
    }
}

#[test]
fn folders_of_the_server_are_those_of_names_that_no_host_has() {
    let plain = Folder::new("default").with("index.html", "plain");
    let one = Folder::new("default-one").with("index.html", "one");
    let server = Server::new().content("/", &plain.path);
    let running = start_with(server, [host("one", &one), Host::any().header("X-Any", "1").unwrap()]);
    assert_eq!(get(&running, "one", "/").text(), "one");
    let other = get(&running, "other", "/");
    assert_eq!((other.text(), other.header("X-Any")), ("plain".to_owned(), Some("1")));
    assert_eq!(get(&running, "one", "/").header("X-Any"), None);
}

#[test]
fn redirects_go_before_files_and_keep_what_was_asked() {
    let one = Folder::new("redirects").with("old.html", "old").with("new.html", "new");
    let running = start([
        host("one", &one)
            .redirect(redirect("301 /old.html /new.html"))
            .redirect(redirect("307 /docs/* https://docs.example/v2/*")),
        Host::new(["www.one"]).unwrap().redirect(redirect("308 /* https://one/*")),
    ]);
    for (name, path, status, location) in [
        ("one", "/old.html?a=b", 301, Some("/new.html?a=b")),
        ("one", "/docs/a%2Eb/c", 307, Some("https://docs.example/v2/a.b/c")),
        ("one", "/new.html", 200, None),
        ("www.one", "/", 308, Some("https://one/")),
        ("www.one", "/x/y?z", 308, Some("https://one/x/y?z")),
        ("www.one", "//evil.example", 404, None),
        ("www.one", "/%5cevil.example", 308, Some("https://one/%5Cevil.example")),
        ("www.one", "/a%0d%0aSet-Cookie:%20x", 308, Some("https://one/a%0D%0ASet-Cookie:%20x")),
    ] {
        let reply = get(&running, name, path);
        assert_eq!((reply.status, reply.header("Location")), (status, location), "{name} {path}");
        assert_eq!(reply.header("Set-Cookie"), None);
    }
    let posted = ask(&running, "POST", "www.one", "/form", "Content-Length: 0\r\n");
    assert_eq!((posted.status, posted.header("Location")), (308, Some("https://one/form")));
    let head = ask(&running, "HEAD", "one", "/old.html", "");
    assert_eq!((head.status, head.header("Location")), (301, Some("/new.html")));
}

#[test]
fn every_reply_of_a_host_says_what_it_should_and_says_it_once() {
    let one =
        Folder::new("lines").with("a.css", text(3_000)).with("d/index.html", "d").with("404.html", "no");
    let host = host("one", &one)
        .security(Security::Preset)
        .header("Cache-Control", "no-cache")
        .unwrap()
        .header("Referrer-Policy", "no-referrer")
        .unwrap()
        .header("X-Frame-Options", "")
        .unwrap()
        .redirect(redirect("302 /r /a.css"))
        .error_page(404, "404.html")
        .unwrap();
    let running = start([host]);
    let tag = get(&running, "one", "/a.css").header("ETag").unwrap().to_owned();
    for (method, path, lines, status) in [
        ("GET", "/a.css", "", 200),
        ("HEAD", "/a.css", "", 200),
        ("GET", "/a.css", "Accept-Encoding: br\r\n", 200),
        ("GET", "/a.css", "Range: bytes=0-9\r\n", 206),
        ("GET", "/a.css", "Range: bytes=0-9,20-29\r\n", 206),
        ("GET", "/a.css", "Range: bytes=99999-\r\n", 416),
        ("GET", "/a.css", &format!("If-None-Match: {tag}\r\n"), 304),
        ("GET", "/a.css", "If-Match: \"x\"\r\n", 412),
        ("GET", "/d", "", 301),
        ("GET", "/r", "", 302),
        ("GET", "/none", "", 404),
        ("GET", "/%zz", "", 400),
        ("POST", "/a.css", "Content-Length: 0\r\n", 405),
        ("OPTIONS", "/a.css", "", 200),
        ("BREW", "/a.css", "", 501),
    ] {
        let mut client = Client::connect(addr(&running));
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: one\r\n{lines}\r\n"));
        let reply = if method == "HEAD" || status == 304 { client.head_of_reply() } else { client.reply() };
        let what = format!("{method} {path} {lines}\n{}", reply.head);
        assert_eq!(reply.status, status, "{what}");
        assert_eq!(reply.header("X-Content-Type-Options"), Some("nosniff"), "{what}");
        assert_eq!(reply.header("Referrer-Policy"), Some("no-referrer"), "{what}");
        assert_eq!(reply.header("Content-Security-Policy"), Some("frame-ancestors 'self'"), "{what}");
        assert_eq!(reply.header("Cache-Control"), Some("no-cache"), "{what}");
        assert_eq!(
            (reply.header("X-Frame-Options"), reply.header("Strict-Transport-Security")),
            (None, None)
        );
        let names = reply.head.lines().skip(1).filter_map(|line| line.split(':').next());
        let mut names: Vec<String> = names.map(str::to_ascii_lowercase).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{what}");
        if status == 304 {
            assert_eq!(reply.header("ETag"), Some(&*tag));
            assert!(reply.header("Date").is_some() && reply.header("Content-Length").is_none(), "{what}");
        }
    }
    let chosen = get(&running, "one", "/a.css?maxage=60");
    assert_eq!(
        chosen.header("Cache-Control"),
        Some("max-age=60"),
        "who embeds an address chooses its lifetime"
    );
}

#[test]
fn handlers_replies_of_every_kind_have_the_lines_too_and_their_own_go_before() {
    let server = Server::new()
        .route(Method::Get, "/text", |_, reply| reply.text("text"))
        .route(Method::Get, "/own", |_, reply| reply.header("x-host", "own").text("own"))
        .route(Method::Get, "/panic", |_, _| panic!("a handler that fails"))
        .route(Method::Get, "/later", |_, reply| {
            reply.later(|responder| {
                std::thread::spawn(|| responder.answer(Answer::text("later").header("X-Late", "1")));
            })
        })
        .route(Method::Get, "/stream", |_, reply| {
            reply.stream_sized("text/plain", 3, |_| {
                |out: &mut Vec<u8>| {
                    out.extend_from_slice(b"abc");
                    dyno_engine::Filled::End
                }
            })
        })
        .route(Method::Post, "/echo", |request, reply| reply.bytes("text/plain", request.body()));
    let two = Host::new(["two"]).unwrap().header("X-Host", "two").unwrap();
    let running = start_with(server, [Host::any().header("X-Host", "any").unwrap(), two]);
    for (path, status, own) in [
        ("/text", 200, None),
        ("/own", 200, Some("own")),
        ("/panic", 500, None),
        ("/later", 200, None),
        ("/stream", 200, None),
    ] {
        for (host, said) in [("two", "two"), ("other", "any")] {
            let reply = get(&running, host, path);
            assert_eq!(
                (reply.status, reply.header("X-Host")),
                (status, Some(own.unwrap_or(said))),
                "{path} {host}"
            );
        }
    }
    // A body that comes late belongs to the host of its head.
    let mut client = Client::connect(addr(&running));
    client.send("POST /echo HTTP/1.1\r\nHost: two\r\nContent-Length: 5\r\n\r\nhel");
    wait_for("the head to be read", || running.counts().accepts > 0 && running.counts().turns > 2);
    let echoed = client.send("lo").reply();
    assert_eq!((echoed.text(), echoed.header("X-Host")), ("hello".to_owned(), Some("two")));
}

#[test]
fn an_error_page_stands_in_the_place_of_the_engines_words() {
    let one = Folder::new("pages")
        .with("errors/404.html", "<h1>not here</h1>")
        .with("errors/405.txt", noise(300_000))
        .with("index.html", "index");
    let host = host("one", &one)
        .error_page(404, "errors/404.html")
        .unwrap()
        .error_page(405, "/errors/405.txt")
        .unwrap()
        .error_page(400, "errors/404.html")
        .unwrap()
        .error_page(501, "missing.html")
        .unwrap();
    let running = start([host]);
    let lost = ask(&running, "GET", "one", "/nowhere", "Accept-Encoding: br\r\n");
    assert_eq!((lost.status, lost.text()), (404, "<h1>not here</h1>".to_owned()));
    assert_eq!(lost.header("Content-Type"), Some("text/html; charset=utf-8"));
    for name in ["ETag", "Last-Modified", "Accept-Ranges", "Content-Encoding"] {
        assert_eq!(lost.header(name), None, "{name} is said of a file, not of an error");
    }
    let head = ask(&running, "HEAD", "one", "/nowhere", "");
    assert_eq!((head.status, head.header("Content-Length")), (404, Some("17")));
    let large = ask(&running, "DELETE", "one", "/", "");
    assert_eq!((large.status, large.body == noise(300_000)), (405, true));
    assert_eq!(large.header("Allow"), Some("GET, HEAD, OPTIONS"));
    let unknown = ask(&running, "BREW", "one", "/", "");
    assert_eq!((unknown.status, unknown.text()), (501, "Not Implemented".to_owned()));
    // Asked for by its own name it is a file like others.
    assert_eq!(get(&running, "one", "/errors/404.html").status, 200);
    // Conditions and ranges of the request are about what was asked for, not about the page.
    let ranged = ask(&running, "GET", "one", "/nowhere", "Range: bytes=0-1\r\nIf-None-Match: *\r\n");
    assert_eq!((ranged.status, ranged.body.len()), (404, 17));
    // What cannot be a request is the first host's.
    let mut broken = Client::connect(addr(&running));
    let refused = broken.ask("GET / HTTP/1.1\r\nHost: one\r\nbad line\r\n\r\n");
    assert_eq!((refused.status, refused.text()), (400, "<h1>not here</h1>".to_owned()));
    broken.assert_closed();
}

/// Planted fault: `refuse` asks nobody's host, whatever it is told.
#[test]
fn a_request_that_is_refused_after_its_head_is_refused_by_its_host() {
    let (one, two) = (Folder::new("refused-one"), Folder::new("refused-two").with("large.html", "too large"));
    let two = host("two", &two).header("X-Two", "2").unwrap().error_page(413, "large.html").unwrap();
    let running = start([host("one", &one.with("index.html", "x")), two]);
    let ask = |lines: &str| Client::connect(addr(&running)).ask(format!("POST / HTTP/1.1\r\n{lines}"));
    let large = ask("Host: two\r\nContent-Length: 99999999\r\n\r\n");
    assert_eq!((large.status, large.header("X-Two"), large.text()), (413, Some("2"), "too large".to_owned()));
    for rest in ["zz\r\n", "5\r\nhello\r\nzz\r\n"] {
        let broken = ask(&format!("Host: two\r\nTransfer-Encoding: chunked\r\n\r\n{rest}"));
        assert_eq!((broken.status, broken.header("X-Two")), (400, Some("2")), "{rest:?}");
    }
    // Whose it is, is not known before the head is.
    assert_eq!(ask("Host: two\r\nbad line\r\n\r\n").header("X-Two"), None);
}

#[test]
fn an_error_page_changes_with_its_file_and_a_missing_one_is_the_engines_words() {
    let one = Folder::new("page-changes").with("index.html", "x");
    let host = Host::new(["one"]).unwrap().content("/", Content::new(&one.path)).unwrap();
    let running = start([host.error_page(404, "404.html").unwrap()]);
    assert_eq!(get(&running, "one", "/none").text(), "Not Found");
    one.put("404.html", "first");
    wait_for("the page to be there", || get(&running, "one", "/none").text() == "first");
    one.put("404.html", "second");
    wait_for("the page to change", || get(&running, "one", "/none").text() == "second");
    assert_eq!(get(&running, "one", "/none").status, 404);
}

#[test]
fn who_asks_too_often_is_told_by_the_hosts_page() {
    let one = Folder::new("page-429").with("slow.html", "slower, please").with("index.html", "x");
    let limits = Limits::default();
    let address = dyno_engine::AddressLimits {
        requests_per_second: std::num::NonZeroU32::new(1),
        ..limits.address.clone()
    };
    let server = Server::new().listen("127.0.0.1:0").dials(one_worker()).limits(Limits { address, ..limits });
    let running = server.host(host("one", &one).error_page(429, "slow.html").unwrap()).start().unwrap();
    let mut client = Client::connect(addr(&running));
    let request = "GET / HTTP/1.1\r\nHost: one\r\n\r\n";
    client.send(request.repeat(3));
    let replies = [client.reply(), client.reply(), client.reply()];
    let told = replies.iter().find(|reply| reply.status == 429).unwrap();
    assert_eq!((told.text(), told.header("Retry-After")), ("slower, please".to_owned(), Some("1")));
}

//! The examples: each is the file that a reader sees, started here on a port of the kernel's choice and asked.
#![allow(clippy::unwrap_used)]

mod common;

#[allow(dead_code)]
#[path = "../examples/clock.rs"]
mod clock;
#[allow(dead_code)]
#[path = "../examples/hello.rs"]
mod hello;
#[allow(dead_code)]
#[path = "../examples/json.rs"]
mod json;
#[allow(dead_code)]
#[path = "../examples/later.rs"]
mod later;
#[allow(dead_code)]
#[path = "../examples/metrics.rs"]
mod metrics;
#[allow(dead_code)]
#[path = "../examples/static_site.rs"]
mod static_site;
#[allow(dead_code)]
#[path = "../examples/upload.rs"]
mod upload;

use common::{Client, Reply, addr, one_worker, wait_for};
use dyno_engine::{Addr, Running, Server};
use std::path::PathBuf;
use std::time::Duration;

fn start(server: Server) -> Running {
    server.listen("127.0.0.1:0").dials(one_worker()).start().unwrap()
}

fn ask(running: &Running, request: &str) -> Reply {
    Client::connect(addr(running)).ask(request)
}

fn get(running: &Running, path: &str) -> Reply {
    ask(running, &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
}

fn post(running: &Running, path: &str, media: &str, body: &str) -> Reply {
    let length = body.len();
    ask(
        running,
        &format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n{body}"
        ),
    )
}

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("dyno-example-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn hello_says_hello() {
    let running = start(hello::server());
    assert_eq!(get(&running, "/hello/w%C3%B6rld").text(), "Hello, wörld!\n");
    assert_eq!(get(&running, "/").status, 404);
}

#[test]
fn later_counts_primes() {
    let running = start(later::server().unwrap());
    assert_eq!(get(&running, "/primes/1000").text(), "168\n");
    assert_eq!(get(&running, "/primes/many").status, 400);
}

#[test]
fn json_is_read_and_written() {
    let running = start(json::server());
    assert_eq!(get(&running, "/now").text(), r#"{"message":"Hello, World!","version":1}"#);
    let mean = post(&running, "/mean", "application/json", r#"{"numbers":[1,2,4.5]}"#);
    assert_eq!((mean.status, mean.text().as_str()), (200, r#"{"count":3,"mean":2.5}"#));
    for (media, body, status, title) in [
        ("text/plain", "{}", 415, "Unsupported Media Type"),
        ("application/json", "{\"numbers\":[1,", 400, "Bad Request"),
        ("application/json", "{\"numbers\":[]} x", 400, "Bad Request"),
        ("application/json", "{\"numbers\":\"1\"}", 422, "Unprocessable Content"),
        ("application/json", "{}", 422, "Unprocessable Content"),
        ("application/json", "{\"numbers\":[]}", 422, "Unprocessable Content"),
        ("application/json", "", 400, "Bad Request"),
    ] {
        let told = post(&running, "/mean", media, body);
        assert_eq!(
            (told.status, told.header("Content-Type")),
            (status, Some("application/problem+json")),
            "{body}"
        );
        let start = format!("{{\"title\":\"{title}\",\"status\":{status},\"detail\":\"");
        assert!(told.text().starts_with(&start), "{body}: {}", told.text());
    }
    let deep = "[".repeat(100_000);
    assert_eq!(
        post(&running, "/mean", "application/json", &deep).status,
        422,
        "a sequence where a map is meant"
    );
}

#[test]
fn static_site_serves_a_folder() {
    let folder = Folder::new("site");
    std::fs::write(folder.0.join("index.html"), "<h1>home</h1>").unwrap();
    let running = start(static_site::server(folder.0.clone()).unwrap());
    let home = get(&running, "/");
    assert_eq!((home.status, home.text().as_str()), (200, "<h1>home</h1>"));
    assert_eq!(home.header("X-Content-Type-Options"), Some("nosniff"));
    assert_eq!(get(&running, "/home").header("Location"), Some("/"));
    assert_eq!(get(&running, "/hello/you").text(), "Hello, you!\n");
    assert_eq!(get(&running, "/?maxage=86401").status, 400);
}

#[test]
fn clock_ticks() {
    let running = start(clock::server(Duration::from_millis(5)));
    let mut client = Client::connect(addr(&running));
    client.send("GET /clock HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.head_of_reply();
    assert_eq!((head.status, head.header("Content-Type")), (200, Some("text/event-stream")));
    wait_for("three ticks", || {
        client.poll();
        String::from_utf8_lossy(client.held()).matches("data: ").count() >= 3
    });
}

#[test]
fn upload_writes_what_it_was_sent_and_no_part_of_it() {
    let folder = Folder::new("upload");
    let running = start(upload::server(folder.0.clone()));
    let body = "0123456789".repeat(100_000);
    let length = body.len();
    let put = format!("PUT /files/a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}");
    let told = ask(&running, &put);
    assert_eq!((told.status, told.text()), (201, format!("{length} bytes written\n")));
    assert_eq!(std::fs::read_to_string(folder.0.join("a.txt")).unwrap(), body);
    let refused = ask(&running, "PUT /files/.hidden HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(refused.status, 400);
    let mut cut = Client::connect(addr(&running));
    cut.send("PUT /files/b.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123");
    let names =
        || std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    wait_for("the part to be there", || names().len() == 2);
    drop(cut);
    wait_for("the part to be gone", || names() == ["a.txt"]);
}

/// Red with a worker that has no meter (`Extras::meter` left at `None`): the classes of replies stay at zero.
#[test]
fn metrics_are_read_beside_the_server_and_healthz_tells_of_its_end() {
    let running = start(metrics::server().metrics("127.0.0.1:0"));
    for _ in 0..3 {
        assert_eq!(get(&running, "/").text(), "It counts.\n");
    }
    assert_eq!(get(&running, "/nowhere").status, 404);
    let Some(Addr::Tcp(addr)) = running.metrics_addr().cloned() else { panic!("it was asked for") };
    let mut scraper = Client::connect(addr);
    let mut ask = |path: &str| scraper.ask(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_eq!(ask("/healthz").text(), "ok\n");
    // Workers publish at the end of a turn, which may come after the reply has; each reply has a turn of its own.
    let counted = [
        "dyno_http_requests_total{worker=\"0\",code=\"2xx\"} 3\n",
        "dyno_http_requests_total{worker=\"0\",code=\"4xx\"} 1\n",
        // The scraper's own connection is not counted.
        "dyno_connections_accepted_total{worker=\"0\"} 4\n",
    ];
    wait_for("the figures", || {
        let page = ask("/metrics").text();
        counted.iter().all(|line| page.contains(line))
    });
    let mut late = Client::connect(common::addr(&running));
    late.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx");
    let stopping = std::thread::spawn(|| running.stop());
    wait_for("the end to be told", || ask("/healthz").status == 503);
    late.send("y");
    assert_eq!(late.reply().status, 405);
    stopping.join().unwrap();
}

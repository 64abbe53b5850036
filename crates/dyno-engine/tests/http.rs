//! HTTP/1.1 over real sockets: what is answered, how it is framed, and what happens after an error.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, addr, one_worker, patient, serve, server, wait_for};
use dyno_engine::{Log, Method, Router, Server};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const JSON: &str = "GET /json HTTP/1.1\r\nHost: a\r\n\r\n";
const CLOSE: &str = "GET /plaintext HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[test]
fn the_demonstration_routes_answer_as_documented() {
    let running = serve(one_worker(), patient());
    let mut client = Client::connect(addr(&running));
    let json = client.ask(JSON);
    assert_eq!((json.status, json.text().as_str()), (200, r#"{"message":"Hello, World!"}"#));
    let date = json.header("date").unwrap();
    assert!(date.len() == 29 && date.ends_with(" GMT"), "{date}");
    let expected = format!(
        "HTTP/1.1 200 OK\r\nServer: dyno\r\nDate: {date}\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n"
    );
    assert_eq!(json.head, expected);

    let plain = client.ask("GET /plaintext?a=%20b HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((plain.text().as_str(), plain.header("content-type")), ("Hello, World!", Some("text/plain")));
    let echo = client.ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(
        (echo.text().as_str(), echo.header("content-type")),
        ("hello", Some("application/octet-stream"))
    );
    let typed =
        client.ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\nContent-Length: 0\r\n\r\n");
    assert_eq!((typed.text().as_str(), typed.header("content-type")), ("", Some("a/b")));
    let hello = client.ask("GET /hello/w%C3%B6rld%2F%20x HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(hello.text(), "Hello, wörld/ x!");
}

#[test]
fn every_method_and_path_gets_its_status_and_the_connection_stays() {
    let running = serve(one_worker(), patient());
    let mut client = Client::connect(addr(&running));
    for (line, status, allow) in [
        ("GET /nowhere", 404, None),
        ("POST /json", 405, Some("GET, HEAD, OPTIONS")),
        ("TRACE /json", 405, Some("GET, HEAD, OPTIONS")),
        ("OPTIONS /echo", 200, Some("POST, OPTIONS")),
        ("OPTIONS *", 200, Some("GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS")),
        ("BREW /json", 501, None),
        ("GET /hello/%00", 400, None),
        ("GET http://other.example/json", 200, None),
    ] {
        let reply = client.ask(format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!((reply.status, reply.header("allow")), (status, allow), "{line}");
        assert!(reply.header("date").is_some() && reply.header("content-length").is_some(), "{}", reply.head);
        assert_eq!(reply.header("connection"), None);
    }
    client.send("HEAD /json HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.head_of_reply();
    assert_eq!((head.status, head.header("content-length")), (200, Some("27")));
    assert_eq!(client.ask(JSON).status, 200, "the connection is still there");
}

#[test]
fn pipelined_requests_cut_anywhere_get_the_same_replies() {
    let running = serve(one_worker(), patient());
    let input = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nfirst\r\n\r\nab\
                 GET /hello/x HTTP/1.1\r\nHost: a\r\n\r\n\
                 POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nsec\r\n3\r\nond\r\n0\r\nT: v\r\n\r\n\
                 GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n\
                 GET /plaintext HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answers = |cut: usize| {
        let mut client = Client::connect(addr(&running));
        let reads = running.counts().reads;
        client.send(&input[..cut]);
        if cut > 0 {
            wait_for("the first piece to be read", || running.counts().reads > reads);
        }
        client.send(&input[cut..]);
        common::without_dates(&client.rest())
    };
    let whole = answers(0);
    let bodies = ["first\r\n\r\nab", "Hello, x!", "second", "Not Found", "Hello, World!"];
    assert_eq!(whole.matches("HTTP/1.1 ").count(), bodies.len());
    assert!(bodies.iter().all(|body| whole.contains(body)), "{whole}");
    for cut in 1..input.len() {
        assert_eq!(answers(cut), whole, "cut at {cut}");
    }
}

#[test]
fn requests_that_repeat_one_another_are_each_handled_up_to_the_first_that_differs() {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let mut router = Router::new();
    let count = move |_: &dyno_engine::Request<'_>, reply: dyno_engine::Reply<'_>| {
        reply.text(&counted.fetch_add(1, Ordering::Relaxed).to_string())
    };
    router.route(Method::Get, "/n", count).unwrap();
    router.route(Method::Get, "/m", |_, reply| reply.text("m")).unwrap();
    let running = server(one_worker(), patient()).router(router).start().unwrap();
    let (n, m) = ("GET /n HTTP/1.1\r\nHost: a\r\n\r\n", "GET /m HTTP/1.1\r\nHost: a\r\n\r\n");
    let last = "GET /n HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let input = [n, n, n, m, m, n, n, last, n, n].concat();
    for cut in [0, 1, n.len(), 2 * n.len() + 5, 3 * n.len() + 1, 7 * n.len(), input.len() - 1] {
        let first = calls.load(Ordering::Relaxed);
        let mut client = Client::connect(addr(&running));
        let reads = running.counts().reads;
        client.send(&input[..cut]);
        if cut > 0 {
            wait_for("the first piece to be read", || running.counts().reads > reads);
        }
        // What follows the last request may meet a closed connection.
        let _ = client.stream.write_all(&input.as_bytes()[cut..]);
        let replies: Vec<String> = std::iter::repeat_with(|| client.reply().text()).take(8).collect();
        let expected: Vec<String> = ["0", "1", "2", "m", "m", "3", "4", "5"]
            .map(|text| text.parse::<u64>().map_or(text.to_owned(), |n| (first + n).to_string()))
            .to_vec();
        assert_eq!(replies, expected, "cut at {cut}");
    }
}

#[test]
fn a_request_that_comes_byte_by_byte_is_answered() {
    let running = serve(one_worker(), patient());
    let mut client = Client::connect(addr(&running));
    for byte in
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n".bytes()
    {
        let reads = running.counts().reads;
        client.send([byte]);
        wait_for("the byte to be read", || running.counts().reads > reads);
    }
    assert_eq!(client.reply().text(), "hi");
}

#[test]
fn a_body_of_the_greatest_length_comes_back_whole() {
    let running = serve(one_worker(), patient());
    let mut client = Client::connect(addr(&running));
    let body: Vec<u8> = (0..1_u32 << 20).map(|at| (at % 251) as u8).collect();
    for _ in 0..2 {
        client.send(format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len()));
        let echo = client.ask(&body);
        assert!(echo.status == 200 && echo.body == body);
    }
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for piece in body.chunks(100_000) {
        client.send(format!("{:x}\r\n", piece.len())).send(piece).send("\r\n");
    }
    assert!(client.ask("0\r\n\r\n").body == body);
}

#[test]
fn a_client_that_waits_is_told_to_continue_only_when_its_body_is_wanted() {
    let running = serve(one_worker(), patient());
    let post = |path: &str, length: usize| {
        format!("POST {path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n")
    };
    let mut client = Client::connect(addr(&running));
    client.send(post("/echo", 2));
    let interim = client.head_of_reply();
    assert_eq!(interim.head, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(client.ask("ok").text(), "ok");
    // A client whose body came along, or has begun to, does not wait.
    assert_eq!(client.ask(post("/echo", 2) + "ok").text(), "ok");
    let reads = running.counts().reads;
    client.send(post("/echo", 2) + "o");
    wait_for("the first piece to be read", || running.counts().reads > reads);
    assert_eq!(client.ask("k").text(), "ok");
    for (path, length, status) in [("/nowhere", 2, 404), ("/json", 2, 405), ("/echo", (1 << 20) + 1, 413)] {
        let mut client = Client::connect(addr(&running));
        let refusal = client.ask(post(path, length));
        assert_eq!((refusal.status, refusal.header("connection")), (status, Some("close")), "{path}");
        client.assert_closed();
    }
}

#[test]
fn every_refusal_is_complete_and_nothing_after_it_is_executed() {
    let calls = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&calls);
    let mut router = Router::new();
    let count = move |_: &dyno_engine::Request<'_>, reply: dyno_engine::Reply<'_>| {
        counter.fetch_add(1, Ordering::Relaxed);
        reply.empty()
    };
    router.route(Method::Get, "/", count.clone()).unwrap();
    router.route(Method::Post, "/", count).unwrap();
    let running = server(one_worker(), patient()).router(router).start().unwrap();
    let long = "x".repeat(9_000);
    let many: String = (0..101).map(|number| format!("H{number}: v\r\n")).collect();
    let vectors = [
        (400, "GET / HTTP/1.1\r\n\r\n".to_owned()),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n".to_owned()),
        (400, "GET / HTTP/1.1\nHost: a\n\n".to_owned()),
        (400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        (400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n".to_owned()),
        (400, "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n".to_owned()),
        (
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                .to_owned(),
        ),
        (400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".to_owned()),
        (400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n".to_owned()),
        (
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n"
                .to_owned(),
        ),
        (
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n".to_owned(),
        ),
        (413, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n".to_owned()),
        (413, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n100001\r\n".to_owned()),
        (414, format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n")),
        (417, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\nContent-Length: 1\r\n\r\na".to_owned()),
        (431, format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n")),
        (
            431,
            format!("GET / HTTP/1.1\r\nHost: a\r\nA: {long}\r\nB: {long}\r\nC: {long}\r\nD: {long}\r\n\r\n"),
        ),
        (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned()),
        (505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n".to_owned()),
    ];
    for (status, vector) in &vectors {
        let mut client = Client::connect(addr(&running));
        let reply = client.ask(vector.clone() + "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let shown = vector.escape_debug().to_string();
        let shown = &shown[..shown.len().min(90)];
        assert_eq!((reply.status, reply.header("connection")), (*status, Some("close")), "{shown}");
        assert!(reply.header("date").is_some() && !reply.body.is_empty(), "{shown}");
        client.assert_closed();
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0, "no handler ran");
    wait_for("every refusal to be counted", || running.counts().rejects == vectors.len() as u64);
}

#[test]
fn a_refused_upload_can_read_why() {
    let running = serve(one_worker(), patient());
    let mut client = Client::connect(addr(&running));
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n");
    for _ in 0..80 {
        // The server reads and discards; without that the reset would come before the 413 was read.
        client.send(vec![b'x'; 100_000]);
    }
    assert_eq!(client.reply().status, 413);
    client.assert_closed();
}

#[test]
fn connection_close_ends_the_connection_and_what_follows_is_ignored() {
    let running = serve(one_worker(), patient());
    let mut client = Client::connect(addr(&running));
    let reply = client.ask([CLOSE, JSON, JSON].concat());
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    client.assert_closed();
    drop(client);
    wait_for("the connection to be freed", || running.counts().closes == 1);
    assert_eq!(running.counts().requests, 1);
}

#[test]
fn http_1_0_is_closed_unless_it_asks_to_be_kept() {
    let running = serve(one_worker(), patient());
    let mut client = Client::connect(addr(&running));
    let kept = client.ask("GET /json HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!((kept.status, kept.header("connection")), (200, Some("keep-alive")));
    let last = client.ask("GET /json HTTP/1.0\r\n\r\n");
    assert_eq!((last.text().len(), last.header("connection")), (27, Some("close")));
    client.assert_closed();
}

#[test]
fn a_client_that_closes_its_half_gets_all_its_answers() {
    for trigger in ["level", "edge"] {
        let mut dials = one_worker();
        dials.set("trigger", trigger).unwrap();
        let running = serve(dials, patient());
        let mut client = Client::connect(addr(&running));
        client.send(JSON.repeat(50)).shutdown_write();
        let rest = common::without_dates(&client.rest());
        assert_eq!(rest.matches("HTTP/1.1 200 OK").count(), 50, "{trigger}");
        wait_for("the connection to be freed", || running.counts().closes == 1);
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_is_forgotten() {
    let running = serve(one_worker(), patient());
    for half in ["GET /js", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"] {
        let closes = running.counts().closes;
        Client::connect(addr(&running)).send(half);
        wait_for("the connection to be freed", || running.counts().closes == closes + 1);
    }
    assert_eq!(running.counts().requests, 0);
}

#[test]
fn a_handler_that_panics_costs_one_500() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.to_string().contains("on purpose") {
            hook(panic);
        }
    }));
    let mut router = Router::new();
    router.route(Method::Get, "/bad", |_, reply| panic!("on purpose: {:?}", reply.text("half"))).unwrap();
    router.route(Method::Get, "/good", |_, reply| reply.header("X-Fine", "1").text("good")).unwrap();
    let running = server(one_worker(), patient()).router(router).start().unwrap();
    let mut client = Client::connect(addr(&running));
    for _ in 0..3 {
        client.send("GET /bad HTTP/1.1\r\nHost: a\r\n\r\nGET /good HTTP/1.1\r\nHost: a\r\n\r\n");
        let bad = client.reply();
        assert_eq!((bad.status, bad.text().as_str()), (500, "Internal Server Error"));
        let good = client.reply();
        assert_eq!((good.text().as_str(), good.header("x-fine")), ("good", Some("1")));
    }
    wait_for("every panic to be counted", || running.counts().panics == 3);
}

#[test]
fn ipv6_and_unix_sockets_serve_too() {
    let path = std::env::temp_dir().join(format!("dyno-engine-{}.sock", std::process::id()));
    let unix = format!("unix:{}", path.display());
    let mut builder = Server::new()
        .listen(&unix)
        .router(dyno_engine::handler::demo(&one_worker()).unwrap())
        .dials(one_worker());
    let has_v6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    if has_v6 {
        builder = builder.listen("[::1]:0");
    }
    let running = builder.start().unwrap();
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    stream.write_all(CLOSE.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("Hello, World!"), "{text}");
    if has_v6 {
        let dyno_engine::Addr::Tcp(v6) = running.addrs()[1] else { panic!("a TCP address") };
        assert_eq!(Client::connect(v6).ask(JSON).status, 200);
    }
    running.stop();
    assert!(!path.exists(), "the socket file is taken away");
}

#[test]
fn a_drain_answers_what_has_come_and_closes_what_is_idle() {
    let running = serve(one_worker(), patient());
    let address = addr(&running);
    let mut idle = Client::connect(address);
    assert_eq!(idle.ask(JSON).status, 200);
    let mut half = Client::connect(address);
    half.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
    wait_for("both to be served", || running.counts().accepts == 2 && running.counts().reads >= 2);
    let stop = std::thread::spawn(move || running.stop());
    wait_for("the listener to be closed", || std::net::TcpStream::connect(address).is_err());
    let last = half.ask("lf");
    assert_eq!((last.text().as_str(), last.header("connection")), ("half", Some("close")));
    half.assert_closed();
    drop(half);
    idle.assert_closed();
    assert_eq!(stop.join().unwrap(), dyno_engine::Drained::Wholly);
}

#[test]
fn a_request_on_an_idle_connection_is_answered_while_draining() {
    let running = serve(one_worker(), patient());
    let address = addr(&running);
    let mut client = Client::connect(address);
    assert_eq!(client.ask(JSON).header("connection"), None);
    let stop = std::thread::spawn(move || running.stop());
    wait_for("the listener to be closed", || std::net::TcpStream::connect(address).is_err());
    let last = client.ask(JSON);
    assert_eq!((last.status, last.header("connection")), (200, Some("close")));
    drop(client);
    assert_eq!(stop.join().unwrap(), dyno_engine::Drained::Wholly);
}

/// Planted fault: workers have no copy of what ends the log's writer. Then it ends when the server is dropped, while they answer
/// what they have accepted: these lines are nobody's, and replies that wait for theirs never leave.
#[test]
fn a_server_that_is_dropped_answers_what_has_come_and_writes_its_lines() {
    for log in [Log::Ring, Log::Commit] {
        let (file, socket) =
            (temporary(&format!("dropped-{log:?}.log")), temporary(&format!("dropped-{log:?}.sock")));
        let dials = dyno_engine::Dials { log, ..one_worker() };
        let server = server(dials, patient()).listen(&format!("unix:{}", socket.display())).log_file(&file);
        let running = server.drain_ns(20_000_000_000).start().unwrap();
        let address = addr(&running);
        let mut halves: Vec<Client> = (0..16).map(|_| Client::connect(address)).collect();
        for half in &mut halves {
            half.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
        }
        wait_for("all to be begun", || running.counts().reads >= 16);
        drop(running);
        assert!(!socket.exists(), "the socket file is taken away");
        wait_for("the listener to be closed", || std::net::TcpStream::connect(address).is_err());
        for half in &mut halves {
            let last = half.ask("lf");
            assert_eq!((last.text().as_str(), last.header("connection")), ("half", Some("close")));
        }
        drop(halves);
        wait_for("every line", || std::fs::read_to_string(&file).unwrap().lines().count() == 16);
        std::fs::remove_file(&file).unwrap();
    }
}

fn temporary(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("dyno-http-{}-{name}", std::process::id()))
}

//! Limits of one address and clients behind proxies, over real sockets: 127.0.0.x are as many addresses as are wanted.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, addr, one_worker, patient, server, wait_for};
use dyno_engine::{
    AddressLimits, Clients, Dials, Flow, Limits, Log, Method, Response, Router, Running, ToldBy, Upload,
};
use dyno_sys::socket::{self, Addr};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::num::NonZeroU32;
use std::path::PathBuf;

const JSON: &str = "GET /json HTTP/1.1\r\nHost: a\r\n\r\n";

fn limits(connections: u32, rate: u32, burst: u32) -> Limits {
    let some = NonZeroU32::new;
    let address = AddressLimits {
        connections_max: some(connections),
        requests_per_second: some(rate),
        burst: some(burst),
        ..AddressLimits::default()
    };
    Limits { address, ..patient() }
}

/// A client at 127.0.0.`last`.
fn from(last: u8, to: SocketAddr) -> Client {
    Client::over(stream(last, to))
}

fn stream(last: u8, to: SocketAddr) -> TcpStream {
    let source = IpAddr::from([127, 0, 0, last]);
    let fd = socket::connect_from(&Addr::Tcp(to), source).unwrap();
    let stream = TcpStream::from(fd);
    stream.set_nonblocking(false).unwrap();
    stream
}

/// The first 429 to a client that asks again and again: a busy machine may let a second pass between two requests.
fn too_many(client: &mut Client, request: &str) -> common::Reply {
    let mut replies = (0..1_000).map(|_| client.ask(request));
    replies.find(|reply| reply.status == 429).expect("a thousand requests in a row are too many")
}

/// Whether a request from there gets any answer on a connection of its own.
fn is_answered(last: u8, to: SocketAddr, bytes: &str) -> bool {
    let mut stream = stream(last, to);
    stream.write_all(bytes.as_bytes()).is_ok() && stream.read(&mut [0]).is_ok_and(|count| count > 0)
}

fn behind(told_by: ToldBy) -> Clients {
    Clients { told_by, trusted: vec!["127.0.0.9".parse().unwrap()], trusts_unix: false }
}

/// A server whose log says who asked.
fn logging(limits: Limits, told_by: ToldBy) -> (Running, PathBuf) {
    let number = std::process::id();
    let path = std::env::temp_dir().join(format!("dyno-addresses-{number}-{told_by:?}.log"));
    let dials = Dials { log: Log::Sync, ..one_worker() };
    let running = server(dials, limits).clients(behind(told_by)).log_file(&path).start().unwrap();
    (running, path)
}

fn who_asked(running: Running, path: &PathBuf) -> Vec<String> {
    running.stop();
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::remove_file(path).unwrap();
    text.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn an_address_with_as_many_connections_as_it_may_have_gets_no_more() {
    let running = server(one_worker(), limits(2, 0, 0)).start().unwrap();
    let to = addr(&running);
    let mut held = [from(2, to), from(2, to)];
    for client in &mut held {
        assert_eq!(client.ask(JSON).status, 200);
    }
    from(2, to).assert_closed();
    assert_eq!(from(3, to).ask(JSON).status, 200, "another address is another's");
    let [first, mut second] = held;
    drop(first);
    wait_for("the place of a closed connection", || is_answered(2, to, JSON));
    assert_eq!(second.ask(JSON).status, 200);
}

/// What the metrics of a server say.
fn page(running: &Running) -> String {
    let Some(Addr::Tcp(place)) = running.metrics_addr() else { panic!("it was asked for") };
    Client::connect(*place).ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").text()
}

/// Planted fault: what was refused is not counted.
#[test]
fn an_address_that_asks_too_often_gets_429_and_keeps_its_connection() {
    let running = server(one_worker(), limits(0, 1, 3)).metrics("127.0.0.1:0").start().unwrap();
    let to = addr(&running);
    let mut client = from(2, to);
    let statuses: Vec<u16> = (0..3).map(|_| client.ask(JSON).status).collect();
    assert_eq!(statuses, [200, 200, 200]);
    let limited = too_many(&mut client, JSON);
    assert_eq!((limited.status, limited.header("retry-after")), (429, Some("1")));
    assert_eq!(limited.header("connection"), None);
    // Another connection of the same address has no time of its own, and a body changes nothing.
    too_many(&mut from(2, to), JSON);
    assert_eq!(from(3, to).ask(JSON).status, 200);
    let post = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
    too_many(&mut client, post);
    // Workers publish at the end of a turn, which may come after the reply has.
    wait_for("what was refused to be counted", || {
        page(&running).contains("\ndyno_requests_limited_total{worker=\"0\"} 3\n")
    });
    wait_for("a second to pass", || client.ask(JSON).status == 200);
}

/// Planted faults: an upload is refused as what is malformed is; what no route takes is not asked of the gate.
#[test]
fn a_request_whose_body_is_not_read_is_limited_like_any_other() {
    let mut router = Router::new();
    router.upload(Method::Put, "/up", |_, _| Err(403)).unwrap();
    let running = server(one_worker(), limits(0, 1, 1)).router(router).start().unwrap();
    let to = addr(&running);
    for (last, line) in [(2, "PUT /up"), (3, "POST /nowhere")] {
        let fields = "Host: a\r\nExpect: 100-continue\r\nContent-Length: 2";
        let request = format!("{line} HTTP/1.1\r\n{fields}\r\n\r\n");
        let mut replies = (0..1_000).map(|_| from(last, to).ask(&request));
        let limited = replies.find(|reply| reply.status == 429).expect("a thousand are too many");
        assert_eq!(limited.header("retry-after"), Some("1"), "{line}");
        assert_eq!(limited.header("connection"), Some("close"), "{line}: the body may follow all the same");
    }
}

#[test]
fn a_trusted_proxy_names_its_clients_by_a_field_and_others_do_not() {
    for (told_by, field) in [
        (ToldBy::XForwardedFor, "X-Forwarded-For: 192.0.2.7"),
        (ToldBy::Forwarded, "Forwarded: for=192.0.2.7"),
    ] {
        let (running, path) = logging(limits(0, 1, 1), told_by);
        let to = addr(&running);
        let request = format!("GET /json HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n");
        let (mut proxy, mut other) = (from(9, to), from(2, to));
        assert_eq!(proxy.ask(&request).status, 200);
        too_many(&mut proxy, &request);
        assert_eq!((proxy.ask(JSON).status, proxy.ask(JSON).status), (200, 200), "itself it is not limited");
        assert_eq!(other.ask(&request).status, 200);
        drop((proxy, other));
        let mut said = who_asked(running, &path);
        said.dedup();
        assert_eq!(said, ["192.0.2.7", "127.0.0.9", "127.0.0.2"]);
    }
}

#[test]
fn a_trusted_proxy_names_its_client_in_front_of_the_connection() {
    let (running, path) = logging(limits(1, 0, 0), ToldBy::ProxyProtocol);
    let to = addr(&running);
    let line = "PROXY TCP4 192.0.2.7 192.0.2.8 4711 80\r\n";
    let mut client = from(9, to);
    assert_eq!(client.ask(format!("{line}{JSON}")).status, 200);
    assert_eq!(client.ask(JSON).status, 200, "the header comes once");
    let mut refused = from(9, to);
    refused.send(line);
    refused.assert_closed();
    drop(client);
    wait_for("the place of the closed connection", || is_answered(9, to, &format!("{line}{JSON}")));
    // In two pieces, and with nothing said.
    let mut client = from(9, to);
    client.send(b"\r\n\r\n\0\r\nQUI");
    client.send(b"T\n\x20\x00\x00\x00");
    assert_eq!(client.ask(JSON).status, 200);
    drop(client);
    // Whoever is not trusted is not asked, and cannot say.
    assert_eq!(from(2, to).ask(JSON).status, 200);
    assert_eq!(from(2, to).ask(format!("{line}{JSON}")).status, 400);
    let said = who_asked(running, &path);
    assert!(
        said.iter().all(|who| ["192.0.2.7", "127.0.0.9", "127.0.0.2"].contains(&who.as_str())),
        "{said:?}"
    );
    assert_eq!(said[..2], ["192.0.2.7", "192.0.2.7"]);
    assert_eq!(said[said.len() - 3..], ["127.0.0.9", "127.0.0.2", "127.0.0.2"]);
}

/// Planted fault: a refusal's line is that of a request nobody understood. Then it has its proxy's address, and no request.
#[test]
fn a_request_that_is_refused_after_its_head_is_logged_as_what_it_is() {
    let limits = Limits { body_bytes_max: 10, body_ns: 200_000_000, ..limits(0, 1_000, 1_000) };
    let number = std::process::id();
    let path = std::env::temp_dir().join(format!("dyno-addresses-{number}-refused.log"));
    let dials = Dials { log: Log::Sync, ..one_worker() };
    let mut router = Router::new();
    router.route(Method::Post, "/post", |_, reply| reply.text("here")).unwrap();
    router.upload(Method::Put, "/up", |_, _| Ok(Box::new(Refuses) as Box<dyn Upload>)).unwrap();
    let server = server(dials, limits).router(router).clients(behind(ToldBy::XForwardedFor));
    let running = server.log_file(&path).start().unwrap();
    let to = addr(&running);
    let fields = "Host: a\r\nX-Forwarded-For: 192.0.2.7";
    let requests = [
        ("POST /post", "Content-Length: 11\r\n\r\n", 413),
        ("POST /post", "Content-Length: 9\r\n\r\nx", 408),
        ("POST /post", "Transfer-Encoding: chunked\r\n\r\nx\r\n", 400),
        ("POST /post", "Transfer-Encoding: chunked\r\n\r\n1\r\n", 408),
        ("PUT /up", "Content-Length: 2\r\n\r\nx", 409),
        ("PUT /up", "Content-Length: 2\r\n\r\n", 408),
    ];
    for (line, rest, status) in requests {
        let reply = from(9, to).ask(format!("{line} HTTP/1.1\r\n{fields}\r\n{rest}"));
        assert_eq!(reply.status, status, "{line} {rest:?}");
    }
    running.stop();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(text.lines().count(), requests.len(), "{text}");
    for (said, (line, _, status)) in text.lines().zip(requests) {
        let is_it =
            said.starts_with("192.0.2.7 ") && said.contains(&format!("\"{line} HTTP/1.1\" {status} "));
        assert!(is_it, "{said}");
    }
}

/// An upload that takes nothing.
struct Refuses;

impl Upload for Refuses {
    fn data(&mut self, _: &[u8]) -> Flow {
        Flow::Refuse(409)
    }

    fn end(self: Box<Self>, reply: dyno_engine::Reply<'_>) -> Response {
        reply.empty()
    }
}

#[test]
fn a_trusted_proxy_that_says_nothing_or_nonsense_is_closed_without_an_answer() {
    let clients = behind(ToldBy::ProxyProtocol);
    let running = server(one_worker(), patient()).clients(clients).start().unwrap();
    let to = addr(&running);
    for text in
        [JSON, "PROXY TCP4 192.0.2.7\r\n", "PROXY TCP4 192.0.2.7 192.0.2.8 1 99999\r\nGET /json HTTP/1.1\r\n"]
    {
        let mut client = from(9, to);
        client.send(text);
        client.assert_closed();
    }
    wait_for("the three to be counted", || running.counts().rejects == 3);
    assert_eq!(running.counts().requests, 0, "nothing behind it was understood");
}

/// Planted faults: `on_time` answers 408 whoever is late; or breaks the connection off, as if its peer had ended it.
#[test]
fn a_trusted_proxy_that_is_late_with_its_header_is_closed_without_an_answer() {
    let limits = Limits { head_ns: 200_000_000, ..patient() };
    let server = server(one_worker(), limits).clients(behind(ToldBy::ProxyProtocol)).metrics("127.0.0.1:0");
    let running = server.start().unwrap();
    let mut client = from(9, addr(&running));
    client.send("PROXY TCP4 192.0.2.7 ");
    client.assert_closed();
    wait_for("it to be counted", || running.counts().timeouts == 1);
    assert_eq!(running.counts().requests, 0, "nobody has asked for anything");
    let page = page(&running);
    let counted = "\ndyno_connections_closed_total{worker=\"0\",reason=\"timeout\"} 1\n";
    assert!(page.contains(counted), "{page}");
}

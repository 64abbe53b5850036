//! `dyno serve --metrics` from outside: what a scraper and a load balancer see.
#![allow(clippy::unwrap_used)]

mod common;

use common::{DEADLINE, Server, ask, wait_for};
use dyno_sys::proc;
use dyno_sys::signal::{self, Signal};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A server with metrics, and where they are.
fn watched(words: &[&str]) -> (Server, SocketAddr) {
    let all: Vec<&str> = ["--metrics", "127.0.0.1:0"].iter().chain(words).copied().collect();
    let mut server = Server::serve(&all);
    let line = server.hear("metrics on http://");
    let place = line["metrics on http://".len()..].strip_suffix("/metrics").unwrap();
    let place = place.parse().unwrap();
    (server, place)
}

fn get(place: SocketAddr, path: &str, field: &str) -> String {
    let mut stream = TcpStream::connect(place).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{field}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn figure(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.split(' ').next() == Some(name));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}")).rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn requests_bytes_and_connections_are_counted() {
    let (server, place) = watched(&[]);
    let requests: [&[u8]; 3] = [
        b"GET /json HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n",
        b"nonsense\r\n\r\n",
    ];
    for request in requests {
        ask(server.addr(), request, 12);
    }
    let mut text = String::new();
    wait_for("three closed connections", || {
        text = get(place, "/metrics", "");
        figure(&text, "dyno_connections_open{worker=\"0\"}") == 0.0
            && figure(&text, "dyno_connections_accepted_total{worker=\"0\"}") == 3.0
    });
    assert!(text.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{text}");
    assert_eq!(figure(&text, "dyno_http_requests_total{worker=\"0\",code=\"2xx\"}"), 1.0);
    assert_eq!(figure(&text, "dyno_http_requests_total{worker=\"0\",code=\"4xx\"}"), 2.0);
    assert_eq!(figure(&text, "dyno_requests_refused_total{worker=\"0\"}"), 1.0);
    let sent = requests.concat().len() as f64;
    assert_eq!(figure(&text, "dyno_received_bytes_total{worker=\"0\"}"), sent);
    assert!(figure(&text, "dyno_sent_bytes_total{worker=\"0\"}") > 3.0 * 50.0);
    let made = |kind| figure(&text, &format!("dyno_reply_bytes_total{{worker=\"0\",kind=\"{kind}\"}}"));
    assert_eq!(made("head") + made("body"), figure(&text, "dyno_sent_bytes_total{worker=\"0\"}"));
    assert_eq!(made("body"), (27 + "Not Found".len() + "Bad Request".len()) as f64);
    let closed =
        |reason| figure(&text, &format!("dyno_connections_closed_total{{worker=\"0\",reason=\"{reason}\"}}"));
    assert_eq!(closed("peer") + closed("done"), 3.0);
    assert!(text.contains("dyno_worker_cpu_seconds_total{worker=\"0\",mode=\"user\"}"));
    let open = get(place, "/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(
        open.contains("Content-Type: application/openmetrics-text; version=1.0.0")
            && open.ends_with("# EOF\n")
    );
}

#[test]
fn health_is_well_until_a_drain_and_the_metrics_outlast_it() {
    let (mut server, place) = watched(&["--drain-timeout", "20s"]);
    assert!(get(place, "/healthz", "").starts_with("HTTP/1.1 200 OK\r\n"));
    // A request that is on its way keeps the drain going.
    let mut slow = TcpStream::connect(server.addr()).unwrap();
    slow.write_all(b"GET /json HTTP/1.1\r\n").unwrap();
    wait_for("the slow connection", || {
        figure(&get(place, "/metrics", ""), "dyno_connections_open{worker=\"0\"}") == 1.0
    });
    server.signal(Signal::Term);
    server.hear("draining");
    wait_for("the drain to be told", || {
        let answer = get(place, "/healthz", "");
        answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("\r\n\r\ndraining\n")
    });
    slow.write_all(b"Host: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    server.hear("drained after 1 request");
    assert!(server.end().success());
}

#[test]
fn a_worker_and_the_process_for_metrics_are_replaced_and_figures_go_on() {
    let (mut server, place) = watched(&[]);
    let worker: i32 = server.hear_again("worker ")["worker ".len()..].parse().unwrap();
    ask(server.addr(), b"GET /json HTTP/1.1\r\nHost: x\r\n\r\n", 15);
    let requests =
        || figure(&get(place, "/metrics", ""), "dyno_http_requests_total{worker=\"0\",code=\"2xx\"}");
    wait_for("the request to be counted", || requests() == 1.0);
    signal::kill(worker, Signal::Kill).unwrap();
    server.hear("warning: worker");
    server.hear("worker ");
    wait_for("the replacement", || get(place, "/healthz", "").starts_with("HTTP/1.1 200"));
    assert_eq!(requests(), 1.0);
    assert_eq!(figure(&get(place, "/metrics", ""), "dyno_worker_restarts_total"), 1.0);
    let others = proc::tree(server.pid());
    let replacement: Vec<i32> = others.iter().copied().filter(|pid| *pid != server.pid()).collect();
    // The process for metrics is the child that is older than the replacement.
    signal::kill(*replacement.iter().min().unwrap(), Signal::Kill).unwrap();
    server.hear("warning: the process for metrics died (killed by SIGKILL)");
    assert_eq!(requests(), 1.0);
}

#[test]
fn nothing_else_is_served_there_and_nothing_by_the_workers() {
    let (server, place) = watched(&[]);
    assert!(get(place, "/json", "").starts_with("HTTP/1.1 404 "));
    assert_eq!(ask(server.addr(), b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 12), b"HTTP/1.1 404");
    assert_eq!(
        ask(place, b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 12),
        b"HTTP/1.1 405"
    );
}

const DASHBOARD: &str = include_str!("../../../dist/grafana-dashboard.json");

#[test]
fn the_dashboard_draws_every_figure_that_is_served_and_no_other() {
    let (_server, place) = watched(&[]);
    let text = get(place, "/metrics", "");
    let served: BTreeSet<&str> = text
        .lines()
        .filter(|line| line.starts_with("dyno_"))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let exprs: Vec<&str> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| target["expr"].as_str().unwrap())
        .collect();
    let words = |text: &'static str| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let drawn: BTreeSet<&str> = words(DASHBOARD).filter(|word| word.starts_with("dyno_")).collect();
    let left_out: Vec<_> = served.difference(&drawn).collect();
    assert_eq!(left_out, [&"dyno_start_time_seconds"], "an age says as much");
    assert_eq!(drawn.difference(&served).count(), 0, "{drawn:?}");
    assert!(exprs.len() >= panels.len());
}

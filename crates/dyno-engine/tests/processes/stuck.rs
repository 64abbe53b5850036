//! A worker that is stopped: it accepts nothing and does not die. Health and figures say so, and the others accept in its place.

use crate::common::{Client, wait_for};
use crate::served::Served;
use dyno_sys::signal::{self, Signal};
use std::net::SocketAddr;

const JSON: &str = "GET /json HTTP/1.1\r\nHost: a\r\n\r\n";

/// Planted faults: the supervisor does not say of a worker that it is stuck; and it asks none that idles, which is then told of
/// though it only waits.
pub(crate) fn a_worker_that_does_not_get_on_is_told_of_and_the_others_accept_in_its_place() {
    let mut served = Served::start(&[("workers", "2"), ("metrics", "127.0.0.1:0")]);
    let metrics: SocketAddr = served.line().strip_prefix("metrics ").unwrap().parse().unwrap();
    let ask = |path: &str| Client::connect(metrics).ask(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let stopped = served.pids[1];
    signal::kill(stopped, Signal::Stop).unwrap();
    // Both idle, and only one of them is told of.
    assert_eq!(served.line(), format!("stuck {stopped} for_ns 10000000000"));
    let health = ask("/healthz");
    assert_eq!(
        (health.status, health.text()),
        (503, "1 of 2 workers accept: one does not get on\n".to_owned())
    );
    let page = ask("/metrics").text();
    for line in ["dyno_worker_accepting{worker=\"0\"} 1", "dyno_worker_accepting{worker=\"1\"} 0"] {
        assert!(page.contains(&format!("\n{line}\n")), "{page}");
    }
    let mut clients: Vec<Client> = (0..20).map(|_| Client::connect(served.addr())).collect();
    for client in &mut clients {
        assert_eq!(client.ask(JSON).status, 200, "the other one answers it");
    }
    signal::kill(stopped, Signal::Cont).unwrap();
    assert_eq!(served.line(), format!("gets on {stopped}"));
    wait_for("health", || ask("/healthz").status == 200);
    drop(clients);
    let (status, report) = served.stop();
    assert!(status.success() && report.starts_with("report Wholly deaths=0 requests=20 "), "{report}");
}

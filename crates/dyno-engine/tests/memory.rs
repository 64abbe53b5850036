//! What a server's process keeps of memory when its replies have left.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, addr, one_worker, patient, server, wait_for};
use dyno_engine::{Method, Router};

const ASK: &str = "GET /inline HTTP/1.1\r\nHost: a\r\n\r\n";

// One test only: others would take memory beside it.

/// Memory that large replies took is given back when they have left.
#[test]
fn memory_does_not_stay_after_large_replies() {
    let rss = || dyno_sys::proc::rss_bytes(dyno_sys::child::this()).unwrap();
    let mut router = Router::new();
    // Inline: copied for each reader.
    router.route(Method::Get, "/inline", |_, reply| reply.bytes("a/b", &vec![b'x'; 4 << 20])).unwrap();
    let running = server(one_worker(), patient()).router(router).start().unwrap();
    let mut warm = Client::connect(addr(&running));
    assert_eq!(warm.ask(ASK).body.len(), 4 << 20);
    drop(warm);
    let before = rss();
    let mut readers: Vec<Client> = (0..30).map(|_| Client::connect(addr(&running))).collect();
    for reader in &mut readers {
        reader.send(ASK.repeat(3));
    }
    wait_for("the replies to be made", || running.counts().requests >= 31);
    drop(readers);
    wait_for("the readers to be gone", || running.counts().accepts == running.counts().closes);
    let after = rss();
    assert!(after < before + (24 << 20), "{} MB before, {} MB after", before >> 20, after >> 20);
}

//! `dyno serve` behind proxies and with limits of addresses, from outside.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, Server, ask, run, wait_for};

const JSON: &[u8] =
    b"GET /json HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.7, 127.0.0.1\r\nConnection: close\r\n\r\n";

#[test]
fn the_access_log_names_the_client_behind_a_trusted_proxy() {
    let folder = Folder::new("clients");
    let log = folder.file("access.log", "");
    let words = [
        "--log",
        "ring",
        "--log-file",
        &log,
        "--trusted-proxy",
        "127.0.0.0/8",
        "--client-from",
        "x-forwarded-for",
    ];
    let server = Server::serve(&words);
    ask(server.addr(), JSON, 15);
    wait_for("the client in the log", || {
        std::fs::read_to_string(&log).unwrap().starts_with("192.0.2.7 - - [")
    });
}

#[test]
fn a_file_can_say_all_of_it_and_the_limits_are_in_force() {
    let folder = Folder::new("address-limits");
    let file = folder.file(
        "dyno.toml",
        "trusted_proxy = [\"127.0.0.1\", \"unix\"]\nclient_from = \"x-forwarded-for\"\n[limits]\naddress_requests_max = 1\naddress_burst = 1\n",
    );
    let server = Server::serve(&[&file]);
    wait_for("a request that is too many", || ask(server.addr(), JSON, 12) == b"HTTP/1.1 429");
}

#[test]
fn words_that_would_do_nothing_are_a_mistake() {
    for (words, what) in [
        (&["--client-from", "forwarded"][..], "no proxy is trusted"),
        (&["--address-burst", "3"], "--address-requests-max is not"),
        (&["--trusted-proxy", "10.0.0.1/8"], "invalid value '10.0.0.1/8'"),
        (&["--client-from", "me"], "invalid value 'me'"),
    ] {
        let ended = run(["serve", "--listen", "127.0.0.1:0"].iter().chain(words));
        let lines = ended.failed();
        assert!(lines[0].contains(what), "{lines:#?}");
    }
    let ended = run(["serve", "--listen", "127.0.0.1:0", "--addresses-max", "1G"]);
    assert!(ended.code == Some(2) && ended.err.contains("another --addresses-max"), "{}", ended.err);
}

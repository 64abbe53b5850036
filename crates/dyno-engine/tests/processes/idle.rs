//! What a connection that idles costs, with everything that an operator turns on.

use crate::common::Client;
use crate::content::Folder;
use crate::served::{Served, temporary};
use dyno_sys::Pid;

/// So many that the tens of kilobytes by which buffers and tables still grow are ten bytes of each.
const IDLE: usize = 8_000;
const BYTES_MAX: u64 = 80;

/// Anonymous memory that is resident: what the process has of its own, page by page (the status file's figure is a sum that
/// lags behind).
fn own_bytes(pid: Pid) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}

/// Connections that have been answered once and are kept.
fn hold(served: &Served, count: usize) -> Vec<Client> {
    let paths = ["/page.html", "/json", "/large.bin", "/nowhere"];
    let ask = |number: usize| {
        let mut client = Client::connect(served.addr());
        let path = paths[number % paths.len()];
        let status = client.ask(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).status;
        assert_eq!(status, if path == "/nowhere" { 404 } else { 200 }, "{path}");
        client
    };
    (0..count).map(ask).collect()
}

/// Red with anything that a connection keeps when it is idle: a box that is not given back (`busy` left behind by
/// `core::arrange`) makes it some 400 bytes, a buffer thousands.
pub(crate) fn an_idle_connection_takes_80_bytes_with_content_logs_limits_and_filters() {
    dyno_sys::proc::raise_nofile_to_hard().unwrap();
    let (folder, log) = (Folder::new("idle"), temporary("idle.log"));
    folder.put("page.html", "a page ".repeat(1_000));
    folder.put("large.bin", vec![b'l'; 200_000]);
    let mut served = Served::start(&[
        ("content", folder.path("").to_str().unwrap()),
        ("log", "ring"),
        ("log_file", log.to_str().unwrap()),
        ("metrics", "127.0.0.1:0"),
        ("address_max", "1000000"),
        ("sandbox", "on"),
    ]);
    // Buffers and tables have their size before it is looked at.
    let warm = hold(&served, 100);
    let before = own_bytes(served.pids[0]);
    let idle = hold(&served, IDLE);
    let each = own_bytes(served.pids[0]).saturating_sub(before) / IDLE as u64;
    println!("{each} bytes for each of {IDLE} idle connections");
    assert!(each <= BYTES_MAX, "{each} bytes for an idle connection");
    drop((warm, idle));
    assert!(served.stop().0.success());
    std::fs::remove_file(&log).unwrap();
}

//! Workers that may do only what they need: handlers are planted that do what whoever breaks into one would do.

use crate::common::{Client, wait_for};
use crate::content::Folder;
use crate::served::{Served, is_alive};
use dyno_engine::{Method, Router};
use dyno_sys::Pid;
use dyno_sys::signal::{self, Signal};
use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What is done with the last part of a path.
type Fault = fn(&str) -> io::Result<()>;

/// The routes with what nobody should be able to do.
pub(crate) fn with_faults(mut router: Router) -> Router {
    let faults: [(&str, Fault); 6] = [
        ("/fault/open/{*path}", |path| File::open(format!("/{path}")).map(drop)),
        ("/fault/write/{*path}", |path| fs::write(format!("/{path}"), "x")),
        ("/fault/connect/{*port}", |port| TcpStream::connect(("127.0.0.1", port.parse().unwrap())).map(drop)),
        ("/fault/start/{*path}", |path| Command::new(format!("/{path}")).spawn()?.wait().map(drop)),
        ("/fault/become/{*path}", |path| Err(Command::new(format!("/{path}")).exec())),
        ("/fault/end/{*pid}", |pid| signal::kill(pid.parse().unwrap(), Signal::Kill)),
    ];
    for (pattern, fault) in faults {
        let name = pattern.rsplit_once("{*").unwrap().1.trim_end_matches('}');
        router
            .route(Method::Get, pattern, move |request, reply| {
                let done = fault(request.param(name).unwrap());
                reply.text(&done.map_or_else(|error| format!("{:?}", error.kind()), |()| "done".to_owned()))
            })
            .unwrap();
    }
    router
}

fn fault(served: &Served, what: &str) -> String {
    let request = format!("GET /fault/{what} HTTP/1.1\r\nHost: a\r\n\r\n");
    Client::connect(served.addr()).ask(request).text()
}

fn status(pid: Pid, field: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:"))).unwrap();
    line.trim().to_owned()
}

pub(crate) fn a_worker_can_open_start_and_connect_nothing() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!("connect/{}", taken.local_addr().unwrap().port());
    for (sandbox, outcome) in [("off", "done"), ("on", "PermissionDenied")] {
        let mut served = Served::start(&[("sandbox", sandbox)]);
        for what in ["open/etc/passwd", "write/dev/null", &connect, "start/bin/true"] {
            assert_eq!(fault(&served, what), outcome, "{what} with the sandbox {sandbox}");
        }
        // Signals to others: its own supervisor is the first that somebody would try.
        if sandbox == "on" {
            assert_eq!(fault(&served, &format!("end/{}", served.supervisor())), outcome);
        }
        let confined = if sandbox == "on" { "2" } else { "0" };
        assert_eq!(status(served.pids[0], "Seccomp"), confined);
        assert_eq!(status(served.pids[0], "NoNewPrivs"), "1");
        assert_eq!(status(served.supervisor(), "Seccomp"), "0", "who forks and binds stays outside");
        assert!(served.stop().0.success());
    }
}

pub(crate) fn a_worker_that_becomes_another_program_is_ended_and_replaced() {
    let mut served = Served::start(&[("sandbox", "on"), ("workers", "2")]);
    let mut client = Client::connect(served.addr());
    client.send("GET /fault/become/bin/true HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for("the connection to end", || client.poll());
    let line = served.line();
    assert!(line.starts_with("died ") && line.ends_with("killed by SIGSYS after_ns 0"), "{line}");
    assert!(served.line().starts_with("replaced "));
    assert_eq!(fault(&served, "open/etc/passwd"), "PermissionDenied", "the new one is confined too");
    assert!(served.stop().0.success());
}

/// The worker's threads that fetch it are confined, too. It is red without `preadv2` in the list of who reads.
pub(crate) fn a_file_that_finds_no_room_in_memory_is_read_from_the_disk_inside_the_sandbox() {
    let folder = Folder::new("sandbox-cold");
    let bytes: Vec<u8> = (0..4_000_000_u32).map(|at| b'a' + (at % 23) as u8).collect();
    folder.put("site/large.bin", &bytes);
    let path = folder.path("site/large.bin");
    fs::OpenOptions::new().write(true).open(&path).unwrap().sync_all().unwrap();
    let served =
        Served::start(&[("sandbox", "on"), ("content_in_files", folder.path("site").to_str().unwrap())]);
    for _ in 0..2 {
        dyno_sys::resident::evict(File::open(&path).unwrap()).unwrap();
        let request = "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n";
        assert!(Client::connect(served.addr()).ask(request).body == bytes);
    }
    assert!(served.pids.iter().all(|pid| is_alive(*pid)));
}

pub(crate) fn a_folder_is_served_and_changes_inside_the_sandbox_and_nothing_beside_it() {
    let folder = Folder::new("sandbox");
    folder.put("site/one.txt", "one");
    let served = Served::start(&[
        ("sandbox", "on"),
        ("workers", "2"),
        ("log", "ring"),
        ("log_file", "/dev/null"),
        ("content", folder.path("site").to_str().unwrap()),
    ]);
    let get = |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        let reply = Client::connect(served.addr()).ask(request);
        if reply.status == 200 { reply.text() } else { reply.status.to_string() }
    };
    assert_eq!(get("/one.txt"), "one");
    // Large files are opened by the workers, small ones by the builder.
    folder.put("site/two.txt", "two");
    folder.put("site/large.bin", vec![b'l'; 400_000]);
    wait_for("the new files", || get("/two.txt") == "two" && get("/large.bin").len() == 400_000);
    // Another folder under its name, as a new version of a site comes.
    folder.put("next/one.txt", "new");
    folder.put("next/large.bin", vec![b'n'; 500_000]);
    fs::rename(folder.path("site"), folder.path("old")).unwrap();
    fs::rename(folder.path("next"), folder.path("site")).unwrap();
    wait_for("the new folder", || get("/one.txt") == "new" && get("/large.bin").len() == 500_000);
    assert_eq!(get("/fault/open/etc/passwd"), "PermissionDenied");
    for pid in dyno_sys::proc::tree(served.supervisor()) {
        let expected = if pid == served.supervisor() { "0" } else { "2" };
        assert_eq!(status(pid, "Seccomp"), expected, "builder, log writer and workers");
    }
    assert!(served.pids.iter().all(|pid| is_alive(*pid)));
}

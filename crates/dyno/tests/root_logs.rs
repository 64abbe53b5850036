//! What only root can try of the logs: a disk of a few pages that fills up and grows, and files that belong to others.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, Server, ask, wait_for, word};
use dyno_sys::signal::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::process::Command;

const REQUEST: &[u8] = b"GET /json HTTP/1.1\r\nHost: x\r\n\r\n";

/// Asks so often, a hundred requests together; every one is answered.
fn ask_often(server: &Server, times: usize) {
    const TOGETHER: usize = 100;
    let mut stream = TcpStream::connect(server.addr()).unwrap();
    let mut length = 0;
    for _ in 0..times / TOGETHER {
        stream.write_all(&REQUEST.repeat(TOGETHER)).unwrap();
        let mut replies = vec![0; length * TOGETHER];
        if length == 0 {
            replies.resize(1 << 20, 0);
            let mut got = 0;
            while replies[..got].windows(15).filter(|bytes| bytes == b"HTTP/1.1 200 OK").count() < TOGETHER
                || !replies[..got].ends_with(b"}")
            {
                got += stream.read(&mut replies[got..]).unwrap();
            }
            length = got / TOGETHER;
            continue;
        }
        stream.read_exact(&mut replies).unwrap();
        let good = replies.chunks(length).filter(|reply| reply.starts_with(b"HTTP/1.1 200 OK"));
        assert_eq!(good.count(), TOGETHER);
    }
}

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, for a mount of its own"]
fn a_disk_that_fills_up_and_grows_again_costs_lines_that_are_counted_and_nothing_else() {
    const REQUESTS: usize = 10_000;
    let folder = Folder::new("root-full-disk");
    let disk = folder.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k tmpfs {0} && exec \"$0\" serve --listen 127.0.0.1:0 --workers 1 --user root \
         --log ring --log-file {0}/access.log",
        disk.display()
    );
    let mut server = Server::start(
        Command::new("unshare").args(["--mount", "sh", "-c", &script]).arg(env!("CARGO_BIN_EXE_dyno")),
    );
    // The disk is seen by the server alone.
    let log = PathBuf::from(format!("/proc/{}/root{}/access.log", server.pid(), disk.display()));
    // The disk is full before the ring is.
    ask_often(&server, 1_000);
    let told = server.hear("warning: the access log does not take every line");
    assert!(told.contains("No space left on device"), "{told}");
    let text = std::fs::read(&log).unwrap();
    assert_eq!(text.len(), 64 << 10, "it is full to the last byte");
    ask_often(&server, REQUESTS - 1_000);
    assert_eq!(ask(server.addr(), REQUEST, 15), b"HTTP/1.1 200 OK", "it is served on");
    let grown = Command::new("nsenter")
        .args(["--mount", &format!("--target={}", server.pid()), "mount", "-o", "remount,size=8m"])
        .arg(&disk)
        .status();
    assert!(grown.unwrap().success());
    let told = server.hear("the access log takes every line again; ");
    let lost = told.split("; ").nth(1).unwrap().split(' ').next().unwrap().replace(',', "");
    let lost: usize = lost.parse().unwrap_or_else(|_| panic!("{told}"));
    assert!(lost > 0, "a ring of 256 KiB holds less than {REQUESTS} lines");
    wait_for("what was in the ring", || {
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(text.lines().rev().skip(1).all(|line| line.ends_with("\" 200 27")), "a line is torn");
        text.ends_with('\n') && text.lines().count() + lost == REQUESTS + 1
    });
    server.signal(Signal::Term);
    server.hear("drained");
    assert!(server.end().success());
}

#[test]
#[ignore = "needs root: CAP_CHOWN, CAP_SETUID"]
fn a_log_is_made_anew_with_the_owner_that_it_had_and_not_where_a_link_points() {
    let folder = Folder::new("root-anew");
    let path = folder.path("access.log");
    let mut server = Server::serve(&["--log", "ring", "--log-file", &word(&path)]);
    server.hear("as user nobody");
    chown(&path, Some(12_345), Some(23_456)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::rename(&path, folder.path("access.log.1")).unwrap();
    server.signal(Signal::Usr1);
    server.hear(&format!("the log {} was opened anew", path.display()));
    let made = std::fs::metadata(&path).unwrap();
    assert_eq!((made.uid(), made.gid(), made.mode() & 0o7777), (12_345, 23_456, 0o640));
    // The writer, which is nobody, writes what root has opened.
    assert_eq!(ask(server.addr(), REQUEST, 15), b"HTTP/1.1 200 OK");
    wait_for("a line", || std::fs::metadata(&path).unwrap().len() > 0);
    // A folder in which others may make names, and a link of theirs.
    let target = folder.path("target");
    std::fs::rename(&path, folder.path("access.log.2")).unwrap();
    symlink(&target, &path).unwrap();
    std::fs::set_permissions(path.parent().unwrap(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    server.signal(Signal::Usr1);
    let told = server.hear("warning: cannot open the access log");
    assert!(told.contains("symbolic link") && !target.exists(), "{told}");
    assert_eq!(ask(server.addr(), REQUEST, 15), b"HTTP/1.1 200 OK");
    wait_for("a line in the old file", || {
        std::fs::read_to_string(folder.path("access.log.2")).unwrap().lines().count() == 2
    });
}

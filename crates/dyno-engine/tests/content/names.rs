//! Names: what is below the root and nothing else, whatever a request spells.

use super::common::{Client, DEADLINE, addr};
use super::folder::{Folder, get, request};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Instant;

#[test]
fn nothing_outside_the_root_is_served() {
    let outside = Folder::new("outside").with("secret.txt", "secret").with("root/in.txt", "in");
    let root = outside.path.join("root");
    symlink("../secret.txt", root.join("up.txt")).unwrap();
    symlink(outside.path.join("secret.txt"), root.join("absolute.txt")).unwrap();
    symlink("..", root.join("parent")).unwrap();
    symlink("/etc", root.join("etc")).unwrap();
    symlink("in.txt", root.join("link.txt")).unwrap();
    symlink(".", root.join("round")).unwrap();
    let running = super::folder::serve(dyno_engine::Content::new(&root));
    for path in [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e%2fsecret.txt",
        "/.%2e/secret.txt",
        "/round/../../secret.txt",
        "/..\\secret.txt",
        "/..%5csecret.txt",
        "/....//secret.txt",
        "/%c0%ae%c0%ae/secret.txt",
        "/%252e%252e/secret.txt",
        "/up.txt",
        "/absolute.txt",
        "/parent/secret.txt",
        "/etc/passwd",
        "/in.txt%00.html",
        "/in.txt/",
        "/in.txt/../in.txt",
        "/proc/self/environ",
        "//etc/passwd",
    ] {
        let reply = get(&running, path, "");
        assert!([400, 404].contains(&reply.status), "{path}: {}", reply.status);
        assert!(!reply.text().contains("secret") && !reply.text().contains("root:"), "{path}");
    }
    for path in ["/in.txt", "/link.txt"] {
        assert_eq!(get(&running, path, "").text(), "in", "{path}");
    }
}

/// The same with what no client library would send.
#[test]
fn raw_bytes_reach_nothing_either() {
    let outside = Folder::new("raw").with("secret.txt", "secret").with("root/in.txt", "in");
    let running = super::folder::serve(dyno_engine::Content::new(outside.path.join("root")));
    for target in [
        &b"../secret.txt"[..],
        b"/../secret.txt",
        b"/./../secret.txt",
        b"http://a/../secret.txt",
        b"/\xff../secret.txt",
        b"/..\x00/secret.txt",
        b"/..%00/secret.txt",
        b"/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        b"file:///etc/passwd",
        b"/?/../../secret.txt",
        b"*",
    ] {
        let mut client = Client::connect(addr(&running));
        client.send([b"GET ", target, b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"].concat());
        let text = String::from_utf8_lossy(&client.rest()).into_owned();
        let is_refused = text.starts_with("HTTP/1.1 400") || text.starts_with("HTTP/1.1 404");
        assert!(is_refused && !text.contains("secret"), "{}: {text}", target.escape_ascii());
    }
}

#[test]
fn hidden_files_are_not_there_but_what_is_well_known_is() {
    let folder = Folder::new("hidden")
        .with(".htpasswd", "x")
        .with(".git/config", "x")
        .with("docs/.env", "x")
        .with(".well-known/security.txt", "known")
        .with(".well-known/.hidden", "x");
    let running = folder.serve();
    for path in ["/.htpasswd", "/.git/config", "/%2egit/config", "/docs/.env", "/.well-known/.hidden"] {
        assert_eq!(get(&running, path, "").status, 404, "{path}");
    }
    assert_eq!(get(&running, "/.well-known/security.txt", "").text(), "known");
}

#[test]
fn what_is_no_file_holds_nobody_up() {
    let folder = Folder::new("fifo").with("a.txt", "a");
    let fifo = Command::new("mkfifo").arg(folder.path.join("fifo.txt")).status().unwrap();
    assert!(fifo.success());
    let _listener = std::os::unix::net::UnixListener::bind(folder.path.join("socket.txt")).unwrap();
    let start = Instant::now();
    let running = folder.serve();
    for path in ["/fifo.txt", "/socket.txt"] {
        assert_eq!(get(&running, path, "").status, 404, "{path}");
    }
    assert_eq!(get(&running, "/a.txt", "").text(), "a");
    assert!(start.elapsed() < DEADLINE);
}

#[test]
fn names_are_bytes() {
    let folder = Folder::new("bytes").with("\u{4e16}\u{754c} 100%.txt", "world");
    fs::write(folder.path.join(OsStr::from_bytes(b"latin-\xe9.txt")), "latin").unwrap();
    fs::write(folder.path.join(OsStr::from_bytes(b"a?b#c&d.txt")), "odd").unwrap();
    let running = folder.serve();
    for (path, text) in [
        ("/%E4%B8%96%E7%95%8C%20100%25.txt", "world"),
        ("/%e4%b8%96%e7%95%8c%20%31%300%25.txt", "world"),
        ("/latin-%E9.txt", "latin"),
        ("/a%3Fb%23c&d.txt", "odd"),
    ] {
        let reply = get(&running, path, "");
        assert_eq!((reply.status, reply.text().as_str()), (200, text), "{path}");
    }
    assert_eq!(get(&running, "/latin-%C3%A9.txt", "").status, 404);
}

#[test]
fn a_body_does_not_make_a_get_another_request() {
    let folder = Folder::new("body").with("a.txt", "a");
    let running = folder.serve();
    let mut client = Client::connect(addr(&running));
    let with_body = "GET /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(client.ask(with_body).text(), "a");
    assert_eq!(client.ask(request("GET", "/a.txt", "")).text(), "a");
}

//! `dyno serve` with hosts, redirects, header lines and error pages from flags and a file, from outside.
#![allow(clippy::unwrap_used)]

mod common;

use common::{DEADLINE, Folder, Server, dyno, run};
use std::io::{Read, Write};
use std::net::TcpStream;

fn reply(server: &Server, host: &str, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(server.addr()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A folder with a site.
fn site(folder: &Folder, name: &str) -> String {
    let path = folder.path(name);
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("index.html"), name).unwrap();
    std::fs::write(path.join("lost.html"), format!("lost in {name}")).unwrap();
    path.display().to_string()
}

#[test]
fn a_file_tells_hosts_apart() {
    let folder = Folder::new("hosts");
    let (main, blog) = (site(&folder, "main"), site(&folder, "blog"));
    let file = folder.file(
        "dyno.toml",
        format!(
            "listen = [\"127.0.0.1:0\"]\nworkers = 1\n[content]\nroot = \"{main}\"\nno_cache = true\n\
             header = [\"X-Main: 1\"]\nsecurity_headers = \"preset\"\nerror_page = [\"404 lost.html\"]\n\
             redirect = [\"301 /old /new\"]\n\
             [[host]]\nnames = [\"blog.example\", \"*.blog.example\"]\nroot = \"{blog}\"\nheader = [\"X-Blog: 1\"]\n\
             [[host]]\nnames = [\"www.example\"]\nredirect = [\"308 /* https://example/*\"]\nsecurity_headers = \"none\"\n"
        ),
    );
    let server = Server::start(&mut dyno(["serve", &file]));
    let main = reply(&server, "unknown", "/");
    assert!(main.ends_with("\r\n\r\nmain") && main.contains("\r\nX-Main: 1\r\n"), "{main}");
    assert!(main.contains("\r\nX-Content-Type-Options: nosniff\r\n"), "{main}");
    let blog = reply(&server, "a.blog.example", "/");
    assert!(blog.ends_with("\r\n\r\nblog") && blog.contains("\r\nX-Blog: 1\r\n"), "{blog}");
    assert!(blog.contains("nosniff") && !blog.contains("X-Main"), "a list of a host's own replaces: {blog}");
    assert!(reply(&server, "blog.example", "/none").ends_with("lost in blog"));
    assert!(reply(&server, "other", "/none").ends_with("lost in main"));
    assert!(reply(&server, "other", "/old").contains("\r\nLocation: /new\r\n"));
    assert!(reply(&server, "blog.example", "/old").starts_with("HTTP/1.1 404"), "redirects are a host's own");
    let moved = reply(&server, "www.example", "/a?b");
    assert!(
        moved.starts_with("HTTP/1.1 308") && moved.contains("\r\nLocation: https://example/a?b\r\n"),
        "{moved}"
    );
    assert!(!moved.contains("nosniff") && moved.contains("X-Main"), "{moved}");
}

#[test]
fn flags_say_the_same_and_need_no_folder_to_redirect() {
    let server = Server::start(&mut dyno([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--workers",
        "1",
        "--redirect",
        "308 /* https://example.org/*",
        "--header",
        "X-A: b",
    ]));
    let moved = reply(&server, "any", "/x");
    assert!(moved.contains("\r\nLocation: https://example.org/x\r\n") && moved.contains("X-A: b"), "{moved}");
    let server = Server::serve(&["--header", "X-A: b"]);
    let demo = reply(&server, "any", "/json");
    assert!(demo.starts_with("HTTP/1.1 200") && demo.contains("\r\nX-A: b\r\n"), "{demo}");
}

#[test]
fn what_is_shown_of_hosts_can_be_read_again() {
    let folder = Folder::new("hosts-shown");
    let blog = site(&folder, "blog");
    let file = folder.file(
        "dyno.toml",
        format!("[content]\nheader = [\"X: y\"]\n[[host]]\nnames = [\"a\"]\nroot = \"{blog}\"\nredirect = [\"301 /a /b\"]\n"),
    );
    let shown = run(["serve", &file, "--show-config"]).done().to_owned();
    let again = folder.file("again.toml", &shown);
    let settings = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split(" # ").next().unwrap().trim_end().to_owned()).collect()
    };
    assert!(
        shown.contains("[[host]]\nnames = [\"a\"]") && shown.contains("redirect = [\"301 /a /b\"]"),
        "{shown}"
    );
    assert_eq!(settings(run(["serve", &again, "--show-config"]).done()), settings(&shown));
}

#[test]
fn what_is_wrong_with_a_host_is_told_with_its_place() {
    let folder = Folder::new("hosts-wrong");
    let main = site(&folder, "main");
    for (text, what, likely) in [
        ("[[host]]\nroot = \"ROOT\"\n", ":1: a host without names", "names = "),
        ("[[host]]\nnames = [\"a:80\"]\n", ":2: no host can be called \"a:80\"", ""),
        (
            "[[host]]\nnames = [\"a\"]\n[[host]]\nnames = [\"A\"]\n",
            "a is the name of two hosts",
            "contradict",
        ),
        (
            "[[host]]\nnames = [\"a\"]\nroot = \"/no/such\"\n",
            ":3: cannot serve /no/such",
            "likely: there is no such folder",
        ),
        (
            "[[host]]\nnames = [\"a\"]\nredirect = [\"301 /* https://b*\"]\n",
            ":3: content.redirect cannot be",
            "choose the host",
        ),
        ("[content]\nredirect = [\"301 /a //evil\"]\n", ":2: content.redirect cannot be", "two slashes"),
        ("[content]\nheader = [\"X: a\\r\\nY: b\"]\n", ":2: content.header cannot be", "visible"),
        ("[content]\nheader = [\"X: 1\", \"x: 2\"]\n", "told twice", ""),
        ("[content]\nsecurity_headers = \"all\"\n", ":2: content.security_headers cannot be \"all\"", ""),
        (
            "[content]\nroot = \"ROOT\"\nerror_page = [\"404 nowhere.html\"]\n",
            "there is no nowhere.html for 404",
            "below",
        ),
        (
            "[[host]]\nnames = [\"a\"]\nroot = \"ROOT\"\nerror_page = [\"200 lost.html\"]\n",
            ":4: content.error_page",
            "400 to 599",
        ),
        (
            "[[host]]\nnames = [\"a\"]\nroot = \"ROOT\"\nerror_page = [\"404 nowhere.html\"]\n",
            ":4: there is no nowhere.html",
            "",
        ),
    ] {
        let bad = folder.file("bad.toml", text.replace("ROOT", &main));
        let ended = run(["serve", "--check", &bad]);
        let lines = ended.failed();
        assert!(lines[0].contains(what), "{text}: {lines:#?}");
        assert!(lines.iter().any(|line| line.contains(likely)), "{text}: {lines:#?}");
    }
}

#[test]
fn a_report_of_bytes_is_about_what_would_be_served() {
    let folder = Folder::new("bytes");
    let main = site(&folder, "main");
    let plain = run(["serve", &main, "--no-cache", "--bytes-report"]).done().to_owned();
    for says in ["/index.html", "/lost.html", "on average", "line of the head", "TLS: 0", "ETag"] {
        assert!(plain.contains(says), "{says} is not in\n{plain}");
    }
    let one = ["--bytes-report=/index.html", "--price-per-gb", "0.08", "--requests-per-second", "3000"];
    let words = ["serve", &main, "--no-cache", "--header", "X-Long: 1234567"].into_iter().chain(one);
    let priced = run(words).done().to_owned();
    assert!(
        priced.contains("price a year") && priced.contains("X-Long") && !priced.contains("lost.html"),
        "{priced}"
    );
    assert!(
        run(["serve", &main, "--no-cache", "--bytes-report=/none"]).failed()[0]
            .contains("/none is no file here")
    );
    assert!(run(["serve", "--bytes-report"]).failed()[0].contains("no file is served"));
}

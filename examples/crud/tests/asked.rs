//! The notes, started on a port of the kernel's choice and asked over a socket.
#![allow(clippy::unwrap_used)]

use dyno_engine::{Addr, Running};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// A server over a file that goes with its test.
struct Notes {
    running: Running,
    folder: PathBuf,
}

impl Notes {
    fn start(name: &str) -> Notes {
        let folder = std::env::temp_dir().join(format!("dyno-crud-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let running = crud::server(folder.join("notes.db")).unwrap().listen("127.0.0.1:0").start().unwrap();
        Notes { running, folder }
    }

    fn addr(&self) -> SocketAddr {
        match &self.running.addrs()[0] {
            Addr::Tcp(addr) => *addr,
            Addr::Unix(path) => panic!("not a TCP address: {path:?}"),
        }
    }

    /// Status, head and body of a reply.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n");
        let of_body = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all((head + &of_body).as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), head.to_owned(), body.to_owned())
    }

    fn json(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (status, _, body) = self.ask(method, path, body);
        (status, serde_json::from_str(&body).unwrap())
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_note_is_made_read_changed_and_removed() {
    let notes = Notes::start("life");
    assert_eq!(notes.json("GET", "/notes", ""), (200, json!([])));
    let (status, head, _) = notes.ask("POST", "/notes", r#"{"title":"milk","text":"\"two\""}"#);
    assert!(status == 201 && head.contains("\r\nLocation: /notes/1"), "{head}");
    let milk = json!({"id": 1, "title": "milk", "text": "\"two\""});
    assert_eq!(notes.json("GET", "/notes/1", ""), (200, milk));
    let less = json!({"id": 1, "title": "milk", "text": "one"});
    assert_eq!(notes.json("PUT", "/notes/1", r#"{"title":"milk","text":"one"}"#), (200, less.clone()));
    assert_eq!(notes.json("GET", "/notes", ""), (200, json!([less])));
    assert_eq!(notes.ask("DELETE", "/notes/1", "").0, 204);
    for (method, body) in [("GET", ""), ("DELETE", ""), ("PUT", r#"{"title":"x"}"#)] {
        assert_eq!(notes.ask(method, "/notes/1", body).0, 404, "{method}");
    }
}

#[test]
fn what_is_no_note_is_refused_and_nothing_is_kept_of_it() {
    let notes = Notes::start("refused");
    for (body, status) in [
        ("", 400),
        ("{", 400),
        ("{}", 422),
        (r#"{"title":1}"#, 422),
        (r#"{"title":""}"#, 422),
        (r#"{"title":"a","more":1}"#, 422),
        (&format!("{{\"title\":\"{}\"}}", "x".repeat(70_000)), 413),
    ] {
        let (told, problem) = notes.json("POST", "/notes", body);
        assert_eq!((told, &problem["status"]), (status, &json!(status)));
    }
    assert_eq!(notes.ask("GET", "/notes/one", "").0, 404);
    assert_eq!(notes.json("GET", "/notes", ""), (200, json!([])));
}

#[test]
fn many_write_at_once_and_every_note_is_there() {
    let notes = Notes::start("many");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let notes = &notes;
            scope.spawn(move || {
                for number in 0..25 {
                    let body =
                        json!({"title": format!("{writer}-{number}"), "text": "'; drop table notes; --"});
                    assert_eq!(notes.ask("POST", "/notes", &body.to_string()).0, 201);
                }
            });
        }
    });
    let (_, all) = notes.json("GET", "/notes", "");
    assert_eq!(all.as_array().unwrap().len(), 100);
}

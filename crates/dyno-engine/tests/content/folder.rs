//! A folder of a test's own, a server of it, and how it is asked.

use super::common::{Client, Reply, addr, one_worker, patient};
use dyno_engine::{Content, Running, Server};
use std::fs;
use std::path::PathBuf;

/// Removed when the test is over.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("dyno-content-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder { path }
    }

    pub(crate) fn with(self, name: &str, bytes: impl AsRef<[u8]>) -> Folder {
        self.put(name, bytes);
        self
    }

    /// Writes a file in one step, so that nobody sees a part of it.
    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let fresh = self.path.with_extension("fresh");
        fs::write(&fresh, bytes).unwrap();
        fs::rename(fresh, path).unwrap();
    }

    pub(crate) fn serve(&self) -> Running {
        serve(Content::new(&self.path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

pub(crate) fn serve(content: Content) -> Running {
    let server = Server::new().listen("127.0.0.1:0").dials(one_worker()).limits(patient());
    server.content("/", content).start().unwrap()
}

/// A request with these further lines.
pub(crate) fn request(method: &str, path: &str, lines: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
}

pub(crate) fn get(running: &Running, path: &str, lines: &str) -> Reply {
    Client::connect(addr(running)).ask(request("GET", path, lines))
}

/// Text that packs well and shows where a byte of it is missing.
pub(crate) fn text(bytes: usize) -> Vec<u8> {
    let lines = (0..).map(|number| format!("line {number} of a text that repeats itself\n"));
    lines.flat_map(String::into_bytes).take(bytes).collect()
}

/// Bytes that do not pack.
pub(crate) fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x5eed_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(|_| next()).collect()
}

//! Folders served by processes: images that are handed over, workers and builders that are killed.

use crate::common::{Client, wait_for};
use crate::served::{Served, is_alive, program, words};
use dyno_sys::Pid;
use dyno_sys::signal::{self, Signal};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("dyno-served-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        let fresh = self.0.with_extension("fresh");
        fs::write(&fresh, bytes).unwrap();
        fs::rename(fresh, self.0.join(name)).unwrap();
    }

    fn serve(&self, workers: &str) -> Served {
        Served::start(&[("workers", workers), ("content", self.0.to_str().unwrap())])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn get(served: &Served, path: &str) -> String {
    let reply = Client::connect(served.addr()).ask(request(path));
    if reply.status == 200 { reply.text() } else { reply.status.to_string() }
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// The supervisor's child that is no worker.
fn builder(served: &Served) -> Option<Pid> {
    let children = format!("/proc/{0}/task/{0}/children", served.supervisor());
    let children = fs::read_to_string(Path::new(&children)).unwrap();
    let pids = children.split_whitespace().map(|pid| pid.parse::<Pid>().unwrap());
    pids.into_iter().find(|pid| !served.pids.contains(pid))
}

pub(crate) fn workers_serve_a_folder_and_its_changes() {
    let folder = Folder::new("changes");
    folder.put("a.txt", "old");
    folder.put("large.bin", vec![b'l'; 400_000]);
    let mut served = folder.serve("2");
    // Connections are spread by chance: each worker is asked by some.
    for _ in 0..20 {
        assert_eq!((get(&served, "/a.txt").as_str(), get(&served, "/large.bin").len()), ("old", 400_000));
    }
    let mut kept = Client::connect(served.addr());
    assert_eq!(kept.ask(request("/a.txt")).text(), "old");
    folder.put("a.txt", "new");
    folder.put("large.bin", vec![b'm'; 300_000]);
    wait_for("every worker to serve the new version", || (0..20).all(|_| get(&served, "/a.txt") == "new"));
    assert_eq!(kept.ask(request("/a.txt")).text(), "new", "a connection goes on");
    wait_for("the large one", || (0..20).all(|_| get(&served, "/large.bin").len() == 300_000));
    let builder = builder(&served).expect("somebody reads the folder");
    drop(kept);
    let (status, report) = served.stop();
    assert!(status.success() && report.starts_with("report Wholly deaths=0"), "{report}");
    assert!(!is_alive(builder), "nobody reads the folder any more");
}

pub(crate) fn a_new_worker_serves_what_the_folder_has_now() {
    let folder = Folder::new("successor");
    folder.put("a.txt", "old");
    let mut served = folder.serve("1");
    folder.put("a.txt", "new");
    wait_for("the new version", || get(&served, "/a.txt") == "new");
    signal::kill(served.pids[0], Signal::Kill).unwrap();
    assert!(served.line().starts_with("died"));
    assert!(served.line().starts_with("replaced"));
    assert_eq!(get(&served, "/a.txt"), "new");
    folder.put("a.txt", "newer");
    wait_for("the newer version", || get(&served, "/a.txt") == "newer");
    assert!(served.stop().0.success());
}

pub(crate) fn a_killed_builder_is_replaced_and_changes_go_on() {
    let folder = Folder::new("builder");
    folder.put("a.txt", "old");
    let mut served = folder.serve("1");
    let first = builder(&served).expect("somebody reads the folder");
    signal::kill(first, Signal::Kill).unwrap();
    assert!(served.line().starts_with("builder died"));
    assert_eq!(get(&served, "/a.txt"), "old", "what was read is served");
    folder.put("a.txt", "new");
    wait_for("the new version", || get(&served, "/a.txt") == "new");
    assert_ne!(builder(&served), Some(first));
    assert!(served.stop().0.success());
}

pub(crate) fn a_folder_that_is_not_there_is_named() {
    let nowhere = "/nowhere/of-this-name";
    let settings = words(&[("content", nowhere)]);
    let output = program().arg("serve").args(settings).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("cannot read the folder /nowhere/of-this-name"), "{text}");
    assert_eq!(output.status.code(), Some(2));
}

pub(crate) fn no_request_is_lost_while_files_change() {
    let folder = Folder::new("lost");
    let version = |number: usize| vec![b'a' + (number % 26) as u8; 20_000 + number % 26];
    folder.put("a.txt", version(0));
    let mut served = folder.serve("2");
    let is_over = AtomicBool::new(false);
    let changes = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                folder.put("a.txt", version(number));
                // What builds the tables goes behind all others: they have to leave it something.
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            number
        });
        let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(served.addr())).collect();
        let mut seen = std::collections::BTreeSet::new();
        let start = std::time::Instant::now();
        while seen.len() < 5 {
            assert!(start.elapsed().as_secs() < 120, "versions {seen:?}");
            for client in &mut clients {
                let reply = client.ask(request("/a.txt"));
                let first = reply.body[0];
                assert!(reply.status == 200 && reply.body == version(usize::from(first - b'a')));
                seen.insert(first);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(changes > 5);
    let (status, report) = served.stop();
    assert!(status.success() && report.starts_with("report Wholly deaths=0"), "{report}");
}

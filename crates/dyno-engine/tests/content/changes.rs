//! Files that change while they are served: nothing is torn, nothing lost, and the new version comes by itself.

use super::common::{Client, Reply, addr, one_worker, patient, wait_for};
use super::folder::{Folder, get, noise, request, serve, text};
use dyno_engine::{Content, Running, Server, Watch};
use std::fs;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_change_is_served_without_a_restart() {
    let folder = Folder::new("change").with("a.css", text(1_000)).with("gone.txt", "x");
    let running = folder.serve();
    let before = get(&running, "/a.css", "");
    folder.put("a.css", text(2_000));
    folder.put("new/deep/er.txt", "new");
    fs::remove_file(folder.path.join("gone.txt")).unwrap();
    wait_for("the new version", || get(&running, "/a.css", "").body == text(2_000));
    wait_for("the new file", || get(&running, "/new/deep/er.txt", "").text() == "new");
    wait_for("the end of the old file", || get(&running, "/gone.txt", "").status == 404);
    let lines = format!("If-None-Match: {}\r\n", before.header("etag").unwrap());
    assert_eq!(get(&running, "/a.css", &lines).status, 200);
    // In a folder that was not there at the start, too.
    folder.put("new/deep/er.txt", "newer");
    wait_for("the change in a new folder", || get(&running, "/new/deep/er.txt", "").text() == "newer");
    wait_for("the new version's codings", || {
        get(&running, "/a.css", "Accept-Encoding: br\r\n").header("content-encoding") == Some("br")
    });
}

/// Planted fault: the thread that makes images is ended before the workers are waited for, which `run` does at once.
#[test]
fn a_server_that_runs_for_good_follows_its_folders() {
    let folder = Folder::new("run").with("a.txt", "one");
    // A port that was free a moment ago: who runs a server is not told which was chosen.
    let addr = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Server::new().listen(&addr.to_string()).dials(one_worker()).limits(patient());
    let server = server.content("/", Content::new(&folder.path));
    std::thread::spawn(move || server.run());
    let is = |text: &str| {
        std::net::TcpStream::connect(addr)
            .is_ok_and(|stream| Client::over(stream).ask(request("GET", "/a.txt", "")).text() == text)
    };
    wait_for("the server", || is("one"));
    folder.put("a.txt", "two");
    wait_for("the change", || is("two"));
}

#[test]
fn whatever_way_a_folder_changes_is_noticed() {
    let folder = Folder::new("ways").with("dir/a.txt", "one").with("b.txt", "one");
    let running = folder.serve();
    let is = |path: &str, text: &str| get(&running, path, "").text() == text;
    fs::write(folder.path.join("b.txt"), "written in place").unwrap();
    wait_for("a file written in place", || is("/b.txt", "written in place"));
    fs::rename(folder.path.join("dir"), folder.path.join("other")).unwrap();
    wait_for("a renamed folder", || {
        is("/other/a.txt", "one") && get(&running, "/dir/a.txt", "").status == 404
    });
    fs::remove_dir_all(folder.path.join("other")).unwrap();
    folder.put("other/a.txt", "two");
    wait_for("a folder made anew", || is("/other/a.txt", "two"));
    folder.put("other/a.txt", "three");
    wait_for("a change in the folder made anew", || is("/other/a.txt", "three"));
    std::os::unix::fs::symlink("other", folder.path.join("link")).unwrap();
    wait_for("a link to a folder", || is("/link/a.txt", "three"));
}

/// As releases are put in place: a link is led to another folder.
#[test]
fn a_root_that_comes_to_mean_another_folder_is_served_as_that() {
    let folder = Folder::new("release").with("v1/a.txt", "one").with("v2/a.txt", "two");
    let large = noise(200_000);
    folder.put("v2/large.bin", &large);
    let current = folder.path.join("current");
    std::os::unix::fs::symlink("v1", &current).unwrap();
    let running = serve(Content::new(&current));
    assert_eq!(get(&running, "/a.txt", "").text(), "one");
    std::os::unix::fs::symlink("v2", folder.path.join("next")).unwrap();
    fs::rename(folder.path.join("next"), &current).unwrap();
    wait_for("the next release", || get(&running, "/a.txt", "").text() == "two");
    assert!(get(&running, "/large.bin", "").body == large);
    folder.put("v2/a.txt", "three");
    wait_for("a change in it", || get(&running, "/a.txt", "").text() == "three");
}

#[test]
fn what_is_not_watched_stays_as_it_was() {
    let folder = Folder::new("unwatched").with("a.txt", "old");
    let running = serve(Content::new(&folder.path).watch(Watch::No));
    folder.put("a.txt", "new");
    assert_eq!(get(&running, "/a.txt", "").text(), "old");
}

/// Each reply is one version, whole, while versions follow each other fast.
#[test]
fn a_file_that_is_replaced_again_and_again_is_never_torn() {
    for (name, bytes) in [("small.txt", 3_000), ("middle.bin", 60_000), ("large.bin", 400_000)] {
        let version = |number: u8| vec![b'a' + number % 26; bytes + usize::from(number % 26)];
        let folder = Folder::new(name).with(name, version(0));
        let running = folder.serve();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut number = 0_u8;
                while !is_over.load(Ordering::Relaxed) {
                    number = number.wrapping_add(1);
                    folder.put(name, version(number));
                    // What builds the tables goes behind all others: they have to leave it something.
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            });
            let mut client = Client::connect(addr(&running));
            let mut versions = std::collections::BTreeSet::new();
            let start = std::time::Instant::now();
            while versions.len() < 4 {
                assert!(start.elapsed().as_secs() < 120, "{name}: versions {versions:?}");
                let reply = client.ask(request("GET", &format!("/{name}"), ""));
                // Between two versions of a large file it may be gone for a moment, but never half.
                assert_eq!(reply.status, 200, "{name}");
                let first = reply.body[0];
                assert!(reply.body.iter().all(|byte| *byte == first), "{name} is torn");
                assert_eq!(reply.body.len(), bytes + usize::from(first - b'a'), "{name}");
                versions.insert(first);
            }
            is_over.store(true, Ordering::Relaxed);
            writer.join().unwrap();
        });
    }
}

#[test]
fn a_download_goes_on_with_the_version_that_it_began_with() {
    for place in Place::BOTH {
        let old = noise(3_000_000);
        let folder = Folder::new("download").with("large.bin", &old);
        let running = serve(place.content(&folder));
        let mut client = Client::connect(addr(&running));
        client.send(request("GET", "/large.bin", ""));
        let head = client.head_of_reply();
        assert_eq!(head.header("content-length"), Some("3000000"));
        folder.put("large.bin", text(2_000_000));
        wait_for("the new version", || {
            let reply = get(&running, "/large.bin", "Range: bytes=0-9\r\n");
            reply.header("content-range") == Some("bytes 0-9/2000000")
        });
        client.shutdown_write();
        assert!(client.rest() == old, "the old version is whole, from {place:?}");
    }
}

/// Where a large file is sent from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A sealed copy of it.
    Memory,
    /// It stays where it is: there is no room for it.
    File,
}

impl Place {
    const BOTH: [Place; 2] = [Place::Memory, Place::File];

    fn content(self, folder: &Folder) -> Content {
        let content = Content::new(&folder.path);
        match self {
            Place::Memory => content.memory_bytes_max(64 << 20),
            Place::File => content.memory_bytes_max(10_000),
        }
    }
}

/// A file that is written over and over where it stands, always as long as before.
struct Rewritten {
    folder: Folder,
    bytes: usize,
    place: Place,
}

impl Rewritten {
    fn new(name: &str, bytes: usize, place: Place) -> Rewritten {
        let folder = Folder::new(name).with("large.bin", vec![0; bytes]);
        Rewritten { folder, bytes, place }
    }

    /// Writes a version in pieces, front to back, into the file that is there.
    fn write(&self, version: u8) {
        let mut file = fs::OpenOptions::new().write(true).open(self.folder.path.join("large.bin")).unwrap();
        let piece = vec![version; 64 << 10];
        let mut left = self.bytes;
        while left > 0 {
            let count = left.min(piece.len());
            file.write_all(&piece[..count]).unwrap();
            left -= count;
        }
    }

    /// What came of a download: a version, or `None` for one that was visibly cut, and for a file that stays where it is and
    /// was being written when the server looked. Anything else fails.
    fn version_of(&self, head: &Reply, body: &[u8]) -> Option<u8> {
        if self.place == Place::File && head.status == 404 {
            return None;
        }
        assert_eq!(head.status, 200);
        let length: usize = head.header("content-length").unwrap().parse().unwrap();
        assert_eq!(length, self.bytes);
        if body.len() < length {
            return None;
        }
        assert!(body.iter().all(|byte| *byte == body[0]), "a reply is torn");
        Some(body[0])
    }
}

/// The writer comes when the download has begun and most of it is still to be sent, or waits in the sockets. It is red with
/// `FilePart::sealed` for a file that stays where it is, which `sendfile` then sends, and where a look at the file is left out.
#[test]
fn a_large_file_that_is_written_over_while_it_is_sent_is_never_torn() {
    for place in Place::BOTH {
        let file = Rewritten::new("in-place", 12_000_000, place);
        let running = serve(place.content(&file.folder));
        let mut cut = 0;
        for version in 0..6 {
            wait_for("the version that is there", || get_all(&running, &file) == Some(version));
            let mut client = Client::connect(addr(&running));
            client.send(request("GET", "/large.bin", "Connection: close\r\n"));
            let head = client.head_of_reply();
            file.write(version + 1);
            match file.version_of(&head, &client.rest()) {
                Some(sent) => assert_eq!(sent, version, "a download goes on with what it began with"),
                None => cut += 1,
            }
        }
        // A copy is sent whole; of a file that stays where it is no version is left that could be sent whole.
        assert_eq!(cut, if place == Place::Memory { 0 } else { 6 }, "{place:?}");
    }
}

/// Ends the writer, also where an assertion has failed.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn get_all(running: &Running, file: &Rewritten) -> Option<u8> {
    let mut client = Client::connect(addr(running));
    client.send(request("GET", "/large.bin", "Connection: close\r\n"));
    let head = client.head_of_reply();
    file.version_of(&head, &client.rest())
}

/// The same without any order between writer and readers, for readers that take a little at a time.
#[test]
fn slow_downloads_of_a_file_that_is_written_over_all_the_time_are_never_torn() {
    for place in Place::BOTH {
        let file = Rewritten::new("all-the-time", 3_000_000, place);
        let running = serve(place.content(&file.folder));
        let is_over = AtomicBool::new(false);
        let mut whole = std::collections::BTreeSet::new();
        std::thread::scope(|scope| {
            let over = Over(&is_over);
            let writer = scope.spawn(|| {
                let mut version = 0_u8;
                while !is_over.load(Ordering::Relaxed) {
                    version = version.wrapping_add(1);
                    file.write(version);
                    if version.is_multiple_of(8) {
                        // A rest now and then, so that there is a version to be seen.
                        wait_for("a download of this version", || {
                            is_over.load(Ordering::Relaxed) || get_all(&running, &file) == Some(version)
                        });
                    }
                }
            });
            for _ in 0..40 {
                let mut client = Client::connect(addr(&running));
                client.send(request("GET", "/large.bin", "Connection: close\r\n"));
                let head = client.head_of_reply();
                let mut body = client.taken();
                let mut piece = vec![0; 20_000];
                loop {
                    match client.stream.read(&mut piece) {
                        Ok(0) | Err(_) => break,
                        Ok(count) => body.extend_from_slice(&piece[..count]),
                    }
                    std::thread::yield_now();
                }
                whole.extend(file.version_of(&head, &body));
            }
            drop(over);
            writer.join().unwrap();
        });
        assert!(!whole.is_empty() || place == Place::File, "some are whole");
    }
}

#[test]
fn a_file_that_shrinks_is_sent_whole_from_its_copy() {
    let folder = Folder::new("shrinks-copied").with("large.bin", noise(5_000_000));
    let running = serve(Place::Memory.content(&folder).watch(Watch::No));
    let file = fs::OpenOptions::new().write(true).open(folder.path.join("large.bin")).unwrap();
    file.set_len(100_000).unwrap();
    assert!(get(&running, "/large.bin", "").body == noise(5_000_000));
}

#[test]
fn a_file_that_shrinks_closes_the_connection_and_nothing_is_padded() {
    let folder = Folder::new("shrinks").with("large.bin", noise(5_000_000));
    let running = serve(Place::File.content(&folder).watch(Watch::No));
    let mut before = Client::connect(addr(&running));
    before.send(request("GET", "/large.bin", ""));
    assert_eq!(before.head_of_reply().header("content-length"), Some("5000000"));
    let file = fs::OpenOptions::new().write(true).open(folder.path.join("large.bin")).unwrap();
    file.set_len(100_000).unwrap();
    let rest = before.rest();
    assert!(rest.len() < 5_000_000 && noise(5_000_000).starts_with(&rest), "what there was, and the end");
    for lines in ["", "Range: bytes=0-9\r\n"] {
        let mut client = Client::connect(addr(&running));
        client.send(request("GET", "/large.bin", lines));
        client.head_of_reply();
        client.assert_closed();
    }
}

/// A file that is being written when the server starts is not served half.
#[test]
fn a_file_that_is_still_being_written_is_served_when_it_is_whole() {
    let folder = Folder::new("growing").with("a.txt", "a");
    let mut file = fs::File::create(folder.path.join("large.bin")).unwrap();
    file.write_all(&noise(2_000_000)).unwrap();
    let running = folder.serve();
    file.write_all(&noise(1_000_000)).unwrap();
    drop(file);
    let whole = [noise(2_000_000), noise(1_000_000)].concat();
    wait_for("the whole file", || {
        let reply = get(&running, "/large.bin", "");
        // What somebody has left alone for a second counts as whole, too.
        let is_one_of_both = reply.status == 404 || [2_000_000, 3_000_000].contains(&reply.body.len());
        assert!(is_one_of_both, "{}: {} bytes", reply.status, reply.body.len());
        reply.body == whole
    });
}

#[test]
fn encoded_files_are_kept_from_start_to_start() {
    let (folder, cache) = (Folder::new("cached").with("a.js", text(50_000)), Folder::new("cache"));
    let private = cache.path.join("private");
    let content = || Content::new(&folder.path).cache(&private);
    let ask = || {
        let running = serve(content());
        get(&running, "/a.js", "Accept-Encoding: br\r\n").body
    };
    let first = ask();
    let names = || fs::read_dir(&private).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    assert_eq!(
        names().len(),
        3 + usize::from(cfg!(feature = "zstd")),
        "gzip, deflate, br, and zstd where it is made"
    );
    assert_eq!(ask(), first);
    // What somebody has spoilt is made again.
    names().iter().for_each(|entry| fs::write(entry, "spoilt").unwrap());
    assert_eq!(ask(), first);
}

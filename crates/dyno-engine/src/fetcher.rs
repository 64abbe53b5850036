//! Threads that bring pages of files into memory, so that no worker's loop waits for a disk.
//!
//! A worker's seam asks when a read would have waited; a message to the worker's mailbox tells when the pages are there.
//! The threads start when they are needed first, so that who serves from memory has none. Each connection awaits one
//! fetch at a time, which bounds the queue.

use crate::file::FilePart;
use crate::mailbox::{Mailbox, Message};
use crossbeam_queue::SegQueue;
use dyno_sys::event::Semaphore;
use dyno_sys::resident::{self, Patience};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Reads that wait at a time, per worker. A disk of today answers many at once and none of them faster for being alone;
/// one that turns has its own order for them.
const THREADS: usize = 8;

/// Bytes of one fetch: what leaves in four turns, so that a client waits for the disk once per megabyte and other clients'
/// pages are not pushed out for one.
const FETCH_BYTES: u64 = 1 << 20;

/// Read in steps of this, which is as much memory as a thread has.
const STEP_BYTES: usize = 128 << 10;

/// Where fetches are asked for. Dropping it ends the threads, each after what it is at.
pub(crate) struct Fetcher {
    desk: Arc<Desk>,
}

struct Desk {
    wanted: SegQueue<Wanted>,
    calls: Semaphore,
    is_closed: AtomicBool,
    mailbox: Arc<Mailbox>,
}

struct Wanted {
    file: FilePart,
    offset: u64,
    token: u64,
}

impl Fetcher {
    /// Starts the threads.
    pub(crate) fn start(mailbox: Arc<Mailbox>) -> io::Result<Fetcher> {
        let (wanted, is_closed) = (SegQueue::new(), AtomicBool::new(false));
        let desk = Arc::new(Desk { wanted, calls: Semaphore::new()?, is_closed, mailbox });
        let fetcher = Fetcher { desk };
        let mut started = 0;
        for _ in 0..THREADS {
            let desk = Arc::clone(&fetcher.desk);
            let thread = thread::Builder::new().name("dyno-fetch".to_owned());
            match thread.spawn(move || desk.serve()) {
                Ok(_) => started += 1,
                // Fewer do as well.
                Err(_) if started > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(fetcher)
    }

    /// Has the file's bytes from `offset` on brought into memory.
    pub(crate) fn fetch(&self, file: &FilePart, offset: u64, token: u64) {
        self.desk.wanted.push(Wanted { file: file.clone(), offset, token });
        self.desk.calls.add(1);
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.desk.is_closed.store(true, Ordering::SeqCst);
        self.desk.calls.add(THREADS as u64);
    }
}

impl Desk {
    /// A thread's life.
    fn serve(&self) {
        let mut room = vec![0; STEP_BYTES];
        loop {
            self.calls.take();
            if self.is_closed.load(Ordering::SeqCst) {
                return;
            }
            if let Some(wanted) = self.wanted.pop() {
                #[cfg(test)]
                tests::DISK.answer();
                wanted.read(&mut room);
                self.mailbox.put(Message::Fetched(wanted.token));
            }
        }
    }
}

impl Wanted {
    /// What cannot be read, the connection finds out itself.
    fn read(&self, room: &mut [u8]) {
        let end = (self.offset + FETCH_BYTES).min(self.file.offset + self.file.length);
        let mut at = self.offset;
        while at < end {
            let step = usize::try_from(end - at).unwrap_or(usize::MAX).min(room.len());
            match resident::read(self.file.file(), &mut room[..step], at, Patience::Waits) {
                resident::Resident::Done(count) if count > 0 => at += count as u64,
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Dials, Method, Running, Server};
    use dyno_sys::resident::Resident;
    use std::fs::{self, File, OpenOptions};
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::num::NonZeroU32;
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    const DEADLINE: Duration = Duration::from_secs(20);

    /// A disk that answers when it is told to.
    pub(super) static DISK: Disk = Disk { state: Mutex::new((false, 0)), changed: Condvar::new() };

    pub(super) struct Disk {
        /// Whether it is held up, and how often it was asked.
        state: Mutex<(bool, usize)>,
        changed: Condvar,
    }

    impl Disk {
        /// What a read waits for.
        pub(super) fn answer(&self) {
            let mut state = self.state.lock().unwrap();
            state.1 += 1;
            self.changed.notify_all();
            drop(self.changed.wait_while(state, |state| state.0).unwrap());
        }

        fn hold(&self, is_held: bool) {
            self.state.lock().unwrap().0 = is_held;
            self.changed.notify_all();
        }

        fn wait_until_asked(&self) {
            let state = self.state.lock().unwrap();
            let (state, _) = self.changed.wait_timeout_while(state, DEADLINE, |state| state.1 == 0).unwrap();
            assert!(state.1 > 0, "no read was left to others");
        }
    }

    fn connect(running: &Running) -> TcpStream {
        let crate::Addr::Tcp(addr) = &running.addrs()[0] else { panic!("it listens at TCP") };
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    fn ask(mut stream: &TcpStream, path: &str) {
        let text = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).unwrap();
    }

    /// With `Patience::Waits` in the outbox and the queue nobody else is asked, and the worker itself waits.
    #[test]
    fn others_are_served_while_a_disk_is_slow_and_what_it_has_comes_whole() {
        let bytes: Vec<u8> = (0..4_000_000_u32).map(|at| (at ^ at >> 8 ^ at >> 16) as u8).collect();
        // Beside this program, which a build puts on a disk: a file system in memory has no cold pages.
        let path = std::env::current_exe().unwrap().with_extension(format!("{}.file", std::process::id()));
        fs::write(&path, &bytes).unwrap();
        OpenOptions::new().write(true).open(&path).unwrap().sync_all().unwrap();
        let file = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        resident::evict(&file).unwrap();
        assert_eq!(resident::read(&file, &mut [0], 0, Patience::None), Resident::Cold, "its pages are away");
        let part = FilePart::whole(file).unwrap();
        let server = Server::new().listen("127.0.0.1:0").dials(Dials::for_workers(NonZeroU32::MIN));
        let server = server.route(Method::Get, "/file", move |_, reply| reply.file("a/b", part.clone()));
        let running = server.route(Method::Get, "/hello", |_, reply| reply.text("hello")).start().unwrap();
        DISK.hold(true);
        let mut slow = connect(&running);
        ask(&slow, "/file");
        DISK.wait_until_asked();
        for _ in 0..10 {
            let (mut other, mut text) = (connect(&running), String::new());
            ask(&other, "/hello");
            other.read_to_string(&mut text).unwrap();
            assert!(text.ends_with("\r\n\r\nhello"), "{text}");
        }
        DISK.hold(false);
        let mut reply = Vec::new();
        slow.read_to_end(&mut reply).unwrap();
        assert!(reply.ends_with(&bytes), "{} bytes", reply.len());
    }
}

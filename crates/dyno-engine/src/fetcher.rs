//! Threads that bring pages of files into memory, so that no worker's loop waits for a disk.
//!
//! A worker's seam asks when a read would have waited; a message to the worker's mailbox tells when the pages are there.
//! The threads start when they are needed first, so that who serves from memory has none. Each connection awaits one
//! fetch at a time, and what nobody awaits any more is forgotten: the queue is bounded by the connections that there are.

use crate::file::FilePart;
use crate::mailbox::{Mailbox, Message};
use crossbeam_queue::SegQueue;
use dyno_sys::event::Semaphore;
use dyno_sys::resident::{self, Patience};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;

/// Reads that wait at a time, per worker. A disk of today answers many at once and none of them faster for being alone;
/// one that turns has its own order for them.
const THREADS: usize = 8;

/// Bytes of one fetch: what leaves in four turns, so that a client waits for the disk once per megabyte and other clients'
/// pages are not pushed out for one.
pub(crate) const FETCH_BYTES: u64 = 1 << 20;

/// Read in steps of this, which is as much memory as a thread has.
const STEP_BYTES: usize = 128 << 10;

/// So many fetches wait before it is looked which of them nobody awaits any more; after that, twice as many as are left. A
/// disk that does not answer at all must not have those of all clients pile up who gave up.
const LOOK_LENGTH: usize = 1_024;

/// Where fetches are asked for. Dropping it ends the threads, each after what it is at.
pub(crate) struct Fetcher {
    desk: Arc<Desk>,
    /// The length of the queue at which it is looked through.
    look_at: usize,
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
    /// Gone when nobody awaits it any more.
    awaited: Weak<()>,
}

impl Fetcher {
    /// Starts the threads.
    pub(crate) fn start(mailbox: Arc<Mailbox>) -> io::Result<Fetcher> {
        let fetcher = Fetcher::without_threads(mailbox)?;
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

    fn without_threads(mailbox: Arc<Mailbox>) -> io::Result<Fetcher> {
        let (wanted, is_closed) = (SegQueue::new(), AtomicBool::new(false));
        let desk = Arc::new(Desk { wanted, calls: Semaphore::new()?, is_closed, mailbox });
        Ok(Fetcher { desk, look_at: LOOK_LENGTH })
    }

    /// Has the file's bytes from `offset` on brought into memory, if they are still awaited then.
    pub(crate) fn fetch(&mut self, file: &FilePart, offset: u64, token: u64, awaited: Weak<()>) {
        self.desk.wanted.push(Wanted { file: file.clone(), offset, token, awaited });
        self.desk.calls.add(1);
        if self.desk.wanted.len() >= self.look_at {
            let left = self.desk.forget_unawaited();
            self.look_at = LOOK_LENGTH.max(2 * left);
        }
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
                self.answer(&wanted, &mut room);
            }
        }
    }

    fn answer(&self, wanted: &Wanted, room: &mut [u8]) {
        if !wanted.is_awaited() {
            return;
        }
        #[cfg(test)]
        tests::DISK.answer();
        let bytes = wanted.read(room);
        self.mailbox.put(Message::Fetched(wanted.token, bytes));
    }

    /// Takes fetches out of the queue that nobody awaits any more; says how many are left.
    fn forget_unawaited(&self) -> usize {
        let mut left = 0;
        for _ in 0..self.wanted.len() {
            let Some(wanted) = self.wanted.pop() else { break };
            if wanted.is_awaited() {
                self.wanted.push(wanted);
                left += 1;
            }
        }
        // A thread may have come for one of them while it was not in the queue.
        self.calls.add(left as u64);
        left
    }
}

impl Wanted {
    fn is_awaited(&self) -> bool {
        self.awaited.strong_count() > 0
    }

    /// Says how many bytes it has read: none where the first of them do not come.
    fn read(&self, room: &mut [u8]) -> u64 {
        let end = (self.offset + FETCH_BYTES).min(self.file.offset + self.file.length);
        let mut at = self.offset;
        while at < end && self.is_awaited() {
            let step = usize::try_from(end - at).unwrap_or(usize::MAX).min(room.len());
            match resident::read(self.file.file(), &mut room[..step], at, Patience::Waits) {
                resident::Resident::Done(count) if count > 0 => at += count as u64,
                _ => break,
            }
        }
        at - self.offset
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::file::Facts;
    use crate::{Dials, Method, Running, Server};
    use dyno_sys::resident::Resident;
    use std::fs::{self, File, OpenOptions};
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::num::NonZeroU32;
    use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    const DEADLINE: Duration = Duration::from_secs(20);

    /// A disk that answers when it is told to.
    pub(super) static DISK: Disk = Disk { state: Mutex::new((false, 0)), changed: Condvar::new() };

    pub(super) struct Disk {
        /// Whether it is held up, and how often it was asked since.
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
            *self.state.lock().unwrap() = (is_held, 0);
            self.changed.notify_all();
        }

        fn wait_until_asked(&self) {
            let state = self.state.lock().unwrap();
            let (state, _) = self.changed.wait_timeout_while(state, DEADLINE, |state| state.1 == 0).unwrap();
            assert!(state.1 > 0, "no read was left to others");
        }
    }

    /// There is one disk for all tests.
    fn disk_of_ones_own() -> MutexGuard<'static, ()> {
        static USED: Mutex<()> = Mutex::new(());
        USED.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn executable() -> FilePart {
        FilePart::whole(File::open("/proc/self/exe").unwrap()).unwrap()
    }

    /// Red where only the threads take fetches out of the queue: a disk that hangs would have it grow for ever.
    #[test]
    fn what_nobody_awaits_any_more_does_not_pile_up() {
        let mut fetcher = Fetcher::without_threads(Mailbox::new(None)).unwrap();
        let (file, awaited) = (executable(), Arc::new(()));
        for token in 0..10_000 {
            let of_one_that_goes = Arc::new(());
            let of = if token % 100 == 0 { &awaited } else { &of_one_that_goes };
            fetcher.fetch(&file, 0, token, Arc::downgrade(of));
        }
        let length = fetcher.desk.wanted.len();
        assert!(length <= LOOK_LENGTH, "{length} wait, of which 100 are awaited");
        assert_eq!(fetcher.desk.forget_unawaited(), 100);
        let tokens = std::iter::from_fn(|| fetcher.desk.wanted.pop()).map(|wanted| wanted.token);
        assert!(tokens.eq((0..10_000).step_by(100)), "in their order");
    }

    #[test]
    fn nothing_is_read_for_who_has_gone() {
        let (mut room, awaited) = (vec![0; STEP_BYTES], Arc::new(()));
        let fetcher = Fetcher::without_threads(Mailbox::new(None)).unwrap();
        let wanted = Wanted { file: executable(), offset: 0, token: 7, awaited: Arc::downgrade(&awaited) };
        assert_eq!(wanted.read(&mut room), FETCH_BYTES.min(wanted.file.len()));
        drop(awaited);
        assert_eq!(wanted.read(&mut room), 0, "nor the next step, when it goes between two");
        fetcher.desk.answer(&wanted, &mut room);
        assert!(!fetcher.desk.mailbox.has_mail());
    }

    /// Red where nothing but the end of a fetch is told: the worker would wait for the same disk.
    #[test]
    fn a_fetch_that_fails_says_so() {
        // Nothing is mapped at a process's first byte: reading there fails with EIO.
        let memory = File::open("/proc/self/mem").unwrap();
        let mut facts = Facts::of(&memory.metadata().unwrap());
        facts.bytes = 1_000;
        let awaited = Arc::new(());
        let file = FilePart::open(memory, facts);
        let wanted = Wanted { file, offset: 0, token: 7, awaited: Arc::downgrade(&awaited) };
        assert_eq!(wanted.read(&mut [0; 1_000]), 0);
    }

    /// With `Patience::Waits` in the outbox and the queue nobody else is asked, and the worker itself waits.
    #[test]
    fn others_are_served_while_a_disk_is_slow_and_what_it_has_comes_whole() {
        let _own = disk_of_ones_own();
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

    /// sysfs cannot tell what is in memory, as file systems behind a network cannot. Red where such a file is read by the
    /// worker's loop.
    #[test]
    fn a_file_of_which_nobody_can_tell_what_is_in_memory_is_read_beside_the_loop() {
        let _own = disk_of_ones_own();
        let part = FilePart::whole(File::open("/sys/devices/system/cpu/online").unwrap()).unwrap();
        let first = part.part(0..1).unwrap();
        let server = Server::new().listen("127.0.0.1:0").dials(Dials::for_workers(NonZeroU32::MIN));
        let server = server.route(Method::Get, "/", move |_, reply| reply.file("a/b", first.clone()));
        let running = server.start().unwrap();
        DISK.hold(true);
        let (mut stream, mut text) = (connect(&running), String::new());
        ask(&stream, "/");
        DISK.wait_until_asked();
        DISK.hold(false);
        stream.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("\r\n\r\n0"), "{text}");
    }
}

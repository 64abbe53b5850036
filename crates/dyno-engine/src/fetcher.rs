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

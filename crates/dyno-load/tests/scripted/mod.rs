//! A server that does exactly what a test tells it, right or wrong, and counts what it did.
//!
//! A thread per connection runs the test's script. Used by every test of this folder; not all use all of it.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dyno_load::{BlockSpec, Expect, SessionPlan, Target};

/// No test needs as long as this; one that hangs fails after it.
const DEADLINE: Duration = Duration::from_secs(60);

pub const HELLO: &[u8] =
    b"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 01:37:55 GMT\r\nContent-Length: 5\r\n\r\nhello";

/// What the server did, over all connections.
#[derive(Debug, Default)]
pub struct Counts {
    pub connections: AtomicU64,
    pub requests: AtomicU64,
    pub answers: AtomicU64,
    /// Whatever the script marks: usually its misdeeds.
    pub marks: AtomicU64,
}

pub struct Server {
    addr: SocketAddr,
    pub counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
    accepts: Option<JoinHandle<()>>,
}

/// One connection, as the script sees it.
pub struct Peer {
    pub stream: TcpStream,
    pub counts: Arc<Counts>,
    buffer: Vec<u8>,
    number: u64,
}

impl Server {
    pub fn start(script: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let (counts, stop) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
        let script = Arc::new(script);
        let accepts = std::thread::spawn({
            let (counts, stop) = (counts.clone(), stop.clone());
            move || {
                for stream in listener.incoming().map(Result::unwrap) {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    serve(stream, counts.clone(), script.clone());
                }
            }
        });
        Self { addr, counts, stop, accepts: Some(accepts) }
    }

    /// Answers every request with these bytes and keeps the connection.
    pub fn answering(bytes: &'static [u8]) -> Self {
        Self::start(move |peer| while peer.request() && peer.answer(bytes) {})
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn answers(&self) -> u64 {
        self.counts.answers.load(Ordering::SeqCst)
    }

    pub fn marks(&self) -> u64 {
        self.counts.marks.load(Ordering::SeqCst)
    }

    pub fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::SeqCst)
    }

    pub fn plan(&self, connections: usize) -> SessionPlan {
        SessionPlan {
            target: Target::get(&format!("http://{}/", self.addr)).unwrap(),
            expect: Expect::body("hello"),
            connections,
            pipeline: 1,
            timeout_ns: 5_000_000_000,
        }
    }

    /// Stops listening; connections that stand are left to their scripts.
    pub fn stop_listening(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let Some(accepts) = self.accepts.take() else { return };
        drop(TcpStream::connect(self.addr));
        accepts.join().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_listening();
    }
}

fn serve(stream: TcpStream, counts: Arc<Counts>, script: Arc<impl Fn(&mut Peer) + Send + Sync + 'static>) {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    counts.connections.fetch_add(1, Ordering::SeqCst);
    std::thread::spawn(move || script(&mut Peer { stream, counts, buffer: Vec::new(), number: 0 }));
}

impl Peer {
    /// Waits for the head of a request; false when the client is gone.
    pub fn request(&mut self) -> bool {
        self.head().is_some()
    }

    /// Waits for the head of a request and hands it out; none when the client is gone.
    pub fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head = self.buffer.drain(..end + 4).collect();
                self.number = self.counts.requests.fetch_add(1, Ordering::SeqCst) + 1;
                return Some(String::from_utf8(head).unwrap());
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// Waits for so many more bytes, a body; false when the client is gone.
    pub fn body(&mut self, bytes: usize) -> bool {
        self.body_bytes(bytes).is_some()
    }

    /// Waits for so many more bytes and hands them out; none when the client is gone.
    pub fn body_bytes(&mut self, bytes: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < bytes {
            if !self.fill() {
                return None;
            }
        }
        Some(self.buffer.drain(..bytes).collect())
    }

    /// Counts an answer and sends it; false when the client is gone.
    pub fn answer(&mut self, bytes: &[u8]) -> bool {
        // Counted first: the client may have read it and looked at the count before the send returns.
        self.counts.answers.fetch_add(1, Ordering::SeqCst);
        self.send(bytes)
    }

    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Counts a misdeed and tells how many there were before.
    pub fn mark(&self) -> u64 {
        self.counts.marks.fetch_add(1, Ordering::SeqCst)
    }

    /// The number of this connection's last request among those of all connections, from 1 on.
    pub fn requests(&self) -> u64 {
        self.number
    }

    /// Reads until the client is gone.
    pub fn wait_for_close(&mut self) {
        while self.fill() {
            self.buffer.clear();
        }
    }

    /// Ends the connection by a reset.
    pub fn reset(&mut self) {
        dyno_sys::socket::set_linger_zero(&self.stream).unwrap();
    }

    fn fill(&mut self) -> bool {
        let mut piece = [0; 4_096];
        match self.stream.read(&mut piece) {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.buffer.extend_from_slice(&piece[..count]);
                true
            }
        }
    }
}

/// A short block without settling: every answer of it counts.
pub fn short() -> BlockSpec {
    BlockSpec {
        settle_ns: 0,
        measure_ns: 20_000_000,
        replies_min: 200,
        ns_max: 5_000_000_000,
        drain_ns_max: 5_000_000_000,
        drain_slow_ns_max: 0,
    }
}

/// Runs something that must end; a test that hangs fails instead.
pub fn within_deadline<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    let thread = std::thread::spawn(move || done.send(work()));
    match result.recv_timeout(DEADLINE) {
        Ok(value) => value,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it did not end within {DEADLINE:?}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().expect_err("only a panic drops the channel unused"))
        }
    }
}

pub fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < until, "{what}: not within {DEADLINE:?}");
        std::thread::yield_now();
    }
}

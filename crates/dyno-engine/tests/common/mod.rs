//! What the tests share: a server of the demonstration routes in this process, and a plain blocking client.
#![allow(dead_code, clippy::unwrap_used)]

use dyno_engine::{Addr, Dials, Limits, Running, Server, handler};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// Nothing here takes longer unless it is broken.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// The climbed dials of one worker.
pub(crate) fn one_worker() -> Dials {
    Dials::for_workers(NonZeroU32::MIN)
}

/// Limits whose times are all so long that none is reached.
pub(crate) fn patient() -> Limits {
    Limits::default()
}

/// The demonstration server on a port that the kernel chooses.
pub(crate) fn serve(dials: Dials, limits: Limits) -> Running {
    server(dials, limits).start().unwrap()
}

/// The same before it is started.
pub(crate) fn server(dials: Dials, limits: Limits) -> Server {
    let router = handler::demo(&dials).unwrap();
    Server::new().listen("127.0.0.1:0").router(router).dials(dials).limits(limits).drain_ns(5_000_000_000)
}

/// Where a server listens.
pub(crate) fn addr(running: &Running) -> SocketAddr {
    match &running.addrs()[0] {
        Addr::Tcp(addr) => *addr,
        Addr::Unix(path) => panic!("not a TCP address: {path:?}"),
    }
}

/// Waits for a condition; `what` says what did not come true.
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "{what} did not come true");
        std::thread::yield_now();
    }
}

/// One reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The value of the only header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named =
            |line: &&str| line.split(':').next().is_some_and(|found| found.eq_ignore_ascii_case(name));
        let mut lines = self.head.lines().skip(1).filter(named);
        let line = lines.next()?;
        assert!(lines.next().is_none(), "{name} is there twice:\n{}", self.head);
        line.split_once(':').map(|(_, value)| value.trim())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A blocking client with a deadline on every read.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    held: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(addr: SocketAddr) -> Client {
        Client::over(TcpStream::connect(addr).unwrap())
    }

    pub(crate) fn over(stream: TcpStream) -> Client {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        Client { stream, held: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Client {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self
    }

    /// Sends and reads one reply.
    pub(crate) fn ask(&mut self, bytes: impl AsRef<[u8]>) -> Reply {
        self.send(bytes).reply()
    }

    pub(crate) fn shutdown_write(&mut self) -> &mut Client {
        self.stream.shutdown(Shutdown::Write).unwrap();
        self
    }

    /// The next reply with its body.
    pub(crate) fn reply(&mut self) -> Reply {
        let mut reply = self.head_of_reply();
        let length: usize = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
        while self.held.len() < length {
            self.fill();
        }
        reply.body = self.held.drain(..length).collect();
        reply
    }

    /// The next reply, whose body is known to be absent (HEAD).
    pub(crate) fn head_of_reply(&mut self) -> Reply {
        let end = loop {
            if let Some(at) = self.held.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.fill();
        };
        let head = String::from_utf8(self.held.drain(..end).collect()).unwrap();
        let status = head[9..12].parse().unwrap();
        Reply { status, head, body: Vec::new() }
    }

    /// Everything up to the end of the stream; fails when it does not end.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.held);
        self.stream.read_to_end(&mut rest).unwrap();
        rest
    }

    /// Asserts that the server closes without another byte.
    pub(crate) fn assert_closed(&mut self) {
        let rest = self.rest();
        assert!(rest.is_empty(), "unexpected: {}", String::from_utf8_lossy(&rest));
    }

    /// Reads what has come until now, and whether the stream has ended.
    pub(crate) fn poll(&mut self) -> bool {
        self.stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let mut bytes = [0; 4096];
        let ended = match self.stream.read(&mut bytes) {
            Ok(0) => true,
            Ok(count) => {
                self.held.extend_from_slice(&bytes[..count]);
                false
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => false,
            Err(_) => true,
        };
        self.stream.set_read_timeout(Some(DEADLINE)).unwrap();
        ended
    }

    /// What was read and not asked for yet.
    pub(crate) fn taken(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// What was read and not asked for yet, left where it is.
    pub(crate) fn held(&self) -> &[u8] {
        &self.held
    }

    pub(crate) fn has_bytes(&self) -> bool {
        !self.held.is_empty()
    }

    fn fill(&mut self) {
        let mut bytes = [0; 64 << 10];
        let count = self.stream.read(&mut bytes).unwrap();
        assert!(count > 0, "closed in the middle of a reply: {}", String::from_utf8_lossy(&self.held));
        self.held.extend_from_slice(&bytes[..count]);
    }
}

/// Replaces the value of every Date header, which is all that may differ between two answers.
pub(crate) fn without_dates(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split_inclusive('\n').map(|line| match line.starts_with("Date: ") {
        true => "Date: masked\r\n",
        false => line,
    });
    lines.collect()
}

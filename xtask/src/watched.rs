//! `dyno serve` as an operator would run it, watched from outside: memory of all its processes, its own metrics, and clients
//! that ask as clients should while others do not.
//!
//! `slow` and `soak` run it. It starts the server with a folder, a log, limits, filters and metrics, and reads nothing but
//! /proc and the metrics' page.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::command::command;
use crate::server::{Server, free_addr};
use crate::trouble::Trouble;

/// A good client gives up after this: nothing here may take so long.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two requests of a good client.
const THINK: Duration = Duration::from_millis(5);

pub(crate) const SMALL: &str = "/small.txt";
pub(crate) const PAGE: &str = "/page.html";
pub(crate) const LARGE: &str = "/large.bin";
const SMALL_BYTES: usize = 1_000;
const PAGE_BYTES: usize = 100_000;
pub(crate) const LARGE_BYTES: usize = 10_000_000;

/// A server and what is served.
pub(crate) struct Watched {
    pub(crate) server: Server,
    metrics: SocketAddr,
    pub(crate) folder: PathBuf,
    /// What it says.
    said: PathBuf,
    pub(crate) log: PathBuf,
}

impl Watched {
    /// Starts it on a new folder below `scratch`; `more` are further words of its command line. It has two workers unless
    /// they say `--workers=N`.
    pub(crate) fn start(dyno: &Path, scratch: &Path, more: &[&str]) -> Result<Watched, Trouble> {
        let folder = scratch.join("site");
        make_site(&folder).map_err(Trouble::cannot(format!("make {}", folder.display())))?;
        let (addr, metrics, said) = (free_addr()?, free_addr()?, scratch.join("said"));
        let log = scratch.join("access.log");
        let mut program = command([
            &*dyno.to_string_lossy(),
            "serve",
            &folder.to_string_lossy(),
            "--listen",
            &addr.to_string(),
            "--metrics",
            &metrics.to_string(),
            "--log",
            "ring",
            "--log-file",
            &log.to_string_lossy(),
        ]);
        if !more.iter().any(|word| word.starts_with("--workers=")) {
            program.arg("--workers=2");
        }
        program.args(more).args([
            "--address-connections-max",
            "1000000",
            "--address-requests-max",
            "1000000",
        ]);
        // Everybody may look into the folder: workers are nobody where root started them.
        Ok(Watched { server: Server::start(program, addr, &said)?, metrics, folder, said, log })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Everything that it has said.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }

    /// The sum of a metric over its labels; those whose line holds `label` alone.
    pub(crate) fn metric(&self, name: &str, label: &str) -> Result<u64, Trouble> {
        let page = exchange(self.metrics, "/metrics", &mut Vec::new())?;
        let text = String::from_utf8_lossy(&page.body).into_owned();
        let named = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        let lines = text.lines().filter(named).filter(|line| line.contains(label));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(values.sum::<f64>() as u64)
    }

    /// Connections that are open, as it counts them.
    pub(crate) fn open(&self) -> Result<u64, Trouble> {
        self.metric("dyno_connections_open", "")
    }

    /// Its processes: the master and all below it.
    pub(crate) fn family(&self) -> Vec<u32> {
        let mut family = vec![self.server.pid()];
        let mut at = 0;
        while at < family.len() {
            let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", family[at]));
            let text = children.unwrap_or_default();
            family.extend(text.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            at += 1;
        }
        family
    }

    /// Resident memory of all processes.
    pub(crate) fn memory(&self) -> Memory {
        self.family().iter().map(|pid| memory_of(*pid)).fold(Memory::default(), |all, one| Memory {
            own: all.own + one.own,
            shared: all.shared + one.shared,
        })
    }

    /// Open descriptors of all processes.
    pub(crate) fn descriptors(&self) -> usize {
        let of = |pid: &u32| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        self.family().iter().map(of).sum()
    }
}

/// Resident bytes, pages of several processes by their share; the program's own file is not among them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Memory {
    /// Heaps and stacks.
    pub(crate) own: u64,
    /// What processes share: the content and the rings of the log, as far as they were touched.
    pub(crate) shared: u64,
}

impl Memory {
    pub(crate) fn all(self) -> u64 {
        self.own + self.shared
    }
}

fn memory_of(pid: u32) -> Memory {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1_024
    };
    Memory { own: bytes("Pss_Anon:"), shared: bytes("Pss_Shmem:") }
}

fn make_site(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let line = "a line of text that is like many others, as pages are\n";
    fs::write(folder.join("small.txt"), &line.repeat(40)[..SMALL_BYTES])?;
    fs::write(folder.join("page.html"), &line.repeat(2_000)[..PAGE_BYTES])?;
    fs::write(folder.join("large.bin"), vec![b'x'; LARGE_BYTES])
}

/// One reply.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) closes: bool,
}

/// Asks once over a connection of its own.
fn exchange(addr: SocketAddr, path: &str, held: &mut Vec<u8>) -> Result<Answer, Trouble> {
    let asked = connect(addr).and_then(|mut stream| ask(&mut stream, path, "", held));
    asked.map_err(Trouble::cannot(format!("ask {addr}{path}")))
}

pub(crate) fn connect(addr: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(addr)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Asks and reads one whole reply; `fields` are further field lines, each with its line end.
pub(crate) fn ask(
    stream: &mut TcpStream,
    path: &str,
    fields: &str,
    held: &mut Vec<u8>,
) -> std::io::Result<Answer> {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes())?;
    held.clear();
    loop {
        if let Some(answer) = whole(held) {
            return Ok(answer);
        }
        let mut piece = [0; 64 << 10];
        match stream.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => held.extend_from_slice(&piece[..count]),
        }
    }
}

/// A reply, if it is all there.
fn whole(bytes: &[u8]) -> Option<Answer> {
    let head_bytes = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..head_bytes]).ok()?.to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    // A 304 has no body, whatever its length says.
    let length =
        if status == 304 { 0 } else { length.map_or(Some(0), |length| length.trim().parse().ok())? };
    let body = bytes.get(head_bytes..head_bytes + length)?.to_vec();
    Some(Answer { status, body, closes: head.contains("\r\nconnection: close") })
}

/// What good clients saw.
#[derive(Default)]
pub(crate) struct Good {
    pub(crate) answered: AtomicU64,
    /// Requests without an answer: the connection ended. Where workers are killed some must be.
    pub(crate) lost: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) wrong: AtomicU64,
    pub(crate) longest_us: AtomicU64,
    pub(crate) first_wrong: Mutex<Option<String>>,
}

impl Good {
    /// Every request was answered, and rightly.
    pub(crate) fn is_all_served(&self) -> bool {
        let bad = [&self.lost, &self.refused, &self.wrong];
        bad.iter().all(|figure| figure.load(Ordering::Relaxed) == 0)
    }

    fn note(&self, what: String) {
        self.wrong.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut first) = self.first_wrong.lock() {
            first.get_or_insert(what);
        }
    }
}

/// What a good client asks for: path, further fields, the status and length of the answer.
pub(crate) type Asked = (&'static str, &'static str, u16, Option<usize>);

/// What good clients ask for by turns.
pub(crate) const ASKED: [Asked; 6] = [
    (SMALL, "", 200, Some(SMALL_BYTES)),
    (PAGE, "", 200, Some(PAGE_BYTES)),
    (PAGE, "Accept-Encoding: gzip\r\n", 200, None),
    (PAGE, "Range: bytes=10-1009\r\n", 206, Some(1_000)),
    ("/nowhere", "", 404, None),
    (SMALL, "If-None-Match: *\r\n", 304, Some(0)),
];

/// Asks on until `is_over`, over one connection after the other.
pub(crate) fn ask_well(addr: SocketAddr, first: usize, is_over: &AtomicBool, good: &Good) {
    let (mut held, mut open, mut turn) = (Vec::new(), None, first);
    while !is_over.load(Ordering::Relaxed) {
        let start = Instant::now();
        let mut stream = match open.take().map_or_else(|| connect(addr), Ok) {
            Ok(stream) => stream,
            Err(_) => {
                good.refused.fetch_add(1, Ordering::Relaxed);
                continue;
            }
        };
        let (path, fields, status, length) = ASKED[turn % ASKED.len()];
        turn += 1;
        match ask(&mut stream, path, fields, &mut held) {
            Err(_) => drop(good.lost.fetch_add(1, Ordering::Relaxed)),
            Ok(answer)
                if answer.status != status || length.is_some_and(|length| answer.body.len() != length) =>
            {
                good.note(format!("{path}: {} with {} bytes", answer.status, answer.body.len()));
            }
            Ok(answer) => {
                good.answered.fetch_add(1, Ordering::Relaxed);
                let took = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
                good.longest_us.fetch_max(took, Ordering::Relaxed);
                open = (!answer.closes).then_some(stream);
            }
        }
        std::thread::sleep(THINK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_whole_with_its_last_byte() {
        let bytes = b"HTTP/1.1 206 Partial\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        assert!((0..bytes.len()).all(|length| whole(&bytes[..length]).is_none()));
        let answer = whole(bytes).expect("it is whole");
        assert_eq!((answer.status, answer.body.as_slice(), answer.closes), (206, &b"ok"[..], true));
        let unchanged = whole(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n");
        assert!(unchanged.is_some_and(|answer| answer.body.is_empty()));
    }
}

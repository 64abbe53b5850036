//! `cargo xtask hold`: a million idle connections held by `dyno serve`, with requests flowing, and what each of them costs.
//!
//! The server runs as an operator would run it: a folder, an access log, limits, filters and metrics. Each connection asks
//! once, so that it has been through the whole of the server, and then rests. While all of them rest, good clients ask, and
//! at last some of the held ones ask again. Not part of CI: it takes about two minutes, root, and some ten gigabytes, nearly
//! all of them the kernel's own for both ends of each connection.
//!
//! Where a process may not have so many descriptors, as in many containers, the server has as many workers as hold them
//! together; the clients are always processes of their own, which this program starts of itself.

use std::io::{BufRead, BufReader, Error, Write, stdin, stdout};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio, id};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::command::{command, output};
use crate::flags::Flags;
use crate::repo::Repo;
use crate::server::free_addr;
use crate::trouble::{Outcome, Trouble};
use crate::watched::{Good, SMALL, Watched, ask, ask_well};

/// What one process may hold where nobody has raised `fs.nr_open` (1,048,576), less what this one needs itself.
const CONNECTIONS: usize = 1_007_000;
/// Connections of one process of clients, all to an address of their own. To one address and port there are some 28,000
/// ports to come from (`net.ipv4.ip_local_port_range`), of which the kernel looks through one half first, and through all of
/// that half for each connection once it is used up.
const EACH_HOLDER: usize = 13_000;
/// Descriptors that a worker has for other things, and for those that come unevenly.
const SPARE: usize = 1_200;
/// Who serves few connections needs no more.
const WORKERS_MIN: usize = 2;
/// More are no help: each of them holds the listeners of all.
const WORKERS_MAX: usize = 128;
/// Connections that each worker has, about, before its memory is looked at first.
const FIRST: usize = 40;
/// Lines that each worker has logged by then: once round a ring of 256 KiB, which is there however few connections are, with
/// lines of which none is as short as this. And for how long they are asked for at a time.
const FIRST_LINES: u64 = (256 << 10) / 64;
const FIRST_LOAD: &str = "5s";
/// While all are held, good clients ask for so long.
const FLOWING: Duration = Duration::from_secs(10);
const GOOD_CLIENTS: usize = 16;
/// One in so many of the held ones asks again.
const AGAIN: usize = 100;
/// More than a server under load takes to answer, and less than anybody waits.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most of its own memory that an idle connection may take (`dyno-engine`'s tests hold the same at 8,000).
const OWN_BYTES_MAX: f64 = 80.0;

/// Runs the verb.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let wanted: usize = flags.parsed("--connections")?.unwrap_or(CONNECTIONS);
    let dyno: Option<PathBuf> = flags.parsed("--dyno")?;
    // How this program starts itself.
    let holder_of: Option<SocketAddr> = flags.parsed("--holder-of")?;
    flags.finish()?;
    if let Some(addr) = holder_of {
        return be_holder(addr, wanted);
    }
    let dyno = dyno.map_or_else(|| repo.release_dyno(), Ok)?;
    let descriptors = raise_descriptors(wanted + SPARE)?;
    let counts: Vec<usize> =
        (0..wanted).step_by(EACH_HOLDER).map(|first| EACH_HOLDER.min(wanted - first)).collect();
    // Each worker holds the listeners of all, and one more is for the good clients.
    let listeners = counts.len() + 1;
    let room = |workers: usize| workers * descriptors.saturating_sub(SPARE + workers * listeners);
    let workers = (WORKERS_MIN..=WORKERS_MAX).find(|workers| room(*workers) >= wanted);
    let workers = workers.ok_or_else(|| {
        Trouble::new(format!("workers with {descriptors} descriptors each cannot hold {wanted} connections"))
            .remedy("raise the hard limit (`ulimit -Hn`), or ask for fewer --connections")
    })?;
    let port = free_addr()?.port();
    let addrs: Vec<SocketAddr> = (0..counts.len())
        .map(|number| (Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 0, 0, 2)) + number as u32), port).into())
        .collect();
    let listens = addrs.iter().map(|addr| format!("--listen={addr}"));
    let own = ["--idle-timeout=1h".to_owned(), format!("--workers={workers}")];
    let more: Vec<String> = own.into_iter().chain(listens).collect();
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let watched = Watched::start(&dyno, &repo.scratch("hold")?, &more)?;
    println!(
        "{workers} workers, each with at most {descriptors} descriptors; {} processes of clients",
        counts.len()
    );

    warm(&watched, &dyno, workers)?;
    let (own, kernel, start) = (watched.memory().all(), kernel_bytes(), Instant::now());
    let holders = addrs.iter().zip(&counts).map(|(addr, count)| Holder::start(*addr, *count));
    let mut holders = holders.collect::<Result<Vec<Holder>, Trouble>>()?;
    let told = holders.iter_mut().map(Holder::told).collect::<Result<Vec<Vec<usize>>, Trouble>>()?;
    let held: usize = told.iter().flatten().sum();
    let opened = start.elapsed();
    let per_connection = |before: u64, after: u64| after.saturating_sub(before) as f64 / wanted as f64;
    let own = per_connection(own, watched.memory().all());
    println!(
        "{held} connections held after {:.0} s (the server counts {}): {own:.1} bytes each in all its processes, {:.0} of the \
         kernel for both ends",
        opened.as_secs_f64(),
        watched.open()?,
        per_connection(kernel, kernel_bytes()),
    );
    let good = flow(&watched);
    println!(
        "{} requests beside them in {} s: {} lost, {} refused, {} wrong; the longest took {} ms",
        good.answered.load(Ordering::Relaxed),
        FLOWING.as_secs(),
        good.lost.load(Ordering::Relaxed),
        good.refused.load(Ordering::Relaxed),
        good.wrong.load(Ordering::Relaxed),
        good.longest_us.load(Ordering::Relaxed) / 1_000,
    );
    for holder in &mut holders {
        holder.ask_again()?;
    }
    let told = holders.iter_mut().map(Holder::told).collect::<Result<Vec<Vec<usize>>, Trouble>>()?;
    let sum = |at: usize| told.iter().filter_map(|told| told.get(at)).sum::<usize>();
    let (asked, answered, open) = (sum(0), sum(1), watched.open()?);
    println!("of {asked} that asked again, {answered} were answered; {open} are open at the end");
    let is_held = held >= wanted && open as usize >= wanted && answered == asked && good.is_all_served();
    Ok(Outcome::done_if(|| is_held && own <= OWN_BYTES_MAX))
}

/// What a worker takes for its first connections and for its log is not taken for those that follow.
fn warm(watched: &Watched, dyno: &Path, workers: usize) -> Result<(), Trouble> {
    let start = Instant::now();
    let url = format!("http://{}{SMALL}", watched.addr());
    let connections = (workers * FIRST).to_string();
    while start.elapsed() < PATIENCE {
        let words = ["load", &url, "-c", &connections, "-d", FIRST_LOAD, "-T", "30s"];
        output(command([&*dyno.to_string_lossy()]).args(words))?;
        let lines = |row| watched.metric("dyno_log_lines_total", &format!("worker=\"{row}\""));
        let lines = (0..workers).map(lines).collect::<Result<Vec<u64>, Trouble>>()?;
        if lines.iter().all(|lines| *lines >= FIRST_LINES) {
            return Ok(());
        }
    }
    Err(Trouble::new(format!("not every worker logged {FIRST_LINES} lines in {PATIENCE:?}")))
}

/// For this process and those that it starts, as far as it may: so many each.
fn raise_descriptors(most: usize) -> Result<usize, Trouble> {
    let own = id().to_string();
    let set = |limit: &str| output(&mut command(["prlimit", "--pid", &own, &format!("--nofile={limit}")]));
    if set(&format!("{most}:{most}")).is_ok() {
        return Ok(most);
    }
    let words = ["prlimit", "--pid", &own, "--nofile", "--noheadings", "--raw", "--output", "HARD"];
    let hard = output(&mut command(words))?;
    let hard = hard.trim().parse().map_err(Trouble::cannot("read the limit of descriptors"))?;
    set(&format!("{hard}:{hard}"))?;
    Ok(hard)
}

/// A process of clients that hold connections. It says a line when all are held, and one for each line that it reads.
struct Holder {
    process: Child,
    says: BufReader<ChildStdout>,
}

impl Holder {
    fn start(addr: SocketAddr, count: usize) -> Result<Holder, Trouble> {
        let program = std::env::current_exe().map_err(Trouble::cannot("find this program"))?;
        let (addr, count) = (addr.to_string(), count.to_string());
        let mut program =
            command([&*program.to_string_lossy(), "hold", "--holder-of", &addr, "--connections", &count]);
        let started = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = started.map_err(Trouble::cannot("start a process of clients"))?;
        let says = process.stdout.take().map(BufReader::new);
        let says = says.ok_or_else(|| Trouble::new("a process of clients has no output"))?;
        Ok(Holder { process, says })
    }

    /// The numbers of its next line.
    fn told(&mut self) -> Result<Vec<usize>, Trouble> {
        let mut line = String::new();
        self.says.read_line(&mut line).map_err(Trouble::cannot("hear a process of clients"))?;
        if line.is_empty() {
            return Err(Trouble::new("a process of clients has ended; it said why"));
        }
        let numbers = line.split_whitespace().map(str::parse).collect::<Result<_, _>>();
        numbers.map_err(Trouble::cannot("understand a process of clients"))
    }

    fn ask_again(&mut self) -> Result<(), Trouble> {
        let asked = self.process.stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(b"again\n"));
        asked.map_err(Trouble::cannot("tell a process of clients to ask again"))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It ends with its input; nobody is left to be told when it does not.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// The life of such a process, which ends with its input.
fn be_holder(addr: SocketAddr, wanted: usize) -> Result<Outcome, Trouble> {
    let mut held = Vec::with_capacity(wanted);
    for number in 1..=wanted {
        held.push(open(addr).map_err(Trouble::cannot(format!("open connection {number} to {addr}")))?);
    }
    let say = |text: String| writeln!(stdout(), "{text}").map_err(Trouble::cannot("say what was done"));
    say(held.len().to_string())?;
    for _ in stdin().lock().lines() {
        let again = held.iter_mut().step_by(AGAIN);
        let (asked, answered) = again.fold((0, 0), |(asked, answered), stream| {
            (asked + 1, answered + usize::from(asks_again(stream)))
        });
        say(format!("{asked} {answered}"))?;
    }
    Ok(Outcome::Done)
}

/// A connection that has asked and was answered.
fn open(addr: SocketAddr) -> Result<TcpStream, Error> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let answer = ask(&mut stream, SMALL, "", &mut Vec::new())?;
    if answer.status == 200 { Ok(stream) } else { Err(Error::other(format!("answered {}", answer.status))) }
}

fn asks_again(stream: &mut TcpStream) -> bool {
    ask(stream, SMALL, "", &mut Vec::new()).is_ok_and(|answer| answer.status == 200)
}

/// Good clients for a while.
fn flow(watched: &Watched) -> Good {
    let (good, is_over) = (Good::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for first in 0..GOOD_CLIENTS {
            let (good, is_over) = (&good, &is_over);
            scope.spawn(move || ask_well(watched.addr(), first, is_over, good));
        }
        std::thread::sleep(FLOWING);
        is_over.store(true, Ordering::Relaxed);
    });
    good
}

/// What the kernel holds in small objects and for sockets; both ends are on this machine.
fn kernel_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("Slab:")?.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1_024
}

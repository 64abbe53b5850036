//! `cargo xtask hold`: a million idle connections held by `dyno serve`, with requests flowing, and what each of them costs.
//!
//! The server runs as an operator would run it: a folder, an access log, limits, filters and metrics. Each connection asks
//! once, so that it has been through the whole of the server, and then rests. While all of them rest, good clients ask, and
//! at last some of the held ones ask again. Not part of CI: it takes about two minutes, root, and some ten gigabytes, nearly
//! all of them the kernel's own for both ends of each connection.

use std::io::Error;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::id;
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
/// To one address and port there are some 28,000 ports to come from (`net.ipv4.ip_local_port_range`); looking for a free one
/// among the last takes long.
const EACH_ADDRESS: usize = 22_000;
/// While all are held, good clients ask for so long.
const FLOWING: Duration = Duration::from_secs(10);
const GOOD_CLIENTS: usize = 16;
/// One in so many of the held ones asks again.
const AGAIN: usize = 100;
/// More than a server under load takes to answer, and less than anybody waits.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most of its own memory that an idle connection may take (`dyno-engine`'s tests hold the same at 8,000).
const OWN_BYTES_MAX: f64 = 80.0;

/// Runs the verb.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let wanted: usize = flags.parsed("--connections")?.unwrap_or(CONNECTIONS);
    let dyno: Option<PathBuf> = flags.parsed("--dyno")?;
    flags.finish()?;
    let dyno = dyno.map_or_else(|| repo.release_dyno(), Ok)?;
    raise_descriptors(wanted + 1_000)?;
    let port = free_addr()?.port();
    let addrs: Vec<SocketAddr> = (0..wanted.div_ceil(EACH_ADDRESS))
        .map(|number| (Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 0, 0, 2)) + number as u32), port).into())
        .collect();
    let listens = addrs.iter().map(|addr| format!("--listen={addr}"));
    let more: Vec<String> = ["--idle-timeout=1h".to_owned()].into_iter().chain(listens).collect();
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let watched = Watched::start(&dyno, &repo.scratch("hold")?, &more)?;

    let (own, kernel, start) = (watched.memory(), kernel_bytes(), Instant::now());
    let mut held = open_all(&addrs, wanted)?;
    let opened = start.elapsed();
    let per_connection = |before: u64, after: u64| after.saturating_sub(before) as f64 / wanted as f64;
    let own = per_connection(own, watched.memory());
    println!(
        "{} connections held after {:.0} s (the server counts {}): {own:.1} bytes each in all its processes, {:.0} of the \
         kernel for both ends",
        held.len(),
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
    let again = held.iter_mut().step_by(AGAIN);
    let (asked, answered) = again
        .fold((0, 0), |(asked, answered), stream| (asked + 1, answered + usize::from(asks_again(stream))));
    let open = watched.open()?;
    println!("of {asked} that asked again, {answered} were answered; {open} are open at the end");
    let is_held = open as usize >= wanted && answered == asked && good.is_all_served();
    Ok(Outcome::done_if(|| is_held && own <= OWN_BYTES_MAX))
}

/// For this process and those that it starts.
fn raise_descriptors(most: usize) -> Result<(), Trouble> {
    let raised =
        output(&mut command(["prlimit", "--pid", &id().to_string(), &format!("--nofile={most}:{most}")]));
    raised.map(drop).map_err(|trouble| trouble.remedy("run it as root, or with fewer --connections"))
}

fn open_all(addrs: &[SocketAddr], wanted: usize) -> Result<Vec<TcpStream>, Trouble> {
    let mut held = Vec::with_capacity(wanted);
    for number in 0..wanted {
        let addr = addrs[number / EACH_ADDRESS];
        let opened = open(addr).map_err(Trouble::cannot(format!("open connection {}", number + 1)))?;
        held.push(opened);
    }
    Ok(held)
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

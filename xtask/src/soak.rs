//! `cargo xtask soak`: everything at once for half an hour, and whether memory stays flat.
//!
//! Good clients, bad requests, slow clients of three kinds; files that change, logs that rotate, settings read again, workers
//! killed. The time has five parts, each begun by a burst of reloads: parts are compared in their second halves, so that like
//! is compared with like, and within the last one the worker that nobody kills with its own younger self. Not part of CI.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::command::{command, output};
use crate::flags::{Flags, time};
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};
use crate::watched::{Good, LARGE, LARGE_BYTES, Memory, Watched, ask_well, connect};

const PARTS: u32 = 5;
const GOOD_CLIENTS: usize = 16;
const SLOW_EACH: usize = 100;
/// Between two bytes of a slow client, and two pieces that a slow reader takes.
const SLOW: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 20_000;
const RELOADS: u32 = 5;
const KILL_EVERY: Duration = Duration::from_secs(3);
const CHANGE_EVERY: Duration = Duration::from_secs(5);
const ROTATE_EVERY: Duration = Duration::from_secs(7);
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);

/// Of the content there is one image, and another while it is made anew; and there are the rings of the log.
const SHARED_MAX: u64 = 5 * LARGE_BYTES as u64 / 2;

/// Memory may grow by a twentieth and a megabyte, which its own noise is below: allocators keep what they got.
fn is_flat(before: u64, after: u64) -> bool {
    after <= before + before / 20 + (1 << 20)
}

/// What is seen of the server now and then.
#[derive(Clone, Copy)]
struct Sample {
    at: Duration,
    memory: Memory,
    descriptors: usize,
}

/// What was done to it.
#[derive(Default)]
struct Done {
    kills: u64,
    reloads: u64,
    changes: u64,
    rotations: u64,
}

/// Runs for so long.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let length = flags.value("--time", time)?.unwrap_or(Duration::from_secs(30 * 60));
    let dyno: Option<PathBuf> = flags.parsed("--dyno")?;
    flags.finish()?;
    let dyno = dyno.map_or_else(|| repo.release_dyno(), Ok)?;
    let more = ["--header-timeout", "5s", "--body-timeout", "5s", "--retire-timeout", "10s"];
    let watched = Watched::start(&dyno, &repo.scratch("soak")?, &more)?;
    let (good, bad, is_over) = (Good::default(), AtomicU64::new(0), AtomicBool::new(false));
    let mut done = Done::default();
    let samples = std::thread::scope(|scope| {
        let (addr, is_over, good, bad) = (watched.addr(), &is_over, &good, &bad);
        for first in 0..GOOD_CLIENTS {
            scope.spawn(move || ask_well(addr, first, is_over, good));
        }
        scope.spawn(move || ask_badly(addr, is_over, good, bad));
        scope.spawn(move || be_slow(addr, is_over));
        let samples = disturb(&watched, length, &mut done, good);
        is_over.store(true, Ordering::Relaxed);
        samples
    })?;
    println!(
        "{} answered, {} refused requests, {} kills, {} reloads, {} changes, {} rotations; {} lost (all may be of killed workers), {} connections refused, {} wrong; longest {} ms",
        good.answered.load(Ordering::Relaxed),
        bad.load(Ordering::Relaxed),
        done.kills,
        done.reloads,
        done.changes,
        done.rotations,
        good.lost.load(Ordering::Relaxed),
        good.refused.load(Ordering::Relaxed),
        good.wrong.load(Ordering::Relaxed),
        good.longest_us.load(Ordering::Relaxed) / 1_000,
    );
    if let Ok(Some(first)) = good.first_wrong.lock().map(|mut first| first.take()) {
        println!("first wrong: {first}");
    }
    Ok(Outcome::done_if(|| judge(&samples, length) && is_served(&good, &done)))
}

/// Nobody was refused or answered wrongly, and only who sat at a worker that was killed lost anything.
fn is_served(good: &Good, done: &Done) -> bool {
    let lost = good.lost.load(Ordering::Relaxed);
    let bad = good.refused.load(Ordering::Relaxed) + good.wrong.load(Ordering::Relaxed);
    bad == 0 && lost <= done.kills * (GOOD_CLIENTS as u64 + 1)
}

/// Prints each part, and says whether memory is flat.
fn judge(samples: &[Sample], length: Duration) -> bool {
    let part = length / PARTS;
    let of = |number: u32, from: f64, to: f64| {
        let start = part * number;
        let within = |sample: &&Sample| {
            sample.at >= start + part.mul_f64(from) && sample.at < start + part.mul_f64(to)
        };
        let mut memory: Vec<u64> = samples.iter().filter(within).map(|sample| sample.memory.own).collect();
        let mut descriptors: Vec<usize> =
            samples.iter().filter(within).map(|sample| sample.descriptors).collect();
        memory.sort_unstable();
        descriptors.sort_unstable();
        (
            memory.get(memory.len() / 2).copied().unwrap_or(0),
            descriptors.get(descriptors.len() / 2).copied().unwrap_or(0),
        )
    };
    for number in 0..PARTS {
        let (memory, descriptors) = of(number, 0.5, 1.0);
        println!(
            "part {}: {:.2} MB of their own in all processes, {descriptors} descriptors",
            number + 1,
            memory as f64 / 1e6
        );
    }
    let (between, within) = (
        (of(1, 0.5, 1.0).0, of(PARTS - 1, 0.5, 1.0).0),
        (of(PARTS - 1, 0.4, 0.6).0, of(PARTS - 1, 0.8, 1.0).0),
    );
    let shared = samples.iter().map(|sample| sample.memory.shared).max().unwrap_or(0);
    let flat = is_flat(between.0, between.1) && is_flat(within.0, within.1) && shared <= SHARED_MAX;
    println!(
        "from part 2 to part {PARTS} {:+.1} %, within the last {:+.1} %; shared at most {:.2} MB of {:.2}: {}",
        percent(between),
        percent(within),
        shared as f64 / 1e6,
        SHARED_MAX as f64 / 1e6,
        if flat { "flat" } else { "GROWING" }
    );
    flat
}

fn percent((before, after): (u64, u64)) -> f64 {
    (after as f64 / before.max(1) as f64 - 1.0) * 100.0
}

/// Does to the server what is due, and looks at it.
fn disturb(
    watched: &Watched,
    length: Duration,
    done: &mut Done,
    good: &Good,
) -> Result<Vec<Sample>, Trouble> {
    let (start, mut samples, mut parts) = (Instant::now(), Vec::new(), 0);
    let mut due = [KILL_EVERY, CHANGE_EVERY, ROTATE_EVERY, SAMPLE_EVERY];
    while start.elapsed() < length {
        if start.elapsed() >= length / PARTS * parts {
            parts += 1;
            for _ in 0..RELOADS {
                reload(watched)?;
                done.reloads += 1;
            }
            eprintln!("part {parts}: {} answered so far", good.answered.load(Ordering::Relaxed));
        }
        let mut is_due = |number: usize, every: Duration| {
            let is_due = start.elapsed() >= due[number];
            due[number] += if is_due { every } else { Duration::ZERO };
            is_due
        };
        if is_due(0, KILL_EVERY) {
            done.kills += u64::from(kill_a_worker(watched)?);
        }
        if is_due(1, CHANGE_EVERY) {
            done.changes += 1;
            fs::write(watched.folder.join("changing.html"), format!("<p>{}</p>", done.changes).repeat(100))
                .map_err(Trouble::cannot("change a file"))?;
        }
        if is_due(2, ROTATE_EVERY) {
            done.rotations += 1;
            rotate(watched)?;
        }
        if is_due(3, SAMPLE_EVERY) {
            let (memory, descriptors) = (watched.memory(), watched.descriptors());
            samples.push(Sample { at: start.elapsed(), memory, descriptors });
        }
        std::thread::sleep(LOOK);
    }
    Ok(samples)
}

fn signal(name: &str, pid: u32) -> Result<(), Trouble> {
    output(&mut command(["kill", name, &pid.to_string()])).map(drop)
}

/// The workers as they were named last.
fn named_last(watched: &Watched) -> (usize, Vec<u32>) {
    let said = watched.said();
    let named: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("workers ")).collect();
    let last = named.last().copied().unwrap_or_default();
    (named.len(), last.split(' ').filter_map(|pid| pid.parse().ok()).collect())
}

/// Has the settings read again, and waits until that is done.
fn reload(watched: &Watched) -> Result<(), Trouble> {
    let (before, start) = (named_last(watched).0, Instant::now());
    signal("-HUP", watched.server.pid())?;
    while named_last(watched).0 == before {
        if start.elapsed() > Duration::from_secs(20) {
            return Err(Trouble::new("a reload does not end").likely(watched.said()));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Kills the worker that is not the first: who has the most descriptors of its supervisor's children, which serve.
fn kill_a_worker(watched: &Watched) -> Result<bool, Trouble> {
    let Some(kept) = named_last(watched).1.first().copied() else { return Ok(false) };
    let parent = parent_of(kept);
    let brothers = watched.family().into_iter().filter(|pid| *pid != kept && parent_of(*pid) == parent);
    let open = |pid: &u32| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let Some(victim) = brothers.max_by_key(open) else { return Ok(false) };
    signal("-KILL", victim)?;
    Ok(true)
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn rotate(watched: &Watched) -> Result<(), Trouble> {
    let away = watched.log.with_extension("1");
    fs::rename(&watched.log, away).map_err(Trouble::cannot("rotate the log"))?;
    signal("-USR1", watched.server.pid())
}

/// Sends what must be refused, over a connection each.
fn ask_badly(addr: SocketAddr, is_over: &AtomicBool, good: &Good, refused: &AtomicU64) {
    let rows: [(&str, &str); 4] = [
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505"),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n", "413"),
    ];
    for (bytes, status) in rows.iter().cycle() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let mut said = Vec::new();
        let asked = connect(addr).and_then(|mut stream| {
            stream.write_all(bytes.as_bytes())?;
            stream.read_to_end(&mut said)
        });
        // One that is cut short sat at a worker that was killed.
        let figure = match asked {
            Ok(_) if said.get(9..12) == Some(status.as_bytes()) => refused,
            Ok(count) if count > 0 => &good.wrong,
            _ => &good.lost,
        };
        figure.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(LOOK);
    }
}

/// What slow clients begin with; the last kind reads slowly.
fn beginnings() -> [String; 3] {
    [
        "GET / HTTP/1.1\r\nHost: a\r\nX: ".to_owned(),
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8192\r\n\r\n".to_owned(),
        format!("GET {LARGE} HTTP/1.1\r\nHost: a\r\n\r\n"),
    ]
}

/// Holds connections of each kind; who is cut comes again.
fn be_slow(addr: SocketAddr, is_over: &AtomicBool) {
    let mut slow: Vec<(usize, Option<TcpStream>)> =
        (0..3 * SLOW_EACH).map(|number| (number % 3, None)).collect();
    let beginnings = beginnings();
    while !is_over.load(Ordering::Relaxed) {
        for (kind, stream) in &mut slow {
            let goes_on = stream.as_mut().is_some_and(|stream| goes_on_slowly(*kind, stream));
            if !goes_on {
                *stream = begin(addr, &beginnings[*kind]).ok();
            }
        }
        std::thread::sleep(SLOW);
    }
}

fn begin(addr: SocketAddr, beginning: &str) -> std::io::Result<TcpStream> {
    let mut stream = connect(addr)?;
    stream.write_all(beginning.as_bytes())?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// A byte more, or some bytes less; whether the connection is still there.
fn goes_on_slowly(kind: usize, stream: &mut TcpStream) -> bool {
    let mut piece = vec![0; READ_BYTES];
    let is_open = match stream.read(&mut piece) {
        Ok(count) => count > 0,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    };
    is_open && (kind == 2 || stream.write_all(b"x").is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_grows_by_a_tenth_is_not_flat() {
        assert!(is_flat(40_000_000, 42_900_000) && is_flat(40_000_000, 30_000_000));
        assert!(!is_flat(40_000_000, 44_000_000));
    }
}

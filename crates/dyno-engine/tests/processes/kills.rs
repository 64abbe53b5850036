//! Workers that are killed under load: each takes its own connections with it and nothing else, and is replaced at once.

use crate::common::{DEADLINE, wait_for};
use crate::log::{KILLS, kills};
use crate::served::{Served, figure};
use dyno_engine::{Method, Router};
use dyno_sys::Pid;
use dyno_sys::signal::{self, Signal};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS: usize = 32;
const PAUSE: Duration = Duration::from_millis(2);
/// Two workers are killed by turns: each lives twice as long as this, long enough to be replaced at once (a fifth of a
/// second), and to serve in between.
const BETWEEN: Duration = Duration::from_millis(110);
/// From the signal to the supervisor's word that the new worker accepts, without what supervisor, worker and this test waited
/// for a CPU: other tests run beside this one.
const REPLACED: Duration = Duration::from_millis(20);
/// Of eight, those that may take longer: who is killed waits for a CPU to die on, which nobody counts once it is dead. What holds
/// up every kill is seen in any case; what holds up half of them is missed by one run of eight hundred ((1 + 8)/256, for each of
/// two servers); a quarter of them, by one of seven.
const LATE_MAX: usize = 1;
/// And so long none may take, with all waiting: 80 ms were met beside four programs that want the two CPUs all the time.
const LONGEST: Duration = Duration::from_secs(1);

/// The demonstration, and a route that says which worker answers.
pub(crate) fn with_pid(mut router: Router) -> Router {
    let say = |_: &dyno_engine::Request<'_>, reply: dyno_engine::Reply<'_>| {
        reply.text(&format!("{}.", std::process::id()))
    };
    router.route(Method::Get, "/pid", say).unwrap();
    router
}

/// What happened to the clients.
#[derive(Default)]
struct Seen {
    answered: AtomicU64,
    refused: AtomicU64,
    wrong: AtomicU64,
    /// For each request that was lost, who had answered on its connection before; 0 for nobody.
    lost: Mutex<Vec<Pid>>,
    longest_us: AtomicU64,
}

/// One client: when it was answered last, in answers of its own.
struct Asking<'a> {
    addr: SocketAddr,
    is_over: &'a AtomicBool,
    seen: &'a Seen,
    answers: &'a AtomicU64,
}

impl Asking<'_> {
    /// Asks over one connection after the other.
    fn run(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let start = Instant::now();
            match TcpStream::connect(self.addr) {
                Ok(stream) => self.ask_on(stream, start),
                Err(_) => drop(self.seen.refused.fetch_add(1, Ordering::Relaxed)),
            }
        }
    }

    fn ask_on(&self, mut stream: TcpStream, mut start: Instant) {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut worker = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            match answer(&mut stream) {
                Err(_) => return self.seen.lost.lock().unwrap().push(worker),
                Ok(pid) if pid <= 0 || worker > 0 && worker != pid => {
                    self.seen.wrong.fetch_add(1, Ordering::Relaxed);
                }
                Ok(pid) => worker = pid,
            }
            let took_us = u64::try_from(start.elapsed().as_micros()).unwrap();
            self.seen.longest_us.fetch_max(took_us, Ordering::Relaxed);
            self.seen.answered.fetch_add(1, Ordering::Relaxed);
            self.answers.fetch_add(1, Ordering::Relaxed);
            thread::park_timeout(PAUSE);
            start = Instant::now();
        }
    }
}

/// Asks who answers; an error when nobody does, zero when it is no answer.
fn answer(stream: &mut TcpStream) -> std::io::Result<Pid> {
    stream.write_all(b"GET /pid HTTP/1.1\r\nHost: a\r\n\r\n")?;
    let (mut bytes, mut piece) = (Vec::new(), [0; 1_024]);
    while !bytes.ends_with(b".") {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&piece[..count]);
    }
    let text = String::from_utf8_lossy(&bytes);
    let body = text.split_once("\r\n\r\n").filter(|_| text.starts_with("HTTP/1.1 200 OK\r\n"));
    Ok(body.and_then(|(_, body)| body.trim_end_matches('.').parse().ok()).unwrap_or(0))
}

/// `DYNO_KILLS=1000` for the whole figure; a few tell a mistake as well.
///
/// Red with a worker whose death closes what is not its own: `neighbours` without copies of the other's listeners (with
/// reuseport) refuses or loses who waits there; a supervisor that replaces after a pause (`place::pause_ns` never 0) is
/// late.
pub(crate) fn a_killed_worker_loses_its_own_requests_and_is_replaced_within_20_ms() {
    for reuseport in ["off", "hash"] {
        killed_under_load(reuseport);
    }
}

fn killed_under_load(reuseport: &str) {
    let mut served = Served::start(&[("workers", "2"), ("reuseport", reuseport)]);
    let (seen, is_over) = (Seen::default(), AtomicBool::new(false));
    let (addr, kills, start) = (served.addr(), kills(), Instant::now());
    let each: Vec<AtomicU64> = (0..CLIENTS).map(|_| AtomicU64::new(0)).collect();
    let mut killed = BTreeSet::new();
    let mut took: Vec<Replacing> = Vec::new();
    thread::scope(|scope| {
        for answers in &each {
            let asking = Asking { addr, is_over: &is_over, seen: &seen, answers };
            scope.spawn(move || asking.run());
        }
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..kills {
                all_are_served(&each, Instant::now() + BETWEEN);
                let (victim, replaced) = kill_first(&mut served);
                killed.insert(victim);
                took.push(replaced);
            }
            all_are_served(&each, Instant::now());
        }));
        is_over.store(true, Ordering::Relaxed);
        ended.unwrap();
    });
    let mut own: Vec<Duration> = took.iter().map(Replacing::own).collect();
    own.sort();
    let answered = seen.answered.load(Ordering::Relaxed);
    let rate = answered as f64 / start.elapsed().as_secs_f64();
    let longest = took.iter().map(|one| one.took).max().unwrap();
    let lost = seen.lost.lock().unwrap();
    println!(
        "{reuseport}: {kills} kills, {answered} answers, {rate:.0} a second, {} lost, replaced in {:.1} ms without waiting (longest {:.1} with it), longest request {:.1} ms",
        lost.len(),
        own[own.len() / 2].as_secs_f64() * 1e3,
        longest.as_secs_f64() * 1e3,
        seen.longest_us.load(Ordering::Relaxed) as f64 / 1e3,
    );
    let bad = [&seen.refused, &seen.wrong].map(|figure| figure.load(Ordering::Relaxed));
    assert_eq!(bad, [0, 0], "refused, wrong");
    let not_its_own: Vec<&Pid> = lost.iter().filter(|pid| !killed.contains(pid)).collect();
    assert!(not_its_own.is_empty(), "requests were lost that no killed worker had: {not_its_own:?}");
    assert!(lost.len() <= kills * CLIENTS, "a connection is lost once");
    let is_whole_figure = kills != KILLS;
    let late = own.iter().filter(|one| **one > REPLACED).count();
    assert!(late <= if is_whole_figure { 0 } else { LATE_MAX }, "{late} were replaced late: {took:?}");
    assert!(longest <= LONGEST, "one worker was replaced only after {longest:?}: {took:?}");
    let (status, report) = served.stop();
    assert!(status.success() && report.starts_with("report Wholly"), "{status}: {report}");
    assert_eq!(figure(&report, "deaths"), kills as u64);
}

/// Waits until this moment, and until each client has been answered since it was asked for: who is killed then has
/// answered on every connection that it holds.
fn all_are_served(each: &[AtomicU64], not_before: Instant) {
    wait_for("the time", || {
        thread::park_timeout(not_before.saturating_duration_since(Instant::now()));
        Instant::now() >= not_before
    });
    let before: Vec<u64> = each.iter().map(|answers| answers.load(Ordering::Relaxed)).collect();
    wait_for("an answer to each", || {
        thread::park_timeout(PAUSE);
        each.iter().zip(&before).all(|(answers, before)| answers.load(Ordering::Relaxed) > before + 1)
    });
}

/// How long it took until another worker stood in the place of one that was killed.
#[derive(Debug)]
struct Replacing {
    took: Duration,
    /// Of it, what whoever had to do something for it waited for a CPU.
    waited: Duration,
}

impl Replacing {
    fn own(&self) -> Duration {
        self.took.saturating_sub(self.waited)
    }
}

/// How long a thread has waited for a CPU, all in all (the second number of its schedstat).
fn waited(thread: &str) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap();
    Duration::from_nanos(text.split_whitespace().nth(1).unwrap().parse().unwrap())
}

/// Kills the worker that has lived longest; who it was, and how long it took until another stood in its place.
fn kill_first(served: &mut Served) -> (Pid, Replacing) {
    let supervisor = served.supervisor().to_string();
    let waiting = || waited(&supervisor) + waited("thread-self");
    let (victim, before, start) = (served.pids.remove(0), waiting(), Instant::now());
    signal::kill(victim, Signal::Kill).unwrap();
    assert_eq!(served.line(), format!("died {victim} killed by SIGKILL after_ns 0"));
    let replaced = served.line();
    let took = start.elapsed();
    let new = replaced.strip_prefix(&format!("replaced {victim} ")).and_then(|pid| pid.parse().ok());
    let new = new.unwrap_or_else(|| panic!("{replaced}"));
    served.pids.push(new);
    (victim, Replacing { took, waited: waiting() - before + waited(&new.to_string()) })
}

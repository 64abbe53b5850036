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
/// From the signal to the supervisor's word that the new worker accepts.
const REPLACED: Duration = Duration::from_millis(20);

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
    let mut took = Vec::new();
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
    took.sort();
    let answered = seen.answered.load(Ordering::Relaxed);
    let rate = answered as f64 / start.elapsed().as_secs_f64();
    let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
    let lost = seen.lost.lock().unwrap();
    println!(
        "{reuseport}: {kills} kills, {answered} answers, {rate:.0} a second, {} lost, replaced in {:.1} ms (longest {:.1}), longest request {:.1} ms",
        lost.len(),
        median.as_secs_f64() * 1e3,
        longest.as_secs_f64() * 1e3,
        seen.longest_us.load(Ordering::Relaxed) as f64 / 1e3,
    );
    let bad = [&seen.refused, &seen.wrong].map(|figure| figure.load(Ordering::Relaxed));
    assert_eq!(bad, [0, 0], "refused, wrong");
    let not_its_own: Vec<&Pid> = lost.iter().filter(|pid| !killed.contains(pid)).collect();
    assert!(not_its_own.is_empty(), "requests were lost that no killed worker had: {not_its_own:?}");
    assert!(lost.len() <= kills * CLIENTS, "a connection is lost once");
    // A pause would hold up all. Of a few, beside other tests, half may have waited for a CPU.
    let fast_half = took[(took.len() - 1) / 2];
    assert!(fast_half <= REPLACED, "more than half of the workers were replaced only after {fast_half:?}");
    let is_whole_figure = kills != KILLS;
    assert!(!is_whole_figure || longest <= REPLACED, "one worker was replaced only after {longest:?}");
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

/// Kills the worker that has lived longest; who it was, and how long it took until another stood in its place.
fn kill_first(served: &mut Served) -> (Pid, Duration) {
    let (victim, start) = (served.pids.remove(0), Instant::now());
    signal::kill(victim, Signal::Kill).unwrap();
    assert_eq!(served.line(), format!("died {victim} killed by SIGKILL after_ns 0"));
    let replaced = served.line();
    let took = start.elapsed();
    let new = replaced.strip_prefix(&format!("replaced {victim} ")).and_then(|pid| pid.parse().ok());
    served.pids.push(new.unwrap_or_else(|| panic!("{replaced}")));
    (victim, took)
}

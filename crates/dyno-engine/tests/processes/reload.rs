//! SIGHUP: new settings come into force while requests are answered, and what is wrong with them changes nothing.

use crate::common::{Client, wait_for};
use crate::served::{Served, figure, is_alive, temporary};
use dyno_sys::signal::{self, Signal};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const JSON: &str = "GET /json HTTP/1.1\r\nHost: a\r\n\r\n";

/// Settings in a file, changed while they are served.
pub(crate) struct Settings(PathBuf);

impl Settings {
    pub(crate) fn new(name: &str, text: &str) -> Settings {
        let settings = Settings(temporary(name));
        settings.write(text);
        settings
    }

    pub(crate) fn write(&self, text: &str) {
        std::fs::write(&self.0, text).unwrap();
    }

    pub(crate) fn serve(&self, words: &[(&str, &str)]) -> Served {
        let path = self.0.to_str().unwrap();
        Served::start(&[words, &[("settings", path)]].concat())
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn reload(served: &Served) {
    signal::kill(served.pid(), Signal::Hup).unwrap();
}

/// Ports that were free a moment ago.
fn free<const N: usize>() -> [SocketAddr; N] {
    let bound = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    bound.each_ref().map(|listener| listener.local_addr().unwrap())
}

pub(crate) fn a_reload_takes_new_settings_and_loses_nothing() {
    let settings = Settings::new("takes.conf", "workers=1\n");
    let mut served = settings.serve(&[]);
    let (mut busy, mut other) = (Client::connect(served.addr()), Client::connect(served.addr()));
    assert_eq!(other.ask(JSON).status, 200);
    busy.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
    let old = served.pids.clone();
    settings.write("workers=2\n");
    reload(&served);
    assert_eq!(served.line(), "reloading");
    served.hear_pids();
    assert_eq!(served.line(), "reloaded 2 2");
    assert!(served.pids.len() == 2 && !served.pids.contains(&old[0]));
    assert_eq!(Client::connect(served.addr()).ask(JSON).status, 200);
    wait_for("the old worker to hear of it", || other.ask(JSON).header("connection") == Some("close"));
    // It is there for as long as it has something to answer, and no longer.
    assert!(is_alive(old[0]));
    let reply = busy.send("ha").reply();
    assert_eq!((reply.text().as_str(), reply.header("connection")), ("haha", Some("close")));
    assert_eq!(served.line(), "retired 1 Wholly");
    let (status, report) = served.stop();
    assert!(status.success() && report.starts_with("report Wholly deaths=0 "), "{report}");
    assert!(figure(&report, "requests") >= 4, "all generations' are counted: {report}");
}

pub(crate) fn what_is_wrong_with_new_settings_changes_nothing() {
    let settings = Settings::new("wrong.conf", "");
    let mut served = settings.serve(&[]);
    let mut client = Client::connect(served.addr());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("addr={}\n", taken.local_addr().unwrap());
    for (text, says) in [
        ("log=loud\n", "not reloaded: dial log cannot be \"loud\""),
        (&taken, "not reloaded: cannot listen on 127.0.0.1"),
        ("log=sync\nlog_file=/nowhere/log\n", "error: cannot open the access log /nowhere/log: No such file"),
        ("content=/nowhere\n", "error: the content cannot be served"),
    ] {
        settings.write(text);
        reload(&served);
        assert_eq!(served.line(), "reloading");
        let line = served.line();
        assert!(line.starts_with(says), "{text}: {line}");
        // What the new generation says itself the master says again.
        if line.starts_with("error: ") {
            assert!(served.line().starts_with("not reloaded: "), "{text}");
        }
        let reply = client.ask(JSON);
        assert_eq!((reply.status, reply.header("connection")), (200, None), "{text}");
    }
    settings.write("");
    reload(&served);
    assert_eq!(served.line(), "reloading");
    served.hear_pids();
    assert!(served.line().starts_with("reloaded"));
    wait_for("the old worker to hear of it", || client.ask(JSON).header("connection") == Some("close"));
    drop(client);
    assert!(served.stop().0.success());
}

/// Planted faults: the master has the new sockets listen itself, so that they take their share of connections at once; or
/// keeps them when the new settings are refused. Then three of four connections wait for ever.
pub(crate) fn a_reload_that_fails_to_add_workers_takes_no_connection_from_those_that_serve() {
    for reuseport in ["hash", "cpu"] {
        let settings = Settings::new("more.conf", "workers=2\n");
        let mut served = settings.serve(&[("reuseport", reuseport)]);
        let answered =
            |served: &Served| (0..40).all(|_| Client::connect(served.addr()).ask(JSON).status == 200);
        settings.write("workers=8\nlog=sync\nlog_file=/nowhere/a.log\n");
        reload(&served);
        while !served.line().starts_with("not reloaded: ") {}
        assert!(answered(&served));
        // More of them do come, and fewer, and each time everybody is served.
        for (generation, workers) in [(3, 8), (4, 3)] {
            settings.write(&format!("workers={workers}\n"));
            reload(&served);
            served.hear_pids();
            assert_eq!(served.pids.len(), workers);
            // Who has retired meanwhile says so.
            let reloaded = format!("reloaded {generation} {workers}");
            let heard: Vec<String> =
                (0..3).map(|_| served.line()).take_while(|line| !line.starts_with(&reloaded)).collect();
            assert!(heard.len() < 3, "{heard:?}");
            assert!(answered(&served));
        }
        assert!(served.stop().0.success());
    }
}

pub(crate) fn addresses_come_and_go_with_a_reload() {
    let [one, other] = free();
    let path = temporary("reload.sock");
    let settings = Settings::new("addresses.conf", &format!("addr={one} unix:{}\n", path.display()));
    let mut served = settings.serve(&[("workers", "2")]);
    let mut client = Client::connect(one);
    assert_eq!(client.ask(JSON).status, 200);
    assert!(path.exists());
    assert!(TcpStream::connect(other).is_err());
    settings.write(&format!("addr={other}\n"));
    reload(&served);
    assert_eq!(served.line(), "reloading");
    served.hear_pids();
    assert!(served.line().starts_with("reloaded 2"));
    assert_eq!(Client::connect(other).ask(JSON).status, 200);
    wait_for("the old address to be closed", || TcpStream::connect(one).is_err());
    assert!(!path.exists());
    // Who was connected to it is answered once more.
    assert_eq!(client.ask(JSON).header("connection"), Some("close"));
    assert_eq!(served.line(), "retired 1 Wholly");
    assert!(served.stop().0.success());
}

pub(crate) fn a_connection_that_idles_over_a_reload_is_answered_once_more() {
    let settings = Settings::new("idles.conf", "idle_ms=5000\n");
    let mut served = settings.serve(&[]);
    let (mut asks, mut never) = (Client::connect(served.addr()), Client::connect(served.addr()));
    assert_eq!((asks.ask(JSON).status, never.ask(JSON).status), (200, 200));
    reload(&served);
    assert_eq!(served.line(), "reloading");
    served.hear_pids();
    assert!(served.line().starts_with("reloaded"));
    // Longer than a drain would have waited for it: the old worker is in no hurry.
    wait_for("a while to pass", {
        let start = Instant::now();
        move || start.elapsed() > Duration::from_millis(600)
    });
    let reply = asks.ask(JSON);
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    // Who never asks again is closed when it would have been anyhow.
    never.assert_closed();
    assert_eq!(served.line(), "retired 1 Wholly");
    assert!(served.stop().0.success());
}

pub(crate) fn a_retired_generation_is_cut_at_its_deadline() {
    let settings = Settings::new("deadline.conf", "retire_ms=300\n");
    let mut served = settings.serve(&[]);
    let mut half = Client::connect(served.addr());
    half.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
    wait_for("the connection", || figure(&served.order("counters"), "accepts") == 1);
    reload(&served);
    assert_eq!(served.line(), "reloading");
    served.hear_pids();
    assert!(served.line().starts_with("reloaded"));
    assert_eq!(served.line(), "retired 1 Cut");
    // What happened to an old generation is no fault of the drain.
    let (_, report) = served.stop();
    assert!(report.starts_with("report Wholly"), "{report}");
}

/// Neither a log that could be opened anew, nor a program that could take over. Planted fault: `hand_over` returns without a word
/// where there is no program.
pub(crate) fn a_signal_that_finds_nothing_to_do_is_told_and_changes_nothing() {
    let mut served = Served::start(&[("successor", "none")]);
    for signal in [Signal::Usr1, Signal::Usr2] {
        signal::kill(served.pid(), signal).unwrap();
        assert_eq!(served.line(), format!("ignored {signal}"));
        assert_eq!(Client::connect(served.addr()).ask(JSON).status, 200);
    }
    assert!(served.stop().0.success());
}

/// What its workers have counted is not lost with it. Planted faults: counters that are the supervisor's own; workers that died with
/// it are not counted as replaced.
pub(crate) fn a_supervisor_that_dies_is_replaced() {
    let mut served = Served::start(&[("workers", "2"), ("metrics", "127.0.0.1:0")]);
    served.line();
    let mut client = Client::connect(served.addr());
    (0..30).for_each(|_| assert_eq!(client.ask(JSON).status, 200));
    // A turn's figures are published at its end.
    wait_for("the figures", || figure(&served.order("counters"), "requests") == 30);
    drop(client);
    let old = served.pids.clone();
    let supervisor = served.supervisor();
    // One that answers orders has started; one that dies before is a start that failed.
    served.order("counters");
    signal::kill(supervisor, Signal::Kill).unwrap();
    assert_eq!(served.line(), format!("supervisor died {supervisor} killed by SIGKILL"));
    served.hear_pids();
    assert_eq!(Client::connect(served.addr()).ask(JSON).status, 200);
    for pid in old {
        wait_for("its workers to end", || !is_alive(pid));
    }
    let metrics: SocketAddr = served.line().strip_prefix("metrics ").unwrap().parse().unwrap();
    let page = Client::connect(metrics).ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").text();
    assert!(page.contains("\ndyno_worker_restarts_total 2\n"), "{page}");
    let (status, report) = served.stop();
    assert!(status.success() && report.starts_with("report Wholly deaths=2 requests=31 "), "{report}");
}

/// Planted fault: `answers_for_metrics` is never so: who has asked half of it is cut when the old workers are gone.
pub(crate) fn who_asks_for_metrics_over_a_reload_is_answered() {
    let [place] = free();
    let settings = Settings::new("scraped.conf", &format!("metrics={place}\n"));
    let hold = temporary("scraped.hold");
    let mut served = settings.serve(&[("hold", hold.to_str().unwrap())]);
    assert_eq!(served.line(), format!("metrics {place}"));
    let (old, supervisor) = (served.pids[0], served.supervisor());
    let mut scraper = Client::connect(place);
    assert_eq!(scraper.ask("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    std::fs::write(&hold, "all").unwrap();
    reload(&served);
    assert_eq!(served.line(), "reloading");
    scraper.send("GET /healthz HTTP/1.1\r\n");
    // A head that takes more than five seconds is not waited for.
    std::fs::remove_file(&hold).unwrap();
    while !served.line().starts_with("reloaded ") {}
    wait_for("the old worker to end", || !is_alive(old));
    // One that does not wait for it is gone a moment later.
    thread::sleep(Duration::from_millis(300));
    assert!(is_alive(supervisor));
    let reply = scraper.send("Host: a\r\n\r\n").reply();
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    assert_eq!(served.line(), "retired 1 Wholly");
    assert!(served.stop().0.success());
}

pub(crate) fn metrics_go_on_over_a_reload() {
    let [place] = free();
    let settings = Settings::new("metrics.conf", &format!("metrics={place}\n"));
    let mut served = settings.serve(&[]);
    assert_eq!(served.line(), format!("metrics {place}"));
    let ask = |path: &str| Client::connect(place).ask(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let page = |wanted: &str| ask("/metrics").text().contains(&format!("\n{wanted}\n"));
    assert!(page("dyno_reloads_total 0") && page("dyno_last_reload_successful 1"));
    for (text, reloads, failures) in [("log=loud\n", 0, 1), ("workers=2\n", 1, 1)] {
        settings.write(&format!("metrics={place}\n{text}"));
        reload(&served);
        while !served.line().contains("reloaded") {}
        // Whoever of the two answers tells it: the words are shared.
        assert!(page(&format!("dyno_reloads_total {reloads}")), "{text}");
        assert!(page(&format!("dyno_reload_failures_total {failures}")), "{text}");
        assert!(page(&format!("dyno_last_reload_successful {reloads}")), "{text}");
    }
    assert_eq!(served.line(), "retired 1 Wholly");
    assert_eq!(ask("/healthz").text(), "ok\n");
    assert!(page("dyno_worker_accepting{worker=\"1\"} 1"));
    assert!(served.stop().0.success());
}

/// What clients saw of a server under them.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) answered: AtomicU64,
    /// Connections that the server closed after an answer that said so.
    closed: AtomicU64,
    /// Requests that got no answer, or not the right one, and connections that were refused.
    lost: AtomicU64,
    wrong: AtomicU64,
    refused: AtomicU64,
    /// The longest that one request took, from its first try to connect.
    longest_us: AtomicU64,
    why: Mutex<Vec<String>>,
}

impl Seen {
    fn add(&self, figure: &AtomicU64, why: String) {
        figure.fetch_add(1, Ordering::Relaxed);
        self.why.lock().unwrap().push(why);
    }

    pub(crate) fn assert_nothing_lost(&self) {
        let bad = [&self.lost, &self.wrong, &self.refused].map(|figure| figure.load(Ordering::Relaxed));
        assert_eq!(bad, [0, 0, 0], "lost, wrong, refused: {:?}", self.why.lock().unwrap());
    }
}

/// Asks until `stopped`, over one connection after another.
pub(crate) fn ask_on(addr: SocketAddr, pause: Duration, stopped: &AtomicBool, seen: &Seen) {
    let mut open: Option<TcpStream> = None;
    while !stopped.load(Ordering::Relaxed) {
        let start = Instant::now();
        let mut stream = match open.take().map_or_else(|| TcpStream::connect(addr), Ok) {
            Ok(stream) => stream,
            Err(error) => {
                seen.add(&seen.refused, error.to_string());
                continue;
            }
        };
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(crate::common::DEADLINE)).unwrap();
        match answer(&mut stream) {
            Ok(head) if !head.starts_with("HTTP/1.1 200 OK\r\n") || !head.ends_with("\"Hello, World!\"}") => {
                seen.add(&seen.wrong, head);
            }
            Ok(head) => {
                seen.answered.fetch_add(1, Ordering::Relaxed);
                let took_us = u64::try_from(start.elapsed().as_micros()).unwrap();
                seen.longest_us.fetch_max(took_us, Ordering::Relaxed);
                if head.contains("Connection: close") {
                    seen.closed.fetch_add(1, Ordering::Relaxed);
                } else {
                    open = Some(stream);
                }
            }
            Err(error) => seen.add(&seen.lost, error.to_string()),
        }
        if !pause.is_zero() {
            thread::park_timeout(pause);
        }
    }
}

/// Sends a request and reads all of its answer.
fn answer(stream: &mut TcpStream) -> std::io::Result<String> {
    stream.write_all(JSON.as_bytes())?;
    let (mut bytes, mut piece) = (Vec::new(), [0; 4_096]);
    loop {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err(std::io::Error::other(format!("closed after {} bytes", bytes.len())));
        }
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let length =
            text.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse::<usize>().ok());
        if let (Some(length), Some(head)) = (length, text.find("\r\n\r\n"))
            && bytes.len() >= head + 4 + length
        {
            return Ok(text.into_owned());
        }
    }
}

/// `DYNO_RELOADS=1000` for the whole figure; a few dozen tell a mistake as well.
fn reloads() -> u64 {
    std::env::var("DYNO_RELOADS").map_or(30, |count| count.parse().unwrap())
}

pub(crate) fn no_request_is_lost_over_reloads_under_load() {
    for reuseport in ["off", "hash"] {
        let settings = Settings::new("load.conf", "");
        let mut served = settings.serve(&[("workers", "2"), ("reuseport", reuseport)]);
        let addr = served.addr();
        let (seen, stopped) = (Seen::default(), AtomicBool::new(false));
        let (count, start) = (reloads(), Instant::now());
        thread::scope(|scope| {
            for _ in 0..32 {
                scope.spawn(|| ask_on(addr, Duration::from_millis(2), &stopped, &seen));
            }
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for number in 0..count {
                    let before = seen.answered.load(Ordering::Relaxed);
                    settings.write(&format!("idle_ms={}\n", 60_000 + number));
                    reload(&served);
                    while !served.line().starts_with("reloaded") {}
                    wait_for("some requests", || seen.answered.load(Ordering::Relaxed) > before + 100);
                }
            }));
            stopped.store(true, Ordering::Relaxed);
            ended.unwrap();
        });
        let answered = seen.answered.load(Ordering::Relaxed);
        println!(
            "{reuseport}: {count} reloads, {answered} answers, {:.0} a second, {} told to close, longest {:.1} ms",
            answered as f64 / start.elapsed().as_secs_f64(),
            seen.closed.load(Ordering::Relaxed),
            seen.longest_us.load(Ordering::Relaxed) as f64 / 1e3,
        );
        seen.assert_nothing_lost();
        let (status, report) = served.stop();
        assert!(status.success() && report.starts_with("report Wholly"), "{status}: {report}");
        assert_eq!(figure(&report, "requests"), answered, "every generation's requests are counted");
    }
}

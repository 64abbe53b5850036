//! `cargo xtask slow`: thousands of clients that send or read as slowly as they can, by slowhttptest, and good ones beside them.
//!
//! A server for each kind: slow heads, slow bodies, slow readers of 10 MB. Looked at from outside: whether every good client
//! is served, when the last slow one is gone after the last had come, and what one that is held costs. Not part of CI; it
//! changes nothing outside the target folder but the page of evidence that it is told to write.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::command::{command, find_program};
use crate::flags::Flags;
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};
use crate::watched::{Good, LARGE, Watched, ask_well};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// Beside its deadline, a slow client's end may take so long.
const GRACE: Duration = Duration::from_secs(1);
/// What one that is held may cost.
const BYTES_MAX: u64 = 4_096;
const GOOD_CLIENTS: usize = 4;
/// Time to open all of them, when the machine is busy.
const OPENING_MAX: Duration = Duration::from_secs(40);

/// One way to be slow.
struct Kind {
    name: &'static str,
    words: &'static [&'static str],
    path: &'static str,
    deadline: Duration,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "heads",
        words: &["-H", "-x", "24", "-i", "10"],
        path: "/",
        deadline: Duration::from_secs(10),
    },
    Kind {
        name: "bodies",
        words: &["-B", "-s", "8192", "-x", "24", "-i", "10"],
        path: "/",
        deadline: Duration::from_secs(10),
    },
    Kind {
        name: "readers",
        words: &["-X", "-w", "10", "-y", "20", "-n", "5", "-z", "32"],
        path: LARGE,
        deadline: Duration::from_secs(20),
    },
];

/// What was seen of one kind.
struct Row {
    name: &'static str,
    deadline: Duration,
    /// The most that were held at once.
    held: u64,
    /// After the last had come.
    last_gone: Option<Duration>,
    bytes_each: u64,
    answered: u64,
    is_all_served: bool,
    longest_ms: f64,
    /// What slowhttptest found when it tried the server itself, once a second.
    found_down: usize,
    wrong: Option<String>,
}

impl Row {
    fn is_right(&self) -> bool {
        let in_time = self.last_gone.is_some_and(|gone| gone <= self.deadline + GRACE);
        in_time && self.is_all_served && self.bytes_each <= BYTES_MAX && self.found_down == 0
    }

    fn line(&self) -> String {
        let gone = self.last_gone.map_or("never".to_owned(), |gone| format!("{:.1} s", gone.as_secs_f64()));
        format!(
            "| {} | {} | {} s | {gone} | {} | {} | {} | {:.0} ms | {} |",
            self.name,
            self.held,
            self.deadline.as_secs(),
            self.bytes_each,
            self.answered,
            if self.is_all_served { "all" } else { self.wrong.as_deref().unwrap_or("not all") },
            self.longest_ms,
            if self.is_right() { "yes" } else { "NO" },
        )
    }
}

const HEAD: &str = "\
| slow | held | deadline | last gone after the last came | bytes each | good requests | of them served | longest | as promised |
|---|---|---|---|---|---|---|---|---|";

/// Runs all kinds, or those that are asked for.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let connections: u32 = flags.parsed("--connections")?.unwrap_or(4_000);
    let only: Option<String> = flags.parsed("--only")?;
    let dyno: Option<PathBuf> = flags.parsed("--dyno")?;
    let write: Option<PathBuf> = flags.parsed("--write")?;
    flags.finish()?;
    if find_program("slowhttptest").is_none() {
        return Err(Trouble::new("slowhttptest is not here").remedy("apt-get install slowhttptest"));
    }
    let dyno = dyno.map_or_else(|| repo.release_dyno(), Ok)?;
    println!("{HEAD}");
    let mut rows = Vec::new();
    for kind in KINDS
        .iter()
        .filter(|kind| only.as_deref().is_none_or(|only| only.split(',').any(|name| name == kind.name)))
    {
        let row = meet(&dyno, &repo.scratch(&format!("slow-{}", kind.name))?, kind, connections)?;
        println!("{}", row.line());
        rows.push(row);
    }
    if let Some(path) = write {
        std::fs::write(&path, page(&rows, connections))
            .map_err(Trouble::cannot(format!("write {}", path.display())))?;
    }
    Ok(Outcome::done_if(|| rows.iter().all(Row::is_right)))
}

fn page(rows: &[Row], connections: u32) -> String {
    let mut page = format!(
        "# Slow clients\n\n`cargo xtask slow --connections {connections}`, slowhttptest 1.8.2, two workers and all clients on two CPUs.\n\n{HEAD}\n"
    );
    for row in rows {
        let _ = writeln!(page, "{}", row.line());
    }
    page + "\n\
        The server runs with a folder, an access log, limits, filters and metrics. \"bytes each\" is what the resident memory of all\n\
        its processes has grown by while they are held (user space; the kernel's own for a connection is not in it). Readers\n\
        are met with `--write-timeout 20s`; heads and bodies with the defaults. Good clients ask for six kinds of replies by turns.\n"
}

fn meet(dyno: &Path, scratch: &Path, kind: &Kind, connections: u32) -> Result<Row, Trouble> {
    let watched = Watched::start(dyno, scratch, &["--write-timeout", "20s"])?;
    let (good, is_over) = (Good::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for first in 0..GOOD_CLIENTS {
            let (addr, is_over, good) = (watched.addr(), &is_over, &good);
            scope.spawn(move || ask_well(addr, first, is_over, good));
        }
        let seen = look(&watched, scratch, kind, connections, &good);
        is_over.store(true, Ordering::Relaxed);
        seen
    })
}

/// Before: until all buffers have grown. Then the slow ones come, are held, and go.
fn look(
    watched: &Watched,
    scratch: &Path,
    kind: &Kind,
    connections: u32,
    good: &Good,
) -> Result<Row, Trouble> {
    std::thread::sleep(Duration::from_secs(1));
    let before = watched.memory().all();
    let report = scratch.join("slowhttptest");
    let mut slow = start_slow(watched, &report, kind, connections)?;
    let seen = follow(watched, kind, u64::from(connections));
    // Told to end, it writes its report.
    command(["kill", "-INT", &slow.id().to_string()])
        .status()
        .map_err(Trouble::cannot("end slowhttptest"))?;
    slow.wait().map_err(Trouble::cannot("wait for slowhttptest"))?;
    let (held, most, last_gone) = seen?;
    Ok(Row {
        name: kind.name,
        deadline: kind.deadline,
        held,
        last_gone,
        bytes_each: most.saturating_sub(before) / held.max(1),
        answered: good.answered.load(Ordering::Relaxed),
        is_all_served: good.is_all_served(),
        longest_ms: good.longest_us.load(Ordering::Relaxed) as f64 / 1e3,
        found_down: found_down(&report.with_extension("csv")),
        wrong: good.first_wrong.lock().ok().and_then(|mut first| first.take()),
    })
}

fn start_slow(watched: &Watched, report: &Path, kind: &Kind, connections: u32) -> Result<Child, Trouble> {
    let url = format!("http://{}{}", watched.addr(), kind.path);
    let connections = connections.to_string();
    let mut slow =
        command(["slowhttptest", "-c", &connections, "-r", "2000", "-l", "120", "-p", "3", "-u", &url]);
    slow.args(kind.words).arg("-g").arg("-o").arg(report);
    slow.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    slow.spawn().map_err(Trouble::cannot("run slowhttptest"))
}

/// Seconds in which slowhttptest's own client was not served. Its last column is wrongly told as a number: 0 is no.
fn found_down(report: &Path) -> usize {
    let text = std::fs::read_to_string(report).unwrap_or_default();
    text.lines().skip(1).filter(|line| line.ends_with(",0")).count()
}

/// The most connections and bytes that were held at once, and how long the last was held after the last had come.
fn follow(watched: &Watched, kind: &Kind, connections: u64) -> Result<(u64, u64, Option<Duration>), Trouble> {
    let (beside, start) = (GOOD_CLIENTS as u64, Instant::now());
    let (mut held, mut most, mut last_came) = (0, 0, Instant::now());
    loop {
        // slowhttptest's own client is there now and then, and stands for the last of them at most.
        let now_open = watched.open()?.saturating_sub(beside).min(connections);
        if now_open > held {
            (held, last_came) = (now_open, Instant::now());
        }
        most = most.max(watched.memory().all());
        if held == connections && now_open <= 1 {
            return Ok((held, most, Some(last_came.elapsed())));
        }
        let is_late =
            last_came.elapsed() > kind.deadline * 2 || start.elapsed() > OPENING_MAX + kind.deadline * 2;
        if is_late {
            return Ok((held, most, None));
        }
        std::thread::sleep(LOOK);
    }
}

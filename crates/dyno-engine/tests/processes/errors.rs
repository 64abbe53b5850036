//! The error log: what goes wrong with a request stands there before its reply has left, whoever dies then.

use crate::common::{Client, wait_for};
use crate::content::Folder;
use crate::reload::Settings;
use crate::served::{Served, temporary};
use dyno_sys::Pid;
use dyno_sys::signal::{self, Signal};
use std::path::Path;
use std::time::Instant;

const FOLDED: &str = "GET /\x24{jndi} HTTP/1.1\r\nHost: a\r\n Folded: \x1b[31m\r\n\r\n";

/// The lines, each of which must be whole.
fn lines_of(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "a torn line: {text}");
    let is_whole = |line: &str| {
        let (time, rest) = line.split_once(' ').unwrap_or_default();
        let (level, rest) = rest.split_once(' ').unwrap_or_default();
        let (pid, text) = rest.split_once(": ").unwrap_or_default();
        let is_level = ["error", "warn", "notice", "info"].contains(&level);
        let is_visible = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        time.len() == 25 && time.ends_with("+00:00") && is_level && pid.parse::<u32>().is_ok() && is_visible
    };
    text.lines().for_each(|line| assert!(is_whole(line), "no line of the error log: {line}"));
    text.lines().map(str::to_owned).collect()
}

pub(crate) fn an_error_stands_in_its_log_before_the_reply_has_left() {
    let path = temporary("errors.log");
    let mut served = Served::start(&[("error_log", path.to_str().unwrap())]);
    let mut client = Client::connect(served.addr());
    for asked in 1..=10 {
        assert_eq!(client.ask("GET /panic HTTP/1.1\r\nHost: a\r\n\r\n").status, 500);
        let lines = lines_of(&path);
        assert_eq!(lines.len(), 2 * asked, "{lines:?}");
        assert!(lines[lines.len() - 2].ends_with(": it was asked to \\x1B[31m panic"), "{lines:?}");
        assert!(lines[lines.len() - 1].ends_with(": GET /panic is answered with 500: its handler panicked"));
        let pid = format!(" error {}: ", served.pids[0]);
        assert!(lines.iter().all(|line| line.contains(&pid)), "{lines:?}");
    }
    assert_eq!(client.ask(FOLDED).status, 400);
    let lines = lines_of(&path);
    let says = "a request of 127.0.0.1 is refused with 400 Bad Request: ";
    assert!(lines.last().unwrap().contains(says), "{lines:?}");
    drop(client);
    assert!(served.stop().0.success());
    std::fs::remove_file(&path).unwrap();
}

/// Each worker is killed as soon as somebody has a reply of which the error log must tell.
pub(crate) fn no_error_is_lost_when_workers_are_killed() {
    let path = temporary("killed-errors.log");
    let mut served = Served::start(&[("error_log", path.to_str().unwrap())]);
    let kills = crate::log::kills();
    for _ in 0..kills {
        let start = Instant::now();
        wait_for("the worker to be old enough", || start.elapsed() >= crate::log::between_kills());
        assert_eq!(Client::connect(served.addr()).ask(FOLDED).status, 400);
        signal::kill(served.pids[0], Signal::Kill).unwrap();
        assert!(served.line().starts_with("died "));
        let replaced = served.line();
        served.pids[0] = replaced.rsplit(' ').next().unwrap().parse().unwrap();
    }
    let lines = lines_of(&path);
    println!("{kills} kills, {} lines of the error log", lines.len());
    assert_eq!(lines.iter().filter(|line| line.contains("is refused with 400")).count(), kills);
    std::fs::remove_file(&path).unwrap();
}

pub(crate) fn an_error_log_is_opened_anew_by_whoever_writes_it() {
    let path = temporary("moved-errors.log");
    let mut served = Served::start(&[("error_log", path.to_str().unwrap()), ("workers", "2")]);
    let moved = path.with_extension("1");
    std::fs::rename(&path, &moved).unwrap();
    signal::kill(served.pid(), Signal::Usr1).unwrap();
    assert_eq!(served.line(), "log reopened");
    // Each worker is told in its own time.
    let mut workers = std::collections::BTreeSet::new();
    wait_for("both workers to write there", || {
        assert_eq!(Client::connect(served.addr()).ask(FOLDED).status, 400);
        workers.extend(lines_of(&path).iter().filter_map(|line| Some(line.split(' ').nth(2)?.to_owned())));
        workers.len() == 2
    });
    for path in [path, moved] {
        std::fs::remove_file(path).unwrap();
    }
}

/// Planted faults: only what serves already opens its error log anew, and the master goes on with the new settings' one, which is of
/// the file that was moved; a generation keeps the descriptor of the settings before its own, which nobody changes there.
pub(crate) fn an_error_log_that_is_moved_while_settings_are_read_again_is_held_by_nobody() {
    let (path, hold) = (temporary("reloaded-errors.log"), temporary("reloaded-errors.hold"));
    let settings = Settings::new("errors.conf", "");
    let words = [("error_log", path.to_str().unwrap()), ("hold", hold.to_str().unwrap())];
    let mut served = settings.serve(&words);
    std::fs::write(&hold, "all").unwrap();
    signal::kill(served.pid(), Signal::Hup).unwrap();
    assert_eq!(served.line(), "reloading");
    wait_for("the next generation", || dyno_sys::proc::tree(served.pid()).len() > 4);
    let moved = path.with_extension("1");
    std::fs::rename(&path, &moved).unwrap();
    signal::kill(served.pid(), Signal::Usr1).unwrap();
    wait_for("somebody to open it anew", || path.exists());
    std::fs::remove_file(&hold).unwrap();
    let mut told = String::new();
    while !told.starts_with("reloaded 2 1") {
        told = served.line();
        assert!(!told.is_empty(), "the server has ended");
    }
    wait_for("everybody to let go of it", || {
        !dyno_sys::proc::tree(served.pid()).iter().any(|pid| is_held(*pid, &moved))
    });
    assert!(served.stop().0.success());
    [path, moved].iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

/// Whether a process has this file open.
fn is_held(pid: Pid, file: &Path) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok()).any(|held| held == file)
}

/// Planted fault: the log's writer, the process that reads folders and that for metrics keep what they were forked with, and with it
/// the room on the disk of a file that was removed after its rotation.
pub(crate) fn nobody_holds_an_error_log_that_was_opened_anew() {
    let (path, folder) = (temporary("held-errors.log"), Folder::new("held-errors"));
    folder.put("index.html", "here");
    let served = Served::start(&[
        ("error_log", path.to_str().unwrap()),
        ("log", "ring"),
        ("log_file", "/dev/null"),
        ("metrics", "127.0.0.1:0"),
        ("content", folder.path("").to_str().unwrap()),
    ]);
    let family = dyno_sys::proc::tree(served.pid());
    assert_eq!(family.len(), 6, "master, supervisor, worker, and three that say nothing");
    let moved = path.with_extension("1");
    std::fs::rename(&path, &moved).unwrap();
    signal::kill(served.pid(), Signal::Usr1).unwrap();
    wait_for("everybody to let go of it", || !family.iter().any(|pid| is_held(*pid, &moved)));
    [path, moved].iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

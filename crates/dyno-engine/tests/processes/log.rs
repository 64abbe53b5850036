//! The access log over the deaths of those who write it: every request that was answered has its line, or is counted as
//! lost.

use crate::common::{Client, wait_for};
use crate::served::{Served, figure, temporary};
use dyno_sys::Pid;
use dyno_sys::signal::{self, Signal};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn ask(client: &mut Client, number: usize) {
    assert_eq!(client.ask(format!("GET /json?{number} HTTP/1.1\r\nHost: a\r\n\r\n")).status, 200);
}

/// Whether a server that may be dying still answers.
fn is_answered(stream: &mut TcpStream, number: usize) -> bool {
    let mut reply = [0; 1024];
    stream.write_all(format!("GET /json?{number} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).is_ok()
        && stream.read(&mut reply).is_ok_and(|count| reply[..count].ends_with(b"}"))
}

fn writer_of(served: &Served) -> Option<Pid> {
    let family = dyno_sys::proc::tree(served.supervisor());
    family.into_iter().find(|pid| *pid != served.supervisor() && !served.pids.contains(pid))
}

/// The numbers of the requests that have a line; every line must be whole.
fn numbers_in(text: &str) -> BTreeSet<usize> {
    let number = |line: &str| -> Option<usize> {
        assert!(line.ends_with(" HTTP/1.1\" 200 27"), "a torn line: {line}");
        line.split_once("/json?")?.1.split_once(' ')?.0.parse().ok()
    };
    text.lines().map(|line| number(line).unwrap_or_else(|| panic!("a torn line: {line}"))).collect()
}

fn read_and_remove(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::remove_file(path).unwrap();
    text
}

pub(crate) fn a_line_in_the_ring_survives_its_worker() {
    let path = temporary("ring.log");
    let mut served = Served::start(&[("log", "ring"), ("log_file", path.to_str().unwrap())]);
    let mut client = Client::connect(served.addr());
    for _ in 0..100 {
        assert_eq!(client.ask("GET /json?\"x HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    }
    signal::kill(served.pids[0], Signal::Kill).unwrap();
    assert!(served.line().starts_with("died "));
    assert!(served.line().starts_with("replaced "));
    let (status, _) = served.stop();
    assert!(status.success());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(text.lines().count(), 100);
    assert!(text.lines().all(|line| line.ends_with("\"GET /json?\\x22x HTTP/1.1\" 200 27")), "{text}");
}

pub(crate) fn no_line_is_lost_when_the_writer_is_killed() {
    (0..4).for_each(|_| no_line_is_lost_in_eight_kills());
}

/// A writer that is killed again and again is replaced more and more slowly: eight in a row take half a second.
fn no_line_is_lost_in_eight_kills() {
    const KILLS: usize = 8;
    // All of them fit the ring: a writer may be killed before it has written anything.
    const BETWEEN: usize = 100;
    let path = temporary("writer.log");
    let mut served = Served::start(&[("log", "ring"), ("log_file", path.to_str().unwrap())]);
    let mut client = Client::connect(served.addr());
    for kill in 0..KILLS {
        (0..BETWEEN).for_each(|number| ask(&mut client, kill * BETWEEN + number));
        let mut writer = None;
        wait_for("a writer", || {
            writer = writer_of(&served);
            writer.is_some()
        });
        signal::kill(writer.unwrap(), Signal::Kill).unwrap();
        assert_eq!(served.line(), "writer died");
    }
    let (status, report) = served.stop();
    assert!(status.success(), "{status}");
    let text = read_and_remove(&path);
    assert_eq!(numbers_in(&text), (0..KILLS * BETWEEN).collect(), "{report}");
    assert_eq!(figure(&report, "log_drops"), 0, "{report}");
}

/// The supervisor alone, in every other round with the master above it. A fault that loses lines in one kill of five is missed by one
/// run in eighty (0.8^20).
pub(crate) fn no_line_is_lost_when_the_supervisor_is_killed() {
    let path = temporary("orphans.log");
    // Each has a server of its own.
    let rounds = if kills() > KILLS { kills() } else { 20 };
    let mut of_all = 0;
    for round in 0..rounds {
        let mut served = Served::start(&[("log", "ring"), ("log_file", path.to_str().unwrap())]);
        let writer = writer_of(&served).unwrap();
        let mut client = Client::connect(served.addr());
        (0..50).for_each(|number| ask(&mut client, number));
        let (is_alone, supervisor) = (round % 2 == 1, served.supervisor());
        let victim = if is_alone { supervisor } else { served.pid() };
        let killer = std::thread::spawn(move || signal::kill(victim, Signal::Kill).unwrap());
        // The worker answers on until the kernel tells it that its parent is gone.
        let mut answered = 50;
        while is_answered(&mut client.stream, answered) {
            answered += 1;
        }
        killer.join().unwrap();
        wait_for("the writer to end", || {
            !crate::served::is_alive(writer) || crate::served::is_zombie(writer)
        });
        if is_alone {
            assert_eq!(served.line(), format!("supervisor died {supervisor} killed by SIGKILL"));
            served.hear_pids();
            let (status, report) = served.stop();
            assert!(status.success() && figure(&report, "log_drops") == 0, "{report}");
        } else {
            served.child.wait().unwrap();
        }
        let numbers = numbers_in(&read_and_remove(&path));
        let missing: Vec<usize> = (0..answered).filter(|number| !numbers.contains(number)).collect();
        of_all += answered;
        assert!(
            missing.is_empty(),
            "round {round}: {answered} were answered, these have no line: {missing:?}"
        );
    }
    println!("{rounds} kills of supervisors; {of_all} answered, each has its line");
}

pub(crate) fn lines_that_a_stalled_reader_leaves_are_counted() {
    const REQUESTS: usize = 2_000;
    let path = temporary("stalled.fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    // Open for reading before the server opens it for writing, and read only when all is over.
    let mut reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let settings = [("log", "ring"), ("log_file", path.to_str().unwrap()), ("drain_ms", "100")];
    let mut served = Served::start(&settings);
    let mut client = Client::connect(served.addr());
    (0..REQUESTS).for_each(|number| ask(&mut client, number));
    drop(client);
    all_are_written_or_counted(&mut served, REQUESTS, &mut reader);
    std::fs::remove_file(&path).unwrap();
}

/// Of so many lines, the pipe that nobody has read yet holds some, and the server's report counts the others.
fn all_are_written_or_counted(served: &mut Served, requests: usize, reader: &mut File) {
    let (status, report) = served.stop();
    assert!(status.success(), "{status}");
    let lost = figure(&report, "log_drops") as usize;
    assert!(lost > 0, "the pipe holds less than {requests} lines: {report}");
    let mut text = vec![0; requests * 200];
    let length = reader.read(&mut text).unwrap();
    let lines = numbers_in(std::str::from_utf8(&text[..length]).unwrap()).len();
    assert_eq!(lines + lost, requests, "{report}");
}

/// The server goes on under another supervisor, and its report holds what the dead one's writer could not write. Planted fault:
/// a writer whose supervisor is gone counts nothing.
pub(crate) fn lines_that_a_stalled_reader_leaves_are_counted_though_the_supervisor_was_killed() {
    const REQUESTS: usize = 2_000;
    let path = temporary("stalled-orphan.fifo");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let mut reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let settings = [("log", "ring"), ("log_file", path.to_str().unwrap()), ("drain_ms", "100")];
    let mut served = Served::start(&settings);
    let (supervisor, writer) = (served.supervisor(), writer_of(&served).unwrap());
    let mut client = Client::connect(served.addr());
    (0..REQUESTS).for_each(|number| ask(&mut client, number));
    drop(client);
    signal::kill(supervisor, Signal::Kill).unwrap();
    // It may have been looked at once more, and told that the log stalls.
    let is_told = |line: &String| !line.starts_with("log trouble: ");
    let told = std::iter::repeat_with(|| served.line()).find(is_told);
    assert_eq!(told, Some(format!("supervisor died {supervisor} killed by SIGKILL")));
    served.hear_pids();
    wait_for("the writer to end", || !crate::served::is_alive(writer) || crate::served::is_zombie(writer));
    all_are_written_or_counted(&mut served, REQUESTS, &mut reader);
    std::fs::remove_file(&path).unwrap();
}

/// Planted fault: the writer is patient until its supervisor kills it, which a dead one never does.
pub(crate) fn a_writer_whose_supervisor_was_killed_waits_for_no_reader_for_ever() {
    let path = temporary("orphan.fifo");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let _reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let settings = [("log", "ring"), ("log_file", path.to_str().unwrap()), ("drain_ms", "100")];
    let mut served = Served::start(&settings);
    let writer = writer_of(&served).unwrap();
    let mut client = Client::connect(served.addr());
    ask_more_than_a_ring_holds(&mut client, 0);
    signal::kill(served.pid(), Signal::Kill).unwrap();
    served.child.wait().unwrap();
    wait_for("the writer to end", || !crate::served::is_alive(writer) || crate::served::is_zombie(writer));
    std::fs::remove_file(&path).unwrap();
}

pub(crate) fn a_file_size_limit_costs_lines_and_no_process() {
    let path = temporary("limited.log");
    // In blocks of 512 bytes, as POSIX has it: room for some 50 lines.
    let settings = [("log", "ring"), ("log_file", path.to_str().unwrap()), ("file_blocks", "8")];
    let mut served = Served::start(&settings);
    let writer = writer_of(&served).unwrap();
    let mut client = Client::connect(served.addr());
    (0..500).for_each(|number| ask(&mut client, number));
    // EFBIG
    assert_eq!(served.line(), "log trouble: Refused(27)");
    assert_eq!(writer_of(&served), Some(writer), "the writer is the one that it was");
    drop(client);
    let (_, report) = served.stop();
    let text = read_and_remove(&path);
    let lines = numbers_in(&text);
    assert_eq!(lines, (0..lines.len()).collect(), "the first ones, and all of them whole");
    assert!(text.len() <= 4_096 && lines.len() > 40, "as many as fit: {}", lines.len());
    assert_eq!(lines.len() + figure(&report, "log_drops") as usize, 500, "{report}");
}

/// More lines than a ring holds, so that some find no room.
fn ask_more_than_a_ring_holds(client: &mut Client, from: usize) -> usize {
    const TOGETHER: usize = 100;
    const REQUESTS: usize = 6_000;
    let request = |number: usize| format!("GET /json?{number} HTTP/1.1\r\nHost: a\r\n\r\n");
    for first in (from..from + REQUESTS).step_by(TOGETHER) {
        client.send((first..first + TOGETHER).map(request).collect::<String>());
        (0..TOGETHER).for_each(|_| assert_eq!(client.reply().status, 200));
    }
    from + REQUESTS
}

pub(crate) fn a_stalled_log_is_told_of_once_and_once_when_it_is_over_with_what_was_lost() {
    let path = temporary("recovers.fifo");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let settings = [("log", "ring"), ("log_file", path.to_str().unwrap())];
    let mut served = Served::start(&settings);
    let mut client = Client::connect(served.addr());
    let mut asked = 0;
    let mut lost = 0;
    let mut seen = BTreeSet::new();
    let reading = Arc::new(AtomicBool::new(false));
    let lines = Arc::new(Mutex::new(String::new()));
    let thread = {
        let (reading, lines) = (reading.clone(), lines.clone());
        std::thread::spawn(move || read_while(reader, &reading, &lines))
    };
    for round in 0..2 {
        reading.store(false, Ordering::SeqCst);
        asked = ask_more_than_a_ring_holds(&mut client, asked);
        let told = served.line();
        assert!(told.starts_with("log trouble: "), "{told}");
        reading.store(true, Ordering::SeqCst);
        let told = served.line();
        lost += told.strip_prefix("log recovered after ").unwrap().parse::<usize>().unwrap();
        assert_eq!(figure(&served.order("counters"), "log_drops") as usize, lost, "round {round}");
    }
    drop(client);
    let (_, report) = served.stop();
    wait_for("every line", || {
        seen = numbers_in(lines.lock().unwrap().rsplit_once('\n').map_or("", |(whole, _)| whole));
        seen.len() + lost == asked
    });
    assert!(lost > 0 && figure(&report, "log_drops") as usize == lost, "{report}");
    drop(thread);
    std::fs::remove_file(&path).unwrap();
}

/// Reads as long as it should.
fn read_while(mut from: std::fs::File, reading: &AtomicBool, into: &Mutex<String>) {
    let mut piece = vec![0; 1 << 16];
    loop {
        if !reading.load(Ordering::SeqCst) {
            std::thread::yield_now();
            continue;
        }
        let Ok(count) = from.read(&mut piece) else { return };
        into.lock().unwrap().push_str(std::str::from_utf8(&piece[..count]).unwrap());
    }
}

pub(crate) fn a_full_disk_is_served_on_over() {
    let settings = [("log", "ring"), ("log_file", "/dev/full")];
    let mut served = Served::start(&settings);
    let mut client = Client::connect(served.addr());
    let asked = ask_more_than_a_ring_holds(&mut client, 0);
    // ENOSPC
    assert_eq!(served.line(), "log trouble: Refused(28)");
    drop(client);
    let (status, report) = served.stop();
    assert!(status.success() && report.starts_with("report Wholly"), "{report}");
    assert_eq!(figure(&report, "log_drops") as usize, asked, "{report}");
}

pub(crate) fn no_line_is_lost_or_torn_when_the_log_is_rotated() {
    for log in ["ring", "sync", "commit"] {
        rotated(log);
    }
}

fn rotated(log: &str) {
    const ROTATIONS: usize = 10;
    let path = temporary(&format!("rotated-{log}.log"));
    let mut served = Served::start(&[("log", log), ("log_file", path.to_str().unwrap())]);
    let moved = |number: usize| path.with_extension(format!("log.{number}"));
    let (asked, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = Client::connect(served.addr());
            while !is_over.load(Ordering::SeqCst) {
                ask(&mut client, asked.fetch_add(1, Ordering::SeqCst));
            }
        });
        for number in 0..ROTATIONS {
            let before = asked.load(Ordering::SeqCst);
            wait_for("some load", || asked.load(Ordering::SeqCst) > before + 50);
            std::fs::rename(&path, moved(number)).unwrap();
            signal::kill(served.child.id().cast_signed(), Signal::Usr1).unwrap();
            wait_for("the new file to be written", || {
                std::fs::metadata(&path).is_ok_and(|file| file.len() > 0)
            });
        }
        is_over.store(true, Ordering::SeqCst);
    });
    for _ in 0..ROTATIONS {
        assert_eq!(served.line(), "log reopened");
    }
    let (status, report) = served.stop();
    assert!(status.success() && figure(&report, "log_drops") == 0, "{report}");
    let texts: Vec<String> =
        (0..ROTATIONS).map(moved).chain([path.clone()]).map(|path| read_and_remove(&path)).collect();
    assert!(texts.iter().all(|text| text.is_empty() || text.ends_with('\n')), "{log}: a file ends torn");
    let asked = asked.into_inner();
    assert_eq!(texts.concat().lines().count(), asked, "{log}: once each");
    assert_eq!(numbers_in(&texts.concat()), (0..asked).collect(), "{log}");
}

pub(crate) fn a_log_that_cannot_be_opened_anew_goes_on_being_written() {
    let folder = temporary("gone");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("log");
    let mut served = Served::start(&[("log", "ring"), ("log_file", path.to_str().unwrap())]);
    let mut client = Client::connect(served.addr());
    let away = folder.with_extension("away");
    std::fs::rename(&folder, &away).unwrap();
    signal::kill(served.pid(), Signal::Usr1).unwrap();
    assert!(served.line().starts_with("log not reopened: cannot open the access log "));
    (0..10).for_each(|number| ask(&mut client, number));
    drop(client);
    assert!(served.stop().0.success());
    assert_eq!(numbers_in(&std::fs::read_to_string(away.join("log")).unwrap()), (0..10).collect());
    std::fs::remove_dir_all(&away).unwrap();
}

/// Planted fault: a writer that had no descriptor left for a new file takes no other one, ever.
pub(crate) fn a_writer_without_a_descriptor_for_a_new_log_goes_on_and_takes_the_next_one() {
    let path = temporary("no-descriptor.log");
    let mut served = Served::start(&[("log", "ring"), ("log_file", path.to_str().unwrap())]);
    let writer = writer_of(&served).unwrap();
    let allow = |fds: usize| {
        let mut command = std::process::Command::new("prlimit");
        command.arg(format!("--pid={writer}")).arg(format!("--nofile={fds}:"));
        assert!(command.status().unwrap().success());
    };
    let is_open = |fd: &usize| Path::new(&format!("/proc/{writer}/fd/{fd}")).exists();
    let mut client = Client::connect(served.addr());
    let moved = [1, 2].map(|number| path.with_extension(format!("log.{number}")));
    for (fds, moved, numbers) in
        [((0..).find(|fd| !is_open(fd)).unwrap(), &moved[0], 0..10), (1_024, &moved[1], 10..20)]
    {
        allow(fds);
        std::fs::rename(&path, moved).unwrap();
        signal::kill(served.pid(), Signal::Usr1).unwrap();
        assert_eq!(served.line(), "log reopened");
        numbers.for_each(|number| ask(&mut client, number));
        if fds < 1_024 {
            wait_for("the lines in the old file", || {
                std::fs::read_to_string(moved).unwrap().lines().count() == 10
            });
        }
    }
    drop(client);
    assert!(served.stop().0.success());
    assert_eq!(numbers_in(&read_and_remove(&moved[0])), (0..10).collect());
    assert_eq!(read_and_remove(&moved[1]), "", "nobody had it open to write into");
    assert_eq!(numbers_in(&read_and_remove(&path)), (10..20).collect());
}

pub(crate) const KILLS: usize = 8;

/// Kills of each kind: a few with the ordinary tests, `DYNO_KILLS` of them where that is asked for.
pub(crate) fn kills() -> usize {
    std::env::var("DYNO_KILLS").map_or(KILLS, |kills| kills.parse().unwrap())
}

/// Who is killed again and again is replaced more and more slowly. Where there are many kills each lives long enough to be
/// replaced at once (a fifth of a second).
pub(crate) fn between_kills() -> Duration {
    if kills() > KILLS { Duration::from_millis(250) } else { Duration::ZERO }
}

/// Workers and the writer are killed by turns, in the middle of load: who got a reply has its line, and no line is torn
/// or stands twice.
pub(crate) fn no_line_of_a_reply_is_lost_whoever_is_killed() {
    for log in ["ring", "commit"] {
        killed_by_turns(log);
    }
}

fn killed_by_turns(log: &str) {
    let path = temporary(&format!("kills-{log}.log"));
    let mut served = Served::start(&[("log", log), ("log_file", path.to_str().unwrap()), ("workers", "2")]);
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let answered = Mutex::new(BTreeSet::new());
    let addr = served.addr();
    let mut workers = 0;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let Ok(stream) = TcpStream::connect(addr) else { continue };
                    answered.lock().unwrap().extend(ask_until_it_dies(stream, &next, &is_over));
                }
            });
        }
        for kill in 0..kills() {
            let (start, before) = (Instant::now(), next.load(Ordering::SeqCst));
            wait_for("some load", || {
                next.load(Ordering::SeqCst) > before + 200 && start.elapsed() >= between_kills()
            });
            let is_writer = kill % 2 == 0;
            let mut victim = None;
            wait_for("a victim", || {
                let writer = writer_of(&served);
                victim = if is_writer { writer } else { served.pids.first().copied() };
                victim.is_some() && writer.is_some()
            });
            signal::kill(victim.unwrap(), Signal::Kill).unwrap();
            if is_writer {
                assert_eq!(served.line(), "writer died");
                continue;
            }
            workers += 1;
            assert!(served.line().starts_with("died "));
            let replaced = served.line();
            let new = replaced.rsplit(' ').next().and_then(|pid| pid.parse().ok());
            served.pids.remove(0);
            served.pids.push(new.unwrap_or_else(|| panic!("{replaced}")));
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let (_, report) = served.stop();
    let text = read_and_remove(&path);
    let (numbers, lines) = (numbers_in(&text), text.lines().count());
    let answered = answered.into_inner().unwrap();
    let missing = answered.difference(&numbers).count();
    let torn_or_twice = lines - numbers.len();
    println!(
        "{log}: {} kills, {workers} of them of workers; {} answered, {missing} without a line, {} lines, {torn_or_twice} twice",
        kills(),
        answered.len(),
        lines
    );
    assert_eq!((missing, torn_or_twice, figure(&report, "log_drops")), (0, 0, 0), "{report}");
}

/// A worker's ring holds 2,500 lines. Four clients ask for fewer than 2,000 in a second: while a writer is killed and comes back on a
/// busy machine, two rings hold what is answered meanwhile for more than two seconds.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(2);

/// The numbers of the requests that were answered on this connection.
fn ask_until_it_dies(mut stream: TcpStream, next: &AtomicUsize, is_over: &AtomicBool) -> Vec<usize> {
    let mut answered = Vec::new();
    stream.set_read_timeout(Some(crate::common::DEADLINE)).unwrap();
    while !is_over.load(Ordering::SeqCst) {
        let number = next.fetch_add(1, Ordering::SeqCst);
        if !is_answered(&mut stream, number) {
            break;
        }
        answered.push(number);
        std::thread::sleep(BETWEEN_REQUESTS);
    }
    answered
}

pub(crate) fn a_reply_waits_for_its_line() {
    let path = temporary("waits.log");
    for fsync in ["false", "true"] {
        let settings = [("log", "commit"), ("log_fsync", fsync), ("log_file", path.to_str().unwrap())];
        let mut served = Served::start(&settings);
        let mut client = Client::connect(served.addr());
        (0..20).for_each(|number| ask(&mut client, number));
        let writer = writer_of(&served).unwrap();
        signal::kill(writer, Signal::Stop).unwrap();
        wait_for("the writer to stop", || crate::served::state(writer) == Some('T'));
        client.send("GET /json?20 HTTP/1.1\r\nHost: a\r\n\r\n");
        wait_for("the request to be answered", || figure(&served.order("counters"), "requests") == 21);
        // Another client is let in and waits too; whoever asks the supervisor is answered.
        let mut other = Client::connect(served.addr());
        other.send("GET /json?21 HTTP/1.1\r\nHost: a\r\n\r\nGET /json?22 HTTP/1.1\r\nHost: a\r\n\r\n");
        wait_for("the others", || figure(&served.order("counters"), "requests") == 23);
        assert_eq!(figure(&served.order("counters"), "sends"), 20, "nothing has left");
        signal::kill(writer, Signal::Cont).unwrap();
        assert_eq!((client.reply().status, other.reply().status, other.reply().status), (200, 200, 200));
        drop((client, other));
        let (status, report) = served.stop();
        assert!(status.success() && report.starts_with("report Wholly"), "{report}");
        assert_eq!(numbers_in(&read_and_remove(&path)), (0..23).collect());
    }
}

/// Nothing leaves whose line cannot be written: where the ring is full connections end without an answer.
pub(crate) fn without_room_for_its_line_nobody_gets_a_reply() {
    let mut served = Served::start(&[("log", "commit"), ("log_file", "/dev/full"), ("drain_ms", "300")]);
    let long = "x".repeat(3_000);
    let mut clients = Vec::new();
    let mut refused = None;
    for number in 0..200 {
        let mut client = Client::connect(served.addr());
        client.send(format!("GET /json?{number}&{long} HTTP/1.1\r\nHost: a\r\n\r\n"));
        wait_for("the request to be seen", || figure(&served.order("counters"), "requests") == number + 1);
        if figure(&served.order("counters"), "log_drops") > 0 {
            refused = Some(client);
            break;
        }
        clients.push(client);
    }
    refused.expect("a ring of 256 KiB is full after 80 such lines").assert_closed();
    assert_eq!(figure(&served.order("counters"), "sends"), 0, "nobody got anything");
    assert_eq!(served.line(), "log trouble: Refused(28)");
    let held = clients.len();
    let (_, report) = served.stop();
    assert!(report.starts_with("report Cut"), "who waits is cut at the end of a drain: {report}");
    assert_eq!(figure(&report, "log_drops") as usize, held + 1, "{report}");
}

pub(crate) fn each_format_is_written_for_whatever_is_answered() {
    for (format, of_json, of_refused) in [
        (
            "combined",
            "\"GET /json HTTP/1.1\" 200 27 \"http://r/\" \"A \\x22B\\x22\"",
            "\"-\" 400 11 \"-\" \"-\"",
        ),
        (
            "json:status,http_user_agent",
            "{\"status\":200,\"http_user_agent\":\"A \\\"B\\\"\"}",
            "{\"status\":400,\"http_user_agent\":null}",
        ),
        ("$status $http_referer", "200 http://r/", "400 -"),
    ] {
        let path = temporary("format.log");
        let settings = [("log", "ring"), ("log_file", path.to_str().unwrap()), ("log_format", format)];
        let mut served = Served::start(&settings);
        let mut client = Client::connect(served.addr());
        let reply =
            client.ask("GET /json HTTP/1.1\r\nHost: a\r\nReferer: http://r/\r\nUser-Agent: A \"B\"\r\n\r\n");
        assert_eq!(reply.status, 200);
        assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a\r\n Folded: yes\r\n\r\n").status, 400);
        drop(client);
        assert!(served.stop().0.success());
        let text = read_and_remove(&path);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 2 && lines[0].ends_with(of_json) && lines[1].ends_with(of_refused), "{text}");
    }
}

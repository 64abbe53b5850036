//! SIGUSR2: the program started anew takes over, or nothing has happened.

use crate::common::{Client, wait_for};
use crate::reload::{Seen, Settings, ask_on};
use crate::served::{Served, is_alive, is_zombie, temporary};
use dyno_sys::Pid;
use dyno_sys::signal::{self, Signal};
use std::fs;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const JSON: &str = "GET /json HTTP/1.1\r\nHost: a\r\n\r\n";

/// Has the program take over: the new process.
fn upgrade(served: &mut Served, master: Pid) -> Pid {
    signal::kill(master, Signal::Usr2).unwrap();
    // Three programs tell at one place: this one, what follows it, which may be ready before this one says so, and what
    // came before it, of its end.
    let mut is_heard = false;
    let new = loop {
        let line = served.line();
        assert!(!line.is_empty() && !line.contains("not handed over"), "{line}");
        is_heard |= served.heard_pids(&line);
        if line.starts_with("handing over ") {
            break number(&line, "handing over ");
        }
    };
    served.successors.push(new);
    if !is_heard {
        served.hear_pids();
    }
    loop {
        let line = served.line();
        assert!(!line.is_empty() && !line.contains("not handed over"), "{line}");
        if line.starts_with("handed over") {
            assert_eq!(line, format!("handed over {new}"));
            return new;
        }
    }
}

fn number(line: &str, before: &str) -> Pid {
    line.strip_prefix(before).unwrap_or_else(|| panic!("{line}")).parse().unwrap()
}

/// Ends what took over; the old program's report is the first in the lines that are left, if it was not heard.
fn end(served: &mut Served, new: Pid) -> Vec<String> {
    signal::kill(new, Signal::Term).unwrap();
    let mut lines = Vec::new();
    loop {
        match served.line() {
            line if line.is_empty() => return lines,
            line => lines.push(line),
        }
    }
}

pub(crate) fn no_request_is_lost_when_a_new_program_takes_over_under_load() {
    for reuseport in ["off", "hash"] {
        let mut served = Served::start(&[("workers", "2"), ("reuseport", reuseport)]);
        let addr = served.addr();
        let (seen, stopped) = (Seen::default(), AtomicBool::new(false));
        let mut master = served.pid();
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| ask_on(addr, Duration::from_millis(2), &stopped, &seen));
            }
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for _ in 0..5 {
                    let before = seen.answered.load(Ordering::Relaxed);
                    master = upgrade(&mut served, master);
                    wait_for("some requests", || seen.answered.load(Ordering::Relaxed) > before + 500);
                }
            }));
            stopped.store(true, Ordering::Relaxed);
            ended.unwrap();
        });
        seen.assert_nothing_lost();
        let lines = end(&mut served, master);
        let reports = lines.iter().filter(|line| line.starts_with("report"));
        assert!(reports.clone().all(|line| line.starts_with("report Wholly")), "{lines:?}");
        assert!(served.child.wait().unwrap().success());
    }
}

/// Asks for a program with settings with which it cannot take over, and sees that all stays.
fn is_refused(settings: &Settings, served: &mut Served, text: &str, why: &str) {
    settings.write(text);
    signal::kill(served.pid(), Signal::Usr2).unwrap();
    // The new one may have said why it ends before this one says that it began.
    let mut lines: Vec<String> = Vec::new();
    while lines.last().is_none_or(|line| !line.starts_with("not handed over")) {
        lines.push(served.line());
        assert_ne!(lines.last().unwrap(), "", "{lines:?}");
    }
    assert_eq!(lines.pop().unwrap(), format!("not handed over: {why}"));
    lines.retain(|line| !line.starts_with("error: "));
    let [begun] = &lines[..] else { panic!("{lines:?}") };
    let new = number(begun, "handing over ");
    wait_for("it to be gone", || !is_alive(new) || is_zombie(new));
    let reply = Client::connect(served.addr()).ask(JSON);
    assert_eq!((reply.status, reply.header("connection")), (200, None));
}

pub(crate) fn a_program_that_cannot_take_over_changes_nothing() {
    {
        let settings = Settings::new("stalls.conf", "");
        let mut served = settings.serve(&[("hand_over_ms", "300")]);
        for _ in 0..2 {
            is_refused(&settings, &mut served, "stall=1\n", "it was not ready in time");
        }
        let pid = served.pid();
        end(&mut served, pid);
    }
    let settings = Settings::new("upgrade.conf", "");
    let mut served = settings.serve(&[]);
    is_refused(&settings, &mut served, "log=loud\n", "it ended: exit status 101");
    is_refused(&settings, &mut served, "log=sync\nlog_file=/nowhere/log\n", "it ended: exit status 2");
    settings.write("");
    let mut client = Client::connect(served.addr());
    assert_eq!(client.ask(JSON).status, 200);
    let pid = served.pid();
    let new = upgrade(&mut served, pid);
    // Who was connected is answered once more, by the old one.
    wait_for("the old worker to hear of it", || client.ask(JSON).header("connection") == Some("close"));
    drop(client);
    assert!(served.child.wait().unwrap().success());
    assert_eq!(Client::connect(served.addr()).ask(JSON).status, 200);
    end(&mut served, new);
}

/// Planted fault: SIGHUP is forgotten while a program starts that is to take over.
pub(crate) fn settings_are_read_again_when_a_program_cannot_take_over() {
    let (settings, hold) = (Settings::new("again.conf", ""), temporary("again.hold"));
    let mut served = settings.serve(&[("hand_over_ms", "300"), ("hold", hold.to_str().unwrap())]);
    fs::write(&hold, "all").unwrap();
    signal::kill(served.pid(), Signal::Usr2).unwrap();
    number(&served.line(), "handing over ");
    settings.write("workers=2\n");
    signal::kill(served.pid(), Signal::Hup).unwrap();
    assert_eq!(served.line(), "not handed over: it was not ready in time");
    fs::remove_file(&hold).unwrap();
    wait_for("another generation", || dyno_sys::proc::tree(served.pid()).len() > 3);
    assert_eq!(served.line(), "reloading");
    served.hear_pids();
    assert!(served.line().starts_with("reloaded 2 2"));
    assert!(served.stop().0.success());
}

/// Planted fault: where the time is over when its word is read, a program that serves is ended.
pub(crate) fn a_program_that_said_in_time_that_it_serves_takes_over_however_late_that_is_heard() {
    const WITHIN: Duration = Duration::from_secs(5);
    let hold = temporary("heard-late.hold");
    let within_ms = WITHIN.as_millis().to_string();
    let mut served = Served::start(&[("hand_over_ms", &within_ms), ("hold", hold.to_str().unwrap())]);
    let master = served.pid();
    fs::write(&hold, "all").unwrap();
    signal::kill(master, Signal::Usr2).unwrap();
    let new = number(&served.line(), "handing over ");
    served.successors.push(new);
    signal::kill(master, Signal::Stop).unwrap();
    fs::remove_file(&hold).unwrap();
    served.hear_ready();
    thread::sleep(WITHIN);
    signal::kill(master, Signal::Cont).unwrap();
    assert_eq!(served.line(), format!("handed over {new}"));
    assert!(served.child.wait().unwrap().success());
    assert_eq!(Client::connect(served.addr()).ask(JSON).status, 200);
    end(&mut served, new);
}

/// Planted fault: only the generation that serves is told to retire. One that starts then, because a supervisor has died, serves on
/// in the place of the new program's, and the old program never ends.
pub(crate) fn a_generation_that_starts_while_a_program_takes_over_retires_too() {
    let hold = temporary("hold");
    let mut served = Served::start(&[("hold", hold.to_str().unwrap())]);
    let (master, supervisor) = (served.pid(), served.supervisor());
    served.order("counters");
    // Both wait, and the new program's first worker is let go first.
    let held = |whom: &str| {
        let fresh = temporary("hold.fresh");
        fs::write(&fresh, whom).unwrap();
        fs::rename(fresh, &hold).unwrap();
    };
    held("all");
    signal::kill(master, Signal::Usr2).unwrap();
    let new = number(&served.line(), "handing over ");
    served.successors.push(new);
    wait_for("the new program's supervisor", || dyno_sys::proc::tree(new).len() > 2);
    signal::kill(supervisor, Signal::Kill).unwrap();
    assert_eq!(served.line(), format!("supervisor died {supervisor} killed by SIGKILL"));
    wait_for("another one of the old program", || {
        let of_both = dyno_sys::proc::tree(master);
        of_both.iter().filter(|pid| !dyno_sys::proc::tree(new).contains(pid)).count() > 2
    });
    held(&master.to_string());
    let mut heard = Vec::new();
    while heard.last().is_none_or(|line| *line != format!("handed over {new}")) {
        heard.push(served.line());
        assert!(heard.last() != Some(&String::new()), "{heard:?}");
    }
    fs::remove_file(&hold).unwrap();
    wait_for("the old program to end", || served.child.try_wait().unwrap().is_some());
    assert!(served.child.wait().unwrap().success());
    assert_eq!(Client::connect(served.addr()).ask(JSON).status, 200);
    end(&mut served, new);
}

pub(crate) fn a_new_program_gets_the_sockets_and_nothing_else() {
    let (path, secret) = (temporary("upgrade.sock"), temporary("upgrade.secret"));
    fs::write(&secret, "x").unwrap();
    let words = [("addr", &*format!("unix:{}", path.display())), ("extra", secret.to_str().unwrap())];
    let mut served = Served::start(&words);
    let holds = |pid: Pid, what: &str| {
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        fds.filter_map(|fd| fs::read_link(fd.unwrap().path()).ok()).any(|link| link.to_str() == Some(what))
    };
    let pid = served.pid();
    assert!(holds(pid, secret.to_str().unwrap()), "it was left open on purpose");
    let new = upgrade(&mut served, pid);
    assert!(!holds(new, secret.to_str().unwrap()));
    assert!(served.child.wait().unwrap().success());
    assert!(UnixStream::connect(&path).is_ok(), "the socket's file is the new program's");
    end(&mut served, new);
    assert!(!path.exists(), "which takes it away");
    fs::remove_file(secret).unwrap();
}

//! The tracer against live programs: `cat` makes one read and one write per line.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::Pid;
use crate::child::{self, Exit, Wait};
use crate::signal::{Signal, kill};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A program that answers each line, killed and waited for at the end.
struct Echo {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Echo {
    fn new(program: &[&str]) -> Echo {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Echo { child, input, output }
    }

    fn pid(&self) -> Pid {
        self.child.id().cast_signed()
    }

    fn exchange(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).unwrap();
        assert_eq!(self.read_line(), line);
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline_ns = mono_ns() + 10_000_000_000;
    while !holds() {
        assert!(mono_ns() < deadline_ns, "in 10 s never: {what}");
        sleep_ns(1_000_000);
    }
}

fn is_untraced(pid: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    crate::proc::parse_status_field(&status, "TracerPid") == Some("0")
}

fn count(counts: &Counts, name: &str) -> u64 {
    counts.get(name).copied().unwrap_or(0)
}

#[test]
fn a_read_and_a_write_are_counted_for_each_line() {
    let mut echo = Echo::new(&["cat"]);
    echo.exchange("before\n");
    let tid = echo.pid();
    let counts = count_syscalls(&[tid], &mut || (0..20).for_each(|_| echo.exchange("line\n"))).unwrap();
    assert_eq!(count(&counts, "write"), 20, "{counts:?}");
    // The read in which it waited at the start may or may not be entered again, and the last one has begun.
    assert!((20..=22).contains(&count(&counts, "read")), "{counts:?}");
    assert!(is_untraced(tid));
    echo.exchange("after\n");
}

#[test]
fn several_processes_are_counted_together_also_grandchildren() {
    // Two commands, so that the shell stays and cat is its child.
    let (mut one, mut two) = (Echo::new(&["cat"]), Echo::new(&["sh", "-c", "cat; true"]));
    one.exchange("x\n");
    two.exchange("x\n");
    let grandchild = *crate::proc::tree(two.pid()).last().unwrap();
    assert_ne!(grandchild, two.pid());
    let (tids, family) = ([one.pid(), two.pid(), grandchild], [two.pid(), grandchild]);
    let mut both = || {
        (0..10).for_each(|_| one.exchange("line\n"));
        (0..5).for_each(|_| two.exchange("line\n"));
    };
    let counts = count_syscalls(&tids, &mut both).unwrap();
    assert_eq!(count(&counts, "write"), 15, "{counts:?}");
    let counts = count_syscalls(&family, &mut both).unwrap();
    assert_eq!(count(&counts, "write"), 5, "{counts:?}");
}

#[test]
fn a_target_that_ends_keeps_its_count_and_its_exit_for_its_parent() {
    let mut echo = Echo::new(&["cat"]);
    echo.exchange("x\n");
    let tid = echo.pid();
    let counts = count_syscalls(&[tid], &mut || {
        (0..5).for_each(|_| echo.exchange("line\n"));
        kill(tid, Signal::Kill).unwrap();
        until("the target is a zombie", || crate::proc::stat(tid).unwrap().state == 'Z');
    });
    assert_eq!(count(&counts.unwrap(), "write"), 5);
    assert_eq!(child::wait(tid, Wait::Block).unwrap(), Some(Exit::Signal(libc::SIGKILL)));
}

#[test]
fn signals_reach_a_traced_target() {
    let mut echo =
        Echo::new(&["sh", "-c", "trap 'echo got; exit 3' USR1; echo ready; while :; do read x; done"]);
    assert_eq!(echo.read_line(), "ready\n");
    let tid = echo.pid();
    count_syscalls(&[tid], &mut || {
        kill(tid, Signal::Usr1).unwrap();
        assert_eq!(echo.read_line(), "got\n");
    })
    .unwrap();
    assert_eq!(child::wait(tid, Wait::Block).unwrap(), Some(Exit::Code(3)));
}

#[test]
fn a_stopped_target_stays_stopped_until_it_is_continued() {
    let mut echo = Echo::new(&["cat"]);
    echo.exchange("x\n");
    let tid = echo.pid();
    let state = || crate::proc::stat(tid).unwrap().state;
    kill(tid, Signal::Stop).unwrap();
    until("it stops", || state() == 'T');
    count_syscalls(&[tid], &mut || {}).unwrap();
    assert!(is_untraced(tid));
    until("it is stopped still", || state() == 'T');
    let counts = count_syscalls(&[tid], &mut || {
        kill(tid, Signal::Cont).unwrap();
        echo.exchange("line\n");
    });
    assert_eq!(count(&counts.unwrap(), "write"), 1);
}

#[test]
fn what_cannot_be_traced_is_named_and_nothing_runs() {
    let mut ran = false;
    let refused = count_syscalls(&[i32::MAX - 1], &mut || ran = true).unwrap_err();
    assert!(matches!(refused, TraceError::Attach { tid, .. } if tid == i32::MAX - 1), "{refused}");
    assert!(!ran);
}

#[test]
fn one_refusal_lets_go_of_the_others() {
    let mut echo = Echo::new(&["cat"]);
    echo.exchange("x\n");
    assert!(count_syscalls(&[echo.pid(), i32::MAX - 1], &mut || {}).is_err());
    assert!(is_untraced(echo.pid()));
    echo.exchange("y\n");
}

#[test]
fn a_panic_meanwhile_lets_go() {
    let mut echo = Echo::new(&["cat"]);
    echo.exchange("x\n");
    let tid = echo.pid();
    let panicking = std::panic::catch_unwind(|| count_syscalls(&[tid], &mut || panic!("on purpose")));
    assert!(panicking.is_err() && is_untraced(tid));
    echo.exchange("y\n");
}

#[test]
fn calls_are_watched_with_what_they_are_made_on_and_what_they_answer() {
    let mut cat = Echo::new(&["cat"]);
    let pid = cat.pid();
    let mut during = || (0..30).for_each(|_| cat.exchange("four\n"));
    let seen = watch_syscalls(&[pid], 1_000, &mut during).unwrap();
    let of = |name: &str, fd| {
        seen.iter().filter(|call| call.name == name && call.first == fd && call.answer == 5).count()
    };
    assert!(of("read", 0) >= 29 && of("write", 1) >= 29, "{seen:?}");
    assert!(seen.iter().all(|call| call.tid == pid));
    until("it runs on untraced", || is_untraced(pid));
    let few = watch_syscalls(&[pid], 7, &mut || (0..30).for_each(|_| cat.exchange("x\n"))).unwrap();
    assert_eq!(few.len(), 7, "and all thirty lines were answered");
}

#[test]
fn a_filter_of_another_is_read_as_it_was_written_and_it_runs_on() {
    if crate::user::current().0 != 0 {
        return;
    }
    let (tell, told) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    // A thread cannot be traced by its own process: the filtered one is a program that inherits the filter.
    let thread = std::thread::spawn(move || {
        child::no_new_privs().unwrap();
        crate::seccomp::weigh_down().unwrap();
        tell.send(Echo::new(&["cat"])).unwrap();
        let _ = ended.recv();
    });
    let mut cat = told.recv().unwrap();
    cat.exchange("one\n");
    match filters_of(cat.pid()) {
        Ok(filters) => {
            assert_eq!(filters.len(), 1);
            assert_eq!(filters[0].len(), 102, "a look, a hundred comparisons, an answer");
        }
        Err(TraceError::Filters { source, .. }) => {
            assert!(source.raw_os_error().is_some(), "a kernel that cannot tell them: {source}");
        }
        Err(error) => panic!("{error}"),
    }
    cat.exchange("two\n");
    until("it runs on untraced", || is_untraced(cat.pid()));
    drop(end);
    thread.join().unwrap();
}

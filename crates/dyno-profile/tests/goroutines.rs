//! What goroutines wait for, of a program whose goroutines do what they do all the time: with its table of symbols, stripped of
//! it, and stripped where it may lie anywhere.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used)]

mod common;

use common::Running;
use dyno_profile::goroutines::{Goroutines, Seen, all_below, below, is_mutex};
use dyno_sys::clock::sleep_ns;
use dyno_sys::signal::{self, Signal};
use dyno_sys::{Pid, proc};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Looks at it, and the time between them: a second in all, of which the holder sleeps some fifty times.
const LOOKS: u32 = 40;
const APART_NS: u64 = 25_000_000;

fn seen(pid: Pid) -> Seen {
    let mut looked = None;
    // Its run-time makes the list a moment after it has begun.
    common::wait_for("its goroutines can be seen", || {
        looked = Goroutines::of(pid).ok().flatten();
        looked.is_some()
    });
    let mut looked = looked.unwrap();
    // And its own ones stand where they stand from then on.
    common::wait_for("two of them hear nothing", || {
        let mut one = Goroutines::of(pid).unwrap().unwrap();
        one.look();
        one.finish().is_some_and(|seen| seen.states.get("chan receive").is_some_and(|many| *many > 1.5))
    });
    for _ in 0..LOOKS {
        sleep_ns(APART_NS);
        looked.look();
    }
    looked.finish().unwrap()
}

/// Four of five goroutines stand at a mutex, two hear nothing, and each has its name.
#[track_caller]
fn is_known(seen: &Seen) {
    let at_mutexes: f64 = seen.states.iter().filter(|(state, _)| is_mutex(state)).map(|(_, many)| many).sum();
    // One of five holds it. At a look it may just be handing it over.
    assert!(seen.looks >= LOOKS / 2 && (3.0..4.6).contains(&at_mutexes), "{seen:?}");
    let hears = seen.states.get("chan receive").copied().unwrap_or(0.0);
    assert!((1.9..2.1).contains(&hears), "{seen:?}");
    let held_in = seen.at_mutexes.get("main.holdsInTurn").copied().unwrap_or(0.0);
    assert!(held_in > 3.0, "{seen:?}");
    assert!(seen.places.iter().any(|place| place.stack.contains("main.hears")), "{seen:?}");
}

/// A process that ends with the test, and what it began with it.
struct Ending(Child);

impl Ending {
    fn begin(command: &mut Command) -> Ending {
        Ending(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> Pid {
        self.0.id().cast_signed()
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        for pid in proc::tree(self.pid()).into_iter().rev() {
            let _ = signal::kill(pid, Signal::Kill);
        }
        let _ = self.0.wait();
    }
}

/// The program of another one without its symbols.
fn stripped(running: &Running) -> Ending {
    let file = running.folder.join("stripped");
    let stripped = Command::new("strip").arg("-o").arg(&file).arg(running.folder.join("program")).status();
    assert!(stripped.unwrap().success());
    Ending::begin(&mut Command::new(file))
}

/// Planted faults: a stripped program is not searched (`place::find` without `by_code`); what its code uses is looked for without
/// what the loader moved it by (then one that may lie anywhere is not found); `symbol::table` without what Go's run-time knows
/// (then no place has a name).
#[test]
fn a_stripped_go_program_shows_its_goroutines_as_one_with_symbols_does() {
    let Some(whole) = Running::start("go", &["build"], "mutexed.go", &[]) else { return };
    is_known(&seen(whole.pid()));
    is_known(&seen(stripped(&whole).pid()));
    let flags = ["build", "-ldflags=-s -w", "-buildmode=pie"];
    is_known(&seen(Running::start("go", &flags, "mutexed.go", &[]).unwrap().pid()));
}

/// The Go program that is looked at for one that is named, once it is of this name.
fn named_below(wrapper: &Ending, name: &str) -> Pid {
    let mut found = None;
    common::wait_for("the program below is the one that is at work", || {
        found = below(wrapper.pid());
        let file = found.and_then(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).ok());
        file.is_some_and(|file| file.file_name() == Path::new(name).file_name())
    });
    found.unwrap()
}

/// Planted fault: only what is named is asked. Who of several is at work is a test of its own, beside the code.
#[test]
fn the_go_program_below_a_wrapper_is_the_one_that_is_looked_at() {
    let Some(whole) = Running::start("go", &["build"], "mutexed.go", &[]) else { return };
    let shell =
        Ending::begin(Command::new("sh").args(["-c", "\"$0\"; true"]).arg(whole.folder.join("program")));
    is_known(&seen(named_below(&shell, "program")));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/known/mutexed.go");
    let mut run = Command::new("go");
    run.arg("run").arg(source).env("GOCACHE", whole.folder.join("cache")).env("GOFLAGS", "-mod=mod");
    is_known(&seen(named_below(&Ending::begin(&mut run), "mutexed")));
}

/// Planted fault: of several the one that is at work is all that there is of Go.
#[test]
fn all_go_programs_below_a_wrapper_are_known_as_such() {
    let Some(whole) = Running::start("go", &["build"], "mutexed.go", &[]) else { return };
    let program = whole.folder.join("program");
    let shell = Ending::begin(Command::new("sh").args(["-c", "\"$0\" & \"$0\" & sleep 900"]).arg(program));
    common::wait_for("both are there", || all_below(shell.pid()).len() == 2);
    let all = all_below(shell.pid());
    assert!(below(shell.pid()).is_some_and(|at_work| all.contains(&at_work)), "{all:?}");
}

//! A test harness of one thread, for tests that fork, and what they share. Speaks the part of libtest's command line
//! that people use: filters, `--exact`, `--list`, `--ignored`, `--include-ignored`.
#![allow(clippy::unwrap_used, dead_code)]

use dyno_sys::child::{self, Exit, Wait};
use dyno_sys::keeper::{Keeper, KeeperError, Launch};
use dyno_sys::{Pid, clock, proc};
use std::cell::Cell;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) type Test = (&'static str, fn());

/// Plain tests; the process becomes a subreaper, so that a test can see that nothing was left behind.
pub(crate) fn run(tests: &[Test]) -> ExitCode {
    run_those(tests, None)
}

/// Tests that are passed over unless asked for, with the reason.
pub(crate) fn run_ignored(tests: &[Test], why: &str) -> ExitCode {
    run_those(tests, Some(why))
}

fn run_those(tests: &[Test], ignored: Option<&str>) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| words.iter().any(|word| word == flag);
    let filters: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let matches = |name: &str| {
        let fits =
            |filter: &&String| if has("--exact") { name == **filter } else { name.contains(filter.as_str()) };
        filters.is_empty() || filters.iter().any(fits)
    };
    let chosen: Vec<&Test> = tests.iter().filter(|test| matches(test.0)).collect();
    if has("--list") {
        chosen.iter().for_each(|test| println!("{}: test", test.0));
        return ExitCode::SUCCESS;
    }
    let skip = match ignored {
        Some(_) => !has("--ignored") && !has("--include-ignored"),
        None => has("--ignored"),
    };
    child::become_subreaper().unwrap();
    let failed = chosen.iter().filter(|test| !passes(test, skip, ignored)).count();
    println!("\n{} tests, {failed} failed{}", chosen.len(), if skip { ", passed over" } else { "" });
    ExitCode::from(u8::from(failed > 0))
}

fn passes(&(name, body): &Test, skip: bool, ignored: Option<&str>) -> bool {
    if skip {
        println!("test {name} ... ignored{}", ignored.map(|why| format!(", {why}")).unwrap_or_default());
        return true;
    }
    let ok = catch_unwind(|| {
        body();
        nothing_is_left();
    })
    .is_ok();
    println!("test {name} ... {}", if ok { "ok" } else { "FAILED" });
    ok
}

/// Every test ends with this: whatever was started has ended, daemons included.
pub(crate) fn nothing_is_left() {
    until("no process is left", || {
        while child::wait_any().is_some() {}
        proc::tree(child::this()).len() == 1
    });
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline_ns = clock::mono_ns() + 20_000_000_000;
    while !holds() {
        assert!(clock::mono_ns() < deadline_ns, "in 20 s never: {what}");
        clock::sleep_ns(1_000_000);
    }
}

pub(crate) fn is_alive(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    proc::parse_stat(&stat).is_some_and(|stat| stat.state != 'Z')
}

/// A folder of one test, gone at its end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        thread_local!(static NEXT: Cell<u32> = const { Cell::new(0) });
        let number = NEXT.replace(NEXT.get() + 1);
        let path = std::env::temp_dir().join(format!("dyno-sys-test-{}-{number}", child::this()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// A launch of a shell script, in this folder, with its output in the file `output`.
    pub(crate) fn sh(&self, script: &str) -> Launch {
        self.program(&["sh", "-c", script])
    }

    pub(crate) fn program(&self, argv: &[&str]) -> Launch {
        Launch {
            argv: argv.iter().map(Into::into).collect(),
            env: vec![],
            cwd: Some(self.0.clone()),
            cpus: None,
            output: append(&self.path("output")),
            inherit: vec![],
            user: None,
        }
    }

    /// The numbers that a script has written to a file, once there are `count`.
    pub(crate) fn pids(&self, name: &str, count: usize) -> Vec<Pid> {
        let read = || self.text(name).lines().filter_map(|line| line.parse().ok()).collect::<Vec<Pid>>();
        until(&format!("{count} numbers in {name}"), || read().len() >= count);
        read()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn append(path: &Path) -> OwnedFd {
    File::options().create(true).append(true).open(path).unwrap().into()
}

pub(crate) fn launch(keeper: &Keeper, launch: &Launch) -> Result<Pid, KeeperError> {
    let held = keeper.hold(launch)?;
    keeper.release(held)
}

/// The one exit that is reported next.
pub(crate) fn next_exit(keeper: &Keeper) -> (Pid, Exit) {
    let mut seen = Vec::new();
    until("an exit is reported", || {
        seen.extend(keeper.exits());
        !seen.is_empty()
    });
    assert_eq!(seen.len(), 1, "{seen:?}");
    seen[0]
}

/// Runs `life` as dyno in a process of its own, which kills itself when `life` returns: no destructor of dyno's runs.
pub(crate) fn as_dyno_killed(life: impl FnOnce()) {
    let pid = child::fork(|| {
        life();
        dyno_sys::signal::kill(child::this(), dyno_sys::signal::Signal::Kill).unwrap();
        unreachable!("SIGKILL has no answer")
    });
    let exit = child::wait(pid.unwrap(), Wait::Block).unwrap();
    assert_eq!(exit, Some(Exit::Signal(9)), "dyno was to die by its own hand only");
}

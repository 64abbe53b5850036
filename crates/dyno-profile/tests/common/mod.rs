//! Programs of `known/`: built in a folder of their own, started in it, and ended with the test.
//!
//! Every test that watches such a program begins here. What a program should show is the test's own to know.

pub(crate) mod watching;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use dyno_sys::signal::{self, Signal};
use dyno_sys::{Pid, clock, proc};

/// Nothing here takes longer unless it is broken.
const DEADLINE: Duration = Duration::from_secs(60);

/// Between looks at whether it is so.
const LOOK_NS: u64 = 1_000_000;

/// A program that runs; it ends with this value, its children with it, and its folder goes.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// Where it was built and runs: `program` and what it writes.
    pub(crate) folder: PathBuf,
}

impl Running {
    /// Builds a source of `known/` and starts it; `None` when the compiler is not there.
    #[allow(dead_code, reason = "asked by some of the tests that share it")]
    pub(crate) fn start(compiler: &str, flags: &[&str], source: &str, words: &[&str]) -> Option<Running> {
        Running::start_by(None, (compiler, flags, source), words)
    }

    /// The same in a session of its own.
    #[allow(dead_code, reason = "asked by some of the tests that share it")]
    pub(crate) fn start_apart(
        compiler: &str,
        flags: &[&str],
        source: &str,
        words: &[&str],
    ) -> Option<Running> {
        Running::start_by(Some("setsid"), (compiler, flags, source), words)
    }

    fn start_by(
        by: Option<&str>,
        (compiler, flags, source): (&str, &[&str], &str),
        words: &[&str],
    ) -> Option<Running> {
        let folder = folder();
        if !is_built(compiler, flags, source, &folder) {
            let _ = fs::remove_dir_all(&folder);
            return None;
        }
        let program = folder.join("program");
        let mut command = Command::new(by.map_or(program.as_path(), Path::new));
        command
            .args(by.map(|_| &program))
            .args(words)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let running = Running { child: command.spawn().unwrap(), folder };
        let wanted = program.canonicalize().unwrap();
        let exe = format!("/proc/{}/exe", running.pid());
        // Until it has begun, it is still a copy of this process.
        wait_for("the program begins", || fs::read_link(&exe).is_ok_and(|file| file == wanted));
        Some(running)
    }

    pub(crate) fn pid(&self) -> Pid {
        self.child.id().cast_signed()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for pid in proc::tree(self.pid()).into_iter().rev() {
            let _ = signal::kill(pid, Signal::Kill);
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Looks again and again until it is so.
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
        clock::sleep_ns(LOOK_NS);
    }
}

fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("dyno-known-{}-{number}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

/// Whether there is a compiler for it: a source that it does not take is a failure.
fn is_built(compiler: &str, flags: &[&str], source: &str, folder: &Path) -> bool {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/known").join(source);
    let mut build = Command::new(compiler);
    build.args(flags).arg("-o").arg(folder.join("program")).arg(from);
    // Go wants a place for what it keeps, and a home is not everywhere.
    build.env("GOCACHE", folder.join("cache")).env("GOFLAGS", "-mod=mod");
    let Ok(status) = build.status() else {
        println!("no {compiler} here: {source} is not tried");
        return false;
    };
    assert!(status.success(), "{compiler} does not build {source}");
    true
}

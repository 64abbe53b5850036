//! `dyno tune` and the host's mode of huge pages: written and read back through its brackets, shown by new memory, put back.
//!
//! The mode is the whole host's, and is as it was found when a test ends, however it ends.
#![allow(clippy::unwrap_used)]

mod common;

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{Ended, Folder};
use dyno_sys::knob;

/// It reads `always madvise [never]`, and takes one of these words.
const MODE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

static ALONE: Mutex<()> = Mutex::new(());

/// The host as somebody left it who wants no huge pages; as it was at the end.
struct Never {
    before: Vec<u8>,
    folder: Folder,
    _alone: MutexGuard<'static, ()>,
}

impl Never {
    fn new(name: &str) -> Never {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, folder) = (knob::read(MODE).unwrap(), Folder::new(name));
        let host = Never { before, folder, _alone };
        knob::write(MODE, b"never").unwrap();
        host
    }

    /// A command behind others, with the journal of this test and a /run of its own, where the lock is.
    fn tune(&self, under: &str, words: &str) -> Command {
        let dyno = env!("CARGO_BIN_EXE_dyno");
        let state = self.folder.path("state").display().to_string();
        let under = under.replace("DYNO", dyno);
        let script = format!("mount -t tmpfs tmpfs /run && exec {under} {dyno} tune {words} --state {state}");
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn told(&self, under: &str, words: &str) -> String {
        let ended = Ended::of(self.tune(under, words).spawn().unwrap());
        ended.done().split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Drop for Never {
    fn drop(&mut self) {
        knob::put_back(MODE, &self.before).unwrap();
    }
}

fn stands(word: &str) -> bool {
    knob::holds(MODE, word.as_bytes()).unwrap()
}

/// Planted faults: the file is read again in place of new memory; then a process that may have no huge pages is told that they are in
/// force. Or what is put back is all that was read; then the kernel refuses the three words.
#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, writes to /sys"]
fn huge_pages_are_shown_by_new_memory_and_put_back_by_their_word() {
    let host = Never::new("tune-pages");
    let applied = host.told("", "apply host.thp --yes");
    assert!(
        stands("madvise") && applied.contains("in force: new memory that asks for it (madvise)"),
        "{applied}"
    );
    assert!(applied.contains("that of before stays as it was"), "{applied}");
    let status = host.told("DYNO netlab under --pages small --", "status");
    assert!(status.contains("written, not in force") && status.contains("off for this process"), "{status}");
    host.told("", "rollback --yes");
    assert!(stands("never"));
}

/// Planted fault: it is written before the journal has its line; then nobody knows of it.
#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, writes to /sys"]
fn a_mode_that_a_killed_tune_wrote_is_put_back_at_once_or_by_the_next_one() {
    let host = Never::new("tune-pages-killed");
    let mut child = host.tune("", "apply host.thp --yes").spawn().unwrap();
    common::wait_for("it is written", || stands("madvise"));
    child.kill().unwrap();
    child.wait().unwrap();
    host.told("", "rollback --yes");
    assert!(stands("never"));
}

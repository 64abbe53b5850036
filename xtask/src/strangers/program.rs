//! One program with its load: started by its script, and ended with all that the script started.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::command;
use crate::server::free_addr;
use crate::trouble::Trouble;

use super::guard::{END_MAX, Guard};

/// What is started: the script with its word, and a folder's name that nobody else has.
pub(crate) struct Start<'a> {
    pub(crate) name: &'a str,
    pub(crate) script: &'a str,
    pub(crate) variant: &'a str,
}

/// Between looks at what the script has said.
const LOOK: Duration = Duration::from_millis(50);
/// How long a program may take until it says whom to look at: what a compiler builds first takes its time.
const START_MAX: Duration = Duration::from_secs(150);

/// A program at work; dropping it ends it.
pub(crate) struct Program {
    script: Child,
    /// Ends it where we cannot; none until it is started, and none any more once the script has ended.
    guard: Option<Guard>,
    pid: u32,
    /// What the script said until it named the process.
    said: String,
    folder: PathBuf,
}

impl Program {
    /// Starts the script, and waits until it names the process to look at.
    pub(crate) fn start(scripts: &Path, scratch: &Path, start: &Start<'_>) -> Result<Program, Trouble> {
        let folder = scratch.join(start.name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(Trouble::cannot(format!("make {}", folder.display())))?;
        let said = folder.join("said");
        let out = File::create(&said).map_err(Trouble::cannot(format!("write {}", said.display())))?;
        let again = out.try_clone().map_err(Trouble::cannot(format!("write {}", said.display())))?;
        let mut words = Command::new("bash");
        words.arg(scripts.join(start.script)).arg(start.variant);
        words.arg(free_addr()?.port().to_string()).arg(&folder).env("GOCACHE", scratch.join("go"));
        // A group of its own: what the script loses track of is ended with it.
        let spawned = words.stdin(Stdio::null()).stdout(out).stderr(again).process_group(0).spawn();
        let script = spawned.map_err(Trouble::cannot(format!("run {}", start.script)))?;
        let mut program = Program { script, guard: None, pid: 0, said: String::new(), folder };
        program.guard = Some(Guard::of(program.script.id())?);
        (program.pid, program.said) = program.wait_for_pid(&said)?;
        Ok(program)
    }

    /// Whom to look at.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// What stands behind this word at the beginning of a line that the script said.
    pub(crate) fn said(&self, word: &str) -> impl Iterator<Item = &str> {
        self.said.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '))
    }

    /// Stops it with its load, where they stand.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    /// Lets them go on.
    pub(crate) fn go_on(&self) {
        self.signal("-CONT");
    }

    /// Ends it, as dropping does.
    pub(crate) fn end(self) {}

    fn wait_for_pid(&mut self, said: &Path) -> Result<(u32, String), Trouble> {
        let deadline = Instant::now() + START_MAX;
        loop {
            let text = std::fs::read_to_string(said).unwrap_or_default();
            if let Some(pid) = text.lines().find_map(|line| line.strip_prefix("pid ")?.parse().ok()) {
                return Ok((pid, text));
            }
            let ended = matches!(self.script.try_wait(), Ok(Some(_)));
            if ended || Instant::now() > deadline {
                return Err(Trouble::new("it did not start").likely(text.trim()));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn signal(&self, signal: &str) {
        let group = format!("-{}", self.script.id());
        let _ = command(["kill", signal, "--", &group]).stderr(Stdio::null()).status();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Who was paused hears nothing.
        self.go_on();
        // The script first: it ends servers in the order in which they can be ended.
        let _ = command(["kill", "-TERM", &self.script.id().to_string()]).stderr(Stdio::null()).status();
        let deadline = Instant::now() + END_MAX;
        while matches!(self.script.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
        self.signal("-KILL");
        // Before its group's number may be another's.
        self.guard = None;
        let _ = self.script.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_cgroup_whose_quota_cannot_be_written_is_not_left_behind() {
        let folder = std::env::temp_dir().join(format!("xtask-program-{}", std::process::id()));
        let group = folder.join("group");
        std::fs::create_dir_all(&folder).unwrap();
        let common = Path::new(env!("CARGO_MANIFEST_DIR")).join("strangers/common.sh");
        let made = format!("group={0}\nmkdir $group && echo made && exit 1", group.display());
        std::fs::write(folder.join("x.sh"), format!(". {}\n{made}\n", common.display())).unwrap();
        let start = Start { name: "x", script: "x.sh", variant: "quota" };
        let trouble = Program::start(&folder, &folder, &start).err().unwrap().to_string();
        let is_left = group.is_dir();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(trouble.contains("made") && !is_left, "{trouble}");
    }
}

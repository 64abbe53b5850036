//! One program with its load: started by its script, and ended with all that the script started.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::command;
use crate::server::free_addr;
use crate::trouble::Trouble;

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
/// How long a script may take to end what it started.
const END_MAX: Duration = Duration::from_secs(10);

/// A program at work; dropping it ends it.
pub(crate) struct Program {
    script: Child,
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
        let mut program = Program { script, pid: 0, said: String::new(), folder };
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
        let _ = self.script.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

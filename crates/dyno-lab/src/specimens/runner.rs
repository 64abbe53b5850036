//! Programs run under the keeper: compilers, and the specimens themselves. None outlives dyno, whatever happens to it.
//!
//! A program's output goes to a file without a name; it is read while the program runs, for the word that it is ready.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use dyno_sys::Pid;
use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::keeper::{Keeper, KeeperError, Launch};

use crate::failure::Failure;
use crate::failure::chain;
use crate::file::refused;
use crate::launch::load::{LoadCommand, LoadProcess};
use crate::launch::{Exits, Interrupt};

/// Between two looks at a program: a thousandth of the shortest run that is worth measuring.
const LOOK_NS: u64 = 1_000_000;
/// How long a program may take to end in good order; a virtual machine of Java prints its line in its own time.
const GRACE_NS: u64 = 5_000_000_000;
/// Bytes of a program's output that are looked at: the end of a compiler's complaint, and all of a specimen's.
const TAIL_BYTES: u64 = 4_096;

/// Starts programs, and knows whether the user wants to stop.
pub struct Runner {
    keeper: Keeper,
    interrupt: Interrupt,
    exits: Exits,
    started: u64,
}

/// A program that was started.
pub struct Running {
    /// Its process.
    pub pid: Pid,
    name: String,
    output: File,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Halt {
    /// The user wants to stop.
    Interrupted,
    /// It went wrong.
    Failed(Failure),
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Halt {
        Halt::Failed(failure)
    }
}

impl Runner {
    /// Starts the keeper, while this process has one thread, and takes the signals.
    pub fn new() -> Result<Runner, Failure> {
        let keeper =
            Keeper::start().map_err(|error| Failure::error("cannot start the keeper").because(&error))?;
        let interrupt =
            Interrupt::listen().map_err(|error| Failure::error("cannot receive signals").because(&error))?;
        Ok(Runner { keeper, interrupt, exits: Exits::default(), started: 0 })
    }

    /// Starts a program in a folder.
    pub fn start(&mut self, argv: &[String], env: &[(&str, &str)], cwd: &Path) -> Result<Running, Failure> {
        let name = argv.join(" ");
        let output = self.output_in(cwd)?;
        let copy = output.try_clone().map_err(|error| cannot_start(&name).because(&error))?;
        let launch = Launch {
            argv: argv.iter().map(Into::into).collect(),
            env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: Some(cwd.to_owned()),
            cpus: None,
            output: copy.into(),
            inherit: Vec::new(),
            user: None,
        };
        let failed = |error: KeeperError| cannot_start(&name).because(&error);
        let held = self.keeper.hold(&launch).map_err(failed)?;
        // The kernel gives numbers again: how an earlier program of this one ended is not how this one does.
        self.exits.begin(&self.keeper, held.pid());
        let pid = self.keeper.release(held).map_err(failed)?;
        Ok(Running { pid, name, output })
    }

    /// Waits until the program has printed a line that begins like this; the line.
    pub fn wait_for_line(&mut self, running: &Running, start: &str, ns_max: u64) -> Result<String, Halt> {
        let deadline = mono_ns().saturating_add(ns_max);
        loop {
            let text = running.printed();
            // A line that is not ended yet may go on.
            let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            if let Some(line) = whole.map(str::trim_end).find(|line| line.starts_with(start)) {
                return Ok(line.to_owned());
            }
            if let Some(how) = self.exit_of(running.pid) {
                return Err(running.trouble(&format!("ended too early ({how})")).into());
            }
            self.wait_a_little(running, deadline)?;
        }
    }

    /// Waits for the program's end: how it ended, and what it printed.
    pub fn end_of(&mut self, running: &Running, ns_max: u64) -> Result<(String, String), Halt> {
        let deadline = mono_ns().saturating_add(ns_max);
        loop {
            if let Some(how) = self.exit_of(running.pid) {
                return Ok((how, running.printed()));
            }
            self.wait_a_little(running, deadline)?;
        }
    }

    /// Ends a program in good order; what it printed.
    pub fn stop(&mut self, running: &Running) -> Result<String, Failure> {
        let stopped = self.keeper.stop(running.pid, GRACE_NS);
        stopped.map_err(|error| running.trouble(&format!("would not end: {}", chain(&error))))?;
        Ok(running.printed())
    }

    /// Starts the load beside experiments.
    pub(super) fn start_load(&mut self, command: &LoadCommand) -> Result<LoadProcess, Failure> {
        LoadProcess::start(&self.keeper, &mut self.exits, command)
    }

    /// Ends it.
    pub(super) fn stop_load(&mut self, load: &LoadProcess) -> Result<(), Failure> {
        load.stop(&self.keeper).map_err(|error| load.trouble(&format!("would not end: {}", chain(&error))))
    }

    /// Whether the user wants to stop.
    pub fn interrupted(&self) -> bool {
        self.interrupt.seen()
    }

    fn wait_a_little(&mut self, running: &Running, deadline: u64) -> Result<(), Halt> {
        if self.interrupted() {
            return Err(Halt::Interrupted);
        }
        if mono_ns() > deadline {
            let _ = self.keeper.stop(running.pid, 0);
            return Err(running.trouble("took too long and was stopped").into());
        }
        sleep_ns(LOOK_NS);
        Ok(())
    }

    fn exit_of(&mut self, pid: Pid) -> Option<String> {
        self.exits.of(&self.keeper, pid)
    }

    fn output_in(&mut self, folder: &Path) -> Result<File, Failure> {
        self.started += 1;
        let path = folder.join(format!(".output-{}-{}", std::process::id(), self.started));
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).create_new(true).open(&path);
        let file = opened.map_err(|error| refused("cannot keep a program's output", &error))?;
        // The name is not needed any more: the file lives as long as somebody holds it.
        let _ = fs::remove_file(&path);
        Ok(file)
    }
}

impl Running {
    /// The end of what it has printed so far.
    fn printed(&self) -> String {
        let bytes = self.output.metadata().map_or(0, |file| file.len());
        let from = bytes.saturating_sub(TAIL_BYTES);
        let mut tail = vec![0; (bytes - from) as usize];
        let read = self.output.read_at(&mut tail, from).unwrap_or(0);
        String::from_utf8_lossy(&tail[..read]).into_owned()
    }

    /// Something about this program, with the end of its output.
    pub fn trouble(&self, what: &str) -> Failure {
        let failure = Failure::error(format!("{} {what}", self.name));
        match self.printed().trim() {
            "" => failure.likely("it printed nothing"),
            words => failure.likely(format!("it printed: {words}")),
        }
    }
}

fn cannot_start(name: &str) -> Failure {
    Failure::error(format!("cannot start {name}"))
}

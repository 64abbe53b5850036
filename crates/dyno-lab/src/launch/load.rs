//! The load beside experiments: `dyno load` as a process of its own, for `dyno causal`, climbs and specimens.
//!
//! Whoever else watches a target loads it from threads of this process (`dyno_load::Beside`). Experiments cannot: they
//! pause every thread of each process that takes part, and the load takes part, while this process must run on to choose
//! windows and read counts. Its right answers are counted by a probe that is put into that process alone. So this program is
//! executed once more, here and nowhere else. It is given its CPUs when it starts and is not touched afterwards.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;

use dyno_climb::load::LoadSpec;
use dyno_sys::Pid;
use dyno_sys::affinity::CpuSet;
use dyno_sys::clock::{mono_ns, process_cpu_ns, sleep_ns};
use dyno_sys::keeper::{Keeper, KeeperError, Launch};

use super::exits::Exits;
use crate::failure::Failure;

/// It runs until it is stopped; this only bounds it when nobody does.
const LONGEST: &str = "24h";
/// Connections are made and the first answers come; a server that takes longer will be seen as slow, not as absent.
const SETTLE_NS: u64 = 500_000_000;
/// Between two looks whether it still runs.
const LOOK_NS: u64 = 10_000_000;
/// How long it may take to end in good order.
const GRACE_NS: u64 = 1_000_000_000;
/// Bytes of its complaint that are shown.
const SHOWN_BYTES_MAX: u64 = 2_048;

/// A load to be started: the words after `dyno`, and its CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadCommand {
    /// What `dyno` is called with.
    pub words: Vec<String>,
    /// The user's own words for it, for messages.
    asked: String,
    cpus: Option<CpuSet>,
}

/// A load that runs; its keeper ends it if nobody else does.
#[derive(Debug)]
pub struct LoadProcess {
    /// Its process.
    pub pid: Pid,
    asked: String,
    output: File,
}

impl LoadCommand {
    /// From what `--load` says. It runs where the scheduler puts it, unless the words name CPUs.
    ///
    /// # Errors
    /// When they name no server.
    pub fn of_words(words: &str) -> Result<Self, Failure> {
        let asked: Vec<&str> =
            words.split_whitespace().skip_while(|word| matches!(*word, "dyno" | "load")).collect();
        if !asked.iter().any(|word| word.contains("://")) {
            return Err(Failure::usage("--load names no server")
                .likely("it takes what stands after 'dyno load'")
                .try_this("--load 'http://127.0.0.1:8080/ -c 64'"));
        }
        let has_threads = asked.iter().any(|word| word.starts_with("-t") || word.starts_with("--threads"));
        // wrk's two threads would take a small machine from the server.
        let one: &[&str] = if has_threads { &[] } else { &["-t1"] };
        let words = ["load", "-d", LONGEST].iter().chain(one).chain(&asked);
        let shown = asked.join(" ");
        Ok(Self { words: words.map(|word| (*word).to_owned()).collect(), asked: shown, cpus: None })
    }

    /// From a plan's load, on these CPUs. A flag and its value are one word: a body may begin with a hyphen.
    ///
    /// # Errors
    /// When a text of the plan would mean something else there.
    pub fn of_spec(load: &LoadSpec, port: u16, cpus: CpuSet) -> Result<Self, Failure> {
        let texts = [Some(&load.body), load.expect_body.as_ref()];
        if texts.into_iter().flatten().any(|text| text.starts_with('@')) {
            return Err(Failure::error("a body that begins with @ would be taken for a file's name"));
        }
        let mut words = vec!["load".to_owned()];
        let mut say = |flag: &str, value: String| words.push(format!("{flag}={value}"));
        say("--duration", LONGEST.to_owned());
        say("--pin", cpus.to_string());
        say("--connections", load.connections.to_string());
        say("--pipeline", load.pipeline.to_string());
        say("--method", load.method.clone());
        say("--expect", format!("status={}", load.expect_status));
        load.headers.iter().for_each(|(name, value)| say("--header", format!("{name}: {value}")));
        load.expect_body.iter().for_each(|body| say("--expect", format!("body={body}")));
        if !load.body.is_empty() {
            say("--body", load.body.clone());
        }
        let url = format!("http://127.0.0.1:{port}{}", load.path);
        words.push(url.clone());
        Ok(Self { words, asked: format!("{url} -c{}", load.connections), cpus: Some(cpus) })
    }
}

impl LoadProcess {
    /// Starts it and waits until its first answers should have come.
    ///
    /// # Errors
    /// When it cannot be started, or ends at once.
    pub fn start(keeper: &Keeper, exits: &mut Exits, command: &LoadCommand) -> Result<Self, Failure> {
        let cannot = |error: &dyn std::error::Error| {
            Failure::error(format!("cannot start the load '{}'", command.asked)).because(error)
        };
        let output = unnamed().map_err(|error| cannot(&error))?;
        let copy: OwnedFd = output.try_clone().map_err(|error| cannot(&error))?.into();
        let held = keeper.hold(&launch(command, copy)?).map_err(|error| cannot(&error))?;
        exits.begin(keeper, held.pid());
        let pid = keeper.release(held).map_err(|error| cannot(&error))?;
        let load = Self { pid, asked: command.asked.clone(), output };
        load.settle(keeper, exits)?;
        Ok(load)
    }

    fn settle(&self, keeper: &Keeper, exits: &mut Exits) -> Result<(), Failure> {
        let until_ns = mono_ns() + SETTLE_NS;
        while mono_ns() < until_ns {
            if let Some(how) = exits.of(keeper, self.pid) {
                return Err(self.trouble(&format!("ended at once ({how})")));
            }
            sleep_ns(LOOK_NS);
        }
        Ok(())
    }

    /// CPU time that it took so far; 0 when it is gone.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        process_cpu_ns(self.pid).unwrap_or(0)
    }

    /// Stops it; where that fails it ends with the keeper.
    ///
    /// # Errors
    /// When it is gone already, or would not end.
    pub fn stop(&self, keeper: &Keeper) -> Result<(), KeeperError> {
        keeper.stop(self.pid, GRACE_NS)
    }

    /// What went wrong with it, with what it said.
    #[must_use]
    pub fn trouble(&self, what: &str) -> Failure {
        let failure = Failure::error(format!("the load '{}' {what}", self.asked));
        failure.likely(complaint(&self.said()).to_owned()).try_this(format!("dyno load {}", self.asked))
    }

    fn said(&self) -> String {
        let mut said = Vec::new();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&self.output));
        // Opened anew: the child writes at the end, and this reads from the start.
        let _ = File::open(path).and_then(|file| file.take(SHOWN_BYTES_MAX).read_to_end(&mut said));
        String::from_utf8_lossy(&said).into_owned()
    }
}

/// What a load complained of: its error, which stands behind the head of its table; else the first thing it said.
fn complaint(said: &str) -> &str {
    let error = said.lines().find_map(|line| line.strip_prefix("error: "));
    error.or_else(|| said.trim().lines().next()).unwrap_or("it said nothing")
}

fn launch(command: &LoadCommand, output: OwnedFd) -> Result<Launch, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::error("cannot find this program's own file").because(&error))?;
    Ok(Launch {
        argv: std::iter::once(own.into_os_string()).chain(command.words.iter().map(Into::into)).collect(),
        env: Vec::new(),
        cwd: None,
        cpus: command.cpus.clone(),
        output,
        inherit: Vec::new(),
        user: None,
    })
}

/// A file without a name, for what it prints.
fn unnamed() -> std::io::Result<File> {
    let path = std::env::temp_dir().join(format!(".dyno-load-{}-{}", std::process::id(), mono_ns()));
    let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_load_is_one_thread_for_a_day_unless_more_is_said() {
        let command = LoadCommand::of_words("dyno load http://127.0.0.1:1/ -c 8").unwrap();
        assert_eq!(command.words, ["load", "-d", "24h", "-t1", "http://127.0.0.1:1/", "-c", "8"]);
        assert_eq!((command.asked.as_str(), command.cpus), ("http://127.0.0.1:1/ -c 8", None));
        let two = LoadCommand::of_words("-t 2 http://127.0.0.1:1/").unwrap().words;
        assert!(!two.contains(&"-t1".to_owned()), "{two:?}");
    }

    #[test]
    fn a_load_without_a_server_is_refused_in_three_lines() {
        for words in ["", "-c8", "-c 8", "dyno load"] {
            assert_eq!(LoadCommand::of_words(words).unwrap_err().lines().lines().count(), 3, "{words}");
        }
    }

    #[test]
    fn a_load_that_ended_is_quoted_with_its_error() {
        let said = "Running 1440m test @ http://h/\n  1 threads\nerror: h refuses connections\n  likely: x\n";
        assert_eq!(complaint(said), "h refuses connections");
        assert_eq!((complaint("\nKilled\n"), complaint("")), ("Killed", "it said nothing"));
    }

    #[test]
    fn a_body_that_would_be_read_from_a_file_is_refused() {
        let load = LoadSpec { body: "@home".into(), ..LoadSpec::default() };
        let refused = LoadCommand::of_spec(&load, 1, CpuSet::single(0)).unwrap_err();
        assert!(refused.what().contains("begins with @"));
    }
}

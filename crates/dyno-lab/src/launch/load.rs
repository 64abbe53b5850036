//! The load beside a target: `dyno load` as a child, whose right answers are counted by a probe in this very program.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::Duration;

use dyno_sys::Pid;
use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::keeper::{Keeper, KeeperError, Launch};

use crate::failure::Failure;

/// It runs until it is stopped; this only bounds it when nobody does.
const LONGEST: &str = "24h";
/// Connections are made and the first answers come; a server that takes longer will be seen as slow, not as absent.
const SETTLE: Duration = Duration::from_millis(500);
/// Bytes of its complaint that are told.
const WORDS_BYTES_MAX: u64 = 2_048;

/// A load that is running.
pub struct Load {
    /// Its process.
    pub pid: Pid,
    words: String,
    output: File,
}

/// The command line of a load, from what `--load` says.
pub fn words_for_child(words: &str) -> Result<Vec<String>, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::error("cannot find this program's own file").because(&error))?;
    let asked: Vec<&str> =
        words.split_whitespace().skip_while(|word| matches!(*word, "dyno" | "load")).collect();
    if !asked.iter().any(|word| word.contains("://")) {
        return Err(Failure::usage("--load names no server")
            .likely("it takes what stands after 'dyno load'")
            .try_this("--load 'http://127.0.0.1:8080/ -c 64'"));
    }
    let threads = !asked.iter().any(|word| word.starts_with("-t") || word.starts_with("--threads"));
    // wrk's two threads would take a small machine from the server.
    let one: &[&str] = if threads { &["-t1"] } else { &[] };
    let words = ["load", "-d", LONGEST].iter().chain(one).chain(&asked);
    Ok(std::iter::once(own.display().to_string()).chain(words.map(|word| (*word).to_owned())).collect())
}

impl Load {
    /// Starts it and waits until its first answers should have come.
    pub fn start(keeper: &Keeper, words: &str) -> Result<Load, Failure> {
        let output = unnamed().map_err(|error| cannot(words).because(&error))?;
        let copy: OwnedFd = output.try_clone().map_err(|error| cannot(words).because(&error))?.into();
        let launch = Launch {
            argv: words_for_child(words)?.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: None,
            cpus: None,
            output: copy,
            inherit: Vec::new(),
            user: None,
        };
        let started = keeper.hold(&launch).and_then(|held| keeper.release(held));
        let pid = started.map_err(|error| cannot(words).because(&error))?;
        let load = Load { pid, words: words.to_owned(), output };
        load.settle(keeper)?;
        Ok(load)
    }

    fn settle(&self, keeper: &Keeper) -> Result<(), Failure> {
        let until = mono_ns() + u64::try_from(SETTLE.as_nanos()).unwrap_or(u64::MAX / 2);
        while mono_ns() < until {
            if let Some((_, exit)) = keeper.exits().into_iter().find(|(pid, _)| *pid == self.pid) {
                return Err(self.trouble(&format!("ended at once ({exit})")));
            }
            sleep_ns(10_000_000);
        }
        Ok(())
    }

    /// Stops it; what it does not hear ends with the keeper.
    ///
    /// # Errors
    /// When it is gone already, or would not end.
    pub fn stop(&self, keeper: &Keeper) -> Result<(), KeeperError> {
        keeper.stop(self.pid, 1_000_000_000)
    }

    /// Something about it, with what it said.
    pub fn trouble(&self, what: &str) -> Failure {
        let failure = Failure::error(format!("the load '{}' {what}", self.words));
        match self.said().trim() {
            "" => failure.likely("it said nothing").try_this(format!("dyno load {}", self.words)),
            said => {
                let first = said.lines().next().unwrap_or_default().trim_start_matches("error: ");
                failure.likely(first.to_owned()).try_this(format!("dyno load {}", self.words))
            }
        }
    }

    fn said(&self) -> String {
        let mut said = Vec::new();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&self.output));
        // Opened anew: the child writes at the end, and this reads from the start.
        let _ = File::open(path).and_then(|file| file.take(WORDS_BYTES_MAX).read_to_end(&mut said));
        String::from_utf8_lossy(&said).into_owned()
    }
}

fn cannot(words: &str) -> Failure {
    Failure::error(format!("cannot start the load '{words}'"))
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
        let words = words_for_child("dyno load http://127.0.0.1:1/ -c 8").unwrap();
        assert_eq!(words[1..], ["load", "-d", "24h", "-t1", "http://127.0.0.1:1/", "-c", "8"]);
        let two = words_for_child("-t 2 http://127.0.0.1:1/").unwrap();
        assert!(!two.contains(&"-t1".to_owned()), "{two:?}");
    }

    #[test]
    fn a_load_without_a_server_is_refused_in_three_lines() {
        for words in ["", "-c8", "-c 8", "dyno load"] {
            assert_eq!(words_for_child(words).unwrap_err().lines().lines().count(), 3, "{words}");
        }
    }
}

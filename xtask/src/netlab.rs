//! `cargo xtask netlab up|down|plant`: the laboratory of two network namespaces, held for people.
//!
//! A process of `dyno netlab hold` is the laboratory: it is made when that starts, and gone when that ends. Its number is in a
//! file of the target folder; nothing else is written.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::flags::Flags;
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};

/// Lines that tell how to enter it.
const LINES: usize = 4;

/// Runs the verb.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let what = flags.word().unwrap_or_default();
    flags.finish()?;
    match what.as_str() {
        "up" => up(repo),
        "down" => told(repo, "-TERM").inspect(|_| drop(fs::remove_file(note(repo)))),
        "plant" => told(repo, "-USR1"),
        _ => Err(Trouble::new(format!("netlab takes up, down or plant, not \"{what}\""))),
    }
}

fn note(repo: &Repo) -> PathBuf {
    repo.target().join("netlab.pid")
}

/// The holder that lives, if one does: a number alone may be somebody else's by now.
fn holder(repo: &Repo) -> Option<String> {
    let pid = fs::read_to_string(note(repo)).ok()?.trim().to_owned();
    let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let is_ours = String::from_utf8_lossy(&words).contains("netlab\0hold");
    is_ours.then_some(pid)
}

fn up(repo: &Repo) -> Result<Outcome, Trouble> {
    if let Some(pid) = holder(repo) {
        return Err(Trouble::new(format!("there is one already, held by process {pid}"))
            .remedy("cargo xtask netlab down"));
    }
    let built = Command::new("cargo").args(["build", "--quiet", "--package", "dyno"]).status();
    if !built.map_err(Trouble::cannot("run cargo"))?.success() {
        return Err(Trouble::new("dyno cannot be built"));
    }
    let log = repo.target().join("netlab.log");
    let errors = File::create(&log).map_err(Trouble::cannot("write netlab.log"))?;
    let mut holder = Command::new(repo.target().join("debug/dyno"))
        .args(["netlab", "hold"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .map_err(Trouble::cannot("start the holder"))?;
    let output = holder.stdout.take().expect("it was asked for");
    let lines: Vec<String> = BufReader::new(output).lines().take(LINES).map_while(Result::ok).collect();
    if lines.len() < LINES {
        let said = fs::read_to_string(log).unwrap_or_default();
        return Err(Trouble::new(said.trim().to_owned()).remedy("sudo cargo xtask netlab up"));
    }
    fs::write(note(repo), holder.id().to_string()).map_err(Trouble::cannot("write netlab.pid"))?;
    lines.iter().for_each(|line| println!("{line}"));
    Ok(Outcome::Done)
}

fn told(repo: &Repo, signal: &str) -> Result<Outcome, Trouble> {
    let pid =
        holder(repo).ok_or_else(|| Trouble::new("there is no laboratory").remedy("cargo xtask netlab up"))?;
    let sent = Command::new("kill").args([signal, &pid]).status();
    let is_sent = sent.is_ok_and(|status| status.success());
    if is_sent { Ok(Outcome::Done) } else { Err(Trouble::new(format!("process {pid} takes no signal"))) }
}

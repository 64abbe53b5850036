//! `cargo xtask simulate`: the engine's core on simulated networks, one a seed, or one seed again.
//!
//! The simulator is a test of `dyno-engine`; this only says which seeds. A part of them runs with every `cargo test`.

use crate::beside::Task;
use crate::command::{cargo, lowly, run as run_command};
use crate::flags::Flags;
use crate::repo::Repo;
use crate::test::{BUILD_MAX, Binary};
use crate::trouble::{Outcome, Trouble};

/// Seeds that must pass before a merge: about half a minute on two cores.
const SEEDS: &str = "0..50000";

/// The test that reads them.
const TEST: &str = "simulator::run::every_seed_is_served_as_the_model_says";

/// Runs the verb: `FIRST..LAST`, or one seed, or nothing for what CI runs.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let asked = flags.word();
    flags.finish()?;
    let seeds = range(asked.as_deref().unwrap_or(SEEDS))?;
    eprintln!("seeds {seeds}");
    let words = ["test", "--package", "dyno-engine", "--lib", TEST, "--", "--exact", "--nocapture"];
    run_command(cargo(words).env("DYNO_SEEDS", seeds).current_dir(repo.root()))
}

/// The same for what CI runs, beside whatever else runs, with the binary that was built for the tests: a package that is built alone has other features,
/// and is then built once more.
pub(crate) fn task(all: &[Binary]) -> Result<Task, Trouble> {
    let engine = all.iter().find(|binary| binary.source == "crates/dyno-engine/src/lib.rs");
    let mut command = engine.ok_or_else(|| Trouble::new("the engine's tests are not built"))?.command();
    command.args([TEST, "--exact", "--nocapture"]).env("DYNO_SEEDS", SEEDS);
    Ok(Task { name: "simulate".to_owned(), command: lowly(&command), limit: BUILD_MAX, takes: 1 })
}

/// What the test understands: `FIRST..LAST`.
fn range(asked: &str) -> Result<String, Trouble> {
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    match asked.split_once("..") {
        Some((first, last)) if is_number(first) && is_number(last) => Ok(asked.to_owned()),
        None if is_number(asked) => {
            let seed: u64 = asked.parse().unwrap_or_default();
            Ok(format!("{seed}..{}", seed + 1))
        }
        _ => Err(Trouble::new(format!("\"{asked}\" is neither a seed nor FIRST..LAST"))
            .remedy("cargo xtask simulate 0..100000")),
    }
}

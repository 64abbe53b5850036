//! `cargo xtask bench`: timed comparisons with programs of other people, paired and interleaved.
//!
//! `peers` compares servers by their CPU per request, `load` generators by theirs. Everything is alive at once and gets
//! one short slice per cycle in shuffled order, because a shared machine changes its speed by tenths within seconds:
//! only ratios within a cycle count. People call it; tests and CI never do. Each run adds a line to the history.

mod arms;
mod history;
mod load;
mod peers;
mod series;
mod slice;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use crate::flags::Flags;
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};

/// Slices per arm unless told otherwise: gives intervals of some 5 % on a shared machine.
const CYCLES: usize = 12;
/// Above this a run is not watched by anybody any more.
const CYCLES_MAX: usize = 10_000;
/// Long enough that starting and connecting are below one percent of it.
const SLICE: Duration = Duration::from_secs(1);

/// How a bench is run.
pub(crate) struct Options {
    pub(crate) cycles: usize,
    pub(crate) slice: Duration,
    pub(crate) seed: u64,
    /// Names of the arms wanted; empty means all.
    pub(crate) only: Vec<String>,
    pub(crate) server_cpu: usize,
    pub(crate) load_cpu: usize,
    pub(crate) history: PathBuf,
}

impl Options {
    fn take(repo: &Repo, flags: &mut Flags) -> Result<Options, Trouble> {
        let duration = |text: &str| dyno_measure::units::parse_duration(text).ok();
        let list = |text: &str| Some(text.split(',').map(str::to_owned).collect());
        let cycles =
            flags.value("--cycles", |text| text.parse().ok().filter(|n| (1..=CYCLES_MAX).contains(n)))?;
        Ok(Options {
            cycles: cycles.unwrap_or(CYCLES),
            slice: flags.value("--slice", duration)?.unwrap_or(SLICE),
            seed: flags.parsed("--seed")?.unwrap_or_else(history::unix_s),
            only: flags.value("--only", list)?.unwrap_or_default(),
            server_cpu: flags.parsed("--server-cpu")?.unwrap_or(0),
            load_cpu: flags.parsed("--load-cpu")?.unwrap_or(1),
            history: flags.parsed("--history")?.unwrap_or_else(|| repo.path("bench/history.jsonl")),
        })
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == name)
    }
}

/// Runs the verb.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let options = Options::take(repo, &mut flags)?;
    let which = flags.word();
    flags.finish()?;
    match which.as_deref() {
        Some("peers") => peers::run(repo, &options),
        Some("load") => load::run(repo, &options),
        _ => Err(Trouble::new("a bench is \"peers\" or \"load\"").remedy("cargo xtask bench peers")),
    }
}

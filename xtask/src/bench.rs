//! `cargo xtask bench`: timed comparisons with programs of other people, paired and interleaved.
//!
//! `peers` compares servers by their CPU per request with every shape of requests, `content` with files, `load` generators
//! by theirs.
//! Everything is alive at once and gets one short slice per cycle in shuffled order, because a shared machine changes its speed by tenths within seconds:
//! only ratios within a cycle count. People call it; tests and CI never do. Each run adds a line to the history.

mod arms;
mod content;
mod history;
mod load;
mod options;
mod peers;
mod series;
mod slice;
mod table;

use crate::flags::Flags;
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};
use options::{Contest, Options};

/// Runs the verb.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let options = Options::take(repo, &mut flags)?;
    let contest = Contest::take(&mut flags)?;
    let which = flags.word();
    flags.finish()?;
    match (which.as_deref(), contest) {
        (Some("peers"), contest) => peers::run(repo, &options, &contest.unwrap_or_default()),
        (Some("content"), None) => content::run(repo, &options),
        (Some("load"), None) => load::run(repo, &options),
        (Some("load" | "content"), Some(_)) => {
            Err(Trouble::new("--shape and --against belong to \"bench peers\"")
                .remedy("cargo xtask bench peers --shape wrk,browser"))
        }
        _ => {
            Err(Trouble::new("a bench is \"peers\", \"content\" or \"load\"")
                .remedy("cargo xtask bench peers"))
        }
    }
}

//! `dyno specimen` and what it can be told.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::words::{HELP, some_time};

/// Fewest rounds of which an interval can be told.
const ROUNDS_MIN: i64 = dyno_measure::judge::PAIRS_MIN as i64;

/// `dyno specimen`.
#[derive(Debug, Args)]
#[command(
    about = "Small programs with one planted, known defect each: listed, explained, run against their repair.",
    before_help = "Examples:
  dyno specimen list
  dyno specimen explain sync-log
  dyno specimen run sync-log

Their sources are in this program; they are built with your compilers in ~/.cache/dyno/specimens.
planted-host is a whole host with planted defects, in network namespaces of its own, as root: it is
audited, climbed, and compared with the clean one.
To look at one with a profiler: dyno specimen run NAME --defect prints its process number and waits.",
    after_help = "Exit status: 1 when the repair was not faster, with an interval that excludes it, or when a prediction missed; 2 for an error, also when a compiler is missing.",
    help_template = HELP
)]
pub(crate) struct Specimen {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: What,
}

/// What can be done with specimens.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    List(List),
    Explain(Explain),
    Run(Run),
}

/// `dyno specimen list`.
#[derive(Debug, Args)]
#[command(about = "Lists the specimens: name, language, what diagnosis must name first, what it is.")]
pub(crate) struct List {
    /// Print one JSON object instead
    #[arg(long)]
    pub(crate) json: bool,
}

/// `dyno specimen explain`.
#[derive(Debug, Args)]
#[command(about = "Tells the truth of a specimen: what is planted, where, why it is slow, and the repair.")]
pub(crate) struct Explain {
    /// Its name, from the list
    pub(crate) name: String,
    /// Print the source instead
    #[arg(long)]
    pub(crate) source: bool,
}

/// `dyno specimen run`.
#[derive(Debug, Args)]
#[command(
    about = "Builds a specimen and measures defect against repair, interleaved.",
    help_template = HELP
)]
pub(crate) struct Run {
    /// Its name, from the list
    pub(crate) name: String,

    /// Measured time of each side, all rounds together; of the one side, its whole run; of the causal profile, and as
    /// long again of the real changes [default: 3s; 60s; 60s]
    #[arg(long = "for", value_name = "TIME", value_parser = some_time, help_heading = "How long")]
    pub(crate) time: Option<Duration>,
    /// Rounds: in each, both sides run once, in random order
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(ROUNDS_MIN..=1_000), help_heading = "How long")]
    pub(crate) rounds: u32,
    /// Seed of the order [default: another one each time; it is printed]
    #[arg(long, value_name = "N", help_heading = "How long")]
    pub(crate) seed: Option<u64>,

    /// Predict by a causal profile what its parts are worth, then shorten them for real, and print both
    #[arg(long, conflicts_with_all = ["defect", "repaired", "neutral"], help_heading = "What")]
    pub(crate) causal: bool,

    /// Run the defect alone, print its process number, and wait
    #[arg(long, conflicts_with_all = ["repaired", "rounds", "seed"], help_heading = "One side, for a profiler")]
    pub(crate) defect: bool,
    /// Run the repaired side alone, print its process number, and wait
    #[arg(long, conflicts_with_all = ["rounds", "seed"], help_heading = "One side, for a profiler")]
    pub(crate) repaired: bool,
    /// Build it with its own names of functions, types and files replaced
    #[arg(long, help_heading = "One side, for a profiler")]
    pub(crate) neutral: bool,

    /// Print JSON instead
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

//! Flags of `dyno diagnose`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use dyno_sys::Pid;

use super::export::{FormatFlag, Gate};
use super::words::{ColorWhen, HELP, process, some_time};

/// `dyno diagnose`.
#[derive(Debug, Args)]
#[command(
    about = "Watches a running server and says what holds it back, with the figures it rests on.",
    before_help = "Examples:
  dyno diagnose 4242
  dyno diagnose 4242 --load 'http://127.0.0.1:8080/json -c 64' --for 30s
  dyno diagnose 4242 --load 'http://127.0.0.1:8080/json -c 64' --sweep --json

It watches counters, then where CPU time goes, then what threads wait for, each for a part of the
time. Without root parts of it cannot be seen: it says which.",
    after_help = "Exit status: 0 nothing found, 1 something found at or above --fail-on, 2 error, 130 Ctrl-C.",
    help_template = HELP
)]
pub(crate) struct Diagnose {
    /// The process, as -p
    #[arg(value_name = "PID", value_parser = process, required_unless_present_any = ["pid", "from"], conflicts_with = "pid")]
    pub(crate) target: Option<Pid>,
    /// The process to watch, with its children; a thread stands for its process
    #[arg(short, long, value_name = "PID", value_parser = process, help_heading = "What and how long")]
    pub(crate) pid: Option<Pid>,

    /// How long to watch
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = some_time, help_heading = "What and how long")]
    pub(crate) duration: Duration,
    /// Load it meanwhile: what stands after 'dyno load', as 'URL -c 64'
    #[arg(long, value_name = "LOAD", help_heading = "What and how long")]
    pub(crate) load: Option<String>,
    /// Then sweep the load over 1, 2, 4 … connections and fit the scalability law
    #[arg(long, requires = "load", help_heading = "What and how long")]
    pub(crate) sweep: bool,
    /// Samples per second and CPU
    #[arg(short = 'F', long = "freq", value_name = "HZ", default_value = "997", value_parser = clap::value_parser!(u32).range(10..=10_000), help_heading = "What and how long")]
    pub(crate) frequency: u32,

    /// Confidence from which a finding makes the exit status 1: low (all), medium (likely and surer), high (sure) or never
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "low",
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub(crate) fail_on: FailOn,
    /// End with 2 if some rule could not look, for want of a right or of the kernel's help
    #[arg(long, help_heading = "Output")]
    pub(crate) require_complete: bool,
    /// Print the record; short for --format json
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Also write a page with the findings and the profiles that they rest on; - prints it instead of the card
    #[arg(long, value_name = "FILE", conflicts_with = "json", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatFlag,
    #[command(flatten)]
    pub(crate) gate: Gate,
    /// Also write all that was seen, profiles included
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Watch nothing: judge again what -o wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["load", "output"], help_heading = "Output")]
    pub(crate) from: Option<PathBuf>,
    /// The global choice.
    #[arg(from_global)]
    pub(crate) color: ColorWhen,
}

/// Which findings count as "no".
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// All.
    Low,
    /// Those that are likely, and surer.
    Medium,
    /// Those that are sure.
    High,
    /// None.
    Never,
}

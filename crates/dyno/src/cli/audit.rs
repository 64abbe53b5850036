//! Flags of `dyno audit` and `dyno doctor`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use dyno_record::audit::Goal;
use dyno_sys::Pid;

use super::export::Gate;
use super::words::{ColorWhen, HELP, process};

/// `dyno audit`.
#[derive(Debug, Args)]
#[command(
    about = "Reads the whole host and says what costs a server speed, and what mending it would bring and cost.",
    before_help = "Examples:
  dyno audit
  dyno audit --pid 4242 --goal latency --full
  sudo dyno audit --pid 4242 --measure

It only reads. What could not be looked at is said; as root little is hidden. With --pid it looks at
a running server too: its threads, filters, listeners and sockets.",
    after_help = "Exit status: 0 done, 1 a finding at or above --fail-on, 2 error.",
    help_template = HELP,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Audit {
    /// What to do instead of judging.
    #[command(subcommand)]
    pub(crate) what: Option<What>,

    /// A running server to look at
    #[arg(short, long, value_name = "PID", value_parser = process, conflicts_with = "from", help_heading = "What")]
    pub(crate) pid: Option<Pid>,
    /// What the host is wanted for: throughput, latency, connections or memory
    #[arg(
        long,
        value_name = "GOAL",
        value_enum,
        hide_possible_values = true,
        default_value = "throughput",
        help_heading = "What"
    )]
    pub(crate) goal: WantedFor,
    /// Read nothing: judge what dyno audit facts wrote; - is standard input
    #[arg(long, value_name = "FILE", help_heading = "What")]
    pub(crate) from: Option<PathBuf>,

    /// Measure too what can be measured safely, up to 15 s: calls in children, packets in namespaces of its own; watches the server
    #[arg(long, conflicts_with = "from", help_heading = "What")]
    pub(crate) measure: bool,

    /// Cost from which a finding makes the exit status 1: low, medium (3 %), high (10 %, or losses) or never
    #[arg(
        long,
        value_name = "LEVEL",
        value_enum,
        hide_possible_values = true,
        default_value = "never",
        help_heading = "Output"
    )]
    pub(crate) fail_on: FailOnLevel,
    /// Say all of each finding: why, and how it is seen, applied and undone
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,
    /// Print the record; short for --format json
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) gate: Gate,
    /// How: table, json, html, sarif, markdown, csv, junit, github, or prometheus for node_exporter's textfile collector
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        hide_possible_values = true,
        default_value = "table",
        help_heading = "Output"
    )]
    pub(crate) format: AuditFormat,
    /// Where to [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// The global choice.
    #[arg(from_global)]
    pub(crate) color: ColorWhen,
}

/// What `dyno audit` can do instead of judging.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    Facts(AuditFacts),
}

/// `dyno audit facts`.
#[derive(Debug, Args)]
#[command(
    about = "Prints every fact that an audit judges, as it was read, as one JSON object.",
    help_template = HELP
)]
pub(crate) struct AuditFacts {
    /// A running server to look at
    #[arg(short, long, value_name = "PID", value_parser = process)]
    pub(crate) pid: Option<Pid>,
    /// Measure too, as dyno audit --measure does
    #[arg(long)]
    pub(crate) measure: bool,
    /// Facts are JSON in any case
    #[arg(long)]
    pub(crate) json: bool,
    /// Where to [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// What a host is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WantedFor {
    /// Requests per second.
    Throughput,
    /// The time of one answer.
    Latency,
    /// Connections held.
    Connections,
    /// Bytes of memory.
    Memory,
}

impl WantedFor {
    /// The same in records.
    pub(crate) fn goal(self) -> Goal {
        match self {
            WantedFor::Throughput => Goal::Throughput,
            WantedFor::Latency => Goal::Latency,
            WantedFor::Connections => Goal::Connections,
            WantedFor::Memory => Goal::Memory,
        }
    }
}

/// Which findings count as "no".
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOnLevel {
    /// All.
    Low,
    /// 3 % and more.
    Medium,
    /// 10 % and more, and losses.
    High,
    /// None.
    Never,
}

/// How an audit is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// For people at a terminal.
    Table,
    /// The record.
    Json,
    /// A page.
    Html,
    /// SARIF 2.1.0.
    Sarif,
    /// Metrics.
    Prometheus,
    /// For a comment or a job's summary.
    Markdown,
    /// Every figure in a row.
    Csv,
    /// JUnit's XML.
    Junit,
    /// Workflow commands of GitHub's runners.
    Github,
}

/// `dyno doctor`.
#[derive(Debug, Args)]
#[command(
    about = "Says in one screen what of this program works here, for you, and what would get the rest.",
    before_help = "Examples:
  dyno doctor
  sudo dyno doctor
  dyno doctor --json",
    help_template = HELP
)]
pub(crate) struct Doctor {
    /// Print one JSON object instead
    #[arg(long)]
    pub(crate) json: bool,
    /// The global choice.
    #[arg(from_global)]
    pub(crate) color: ColorWhen,
}

//! Flags of `dyno tune`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use dyno_sys::Pid;

use super::audit::WantedFor;
use super::words::{HELP, process, some_time};

const WHAT: &str = "What";
const CONSENT: &str = "Consent";
const OUTPUT: &str = "Output";

/// `dyno tune`.
#[derive(Debug, Args)]
#[command(
    about = "Carries out what dyno audit found, with a journal, and puts it back.",
    before_help = "Examples:
  dyno tune plan
  sudo dyno tune apply net.rps net.idle --yes
  sudo dyno tune rollback --yes

Every change is read, written into the journal, written, and read back; then it is told whether it is in
force. What somebody else has changed since is told and left alone. After a reboot runtime values are gone with the boot.",
    after_help = "Exit status: 0 done, 1 the answer is no (snapshots differ, something is left to somebody else), 2 error, 3 the host could not be put back.",
    help_template = HELP
)]
pub(crate) struct Tune {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: TuneWhat,
    /// The folder of the journal, private to its user
    #[arg(long, global = true, value_name = "DIR", default_value = dyno_host::tune::state::FOLDER, help_heading = WHAT)]
    pub(crate) state: PathBuf,
}

/// What `dyno tune` does.
#[derive(Debug, Subcommand)]
pub(crate) enum TuneWhat {
    Plan(TunePlan),
    Apply(TuneApply),
    Confirm(TuneConfirm),
    Status(TuneStatus),
    Rollback(TuneRollback),
    Persist(TunePersist),
    Snapshot(TuneSnapshot),
    Diff(TuneDiff),
}

/// Which findings.
#[derive(Debug, Args)]
pub(crate) struct Chosen {
    /// A running server to look at
    #[arg(short, long, value_name = "PID", value_parser = process, help_heading = WHAT)]
    pub(crate) pid: Option<Pid>,
    /// What the host is wanted for, where no ID says it: throughput, latency, connections or memory
    #[arg(
        long,
        value_name = "GOAL",
        value_enum,
        hide_possible_values = true,
        default_value = "throughput",
        help_heading = WHAT
    )]
    pub(crate) goal: WantedFor,
}

/// How far.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Consent {
    /// Do not ask; needed where there is no terminal
    #[arg(short, long, help_heading = CONSENT)]
    pub(crate) yes: bool,
    /// Show what would be done, with commands that do the same, and change nothing
    #[arg(short = 'n', long, help_heading = CONSENT)]
    pub(crate) dry_run: bool,
}

/// `dyno tune plan`.
#[derive(Debug, Args)]
#[command(about = "Shows what would be changed, what that brings and costs, and the commands that do the same.", help_template = HELP)]
pub(crate) struct TunePlan {
    /// Findings, as net.rps, or net.rps:eth0 for one device of it [default: all of the goal]
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    /// Print the record
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `dyno tune apply`.
#[derive(Debug, Args)]
#[command(about = "Changes what the plan shows, keeps a journal of it, and says of each change whether it is in force.", help_template = HELP)]
pub(crate) struct TuneApply {
    /// Findings, as net.rps, or net.rps:eth0 for one device of it
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// Only if the plan is still the one that was shown, by its number
    #[arg(long, value_name = "HASH", help_heading = CONSENT)]
    pub(crate) plan: Option<String>,
    /// Agree that this finding's change lowers a defence; given once for each
    #[arg(long, value_name = "ID", help_heading = CONSENT)]
    pub(crate) accept_risk: Vec<String>,
    /// Put everything back unless dyno tune confirm comes within this time
    #[arg(long, value_name = "TIME", value_parser = some_time, help_heading = CONSENT)]
    pub(crate) confirm_within: Option<Duration>,
    /// Print what was changed, and whether it is in force, as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `dyno tune confirm`.
#[derive(Debug, Args)]
#[command(about = "Keeps what an apply with --confirm-within has changed.", help_template = HELP)]
pub(crate) struct TuneConfirm {}

/// `dyno tune status`.
#[derive(Debug, Args)]
#[command(about = "Shows what the journal holds: what was changed, what it was, where it stands now, and whether it is in force.", help_template = HELP)]
pub(crate) struct TuneStatus {
    /// Print it as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `dyno tune rollback`.
#[derive(Debug, Args)]
#[command(about = "Puts back what was changed, the last first.", help_template = HELP)]
pub(crate) struct TuneRollback {
    /// Findings, or persist for the files [default: everything]
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// Let the journal go of what somebody else has changed since; their values stay
    #[arg(long, help_heading = WHAT)]
    pub(crate) forget: bool,
}

/// `dyno tune persist`.
#[derive(Debug, Args)]
#[command(about = "Writes files that make what was applied outlive a boot; rollback removes them.", help_template = HELP)]
pub(crate) struct TunePersist {
    /// Findings that were applied [default: all of them]
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// The root of the system that the files are for
    #[arg(long, value_name = "DIR", default_value = "/", help_heading = WHAT)]
    pub(crate) root: PathBuf,
    /// A profile for TuneD instead of sysctl.d and a unit
    #[arg(long, help_heading = WHAT)]
    pub(crate) tuned: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// `dyno tune snapshot`.
#[derive(Debug, Args)]
#[command(about = "Prints every setting that tune could touch, raw, as one JSON object.", help_template = HELP)]
pub(crate) struct TuneSnapshot {
    /// Where to [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
}

/// `dyno tune diff`.
#[derive(Debug, Args)]
#[command(about = "Compares two snapshots; what moves by itself is listed apart.", help_template = HELP)]
pub(crate) struct TuneDiff {
    /// The snapshot before
    #[arg(value_name = "A")]
    pub(crate) before: PathBuf,
    /// The snapshot after [default: this host as it is]
    #[arg(value_name = "B")]
    pub(crate) after: Option<PathBuf>,
    /// Print it as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

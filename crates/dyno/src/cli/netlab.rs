//! `dyno netlab`: for `cargo xtask netlab`, for tests, and for plans whose servers run under filters.

use std::ffi::OsString;

use clap::{Args, Subcommand, ValueEnum};

use super::words::HELP;

/// `dyno netlab`.
#[derive(Debug, Args)]
#[command(
    about = "A network to measure on: two namespaces and a cable; and servers under filters.",
    before_help = "Examples:
  dyno netlab hold
  dyno netlab hold --plant
  dyno netlab under --filters 3 -- dyno serve

dyno climb --netns makes its own; this is for looking at one by hand.",
    help_template = HELP
)]
pub(crate) struct Netlab {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: What,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    Hold(Hold),
    Under(Under),
}

/// `dyno netlab hold`.
#[derive(Debug, Args)]
#[command(about = "Makes the network and keeps it until SIGTERM or Ctrl-C; SIGUSR1 plants the defects.")]
pub(crate) struct Hold {
    /// Plant the defects of the planted host at once
    #[arg(long)]
    pub(crate) plant: bool,
}

/// What pages a program may have: system, or small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pages {
    /// As the system has them.
    System,
    /// Small ones only.
    Small,
}

/// `dyno netlab under`.
#[derive(Debug, Args)]
#[command(
    about = "Becomes a program under filters of system calls that allow everything, and cost what filters cost; in a class of the scheduler, with a timer slack, with small pages."
)]
pub(crate) struct Under {
    /// How many filters, on top of one another
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u8).range(0..=16))]
    pub(crate) filters: u8,
    /// The scheduler's class: "other nice 0", "batch nice 0", "fifo priority 1" [default: this process's]
    #[arg(long, value_name = "CLASS", hide_default_value = true)]
    pub(crate) class: Option<String>,
    /// Timers may be late by this many ns; 0 is what this process began with [default: this process's]
    #[arg(long, value_name = "NS", hide_default_value = true)]
    pub(crate) timer_slack: Option<u64>,
    /// Pages of memory: system (huge ones where the system gives them), or small
    #[arg(
        long,
        value_name = "WORD",
        value_enum,
        hide_possible_values = true,
        default_value = "system",
        hide_default_value = true
    )]
    pub(crate) pages: Pages,
    /// The program and its words
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

//! The flags of `dyno top`.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;
use dyno_sys::Pid;
use dyno_sys::socket::Addr;

use super::words::{HELP, process, some, some_time};

/// `dyno top`.
#[derive(Debug, Args)]
#[command(
    about = "Shows what a running dyno serve does: requests, connections, bytes, CPU, by worker.",
    before_help = "Examples:
  dyno top 4242
  dyno top --metrics 127.0.0.1:9100
  dyno top --metrics unix:/run/dyno/metrics.sock --interval 10s --count 6

It reads the server's /metrics, so the server must have been started with --metrics. On a terminal it
draws a screen until Ctrl-C; elsewhere it prints a line each time.",
    help_template = HELP
)]
pub(crate) struct Top {
    /// The server's process, as -p
    #[arg(value_name = "PID", value_parser = process, id = "pid_alone", required_unless_present_any = ["pid", "metrics"], conflicts_with_all = ["pid", "metrics"])]
    pub(crate) pid_alone: Option<Pid>,
    /// The server's process: the one that dyno serve was started as
    #[arg(short, long, value_name = "PID", value_parser = process, conflicts_with = "metrics", help_heading = "What")]
    pub(crate) pid: Option<Pid>,
    /// Where the server serves its metrics
    #[arg(long, value_name = "ADDRESS", help_heading = "What")]
    pub(crate) metrics: Option<Addr>,
    /// How often it looks
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = some_time, help_heading = "How")]
    pub(crate) interval: Duration,
    /// End after so many looks
    #[arg(short = 'n', long, value_name = "N", value_parser = some, help_heading = "How")]
    pub(crate) count: Option<NonZeroUsize>,
}

//! The flags of `dyno serve` that are about its logs.

use std::path::PathBuf;

use clap::Args;
use dyno_engine::{Level, LogFormat};

/// The help heading of flags about logs and the end.
const LOGS: &str = "Log and end";

/// The flags.
#[derive(Debug, Args)]
pub(crate) struct LogFlags {
    /// Where the access log goes [default: standard output]
    #[arg(long, value_name = "FILE", help_heading = LOGS)]
    pub(crate) log_file: Option<PathBuf>,
    /// What a line of it says: common, combined, json, json:FIELD,FIELD or a text with $fields as nginx has them
    #[arg(long, value_name = "FORMAT", default_value = "common", help_heading = LOGS)]
    pub(crate) log_format: LogFormat,
    /// With --log commit, replies wait until the disk has their lines
    #[arg(long, help_heading = LOGS)]
    pub(crate) log_fsync: bool,
    /// Where errors go, and what the server does, with the time in front [default: standard error, without it]
    #[arg(long, value_name = "FILE", help_heading = LOGS)]
    pub(crate) error_log: Option<PathBuf>,
    /// The least that is told there: error, warn, notice, or info, which has every refused request too
    #[arg(long, value_name = "LEVEL", default_value = "notice", help_heading = LOGS)]
    pub(crate) error_level: Level,
}

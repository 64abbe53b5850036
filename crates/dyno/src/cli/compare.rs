//! Flags of `dyno compare`.

use std::path::PathBuf;

use clap::Args;

use super::words::{ColorWhen, HELP};

/// `dyno compare`.
#[derive(Debug, Args)]
#[command(
    about = "Draws the climbs of a folder over time: total, floor and rungs, with marks where something changed.",
    before_help = "Examples:
  dyno compare climbs
  dyno compare climbs -o /tmp/history.html
  dyno compare climbs --json

Every climb's record in the folder is a point; what else ends in .json is passed over and named. Two
records are held against each other by dyno judge A B.",
    after_help = "Exit status: 0 done, 1 there is no climb in the folder, 2 error.",
    help_template = HELP
)]
pub(crate) struct Compare {
    /// A folder with records that dyno climb wrote
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Where the page goes; - is standard output [default: history.html]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print the history as one JSON object; a page is written only with -o
    #[arg(long)]
    pub(crate) json: bool,
    /// The global choice.
    #[arg(from_global)]
    pub(crate) color: ColorWhen,
}

//! `dyno completions` and `dyno man`: the command line written for shells and for man(1), from its own help.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::words::HELP;

/// `dyno completions`.
#[derive(Debug, Args)]
#[command(
    about = "Prints the script by which a shell completes dyno's verbs, flags, files, processes and names.",
    before_help = "Examples:
  dyno completions bash > dyno.bash
  dyno completions zsh > _dyno
  dyno completions fish > dyno.fish

The script asks the dyno that is on the PATH then. bash and fish read it by 'source'; zsh looks for
it in the folders of $fpath. cargo xtask install and the Debian package put it in its place.",
    help_template = HELP
)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

/// Shells that scripts are there for; bash from 4.4 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// `dyno man`.
#[derive(Debug, Args)]
#[command(
    about = "Prints the manual page of a verb, for man; or writes them all.",
    before_help = "Examples:
  dyno man > dyno.1
  dyno man tune-apply > tune-apply.1
  dyno man --all pages

It says what --help says. A page alone is shown by 'dyno man climb | man -l -'.",
    help_template = HELP
)]
pub(crate) struct Man {
    /// The verb, as climb or tune-apply [default: dyno itself]
    #[arg(value_name = "VERB")]
    pub(crate) verb: Option<String>,
    /// Write all of them into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    pub(crate) all: Option<PathBuf>,
}

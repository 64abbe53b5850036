//! The engine's dials as flags: one for each dial that the engine names, so that a new dial needs no line here.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use dyno_engine::{About, Dials, Scope};

/// The help heading of dials that act on what a worker does for a request.
pub(super) const REQUEST: &str = "Dials";
/// The help heading of dials that act on the workers.
pub(super) const WORKERS: &str = "Where and how many";

/// The dials that were given, in the words of the command line; the engine judges them.
#[derive(Debug, Default)]
pub(crate) struct DialFlags(Vec<(&'static str, String)>);

impl DialFlags {
    /// Name and word of each dial that was given.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, word)| (*name, word.as_str()))
    }

    /// The word that was given for one dial.
    pub(crate) fn word(&self, name: &str) -> Option<&str> {
        self.given().find_map(|(given, word)| (given == name).then_some(word))
    }
}

impl FromArgMatches for DialFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<DialFlags, Error> {
        let word = |name: &'static str| Some((name, matches.get_one::<String>(name)?.clone()));
        Ok(DialFlags(Dials::NAMES.iter().filter_map(|name| word(name)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = DialFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for DialFlags {
    fn augment_args(command: Command) -> Command {
        command.args(Dials::ABOUT.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        DialFlags::augment_args(command)
    }
}

fn flag(about: &About) -> Arg {
    let heading = match about.scope {
        Scope::Workers => WORKERS,
        Scope::Request => REQUEST,
    };
    Arg::new(about.name).long(about.name).value_name(about.value).help(about.help).help_heading(heading)
}

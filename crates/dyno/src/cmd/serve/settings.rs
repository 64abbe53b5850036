//! The settings of `dyno serve`: one list, made of its flags, from which the file's keys and the environment's names come.
//!
//! A flag that is added to the command line is a setting in all three places; nothing is written down here a second
//! time. Nothing here reads a file or the environment.

use clap::{Arg, ArgAction, CommandFactory};

use crate::cli::{Cli, ON_SETTINGS};

/// Flags of these help headings stand in a table of their own in the file; all others stand above the tables.
const TABLES: [(&str, &str); 3] = [("Dials", "dials"), ("Limits", "limits"), ("Content", "content")];

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One word or number.
    Word,
    /// Several of them.
    List,
    /// True or false.
    Switch,
}

/// One setting.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// What the command line knows it by.
    pub(super) id: String,
    /// Its flag, without the dashes.
    pub(super) flag: String,
    /// Its table in the file.
    pub(super) table: Option<&'static str>,
    /// Its key in that table.
    pub(super) key: String,
    pub(super) kind: Kind,
    /// The words that it has when nobody sets it, where the command line knows them.
    pub(super) default: Vec<String>,
    help: String,
}

impl Setting {
    /// Where it stands in the file.
    pub(super) fn path(&self) -> String {
        self.table.map_or_else(|| self.key.clone(), |table| format!("{table}.{}", self.key))
    }

    /// Its name in the environment.
    pub(super) fn variable(&self) -> String {
        format!("DYNO_{}", self.flag.replace('-', "_").to_uppercase())
    }

    /// What holds when nobody sets it, as the help says.
    pub(super) fn otherwise(&self) -> Option<&str> {
        self.help.split_once("[default: ")?.1.strip_suffix(']')
    }

    fn of(arg: &Arg) -> Option<Setting> {
        let heading = arg.get_help_heading();
        if arg.is_hide_set() || arg.is_global_set() || heading == Some(ON_SETTINGS) {
            return None;
        }
        let flag = arg.get_long()?.to_owned();
        let table = TABLES.iter().find(|(of, _)| heading == Some(of)).map(|(_, table)| *table);
        let default = arg.get_default_values().iter().map(|word| word.to_string_lossy().into_owned());
        let kind = kind_of(arg);
        Some(Setting {
            id: arg.get_id().to_string(),
            key: key_in(table, &flag),
            table,
            kind,
            default: if kind == Kind::Switch { vec!["false".to_owned()] } else { default.collect() },
            help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
            flag,
        })
    }
}

/// A table's name in front of a flag is not said twice: `--content-root` is `content.root`.
fn key_in(table: Option<&str>, flag: &str) -> String {
    let key = flag.replace('-', "_");
    let short = table.and_then(|table| key.strip_prefix(table)?.strip_prefix('_')).map(str::to_owned);
    short.unwrap_or(key)
}

fn kind_of(arg: &Arg) -> Kind {
    match arg.get_action() {
        ArgAction::SetTrue => Kind::Switch,
        ArgAction::Append => Kind::List,
        _ => Kind::Word,
    }
}

/// Every setting: those without a table first, then table by table, each in the order of the help.
pub(super) fn all() -> Vec<Setting> {
    let command = Cli::command();
    let serve = command.find_subcommand("serve").expect("a verb of this program");
    let mut settings: Vec<Setting> = serve.get_arguments().filter_map(Setting::of).collect();
    settings.sort_by_key(|setting| setting.table);
    settings
}

/// The names of all tables.
pub(super) fn tables() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(_, table)| *table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_setting_has_a_place_of_its_own_in_the_file_and_the_environment() {
        let settings = all();
        let paths: BTreeSet<String> = settings.iter().map(Setting::path).collect();
        let variables: BTreeSet<String> = settings.iter().map(Setting::variable).collect();
        assert!(settings.len() > 25, "{settings:#?}");
        assert_eq!((paths.len(), variables.len()), (settings.len(), settings.len()));
        for path in
            ["listen", "workers", "user", "log_file", "dials.log", "dials.naive", "limits.header_timeout"]
        {
            assert!(paths.contains(path), "{path} is none of {paths:?}");
        }
        assert!(variables.contains("DYNO_HEADER_TIMEOUT"));
        for path in ["check", "show_config", "control_fd", "color", "help"] {
            assert!(!paths.contains(path), "{path} is no setting");
        }
    }

    #[test]
    fn a_tables_name_is_not_said_twice() {
        assert_eq!(key_in(Some("content"), "content-root"), "root");
        assert_eq!(key_in(Some("limits"), "idle-timeout"), "idle_timeout");
        assert_eq!(key_in(None, "log-file"), "log_file");
    }

    #[test]
    fn what_holds_otherwise_is_read_from_the_help() {
        let settings = all();
        let of = |path: &str| settings.iter().find(|setting| setting.path() == path).expect("a setting");
        assert_eq!(of("user").otherwise(), Some("nobody"));
        assert_eq!(of("limits.header_timeout").default, ["10s"]);
        assert_eq!((of("listen").kind, of("dials.naive").kind), (Kind::List, Kind::Switch));
    }
}

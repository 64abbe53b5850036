//! Where each setting comes from: flag before environment before file before default.
//!
//! Whatever a setting comes from, the same parser of the command line judges its words; a mistake is told with the place
//! where it stands. `serve` calls this once, before anything is opened.

use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, Parser};

use super::file::{self, GivenHost, Gives};
use super::settings::{Kind, Setting};
use super::variables;
use super::what::{self, What};
use crate::cli::{self, Cli, Verb};
use dyno_engine::{DialError, Dials};
use dyno_lab::Failure;

/// Bits of a file's permissions that let everybody write.
const OTHERS_WRITE: u32 = 0o002;

/// What the command line knows the folder by that is served.
const ROOT: &str = "content_root";

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    Flag,
    Environment(String),
    File { name: String, line: usize },
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag => out.write_str("flag"),
            Origin::Environment(variable) => out.write_str(variable),
            Origin::File { name, line } => write!(out, "{name}:{line}"),
            Origin::Default => out.write_str("default"),
        }
    }
}

/// The settings as they are in force.
#[derive(Debug)]
pub(super) struct Effective {
    pub(super) args: cli::Serve,
    /// Every setting, with its words, if it has any, and where they come from.
    pub(super) settings: Vec<(Setting, Vec<String>, Origin)>,
    /// The hosts that the file tells apart.
    pub(super) hosts: Vec<LaidHost>,
}

/// A host of the file.
#[derive(Debug)]
pub(super) struct LaidHost {
    pub(super) names: Vec<String>,
    /// Where its names stand.
    pub(super) origin: Origin,
    pub(super) settings: Vec<(Setting, Vec<String>, Origin)>,
}

/// Lays flags over the environment over the file that the flags name.
///
/// # Errors
/// Every mistake that is in them.
pub(super) fn effective(
    line: &[OsString],
    settings: Vec<Setting>,
    environment: &[(OsString, OsString)],
) -> Result<Effective, Vec<Failure>> {
    let matches = Cli::command().try_get_matches_from(line).map_err(|error| vec![unreadable(&error)])?;
    let matches =
        matches.subcommand_matches("serve").ok_or_else(|| vec![Failure::usage("serve was asked for")])?;
    let what = matches.get_one::<PathBuf>("what").map(|path| what::named(path)).transpose();
    let ((mut from_file, hosts), folder) = match what.map_err(|failure| vec![failure])? {
        Some(What::Settings(path)) => (of_file(&path, &settings)?, None),
        Some(What::Folder(folder)) => (<_>::default(), Some(folder)),
        None => <_>::default(),
    };
    one_folder(matches, folder.as_deref())?;
    // Whoever starts a server with orders, as a climb does, has said everything on its command line.
    let is_ordered = matches.contains_id("control_fd");
    let environment = if is_ordered { &[] } else { environment };
    let (mut laid, mut mistakes) = (Vec::new(), variables::mistakes(environment, &settings));
    let environment = |name: &str| {
        let word = variables::word(environment, name).filter(|word| !word.is_empty());
        word.map(OsString::from)
    };
    for (at, setting) in settings.into_iter().enumerate() {
        let in_file =
            from_file.iter().position(|(given, _)| *given == at).map(|found| from_file.swap_remove(found).1);
        let named = folder.as_ref().filter(|_| setting.id == ROOT).map(|folder| folder.display().to_string());
        let found = match named {
            Some(folder) => Ok((vec![folder], Origin::Flag)),
            None => of(&setting, matches, &environment, in_file),
        };
        let (words, origin) = match found {
            Ok(found) => found,
            Err(mistake) => {
                mistakes.push(mistake);
                continue;
            }
        };
        if matches!(origin, Origin::Environment(_) | Origin::File { .. }) {
            mistakes.extend(words.iter().filter_map(|word| mistake(&setting, word, &origin)));
        }
        laid.push((setting, words, origin));
    }
    let in_hosts = hosts.iter().flat_map(|host| &host.settings);
    mistakes.extend(in_hosts.flat_map(|(setting, words, origin)| {
        words.iter().filter_map(|word| mistake(setting, word, origin)).collect::<Vec<_>>()
    }));
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let mut args = parsed(&whole_line(line, &laid)).map_err(|error| vec![unreadable(&error)])?;
    args.content.content_root = folder.or(args.content.content_root);
    Ok(Effective { args, settings: laid, hosts })
}

/// A folder that is named twice is two folders, perhaps.
fn one_folder(matches: &ArgMatches, folder: Option<&Path>) -> Result<(), Vec<Failure>> {
    match (folder, matches.get_one::<PathBuf>(ROOT)) {
        (Some(one), Some(other)) => {
            let what = format!("two folders are named: {} and {}", one.display(), other.display());
            Err(vec![Failure::usage(what).try_this("one of them")])
        }
        _ => Ok(()),
    }
}

/// The words of one setting, from the first layer that has it.
fn of(
    setting: &Setting,
    matches: &ArgMatches,
    environment: &impl Fn(&str) -> Option<OsString>,
    in_file: Option<(Vec<String>, Origin)>,
) -> Result<(Vec<String>, Origin), Failure> {
    if matches.value_source(&setting.id) == Some(ValueSource::CommandLine) {
        return Ok((raw_words(setting, matches), Origin::Flag));
    }
    let variable = setting.variable();
    if let Some(word) = environment(&variable) {
        let text = word.into_string().map_err(|_| {
            Failure::usage(format!("{variable} cannot be read")).likely("it holds bytes that are not UTF-8")
        })?;
        return Ok((split(setting, &text), Origin::Environment(variable)));
    }
    Ok(in_file.unwrap_or_else(|| (setting.default.clone(), Origin::Default)))
}

fn raw_words(setting: &Setting, matches: &ArgMatches) -> Vec<String> {
    if setting.kind == Kind::Switch {
        return vec![matches.get_flag(&setting.id).to_string()];
    }
    let raw = matches.get_raw(&setting.id).into_iter().flatten();
    raw.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// A list stands in one variable, with commas between.
fn split(setting: &Setting, text: &str) -> Vec<String> {
    match setting.kind {
        Kind::List => text.split(',').map(|word| word.trim().to_owned()).collect(),
        Kind::Word | Kind::Switch => vec![text.to_owned()],
    }
}

/// Why a word does not suit a setting; `None` when it does.
fn mistake(setting: &Setting, word: &str, origin: &Origin) -> Option<Failure> {
    let what = match origin {
        Origin::File { .. } => format!("{origin}: {} cannot be \"{word}\"", setting.path()),
        _ => format!("{origin} cannot be \"{word}\""),
    };
    let why = match setting.kind {
        Kind::Switch if ["true", "false"].contains(&word) => return None,
        Kind::Switch => "it takes true or false".to_owned(),
        _ if Dials::NAMES.contains(&setting.id.as_str()) => match Dials::default().set(&setting.id, word) {
            Ok(()) => return None,
            Err(DialError::UnknownWord { choices, .. }) => format!("it takes {choices}"),
            Err(error) => error.to_string(),
        },
        _ => {
            let flag = format!("--{}={word}", setting.flag);
            let error = Cli::try_parse_from(["dyno", "serve", &flag]).err()?;
            error
                .source()
                .map_or_else(|| "it is none of the words that it takes".to_owned(), ToString::to_string)
        }
    };
    Some(Failure::usage(what).likely(why).try_this("dyno serve --help"))
}

/// The command line with what other layers add to it, right behind the verb.
fn whole_line(line: &[OsString], laid: &[(Setting, Vec<String>, Origin)]) -> Vec<OsString> {
    let verb = line.iter().position(|word| word == "serve").map_or(line.len(), |at| at + 1);
    let added = laid.iter().filter(|(_, _, origin)| !matches!(origin, Origin::Flag | Origin::Default));
    let words = added.flat_map(|(setting, words, _)| {
        words.iter().filter_map(|word| match (setting.kind, word.as_str()) {
            (Kind::Switch, "true") => Some(format!("--{}", setting.flag)),
            (Kind::Switch, _) => None,
            _ => Some(format!("--{}={word}", setting.flag)),
        })
    });
    let words = words.map(OsString::from);
    line[..verb].iter().cloned().chain(words).chain(line[verb..].iter().cloned()).collect()
}

fn parsed(line: &[OsString]) -> Result<cli::Serve, clap::Error> {
    match Cli::try_parse_from(line)?.verb {
        Some(Verb::Serve(args)) => Ok(*args),
        _ => unreachable!("the same words were serve's before"),
    }
}

fn unreadable(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    Failure::usage(first.strip_prefix("error: ").unwrap_or(first)).try_this("dyno serve --help")
}

type FromFile = (Vec<(usize, (Vec<String>, Origin))>, Vec<LaidHost>);

fn of_file(path: &Path, settings: &[Setting]) -> Result<FromFile, Vec<Failure>> {
    let name = dyno_lab::file::name(path);
    check_writers(path).map_err(|failure| vec![failure])?;
    let bytes = dyno_lab::file::read(path).map_err(|failure| vec![failure])?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        vec![
            Failure::usage(format!("{name}:{line}: bytes that are not UTF-8"))
                .likely("it is no file with settings"),
        ]
    })?;
    let Gives { settings: given, hosts } = file::read(&name, &text, settings)?;
    let origin = |line| Origin::File { name: name.clone(), line };
    let of_host = |host: GivenHost| LaidHost {
        names: host.names.0,
        origin: origin(host.names.1),
        settings: host
            .given
            .into_iter()
            .map(|given| (settings[given.setting].clone(), given.words, origin(given.line)))
            .collect(),
    };
    let given = given.into_iter().map(|given| (given.setting, (given.words, origin(given.line))));
    Ok((given.collect(), hosts.into_iter().map(of_host).collect()))
}

/// What root does must not be everybody's to say.
fn check_writers(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt;
    let is_open = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.mode() & OTHERS_WRITE != 0);
    if is_open && dyno_sys::user::current().0 == 0 {
        let name = path.display();
        return Err(Failure::error(format!("{name} may be written by everybody"))
            .likely("whoever writes it decides what root does")
            .try_this(format!("chmod o-w {name}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cmd::serve::settings;

    fn laid(words: &[&str], variables: &[(&str, &str)]) -> Result<Effective, Vec<String>> {
        let line: Vec<OsString> = ["dyno", "serve"].iter().chain(words).map(OsString::from).collect();
        let variables: Vec<_> = variables.iter().map(|(name, word)| (name.into(), word.into())).collect();
        effective(&line, settings::all(), &variables)
            .map_err(|mistakes| mistakes.iter().map(Failure::in_one_line).collect())
    }

    fn origin(effective: &Effective, path: &str) -> String {
        let found = effective.settings.iter().find(|(setting, ..)| setting.path() == path);
        found.map(|(_, words, origin)| format!("{} {origin}", words.join(" "))).unwrap()
    }

    struct File(std::path::PathBuf);

    impl File {
        fn new(name: &str, text: &str) -> File {
            let path = std::env::temp_dir().join(format!("dyno-{name}-{}.toml", std::process::id()));
            std::fs::write(&path, text).unwrap();
            File(path)
        }

        fn name(&self) -> &str {
            self.0.to_str().unwrap()
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            // Another test's failure is not hidden by a file that is gone.
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_flag_goes_before_the_environment_before_the_file_before_the_default() {
        let file = File::new(
            "layers",
            "[limits]\nidle_timeout = \"1s\"\nbody_timeout = \"1s\"\nheader_timeout = \"1s\"\n[dials]\nlog = \"ring\"\n",
        );
        let variables = [("DYNO_IDLE_TIMEOUT", "2s"), ("DYNO_BODY_TIMEOUT", "2s"), ("DYNO_NAIVE", "true")];
        let effective = laid(&[file.name(), "--idle-timeout", "3s"], &variables).unwrap();
        let seconds = |time: std::time::Duration| time.as_secs();
        let args = &effective.args;
        assert_eq!((seconds(args.idle_timeout), seconds(args.body_timeout)), (3, 2));
        assert_eq!((seconds(args.header_timeout), seconds(args.write_timeout)), (1, 60));
        assert_eq!((args.naive, args.dials.word("log")), (true, Some("ring")));
        assert_eq!(origin(&effective, "limits.idle_timeout"), "3s flag");
        assert_eq!(origin(&effective, "limits.body_timeout"), "2s DYNO_BODY_TIMEOUT");
        assert_eq!(origin(&effective, "limits.header_timeout"), format!("1s {}:4", file.name()));
        assert_eq!(origin(&effective, "limits.write_timeout"), "60s default");
    }

    #[test]
    fn a_list_is_replaced_whole_and_stands_in_one_variable() {
        let file = File::new("list", "listen = [\"127.0.0.1:1\", \"127.0.0.1:2\"]");
        let listen = |words: &[&str], variables: &[(&str, &str)]| {
            let effective = laid(words, variables).unwrap();
            effective.args.listen.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let variable = [("DYNO_LISTEN", "127.0.0.1:3, [::1]:4")];
        assert_eq!(listen(&[file.name()], &[]), "127.0.0.1:1 127.0.0.1:2");
        assert_eq!(listen(&[file.name()], &variable), "127.0.0.1:3 [::1]:4");
        assert_eq!(listen(&["--listen", "127.0.0.1:5", file.name()], &variable), "127.0.0.1:5");
        assert_eq!(listen(&[], &[("DYNO_LISTEN", "")]), "127.0.0.1:8080", "an empty variable is none");
    }

    #[test]
    fn a_server_with_orders_does_not_ask_the_environment() {
        let effective = laid(&["--control-fd", "3"], &[("DYNO_LOG", "sync"), ("DYNO_NAIV", "true")]).unwrap();
        assert!(!effective.args.naive && effective.args.dials.word("log").is_none());
    }

    #[test]
    fn a_folder_is_a_setting_too() {
        let root = |words: &[&str]| {
            laid(words, &[]).map(|found| (origin(&found, "content.root"), found.args.content))
        };
        let (said, content) = root(&["/", "--maxage-max", "60"]).unwrap();
        assert_eq!((said.as_str(), content.maxage_max), ("/ flag", 60));
        assert_eq!(content.content_root.as_deref(), Some(Path::new("/")));
        let file = File::new("content", "[content]\nroot = \"/tmp\"\nno_watch = true\n");
        let (said, content) = root(&[file.name()]).unwrap();
        assert_eq!((said, content.no_watch), (format!("/tmp {}:2", file.name()), true));
        assert_eq!(content.content_root.as_deref(), Some(Path::new("/tmp")));
        assert_eq!(root(&["/", "--content-root", "/tmp"]).unwrap_err().len(), 1);
    }

    #[test]
    fn a_word_that_does_not_suit_is_told_with_its_place_and_what_is_taken() {
        let file = File::new(
            "wrong",
            "listen = [\":80\"]\nsocket_mode = \"9\"\n[limits]\nidle_timeout = \"fast\"\n[dials]\nlog = \"loud\"\n",
        );
        let said = laid(&[file.name()], &[("DYNO_NAIVE", "yes"), ("DYNO_SPIN", "x")]).unwrap_err();
        let name = file.name();
        for says in [
            format!("{name}:1: listen cannot be \":80\" (\":80\" names no host"),
            format!("{name}:2: socket_mode cannot be \"9\" (permissions are octal digits"),
            format!("{name}:4: limits.idle_timeout cannot be \"fast\" ("),
            format!("{name}:6: dials.log cannot be \"loud\" (it takes sync, ring, commit or off)"),
            "DYNO_NAIVE cannot be \"yes\" (it takes true or false)".to_owned(),
            "DYNO_SPIN cannot be \"x\" (it takes microseconds from 0".to_owned(),
        ] {
            assert!(said.iter().any(|line| line.starts_with(&says)), "{says}: {said:#?}");
        }
        assert_eq!(said.len(), 6, "{said:#?}");
    }

    #[test]
    fn a_flag_mends_what_the_file_has_wrong() {
        let file = File::new("mended", "[limits]\nidle_timeout = \"fast\"\n");
        assert!(laid(&[file.name(), "--idle-timeout", "3s"], &[]).is_ok());
        assert!(laid(&["/nowhere.toml"], &[]).unwrap_err()[0].starts_with("cannot read /nowhere.toml"));
    }
}

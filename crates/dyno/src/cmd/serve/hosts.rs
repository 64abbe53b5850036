//! Hosts, from flags and the file's tables `[[host]]` to what the engine is told.
//!
//! What a host does not say of its header lines and error pages is as `[content]` has it; folder and redirects are its own.

use std::path::{Path, PathBuf};

use super::content;
use super::layers::{Effective, LaidHost, Origin};
use crate::cli::{ContentFlags, ErrorPage, HeaderLine, HostFlags};
use clap::ValueEnum;
use dyno_engine::{Host, HostError, Redirect, Security};
use dyno_lab::Failure;

/// How many folders are served in all.
pub(super) fn roots(effective: &Effective) -> usize {
    let own = effective.hosts.iter().filter(|host| root(host).is_some()).count();
    own + usize::from(effective.args.content.content_root.is_some())
}

/// Whether hosts answer requests, and do not only say something with each reply.
pub(super) fn answer(effective: &Effective) -> bool {
    !effective.hosts.is_empty() || !effective.args.content.host.redirect.is_empty()
}

/// What is said of hosts; nothing where nothing is.
///
/// # Errors
/// A name that is none, a folder or a page that is not there, each with its place.
pub(super) fn of(effective: &Effective) -> Result<Vec<Host>, Failure> {
    let flags = &effective.args.content;
    let usual = Said::of_flags(&flags.host)?;
    let is_said = !flags.host.redirect.is_empty() || usual != Said::default();
    let mut hosts = Vec::new();
    if is_said {
        for page in &usual.pages {
            check_page(page, flags.content_root.as_deref(), "--error-page")?;
        }
        let host = usual.say(Host::any())?;
        hosts.push(flags.host.redirect.iter().cloned().fold(host, Host::redirect));
    }
    for laid in &effective.hosts {
        hosts.push(of_host(laid, flags, &usual, roots(effective))?);
    }
    Ok(hosts)
}

/// What a host says with its replies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Said {
    preset: bool,
    lines: Vec<HeaderLine>,
    pages: Vec<ErrorPage>,
}

impl Said {
    fn of_flags(flags: &HostFlags) -> Result<Said, Failure> {
        let preset = Security::from(flags.security_headers) == Security::Preset;
        let said = Said { preset, lines: flags.header.clone(), pages: flags.error_page.clone() };
        let _ = said.say(Host::any())?;
        Ok(said)
    }

    fn say(&self, host: Host) -> Result<Host, Failure> {
        let refused = |error: HostError| refused("", &error);
        let security = if self.preset { Security::Preset } else { Security::None };
        let mut host = host.security(security);
        for HeaderLine { name, value } in &self.lines {
            host = host.header(name, value).map_err(refused)?;
        }
        for ErrorPage { status, file } in &self.pages {
            host = host.error_page(*status, file).map_err(refused)?;
        }
        Ok(host)
    }
}

fn of_host(laid: &LaidHost, flags: &ContentFlags, usual: &Said, roots: usize) -> Result<Host, Failure> {
    let mut host = Host::new(&laid.names).map_err(|error| refused(&format!("{}: ", laid.origin), &error))?;
    let mut said = usual.clone();
    let folder = root(laid);
    if let Some((folder, origin)) = &folder {
        let content =
            content::of_folder(flags, folder, roots).map_err(|failure| failure.at(&origin.to_string()))?;
        host = host.content("/", content).map_err(|error| Failure::error(error.to_string()))?;
    }
    for (setting, words, origin) in &laid.settings {
        match setting.id.as_str() {
            "redirect" => host = each(words, origin, Redirect::clone)?.into_iter().fold(host, Host::redirect),
            "header" => said.lines = each(words, origin, HeaderLine::clone)?,
            "error_page" => {
                said.pages = each(words, origin, ErrorPage::clone)?;
                let folder = folder.as_ref().map(|(folder, _)| folder.as_path());
                said.pages.iter().try_for_each(|page| check_page(page, folder, &origin.to_string()))?;
            }
            "security_headers" => {
                let word = words.first().and_then(|word| crate::cli::SecurityWord::from_str(word, true).ok());
                said.preset = word.map(Security::from) == Some(Security::Preset);
            }
            _ => {}
        }
    }
    said.say(host).map_err(|failure| failure.at(&laid.origin.to_string()))
}

fn root(laid: &LaidHost) -> Option<(PathBuf, &Origin)> {
    let found = laid.settings.iter().find(|(setting, ..)| setting.id == "content_root");
    found.and_then(|(_, words, origin)| Some((PathBuf::from(words.first()?), origin)))
}

/// Words that were judged before.
fn each<T: std::str::FromStr>(
    words: &[String],
    origin: &Origin,
    same: fn(&T) -> T,
) -> Result<Vec<T>, Failure> {
    let parsed = words.iter().map(|word| word.parse().map(|value: T| same(&value)));
    parsed.collect::<Result<_, _>>().map_err(|_| Failure::usage(format!("{origin}: it is not understood")))
}

/// A page that is not there when the server starts is a typing mistake, more likely than a page that comes later.
fn check_page(page: &ErrorPage, root: Option<&Path>, place: &str) -> Result<(), Failure> {
    let ErrorPage { status, file } = page;
    let name = file.strip_prefix('/').unwrap_or(file);
    match root {
        Some(root) if root.join(name).is_file() => Ok(()),
        Some(root) => {
            Err(Failure::usage(format!("{place}: there is no {file} for {status} in {}", root.display()))
                .likely("an error page is a file below the host's root")
                .try_this("ls, on that folder"))
        }
        None => Err(Failure::usage(format!("{place}: {file} for {status} is in no folder"))
            .likely("an error page is a file below the host's root, and it has none")
            .try_this("root = \"…\" beside it")),
    }
}

fn refused(place: &str, error: &HostError) -> Failure {
    Failure::usage(format!("{place}{error}"))
        .likely("a typing mistake, or what no server should send")
        .try_this("docs/manual/hosts.md, which tells what is taken")
}

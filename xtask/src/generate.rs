//! `cargo xtask gen`: the manual's page of the command line, made from the program's own help, so that they cannot differ.
//!
//! People call it after a change of flags; `ci` calls it with `--check`, which compares and writes
//! nothing, and with the `--dyno` that the tests were built with. `gen bpf` makes
//! or compares the BPF objects instead, see `bpf`.

pub(crate) mod bpf;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::command::{command, output};
use crate::flags::{Flags, Given};
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};

const PAGE: &str = "docs/manual/cli.md";

const HEAD: &str =
    "# The command line\n\nMade by `cargo xtask gen` from the program's own help; edit the help, not this.\n";

/// The width of the page's help texts: what fits a code block on a page.
const COLUMNS: &str = "100";

/// Runs the verb.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let check = flags.switch("--check");
    let dyno: Option<PathBuf> = flags.parsed("--dyno")?;
    let what = flags.word();
    flags.finish()?;
    match what.as_deref() {
        Some("bpf") => return bpf::run(repo, check),
        Some(word) => {
            return Err(Trouble::new(format!("gen makes no \"{word}\"")).remedy("cargo xtask --help"));
        }
        None => {}
    }
    let page = page(&dyno.map_or_else(|| repo.release_dyno(), Ok)?)?;
    if check == Given::Yes {
        return Ok(compared(&repo.read(PAGE).unwrap_or_default(), &page));
    }
    let path = repo.path(PAGE);
    let folder = path.parent().unwrap_or(repo.root());
    std::fs::create_dir_all(folder).map_err(Trouble::cannot(format!("make {}", folder.display())))?;
    std::fs::write(&path, page).map_err(Trouble::cannot(format!("write {PAGE}")))?;
    eprintln!("gen: wrote {PAGE}");
    Ok(Outcome::Done)
}

fn compared(found: &str, wanted: &str) -> Outcome {
    if found == wanted {
        return Outcome::Done;
    }
    let differs = |(a, b): (&str, &str)| a != b;
    let line = found.lines().zip(wanted.lines()).position(differs);
    let line = line.unwrap_or_else(|| found.lines().count().min(wanted.lines().count()));
    println!("{PAGE}:{}: is not what the program's help says: run cargo xtask gen", line + 1);
    Outcome::No
}

fn page(dyno: &Path) -> Result<String, Trouble> {
    let top = help(dyno, &[])?;
    let mut page = format!("{HEAD}\n```text\n{}\n```\n", top.trim_end());
    for verb in verbs(&top) {
        let text = help(dyno, &[verb])?;
        write!(page, "\n## dyno {verb}\n\n```text\n{}\n```\n", text.trim_end()).expect("a String takes all");
    }
    Ok(page)
}

fn help(dyno: &Path, words: &[&str]) -> Result<String, Trouble> {
    let mut asked = command([dyno.to_string_lossy()]);
    // Nothing of this terminal or machine may come into the page.
    asked.args(words).arg("--help").env("COLUMNS", COLUMNS).env("NO_COLOR", "1");
    let text = output(&mut asked)?;
    Ok(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"))
}

/// The verbs that a help text lists under "Commands:", but `help` itself.
fn verbs(help: &str) -> Vec<&str> {
    let listed = help.lines().skip_while(|line| line.trim() != "Commands:").skip(1);
    let entries = listed.take_while(|line| line.is_empty() || line.starts_with(' '));
    // A verb's line is indented by two; a wrapped description by more.
    let named = entries.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    named.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_read_from_the_list_of_commands() {
        let help = "An engine.\n\nUsage: dyno <COMMAND>\n\nCommands:\n  serve  Serves\n         and more\n  load   Loads\n  \
                    help   Print this\n\nOptions:\n  -h, --help  Print help\n";
        assert_eq!(verbs(help), ["serve", "load"]);
        assert_eq!(verbs("no list"), Vec::<&str>::new());
    }

    #[test]
    fn a_page_that_differs_anywhere_is_found() {
        assert_eq!(compared("a\nb\n", "a\nb\n"), Outcome::Done);
        assert_eq!(compared("a\nb\n", "a\nc\n"), Outcome::No);
        assert_eq!(compared("", "a\n"), Outcome::No);
        assert_eq!(compared("a\nb\n", "a\n"), Outcome::No);
    }
}

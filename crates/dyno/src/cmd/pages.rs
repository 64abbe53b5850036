//! `dyno completions` and `dyno man`: what a shell and man(1) read, from the one source of help.
//!
//! `cargo xtask install` and the package put them in their places. What a shell then asks for is answered by `candidates`.

mod man;

use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use dyno_lab::{Failure, file};
use dyno_record::alike;

use super::exit;
use crate::candidates;
use crate::cli::{self, Cli, Shell};
use crate::out;

/// Runs `dyno completions`.
pub(crate) fn completions(args: &cli::Completions) -> Result<ExitCode, Failure> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let script = candidates::script(shell)
        .map_err(|error| Failure::error("the script cannot be made").because(&error))?;
    out::print_bytes(&script)?;
    Ok(exit::DONE)
}

/// Runs `dyno man`.
pub(crate) fn man(args: &cli::Man) -> Result<ExitCode, Failure> {
    let pages = pages();
    let Some(folder) = &args.all else {
        let wanted = args.verb.as_ref().map_or_else(|| "dyno".to_owned(), |verb| format!("dyno-{verb}"));
        let page = pages.iter().find(|(name, _)| *name == wanted);
        let page = page.ok_or_else(|| unknown(args.verb.as_deref().unwrap_or_default(), &pages))?;
        out::print(&page.1)?;
        return Ok(exit::DONE);
    };
    std::fs::create_dir_all(folder)
        .map_err(|error| file::refused(&format!("cannot make {}", folder.display()), &error))?;
    for (name, page) in &pages {
        file::write_file(&folder.join(format!("{name}.1")), page.as_bytes(), None)?;
    }
    out::say(&format!("{} pages written to {}\n", pages.len(), folder.display()));
    Ok(exit::DONE)
}

fn unknown(verb: &str, pages: &[(String, String)]) -> Failure {
    let known = pages.iter().filter_map(|(name, _)| name.strip_prefix("dyno-"));
    let likely = alike::did_you_mean(verb, known);
    Failure::usage(format!("there is no verb {verb}"))
        .likely(likely.unwrap_or_else(|| "verbs of verbs are written with a dash, as tune-apply".to_owned()))
        .try_this("dyno --help")
}

/// Name and text of every page: of the program, of its verbs, and of theirs.
fn pages() -> Vec<(String, String)> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add(&command, "dyno", &mut pages);
    pages
}

fn add(command: &Command, name: &str, pages: &mut Vec<(String, String)>) {
    pages.push((name.to_owned(), man::page(command, name)));
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        add(verb, &format!("{name}-{}", verb.get_name()), pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_a_page_with_its_sentence_its_examples_and_its_flags() {
        let pages = pages();
        let page = |wanted: &str| &pages.iter().find(|(name, _)| name == wanted).expect(wanted).1;
        for verb in Cli::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let text = page(&format!("dyno-{}", verb.get_name()));
            assert!(text.contains(".SH EXAMPLES"), "{}: {text}", verb.get_name());
        }
        assert!(page("dyno").contains("dyno\\-climb"), "the verbs' pages are named");
        assert!(page("dyno-climb").contains("\\-\\-rung") && page("dyno-tune-apply").contains("HASH"));
    }

    #[test]
    fn nothing_of_a_text_is_taken_for_a_request_of_roff() {
        for (name, text) in pages() {
            let requests = text.lines().filter(|line| line.starts_with(['.', '\'']));
            let known =
                [".TH", ".SH", ".SS", ".TP", ".PP", ".RS", ".RE", ".nf", ".fi", ".ie", ".el", ".br", ".IP"];
            for line in requests {
                assert!(known.iter().any(|request| line.starts_with(request)), "{name}: {line}");
            }
        }
    }

    #[test]
    fn a_page_that_is_not_there_names_the_one_that_is() {
        let lines = unknown("clmb", &pages()).lines();
        assert!(lines.contains("did you mean climb?"), "{lines}");
    }
}

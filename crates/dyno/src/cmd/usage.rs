//! What is not a verb's business on the command line: help, version, and mistakes told in three lines.
//!
//! clap finds the mistake; this only cuts its words into what, likely and try, so that every error of the product has
//! one shape.

use crate::out;
use std::error::Error;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::exit;
use crate::cli::{Cli, layout};
use dyno_lab::Failure;

/// Prints help or version; a mistake is a failure.
pub(crate) fn unparsed(error: &clap::Error) -> Result<ExitCode, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            out::print(&layout::shown(&error.render().to_string()))?;
            Ok(exit::DONE)
        }
        _ => {
            let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
            Err(mistake(error, &words.collect::<Vec<_>>()))
        }
    }
}

fn mistake(error: &clap::Error, words: &[String]) -> Failure {
    if let Some(flag) = given_nothing(error, words) {
        return Failure::usage(format!("{flag} is given an empty text"))
            .likely("a variable of the shell that stands there is not set")
            .try_this(help_of(words));
    }
    if let ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand = error.kind() {
        return without_command(words);
    }
    let text = error.render().to_string();
    let paragraphs: Vec<&str> = text.split("\n\n").collect();
    let what = one_line(paragraphs.first().copied().unwrap_or_default());
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    let (what, likely) = match (error.source(), what.split_once(" [possible values: ")) {
        (Some(source), _) => {
            let reason = source.to_string();
            (what.strip_suffix(&format!(": {reason}")).unwrap_or(what), Some(reason))
        }
        (None, Some((what, values))) => (what, Some(format!("it takes {}", values.trim_end_matches(']')))),
        (None, None) if is_unknown_flag(error) => {
            (what, alike(&paragraphs).or_else(|| Some(format!("{} has no such flag", verb_of(words)))))
        }
        (None, None) => (what, tip(&paragraphs).or_else(|| usage(&paragraphs))),
    };
    Failure::usage(what).likely(likely.unwrap_or_else(|| otherwise(error.kind()))).try_this(help_of(words))
}

/// A verb that has commands of its own, without one of them: clap tells its whole help.
fn without_command(words: &[String]) -> Failure {
    let command = meant(words);
    let names = command.get_subcommands().map(clap::Command::get_name).filter(|name| *name != "help");
    Failure::usage(format!("{} needs a command", verb_of(words)))
        .likely(format!("it takes {}", names.collect::<Vec<_>>().join(", ")))
        .try_this(help_of(words))
}

/// A flag that the verb has not. What takes values as well could take the word for one (`-- --flag`), which nobody means.
fn is_unknown_flag(error: &clap::Error) -> bool {
    let word = error.get(ContextKind::InvalidArg);
    error.kind() == ErrorKind::UnknownArgument
        && matches!(word, Some(ContextValue::String(word)) if word.starts_with('-'))
}

/// The flag that was perhaps meant.
fn alike(paragraphs: &[&str]) -> Option<String> {
    tip(paragraphs).filter(|tip| !tip.starts_with("to pass "))
}

/// The flag whose value is there and empty, which clap tells as one that is missing.
fn given_nothing(error: &clap::Error, words: &[String]) -> Option<String> {
    if !words.iter().any(|word| word.is_empty() || word.starts_with('-') && word.ends_with('=')) {
        return None;
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let empty = error.kind() == ErrorKind::InvalidValue && text(ContextKind::InvalidValue)?.is_empty();
    empty.then(|| text(ContextKind::InvalidArg)).flatten()
}

/// What is likely where clap gives neither reason nor tip nor usage.
fn otherwise(kind: ErrorKind) -> String {
    let likely = match kind {
        ErrorKind::InvalidUtf8 => "it holds bytes that are not UTF-8",
        _ => "its value is missing: the line ends there, or another flag follows",
    };
    likely.to_owned()
}

fn one_line(paragraph: &str) -> String {
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn tip(paragraphs: &[&str]) -> Option<String> {
    let tip = paragraphs.iter().find_map(|paragraph| paragraph.trim_start().strip_prefix("tip: "))?;
    Some(one_line(tip))
}

fn usage(paragraphs: &[&str]) -> Option<String> {
    let usage = paragraphs.iter().find_map(|paragraph| paragraph.strip_prefix("Usage: "))?;
    // A verb that is used in two ways has a line for each.
    let ways: Vec<String> = usage.lines().map(one_line).filter(|way| !way.is_empty()).collect();
    Some(format!("it is used as {}", ways.join(", or ")))
}

/// The help of the verb that was meant.
fn help_of(words: &[String]) -> String {
    format!("{} --help", verb_of(words))
}

/// The verb that was meant, with its command where it has such: `dyno tune apply`.
fn verb_of(words: &[String]) -> String {
    let (_, path) = walked(words);
    path.iter().fold("dyno".to_owned(), |verb, word| format!("{verb} {word}"))
}

fn meant(words: &[String]) -> clap::Command {
    walked(words).0
}

/// The command that the words lead to, and those of them that lead there.
fn walked(words: &[String]) -> (clap::Command, Vec<String>) {
    let (mut command, mut path) = (Cli::command(), Vec::new());
    for word in words {
        let Some(next) = command.find_subcommand(word).cloned() else { continue };
        path.push(word.clone());
        command = next;
    }
    (command, path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::Parser;

    fn lines(words: &[&str]) -> Vec<String> {
        let error = Cli::try_parse_from(["dyno"].iter().chain(words)).unwrap_err();
        let failure = mistake(&error, &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        failure.lines().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_mistake_has_three_lines_whatever_it_is() {
        for words in [
            &["serv"][..],
            &["serve", "--lsten", "127.0.0.1:1"],
            &["serve", "--listen", ":8080"],
            &["serve", "--color", "blue"],
            &["load"],
            &["load", "-c", "0", "http://h/"],
            &["load", "http://h/", "-d"],
            &["judge", "a", "b", "c"],
        ] {
            let lines = lines(words);
            assert_eq!(lines.len(), 3, "{words:?}: {lines:#?}");
            let starts = ["error: ", "  likely: ", "  try:    dyno "];
            assert!(lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{lines:#?}");
        }
    }

    /// Fault: clap's own text, which begins with what the verb does and looks like the mistake.
    #[test]
    fn a_verb_without_its_command_is_told_which_there_are() {
        assert_eq!(
            lines(&["tune", "--color", "never"]),
            [
                "error: dyno tune needs a command",
                "  likely: it takes plan, apply, confirm, status, rollback, persist, snapshot, diff",
                "  try:    dyno tune --help"
            ]
        );
    }

    /// Fault: clap's tip, which would have the word passed on as a value.
    #[test]
    fn a_flag_that_a_verb_has_not_is_told_as_that() {
        assert_eq!(lines(&["load", "--wrong"])[1], "  likely: dyno load has no such flag");
        assert_eq!(lines(&["tune", "apply", "--wrong"])[2], "  try:    dyno tune apply --help");
    }

    /// Fault: the ways of use told as one line of words.
    #[test]
    fn a_verb_that_is_used_in_two_ways_has_both_told() {
        let likely = &lines(&["audit", "facts", "more"])[1];
        assert!(!likely.contains("dyno audit facts [OPTIONS] dyno"), "{likely}");
        let two = usage(&["Usage: dyno audit [OPTIONS]\n       dyno audit <COMMAND>\n"]);
        assert_eq!(two.as_deref(), Some("it is used as dyno audit [OPTIONS], or dyno audit <COMMAND>"));
    }

    #[test]
    fn the_reason_stands_apart_from_what_was_wrong() {
        let lines = lines(&["serve", "--listen", ":8080"]);
        assert_eq!(lines[0], "error: invalid value ':8080' for '--listen <ADDRESS>'");
        assert!(lines[1].contains("names no host; write 127.0.0.1:8080"), "{}", lines[1]);
        assert_eq!(lines[2], "  try:    dyno serve --help");
    }

    #[test]
    fn a_word_that_is_nearly_right_is_told_the_right_one() {
        assert_eq!(lines(&["serv"])[1], "  likely: a similar subcommand exists: 'serve'");
        assert!(lines(&["serve", "--lsten", "x"])[1].contains("'--listen'"));
    }

    /// Planted fault: the value is told as missing, and the reader looks for what he wrote.
    #[test]
    fn an_empty_text_for_a_file_is_told_as_that() {
        for words in
            [&["climb", "-o", ""][..], &["judge", "a", "b", "--html", ""], &["report", "a", "--output="]]
        {
            let lines = lines(words);
            assert!(
                lines[0].ends_with("is given an empty text") && lines[0].contains(" <FILE>"),
                "{lines:#?}"
            );
            assert_eq!(lines[1], "  likely: a variable of the shell that stands there is not set");
        }
        assert!(lines(&["load", "http://h/", "-d"])[0].contains("none was supplied"), "nothing is there");
    }

    #[test]
    fn choices_are_named() {
        assert_eq!(lines(&["serve", "--color", "blue"])[1], "  likely: it takes auto, always, never");
    }
}

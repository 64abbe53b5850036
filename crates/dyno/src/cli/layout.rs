//! Help laid out for the terminal's width: the command line goes through [`laid_out`], its help as rendered through
//! [`shown`].
//!
//! clap breaks what is too long and keeps every line end that is there, which leaves stumps on a narrow terminal; it breaks
//! an example into what looks like two commands, and a line of usage never. So the text around the flags is broken here
//! first: a paragraph where the terminal ends, an example as a shell would take it.

use clap::Command;

use crate::out;

/// Longer lines are hard to read; also the width where nothing tells how wide it is.
const WIDTH_MAX: usize = 100;
/// Below this the flags' own columns have no room.
const WIDTH_MIN: usize = 40;
/// What continues an example, and where it goes on.
const CONTINUED: &str = " \\\n    ";
/// What a line of usage begins with; it goes on below its own words.
const USAGE: &str = "Usage: ";

fn width() -> usize {
    out::columns().unwrap_or(WIDTH_MAX).clamp(WIDTH_MIN, WIDTH_MAX)
}

/// The command line, its help laid out.
pub(super) fn laid_out(command: Command) -> Command {
    let width = width();
    broken_everywhere(command, width).term_width(width)
}

/// Help as clap rendered it.
pub(crate) fn shown(help: &str) -> String {
    help.split_inclusive('\n').map(|line| with_usage_broken(line, width())).collect()
}

fn broken_everywhere(command: Command, width: usize) -> Command {
    let of = |text: &clap::builder::StyledStr| broken(&text.to_string(), width);
    let (before, after) = (command.get_before_help().map(of), command.get_after_help().map(of));
    let command = before.into_iter().fold(command, Command::before_help);
    let command = after.into_iter().fold(command, Command::after_help);
    command.mut_subcommands(|verb| broken_everywhere(verb, width))
}

/// Paragraphs filled, examples (what is indented) continued.
fn broken(text: &str, width: usize) -> String {
    let (mut out, mut paragraph) = (Vec::new(), Vec::new());
    for line in text.lines().chain([""]) {
        if !line.is_empty() && !line.starts_with(' ') {
            paragraph.extend(line.split(' '));
            continue;
        }
        if !paragraph.is_empty() {
            out.push(filled(paragraph.drain(..), "\n", width));
        }
        out.push(filled(example_words(line).into_iter(), CONTINUED, width));
    }
    out.pop();
    out.join("\n")
}

fn with_usage_broken(line: &str, width: usize) -> String {
    if !line.starts_with(USAGE) {
        return line.to_owned();
    }
    filled(line.split(' '), &format!("\n{:1$}", "", USAGE.len()), width)
}

/// Words one after another, with `end` where the line would be too long.
fn filled<'t>(words: impl Iterator<Item = &'t str>, end: &str, width: usize) -> String {
    // A continued line must have room for what says so.
    let (mark, indent) = end.split_once('\n').expect("an end ends a line");
    let (mut out, mut column) = (String::new(), 0);
    for (at, word) in words.enumerate() {
        let chars = word.trim_end().chars().count();
        if at > 0 && column + 1 + chars + mark.len() > width {
            out.push_str(end);
            column = indent.len();
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += chars;
    }
    out
}

/// Words as a shell sees them, quotes and the indent kept: only between them may an example be broken.
fn example_words(line: &str) -> Vec<&str> {
    let start = line.len() - line.trim_start().len();
    let (mut words, mut from, mut is_quoted) = (Vec::new(), 0, false);
    for (at, c) in line.char_indices().skip(start) {
        is_quoted ^= c == '\'';
        if c == ' ' && !is_quoted {
            words.push(&line[from..at]);
            from = at + 1;
        }
    }
    words.push(&line[from..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_filled_whatever_its_own_line_ends_are() {
        let text = "It needs no rebuild, no agent and no\nframe pointers.\n\nNor a change.";
        assert_eq!(broken(text, 80), "It needs no rebuild, no agent and no frame pointers.\n\nNor a change.");
        let narrow = "It needs no rebuild,\nno agent and no\nframe pointers.\n\nNor a change.";
        assert_eq!(broken(text, 20), narrow);
    }

    #[test]
    fn an_example_goes_on_as_a_shell_takes_it_and_never_within_quotes() {
        let text = "Examples:\n  dyno load --expect body='Hello, World!' http://h/\n  dyno climb";
        assert_eq!(broken(text, 60), text);
        let narrow =
            "Examples:\n  dyno load --expect \\\n    body='Hello, World!' \\\n    http://h/\n  dyno climb";
        assert_eq!(broken(text, 28), narrow);
    }

    #[test]
    fn usage_goes_on_below_its_own_words() {
        let usage = "Usage: dyno causal [OPTIONS] <PID|--pid <PID>|CMD>\n";
        assert_eq!(with_usage_broken(usage, 50), usage);
        let narrow = "Usage: dyno causal [OPTIONS] <PID|--pid\n       <PID>|CMD>\n";
        assert_eq!(with_usage_broken(usage, 40), narrow);
        assert_eq!(with_usage_broken("Unusually long\n", 5), "Unusually long\n");
    }
}

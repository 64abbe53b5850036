//! Shell commands that apply what a climb found, as text a person copies.
//!
//! Pages and tables call this. Nothing is run here. What the record says is quoted where it is not a command yet, folded
//! between arguments where it is long, and never holds a character that a terminal would obey.

use dyno_record::climb::Climb;

use crate::number::obeyed;

/// Columns of a command on a page: what a phone of 360 pixels shows of a fixed-width font.
pub(crate) const PAGE_COLUMNS: usize = 36;
/// Blanks before the second line of a folded command.
const FOLD_INDENT: usize = 2;

/// The commands of the final setting: those of the record, or its command line where it has none. None where the climb came
/// to no setting, or to the start's.
pub(crate) fn commands(climb: &Climb) -> Vec<String> {
    let Some(reached) = climb.reached().filter(|_| climb.has_climbed()) else { return Vec::new() };
    if !reached.apply.is_empty() {
        return reached.apply.iter().map(|command| shown(command)).collect();
    }
    let line = command_line(&reached.final_env, &reached.final_argv);
    if line.is_empty() { Vec::new() } else { vec![line] }
}

/// One command line for a POSIX shell: `NAME=value … program argument …`.
pub(crate) fn command_line(env: &[String], argv: &[String]) -> String {
    let assignment = |pair: &String| match pair.split_once('=') {
        Some((name, value)) if is_name(name) => format!("{name}={}", quoted(value)),
        _ => quoted(pair),
    };
    let words: Vec<String> = env.iter().map(assignment).chain(argv.iter().map(|arg| quoted(arg))).collect();
    shown(&words.join(" "))
}

/// Whether a shell takes this for a variable (XBD 3.235).
fn is_name(word: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    word.starts_with(letter) && word.chars().all(|c| letter(c) || c.is_ascii_digit())
}

/// A word as a POSIX shell reads it back (XCU 2.2.2: between single quotes every character stands for itself).
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    // A leading `=` or `~` means something to some shells; `=` inside a word does not.
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with('=') {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The text with its line ends, and with everything visible that a terminal would obey.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if obeyed(c) && c != '\n' && c != '\t' {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// A command on lines of at most `width` columns where its words allow it, joined by `\` at line ends.
///
/// Lines are broken at blanks outside quotes only. A command with line ends of its own or a comment stays as it is.
pub(crate) fn folded(command: &str, width: usize) -> Vec<String> {
    if command.contains(['\n', '#']) {
        return command.lines().map(str::to_owned).collect();
    }
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces(command) {
        // Two columns are kept for the backslash.
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + piece.chars().count() + 2 <= width => {
                line.push(' ');
                line.push_str(&piece);
            }
            Some(line) => {
                line.push_str(" \\");
                lines.push(" ".repeat(FOLD_INDENT) + &piece);
            }
            None => lines.push(piece),
        }
    }
    lines
}

/// Words of a command, a flag together with its value: `--log ring` reads better on one line.
fn pieces(command: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for word in words(command) {
        match pieces.last_mut() {
            Some(flag) if flag.starts_with("--") && !flag.contains([' ', '=']) && !word.starts_with('-') => {
                flag.push(' ');
                flag.push_str(word);
            }
            _ => pieces.push(word.to_owned()),
        }
    }
    pieces
}

/// Words of a command as they are written, quotes and all.
fn words(command: &str) -> impl Iterator<Item = &str> {
    let mut quote = None;
    let mut escaped = false;
    let outside = move |c: char| {
        let was_escaped = std::mem::take(&mut escaped);
        match (quote, c) {
            (None, ' ') => return !was_escaped,
            (None, '\'' | '"') if !was_escaped => quote = Some(c),
            (Some(open), c) if open == c && !was_escaped => quote = None,
            // Inside single quotes a backslash is a backslash.
            (None | Some('"'), '\\') if !was_escaped => escaped = true,
            _ => {}
        }
        false
    };
    command.split(outside).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::samples::climb::sample_climb;
    use dyno_record::climb::{Reached, RungVerdict, Total};

    /// A climb without a total that came to this setting by a rung of the sample's.
    fn ending(reached: &Reached) -> Climb {
        let rungs = sample_climb(1).rungs;
        Climb { reached: Some(reached.clone()), rungs, ..Climb::default() }
    }

    /// What a real shell makes of a command line: its arguments, one per line.
    fn read_by_sh(line: &str) -> Vec<String> {
        let script = format!("show() {{ printf '%s\\n' \"$@\"; }}; show {line}");
        let output = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    const HOSTILE: [&str; 10] =
        ["dyno", "a b", "$(touch x)", "`id`", "it's", "\"q\"", "a\\ b", "*", "~", "--dial=log=ring;true"];

    fn hostile() -> Vec<String> {
        HOSTILE.map(str::to_owned).to_vec()
    }

    #[test]
    fn a_shell_reads_back_every_argument_as_it_was() {
        assert_eq!(read_by_sh(&command_line(&[], &hostile())), HOSTILE);
    }

    #[test]
    fn a_folded_command_is_the_same_command() {
        let line = command_line(&[], &hostile());
        for width in [10, 20, 30, 60] {
            assert_eq!(read_by_sh(&folded(&line, width).join("\n")), HOSTILE, "width {width}");
        }
    }

    #[test]
    fn folding_keeps_to_the_width() {
        let argv: Vec<String> = (0..20).map(|n| format!("--flag-{n}=value")).collect();
        let lines = folded(&command_line(&[], &argv), 50);
        assert!(lines.len() > 3 && lines.iter().all(|line| line.chars().count() <= 50), "{lines:?}");
        assert!(lines[0].ends_with(" \\") && !lines[lines.len() - 1].ends_with('\\'), "{lines:?}");
    }

    #[test]
    fn the_records_own_commands_come_first_and_the_final_line_otherwise() {
        let mut reached = Reached { final_argv: vec!["dyno".into(), "serve".into()], ..Reached::default() };
        reached.final_env = vec!["MODE=very fast".into()];
        assert_eq!(commands(&ending(&reached)), ["MODE='very fast' dyno serve"]);
        reached.apply = vec!["sudo sysctl net.core.busy_poll=50".into()];
        assert_eq!(commands(&ending(&reached)), ["sudo sysctl net.core.busy_poll=50"]);
        let total = Total { reached, ..Total::default() };
        let mut whole = Climb { total: Some(total), ..ending(&Reached::default()) };
        assert_eq!(commands(&whole).len(), 1);
        assert!(commands(&ending(&Reached::default())).is_empty() && commands(&Climb::default()).is_empty());
        whole.rungs.iter_mut().for_each(|rung| rung.attempt.verdict = RungVerdict::NoDifference);
        assert!(commands(&whole).is_empty(), "the start needs no applying");
    }

    #[test]
    fn a_terminal_obeys_nothing_in_a_command() {
        let reached = Reached { apply: vec!["echo \u{1b}]0;x\u{7}\u{202e}".into()], ..Reached::default() };
        assert_eq!(commands(&ending(&reached)), ["echo \\u{1b}]0;x\\u{7}\\u{202e}"]);
    }
}

//! How work that was not done is told: three lines on standard error, and where a job of continuous integration reads, its
//! workflow command too.
//!
//! `main` and the climb call this. A job that shows annotations alone must not look as if nothing had happened.

use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use dyno_lab::Failure;

use crate::out;

/// Whether an error stands among the workflow commands already.
static ANNOTATED: AtomicBool = AtomicBool::new(false);

/// Says that what was written for the job tells the failure that follows.
pub(crate) fn stands_in_the_format() {
    ANNOTATED.store(true, Relaxed);
}

/// Tells a failure, once in each place.
pub(crate) fn told(failure: &Failure) {
    out::say(&failure.lines());
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if is_for_github(&words) && !ANNOTATED.swap(true, Relaxed) {
        let verb = words.first().map(|word| word.to_string_lossy()).filter(|word| !word.starts_with('-'));
        let title = verb.map_or("dyno".to_owned(), |verb| format!("dyno {verb}"));
        // Whoever reads nothing any more has no annotations either.
        let _ = out::print(&dyno_report::export::github_error(&title, &failure.in_one_line()));
    }
}

/// Whether workflow commands were asked for, also on a line that cannot be parsed; behind `--` stand another program's words.
fn is_for_github(words: &[OsString]) -> bool {
    let own: Vec<&OsString> = words.iter().take_while(|word| *word != "--").collect();
    let pair = |pair: &[&OsString]| pair[0] == "--format" && pair[1] == "github";
    own.iter().any(|word| *word == "--format=github") || own.windows(2).any(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workflow_commands_are_asked_for_by_the_flag_and_not_by_a_watched_programs_words() {
        let asked = |line: &str| is_for_github(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(asked("judge a b --format github") && asked("judge --format=github a b"));
        assert!(!asked("judge a b --format junit") && !asked("judge github --format"));
        assert!(!asked("profile -- run --format github"));
    }
}

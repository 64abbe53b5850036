//! What the flags about logs come to, and what is told of the logs.

use std::io;
use std::path::Path;

use crate::cli::LogFlags;
use crate::out;
use dyno_engine::supervisor::{Event, LogTrouble};
use dyno_engine::{Config, ErrorLog, Level, Log};
use dyno_lab::Failure;
use dyno_measure::units::thousands;

/// What a line of talk begins with that tells of something wrong.
const WARNING: &str = "warning: ";

/// Of something that could not be done.
const ERROR: &str = "error: ";

/// Whether the error log could be opened.
pub(super) fn check_errors(flags: &LogFlags) -> Result<(), Failure> {
    let Some(path) = &flags.error_log else { return Ok(()) };
    ErrorLog::check(path).map_err(|error| not_opened(path, &error))
}

fn not_opened(path: &Path, error: &io::Error) -> Failure {
    dyno_lab::file::refused(&format!("cannot open the error log {}", path.display()), error)
}

/// The error log, as the flags have it.
pub(super) fn open_errors(flags: &LogFlags) -> Result<ErrorLog, Failure> {
    let Some(path) = &flags.error_log else { return Ok(ErrorLog::on_stderr(flags.error_level)) };
    ErrorLog::open(path, flags.error_level).map_err(|error| not_opened(path, &error))
}

/// When something is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// At the start, which whoever starts a server looks at.
    Start,
    /// While it runs.
    Later,
}

impl When {
    pub(super) fn of(event: &Event) -> When {
        match event {
            Event::Listening { .. } | Event::Metrics { .. } => When::Start,
            Event::Content { .. } | Event::Fitted { .. } => When::Start,
            Event::NotStarted { .. } | Event::FilesOpen => When::Start,
            _ => When::Later,
        }
    }
}

/// Tells what happens: in the error log; on standard error where that is the error log, and at the start in any case. Nobody waits
/// for a reader: a server must hear its orders.
pub(super) fn tell(log: &ErrorLog, when: When, text: &str) {
    for line in text.split_inclusive('\n') {
        let marks = [(ERROR, Level::Error), (WARNING, Level::Warn)];
        let marked = marks.into_iter().find_map(|(mark, level)| Some((level, line.strip_prefix(mark)?)));
        let (level, bare) = marked.unwrap_or((Level::Notice, line));
        if log.is_file() {
            log.say(level, bare);
        }
        if when == When::Start || !log.is_file() && log.takes(level) {
            out::mention(line);
        }
    }
}

/// Words that would do nothing are a mistake: who sets them wants something.
pub(super) fn check(flags: &LogFlags, config: &Config) -> Result<(), Failure> {
    if flags.log_fsync && config.dials.log != Log::Commit {
        return Err(Failure::usage("--log-fsync is set and replies do not wait for the access log")
            .likely("the disk is waited for where replies wait for their lines")
            .try_this("--log commit --log-fsync"));
    }
    Ok(())
}

/// Says that a log has a name and is not written. Not an error: whoever turns the log off may leave the rest of the settings
/// as they are.
pub(super) fn warn_of_none(config: &Config) {
    if let (Log::Off, Some(path)) = (config.dials.log, &config.log_file) {
        let path = path.display();
        out::mention(&format!(
            "warning: nothing is written to {path}: the access log is off (--log ring turns it on)\n"
        ));
    }
}

/// Something is wrong with the access log.
pub(super) fn trouble(why: &LogTrouble) -> String {
    let meanwhile = "what it does not take is lost and counted";
    format!("warning: the access log does not take every line: {why}; {meanwhile}\n")
}

/// It is over.
pub(super) fn recovered(lost: u64) -> String {
    let lines = match lost {
        0 => "no line was lost".to_owned(),
        1 => "1 line was lost".to_owned(),
        lines => format!("{} lines were lost", thousands(lines as f64)),
    };
    format!("the access log takes every line again; {lines}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_with_its_reason_and_its_end_with_its_price() {
        let full = trouble(&LogTrouble::Refused(28));
        assert!(
            full.starts_with("warning: the access log does not take every line: No space left"),
            "{full}"
        );
        let ends = [0, 1, 12_345].map(recovered);
        let says = ["no line was lost", "1 line was lost", "12,345 lines were lost"];
        for (end, says) in ends.iter().zip(says) {
            assert_eq!(*end, format!("the access log takes every line again; {says}\n"));
        }
    }
}

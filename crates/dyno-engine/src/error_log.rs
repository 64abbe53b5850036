//! The error log: what is wrong, or worth knowing, in a line each; on standard error, or in a file with the time in front.
//!
//! The supervisor's caller says what it is told there; workers say what goes wrong with a request, before its reply leaves.
//! A worker says so much a second and no more, and waits for no reader, so that nobody can slow it down by what it must
//! complain of. Whatever was sent, a line is one line of visible ASCII.

use crate::heads::LogDates;
use crate::log;
use dyno_sys::socket::{self, Io};
use dyno_sys::{child, clock};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// Bytes of a line at most, its end included: what a pipe takes wholly or not at all (PIPE_BUF, pipe(7)).
const LINE_BYTES_MAX: usize = 4_096;

/// Lines that a worker writes in a second: enough to see what is wrong, and no way to fill a disk.
const LINES_A_SECOND: u32 = 50;

/// What an order says that brings an error log that was opened anew.
pub(crate) const ORDER: &[u8] = b"errors";

/// How much a line matters.
///
/// ```
/// # use dyno_engine::*;
/// assert!(Level::Error < Level::Info);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed: a handler panicked.
    Error,
    /// Something is not as it should be, and is gone on with: a worker died, lines are lost.
    Warn,
    /// What the server does: starts, drains, opens logs anew.
    Notice,
    /// What clients do wrong: requests that are refused.
    Info,
}

impl Level {
    /// Every level, those that matter most first.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert_eq!(Level::ALL[0], Level::Error);
    /// ```
    pub const ALL: [Level; 4] = [Level::Error, Level::Warn, Level::Notice, Level::Info];

    fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Notice => "notice",
            Level::Info => "info",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// A word that is no level.
///
/// ```
/// # use dyno_engine::*;
/// assert_eq!("loud".parse::<Level>(), Err(LevelError));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is error, warn, notice or info")]
pub struct LevelError;

impl FromStr for Level {
    type Err = LevelError;

    fn from_str(word: &str) -> Result<Level, LevelError> {
        Level::ALL.into_iter().find(|level| level.name() == word).ok_or(LevelError)
    }
}

/// An error log. Copies write to the same file.
///
/// ```
/// # use dyno_engine::*;
/// let log = ErrorLog::on_stderr(Level::Warn);
/// assert!(log.takes(Level::Error));
/// ```
#[derive(Debug, Clone)]
pub struct ErrorLog {
    /// `None`: standard error.
    file: Option<Arc<(OwnedFd, PathBuf)>>,
    most: Level,
}

impl ErrorLog {
    /// On standard error, for those who look at it: without the time.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert!(!ErrorLog::on_stderr(Level::Warn).is_file());
    /// ```
    pub fn on_stderr(most: Level) -> ErrorLog {
        ErrorLog { file: None, most }
    }

    /// In a file, which is opened for appending; a link that another user may have made is not followed.
    ///
    /// ```no_run
    /// # use dyno_engine::*;
    /// let log = ErrorLog::open("error.log".as_ref(), Level::Notice)?;
    /// log.say(Level::Notice, "started");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path, most: Level) -> io::Result<ErrorLog> {
        let file = log::open(Some(path))?;
        Ok(ErrorLog { file: Some(Arc::new((file, path.to_owned()))), most })
    }

    /// Whether such a log could be opened; nothing is made.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert!(ErrorLog::check("/no/such/folder/error.log".as_ref()).is_err());
    /// ```
    ///
    /// # Errors
    /// When it could not.
    pub fn check(path: &Path) -> io::Result<()> {
        log::could_open(path)
    }

    /// Whether it is a file.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert!(!ErrorLog::on_stderr(Level::Warn).is_file());
    /// ```
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Whether lines of this level are written.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let log = ErrorLog::on_stderr(Level::Warn);
    /// assert!(log.takes(Level::Warn) && !log.takes(Level::Info));
    /// ```
    #[must_use]
    pub fn takes(&self, level: Level) -> bool {
        level <= self.most
    }

    /// Says something, a line for each of the text's.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// ErrorLog::on_stderr(Level::Warn).say(Level::Warn, "the disk is nearly full");
    /// ```
    pub fn say(&self, level: Level, text: &str) {
        let dates = LogDates::new(clock::real_coarse_s());
        for line in text.lines().filter(|line| !line.is_empty()) {
            self.put(level, line.as_bytes(), &dates);
        }
    }

    /// Writes a line; one that nobody takes now is gone.
    fn put(&self, level: Level, text: &[u8], dates: &LogDates) -> Took {
        if !self.takes(level) {
            return Took::Yes;
        }
        let mut line = Vec::with_capacity(256);
        if self.is_file() {
            line.extend_from_slice(&dates.iso8601);
            line.extend_from_slice(format!(" {level} {}: ", child::this()).as_bytes());
        } else {
            let mark: &[u8] = match level {
                Level::Error => b"error: ",
                Level::Warn => b"warning: ",
                Level::Notice | Level::Info => b"",
            };
            line.extend_from_slice(mark);
        }
        escape(&mut line, text);
        line.push(b'\n');
        self.write(&line)
    }

    fn write(&self, line: &[u8]) -> Took {
        let stderr = io::stderr();
        let log = self.file.as_ref().map_or(stderr.as_fd(), |file| file.0.as_fd());
        if !socket::is_writable(log) {
            return Took::No;
        }
        match socket::write(log, line) {
            Io::Done(written) if written == line.len() => Took::Yes,
            _ => Took::No,
        }
    }

    /// Opens the file anew, as after a rotation; `None` for standard error.
    pub(crate) fn open_anew(&self) -> Option<(&Path, io::Result<OwnedFd>)> {
        let (file, path) = &**self.file.as_ref()?;
        Some((path, log::open_anew(path, file)))
    }

    /// Writes there from now on, in this process.
    pub(crate) fn change(&self, new: &OwnedFd) -> io::Result<()> {
        match &self.file {
            Some(file) => child::replace(&file.0, new),
            None => Ok(()),
        }
    }

    /// Lets go of its file in this process, copies too: one that was moved away keeps its room on the disk for as long as
    /// anybody has it open.
    pub(crate) fn leave(&self) {
        // Where there is no such device the file stays open.
        if let Ok(nowhere) = std::fs::File::open("/dev/null") {
            let _ = self.change(&nowhere.into());
        }
    }

    /// Where its file is open now.
    #[cfg(test)]
    fn metadata(&self) -> std::fs::Metadata {
        let (file, _) = &**self.file.as_ref().expect("a file");
        std::fs::File::from(file.try_clone().expect("a copy")).metadata().expect("it is open")
    }
}

/// Whether a line was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Took {
    Yes,
    No,
}

/// Visible ASCII as it is, all else as `\xHH`; what would be too long is cut, and says so.
fn escape(line: &mut Vec<u8>, text: &[u8]) {
    const CUT: &[u8] = b"\\...";
    const ESCAPE_BYTES: usize = 4;
    for &byte in text {
        if line.len() + ESCAPE_BYTES + CUT.len() + 1 > LINE_BYTES_MAX {
            return line.extend_from_slice(CUT);
        }
        match byte {
            b' '..=b'~' => line.push(byte),
            _ => line.extend_from_slice(format!("\\x{byte:02X}").as_bytes()),
        }
    }
}

/// A worker's error log: the same, within bounds.
pub(crate) struct Errors {
    log: ErrorLog,
    /// The second in which lines are counted, and how many were written in it.
    second: u64,
    lines: u32,
    /// Lines that were not written since it was said last.
    skipped: u64,
}

impl Errors {
    pub(crate) fn new(log: ErrorLog) -> Errors {
        Errors { log, second: 0, lines: 0, skipped: 0 }
    }

    pub(crate) fn takes(&self, level: Level) -> bool {
        self.log.takes(level)
    }

    /// Says something in this second.
    #[cold]
    pub(crate) fn say(&mut self, unix_s: u64, dates: &LogDates, level: Level, text: fmt::Arguments<'_>) {
        if !self.takes(level) {
            return;
        }
        if unix_s != self.second {
            (self.second, self.lines) = (unix_s, 0);
        }
        if self.lines >= LINES_A_SECOND {
            self.skipped += 1;
            return;
        }
        if self.skipped > 0 {
            let text = format!("{} lines like these were not written", self.skipped);
            if self.log.put(Level::Warn, text.as_bytes(), dates) == Took::Yes {
                self.skipped = 0;
            }
        }
        self.lines += 1;
        self.skipped += u64::from(self.log.put(level, text.to_string().as_bytes(), dates) == Took::No);
    }

    /// Writes to a file that was opened anew.
    pub(crate) fn change(&mut self, new: &OwnedFd) {
        // A number that cannot be replaced stays what it is: the old file goes on being written.
        let _ = self.log.change(new);
    }
}

/// Has panics of this process told in the error log, in a line each, and not on standard error. With `RUST_BACKTRACE` they
/// are told there as well, as ever. For a process that is the server's alone.
pub(crate) fn tell_panics(log: &ErrorLog) {
    let log = log.clone();
    let before = std::panic::take_hook();
    let wants_more = std::env::var_os("RUST_BACKTRACE").is_some_and(|word| word != "0");
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload_as_str().unwrap_or("it says nothing").replace('\n', " ");
        let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
        log.say(Level::Error, &format!("panicked{place}: {message}"));
        if wants_more {
            before(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn temporary(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("dyno-errors-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    fn text_of(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn a_line_has_the_time_the_level_and_the_process_in_front() {
        let path = temporary("line");
        let log = ErrorLog::open(&path, Level::Notice).unwrap();
        log.put(Level::Warn, b"it is so", &LogDates::new(1_795_225_078));
        let pid = std::process::id();
        assert_eq!(text_of(&path), format!("2026-11-21T01:37:58+00:00 warn {pid}: it is so\n"));
        log.say(Level::Info, "not written");
        log.say(Level::Notice, "two\nlines\n");
        assert_eq!(text_of(&path).lines().count(), 3);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn whatever_is_said_is_one_line() {
        let path = temporary("forged");
        let log = ErrorLog::open(&path, Level::Info).unwrap();
        let every: Vec<u8> = (0..=255).collect();
        for length in [256, 1_000, 4_000, 4_096, 10_000] {
            let text: Vec<u8> = every.iter().copied().cycle().take(length).collect();
            log.put(Level::Info, &text, &LogDates::new(0));
        }
        let text = text_of(&path);
        assert_eq!(text.lines().count(), 5);
        assert!(text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
        assert!(text.lines().all(|line| line.len() < LINE_BYTES_MAX));
        assert_eq!(text.lines().filter(|line| line.ends_with("\\...")).count(), 3);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_worker_says_so_much_a_second_and_then_how_much_more_there_was() {
        let path = temporary("bounded");
        let mut errors = Errors::new(ErrorLog::open(&path, Level::Info).unwrap());
        let dates = LogDates::new(0);
        for number in 0..200 {
            errors.say(7, &dates, Level::Info, format_args!("refused {number}"));
        }
        errors.say(8, &dates, Level::Info, format_args!("one more"));
        let text = text_of(&path);
        assert_eq!(text.matches("refused").count(), 50);
        assert!(
            text.lines().rev().nth(1).unwrap().ends_with("150 lines like these were not written"),
            "{text}"
        );
        assert!(text.ends_with("one more\n"));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_log_that_was_moved_away_is_written_anew_under_the_same_number() {
        let path = temporary("moved");
        let log = ErrorLog::open(&path, Level::Info).unwrap();
        log.say(Level::Error, "one");
        let moved = path.with_extension("1");
        std::fs::rename(&path, &moved).unwrap();
        let copy = log.clone();
        let (named, new) = log.open_anew().unwrap();
        assert_eq!(named, path);
        log.change(&new.unwrap()).unwrap();
        copy.say(Level::Error, "two");
        assert_eq!(copy.metadata().ino(), std::fs::metadata(&path).unwrap().ino());
        assert!(text_of(&moved).ends_with(": one\n") && text_of(&path).ends_with(": two\n"));
        [path, moved].iter().for_each(|path| std::fs::remove_file(path).unwrap());
        assert!(ErrorLog::on_stderr(Level::Error).open_anew().is_none());
    }
}

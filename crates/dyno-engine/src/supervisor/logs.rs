//! The access log as the supervisor keeps it: opened while it still has its rights, and watched, so that what is wrong with
//! it is told once, and once when it is over. `writing` acts on it.

use crate::config::Config;
use crate::dials::Log;
use crate::error::{EngineError, refused};
use crate::log::{self, AccessLog, RECORD_BYTES_MAX, Rings, Trouble, Until};
use crate::stats::{Counters, LOG_TAKES_NOTHING, LOG_TOOK_AGAIN};
use dyno_sys::socket;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

/// How often it is looked how the log gets on: soon enough for whoever watches a disk fill up.
pub(super) const TROUBLE_LOOK_NS: u64 = 1_000_000_000;

const _: () = assert!(RECORD_BYTES_MAX <= 4_096, "a pipe takes a line wholly or not at all");

/// Why the access log does not take every line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogTrouble {
    /// Writing is refused, with this error number: a full disk, a broken one.
    Refused(i32),
    /// Nothing was taken for a second: a slow disk, a pipe that nobody reads.
    Stalled,
    /// Lines come faster than the log takes them.
    Slow,
}

impl fmt::Display for LogTrouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogTrouble::Refused(errno) => write!(out, "{}", io::Error::from_raw_os_error(*errno)),
            LogTrouble::Stalled => out.write_str("it takes nothing"),
            LogTrouble::Slow => out.write_str("lines come faster than it takes them"),
        }
    }
}

/// The access log of a supervisor.
pub(super) struct Logs {
    /// The file, or standard output; `None` where there is no log.
    pub(super) log: Option<OwnedFd>,
    pub(super) lines: Option<Lines>,
    pub(super) watched: Watched,
}

/// Where lines go in, and how the writer is told that no more will come: it ends when every `stop` is closed, the
/// supervisor's and each worker's.
pub(super) struct Lines {
    pub(super) rings: Rings,
    pub(super) stopped: OwnedFd,
    pub(super) stop: OwnedFd,
}

/// What was seen of the log when it was looked at last.
#[derive(Default)]
pub(super) struct Watched {
    looked_ns: u64,
    lost: u64,
    /// While something is wrong: how many lines were lost before.
    lost_before: Option<u64>,
}

/// What is to be told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tiding {
    Trouble(LogTrouble),
    Recovered { lost: u64 },
}

impl Logs {
    /// Opens the log that the configuration asks for.
    pub(super) fn open(config: &Config) -> Result<Logs, EngineError> {
        let mut logs = Logs { log: None, lines: None, watched: Watched::default() };
        if config.dials.log == Log::Off {
            return Ok(logs);
        }
        let path = config.log_file.clone();
        let opened = log::open(path.as_deref()).map_err(|source| EngineError::Log { path, source })?;
        logs.log = Some(opened);
        let until = if config.log_fsync { Until::OnDisk } else { Until::Written };
        let rings = Rings::new(config.dials.log, until, config.dials.workers.get())
            .map_err(refused("share memory for the log"))?;
        if let Some(rings) = rings {
            let (stopped, stop) = socket::pipe().map_err(refused("open a pipe"))?;
            logs.lines = Some(Lines { rings, stopped, stop });
        }
        Ok(logs)
    }

    pub(super) fn has_writer(&self) -> bool {
        self.lines.is_some()
    }

    /// When the log is looked at next.
    pub(super) fn look_due_ns(&self) -> Option<u64> {
        self.log.as_ref().map(|_| self.watched.looked_ns + TROUBLE_LOOK_NS)
    }

    /// What keeps the log from taking lines, of which so many were lost until now. Where workers write themselves it is what
    /// the last of them has heard, until a line goes in: without one nobody knows that the next would.
    pub(super) fn trouble(&self, now_ns: u64, lost: u64, counters: Counters) -> Option<LogTrouble> {
        if let Some(lines) = &self.lines {
            return lines.rings.ledger.trouble(now_ns).map(LogTrouble::from);
        }
        let word = counters.log_refusal().load(Ordering::Relaxed);
        let is_over = word & LOG_TOOK_AGAIN != 0 && lost <= self.watched.lost;
        refusal_of(word & !LOG_TOOK_AGAIN).filter(|_| !is_over)
    }

    /// What a worker writes to.
    pub(super) fn of_worker(
        &self,
        config: &Config,
        number: usize,
        counters: Counters,
    ) -> io::Result<AccessLog> {
        let format = config.log_format.clone();
        Ok(match (&self.lines, &self.log) {
            (Some(lines), _) => AccessLog::ring(format, lines.rings.end(number)),
            (None, Some(log)) => AccessLog::sync(format, log.try_clone()?, counters),
            (None, None) => AccessLog::off(),
        })
    }

    /// Lets go of the file, in a child that does not write it itself. A worker keeps `stop` open for as long as it lives,
    /// so that the writer outlives it.
    pub(super) fn leave(&mut self) {
        self.log = None;
    }

    /// Lets go of all, in a child that the writer must not wait for.
    pub(super) fn leave_all(&mut self) {
        self.leave();
        self.lines = None;
    }
}

impl Watched {
    /// Whether something is wrong, as far as was told.
    pub(super) fn is_failing(&self) -> bool {
        self.lost_before.is_some()
    }

    /// What is to be told of what is seen now.
    pub(super) fn look(&mut self, now_ns: u64, lost: u64, trouble: Option<LogTrouble>) -> Option<Tiding> {
        let has_lost = lost > self.lost;
        let before = std::mem::replace(&mut self.lost, lost);
        self.looked_ns = now_ns;
        match (self.lost_before, trouble) {
            (None, None) if !has_lost => None,
            (None, trouble) => {
                self.lost_before = Some(before);
                Some(Tiding::Trouble(trouble.unwrap_or(LogTrouble::Slow)))
            }
            (Some(before), None) if !has_lost => {
                self.lost_before = None;
                Some(Tiding::Recovered { lost: lost - before })
            }
            (Some(_), _) => None,
        }
    }
}

/// What a word says that workers write: whatever stands there, it is told as one of these.
fn refusal_of(word: u64) -> Option<LogTrouble> {
    match i32::try_from(word) {
        Ok(0) => None,
        Ok(errno) => Some(LogTrouble::Refused(errno)),
        Err(_) if word == LOG_TAKES_NOTHING => Some(LogTrouble::Stalled),
        Err(_) => None,
    }
}

impl From<Trouble> for LogTrouble {
    fn from(trouble: Trouble) -> LogTrouble {
        match trouble {
            Trouble::Refused(errno) => LogTrouble::Refused(errno),
            Trouble::Stalled => LogTrouble::Stalled,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn trouble_is_told_once_and_its_end_once_with_what_it_cost() {
        let mut watched = Watched::default();
        let mut look = |lost, trouble| watched.look(0, lost, trouble);
        let full = Some(LogTrouble::Refused(28));
        assert_eq!(look(0, None), None);
        assert_eq!(look(0, full), Some(Tiding::Trouble(LogTrouble::Refused(28))));
        assert_eq!((look(5, full), look(9, full), look(9, Some(LogTrouble::Stalled))), (None, None, None));
        assert_eq!(look(10, None), None, "lines were lost since");
        assert_eq!(look(10, None), Some(Tiding::Recovered { lost: 10 }));
        assert_eq!(look(10, None), None);
        assert_eq!(look(11, None), Some(Tiding::Trouble(LogTrouble::Slow)));
        assert_eq!(look(11, None), Some(Tiding::Recovered { lost: 1 }));
    }

    /// A request each few seconds, of which no line goes in: it is one trouble, told once. Planted fault: the trouble of
    /// workers that write themselves is none at a look before which no line was lost.
    #[test]
    fn a_log_that_workers_write_is_well_again_only_when_a_line_went_in() {
        let counters = Counters::new(1, 0).unwrap();
        let mut logs = Logs { log: None, lines: None, watched: Watched::default() };
        let mut look = |lost, word| {
            counters.log_refusal().store(word, Ordering::Relaxed);
            let trouble = logs.trouble(0, lost, counters);
            logs.watched.look(0, lost, trouble)
        };
        assert_eq!(look(0, 0), None);
        assert_eq!(look(1, 27), Some(Tiding::Trouble(LogTrouble::Refused(27))));
        assert_eq!((look(1, 27), look(1, 27), look(2, 27), look(2, 27)), (None, None, None, None));
        assert_eq!(look(3, 27 | LOG_TOOK_AGAIN), None, "lines were lost since");
        assert_eq!(look(3, 27 | LOG_TOOK_AGAIN), Some(Tiding::Recovered { lost: 3 }));
        let short = Some(Tiding::Trouble(LogTrouble::Refused(28)));
        assert_eq!(look(4, 28 | LOG_TOOK_AGAIN), short, "the reason is told though it is over");
        assert_eq!(look(4, 28 | LOG_TOOK_AGAIN), Some(Tiding::Recovered { lost: 1 }));
        assert_eq!(look(5, LOG_TAKES_NOTHING), Some(Tiding::Trouble(LogTrouble::Stalled)));
        assert_eq!((look(5, LOG_TAKES_NOTHING), look(6, LOG_TAKES_NOTHING)), (None, None));
        assert_eq!(look(6, LOG_TAKES_NOTHING | LOG_TOOK_AGAIN), Some(Tiding::Recovered { lost: 2 }));
        assert_eq!(look(6, 1 << 40), None, "a word that nobody writes");
    }
}

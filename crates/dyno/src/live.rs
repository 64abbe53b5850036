//! One line on standard error that says what is being done and how long it still takes, for verbs that take their time.
//!
//! It rewrites itself, on a terminal; elsewhere there is none: a log has no use for it, and what came of it is said at the end. Verbs
//! start it when nothing more is forked; it has a thread of its own, which ends with it. Never on standard output, and
//! never while a command of the user's has the terminal.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dyno_report::text::Doing;

use crate::out::{say, terminal_width};

/// Between two drawings: it shows seconds.
const REDRAW: Duration = Duration::from_millis(500);

/// What takes the line away again.
const CLEAR: &str = "\r\x1b[K";

/// Where the line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A terminal: the line rewrites itself.
    Terminal,
    /// A file, a pipe, a service manager's journal.
    Plain,
}

impl Place {
    /// What standard error is.
    pub(crate) fn of_stderr() -> Place {
        if std::io::stderr().is_terminal() { Place::Terminal } else { Place::Plain }
    }

    /// Shows a line in the place of the one before, on a terminal.
    pub(crate) fn rewrite(self, line: &str) {
        if self == Place::Terminal {
            say(&format!("{CLEAR}{line}"));
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(self) {
        self.rewrite("");
    }
}

/// What is being done, and until when.
#[derive(Debug, Clone)]
struct Stage {
    what: String,
    until: Option<Instant>,
    /// What is done when the time is up, or somebody wants the end.
    then: &'static str,
    stop: &'static AtomicBool,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    is_over: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked while it held this has left a whole stage.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The line, kept up to date until this is dropped.
#[derive(Debug)]
pub(crate) struct Live {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Says what is done, for how long (without a time until `stop`), and what is done then.
    pub(crate) fn start(
        what: &str,
        time: Option<Duration>,
        then: &'static str,
        stop: &'static AtomicBool,
    ) -> Live {
        let stage = Stage { what: what.to_owned(), until: end_of(time), then, stop };
        let state = Mutex::new(State { stage, is_over: false });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let draw = move || keep_up(&of_thread);
        let builder = || std::thread::Builder::new().name("dyno-progress".to_owned());
        // Without a thread there is no line; what was asked for goes on all the same.
        let is_shown = Place::of_stderr() == Place::Terminal;
        let thread = is_shown.then(|| builder().spawn(draw).ok()).flatten();
        Live { shared, thread }
    }

    /// Says what is done now.
    pub(crate) fn now(&self, what: &str, time: Option<Duration>) {
        let mut state = self.shared.state();
        what.clone_into(&mut state.stage.what);
        state.stage.until = end_of(time);
        self.shared.changed.notify_all();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has drawn its last line.
            let _ = thread.join();
        }
    }
}

fn end_of(time: Option<Duration>) -> Option<Instant> {
    time.and_then(|time| Instant::now().checked_add(time))
}

fn keep_up(shared: &Shared) {
    let (begun, place) = (Instant::now(), Place::Terminal);
    let mut state = shared.state();
    while !state.is_over {
        let doing = doing(&state.stage, begun.elapsed());
        place.rewrite(&doing.line(terminal_width().saturating_sub(1)));
        let waited = shared.changed.wait_timeout(state, REDRAW);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    place.clear();
}

/// What is to be shown of a stage. The user's stop ends it as its time does.
fn doing(stage: &Stage, spent: Duration) -> Doing<'_> {
    let left = stage.until.map(|until| until.saturating_duration_since(Instant::now()));
    if stage.stop.load(Relaxed) || left.is_some_and(|left| left.is_zero()) {
        return Doing { what: stage.then, left: None, spent };
    }
    Doing { what: &stage.what, left, spent }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_the_time_is_up_or_the_user_stops_it_says_what_is_done_then() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let stage = |until| Stage { what: "watching".to_owned(), until, then: "naming", stop: &STOP };
        let what = |until| doing(&stage(until), Duration::ZERO).what.to_owned();
        let soon = end_of(Some(Duration::from_secs(3_600)));
        assert!(doing(&stage(soon), Duration::ZERO).left.is_some_and(|left| left.as_secs() > 3_000));
        assert_eq!((what(soon), what(None)), ("watching".to_owned(), "watching".to_owned()));
        assert_eq!(what(end_of(Some(Duration::ZERO))), "naming");
        STOP.store(true, Relaxed);
        assert_eq!(what(soon), "naming");
    }

    #[test]
    fn it_ends_at_once_when_it_is_dropped() {
        let begun = Instant::now();
        static STOP: AtomicBool = AtomicBool::new(false);
        let live = Live::start("watching", None, "naming", &STOP);
        live.now("something else", Some(Duration::MAX));
        drop(live);
        assert!(begun.elapsed() < Duration::from_secs(3));
    }
}

//! What is shown while experiments run: a line that rewrites itself on a terminal, plain lines elsewhere.

use std::time::{Duration, Instant};

use dyno_sys::clock::mono_ns;

use dyno_lab::look::causal::Event;
use dyno_record::causal::Standing;
use dyno_report::text::causal as text;

use crate::cmd::stop::STOP;
use crate::live::{Live, Place};
use crate::out::{say, terminal_width};

/// Off a terminal a line comes this often: a log is not to be filled.
const PLAIN_EVERY_NS: u64 = 5_000_000_000;

/// Where standing is shown.
pub(crate) struct Watch {
    place: Place,
    next_ns: u64,
    /// When all of it is to be over, where that is known.
    until: Option<Instant>,
    /// What keeps a stage's line up to date, on a terminal.
    stage: Option<Live>,
}

impl Watch {
    /// On standard error, whatever it is; all of it takes so long, where that is known.
    pub(crate) fn new(time: Option<Duration>) -> Watch {
        let until = time.and_then(|time| Instant::now().checked_add(time));
        Watch { place: Place::of_stderr(), next_ns: 0, until, stage: None }
    }

    /// Shows what is reported.
    pub(crate) fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Stage(text) => self.stage(text),
            Event::Standing(standing) => self.standing(&standing),
            Event::Warning(text) => {
                self.clear();
                say(&format!("warning: {text}\n"));
            }
            Event::Over => self.clear(),
        }
    }

    /// Says in a sentence what is done now.
    pub(crate) fn stage(&mut self, text: &str) {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        match (self.place, &self.stage) {
            (Place::Plain, _) => say(&format!("{text}\n")),
            (Place::Terminal, Some(live)) => live.now(text, left),
            (Place::Terminal, None) => {
                self.stage = Some(Live::start(text, left, "ending, with what there is", &STOP));
            }
        }
    }

    /// Shows where the experiments stand.
    fn standing(&mut self, standing: &Standing<'_>) {
        self.stage = None;
        let line = text::standing(standing, terminal_width());
        match self.place {
            Place::Terminal => self.place.rewrite(&line),
            Place::Plain if mono_ns() >= self.next_ns => {
                self.next_ns = mono_ns() + PLAIN_EVERY_NS;
                say(&format!("{line}\n"));
            }
            Place::Plain => {}
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        self.stage = None;
        self.place.clear();
    }
}

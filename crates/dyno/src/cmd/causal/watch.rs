//! What is shown while experiments run: a line that rewrites itself on a terminal; elsewhere what is done, and not how far it is.

use std::time::{Duration, Instant};

use dyno_lab::look::causal::Event;
use dyno_record::causal::Standing;
use dyno_report::text::causal as text;

use crate::cmd::stop::STOP;
use crate::live::{Live, Place};
use crate::out::{say, terminal_width};

/// Where standing is shown.
pub(crate) struct Watch {
    place: Place,
    /// When all of it is to be over, where that is known.
    until: Option<Instant>,
    /// What keeps a stage's line up to date, on a terminal.
    stage: Option<Live>,
}

impl Watch {
    /// On standard error, whatever it is; all of it takes so long, where that is known.
    pub(crate) fn new(time: Option<Duration>) -> Watch {
        let until = time.and_then(|time| Instant::now().checked_add(time));
        Watch { place: Place::of_stderr(), until, stage: None }
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
        self.place.rewrite(&text::standing(standing, terminal_width()));
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        self.stage = None;
        self.place.clear();
    }
}

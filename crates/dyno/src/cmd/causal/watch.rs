//! What is shown while experiments run: a line that rewrites itself on a terminal, plain lines elsewhere.

use std::io::IsTerminal;

use dyno_sys::clock::mono_ns;

use dyno_lab::look::causal::Event;
use dyno_record::causal::Standing;
use dyno_report::text::causal as text;

use crate::out::{say, terminal_width};

/// Off a terminal a line comes this often: a log is not to be filled.
const PLAIN_EVERY_NS: u64 = 5_000_000_000;

/// Where standing is shown.
pub(crate) struct Watch {
    place: Place,
    next_ns: u64,
}

/// What standard error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Terminal,
    Plain,
}

impl Watch {
    /// On standard error, whatever it is.
    pub(crate) fn new() -> Watch {
        let place = if std::io::stderr().is_terminal() { Place::Terminal } else { Place::Plain };
        Watch { place, next_ns: 0 }
    }

    /// Shows what is reported.
    pub(crate) fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Stage(text) => self.stage(text),
            Event::Standing(standing) => self.standing(&standing),
            Event::Over => self.clear(),
        }
    }

    /// Says in a sentence what is done now.
    pub(crate) fn stage(&self, text: &str) {
        match self.place {
            Place::Terminal => say(&format!("\r\x1b[K{text}")),
            Place::Plain => say(&format!("{text}\n")),
        }
    }

    /// Shows where the experiments stand.
    fn standing(&mut self, standing: &Standing<'_>) {
        let line = text::standing(standing, terminal_width());
        match self.place {
            Place::Terminal => say(&format!("\r\x1b[K{line}")),
            Place::Plain if mono_ns() >= self.next_ns => {
                self.next_ns = mono_ns() + PLAIN_EVERY_NS;
                say(&format!("{line}\n"));
            }
            Place::Plain => {}
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if self.place == Place::Terminal {
            say("\r\x1b[K");
        }
    }
}

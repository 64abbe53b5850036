//! Where a server tells what happens: as the settings say that are in force where it happens.
//!
//! While settings are read again there are two: those of the master, and those of the generation that is to take over, whose
//! process is forked with them.

use std::cell::RefCell;

use super::logs::{self, When};
use super::told;
use dyno_engine::ErrorLog;
use dyno_engine::supervisor::Event;
use dyno_sys::{Pid, child};

/// Who serves, in a line, and where is told of it.
pub(super) struct Voice {
    pub(super) who: String,
    pub(super) errors: ErrorLog,
}

/// The one in force, and the one of new settings.
pub(super) struct Voices {
    master: Pid,
    now: RefCell<Voice>,
    next: RefCell<Option<Voice>>,
}

impl Voices {
    pub(super) fn new(now: Voice) -> Voices {
        Voices { master: child::this(), now: RefCell::new(now), next: RefCell::new(None) }
    }

    /// New settings were read: they are in force in the process that is forked for them.
    pub(super) fn prepare(&self, next: Voice) {
        self.next.replace(Some(next));
    }

    pub(super) fn tell(&self, event: &Event) {
        // A generation's process has the new ones, where there are new ones, from its first moment.
        if matches!(event, Event::Reloaded { .. }) || child::this() != self.master {
            if let Some(next) = self.next.take() {
                self.now.replace(next);
            }
        } else if matches!(event, Event::NotReloaded { .. }) {
            self.next.replace(None);
        }
        let now = self.now.borrow();
        logs::tell(&now.errors, When::of(event), &told::told(event));
        if matches!(event, Event::Listening { .. }) {
            logs::tell(&now.errors, When::Start, &now.who);
        }
    }

    pub(super) fn say(&self, text: &str) {
        logs::tell(&self.now.borrow().errors, When::Later, text);
    }
}

//! SIGHUP: the settings are read again. What cannot be read, bound or started leaves everything as it is.

use super::{Master, Stopping};
use crate::error::chain;
use crate::supervisor::Event;

impl Master<'_> {
    pub(super) fn reload(&mut self, on_event: &mut dyn FnMut(Event)) {
        if self.stopping != Stopping::No || self.has_handed_over {
            return;
        }
        if self.next.is_some() || self.successor.is_some() {
            self.asked.reload = true;
            return;
        }
        on_event(Event::Reloading);
        if let Err(why) = self.try_reload(on_event) {
            self.refuse(why, on_event);
        }
    }

    /// Does what was asked for while a generation or a successor was starting.
    pub(super) fn do_asked(&mut self, on_event: &mut dyn FnMut(Event)) {
        if std::mem::take(&mut self.asked.reload) {
            self.reload(on_event);
        }
        if self.next.is_none() && std::mem::take(&mut self.asked.hand_over) {
            self.hand_over(on_event);
        }
    }

    fn try_reload(&mut self, on_event: &mut dyn FnMut(Event)) -> Result<(), String> {
        let setup = (self.again)()?;
        let config = &setup.config;
        let text = |error| chain(&error);
        config.limits.check(config.dials.workers.get()).map_err(text)?;
        self.sockets.prepare(config).map_err(text)?;
        self.start(Some(setup), on_event).map_err(text)
    }

    /// New settings are refused; those before them stay.
    pub(super) fn refuse(&mut self, why: String, on_event: &mut dyn FnMut(Event)) {
        self.sockets.take_back(&self.setup.config);
        self.ledger.count_failure();
        on_event(Event::NotReloaded { why });
    }
}

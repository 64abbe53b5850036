//! How a supervisor's work ends: the master orders it to retire, when another generation serves, to drain, or to end at once.

use super::place::Life;
use super::{LATE_NS, Stopping, Supervisor};
use crate::orders::{Order, Report};
use crate::worker::RETIRE;
use dyno_sys::clock;
use dyno_sys::socket::rights;
use std::os::fd::AsFd;

impl Supervisor<'_> {
    /// The next order of the master, if one has come. A master that is gone wants an end.
    pub(super) fn order(&self) -> Option<Order> {
        self.ears.as_ref().and_then(|ears| Order::receive(&ears.master))
    }

    /// Tells the master.
    pub(super) fn report(&self, report: &Report) {
        if let Some(ears) = &self.ears {
            report.send(&ears.master);
        }
    }

    pub(super) fn on_order(&mut self, order: Order) {
        let end_ns = |after_ns: u64| clock::mono_ns().saturating_add(after_ns).saturating_add(LATE_NS);
        match (order, self.stopping) {
            (Order::Retire, Stopping::No) => {
                self.stopping = Stopping::Retiring { end_ns: end_ns(self.config.retire_ns) };
                self.retire();
            }
            (Order::Drain, Stopping::No | Stopping::Retiring { .. }) => {
                self.stopping = Stopping::Draining { end_ns: end_ns(self.config.drain_ns) };
                self.drain();
            }
            (Order::End, _) => self.stopping = Stopping::AtOnce,
            (Order::Retire | Order::Drain, _) => {}
        }
    }

    /// Lets the workers finish in their own time. Metrics and orders are another generation's from now on.
    fn retire(&mut self) {
        self.accept_no_more();
        if let Some(ears) = &mut self.ears
            && let Some(control) = ears.control.take()
        {
            let _ = ears.epoll.remove(&control);
        }
        // Before any worker says that it accepts no more.
        if let Some(scraped) = &mut self.scraped {
            scraped.retire();
        }
        for place in &mut self.places {
            if let Life::Running { orders, .. } = &mut place.life
                && orders.as_ref().is_some_and(|orders| rights::send(orders.as_fd(), RETIRE, &[]).is_err())
            {
                // A worker whose channel is full of images hears at least that it is to drain.
                *orders = None;
            }
        }
    }

    fn drain(&mut self) {
        self.accept_no_more();
        self.tell_scraped(|meters| meters.begin_drain());
        for place in &mut self.places {
            if let Life::Running { orders, .. } = &mut place.life {
                *orders = None;
            }
        }
    }

    fn accept_no_more(&mut self) {
        self.end_supply();
        self.listeners.clear();
        for place in &mut self.places {
            if let Life::Waiting { .. } = place.life {
                place.life = Life::Vacant;
            }
        }
    }
}

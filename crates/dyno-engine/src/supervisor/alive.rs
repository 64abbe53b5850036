//! Each second: asks workers for a sign of life, and tells of those that give none (`pulse` keeps what was seen).

use super::place::Life;
use super::pulse::{LOOK_NS, Look, MISSED_MAX};
use super::{Event, Stopping, Supervisor};
use crate::stats::Accepting;
use crate::worker::TURN;
use dyno_sys::{clock, socket};
use std::os::fd::OwnedFd;

impl Supervisor<'_> {
    /// Looks at each worker, if it is time.
    pub(super) fn look_at_workers(&mut self, on_event: &mut dyn FnMut(Event)) {
        let now_ns = clock::mono_ns();
        let Some(pulse) = self.pulse.as_mut().filter(|pulse| pulse.due_ns <= now_ns) else { return };
        pulse.due_ns = now_ns + LOOK_NS;
        if self.stopping != Stopping::No {
            return;
        }
        for (number, (place, seen)) in self.places.iter().zip(&mut pulse.seen).enumerate() {
            let Life::Running { pid, orders: Some(orders), .. } = &place.life else { continue };
            match seen.look(*pid, self.counters.of(number).turns) {
                Look::Turns | Look::Waits => {}
                Look::Asks => ask(orders),
                Look::Stuck => {
                    self.counters.change_accepting(number, Accepting::Open, Accepting::Stuck);
                    self.full.signal();
                    on_event(Event::WorkerStuck { pid: *pid, for_ns: u64::from(MISSED_MAX) * LOOK_NS });
                }
                Look::Back => {
                    self.counters.change_accepting(number, Accepting::Stuck, Accepting::Open);
                    self.full.signal();
                    on_event(Event::WorkerGetsOn { pid: *pid });
                }
            }
        }
    }
}

/// Asks a worker for a turn of its loop. Once until it turns, so that the channel cannot fill.
fn ask(orders: &OwnedFd) {
    let _ = socket::send(orders, TURN);
}

//! Limits on time: which run, and what happens when one is over.
//!
//! A reader is judged by what it acknowledged, not by what the kernel took for it: room to write is told only when a
//! third of the kernel's buffer is free, which an honest slow reader may not reach in the time it has.

use super::Core;
use crate::conn::{Client, Reading};
use crate::fault::{Fault, planted};
use crate::http1::intake::PROGRESS_BYTES_MIN;
use crate::seam::Net;
use crate::timer::{Tick, reached};
use crate::upload::BodyError;
use std::num::Wrapping;

/// Whether the peer took enough of what was sent in its stretch of time.
#[derive(PartialEq, Eq)]
enum Reader {
    Progresses,
    HasAll,
    Stalls,
}

impl<N: Net> Core<N> {
    /// Sets the limits that run now, frees a box that is over, and charges what is held.
    pub(super) fn set_limits(&mut self, index: u32, before: Reading) {
        let (now, spans) = (self.now, &self.spans);
        let conn = self.conns.get(index);
        let reading = conn.reading;
        let Some(busy) = conn.busy.as_deref_mut() else { return };
        busy.read_due = match reading {
            // A head has its time from its first byte on, however many pieces it comes in.
            Reading::Head if before == Reading::Head && busy.read_due.is_some() => busy.read_due,
            Reading::Head => Some(now + Wrapping(spans.head)),
            Reading::Body if before == Reading::Body && busy.body_progress < PROGRESS_BYTES_MIN => {
                busy.read_due
            }
            Reading::Body => Some(now + Wrapping(spans.body)),
            // A paused connection is not timed for what it is not let to do.
            Reading::Paused | Reading::Done | Reading::Idle => None,
        };
        if reading == Reading::Body && busy.read_due == Some(now + Wrapping(spans.body)) {
            busy.body_progress = 0;
        }
        if busy.peer_has_closed && busy.is_silent() && busy.owed_due.is_none() {
            busy.owed_due = Some(now + Wrapping(spans.linger));
        }
        let starts_to_wait = !busy.queue.is_empty() && busy.write_due.is_none();
        busy.write_due = if busy.queue.is_empty() { None } else { busy.write_due };
        if starts_to_wait {
            self.begin_stretch(index);
        }
        self.arm_or_free(index);
    }

    /// The peer has this long to acknowledge some of what was sent.
    fn begin_stretch(&mut self, index: u32) {
        let due = self.now + Wrapping(self.spans.write);
        let acknowledged = self.acknowledged(index);
        let busy = self.conns.get(index).busy_mut();
        // Only what the kernel has now: the rest may wait for us, not for the peer.
        let waits = busy.queue.taken.cast_signed() - acknowledged;
        debug_assert!(waits >= 0, "no more is acknowledged than was sent");
        debug_assert!(
            acknowledged >= busy.acknowledged || busy.write_due.is_none(),
            "acknowledged bytes only grow"
        );
        busy.must_acknowledge = acknowledged + waits.min(PROGRESS_BYTES_MIN as i64);
        (busy.write_due, busy.acknowledged) = (Some(due), acknowledged);
    }

    /// What the peer has acknowledged, counted from a moment that stays the same while something waits.
    fn acknowledged(&mut self, index: u32) -> i64 {
        let conn = self.conns.get(index);
        let unacknowledged = self.net.unacknowledged(conn.socket());
        let unacknowledged = if planted(Fault::JudgedByTaken) { 0 } else { unacknowledged };
        let taken = conn.busy.as_ref().map_or(0, |busy| busy.queue.taken);
        taken.cast_signed() - unacknowledged.cast_signed()
    }

    fn arm_or_free(&mut self, index: u32) {
        let conn = self.conns.get(index);
        let Some(busy) = conn.busy.as_deref_mut() else { return };
        if busy.is_over() {
            self.http.budget.recharge(busy.charged, 0);
            conn.busy = None;
            return self.become_idle(index);
        }
        let is_timed = busy.queue.is_empty() || busy.write_due.is_some();
        debug_assert!(is_timed, "who does not read is timed: a queue waits without a limit");
        match busy.nearest_due() {
            Some(due) => {
                conn.link.due = due;
                if !planted(Fault::DeadlineNotArmed) {
                    self.wheel.arm(&mut self.conns, index);
                }
            }
            None => self.wheel.disarm(&mut self.conns, index),
        }
        self.charge(index);
    }

    /// A connection's time is up. It is in no slot of the wheel any more.
    pub(super) fn on_time(&mut self, index: u32) {
        let conn = self.conns.get(index);
        debug_assert!(reached(conn.link.due, self.now), "nothing expires before its time");
        debug_assert!(!conn.link.is_linked(), "what has expired stands in no slot");
        match (conn.reading, &conn.busy) {
            (Reading::Done, _) | (Reading::Idle, None) => self.on_time_of_nothing(index),
            _ => self.on_time_busy(index),
        }
    }

    /// Nothing is asked and nothing is owed: the connection ends when its peer has everything, or takes nothing of it.
    fn on_time_of_nothing(&mut self, index: u32) {
        match self.look_at_reader(index) {
            _ if planted(Fault::UnreadIsIdle) => self.time_out(index),
            Reader::HasAll => self.time_out(index),
            Reader::Progresses => {
                self.begin_stretch(index);
                self.arm_or_free(index);
            }
            Reader::Stalls => self.cut(index),
        }
    }

    fn on_time_busy(&mut self, index: u32) {
        let now = self.now;
        let is_due = |due: Option<Tick>| due.is_some_and(|due| reached(due, now));
        let conn = self.conns.get(index);
        let Some(busy) = conn.busy.as_deref_mut() else { return };
        let (write, owed, read) = (is_due(busy.write_due), is_due(busy.owed_due), is_due(busy.read_due));
        if write {
            match self.look_at_reader(index) {
                Reader::Progresses => self.begin_stretch(index),
                Reader::HasAll if !self.conns.get(index).has_queue() => return self.time_out(index),
                Reader::HasAll => self.begin_stretch(index),
                Reader::Stalls => return self.cut(index),
            }
        }
        if owed {
            let (http, mut turn) = self.turn(index);
            http.scratch.counts().timeouts += 1;
            let end = http.on_late(&mut turn);
            return self.after(index, end);
        }
        if read && self.conns.get(index).client == Client::Awaited && !planted(Fault::LateHeaderAnswered) {
            // Nobody has asked for anything yet: a proxy's header is not whole.
            return self.time_out(index);
        }
        if read {
            let (http, mut turn) = self.turn(index);
            http.scratch.counts().timeouts += 1;
            let end = http.on_time(&mut turn);
            return self.after(index, end);
        }
        self.arm_or_free(index);
    }

    fn look_at_reader(&mut self, index: u32) -> Reader {
        let conn = self.conns.get(index);
        if self.net.unacknowledged(conn.socket()) == 0 && !conn.has_queue() {
            return Reader::HasAll;
        }
        let Some(before) = conn.busy.as_ref().filter(|busy| busy.write_due.is_some()) else {
            // Nobody has looked yet: it has a stretch of time from now on.
            return Reader::Progresses;
        };
        let must = before.must_acknowledge;
        if self.acknowledged(index) >= must || planted(Fault::NoReaderTimeout) {
            Reader::Progresses
        } else {
            Reader::Stalls
        }
    }

    /// Counts what the peer has acknowledged since it was looked at last as progress.
    pub(super) fn note_reader(&mut self, index: u32) {
        let (now, acknowledged) = (self.now, self.acknowledged(index));
        let busy = self.conns.get(index).busy_mut();
        if acknowledged > busy.acknowledged {
            (busy.moved, busy.acknowledged) = (now, acknowledged);
        }
    }

    fn time_out(&mut self, index: u32) {
        self.http.scratch.counts().timeouts += 1;
        self.close(index, BodyError::TimedOut);
    }

    /// Ends a connection by a reset, so that what the peer does not take leaves the kernel's memory too.
    pub(super) fn cut(&mut self, index: u32) {
        self.net.reset_on_close(self.conns.get(index).socket());
        self.time_out(index);
    }
}

//! A drain: what was accepted is answered, what is idle is closed, and what takes too long is cut.

use super::Core;
use crate::config::SECOND_NS;
use crate::conn::Reading;
use crate::draining::{Drain, Drained, Leave};
use crate::fault::{Fault, planted};
use crate::seam::Net;
use crate::upload::BodyError;

/// While draining, an idle connection gets this long to send one more request, which is answered with
/// `Connection: close`; clients with a request on its way lose nothing then.
const GRACE_NS: u64 = SECOND_NS / 4;

impl<N: Net> Core<N> {
    /// Every reply is its connection's last from now on. Of two drains the one that presses more holds.
    pub(crate) fn begin_drain(&mut self, leave: Leave, drain_ns: u64) {
        self.http.is_draining = true;
        let end_ns = self.now_ns.saturating_add(drain_ns);
        let grace_ns = match leave {
            Leave::Stopped => end_ns.min(self.now_ns + GRACE_NS),
            Leave::Replaced if planted(Fault::RetiredClosesIdle) => self.now_ns,
            Leave::Replaced => end_ns,
        };
        let new = Drain { grace_ns: Some(grace_ns), end_ns };
        match &mut self.drain {
            Some(drain) => drain.hasten(&new),
            None => self.drain = Some(new),
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.drain.is_some()
    }

    /// Whether the drain is over, and how.
    pub(crate) fn drained(&mut self) -> Drained {
        let Some(drain) = &mut self.drain else { return Drained::NotYet };
        if drain.grace_ns.is_some_and(|grace_ns| grace_ns <= self.now_ns) {
            drain.grace_ns = None;
            for index in self.conns.indexes() {
                self.close_idle(index);
            }
        }
        debug_assert!(
            !self.drain.as_ref().is_some_and(Drain::is_past_grace)
                || self.conns.iter().all(|(_, conn)| conn.reading != Reading::Idle || conn.busy.is_some()),
            "idle is closed by a drain"
        );
        let is_over = self.drain.as_ref().is_some_and(|drain| drain.end_ns <= self.now_ns);
        match (self.conns.in_use(), is_over) {
            (0, _) => Drained::Wholly,
            (_, true) => Drained::Cut,
            _ => Drained::NotYet,
        }
    }

    /// Closes a connection without a request, but answers one that has arrived in this very moment: closing over unread
    /// input would reset the connection, and what was answered before could be lost with it.
    pub(super) fn close_idle(&mut self, index: u32) {
        let token = self.conns.token(index);
        let is_idle = |core: &mut Self| {
            let conn = core.conns.get(index);
            conn.reading == Reading::Idle && conn.busy.is_none()
        };
        if is_idle(self) {
            self.pump(index, self.net.read_until());
        }
        if self.conns.index_of(token).is_some() && is_idle(self) {
            self.close(index, BodyError::Closed);
        }
    }
}

//! Replies whose lines the access log has by now are sent.

use super::Core;
use crate::seam::Net;

impl<N: Net> Core<N> {
    /// Sends what waited for lines that are written.
    #[inline(never)]
    pub(super) fn release_written(&mut self) {
        while let Some(token) = self.http.next_written() {
            let Some(index) = self.conns.index_of(token) else { continue };
            let Some(busy) = self.conns.get(index).busy.as_deref_mut() else { continue };
            if busy.held_until.is_none_or(|until| !self.http.is_written(until)) {
                // It has made more replies since, and stands in the list once more.
                continue;
            }
            busy.held_until = None;
            self.on_sent(index);
            self.check_outbox();
            let is_open = self.conns.index_of(token).is_some();
            if is_open && self.conns.get(index).has_queue() {
                self.arrange(index);
            }
        }
    }
}

//! Files whose next bytes are not in memory: others fetch them, and the connection goes on when they are there.
//!
//! Meanwhile it is not watched for room, which it has. Its reader is judged as ever by what it acknowledges, so that nobody
//! is cut because a disk is slow.

use super::Core;
use crate::fault::{Fault, planted};
use crate::queue::Pages;
use crate::seam::Net;

impl<N: Net> Core<N> {
    /// Has fetched what must leave next.
    #[cold]
    pub(super) fn fetch(&mut self, index: u32) {
        let token = self.conns.token(index);
        let Some(busy) = self.conns.get(index).busy.as_deref_mut() else { return };
        debug_assert!(!busy.awaits_pages(), "a connection awaits pages once");
        let Some((file, offset)) = busy.queue.file_in_front() else { return };
        self.net.fetch(file, offset, token);
        if !planted(Fault::WatchedWhileFetched) {
            busy.queue.pages = Pages::Awaited;
        }
        self.arrange(index);
    }

    /// What a connection awaits is in memory.
    pub(super) fn on_fetched(&mut self, token: u64) {
        let Some(index) = self.conns.index_of(token) else { return };
        let Some(busy) = self.conns.get(index).busy.as_deref_mut().filter(|busy| busy.awaits_pages()) else {
            return;
        };
        if planted(Fault::FetchedForgotten) {
            return;
        }
        busy.queue.pages = Pages::Fetched;
        self.on_sent(index);
        let is_open = self.conns.index_of(token).is_some();
        if is_open && self.conns.get(index).has_queue() {
            self.arrange(index);
        }
    }
}

//! Files whose next bytes are not in memory: others fetch them, and the connection goes on when they are there.
//!
//! Meanwhile it is not watched for room, which it has. Its reader is judged as ever by what it acknowledges, so that nobody
//! is cut because a disk is slow.

use super::Core;
use crate::fault::{Fault, planted};
use crate::queue::Pages;
use crate::seam::Net;
use std::sync::Arc;

impl<N: Net> Core<N> {
    /// Has fetched what must leave next.
    #[cold]
    pub(super) fn fetch(&mut self, index: u32) {
        let token = self.conns.token(index);
        let Some(busy) = self.conns.get(index).busy.as_deref_mut() else { return };
        debug_assert!(!busy.awaits_pages(), "a connection awaits pages once");
        let Some((file, offset)) = busy.queue.file_in_front() else { return };
        let awaited = Arc::new(());
        self.net.fetch(file, offset, token, Arc::downgrade(&awaited));
        if !planted(Fault::WatchedWhileFetched) {
            busy.queue.pages = Pages::Awaited(awaited);
        }
        self.arrange(index);
    }

    /// So many bytes of what a connection awaits are in memory.
    pub(super) fn on_fetched(&mut self, token: u64, bytes: u64) {
        let Some(index) = self.conns.index_of(token) else { return };
        let Some(busy) = self.conns.get(index).busy.as_deref_mut().filter(|busy| busy.awaits_pages()) else {
            return;
        };
        if planted(Fault::FetchedForgotten) {
            return;
        }
        if bytes == 0 && !planted(Fault::UnreadSent) {
            // Its disk fails, or it is shorter than it was: the loop would find out by waiting for the same disk.
            return self.linger(index);
        }
        busy.queue.pages = Pages::Fetched(bytes.max(1));
        self.on_sent(index);
        if self.conns.index_of(token).is_none() {
            return;
        }
        let conn = self.conns.get(index);
        if let Some(busy) = conn.busy.as_deref_mut() {
            busy.queue.pages.end_moment();
        }
        if conn.has_queue() {
            self.arrange(index);
        }
    }
}

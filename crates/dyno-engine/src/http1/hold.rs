//! Replies that wait for the access log (`log = commit`): what a turn makes goes into its connection's queue, and leaves
//! when the lines that were pushed until then are written.
//!
//! The core asks for connections whose lines are written, at the end of each turn. Nothing of this is called where replies
//! do not wait.

use super::{Http1, Turn};
use crate::fault::{Fault, planted};
use crate::seam::Net;
use crate::segment::Flushed;
use dyno_sys::event::EventFd;

impl Http1 {
    /// Keeps what has gathered until its lines are written; `None` when it may leave now.
    #[inline(never)]
    pub(super) fn hold<N: Net>(&mut self, turn: &mut Turn<'_, N>) -> Option<Flushed> {
        if self.log.take_refused() {
            // A reply without its line does not leave.
            self.scratch.out.discard();
            return Some(Flushed::Broken);
        }
        let until = self.log.unwritten().filter(|_| !planted(Fault::ReplyBeforeItsLine))?;
        if self.scratch.out.is_empty() {
            return None;
        }
        let flushed = self.enqueue(turn);
        turn.conn.busy_mut().held_until = Some(until);
        self.held.push_back((until, turn.token));
        Some(flushed)
    }

    /// The next connection whose lines may all be written by now.
    pub(crate) fn next_written(&mut self) -> Option<u64> {
        let (until, token) = *self.held.front()?;
        if !self.log.is_written(until) {
            return None;
        }
        self.held.pop_front();
        Some(token)
    }

    /// Whether the log is written up to there.
    pub(crate) fn is_written(&self, until: u64) -> bool {
        self.log.is_written(until)
    }

    /// Tells the log's writer that replies wait for it.
    pub(crate) fn announce_lines(&mut self) {
        self.log.announce();
    }

    /// What is signalled when lines are written that replies wait for.
    pub(crate) fn lines_written(&self) -> Option<&EventFd> {
        self.log.written()
    }

    /// Writes lines to a file that was opened anew, where workers write themselves.
    pub(crate) fn reopen_log(&mut self, new: &std::os::fd::OwnedFd) {
        // A number that cannot be replaced stays what it is: the old file goes on being written.
        let _ = self.log.reopen(new);
    }

    /// Says what goes wrong in a file that was opened anew.
    pub(crate) fn change_errors(&mut self, new: &std::os::fd::OwnedFd) {
        if let Some(errors) = &mut self.scratch.errors {
            errors.change(new);
        }
    }
}

//! What the supervisor does for its access log: starts, watches and ends the process that writes it, and opens it anew on
//! SIGUSR1.

use super::logs::{Lines, Tiding};
use super::place::{FAILED, Life, OK, Place};
use super::{Event, LATE_NS, Stopping, Supervisor};
use crate::error::{EngineError, refused};
use crate::error_log;
use crate::log;
use crate::orders::Order;
use crate::sandbox::Kind;
use crate::stats::Counts;
use dyno_sys::child::{self, Wait};
use dyno_sys::signal::{self, Signal};
use dyno_sys::socket::{self, rights};
use dyno_sys::{Pid, clock};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

/// How often a writer that should end is looked at.
const LOOK_NS: u64 = 1_000_000;

impl Supervisor<'_> {
    /// Forks the process that writes the access log.
    pub(super) fn start_writer(&mut self) -> Result<(), EngineError> {
        assert!(self.writer.pid().is_none(), "a ring has one reader");
        let (orders, order) = socket::pair().map_err(refused("open a channel"))?;
        let mut parents = Some(order);
        let supervisor = child::this();
        let forked = child::fork(|| {
            drop(parents.take());
            self.live_as_writer(orders, supervisor)
        });
        let pid = forked.map_err(refused("fork the log's writer"))?;
        self.writer.life = Life::Running { pid, since_ns: clock::mono_ns(), orders: parents };
        Ok(())
    }

    fn live_as_writer(&mut self, orders: OwnedFd, supervisor: Pid) -> i32 {
        let (Some(log), Some(lines)) = (self.logs.log.take(), self.logs.lines.take()) else { return FAILED };
        self.leave_parent();
        self.leave_error_log();
        let Lines { rings, stopped, stop } = lines;
        drop(stop);
        let is_confined =
            self.give_up_rights().and_then(|()| self.config.sandbox.enter(Kind::LogWriter, &[]));
        if is_confined.is_err() {
            return FAILED;
        }
        // A supervisor that was killed can kill nobody: the writer ends by itself when it would have been.
        let patience_ns = self.config.drain_ns.saturating_add(LATE_NS).max(log::WRITER_NS_MAX);
        let job = rings.job(log, stopped, Some(orders), self.counters.lost(), patience_ns);
        let ended = log::write_rings(job);
        if child::parent() != supervisor {
            // It was killed: what is left here nobody else counts.
            self.ledger.add(0, &Counts { log_drops: rings.left(), ..Counts::default() });
        }
        match ended {
            Ok(()) => OK,
            Err(_) => FAILED,
        }
    }

    /// Opens the logs anew, as after a rotation.
    pub(super) fn reopen_logs(&mut self, signal: Signal, on_event: &mut dyn FnMut(Event)) {
        let has_errors = self.reopen_error_log(on_event);
        let (Some(path), Some(old)) = (&self.config.log_file, &self.logs.log) else {
            if !has_errors {
                on_event(Event::SignalIgnored { signal });
            }
            return;
        };
        match log::open_anew(path, old) {
            Ok(new) => {
                self.hand_over_log(&new);
                on_event(Event::LogReopened { path: path.clone() });
                self.logs.log = Some(new);
            }
            Err(source) => {
                let why = EngineError::Log { path: Some(path.clone()), source };
                on_event(Event::LogNotReopened { why });
            }
        }
    }

    /// Opens the error log anew, here and in the workers; `false` where it is no file.
    fn reopen_error_log(&self, on_event: &mut dyn FnMut(Event)) -> bool {
        let Some(errors) = &self.config.error_log else { return false };
        let Some((path, opened)) = errors.open_anew() else { return false };
        match opened.and_then(|new| errors.change(&new).map(|()| new)) {
            Ok(new) => {
                hand_over(&self.places, error_log::ORDER, &new);
                on_event(Event::LogReopened { path: path.to_owned() });
            }
            Err(source) => {
                let why = EngineError::ErrorLog { path: path.to_owned(), source };
                on_event(Event::LogNotReopened { why });
            }
        }
        true
    }

    /// Lets go of the error log, in a child that says nothing there and is not told when it is opened anew.
    pub(super) fn leave_error_log(&self) {
        if let Some(errors) = &self.config.error_log {
            errors.leave();
        }
    }

    /// To the writer, or to the workers where they write themselves.
    fn hand_over_log(&self, log: &OwnedFd) {
        let places = match self.logs.lines {
            Some(_) => std::slice::from_ref(&self.writer),
            None => &self.places[..],
        };
        hand_over(places, log::ORDER, log);
    }

    /// Lines that were lost until now, of dead workers too.
    fn lines_lost(&self) -> u64 {
        match &self.logs.lines {
            Some(lines) => lines.rings.dropped() + self.counters.lost().load(Ordering::Relaxed),
            None => self.counters.total().log_drops,
        }
    }

    /// Says once that the log does not take every line, and once when it does again, with how many were lost.
    pub(super) fn tell_log(&mut self, on_event: &mut dyn FnMut(Event)) {
        let now_ns = clock::mono_ns();
        if self.logs.look_due_ns().is_none_or(|due_ns| now_ns < due_ns) {
            return;
        }
        let lost = self.lines_lost();
        let trouble = self.logs.trouble(now_ns, lost, self.counters);
        if let Some(tiding) = self.logs.watched.look(now_ns, lost, trouble) {
            self.counters.set_log_failing(self.logs.watched.is_failing());
            on_event(match tiding {
                Tiding::Trouble(why) => Event::LogTrouble { why },
                Tiding::Recovered { lost } => Event::LogRecovered { lost },
            });
        }
    }

    /// What the writer cannot write in its time, because nobody reads the log, is counted as lost.
    pub(super) fn end_writer(&mut self) {
        if self.logs.lines.is_some() && self.writer.pid().is_none() {
            let _ = self.start_writer();
        }
        let Some(Lines { rings, stop, .. }) = self.logs.lines.take() else { return };
        drop(stop);
        if let Some(pid) = self.writer.pid() {
            self.wait_for_writer(pid);
        }
        self.counters.lost().fetch_add(rings.left(), Ordering::Relaxed);
    }

    /// Waits as long as the drain may take, and two seconds in any case; a further signal ends it.
    fn wait_for_writer(&mut self, pid: Pid) {
        let end_ns = match self.stopping {
            Stopping::Draining { end_ns } => end_ns.max(clock::mono_ns() + log::WRITER_NS_MAX),
            _ => clock::mono_ns() + log::WRITER_NS_MAX,
        };
        while matches!(child::wait(pid, Wait::NoHang), Ok(None)) {
            if clock::mono_ns() > end_ns || self.order() == Some(Order::End) {
                let _ = signal::kill(pid, Signal::Kill);
                let _ = child::wait(pid, Wait::Block);
                return;
            }
            clock::sleep_ns(LOOK_NS);
        }
    }
}

fn hand_over(places: &[Place], order: &[u8], log: &OwnedFd) {
    for place in places {
        if let Life::Running { orders: Some(orders), .. } = &place.life {
            // Who takes nothing any more is about to end, and its successor starts with the newest.
            let _ = rights::send(orders.as_fd(), order, &[log.as_fd()]);
        }
    }
}

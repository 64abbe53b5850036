//! A generation as the master knows it: a supervisor's process and the channel to it.

use super::setup::Setup;
use crate::orders::{Order, Report};
use crate::stats::Counters;
use dyno_sys::Pid;
use std::os::fd::OwnedFd;

/// What the master watches channels under: this and the generation's number.
pub(super) const TOKENS: u64 = 16;

/// A supervisor's process.
pub(super) struct Generation {
    pub(super) number: u64,
    pub(super) pid: Pid,
    pub(super) channel: OwnedFd,
    /// What its workers count in.
    pub(super) counters: Counters,
}

/// One that starts.
pub(super) struct Next {
    pub(super) generation: Generation,
    /// What it serves, where that is not what the one before does.
    pub(super) setup: Option<Setup>,
    /// Why it cannot start, once it has said so.
    pub(super) why: Option<String>,
}

impl Generation {
    pub(super) fn order(&self, order: Order) {
        order.send(&self.channel);
    }

    pub(super) fn report(&self) -> Option<Report> {
        Report::receive(&self.channel)
    }
}

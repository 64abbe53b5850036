//! A process that does nothing but hold sockets, in the network in which it was started. Tests of this crate's own modules read
//! this file too.
#![allow(clippy::unwrap_used)]

use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

/// It ends with this value.
pub(crate) struct Holder(Child);

impl Holder {
    /// With these as its input and its outputs.
    pub(crate) fn of<const N: usize>(held: [OwnedFd; N]) -> Holder {
        let mut held = held.into_iter();
        let mut next = || held.next().map_or_else(Stdio::null, Stdio::from);
        let mut sleep = Command::new("sleep");
        Holder(sleep.arg("60").stdin(next()).stdout(next()).stderr(next()).spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl From<Child> for Holder {
    fn from(child: Child) -> Holder {
        Holder(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

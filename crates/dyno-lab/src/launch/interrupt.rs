//! The user's wish to stop, for work that looks for it between two steps.

use std::cell::Cell;

use dyno_sys::signal::{Signal, SignalFd};

/// The user's wish to stop: looked at between blocks, so that no thread is needed for it.
#[derive(Debug)]
pub struct Interrupt {
    signals: SignalFd,
    seen: Cell<bool>,
}

impl Interrupt {
    /// Takes SIGINT, SIGTERM and SIGHUP of this process from now on.
    pub fn listen() -> std::io::Result<Self> {
        let signals = SignalFd::new(&[Signal::Int, Signal::Term, Signal::Hup])?;
        Ok(Self { signals, seen: Cell::new(false) })
    }

    /// Whether one of them has come.
    pub fn seen(&self) -> bool {
        if self.signals.next().is_some() {
            self.seen.set(true);
        }
        self.seen.get()
    }
}

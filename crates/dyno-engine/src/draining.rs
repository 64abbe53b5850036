//! How a drain stands: data that the core keeps while it lasts. What is done in it is in `core/drain`.

/// Why a worker leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// The server ends: connections that stay idle for a moment are closed.
    Stopped,
    /// Others have taken over: nothing presses, and an idle connection is closed when it would have been anyhow.
    Replaced,
}

/// A drain that has begun.
pub(crate) struct Drain {
    /// Until then idle connections are waited for; `None` once they were closed.
    pub(crate) grace_ns: Option<u64>,
    pub(crate) end_ns: u64,
}

/// How a drain stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drained {
    NotYet,
    /// Everything that was accepted was answered.
    Wholly,
    /// The time is over and connections are left.
    Cut,
}

impl Drain {
    /// Is over no later than another one would be.
    pub(crate) fn hasten(&mut self, other: &Drain) {
        self.end_ns = self.end_ns.min(other.end_ns);
        self.grace_ns =
            self.grace_ns.map(|grace_ns| other.grace_ns.map_or(grace_ns, |other| grace_ns.min(other)));
    }

    /// When the drain goes on by itself.
    pub(crate) fn next_ns(&self) -> u64 {
        self.grace_ns.unwrap_or(self.end_ns)
    }

    /// Whether idle connections are closed as soon as they are idle.
    pub(crate) fn is_past_grace(&self) -> bool {
        self.grace_ns.is_none()
    }
}

//! How a drain stands: data that the core keeps while it lasts. What is done in it is in `core/drain`.

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
    /// When the drain goes on by itself.
    pub(crate) fn next_ns(&self) -> u64 {
        self.grace_ns.unwrap_or(self.end_ns)
    }

    /// Whether idle connections are closed as soon as they are idle.
    pub(crate) fn is_past_grace(&self) -> bool {
        self.grace_ns.is_none()
    }
}

//! The budget of buffered bytes: what all connections of a worker may hold together.
//!
//! Partial heads, bodies that are collected, and replies that wait in memory of a connection's own are charged to it.
//! Shared bodies and files are not: they are not held for the connection. Over the budget new bodies are refused, and
//! what holds most for longest without progress is cut; see `core`.

/// Bytes held, and how many may be.
#[derive(Debug)]
pub(crate) struct Budget {
    used: usize,
    max: usize,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Budget {
        Budget { used: 0, max }
    }

    /// A connection that was charged `before` holds `now`.
    pub(crate) fn recharge(&mut self, before: usize, now: usize) {
        debug_assert!(before <= self.used, "bytes are given back once: {before} of {}", self.used);
        self.used = self.used - before + now;
        debug_assert!(
            self.used <= isize::MAX as usize,
            "more than memory can hold was charged: {}",
            self.used
        );
    }

    /// Whether connections hold more than they may.
    pub(crate) fn is_over(&self) -> bool {
        self.used > self.max
    }

    /// Whether another `bytes` would fit.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.used.saturating_add(bytes) <= self.max
    }

    /// How many bytes may be held.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Bytes held now.
    pub(crate) fn used(&self) -> usize {
        self.used
    }
}

//! What the rules find.

use std::fmt;

/// One rule broken in one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// From the root.
    pub(crate) path: String,
    /// From 1.
    pub(crate) line: usize,
    /// What stands there, and why it may not.
    pub(crate) text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

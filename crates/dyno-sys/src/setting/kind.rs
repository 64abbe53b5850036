//! What each kind of setting can do, and the one error of its own. The files beside it implement it, [`super::Setting`] calls it.

use crate::knob::KnobError;
use std::io;

/// Longest value: a table of packet filters, or a file.
pub const VALUE_BYTES_MAX: usize = 16 * 1_024;

/// One setting. Values are texts.
pub(super) trait Kind {
    fn get(&self) -> io::Result<String>;
    fn put(&self, value: &str) -> io::Result<()>;
    /// Why this value is better not written now.
    fn advises_against(&self, _value: &str) -> io::Result<Option<String>> {
        Ok(None)
    }
    /// Whether what reads like this is what was wanted.
    fn same(&self, reads: &str, wanted: &str) -> bool {
        reads == wanted
    }
}

/// Inside an `io::Error`: a setting that could not be put back exactly.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotExact(pub(super) String);

/// A file's error as a kind gives it.
pub(super) fn inner(error: KnobError) -> io::Error {
    match error {
        KnobError::Unreadable { source, .. } => source,
        other => io::Error::other(other),
    }
}

pub(super) fn not_exact(why: impl Into<String>) -> io::Error {
    io::Error::other(NotExact(why.into()))
}

//! A section's bytes, shared by all who use them.

use std::ops::Range;
use std::sync::Arc;

/// Bytes of a section, shared by all who use them.
pub(crate) type Bytes = Arc<[u8]>;

/// A section's bytes and addresses.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// Addresses, as the file says them.
    pub(crate) addresses: Range<u64>,
    /// Its bytes.
    pub(crate) bytes: Bytes,
}

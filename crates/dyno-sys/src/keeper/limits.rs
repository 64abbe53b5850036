//! What the keeper and its wardens take, and for how long they wait. Read by both sides of each channel.

use crate::socket::rights;

/// Descriptors beyond the output that one launch can hand on.
pub const INHERIT_MAX: usize = rights::RIGHTS_MAX - 1;
/// Changes of the host remembered at once; the ladder has about a hundred rungs.
pub const CHANGES_MAX: usize = 1_024;
/// Folders remembered at once; a climb has one.
pub const FOLDERS_MAX: usize = 16;
/// Forking and setting up takes a millisecond; five seconds is a machine in trouble.
pub(super) const HOLD_NS_MAX: u64 = 5_000_000_000;
/// Exec reads the program's first pages, perhaps from a slow disk.
pub(super) const RELEASE_NS_MAX: u64 = 10_000_000_000;

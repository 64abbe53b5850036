//! The program that is to take over, as the master knows it.

use dyno_sys::Pid;
use std::os::fd::OwnedFd;

/// What the master watches its word under.
pub(super) const TOKEN: u64 = 1;

/// What a successor writes when it serves.
pub(super) const READY: &[u8] = b"ready";

/// The program that is to take over.
pub(super) struct Successor {
    pub(super) pid: Pid,
    pub(super) until_ns: u64,
    /// Where it says that it serves.
    pub(super) ready: OwnedFd,
}

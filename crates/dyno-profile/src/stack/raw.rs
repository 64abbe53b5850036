//! Frames before they have names: the address, and what lay there at the time.
//!
//! What lies at an address changes while a target is watched, what a place in a file is called does not: an address is
//! placed as long as its process has that code, and named at the end.

use dyno_sys::Pid;

use crate::image::spaces::{AddressSpaces, Place};

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Raw {
    /// An address in the kernel.
    Kernel(u64),
    /// A function of the kernel that is known by its name: /proc gives no addresses.
    KernelNamed(String),
    /// Code of a file, or code that a process made itself.
    User(Place),
    /// Code of a file that could not be read: the address is the place in the file.
    Unread(Place),
    /// No code at all: a thread that jumped into nothing, or code that was gone when it was looked for.
    Outside,
}

impl Raw {
    /// What lies at a user's address now.
    pub(crate) fn place(spaces: &mut AddressSpaces, pid: Pid, address: u64) -> Raw {
        match spaces.locate(pid, address) {
            Some(place) => Raw::User(place),
            None => spaces.unread(pid, address).map_or(Raw::Outside, Raw::Unread),
        }
    }
}

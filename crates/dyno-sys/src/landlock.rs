//! Files and folders that a process gives up for good (`landlock(7)`): what is not named cannot be opened, made or removed.
//!
//! Called by children of the engine's supervisor before they give up the calls for it. The kernel's versions differ in what they
//! can refuse; each refuses what it knows. Nothing here chooses folders.

use crate::errno::checked_long;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What may be done beneath a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Files are read and folders listed.
    Read,
    /// The same, and files are made, written and removed.
    Write,
}

// linux/landlock.h: rights by their bits.
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_REG: u64 = 1 << 8;
const TRUNCATE: u64 = 1 << 14;
/// All that version 1 knows: execute, write and read files, list, remove, make anything.
const ALL_OF_1: u64 = (1 << 13) - 1;
const REFER: u64 = 1 << 13;
const IOCTL_DEV: u64 = 1 << 15;
/// Binding and connecting over TCP.
const ALL_OF_NETWORK: u64 = 3;
/// Abstract Unix sockets of processes that are not confined alike, and signals to them.
const ALL_OF_SCOPES: u64 = 3;

const VERSION: u32 = 1;
const PATH_BENEATH: u32 = 1;

#[repr(C)]
struct Attributes {
    files: u64,
    network: u64,
    scopes: u64,
}

/// Packed in the kernel's header: twelve bytes.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    folder: i32,
}

const _: () = assert!(size_of::<Beneath>() == 12, "as the kernel has it");

/// Which version the kernel has; `None` where it has none, or may not be asked.
pub fn version() -> Option<u32> {
    let (nothing, size) = (std::ptr::null::<Attributes>(), 0_usize);
    // SAFETY: with this flag the kernel reads no structure.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, size, VERSION) };
    u32::try_from(answer).ok().filter(|version| *version > 0)
}

/// Keeps this thread, and whatever it starts, to these folders; it may bind and connect nothing over TCP where the kernel can
/// refuse that. For good. Does nothing where there is no such thing. Only while there is one thread.
///
/// # Errors
/// When a folder cannot be opened, or the process may gain rights (`no_new_privs` is not set).
pub fn confine(folders: &[(PathBuf, Access)]) -> io::Result<()> {
    let Some(version) = version() else { return Ok(()) };
    let handled = attributes(version);
    let size = match version {
        1..4 => 8,
        4 | 5 => 16,
        _ => size_of::<Attributes>(),
    };
    // SAFETY: `handled` lives through the call and is at least as long as said.
    let ruleset = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size, 0) };
    // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
    let ruleset = unsafe { OwnedFd::from_raw_fd(checked_long(ruleset)? as i32) };
    for (folder, access) in folders {
        allow(&ruleset, folder, rights(*access) & handled.files)?;
    }
    // SAFETY: two integers.
    checked_long(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) })?;
    Ok(())
}

fn attributes(version: u32) -> Attributes {
    let since = |first: u32, bits: u64| if version >= first { bits } else { 0 };
    Attributes {
        files: ALL_OF_1 | since(2, REFER) | since(3, TRUNCATE) | since(5, IOCTL_DEV),
        network: since(4, ALL_OF_NETWORK),
        scopes: since(6, ALL_OF_SCOPES),
    }
}

fn rights(access: Access) -> u64 {
    match access {
        Access::Read => READ_FILE | READ_DIR,
        Access::Write => READ_FILE | READ_DIR | WRITE_FILE | REMOVE_FILE | MAKE_REG | TRUNCATE,
    }
}

fn allow(ruleset: &OwnedFd, folder: &Path, allowed: u64) -> io::Result<()> {
    let folder = File::options().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(folder)?;
    let beneath = Beneath { allowed, folder: folder.as_raw_fd() };
    let ruleset = ruleset.as_raw_fd();
    // SAFETY: `beneath` is as the kernel has it and lives through the call; the folder is open.
    let answer =
        unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset, PATH_BENEATH, &raw const beneath, 0) };
    checked_long(answer)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_is_asked_for_what_it_knows() {
        assert_eq!(attributes(1).files, 0x1fff);
        assert_eq!((attributes(3).files, attributes(3).network), (0x7fff, 0));
        assert_eq!((attributes(5).files, attributes(5).network, attributes(5).scopes), (0xffff, 3, 0));
        assert_eq!(attributes(7).scopes, 3);
    }

    #[test]
    fn who_reads_writes_nothing() {
        assert_eq!(rights(Access::Read) & !(READ_FILE | READ_DIR), 0);
        assert_eq!(rights(Access::Write) & 1, 0, "nothing is executed");
    }
}

//! Files that others may write to meanwhile: reading what is in memory without waiting for a disk (`preadv2(2)`), and
//! whether anybody has a file open for writing (`fcntl(2)`, F_SETLEASE).
//!
//! The engine's workers read large files by it, and who builds content asks it. It changes nothing: a lease is given back
//! before the call returns.

use crate::errno::{self, checked};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `F_SETSIG` (linux/fcntl.h), the same on every architecture that this builds for.
const F_SETSIG: libc::c_int = 10;

/// What came of a read that must not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resident {
    /// So many bytes; none at the file's end.
    Done(usize),
    /// The first byte is not in memory, or the file system cannot tell.
    Cold,
    /// The kernel's number of an error.
    Failed(i32),
}

/// Whether a read waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// What is not in memory is told instead.
    None,
    /// As any read does.
    Waits,
}

/// Reads from `offset` on. Without patience only what is in memory; nothing of a file system that cannot tell (preadv2(2),
/// `EOPNOTSUPP`), as one behind a network, for which it would be waited.
pub fn read(fd: impl AsFd, into: &mut [u8], offset: u64, patience: Patience) -> Resident {
    let Ok(offset) = libc::off_t::try_from(offset) else { return Resident::Failed(libc::EOVERFLOW) };
    let fd = fd.as_fd().as_raw_fd();
    let piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let flags = match patience {
        Patience::None => libc::RWF_NOWAIT,
        Patience::Waits => 0,
    };
    loop {
        // SAFETY: `piece` is all of `into`, which is writable and lives through the call.
        let moved = unsafe { libc::preadv2(fd, &raw const piece, 1, offset, flags) };
        if moved >= 0 {
            return Resident::Done(moved.cast_unsigned());
        }
        match errno::last() {
            libc::EINTR => {}
            number => return refused(number, patience),
        }
    }
}

/// What an error of a read means. Who waits is never told that something is not in memory: another one who waits would
/// fare no better.
fn refused(number: i32, patience: Patience) -> Resident {
    match (number, patience) {
        (libc::EAGAIN | libc::EOPNOTSUPP, Patience::None) => Resident::Cold,
        _ => Resident::Failed(number),
    }
}

/// Who has a file open for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// Nobody, at this moment.
    None,
    /// Somebody.
    Some,
    /// Only the file's owner may ask, and not every file system knows.
    Unknown,
}

/// Asks for a lease that is granted only while nobody has the file open for writing, and gives it back. `fd` must be open
/// for reading only.
pub fn writers(fd: impl AsFd) -> Writers {
    let fd = fd.as_fd().as_raw_fd();
    // Who opens the file for writing in this very moment is waited for by the kernel, which tells the holder by a signal:
    // not by SIGIO, which would end this process, but by one that is ignored by default (signal(7)).
    // SAFETY: F_SETSIG takes a number.
    if checked(unsafe { libc::fcntl(fd, F_SETSIG, libc::SIGURG) }).is_err() {
        return Writers::Unknown;
    }
    // SAFETY: F_SETLEASE takes a number.
    match checked(unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK) }) {
        Ok(_) => {
            // SAFETY: as above.
            let _ = checked(unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) });
            Writers::None
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Writers::Some,
        Err(_) => Writers::Unknown,
    }
}

/// Has the kernel forget a file's pages, as far as they are written to the disk and nobody uses them: for tests of what
/// reads cold files.
pub fn evict(fd: impl AsFd) -> io::Result<()> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: posix_fadvise takes numbers.
    match unsafe { libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::{self, File, OpenOptions};

    fn file(name: &str, bytes: &[u8]) -> (File, std::path::PathBuf) {
        let path = std::env::temp_dir().join(format!("dyno-resident-{}-{name}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        (File::open(&path).unwrap(), path)
    }

    #[test]
    fn what_is_in_memory_is_read_and_what_is_not_is_told() {
        let (file, path) = file("cold", &[7; 100_000]);
        let mut into = vec![0; 100_000];
        assert_eq!(read(&file, &mut into, 90_000, Patience::None), Resident::Done(10_000));
        assert_eq!(read(&file, &mut into, 100_000, Patience::None), Resident::Done(0));
        // Only what is on the disk can be forgotten; a file system in memory forgets nothing.
        OpenOptions::new().write(true).open(&path).unwrap().sync_all().unwrap();
        evict(&file).unwrap();
        match read(&file, &mut into, 0, Patience::None) {
            Resident::Cold => assert_eq!(read(&file, &mut into, 0, Patience::Waits), Resident::Done(100_000)),
            other => assert_eq!(other, Resident::Done(100_000)),
        }
        assert_eq!(read(&file, &mut into, 0, Patience::None), Resident::Done(100_000));
        fs::remove_file(path).unwrap();
    }

    /// Red where it is read all the same: whoever must not wait would wait for a file system that answers late.
    #[test]
    fn nothing_is_read_without_patience_where_nobody_can_tell_what_is_in_memory() {
        let file = File::open("/proc/version").unwrap();
        let mut into = [0; 10];
        assert_eq!(read(&file, &mut into, 0, Patience::None), Resident::Cold);
        assert_eq!(read(&file, &mut into, 0, Patience::Waits), Resident::Done(10));
    }

    #[test]
    fn what_cannot_be_waited_for_fails() {
        assert_eq!(refused(libc::EAGAIN, Patience::None), Resident::Cold);
        assert_eq!(refused(libc::EAGAIN, Patience::Waits), Resident::Failed(libc::EAGAIN));
        assert_eq!(refused(libc::EIO, Patience::None), Resident::Failed(libc::EIO));
    }

    #[test]
    fn who_has_a_file_open_for_writing_is_seen() {
        let (file, path) = file("writers", b"x");
        if writers(&file) == Writers::Unknown {
            return;
        }
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        assert_eq!(writers(&file), Writers::Some);
        drop(writer);
        let _reader = File::open(&path).unwrap();
        crate::assert_soon(&Writers::None, || writers(&file));
        // The lease is gone: nobody waits who opens it.
        drop(OpenOptions::new().write(true).open(&path).unwrap());
        fs::remove_file(path).unwrap();
    }
}

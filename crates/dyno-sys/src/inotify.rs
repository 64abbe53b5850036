//! Being told of changes in folders (`inotify(7)`).
//!
//! The engine's content waits for it and then looks for itself: an event says that something has changed in a folder, not
//! what, so that a lost or overflowed queue loses nothing.

use crate::errno::checked;
use crate::socket::{self, Io};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names that come and go, contents and rights that change.
const CHANGES: u32 = libc::IN_CREATE
    | libc::IN_DELETE
    | libc::IN_MOVED_FROM
    | libc::IN_MOVED_TO
    | libc::IN_MODIFY
    | libc::IN_CLOSE_WRITE
    | libc::IN_ATTRIB
    | libc::IN_DELETE_SELF
    | libc::IN_MOVE_SELF;

/// Room for the events of one read; an event takes 16 bytes and a name.
const BYTES: usize = 16 << 10;

/// A set of watched folders. Readable when something has changed in one of them.
#[derive(Debug)]
pub struct Watches {
    fd: OwnedFd,
}

impl Watches {
    /// Without a folder.
    ///
    /// # Errors
    /// What inotify_init1(2) says: `EMFILE` when this user has too many.
    pub fn new() -> io::Result<Watches> {
        // SAFETY: inotify_init1 takes no pointer.
        let fd = checked(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) })?;
        // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
        Ok(Watches { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Watches a folder; one that is watched already stays so. The watch goes with the folder.
    ///
    /// # Errors
    /// What inotify_add_watch(2) says: `ENOSPC` when this user watches too many (fs.inotify.max_user_watches).
    pub fn add(&self, folder: &Path) -> io::Result<()> {
        let folder = CString::new(folder.as_os_str().as_bytes())
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mask = CHANGES | libc::IN_ONLYDIR;
        // SAFETY: `folder` ends with a zero and lives through the call.
        checked(unsafe { libc::inotify_add_watch(self.fd.as_raw_fd(), folder.as_ptr(), mask) }).map(|_| ())
    }

    /// Takes all events that have come; whether there were any.
    pub fn take(&self) -> Changed {
        let mut bytes = [0; BYTES];
        let mut changed = Changed::No;
        loop {
            match socket::read(&self.fd, &mut bytes) {
                Io::Done(count) if count > 0 => changed = Changed::Yes,
                _ => return changed,
            }
        }
    }
}

/// Whether something has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// Something.
    Yes,
    /// Nothing since the last time.
    No,
}

impl AsFd for Watches {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    #[test]
    fn whatever_changes_in_a_watched_folder_is_told() {
        let path = std::env::temp_dir().join(format!("dyno-inotify-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let watches = Watches::new().unwrap();
        watches.add(&path).unwrap();
        watches.add(&path).unwrap();
        assert_eq!(watches.take(), Changed::No);
        let (one, two) = (path.join("one"), path.join("two"));
        let steps: [&dyn Fn(); 5] = [
            &|| fs::write(&one, "1").unwrap(),
            &|| fs::write(&one, "22").unwrap(),
            &|| fs::rename(&one, &two).unwrap(),
            &|| fs::create_dir(&one).unwrap(),
            &|| fs::remove_file(&two).unwrap(),
        ];
        for (number, step) in steps.iter().enumerate() {
            step();
            assert_eq!(watches.take(), Changed::Yes, "step {number}");
            assert_eq!(watches.take(), Changed::No, "step {number}");
        }
        assert!(watches.add(&path.join("nowhere")).is_err());
        fs::remove_dir_all(path).unwrap();
    }
}

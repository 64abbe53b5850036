//! Being told of changes in folders (`inotify(7)`).
//!
//! The engine's content waits for it and then looks for itself: an event says that something has changed in a folder, not
//! what, so that a lost or overflowed queue loses nothing.

use crate::errno::checked;
use crate::socket::{self, Io};
use std::ffi::{CString, OsStr};
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

/// Bytes of an event before its name: watch, mask, cookie, and the name's length.
const EVENT_BYTES: usize = 16;

/// A set of watched folders. Readable when something has changed in one of them.
#[derive(Debug)]
pub struct Watches {
    fd: OwnedFd,
    /// Watches of folders in which a single name matters.
    named: Vec<(i32, Vec<u8>)>,
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
        Ok(Watches { fd: unsafe { OwnedFd::from_raw_fd(fd) }, named: Vec::new() })
    }

    /// Watches a folder; one that is watched already stays so. The watch goes with the folder.
    ///
    /// # Errors
    /// What inotify_add_watch(2) says: `ENOSPC` when this user watches too many (fs.inotify.max_user_watches).
    pub fn add(&mut self, folder: &Path) -> io::Result<()> {
        let watch = self.watch(folder)?;
        self.named.retain(|(named, _)| *named != watch);
        Ok(())
    }

    /// Watches what a single name in a folder means. A folder that is watched wholly afterwards stays so.
    ///
    /// # Errors
    /// As above.
    pub fn add_name(&mut self, folder: &Path, name: &OsStr) -> io::Result<()> {
        let named = (self.watch(folder)?, name.as_bytes().to_vec());
        if !self.named.contains(&named) {
            self.named.push(named);
        }
        Ok(())
    }

    fn watch(&self, folder: &Path) -> io::Result<i32> {
        let folder = CString::new(folder.as_os_str().as_bytes())
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mask = CHANGES | libc::IN_ONLYDIR;
        // SAFETY: `folder` ends with a zero and lives through the call.
        checked(unsafe { libc::inotify_add_watch(self.fd.as_raw_fd(), folder.as_ptr(), mask) })
    }

    /// Takes all events that have come; whether any of them matters.
    pub fn take(&self) -> Changed {
        let mut bytes = [0; BYTES];
        let mut changed = Changed::No;
        loop {
            match socket::read(&self.fd, &mut bytes) {
                Io::Done(count) if count > 0 && self.matters(&bytes[..count]) => changed = Changed::Yes,
                Io::Done(count) if count > 0 => {}
                _ => return changed,
            }
        }
    }

    /// Whether any of these events is about more than names that do not matter. A lost one (IN_Q_OVERFLOW) has no watch
    /// of ours and matters.
    fn matters(&self, mut events: &[u8]) -> bool {
        while let Some((event, rest)) = events.split_first_chunk::<EVENT_BYTES>() {
            let word = |at: usize| event[at..].first_chunk().map_or(0, |word| i32::from_ne_bytes(*word));
            let name = rest.get(..usize::try_from(word(12)).unwrap_or(0)).unwrap_or_default();
            let bare = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let mut of_watch = self.named.iter().filter(|(watch, _)| *watch == word(0)).peekable();
            if of_watch.peek().is_none() || of_watch.any(|(_, matters)| matters == bare) {
                return true;
            }
            events = &rest[name.len()..];
        }
        false
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
        let mut watches = Watches::new().unwrap();
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

    #[test]
    fn where_one_name_matters_others_are_passed_over() {
        let path = std::env::temp_dir().join(format!("dyno-inotify-name-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let mut watches = Watches::new().unwrap();
        watches.add_name(&path, OsStr::new("current")).unwrap();
        fs::write(path.join("other"), "1").unwrap();
        fs::write(path.join("current.new"), "1").unwrap();
        assert_eq!(watches.take(), Changed::No);
        fs::rename(path.join("current.new"), path.join("current")).unwrap();
        assert_eq!(watches.take(), Changed::Yes);
        watches.add(&path).unwrap();
        fs::write(path.join("other"), "2").unwrap();
        assert_eq!(watches.take(), Changed::Yes, "watched wholly");
        fs::remove_dir_all(path).unwrap();
    }
}

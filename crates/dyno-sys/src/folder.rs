//! A folder that nothing leads out of: files below it are opened by `openat2(2)` with RESOLVE_BENEATH, so that neither a
//! step upwards nor a symbolic link reaches anything else.
//!
//! The engine's content reads its root through it. A name is looked up without being opened first: a FIFO does not make
//! anybody wait, and a device does nothing. Its logs are opened at the end of a way of [`Step`]s, which follows no link by
//! itself.

mod step;

pub use step::Step;

use crate::errno::checked_long;
use std::ffi::{CString, OsStr};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The folder, held open: it stays the same one though its path may come to mean another.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
}

/// What stands under a name, held but not opened.
#[derive(Debug)]
pub struct Entry {
    fd: OwnedFd,
    facts: Metadata,
}

impl Root {
    /// Holds the folder.
    ///
    /// # Errors
    /// What open(2) says; `NotADirectory` when it is none.
    pub fn open(path: &Path) -> io::Result<Root> {
        let path = c_string(path.as_os_str())?;
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: `path` ends with a zero and lives through the call.
        let fd = crate::errno::checked(unsafe { libc::open(path.as_ptr(), flags) })?;
        // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
        Ok(Root { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// What stands under a name below the root; the root itself for an empty one. Symbolic links are followed where they
    /// stay below.
    ///
    /// # Errors
    /// What openat2(2) says: `EXDEV` when the name leads out, `ENOSYS` before Linux 5.6.
    pub fn entry(&self, path: &[u8]) -> io::Result<Entry> {
        let path = c_string(OsStr::from_bytes(if path.is_empty() { b"." } else { path }))?;
        let resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_MAGICLINKS;
        let file = File::from(open(self.fd.as_raw_fd(), &path, libc::O_PATH, 0, resolve)?);
        let facts = file.metadata()?;
        Ok(Entry { fd: file.into(), facts })
    }
}

impl Entry {
    /// What fstat(2) says of it.
    pub fn facts(&self) -> &Metadata {
        &self.facts
    }

    /// Opens it for reading if it is a regular file; `InvalidInput` when it is anything else.
    ///
    /// # Errors
    /// As above, and what open(2) says.
    pub fn open(&self) -> io::Result<File> {
        if !self.facts.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        // Not by its name, under which something else may stand by now.
        File::open(self.own_path())
    }

    /// The names in it, in any order, if it is a folder; at most `names_max`.
    ///
    /// # Errors
    /// What open(2) and readdir(3) say.
    pub fn names(&self, names_max: usize) -> io::Result<Vec<Vec<u8>>> {
        let entries = fs::read_dir(self.own_path())?.take(names_max);
        entries.map(|entry| Ok(entry?.file_name().as_bytes().to_vec())).collect()
    }

    /// A path that means this very file or folder while this is held.
    pub fn own_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
    }
}

/// How [`Step::open`] opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opens {
    /// For appending; what is not there is made.
    Append,
    /// The same, and for reading.
    ReadAppend,
    /// The same, of what must not be there yet, and for its owner alone.
    Make,
}

impl Opens {
    /// Flags of open(2), and the mode of a file that is made.
    fn flags(self) -> (i32, libc::mode_t) {
        let (access, mode) = match self {
            Opens::Append => (libc::O_WRONLY, 0o666),
            Opens::ReadAppend => (libc::O_RDWR, 0o666),
            Opens::Make => (libc::O_RDWR | libc::O_EXCL, 0o600),
        };
        (access | libc::O_APPEND | libc::O_CREAT | libc::O_NONBLOCK, mode)
    }
}

/// `openat2(2)`. `mode` is that of a file that is made.
fn open(from: i32, path: &CString, flags: i32, mode: u32, resolve: u64) -> io::Result<OwnedFd> {
    // SAFETY: all zeroes is a valid open_how: no flags, no mode, no rules.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    (how.mode, how.resolve) = (mode.into(), resolve);
    let how_bytes = size_of::<libc::open_how>();
    // SAFETY: `path` ends with a zero, `how` is as long as said, and both live through the call.
    let fd = checked_long(unsafe {
        libc::syscall(libc::SYS_openat2, from, path.as_ptr(), &raw const how, how_bytes)
    })?;
    // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

fn c_string(path: &OsStr) -> io::Result<CString> {
    CString::new(path.as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("dyno-folder-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("root/sub")).unwrap();
        fs::write(path.join("secret"), "secret").unwrap();
        fs::write(path.join("root/sub/file"), "file").unwrap();
        path
    }

    #[test]
    fn nothing_above_the_root_is_reached() {
        let path = scratch("above");
        symlink("../secret", path.join("root/up")).unwrap();
        symlink(path.join("secret"), path.join("root/absolute")).unwrap();
        symlink("..", path.join("root/parent")).unwrap();
        symlink("/proc/self/cwd", path.join("root/magic")).unwrap();
        symlink("sub/file", path.join("root/inside")).unwrap();
        symlink("../sub/../inside", path.join("root/sub/round")).unwrap();
        let root = Root::open(&path.join("root")).unwrap();
        for out in
            ["../secret", "up", "absolute", "parent/secret", "magic", "/etc/passwd", "sub/../../secret"]
        {
            let error = root.entry(out.as_bytes()).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EXDEV), "{out}: {error}");
        }
        for inside in ["inside", "sub/round", "sub/file", "sub/../sub/file"] {
            let mut text = String::new();
            root.entry(inside.as_bytes()).unwrap().open().unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "file", "{inside}");
        }
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn only_regular_files_are_opened_and_nobody_waits_for_a_fifo() {
        let path = scratch("fifo");
        let name = c_string(path.join("root/fifo").as_os_str()).unwrap();
        // SAFETY: `name` ends with a zero and lives through the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let root = Root::open(&path.join("root")).unwrap();
        for other in ["fifo", "sub", ""] {
            let error = root.entry(other.as_bytes()).unwrap().open().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{other}");
        }
        let mut names = root.entry(b"").unwrap().names(100).unwrap();
        names.sort();
        assert_eq!(names, [b"fifo".to_vec(), b"sub".to_vec()]);
        assert_eq!(root.entry(b"").unwrap().names(1).unwrap().len(), 1);
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn the_root_stays_the_same_folder_when_its_name_goes_to_another() {
        let path = scratch("moved");
        let root = Root::open(&path.join("root")).unwrap();
        fs::rename(path.join("root"), path.join("old")).unwrap();
        fs::create_dir(path.join("root")).unwrap();
        assert!(root.entry(b"sub/file").is_ok());
        assert!(Root::open(&path.join("secret")).is_err(), "a file is no root");
        fs::remove_dir_all(path).unwrap();
    }
}

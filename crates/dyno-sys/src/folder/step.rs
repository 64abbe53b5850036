//! A way that is walked name by name. What stands under a name is held (O_PATH) and then asked by its descriptor for its
//! owner and where it leads, so that all answers are of the same thing, whoever gives its name to another meanwhile.

use super::{Opens, c_string};
use crate::errno::{checked, checked_size};
use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The number of procfs' own root (PROC_ROOT_INO, include/linux/proc_fs.h).
const PROC_ROOT: u64 = 1;

/// What stands under a name, held but not opened: a folder, a file, or a symbolic link itself.
#[derive(Debug)]
pub struct Step {
    fd: OwnedFd,
    facts: Metadata,
}

impl Step {
    /// The folder that this process is in.
    ///
    /// # Errors
    /// What open(2) says.
    pub fn here() -> io::Result<Step> {
        hold(libc::AT_FDCWD, c".".into(), libc::O_DIRECTORY)
    }

    /// The root of all paths.
    ///
    /// # Errors
    /// What open(2) says.
    pub fn top() -> io::Result<Step> {
        hold(libc::AT_FDCWD, c"/".into(), libc::O_DIRECTORY)
    }

    /// What stands under this one name in the folder. A link is held itself.
    ///
    /// # Errors
    /// What openat(2) says; `InvalidInput` when it is more than a name.
    pub fn entry(&self, name: &OsStr) -> io::Result<Step> {
        hold(self.fd.as_raw_fd(), one_name(name)?, libc::O_NOFOLLOW)
    }

    /// The same for going on through it: a folder that is mounted when somebody enters it is mounted.
    ///
    /// # Errors
    /// As above.
    pub fn onward(&self, name: &OsStr) -> io::Result<Step> {
        match hold(self.fd.as_raw_fd(), one_name(name)?, libc::O_NOFOLLOW | libc::O_DIRECTORY) {
            // Whatever stands there by now is what is asked from here on.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
                self.entry(name)
            }
            held => held,
        }
    }

    /// What a link of this name leads to, by the kernel's own way: for those of procfs, which are no text.
    ///
    /// # Errors
    /// As above.
    pub fn through(&self, name: &OsStr) -> io::Result<Step> {
        hold(self.fd.as_raw_fd(), one_name(name)?, 0)
    }

    /// Opens the file of this name in the folder, or makes it. A link is not followed, and nothing is waited
    /// for: of a pipe that nobody reads the answer is `ENXIO`.
    ///
    /// # Errors
    /// As above: `ELOOP` where a link stands there.
    pub fn open(&self, name: &OsStr, opens: Opens) -> io::Result<File> {
        let (flags, mode) = opens.flags();
        open_at(self.fd.as_raw_fd(), &one_name(name)?, flags | libc::O_NOFOLLOW, mode).map(File::from)
    }

    /// The same of what a link of this name leads to, see [`Step::through`].
    ///
    /// # Errors
    /// As above.
    pub fn open_through(&self, name: &OsStr, opens: Opens) -> io::Result<File> {
        let (flags, mode) = opens.flags();
        open_at(self.fd.as_raw_fd(), &one_name(name)?, flags, mode).map(File::from)
    }

    /// What fstat(2) said of it when it was held.
    pub fn facts(&self) -> &Metadata {
        &self.facts
    }

    /// The text of the link that is held.
    ///
    /// # Errors
    /// What readlinkat(2) says: `ENOENT` when it is no link.
    pub fn link_text(&self) -> io::Result<PathBuf> {
        let mut text = vec![0_u8; libc::PATH_MAX as usize];
        // SAFETY: the name is empty and ends with a zero, `text` is as long as said, and both live through the call.
        let length = checked_size(unsafe {
            libc::readlinkat(self.fd.as_raw_fd(), c"".as_ptr(), text.as_mut_ptr().cast(), text.len())
        })?;
        if length == text.len() {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        text.truncate(length);
        Ok(OsString::from_vec(text).into())
    }

    /// Whether it lies on procfs, where the kernel alone makes names.
    ///
    /// # Errors
    /// What fstatfs(2) says.
    pub fn is_on_procfs(&self) -> io::Result<bool> {
        // SAFETY: all zeroes is a valid statfs, which has numbers alone.
        let mut facts: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: `facts` lives through the call, which fills it.
        checked(unsafe { libc::fstatfs(self.fd.as_raw_fd(), &raw mut facts) })?;
        Ok(facts.f_type == libc::PROC_SUPER_MAGIC)
    }

    /// Whether it is procfs' own root, whose links (`self`, `mounts`) are texts.
    ///
    /// # Errors
    /// As above.
    pub fn is_proc_root(&self) -> io::Result<bool> {
        Ok(self.facts.ino() == PROC_ROOT && self.is_on_procfs()?)
    }

    /// Whether more users than its permissions name may have rights to it (acl(5)). Then those of the group are what any of
    /// them has at most.
    ///
    /// # Errors
    /// What getxattr(2) says.
    pub fn has_list(&self) -> io::Result<bool> {
        // A descriptor that only holds is not asked directly.
        let path = CString::new(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))?;
        let name = c"system.posix_acl_access";
        // SAFETY: both texts end with a zero and live through the call, which is to write nothing: the length is zero.
        match checked_size(unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) }) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENODATA | libc::EOPNOTSUPP)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Nothing that leads out of the folder but `..`.
fn one_name(name: &OsStr) -> io::Result<CString> {
    if name.is_empty() || name.as_bytes().contains(&b'/') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    c_string(name)
}

fn hold(from: i32, name: CString, flags: i32) -> io::Result<Step> {
    let file = File::from(open_at(from, &name, libc::O_PATH | flags, 0)?);
    let facts = file.metadata()?;
    Ok(Step { fd: file.into(), facts })
}

fn open_at(from: i32, name: &CString, flags: i32, mode: libc::mode_t) -> io::Result<OwnedFd> {
    // SAFETY: `name` ends with a zero and lives through the call.
    let fd = checked(unsafe { libc::openat(from, name.as_ptr(), flags | libc::O_CLOEXEC, mode) })?;
    // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("dyno-step-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        path
    }

    fn step(path: &std::path::Path) -> Step {
        path.iter().skip(1).fold(Step::top().unwrap(), |folder, name| folder.through(name).unwrap())
    }

    /// Planted fault: the link's text is read by its name. Then it is that of the one that stands there by now.
    #[test]
    fn what_is_held_stays_the_same_when_its_name_goes_to_another() {
        let path = scratch("held");
        symlink("first", path.join("link")).unwrap();
        let folder = step(&path);
        let held = folder.onward(OsStr::new("link")).unwrap();
        fs::remove_file(path.join("link")).unwrap();
        symlink("second", path.join("link")).unwrap();
        assert!(held.facts().is_symlink());
        assert_eq!(held.link_text().unwrap(), PathBuf::from("first"));
        fs::rename(&path, path.with_extension("old")).unwrap();
        symlink("/", &path).unwrap();
        let made = folder.open(OsStr::new("new"), Opens::Make).unwrap();
        let there = fs::metadata(path.with_extension("old").join("new")).unwrap();
        assert_eq!(
            (made.metadata().unwrap().ino(), there.permissions().mode() & 0o777),
            (there.ino(), 0o600)
        );
        fs::remove_file(&path).unwrap();
        fs::remove_dir_all(path.with_extension("old")).unwrap();
    }

    #[test]
    fn a_step_is_one_name_and_opens_no_link() {
        let path = scratch("name");
        symlink("new", path.join("link")).unwrap();
        let folder = step(&path);
        for opens in [Opens::Append, Opens::ReadAppend] {
            let error = folder.open(OsStr::new("link"), opens).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ELOOP), "{error}");
        }
        let error = folder.open(OsStr::new("link"), Opens::Make).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(!path.join("new").exists());
        for more in ["", "/", "/etc", "a/b", "new/"] {
            let error = folder.entry(OsStr::new(more)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{more}");
            assert!(folder.open(OsStr::new(more), Opens::Append).is_err(), "{more}");
        }
        let missing = folder.onward(OsStr::new("none")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert_eq!(folder.link_text().unwrap_err().raw_os_error(), Some(libc::ENOENT));
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn procfs_is_known_by_its_files_and_not_by_a_path() {
        let proc = step(std::path::Path::new("/proc"));
        assert!(
            proc.is_proc_root().unwrap() && proc.entry(OsStr::new("self")).unwrap().is_on_procfs().unwrap()
        );
        let fds = step(std::path::Path::new("/proc/self/fd"));
        assert!(fds.is_on_procfs().unwrap() && !fds.is_proc_root().unwrap());
        let above = proc.onward(OsStr::new("..")).unwrap();
        assert!(!above.is_on_procfs().unwrap() && !above.is_proc_root().unwrap());
        assert!(!step(std::path::Path::new("/proc/self/root")).is_on_procfs().unwrap());
    }

    #[test]
    fn a_list_of_further_users_is_seen() {
        let path = scratch("list");
        assert!(!step(&path).has_list().unwrap());
        // acl(5) in bytes: version 2, then tag, rights and number of each: the owner, user 1234, the group, the mask, others.
        let entries: [(u16, u16, u32); 5] =
            [(1, 7, u32::MAX), (2, 7, 1_234), (4, 5, u32::MAX), (16, 7, u32::MAX), (32, 5, u32::MAX)];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, number) in entries {
            list.extend(
                tag.to_le_bytes().into_iter().chain(rights.to_le_bytes()).chain(number.to_le_bytes()),
            );
        }
        let name = c_string(path.as_os_str()).unwrap();
        let kind = c"system.posix_acl_access".as_ptr();
        // SAFETY: the texts end with a zero, the list is as long as said, and all live through the call.
        let set =
            checked(unsafe { libc::setxattr(name.as_ptr(), kind, list.as_ptr().cast(), list.len(), 0) });
        match set {
            Ok(_) => {
                assert!(step(&path).has_list().unwrap());
                assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o775, "the mask");
            }
            // A file system without lists.
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP), "{error}"),
        }
        fs::remove_dir_all(path).unwrap();
    }
}

//! Files and folders of our own, for settings that are to outlive a boot.
//!
//! A file appears whole or not at all, and only where there was none; one without our mark is never read as ours or removed.

use super::kind::{Kind, VALUE_BYTES_MAX, not_exact};
use crate::errno::checked;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Every file of ours has this in a line of it.
pub const MARK: &str = "made by dyno tune";
/// What a folder of ours reads.
pub const FOLDER: &str = "folder";

pub(super) struct OwnFile<'s>(pub(super) &'s Path);

impl Kind for OwnFile<'_> {
    fn get(&self) -> io::Result<String> {
        let file = match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(error),
        };
        let mut raw = Vec::new();
        file.take(VALUE_BYTES_MAX as u64 + 1).read_to_end(&mut raw)?;
        let contents = String::from_utf8(raw).unwrap_or_default();
        if contents.contains(MARK) {
            Ok(contents)
        } else {
            Err(not_exact("it is there, and was not made by us"))
        }
    }

    fn put(&self, value: &str) -> io::Result<()> {
        if value.is_empty() {
            // What is there has our mark: its reader was asked first.
            return fs::remove_file(self.0).and_then(|()| sync(self.0));
        }
        if !value.contains(MARK) {
            return Err(not_exact("it would not be known as ours"));
        }
        let folder = self.0.parent().unwrap_or(Path::new("/"));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(folder)?;
        file.write_all(value.as_bytes())?;
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.sync_all()?;
        link(&file, self.0)?;
        sync(self.0)
    }
}

/// Gives a file without a name its name; one that has it is never replaced.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("digits have no zero byte");
    let to = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both names end in a zero byte and live through the call.
    checked(unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), follow) }).map(|_| ())
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

pub(super) struct OwnFolder<'s>(pub(super) &'s Path);

impl Kind for OwnFolder<'_> {
    fn get(&self) -> io::Result<String> {
        match fs::symlink_metadata(self.0) {
            Ok(found) if found.is_dir() => Ok(FOLDER.to_owned()),
            Ok(_) => Err(not_exact("it is there, and is no folder")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    fn put(&self, value: &str) -> io::Result<()> {
        match value {
            // One that somebody else has put something into stays.
            "" => fs::remove_dir(self.0)?,
            FOLDER => fs::create_dir(self.0)?,
            _ => return Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
        sync(self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{FOLDER, MARK};
    use crate::knob::KnobError;
    use crate::setting::Setting;
    use std::path::PathBuf;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("dyno-own-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_folder_and_a_file_in_it_come_and_go() {
        let (folder, contents) = (place("folder"), format!("# {MARK}\nnet.core.somaxconn = 4096\n"));
        let (dir, file) = (Setting::OwnFolder(folder.clone()), Setting::OwnFile(folder.join("60-dyno.conf")));
        dir.write(FOLDER.as_bytes()).unwrap();
        file.write(contents.as_bytes()).unwrap();
        assert_eq!(std::fs::read_to_string(folder.join("60-dyno.conf")).unwrap(), contents);
        assert!(dir.put_back(b"").is_err(), "it is not empty");
        file.put_back(b"").unwrap();
        dir.put_back(b"").unwrap();
        assert!(!folder.exists());
    }

    /// Planted fault: `link` replaces, or `get` looks for no mark; then somebody's file is lost.
    #[test]
    fn a_file_that_is_not_ours_is_neither_replaced_nor_removed() {
        let path = place("theirs");
        std::fs::write(&path, "theirs\n").unwrap();
        let file = Setting::OwnFile(path.clone());
        let contents = format!("# {MARK}\n");
        assert!(matches!(file.write(contents.as_bytes()), Err(KnobError::NotExact { .. })));
        assert!(file.put_back(b"").is_err());
        assert!(
            super::super::kind::Kind::put(&super::OwnFile(&path), &contents).is_err(),
            "it came between look and write"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs\n");
        std::fs::remove_file(&path).unwrap();
        assert!(file.write(b"no mark").is_err() && !path.exists());
    }
}

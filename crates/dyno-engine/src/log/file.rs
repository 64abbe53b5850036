//! Opening the access log. The supervisor does it while it still has root's rights, so it does not write wherever
//! another user points it.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// Opens the log for appending, or standard output.
///
/// A symbolic link is followed only where nobody but root and the caller could have made it: it stands in a folder that
/// is theirs and that no others may write to. So `/dev/stdout` is, and a link in `/tmp` is not.
pub(crate) fn open(path: Option<&Path>) -> io::Result<OwnedFd> {
    let Some(path) = path else { return io::stdout().as_fd().try_clone_to_owned() };
    match append(path, dyno_sys::knob::NO_FOLLOW) {
        Err(error) if is_link(path) => match is_own_folder(path) {
            true => append(path, 0).map(OwnedFd::from),
            false => {
                Err(io::Error::new(error.kind(), "it is a symbolic link that another user may have made"))
            }
        },
        opened => opened.map(OwnedFd::from),
    }
}

/// Opens a log that was moved away, or taken away, under its name again. A new file gets the owner and the permissions of
/// `old`.
///
/// A file that is there already, as a rotation may have made it, keeps what it has.
pub(crate) fn open_anew(path: &Path, old: &OwnedFd) -> io::Result<OwnedFd> {
    let old = File::from(old.try_clone()?).metadata()?;
    if !old.is_file() {
        return open(Some(path));
    }
    // Nobody else may open it before it has its permissions.
    let made = OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(dyno_sys::knob::NO_FOLLOW)
        .open(path);
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open(Some(path)),
        Err(error) => Err(error),
        Ok(new) => {
            if (old.uid(), old.gid()) != new.metadata().map(|new| (new.uid(), new.gid()))? {
                // Only root gives files away; others keep what they have made.
                let _ = fchown(&new, Some(old.uid()), Some(old.gid()));
            }
            new.set_permissions(Permissions::from_mode(old.mode() & 0o777))?;
            Ok(new.into())
        }
    }
}

/// Whether a log could be opened. One that is not there yet is not made: its folder must be.
pub(crate) fn could_open(path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return open(Some(path)).map(|_log| ());
    }
    let folder = path.parent().filter(|folder| folder.components().next().is_some());
    let folder = std::fs::metadata(folder.unwrap_or(Path::new(".")))?;
    if folder.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// A regular file is opened for reading too, so that its writer can see what it holds; a log that may only be written to
/// is one all the same.
fn append(path: &Path, flags: i32) -> io::Result<File> {
    // A pipe that nobody reads must not keep the supervisor, nor a reader that stops those who write.
    let flags = flags | dyno_sys::knob::NO_WAIT;
    let open =
        |reads: bool| OpenOptions::new().read(reads).append(true).create(true).custom_flags(flags).open(path);
    let is_other = std::fs::metadata(path).is_ok_and(|file| !file.is_file());
    match open(!is_other) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_other => open(false),
        opened => opened,
    }
}

fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.is_symlink())
}

/// Whether only root and this user may make names beside `path`.
fn is_own_folder(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| folder.components().next().is_some());
    let is_own = |folder: Metadata| {
        let owner = folder.uid();
        (owner == 0 || owner == dyno_sys::user::current().0) && folder.mode() & 0o022 == 0
    };
    std::fs::metadata(folder.unwrap_or(Path::new("."))).is_ok_and(is_own)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_is_followed_in_a_folder_of_ones_own_and_nowhere_else() {
        let folder = std::env::temp_dir().join(format!("dyno-log-link-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (file, link) = (folder.join("file"), folder.join("link"));
        symlink(&file, &link).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o1777)).unwrap();
        let refused = open(Some(&link)).unwrap_err();
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
        assert!(!file.exists(), "nothing was made where the link points");
        assert!(open(Some(&file)).is_ok(), "a file that is none is opened there");
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        assert!(open(Some(&link)).is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(open(Some(Path::new("/dev/stdout"))).is_ok());
    }

    #[test]
    fn a_log_that_was_moved_away_is_made_again_with_its_permissions() {
        let folder = std::env::temp_dir().join(format!("dyno-log-anew-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (path, moved) = (folder.join("log"), folder.join("log.1"));
        for mode in [0o640, 0o600, 0o666, 0o444] {
            let old = open(Some(&path)).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            std::fs::rename(&path, &moved).unwrap();
            let new = open_anew(&path, &old).unwrap();
            let (new, there) = (File::from(new).metadata().unwrap(), std::fs::metadata(&path).unwrap());
            assert_eq!((new.ino(), new.mode() & 0o7777), (there.ino(), mode), "{mode:o}");
            std::fs::set_permissions(&path, Permissions::from_mode(0o604)).unwrap();
            let again = open_anew(&path, &old).unwrap();
            let again = File::from(again).metadata().unwrap();
            assert_eq!((again.ino(), again.mode() & 0o777), (there.ino(), 0o604), "what is there stays");
        }
        std::fs::remove_file(&path).unwrap();
        symlink(&moved, &path).unwrap();
        let old = open(Some(&moved)).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o1777)).unwrap();
        let refused = open_anew(&path, &old).unwrap_err();
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

//! Opening the access log. The supervisor does it while it still has root's rights, so it does not write wherever
//! another user points it.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
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

fn append(path: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).custom_flags(flags).open(path)
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
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

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
}

//! Opening the access log. The supervisor does it while it still has root's rights, so it does not write wherever
//! another user points it.

use dyno_sys::folder::{Opens, open_straight};
use dyno_sys::knob::{NO_FOLLOW, NO_WAIT};
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// So many links the kernel follows, too (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// Bits of a folder's permissions that let others than its owner make names in it.
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// Opens the log for appending, or standard output.
///
/// A symbolic link is followed only where nobody but root and the caller could have made it, see [`is_own`]. So `/dev/stdout`
/// is, and a link in `/tmp` is not. Root asks that of links on the way, too.
pub(crate) fn open(path: Option<&Path>) -> io::Result<OwnedFd> {
    let Some(path) = path else { return io::stdout().as_fd().try_clone_to_owned() };
    append(&place_of(path, uid())?).map(OwnedFd::from)
}

/// Opens a log that was moved away, or taken away, under its name again. A new file gets the owner and the permissions of
/// `old`, where a link stands under the name the one that it leads to.
///
/// A file that is there already, as a rotation may have made it, keeps what it has.
pub(crate) fn open_anew(path: &Path, old: &OwnedFd) -> io::Result<OwnedFd> {
    let old = File::from(old.try_clone()?).metadata()?;
    let place = place_of(path, uid())?;
    if !old.is_file() || place.through.is_some() {
        return append(&place).map(OwnedFd::from);
    }
    // Nobody else may open it before it has its permissions.
    match open_straight(&place.path, Opens::Make) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => append(&place).map(OwnedFd::from),
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
    let place = place_of(path, uid())?;
    if place.path.try_exists()? {
        return append(&place).map(|_log| ());
    }
    let folder = std::fs::metadata(place.path.parent().unwrap_or(Path::new("/")))?;
    if folder.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Where a log is.
struct Place {
    /// The way to it without symbolic links, which are looked at once and followed here.
    path: PathBuf,
    /// What is opened through a link that only the kernel can make and follow, as `/dev/stdout` is: flags for that.
    through: Option<i32>,
}

/// The way to a log for this user.
fn place_of(path: &Path, uid: u32) -> io::Result<Place> {
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut place = Place { path: ".".into(), through: None };
    let mut links = 0;
    // The next name is the last one here.
    let mut names = backwards(path);
    while let Some(name) = names.pop() {
        let folder = std::mem::take(&mut place.path);
        place.path = folder.join(name);
        // What is not there is told of when it is opened.
        let Some(link) = std::fs::symlink_metadata(&place.path).ok().filter(Metadata::is_symlink) else {
            continue;
        };
        let is_last = names.is_empty();
        if (is_last || uid == 0) && !is_own(&folder, &link, uid)? {
            let why = format!("{} is a symbolic link that another user may have made", place.path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        if is_open_file(&place.path) {
            place.through = Some(if is_last { 0 } else { NO_FOLLOW });
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(io::Error::other("too many symbolic links lead to one another"));
        }
        names.extend(backwards(&std::fs::read_link(&place.path)?));
        place.path = folder;
    }
    Ok(place)
}

/// The names on a way, the last one first. An absolute one begins with the root, which all that stands before gives way to.
fn backwards(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|name| name.as_os_str().to_owned()).collect()
}

/// Whether nobody but root and this user may have put the link there: the folder is theirs, and nobody else may write to it. A
/// group may (to /var/log on Ubuntu), if the link is theirs, too. In /proc the kernel makes all names.
fn is_own(folder: &Path, link: &Metadata, uid: u32) -> io::Result<bool> {
    if folder.starts_with("/proc") {
        return Ok(true);
    }
    let is_theirs = |file: &Metadata| [0, uid].contains(&file.uid());
    let folder = std::fs::metadata(folder)?;
    let is_shared = folder.mode() & GROUP_WRITES != 0 && !is_theirs(link);
    Ok(is_theirs(&folder) && folder.mode() & OTHERS_WRITE == 0 && !is_shared)
}

/// Whether a link is no text but what a process has open: all are that are not in /proc itself (`/proc/self/fd/1`, proc(5)).
fn is_open_file(link: &Path) -> bool {
    link.strip_prefix("/proc").is_ok_and(|below| below.components().count() > 1)
}

/// A regular file is opened for reading too, so that its writer can see what it holds; a log that may only be written to
/// is one all the same. A pipe that nobody reads must not keep the supervisor, nor a reader that stops those who write.
fn append(place: &Place) -> io::Result<File> {
    let open = |opens: Opens| match place.through {
        None => open_straight(&place.path, opens),
        Some(flags) => {
            let mut options = OpenOptions::new();
            options.read(opens == Opens::ReadAppend).append(true).create(true);
            options.custom_flags(flags | NO_WAIT).open(&place.path)
        }
    };
    if std::fs::metadata(&place.path).is_ok_and(|file| !file.is_file()) {
        return open(Opens::Append);
    }
    match open(Opens::ReadAppend) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => open(Opens::Append),
        opened => opened,
    }
}

fn uid() -> u32 {
    dyno_sys::user::current().0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("dyno-log-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    #[test]
    fn a_link_is_followed_in_a_folder_of_ones_own_and_nowhere_else() {
        let folder = folder("link");
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
        let folder = folder("anew");
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

    /// Planted fault: where a link stands under the name, the file that it leads to is opened as any log is at the start.
    #[test]
    fn a_log_that_was_moved_away_from_behind_a_link_is_made_again_where_it_was() {
        let folder = folder("behind");
        let (link, path) = (folder.join("log"), folder.join("data/log"));
        std::fs::create_dir(folder.join("data")).unwrap();
        symlink("data/log", &link).unwrap();
        let old = open(Some(&link)).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o604)).unwrap();
        // Only root may: others have it made again as their own.
        let _ = std::os::unix::fs::chown(&path, Some(1_234), Some(2_345));
        let facts =
            |path: &Path| std::fs::metadata(path).map(|log| (log.uid(), log.gid(), log.mode())).unwrap();
        let before = facts(&path);
        std::fs::rename(&path, folder.join("data/log.1")).unwrap();
        open_anew(&link, &old).unwrap();
        assert_eq!(facts(&path), before);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Planted fault: only the log's own name is looked at. Then whoever has a folder on the way has root write anywhere.
    #[test]
    fn root_follows_no_link_on_the_way_that_another_user_may_have_made() {
        let folder = folder("way");
        std::fs::create_dir(folder.join("data")).unwrap();
        symlink("data", folder.join("logs")).unwrap();
        let log = folder.join("logs/log");
        let place = |uid: u32| place_of(&log, uid).map(|place| place.path);
        for mode in [0o1777, 0o757] {
            std::fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
            let refused = place(0).unwrap_err().to_string();
            assert!(
                refused.ends_with("logs is a symbolic link that another user may have made"),
                "{refused}"
            );
            assert_eq!(place(1_234).unwrap(), folder.join("data/log"), "who is not root risks his own files");
        }
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        // As root the folder can be another's, and as another user it is.
        let _ = std::os::unix::fs::chown(&folder, Some(1_234), None);
        assert!(place(0).is_err(), "it is another's folder");
        if std::os::unix::fs::chown(&folder, Some(0), Some(2_345)).is_ok() {
            assert_eq!(place(0).unwrap(), folder.join("data/log"));
            std::fs::set_permissions(&folder, Permissions::from_mode(0o775)).unwrap();
            assert_eq!(
                place(0).unwrap(),
                folder.join("data/log"),
                "a group may write to it, and the link is root's"
            );
            std::os::unix::fs::lchown(folder.join("logs"), Some(1_234), None).unwrap();
            assert!(place(0).is_err(), "one of the group may have made it");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Planted fault: `open_straight` without RESOLVE_NO_SYMLINKS. Then whoever is quick enough has what was looked at be another.
    #[test]
    fn a_folder_that_became_a_link_when_it_had_been_looked_at_is_not_gone_through() {
        let folder = folder("raced");
        std::fs::create_dir_all(folder.join("logs")).unwrap();
        std::fs::create_dir_all(folder.join("theirs")).unwrap();
        let place = place_of(&folder.join("logs/log"), uid()).unwrap();
        std::fs::remove_dir(folder.join("logs")).unwrap();
        symlink("theirs", folder.join("logs")).unwrap();
        assert!(append(&place).is_err());
        assert!(!folder.join("theirs/log").exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn every_way_that_the_kernel_knows_leads_to_the_same_place() {
        let folder = folder("ways");
        std::fs::create_dir_all(folder.join("a/b")).unwrap();
        symlink("a/../a", folder.join("c")).unwrap();
        symlink(folder.join("c/b"), folder.join("a/d")).unwrap();
        symlink("round", folder.join("round")).unwrap();
        std::fs::write(folder.join("a/b/log"), "").unwrap();
        for way in ["a/b/log", "c/b/log", "a/d/log", "c/d/../b/./log", "a/d/../d/log"] {
            let log = File::from(open(Some(&folder.join(way))).unwrap()).metadata().unwrap();
            assert_eq!(log.ino(), std::fs::metadata(folder.join("a/b/log")).unwrap().ino(), "{way}");
        }
        assert!(open(Some(&folder.join("round"))).is_err());
        assert!(open(Some(&folder.join("a/new/"))).is_err(), "no file has such a name");
        // What is open here, by the kernel's own links.
        let held = File::open(folder.join("a/b")).unwrap();
        let through = format!("/proc/self/fd/{}/new", std::os::fd::AsRawFd::as_raw_fd(&held));
        open(Some(Path::new(&through))).unwrap();
        assert!(folder.join("a/b/new").exists());
        could_open(&folder.join("a/d/next")).unwrap();
        assert!(could_open(&folder.join("none/next")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

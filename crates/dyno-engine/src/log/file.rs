//! Opening the access log. The supervisor does it while it still has root's rights, so it does not write wherever
//! another user points it.

use dyno_sys::folder::{Opens, Step};
use std::ffi::OsString;
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
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
    append(&place_of(path, user(), |_| ())?).map(OwnedFd::from)
}

/// Opens a log that was moved away, or taken away, under its name again. A new file gets the owner and the permissions of
/// `old`, where a link stands under the name the one that it leads to.
///
/// A file that is there already, as a rotation may have made it, keeps what it has.
pub(crate) fn open_anew(path: &Path, old: &OwnedFd) -> io::Result<OwnedFd> {
    let old = File::from(old.try_clone()?).metadata()?;
    let place = place_of(path, user(), |_| ())?;
    if !old.is_file() || place.is_through {
        return append(&place).map(OwnedFd::from);
    }
    // Nobody else may open it before it has its permissions.
    match place.open(Opens::Make) {
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
    let place = place_of(path, user(), |_| ())?;
    if place.stands.is_none() { Ok(()) } else { append(&place).map(|_log| ()) }
}

/// Where a log is.
struct Place {
    /// The folder that its name was looked up in, held: nobody makes it another one.
    folder: Step,
    name: OsString,
    /// What stands under the name, or behind it where that is a link of the kernel; nothing where nothing stands there yet.
    stands: Option<Metadata>,
    /// Whether it is opened through a link that only the kernel can make and follow, as `/dev/stdout` is.
    is_through: bool,
}

impl Place {
    fn open(&self, opens: Opens) -> io::Result<File> {
        if self.is_through {
            self.folder.open_through(&self.name, opens)
        } else {
            self.folder.open(&self.name, opens)
        }
    }
}

/// The way to a log for this user. `looks` is called with each name on it before it is looked up.
///
/// Each name is looked up in the folder that is held, and what stands there is held before anything is asked of it. So who
/// made a link, where it leads, and in whose folder it stands is always told of the same link and the same folder.
fn place_of(path: &Path, user: User, mut looks: impl FnMut(&Path)) -> io::Result<Place> {
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let (mut folder, mut way) = (Step::here()?, PathBuf::new());
    let mut links = 0;
    // The next name is the last one here.
    let mut names = backwards(path);
    while let Some(name) = names.pop() {
        let here = way.join(&name);
        looks(&here);
        if name == "/" {
            (folder, way) = (Step::top()?, here);
            continue;
        }
        let is_last = names.is_empty();
        let held = match if is_last { folder.entry(&name) } else { folder.onward(&name) } {
            Err(error) if is_last && error.kind() == io::ErrorKind::NotFound => {
                return Ok(Place { folder, name, stands: None, is_through: false });
            }
            held => held?,
        };
        if !held.facts().is_symlink() {
            if is_last {
                return Ok(Place { folder, name, stands: Some(held.facts().clone()), is_through: false });
            }
            (folder, way) = (held, here);
            continue;
        }
        if (is_last || user.uid == 0) && !is_own(&folder, &held, user)? {
            let why = format!("{} is a symbolic link that another user may have made", here.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(io::Error::other("too many symbolic links lead to one another"));
        }
        // No text but what a process has open: all are that are not in the root of procfs (`/proc/self/fd/1`, proc(5)).
        if held.is_on_procfs()? && !folder.is_proc_root()? {
            let behind = folder.through(&name)?;
            if is_last {
                return Ok(Place { folder, name, stands: Some(behind.facts().clone()), is_through: true });
            }
            (folder, way) = (behind, here);
            continue;
        }
        names.extend(backwards(&held.link_text()?));
    }
    // A link to the root.
    Err(io::ErrorKind::IsADirectory.into())
}

/// The names on a way, the last one first. An absolute one begins with the root, which all that stands before gives way to.
fn backwards(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|name| name.as_os_str().to_owned()).collect()
}

/// Whether nobody but root and this user may have put the link there: the folder is theirs, and nobody else may write to it.
///
/// That the link is theirs does not show it: whoever may write to a folder can move a link of root's from elsewhere onto the
/// log's name, and the sticky bit keeps him only from moving it away again. So where a group may write to the folder, it has to
/// be a group of theirs, too: root's, or the one that has the user's number and is his first (his own, as distributions make
/// them), and no list (acl(5)) lets in others.
///
/// In the root of procfs the kernel alone makes names, whoever its owner is within a namespace. Below it folders belong to
/// whose process it is, and that is asked as anywhere; so is who has a folder behind a link of the kernel (`/proc/self/cwd`).
fn is_own(folder: &Step, link: &Step, user: User) -> io::Result<bool> {
    if folder.is_proc_root()? {
        return Ok(true);
    }
    let is_theirs = |file: &Metadata| [0, user.uid].contains(&file.uid());
    let facts = folder.facts();
    if !is_theirs(facts) || facts.mode() & OTHERS_WRITE != 0 {
        return Ok(false);
    }
    if facts.mode() & GROUP_WRITES == 0 {
        return Ok(true);
    }
    let is_their_group = facts.gid() == 0 || (facts.gid() == user.gid && user.gid == user.uid);
    Ok(is_their_group && is_theirs(link.facts()) && !folder.has_list().unwrap_or(true))
}

/// A regular file is opened for reading too, so that its writer can see what it holds; a log that may only be written to
/// is one all the same. A pipe that nobody reads must not keep the supervisor, nor a reader that stops those who write.
fn append(place: &Place) -> io::Result<File> {
    if place.stands.as_ref().is_some_and(|file| !file.is_file()) {
        return place.open(Opens::Append);
    }
    match place.open(Opens::ReadAppend) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => place.open(Opens::Append),
        opened => opened,
    }
}

/// Who opens.
#[derive(Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

fn user() -> User {
    let (uid, gid) = dyno_sys::user::current();
    User { uid, gid }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::ffi::OsStr;
    use std::fs::OpenOptions;
    use std::os::fd::AsRawFd;
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
        for mode in [0o444, 0o640, 0o600, 0o666] {
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
        let data = std::fs::metadata(folder.join("data")).unwrap().ino();
        let place = |uid: u32| {
            let place = place_of(&log, User { uid, gid: uid }, |_| ())?;
            assert_eq!((place.folder.facts().ino(), place.name.as_os_str()), (data, OsStr::new("log")));
            io::Result::Ok(())
        };
        for mode in [0o1777, 0o757] {
            std::fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
            let refused = place(0).unwrap_err().to_string();
            assert!(
                refused.ends_with("logs is a symbolic link that another user may have made"),
                "{refused}"
            );
            place(1_234).expect("who is not root risks his own files");
        }
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        // As root the folder can be another's, and as another user it is.
        let _ = std::os::unix::fs::chown(&folder, Some(1_234), None);
        assert!(place(0).is_err(), "it is another's folder");
        if std::os::unix::fs::chown(&folder, Some(0), Some(2_345)).is_ok() {
            place(0).unwrap();
            for mode in [0o775, 0o1775] {
                std::fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
                assert!(place(0).is_err(), "one of the group may have moved a link of root's there");
            }
            std::os::unix::fs::chown(&folder, None, Some(0)).unwrap();
            place(0).expect("the group is root's");
            std::os::unix::fs::lchown(folder.join("logs"), Some(1_234), None).unwrap();
            assert!(place(0).is_err(), "one of the group has made it");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Planted fault: the log is opened by its path, or without O_NOFOLLOW. Then whoever is quick enough has what was looked at be another.
    #[test]
    fn a_folder_that_became_a_link_when_it_had_been_looked_at_is_not_gone_through() {
        let folder = folder("raced");
        std::fs::create_dir_all(folder.join("logs")).unwrap();
        std::fs::create_dir_all(folder.join("theirs")).unwrap();
        let place = place_of(&folder.join("logs/log"), user(), |_| ()).unwrap();
        std::fs::remove_dir(folder.join("logs")).unwrap();
        symlink("theirs", folder.join("logs")).unwrap();
        assert!(append(&place).is_err());
        assert!(!folder.join("theirs/log").exists());
        let place = place_of(&folder.join("theirs/log"), user(), |_| ()).unwrap();
        symlink("../victim", folder.join("theirs/log")).unwrap();
        assert_eq!(append(&place).unwrap_err().raw_os_error(), Some(40), "ELOOP");
        assert!(!folder.join("victim").exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Planted fault: the link, its folder's owner and where it leads are each looked up by the path. Then who has a folder above
    /// exchanges what is below between these looks, and root writes where he likes.
    ///
    /// A look is a name that is looked up below `app`. Each bit of a schedule says whether `logs` is exchanged before it.
    #[test]
    fn whenever_a_folder_is_exchanged_no_link_of_its_owners_is_followed() {
        const LOOKS: u32 = 8;
        let folder = folder("flipped");
        let (app, victim) = (folder.join("app"), folder.join("etc/victim"));
        std::fs::create_dir_all(app.join("logs")).unwrap();
        std::fs::create_dir(folder.join("etc")).unwrap();
        symlink("../../etc/victim", app.join("logs/log")).unwrap();
        symlink("../etc", app.join("other")).unwrap();
        for theirs in [&app, &app.join("logs")] {
            std::fs::set_permissions(theirs, Permissions::from_mode(0o777)).unwrap();
        }
        let flip = || {
            let name = |name: &str| app.join(name);
            std::fs::rename(name("logs"), name("third")).unwrap();
            std::fs::rename(name("other"), name("logs")).unwrap();
            std::fs::rename(name("third"), name("other")).unwrap();
        };
        let mut seen = 0;
        for (schedule, user) in (0..1_u32 << LOOKS).flat_map(|bits| [(bits, user()), (bits, ROOT)]) {
            let (mut look, mut flips) = (0, 0);
            let mut looks = || {
                if schedule >> look & 1 == 1 {
                    flip();
                    flips += 1;
                }
                look += 1;
            };
            let place = place_of(&app.join("logs/log"), user, |at| {
                if at.starts_with(&app) {
                    looks();
                }
            });
            looks();
            let opened = place.and_then(|place| append(&place));
            assert!(!victim.exists(), "{schedule:b}");
            if user.uid == 0 {
                assert!(opened.is_err(), "{schedule:b}");
            }
            seen = seen.max(look);
            if flips % 2 == 1 {
                flip();
            }
        }
        assert!((3..=LOOKS).contains(&seen), "{seen} looks");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    const ROOT: User = User { uid: 0, gid: 0 };

    /// Planted fault: whatever begins with /proc is the kernel's.
    #[test]
    fn a_link_behind_one_of_the_kernels_is_asked_as_any() {
        let folder = folder("behind-proc");
        let (link, target) = (folder.join("link"), folder.join("target"));
        symlink("target", &link).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o1777)).unwrap();
        let held = File::open(&folder).unwrap();
        let below = folder.strip_prefix("/").unwrap().display();
        for way in [
            format!("/proc/self/fd/{}/link", held.as_raw_fd()),
            format!("/proc/self/root/{below}/link"),
            format!("/proc/../{below}/link"),
        ] {
            let refused = open(Some(Path::new(&way))).unwrap_err().to_string();
            assert!(refused.contains("link is a symbolic link that another"), "{way}: {refused}");
        }
        assert!(!target.exists());
        // The kernel's own, as the last step.
        std::fs::write(&target, "").unwrap();
        let held = OpenOptions::new().append(true).open(&target).unwrap();
        for way in ["/proc/self/fd", "/proc/thread-self/fd", "/dev/fd", "/proc/../proc/self/fd"] {
            let log = open(Some(Path::new(&format!("{way}/{}", held.as_raw_fd())))).unwrap();
            assert_eq!(File::from(log).metadata().unwrap().ino(), held.metadata().unwrap().ino(), "{way}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// As root: what belongs to another's process leads where he likes, to what he could only read, too.
    #[test]
    fn what_another_users_process_has_open_is_not_written_by_root() {
        use std::os::unix::process::CommandExt;
        if user().uid != 0 {
            return;
        }
        let mut sleep = std::process::Command::new("sleep");
        let mut other =
            sleep.arg("60").uid(1_234).gid(1_234).stdout(File::open("/etc/passwd").unwrap()).spawn();
        let other = other.as_mut().unwrap();
        let refused = could_open(Path::new(&format!("/proc/{}/fd/1", other.id()))).unwrap_err();
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
    }

    #[test]
    fn a_file_that_is_no_link_is_opened_wherever_a_group_may_write() {
        let folder = folder("group");
        let _ = std::os::unix::fs::chown(&folder, None, Some(2_345));
        for mode in [0o775, 0o1775, 0o2775] {
            std::fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
            let new = folder.join(format!("{mode:o}"));
            for _ in 0..2 {
                let log = open(Some(&new)).unwrap();
                open_anew(&new, &log).unwrap();
                could_open(&new).unwrap();
            }
        }
        // A link's folder, by its group and by who asks.
        symlink("775", folder.join("link")).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o775)).unwrap();
        let facts = std::fs::metadata(&folder).unwrap();
        let is_followed =
            |gid: u32| place_of(&folder.join("link"), User { uid: facts.uid(), gid }, |_| ()).is_ok();
        assert_eq!(is_followed(facts.gid()), facts.gid() == 0 || facts.gid() == facts.uid(), "{facts:?}");
        if std::os::unix::fs::chown(&folder, Some(1_234), Some(1_234)).is_ok() {
            std::os::unix::fs::lchown(folder.join("link"), Some(1_234), None).unwrap();
            let place = |uid: u32, gid: u32| place_of(&folder.join("link"), User { uid, gid }, |_| ());
            assert!(place(1_234, 1_234).is_ok(), "a group of one's own");
            assert!(place(1_234, 100).is_err(), "a group that only has one's number");
            assert!(place(0, 0).is_err(), "another's folder");
        }
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
        let through = format!("/proc/self/fd/{}/new", held.as_raw_fd());
        open(Some(Path::new(&through))).unwrap();
        assert!(folder.join("a/b/new").exists());
        could_open(&folder.join("a/d/next")).unwrap();
        assert!(could_open(&folder.join("none/next")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

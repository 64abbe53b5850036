//! Reading what a user names and writing what a user wants kept.
//!
//! A file is written beside its place and renamed into it, so that a full disk or a crash leaves the old one whole. A link
//! is never followed: in a folder that others may write to, it could point anywhere.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use dyno_record::commands::quoted;

use crate::failure::Failure;

/// Bytes of a file that is read whole: a climb's record has some 2 MB, a million numbers 20 MB.
const BYTES_MAX: u64 = 256 << 20;

/// Reads a whole file; `-` is standard input.
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let what = format!("cannot read {}", name(path));
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => io::stdin().lock().take(BYTES_MAX + 1).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| refused(&what, &error))?;
    if bytes.len() as u64 > BYTES_MAX {
        let failure = Failure::error(format!("{what}: it has more than {} MiB", BYTES_MAX >> 20));
        return Err(failure
            .likely("files are read whole; a recording with copied stacks grows by megabytes a second")
            .try_this("a shorter recording, a lower rate, --call-graph fp, or folded stacks"));
    }
    Ok(bytes)
}

/// What an input is called in messages.
pub fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}

/// Whether `write_file` would get as far as writing: asked before the work, not after it.
pub fn can_be_written(path: &Path) -> Result<(), Failure> {
    match place(path)? {
        Place::Rename => {
            let draft = Draft::new(path)?;
            drop(draft);
            Ok(())
        }
        Place::Device => open_device(path).map(|_file| ()),
    }
}

/// Whether an output would be written over one of the files that it is made from; a pipe or a terminal is over nothing.
pub fn not_over(inputs: &[&Path], output: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt;
    let place = |path: &Path| {
        fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| (file.dev(), file.ino()))
    };
    let written = place(output);
    match inputs.iter().find(|input| written.is_some() && place(input) == written) {
        None => Ok(()),
        Some(input) => {
            let what = format!("{} would be written over {}, which is read", output.display(), name(input));
            Err(Failure::usage(what)
                .likely("one file is named twice")
                .try_this("name another file for what is written"))
        }
    }
}

/// Writes a file that belongs to `owner` (user, group), or to whoever runs this.
pub fn write_file(path: &Path, bytes: &[u8], owner: Option<(u32, u32)>) -> Result<(), Failure> {
    match place(path)? {
        Place::Rename => Draft::new(path)?.fill(bytes, owner),
        Place::Device => {
            let mut device = open_device(path)?;
            device.write_all(bytes).map_err(|error| refused(&cannot_write(path), &error))
        }
    }
}

/// An error of the world with its likely cause and what to try.
pub fn refused(what: &str, error: &io::Error) -> Failure {
    let failure = Failure::error(what).because(error);
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            failure.likely("the disk is full").try_this("df -h .")
        }
        io::ErrorKind::NotFound => failure.likely("there is no such file or folder").try_this("ls -l"),
        io::ErrorKind::PermissionDenied => {
            failure.likely("it belongs to another user, or its folder does").try_this("ls -ld . ; id")
        }
        io::ErrorKind::IsADirectory => failure.likely("it is a folder").try_this("name a file"),
        io::ErrorKind::ReadOnlyFilesystem => {
            failure.likely("the file system is mounted read-only").try_this("name a file elsewhere, in /tmp")
        }
        _ => failure,
    }
}

enum Place {
    /// Nothing, or a file that is replaced.
    Rename,
    /// A device or a pipe, which is written as it is.
    Device,
}

fn place(path: &Path) -> Result<Place, Failure> {
    let refused = |why: &str, try_this: &str| {
        Err(Failure::error(format!("{}: {why}", cannot_write(path))).try_this(try_this))
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match path.file_name() {
            Some(_) => Ok(Place::Rename),
            None => refused("it names no file", "name a file in that folder"),
        },
        Err(error) => Err(self::refused(&cannot_write(path), &error)),
        Ok(file) if file.is_symlink() => {
            let likely = "links are not followed: whoever made it decides where it leads";
            refused("it is a symbolic link", "name the file that it leads to, or remove it")
                .map_err(|failure| failure.likely(likely))
        }
        Ok(file) if file.is_dir() => refused("it is a folder", "name a file in it"),
        Ok(file) if file.is_file() => Ok(Place::Rename),
        Ok(_) => Ok(Place::Device),
    }
}

fn open_device(path: &Path) -> Result<File, Failure> {
    OpenOptions::new().write(true).open(path).map_err(|error| refused(&cannot_write(path), &error))
}

/// A file that cannot be made: most often the folder that it is for is not there.
fn not_placed(path: &Path, error: &io::Error) -> Failure {
    let failure = refused(&cannot_write(path), error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| error.kind() == io::ErrorKind::NotFound && !folder.exists()) {
        Some(folder) => {
            let folder = folder.display().to_string();
            failure
                .likely(format!("there is no folder {folder}"))
                .try_this(format!("mkdir -p {}", quoted(&folder)))
        }
        None => failure,
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// A file under a name of its own beside the place it is for; removed unless it gets there.
struct Draft<'p> {
    path: &'p Path,
    beside: PathBuf,
    file: File,
}

impl<'p> Draft<'p> {
    fn new(path: &'p Path) -> Result<Draft<'p>, Failure> {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        // What a killed run left behind has another name.
        name.push(format!(".{}-{}", std::process::id(), dyno_sys::clock::mono_ns()));
        let beside = path.with_file_name(name);
        // `create_new` is O_EXCL: it follows no link and takes over no file.
        let opened = OpenOptions::new().write(true).create_new(true).open(&beside);
        let file = opened.map_err(|error| not_placed(path, &error))?;
        Ok(Draft { path, beside, file })
    }

    fn fill(mut self, bytes: &[u8], owner: Option<(u32, u32)>) -> Result<(), Failure> {
        let filled = self.try_fill(bytes, owner);
        filled.map_err(|error| refused(&cannot_write(self.path), &error))
    }

    fn try_fill(&mut self, bytes: &[u8], owner: Option<(u32, u32)>) -> io::Result<()> {
        self.file.write_all(bytes)?;
        if let Ok(old) = fs::symlink_metadata(self.path) {
            // Who may read and write it stays; a set-user-id bit was the old contents'.
            let mode = Metadata::permissions(&old).mode() & 0o777;
            self.file.set_permissions(fs::Permissions::from_mode(mode))?;
        }
        if let Some((user, group)) = owner {
            fchown(&self.file, Some(user), Some(group))?;
        }
        // A disk may find out that it is full only now.
        self.file.sync_all()?;
        fs::rename(&self.beside, self.path)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // After a rename nothing has this name any more.
        let _ = fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    /// A folder that goes with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("dyno-file-{}-{name}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Folder(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap().flatten();
            let mut names: Vec<String> =
                entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_permissions() {
        let folder = Folder::new("replaced");
        let path = folder.0.join("x.html");
        fs::write(&path, "a longer old text").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4640)).unwrap();
        write_file(&path, b"new", None).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(folder.names(), ["x.html"]);
    }

    #[test]
    fn a_link_is_not_followed_even_when_it_leads_nowhere() {
        let folder = Folder::new("link");
        let (link, victim) = (folder.0.join("link"), folder.0.join("victim"));
        symlink(&victim, &link).unwrap();
        let failure = write_file(&link, b"x", None).unwrap_err();
        assert!(failure.lines().contains("it is a symbolic link"), "{}", failure.lines());
        assert!(can_be_written(&link).is_err());
        assert_eq!(folder.names(), ["link"]);
    }

    #[test]
    fn a_full_disk_is_said_to_be_full() {
        let failure = write_file(Path::new("/dev/full"), b"x", None).unwrap_err();
        assert!(failure.lines().contains("likely: the disk is full"), "{}", failure.lines());
    }

    #[test]
    fn what_cannot_be_written_is_known_before_the_work() {
        let folder = Folder::new("before");
        assert!(can_be_written(&folder.0).unwrap_err().lines().contains("it is a folder"));
        let nowhere = folder.0.join("missing/x.json");
        let lines = can_be_written(&nowhere).unwrap_err().lines();
        // Fault: the file is told as missing, which it is meant to be.
        assert!(
            lines.contains("likely: there is no folder ") && lines.contains("try:    mkdir -p "),
            "{lines}"
        );
        can_be_written(&folder.0.join("x.json")).unwrap();
        assert!(folder.names().is_empty());
    }
}

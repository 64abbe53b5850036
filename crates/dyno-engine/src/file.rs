//! A part of a file as a reply's body, and what tells whether the file is still what it was.
//!
//! What nobody can change leaves by `sendfile(2)`. Any other file is read and then looked at: pages that `sendfile` has
//! lent to a socket may be written to until the peer has them, and the peer would get what no version of the file ever was.

use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// Bytes of an open file. Copies share the descriptor.
///
/// The length is settled when the part is made, since Content-Length tells it. A file that has been written to or cut
/// since then closes the connection in the middle of the body: what was sent is less than was promised, and nothing that
/// was sent is of another version. Content changes when the file's length or its time of modification does.
///
/// ```no_run
/// # use dyno_engine::*;
///
/// let whole = FilePart::whole(std::fs::File::open("movie.mp4")?)?;
/// let first = whole.part(0..whole.len().min(1_000_000));
/// # let _ = first;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FilePart {
    opened: Arc<Opened>,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// What parts of one file share.
#[derive(Debug)]
struct Opened {
    file: Arc<File>,
    kind: Kind,
}

/// Whether a file can change.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Never: it is sealed.
    Sealed,
    /// It was so, and is sent as long as it is.
    Open(Facts),
}

/// What changes when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) bytes: u64,
    pub(crate) modified_s: i64,
    pub(crate) modified_ns: i64,
    changed: (i64, i64),
    names: u64,
    identity: (u64, u64),
}

impl Facts {
    pub(crate) fn of(file: &Metadata) -> Facts {
        Facts {
            bytes: file.len(),
            modified_s: file.mtime(),
            modified_ns: file.mtime_nsec(),
            changed: (file.ctime(), file.ctime_nsec()),
            names: file.nlink(),
            identity: (file.dev(), file.ino()),
        }
    }

    /// Whether a file that was so has the same content now. One that lost its name to another file, or got a second one,
    /// has changed without being written to.
    pub(crate) fn still_hold(&self, now: &Facts) -> bool {
        let is_same = |facts: &Facts| (facts.identity, facts.bytes, facts.modified_s, facts.modified_ns);
        is_same(self) == is_same(now) && (self.changed == now.changed || self.names != now.names)
    }

    /// A tag for the content of a file that was at rest when these were taken: no two states of one name have the same. Its
    /// time of modification may be set to that of another (`cp -p`, `rsync -t`), but not the time of that change.
    pub(crate) fn tag(&self) -> String {
        let (changed_s, changed_ns) = self.changed;
        let modified = format!("{:x}.{:x}", self.modified_s, self.modified_ns);
        format!("{modified}-{changed_s:x}.{changed_ns:x}-{:x}", self.bytes)
    }

    /// When anything of it last changed, in nanoseconds since 1970.
    pub(crate) fn changed_ns(&self) -> i128 {
        i128::from(self.changed.0) * 1_000_000_000 + i128::from(self.changed.1)
    }
}

impl FilePart {
    /// All of a file that nobody can write to any more.
    pub(crate) fn sealed(file: Arc<File>, length: u64) -> FilePart {
        FilePart { opened: Arc::new(Opened { file, kind: Kind::Sealed }), offset: 0, length }
    }

    /// All of a file that was so, and is sent as long as it is.
    pub(crate) fn open(file: impl Into<Arc<File>>, facts: Facts) -> FilePart {
        let opened = Opened { file: file.into(), kind: Kind::Open(facts) };
        FilePart { opened: Arc::new(opened), offset: 0, length: facts.bytes }
    }

    /// The file itself.
    pub(crate) fn file(&self) -> &File {
        &self.opened.file
    }

    /// Whether it can change.
    pub(crate) fn kind(&self) -> Kind {
        self.opened.kind
    }

    /// Whether what was read of it until now is what it was when the part was made.
    pub(crate) fn is_unchanged(&self) -> bool {
        let Kind::Open(facts) = self.kind() else { return true };
        self.file().metadata().is_ok_and(|now| facts.still_hold(&Facts::of(&now)))
    }

    /// All of a regular file, as long as it is now.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let whole = FilePart::whole(std::fs::File::open("/proc/self/exe")?)?;
    /// assert!(whole.len() > 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// What fstat(2) says; `InvalidInput` when it is no regular file: only those can be sent from a page cache.
    pub fn whole(file: impl Into<Arc<File>>) -> io::Result<FilePart> {
        let file = file.into();
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(FilePart::open(file, Facts::of(&facts)))
    }

    /// A part of this part; `None` when `range` goes beyond it.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let whole = FilePart::whole(std::fs::File::open("/proc/self/exe")?)?;
    /// assert!(whole.part(0..1).is_some() && whole.part(0..u64::MAX).is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn part(&self, range: Range<u64>) -> Option<FilePart> {
        if range.start > range.end || range.end > self.length {
            return None;
        }
        let opened = Arc::clone(&self.opened);
        Some(FilePart { opened, offset: self.offset + range.start, length: range.end - range.start })
    }

    /// How many bytes there are.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let whole = FilePart::whole(std::fs::File::open("/proc/self/exe")?)?;
    /// assert_eq!(whole.part(4..10).map(|part| part.len()), Some(6));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there are none.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let whole = FilePart::whole(std::fs::File::open("/proc/self/exe")?)?;
    /// assert!(!whole.is_empty());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    /// Red where the tag is of the length and the time of modification only.
    #[test]
    fn a_file_in_another_ones_place_has_a_tag_of_its_own_though_it_is_dated_the_same() {
        let path = std::env::temp_dir().join(format!("dyno-tag-{}", std::process::id()));
        fs::write(&path, "one").unwrap();
        let before = fs::metadata(&path).unwrap();
        let fresh = path.with_extension("fresh");
        let tag = loop {
            fs::write(&fresh, "two").unwrap();
            File::options()
                .write(true)
                .open(&fresh)
                .unwrap()
                .set_modified(before.modified().unwrap())
                .unwrap();
            // Until the kernel's clock, by which files are dated, has gone on.
            let facts = Facts::of(&fs::metadata(&fresh).unwrap());
            if facts.changed != Facts::of(&before).changed {
                break facts.tag();
            }
        };
        fs::rename(&fresh, &path).unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!((after.modified().unwrap(), after.len()), (before.modified().unwrap(), before.len()));
        assert!(tag != Facts::of(&before).tag() && Facts::of(&after).tag() != Facts::of(&before).tag());
        fs::remove_file(path).unwrap();
    }
}

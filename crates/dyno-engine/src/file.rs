//! A part of a file as a reply's body: sent by `sendfile(2)`, never read into the server's memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of an open file. Copies share the descriptor.
///
/// The length is settled when the part is made, since Content-Length tells it; a file that is shorter by the time it is
/// sent closes the connection in the middle of the body, for nothing true could be put in the missing bytes' place.
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
    pub(crate) file: Arc<File>,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl FilePart {
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
        Ok(FilePart { file, offset: 0, length: facts.len() })
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
        let file = Arc::clone(&self.file);
        Some(FilePart { file, offset: self.offset + range.start, length: range.end - range.start })
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

//! Why a folder cannot be served: the errors of content, which become the engine's.

use std::io;
use std::path::PathBuf;

/// Why a folder cannot be served.
///
/// ```
/// # use dyno_engine::*;
///
/// let refused = Mount::new("not/a/path", Content::new("public"));
/// assert!(matches!(refused, Err(ContentError::Path { .. })));
/// ```
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// It cannot be read.
    #[error("cannot read the folder {}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
    /// What was made of it cannot be used.
    #[error("cannot use the image of {}", folder.display())]
    Image {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// Encoded files cannot be kept there.
    #[error("cannot keep encoded files in {}", folder.display())]
    Cache {
        /// Where they should be kept.
        folder: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The path to serve it under is not made of plain names.
    #[error("a folder cannot be served under {path:?}: it takes plain names between slashes")]
    Path {
        /// The path.
        path: String,
    },
    /// The process that reads folders could not.
    #[error("{why}")]
    Builder {
        /// What it said.
        why: String,
    },
}

//! One of two things that are judged, as it was read: whether it is a record its text tells.

use std::path::{Path, PathBuf};

use dyno_lab::{Failure, file};

use super::numbers::FORMS;

/// What a side is read from.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) path: PathBuf,
    /// As messages call it.
    pub(super) name: String,
    pub(super) text: String,
}

impl Input {
    /// Reads a file; `-` is standard input.
    pub(super) fn read(path: &Path) -> Result<Input, Failure> {
        let name = file::name(path);
        let text = String::from_utf8(file::read(path)?).map_err(|error| {
            let failure = Failure::error(format!("{name} is not text")).because(&error);
            failure.likely(FORMS).try_this("dyno judge --help")
        })?;
        Ok(Input { path: path.to_owned(), name, text })
    }
}

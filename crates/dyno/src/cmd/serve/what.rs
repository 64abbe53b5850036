//! What the word after `dyno serve` names.

use std::path::{Path, PathBuf};

use dyno_lab::Failure;

/// What is to be served, or how.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A folder whose files are served.
    Folder(PathBuf),
    /// A file with settings; `-` is standard input.
    Settings(PathBuf),
}

/// What a path names: a folder is served, a file is one with settings.
///
/// # Errors
/// When there is nothing of that name.
pub(super) fn named(path: &Path) -> Result<What, Failure> {
    let name = path.display();
    match std::fs::metadata(path) {
        _ if path.as_os_str() == "-" => Ok(What::Settings(path.to_owned())),
        Ok(found) if found.is_dir() => Ok(What::Folder(path.to_owned())),
        Ok(_) => Ok(What::Settings(path.to_owned())),
        Err(error) => Err(dyno_lab::file::refused(&format!("cannot read {name}"), &error)),
    }
}

//! How the strangers' tables are read: columns between tabs, lines that begin with # are comments.

use std::path::Path;

use crate::trouble::Trouble;

/// Reads each line of a table.
///
/// # Errors
/// When the file cannot be read, or `parse` knows nothing of a line.
pub(crate) fn read<T>(path: &Path, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Trouble> {
    let text = std::fs::read_to_string(path).map_err(Trouble::cannot(format!("read {}", path.display())))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let read = |line: &str| {
        parse(line).ok_or_else(|| Trouble::new(format!("this is no line of {}: {line}", path.display())))
    };
    lines.map(read).collect()
}

/// Whether one of these words, separated by commas, is in a name.
pub(crate) fn is_named(name: &str, only: &str) -> bool {
    only.split(',').any(|word| name.contains(word))
}

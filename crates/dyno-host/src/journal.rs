//! The journal of host settings: what a setting was, on disk before it is changed.
//!
//! One line of JSON per change, synced before the write, and one when it went back. A climb that was killed leaves lines
//! without an end; the keeper has put those settings back, and [`Journal::open`] of the next climb says what it found.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use dyno_record::journal::Entry;

/// Largest journal that is read back; a climb writes two lines per toggle of a knob.
const JOURNAL_BYTES_MAX: u64 = 16 << 20;

/// A journal that cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} the journal {}", path.display())]
pub struct JournalError {
    /// What was tried.
    pub operation: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub source: io::Error,
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    next: u64,
}

impl Journal {
    /// Opens or creates the journal, and returns the changes that no line says were put back.
    ///
    /// # Errors
    /// When the file cannot be read or created; links are not followed.
    pub fn open(path: &Path) -> Result<(Self, Vec<Entry>), JournalError> {
        let error = |operation| move |source| JournalError { operation, path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600).custom_flags(dyno_sys::knob::NO_FOLLOW);
        let file = options.open(path).map_err(error("open"))?;
        let entries = read(&file).map_err(error("read"))?;
        let next = entries.len() as u64 + 1;
        Ok((Self { file, path: path.to_owned(), next }, unfinished(entries)))
    }

    /// Writes down a change that is about to be made; returns its number when the line is on disk.
    ///
    /// # Errors
    /// When the line cannot be written or synced: then do not change anything.
    pub fn change(&mut self, knob: &str, old: &str, new: &str) -> Result<u64, JournalError> {
        let number = self.next;
        self.next += 1;
        self.append(&Entry::Change { number, knob: knob.into(), old: old.into(), new: new.into() })?;
        Ok(number)
    }

    /// Writes down that a change was put back.
    ///
    /// # Errors
    /// As [`Journal::change`].
    pub fn restored(&mut self, number: u64) -> Result<(), JournalError> {
        self.append(&Entry::Restored { number })
    }

    fn append(&mut self, entry: &Entry) -> Result<(), JournalError> {
        let mut line = serde_json::to_vec(entry).expect("an entry is plain data");
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        written.map_err(|source| JournalError { operation: "write", path: self.path.clone(), source })
    }
}

fn read(file: &File) -> io::Result<Vec<Entry>> {
    let lines = BufReader::new(io::Read::take(file, JOURNAL_BYTES_MAX)).lines();
    // A line cut off by a crash was not followed by a change: it is passed over.
    lines
        .map(|line| line.map(|text| serde_json::from_str(&text).ok()))
        .filter_map(Result::transpose)
        .collect()
}

fn unfinished(entries: Vec<Entry>) -> Vec<Entry> {
    let restored: Vec<u64> = entries
        .iter()
        .filter_map(|e| if let Entry::Restored { number } = e { Some(*number) } else { None })
        .collect();
    let open = |entry: &Entry| matches!(entry, Entry::Change { number, .. } if !restored.contains(number));
    entries.into_iter().filter(open).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_change_without_its_end_is_found_again_and_a_torn_line_is_passed_over() {
        let path = std::env::temp_dir().join(format!("dyno-journal-{}", std::process::id()));
        let (mut journal, open) = Journal::open(&path).unwrap();
        assert!(open.is_empty());
        let first = journal.change("/proc/sys/a", "0", "1").unwrap();
        let second = journal.change("/proc/sys/b", "2", "3").unwrap();
        journal.restored(first).unwrap();
        journal.file.write_all(b"{\"step\":\"chan").unwrap();
        let (_, open) = Journal::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(
            matches!(&open[..], [Entry::Change { number, old, .. }] if *number == second && old == "2"),
            "{open:?}"
        );
    }
}

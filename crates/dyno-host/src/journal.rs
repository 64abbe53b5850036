//! The journal of host settings: what a setting was, on disk before it is changed.
//!
//! One line of JSON before a setting is first changed, one before every further value, synced before the write, and one when
//! it went back. A run that was killed leaves lines without an end; the keeper has put those settings back, and
//! [`crate::recovery`] of the next run says what it found. [`crate::change::HostChange`] alone writes it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use dyno_record::change::ChangeSpec;
use dyno_record::journal::Entry;

/// Largest journal that is read back; a run writes a line per value of a setting, and one when it went back.
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
    store: Store,
    /// This boot, as the kernel names it.
    boot: String,
    /// Every whole line so far.
    entries: Vec<Entry>,
}

#[derive(Debug)]
enum Store {
    File {
        file: File,
        path: PathBuf,
        /// The last line was cut off: the next one begins on a line of its own.
        is_torn: bool,
    },
    /// For tests: nothing outlives the process.
    Memory,
}

impl Journal {
    /// Opens or creates the journal.
    ///
    /// # Errors
    /// When the file cannot be read or created; links are not followed.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let error = |operation| move |source| JournalError { operation, path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600).custom_flags(dyno_sys::knob::NO_FOLLOW);
        let file = options.open(path).map_err(error("open"))?;
        let entries = read(&file).map_err(error("read"))?;
        let is_torn = is_torn(&file).map_err(error("read"))?;
        Ok(Self { store: Store::File { file, path: path.to_owned(), is_torn }, boot: boot_id(), entries })
    }

    /// A journal that ends with this process.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { store: Store::Memory, boot: boot_id(), entries: Vec::new() }
    }

    /// Writes down a change that is about to be made; returns its number when the line is on disk.
    ///
    /// # Errors
    /// When the line cannot be written or synced: then do not change anything.
    pub fn change(&mut self, spec: &ChangeSpec, old: &str) -> Result<u64, JournalError> {
        let number = 1 + self.entries.iter().map(number_of).max().unwrap_or(0);
        assert!(!self.is_open(number), "change {number} is written down twice");
        let ChangeSpec { what, wanted, why } = spec.clone();
        let boot = self.boot.clone();
        self.append(Entry::Change { number, what, old: old.into(), new: wanted, why, boot })?;
        Ok(number)
    }

    /// Writes down another value that is about to be written.
    ///
    /// # Errors
    /// As [`Journal::change`].
    pub fn also(&mut self, number: u64, new: &str) -> Result<(), JournalError> {
        assert!(self.is_open(number), "change {number} is not open: nobody would know what it was");
        self.append(Entry::Also { number, new: new.into() })
    }

    /// Writes down what a setting reads after a value was written for the first time.
    ///
    /// # Errors
    /// As [`Journal::change`].
    pub fn held(&mut self, number: u64, reads: &str) -> Result<(), JournalError> {
        assert!(self.is_open(number), "change {number} is not open, and holds nothing of ours");
        self.append(Entry::Held { number, reads: reads.into() })
    }

    /// Writes down that a change is to stay until it is rolled back.
    ///
    /// # Errors
    /// As [`Journal::change`].
    pub fn kept(&mut self, number: u64, by: &str) -> Result<(), JournalError> {
        assert!(self.is_open(number), "change {number} is not open, and cannot be kept");
        self.append(Entry::Kept { number, by: by.into() })
    }

    /// Writes down that there is nothing to put back any more.
    ///
    /// # Errors
    /// As [`Journal::change`].
    pub fn gone(&mut self, number: u64, why: &str) -> Result<(), JournalError> {
        assert!(self.is_open(number), "change {number} is not open, and cannot have gone");
        self.append(Entry::Gone { number, why: why.into() })
    }

    /// Whether a value was written down that nothing says was read back: it may or may not have been written.
    #[must_use]
    pub fn is_pending(&self, wanted: u64) -> bool {
        let latest = self.entries.iter().rfind(|entry| number_of(entry) == wanted);
        matches!(latest, Some(Entry::Change { .. } | Entry::Also { .. }))
    }

    /// The boot that this journal's new changes belong to.
    #[must_use]
    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// Every line.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Writes down that a change was put back.
    ///
    /// # Errors
    /// As [`Journal::change`].
    pub fn restored(&mut self, number: u64) -> Result<(), JournalError> {
        assert!(self.is_open(number), "change {number} is not open, and cannot have been put back");
        self.append(Entry::Restored { number })
    }

    /// The changes that no line says were put back, in the order in which they were made.
    #[must_use]
    pub fn open_changes(&self) -> Vec<Entry> {
        let is_open = |entry: &&Entry| matches!(entry, Entry::Change { number, .. } if self.is_open(*number));
        self.entries.iter().filter(is_open).cloned().collect()
    }

    /// Every value that was written for a change, the first one first.
    #[must_use]
    pub fn values_of(&self, change: u64) -> Vec<String> {
        let value = |entry: &Entry| match entry {
            Entry::Change { number, new, .. } | Entry::Also { number, new } if *number == change => {
                Some(new.clone())
            }
            _ => None,
        };
        self.entries.iter().filter_map(value).collect()
    }

    /// Whether a change was written down and not put back.
    #[must_use]
    pub fn is_open(&self, wanted: u64) -> bool {
        let latest = self.entries.iter().rfind(|entry| number_of(entry) == wanted);
        latest.is_some_and(|entry| !matches!(entry, Entry::Restored { .. } | Entry::Gone { .. }))
    }

    fn append(&mut self, entry: Entry) -> Result<(), JournalError> {
        if let Store::File { file, path, is_torn } = &mut self.store {
            let mut line = serde_json::to_vec(&entry).expect("an entry is plain data");
            check_line(&line, &entry);
            line.push(b'\n');
            if std::mem::take(is_torn) {
                line.insert(0, b'\n');
            }
            let written = file.write_all(&line).and_then(|()| file.sync_data());
            written.map_err(|source| JournalError { operation: "write", path: path.clone(), source })?;
        }
        self.entries.push(entry);
        Ok(())
    }
}

/// Empty where the kernel does not tell: then a change counts as one of the present boot.
pub(crate) fn boot_id() -> String {
    dyno_sys::proc::text("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// A line is whole by itself, and recovery reads from it what was meant.
fn check_line(line: &[u8], entry: &Entry) {
    assert!(!line.contains(&b'\n'), "an entry of two lines would be read as none");
    let read = serde_json::from_slice::<Entry>(line);
    assert!(read.is_ok_and(|read| read == *entry), "{entry:?} would be read back as something else");
}

fn number_of(entry: &Entry) -> u64 {
    match entry {
        Entry::Change { number, .. }
        | Entry::Also { number, .. }
        | Entry::Held { number, .. }
        | Entry::Kept { number, .. }
        | Entry::Gone { number, .. }
        | Entry::Restored { number } => *number,
    }
}

/// Whether the last byte ends no line.
fn is_torn(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let (len, mut last) = (file.metadata()?.len(), [b'\n']);
    if len > 0 {
        file.read_exact_at(&mut last, len - 1)?;
    }
    Ok(last != *b"\n")
}

fn read(file: &File) -> io::Result<Vec<Entry>> {
    if file.metadata()?.len() > JOURNAL_BYTES_MAX {
        // Read in part, it would not say what was never put back.
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 16 MiB"));
    }
    let lines = BufReader::new(io::Read::take(file, JOURNAL_BYTES_MAX)).lines();
    // A line cut off by a crash was not followed by a change: it is passed over.
    lines
        .map(|line| line.map(|text| serde_json::from_str(&text).ok()))
        .filter_map(Result::transpose)
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::change::What;

    fn spec(path: &str, wanted: &str) -> ChangeSpec {
        ChangeSpec { what: What::File(path.into()), wanted: wanted.into(), why: "a test".into() }
    }

    #[test]
    fn a_change_without_its_end_is_found_again_and_a_torn_line_is_passed_over() {
        let path = std::env::temp_dir().join(format!("dyno-journal-{}", std::process::id()));
        let mut journal = Journal::open(&path).unwrap();
        assert!(journal.open_changes().is_empty());
        let first = journal.change(&spec("/proc/sys/a", "1"), "0").unwrap();
        let second = journal.change(&spec("/proc/sys/b", "3"), "2").unwrap();
        journal.also(second, "4").unwrap();
        journal.restored(first).unwrap();
        let mut torn = OpenOptions::new().append(true).open(&path).unwrap();
        torn.write_all(b"{\"step\":\"chan").unwrap();
        let again = Journal::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let open = again.open_changes();
        assert!(
            matches!(&open[..], [Entry::Change { number, old, .. }] if *number == second && old == "2"),
            "{open:?}"
        );
        assert_eq!(again.values_of(second), ["3", "4"]);
    }

    /// Planted fault: `is_torn` is always false; then the line after a torn one is lost with it.
    #[test]
    fn a_line_after_a_torn_one_is_read() {
        let path = std::env::temp_dir().join(format!("dyno-journal-torn-{}", std::process::id()));
        std::fs::write(&path, "{\"step\":\"chan").unwrap();
        let number = Journal::open(&path).unwrap().change(&spec("/proc/sys/a", "1"), "0").unwrap();
        let again = Journal::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(again.is_open(number) && again.is_pending(number) && again.entries().len() == 1);
    }

    #[test]
    #[should_panic(expected = "cannot have been put back")]
    fn a_change_is_never_put_back_twice() {
        let mut journal = Journal::in_memory();
        let number = journal.change(&spec("/proc/sys/a", "1"), "0").unwrap();
        journal.restored(number).unwrap();
        let _ = journal.restored(number);
    }

    #[test]
    #[should_panic(expected = "nobody would know what it was")]
    fn a_further_value_is_never_written_of_a_change_that_is_closed() {
        let _ = Journal::in_memory().also(1, "2");
    }

    #[test]
    fn a_value_of_several_lines_is_one_line_of_the_journal() {
        let path = std::env::temp_dir().join(format!("dyno-journal-lines-{}", std::process::id()));
        let mut journal = Journal::open(&path).unwrap();
        let number = journal.change(&spec("/proc/sys/a", "1\n2"), "0\n\"0").unwrap();
        let again = Journal::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(again.values_of(number), ["1\n2"]);
    }

    #[test]
    #[should_panic(expected = "would be read back as something else")]
    fn a_line_that_says_something_else_is_never_written() {
        check_line(br#"{"step":"restored","number":2}"#, &Entry::Restored { number: 1 });
    }
}

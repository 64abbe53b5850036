//! Host settings as files (/proc/sys, sysfs): read one, write one and see that it holds, put it back.
//!
//! With [`crate::setting`] the only place where this product changes a host setting. The caller has journalled the old value
//! first. Nothing is created and no link is followed; a setting that cannot be read back is never written.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// sysfs and sysctl files give at most a page (fs/sysfs/file.c, kernel/sysctl.c).
pub const KNOB_BYTES_MAX: usize = 4_096;

/// For `custom_flags` of files beside settings, such as a journal: a symbolic link is not followed (open(2)).
pub const NO_FOLLOW: i32 = libc::O_NOFOLLOW;

/// The file is held and not opened: it cannot be read, and until it is let go of no other file gets its number (open(2), O_PATH).
pub const HOLD_ONLY: i32 = libc::O_PATH;

/// What a setting was before it was written, and what it reads now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Old {
    /// The file.
    pub path: PathBuf,
    /// What to write to put it back; for a choice like `always [madvise] never` the word in brackets.
    pub value: Vec<u8>,
    /// What it reads since it was written.
    pub now: Vec<u8>,
}

/// Why a setting was not read or written. After any of these but `NotRestored` the setting is as it was.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// It is missing, or may not be read.
    #[error("cannot read {}", knob.display())]
    Unreadable {
        /// The file.
        knob: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
    /// It holds more than [`KNOB_BYTES_MAX`]; it is no knob.
    #[error("{} is longer than {KNOB_BYTES_MAX} bytes: not a setting", knob.display())]
    TooLong {
        /// The file.
        knob: PathBuf,
    },
    /// The kernel would not take the value.
    #[error("{} refused {wrote:?}", knob.display())]
    Refused {
        /// The file.
        knob: PathBuf,
        /// What was written.
        wrote: String,
        /// The kernel's word.
        source: io::Error,
    },
    /// It took the value and holds another; the old one was put back.
    #[error("{} took {wrote:?} but reads {read:?}", knob.display())]
    ReadBackDiffers {
        /// The file.
        knob: PathBuf,
        /// What was written.
        wrote: String,
        /// What it read then.
        read: String,
    },
    /// It is no longer there: its device, its network namespace or its thread has gone, and with it what was set.
    #[error("{} is gone: {why}", knob.display())]
    Gone {
        /// The setting.
        knob: PathBuf,
        /// What is gone, or who has its name now.
        why: String,
    },
    /// It could not be put back exactly, and is not changed for that reason.
    #[error("{} is not changed: {why}", knob.display())]
    NotExact {
        /// The setting.
        knob: PathBuf,
        /// What would be lost.
        why: String,
    },
    /// The old value could not be put back: the host is not as it was.
    #[error("{} could not be put back to {old:?}", knob.display())]
    NotRestored {
        /// The file.
        knob: PathBuf,
        /// What it should hold.
        old: String,
        /// The kernel's word.
        source: io::Error,
    },
}

/// The raw contents of a setting.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>, KnobError> {
    let path = path.as_ref();
    let refused = |source| KnobError::Unreadable { knob: path.to_owned(), source };
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path).map_err(refused)?;
    let mut raw = Vec::new();
    file.take(KNOB_BYTES_MAX as u64 + 1).read_to_end(&mut raw).map_err(refused)?;
    if raw.len() > KNOB_BYTES_MAX {
        return Err(KnobError::TooLong { knob: path.to_owned() });
    }
    Ok(raw)
}

/// Writes `value` and reads it back. Numbers are compared as numbers and blanks do not matter (`1\t2` is `1 2`); in a
/// choice the bracketed word counts. Whatever goes wrong after the write, the old value is written again before the
/// error: the kernel may refuse a value and have taken its beginning (kernel/sysctl.c stores a list word by word).
pub fn write(path: impl AsRef<Path>, value: &[u8]) -> Result<Old, KnobError> {
    let path = path.as_ref();
    let old = settable(&read(path)?);
    let failure = match put(path, value).map(|()| read(path)) {
        Ok(Ok(now)) if same(&settable(&now), value) => {
            return Ok(Old { path: path.to_owned(), value: old, now });
        }
        Ok(Ok(now)) => KnobError::ReadBackDiffers {
            knob: path.to_owned(),
            wrote: text(value),
            read: text(&settable(&now)),
        },
        Ok(Err(unreadable)) => unreadable,
        Err(source) => KnobError::Refused { knob: path.to_owned(), wrote: text(value), source },
    };
    put_back(path, &old)?;
    Err(failure)
}

/// Writes an old value again and sees that it holds. It may be given as it was read: of a choice the word in brackets is
/// written. A write that is refused is no failure where the setting reads as it should.
pub fn put_back(path: impl AsRef<Path>, old: &[u8]) -> Result<(), KnobError> {
    let path = path.as_ref();
    let old = settable(old);
    let failed = |source| KnobError::NotRestored { knob: path.to_owned(), old: text(&old), source };
    let written = put(path, &old);
    let now = read(path).map_err(|error| failed(io::Error::other(error)))?;
    if same(&settable(&now), &old) {
        return Ok(());
    }
    written.map_err(failed)?;
    Err(failed(io::Error::other(format!("it reads {:?}", text(&settable(&now))))))
}

/// Whether the setting reads `value`, given as it was read or as it is written.
pub fn holds(path: impl AsRef<Path>, value: &[u8]) -> Result<bool, KnobError> {
    Ok(same(&settable(&read(path)?), &settable(value)))
}

/// One write call: two would be two settings to the kernel. O_TRUNC matters to ordinary files only.
pub(crate) fn put(path: &Path, value: &[u8]) -> io::Result<()> {
    // Nothing at all would not reach the kernel; a newline alone empties a setting.
    let value = if value.is_empty() { b"\n" } else { value };
    let mut options = OpenOptions::new();
    let mut file: File = options.write(true).truncate(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    match file.write(value)? {
        written if written == value.len() => Ok(()),
        _ => Err(io::Error::from(io::ErrorKind::WriteZero)),
    }
}

/// What has to be written to get this reading: the bracketed word of a choice, else all of it without the last newline.
pub fn settable(raw: &[u8]) -> Vec<u8> {
    let text = raw.trim_ascii();
    let chosen = |word: &&[u8]| word.len() > 2 && word.starts_with(b"[") && word.ends_with(b"]");
    let mut words = text.split(u8::is_ascii_whitespace).filter(chosen);
    match (words.next(), words.next()) {
        (Some(word), None) => word[1..word.len() - 1].to_vec(),
        _ => text.to_vec(),
    }
}

pub(crate) fn same(read: &[u8], wrote: &[u8]) -> bool {
    let words = |raw: &[u8]| -> Vec<String> { text(raw).split_whitespace().map(normal).collect() };
    words(read) == words(wrote)
}

/// Numbers without leading zeroes, so that `010`, as a bit mask is printed, is `10`.
fn normal(word: &str) -> String {
    let digits = word.trim_start_matches('0');
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    match (is_number, digits.is_empty()) {
        (false, _) => word.to_owned(),
        (true, true) => "0".to_owned(),
        (true, false) => digits.to_owned(),
    }
}

fn text(raw: &[u8]) -> String {
    String::from_utf8_lossy(raw.trim_ascii()).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// An ordinary file that stands for a setting; gone at the end of the test.
    struct Fake(PathBuf);

    impl Fake {
        fn holding(name: &str, value: &str) -> Fake {
            let path = std::env::temp_dir().join(format!("dyno-knob-{}-{name}", std::process::id()));
            std::fs::write(&path, value).unwrap();
            Fake(path)
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_write_hands_back_what_was_there() {
        let knob = Fake::holding("old", "60\n");
        let old = write(&knob.0, b"10").unwrap();
        assert_eq!((old.value.as_slice(), old.now.as_slice()), (&b"60"[..], &b"10"[..]));
        put_back(&knob.0, &old.value).unwrap();
        assert_eq!(read(&knob.0).unwrap(), b"60");
    }

    #[test]
    fn blanks_and_leading_zeroes_are_no_difference_and_values_are() {
        assert!(same(b"4096\t131072\t6291456", b"4096 131072 6291456"));
        assert!(same(b"00000003", b"3") && same(b"0", b"00"));
        assert!(!same(b"4096", b"4000") && !same(b"cubic", b"bbr") && !same(b"1 2", b"1"));
    }

    #[test]
    fn a_choice_reads_as_its_bracketed_word() {
        assert_eq!(settable(b"always [madvise] never\n"), b"madvise");
        assert_eq!(settable(b"bbr\n"), b"bbr");
        assert_eq!(settable(b"[] x\n"), b"[] x");
        assert_eq!(settable(b"[a] [b]"), b"[a] [b]");
    }

    #[test]
    fn an_old_value_may_be_given_as_it_was_read() {
        let knob = Fake::holding("choice", "advise");
        put_back(&knob.0, b"always advise [never]\n").unwrap();
        assert_eq!(read(&knob.0).unwrap(), b"never");
        assert!(holds(&knob.0, b"always advise [never]\n").unwrap() && !holds(&knob.0, b"advise").unwrap());
    }

    #[test]
    fn an_empty_setting_is_emptied_again() {
        let knob = Fake::holding("empty", "\n");
        let old = write(&knob.0, b"8080").unwrap();
        put_back(&knob.0, &old.value).unwrap();
        assert_eq!(read(&knob.0).unwrap(), b"\n");
    }

    #[test]
    fn a_missing_knob_is_not_created() {
        let path = std::env::temp_dir().join(format!("dyno-knob-{}-missing", std::process::id()));
        assert!(matches!(write(&path, b"1"), Err(KnobError::Unreadable { .. })));
        assert!(!path.exists());
    }

    #[test]
    fn a_link_is_not_followed() {
        let knob = Fake::holding("target", "1\n");
        let link = knob.0.with_extension("link");
        std::os::unix::fs::symlink(&knob.0, &link).unwrap();
        assert!(matches!(write(&link, b"2"), Err(KnobError::Unreadable { .. })));
        assert!(matches!(put_back(&link, b"2"), Err(KnobError::NotRestored { .. })));
        std::fs::remove_file(link).unwrap();
        assert_eq!(read(&knob.0).unwrap(), b"1\n");
    }

    #[test]
    fn a_value_that_the_kernel_refuses_leaves_the_old_one() {
        // A file that reads but cannot be written to, also as root: the kernel's own read-only sysctl.
        let path = "/proc/sys/kernel/ostype";
        assert!(matches!(write(path, b"Other"), Err(KnobError::Refused { .. })));
        assert_eq!(read(path).unwrap(), b"Linux\n");
    }

    #[test]
    fn a_long_file_is_no_knob() {
        let knob = Fake::holding("long", &"x".repeat(KNOB_BYTES_MAX + 1));
        assert!(matches!(read(&knob.0), Err(KnobError::TooLong { .. })));
    }
}

//! What a run that was killed left behind: settings that its journal says were never put back.
//!
//! The binary asks it before a run that may change the host, says what it found, and decides whether it is put back.

use std::path::Path;

use dyno_record::change::What;
use dyno_record::journal::Entry;
use dyno_sys::knob::KnobError;

use crate::host::Host;
use crate::journal::{Journal, JournalError};

/// A setting that a journal left open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The setting.
    pub what: What,
    /// What it was.
    pub old: String,
    /// Every value that was written there; none where an older journal does not tell.
    ours: Vec<String>,
}

/// Where such a setting stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Now {
    /// Where it was before.
    Back,
    /// At a value that was written there, or it cannot be read.
    Ours(String),
    /// At another one: somebody else has changed it since. It is left alone.
    Foreign(String),
}

/// What a journal left open, to be put back in this order.
///
/// # Errors
/// When the journal cannot be read.
pub fn left_open(journal: &Path) -> Result<Vec<Left>, JournalError> {
    if !journal.exists() {
        return Ok(Vec::new());
    }
    let journal = Journal::open(journal)?;
    let left = |entry: Entry| match entry {
        // Journals without reasons held the first value only.
        Entry::Change { what, old, why, .. } if why.is_empty() => Some(Left { what, old, ours: Vec::new() }),
        Entry::Change { number, what, old, .. } => Some(Left { what, old, ours: journal.values_of(number) }),
        Entry::Also { .. } | Entry::Restored { .. } => None,
    };
    // Backwards, so that of two changes of one setting the first one's old value is written last.
    Ok(journal.open_changes().into_iter().rev().filter_map(left).collect())
}

impl Left {
    /// Where it stands.
    pub fn now(&self, host: &dyn Host) -> Now {
        let holds = |value: &String| host.holds(&self.what, value.as_bytes());
        let reads = || host.read(&self.what).map(|value| String::from_utf8_lossy(&value).into_owned());
        let is_ours = self.ours.is_empty() || self.ours.iter().any(|value| holds(value).unwrap_or(false));
        match (holds(&self.old), is_ours) {
            (Ok(true), _) => Now::Back,
            (Ok(false), false) => Now::Foreign(reads().unwrap_or_default()),
            (Ok(false), true) | (Err(_), _) => Now::Ours(reads().unwrap_or_default()),
        }
    }

    /// Puts it back.
    ///
    /// # Errors
    /// When it is not back then.
    pub fn put_back(&self, host: &mut dyn Host) -> Result<(), KnobError> {
        assert!(!matches!(self.now(host), Now::Foreign(_)), "{} is somebody else's now", self.what);
        host.put_back(&self.what, self.old.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::memory::InMemory;
    use dyno_record::change::ChangeSpec;

    #[test]
    fn a_dead_runs_settings_are_told_apart_by_who_wrote_them() {
        let path = std::env::temp_dir().join(format!("dyno-recovery-{}", std::process::id()));
        let mut journal = Journal::open(&path).unwrap();
        for name in ["/back", "/ours", "/theirs"] {
            let spec = ChangeSpec { what: What::File(name.into()), wanted: "1".into(), why: "a test".into() };
            let number = journal.change(&spec, "0").unwrap();
            journal.also(number, "2").unwrap();
        }
        let left = left_open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut host = InMemory::holding(&[("/back", "0"), ("/ours", "2"), ("/theirs", "3")]);
        let now: Vec<Now> = left.iter().map(|one| one.now(&host)).collect();
        assert_eq!(now, [Now::Foreign("3".into()), Now::Ours("2".into()), Now::Back]);
        left[1].put_back(&mut host).unwrap();
        assert_eq!(left[1].now(&host), Now::Back);
        assert_eq!(left_open(Path::new("/nowhere/at/all")).unwrap(), []);
    }
}

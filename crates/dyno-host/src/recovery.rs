//! What a run that was killed left behind: settings that its journal says were never put back.
//!
//! The lab calls [`settle`] before a run, for the journal of every run that is dead: a setting that is not back would be the
//! next run's start, and its old value is known to that journal alone. What somebody else has set since is never written.

use std::path::Path;

use dyno_record::change::What;
use dyno_record::journal::Entry;
use dyno_sys::knob::KnobError;

use crate::changes::HostChanges;
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
}

/// What became of a setting that a dead run left open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It stood at this value of the dead run and is back.
    PutBack(Left, String),
    /// Somebody else has set it to this value since, and it is left alone.
    Foreign(Left, String),
}

/// A setting of a dead run that is not back.
#[derive(Debug, thiserror::Error)]
pub enum Unsettled {
    /// Nobody knows what it left open.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// It stands at a value of the dead run, and nobody allowed it to be changed.
    #[error("{} stands at {now:?}, it was {:?}, and nobody allowed it to be put back", left.what, left.old)]
    NotAllowed {
        /// The setting.
        left: Box<Left>,
        /// Where it stands.
        now: String,
    },
    /// It could not be put back.
    #[error("{} stands at {now:?}, it was {:?}, and cannot be put back", left.what, left.old)]
    NotRestored {
        /// The setting.
        left: Box<Left>,
        /// Where it stood.
        now: String,
        /// The kernel's answer.
        source: KnobError,
    },
}

/// Puts back what a dead run's journal left open, where that is allowed, and reports each setting that had to be looked at.
///
/// # Errors
/// At the first setting that is not back; those after it are not touched.
pub fn settle(
    journal: &Path,
    allowed: HostChanges,
    host: &mut dyn Host,
    report: &mut dyn FnMut(Settled),
) -> Result<(), Unsettled> {
    for left in left_open(journal)? {
        match left.now(host) {
            Now::Back => {}
            Now::Foreign(now) => report(Settled::Foreign(left, now)),
            Now::Ours(now) if allowed == HostChanges::Refused => {
                return Err(Unsettled::NotAllowed { left: Box::new(left), now });
            }
            Now::Ours(now) => match host.put_back(&left.what, left.old.as_bytes()) {
                Ok(()) => report(Settled::PutBack(left, now)),
                Err(source) => return Err(Unsettled::NotRestored { left: Box::new(left), now, source }),
            },
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::memory::InMemory;
    use dyno_record::change::ChangeSpec;

    /// The journal of a run that was killed: it had changed three settings.
    fn journal_of_the_dead(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("dyno-recovery-{}-{name}", std::process::id()));
        let mut journal = Journal::open(&path).unwrap();
        for name in ["/back", "/ours", "/theirs"] {
            let spec = ChangeSpec { what: What::File(name.into()), wanted: "1".into(), why: "a test".into() };
            let number = journal.change(&spec, "0").unwrap();
            journal.also(number, "2").unwrap();
        }
        path
    }

    fn host() -> InMemory {
        InMemory::holding(&[("/back", "0"), ("/ours", "2"), ("/theirs", "3")])
    }

    #[test]
    fn a_dead_runs_settings_are_told_apart_by_who_wrote_them() {
        let path = journal_of_the_dead("apart");
        let left = left_open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let host = host();
        let now: Vec<Now> = left.iter().map(|one| one.now(&host)).collect();
        assert_eq!(now, [Now::Foreign("3".into()), Now::Ours("2".into()), Now::Back]);
        assert_eq!(left_open(Path::new("/nowhere/at/all")).unwrap(), []);
    }

    #[test]
    fn only_what_the_dead_run_wrote_is_put_back_and_only_where_that_is_allowed() {
        let (path, mut host) = (journal_of_the_dead("settled"), host());
        let mut settled = Vec::new();
        let refused = settle(&path, HostChanges::Refused, &mut host, &mut |one| settled.push(one));
        assert!(matches!(&refused, Err(Unsettled::NotAllowed { now, .. }) if now == "2"), "{refused:?}");
        assert_eq!(host.writes(), 0);
        settled.clear();
        settle(&path, HostChanges::Allowed, &mut host, &mut |one| settled.push(one)).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(
            matches!(&settled[..], [Settled::Foreign(_, theirs), Settled::PutBack(_, ours)] if theirs == "3" && ours == "2"),
            "{settled:?}"
        );
        let reads = |name: &str| host.read(&What::File(name.into())).unwrap();
        assert_eq!([reads("/back"), reads("/ours"), reads("/theirs")], [b"0", b"0", b"3"]);
    }
}

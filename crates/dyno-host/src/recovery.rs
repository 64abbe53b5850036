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
    /// Number of the change in its journal.
    pub number: u64,
    /// The setting.
    pub what: What,
    /// What it was.
    pub old: String,
    /// Every value that was written there; none where an older journal does not tell.
    pub ours: Vec<String>,
    /// The last of them was not read back: the kernel may have made another value of it.
    pub is_pending: bool,
    /// It was changed since this machine was started.
    pub is_this_boot: bool,
}

/// Where such a setting stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Now {
    /// Where it was before.
    Back,
    /// At a value that was written there, or that the kernel made of one, or it cannot be read.
    Ours(String),
    /// At another one: somebody else has changed it since. It is left alone.
    Foreign(String),
    /// Its device, namespace or thread is gone, and what was set with it.
    Gone(String),
    /// It was the running kernel's, which was started again since.
    GoneWithBoot,
}

/// What a journal left open, to be put back in this order.
///
/// # Errors
/// When the journal cannot be read.
pub fn left_open(journal: &Path) -> Result<Vec<Left>, JournalError> {
    if !journal.exists() {
        return Ok(Vec::new());
    }
    Ok(left_in(&Journal::open(journal)?))
}

/// The same of a journal that is open.
#[must_use]
pub fn left_in(journal: &Journal) -> Vec<Left> {
    let left = |entry: Entry| match entry {
        Entry::Change { number, what, old, why, boot, .. } => {
            // Journals without reasons held the first value only.
            let ours = if why.is_empty() { Vec::new() } else { journal.values_of(number) };
            let is_this_boot = boot.is_empty() || boot == journal.boot();
            let is_pending = !boot.is_empty() && is_this_boot && journal.is_pending(number);
            Some(Left { number, what, old, ours, is_pending, is_this_boot })
        }
        _ => None,
    };
    // Backwards, so that of two changes of one setting the first one's old value is written last.
    journal.open_changes().into_iter().rev().filter_map(left).collect()
}

impl Left {
    /// Where it stands. Whoever asks in order to write holds the lock.
    pub fn now(&self, host: &dyn Host) -> Now {
        if !self.is_this_boot && !self.what.outlives_boot() {
            return Now::GoneWithBoot;
        }
        let reads = || match host.read(&self.what) {
            Ok(value) => String::from_utf8_lossy(&value).into_owned(),
            Err(error) => error.to_string(),
        };
        match host.holds(&self.what, self.old.as_bytes()) {
            Ok(true) => Now::Back,
            Err(KnobError::Gone { why, .. }) => Now::Gone(why),
            Ok(false) if !self.is_ours(host) => Now::Foreign(reads()),
            Err(KnobError::NotExact { .. }) => Now::Foreign(reads()),
            Ok(false) | Err(_) => Now::Ours(reads()),
        }
    }

    fn is_ours(&self, host: &dyn Host) -> bool {
        let holds = |value: &String| host.holds(&self.what, value.as_bytes()).unwrap_or(false);
        // Nobody else may write while a value of ours is on its way: another reading is what the kernel made of it.
        self.is_pending || self.ours.is_empty() || self.ours.iter().any(holds)
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
            Now::Back | Now::Gone(_) | Now::GoneWithBoot => {}
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
            journal.held(number, "2").unwrap();
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

    /// Planted fault: `is_pending` is never true; then 4096 is taken for somebody else's.
    #[test]
    fn what_the_kernel_made_of_a_value_on_its_way_is_ours_and_after_it_was_read_back_somebody_elses() {
        let mut journal = Journal::in_memory();
        let spec =
            ChangeSpec { what: What::File("/cnt".into()), wanted: "4000".into(), why: "a test".into() };
        let number = journal.change(&spec, "0").unwrap();
        let host = InMemory::holding(&[("/cnt", "4096")]);
        assert_eq!(left_in(&journal)[0].now(&host), Now::Ours("4096".into()));
        journal.held(number, "4000").unwrap();
        assert_eq!(left_in(&journal)[0].now(&host), Now::Foreign("4096".into()));
    }

    /// Planted fault: the boot is not compared; then the old value of another boot is written.
    #[test]
    fn what_was_changed_before_this_boot_is_gone_with_it_and_a_file_is_not() {
        let left = |what: What, old: &str| Left {
            number: 1,
            what,
            old: old.into(),
            ours: vec!["1".into()],
            is_pending: false,
            is_this_boot: false,
        };
        let file = What::OwnFile { path: "/etc/x".into() };
        let mut host = InMemory::holding(&[("/a", "1")]);
        host.set(&file, "1");
        assert_eq!(left(What::File("/a".into()), "0").now(&host), Now::GoneWithBoot);
        assert_eq!(left(file, "").now(&host), Now::Ours("1".into()));
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

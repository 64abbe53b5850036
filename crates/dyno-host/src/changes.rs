//! The changes of a run: every setting that was touched, each by a [`HostChange`] of its own.
//!
//! The lab's meter calls it for every arm it opens or measures, and at its end. A setting stands where the arm that is being
//! measured wants it. Nothing is changed where nobody allowed it.

use std::path::PathBuf;

use dyno_record::change::{ChangeSpec, What};

use crate::change::{HostChange, HostError};
use crate::host::{Guard, Host};
use crate::journal::{Journal, JournalError};

/// Whether host settings may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostChanges {
    /// They are "not possible" without the flag.
    Refused,
    /// `--allow-host-changes` was given.
    Allowed,
}

/// The settings that were touched.
#[derive(Debug)]
pub struct OpenChanges<G: Guard> {
    allowed: HostChanges,
    journal_path: PathBuf,
    journal: Option<Journal>,
    /// In the order of their first changes.
    touched: Vec<HostChange<G::Token>>,
}

impl<G: Guard> OpenChanges<G> {
    /// None yet. The journal is opened before the first change.
    #[must_use]
    pub fn new(allowed: HostChanges, journal_path: PathBuf) -> Self {
        Self { allowed, journal_path, journal: None, touched: Vec::new() }
    }

    /// The same with a journal that is open already.
    #[must_use]
    pub fn with_journal(allowed: HostChanges, journal: Journal) -> Self {
        Self { allowed, journal_path: PathBuf::new(), journal: Some(journal), touched: Vec::new() }
    }

    /// Makes a setting stand where it is wanted; an empty text means "as it was found".
    ///
    /// # Errors
    /// When it may not be changed, or cannot be: then it stands where it stood, or keeper and journal know what it was.
    pub fn stand(&mut self, spec: &ChangeSpec, host: &mut dyn Host, guard: &G) -> Result<(), HostError> {
        let at = match self.place_of(&spec.what) {
            Some(at) => at,
            None if spec.wanted.is_empty() => return Ok(()),
            None => self.touch(spec, host, guard)?,
        };
        let journal = opened(&mut self.journal, &self.journal_path)?;
        let change = &mut self.touched[at];
        assert!(change.what() == &spec.what, "{} is changed as if it were {}", change.what(), spec.what);
        let outcome = change.stand(&spec.wanted, host, guard, journal);
        if outcome.is_err() && !change.is_changed() {
            // It was never changed, and nobody need remember it.
            self.touched.remove(at).undo(host, guard, journal)?;
        }
        outcome
    }

    fn touch(&mut self, spec: &ChangeSpec, host: &dyn Host, guard: &G) -> Result<usize, HostError> {
        if self.allowed == HostChanges::Refused {
            return Err(HostError::NotAllowed { what: Box::new(spec.what.clone()) });
        }
        let journal = opened(&mut self.journal, &self.journal_path)?;
        let change = HostChange::prepare(spec, host, guard, journal)?;
        assert!(self.place_of(change.what()).is_none(), "{} has two old values", change.what());
        self.touched.push(change);
        Ok(self.touched.len() - 1)
    }

    fn place_of(&self, what: &What) -> Option<usize> {
        self.touched.iter().position(|change| change.what() == what)
    }

    /// Every setting back to what it was, the last one first.
    ///
    /// # Errors
    /// The first failure, after all were tried.
    pub fn undo_all(&mut self, host: &mut dyn Host, guard: &G) -> Result<(), HostError> {
        let mut outcome = Ok(());
        for change in std::mem::take(&mut self.touched).into_iter().rev() {
            let journal = opened(&mut self.journal, &self.journal_path);
            let undone =
                journal.map_err(HostError::from).and_then(|journal| change.undo(host, guard, journal));
            outcome = outcome.and(undone);
        }
        assert!(self.touched.is_empty(), "a change outlives the run");
        outcome
    }
}

fn opened<'j>(
    journal: &'j mut Option<Journal>,
    path: &std::path::Path,
) -> Result<&'j mut Journal, JournalError> {
    let open = match journal.take() {
        Some(open) => open,
        None => Journal::open(path)?,
    };
    Ok(journal.insert(open))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::memory::{InMemory, Watchman};

    const KNOBS: [(&str, &str); 2] = [("/proc/sys/a", "1"), ("/proc/sys/b", "2")];

    fn spec(path: &str, wanted: &str) -> ChangeSpec {
        ChangeSpec { what: What::File(path.into()), wanted: wanted.into(), why: "a test".into() }
    }

    fn changes(allowed: HostChanges) -> (OpenChanges<Watchman>, InMemory, Watchman) {
        let changes = OpenChanges::with_journal(allowed, Journal::in_memory());
        (changes, InMemory::holding(&KNOBS), Watchman::default())
    }

    fn reads(host: &InMemory, path: &str) -> Vec<u8> {
        host.read(&What::File(path.into())).unwrap()
    }

    #[test]
    fn every_setting_goes_back_to_what_it_was() {
        let (mut changes, mut host, guard) = changes(HostChanges::Allowed);
        for (path, wanted) in
            [("/proc/sys/a", "5"), ("/proc/sys/b", "6"), ("/proc/sys/a", ""), ("/proc/sys/a", "7")]
        {
            changes.stand(&spec(path, wanted), &mut host, &guard).unwrap();
        }
        assert_eq!(
            (reads(&host, "/proc/sys/a"), reads(&host, "/proc/sys/b")),
            (b"7".to_vec(), b"6".to_vec())
        );
        changes.undo_all(&mut host, &guard).unwrap();
        assert_eq!(
            (reads(&host, "/proc/sys/a"), reads(&host, "/proc/sys/b")),
            (b"1".to_vec(), b"2".to_vec())
        );
        assert!(guard.guarded().is_empty());
    }

    #[test]
    fn nothing_is_changed_where_nobody_allowed_it() {
        let (mut changes, mut host, guard) = changes(HostChanges::Refused);
        let refused = changes.stand(&spec("/proc/sys/a", "5"), &mut host, &guard).unwrap_err().to_string();
        assert_eq!(refused, "/proc/sys/a would be changed, which needs --allow-host-changes");
        changes.stand(&spec("/proc/sys/a", ""), &mut host, &guard).unwrap();
        assert_eq!((host.writes(), guard.guarded().len()), (0, 0));
    }

    #[test]
    fn a_value_that_is_refused_at_once_leaves_nothing_to_remember() {
        let (mut changes, mut host, guard) = changes(HostChanges::Allowed);
        host.refuse("5");
        assert!(changes.stand(&spec("/proc/sys/a", "5"), &mut host, &guard).is_err());
        assert!(guard.guarded().is_empty());
        changes.stand(&spec("/proc/sys/a", "6"), &mut host, &guard).unwrap();
        host.refuse("7");
        assert!(changes.stand(&spec("/proc/sys/a", "7"), &mut host, &guard).is_err());
        assert_eq!(reads(&host, "/proc/sys/a"), b"6");
        changes.undo_all(&mut host, &guard).unwrap();
        assert_eq!(reads(&host, "/proc/sys/a"), b"1");
    }

    #[test]
    fn a_death_at_any_moment_is_undone_by_the_guard() {
        for steps in 0..4 {
            let (mut changes, mut host, guard) = changes(HostChanges::Allowed);
            let wanted =
                [("/proc/sys/a", "5"), ("/proc/sys/b", "6"), ("/proc/sys/a", "7"), ("/proc/sys/b", "")];
            for (path, wanted) in &wanted[..=steps] {
                changes.stand(&spec(path, wanted), &mut host, &guard).unwrap();
            }
            assert!(guard.undo_all(&mut host).is_empty());
            assert_eq!(
                (reads(&host, "/proc/sys/a"), reads(&host, "/proc/sys/b")),
                (b"1".to_vec(), b"2".to_vec())
            );
        }
    }

    #[test]
    fn one_that_somebody_else_changed_keeps_no_other_from_going_back() {
        let (mut changes, mut host, guard) = changes(HostChanges::Allowed);
        changes.stand(&spec("/proc/sys/a", "5"), &mut host, &guard).unwrap();
        changes.stand(&spec("/proc/sys/b", "6"), &mut host, &guard).unwrap();
        host.set(&What::File("/proc/sys/b".into()), "9");
        assert!(matches!(changes.undo_all(&mut host, &guard), Err(HostError::Foreign { .. })));
        assert_eq!(
            (reads(&host, "/proc/sys/a"), reads(&host, "/proc/sys/b")),
            (b"1".to_vec(), b"9".to_vec())
        );
    }

    #[test]
    #[should_panic(expected = "has two old values")]
    fn a_setting_is_never_touched_twice() {
        let (mut changes, host, guard) = changes(HostChanges::Allowed);
        for wanted in ["5", "6"] {
            changes.touch(&spec("/proc/sys/a", wanted), &host, &guard).unwrap();
        }
    }
}

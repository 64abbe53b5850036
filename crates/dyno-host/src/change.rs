//! A change of the host: the one type that makes and undoes it.
//!
//! In this order and no other: the setting is read; what it was is in the journal on disk; the keeper knows how to undo it;
//! it is written; it is read back and compared. At the end it is put back and read back, and only then journal and keeper let
//! go of it. What somebody else has changed meanwhile is reported and left alone.
//!
//! [`crate::changes`] holds those of a run. Which setting is wanted where, others decide.

use dyno_record::change::{ChangeSpec, What};
use dyno_sys::keeper::KeeperError;
use dyno_sys::knob::KnobError;

use crate::host::{Guard, Host};
use crate::journal::{Journal, JournalError};

/// A setting that could not be brought where it was wanted.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Nobody allowed it.
    #[error("{what} would be changed, which needs --allow-host-changes")]
    NotAllowed {
        /// The setting.
        what: Box<What>,
    },
    /// It could not be read, written or put back.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// What it was could not be written down: nothing was changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The keeper would not take its old value: nothing was changed.
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    /// Somebody else has changed it since: it is left alone.
    #[error(
        "{what} reads {reads:?}, and {wrote:?} was written: somebody else changed it, and it is left alone (it was {old:?})"
    )]
    Foreign {
        /// The setting.
        what: Box<What>,
        /// What was written here last.
        wrote: String,
        /// What it reads.
        reads: String,
        /// What it was before the first change.
        old: String,
    },
}

/// Where a changed setting stands, as far as is known here.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stands {
    At(Vec<u8>),
    /// A write failed and the value before could not be written again, or it cannot be read what came of one.
    Unknown,
}

/// A setting of the host that may be changed, and is undone: by [`HostChange::undo`], or by the guard if we die.
#[derive(Debug)]
#[must_use = "a change that is dropped is undone only when this process ends"]
pub struct HostChange<T> {
    what: What,
    /// What it was.
    old: Vec<u8>,
    /// Every value that may have been written here. The journal and the guard know each of them before it is written.
    ours: Vec<Vec<u8>>,
    stands: Stands,
    number: u64,
    token: T,
}

impl<T> HostChange<T> {
    /// Reads what a setting is, writes that down, and has it guarded. Nothing is changed yet.
    ///
    /// # Errors
    /// When one of these cannot be done.
    pub fn prepare<G: Guard<Token = T>>(
        spec: &ChangeSpec,
        host: &dyn Host,
        guard: &G,
        journal: &mut Journal,
    ) -> Result<Self, HostError> {
        assert!(!spec.wanted.is_empty(), "what is wanted as it was found is no change");
        let old = host.read(&spec.what)?;
        let number = journal.change(spec, &text(&old))?;
        let ours = vec![spec.wanted.as_bytes().to_vec()];
        let token = match guard.guard(&spec.what, &old, &ours) {
            Ok(token) => token,
            Err(error) => {
                // Nothing was written yet.
                journal.restored(number)?;
                return Err(error.into());
            }
        };
        assert!(journal.is_open(number), "what {} was is written down before anything else", spec.what);
        let stands = Stands::At(old.clone());
        Ok(Self { what: spec.what.clone(), old, ours, stands, number, token })
    }

    /// The setting.
    pub fn what(&self) -> &What {
        &self.what
    }

    /// Whether it is not known to stand as it was found.
    pub fn is_changed(&self) -> bool {
        self.stands != Stands::At(self.old.clone())
    }

    /// Makes the setting stand where it is wanted; an empty text is "as it was found".
    ///
    /// # Errors
    /// When it cannot be, or somebody else has changed it. Then it stands where it stood, unless the host itself says that it
    /// does not.
    pub fn stand<G: Guard<Token = T>>(
        &mut self,
        wanted: &str,
        host: &mut dyn Host,
        guard: &G,
        journal: &mut Journal,
    ) -> Result<(), HostError> {
        let value = if wanted.is_empty() { self.old.clone() } else { wanted.as_bytes().to_vec() };
        if self.stands == Stands::At(value.clone()) {
            return Ok(());
        }
        self.check_ours(host)?;
        self.announce(&value, guard, journal)?;
        self.check_known(&value);
        match host.write(&self.what, &value).map(|()| host.holds(&self.what, &value)) {
            Ok(Ok(true)) => {
                self.stands = Stands::At(value);
                self.note_held(host, journal)
            }
            // Between the write and this somebody else has written.
            Ok(Ok(false)) => Err(self.foreign(host)),
            Ok(Err(unreadable)) => {
                // It was written, and may stand: then it has to go back.
                self.stands = Stands::Unknown;
                Err(unreadable.into())
            }
            Err(error) => {
                if matches!(error, KnobError::NotRestored { .. }) {
                    self.stands = Stands::Unknown;
                }
                Err(error.into())
            }
        }
    }

    /// What it reads goes into the journal once for every value: until then the value is one that may have been written.
    fn note_held(&self, host: &dyn Host, journal: &mut Journal) -> Result<(), HostError> {
        if !journal.is_pending(self.number) {
            return Ok(());
        }
        Ok(journal.held(self.number, &text(&host.read(&self.what)?))?)
    }

    /// Lets the setting stand where it stands, also after our death: the journal alone knows what it was.
    ///
    /// # Errors
    /// When that cannot be written down; then it is still guarded.
    pub fn keep<G: Guard<Token = T>>(
        self,
        by: &str,
        guard: &G,
        journal: &mut Journal,
    ) -> Result<(), HostError> {
        assert!(self.is_changed(), "{} stands as it was found, and there is nothing to keep", self.what);
        journal.kept(self.number, by)?;
        guard.release(self.token);
        Ok(())
    }

    /// Puts the setting back and lets go of it. What is gone needs no putting back.
    ///
    /// # Errors
    /// When it is not back; then guard and journal go on knowing what it was.
    pub fn undo<G: Guard<Token = T>>(
        self,
        host: &mut dyn Host,
        guard: &G,
        journal: &mut Journal,
    ) -> Result<(), HostError> {
        // One that stands as it was found has nothing of ours, whatever somebody else has written since.
        match self.put_back(host) {
            Ok(()) => journal.restored(self.number)?,
            Err(HostError::Knob(gone @ KnobError::Gone { .. })) => {
                journal.gone(self.number, &gone.to_string())?;
            }
            Err(error) => return Err(error),
        }
        assert!(!journal.is_open(self.number), "the journal lets go before the guard does");
        guard.release(self.token);
        Ok(())
    }

    fn put_back(&self, host: &mut dyn Host) -> Result<(), HostError> {
        if self.is_changed() && !host.holds(&self.what, &self.old)? {
            self.check_ours(host)?;
            host.put_back(&self.what, &self.old)?;
        }
        Ok(())
    }

    /// The journal and the guard learn of a value before it is written for the first time.
    fn announce<G: Guard<Token = T>>(
        &mut self,
        value: &[u8],
        guard: &G,
        journal: &mut Journal,
    ) -> Result<(), HostError> {
        if value == self.old || self.ours.iter().any(|known| known == value) {
            return Ok(());
        }
        journal.also(self.number, &text(value))?;
        let ours = [&self.ours[..], &[value.to_vec()]].concat();
        guard.amend(&self.token, &self.what, &self.old, &ours)?;
        self.ours = ours;
        Ok(())
    }

    /// What is written is what it was, or what journal and guard know of.
    fn check_known(&self, value: &[u8]) {
        let is_known = value == self.old || self.ours.iter().any(|known| known == value);
        assert!(is_known, "a value is written that no journal knows");
    }

    /// Whether it reads what was written here last. After a failed write that is not known.
    fn check_ours(&self, host: &dyn Host) -> Result<(), HostError> {
        match &self.stands {
            Stands::At(value) if !host.holds(&self.what, value)? => Err(self.foreign(host)),
            Stands::At(_) | Stands::Unknown => Ok(()),
        }
    }

    fn foreign(&self, host: &dyn Host) -> HostError {
        let wrote = match &self.stands {
            Stands::At(value) => text(value),
            Stands::Unknown => String::new(),
        };
        let reads = host.read(&self.what).map_or_else(|error| error.to_string(), |value| text(&value));
        HostError::Foreign { what: Box::new(self.what.clone()), wrote, reads, old: text(&self.old) }
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::memory::{InMemory, Watchman};
    use dyno_record::journal::Entry;

    const KNOB: &str = "/proc/sys/test";

    struct Bench {
        host: InMemory,
        guard: Watchman,
        journal: Journal,
    }

    fn bench() -> Bench {
        Bench {
            host: InMemory::holding(&[(KNOB, "60")]),
            guard: Watchman::default(),
            journal: Journal::in_memory(),
        }
    }

    fn what() -> What {
        What::File(KNOB.into())
    }

    impl Bench {
        fn prepared(&mut self, wanted: &str) -> HostChange<u64> {
            let spec = ChangeSpec { what: what(), wanted: wanted.into(), why: "a test".into() };
            HostChange::prepare(&spec, &self.host, &self.guard, &mut self.journal).unwrap()
        }

        fn stand(&mut self, change: &mut HostChange<u64>, wanted: &str) -> Result<(), HostError> {
            change.stand(wanted, &mut self.host, &self.guard, &mut self.journal)
        }

        fn undo(&mut self, change: HostChange<u64>) -> Result<(), HostError> {
            change.undo(&mut self.host, &self.guard, &mut self.journal)
        }

        fn reads(&self) -> String {
            text(&self.host.read(&what()).unwrap())
        }
    }

    #[test]
    fn nothing_is_written_before_journal_and_guard_know_what_it_was() {
        let mut bench = bench();
        let mut change = bench.prepared("10");
        assert_eq!((bench.reads().as_str(), bench.host.writes()), ("60", 0));
        assert!(matches!(&bench.journal.open_changes()[..], [Entry::Change { old, .. }] if old == "60"));
        assert_eq!(bench.guard.guarded(), [(what(), b"60".to_vec(), vec![b"10".to_vec()])]);
        bench.stand(&mut change, "10").unwrap();
        bench.stand(&mut change, "20").unwrap();
        assert_eq!(bench.guard.guarded()[0].2, [b"10".to_vec(), b"20".to_vec()]);
        assert_eq!(bench.reads(), "20");
        bench.undo(change).unwrap();
        assert_eq!(bench.reads(), "60");
        assert!(bench.journal.open_changes().is_empty() && bench.guard.guarded().is_empty());
    }

    #[test]
    fn a_value_that_was_read_back_is_written_down_once() {
        let mut bench = bench();
        let mut change = bench.prepared("10");
        assert!(bench.journal.is_pending(change.number));
        for wanted in ["10", "", "10", "20", "10"] {
            bench.stand(&mut change, wanted).unwrap();
        }
        assert!(!bench.journal.is_pending(change.number));
        let held = |entry: &&Entry| matches!(entry, Entry::Held { .. });
        assert_eq!(bench.journal.entries().iter().filter(held).count(), 2);
    }

    #[test]
    fn what_is_kept_outlives_us_and_the_journal_knows_what_it_was() {
        let mut bench = bench();
        let mut change = bench.prepared("10");
        bench.stand(&mut change, "10").unwrap();
        change.keep("net.idle", &bench.guard, &mut bench.journal).unwrap();
        assert!(bench.guard.guarded().is_empty());
        assert_eq!((bench.reads().as_str(), bench.journal.open_changes().len()), ("10", 1));
    }

    #[test]
    #[should_panic(expected = "there is nothing to keep")]
    fn what_stands_as_it_was_found_is_never_kept() {
        let mut bench = bench();
        let change = bench.prepared("10");
        let _ = change.keep("net.idle", &bench.guard, &mut bench.journal);
    }

    #[test]
    fn a_setting_that_stands_where_it_is_wanted_is_not_written() {
        let mut bench = bench();
        let mut change = bench.prepared("10");
        for wanted in ["10", "10", "", "", "10"] {
            bench.stand(&mut change, wanted).unwrap();
        }
        assert_eq!(bench.host.writes(), 3);
    }

    #[test]
    fn what_somebody_else_changed_is_reported_and_left_alone() {
        let mut bench = bench();
        let mut change = bench.prepared("10");
        bench.stand(&mut change, "10").unwrap();
        bench.host.set(&what(), "15");
        let refused = bench.stand(&mut change, "").unwrap_err().to_string();
        assert!(refused.contains("reads \"15\"") && refused.contains("it was \"60\""), "{refused}");
        assert!(matches!(bench.undo(change), Err(HostError::Foreign { .. })));
        assert_eq!(bench.reads(), "15");
        assert_eq!(bench.journal.open_changes().len(), 1, "the journal's word stays");
        assert_eq!(bench.guard.guarded().len(), 1, "so that the guard says that it is not clean");
    }

    #[test]
    fn what_somebody_else_put_back_already_is_let_go() {
        let mut bench = bench();
        let mut change = bench.prepared("10");
        bench.stand(&mut change, "10").unwrap();
        bench.host.set(&what(), "60");
        bench.undo(change).unwrap();
        assert!(bench.journal.open_changes().is_empty() && bench.guard.guarded().is_empty());
    }

    #[test]
    fn what_stands_as_it_was_found_is_let_go_whatever_somebody_else_wrote() {
        let mut bench = bench();
        let mut change = bench.prepared("10");
        bench.stand(&mut change, "10").unwrap();
        bench.stand(&mut change, "").unwrap();
        bench.host.set(&what(), "15");
        assert!(matches!(bench.stand(&mut change, "10"), Err(HostError::Foreign { .. })));
        bench.undo(change).unwrap();
        assert_eq!(bench.reads(), "15");
        assert!(bench.journal.open_changes().is_empty() && bench.guard.guarded().is_empty());
    }

    #[test]
    fn a_refused_value_leaves_it_where_it_stood() {
        let mut bench = bench();
        bench.host.refuse("11");
        let mut change = bench.prepared("11");
        assert!(matches!(bench.stand(&mut change, "11"), Err(HostError::Knob(KnobError::Refused { .. }))));
        assert!(!change.is_changed());
        bench.undo(change).unwrap();
        assert_eq!(bench.reads(), "60");
    }

    /// Planted fault: only a write that failed makes it unknown; then the value stays, and nobody knows what it was.
    #[test]
    fn a_value_that_was_written_and_cannot_be_read_back_is_put_back() {
        let mut bench = bench();
        bench.host.hide("10");
        let mut change = bench.prepared("10");
        assert!(matches!(bench.stand(&mut change, "10"), Err(HostError::Knob(KnobError::Unreadable { .. }))));
        assert!(change.is_changed());
        assert_eq!((bench.journal.open_changes().len(), bench.guard.guarded().len()), (1, 1));
        bench.host.show_all();
        bench.undo(change).unwrap();
        assert_eq!(bench.reads(), "60");
        assert!(bench.journal.open_changes().is_empty() && bench.guard.guarded().is_empty());
    }

    #[test]
    fn a_guard_that_is_gone_means_no_change_at_all() {
        let mut bench = bench();
        bench.guard.go_away();
        let spec = ChangeSpec { what: what(), wanted: "10".into(), why: String::new() };
        let refused = HostChange::prepare(&spec, &bench.host, &bench.guard, &mut bench.journal);
        assert!(matches!(refused, Err(HostError::Keeper(_))));
        assert!(bench.journal.open_changes().is_empty());
        assert_eq!(bench.host.writes(), 0);
    }

    #[test]
    #[should_panic(expected = "is no change")]
    fn what_is_wanted_as_it_was_found_is_never_prepared() {
        let _ = bench().prepared("");
    }

    #[test]
    #[should_panic(expected = "a value is written that no journal knows")]
    fn a_value_that_no_journal_knows_is_never_written() {
        let mut change = bench().prepared("10");
        change.ours.clear();
        change.check_known(b"10");
    }

    #[test]
    #[should_panic(expected = "cannot have been put back")]
    fn a_change_that_the_journal_closed_is_never_undone() {
        let mut bench = bench();
        let change = bench.prepared("10");
        bench.journal.restored(change.number).unwrap();
        let _ = bench.undo(change);
    }
}

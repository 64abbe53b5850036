//! Rolling back what a journal left open: in reverse, as often as it takes, whoever was killed before.
//!
//! The verb calls it with the lock held. A setting is put back and read back before the journal lets go of it; what somebody
//! else has changed is told and left.

use dyno_record::journal::Entry;

use crate::host::Host;
use crate::journal::{Journal, JournalError};
use crate::recovery::{Left, Now, left_in};

/// What is done with what somebody else has changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// It is told, and stays in the journal.
    Told,
    /// The journal lets go of it; its value stays.
    Forgotten,
}

/// What became of one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It stood at this value and is back.
    PutBack(String),
    /// It was back already.
    WasBack,
    /// Somebody else has set it to this value since: it is left alone.
    Foreign(String),
    /// Its device, namespace or thread is gone.
    Gone(String),
    /// It was the running kernel's, which was started again since.
    GoneWithBoot,
    /// It could not be put back.
    Failed(String),
}

/// An open change and what asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The change.
    pub left: Left,
    /// The finding, or `persist`; none where it was never kept.
    pub by: Option<String>,
}

/// The open changes, in the order in which they are rolled back.
#[must_use]
pub fn open(journal: &Journal) -> Vec<Open> {
    let by = |number: u64| {
        journal.entries().iter().rev().find_map(|entry| match entry {
            Entry::Kept { number: kept, by } if *kept == number => Some(by.clone()),
            _ => None,
        })
    };
    left_in(journal).into_iter().map(|left| Open { by: by(left.number), left }).collect()
}

/// Rolls these back and tells each.
///
/// # Errors
/// When the journal cannot be written: then the rest is not touched.
pub fn roll_back(
    chosen: &[Open],
    foreign: Foreign,
    journal: &mut Journal,
    host: &mut dyn Host,
    told: &mut dyn FnMut(&Open, &Outcome),
) -> Result<(), JournalError> {
    for open in chosen {
        let number = open.left.number;
        let outcome = one(&open.left, host);
        match &outcome {
            Outcome::PutBack(_) | Outcome::WasBack => journal.restored(number)?,
            Outcome::Gone(why) => journal.gone(number, why)?,
            Outcome::GoneWithBoot => journal.gone(number, "gone with the boot")?,
            Outcome::Foreign(_) if foreign == Foreign::Forgotten => {
                journal.gone(number, "left to somebody else")?;
            }
            Outcome::Foreign(_) | Outcome::Failed(_) => {}
        }
        told(open, &outcome);
    }
    Ok(())
}

fn one(left: &Left, host: &mut dyn Host) -> Outcome {
    match left.now(host) {
        Now::Back => Outcome::WasBack,
        Now::Foreign(now) => Outcome::Foreign(now),
        Now::Gone(why) => Outcome::Gone(why),
        Now::GoneWithBoot => Outcome::GoneWithBoot,
        Now::Ours(now) => match host.put_back(&left.what, left.old.as_bytes()) {
            Ok(()) => Outcome::PutBack(now),
            Err(error) => Outcome::Failed(super::plan::chain(&error)),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::memory::InMemory;
    use dyno_record::change::{ChangeSpec, What};

    fn what(path: &str) -> What {
        What::File(path.into())
    }

    fn applied(journal: &mut Journal, path: &str, old: &str, new: &str) {
        let spec = ChangeSpec { what: what(path), wanted: new.into(), why: "a test".into() };
        let number = journal.change(&spec, old).unwrap();
        journal.held(number, new).unwrap();
        journal.kept(number, "x").unwrap();
    }

    fn rolled_back(journal: &mut Journal, host: &mut InMemory, foreign: Foreign) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        let all = open(journal);
        roll_back(&all, foreign, journal, host, &mut |_, outcome| outcomes.push(outcome.clone())).unwrap();
        outcomes
    }

    /// Planted fault: the changes are walked forwards; then the setting ends at the second one's old value.
    #[test]
    fn of_two_changes_of_one_setting_the_first_old_value_is_back() {
        let mut journal = Journal::in_memory();
        applied(&mut journal, "/a", "0", "1");
        applied(&mut journal, "/a", "1", "2");
        let mut host = InMemory::holding(&[("/a", "2")]);
        rolled_back(&mut journal, &mut host, Foreign::Told);
        assert_eq!(host.read(&what("/a")).unwrap(), b"0");
        assert_eq!(
            rolled_back(&mut journal, &mut host, Foreign::Told),
            [],
            "a second time there is nothing to do"
        );
    }

    #[test]
    fn what_somebody_else_set_is_told_every_time_until_it_is_forgotten() {
        let mut journal = Journal::in_memory();
        applied(&mut journal, "/a", "0", "1");
        let mut host = InMemory::holding(&[("/a", "7")]);
        for _ in 0..2 {
            assert_eq!(rolled_back(&mut journal, &mut host, Foreign::Told), [Outcome::Foreign("7".into())]);
        }
        rolled_back(&mut journal, &mut host, Foreign::Forgotten);
        assert!(open(&journal).is_empty());
        assert_eq!(host.read(&what("/a")).unwrap(), b"7");
    }

    #[test]
    fn one_that_cannot_be_put_back_keeps_no_other_from_it_and_is_tried_again() {
        let mut journal = Journal::in_memory();
        applied(&mut journal, "/a", "0", "1");
        applied(&mut journal, "/b", "5", "1");
        let mut host = InMemory::holding(&[("/a", "1"), ("/b", "1")]);
        host.refuse("5");
        let outcomes = rolled_back(&mut journal, &mut host, Foreign::Told);
        assert!(
            matches!(&outcomes[..], [Outcome::Failed(_), Outcome::PutBack(now)] if now == "1"),
            "{outcomes:?}"
        );
        assert_eq!(open(&journal).len(), 1);
    }
}

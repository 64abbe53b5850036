//! Carrying a plan out: change by change, all of them guarded until all of them are kept.
//!
//! The verb calls it between lock and confirmation. When this process dies before [`Session::keep`], the keeper undoes
//! everything; when that dies too, the journal knows.

use dyno_record::tune::{Effect, Plan, Planned};

use crate::change::{HostChange, HostError};
use crate::host::{Guard, Host};
use crate::journal::Journal;
use crate::tune::effect::{self, Asked};

/// The changes of one plan.
#[derive(Debug)]
pub struct Session<'s, G: Guard> {
    guard: &'s G,
    journal: &'s mut Journal,
    made: Vec<(String, HostChange<G::Token>)>,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made<'p> {
    /// The finding.
    pub id: &'p str,
    /// What was planned.
    pub planned: &'p Planned,
    /// What it reads now.
    pub reads: String,
}

impl<'s, G: Guard> Session<'s, G> {
    /// Nothing was changed yet.
    pub fn new(guard: &'s G, journal: &'s mut Journal) -> Self {
        Self { guard, journal, made: Vec::new() }
    }

    /// Makes every change of a plan and tells each.
    ///
    /// # Errors
    /// At the first that cannot be made; those before it stand, and are for [`Session::undo`].
    pub fn carry_out(
        &mut self,
        plan: &Plan,
        host: &mut dyn Host,
        told: &mut dyn FnMut(&Made<'_>),
    ) -> Result<(), HostError> {
        for step in &plan.steps {
            for planned in &step.changes {
                let reads = self.make(&step.id, planned, host)?;
                told(&Made { id: &step.id, planned, reads });
            }
        }
        Ok(())
    }

    fn make(&mut self, id: &str, planned: &Planned, host: &mut dyn Host) -> Result<String, HostError> {
        let mut change = HostChange::prepare(&planned.spec, host, self.guard, self.journal)?;
        let stood = change.stand(&planned.spec.wanted, host, self.guard, self.journal);
        if change.is_changed() {
            self.made.push((id.to_owned(), change));
        } else {
            // It was refused, or stood there already: nobody need remember it.
            change.undo(host, self.guard, self.journal)?;
        }
        stood?;
        Ok(String::from_utf8_lossy(&host.read(&planned.spec.what)?).into_owned())
    }

    /// Whether each change of the plan does what it is for, in their order; asked once all of them stand.
    pub fn prove(&self, plan: &Plan, pause: &mut dyn FnMut()) -> Vec<Effect> {
        let all: Vec<&Planned> = plan.steps.iter().flat_map(|step| &step.changes).collect();
        let asked =
            all.iter().map(|one| Asked { what: &one.spec.what, old: &one.was, wanted: &one.spec.wanted });
        effect::prove(&asked.collect::<Vec<_>>(), pause)
    }

    /// How many changes were made.
    #[must_use]
    pub fn count(&self) -> usize {
        self.made.len()
    }

    /// Puts everything back, the last first.
    ///
    /// # Errors
    /// The first failure, after all were tried.
    pub fn undo(self, host: &mut dyn Host) -> Result<(), HostError> {
        let mut outcome = Ok(());
        for (_, change) in self.made.into_iter().rev() {
            outcome = outcome.and(change.undo(host, self.guard, self.journal));
        }
        outcome
    }

    /// Lets everything stand until it is rolled back.
    ///
    /// # Errors
    /// When that cannot be written down: what was not kept by then is put back when this process ends.
    pub fn keep(self) -> Result<(), HostError> {
        for (id, change) in self.made {
            change.keep(&id, self.guard, self.journal)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::memory::{InMemory, Watchman};
    use dyno_record::change::{ChangeSpec, What};
    use dyno_record::tune::Step;

    fn plan(changes: &[(&str, &str)]) -> Plan {
        let planned = |(path, wanted): &(&str, &str)| Planned {
            spec: ChangeSpec {
                what: What::File((*path).into()),
                wanted: (*wanted).into(),
                why: "a test".into(),
            },
            was: "0".into(),
            set: String::new(),
            undo: String::new(),
            cuts: None,
        };
        let step = Step { id: "x".into(), changes: changes.iter().map(planned).collect(), ..Step::default() };
        Plan { steps: vec![step], ..Plan::default() }
    }

    #[test]
    fn a_plan_of_which_one_change_is_refused_leaves_nothing() {
        let mut host = InMemory::holding(&[("/a", "0"), ("/b", "0")]);
        host.refuse("2");
        let (guard, mut journal) = (Watchman::default(), Journal::in_memory());
        let mut session = Session::new(&guard, &mut journal);
        assert!(session.carry_out(&plan(&[("/a", "1"), ("/b", "2")]), &mut host, &mut |_| {}).is_err());
        assert_eq!(session.count(), 1);
        session.undo(&mut host).unwrap();
        assert_eq!(host.read(&What::File("/a".into())).unwrap(), b"0");
        assert!(journal.open_changes().is_empty() && guard.guarded().is_empty());
    }

    /// Planted fault: a change that cannot be read back is taken for none; then it stays, and journal and guard let go.
    #[test]
    fn a_change_that_cannot_be_read_back_is_undone_with_the_others() {
        let mut host = InMemory::holding(&[("/a", "0"), ("/b", "0")]);
        host.hide("2");
        let (guard, mut journal) = (Watchman::default(), Journal::in_memory());
        let mut session = Session::new(&guard, &mut journal);
        assert!(session.carry_out(&plan(&[("/a", "1"), ("/b", "2")]), &mut host, &mut |_| {}).is_err());
        assert_eq!(session.count(), 2);
        host.show_all();
        session.undo(&mut host).unwrap();
        assert_eq!(host.read(&What::File("/b".into())).unwrap(), b"0");
        assert!(journal.open_changes().is_empty() && guard.guarded().is_empty());
    }

    #[test]
    fn what_is_kept_is_guarded_no_longer_and_known_to_the_journal() {
        let mut host = InMemory::holding(&[("/a", "0"), ("/b", "0")]);
        let (guard, mut journal) = (Watchman::default(), Journal::in_memory());
        let mut session = Session::new(&guard, &mut journal);
        let mut told = Vec::new();
        session
            .carry_out(&plan(&[("/a", "1"), ("/b", "2")]), &mut host, &mut |made| {
                told.push(made.reads.clone());
            })
            .unwrap();
        assert_eq!((told, guard.guarded().len()), (vec!["1".to_owned(), "2".to_owned()], 2));
        session.keep().unwrap();
        assert!(guard.guarded().is_empty());
        assert_eq!(journal.open_changes().len(), 2);
    }
}

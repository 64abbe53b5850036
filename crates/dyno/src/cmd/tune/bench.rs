//! What changing the host takes: the lock, the journal, and the keeper. What a killed run left is put back first.
//!
//! Every verb that changes something opens it; what is changed is theirs.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use dyno_host::host::Kernel;
use dyno_host::journal::Journal;
use dyno_host::lock;
use dyno_host::tune::rollback::{Foreign, Open, Outcome, open, roll_back};
use dyno_host::tune::state::{State, StateError};
use dyno_lab::Failure;
use dyno_sys::keeper::{Closing, Keeper};

use super::words;
use crate::out;

/// What changing the host takes: nobody else does, everything is undone if we die, and what was is on disk.
pub(super) struct Bench {
    pub(super) keeper: Keeper,
    pub(super) state: State,
    pub(super) journal: Journal,
    _lock: File,
}

impl Bench {
    /// Sets it up while this process has one thread. What a killed run left on its way is put back first.
    pub(super) fn open(folder: &Path) -> Result<Bench, Failure> {
        let lock = lock::take().map_err(|error| taken(&error))?;
        let state = State::open(folder).map_err(|error| unusable(&error))?;
        state.forget_wait();
        let journal = state.journal().map_err(|error| unusable(&error))?;
        let keeper = Keeper::start_with(&[lock.as_fd()]).map_err(|error| {
            Failure::error("cannot start the process that undoes changes").because(&error)
        })?;
        let mut bench = Bench { keeper, state, journal, _lock: lock };
        bench.recover()?;
        Ok(bench)
    }

    /// Changes that were never kept: their run was killed.
    fn recover(&mut self) -> Result<(), Failure> {
        let unkept: Vec<Open> = open(&self.journal).into_iter().filter(|open| open.by.is_none()).collect();
        let mut failed = None;
        self.roll_back(&unkept, Foreign::Told, &mut |open, outcome| {
            if *outcome != Outcome::WasBack {
                out::say(&format!("a run that was killed: {}\n", words::outcome(open, outcome)));
            }
            if let Outcome::Failed(why) = outcome {
                failed = Some(why.clone());
            }
        })?;
        match failed {
            None => Ok(()),
            Some(why) => Err(Failure::not_restored(why).try_this("dyno tune rollback")),
        }
    }

    pub(super) fn roll_back(
        &mut self,
        chosen: &[Open],
        foreign: Foreign,
        told: &mut dyn FnMut(&Open, &Outcome),
    ) -> Result<(), Failure> {
        roll_back(chosen, foreign, &mut self.journal, &mut Kernel, told)
            .map_err(|error| Failure::error("cannot keep the journal").because(&error))
    }

    /// Ends the keeper, which has nothing left to undo.
    pub(super) fn close(self) -> Result<(), Failure> {
        match self.keeper.close() {
            Ok(Closing::Clean) => Ok(()),
            Ok(Closing::NotClean) => {
                Err(Failure::not_restored("a setting is not back").try_this("dyno tune status"))
            }
            Err(error) => {
                Err(Failure::error("the keeper ended too early").because(&error).try_this("dyno tune status"))
            }
        }
    }
}

fn taken(error: &lock::LockError) -> Failure {
    match error {
        lock::LockError::Taken { by } => {
            let who = by.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            Failure::error(format!("{who} is changing host settings: only one may at a time"))
                .likely("another dyno tune, or a climb with --allow-host-changes")
                .try_this("wait for its end; dyno tune confirm, if it waits for that")
        }
        error => Failure::error("cannot lock host settings").because(error),
    }
}

pub(super) fn unusable(error: &StateError) -> Failure {
    let failure = Failure::error("cannot keep a journal").because(error);
    match error {
        StateError::NotPrivate { .. } => failure.likely("others may write there, or it is another user's"),
        _ => failure.likely("it takes root, or a folder of your own").try_this("sudo, or --state DIR"),
    }
}

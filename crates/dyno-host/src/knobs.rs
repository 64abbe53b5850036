//! Host settings while something is measured: journalled, written, read back, put back.
//!
//! The lab's meter calls it for every arm it opens or measures, and at its end.
//! A setting stands where the arm that is being measured wants it. Before the first write of each setting its old value
//! is in the journal on disk and with the keeper, which puts it back if this process dies. Both are let go only when the
//! setting has been seen to read as it did.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dyno_sys::keeper::{Keeper, KeeperError, Token};
use dyno_sys::knob::{self, KnobError};

use crate::journal::{Journal, JournalError};

/// Whether host settings may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostChanges {
    /// They are "not possible" without the flag.
    Refused,
    /// `--allow-host-changes` was given.
    Allowed,
}

/// A setting that could not be brought where it was wanted.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Nobody allowed it.
    #[error("{path} would be changed, which needs --allow-host-changes")]
    NotAllowed {
        /// The setting's file.
        path: String,
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
}

#[derive(Debug)]
struct Touched {
    /// What to write to put it back.
    old: Vec<u8>,
    /// The text of the dial that it stands at; `None` when nobody knows, after a write that could not be undone.
    now: Option<String>,
    token: Token,
    number: u64,
}

/// The settings that were touched.
#[derive(Debug)]
pub struct Knobs {
    allowed: HostChanges,
    journal_path: PathBuf,
    journal: Option<Journal>,
    touched: BTreeMap<String, Touched>,
}

impl Knobs {
    /// None yet. The journal is opened before the first change.
    #[must_use]
    pub fn new(allowed: HostChanges, journal_path: PathBuf) -> Self {
        Self { allowed, journal_path, journal: None, touched: BTreeMap::new() }
    }

    /// Makes a setting stand where it is wanted; an empty text means "as it was found".
    ///
    /// # Errors
    /// When it may not be changed, or cannot be: then it stands where it stood, or keeper and journal know what it was.
    pub fn stand(&mut self, keeper: &Keeper, path: &str, wanted: &str) -> Result<(), HostError> {
        match self.touched.get_mut(path) {
            Some(touched) => touched.stand(path, wanted),
            None if wanted.is_empty() => Ok(()),
            None => self.touch(keeper, path, wanted),
        }
    }

    fn touch(&mut self, keeper: &Keeper, path: &str, wanted: &str) -> Result<(), HostError> {
        if self.allowed == HostChanges::Refused {
            return Err(HostError::NotAllowed { path: path.to_owned() });
        }
        // Of a choice the word in brackets: that is what the kernel takes when it is put back.
        let old = knob::settable(&knob::read(path)?);
        let told = String::from_utf8_lossy(&old).into_owned();
        let number = self.journal()?.change(path, &told, wanted)?;
        let token = match keeper.restore_on_death(Path::new(path), &old) {
            Ok(token) => token,
            Err(error) => {
                // Nothing was written yet.
                self.close_line(number)?;
                return Err(error.into());
            }
        };
        let written = knob::write(path, wanted.as_bytes());
        let now = written.is_ok().then(|| wanted.to_owned());
        let touched = Touched { old, now, token, number };
        match written {
            Ok(_) => {
                self.touched.insert(path.to_owned(), touched);
                Ok(())
            }
            // It is not as it was: keeper and journal go on knowing what it was, and the end tries again.
            Err(error @ KnobError::NotRestored { .. }) => {
                self.touched.insert(path.to_owned(), touched);
                Err(error.into())
            }
            Err(error) => {
                self.let_go(keeper, touched)?;
                Err(error.into())
            }
        }
    }

    /// Keeper and journal learn that a setting is back.
    fn let_go(&mut self, keeper: &Keeper, touched: Touched) -> Result<(), HostError> {
        // A keeper that is gone keeps nothing; its end is told elsewhere.
        let _ = keeper.forget(touched.token);
        self.close_line(touched.number)
    }

    fn close_line(&mut self, number: u64) -> Result<(), HostError> {
        Ok(self.journal()?.restored(number)?)
    }

    fn journal(&mut self) -> Result<&mut Journal, HostError> {
        let journal = match self.journal.take() {
            Some(open) => open,
            None => Journal::open(&self.journal_path)?.0,
        };
        Ok(self.journal.insert(journal))
    }

    /// Every setting back to what it was.
    ///
    /// # Errors
    /// The first failure, after all were tried.
    pub fn put_all_back(&mut self, keeper: &Keeper) -> Result<(), HostError> {
        let mut outcome = Ok(());
        for (path, touched) in std::mem::take(&mut self.touched).into_iter().rev() {
            let back = knob::put_back(&path, &touched.old).map_err(HostError::from);
            outcome = outcome.and(back.and_then(|()| self.let_go(keeper, touched)));
        }
        outcome
    }
}

impl Touched {
    fn stand(&mut self, path: &str, wanted: &str) -> Result<(), HostError> {
        if self.now.as_deref() == Some(wanted) {
            return Ok(());
        }
        let value = if wanted.is_empty() { self.old.clone() } else { wanted.as_bytes().to_vec() };
        match knob::write(path, &value) {
            Ok(_) => {
                self.now = Some(wanted.to_owned());
                Ok(())
            }
            Err(error) => {
                // Refused and undone: it stands where it stood.
                if matches!(error, KnobError::NotRestored { .. }) {
                    self.now = None;
                }
                Err(error.into())
            }
        }
    }
}

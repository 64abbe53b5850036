//! Host settings of a climb: journalled, written, read back, put back.
//!
//! A setting stands where the arm that is being measured wants it. Before the first write of each setting its old value
//! is in the journal on disk and with the keeper, which puts it back if this process dies. Both are let go only when the
//! setting has been seen to read as it did.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dyno_sys::keeper::{Keeper, Token};
use dyno_sys::knob::{self, KnobError};
use dyno_tune::dial::{How, Setting};
use dyno_tune::journal::Journal;
use dyno_tune::meter::Trouble;
use dyno_tune::plan::Plan;

use super::{Ground, HostChanges};

struct Touched {
    /// What to write to put it back.
    old: Vec<u8>,
    /// The text of the dial that it stands at; `None` when nobody knows, after a write that could not be undone.
    now: Option<String>,
    token: Token,
    number: u64,
}

/// The settings that this climb has touched.
pub(super) struct Knobs {
    allowed: HostChanges,
    journal_path: PathBuf,
    journal: Option<Journal>,
    touched: BTreeMap<String, Touched>,
}

impl Knobs {
    pub(super) fn new(ground: &Ground) -> Self {
        let journal_path = ground.scratch.join("journal.jsonl");
        Self { allowed: ground.host_changes, journal_path, journal: None, touched: BTreeMap::new() }
    }

    /// Makes every knob stand where the setting wants it; an empty text means "as it was found".
    pub(super) fn ensure(&mut self, keeper: &Keeper, plan: &Plan, setting: &Setting) -> Result<(), Trouble> {
        for dial in &plan.dials {
            if let How::Knob { path } = &dial.how {
                self.stand(keeper, path, &plan.value(setting, dial).text)?;
            }
        }
        Ok(())
    }

    fn stand(&mut self, keeper: &Keeper, path: &str, wanted: &str) -> Result<(), Trouble> {
        match self.touched.get_mut(path) {
            Some(touched) => touched.stand(path, wanted),
            None if wanted.is_empty() => Ok(()),
            None => self.touch(keeper, path, wanted),
        }
    }

    fn touch(&mut self, keeper: &Keeper, path: &str, wanted: &str) -> Result<(), Trouble> {
        if self.allowed == HostChanges::Refused {
            let why = format!("{path} would be changed, which needs --allow-host-changes");
            return Err(Trouble::Knob(why));
        }
        // Of a choice the word in brackets: that is what the kernel takes when it is put back.
        let old = knob::settable(&knob::read(path).map_err(|error| trouble(&error))?);
        let told = String::from_utf8_lossy(&old).into_owned();
        let number = self.journal()?.change(path, &told, wanted).map_err(|error| trouble(&error))?;
        let token = match keeper.restore_on_death(Path::new(path), &old) {
            Ok(token) => token,
            Err(error) => {
                // Nothing was written yet.
                self.close_line(number)?;
                return Err(trouble(&error));
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
                Err(trouble(&error))
            }
            Err(error) => {
                self.let_go(keeper, touched)?;
                Err(trouble(&error))
            }
        }
    }

    /// Keeper and journal learn that a setting is back.
    fn let_go(&mut self, keeper: &Keeper, touched: Touched) -> Result<(), Trouble> {
        // A keeper that is gone keeps nothing; its end is told elsewhere.
        let _ = keeper.forget(touched.token);
        self.close_line(touched.number)
    }

    fn close_line(&mut self, number: u64) -> Result<(), Trouble> {
        self.journal()?.restored(number).map_err(|error| trouble(&error))
    }

    fn journal(&mut self) -> Result<&mut Journal, Trouble> {
        if self.journal.is_none() {
            let (journal, _) = Journal::open(&self.journal_path).map_err(|error| trouble(&error))?;
            self.journal = Some(journal);
        }
        self.journal.as_mut().ok_or_else(|| Trouble::Knob("the journal is not open".into()))
    }

    /// Every setting back to what it was; the first failure is returned after all were tried.
    pub(super) fn put_all_back(&mut self, keeper: &Keeper) -> Result<(), Trouble> {
        let mut outcome = Ok(());
        for (path, touched) in std::mem::take(&mut self.touched).into_iter().rev() {
            let back = knob::put_back(&path, &touched.old).map_err(|error| trouble(&error));
            outcome = outcome.and(back.and_then(|()| self.let_go(keeper, touched)));
        }
        outcome
    }
}

impl Touched {
    fn stand(&mut self, path: &str, wanted: &str) -> Result<(), Trouble> {
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
                Err(trouble(&error))
            }
        }
    }
}

fn trouble(error: &dyn std::error::Error) -> Trouble {
    Trouble::Knob(super::launch::chain(error))
}

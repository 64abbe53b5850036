//! Host settings of a climb: journalled, written, read back, put back.
//!
//! A setting stands where the arm that is being measured wants it. Before the first write of each setting its old value
//! is in the journal on disk and with the keeper, which puts it back if this process dies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dyno_sys::keeper::{Keeper, Token};
use dyno_sys::knob;
use dyno_tune::dial::{How, Setting};
use dyno_tune::journal::Journal;
use dyno_tune::meter::Trouble;
use dyno_tune::plan::Plan;

use super::{Ground, HostChanges};

struct Touched {
    old: Vec<u8>,
    now: String,
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
            Some(touched) if touched.now == wanted => Ok(()),
            Some(touched) => {
                let value = if wanted.is_empty() { touched.old.clone() } else { wanted.as_bytes().to_vec() };
                knob::write(path, &value).map_err(|error| trouble(&error))?;
                wanted.clone_into(&mut touched.now);
                Ok(())
            }
            None if wanted.is_empty() => Ok(()),
            None => self.touch(keeper, path, wanted),
        }
    }

    fn touch(&mut self, keeper: &Keeper, path: &str, wanted: &str) -> Result<(), Trouble> {
        if self.allowed == HostChanges::Refused {
            let why = format!("{path} would be changed, which needs --allow-host-changes");
            return Err(Trouble::Knob(why));
        }
        let raw = knob::read(path).map_err(|error| trouble(&error))?;
        let old = String::from_utf8_lossy(&raw).trim().to_owned();
        let number = self.journal()?.change(path, &old, wanted).map_err(|error| trouble(&error))?;
        let token =
            keeper.restore_on_death(Path::new(path), old.as_bytes()).map_err(|error| trouble(&error))?;
        match knob::write(path, wanted.as_bytes()) {
            Ok(written) => {
                let touched = Touched { old: written.value, now: wanted.to_owned(), token, number };
                self.touched.insert(path.to_owned(), touched);
                Ok(())
            }
            Err(error) => {
                let _ = keeper.forget(token);
                self.journal()?.restored(number).map_err(|error| trouble(&error))?;
                Err(trouble(&error))
            }
        }
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
            match knob::put_back(&path, &touched.old) {
                Ok(()) => {
                    let _ = keeper.forget(touched.token);
                    let written =
                        self.journal().and_then(|j| j.restored(touched.number).map_err(|e| trouble(&e)));
                    outcome = outcome.and(written);
                }
                Err(error) => outcome = outcome.and(Err(trouble(&error))),
            }
        }
        outcome
    }
}

fn trouble(error: &dyn std::error::Error) -> Trouble {
    Trouble::Knob(super::launch::chain(error))
}

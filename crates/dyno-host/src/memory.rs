//! A host in memory and a guard in memory: for tests of code that changes settings, simulated climbs among them.
//!
//! What must never happen to a real guard panics here: a change is amended that nobody guards, or let go twice.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dyno_record::change::What;
use dyno_sys::keeper::KeeperError;
use dyno_sys::knob::KnobError;

use crate::host::{Guard, Host};

/// Settings by name, all of them texts.
#[derive(Debug, Default)]
pub struct InMemory {
    values: BTreeMap<What, Vec<u8>>,
    refused: Vec<Vec<u8>>,
    hidden: Vec<Vec<u8>>,
    writes: u64,
}

impl InMemory {
    /// A host with these files.
    #[must_use]
    pub fn holding(files: &[(&str, &str)]) -> Self {
        let values =
            files.iter().map(|(path, value)| (What::File((*path).into()), value.as_bytes().to_vec()));
        Self { values: values.collect(), ..Self::default() }
    }

    /// Somebody else writes.
    pub fn set(&mut self, what: &What, value: &str) {
        self.values.insert(what.clone(), value.as_bytes().to_vec());
    }

    /// This value is never taken.
    pub fn refuse(&mut self, value: &str) {
        self.refused.push(value.as_bytes().to_vec());
    }

    /// This value is taken, and what stands at it cannot be read.
    pub fn hide(&mut self, value: &str) {
        self.hidden.push(value.as_bytes().to_vec());
    }

    /// Everything can be read again.
    pub fn show_all(&mut self) {
        self.hidden.clear();
    }

    /// How often a setting was written through [`Host`].
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes
    }

    fn path(what: &What) -> std::path::PathBuf {
        what.to_string().into()
    }
}

impl Host for InMemory {
    fn read(&self, what: &What) -> Result<Vec<u8>, KnobError> {
        let unreadable =
            |kind| KnobError::Unreadable { knob: Self::path(what), source: io::Error::from(kind) };
        let value = self.values.get(what).ok_or_else(|| unreadable(io::ErrorKind::NotFound))?;
        match self.hidden.contains(value) {
            true => Err(unreadable(io::ErrorKind::TimedOut)),
            false => Ok(value.clone()),
        }
    }

    fn holds(&self, what: &What, value: &[u8]) -> Result<bool, KnobError> {
        Ok(self.read(what)? == value)
    }

    fn write(&mut self, what: &What, value: &[u8]) -> Result<(), KnobError> {
        self.read(what)?;
        if self.refused.iter().any(|refused| refused == value) {
            let source = io::Error::from(io::ErrorKind::InvalidInput);
            let wrote = String::from_utf8_lossy(value).into_owned();
            return Err(KnobError::Refused { knob: Self::path(what), wrote, source });
        }
        self.writes += 1;
        self.values.insert(what.clone(), value.to_vec());
        Ok(())
    }

    fn put_back(&mut self, what: &What, old: &[u8]) -> Result<(), KnobError> {
        self.write(what, old)
    }
}

/// What is guarded: a setting, its old value, and those that were written here.
pub type Guarded = (What, Vec<u8>, Vec<Vec<u8>>);

/// Guards what it is told to, and can be looked at.
#[derive(Debug, Clone, Default)]
pub struct Watchman(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    next: u64,
    guarded: BTreeMap<u64, Guarded>,
    is_gone: bool,
}

impl Watchman {
    fn book(&self) -> MutexGuard<'_, Book> {
        // The book is whole between any two statements that could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on it guards nothing new.
    pub fn go_away(&self) {
        self.book().is_gone = true;
    }

    /// All that it guards.
    #[must_use]
    pub fn guarded(&self) -> Vec<Guarded> {
        self.book().guarded.values().cloned().collect()
    }

    /// Does what the keeper does after our death; what it left alone because somebody else had changed it.
    pub fn undo_all(&self, host: &mut InMemory) -> Vec<What> {
        let guarded = std::mem::take(&mut self.book().guarded);
        let mut left = Vec::new();
        for (what, old, ours) in guarded.into_values().rev() {
            let reads = host.read(&what).expect("a setting that was changed can be read");
            if reads != old && !ours.contains(&reads) {
                left.push(what);
            } else {
                host.values.insert(what, old);
            }
        }
        left
    }
}

impl Guard for Watchman {
    type Token = u64;

    fn guard(&self, what: &What, old: &[u8], ours: &[Vec<u8>]) -> Result<u64, KeeperError> {
        let mut book = self.book();
        if book.is_gone {
            return Err(KeeperError::Gone);
        }
        book.next += 1;
        let token = book.next;
        book.guarded.insert(token, (what.clone(), old.to_vec(), ours.to_vec()));
        Ok(token)
    }

    fn amend(&self, token: &u64, what: &What, old: &[u8], ours: &[Vec<u8>]) -> Result<(), KeeperError> {
        let mut book = self.book();
        if book.is_gone {
            return Err(KeeperError::Gone);
        }
        let known = book.guarded.insert(*token, (what.clone(), old.to_vec(), ours.to_vec()));
        assert!(known.is_some_and(|known| known.0 == *what), "{what} is amended and was never guarded");
        Ok(())
    }

    fn release(&self, token: u64) {
        let known = self.book().guarded.remove(&token);
        assert!(known.is_some(), "a change is let go twice");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn what() -> What {
        What::File("/proc/sys/a".into())
    }

    #[test]
    #[should_panic(expected = "is amended and was never guarded")]
    fn a_change_that_nobody_guards_is_never_amended() {
        let _ = Watchman::default().amend(&1, &what(), b"0", &[]);
    }

    #[test]
    #[should_panic(expected = "a change is let go twice")]
    fn a_change_is_never_let_go_twice() {
        let guard = Watchman::default();
        let token = guard.guard(&what(), b"0", &[b"1".to_vec()]).unwrap();
        guard.release(token);
        guard.release(token);
    }
}

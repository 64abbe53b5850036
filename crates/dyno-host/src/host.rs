//! What a change of the host needs of it: reads, writes, and a guard that undoes it if this process dies.
//!
//! [`Kernel`] and the keeper are the real ones; tests have both in memory (`memory`). Files are
//! [`crate::file`]'s, all else [`crate::setting`]'s.

use dyno_record::change::What;
use dyno_sys::keeper::{Keeper, KeeperError, Token, Undo};
use dyno_sys::knob::KnobError;

use crate::{file, setting};

/// The settings of a host. Values are given and taken in the form in which they are written.
pub trait Host {
    /// What a setting stands at.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&self, what: &What) -> Result<Vec<u8>, KnobError>;

    /// Whether a setting stands at this value, however it is spelt.
    ///
    /// # Errors
    /// When it cannot be read.
    fn holds(&self, what: &What, value: &[u8]) -> Result<bool, KnobError>;

    /// Why a value is better not written now, although it could be.
    fn advises_against(&self, _what: &What, _value: &[u8]) -> Option<String> {
        None
    }

    /// Writes a value and sees that it holds. Whatever goes wrong, the value before is written again.
    ///
    /// # Errors
    /// When it was not taken; with [`KnobError::NotRestored`] it does not stand where it stood either.
    fn write(&mut self, what: &What, value: &[u8]) -> Result<(), KnobError>;

    /// Writes an old value again and sees that it holds.
    ///
    /// # Errors
    /// When it does not.
    fn put_back(&mut self, what: &What, old: &[u8]) -> Result<(), KnobError>;
}

/// A process that outlives this one and undoes its changes then.
pub trait Guard {
    /// Names what is guarded.
    type Token: std::fmt::Debug;

    /// From now on this is undone if we die: `old` is written, unless it reads what is none of `ours`.
    ///
    /// # Errors
    /// When nobody guards it: then do not change it.
    fn guard(&self, what: &What, old: &[u8], ours: &[Vec<u8>]) -> Result<Self::Token, KeeperError>;

    /// The same with more values of ours.
    ///
    /// # Errors
    /// As [`Guard::guard`].
    fn amend(
        &self,
        token: &Self::Token,
        what: &What,
        old: &[u8],
        ours: &[Vec<u8>],
    ) -> Result<(), KeeperError>;

    /// It was undone.
    fn release(&self, token: Self::Token);
}

/// This machine.
#[derive(Debug, Clone, Copy)]
pub struct Kernel;

impl Host for Kernel {
    fn read(&self, what: &What) -> Result<Vec<u8>, KnobError> {
        match what {
            What::File(path) => file::read(path),
            _ => setting::of(what)?.read(),
        }
    }

    fn holds(&self, what: &What, value: &[u8]) -> Result<bool, KnobError> {
        match what {
            What::File(path) => file::holds(path, value),
            _ => setting::of(what)?.holds(value),
        }
    }

    fn advises_against(&self, what: &What, value: &[u8]) -> Option<String> {
        match what {
            What::File(_) => None,
            _ => setting::of(what).ok()?.advises_against(value),
        }
    }

    fn write(&mut self, what: &What, value: &[u8]) -> Result<(), KnobError> {
        match what {
            What::File(path) => file::write(path, value),
            _ => setting::of(what)?.write(value),
        }
    }

    fn put_back(&mut self, what: &What, old: &[u8]) -> Result<(), KnobError> {
        match what {
            What::File(path) => file::put_back(path, old),
            _ => setting::of(what)?.put_back(old),
        }
    }
}

impl Guard for Keeper {
    type Token = Token;

    fn guard(&self, what: &What, old: &[u8], ours: &[Vec<u8>]) -> Result<Token, KeeperError> {
        self.undo_on_death(&undo_of(what, old, ours))
    }

    fn amend(&self, token: &Token, what: &What, old: &[u8], ours: &[Vec<u8>]) -> Result<(), KeeperError> {
        Keeper::amend(self, token, &undo_of(what, old, ours))
    }

    fn release(&self, token: Token) {
        // A keeper that is gone keeps nothing; its end is reported elsewhere.
        let _ = self.forget(token);
    }
}

fn undo_of(what: &What, old: &[u8], ours: &[Vec<u8>]) -> Vec<Undo> {
    assert!(!ours.is_empty(), "a change that writes nothing is guarded");
    match what {
        What::File(path) => file::undo(path, old, ours),
        _ => setting::undo(what, old, ours),
    }
}

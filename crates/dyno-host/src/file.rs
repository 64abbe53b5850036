//! Settings that are files under `/proc/sys` and `/sys`: reader, writer, undo.
//!
//! [`crate::host`] calls it. How the kernel spells a value, and what to write to get a reading again, is `dyno_sys::knob`'s.

use dyno_sys::keeper::Undo;
use dyno_sys::knob::{self, KnobError};

pub(crate) fn read(path: &str) -> Result<Vec<u8>, KnobError> {
    // Of a choice the word in brackets: that is what the kernel takes when it is put back.
    Ok(knob::settable(&knob::read(path)?))
}

pub(crate) fn holds(path: &str, value: &[u8]) -> Result<bool, KnobError> {
    knob::holds(path, value)
}

pub(crate) fn write(path: &str, value: &[u8]) -> Result<(), KnobError> {
    knob::write(path, value).map(|_| ())
}

pub(crate) fn put_back(path: &str, old: &[u8]) -> Result<(), KnobError> {
    knob::put_back(path, old)
}

pub(crate) fn undo(path: &str, old: &[u8], ours: &[Vec<u8>]) -> Vec<Undo> {
    vec![Undo::Write { path: path.into(), old: old.to_vec(), ours: ours.to_vec() }]
}

//! What the keeper does after dyno's death to leave the host as it was: plain data, carried out here.
//!
//! Handed over before the host is changed ([`super::Keeper::undo_on_death`]). A new kind of change is a variant with its
//! bytes and what it does in this file; the keeper knows nothing else of it.

use super::packet::{Reader, Writer};
use super::setting_wire;
use crate::knob::{self, KnobError};
use crate::setting::{Setting, VALUE_BYTES_MAX};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// One step of undoing a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Write a setting's old value again.
    Write {
        /// The setting's file; absolute.
        path: PathBuf,
        /// What it held.
        old: Vec<u8>,
        /// Every value that was written here. One that reads otherwise was changed by somebody else meanwhile, and is left
        /// alone; with none it is written whatever it reads.
        ours: Vec<Vec<u8>>,
    },
    /// Put a setting that is more than a file back.
    PutBack {
        /// The setting.
        setting: Box<Setting>,
        /// What it was.
        old: Vec<u8>,
        /// As in [`Undo::Write`].
        ours: Vec<Vec<u8>>,
    },
}

impl Undo {
    /// Writes `old` again, whatever the setting reads then.
    pub fn write(path: impl AsRef<Path>, old: &[u8]) -> Undo {
        Undo::Write { path: path.as_ref().to_owned(), old: old.to_vec(), ours: Vec::new() }
    }

    /// Why it could never be carried out, in words.
    pub(super) fn fault(&self) -> Option<String> {
        let longest =
            |old: &Vec<u8>, ours: &[Vec<u8>]| ours.iter().chain([old]).map(Vec::len).max().unwrap_or(0);
        match self {
            Undo::Write { path, old, ours } => {
                let bad = !path.is_absolute() || longest(old, ours) > knob::KNOB_BYTES_MAX;
                bad.then(|| format!("{} is no absolute path of a setting", path.display()))
            }
            Undo::PutBack { setting, old, ours } => setting.fault().or_else(|| {
                let is_long = longest(old, ours) > VALUE_BYTES_MAX;
                is_long.then(|| format!("a value of {setting} is longer than {VALUE_BYTES_MAX} bytes"))
            }),
        }
    }

    /// Whether the host is as it was.
    pub(super) fn carry_out(&self) -> bool {
        let (old, ours) = match self {
            Undo::Write { old, ours, .. } | Undo::PutBack { old, ours, .. } => (old, ours),
        };
        match self.holds(old) {
            // What is gone took its value with it.
            Ok(true) | Err(KnobError::Gone { .. }) => return true,
            Ok(false) | Err(_) => {}
        }
        let is_ours = ours.is_empty() || ours.iter().any(|value| self.holds(value).unwrap_or(false));
        is_ours && matches!(self.put_back(), Ok(()) | Err(KnobError::Gone { .. }))
    }

    fn holds(&self, value: &[u8]) -> Result<bool, KnobError> {
        match self {
            Undo::Write { path, .. } => knob::holds(path, value),
            Undo::PutBack { setting, .. } => setting.holds(value),
        }
    }

    fn put_back(&self) -> Result<(), KnobError> {
        match self {
            Undo::Write { path, old, .. } => knob::put_back(path, old),
            Undo::PutBack { setting, old, .. } => setting.put_back(old),
        }
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        let (old, ours) = match self {
            Undo::Write { path, old, ours } => {
                (out.number(0).bytes(path.as_os_str().as_bytes()).bytes(old), ours)
            }
            Undo::PutBack { setting, old, ours } => {
                (setting_wire::write(setting, out.number(1)).bytes(old), ours)
            }
        };
        old.number(ours.len() as u64);
        ours.iter().for_each(|value| {
            out.bytes(value);
        });
    }

    pub(super) fn decode(packet: &mut Reader<'_>) -> Option<Undo> {
        match packet.number()? {
            0 => Some(Undo::Write {
                path: OsString::from_vec(packet.bytes()?).into(),
                old: packet.bytes()?,
                ours: packet.many(Reader::bytes)?,
            }),
            1 => Some(Undo::PutBack {
                setting: Box::new(setting_wire::read(packet)?),
                old: packet.bytes()?,
                ours: packet.many(Reader::bytes)?,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// An ordinary file that stands for a setting.
    fn setting(name: &str, value: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("dyno-undo-{}-{name}", std::process::id()));
        std::fs::write(&path, value).unwrap();
        path
    }

    fn undone(name: &str, reads: &str, ours: &[&str]) -> (bool, String) {
        let path = setting(name, reads);
        let ours = ours.iter().map(|value| value.as_bytes().to_vec()).collect();
        let clean = Undo::Write { path: path.clone(), old: b"60".to_vec(), ours }.carry_out();
        let now = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        (clean, now)
    }

    #[test]
    fn one_of_our_values_is_put_back() {
        assert_eq!(undone("ours", "10\n", &["20", "10"]), (true, "60".into()));
    }

    #[test]
    fn somebody_elses_value_is_left_alone_and_told() {
        assert_eq!(undone("foreign", "15\n", &["20", "10"]), (false, "15\n".into()));
    }

    #[test]
    fn what_is_back_already_is_not_written_again() {
        assert_eq!(undone("back", "060\n", &["10"]), (true, "060\n".into()));
    }

    #[test]
    fn without_our_values_it_is_put_back_whatever_it_reads() {
        assert_eq!(undone("any", "15\n", &[]), (true, "60".into()));
    }
}

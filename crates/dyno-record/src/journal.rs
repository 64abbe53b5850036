//! A line of the journal of host settings: what a setting was, before it is changed.
//!
//! `dyno_host::journal` writes and reads them.

use serde::{Deserialize, Serialize};

use crate::change::What;

/// One line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Entry {
    /// Written before a setting is changed for the first time.
    Change {
        /// Number of the change.
        number: u64,
        /// The setting.
        #[serde(flatten)]
        what: What,
        /// What it held.
        old: String,
        /// What is written.
        new: String,
        /// Why; empty in older journals.
        #[serde(default)]
        why: String,
        /// The boot it was changed in; empty in older journals.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        boot: String,
    },
    /// Written before the same setting is given another value.
    Also {
        /// Number of the change.
        number: u64,
        /// What is written.
        new: String,
    },
    /// Written after a value was written for the first time and read back.
    Held {
        /// Number of the change.
        number: u64,
        /// What it reads.
        reads: String,
    },
    /// Written after the last one: it is to stay until it is rolled back.
    Kept {
        /// Number of the change.
        number: u64,
        /// What asked for it, as the finding `net.rps`.
        by: String,
    },
    /// Written when its device, namespace or thread was gone, and the value with it; or somebody else's value is to stay.
    Gone {
        /// Number of the change.
        number: u64,
        /// What is gone.
        why: String,
    },
    /// Written after the old value was put back and read back.
    Restored {
        /// Number of the change.
        number: u64,
    },
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_line_of_an_older_journal_is_read() {
        let line = r#"{"step":"change","number":1,"knob":"/proc/sys/a","old":"0","new":"1"}"#;
        let what = What::File("/proc/sys/a".into());
        let (old, new, why, boot) = ("0".to_owned(), "1".to_owned(), String::new(), String::new());
        assert_eq!(
            serde_json::from_str::<Entry>(line).unwrap(),
            Entry::Change { number: 1, what, old, new, why, boot }
        );
    }

    #[test]
    fn a_line_survives_json() {
        let what = What::File("/sys/b".into());
        let (old, new, why, boot) = ("a".to_owned(), "b".to_owned(), "a test".to_owned(), "c-d".to_owned());
        for entry in [
            Entry::Change { number: 7, what, old, new, why, boot },
            Entry::Held { number: 7, reads: "b".into() },
            Entry::Kept { number: 7, by: "net.rps".into() },
            Entry::Gone { number: 7, why: "vA is gone".into() },
            Entry::Also { number: 7, new: "c".into() },
            Entry::Restored { number: 7 },
        ] {
            let line = serde_json::to_string(&entry).unwrap();
            assert_eq!(serde_json::from_str::<Entry>(&line).unwrap(), entry, "{line}");
        }
    }
}

//! A line of the journal of host settings: what a setting was, before it is changed.
//!
//! `dyno_host::journal` writes and reads them.

use serde::{Deserialize, Serialize};

/// One line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Entry {
    /// Written before the setting is changed.
    Change {
        /// Number of the change.
        number: u64,
        /// The setting's file.
        knob: String,
        /// What it held.
        old: String,
        /// What is written.
        new: String,
    },
    /// Written after the old value was put back and read back.
    Restored {
        /// Number of the change.
        number: u64,
    },
}

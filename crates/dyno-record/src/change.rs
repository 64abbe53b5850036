//! A change of the host: which setting, where it is wanted, and why. Plain data.
//!
//! The climb's plans and their journal hold them; `dyno_host::change::HostChange` carries them out. A new kind of setting is
//! a variant of [`What`] here, and its file in `dyno-host`.

use serde::{Deserialize, Serialize};

/// A setting of the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum What {
    /// A file under `/proc/sys` or `/sys`: a sysctl, or an attribute of a device.
    #[serde(rename = "knob")]
    File(String),
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => f.write_str(path),
        }
    }
}

/// What is to be changed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSpec {
    /// The setting.
    #[serde(flatten)]
    pub what: What,
    /// Where it is to stand.
    pub wanted: String,
    /// Why, in words.
    pub why: String,
}

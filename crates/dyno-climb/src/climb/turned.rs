//! What a rung turns: plain data, shared by the passes, the confirmations and the record.

use crate::dial::Setting;

/// A dial that was turned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turned {
    pub(crate) dial: String,
    pub(crate) from: String,
    pub(crate) to: String,
}

impl Turned {
    /// The same turned back.
    pub(crate) fn back(&self) -> Self {
        Self { dial: self.dial.clone(), from: self.to.clone(), to: self.from.clone() }
    }
}

/// A rung that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Index into the record's rungs.
    pub(crate) rung: usize,
    /// Dials that it turned, with the values before and after.
    pub(crate) turned: Vec<Turned>,
    /// What a pair of short blocks of its step took, ns.
    pub(crate) pair_ns: u64,
}

impl Kept {
    /// Whether it brought this dial to this value.
    pub(crate) fn brought(&self, dial: &str, value: &str) -> bool {
        self.turned.iter().any(|turn| turn.dial == dial && turn.to == value)
    }
}

/// The setting with these dials turned.
pub(crate) fn apply(setting: &Setting, turned: &[Turned]) -> Setting {
    turned.iter().fold(setting.clone(), |setting, turn| setting.with(&turn.dial, &turn.to))
}

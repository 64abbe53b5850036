//! The published record of the planted host: what was planted, what the audit made of it, what the climb recovered, and
//! whether anything was left.
//!
//! `dyno specimen run planted-host --json` writes it.

use serde::{Deserialize, Serialize};

use crate::climb::Climb;

/// Name and number of this record's shape.
pub const PLANTED_SCHEMA: &str = "dyno.planted/1";
/// Of the clean rate, at least this must be recovered.
pub const RECOVERED_MIN: f64 = 0.95;

/// A run of the planted host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlantedHost {
    /// [`PLANTED_SCHEMA`].
    pub schema: String,
    /// What the audit found.
    pub audit: Found,
    /// The climb from the planted host.
    pub climb: Climb,
    /// Rates beside each other; none where the climb came to no end.
    pub rates: Option<Rates>,
    /// What the laboratory's settings were before and after.
    pub snapshot: Snapshot,
}

/// Ids of findings on the clean host and on the planted one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Before planting.
    pub before: Vec<String>,
    /// After it.
    pub after: Vec<String>,
    /// What the plants have to add, and nothing else.
    pub expected: Vec<String>,
    /// What a plant may hide: with packets handed to the server's CPU connections look local.
    pub hidden: Vec<String>,
    /// Checks that are left out: what they look at moves by itself.
    pub left_out: Vec<String>,
}

impl Found {
    /// Ids that are new on the planted host.
    #[must_use]
    pub fn added(&self) -> Vec<String> {
        self.after.iter().filter(|id| !self.before.contains(id)).cloned().collect()
    }

    /// Ids that were on the clean host only, and that no plant hides.
    #[must_use]
    pub fn gone(&self) -> Vec<String> {
        let is_known = |id: &&String| self.after.contains(*id) || self.hidden.contains(*id);
        self.before.iter().filter(|id| !is_known(id)).cloned().collect()
    }

    /// Whether the difference is the plants, and nothing else.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        let gone = !self.gone().is_empty();
        let (mut added, mut expected) = (self.added(), self.expected.clone());
        added.sort();
        expected.sort();
        !gone && added == expected
    }
}

/// Requests per second of servers that lived beside each other, in rounds of random order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Rounds.
    pub rounds: usize,
    /// Median on the clean host.
    pub clean: f64,
    /// On the planted one.
    pub planted: f64,
    /// On what the climb reached.
    pub recovered: f64,
    /// Planted against clean, in percent, and its 95 % interval.
    pub planted_percent: (f64, [f64; 2]),
    /// Recovered against clean, in percent, and its 95 % interval.
    pub recovered_percent: (f64, [f64; 2]),
}

impl Rates {
    /// Whether enough of the clean rate is back.
    #[must_use]
    pub fn is_recovered(&self) -> bool {
        1.0 + self.recovered_percent.0 / 100.0 >= RECOVERED_MIN
    }
}

/// Settings before planting and after the climb.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Values that were compared.
    pub values: usize,
    /// Those that differ, as `name: before → after`.
    pub differ: Vec<String>,
    /// Left out: they move by themselves.
    pub left_out: Vec<String>,
}

impl PlantedHost {
    /// Whether the host passed as a whole.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        let recovered = self.rates.as_ref().is_some_and(Rates::is_recovered);
        self.audit.is_exact() && recovered && self.snapshot.differ.is_empty() && self.snapshot.values > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(all: &[&str]) -> Vec<String> {
        all.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn one_finding_too_many_or_too_few_is_not_exact() {
        let found = |after: &[&str]| Found {
            before: ids(&["a", "h"]),
            after: ids(after),
            hidden: ids(&["h"]),
            expected: ids(&["b", "c"]),
            left_out: Vec::new(),
        };
        assert!(found(&["c", "a", "b"]).is_exact());
        for after in [&["a", "b"][..], &["a", "b", "c", "d"], &["b", "c"]] {
            assert!(!found(after).is_exact(), "{after:?}");
        }
    }
}

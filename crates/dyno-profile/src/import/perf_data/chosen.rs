//! Which event of a file is read: two kinds of events are never one sum.
//!
//! The first that has samples: what only describes (`dummy`), and what never came, is no event of the profile.

use std::collections::BTreeMap;

use super::head::{Event, Head};
use super::record::{Entry, Sample, What};
use crate::import::gather::left_out;

/// One event, and what is left out for it.
pub(super) struct Chosen {
    pub(super) event: Event,
    /// Of each event of the head, whether it has the same name.
    is_read: Vec<bool>,
    /// Samples of the others, by their names.
    others: BTreeMap<String, u64>,
}

impl Chosen {
    pub(super) fn of(head: &Head, entries: &[Entry<'_>]) -> Chosen {
        let mut samples = vec![0_u64; head.events.len()];
        for entry in entries {
            if let What::Sample(sample) = &entry.what
                && let Some(count) = samples.get_mut(sample.event)
            {
                *count += 1;
            }
        }
        let first = samples.iter().position(|count| *count > 0).unwrap_or(0);
        let event = head.events.get(first).copied().unwrap_or_default();
        let is_read: Vec<bool> = head.events.iter().map(|other| other.name() == event.name()).collect();
        let mut others = BTreeMap::new();
        let left_out = head.events.iter().zip(&samples).zip(&is_read);
        for ((other, samples), _) in left_out.filter(|((_, samples), is_read)| **samples > 0 && !**is_read) {
            *others.entry(other.name()).or_default() += samples;
        }
        Chosen { event, is_read, others }
    }

    /// Whether a sample is read.
    pub(super) fn has(&self, sample: &Sample) -> bool {
        self.is_read.get(sample.event).copied().unwrap_or(false)
    }

    /// What is not in the profile, in words.
    pub(super) fn left_out(&self) -> Option<String> {
        left_out(&self.event.name(), &self.others)
    }
}

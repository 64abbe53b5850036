//! Functions that a program passes again and again, from the stacks of a profile: what could be counted as progress.
//!
//! The function that handles one request is usually a caller: it is on the stacks and seldom at their end.

use dyno_measure::profile::{Profile, Stack};
use dyno_sys::Pid;

use super::choose::functions;
use super::{Probe, Resolver};
use crate::causal::rig::{Entry, Reach};

/// A function on the stacks of a profile, and where its entries can be counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Passed {
    /// Its name, by which it is found again.
    pub name: String,
    /// Where its entries are counted.
    pub entry: Entry,
    /// Whether the kernel emulates the instruction there: else it is single-stepped, some 15 µs instead of one.
    pub emulated: bool,
    /// Samples that have it on their stacks, in percent.
    pub share_percent: f64,
}

impl Resolver {
    /// Functions on the stacks of these processes, callers included, those on most of them first. What has no beginning
    /// of its own, or a name that others have too, is left out.
    #[must_use]
    pub fn passed(&self, profile: &Profile, whom: &[Pid], at_most: usize) -> Vec<Passed> {
        let own = of_processes(profile, whom);
        let all = functions(&own, Reach::Inclusive);
        let found = all.into_iter().filter_map(|((module, name), share_percent)| {
            let probe = self.probe(name).ok()?;
            // The name may lead to another file's function.
            let is_it = self.image_of(&own, module)?.open_as == probe.entry.image;
            is_it.then(|| Passed::new(probe, share_percent))
        });
        found.take(at_most).collect()
    }

    /// A function that is named, with its share of those stacks.
    #[must_use]
    pub fn passed_named(&self, name: &str, profile: &Profile, whom: &[Pid]) -> Option<Passed> {
        let probe = self.probe(name).ok()?;
        let own = of_processes(profile, whom);
        let all = functions(&own, Reach::Inclusive);
        let share = all.iter().find(|((_, found), _)| **found == probe.name).map_or(0.0, |(_, share)| *share);
        Some(Passed::new(probe, share))
    }
}

impl Passed {
    fn new(probe: Probe, share_percent: f64) -> Passed {
        Passed { name: probe.name, entry: probe.entry, emulated: probe.emulated, share_percent }
    }
}

/// Only what these processes' threads did.
fn of_processes(profile: &Profile, whom: &[Pid]) -> Profile {
    let is_theirs = |stack: &&Stack| {
        let thread = profile.threads.get(stack.thread as usize);
        thread.is_some_and(|thread| whom.iter().any(|pid| pid.cast_unsigned() == thread.pid))
    };
    let stacks = profile.stacks.iter().filter(is_theirs).cloned().collect();
    Profile { stacks, ..profile.clone() }
}

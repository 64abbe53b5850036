//! Functions that a program passes again and again, from the stacks of a profile: what could be counted as progress.
//!
//! The function that handles one request is usually a caller: it is on the stacks and seldom at their end.

use dyno_record::profile::{Profile, Stack};
use dyno_sys::Pid;

use super::choose::functions;
use super::resolver::{FITS, Mapped, Probe, Resolver, is_name, only_one};
use crate::causal::rig::site::{Entry, Reach};

/// How names begin that are of no unit of work: an address in the place of a name, and Go's scheduler, collector and timers.
const SAYS_NOTHING: [&str; 3] = ["0x", "runtime.", "internal/runtime/"];

/// What begins a program or a thread: on every stack of it, and entered once.
const BEGINS: [&str; 8] = [
    "_start",
    "main",
    "__libc_start_main_impl",
    "__libc_start_main",
    "__libc_start_call_main",
    "start_thread",
    "clone3",
    "__clone3",
];

/// A function on the stacks of a profile, and where its entries can be counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Passed {
    /// Its name, by which it is found again.
    pub name: String,
    /// Where its entries are counted, in every copy of it.
    pub entries: Vec<Entry>,
    /// Whether the kernel emulates the instruction there: else it is single-stepped, some 15 µs instead of one.
    pub emulated: bool,
    /// Samples that have it on their stacks, in percent.
    pub share_percent: f64,
}

impl Resolver {
    /// Functions on the stacks of these processes, callers included, those on most of them first. What has no beginning
    /// of its own, a name that others have too, or one that says nothing of the work, is left out.
    #[must_use]
    pub fn passed(&self, profile: &Profile, pids: &[Pid], at_most: usize) -> Vec<Passed> {
        let own = of_processes(profile, pids);
        let all = functions(&own, Reach::Inclusive);
        let found = all.into_iter().filter_map(|((module, name), share_percent)| {
            if BEGINS.contains(&name) || SAYS_NOTHING.iter().any(|start| name.starts_with(start)) {
                return None;
            }
            let probe = self.entry_of(&own, module, name)?;
            Some(Passed::new(probe, share_percent))
        });
        found.take(at_most).collect()
    }

    /// A function that is named, with its share of those stacks.
    #[must_use]
    pub fn passed_named(&self, name: &str, profile: &Profile, pids: &[Pid]) -> Option<Passed> {
        // To say what comes near a name that is not there would take its time.
        let is_known = |image: &Mapped| {
            image.debug().functions.iter().any(|function| FITS.iter().any(|fits| fits(function, name)))
        };
        let probe = self.images.iter().any(is_known).then(|| self.probe(name).ok())??;
        let own = of_processes(profile, pids);
        let all = functions(&own, Reach::Inclusive);
        let share = all.iter().find(|((_, found), _)| **found == probe.name).map_or(0.0, |(_, share)| *share);
        Some(Passed::new(probe, share))
    }

    /// Where a function of a profile is entered; none where its name would lead elsewhere.
    fn entry_of(&self, profile: &Profile, module: u32, name: &str) -> Option<Probe> {
        let has_it = |image: &&Mapped| image.debug().functions.iter().any(|function| is_name(function, name));
        let image = self.images.iter().find(has_it)?;
        if image.path != self.image_of(profile, module)?.path {
            return None;
        }
        let all = image.debug().functions.iter().filter(|function| is_name(function, name));
        let found = only_one(name, all.collect()).ok()?;
        image.probe(name.to_owned(), &found).ok()
    }
}

impl Passed {
    fn new(probe: Probe, share_percent: f64) -> Passed {
        Passed { name: probe.name, entries: probe.entries, emulated: probe.emulated, share_percent }
    }
}

/// Only what these processes' threads did.
#[must_use]
pub fn of_processes(profile: &Profile, pids: &[Pid]) -> Profile {
    let is_theirs = |stack: &&Stack| {
        let thread = profile.threads.get(stack.thread as usize);
        thread.is_some_and(|thread| pids.iter().any(|pid| pid.cast_unsigned() == thread.pid))
    };
    let stacks = profile.stacks.iter().filter(is_theirs).cloned().collect();
    Profile { stacks, ..profile.clone() }
}

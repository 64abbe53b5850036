//! Two profiles as one tree, each divided by what makes them comparable.
//!
//! Two runs never last equally long and never serve equally much, so weights are never compared as they are: per request
//! where both know how many they answered, else per second watched. Which of the two it was is part of the answer.

use dyno_record::profile::{Kind, Profile, Unit};

use crate::tree::{Threads, Tree};

/// Why two profiles cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiffError {
    /// Time on the CPU against time off it.
    #[error("one profile is of time on the CPU, the other of time off it")]
    Kinds,
    /// Time against a number of samples.
    #[error("one profile counts time, the other samples")]
    Units,
    /// Neither requests nor time are known on both sides.
    #[error("{which} says neither how many requests were answered nor how long it was watched")]
    NoBasis {
        /// The first that lacks both.
        which: Which,
    },
}

/// One of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The first.
    Before,
    /// The second.
    After,
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Which::Before => "the profile before",
            Which::After => "the profile after",
        })
    }
}

/// What weights were divided by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Basis {
    /// Requests answered, before and after.
    Requests([u64; 2]),
    /// Seconds watched, before and after.
    Seconds([f64; 2]),
}

impl Basis {
    /// What both profiles know.
    ///
    /// # Errors
    /// When one of them knows neither.
    pub fn of(before: &Profile, after: &Profile) -> Result<Basis, DiffError> {
        if let (Some(before), Some(after)) = (requests(before), requests(after)) {
            return Ok(Basis::Requests([before, after]));
        }
        let known = |profile: &Profile, which| seconds(profile).ok_or(DiffError::NoBasis { which });
        Ok(Basis::Seconds([known(before, Which::Before)?, known(after, Which::After)?]))
    }

    /// What each side's weights are multiplied by.
    pub fn scales(self) -> [f64; 2] {
        match self {
            Basis::Requests(counts) => counts.map(|count| 1.0 / count as f64),
            Basis::Seconds(times) => times.map(|time| 1.0 / time),
        }
    }
}

/// Requests that a profile's weights may be divided by.
pub fn requests(profile: &Profile) -> Option<u64> {
    profile.requests.as_ref().map(|requests| requests.count).filter(|count| *count > 0)
}

fn seconds(profile: &Profile) -> Option<f64> {
    Some(profile.duration_s).filter(|seconds| seconds.is_finite() && *seconds > 0.0)
}

/// Two profiles on one tree, in the profiles' unit per request or per second.
#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// The tree.
    pub tree: Tree,
    /// What its weights were divided by.
    pub basis: Basis,
}

/// Compares two profiles.
///
/// # Errors
/// When they are not of one kind and unit, or nothing makes them comparable.
pub fn diff(before: &Profile, after: &Profile, threads: Threads) -> Result<Diff, DiffError> {
    comparable((before.kind, before.unit), (after.kind, after.unit))?;
    let basis = Basis::of(before, after)?;
    let [scale_before, scale_after] = basis.scales();
    let tree = Tree::of_two((before, scale_before), (after, scale_after), threads);
    Ok(Diff { tree, basis })
}

pub(crate) fn comparable(before: (Kind, Unit), after: (Kind, Unit)) -> Result<(), DiffError> {
    match () {
        () if before.0 != after.0 => Err(DiffError::Kinds),
        () if before.1 != after.1 => Err(DiffError::Units),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::layout::widths;
    use crate::tree::tests::{small, stack};
    use dyno_record::profile::Requests;

    fn answered(mut profile: Profile, count: u64) -> Profile {
        profile.requests = Some(Requests { count, source: "load".to_owned() });
        profile
    }

    fn of<'t>(tree: &'t Tree, name: &str) -> &'t crate::tree::Node {
        tree.nodes.iter().find(|node| tree.labels[node.label as usize].name == name).unwrap()
    }

    #[test]
    fn twice_the_samples_for_twice_the_requests_is_no_change() {
        let mut twice = small();
        twice.stacks.iter_mut().for_each(|stack| stack.weight_ns *= 2);
        let found = diff(&answered(small(), 100), &answered(twice, 200), Threads::Merged).unwrap();
        assert_eq!(found.basis, Basis::Requests([100, 200]));
        assert!(found.tree.nodes.iter().all(|node| node.total.change().abs() < 1e-12));
        assert_eq!(found.tree.total().after, 10.0);
    }

    #[test]
    fn without_requests_on_both_sides_time_watched_divides() {
        let watched = |seconds, mut profile: Profile| {
            profile.duration_s = seconds;
            profile
        };
        let (before, after) = (watched(2.0, answered(small(), 100)), watched(4.0, small()));
        let found = diff(&before, &after, Threads::Merged).unwrap();
        assert_eq!(found.basis, Basis::Seconds([2.0, 4.0]));
        assert_eq!(
            (of(&found.tree, "work").total.before, of(&found.tree, "work").total.after),
            (450.0, 225.0)
        );
    }

    #[test]
    fn samples_alone_are_never_compared() {
        let mut watched = small();
        watched.duration_s = 1.0;
        let refused = diff(&watched, &small(), Threads::Merged).unwrap_err();
        assert_eq!(refused, DiffError::NoBasis { which: Which::After });
        assert!(diff(&answered(small(), 0), &answered(small(), 5), Threads::Merged).is_err());
    }

    #[test]
    fn what_is_not_of_one_kind_is_not_compared() {
        let (before, mut after) = (answered(small(), 1), answered(small(), 1));
        after.unit = Unit::Samples;
        assert_eq!(diff(&before, &after, Threads::Merged).unwrap_err(), DiffError::Units);
        after.kind = Kind::OffCpu;
        assert_eq!(diff(&before, &after, Threads::Merged).unwrap_err(), DiffError::Kinds);
    }

    #[test]
    fn what_vanished_keeps_its_width() {
        let (before, mut after) = (answered(small(), 1), answered(small(), 1));
        after.stacks = vec![stack(&[0, 1], 700)];
        let tree = diff(&before, &after, Threads::Merged).unwrap().tree;
        let width = |name: &str| {
            let at = tree.nodes.iter().position(|node| tree.labels[node.label as usize].name == name);
            widths(&tree)[at.unwrap()]
        };
        assert_eq!((width("idle"), width("sys_read"), width("work")), (100.0, 300.0, 1_000.0));
        assert_eq!(of(&tree, "idle").total.change(), -100.0);
    }
}

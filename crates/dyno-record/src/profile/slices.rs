//! When samples fell: the time axis of a profile, in slices of equal length.
//!
//! The recorder fills it, lanes and exports are drawn from it, [`Profile::between`] cuts by it. A sample's moment is known
//! to its slice and no closer.

use super::{InSlice, Profile, ProfileError, Stack};

/// Slices of a profile at most: twice a page's columns, nearly. Where there would be more, two become one.
pub const SLICES_MAX: u32 = 1_024;

/// How long a slice is at first.
const FIRST_NS: u64 = 1_000_000;

/// The axis of a profile in the making: as long as a slice has to be for what came so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    begun_ns: u64,
    slice_ns: u64,
}

impl Axis {
    /// One that begins at this moment.
    pub fn new(begun_ns: u64) -> Axis {
        Axis { begun_ns, slice_ns: FIRST_NS }
    }

    /// How long a slice is.
    pub fn slice_ns(&self) -> u64 {
        self.slice_ns
    }

    /// The slice of a moment; what fell before the beginning belongs to the first. Where there would be too many, slices
    /// become twice as long, and `all` that was counted so far stands in the longer ones.
    pub fn slice<'s>(&mut self, at_ns: u64, all: impl Iterator<Item = &'s mut Vec<InSlice>>) -> u32 {
        let since_ns = at_ns.saturating_sub(self.begun_ns);
        let mut doubled = 0;
        while since_ns / self.slice_ns >= u64::from(SLICES_MAX) {
            self.slice_ns = self.slice_ns.saturating_mul(2);
            doubled += 1;
        }
        if doubled > 0 {
            all.for_each(|slices| *slices = longer(slices, doubled));
        }
        (since_ns / self.slice_ns) as u32
    }
}

/// One more sample, or several, in a slice.
pub fn count(slices: &mut Vec<InSlice>, slice: u32, samples: u32) {
    match slices.binary_search_by_key(&slice, |known| known.0) {
        Ok(at) => slices[at].1 = slices[at].1.saturating_add(samples),
        Err(at) => slices.insert(at, (slice, samples)),
    }
    debug_assert!(slices.is_sorted_by(|a, b| a.0 < b.0), "each slice once, in order");
}

/// The same samples in slices that were doubled so often.
fn longer(slices: &[InSlice], doubled: u32) -> Vec<InSlice> {
    let mut longer = Vec::new();
    let number = |slice: u32| slice.checked_shr(doubled).unwrap_or(0);
    slices.iter().for_each(|(slice, samples)| count(&mut longer, number(*slice), *samples));
    longer
}

impl Stack {
    /// What one of its samples weighs.
    fn of_samples(&self, samples: u64) -> u64 {
        let part = u128::from(self.weight_ns) * u128::from(samples) / u128::from(self.samples.max(1));
        u64::try_from(part).expect("a part is no more than the whole")
    }

    /// The part of it that fell into slices between two; none when nothing did.
    fn between(&self, from: u32, to: u32) -> Option<Stack> {
        let inside = self.slices.iter().filter(|(slice, _)| (from..to).contains(slice));
        let slices: Vec<InSlice> = inside.map(|(slice, samples)| (slice - from, *samples)).collect();
        let samples = slices.iter().map(|(_, samples)| u64::from(*samples)).sum();
        let weight_ns = self.of_samples(samples);
        (samples > 0).then(|| Stack { slices, samples, weight_ns, ..self.clone() })
    }

    /// Whether its slices are in order and hold no more samples than it has.
    pub(super) fn has_sound_slices(&self) -> bool {
        let samples: u64 = self.slices.iter().map(|(_, samples)| u64::from(*samples)).sum();
        samples <= self.samples && self.slices.is_sorted_by(|a, b| a.0 < b.0)
    }
}

impl Profile {
    /// Whether the moments of its samples are known.
    pub fn has_slices(&self) -> bool {
        self.slice_ns.is_some_and(|ns| ns > 0) && self.stacks.iter().any(|stack| !stack.slices.is_empty())
    }

    /// What fell between two moments, in seconds from its beginning, to the slice. What is known only of the whole (times
    /// of threads, requests, system calls, samples that had no moment) is left out, and a warning says what part it is.
    ///
    /// # Errors
    /// When the moments of its samples are not known, or nothing fell between those two.
    pub fn between(&self, from_s: f64, to_s: f64) -> Result<Profile, ProfileError> {
        let slice_s = self.slice_ns.filter(|_| self.has_slices()).map(|ns| ns as f64 / 1e9);
        let slice_s = slice_s.ok_or(ProfileError::NoMoments { kind: self.kind })?;
        // Times are written in decimals: 0.3 s is slice 3 of 0.1 s, not 2.999.
        let from = (from_s / slice_s + 1e-6).floor() as u32;
        // The last sample may fall at the end itself.
        let to = if to_s >= self.duration_s { u32::MAX } else { (to_s / slice_s - 1e-6).ceil() as u32 };
        let stacks: Vec<Stack> = self.stacks.iter().filter_map(|stack| stack.between(from, to)).collect();
        if stacks.is_empty() {
            return Err(ProfileError::Nothing { from_s, to_s, duration_s: self.duration_s });
        }
        let begins_s = f64::from(from) * slice_s;
        let ends_s = self.duration_s.min(f64::from(to) * slice_s).max(begins_s);
        let mut part = Profile {
            duration_s: ends_s - begins_s,
            requests: None,
            wakers: Vec::new(),
            timeline: Vec::new(),
            thread_times: Vec::new(),
            system_calls: std::collections::BTreeMap::new(),
            stacks,
            ..self.clone()
        };
        part.stacks.sort_by_key(|stack| std::cmp::Reverse(stack.weight_ns));
        part.sampling.samples = part.stacks.iter().map(|stack| stack.samples).sum();
        part.sampling.truncated = part.truncated_stacks();
        part.sampling.truncated_by.clear();
        let (from_s, to_s) = (f64::from(from) * slice_s, f64::from(to) * slice_s);
        part.warnings.insert(
            0,
            format!(
                "only what fell between {from_s:.3} and {to_s:.3} s of {:.1} s is shown",
                self.duration_s
            ),
        );
        Ok(part)
    }

    /// Samples whose own stacks end before their root.
    pub fn truncated_stacks(&self) -> u64 {
        let is_cut = |stack: &&Stack| {
            let root = stack.frames.first().and_then(|at| self.frames.get(*at as usize));
            root.is_some_and(|frame| frame.origin == super::Origin::Mark && frame.name == super::CUT)
        };
        self.stacks.iter().filter(is_cut).map(|stack| stack.samples).sum()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// One sample in each of ten slices of a tenth of a second; ten more of another stack in the last.
    fn profile() -> Profile {
        let every = (0..10).map(|slice| (slice, 1)).collect();
        let stack = |frame, slices| Stack {
            frames: vec![frame],
            samples: 10,
            weight_ns: 100,
            slices,
            ..Stack::default()
        };
        Profile {
            stacks: vec![stack(0, every), stack(1, vec![(9, 10)])],
            slice_ns: Some(100_000_000),
            duration_s: 1.0,
            ..Profile::default()
        }
    }

    #[test]
    fn a_part_holds_what_fell_into_it() {
        let part = profile().between(0.3, 0.6).unwrap();
        assert_eq!((part.stacks.len(), part.stacks[0].samples, part.total_ns()), (1, 3, 30));
        assert_eq!(part.stacks[0].slices, [(0, 1), (1, 1), (2, 1)], "its axis begins with it");
        assert!(
            (part.duration_s - 0.3).abs() < 1e-9 && part.warnings[0].contains("0.300 and 0.600 s of 1.0 s")
        );
        let end = profile().between(0.9, f64::INFINITY).unwrap();
        assert_eq!(end.stacks.iter().map(|stack| stack.samples).collect::<Vec<_>>(), [10, 1]);
    }

    #[test]
    fn where_nothing_fell_or_no_moments_are_known_it_says_so() {
        let past = profile().between(2.0, 3.0).unwrap_err();
        assert!(past.to_string().contains("1.0 s"), "{past}");
        let without = Profile { slice_ns: None, ..profile() };
        assert!(matches!(without.between(0.0, 1.0), Err(ProfileError::NoMoments { .. })));
    }

    #[test]
    fn a_long_profile_has_longer_slices_and_as_many_samples() {
        let (mut axis, mut slices) = (Axis::new(5), Vec::new());
        for at in 0..5_000_u64 {
            let at_ns = 5 + at * 1_000_000;
            let slice = axis.slice(at_ns, std::iter::once(&mut slices));
            count(&mut slices, slice, 1);
        }
        assert_eq!(axis.slice_ns(), 8_000_000);
        assert_eq!(slices.len(), 625);
        assert!(slices.iter().all(|(_, samples)| *samples == 8));
    }

    #[test]
    fn slices_out_of_order_or_of_more_samples_than_there_are_are_refused() {
        let mut torn = profile();
        torn.stacks[1].slices = vec![(9, 11)];
        assert!(torn.stacks[0].has_sound_slices() && !torn.stacks[1].has_sound_slices());
        torn.stacks[1].slices = vec![(9, 1), (3, 1)];
        assert!(!torn.stacks[1].has_sound_slices());
    }
}

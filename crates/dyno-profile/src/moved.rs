//! Which functions changed their time between two profiles, and by how much.
//!
//! The short answer to "what did this change do?": a list, where a picture of both would be too much.

use std::collections::HashMap;

use dyno_record::profile::{Origin, Profile};

use crate::diff::{Basis, DiffError};
use crate::top::{Function, functions};

/// Which time of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// Its own.
    Own,
    /// With what it called.
    Total,
}

/// A function and what it cost on both sides, in the profiles' unit per request or per second.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// Its name.
    pub name: String,
    /// User or kernel.
    pub origin: Origin,
    /// Before.
    pub before: f64,
    /// After.
    pub after: f64,
    /// Standard error of the difference, from the number of samples on both sides.
    pub error: f64,
}

impl Moved {
    /// What came on top; negative where it became cheaper.
    pub fn change(&self) -> f64 {
        self.after - self.before
    }

    /// Whether sampling alone makes such a difference in less than one of three hundred functions.
    pub fn is_clear(&self) -> bool {
        self.change().abs() > CLEAR_SIGMAS * self.error
    }
}

/// A hundred functions are looked at: at two sigmas five of them would seem to move.
const CLEAR_SIGMAS: f64 = 3.0;

/// All functions of both, the greatest change first, and what their times were divided by.
///
/// # Errors
/// When the two cannot be compared, as for [`crate::diff::diff`].
pub fn moved(before: &Profile, after: &Profile, time: Time) -> Result<(Basis, Vec<Moved>), DiffError> {
    crate::diff::comparable((before.kind, before.unit), (after.kind, after.unit))?;
    let basis = Basis::of(before, after)?;
    let scales = basis.scales();
    let worth =
        [before, after].map(|profile| profile.total_ns() as f64 / profile.sampling.samples.max(1) as f64);
    let mut all: HashMap<(String, Origin), [Function; 2]> = HashMap::new();
    for (side, profile) in [before, after].into_iter().enumerate() {
        for function in functions(profile) {
            // One name may lie in several files: a template's copies.
            let sides = all.entry((function.name, function.origin)).or_default();
            sides[side].own += function.own;
            sides[side].total += function.total;
            sides[side].own_samples += function.own_samples;
        }
    }
    let mut found: Vec<Moved> = all
        .into_iter()
        .map(|((name, origin), sides)| {
            let raw = |side: usize| time.of(&sides[side]);
            let samples = |side: usize| match time {
                Time::Own => sides[side].own_samples as f64,
                Time::Total => raw(side) / worth[side].max(f64::MIN_POSITIVE),
            };
            // A count of nought has an error too: that of one sample.
            let error = |side: usize| match samples(side) {
                few if few < 1.0 => worth[side] * scales[side],
                many => raw(side) * scales[side] / many.sqrt(),
            };
            let (before, after) = (raw(0) * scales[0], raw(1) * scales[1]);
            Moved { name, origin, before, after, error: error(0).hypot(error(1)) }
        })
        .collect();
    found.sort_by(|a, b| b.change().abs().total_cmp(&a.change().abs()).then_with(|| a.name.cmp(&b.name)));
    Ok((basis, found))
}

impl Time {
    fn of(self, function: &Function) -> f64 {
        let time = match self {
            Time::Own => function.own,
            Time::Total => function.total,
        };
        time as f64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree::tests::{small, stack};
    use dyno_record::profile::{Module, Requests};

    fn answered(count: u64, stacks: Vec<dyno_record::profile::Stack>) -> Profile {
        let requests = Some(Requests { count, source: "load".to_owned() });
        Profile { requests, stacks, ..small() }
    }

    #[test]
    fn the_function_that_changed_most_stands_first_per_request() {
        let (before, after) = (
            answered(10, vec![stack(&[0, 1], 100), stack(&[0], 50)]),
            answered(20, vec![stack(&[0, 1], 100), stack(&[0], 100)]),
        );
        let (basis, found) = moved(&before, &after, Time::Own).unwrap();
        assert_eq!(basis, Basis::Requests([10, 20]));
        assert_eq!((found[0].before, found[0].after, found[0].change()), (10.0, 5.0, -5.0));
        assert_eq!(found[1].change(), 0.0);
        assert!(!found[1].is_clear(), "nothing moved there");
    }

    #[test]
    fn what_is_on_one_side_only_is_clear_from_ten_samples_on() {
        let with = |samples: u64| {
            let (mut own, mut more) = (stack(&[0], 1_000), stack(&[0, 1], samples));
            (own.samples, more.samples) = (1_000, samples);
            let mut profile = answered(1, if samples > 0 { vec![own, more] } else { vec![own] });
            profile.sampling.samples = 1_000 + samples;
            profile
        };
        let is_clear = |samples| moved(&with(0), &with(samples), Time::Own).unwrap().1[0].is_clear();
        assert!(!is_clear(9), "3 sigmas of 9 and of 1 are 9.5");
        assert!(is_clear(11));
    }

    #[test]
    fn copies_of_a_function_in_several_files_are_added() {
        let mut before = answered(1, vec![stack(&[0], 800), stack(&[1], 50)]);
        before.modules =
            ["one", "two"].map(|path| Module { path: path.to_owned(), ..Module::default() }).into();
        for (frame, module) in before.frames.iter_mut().zip([0, 1]) {
            (frame.name, frame.module) = ("append".to_owned(), Some(module));
        }
        let (_, found) = moved(&before, &before, Time::Own).unwrap();
        assert_eq!((found.len(), found[0].before, found[0].after), (1, 850.0, 850.0));
    }

    #[test]
    fn a_difference_that_sampling_makes_is_not_clear() {
        let many = |samples| {
            let mut one = stack(&[0, 1], 1_000 * samples);
            one.samples = samples;
            answered(1, vec![one])
        };
        assert!(!moved(&many(100), &many(110), Time::Own).unwrap().1[0].is_clear());
        assert!(moved(&many(100), &many(200), Time::Own).unwrap().1[0].is_clear());
    }
}

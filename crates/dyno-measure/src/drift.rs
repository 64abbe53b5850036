//! Two lists that drift, where one goes on as the other ended: measured one after the other, they differ by that alone.
//!
//! Lists are paired by position, line k beside line k, and what both sides of a pair share falls out. A machine that warms up while one
//! file is written and then the other makes both rise alike: the ratios of the pairs are steady, and are the drift. Nothing
//! in the ratios shows it; the lists themselves do. `dyno judge` asks it of answers in pairs.

use crate::normal::normal_quantile;
use crate::stats::mean;
use crate::student::student;

/// What both lists drift by is seen where chance makes as much in one of a thousand.
const STEEP_CHANCE: f64 = 0.001;
/// How far from where A ended B may begin: in parts of what both drift by, or in errors of that gap where these are larger …
const JOINED: f64 = 0.1;
const JOINED_ERRORS: f64 = 2.576;
/// … and never beyond this part of the drift.
const JOINED_MOST: f64 = 0.5;
/// Of fewer numbers nobody sees whether they stray together, and a drift is told beside the answer.
const JOINED_MIN: usize = 13;
/// Numbers that were measured beside each other stray together: one-sided, one in a hundred of lists that were not.
const TOGETHER_Z: f64 = 2.326;

/// Two lists that both drift, and the same way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// What they move by from their beginning to their end, log, the mean of both.
    pub log: f64,
    /// Whether B begins about where A ended, as far as so many numbers tell.
    pub is_joined: bool,
}

impl Drift {
    /// Of logarithms, as long as each other, whose typical numbers differ by `apart`. `None` where they do not both drift the same way,
    /// and where what is left of them strays together: then they were measured in turns, as pairs are to be.
    pub(crate) fn of([a, b]: [&[f64]; 2], apart: f64) -> Option<Self> {
        let (a, b) = (Line::of(a)?, Line::of(b)?);
        let log = f64::midpoint(a.rise, b.rise);
        let freedom = (a.rest.len() + b.rest.len()) as f64 - 4.0;
        let least =
            student(normal_quantile(1.0 - STEEP_CHANCE / 2.0), freedom) * a.error.hypot(b.error) / 2.0;
        // Rounding of logarithms makes no drift.
        let both_drift = a.rise * b.rise > 0.0 && log.abs() > least.max(1e-9);
        if !both_drift || a.strays_with(&b) {
            return None;
        }
        // Of the difference of the means, and of half of both rises: a rise's error is √12 times a mean's.
        let error = a.error.hypot(b.error) / 3_f64.sqrt();
        let gap_max = (JOINED * log.abs()).max(JOINED_ERRORS * error).min(JOINED_MOST * log.abs());
        Some(Self { log, is_joined: a.rest.len() >= JOINED_MIN && (apart - log).abs() <= gap_max })
    }
}

/// A straight line through a list.
struct Line {
    /// From the beginning to the end.
    rise: f64,
    error: f64,
    /// What the line leaves.
    rest: Vec<f64>,
}

impl Line {
    /// `None` of fewer than three numbers, through which any line goes.
    fn of(list: &[f64]) -> Option<Self> {
        let n = list.len() as f64;
        if list.len() < 3 {
            return None;
        }
        let place = |at: usize| (at as f64 + 0.5) / n - 0.5;
        let centre = mean(list);
        let squares: f64 = (0..list.len()).map(|at| place(at).powi(2)).sum();
        let rise =
            list.iter().enumerate().map(|(at, value)| place(at) * (value - centre)).sum::<f64>() / squares;
        let rest: Vec<f64> =
            list.iter().enumerate().map(|(at, value)| value - centre - rise * place(at)).collect();
        let left = dot(&rest, &rest) / (n - 2.0);
        Some(Self { rise, error: (left / squares).sqrt(), rest })
    }

    /// Whether both do the same from one number to the next. What is left of a bend is smooth, and says nothing of that.
    fn strays_with(&self, other: &Self) -> bool {
        let (Some(a), Some(b)) = (self.kinks(), other.kinks()) else { return false };
        let size = (dot(&a, &a) * dot(&b, &b)).sqrt();
        let deviations = (a.len() as f64 / KINKS_WORTH).sqrt();
        size > 0.0 && dot(&a, &b) / size * deviations > TOGETHER_Z
    }

    /// Second differences of what the line leaves; `None` where that is smooth.
    fn kinks(&self) -> Option<Vec<f64>> {
        let kinks: Vec<f64> =
            self.rest.windows(3).map(|three| three[0] - 2.0 * three[1] + three[2]).collect();
        let size = |values: &[f64]| (dot(values, values) / values.len() as f64).sqrt();
        (size(&kinks) > ROUGH * size(&self.rest)).then_some(kinks)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Of independent numbers second differences are 2.45 times as large as they are.
const ROUGH: f64 = 0.5;
/// Second differences of independent numbers resemble each other (−2/3 with the next, 1/6 with the one after): this many say as much as
/// one independent number, 1 + 2 · (4/9 + 1/36).
const KINKS_WORTH: f64 = 1.94;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Prng;
    use crate::dependence::series_paired;
    use crate::judge::Verdict;

    /// So many numbers that rise from `from` to `to`, with noise of their own.
    fn rising(rng: &mut Prng, n: usize, from: f64, to: f64, noise: f64) -> Vec<f64> {
        let at = |k: usize| from + (to - from) * (k as f64 + 0.5) / n as f64;
        (0..n).map(|k| at(k) * (noise * rng.normal()).exp()).collect()
    }

    /// One file and then the other on a machine that warms up, or cools. Planted fault: nobody asks (`of` is always `None`): all are
    /// called different, by +10 % and as surely as anything.
    #[test]
    fn files_that_were_measured_one_after_the_other_on_a_machine_that_drifts_tell_nothing() {
        let mut rng = Prng::new(51);
        for noise in [0.0, 0.002, 0.01] {
            for (first, middle, last) in [(100.0, 110.0, 121.0), (121.0, 110.0, 100.0), (100.0, 104.0, 107.0)]
            {
                let called = (0..200).filter(|_| {
                    let a = rising(&mut rng, 40, first, middle, noise);
                    let b = rising(&mut rng, 40, middle, last, noise);
                    series_paired(&a, &b, 0.01).unwrap().verdict() != Verdict::NoDifference
                });
                let called = called.count();
                assert!(called <= 4, "noise {noise}, {first} to {last}: {called} of 200");
            }
        }
    }

    /// Where the effect is about the drift and nothing strays together no answer is right: 1.1 beside nothing shared is not here. Planted faults:
    /// whatever drifts tells nothing (`JOINED` without a bound), or what strays together is not asked.
    #[test]
    fn what_was_measured_in_turns_is_told_though_the_machine_drifts() {
        let mut rng = Prng::new(52);
        for (effect, shared) in
            [(1.1, 0.01), (1.095, 0.006), (0.95, 0.0), (1.03, 0.0), (1.08, 0.0), (1.12, 0.0), (1.5, 0.0)]
        {
            let told = (0..200).filter(|_| {
                let a = rising(&mut rng, 40, 100.0, 110.0, shared);
                let b: Vec<f64> =
                    a.iter().map(|value| effect * value * (0.003 * rng.normal()).exp()).collect();
                let a: Vec<f64> = a.iter().map(|value| value * (0.003 * rng.normal()).exp()).collect();
                series_paired(&a, &b, 0.01).unwrap().verdict() != Verdict::NoDifference
            });
            let told = told.count();
            assert!(told >= 194, "effect {effect}: {told} of 200");
        }
    }

    #[test]
    fn numbers_that_do_not_drift_have_no_drift() {
        let mut rng = Prng::new(53);
        let drifts = (0..2_000).filter(|_| {
            let [a, b] = [0, 1].map(|_| (0..20).map(|_| 0.01 * rng.normal()).collect::<Vec<f64>>());
            Drift::of([&a, &b], 0.0).is_some()
        });
        assert!(drifts.count() <= 6);
        assert_eq!(Drift::of([&[0.0; 20], &[1.0; 20]], 1.0), None);
        assert_eq!(Drift::of([&[0.0, 1.0], &[1.0, 2.0]], 1.0), None);
    }

    /// Twenty numbers on a line from 0 to 1, the next from 1 to 2: they rise by 1 each, and B begins where A ended.
    #[test]
    fn a_drift_is_told_with_whether_one_list_goes_on_as_the_other_ended() {
        let line = |n: i32, from: f64| {
            (0..n).map(|at| from + (f64::from(at) + 0.5) / f64::from(n)).collect::<Vec<f64>>()
        };
        let of = |n: i32, from: f64| Drift::of([&line(n, 0.0), &line(n, from)], from).unwrap();
        for (from, is_joined) in
            [(1.0, true), (1.09, true), (0.91, true), (1.11, false), (0.89, false), (-1.0, false)]
        {
            let drift = of(20, from);
            assert!((drift.log - 1.0).abs() < 1e-9 && drift.is_joined == is_joined, "{from}: {drift:?}");
        }
        assert_eq!(
            [12, 13].map(|n| of(n, 1.0).is_joined),
            [false, true],
            "of a few it is told beside the answer"
        );
        let falling: Vec<f64> = line(20, 0.0).iter().map(|value| -value).collect();
        assert_eq!(Drift::of([&line(20, 0.0), &falling], 1.0), None, "one rises, the other falls");
    }
}

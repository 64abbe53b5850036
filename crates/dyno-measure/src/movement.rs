//! How far lists of numbers move, and when two of them are far apart beside that.
//!
//! Where numbers change as slowly as they last, or are all alike, their spread says nothing of how sure a mean is. What they
//! move by, from the lowest to the highest, still does: slow as a machine's changes may be, a list that has moved by 3 % in
//! its own time does not double in that of the other. [`dependence`](crate::dependence) asks it where it has no other interval.

use crate::normal::normal_quantile;
use crate::student::student;

/// Half width of the interval, in movements of both lists, for each unit of Student's quantile at two degrees of freedom: three
/// movements at 1 %. Of equal series (lag-1 correlation 0.5 to 0.95, walks, drifts, episodes; 20 to 100 numbers) that tell
/// nothing else three in a thousand lie 1.9 movements apart, and of ten numbers 2.8 (simulated).
const MOVEMENTS: f64 = 0.3;
const FREEDOM: f64 = 2.0;
/// What is left of differences of logarithms by rounding, as a part of their size.
const ROUNDING: f64 = 1e-13;

/// What two lists, or the ratios of their pairs, move by.
pub(crate) struct Movement {
    /// From the lowest to the highest, log; of two lists the root of the sum of squares.
    range: f64,
    rounding: f64,
    /// Numbers on both sides.
    numbers: usize,
    alpha: f64,
}

impl Movement {
    /// Of logarithms: of each list, or of the ratios of pairs.
    pub(crate) fn of(lists: &[&[f64]], numbers: usize, alpha: f64) -> Self {
        let end =
            |list: &[f64], take: fn(f64, f64) -> f64| list.iter().copied().reduce(take).unwrap_or_default();
        let ends = lists.iter().map(|list| [end(list, f64::min), end(list, f64::max)]);
        let (mut range, mut size) = (0.0_f64, 1.0_f64);
        for [low, high] in ends {
            range = range.hypot(high - low);
            size = size.max(low.abs()).max(high.abs());
        }
        let rounding = ROUNDING * size;
        Self { range: if range > rounding { range } else { 0.0 }, rounding, numbers, alpha }
    }

    /// The half width of the interval around what lies so far apart. `None` where that is not far enough beyond all movement, and where
    /// numbers without any are too few.
    pub(crate) fn half_width(&self, apart: f64) -> Option<f64> {
        if self.range > 0.0 {
            let half_width =
                student(normal_quantile(1.0 - self.alpha / 2.0), FREEDOM) * MOVEMENTS * self.range;
            return (apart.abs() > half_width + self.rounding).then_some(half_width);
        }
        // Numbers that are one of two at random, each as often: all of a side are alike, and unlike the other's, by this chance.
        let chance = 0.5_f64.powi(i32::try_from(self.numbers).unwrap_or(i32::MAX) - 1);
        (chance <= self.alpha || apart.abs() <= self.rounding).then_some(self.rounding)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Prng;
    use crate::dependence::{Told, series_paired, series_unpaired};
    use crate::judge::Verdict;

    fn both(a: &[f64], b: &[f64]) -> [Told; 2] {
        [series_paired, series_unpaired].map(|compare| compare(a, b, 0.01).unwrap())
    }

    /// Bytes, allocations, instructions. Planted fault: numbers without a spread are held against nothing, and are never told.
    #[test]
    fn constant_numbers_that_differ_are_told_and_equal_ones_are_alike() {
        for n in [5, 20] {
            for told in both(&vec![100.0; n], &vec![200.0; n]) {
                assert_eq!((told.verdict(), told.by_movement), (Verdict::Worse, true), "{told:?}");
                assert!((told.estimate.percent() - 100.0).abs() < 1e-9 && told.estimate.half_width < 1e-9);
            }
            for told in both(&vec![0.3; n], &vec![0.1 + 0.2; n]) {
                assert_eq!((told.verdict(), told.tells), (Verdict::NoDifference, true), "{told:?}");
            }
        }
        // A few of them move a little.
        let mut few = vec![200.0; 20];
        few[3] = 201.0;
        for told in both(&[100.0; 20], &few) {
            assert_eq!(told.verdict(), Verdict::Worse, "{told:?}");
            let [low, high] = told.estimate.interval_percent();
            assert!(95.0 < low && low < 99.0 && 101.0 < high && high < 105.0, "{low} {high}");
        }
    }

    /// Of two values at random ten numbers are five of one and then five of the other once in 512.
    #[test]
    fn constant_numbers_are_told_where_chance_does_not_make_them() {
        let of = |alpha| series_paired(&[3.0; 5], &[4.0; 5], alpha).unwrap().verdict();
        assert_eq!([0.01, 0.002, 0.001].map(of), [Verdict::Worse, Verdict::Worse, Verdict::NoDifference]);
    }

    /// Three movements at 1 %, by hand: t of two degrees is 9.925, and 0.3 of it 2.977. Planted fault: movements of one list alone.
    #[test]
    fn lists_are_far_apart_from_three_movements_on() {
        let walk: Vec<f64> = (0..9).map(|at| 0.03 * f64::from(at) / 8.0).collect();
        let one = Movement::of(&[&walk], 18, 0.01);
        assert!(one.half_width(0.089).is_none() && one.half_width(-0.09).is_some());
        assert!((one.half_width(1.0).unwrap() - 2.977 * 0.03).abs() < 1e-4);
        let two = Movement::of(&[&walk, &walk], 18, 0.01);
        assert!(two.half_width(0.126).is_none() && two.half_width(0.127).is_some());
        let surer = Movement::of(&[&walk], 18, 1e-4);
        assert!(surer.half_width(0.8).is_none() && surer.half_width(1.0).is_some());
    }

    /// A walk, a drift and a slow wave that are doubled. Planted fault: what changes slowly is never told.
    #[test]
    fn a_doubling_is_told_however_slowly_numbers_change() {
        let mut rng = Prng::new(31);
        for n in [20, 60] {
            let mut found = 0;
            for _ in 0..100 {
                let mut walk = |level: f64| -> Vec<f64> {
                    let mut at = 0.0;
                    let mut next = || {
                        at += 0.005 * rng.normal();
                        level * f64::exp(at)
                    };
                    (0..n).map(|_| next()).collect()
                };
                let (a, b) = (walk(1.0), walk(2.0));
                found += usize::from(both(&a, &b).iter().all(|told| told.verdict() == Verdict::Worse));
            }
            assert!(found >= 97, "{n} numbers: {found} of 100");
            let drift = |level: f64| {
                (0..n).map(|at| level * (1.0 + 0.1 * f64::from(at) / f64::from(n))).collect::<Vec<_>>()
            };
            let told = series_unpaired(&drift(2.0), &drift(1.0), 0.01).unwrap();
            assert_eq!((told.verdict(), told.by_movement), (Verdict::Better, true), "{told:?}");
            let told = series_unpaired(&drift(1.1), &drift(1.0), 0.01).unwrap();
            assert!(!told.tells && told.verdict() == Verdict::NoDifference, "{told:?}");
        }
    }

    /// Planted fault: half a movement is enough.
    #[test]
    fn equal_series_that_wander_are_rarely_far_apart() {
        let mut rng = Prng::new(32);
        for lag in [0.85_f64, 0.95, 1.0] {
            for n in [20, 40, 100] {
                let mut list = || -> Vec<f64> {
                    let mut state = if lag < 1.0 { rng.normal() } else { 0.0 };
                    let step = if lag < 1.0 { (1.0 - lag * lag).sqrt() } else { 0.3 };
                    let mut next = || {
                        state = lag * state + step * rng.normal();
                        (0.02 * state).exp()
                    };
                    (0..n).map(|_| next()).collect()
                };
                let far = |_: &usize| {
                    series_unpaired(&list(), &list(), 0.01).unwrap().verdict() != Verdict::NoDifference
                };
                let far = (0..1_000).filter(far).count();
                println!("lag-1 {lag}, {n} numbers: {far} of 1,000");
                // Nominal 10, and three binomial errors.
                assert!(far <= 19, "lag-1 {lag}, {n} numbers: {far} of 1,000");
            }
        }
    }

    /// Planted fault: quotients and differences of the numbers themselves, which overflow: a panic, or no number.
    #[test]
    fn numbers_of_any_size_are_compared() {
        let sizes = [5e-324, 1e-310, 1e-300, 1.0, 1e300, 8e307];
        for [low, high] in sizes.iter().flat_map(|low| sizes.map(|high| [*low, high])) {
            for spread in [0.0, 0.01] {
                let list =
                    |of: f64| (0..20).map(|at| of * (1.0 + spread * f64::from(at % 7))).collect::<Vec<_>>();
                for told in both(&list(low), &list(high)) {
                    let Told { estimate, .. } = told;
                    assert!(estimate.log_ratio.is_finite() && estimate.half_width.is_finite(), "{told:?}");
                    let wanted = match low.total_cmp(&high) {
                        std::cmp::Ordering::Less => Verdict::Worse,
                        std::cmp::Ordering::Equal => Verdict::NoDifference,
                        std::cmp::Ordering::Greater => Verdict::Better,
                    };
                    assert_eq!(told.verdict(), wanted, "{low:e} {high:e} {spread}: {told:?}");
                }
            }
        }
    }
}

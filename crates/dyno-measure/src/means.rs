//! What trimmed means leave out of two lists: numbers far beyond the others, of which one side has more.
//!
//! A trimmed mean says what a typical number is. A change by which nine numbers of ten are cheaper by 3 % and the tenth ten
//! times as dear is better by it, and much worse for who pays for all of them. `dyno judge` asks it of two lists, beside
//! [`dependence`](crate::dependence); a climb's judge has its own tests on blocks.

use crate::dependence::logs;
use crate::estimate::{Estimate, PAIRS_MIN};
use crate::judge::{BURST_ROBUST_SIGMAS, OUTLIER_SIGMAS, saved_percent};
use crate::normal::normal_quantile;
use crate::shares::leans;
use crate::stats::{MAD_SIGMA, Sorted, deviation, mean, median};
use crate::student::student;

/// Typical numbers and means that differ by less say the same: what is worth having, percent of what is saved.
const APART_PERCENT: f64 = 1.0;

/// The means of two lists that say another thing than their typical numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Means {
    /// ln of the ratio of the arithmetic means.
    pub estimate: Estimate,
    /// Numbers (pairs, where they are paired) beyond the noise of the others that make B's share larger, and that make it smaller.
    pub beyond: [usize; 2],
    /// Of so many.
    pub of: usize,
    /// Whether these lean to one side, more than noise that hits both alike makes them: then the means are an answer of their own.
    /// Else they only lie outside of what the typical numbers' interval seems to say of them.
    pub lean: bool,
}

/// The means of lists that are paired by position, where they are another answer than `typical`, ln(B / A) of trimmed means:
/// outside of its interval, or because numbers far beyond the others are one side's.
#[must_use]
pub fn means_paired(a: &[f64], b: &[f64], typical: &Estimate, alpha: f64) -> Option<Means> {
    let ratios = logs(b).iter().zip(logs(a)).map(|(b, a)| b - a - typical.log_ratio).collect::<Vec<_>>();
    let ([ln_a, ln_b], [a, b]) = scaled([a, b]);
    let (of_a, of_b) = (mean(&a), mean(&b));
    // What each pair adds to the logarithm of the ratio.
    let added: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b / of_b - a / of_a).collect();
    let n = added.len();
    let (error, freedom) = error_of_mean(&added);
    let half_width = student(normal_quantile(1.0 - alpha / 2.0), freedom) * error;
    let log_ratio = (of_b / of_a).ln() + ln_b - ln_a;
    let estimate = Estimate { log_ratio, error, half_width, n, uncharged: 0.0 };
    told(estimate, typical, &Sides::of_pairs(&Beyond::of(&ratios)), n)
}

/// The same of lists in no common order.
#[must_use]
pub fn means_unpaired(a: &[f64], b: &[f64], typical: &Estimate, alpha: f64) -> Option<Means> {
    let beyond = [a, b].map(|values| Beyond::of(&centred(&logs(values))));
    let ([ln_a, ln_b], [a, b]) = scaled([a, b]);
    let [of_a, of_b] = [&a, &b].map(|values| {
        let (mean, (error, freedom)) = (mean(values), error_of_mean(values));
        (mean, error / mean, freedom)
    });
    let error = of_a.1.hypot(of_b.1);
    // Of the list that says less of its spread.
    let half_width = student(normal_quantile(1.0 - alpha / 2.0), of_a.2.min(of_b.2)) * error;
    let estimate = Estimate {
        log_ratio: (of_b.0 / of_a.0).ln() + ln_b - ln_a,
        error,
        half_width,
        n: a.len().min(b.len()),
        uncharged: 0.0,
    };
    told(estimate, typical, &Sides::of_lists(&beyond[0], &beyond[1]), a.len() + b.len())
}

/// Lists whose largest number is one, and the logarithms of what that was: sums of the largest numbers there are would have none.
fn scaled(lists: [&[f64]; 2]) -> ([f64; 2], [Vec<f64>; 2]) {
    let largest = lists.map(|list| list.iter().copied().fold(f64::MIN_POSITIVE, f64::max));
    let one = |at: usize| lists[at].iter().map(|value| value / largest[at]).collect();
    (largest.map(f64::ln), [one(0), one(1)])
}

/// Stretches of a list, each with one mean: what makes ten numbers in a row dear is one event, and no more than one.
const STRETCHES: f64 = 10.0;
/// Shorter ones are single numbers.
const STRETCH_MIN: usize = 4;

/// The standard error of a mean of untrimmed numbers, with its degrees of freedom: of single numbers, or of stretches of them,
/// whichever says more.
fn error_of_mean(values: &[f64]) -> (f64, f64) {
    let n = values.len();
    let single = deviation(values) / (n as f64).sqrt();
    let length = ((n as f64 / STRETCHES) as usize).max(STRETCH_MIN);
    let stretches: Vec<f64> = values.chunks_exact(length).map(mean).collect();
    let of_stretches = match stretches.len() {
        0 | 1 => 0.0,
        many => deviation(&stretches) / (many as f64).sqrt(),
    };
    (single.max(of_stretches), (stretches.len() as f64 - 1.0).max(1.0))
}

/// Differences to the median.
fn centred(values: &[f64]) -> Vec<f64> {
    let middle = median(values.iter().copied());
    values.iter().map(|value| value - middle).collect()
}

/// Values far from their centre, above it and below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Beyond {
    /// Beyond what single values of a normal noise reach.
    outliers: [usize; 2],
    /// Beyond all noise that was ever seen.
    far: [usize; 2],
    /// Of so many.
    of: usize,
}

impl Beyond {
    /// Of differences to a centre. What most of them are says how far is far; where half are alike, what the middle is.
    fn of(differences: &[f64]) -> Self {
        let sizes = Sorted::of(differences.iter().map(|one| one.abs()));
        let by_median = MAD_SIGMA * sizes.median();
        let by_most = sizes.quantile(MIDDLE).unwrap_or_default() / MIDDLE_SIGMAS;
        let sigma = by_median.max(by_most);
        let beyond = |sigmas: f64| {
            // Where most are alike, whatever is not lies beyond; rounding of logarithms is far below.
            let limit = (sigmas * sigma).max(ALIKE);
            let count = |is: &dyn Fn(f64) -> bool| differences.iter().filter(|one| is(**one)).count();
            [count(&|one| one > limit), count(&|one| one < -limit)]
        };
        Self { outliers: beyond(OUTLIER_SIGMAS), far: beyond(BURST_ROBUST_SIGMAS), of: differences.len() }
    }
}

const ALIKE: f64 = 1e-9;

/// Chance of outliers that lean to one side as much as that, under noise that both sides have: six of six are less. Who is taken
/// for one by chance is told both answers.
const LEANS_CHANCE: f64 = 0.05;
/// Three fifths of normal values lie within 0.842 deviations, which is what trimming leaves.
const MIDDLE: f64 = 0.6;
const MIDDLE_SIGMAS: f64 = 0.842;

/// What is beyond in two lists of numbers, or in one of pairs: dear ones and cheap ones.
struct Sides {
    /// Of each kind: how many make B's share larger, how many smaller.
    outliers: [[usize; 2]; 2],
    far: [[usize; 2]; 2],
    /// The part of B's numbers in all: where noise hits both sides alike, outliers fall to B as often as that.
    share: f64,
}

impl Sides {
    /// Of pairs. B's dear numbers and A's make a pair dearer and cheaper.
    fn of_pairs(pairs: &Beyond) -> Self {
        Self { outliers: [pairs.outliers, [0; 2]], far: [pairs.far, [0; 2]], share: 0.5 }
    }

    fn of_lists(a: &Beyond, b: &Beyond) -> Self {
        let of = |count: fn(&Beyond) -> [usize; 2]| {
            let ([a_dear, a_cheap], [b_dear, b_cheap]) = (count(a), count(b));
            // Each kind by itself: numbers that lie in two heaps are far from the middle of either.
            [[b_dear, a_dear], [a_cheap, b_cheap]]
        };
        let share = b.of as f64 / (a.of + b.of).max(1) as f64;
        Self { outliers: of(|one| one.outliers), far: of(|one| one.far), share }
    }

    /// Whether one side has more of them than noise that both have alike gives it.
    fn lean(&self) -> bool {
        // Cheap ones of A count for B as dear ones of B do.
        let shares = [self.share, 1.0 - self.share];
        let kinds = self.outliers.iter().filter(|[up, down]| up + down > 0).count().max(1) as f64;
        let by_many = self
            .outliers
            .iter()
            .zip(shares)
            .any(|(count, share)| leans(*count, share) < LEANS_CHANCE / kinds);
        // Of lists as long as each other a single one is told; the shorter one of others may have none by chance.
        let is_half = (self.share - 0.5).abs() < 1e-9;
        let most = if is_half { 1.0 } else { FAR_CHANCE };
        let by_far = self.far.iter().zip(shares).any(|([up, down], share)| match (up, down) {
            (0, 0) => false,
            (up, 0) => share.powi(*up as i32) < most,
            (0, down) => (1.0 - share).powi(*down as i32) < most,
            _ => false,
        });
        by_many || by_far
    }

    fn all(&self) -> [usize; 2] {
        [0, 1].map(|way| self.outliers.iter().map(|count| count[way]).sum())
    }
}

/// Chance that what is far beyond all noise stands in one of two lists alone whose lengths differ.
const FAR_CHANCE: f64 = 0.02;

/// Whether means say another thing than typical numbers and their interval: a reader of "at most 2.6 % either way" takes that for the
/// means as well, and must be told where it does not hold for them.
pub(crate) fn are_apart(means: &Estimate, typical: &Estimate) -> bool {
    (saved_percent(means.log_ratio) - saved_percent(typical.log_ratio)).abs() >= APART_PERCENT
}

/// Whether means lie outside of the interval that is claimed of typical numbers.
pub(crate) fn are_outside(means: &Estimate, typical: &Estimate) -> bool {
    let [low, high] = typical.ends();
    are_apart(means, typical) && !(low..=high).contains(&means.log_ratio)
}

fn told(estimate: Estimate, typical: &Estimate, sides: &Sides, of: usize) -> Option<Means> {
    let long_enough = estimate.n >= PAIRS_MIN && estimate.log_ratio.is_finite();
    let lean = are_apart(&estimate, typical) && sides.lean();
    let is_told = long_enough && (lean || are_outside(&estimate, typical));
    is_told.then_some(Means { estimate, beyond: sides.all(), of, lean })
}

#[cfg(test)]
mod edges;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Prng;
    use crate::dependence::{series_paired, series_unpaired};
    use crate::judge::Verdict;

    /// Typical numbers that are as large on either side, whatever their interval.
    const NONE: Estimate = Estimate { log_ratio: 0.0, error: 10.0, half_width: 30.0, n: 9, uncharged: 0.0 };

    /// Numbers around `level` with 2 % of noise, of which a part is so many times as large.
    fn list(rng: &mut Prng, n: usize, level: f64, part: f64, times: f64) -> Vec<f64> {
        let one = |rng: &mut Prng| {
            let value = level * (1.0 + 0.02 * rng.normal());
            if rng.unit() < part { times * value } else { value }
        };
        (0..n).map(|_| one(rng)).collect()
    }

    /// How often the means are told beside the typical numbers, paired or not.
    fn told_in(
        runs: usize,
        unpaired: bool,
        mut lists: impl FnMut() -> [Vec<f64>; 2],
    ) -> (f64, Option<Means>) {
        let mut last = None;
        let mut one = || {
            let [a, b] = lists();
            let typical = if unpaired { series_unpaired } else { series_paired };
            let typical = typical(&a, &b, 0.01).unwrap().estimate;
            let of = if unpaired { means_unpaired } else { means_paired };
            let told = of(&a, &b, &typical, 0.01).filter(|told| told.lean);
            last = told.or(last);
            told.is_some()
        };
        let told = (0..runs).filter(|_| one()).count() as f64 / runs as f64;
        (told, last)
    }

    /// Planted faults: only the sign test, to which one number in a hundred is chance; only what lies beyond all noise, to which
    /// numbers that are doubled are noise.
    #[test]
    fn a_side_that_has_dear_numbers_now_and_then_is_told() {
        let mut rng = Prng::new(11);
        // How many, how often, how many times as large: in so many of the lists at least one is there.
        for (n, part, times, least) in
            [(100, 0.1, 10.0, 0.99), (200, 0.02, 11.0, 0.95), (100, 0.12, 1.5, 0.75), (40, 0.2, 3.0, 0.7)]
        {
            for unpaired in [false, true] {
                let (told, last) = told_in(400, unpaired, || {
                    [list(&mut rng, n, 100.0, 0.0, 1.0), list(&mut rng, n, 97.0, part, times)]
                });
                println!("{n} numbers, {part} of them x{times}, unpaired {unpaired}: told {told:.3}");
                assert!(told >= least, "{n}, {part}, x{times}, unpaired {unpaired}: {told}");
                let Means { estimate, beyond, .. } = last.unwrap();
                assert!(estimate.log_ratio > -0.01 && beyond[0] > beyond[1], "{estimate:?} {beyond:?}");
                assert!(estimate.error > 0.0 && estimate.half_width > 2.0 * estimate.error);
            }
        }
    }

    /// Planted fault: a fair coin for lists of different lengths: of equal ones up to a quarter are called different.
    #[test]
    fn equal_lists_of_different_lengths_are_rarely_called_different() {
        let mut rng = Prng::new(16);
        for (short, long, part, times) in [(20, 200, 0.1, 10.0), (40, 400, 0.05, 3.0), (20, 1_000, 0.05, 3.0)]
        {
            for is_turned in [false, true] {
                let called = (0..400).filter(|_| {
                    let one = list(&mut rng, short, 100.0, part, times);
                    let other = list(&mut rng, long, 100.0, part, times);
                    let [a, b] = if is_turned { [other, one] } else { [one, other] };
                    let typical = series_unpaired(&a, &b, 0.01).unwrap().estimate;
                    let told = means_unpaired(&a, &b, &typical, 0.01);
                    told.is_some_and(|told| told.lean && Verdict::of(&told.estimate) != Verdict::NoDifference)
                });
                let called = called.count();
                println!("{short} and {long}, {part} x{times}, turned {is_turned}: {called} of 400");
                assert!(called <= 16, "{short}, {long}, {part}, x{times}, {is_turned}: {called} of 400");
            }
        }
        // By hand: of three, all to a list of a tenth of the numbers: 2 · 0.001; none to it: 0.729, on either side 1.
        assert!((leans([3, 0], 0.1) - 0.002).abs() < 1e-9 && leans([0, 3], 0.1) >= 1.0 - 1e-9);
        assert!((leans([6, 0], 0.5) - leans([6, 0], 0.5 + 1e-8)).abs() < 1e-6);
        assert!((leans([40, 461], 0.1) / leans([40, 460], 0.1) - 1.0).abs() < 0.2, "both ways meet");
    }

    /// Planted fault: what is apart is told without asking whether one side has it.
    #[test]
    fn noise_that_both_sides_have_is_no_answer_of_its_own() {
        let mut rng = Prng::new(12);
        for (n, part, times, most) in [(100, 0.0, 1.0, 0.0), (100, 0.1, 5.0, 0.08), (40, 0.1, 1.3, 0.05)] {
            for unpaired in [false, true] {
                let (told, _) = told_in(400, unpaired, || {
                    [100.0, 97.0].map(|level| list(&mut rng, n, level, part, times))
                });
                println!("{n} numbers, {part} of both x{times}, unpaired {unpaired}: told {told:.3}");
                assert!(told <= most, "{n}, {part}, x{times}, unpaired {unpaired}: {told}");
            }
        }
    }

    /// A neighbour's episode: ten numbers in a row of one side. Planted fault: the error is that of as many independent numbers, and
    /// nearly all equal lists differ.
    #[test]
    fn an_episode_is_one_event() {
        let mut rng = Prng::new(14);
        for unpaired in [false, true] {
            let called = (0..400).filter(|at| {
                let a = list(&mut rng, 100, 100.0, 0.0, 1.0);
                let mut b = list(&mut rng, 100, 100.0, 0.0, 1.0);
                b[at % 90..][..10].iter_mut().for_each(|value| *value *= 1.3);
                let of = if unpaired { means_unpaired } else { means_paired };
                of(&a, &b, &NONE, 0.01)
                    .is_some_and(|told| told.lean && Verdict::of(&told.estimate) != Verdict::NoDifference)
            });
            let called = called.count();
            assert!(called <= 8, "unpaired {unpaired}: {called} of 400");
        }
    }

    /// Planted fault: half to the power of thousands, which is nothing: then equal numbers of outliers lean.
    #[test]
    fn thousands_of_outliers_on_both_sides_lean_to_none() {
        let mut rng = Prng::new(15);
        let told = (0..40).filter(|_| {
            let [a, b] = [0, 1].map(|_| list(&mut rng, 12_000, 100.0, 0.05, 10.0));
            let typical = series_unpaired(&a, &b, 0.01).unwrap().estimate;
            means_unpaired(&a, &b, &typical, 0.01).is_some_and(|told| told.lean)
        });
        let told = told.count();
        assert!(told <= 8, "{told} of 40");
        let fair = |most: usize, all: usize| leans([most, all - most], 0.5);
        assert!(fair(700, 1_200) < 1e-7 && (fair(600, 1_200) - 1.0).abs() < 1e-6);
        assert!((fair(280, 501) / fair(280, 500) - 1.0).abs() < 0.2, "both ways meet");
    }

    /// B's mean is 30 or 45 % dear by rare numbers, of which a tenth of the lists has none. Planted fault: means are told only where
    /// outliers lean surely, which five of forty do not.
    #[test]
    fn no_interval_is_claimed_that_the_means_are_outside_of_without_their_being_told() {
        let mut rng = Prng::new(17);
        for (part, times, spread) in [(0.15, 3.0, 0.05), (0.05, 10.0, 0.05)] {
            for unpaired in [false, true] {
                let (mut claimed, mut told) = (0, 0);
                for _ in 0..200 {
                    let mut side = |part: f64| -> Vec<f64> {
                        let one = |rng: &mut Prng| {
                            let value = 100.0 * (spread * rng.normal()).exp();
                            if rng.unit() < part { times * value } else { value }
                        };
                        (0..40).map(|_| one(&mut rng)).collect()
                    };
                    let (a, b) = (side(0.0), side(part));
                    let typical = if unpaired { series_unpaired } else { series_paired };
                    let means = if unpaired { means_unpaired } else { means_paired };
                    let typical = typical(&a, &b, 0.01).unwrap().estimate;
                    let [low, high] = typical.ends();
                    let apart = (mean(&b) / mean(&a)).ln();
                    let is_claimed =
                        !(low..=high).contains(&apart) && (apart - typical.log_ratio).abs() > 0.02;
                    claimed += usize::from(is_claimed);
                    told += usize::from(is_claimed && means(&a, &b, &typical, 0.01).is_some());
                }
                println!("{part} x{times}, spread {spread}, unpaired {unpaired}: of {claimed} told {told}");
                assert!(
                    claimed >= 60 && told == claimed,
                    "{part} x{times}, unpaired {unpaired}: {told} of {claimed}"
                );
            }
        }
    }

    #[test]
    fn the_mean_of_both_lists_is_what_it_is_and_its_interval_holds_the_truth() {
        let (a, b) = ([10.0, 10.1, 11.0, 9.9, 9.0, 10.0], [10.1, 10.0, 11.1, 9.8, 9.0, 130.0]);
        let told = means_paired(&a, &b, &NONE, 0.01).unwrap();
        assert!((told.estimate.percent() - 200.0).abs() < 1e-9, "60 and 180 in all: {told:?}");
        assert_eq!((told.beyond, told.estimate.n), ([1, 0], 6));
        let even = [9.9, 10.0, 10.1, 10.0, 9.9, 10.1, 9.95, 10.05, 10.0, 10.0];
        let mut dear = even;
        dear[9] = 910.0;
        let told = means_unpaired(&dear, &even, &NONE, 0.01).unwrap();
        assert!((told.estimate.percent() + 90.0).abs() < 1e-9, "1,000 and 100 in all: {told:?}");
        assert_eq!((told.beyond, told.of), ([0, 1], 20));
        // Lists without any spread have nothing that is far.
        assert_eq!(means_paired(&[1.0; 6], &[1.0; 6], &NONE, 0.01), None);
        let mut rng = Prng::new(13);
        let held = (0..1_000).filter(|_| {
            let a = list(&mut rng, 200, 100.0, 0.0, 1.0);
            let b = list(&mut rng, 200, 100.0, 0.2, 3.0);
            let told = means_paired(&a, &b, &NONE, 0.01).unwrap().estimate;
            Verdict::of(&told) == Verdict::Worse && (told.log_ratio - 1.4_f64.ln()).abs() <= told.half_width
        });
        let held = held.count();
        assert!(held >= 960, "{held} of 1,000");
    }
}

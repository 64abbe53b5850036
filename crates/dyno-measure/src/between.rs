//! What servers of one setting differ by from one start to the next, and what an interval pays for it.
//!
//! A new process is a new draw of hashes, addresses and layout: its CPU per request differs from that of another start of
//! the same program, by 1 to 2 % on many machines, and no number of pairs takes that away. So the start is the unit of the
//! error. A few starts say little of their own spread; all trials of a climb together say enough. The judge adds what is
//! here to the error over pairs; nothing here decides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::normal::normal_below;
use crate::student::student;

/// No variance is smaller: values that are all alike have no spread to divide by.
const VARIANCE_MIN: f64 = 1e-16;
/// A trial whose own starts differ by more than chance (1 in 100) lets others' differ by is judged by its own alone.
const OWN_Z: f64 = 2.326;
/// Variance between starts of both sides that is supposed before anything was measured, as sure as one degree of freedom: half
/// a percent a start. Without it a few pairs of the first starts would have to show how much starts differ, and no effect
/// would be visible in a short climb.
const SUPPOSED: f64 = 5e-5;
/// Weights follow from the variance that follows from the weights: it has settled after a few rounds.
const ROUNDS: usize = 4;

/// What one trial shows: variances of log ratios between starts of both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Of the starts' own means.
    observed: f64,
    /// What of it the noise of their pairs explains.
    noise: f64,
    /// Starts less one.
    freedom: f64,
}

/// What is known of the variance of a log ratio between starts of both sides (twice that of one start).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Between {
    /// The estimate; below zero where starts differed by less than the noise of their pairs explains.
    pub variance: f64,
    /// Its standard error.
    pub error: f64,
}

impl Between {
    /// What is supposed before anything was measured.
    pub const SUPPOSED: Self = Self { variance: SUPPOSED, error: SUPPOSED * std::f64::consts::SQRT_2 };

    /// What trials say together, each as sure as it should be where starts differ as all of them say.
    #[must_use]
    pub fn pooled(spreads: &[Spread]) -> Self {
        let mut known = Self::SUPPOSED;
        for _ in 0..ROUNDS {
            let expected = known.variance.max(0.0);
            let supposed = Self::SUPPOSED.error_at(expected).powi(-2);
            let weight = |spread: &Spread| spread.error(expected).powi(-2);
            let weights: f64 = supposed + spreads.iter().map(weight).sum::<f64>();
            let sum: f64 = spreads.iter().map(|spread| weight(spread) * spread.excess()).sum();
            known = Self { variance: (supposed * SUPPOSED + sum) / weights, error: weights.powf(-0.5) };
        }
        known
    }

    /// Standard deviation of one start of one side, in percent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        crate::units::percent_of_log((self.variance.max(0.0) / 2.0).sqrt())
    }

    /// Whether numbers that were read from a file make sense.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.variance.is_finite() && self.error.is_finite() && self.error > 0.0
    }

    /// With what a trial itself shows: by far the most where nothing was known, or where it differs from what was.
    fn with(self, own: Spread) -> (f64, f64) {
        let before = self.variance.max(0.0);
        if own.observed > (before + self.error + own.noise) * at_most(own.freedom) {
            return (own.excess(), own.error(own.excess().max(0.0)));
        }
        let (mut variance, mut error) = (before, self.error);
        for _ in 0..ROUNDS {
            let weights =
                [self.error_at(variance.max(0.0)), own.error(variance.max(0.0))].map(|error| error.powi(-2));
            let sum = weights[0] * self.variance + weights[1] * own.excess();
            (variance, error) = (sum / (weights[0] + weights[1]), (weights[0] + weights[1]).powf(-0.5));
        }
        (variance, error)
    }

    /// Its error where the variance is this: what is read from few starts is the less sure the larger it is.
    fn error_at(&self, variance: f64) -> f64 {
        self.error * (variance / self.variance.max(SUPPOSED)).max(1.0)
    }
}

impl Spread {
    /// Of values whose starts are known, one way of Fisher's analysis of variance; `None` with fewer than two starts, or
    /// where none has two values.
    #[must_use]
    pub(crate) fn of(values: &[(u32, f64)]) -> Option<Self> {
        let centre = values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64;
        Self::about(centre, values, 1.0)
    }

    /// The same where the values' mean is known to be zero, as it is of a setting against itself: then starts that all lie to one
    /// side differ as well, and none of them is spent on the mean.
    #[must_use]
    pub(crate) fn about_zero(values: &[(u32, f64)]) -> Option<Self> {
        Self::about(0.0, values, 0.0)
    }

    /// `spent` is one where the centre was read from these values, which costs a degree of freedom.
    fn about(centre: f64, values: &[(u32, f64)], spent: f64) -> Option<Self> {
        let starts = by_start(values);
        let (n, count) = (values.len() as f64, starts.len() as f64);
        if starts.len() < 2 || values.len() <= starts.len() {
            return None;
        }
        let (mut between, mut within, mut squares) = (0.0, 0.0, 0.0);
        for start in starts.values() {
            let mean = start.iter().sum::<f64>() / start.len() as f64;
            between += start.len() as f64 * (mean - centre).powi(2);
            within += start.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            squares += (start.len() as f64).powi(2);
        }
        let freedom = count - spent;
        let each = (n - spent * squares / n) / freedom;
        let variance = |sum: f64, freedom: f64| (sum / freedom / each).max(VARIANCE_MIN);
        Some(Self { observed: variance(between, freedom), noise: variance(within, n - count), freedom })
    }

    fn excess(&self) -> f64 {
        self.observed - self.noise
    }

    /// Standard error of [`Spread::excess`] where the variance between starts is this.
    fn error(&self, variance: f64) -> f64 {
        (variance + self.noise) * (2.0 / self.freedom).sqrt()
    }
}

/// Error and half width of an estimate over pairs that pays for the starts too; `freedom` is that of the pairs' own error. The values of the
/// pairs, each with its start, are those that the estimate is the mean of.
pub(crate) fn paid(
    error_of_pairs: f64,
    z: f64,
    freedom: f64,
    values: &[(u32, f64)],
    known: Between,
) -> [f64; 2] {
    let starts = by_start(values);
    let n = values.len() as f64;
    // A start counts for as much as it has pairs.
    let share: f64 = starts.values().map(|start| (start.len() as f64 / n).powi(2)).sum();
    let (variance, error) = Spread::of(values).map_or((known.variance, known.error), |own| known.with(own));
    let of_pairs = error_of_pairs.powi(2).max(VARIANCE_MIN);
    let whole = variance.max(0.0) * share + of_pairs;
    // Satterthwaite: the degrees that a sum of variances has, each as uncertain as it is.
    let uncertain = (share * error).powi(2) + 2.0 * of_pairs.powi(2) / freedom;
    let freedom = (2.0 * whole.powi(2) / uncertain).max(1.0);
    // Without any spread there is nothing to widen.
    let error = if error_of_pairs > 0.0 || variance > VARIANCE_MIN { whole.sqrt() } else { 0.0 };
    [error, student(z, freedom) * error]
}

/// What a comparison yet to be made would have: the standard error of its effect, and the half width of its interval.
#[must_use]
pub fn planned(known: Between, pair_variance: f64, pairs: usize, starts: usize, z: f64) -> [f64; 2] {
    assert!(pairs > 0 && starts > 0, "a comparison has a pair and a start");
    let (share, of_pairs) = (1.0 / starts as f64, (pair_variance / pairs as f64).max(VARIANCE_MIN));
    let whole = known.variance.max(0.0) * share + of_pairs;
    // What its own starts will show.
    let own =
        (known.variance.max(0.0) + of_pairs * starts as f64) * (2.0 / (starts as f64 - 1.0).max(1.0)).sqrt();
    let error = (known.error.powi(-2) + own.powi(-2)).powf(-0.5);
    let uncertain = (share * error).powi(2) + 2.0 * of_pairs.powi(2) / pairs as f64;
    let freedom = (2.0 * whole.powi(2) / uncertain).max(1.0);
    [whole.sqrt(), student(z, freedom) * whole.sqrt()]
}

/// The effect that all of these comparisons, each of an error and a half width, would see with this chance.
#[must_use]
pub fn visible(comparisons: &[[f64; 2]], chance: f64) -> f64 {
    let seen = |effect: f64| -> f64 {
        comparisons.iter().map(|[error, half_width]| normal_below((effect - half_width) / error)).product()
    };
    let (mut low, mut high) = (0.0, comparisons.iter().map(|[error, half]| half + 10.0 * error).sum::<f64>());
    // Sixty halvings are more than a number's bits.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if seen(middle) < chance { low = middle } else { high = middle }
    }
    high
}

fn by_start(values: &[(u32, f64)]) -> BTreeMap<u32, Vec<f64>> {
    let mut starts = BTreeMap::<u32, Vec<f64>>::new();
    for (start, value) in values {
        starts.entry(*start).or_default().push(*value);
    }
    starts
}

/// How many times a variance of so many degrees of freedom exceeds what it should be once in a hundred (Wilson and Hilferty).
fn at_most(freedom: f64) -> f64 {
    let part = 2.0 / (9.0 * freedom);
    (1.0 - part + OWN_Z * part.sqrt()).powi(3)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Prng;

    /// Values of so many starts, each with so many pairs.
    fn values(rng: &mut Prng, starts: u32, each: usize, between: f64, within: f64) -> Vec<(u32, f64)> {
        let mut all = Vec::new();
        for start in 0..starts {
            let draw = between * rng.normal();
            all.extend((0..each).map(|_| (start, draw + within * rng.normal())));
        }
        all
    }

    #[test]
    fn the_variance_between_starts_is_found_whatever_the_pairs_noise() {
        let mut rng = Prng::new(5);
        for (between, within) in [(0.0, 0.05), (0.01, 0.05), (0.03, 0.02)] {
            let spreads: Vec<Spread> =
                (0..800).filter_map(|_| Spread::of(&values(&mut rng, 8, 15, between, within))).collect();
            let known = Between::pooled(&spreads);
            let apart = (known.variance - between * between).abs();
            println!("{between}, {within}: {:.2e} ± {:.1e}", known.variance, known.error);
            assert!(apart < 4.0 * known.error, "{between}, {within}: {known:?}");
        }
    }

    #[test]
    fn unequal_starts_are_weighed_by_their_pairs() {
        let mut rng = Prng::new(6);
        let mean = (0..4_000).filter_map(|_| {
            let mut all = values(&mut rng, 6, 20, 0.01, 0.03);
            all.extend(values(&mut rng, 1, 3, 0.01, 0.03).into_iter().map(|(_, value)| (6, value)));
            Spread::of(&all).map(|spread| spread.excess())
        });
        let excess: Vec<f64> = mean.collect();
        let mean = crate::stats::mean(&excess);
        assert!((mean / 1e-4 - 1.0).abs() < 0.1, "{mean:e} instead of 1e-4");
    }

    /// Planted faults: the mean is taken from them, so that two starts of 6 % to one side are alike; or one is spent on it.
    #[test]
    fn starts_of_a_setting_against_itself_differ_from_zero() {
        let two = [(0, -0.06), (0, -0.05), (1, -0.07), (1, -0.06)];
        let (about_mean, about_zero) = (Spread::of(&two).unwrap(), Spread::about_zero(&two).unwrap());
        assert!(about_mean.observed < 2e-4 && near(about_mean.freedom, 1.0), "{about_mean:?}");
        // 2 · 0.055² + 2 · 0.065² over two starts of two values each.
        assert!(near(about_zero.observed, 0.003_625) && near(about_zero.freedom, 2.0), "{about_zero:?}");
        assert!(near(about_zero.noise, about_mean.noise));
        let mut rng = Prng::new(8);
        let uneven = |_| {
            let mut all = values(&mut rng, 3, 20, 0.01, 0.03);
            all.extend(values(&mut rng, 1, 4, 0.01, 0.03).into_iter().map(|(_, value)| (3, value)));
            Spread::about_zero(&all).map(|spread| spread.excess())
        };
        let excess: Vec<f64> = (0..4_000).filter_map(uneven).collect();
        let mean = crate::stats::mean(&excess);
        assert!((mean / 1e-4 - 1.0).abs() < 0.1, "{mean:e} instead of 1e-4");
    }

    #[test]
    fn one_start_or_a_value_each_says_nothing() {
        assert_eq!(Spread::of(&[(0, 1.0), (0, 2.0), (0, 3.0)]), None);
        assert_eq!(Spread::of(&[(0, 1.0), (1, 2.0), (2, 3.0)]), None);
        assert!((Between::pooled(&[]).variance / SUPPOSED - 1.0).abs() < 1e-9);
        assert!(Between::SUPPOSED.is_sound() && !Between { variance: 0.0, error: 0.0 }.is_sound());
    }

    #[test]
    fn chance_alone_exceeds_the_bound_once_in_a_hundred() {
        let mut rng = Prng::new(7);
        for freedom in [3_usize, 7, 15] {
            let beyond = (0..20_000).filter(|_| {
                let squares: f64 = (0..freedom).map(|_| rng.normal().powi(2)).sum();
                squares / freedom as f64 > at_most(freedom as f64)
            });
            let share = beyond.count() as f64 / 20_000.0;
            assert!((0.007..0.013).contains(&share), "{freedom} degrees: {share}");
        }
    }

    fn near(read: f64, wanted: f64) -> bool {
        (read - wanted).abs() <= 1e-9 * wanted.abs().max(1e-9)
    }

    /// Starts of 1, 3 and of 5, 7: a centre of 4, between them 2 · 2² + 2 · 2² = 16, within 2 + 2 over two degrees, and a start
    /// counts for two values. Then of 0, 2, 4 and of 9: between them 3 · 1.75² + 5.25² = 36.75, within 8 over two degrees, and
    /// (4 − (9 + 1) / 4) / 1 = 1.5 values a start.
    #[test]
    fn a_spread_is_that_of_fishers_analysis_of_variance() {
        let two = Spread::of(&[(7, 1.0), (9, 5.0), (7, 3.0), (9, 7.0)]).unwrap();
        assert!(near(two.observed, 8.0) && near(two.noise, 1.0) && near(two.freedom, 1.0), "{two:?}");
        assert!(near(two.excess(), 7.0));
        // (variance + noise) · √(2 / 1).
        assert!(near(two.error(0.0), 2_f64.sqrt()) && near(two.error(7.0), 8.0 * 2_f64.sqrt()));
        // Of eight degrees, a half.
        assert!(near(Spread { freedom: 8.0, ..two }.error(3.0), 2.0));
        let uneven = Spread::of(&[(0, 0.0), (0, 2.0), (0, 4.0), (1, 9.0)]).unwrap();
        assert!(near(uneven.observed, 24.5) && near(uneven.noise, 8.0 / 3.0), "{uneven:?}");
        let alike = Spread::of(&[(0, 3.0), (0, 3.0), (1, 3.0)]).unwrap();
        assert_eq!([alike.observed, alike.noise], [VARIANCE_MIN; 2], "there is something to divide by");
    }

    #[test]
    fn what_is_known_is_as_unsure_as_the_variance_is_large() {
        let known = Between { variance: 2.0 * SUPPOSED, error: 1e-5 };
        for (times, wanted) in [(1.0, 1e-5), (2.0, 1e-5), (4.0, 2e-5), (0.0, 1e-5)] {
            assert!(near(known.error_at(times * SUPPOSED), wanted), "{times}");
        }
        // Below what is supposed it is held against that.
        assert!(near(Between { variance: 0.0, error: 1e-5 }.error_at(3.0 * SUPPOSED), 3e-5));
    }

    /// At one degree of freedom chance exceeds a variance 6.58 times once in a hundred: a noise of 0.1 is let be 0.66.
    #[test]
    fn a_trial_whose_starts_differ_by_more_than_chance_is_judged_by_its_own() {
        assert!((at_most(1.0) - 6.584_04).abs() < 1e-4, "{}", at_most(1.0));
        assert!((at_most(4.0) - 3.325_88).abs() < 1e-4, "{}", at_most(4.0));
        let own = |observed| Spread { observed, noise: 0.1, freedom: 1.0 };
        let (variance, error) = Between::SUPPOSED.with(own(1.0));
        assert!(near(variance, 0.9) && near(error, 2_f64.sqrt()), "{variance} {error}: 0.9 + 0.1, times √2");
        let (variance, error) = Between::SUPPOSED.with(own(0.6));
        assert!(variance < 1e-4 && error < 1e-4, "{variance} {error}: what was known counts for more");
    }

    #[test]
    fn numbers_without_sense_are_no_variance() {
        for (variance, error, sound) in [
            (0.0, 1e-9, true),
            (-1e-5, 1e-5, true),
            (0.0, 0.0, false),
            (0.0, -1e-5, false),
            (0.0, f64::INFINITY, false),
            (f64::INFINITY, 1e-5, false),
            (f64::NAN, 1e-5, false),
            (0.0, f64::NAN, false),
        ] {
            assert_eq!(Between { variance, error }.is_sound(), sound, "{variance} {error}");
        }
    }

    /// Half of the variance of both sides is one side's: √(2e-4 / 2) = 0.01 (log).
    #[test]
    fn what_one_start_differs_by_is_told_in_percent() {
        let percent = |variance| Between { variance, error: 1e-5 }.percent();
        assert!((percent(2e-4) - 1.005_017).abs() < 1e-5, "{}", percent(2e-4));
        assert_eq!([percent(0.0), percent(-1e-4)], [0.0; 2]);
    }

    /// Four starts of a pair each: 1e-4 / 4 of what starts differ by, and 0.005² = 2.5e-5 of the pairs.
    #[test]
    fn an_estimate_pays_for_its_starts_and_for_its_pairs() {
        let known = Between { variance: 1e-4, error: 1e-6 };
        let four: Vec<(u32, f64)> = (0..4).map(|start| (start, 0.1)).collect();
        let [error, half_width] = paid(0.005, 2.576, 1e6, &four, known);
        assert!(near(error, 5e-5_f64.sqrt()), "{error}");
        // As sure of both as that, it is the normal quantile's.
        assert!((half_width / error - 2.576).abs() < 0.01, "{half_width}");
        let one: Vec<(u32, f64)> = (0..4).map(|_| (0, 0.1)).collect();
        let [error, _] = paid(0.0, 2.576, 3.0, &one, known);
        assert!((error - 0.01).abs() < 1e-9, "all of it in one start: {error}");
        let nothing = Between { variance: 0.0, error: 1e-6 };
        assert_eq!(paid(0.0, 2.576, 3.0, &one, nothing), [0.0; 2], "nothing is to be widened");
        let [error, _] = paid(0.02, 2.576, 3.0, &one, nothing);
        assert!(near(error, 0.02), "{error}");
    }

    #[test]
    fn a_comparison_to_come_pays_as_one_that_was_made() {
        let known = Between { variance: 1e-4, error: 1e-6 };
        let [error, half_width] = planned(known, 4e-4, 16, 4, 2.576);
        assert!(near(error, 5e-5_f64.sqrt()) && half_width > 2.576 * error, "{error} {half_width}");
        let [error, _] = planned(Between { variance: -1e-4, ..known }, 4e-4, 16, 4, 2.576);
        assert!(near(error, 2.5e-5_f64.sqrt()), "less than nothing between starts is nothing: {error}");
        let [one, many] = [1, 100].map(|starts| planned(known, 4e-4, 400, starts, 2.576)[0]);
        assert!(near(one, 1.01e-4_f64.sqrt()) && near(many, 2e-6_f64.sqrt()), "{one} {many}");
    }

    /// Satterthwaite's degrees by hand. Of pairs 2.5e-5 with ten degrees, of starts a quarter of 1e-4, known to a quarter of 2e-5:
    /// 2 · (5e-5)² / ((5e-6)² + 2 · (2.5e-5)² / 10) = 33.33. And of a comparison to come with sixteen pairs, whose own starts will
    /// know it to 2e-4 · √(2 / 3) where others do to 2e-4.
    #[test]
    fn an_interval_has_the_degrees_of_both_its_parts() {
        let known = Between { variance: 1e-4, error: 2e-5 };
        let four: Vec<(u32, f64)> = (0..4).map(|start| (start, 0.1)).collect();
        let [error, half_width] = paid(0.005, 2.576, 10.0, &four, known);
        assert!(near(half_width / error, student(2.576, 100.0 / 3.0)), "{}", half_width / error);
        let own = 2e-4 * (2.0_f64 / 3.0).sqrt();
        let both = 1.0 / (1.0 / 4e-8 + 1.0 / (own * own));
        let freedom = 2.0 * 25e-10 / (both / 16.0 + 2.0 * 6.25e-10 / 16.0);
        let [error, half_width] = planned(Between { variance: 1e-4, error: 2e-4 }, 4e-4, 16, 4, 2.576);
        assert!(near(half_width / error, student(2.576, freedom)), "{} {freedom}", half_width / error);
    }

    /// (1 + 0.5 + 0.25) · 6.58404 = 11.522.
    #[test]
    fn what_is_more_than_chance_counts_what_was_known_its_error_and_the_noise() {
        let known = Between { variance: 1.0, error: 0.5 };
        let of = |observed| known.with(Spread { observed, noise: 0.25, freedom: 1.0 });
        let (variance, error) = of(11.6);
        assert!(near(variance, 11.35) && near(error, 11.6 * 2_f64.sqrt()), "{variance} {error}");
        let (variance, error) = of(11.4);
        assert!(variance < 2.0 && error < 1.0, "{variance} {error}: both together");
    }

    #[test]
    #[should_panic(expected = "a comparison has a pair and a start")]
    fn a_comparison_without_pairs_is_never_planned() {
        let _ = planned(Between::SUPPOSED, 4e-4, 0, 4, 2.576);
    }

    #[test]
    #[should_panic(expected = "a comparison has a pair and a start")]
    fn a_comparison_without_starts_is_never_planned() {
        let _ = planned(Between::SUPPOSED, 4e-4, 16, 0, 2.576);
    }

    /// An effect as large as the half width is seen in half of the cases; in eight of ten 0.8416 errors more are needed; and
    /// two that must both see it, each in √½, need 0.545.
    #[test]
    fn an_effect_is_visible_where_all_comparisons_see_it() {
        let one = [0.01, 0.03];
        for (comparisons, chance, wanted) in [
            (&[one][..], 0.5, 0.03),
            (&[one][..], 0.8, 0.038_416),
            (&[one, one][..], 0.5, 0.035_450),
            (&[one, [0.001, 0.1]][..], 0.5, 0.1),
        ] {
            let read = visible(comparisons, chance);
            assert!((read - wanted).abs() < 1e-5, "{comparisons:?}, {chance}: {read}");
        }
    }
}

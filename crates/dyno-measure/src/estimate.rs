//! Estimates of B against A with their errors: the trimmed mean of log ratios, and the ratio of totals.
//!
//! The judge decides by them, `rounds` reads levels with them, and `dyno judge` compares two lists of numbers. Nothing here
//! knows when to look or what an effect is worth.

use crate::Prng;
use crate::between::{Between, Spread, paid};
use crate::normal::normal_quantile;
use crate::series::{Metric, Pair};
use crate::student::{expanded, student};

/// Share of the ratios cut off at each end.
const TRIM: f64 = 0.2;
/// Fewest values whose spread can be estimated after trimming.
pub const PAIRS_MIN: usize = 5;
/// Resamples of a bootstrap; its error of the standard error is then 5 %.
const RESAMPLES: usize = 200;
/// Neighbouring pairs resampled together: drift makes neighbours alike (autocorrelation is 0.5 at half a second).
const RESAMPLE_BLOCK: usize = 5;
/// How far the error over four instances must exceed that over pairs: by chance it does so once in ten trials (χ², 3
/// degrees of freedom). Taking the larger of two equal errors every time would cost a tenth of the power for nothing.
const INSTANCES_DIFFER: f64 = 1.44;

/// A log ratio with the half width of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// ln(B / A).
    pub log_ratio: f64,
    /// Standard error of it.
    pub error: f64,
    /// Half width of the interval.
    pub half_width: f64,
    /// Values it rests on.
    pub n: usize,
    /// What the centre would move by if CPU that was burnt outside of blocks were not charged to them: the truth may lie there
    /// as well, and the interval reaches so far.
    pub uncharged: f64,
}

impl Estimate {
    /// Both ends of the interval, log.
    #[must_use]
    pub fn ends(&self) -> [f64; 2] {
        let [low, high] = [self.uncharged.min(0.0), self.uncharged.max(0.0)];
        [self.log_ratio + low - self.half_width, self.log_ratio + high + self.half_width]
    }

    /// Where the centre lies nearest to zero, whatever of the CPU outside of blocks is charged, log.
    #[must_use]
    pub fn nearest(&self) -> f64 {
        let other = self.log_ratio + self.uncharged;
        match self.log_ratio * other > 0.0 {
            true if other.abs() < self.log_ratio.abs() => other,
            true => self.log_ratio,
            false => 0.0,
        }
    }

    /// B's change against A, in percent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        crate::units::percent_of_log(self.log_ratio)
    }

    /// Both ends of the interval, in percent.
    #[must_use]
    pub fn interval_percent(&self) -> [f64; 2] {
        self.ends().map(crate::units::percent_of_log)
    }

    /// The largest effect, either way, that the interval allows, in percent.
    #[must_use]
    pub fn at_most_percent(&self) -> f64 {
        crate::units::percent_of_log(self.at_most())
    }

    /// The same, log.
    pub(crate) fn at_most(&self) -> f64 {
        let [low, high] = self.ends();
        low.abs().max(high.abs())
    }

    /// Whether the values had any spread: without one there is nothing to hold an effect against. Numbers that were rounded
    /// to a few steps are all alike after trimming, which says how coarse they are, not how sure.
    #[must_use]
    pub fn has_spread(&self) -> bool {
        self.error > 0.0
    }

    /// Whether zero lies outside the interval.
    pub(crate) fn excludes_zero(&self) -> bool {
        let [low, high] = self.ends();
        self.has_spread() && (low > 0.0 || high < 0.0)
    }
}

/// The trimmed mean of log ratios with its winsorised error; `z` as a normal quantile, widened to Student's t.
///
/// # Panics
/// With fewer than [`PAIRS_MIN`] values.
#[must_use]
pub fn trimmed_mean(ratios: &[f64], z: f64) -> Estimate {
    assert!(ratios.len() >= PAIRS_MIN, "{} values: too few to trim", ratios.len());
    let (mean, error, freedom) = yuen(ratios);
    Estimate {
        log_ratio: mean,
        error,
        half_width: expanded(z, freedom) * error,
        n: ratios.len(),
        uncharged: 0.0,
    }
}

/// The trimmed mean alone, of three values or more.
pub(crate) fn trimmed(values: &[f64]) -> f64 {
    yuen(values).0
}

/// What each value adds to the trimmed mean: their mean is that mean, and their deviation over √n its winsorised error. Sums
/// over them say of parts of the values what the trimmed mean of all would not.
pub(crate) fn influences(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let cut = (TRIM * sorted.len() as f64) as usize;
    let kept = &sorted[cut..sorted.len() - cut];
    let (low, high) = (kept[0], kept[kept.len() - 1]);
    let winsorised: Vec<f64> = values.iter().map(|value| value.clamp(low, high)).collect();
    let (centre, trimmed) = (mean(&winsorised), mean(kept));
    winsorised.iter().map(|value| trimmed + (value - centre) / (1.0 - 2.0 * TRIM)).collect()
}

/// Trimmed mean, winsorised standard error, degrees of freedom.
fn yuen(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let cut = (TRIM * n as f64) as usize;
    let kept = &sorted[cut..n - cut];
    let trimmed = mean(kept);
    let (low, high) = (kept[0], kept[kept.len() - 1]);
    let winsorised: Vec<f64> = sorted.iter().map(|d| d.clamp(low, high)).collect();
    let share_kept = 1.0 - 2.0 * TRIM;
    let error = deviation(&winsorised) / (share_kept * (n as f64).sqrt());
    (trimmed, error, (kept.len() - 1) as f64)
}

/// A new process is a new draw of hashes and layout: where instances differ by more than their pairs' noise explains,
/// the error over instances is the one that counts.
pub(crate) fn widened(over_pairs: Estimate, over_instances: Option<f64>) -> Estimate {
    match over_instances {
        Some(error) if error > INSTANCES_DIFFER * over_pairs.error => {
            let half_width = over_pairs.half_width * (error / over_pairs.error);
            Estimate { error, half_width, ..over_pairs }
        }
        _ => over_pairs,
    }
}

/// Standard error from the spread of the instances' own trimmed means; `None` with fewer than three of them.
pub(crate) fn error_over_instances(metric: Metric, pairs: &[Pair]) -> Option<f64> {
    let means = instance_means(metric, pairs);
    (means.len() >= 3).then(|| deviation(&means) / (means.len() as f64).sqrt())
}

/// The effect as each instance saw it, as log ratios; instances with too few pairs are left out.
#[must_use]
pub fn instance_means(metric: Metric, pairs: &[Pair]) -> Vec<f64> {
    let mut of_instance = std::collections::BTreeMap::<u32, Vec<f64>>::new();
    for pair in pairs {
        of_instance.entry(pair.instance).or_default().push(pair.log_ratio(metric));
    }
    of_instance.values().filter(|ratios| ratios.len() >= PAIRS_MIN).map(|ratios| yuen(ratios).0).collect()
}

/// The trimmed mean of the pairs' log ratios, whose interval pays for what starts differ by.
///
/// # Panics
/// With fewer than [`PAIRS_MIN`] pairs.
pub(crate) fn over_starts(metric: Metric, pairs: &[Pair], z: f64, known: Between) -> Estimate {
    let ratios: Vec<f64> = pairs.iter().map(|pair| pair.log_ratio(metric)).collect();
    let freedom = yuen(&ratios).2;
    let over_pairs = trimmed_mean(&ratios, z);
    let [error, half_width] = paid(over_pairs.error, z, freedom, &starts_and_values(metric, pairs), known);
    Estimate { error, half_width, ..over_pairs }
}

/// The ratio of totals, whose interval pays for what starts differ by.
///
/// # Panics
/// With fewer than [`PAIRS_MIN`] pairs.
pub(crate) fn totals_over_starts(
    metric: Metric,
    pairs: &[Pair],
    z: f64,
    seed: u64,
    known: Between,
) -> Estimate {
    let freedom = (pairs.len().div_ceil(RESAMPLE_BLOCK) - 1).max(1) as f64;
    let values = starts_and_values(metric, pairs);
    let over_pairs = ratio_of_totals(metric, pairs, z, seed);
    let [error, half_width] = paid(over_pairs.error, z, freedom, &values, known);
    Estimate { error, half_width, ..over_pairs }
}

/// What a trial shows of the variance between starts.
#[must_use]
pub fn spread_of_starts(metric: Metric, pairs: &[Pair]) -> Option<Spread> {
    let enough = pairs.len() >= PAIRS_MIN;
    enough.then(|| Spread::of(&starts_and_values(metric, pairs))).flatten()
}

/// The same of a trial of a setting against itself, whose effect is known to be none.
#[must_use]
pub fn spread_of_equals(metric: Metric, pairs: &[Pair]) -> Option<Spread> {
    let enough = pairs.len() >= PAIRS_MIN;
    enough.then(|| Spread::about_zero(&starts_and_values(metric, pairs))).flatten()
}

fn starts_and_values(metric: Metric, pairs: &[Pair]) -> Vec<(u32, f64)> {
    let ratios: Vec<f64> = pairs.iter().map(|pair| pair.log_ratio(metric)).collect();
    pairs.iter().map(|pair| pair.instance).zip(influences(&ratios)).collect()
}

/// ln of (ΣB / replies) / (ΣA / replies), its error by a bootstrap over stretches of neighbouring pairs.
///
/// # Panics
/// With fewer than [`PAIRS_MIN`] pairs.
#[must_use]
pub fn ratio_of_totals(metric: Metric, pairs: &[Pair], z: f64, seed: u64) -> Estimate {
    assert!(pairs.len() >= PAIRS_MIN, "{} pairs: too few to resample", pairs.len());
    let mut rng = Prng::new(seed ^ pairs.len() as u64);
    let stretches: Vec<[f64; 4]> = pairs.chunks(RESAMPLE_BLOCK).map(|chunk| sums(metric, chunk)).collect();
    let resampled: Vec<f64> = (0..RESAMPLES).map(|_| log_of_sums(resample(&stretches, &mut rng))).collect();
    let error = deviation(&resampled);
    let half_width = expanded(z, (stretches.len() - 1).max(1) as f64) * error;
    Estimate {
        log_ratio: log_of_sums(stretches.iter().fold([0.0; 4], add)),
        error,
        half_width,
        n: pairs.len(),
        uncharged: 0.0,
    }
}

/// Numerators and replies of A and B.
pub(crate) fn sums(metric: Metric, pairs: &[Pair]) -> [f64; 4] {
    pairs.iter().fold([0.0; 4], |[a, an, b, bn], pair| {
        let (ra, rb) = (pair.a.replies as f64, pair.b.replies as f64);
        [a + pair.a.value(metric) * ra, an + ra, b + pair.b.value(metric) * rb, bn + rb]
    })
}

fn add(sum: [f64; 4], part: &[f64; 4]) -> [f64; 4] {
    std::array::from_fn(|i| sum[i] + part[i])
}

fn resample(stretches: &[[f64; 4]], rng: &mut Prng) -> [f64; 4] {
    let draws = (0..stretches.len()).map(|_| rng.below(stretches.len() as u64) as usize);
    draws.fold([0.0; 4], |sum, i| add(sum, &stretches[i]))
}

pub(crate) fn log_of_sums([a, an, b, bn]: [f64; 4]) -> f64 {
    ((b / bn) / (a / an)).ln()
}

/// The trimmed mean with an error that keeps its word for few values: Yuen's own factor, where [`yuen`] takes its limit for
/// many, and what Student's curve still misses of a trimmed mean (normal values, simulated: the 99 % point lies 17 % beyond
/// it at two degrees of freedom, 9 % at five, 2 % at seventeen; 45 % over the degrees covers all that were tried).
pub(crate) fn calibrated(values: &[f64]) -> (f64, f64, f64) {
    let (centre, error, freedom) = yuen(values);
    let (n, kept) = (values.len() as f64, freedom + 1.0);
    let exact = ((n - 1.0) / (kept * freedom)).sqrt() * (1.0 - 2.0 * TRIM) * n.sqrt();
    (centre, error * exact * (1.0 + 0.45 / freedom), freedom)
}

/// One look at two lists of numbers, paired by position, each pair independent of the next:
/// measured in turns. `None` when they differ in length or are too short.
#[must_use]
pub fn compare_paired(a: &[f64], b: &[f64], alpha: f64) -> Option<Estimate> {
    let long_enough = a.len() == b.len() && a.len() >= PAIRS_MIN;
    let ratios = || a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect::<Vec<_>>();
    long_enough.then(|| {
        let (log_ratio, error, freedom) = calibrated(&ratios());
        let half_width = student(normal_quantile(1.0 - alpha / 2.0), freedom) * error;
        Estimate { log_ratio, error, half_width, n: a.len(), uncharged: 0.0 }
    })
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(crate) fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0).max(1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::series::{Block, Side};

    fn near(read: f64, wanted: f64) -> bool {
        (read - wanted).abs() <= 1e-9 * wanted.abs().max(1.0)
    }

    /// One to ten: two are cut at each end, and 3, 3, 3, 4, 5, 6, 7, 8, 8, 8 deviate by √(42.5 / 9) = 2.17307.
    const TEN: [f64; 10] = [9.0, 2.0, 5.0, 10.0, 1.0, 7.0, 3.0, 8.0, 4.0, 6.0];

    #[test]
    fn a_trimmed_mean_has_the_winsorised_error_of_yuen() {
        let (mean, error, freedom) = yuen(&TEN);
        assert!(near(mean, 5.5) && near(freedom, 5.0), "{mean} {freedom}");
        // Over 60 % of √10.
        assert!(near(error, (42.5_f64 / 9.0).sqrt() / (0.6 * 10_f64.sqrt())), "{error}");
        let told = trimmed_mean(&TEN, 2.576);
        assert!(near(told.log_ratio, 5.5) && near(told.error, error) && told.n == 10, "{told:?}");
        assert!((told.half_width / error - 3.912_98).abs() < 1e-5, "five degrees of freedom: {told:?}");
        let wild: Vec<f64> = TEN.iter().map(|value| if *value > 8.0 { 1e9 } else { *value }).collect();
        assert_eq!(trimmed_mean(&wild, 2.576), told, "what is cut off counts for nothing");
    }

    #[test]
    #[should_panic(expected = "4 values: too few to trim")]
    fn four_values_are_never_trimmed() {
        let _ = trimmed_mean(&TEN[..4], 2.576);
    }

    #[test]
    fn influences_have_the_mean_and_the_error_of_the_trimmed_mean() {
        let (centre, error, _) = yuen(&TEN);
        let parts = influences(&TEN);
        assert!(near(mean(&parts), centre) && near(deviation(&parts) / 10_f64.sqrt(), error), "{parts:?}");
        // The first is 9, taken for 8: 5.5 + 2.5 / 0.6.
        assert!(near(parts[0], 5.5 + 2.5 / 0.6) && near(parts[4], 5.5 - 2.5 / 0.6), "{parts:?}");
    }

    /// Five values of which three are kept: √(4 / (3 · 2)) where the limit for many is 1 / (0.6 · √5), and 45 % over two degrees.
    #[test]
    fn the_error_of_few_values_is_calibrated() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        let (centre, error, freedom) = calibrated(&values);
        let (_, plain, _) = yuen(&values);
        assert!(near(centre, 3.0) && near(freedom, 2.0), "{centre} {freedom}");
        let exact = (4.0_f64 / 6.0).sqrt() * 0.6 * 5_f64.sqrt();
        assert!(near(error, plain * exact * 1.225), "{error} {plain}");
    }

    #[test]
    fn instances_widen_where_their_error_exceeds_that_of_the_pairs_by_44_percent() {
        let over_pairs = Estimate { log_ratio: 0.1, error: 1.0, half_width: 3.0, n: 40, uncharged: 0.0 };
        for over_instances in [None, Some(0.5), Some(1.44)] {
            assert_eq!(widened(over_pairs, over_instances), over_pairs, "{over_instances:?}");
        }
        let wide = widened(over_pairs, Some(1.5));
        assert_eq!(wide, Estimate { error: 1.5, half_width: 4.5, ..over_pairs });
    }

    /// Pairs of these instances whose B costs so many times what A does.
    fn pairs(each: &[(u32, f64)]) -> Vec<Pair> {
        let block = |ns: f64| Block { replies: 1_000, cpu_in_ns: (1e9 * ns) as u64, ..Block::default() };
        let pair = |(instance, times): &(u32, f64)| Pair {
            first: Side::A,
            instance: *instance,
            a: block(1.0),
            b: block(*times),
        };
        each.iter().map(pair).collect()
    }

    /// Instances whose pairs all cost 1, 2 and 4 times as much: 0, ln 2 and 2 ln 2, which deviate by ln 2.
    #[test]
    fn instances_tell_what_each_of_them_saw_from_five_pairs_on() {
        let of = |instances: u32, last: usize| {
            let each =
                |at: u32| vec![(at, 2_f64.powi(at as i32)); if at + 1 == instances { last } else { 5 }];
            pairs(&(0..instances).flat_map(each).collect::<Vec<_>>())
        };
        let metric = Metric::CpuPerRequest;
        let means = instance_means(metric, &of(3, 5));
        assert!(
            means.iter().zip([0.0, 1.0, 2.0]).all(|(read, times)| near(*read, times * 2_f64.ln())),
            "{means:?}"
        );
        let error = error_over_instances(metric, &of(3, 5)).unwrap();
        assert!(near(error, 2_f64.ln() / 3_f64.sqrt()), "{error}");
        assert_eq!(instance_means(metric, &of(3, 4)).len(), 2, "of four pairs nothing is told");
        assert_eq!(error_over_instances(metric, &of(3, 4)), None, "and two have no spread to speak of");
        assert!(
            spread_of_equals(metric, &of(2, 5)[3..7]).is_none()
                && spread_of_equals(metric, &of(2, 5)).is_some()
        );
        assert!(spread_of_starts(metric, &of(2, 5)).is_some());
        assert!(spread_of_starts(metric, &of(1, 5)).is_none(), "one start");
        assert!(spread_of_starts(metric, &of(2, 5)[3..7]).is_none(), "four pairs");
    }

    #[test]
    #[should_panic(expected = "4 pairs: too few to resample")]
    fn four_pairs_are_never_resampled() {
        let _ = ratio_of_totals(Metric::CpuPerRequest, &pairs(&[(0, 1.0); 4]), 2.576, 1);
    }

    /// Of six pairs one costs four times as much: nine instead of six. A stretch is five pairs and the other one.
    #[test]
    fn totals_hold_every_pair_and_a_seed_repeats_their_error() {
        let mut each = vec![(0, 1.0); 6];
        each[5].1 = 4.0;
        let pairs = pairs(&each);
        let told = ratio_of_totals(Metric::CpuPerRequest, &pairs, 2.576, 1);
        assert!(near(told.log_ratio, 1.5_f64.ln()) && told.error > 0.0 && told.n == 6, "{told:?}");
        assert_eq!(ratio_of_totals(Metric::CpuPerRequest, &pairs, 2.576, 1), told);
        let known = Between { variance: 1e-6, error: 1e-7 };
        let paid = totals_over_starts(Metric::CpuPerRequest, &pairs, 2.576, 1, known);
        assert!(paid.log_ratio == told.log_ratio && paid.error > told.error && paid.n == 6, "{paid:?}");
        // Five pairs are one stretch, which has no degree of freedom left: one is taken.
        let five = totals_over_starts(Metric::CpuPerRequest, &pairs[..5], 2.576, 1, known);
        assert!(
            five.log_ratio == 0.0 && five.error > 0.0 && five.half_width > 2.576 * five.error,
            "{five:?}"
        );
    }

    #[test]
    fn an_interval_is_told_in_percent_and_its_farther_end_too() {
        let told = Estimate { log_ratio: -0.02, error: 0.01, half_width: 0.03, n: 9, uncharged: 0.0 };
        assert!((told.percent() + 1.980_13).abs() < 1e-5);
        let [low, high] = told.interval_percent();
        assert!((low + 4.877_06).abs() < 1e-5 && (high - 1.005_02).abs() < 1e-5, "{low} {high}");
        // e^0.05: as far below as it may be, turned round.
        assert!((told.at_most_percent() - 5.127_11).abs() < 1e-5, "{}", told.at_most_percent());
        assert!(told.has_spread() && !Estimate { error: 0.0, ..told }.has_spread());
    }

    /// What is not charged widens the interval on its own side, and the centre that counts is the nearer one to nought.
    #[test]
    fn cpu_outside_of_blocks_widens_an_interval_to_its_own_side() {
        let told =
            |log_ratio, uncharged| Estimate { log_ratio, error: 0.01, half_width: 0.03, n: 9, uncharged };
        for (log_ratio, uncharged, ends, nearest, excludes) in [
            (0.1, 0.0, [0.07, 0.13], 0.1, true),
            (0.1, 0.02, [0.07, 0.15], 0.1, true),
            (0.1, -0.02, [0.05, 0.13], 0.08, true),
            (0.1, -0.08, [-0.01, 0.13], 0.02, false),
            (0.1, -0.2, [-0.13, 0.13], 0.0, false),
            (-0.1, 0.02, [-0.13, -0.05], -0.08, true),
            (-0.1, -0.02, [-0.15, -0.07], -0.1, true),
            (-0.1, 0.2, [-0.13, 0.13], 0.0, false),
            (0.1, -0.1, [-0.03, 0.13], 0.0, false),
        ] {
            let told = told(log_ratio, uncharged);
            let [low, high] = told.ends();
            assert!(near(low, ends[0]) && near(high, ends[1]), "{log_ratio} and {uncharged}: {low} {high}");
            assert!(near(told.nearest(), nearest), "{log_ratio} and {uncharged}: {}", told.nearest());
            assert!(near(told.at_most(), ends[0].abs().max(ends[1].abs())), "{told:?}");
            assert_eq!(told.excludes_zero(), excludes, "{told:?}");
            assert!(!Estimate { error: 0.0, ..told }.excludes_zero());
        }
    }

    /// Eleven pairs are three stretches: two degrees of freedom.
    #[test]
    fn totals_have_the_degrees_of_their_stretches() {
        let pairs = pairs(&[(0, 1.0), (0, 1.2), (0, 0.9), (0, 1.1), (0, 1.3)].repeat(3)[..11]);
        let told = ratio_of_totals(Metric::CpuPerRequest, &pairs, 2.576, 1);
        assert!(near(told.half_width, expanded(2.576, 2.0) * told.error), "{told:?}");
        let known = Between { variance: 0.0, error: 1e-9 };
        let paid = totals_over_starts(Metric::CpuPerRequest, &pairs, 2.576, 1, known);
        assert!(
            near(paid.error, told.error) && near(paid.half_width, student(2.576, 2.0) * told.error),
            "{paid:?}"
        );
        let trimmed = over_starts(Metric::CpuPerRequest, &pairs, 2.576, Between { variance: 1e-4, ..known });
        assert!(trimmed.error > 0.01 && trimmed.half_width > 2.576 * trimmed.error, "{trimmed:?}");
    }

    #[test]
    fn lists_are_compared_in_turns_where_they_are_as_long_as_each_other_and_long_enough() {
        let (a, b) = ([100.0; 6], [99.0, 98.0, 97.0, 98.0, 99.0, 97.0]);
        assert!(compare_paired(&a, &b, 0.01).is_some() && compare_paired(&a[..5], &b[..5], 0.01).is_some());
        assert!(
            compare_paired(&a, &b[..5], 0.01).is_none() && compare_paired(&a[..4], &b[..4], 0.01).is_none()
        );
        let told = compare_paired(&a, &b, 0.01).unwrap();
        assert!((-0.021..-0.019).contains(&told.log_ratio) && told.n == 6, "{told:?}");
        let [narrow, wide] = [0.1, 0.001].map(|alpha| compare_paired(&a, &b, alpha).unwrap().half_width);
        assert!(narrow < told.half_width && told.half_width < wide, "{narrow} {wide}");
    }
}

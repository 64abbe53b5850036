//! Whether something is more frequent on one side than on the other, from counts alone.
//!
//! Comparing two records asks it of errors, the judges of outliers. Pure.

use crate::normal::normal_below;

/// Largest count: each up to here is a number of 64 bits with a point, and nobody counts more requests.
const COUNT_MAX: u64 = 1 << 53;
/// From here up Stirling's series is exact to twelve digits.
const STIRLING_MIN: u64 = 16;

/// Chance that so many or more of `many[1]` cases are of a kind, where it is no more frequent there than among the `many[0]`
/// others, of which `some[0]` are: Fisher's exact test (1934), one-sided. 1 where the share is no larger.
///
/// Counts beyond [`COUNT_MAX`] are taken for it.
#[must_use]
pub fn by_chance(some: [u64; 2], many: [u64; 2]) -> f64 {
    let many = many.map(|count| count.min(COUNT_MAX));
    let some = [some[0].min(many[0]), some[1].min(many[1])];
    let (kind, all) = (some[0] + some[1], many[0] + many[1]);
    if u128::from(some[1]) * u128::from(many[0]) <= u128::from(some[0]) * u128::from(many[1]) {
        return 1.0;
    }
    let chance = |k: u64| (ln_choose(many[1], k) + ln_choose(many[0], kind - k) - ln_choose(all, kind)).exp();
    // Above the mean each term is smaller than the one before: the sum ends after some standard deviations.
    let (mut term, mut sum) = (chance(some[1]), 0.0);
    for k in some[1]..=kind.min(many[1]) {
        sum += term;
        // What is no number ends it too.
        if term.is_nan() || term <= sum * 1e-9 {
            break;
        }
        let left = (kind - k) as f64 * (many[1] - k) as f64;
        term *= left / ((k + 1) as f64 * (many[0] + k + 1 - kind) as f64);
    }
    sum.min(1.0)
}

fn ln_choose(all: u64, some: u64) -> f64 {
    ln_factorial(all) - ln_factorial(some) - ln_factorial(all - some)
}

fn ln_factorial(n: u64) -> f64 {
    if n < STIRLING_MIN {
        return (2..=n).map(|k| (k as f64).ln()).sum();
    }
    let x = n as f64;
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1_260.0 * x.powi(5));
    x * x.ln() - x + 0.5 * (std::f64::consts::TAU * x).ln() + series
}

/// So many are as good as a normal distribution; the chance that all of a thousand fall alike is smaller than any number.
const COUNTS_MANY: usize = 500;

/// Chance of counts as far from their share, or further, on either side (binomial).
pub(crate) fn leans([up, down]: [usize; 2], share: f64) -> f64 {
    let all = up + down;
    let (n, expected) = (all as f64, all as f64 * share);
    if all > COUNTS_MANY {
        let sd = (expected * (1.0 - share)).sqrt();
        return (2.0 * (1.0 - normal_below(((up as f64 - expected).abs() - 0.5) / sd))).clamp(0.0, 1.0);
    }
    // From none on, each from the one before.
    let mut chance = (1.0 - share).powi(all as i32);
    let (mut below, mut above) = (0.0, 0.0);
    for count in 0..=all {
        below += if count <= up { chance } else { 0.0 };
        above += if count >= up { chance } else { 0.0 };
        chance *= (n - count as f64) / (count as f64 + 1.0) * share / (1.0 - share);
    }
    (2.0 * below.min(above)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-6
    }

    /// Fisher's tea (The Design of Experiments, 1935, §5): of eight cups four are named, three or more of them rightly in 17 of 70.
    #[test]
    fn the_lady_tasting_tea() {
        assert!(is_near(by_chance([1, 3], [4, 4]), 17.0 / 70.0), "{}", by_chance([1, 3], [4, 4]));
        assert!(is_near(by_chance([0, 4], [4, 4]), 1.0 / 70.0));
        assert!(is_near(by_chance([0, 6], [7, 7]), 7.0 / 3_003.0));
    }

    /// Planted fault: the series begins where it is not good yet.
    #[test]
    fn the_series_goes_on_where_the_sum_ends() {
        let sum = |n: u64| (2..=n).map(|k| (k as f64).ln()).sum::<f64>();
        for n in [STIRLING_MIN - 1, STIRLING_MIN, STIRLING_MIN + 1, 170] {
            assert!((ln_factorial(n) - sum(n)).abs() < 1e-9, "{n}");
        }
    }

    #[test]
    fn counts_of_any_size_are_told_apart_by_their_shares() {
        assert_eq!(by_chance([0, 0], [10, 10]), 1.0);
        assert_eq!(by_chance([5, 5], [10, 10]), 1.0);
        assert!(is_near(by_chance([0, 1], [10_000_000, 10_000_000]), 0.5));
        assert!(by_chance([1, 400_000], [1_000_000, 1_000_000]) < 1e-9);
        assert!(by_chance([1_000, 1_010], [10_000_000; 2]) > 0.3);
        assert!(by_chance([1_000, 1_300], [10_000_000; 2]) < 1e-6);
        assert!(by_chance([0, 7], [7, 7]) < 1e-3 && by_chance([0, 3], [0, 3]) == 1.0);
    }

    fn choose(all: u64, some: u64) -> f64 {
        (0..some).map(|k| (all - k) as f64 / (k + 1) as f64).product()
    }

    /// Every table of up to seven on either side, by counting. Planted faults: a term too many or too few, a side for the other.
    #[test]
    fn small_tables_agree_with_their_ways_counted_one_by_one() {
        for [m0, m1] in (1..=7).flat_map(|m0| (1..=7).map(move |m1| [m0, m1])) {
            for [s0, s1] in (0..=m0).flat_map(|s0| (0..=m1).map(move |s1| [s0, s1])) {
                let kind = s0 + s1;
                let ways = |k: u64| if kind - k > m0 { 0.0 } else { choose(m1, k) * choose(m0, kind - k) };
                let counted = (s1..=kind.min(m1)).map(ways).sum::<f64>() / choose(m0 + m1, kind);
                let wanted = if s1 * m0 <= s0 * m1 { 1.0 } else { counted };
                let read = by_chance([s0, s1], [m0, m1]);
                assert!((read - wanted).abs() < 1e-6, "{s0} of {m0}, {s1} of {m1}: {read}, {wanted}");
            }
        }
    }

    #[test]
    fn more_of_a_kind_than_there_are_is_all_of_them() {
        assert_eq!(by_chance([0, 9], [4, 4]), by_chance([0, 4], [4, 4]));
        assert_eq!(by_chance([9, 4], [4, 4]), 1.0);
        assert_eq!(by_chance([u64::MAX; 2], [u64::MAX; 2]), 1.0);
    }

    /// Every split of up to seven, by their ways counted. Planted faults: a step of the sum that goes wrong, or a share that is
    /// taken for the other one.
    #[test]
    fn few_counts_lean_as_their_ways_say() {
        for share in [0.1, 0.5, 0.75] {
            for (up, down) in (0..=7).flat_map(|all| (0..=all).map(move |up| (up, all - up))) {
                let all = up + down;
                let ways = |k: usize| {
                    let chance = share_of(share, k) * share_of(1.0 - share, all - k);
                    choose(all as u64, k as u64) * chance
                };
                let (below, above): (f64, f64) = ((0..=up).map(ways).sum(), (up..=all).map(ways).sum());
                let (wanted, read) = ((2.0 * below.min(above)).min(1.0), leans([up, down], share));
                assert!((read - wanted).abs() < 1e-12, "{up} and {down} of {share}: {read}, {wanted}");
            }
        }
    }

    fn share_of(share: f64, times: usize) -> f64 {
        share.powi(times as i32)
    }

    /// Up to five hundred they are counted; from there on half a count is taken from their distance to what is expected: of 280 and
    /// 221 that is 29, of a deviation of √125.25.
    #[test]
    fn many_counts_lean_as_a_normal_curve_says() {
        for (counts, share, wanted) in [([280, 220], 0.5, 0.008261421817), ([60, 440], 0.1, 0.161974324454)] {
            let read = leans(counts, share);
            assert!((read - wanted).abs() < 1e-9, "{counts:?}: {read}");
        }
        for (counts, share, deviations) in [
            ([280, 221], 0.5, 29.0 / 125.25_f64.sqrt()),
            ([221, 280], 0.5, 29.0 / 125.25_f64.sqrt()),
            ([65, 436], 0.1, 14.4 / 45.09_f64.sqrt()),
            ([40, 461], 0.1, 9.6 / 45.09_f64.sqrt()),
        ] {
            let (read, wanted) = (leans(counts, share), 2.0 * normal_below(-deviations));
            assert!((read - wanted).abs() < 1e-9, "{counts:?}: {read}, {wanted}");
        }
        assert_eq!(leans([250, 251], 0.5), 1.0, "as many as can be");
    }
}

//! Means, spreads and middles of a few numbers: the one place where they are written.
//!
//! Used by everything that compares, estimates or prints. Sums go through the values in their order and nothing is weighted, so that
//! a record that is judged again gives the same figures to the last digit. Intervals are `student`'s and `judge`'s.

/// Normal quantile of a two-sided 95 % interval.
pub const Z_95: f64 = 1.959_964;

/// Normal quantile of a two-sided 99 % interval, to the three digits by which records of totals were judged.
pub const Z_99: f64 = 2.576;

/// A median absolute deviation as a standard deviation (normal distribution).
pub const MAD_SIGMA: f64 = 1.4826;

/// The sum over the number; not a number of none.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Squares over one less than the number; nought of a single value, which has no spread to speak of.
#[must_use]
pub fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    squares / (values.len() as f64 - 1.0).max(1.0)
}

/// The standard deviation of what the values are drawn from.
#[must_use]
pub fn deviation(values: &[f64]) -> f64 {
    variance(values).sqrt()
}

/// The value in the middle, or what lies between the two; not a number of none.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Sorted::of(values).median()
}

/// Values in rising order.
#[derive(Debug, Clone, PartialEq)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    /// Sorts; what is no number stands last.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }

    /// As [`median`].
    #[must_use]
    pub fn median(&self) -> f64 {
        match self.0.len() {
            0 => f64::NAN,
            n => f64::midpoint(self.0[(n - 1) / 2], self.0[n / 2]),
        }
    }

    /// The value that this share of the others lies below, one of those that are there: of an even number the upper of the
    /// two in the middle is the half's. `None` of none.
    ///
    /// # Panics
    /// Where `share` is not between 0 and 1.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        assert!((0.0..=1.0).contains(&share), "a share lies between 0 and 1, got {share}");
        let last = self.0.len().checked_sub(1)?;
        Some(self.0[(last as f64 * share).round() as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_spread_are_those_of_the_books() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!((mean(&values), variance(&values)), (5.0, 32.0 / 7.0));
        assert_eq!(deviation(&values), (32.0_f64 / 7.0).sqrt());
        assert_eq!((variance(&[3.0]), mean(&[]).is_nan()), (0.0, true));
    }

    #[test]
    fn the_median_stands_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let four = Sorted::of([4.0, 1.0, 3.0, 2.0]);
        let at = [0.0, 0.16, 0.17, 0.5, 1.0].map(|share| four.quantile(share));
        assert_eq!(at, [1.0, 1.0, 2.0, 3.0, 4.0].map(Some));
        assert_eq!(Sorted::of([]).quantile(0.5), None);
    }

    #[test]
    #[should_panic(expected = "a share lies between 0 and 1, got 1.01")]
    fn no_quantile_lies_beyond_all_values() {
        let _ = Sorted::of([1.0, 2.0]).quantile(1.01);
    }

    /// What is no number stands last, and spreads of two are their distance over √2.
    #[test]
    fn odd_values_stand_last_and_few_have_a_spread() {
        let odd = Sorted::of([f64::NAN, 2.0, -1.0]);
        assert_eq!((odd.quantile(0.0), odd.median()), (Some(-1.0), 2.0));
        assert!(odd.quantile(1.0).is_some_and(f64::is_nan));
        assert!((deviation(&[1.0, 3.0]) - 2_f64.sqrt()).abs() < 1e-12);
        assert_eq!(median([7.0]), 7.0);
    }
}

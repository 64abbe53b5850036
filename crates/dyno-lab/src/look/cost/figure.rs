//! A mean with its interval, of values each of which is a fresh start of what is measured.

use dyno_measure::student::student;
use dyno_record::facts::Figure;

/// The normal quantile of a 95 % interval.
const Z: f64 = 1.96;

/// The mean of the values, with Student's interval: few starts make it wide.
///
/// # Panics
/// With fewer than two values.
pub(super) fn figure(values: &[f64]) -> Figure {
    assert!(values.len() >= 2, "{} values have no spread", values.len());
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student(Z, n - 1.0) * (variance / n).sqrt();
    Figure { value: mean, interval: [mean - half, mean + half], n: values.len() as u32 }
}

/// The middle one: a block that somebody interrupted says nothing of what is measured.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_make_a_wide_interval_and_equal_ones_none() {
        let few = figure(&[1.0, 3.0]);
        assert_eq!((few.value, few.n), (2.0, 2));
        assert!(few.interval[0] < -10.0, "one degree of freedom: {few:?}");
        let equal = figure(&[2.0; 8]);
        assert_eq!((equal.value, equal.interval), (2.0, [2.0, 2.0]));
        assert_eq!(median(&mut [9.0, 1.0, 2.0]), 2.0);
    }
}

//! A mean with its interval: Student's, over values that are independent of each other.

use dyno_measure::stats::{self, Z_95};
use dyno_measure::student::{chance, student};

/// Fewest values with a spread.
pub(super) const VALUES_MIN: usize = 3;

/// A mean of some values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mean {
    pub(super) mean: f64,
    /// Of its 95 % interval.
    pub(super) half_width: f64,
    /// The values' standard deviation.
    pub(super) sd: f64,
    pub(super) n: usize,
    /// How often chance alone gives as much.
    pub(super) p: f64,
}

impl Mean {
    /// `None` with too few values.
    pub(super) fn of(values: &[f64]) -> Option<Mean> {
        if values.len() < VALUES_MIN {
            return None;
        }
        let n = values.len() as f64;
        let (mean, sd) = (stats::mean(values), stats::deviation(values));
        let error = sd / n.sqrt();
        let half_width = student(Z_95, n - 1.0) * error;
        // Equal values have no spread: nothing is certain of them.
        let p = if error > 0.0 { chance(mean / error, n - 1.0) } else { 1.0 };
        debug_assert!((0.0..=1.0).contains(&p) && !half_width.is_sign_negative());
        Some(Mean { mean, half_width, sd, n: values.len(), p })
    }

    pub(super) fn interval(&self) -> [f64; 2] {
        [self.mean - self.half_width, self.mean + self.half_width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_students_and_equal_values_prove_nothing() {
        let found = Mean::of(&[1.0, 2.0, 3.0, 4.0]).expect("four values");
        // t of 95 % at three degrees of freedom is 3.182.
        assert!((found.mean - 2.5).abs() < 1e-12 && (found.half_width - 3.182 * 0.6455).abs() < 1e-3);
        assert_eq!(Mean::of(&[1.0, 2.0]), None);
        assert_eq!(Mean::of(&[2.0; 5]).map(|mean| (mean.half_width, mean.p)), Some((0.0, 1.0)));
    }
}

//! Two estimates of runs that have nothing in common: each made at its own time, with servers of its own.
//!
//! What compares two records calls it. No pair joins such runs, so that each estimate pays with its own interval.

/// Normal quantile of the 99 % intervals that records hold.
const Z: f64 = 2.576;
/// What single starts of one server differ by, as a deviation of their logarithms: 1 to 2 % on many machines, and of one start
/// a side nobody has seen where in it they lie.
const UNSEEN_START: f64 = 0.02;

/// The natural logarithm of an estimate, and the half width of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// ln of the value.
    pub log: f64,
    /// Half width, as a log ratio.
    pub half_width: f64,
}

impl Known {
    /// Of a value above zero and both ends of its interval; the wider half counts. `None` where one of them is no number.
    #[must_use]
    pub fn of(value: f64, [low, high]: [f64; 2]) -> Option<Self> {
        let log = value.ln();
        let half_width = (log - low.ln()).max(high.ln() - log);
        let sound = log.is_finite() && low <= value && value <= high && half_width.is_finite();
        sound.then_some(Self { log, half_width })
    }
}

/// ln(B / A) of two such estimates. The half width is the root of the sum of both squares: where both stand for the same
/// confidence it is at least as wide as Welch's interval, whatever their degrees of freedom, and needs to know none.
#[must_use]
pub fn apart(a: Known, b: Known) -> Known {
    Known { log: b.log - a.log, half_width: a.half_width.hypot(b.half_width) }
}

/// The same where each side is one start of its server: what starts differ by was not seen, and is supposed.
#[must_use]
pub fn apart_in_one_start(a: Known, b: Known) -> Known {
    let supposed = Z * UNSEEN_START * std::f64::consts::SQRT_2;
    let told = apart(a, b);
    Known { half_width: told.half_width.hypot(supposed), ..told }
}

/// Both ends of a value's interval that is so wide on the scale of logarithms.
#[must_use]
pub fn around(value: f64, half_width: f64) -> [f64; 2] {
    [value * (-half_width).exp(), value * half_width.exp()]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Prng;
    use crate::stats::{deviation, mean};
    use crate::student::student;

    /// A mean of so many normal values with its 99 % interval by Student's t.
    fn known(rng: &mut Prng, truth: f64, spread: f64, n: usize) -> Known {
        let values: Vec<f64> = (0..n).map(|_| truth + spread * rng.normal()).collect();
        let error = deviation(&values) / (n as f64).sqrt();
        Known { log: mean(&values), half_width: student(Z, (n - 1) as f64) * error }
    }

    #[test]
    fn the_interval_holds_the_difference_of_few_and_of_many_starts() {
        const RUNS: usize = 4_000;
        for (starts, spreads) in [([3, 3], [0.02, 0.02]), ([3, 12], [0.01, 0.05]), ([5, 5], [0.03, 0.001])] {
            let mut rng = Prng::new(7);
            let holds = |rng: &mut Prng| {
                let (a, b) = (known(rng, 0.5, spreads[0], starts[0]), known(rng, 0.7, spreads[1], starts[1]));
                let told = apart(a, b);
                (told.log - 0.2).abs() <= told.half_width
            };
            let held = (0..RUNS).filter(|_| holds(&mut rng)).count() as f64 / RUNS as f64;
            assert!(held >= 0.985, "{starts:?} {spreads:?}: {held}");
        }
    }

    /// Starts of one server that differ by 2 %. Planted fault: half a percent is supposed, and four in ten are called different.
    #[test]
    fn equal_servers_of_one_start_each_are_rarely_called_different() {
        let mut rng = Prng::new(9);
        let called = (0..4_000).filter(|_| {
            let start = |rng: &mut Prng| Known { log: 0.02 * rng.normal(), half_width: 0.004 };
            let told = apart_in_one_start(start(&mut rng), start(&mut rng));
            told.log.abs() > told.half_width
        });
        let called = called.count();
        assert!(called <= 60, "{called} of 4,000");
    }

    #[test]
    fn one_start_a_side_pays_for_what_was_not_seen() {
        let exact = Known { log: 1.0, half_width: 0.0 };
        assert_eq!(apart(exact, exact).half_width, 0.0);
        let half = apart_in_one_start(exact, exact).half_width;
        // 2.576 times the root of twice 0.02 squared.
        assert!((half - 0.072_86).abs() < 1e-5, "{half}");
    }

    #[test]
    fn the_wider_half_of_an_interval_counts_and_nonsense_is_none() {
        let one = Known::of(2.0, [1.0, 3.0]).unwrap();
        assert!((one.half_width - 2_f64.ln()).abs() < 1e-12, "{one:?}");
        assert_eq!(Known::of(-1.0, [-2.0, 0.0]), None);
        assert_eq!(Known::of(1.0, [f64::NAN, 2.0]), None);
        assert_eq!(Known::of(1.0, [2.0, 3.0]), None);
        let [low, high] = around(2.0, 2_f64.ln());
        assert!((low - 1.0).abs() < 1e-12 && (high - 4.0).abs() < 1e-12);
    }

    /// Three and four are five. Planted faults: one side's interval pays for both, or their signs are turned.
    #[test]
    fn two_runs_lie_apart_by_their_difference_and_pay_with_both_intervals() {
        let (a, b) = (Known { log: 1.0, half_width: 0.3 }, Known { log: 3.5, half_width: 0.4 });
        let told = apart(a, b);
        assert!((told.log - 2.5).abs() < 1e-12 && (told.half_width - 0.5).abs() < 1e-12, "{told:?}");
        // Two percent a start: a variance of 8e-4 of both, and 2.576 times its root.
        let one = apart_in_one_start(a, b);
        assert!((one.log - 2.5).abs() < 1e-12, "{one:?}");
        assert!((one.half_width - 0.5_f64.hypot(2.576 * 8e-4_f64.sqrt())).abs() < 1e-12, "{one:?}");
    }

    #[test]
    fn a_value_may_stand_at_either_end_of_its_interval() {
        assert_eq!(Known::of(2.0, [2.0, 2.0]), Some(Known { log: 2_f64.ln(), half_width: 0.0 }));
        for interval in [[1.0, 2.0], [2.0, 4.0]] {
            let known = Known::of(2.0, interval).unwrap();
            assert!((known.half_width - 2_f64.ln()).abs() < 1e-12, "{interval:?}: {known:?}");
        }
        assert_eq!(Known::of(4.0, [2.0, 3.0]), None, "above it");
        assert_eq!(Known::of(2.0, [0.0, 3.0]), None, "an end without a logarithm");
    }
}

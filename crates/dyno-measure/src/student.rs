//! Student's t: how much wider an interval must be because its spread is itself read from few values.

use std::f64::consts::FRAC_PI_2;

use crate::normal::normal_below;

/// From here on the expansion is good to 2e-5.
const FREEDOM_MANY: f64 = 300.0;
/// Steps of Simpson's rule over the angle: exact to 1e-8 at [`FREEDOM_MANY`], where the density is narrowest.
const STEPS: usize = 200;
/// Newton's steps at most; some eight are usual.
const NEWTON_MAX: usize = 100;

/// The t quantile that leaves as much above it as `z` does under the normal curve. Exact: the usual expansion in powers of
/// 1 / freedom is too narrow by a quarter at two degrees, where a comparison of five values stands.
///
/// # Panics
/// Where `z` is not above zero, or `freedom` below one.
#[must_use]
pub fn student(z: f64, freedom: f64) -> f64 {
    assert!(z > 0.0 && freedom >= 1.0, "no quantile at z = {z}, {freedom} degrees of freedom");
    if freedom > FREEDOM_MANY { expanded(z, freedom) } else { exact(z, freedom) }
}

/// How often chance alone gives a value this far from zero, on either side.
///
/// # Panics
/// Where `freedom` is below one.
#[must_use]
pub fn chance(t: f64, freedom: f64) -> f64 {
    assert!(freedom >= 1.0, "no t with {freedom} degrees of freedom");
    if t.is_nan() {
        return 1.0;
    }
    let left = FRAC_PI_2 - (t.abs() / freedom.sqrt()).atan();
    above(left, freedom) / above(FRAC_PI_2, freedom)
}

/// With t = √freedom · tan θ the density of θ is cos^(freedom - 1), over its own integral: no gamma function is needed. The
/// angle left above the quantile is sought by its logarithm, in which the tail is nearly straight.
fn exact(z: f64, freedom: f64) -> f64 {
    let wanted = 2.0 * normal_below(-z) * above(FRAC_PI_2, freedom);
    let mut left: f64 = FRAC_PI_2 / 2.0;
    for _ in 0..NEWTON_MAX {
        let tail = above(left, freedom);
        let step = (wanted / tail).ln() * tail / (density(left, freedom) * left);
        left = (left * step.clamp(-2.0, 2.0).exp()).min(FRAC_PI_2);
        if step.abs() < 1e-12 {
            break;
        }
    }
    freedom.sqrt() / left.tan()
}

fn density(left: f64, freedom: f64) -> f64 {
    left.sin().powf(freedom - 1.0)
}

/// What lies beyond, as a part of an integral that is not one.
fn above(left: f64, freedom: f64) -> f64 {
    simpson(|left| density(left, freedom), left)
}

/// Integral from 0 to `end`.
fn simpson(f: impl Fn(f64) -> f64, end: f64) -> f64 {
    let width = end / STEPS as f64;
    let inner: f64 = (1..STEPS).map(|k| f(k as f64 * width) * if k % 2 == 1 { 4.0 } else { 2.0 }).sum();
    (f(0.0) + inner + f(end)) * width / 3.0
}

/// Cornish and Fisher; Abramowitz and Stegun 26.7.5, two terms. Trials are judged by it: their error rates were measured with
/// it, with eleven degrees of freedom or more, and a record must reach the same verdicts again.
pub(crate) fn expanded(z: f64, freedom: f64) -> f64 {
    let (z3, z5) = (z.powi(3), z.powi(5));
    z + (z3 + z) / (4.0 * freedom) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom * freedom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::normal_quantile;

    #[test]
    fn quantiles_agree_with_tables() {
        for (above, freedom, t) in [
            (0.025, 1.0, 12.706_205),
            (0.005, 1.0, 63.656_741),
            (0.025, 2.0, 4.302_653),
            (0.005, 2.0, 9.924_843),
            (0.005, 3.0, 5.840_909),
            (0.000_5, 3.0, 12.923_979),
            (0.025, 5.0, 2.570_582),
            (0.005, 6.0, 3.707_428),
            (0.005, 10.0, 3.169_273),
            (0.025, 30.0, 2.042_272),
            (0.005, 60.0, 2.660_283),
            (0.005, 120.0, 2.617_421),
        ] {
            let got = student(normal_quantile(1.0 - above), freedom);
            assert!((got / t - 1.0).abs() < 1e-5, "{above} above, {freedom} degrees: {got}, {t} in tables");
            let back = chance(t, freedom);
            assert!((back / (2.0 * above) - 1.0).abs() < 1e-4, "{t} at {freedom} degrees: {back}");
        }
    }

    #[test]
    fn broken_degrees_lie_between_and_the_two_ways_meet() {
        let between = student(2.5, 4.5);
        assert!(student(2.5, 5.0) < between && between < student(2.5, 4.0));
        for z in [0.1, 1.0, 2.5, 4.0] {
            let apart = exact(z, FREEDOM_MANY) / expanded(z, FREEDOM_MANY) - 1.0;
            assert!(apart.abs() < 2e-5, "z = {z}: {apart:e} apart");
        }
    }

    /// One degree: ½ at one. Two: 1 − t / √(2 + t²), of √2 1 − √½.
    #[test]
    fn chance_alone_is_as_in_the_closed_forms_on_either_side() {
        for (t, freedom, wanted) in
            [(1.0, 1.0, 0.5), (2_f64.sqrt(), 2.0, 1.0 - 0.5_f64.sqrt()), (0.0, 7.0, 1.0), (0.0, 1.0, 1.0)]
        {
            for t in [t, -t] {
                assert!((chance(t, freedom) - wanted).abs() < 1e-6, "{t}, {freedom}: {}", chance(t, freedom));
            }
        }
        assert_eq!(chance(f64::NAN, 3.0), 1.0, "what is no number is no proof");
        assert!(chance(f64::INFINITY, 3.0) < 1e-9 && chance(50.0, 3.0) < 1e-4);
    }

    /// Simpson's rule is exact for parabolas and cubes: ∫ x² = 9, ∫ x³ = 4 over 0 to 3 and to 2.
    #[test]
    fn an_integral_is_that_of_the_curve() {
        assert!((simpson(|x| x * x, 3.0) - 9.0).abs() < 1e-9);
        assert!((simpson(|x| x * x * x, 2.0) - 4.0).abs() < 1e-9);
        assert!((simpson(|_| 1.0, 5.0) - 5.0).abs() < 1e-9);
    }

    /// 2.576 and (2.576³ + 2.576) / (4 · 400) and so on: 2.58835.
    #[test]
    fn many_degrees_are_nearly_normal() {
        assert!((student(2.576, 400.0) - 2.588_35).abs() < 1e-4, "{}", student(2.576, 400.0));
        assert!((student(2.576, 1e9) - 2.576).abs() < 1e-7);
        assert_eq!(student(2.576, 400.0), expanded(2.576, 400.0));
    }

    #[test]
    #[should_panic(expected = "no quantile at z = 0")]
    fn the_middle_is_no_quantile() {
        let _ = student(0.0, 5.0);
    }

    #[test]
    #[should_panic(expected = "no quantile at z = 2")]
    fn half_a_degree_has_no_quantile() {
        let _ = student(2.0, 0.5);
    }

    #[test]
    #[should_panic(expected = "no t with 0.5 degrees of freedom")]
    fn half_a_degree_has_no_chance() {
        let _ = chance(2.0, 0.5);
    }
}

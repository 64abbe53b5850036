//! The normal distribution: its quantiles, and the probability below a value.
//!
//! Student's quantiles and the judge's intervals begin here.

/// The normal quantile, by Newton's method on the error function's series; exact to 1e-9 for 1e-12 < p < 1 - 1e-12.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    assert!(p > 0.0 && p < 1.0, "a probability lies between 0 and 1, got {p}");
    let mut z = 0.0_f64;
    // Newton converges from the centre; 60 steps are more than the flattest tail needs.
    for _ in 0..60 {
        let density = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let step = ((normal_below(z) - p) / density).clamp(-0.5, 0.5);
        z -= step;
        if step.abs() < 1e-12 {
            break;
        }
    }
    z
}

/// Probability below `z` (Marsaglia, 2004: a series that adds positive terms only).
pub(crate) fn normal_below(z: f64) -> f64 {
    if z.abs() > 8.0 {
        return if z > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut k) = (z, z, 1.0);
    while term.abs() > 1e-17 * sum.abs() && k < 500.0 {
        k += 2.0;
        term *= z * z / k;
        sum += term;
    }
    0.5 + sum * (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_agree_with_tables() {
        for (p, z) in
            [(0.5, 0.0), (0.975, 1.959_964), (0.995, 2.575_829), (0.999_5, 3.290_527), (1e-6, -4.753_424)]
        {
            assert!((normal_quantile(p) - z).abs() < 1e-5, "{p}: {}", normal_quantile(p));
        }
    }

    /// Φ(1), Φ(2), Φ(3), and what is beyond them on the other side. From eight on nothing is left of it.
    #[test]
    fn the_probability_below_a_value_agrees_with_tables() {
        for (z, below) in [(0.0, 0.5), (1.0, 0.841_344_746), (2.0, 0.977_249_868), (3.0, 0.998_650_102)] {
            assert!((normal_below(z) - below).abs() < 1e-9, "{z}: {}", normal_below(z));
            assert!((normal_below(-z) + below - 1.0).abs() < 1e-9, "-{z}: {}", normal_below(-z));
        }
        assert_eq!([8.1, -8.1, f64::INFINITY, f64::NEG_INFINITY].map(normal_below), [1.0, 0.0, 1.0, 0.0]);
        assert!(normal_below(-8.0).abs() < 1e-12 && (normal_below(8.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    #[should_panic(expected = "a probability lies between 0 and 1, got 0")]
    fn no_quantile_lies_at_nought() {
        let _ = normal_quantile(0.0);
    }

    #[test]
    #[should_panic(expected = "a probability lies between 0 and 1, got 1")]
    fn no_quantile_lies_at_one() {
        let _ = normal_quantile(1.0);
    }
}

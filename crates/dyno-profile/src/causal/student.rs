//! Student's distribution, exactly: intervals here rest on as few as five rounds, where approximations are off by a tenth.

/// Terms of the continued fraction; it converges in some twenty for the degrees of freedom met here.
const TERMS_MAX: usize = 300;

/// Halvings when a quantile is searched: more than a double's digits.
const HALVINGS: usize = 80;

/// Widest quantile that is searched for: `t` of one degree of freedom at a chance of 1 in 1,500.
const QUANTILE_MAX: f64 = 1_000.0;

/// How often chance alone gives a value this far from zero, on either side.
pub(super) fn chance(t: f64, freedom: f64) -> f64 {
    if t.is_nan() {
        return 1.0;
    }
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The value that chance alone exceeds, on either side, this often.
pub(super) fn quantile(two_sided: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, QUANTILE_MAX);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if chance(middle, freedom) > two_sided { low = middle } else { high = middle }
    }
    high
}

/// The regularised incomplete beta function (Abramowitz and Stegun 26.5.8, evaluated after Lentz).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on this side only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    front.exp() * fraction(a, b, x) / a
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for term in 1..TERMS_MAX {
        let m = term as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut turn = 1.0;
        for part in [even, odd] {
            d = 1.0 / away(1.0 + part * d);
            c = away(1.0 + part / c);
            turn *= c * d;
        }
        result *= turn;
        if (turn - 1.0).abs() < 1e-14 {
            break;
        }
    }
    result
}

/// ln Γ(x) for x > 0: Stirling's series after moving up to where five terms give fourteen digits.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series =
        (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0) / square) / square) / square) / x;
    (x - 0.5) * x.ln() - x + (std::f64::consts::TAU).ln() / 2.0 + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, two_sided, wanted) in [
            (1.0, 0.05, 12.706_2),
            (4.0, 0.05, 2.776_4),
            (7.0, 0.01, 3.499_5),
            (29.0, 0.05, 2.045_2),
            (1_000.0, 0.05, 1.962_3),
        ] {
            let found = quantile(two_sided, freedom);
            assert!(
                (found - wanted).abs() < 1e-3,
                "t({two_sided}, {freedom}) = {found}, {wanted} in the tables"
            );
            assert!((chance(found, freedom) - two_sided).abs() < 1e-9);
        }
    }

    #[test]
    fn nothing_is_certain_at_zero_and_nothing_likely_far_out() {
        assert!((chance(0.0, 5.0) - 1.0).abs() < 1e-12);
        assert!(chance(50.0, 20.0) < 1e-20 && chance(f64::NAN, 5.0) >= 1.0);
    }
}

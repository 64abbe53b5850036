//! Numbers as this product writes them, on the terminal and on pages alike.
//!
//! Signs are a real minus (U+2212) or a plus, thousands have commas, an interval is never far from its number. A value
//! that is not finite is a dash: a record may hold a ratio to nothing.

use std::time::Duration;

pub use dyno_measure::units::thousands as count;
use dyno_record::climb::Ratio;
pub use dyno_record::visible::{obeyed, visible};

/// What stands where there is no figure.
pub const NONE: &str = "–";

/// Columns that a table gives to names at most. Records and plans come from strangers, and a width beyond 65,535 is a
/// panic of the formatting machinery.
pub const NAME_COLUMNS_MAX: usize = 100;

/// Most decimals of an effect: a thousandth of a percent is nobody's business.
const DECIMALS_MAX: usize = 3;

/// `−33.1 %`, `+0.1 %`, `0.0 %`.
pub fn percent(value: f64) -> String {
    percent_to(value, 1)
}

fn percent_to(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{} %", signed(value, decimals)) } else { NONE.to_owned() }
}

/// From here on an interval, in percent, says nothing.
const HALF_TOLD_MAX: f64 = 1_000.0;

/// `−33.1 % ±0.8`: the half width stands for both ends, which differ only for large effects. Where an end nears zero there
/// are as many decimals as tell on which side of it that end lies.
pub fn effect(value: f64, interval: [f64; 2]) -> String {
    let half = (interval[1] - interval[0]).abs() / 2.0;
    let nearest = interval[0].abs().min(interval[1].abs());
    let decimals = (1..DECIMALS_MAX).find(|decimals| nearest >= 0.1_f64.powi(*decimals as i32));
    let decimals = if nearest > 0.0 { decimals.unwrap_or(DECIMALS_MAX) } else { 1 };
    match half {
        _ if !half.is_finite() => percent(value),
        HALF_TOLD_MAX.. => format!("{} (too few numbers for an interval)", percent(value)),
        _ => format!("{} ±{half:.decimals$}", percent_to(value, decimals)),
    }
}

/// What is known of an effect: with its interval, without, or nothing.
pub(crate) fn estimate(value: Option<f64>, interval: Option<[f64; 2]>) -> String {
    match (value, interval) {
        (Some(value), Some(interval)) => effect(value, interval),
        (Some(value), None) => percent(value),
        (None, _) => String::new(),
    }
}

/// A sign; what rounds to nothing has none.
fn signed(value: f64, decimals: usize) -> String {
    let size = format!("{:.decimals$}", value.abs());
    match value {
        _ if !size.contains(|digit| ('1'..='9').contains(&digit)) => size,
        v if v < 0.0 => format!("−{size}"),
        _ => format!("+{size}"),
    }
}

/// `2.07×`.
pub fn times(ratio: f64) -> String {
    if ratio.is_finite() { format!("{ratio:.2}×") } else { NONE.to_owned() }
}

/// `2.07× (1.98 … 2.15)`.
pub fn times_with_interval(ratio: &Ratio) -> String {
    let [low, high] = ratio.interval;
    if low.is_finite() && high.is_finite() {
        format!("{} ({low:.2} … {high:.2})", times(ratio.ratio))
    } else {
        times(ratio.ratio)
    }
}

/// Microseconds of CPU, without the unit: two decimals below ten, where a tenth is a percent.
pub fn micros(value: f64) -> String {
    match value {
        v if !v.is_finite() => NONE.to_owned(),
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => count(v),
    }
}

/// Two decimals in any case, for columns that are read downwards.
pub fn hundredths(value: f64) -> String {
    if value.is_finite() { format!("{value:.2}") } else { NONE.to_owned() }
}

/// A latency given in microseconds, with its unit, to three digits: `402 µs`, `1.89 ms`, `2.5 s`.
pub fn latency(us: f64) -> String {
    let three = |value: f64| match value {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    };
    // A figure is rounded to three digits before its unit is chosen, so that 999.6 µs is 1.00 ms.
    match us {
        v if !v.is_finite() => NONE.to_owned(),
        v if v < 999.5 => format!("{} µs", three(v)),
        v if v < 999_500.0 => format!("{} ms", three(v / 1e3)),
        v => format!("{} s", three(v / 1e6)),
    }
}

/// Bytes in decimal units, as disks and networks count them: `4.5 MB`.
pub fn bytes(value: u64) -> String {
    let value = value as f64;
    match value {
        v if v < 1e3 => format!("{v:.0} B"),
        v if v < 1e6 => format!("{:.0} kB", v / 1e3),
        v if v < 1e8 => format!("{:.1} MB", v / 1e6),
        v if v < 1e9 => format!("{:.0} MB", v / 1e6),
        v => format!("{:.1} GB", v / 1e9),
    }
}

/// `14 s`, `3 min 58 s`, `1 h 05 min`.
pub fn duration(seconds: f64) -> String {
    if !(0.0..1e9).contains(&seconds) {
        return NONE.to_owned();
    }
    match seconds.round() as u64 {
        s if s < 60 => format!("{s} s"),
        s if s < 3_600 => format!("{} min {:02} s", s / 60, s % 60),
        s => format!("{} h {:02} min", s / 3_600, s % 3_600 / 60),
    }
}

/// Time left, `2:31` or `1:05:00`.
pub fn clock(left: Duration) -> String {
    let s = left.as_secs();
    match s / 3_600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        hours => format!("{hours}:{:02}:{:02}", s % 3_600 / 60, s % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: it is told however wide it is.
    #[test]
    fn an_interval_that_says_nothing_is_not_told() {
        assert_eq!(effect(9.8, [-99.9, 9.9e7]), "+9.8 % (too few numbers for an interval)");
        assert_eq!(effect(9.8, [-5.0, 25.0]), "+9.8 % ±15.0");
    }

    #[test]
    fn an_effect_has_a_real_minus_and_its_half_width() {
        assert_eq!(effect(-33.14, [-33.9, -32.3]), "−33.1 % ±0.8");
        assert_eq!(effect(0.1, [-0.7, 0.9]), "+0.1 % ±0.8");
        assert_eq!(effect(f64::NAN, [f64::NAN, 1.0]), NONE);
    }

    #[test]
    fn an_interval_that_nears_zero_shows_on_which_side_it_ends() {
        assert_eq!(effect(-0.70, [-1.35, -0.05]), "−0.70 % ±0.65");
        assert_eq!(effect(-0.70, [-1.45, 0.05]), "−0.70 % ±0.75");
        assert_eq!(effect(-0.70, [-1.396, -0.004]), "−0.700 % ±0.696");
        assert_eq!(effect(3.0, [0.1, 5.9]), "+3.0 % ±2.9");
        assert_eq!(effect(0.0, [0.0, 0.0]), "0.0 % ±0.0");
    }

    #[test]
    fn what_rounds_to_nothing_has_no_sign() {
        assert_eq!(percent(-0.04), "0.0 %");
        assert_eq!(percent(0.04), "0.0 %");
        assert_eq!(count(-0.2), "0");
    }

    #[test]
    fn counts_have_commas_and_latencies_three_digits() {
        assert_eq!([count(7.0), count(999.4), count(1_234_567.8)], ["7", "999", "1,234,568"]);
        assert_eq!([latency(402.3), latency(999.6), latency(12_340.0)], ["402 µs", "1.00 ms", "12.3 ms"]);
        assert_eq!([micros(0.563), micros(13.94), micros(1_300.0)], ["0.56", "13.9", "1,300"]);
        assert_eq!([bytes(812), bytes(4_530_000), bytes(8_200_000_000)], ["812 B", "4.5 MB", "8.2 GB"]);
    }

    #[test]
    fn times_are_read_at_a_glance() {
        assert_eq!(
            [duration(14.2), duration(238.0), duration(3_900.0)],
            ["14 s", "3 min 58 s", "1 h 05 min"]
        );
        assert_eq!(clock(Duration::from_secs(151)), "2:31");
        assert_eq!(clock(Duration::from_secs(3_900)), "1:05:00");
        assert_eq!(duration(f64::NAN), NONE);
    }

    #[test]
    fn a_ratio_keeps_both_ends() {
        let ratio = Ratio { ratio: 2.068, interval: [1.98, 2.154] };
        assert_eq!(times_with_interval(&ratio), "2.07× (1.98 … 2.15)");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_survives() {
        assert_eq!(visible("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(visible("two\nlines\t here"), "two lines here");
        assert_eq!(visible("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(visible("é → ü"), "é → ü");
    }
}

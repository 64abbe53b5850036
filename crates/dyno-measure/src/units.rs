//! Units as people write and read them: `10s`, `250ms`, `5k`, percentages of a log ratio.
//!
//! Parsers for command lines and plans, and the few conversions that must be the same everywhere.

use std::time::Duration;

/// A unit that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not {wanted}")]
pub struct UnitError {
    text: String,
    wanted: &'static str,
}

/// Reads `250us`, `250ms`, `10s`, `4m`, `1h` or a bare number of seconds, as wrk does; fractions are allowed.
///
/// # Errors
/// When the text has no number, another unit, or is negative.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let error = || UnitError { text: text.to_owned(), wanted: "a duration such as 250ms, 10s, 4m or 1h" };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(error()),
    };
    let number: f64 = digits.parse().map_err(|_| error())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| error())
}

/// Reads `64`, `5k`, `2M`: a count with wrk's suffixes (powers of a thousand).
///
/// # Errors
/// When it is not a whole number with an optional `k`, `M` or `G`.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    let error = || UnitError { text: text.to_owned(), wanted: "a count such as 64, 5k or 2M" };
    let (digits, scale) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok().and_then(|n| n.checked_mul(scale)).ok_or_else(error)
}

/// No two figures of one kind differ by more than a million times. An interval from two or three numbers reaches further, and says
/// nothing either way.
const LOG_MOST: f64 = 13.815_510_557_964_274;

/// The change in percent that a log ratio stands for: `ln(1.05)` is +5. From a million times on it is that.
#[must_use]
pub fn percent_of_log(log_ratio: f64) -> f64 {
    100.0 * log_ratio.clamp(-LOG_MOST, LOG_MOST).exp_m1()
}

/// The log ratio that a change in percent stands for.
#[must_use]
pub fn log_of_percent(percent: f64) -> f64 {
    (percent / 100.0).ln_1p()
}

/// A count with commas, as people read it: `118,432`. What is not finite is a dash.
#[must_use]
pub fn thousands(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let digits = format!("{:.0}", value.abs());
    let mut out = String::from(if value < 0.0 && digits != "0" { "−" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half-widths of intervals from two numbers. Planted fault: all of it is told (no `clamp`), and a record holds what no reader
    /// believes.
    #[test]
    fn an_interval_that_says_nothing_ends_at_a_million_times() {
        for log_ratio in [38.0, 700.0, 1e9] {
            let most = percent_of_log(log_ratio);
            assert!((9.9e7..1e8).contains(&most), "{most}");
            let least = percent_of_log(-log_ratio);
            assert!(least > -100.0 && log_of_percent(least).is_finite(), "{least}");
        }
        assert!((percent_of_log(0.05) - 5.127_109_637_602_41).abs() < 1e-9);
    }

    #[test]
    fn thousands_are_parted_by_commas() {
        for (value, wanted) in [
            (0.0, "0"),
            (999.4, "999"),
            (1e3, "1,000"),
            (-118_432.0, "−118,432"),
            (-0.2, "0"),
            (1e9, "1,000,000,000"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(thousands(value), wanted, "{value}");
        }
    }

    #[test]
    fn durations_are_read_as_wrk_and_people_write_them() {
        let millis = |text| parse_duration(text).map(|d| d.as_micros());
        assert_eq!(millis("250ms"), Ok(250_000));
        assert_eq!(millis("10"), Ok(10_000_000));
        assert_eq!(millis("1.5s"), Ok(1_500_000));
        assert_eq!(millis("4m"), Ok(240_000_000));
        assert_eq!(millis("20us"), Ok(20));
    }

    #[test]
    fn a_duration_without_sense_is_named_in_the_error() {
        for text in ["", "s", "-1s", "3d", "ten", "1e400s", "nan"] {
            let error = parse_duration(text).expect_err(text);
            assert!(error.to_string().contains(&format!("\"{text}\"")), "{error}");
        }
    }

    #[test]
    fn counts_take_thousands_and_refuse_overflow() {
        assert_eq!(parse_count("64"), Ok(64));
        assert_eq!(parse_count("5k"), Ok(5_000));
        assert!(parse_count("-1").is_err());
        assert!(parse_count("99999999999999999G").is_err());
        assert!(parse_count("k").is_err());
    }

    #[test]
    fn percent_and_log_ratio_are_inverse() {
        for percent in [-33.0, -0.1, 0.0, 5.0, 150.0] {
            assert!((percent_of_log(log_of_percent(percent)) - percent).abs() < 1e-9);
        }
    }

    #[test]
    fn every_unit_stands_for_its_own_time_and_count() {
        for (text, micros) in
            [("1h", 3_600_000_000), ("0.5h", 1_800_000_000), ("2m", 120_000_000), ("3s", 3_000_000), ("0", 0)]
        {
            assert_eq!(parse_duration(text).map(|read| read.as_micros()), Ok(micros), "{text}");
        }
        for (text, count) in [
            ("0", 0),
            ("7K", 7_000),
            ("7k", 7_000),
            ("3m", 3_000_000),
            ("3M", 3_000_000),
            ("2g", 2_000_000_000),
            ("2G", 2_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
        for text in ["", "1.5k", "5 k", "k5", "18446744073709551616", "18446744073709552k"] {
            let error = parse_count(text).expect_err(text).to_string();
            assert_eq!(error, format!("\"{text}\" is not a count such as 64, 5k or 2M"));
        }
    }

    /// ln 2 is twice as much, and a half is half as much: the other way round it is minus the same.
    #[test]
    fn a_log_ratio_is_told_in_percent() {
        assert!((percent_of_log(2_f64.ln()) - 100.0).abs() < 1e-9);
        assert!((percent_of_log(-(2_f64.ln())) + 50.0).abs() < 1e-9);
        assert!((log_of_percent(5.0) - 1.05_f64.ln()).abs() < 1e-12);
        assert!((log_of_percent(-50.0) + 2_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn counts_are_parted_at_every_third_digit_and_rounded() {
        for (value, wanted) in [
            (12.0, "12"),
            (123_456.0, "123,456"),
            (12_345.6, "12,346"),
            (-999.6, "−1,000"),
            (-1.0, "−1"),
            (f64::INFINITY, "–"),
            (f64::NEG_INFINITY, "–"),
        ] {
            assert_eq!(thousands(value), wanted, "{value}");
        }
    }
}

//! Figures of sheets in words: values with their intervals, changes, and conditions with what was found.
//!
//! Views, exports and the verbs' last lines call it.

use dyno_record::climb::Ratio;
use dyno_record::condition::{End, Held};
use dyno_record::figure::Unit;

use crate::number::{self, NONE};

/// A value with its unit: `2.07×`, `−33.1 %`, `1.89 ms`, `118,432`.
pub fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ratio => number::times(value),
        Unit::Percent => number::percent(value),
        Unit::Us => number::latency(value),
        Unit::PerSecond => number::count(value),
        Unit::Count if value.is_finite() && value.fract() != 0.0 && value.abs() < 100.0 => {
            format!("{value:.2}")
        }
        Unit::Count => number::count(value),
        Unit::Share if value.is_finite() => format!("{value:.1} %"),
        Unit::Share => NONE.to_owned(),
    }
}

/// A value with both ends of its interval.
pub fn within(unit: Unit, known: f64, interval: Option<[f64; 2]>) -> String {
    match (unit, interval) {
        (_, None) => value(unit, known),
        (Unit::Ratio, Some(interval)) => number::times_with_interval(&Ratio { ratio: known, interval }),
        (Unit::Percent, Some(interval)) => number::effect(known, interval),
        (_, Some(ends)) => {
            let [low, high] = ends.map(|end| value(unit, end));
            format!("{} ({low} … {high})", value(unit, known))
        }
    }
}

/// A change of one record against another: percent, or percentage points of shares.
pub fn change(unit: Unit, effect: Option<f64>, interval: Option<[f64; 2]>) -> String {
    match (effect, interval) {
        (None, _) => String::new(),
        // Both ends: a half width would round away whether zero is among them.
        (Some(effect), Some(interval)) => {
            let [low, high] = ends(interval);
            format!("{} ({low} … {high})", number::percent(effect))
        }
        (Some(effect), None) if unit == Unit::Share => number::percent(effect).replace('%', "points"),
        (Some(effect), None) => number::percent(effect),
    }
}

/// The same with the wider half of its interval alone; where that would hide that the interval leaves out zero, with the side on
/// which it lies.
pub fn change_in_short(effect: Option<f64>, interval: Option<[f64; 2]>) -> String {
    let (Some(effect), Some([low, high])) = (effect, interval) else { return String::new() };
    // Rounded up: what holds zero never seems to leave it out.
    let half = ((effect - low).max(high - effect) * 10.0).ceil() / 10.0;
    let near = (effect.abs() * 10.0).round() / 10.0;
    let said = number::percent(effect);
    match (low > 0.0, high < 0.0) {
        _ if !half.is_finite() => String::new(),
        (true, _) if near <= half => format!("{said} (>0)"),
        (_, true) if near <= half => format!("{said} (<0)"),
        _ => format!("{said} ±{half:.1}"),
    }
}

/// Both ends of a change in percent, without the unit: with two decimals where one would hide on which side of zero an end
/// lies.
pub fn ends(interval: [f64; 2]) -> [String; 2] {
    let close = interval.iter().any(|end| *end != 0.0 && end.abs() < 0.05);
    interval.map(|end| match (end.is_finite(), close) {
        (true, true) => format!("{}{:.2}", if end < 0.0 { "−" } else { "+" }, end.abs()),
        _ => number::percent(end).replace(" %", ""),
    })
}

/// A condition, whether it is met, what was found and what was wanted.
pub fn held(held: &Held) -> String {
    let figure = &held.figure;
    let name = match held.end {
        End::Estimate => figure.name.clone(),
        End::Low => format!("the lower end of {}", figure.name),
        End::High => format!("the upper end of {}", figure.name),
    };
    let limit = value(figure.unit, held.limit);
    let wanted = format!("wanted {} {limit}", held.op.sign());
    let found = match (held.found, held.end) {
        (None, _) if figure.value.is_none() => unmeasured(&figure.basis),
        (None, _) => "not known (there is no interval)".to_owned(),
        (Some(found), End::Estimate) => within(figure.unit, found, figure.interval),
        (Some(found), _) => value(figure.unit, found),
    };
    let crosses =
        if held.crosses { "; the interval holds the limit: another run may end otherwise" } else { "" };
    let exact = matches!(figure.unit, Unit::Count | Unit::Share);
    let alone = held.found.is_some() && held.end == End::Estimate && figure.interval.is_none() && !exact;
    let crosses = if alone { "; it has no interval: chance alone may have decided" } else { crosses };
    let word = if held.met { "met" } else { "not met" };
    format!("{word}: {name} is {found}, {wanted}{crosses}")
}

/// That it is not measured, and why or where.
fn unmeasured(basis: &str) -> String {
    let rest = basis.strip_prefix("not measured");
    match rest.and_then(|rest| rest.strip_prefix(": ")).or(rest).unwrap_or(basis) {
        "" => "not measured".to_owned(),
        place if place.starts_with(' ') => format!("not measured{place}"),
        why => format!("not measured ({why})"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::condition::read;
    use dyno_record::figure::{Better, Figure, Sheet};

    /// Planted fault: a half width that is rounded hides on which side of zero the interval lies.
    #[test]
    fn a_short_change_says_no_more_and_no_less_than_its_interval() {
        let short = |effect, low, high| change_in_short(Some(effect), Some([low, high]));
        assert_eq!(short(-7.0, -8.7, -5.2), "−7.0 % ±1.8");
        assert_eq!(short(5.2, 0.004, 10.61), "+5.2 % (>0)");
        assert_eq!(short(-2.0, -4.0, -0.01), "−2.0 % (<0)");
        assert_eq!(short(1.0, -0.01, 2.01), "+1.0 % ±1.1");
        assert_eq!(change_in_short(Some(1.0), None), "");
    }

    #[test]
    fn a_condition_says_what_was_found_and_what_was_wanted() {
        let total = Figure::new("total", "gain", (Unit::Ratio, Better::Higher), Some(1.32));
        let p99 =
            Figure::new("p99", "tail", (Unit::Us, Better::Lower), None).basis("not measured: cut short");
        let sheet = Sheet { figures: vec![total.within(Some([1.2, 1.55])), p99], ..Sheet::default() };
        let say = |text: &str| held(&read(text).unwrap()[0].hold(&sheet).unwrap());
        assert_eq!(
            say("total>=1.5x"),
            "not met: total is 1.32× (1.20 … 1.55), wanted >= 1.50×; the interval holds the limit: another run may end otherwise"
        );
        assert_eq!(say("low(total)>=1.1x"), "met: the lower end of total is 1.20×, wanted >= 1.10×");
        assert_eq!(say("p99<5ms"), "not met: p99 is not measured (cut short), wanted < 5.00 ms");
        // Fault: an end of what was not measured is told as a figure without an interval.
        let end = "not met: the upper end of p99 is not measured (cut short), wanted < 5.00 ms";
        assert_eq!(say("high(p99)<5ms"), end);
        assert_eq!(unmeasured("not measured in A and B"), "not measured in A and B");
        assert_eq!([unmeasured(""), unmeasured("not measured")], ["not measured", "not measured"]);
    }

    #[test]
    fn values_have_their_units() {
        let written = [
            within(Unit::Us, 7.2, Some([7.1, 7.3])),
            within(Unit::Percent, -33.1, Some([-33.9, -32.3])),
            value(Unit::PerSecond, 118_432.0),
            value(Unit::Count, 4.125),
            value(Unit::Count, 3.0),
            change(Unit::Share, Some(2.0), None),
            change(Unit::Ratio, Some(5.2), Some([0.04, 10.6])),
            change(Unit::Ratio, Some(5.2), Some([-1.0, 11.0])),
        ];
        assert_eq!(
            written,
            [
                "7.20 µs (7.10 µs … 7.30 µs)",
                "−33.1 % ±0.8",
                "118,432",
                "4.12",
                "3",
                "+2.0 points",
                "+5.2 % (+0.04 … +10.60)",
                "+5.2 % (−1.0 … +11.0)"
            ]
        );
    }
}

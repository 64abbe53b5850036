//! What weights are shown as: microseconds per request, milliseconds, samples; and how a figure of it is written.

use dyno_profile::diff::{self, Basis};
use dyno_record::profile::{Kind, Profile, Unit};

use crate::number;

/// A unit of a picture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measure {
    /// What a weight of the tree is divided by.
    pub(crate) divisor: f64,
    /// The unit in the head of a column: `µs/request`.
    pub(crate) unit: &'static str,
    /// The unit in a sentence: `µs of CPU per request`.
    pub(crate) said: String,
}

const NS_PER_US: f64 = 1e3;
const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;
/// From twenty seconds on milliseconds have too many digits to be read.
const SECONDS_FROM_NS: u64 = 20_000_000_000;

impl Measure {
    /// The measure of one profile: per request where requests are known.
    pub(crate) fn of(profile: &Profile) -> Measure {
        let what = what(profile);
        match (profile.unit, diff::requests(profile)) {
            (Unit::Nanoseconds, Some(count)) => {
                measure(NS_PER_US * count as f64, "µs/request", &format!("µs {what} per request"))
            }
            (Unit::Nanoseconds, None) if profile.total_ns() >= SECONDS_FROM_NS => {
                measure(NS_PER_S, "s", &format!("s {what}"))
            }
            (Unit::Nanoseconds, None) => measure(NS_PER_MS, "ms", &format!("ms {what}")),
            (Unit::Samples, Some(count)) => measure(count as f64, "samples/request", "samples per request"),
            (Unit::Samples, None) => measure(1.0, "samples", "samples"),
        }
    }

    /// The measure of a comparison, whose tree is divided already.
    pub(crate) fn of_diff(profile: &Profile, basis: Basis) -> Measure {
        let what = what(profile);
        match (profile.unit, basis) {
            (Unit::Nanoseconds, Basis::Requests(_)) => {
                measure(NS_PER_US, "µs/request", &format!("µs {what} per request"))
            }
            (Unit::Nanoseconds, Basis::Seconds(_)) => {
                measure(NS_PER_MS, "ms/s", &format!("ms {what} per second watched"))
            }
            (Unit::Samples, Basis::Requests(_)) => measure(1.0, "samples/request", "samples per request"),
            (Unit::Samples, Basis::Seconds(_)) => measure(1.0, "samples/s", "samples per second watched"),
        }
    }

    /// A weight as a figure, without its unit.
    pub(crate) fn figure(&self, weight: f64) -> String {
        figure(weight / self.divisor)
    }

    /// A weight as a figure with its unit in words.
    pub(crate) fn words(&self, weight: f64) -> String {
        format!("{} {}", self.figure(weight), self.said)
    }

    /// A change as a figure with its sign.
    pub(crate) fn change(&self, weight: f64) -> String {
        let size = figure((weight / self.divisor).abs());
        match weight {
            _ if size.bytes().all(|byte| matches!(byte, b'0' | b'.')) => size,
            w if w < 0.0 => format!("−{size}"),
            _ => format!("+{size}"),
        }
    }
}

fn measure(divisor: f64, unit: &'static str, said: &str) -> Measure {
    Measure { divisor, unit, said: said.to_owned() }
}

fn what(profile: &Profile) -> &'static str {
    match profile.kind {
        Kind::OnCpu => "of CPU",
        Kind::OffCpu => "off CPU",
    }
}

/// Three digits for what is small, whole numbers for what is large.
fn figure(value: f64) -> String {
    match value {
        v if v.is_finite() && v != 0.0 && v.abs() < 0.095 => format!("{v:.3}"),
        v => number::micros(v),
    }
}

/// `34.5 %` of a whole.
pub(crate) fn share(part: f64, whole: f64) -> String {
    let percent = 100.0 * part / whole;
    match percent {
        p if !p.is_finite() => number::NONE.to_owned(),
        p if p > 0.0 && p < 0.095 => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::profile::Requests;

    #[test]
    fn time_is_per_request_where_requests_are_known() {
        let mut profile = Profile::default();
        assert_eq!(Measure::of(&profile).words(12_340_000.0), "12.3 ms of CPU");
        profile.requests = Some(Requests { count: 1_000, source: "load".to_owned() });
        assert_eq!(Measure::of(&profile).words(12_340_000.0), "12.3 µs of CPU per request");
        profile.kind = Kind::OffCpu;
        assert_eq!(Measure::of(&profile).said, "µs off CPU per request");
    }

    #[test]
    fn samples_are_never_called_time() {
        let profile = Profile { unit: Unit::Samples, ..Profile::default() };
        assert_eq!(Measure::of(&profile).words(834.0), "834 samples");
        let measure = Measure::of_diff(&profile, Basis::Seconds([1.0, 2.0]));
        assert_eq!(measure.words(12.5), "12.5 samples per second watched");
    }

    #[test]
    fn changes_have_a_sign_unless_they_round_to_nothing() {
        let measure = Measure::of_diff(&Profile::default(), Basis::Requests([1, 1]));
        assert_eq!(measure.change(-2_200.0), "−2.20");
        assert_eq!(measure.change(2_200.0), "+2.20");
        assert_eq!(measure.change(0.01), "0.000");
        assert_eq!([share(1.0, 3.0), share(1.0, 2_000.0), share(1.0, 0.0)], ["33.3 %", "0.05 %", "–"]);
    }
}

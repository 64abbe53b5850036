//! Figures that no measurement gives: a record that somebody wrote or changed by hand is refused where it says one.
//!
//! Every reader of records asks here before it believes a text. Units stand in the names of fields (`_s`, `_us`, `_per_second`),
//! so that one rule holds for all kinds; what is signed has `percent` or nothing for its unit.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// No figure of a machine is larger: a year in nanoseconds has 17 digits.
const LARGEST: f64 = 1e18;

/// Endings of names whose figures are never negative. `rates` and `ratio` are whole names.
const NEVER_NEGATIVE: [&str; 12] = [
    "_s",
    "_ms",
    "_us",
    "_ns",
    "_hz",
    "_bytes",
    "_per_s",
    "per_second",
    "_per_request",
    "_fraction",
    "rates",
    "ratio",
];

/// Why a text is no record of its kind.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or not of this shape.
    #[error("{}{source}", field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default())]
    Shape {
        /// The field at which reading ended, as far as it has a name.
        field: Option<String>,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A figure that cannot be.
    #[error(transparent)]
    Impossible(#[from] Impossible),
}

/// A figure that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found}: {why}")]
pub struct Impossible {
    /// Where it stands: `total.ratio`.
    pub field: String,
    /// What stands there.
    pub found: String,
    /// Why not.
    pub why: &'static str,
}

/// Reads a text whose schema is known to be right.
///
/// # Errors
/// When it has another shape, or a figure that cannot be.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, ReadError> {
    let shape = |source: serde_json::Error| ReadError::Shape { field: field_at(text, &source), source };
    let value: Value = serde_json::from_str(text).map_err(shape)?;
    check(&value)?;
    serde_json::from_str(text).map_err(shape)
}

/// Whether every figure of a record can be.
///
/// # Errors
/// The first that cannot.
pub fn check(record: &Value) -> Result<(), Impossible> {
    match impossible(record, Sign::Any, &mut String::new()) {
        None => Ok(()),
        Some(found) => Err(found),
    }
}

/// What a figure may be.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Any,
    NeverNegative,
}

fn impossible(value: &Value, sign: Sign, place: &mut String) -> Option<Impossible> {
    let wrong = |place: &str, why| Impossible { field: place.to_owned(), found: value.to_string(), why };
    match value {
        Value::Number(number) => {
            let figure = number.as_f64()?;
            match () {
                () if number.is_f64() && figure.abs() > LARGEST => {
                    Some(wrong(place, "no measurement is as large"))
                }
                () if sign == Sign::NeverNegative && figure < 0.0 => {
                    Some(wrong(place, "it cannot be negative"))
                }
                () => None,
            }
        }
        Value::Null if place.ends_with(']') || place.ends_with("ratio") => {
            Some(wrong(place, "a figure must stand there"))
        }
        Value::Array(all) => {
            all.iter().enumerate().find_map(|(at, one)| within(place, &format!("[{at}]"), one, sign))
        }
        Value::Object(fields) => fields.iter().find_map(|(name, one)| {
            let dot = if place.is_empty() { "" } else { "." };
            // Parts of a time are times: `latency_us.p99`.
            let sign = if sign == Sign::NeverNegative || never_negative(name) {
                Sign::NeverNegative
            } else {
                Sign::Any
            };
            within(place, &format!("{dot}{name}"), one, sign)
        }),
        _ => None,
    }
}

fn within(place: &mut String, step: &str, value: &Value, sign: Sign) -> Option<Impossible> {
    let length = place.len();
    place.push_str(step);
    let found = impossible(value, sign, place);
    place.truncate(length);
    found
}

fn never_negative(name: &str) -> bool {
    NEVER_NEGATIVE.iter().any(|ending| name.ends_with(ending))
}

/// The last name before the place at which a reader gave up.
#[must_use]
pub fn field_at(text: &str, error: &serde_json::Error) -> Option<String> {
    if !error.is_data() {
        return None;
    }
    let before: usize = text.split_inclusive('\n').take(error.line().checked_sub(1)?).map(str::len).sum();
    let upto = text.as_bytes().get(..before + error.column())?;
    let colon = upto.windows(2).rposition(|pair| pair == b"\":")?;
    let opened = upto[..colon].iter().rposition(|byte| *byte == b'"')?;
    Some(String::from_utf8_lossy(&upto[opened + 1..colon]).into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::load::LoadRun;
    use serde_json::json;

    #[test]
    fn a_figure_that_no_measurement_gives_is_named_with_its_place() {
        for (record, field) in [
            (json!({"total": {"ratio": -1.5}}), "total.ratio"),
            (json!({"rates": [1.0, -2.0]}), "rates[1]"),
            (json!({"latency_us": {"p99": -1}}), "latency_us.p99"),
            (json!({"effect_percent": 1e308}), "effect_percent"),
            (json!({"duration_s": -0.1}), "duration_s"),
            (json!({"total": {"ratio": null}}), "total.ratio"),
            (json!({"interval_percent": [1.0, null]}), "interval_percent[1]"),
            (
                json!({"rungs": [{"figures": [{"requests_per_second": -1.0}]}]}),
                "rungs[0].figures[0].requests_per_second",
            ),
        ] {
            assert_eq!(check(&record).unwrap_err().field, field);
        }
        let fine =
            json!({"seed": u64::MAX, "effect_percent": -33.0, "interval_percent": [-1.0, 2.0], "x_us": null});
        assert_eq!(check(&fine), Ok(()));
    }

    /// Planted fault: the reader's own words, which name a column of one long line.
    #[test]
    fn nothing_where_a_figure_must_be_is_told_with_its_field() {
        let mut run = serde_json::to_value(LoadRun::default()).unwrap();
        run["requests_per_second"] = Value::Null;
        let error = read::<LoadRun>(&run.to_string()).unwrap_err();
        assert!(error.to_string().starts_with("requests_per_second: invalid type: null"), "{error}");
    }
}

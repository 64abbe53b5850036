//! What experiments foretold of a rung beside what was measured, in words: for the table and for the page.

use dyno_record::climb::{ChangedFunction, Predicted, Worth};

use crate::number::{effect, hundredths, percent, visible};

/// Functions that a line names: the page has all of them.
const NAMED_MAX: usize = 3;

/// Prediction and measurement, one beside the other.
pub(crate) fn line(foretold: &Predicted) -> String {
    let measured = foretold.measured_percent.zip(foretold.measured_interval_percent);
    let measured = measured.map_or_else(
        || "not measured".to_owned(),
        |(value, interval)| format!("measured {}", effect(value, interval)),
    );
    let predicted = foretold.predicted_percent.zip(foretold.interval_percent);
    match predicted {
        Some((value, interval)) => {
            let (value, lack) = (effect(value, interval), lack(foretold).unwrap_or_default());
            format!("time per request: predicted {value}{lack}, {measured}{}", of(foretold))
        }
        None => {
            let why =
                foretold.why_not.as_deref().map_or_else(String::new, |why| format!(" ({})", visible(why)));
            format!("time per request: {measured}, not predicted{why}")
        }
    }
}

/// What a prediction's interval lacks.
pub(crate) fn lack(foretold: &Predicted) -> Option<&'static str> {
    let lacks = foretold.predicted_percent.is_some() && foretold.drift_percent.is_none();
    lacks.then_some(" (drift unknown: the true interval is wider)")
}

/// The functions that a prediction rests on.
fn of(foretold: &Predicted) -> String {
    let named: Vec<String> = foretold.functions.iter().take(NAMED_MAX).map(function).collect();
    let more = foretold.functions.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if named.is_empty() { String::new() } else { format!("; of {}{more}", named.join(", ")) }
}

fn function(one: &ChangedFunction) -> String {
    let name = visible(dyno_profile::name::short(&one.name));
    format!("{name} {}", worth(one))
}

/// What a function's change is worth.
pub(crate) fn worth(one: &ChangedFunction) -> String {
    let value = one.predicted_percent.map_or_else(String::new, percent);
    match one.by {
        Worth::Curve => value,
        Worth::BeyondCurve => format!("{value} (beyond its curve)"),
        Worth::Average => format!("{value} (by the average)"),
        Worth::SetOff => "(new: set off)".to_owned(),
    }
}

/// How its CPU per request changed, in µs.
pub(crate) fn change(one: &ChangedFunction) -> [String; 2] {
    [one.before_us, one.after_us].map(hundredths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_stands_beside_its_measurement_with_what_it_rests_on() {
        let function = |name: &str, worth, by| ChangedFunction {
            name: name.to_owned(),
            predicted_percent: Some(worth),
            by,
            ..ChangedFunction::default()
        };
        let functions = vec![
            function("send", -15.0, Worth::Curve),
            function("write", -6.0, Worth::BeyondCurve),
            function("new", 3.0, Worth::Average),
            function("d", -0.2, Worth::Average),
        ];
        let foretold = Predicted {
            predicted_percent: Some(-18.2),
            interval_percent: Some([-20.2, -16.2]),
            drift_percent: Some(0.4),
            measured_percent: Some(-17.0),
            measured_interval_percent: Some([-17.5, -16.5]),
            functions,
            ..Predicted::default()
        };
        let wanted = "time per request: predicted −18.2 % ±2.0, measured −17.0 % ±0.5; of send −15.0 %, \
            write −6.0 % (beyond its curve), new +3.0 % (by the average) and 1 more";
        assert_eq!(line(&foretold), wanted);
        let lacking = line(&Predicted { drift_percent: None, ..foretold });
        assert!(lacking.contains("±2.0 (drift unknown: the true interval is wider), measured"), "{lacking}");
    }

    #[test]
    fn what_is_not_predicted_says_why_and_obeys_nothing() {
        let why_not = Some("no curve holds; \u{1b}[2J".to_owned());
        let text = line(&Predicted { why_not, ..Predicted::default() });
        assert!(
            text.starts_with("time per request: not measured, not predicted (no curve holds; "),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}

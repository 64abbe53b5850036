//! What experiments predicted of a rung beside what was measured: a line under its row, and a part of its card.

use dyno_profile::name::short;
use dyno_record::climb::{ChangedFunction, Climb, Predicted, SettingCausal, Worth};

use super::block::Block;
use super::chart::{Estimates, Ink, Row};
use super::table::{self, Align, Column, Table, known, words};
use super::words::paragraph;
use crate::number::{duration, effect, estimate, hundredths, percent};

/// Functions that a line names: the card has all.
const NAMED_MAX: usize = 3;

/// Prediction and measurement, one beside the other.
pub(crate) fn line(one: &Predicted) -> String {
    let measured = one.measured_percent.zip(one.measured_interval_percent);
    let measured = measured.map_or_else(
        || "not measured".to_owned(),
        |(value, interval)| format!("measured {}", effect(value, interval)),
    );
    match one.predicted_percent.zip(one.interval_percent) {
        Some((value, interval)) => {
            let value = effect(value, interval);
            format!("time per request: predicted {value}{}, {measured}{}", lack(one), of(one))
        }
        None => {
            let why = one.why_not.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
            format!("time per request: {measured}, not predicted{why}")
        }
    }
}

/// What a prediction's interval lacks: fewer than two looks at both sides told the CPU per request.
fn lack(one: &Predicted) -> &'static str {
    if one.drift_percent.is_none() { " (drift unknown: the true interval is wider)" } else { "" }
}

/// The functions that a prediction rests on.
fn of(one: &Predicted) -> String {
    let named = one.functions.iter().take(NAMED_MAX);
    let named: Vec<String> = named.map(|one| format!("{} {}", short(&one.name), worth(one))).collect();
    let more = one.functions.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if named.is_empty() { String::new() } else { format!("; of {}{more}", named.join(", ")) }
}

/// What a function's change is worth.
fn worth(one: &ChangedFunction) -> String {
    let value = one.predicted_percent.map_or_else(String::new, percent);
    match one.by {
        Worth::Curve => value,
        Worth::BeyondCurve => format!("{value} (beyond its curve)"),
        Worth::Average => format!("{value} (by the average)"),
        Worth::SetOff => "(new: set off)".to_owned(),
    }
}

/// Both figures on one scale, then the functions that the prediction rests on.
pub(crate) fn blocks(climb: &Climb, one: &Predicted) -> Vec<Block> {
    let estimates = Estimates::of(estimates(one), [-1.0, 1.0]);
    let drawn = estimates.map(|estimates| Block::Figure(estimates.figure("")));
    let heading = Block::Heading("Predicted and measured: time per request");
    let parts = [heading, paragraph(line(one))].into_iter().chain(drawn);
    parts.chain(functions(one)).chain(remarks(climb, one).map(paragraph)).collect()
}

fn estimates(one: &Predicted) -> Vec<Row> {
    let predicted =
        Row::one("predicted", one.predicted_percent.unwrap_or(f64::NAN), one.interval_percent, Ink::Hollow);
    let measured = one.measured_percent.unwrap_or(f64::NAN);
    let measured = Row::one("measured", measured, one.measured_interval_percent, Ink::Solid);
    predicted.into_iter().chain(measured).collect()
}

const COLUMNS: [Column; 4] = [
    Column::words("function, with the kernel's work for it", 0),
    Column::page("before, µs/request"),
    Column::page("with it"),
    Column { align: Align::Left, ..Column::page("worth") },
];

fn functions(one: &Predicted) -> Option<Block> {
    let row = |one: &ChangedFunction| -> table::Row {
        let [before, after] = [one.before_us, one.after_us].map(|us| known(Some(us), hundredths));
        vec![words(short(&one.name)), before, after, words(worth(one))].into()
    };
    let rows: Vec<_> = one.functions.iter().map(row).collect();
    (!rows.is_empty()).then(|| Block::Table(Table::new("", &COLUMNS, rows)))
}

/// How the experiments went, and what stayed as it was.
fn remarks(climb: &Climb, one: &Predicted) -> Option<String> {
    let made = one.profile.and_then(|at| climb.causal.get(at)).map(experiments)?;
    let unchanged: Vec<&str> = one.unchanged.iter().map(|name| short(name)).collect();
    let stayed = match unchanged.is_empty() {
        true => String::new(),
        false => format!(" Not changed beyond what samples can tell: {}.", unchanged.join(", ")),
    };
    Some(format!("{made}{stayed}"))
}

fn experiments(made: &SettingCausal) -> String {
    let sites = made.profile.sites.iter().filter_map(|site| {
        let point = site.greatest()?;
        let saves = estimate(Some(point.effect_percent), Some(point.interval_percent));
        Some(format!("{} {} % faster saves {saves}", short(&site.name), point.speedup_percent))
    });
    let sites: Vec<String> = sites.collect();
    let time = duration(made.profile.duration_s);
    format!("Experiments of {time} on the setting before: {}.", sites.join("; "))
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
        let predicted = Predicted {
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
        assert_eq!(line(&predicted), wanted);
        let lacking = line(&Predicted { drift_percent: None, ..predicted });
        assert!(lacking.contains("±2.0 (drift unknown: the true interval is wider), measured"), "{lacking}");
    }

    #[test]
    fn what_is_not_predicted_says_why() {
        let why_not = Some("no curve holds".to_owned());
        let text = line(&Predicted { why_not, ..Predicted::default() });
        assert_eq!(text, "time per request: not measured, not predicted (no curve holds)");
    }
}

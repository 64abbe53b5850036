//! The views of a specimen: its truth, a comparison of its two sides, and predictions beside what was really brought.
//!
//! `dyno specimen` shows them.

use dyno_record::causal::Verdict;
use dyno_record::climb::Ratio;
use dyno_record::comparison::{Figures, Record};
use dyno_record::specimen::{Place, Side, Specimen};
use dyno_record::truth::{Row as TruthRow, Truth};

use super::block::{Block, Fact, OnTerminal, View};
use super::table::{self, Column, Table, figure, words};
use super::words::{cut_short, machine, paragraph};
use crate::number::{NONE, bytes, count, estimate, latency, percent, times, times_with_interval};

/// Columns of the labels: the longest is "cut short".
const LABEL_COLUMNS: usize = 10;

fn subject(specimen: &Specimen) -> String {
    format!("{}: {} ({})", specimen.name, specimen.title, specimen.language.name())
}

/// The truth of a specimen: what is planted, why it is slow, how it is repaired.
pub(crate) fn explanation(specimen: &Specimen) -> View {
    let truth = &specimen.truth;
    let [low, high] = specimen.expect.ratio;
    let expected = format!("{low} to {high} times as many {} per second", specimen.unit);
    let class = specimen
        .class
        .is_some()
        .then(|| format!("{}: what a diagnosis must name first", specimen.class_name()));
    let mut facts = planted(specimen);
    facts.push(Fact::new("where", place(specimen, &truth.repaired)));
    facts.push(Fact::new("expected", expected));
    facts.push(Fact::new("class", class.unwrap_or_default()));
    if let Some(story) = &truth.story {
        facts.push(Fact::new("the story", &story.told));
        facts.extend(story.but.iter().map(|but| Fact::new("but", but)));
    }
    facts.extend(specimen.also.iter().map(|also| Fact::new("also", &also.what)));
    facts.extend(specimen.fetches.iter().map(|what| Fact::new("fetches", what)));
    facts.push(Fact::new("measure", format!("dyno specimen run {}", specimen.name)));
    let predict = specimen.causal.as_ref().map(|_| format!("dyno specimen run {} --causal", specimen.name));
    facts.push(Fact::new("predict", predict.unwrap_or_default()));
    facts.push(Fact::new("source", format!("dyno specimen explain {} --source", specimen.name)));
    let groups =
        vec![(OnTerminal::Above, paragraph(subject(specimen))), (OnTerminal::Answer, Block::Facts(facts))];
    View::terminal(LABEL_COLUMNS, groups)
}

/// The defect, its place, its reason and its repair.
fn planted(specimen: &Specimen) -> Vec<Fact> {
    let truth = &specimen.truth;
    vec![
        Fact::new("planted", &truth.planted),
        Fact::new("where", place(specimen, &truth.defect)),
        Fact::new("why slow", &truth.why),
        Fact::new("repair", &truth.repair),
    ]
}

fn place(specimen: &Specimen, place: &Place) -> String {
    let line = specimen.line_of(place).map_or_else(String::new, |line| format!(":{line}"));
    let file = specimen.path_of(&place.file);
    format!("{file}{line}, in {}: {}", place.function, place.line)
}

/// What a comparison of both sides came to.
pub(crate) fn comparison(specimen: &Specimen, record: &Record) -> View {
    let about = vec![Fact::new("specimen", subject(specimen)), Fact::new("machine", circumstances(record))];
    let also = specimen.also.as_ref().zip(record.also.as_ref());
    let also =
        also.map(|(also, figures)| Fact::new(&also.word, format!("{}: {}", also.what, notes(figures))));
    let more = Fact::new("more", format!("dyno specimen explain {}", specimen.name));
    let ratio = Fact::new("ratio", verdict(record));
    let answer = std::iter::once(ratio).chain(also).chain(planted(specimen)).chain([more]).collect();
    let groups = vec![
        (OnTerminal::Above, Block::Facts(about)),
        (OnTerminal::Found, Block::Table(sides(record))),
        (OnTerminal::Answer, Block::Facts(answer)),
    ];
    View::terminal(LABEL_COLUMNS, groups)
}

const SIDES: [Column; 3] = [
    Column::words("side", 10),
    Column::figure("units/s", 1, 20).under("{} units/s"),
    Column::figure("CPU per unit", 2, 20).under("{} of CPU per unit"),
];

fn sides(record: &Record) -> Table {
    let row = |side: Side| -> table::Row {
        let per_s = record.median(side, Figures::per_s);
        let cpu_ns = record.median(side, Figures::cpu_per_unit_ns);
        vec![words(side.word()), figure(rate(per_s), per_s), figure(cpu(cpu_ns), cpu_ns)].into()
    };
    Table::new("", &SIDES, vec![row(Side::Defect), row(Side::Repaired)])
}

fn circumstances(record: &Record) -> String {
    let load = record.connections.map_or(String::new(), |n| format!(" · {n} connections, closed loop"));
    format!(
        "{}, {} of memory · {} rounds of {:.0} ms a side, order by seed {}{load} · unit: {}",
        machine(&record.machine),
        bytes(record.machine.memory_bytes),
        record.rounds.len(),
        record.run_ns as f64 / 1e6,
        record.seed,
        record.unit,
    )
}

/// What may be said of it, and whether that is a surprise.
fn verdict(record: &Record) -> String {
    let Some(rate) = &record.rate else {
        return format!("{NONE} too few rounds for an interval");
    };
    let mut text =
        format!("{} units per second, repaired over defect (99 % interval)", times_with_interval(rate));
    if let Some(cpu) = &record.cpu_per_unit {
        text.push_str(&format!(" · CPU per unit {}", share_with_interval(cpu)));
    }
    let [low, high] = record.expected;
    match record.is_shown() {
        Some(true) if record.changes_nothing => {
            text.push_str(" · as expected: nothing that is counted changes");
        }
        Some(false) if record.changes_nothing => text.push_str(" · not expected: nothing was to change"),
        Some(true) if (low..=high).contains(&rate.ratio) => text.push_str(" · as expected"),
        Some(true) => text.push_str(&format!(" · expected {} to {}", times(low), times(high))),
        _ => text.push_str(" · no gain seen here: the defect does not show on this machine"),
    }
    text
}

pub(crate) fn notes(figures: &Figures) -> String {
    let note =
        |(name, value): (&String, &i64)| format!("{} {}", name.replace('_', " "), count(*value as f64));
    figures.notes.iter().map(note).collect::<Vec<_>>().join(", ")
}

/// Units per second: whole ones from a hundred up.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        v if !v.is_finite() => NONE.to_owned(),
        v if v < 100.0 => format!("{v:.1}"),
        v => count(v),
    }
}

/// CPU time, from nanoseconds up.
pub(crate) fn cpu(ns: f64) -> String {
    match ns {
        v if !v.is_finite() => NONE.to_owned(),
        v if v < 10.0 => format!("{v:.1} ns"),
        v if v < 999.5 => format!("{v:.0} ns"),
        v => latency(v / 1e3),
    }
}

/// What is left of a cost: in percent, with two digits also where little is left.
fn share_with_interval(ratio: &Ratio) -> String {
    let percent = |ratio: f64| match 100.0 * ratio {
        v if !v.is_finite() => NONE.to_owned(),
        v if v < 0.1 => format!("{v:.3}"),
        v if v < 1.0 => format!("{v:.2}"),
        v if v < 10.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    };
    let [low, high] = ratio.interval.map(percent);
    format!("{} % ({low} … {high})", percent(ratio.ratio))
}

/// What was predicted beside what it really brought.
pub(crate) fn truth(truth: &Truth) -> View {
    let real = format!(
        "{} rounds of {:.0} ms for each of {} variants, order by seed {}",
        truth.rounds_us.len(),
        truth.run_ns as f64 / 1e6,
        truth.variants.len(),
        truth.seed
    );
    let subject = format!("{} · unit: {}", truth.name, truth.unit);
    let about = [Fact::new("specimen", &subject), Fact::new("for real", real)];
    let about = cut_short(truth.cut_short.as_ref()).into_iter().chain(about).collect();
    let why = |site: &dyno_record::causal::Site| Fact::new("why", format!("{}: {}", site.name, site.reason));
    let short = Fact::new("in short", truth_summary(&truth.rows));
    let answer = truth.predicted.sites.iter().map(why).chain([short]).collect();
    let rows = truth.rows.iter().map(|row| truth_row(row).into()).collect();
    let table = Table::new("", &TRUTH_COLUMNS, rows);
    let groups = vec![
        (OnTerminal::Above, Block::Facts(about)),
        (OnTerminal::Found, Block::Table(table)),
        (OnTerminal::Answer, Block::Facts(answer)),
    ];
    View::terminal(LABEL_COLUMNS, groups)
}

const TRUTH_COLUMNS: [Column; 7] = [
    Column::words("site", 40),
    Column::figure("shorter by", 1, 20).under("shorter by {}"),
    Column::figure("predicted saving", 2, 24).under("predicted {}"),
    Column::figure("actual saving", 3, 24).under("actual {}"),
    Column::figure("off by", 4, 10).under("off by {}"),
    Column::words("inside", 10).falls(5).under("inside: {}"),
    Column::words("verdict", usize::MAX),
];

fn truth_row(row: &TruthRow) -> Vec<table::Cell> {
    let saving = |value: Option<f64>, interval: Option<[f64; 2]>| {
        value.zip(interval).map_or(NONE.to_owned(), |(value, interval)| estimate(Some(value), Some(interval)))
    };
    let inside = match (row.inside, row.agrees) {
        _ if row.biased => "set aside",
        (Some(true), _) => "yes",
        (Some(false), Some(true)) => "nearly",
        (Some(false), _) => "no",
        (None, _) => "",
    };
    let cells = [
        row.site.clone(),
        row.speedup_percent.map_or("the repair".to_owned(), |level| format!("{level} %")),
        saving(row.predicted_percent, row.predicted_interval),
        saving(row.actual_percent, row.actual_interval),
        row.error_points.map_or(NONE.to_owned(), |points| percent(points).replace(" %", "")),
        inside.to_owned(),
        row.verdict.map_or("not tried", Verdict::words).to_owned(),
    ];
    cells.map(words).into()
}

fn truth_summary(rows: &[TruthRow]) -> String {
    let claims: Vec<&TruthRow> =
        rows.iter().filter(|row| row.verdict == Some(Verdict::Helps) && !row.biased).collect();
    let known = claims.iter().filter(|row| row.inside.is_some()).count();
    let inside = claims.iter().filter(|row| row.inside == Some(true)).count();
    let agree = claims.iter().filter(|row| row.agrees == Some(true)).count();
    let mut errors: Vec<f64> =
        rows.iter().filter(|row| !row.biased).filter_map(|row| row.error_points).map(f64::abs).collect();
    errors.sort_unstable_by(f64::total_cmp);
    let median = errors.get(errors.len() / 2).map_or(NONE.to_owned(), |error| format!("{error:.1} points"));
    let aside = rows.iter().filter(|row| row.biased).count();
    let aside =
        if aside > 0 { format!(" · {aside} set aside by the profile itself") } else { String::new() };
    format!(
        "of {known} predictions that say a part helps, the truth lies inside {inside}, and {agree} agree with it within both errors · median error of all rows {median}{aside}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_costs_have_as_many_digits_as_they_mean() {
        assert_eq!([rate(41.26), rate(1_234_567.8), rate(f64::NAN)], ["41.3", "1,234,568", NONE]);
        let ratio = |ratio: f64| share_with_interval(&Ratio { ratio, interval: [0.9 * ratio, 1.1 * ratio] });
        assert_eq!(ratio(0.19), "19 % (17 … 21)");
        assert_eq!(ratio(0.002), "0.20 % (0.18 … 0.22)");
        assert_eq!([cpu(0.83), cpu(402.2), cpu(35_100.0)], ["0.8 ns", "402 ns", "35.1 µs"]);
    }
}

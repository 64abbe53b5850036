//! What `dyno specimen` shows: the list, the truth of one, a comparison, the figures of one side.

use dyno_measure::causal::Verdict;
use dyno_measure::record::Ratio;
use dyno_measure::stats::Sorted;
use dyno_sys::Pid;
use serde_json::{Value, json};

use super::number::{NONE, bytes, count, effect, latency, percent, times, times_with_interval};
use super::table::{Align, Column, Row, chars, lines, render, wrapped};
use crate::cmd::specimen::{Figures, Record, Row as TruthRow, Side, Specimen, Truth};

/// Blanks between the columns of the list.
const GAP: usize = 2;
/// The narrowest column of titles; where there is less room the title stands under its name.
const TITLE_MIN: usize = 30;
/// Lines are hard to read beyond this.
const TEXT_WIDTH_MAX: usize = 100;
/// Where the words of a labelled paragraph begin.
const LABEL: usize = 10;

/// The list, in at most `width` columns.
pub(crate) fn list(all: &[Specimen], width: usize) -> String {
    let class = |specimen: &Specimen| specimen.class_name();
    let longest = |of: &dyn Fn(&Specimen) -> usize| all.iter().map(of).max().unwrap_or(0);
    let widths = [
        longest(&|specimen| chars(&specimen.name)),
        longest(&|specimen| chars(specimen.language.name())),
        longest(&|specimen| chars(&class(specimen))),
    ];
    let used = widths.iter().sum::<usize>() + 3 * GAP;
    let mut out = String::new();
    for specimen in all {
        let cells = [&specimen.name, specimen.language.name(), &class(specimen)];
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}  "));
        let head: String = cells.collect();
        if width >= used + TITLE_MIN {
            out.push_str(&hanging(&head, &specimen.title, width));
        } else {
            out.push_str(&format!("{}\n{}", head.trim_end(), wrapped(&specimen.title, width, 4)));
        }
    }
    out
}

/// The list for machines.
pub(crate) fn list_json(all: &[Specimen]) -> Value {
    let entry = |specimen: &Specimen| {
        json!({
            "name": specimen.name,
            "language": specimen.language.name(),
            "class": specimen.class,
            "title": specimen.title,
            "unit": specimen.unit,
            "connections": specimen.load.as_ref().map(|load| load.connections),
            "fetches": specimen.fetches,
            "causal": specimen.causal.is_some(),
        })
    };
    all.iter().map(entry).collect()
}

/// The truth of a specimen, as a page.
pub(crate) fn explain(specimen: &Specimen, width: usize) -> String {
    let width = width.min(TEXT_WIDTH_MAX);
    let truth = &specimen.truth;
    let [low, high] = specimen.expect.ratio;
    let expected = format!("{low} to {high} times as many {} per second", specimen.unit);
    let mut out = format!("{}: {} ({})\n\n", specimen.name, specimen.title, specimen.language.name());
    let mut say = |label: &str, text: &str| out.push_str(&labelled(label, text, width));
    say("planted", &truth.planted);
    say("where", &place(specimen, &truth.defect));
    say("why slow", &truth.why);
    say("repair", &truth.repair);
    say("where", &place(specimen, &truth.repaired));
    say("expected", &expected);
    if specimen.class.is_some() {
        say("class", &format!("{}: what a diagnosis must name first", specimen.class_name()));
    }
    if let Some(story) = &truth.story {
        say("the story", &story.told);
        story.but.iter().for_each(|but| say("but", but));
    }
    specimen.also.iter().for_each(|also| say("also", &also.what));
    specimen.fetches.iter().for_each(|what| say("fetches", what));
    say("measure", &format!("dyno specimen run {}", specimen.name));
    if specimen.causal.is_some() {
        say("predict", &format!("dyno specimen run {} --causal", specimen.name));
    }
    say("source", &format!("dyno specimen explain {} --source", specimen.name));
    out
}

/// All files of a specimen.
pub(crate) fn source(specimen: &Specimen) -> String {
    let mut out = String::new();
    for source in &specimen.sources {
        let sign = if source.name.ends_with(".h") || source.name.ends_with(".c") { "/*" } else { "//" };
        let end = if sign == "/*" { " */" } else { "" };
        out.push_str(&format!("{sign} specimens/{}/{}{end}\n{}\n", source.folder, source.name, source.text));
    }
    out
}

/// What a comparison came to.
pub(crate) fn comparison(specimen: &Specimen, record: &Record, width: usize) -> String {
    let width = width.min(TEXT_WIDTH_MAX);
    let mut out = labelled("specimen", &subject(specimen), width);
    out.push_str(&labelled("machine", &circumstances(record), width));
    out.push('\n');
    // The column at the end is empty, and so is what stands before it.
    let table = render(&COLUMNS, "", &rows(record), width);
    out.extend(table.lines().flat_map(|line| [line.trim_end(), "\n"]));
    out.push('\n');
    out.push_str(&labelled("ratio", &verdict(record), width));
    if let (Some(also), Some(figures)) = (&specimen.also, &record.also) {
        let text = format!("{}: {}", also.what, notes(figures));
        out.push_str(&labelled(&also.word, &text, width));
    }
    out.push_str(&teaching(specimen, width));
    out
}

/// That a side runs, and how to look at it.
pub(crate) fn started(pid: Pid, url: Option<&str>, specimen: &Specimen) -> String {
    let connections = specimen.load.as_ref().map_or(0, |load| load.connections);
    match url {
        None => format!("pid       {pid}\n"),
        Some(url) => {
            format!("pid       {pid}\nurl       {url}\nload      dyno load -c{connections} -p {pid} {url}\n")
        }
    }
}

/// The same for machines.
pub(crate) fn started_json(pid: Pid, url: Option<&str>) -> String {
    format!("{}\n", json!({ "pid": pid, "url": url }))
}

/// What one side did.
pub(crate) fn figures(figures: &Figures, specimen: &Specimen) -> String {
    let (units, seconds) = (count(figures.units as f64), figures.elapsed_ns as f64 / 1e9);
    let mut out = format!("units     {units} {} in {seconds:.1} s", specimen.unit);
    out.push_str(&format!(", {} per second", rate(figures.per_s())));
    out.push_str(&format!(", {} of CPU each\n", cpu(figures.cpu_per_unit_ns())));
    if !figures.notes.is_empty() {
        out.push_str(&format!("notes     {}\n", notes(figures)));
    }
    out
}

/// What was predicted beside what it really brought.
pub(crate) fn truth(truth: &Truth, width: usize) -> String {
    let width = width.min(TRUTH_WIDTH_MAX);
    let mut out = labelled("specimen", &format!("{} · unit: {}", truth.name, truth.unit), width);
    let real = format!(
        "{} rounds of {:.0} ms for each of {} variants, order by seed {}",
        truth.rounds_us.len(),
        truth.run_ns as f64 / 1e6,
        truth.variants.len(),
        truth.seed
    );
    out.push_str(&labelled("for real", &real, width));
    truth.cut_short.iter().for_each(|why| out.push_str(&labelled("cut short", why, width)));
    out.push('\n');
    let table =
        render(&TRUTH_COLUMNS, "verdict", &truth.rows.iter().map(truth_row).collect::<Vec<_>>(), width);
    out.extend(table.lines().flat_map(|line| [line.trim_end(), "\n"]));
    out.push('\n');
    for site in &truth.predicted.sites {
        out.push_str(&labelled("why", &format!("{}: {}", site.name, site.reason), width));
    }
    out.push_str(&labelled("in short", &truth_summary(&truth.rows), width));
    out
}

/// Six columns have more room than a text.
const TRUTH_WIDTH_MAX: usize = 120;

const TRUTH_COLUMNS: [Column; 6] = [
    Column { head: "site", align: Align::Left, falls: None, cell_max: 40 },
    Column { head: "shorter by", align: Align::Right, falls: Some(1), cell_max: 20 },
    Column { head: "predicted saving", align: Align::Right, falls: Some(2), cell_max: 24 },
    Column { head: "actual saving", align: Align::Right, falls: Some(3), cell_max: 24 },
    Column { head: "off by", align: Align::Right, falls: Some(4), cell_max: 10 },
    Column { head: "inside", align: Align::Left, falls: Some(5), cell_max: 10 },
];

fn truth_row(row: &TruthRow) -> Row {
    let saving = |value: Option<f64>, interval: Option<[f64; 2]>| match (value, interval) {
        (Some(value), Some(interval)) => effect(value, interval),
        _ => NONE.to_owned(),
    };
    let level = row.speedup_percent.map_or("the repair".to_owned(), |level| format!("{level} %"));
    let predicted = saving(row.predicted_percent, row.predicted_interval);
    let actual = saving(row.actual_percent, row.actual_interval);
    let off = row.error_points.map_or(NONE.to_owned(), |points| percent(points).replace(" %", ""));
    let inside = match (row.inside, row.agrees) {
        _ if row.biased => "set aside",
        (Some(true), _) => "yes",
        (Some(false), Some(true)) => "nearly",
        (Some(false), _) => "no",
        (None, _) => "",
    };
    let word = row.verdict.map_or("not tried", Verdict::words);
    Row {
        elsewhere: vec![
            String::new(),
            format!("shorter by {level}"),
            format!("predicted {predicted}"),
            format!("actual {actual}"),
            format!("off by {off}"),
            if inside.is_empty() { String::new() } else { format!("inside: {inside}") },
        ],
        cells: vec![row.site.clone(), level, predicted, actual, off, inside.to_owned()],
        end: word.to_owned(),
        end_printed: word.to_owned(),
        ..Row::default()
    }
}

fn truth_summary(rows: &[TruthRow]) -> String {
    let claims: Vec<&TruthRow> =
        rows.iter().filter(|row| row.verdict == Some(Verdict::Helps) && !row.biased).collect();
    let known = claims.iter().filter(|row| row.inside.is_some()).count();
    let inside = claims.iter().filter(|row| row.inside == Some(true)).count();
    let agree = claims.iter().filter(|row| row.agrees == Some(true)).count();
    let errors = rows.iter().filter(|row| !row.biased).filter_map(|row| row.error_points).map(f64::abs);
    let median = Sorted::of(errors).quantile(0.5);
    let median = median.map_or(NONE.to_owned(), |error| format!("{error:.1} points"));
    let aside = rows.iter().filter(|row| row.biased).count();
    let aside =
        if aside > 0 { format!(" · {aside} set aside by the profile itself") } else { String::new() };
    format!(
        "of {known} predictions that say a part helps, the truth lies inside {inside}, and {agree} agree with it within both errors · median error of all rows {median}{aside}"
    )
}

const COLUMNS: [Column; 3] = [
    Column { head: "side", align: Align::Left, falls: None, cell_max: 10 },
    Column { head: "units/s", align: Align::Right, falls: Some(1), cell_max: 20 },
    Column { head: "CPU per unit", align: Align::Right, falls: Some(2), cell_max: 20 },
];

fn rows(record: &Record) -> Vec<Row> {
    let row = |side: Side| {
        let (rate, cpu) =
            (rate(record.median(side, Figures::per_s)), cpu(record.median(side, Figures::cpu_per_unit_ns)));
        let elsewhere = vec![String::new(), format!("{rate} units/s"), format!("{cpu} of CPU per unit")];
        Row { cells: vec![side.word().to_owned(), rate, cpu], elsewhere, ..Row::default() }
    };
    vec![row(Side::Defect), row(Side::Repaired)]
}

fn subject(specimen: &Specimen) -> String {
    format!("{}: {} ({})", specimen.name, specimen.title, specimen.language.name())
}

fn circumstances(record: &Record) -> String {
    let machine = &record.machine;
    let vm = if machine.virtual_machine { ", VM" } else { "" };
    let load = record.connections.map_or(String::new(), |n| format!(" · {n} connections, closed loop"));
    format!(
        "{} CPUs ({}{vm}), {} of memory, Linux {} · {} rounds of {:.0} ms a side, order by seed {}{load} · unit: {}",
        machine.cpus,
        machine.model,
        bytes(machine.memory_bytes),
        machine.kernel,
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

fn teaching(specimen: &Specimen, width: usize) -> String {
    let truth = &specimen.truth;
    let mut out = labelled("planted", &truth.planted, width);
    out.push_str(&labelled("where", &place(specimen, &truth.defect), width));
    out.push_str(&labelled("why slow", &truth.why, width));
    out.push_str(&labelled("repair", &truth.repair, width));
    out.push_str(&labelled("more", &format!("dyno specimen explain {}", specimen.name), width));
    out
}

fn place(specimen: &Specimen, place: &crate::cmd::specimen::Place) -> String {
    let line = specimen.line_of(place).map_or_else(String::new, |line| format!(":{line}"));
    let file = specimen.path_of(&place.file);
    format!("{file}{line}, in {}: {}", place.function, place.line)
}

fn notes(figures: &Figures) -> String {
    let note =
        |(name, value): (&String, &i64)| format!("{} {}", name.replace('_', " "), count(*value as f64));
    figures.notes.iter().map(note).collect::<Vec<_>>().join(", ")
}

/// Units per second: whole ones from a hundred up.
fn rate(per_s: f64) -> String {
    match per_s {
        v if !v.is_finite() => NONE.to_owned(),
        v if v < 100.0 => format!("{v:.1}"),
        v => count(v),
    }
}

/// CPU time, from nanoseconds up.
fn cpu(ns: f64) -> String {
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

/// A label and its paragraph beside it.
fn labelled(label: &str, text: &str, width: usize) -> String {
    hanging(&format!("{label:LABEL$}"), text, width)
}

/// A paragraph beside its head; the further lines begin where the first does.
fn hanging(head: &str, text: &str, width: usize) -> String {
    let indent = chars(head);
    let mut out = String::new();
    for (at, line) in lines(text, width.saturating_sub(indent).max(TITLE_MIN)).iter().enumerate() {
        match at {
            0 => out.push_str(head),
            _ => out.push_str(&" ".repeat(indent)),
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str) -> Specimen {
        let mut all = crate::cmd::specimen::all().into_iter();
        all.find(|specimen| specimen.name == name).expect("it is on the shelf")
    }

    #[test]
    fn what_was_predicted_stands_beside_what_it_brought() {
        let text = truth(&crate::cmd::specimen::truth_of_tests(), 120);
        let line = text.lines().find(|line| line.contains("50 %")).unwrap_or_default();
        for owed in ["part_of_sixty", "+30.0 % ±1.0", "+28.0 % ±", "+2.0", "no", "helps"] {
            assert!(line.contains(owed), "{owed}: {text}");
        }
        assert!(text.contains("the truth lies inside 1"), "{text}");
        let narrow = truth(&crate::cmd::specimen::truth_of_tests(), 60);
        assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    }

    #[test]
    fn the_list_is_a_table_where_there_is_room_and_a_title_under_its_name_elsewhere() {
        let all = [one("sync-log"), one("tree-index")];
        assert_eq!(
            list(&all, 100),
            "sync-log    C    sync_io        a server that puts each log line on the disk before it answers\n\
             tree-index  C++  user_hot_spot  a balanced tree where a hash table belongs\n"
        );
        assert_eq!(
            list(&all[1..], 50),
            "tree-index  C++  user_hot_spot\n    a balanced tree where a hash table belongs\n"
        );
    }

    #[test]
    fn the_truth_of_a_specimen_is_a_page_with_the_places_in_its_source() {
        assert_eq!(
            explain(&one("message-copies"), 80),
            "message-copies: a message that is copied for each of eight stages (Rust)\n\
             \n\
             planted   A message of 256 KiB goes through eight stages; each gets a copy and\n\
             \x20         reads the first 4 KiB.\n\
             where     specimens/message-copies/main.rs:27, in pass_copies:\n\
             \x20         rest[0].copy_from_slice(from);\n\
             why slow  2 MiB are read and written for each message so that 32 KiB can be\n\
             \x20         looked at.\n\
             repair    Stages get a reference to the same bytes: none of them writes.\n\
             where     specimens/message-copies/main.rs:35, in pass_references:\n\
             \x20         (0..=STAGES).fold(0, |sum, _stage| sum ^\n\
             \x20         look_at_head(black_box(message)))\n\
             expected  2 to 60 times as many messages per second\n\
             class     copying: what a diagnosis must name first\n\
             measure   dyno specimen run message-copies\n\
             source    dyno specimen explain message-copies --source\n"
        );
    }

    #[test]
    fn rates_and_costs_have_as_many_digits_as_they_mean() {
        assert_eq!([rate(41.26), rate(1_234_567.8), rate(f64::NAN)], ["41.3", "1,234,568", NONE]);
        let ratio = |ratio: f64| share_with_interval(&Ratio { ratio, interval: [0.9 * ratio, 1.1 * ratio] });
        assert_eq!(ratio(0.19), "19 % (17 … 21)");
        assert_eq!(ratio(0.002), "0.20 % (0.18 … 0.22)");
        assert_eq!([cpu(0.83), cpu(402.2), cpu(35_100.0)], ["0.8 ns", "402 ns", "35.1 µs"]);
    }
}

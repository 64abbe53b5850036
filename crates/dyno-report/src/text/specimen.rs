//! What `dyno specimen` shows: the list, the source, what runs; and its views on the terminal.

use dyno_record::comparison::{Figures, Record};
use dyno_record::specimen::Specimen;
use dyno_record::truth::Truth;
use serde_json::{Value, json};

use super::draw;
use super::lines::{chars, lines, wrapped};
use crate::color::Color;
use crate::number::count;
use crate::view::specimen as view;

/// Blanks between the columns of the list.
const GAP: usize = 2;
/// The narrowest column of titles; where there is less room the title stands under its name.
const TITLE_MIN: usize = 30;
/// Lines are hard to read beyond this; six columns of a table have more room than a text.
const TEXT_WIDTH_MAX: usize = 100;
const TRUTH_WIDTH_MAX: usize = 120;

/// The list, in at most `width` columns.
pub fn list(all: &[Specimen], width: usize) -> String {
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

/// Name and number of the list's shape.
const LIST_SCHEMA: &str = "dyno.specimens/1";

/// The list for machines.
pub fn list_json(all: &[Specimen]) -> Value {
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
    json!({ "schema": LIST_SCHEMA, "specimens": all.iter().map(entry).collect::<Vec<_>>() })
}

/// The truth of a specimen.
pub fn explain(specimen: &Specimen, width: usize) -> String {
    draw::view(&view::explanation(specimen), width.min(TEXT_WIDTH_MAX), Color::Plain)
}

/// What a comparison came to.
pub fn comparison(specimen: &Specimen, record: &Record, width: usize) -> String {
    draw::view(&view::comparison(specimen, record), width.min(TEXT_WIDTH_MAX), Color::Plain)
}

/// What was predicted beside what it really brought.
pub fn truth(truth: &Truth, width: usize) -> String {
    draw::view(&view::truth(truth), width.min(TRUTH_WIDTH_MAX), Color::Plain)
}

/// All files of a specimen.
pub fn source(specimen: &Specimen) -> String {
    let mut out = String::new();
    for source in &specimen.sources {
        let sign = if source.name.ends_with(".h") || source.name.ends_with(".c") { "/*" } else { "//" };
        let end = if sign == "/*" { " */" } else { "" };
        out.push_str(&format!("{sign} specimens/{}/{}{end}\n{}\n", source.folder, source.name, source.text));
    }
    out
}

/// That a side runs, and how to look at it.
pub fn started(pid: i32, url: Option<&str>, specimen: &Specimen) -> String {
    let connections = specimen.load.as_ref().map_or(0, |load| load.connections);
    match url {
        None => format!("pid       {pid}\n"),
        Some(url) => {
            format!("pid       {pid}\nurl       {url}\nload      dyno load -c{connections} -p {pid} {url}\n")
        }
    }
}

/// The same for machines.
pub fn started_json(pid: i32, url: Option<&str>) -> String {
    format!("{}\n", json!({ "pid": pid, "url": url }))
}

/// What one side did.
pub fn figures(figures: &Figures, specimen: &Specimen) -> String {
    let (units, seconds) = (count(figures.units as f64), figures.elapsed_ns as f64 / 1e9);
    let mut out = format!("units     {units} {} in {seconds:.1} s", specimen.unit);
    out.push_str(&format!(", {} per second", view::rate(figures.per_s())));
    out.push_str(&format!(", {} of CPU each\n", view::cpu(figures.cpu_per_unit_ns())));
    if !figures.notes.is_empty() {
        out.push_str(&format!("notes     {}\n", view::notes(figures)));
    }
    out
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
    use dyno_record::causal::{Causal, Point, Site, Verdict};
    use dyno_record::specimen::Source;
    use dyno_record::truth::variants;

    fn one(name: &str) -> Specimen {
        let (text, sources) = match name {
            "sync-log" => (include_str!("../../../../specimens/sync-log/specimen.toml"), Vec::new()),
            "tree-index" => (include_str!("../../../../specimens/tree-index/specimen.toml"), Vec::new()),
            "message-copies" => {
                let text = include_str!("../../../../specimens/message-copies/main.rs");
                let source = Source { name: "main.rs", folder: "message-copies", text };
                (include_str!("../../../../specimens/message-copies/specimen.toml"), vec![source])
            }
            _ => (include_str!("../../../../specimens/three-parts/specimen.toml"), Vec::new()),
        };
        Specimen { sources, ..toml::from_str(text).expect("a specimen describes itself") }
    }

    /// Predicted 30 % at 50 %, and really 28.
    fn predicted_and_tried() -> Truth {
        let specimen = one("three-parts");
        let sites = &specimen.causal.as_ref().expect("it has parts").sites[..1];
        let point = |level: u32, effect: f64| Point {
            speedup_percent: level,
            effect_percent: effect,
            interval_percent: [effect - 1.0, effect + 1.0],
            rounds: 20,
            ..Point::default()
        };
        let points = vec![point(10, 6.0), point(50, 30.0)];
        let site = Site { name: "part_of_sixty".into(), verdict: Verdict::Helps, points, ..Site::default() };
        let predicted = Causal { sites: vec![site], seed: 7, ..Causal::default() };
        let tried = variants(sites, &[10, 50]);
        let mut truth = Truth::new(&specimen, predicted, Vec::new(), tried, 500_000_000);
        for k in 0..8 {
            let drift = 1.0 + f64::from(k) / 100.0;
            let run = |us: f64| Figures {
                units: 1_000,
                elapsed_ns: (us * drift * 1e6) as u64,
                cpu_ns: 1,
                ..Figures::default()
            };
            truth.add(&[100.0, 94.3, 72.0].map(run));
        }
        truth.judge(sites);
        truth
    }

    #[test]
    fn a_level_that_the_profile_calls_misleading_is_set_aside() {
        let mut both = predicted_and_tried();
        both.predicted.sites[0].points[1].biased = true;
        both.judge(&one("three-parts").causal.expect("it has parts").sites[..1]);
        let text = truth(&both, 120);
        assert!(text.contains("set aside") && text.contains("of 1 predictions"), "{text}");
    }

    #[test]
    fn what_was_predicted_stands_beside_what_it_brought() {
        let text = truth(&predicted_and_tried(), 120);
        let line = text.lines().find(|line| line.contains("50 %")).unwrap_or_default();
        for owed in ["part_of_sixty", "+30.0 % ±1.0", "+28.0 % ±", "+2.0", "no", "helps"] {
            assert!(line.contains(owed), "{owed}: {text}");
        }
        assert!(text.contains("the truth lies inside 1"), "{text}");
        let narrow = truth(&predicted_and_tried(), 60);
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
}

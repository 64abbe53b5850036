//! The view of a history: total, floor and rungs of climbs over time, with marks where the machine or the program changed.

use dyno_record::difference::Change;
use dyno_record::figure::Unit;
use dyno_record::history::{Beyond, Entry, History, Line, Point};
use dyno_record::sheet::RUNG;

use super::block::Voice;
use super::block::{Block, Fact, Headline, Item, OnPage, OnTerminal, Section, View};
use super::chart::{Chart, Course, Figure, Ink, Mark};
use super::difference::forbidden;
use super::table::{Cell, Column, Row, Table, count, figure, nothing, words};
use super::words::{counted, date, paragraph, said};
use crate::{figures, number};

const LABEL_COLUMNS: usize = 10;
/// Climbs that a picture holds: on a phone dots then touch. The table has all of them.
const DRAWN_MAX: usize = 200;

const CLIMBS: [Column; 7] = [
    Column::words("climb", 28),
    Column::words("began", 30).falls(3),
    Column::words("version", 12).falls(5),
    Column::figure("rungs kept", 4, 10),
    Column::figure("visible", 6, 10),
    Column::figure("floor", 2, 24),
    Column::figure("total", 0, 24),
];

const RUNGS: [Column; 5] = [
    Column::words("rung", 24),
    Column::figure("measured", 3, 10),
    Column::figure("kept", 2, 10),
    Column::figure("first", 1, 22),
    Column::figure("last", 0, 22),
];

/// All that is said of a history.
pub(crate) fn view(history: &History) -> View {
    let sections = [
        Some(answer(history)),
        Some(total(history)),
        Some(Section::new("climbs", "Climbs", (OnPage::Body, OnTerminal::Found), each(history, climbs))),
        rungs(history),
        skipped(history),
    ];
    View {
        title: format!("{} · dyno compare", counted(history.climbs(), "climb")),
        kicker: format!("dyno compare · {}", history.folder),
        sections: sections.into_iter().flatten().collect(),
        foot: format!("dyno {}", history.version),
        label_columns: LABEL_COLUMNS,
    }
}

/// The last climb of the longest line, and what climbs differ by.
fn answer(history: &History) -> Section {
    let Some(line) = history.lines.first() else {
        let none = Headline {
            unit: "No climb".to_owned(),
            from: "There is none in the folder.".to_owned(),
            ..Headline::default()
        };
        return Section::new("answer", "", (OnPage::Head, OnTerminal::Answer), vec![Block::Headline(none)]);
    };
    let last = line.climbs.iter().rev().find_map(|climb| Some((climb, point(climb, "total")?)));
    let last = last.and_then(|(climb, point)| Some((climb, point.value?, point.interval)));
    let headline = match last {
        Some((climb, value, interval)) => Headline {
            big: number::times(value),
            unit: "requests per CPU-second in the last climb".to_owned(),
            interval: interval
                .map(|[low, high]| format!("99 % interval {low:.2} … {high:.2}"))
                .unwrap_or_default(),
            from: format!(
                "{}, {}. {}.",
                climb.file,
                date(climb.started_unix_s),
                counted(line.climbs.len(), "climb")
            ),
            ..Headline::default()
        },
        None => Headline {
            unit: "No total".to_owned(),
            from: "No climb came to one.".to_owned(),
            ..Headline::default()
        },
    };
    let blocks = vec![Block::Headline(headline), Block::Facts(facts(history, line))];
    Section::new("answer", "", (OnPage::Head, OnTerminal::Answer), blocks)
}

fn facts(history: &History, line: &Line) -> Vec<Fact> {
    let span = match (line.climbs.first(), line.climbs.last()) {
        (Some(first), Some(last)) => {
            format!("{} … {}", date(first.started_unix_s), date(last.started_unix_s))
        }
        _ => String::new(),
    };
    let changes: usize = line.climbs.iter().map(|climb| usize::from(!climb.changes.is_empty())).sum();
    let cut = line.climbs.len().saturating_sub(DRAWN_MAX);
    let cut =
        (cut > 0).then(|| Fact::new("drawn", format!("the last {DRAWN_MAX}; the table has {cut} more")));
    let others = history.lines.len() - 1;
    let others = (others > 0).then(|| {
        Fact::new(
            "others",
            format!(
                "{} of another plan or load: not compared with these",
                counted(history.climbs() - line.climbs.len(), "climb")
            ),
        )
    });
    let all = [
        Fact::new("plan", format!("{} · {}", line.plan, line.load)),
        Fact::new("from, to", span),
        Fact::new(
            "changes",
            format!("{} where machine, start or program changed", counted(changes, "place")),
        ),
        Fact::new("beyond", beyond(line.beyond.as_ref())),
    ];
    all.into_iter().chain(cut).chain(others).collect()
}

fn beyond(beyond: Option<&Beyond>) -> String {
    match beyond {
        None => "fewer than three climbs between which nothing changed: what climbs differ by beyond their intervals is not known".to_owned(),
        Some(one) if one.percent < 0.05 => {
            format!("totals of {} alike climbs differ by no more than their intervals explain", one.climbs)
        }
        Some(one) => format!(
            "totals of {} alike climbs differ by {:.1} % (standard deviation) beyond their intervals: a smaller change from one climb to the next says nothing",
            one.climbs, one.percent
        ),
    }
}

/// The blocks of every line; where there are several each has its plan above.
fn each(history: &History, blocks: impl Fn(&Line) -> Vec<Block>) -> Vec<Block> {
    let many = history.lines.len() > 1;
    let of = |line: &Line| {
        let head = many.then(|| said(Voice::Claim, "Plan", format!("{} · {}", line.plan, line.load)));
        head.into_iter().chain(blocks(line)).collect::<Vec<_>>()
    };
    history.lines.iter().flat_map(of).collect()
}

fn point<'e>(entry: &'e Entry, name: &str) -> Option<&'e Point> {
    entry.figures.iter().find(|point| point.name == name)
}

fn total(history: &History) -> Section {
    let note = "Each dot is a climb, in the order in which they began and evenly apart; the line through it is its 99 % interval. A dashed line with a number stands where something changed since the climb before.";
    let blocks = std::iter::once(paragraph(note)).chain(each(history, ratios)).collect();
    Section::page("total", "Total and floor", OnPage::Body, blocks)
}

fn ratios(line: &Line) -> Vec<Block> {
    let courses = ["total", "floor"].into_iter().filter_map(|name| course(line, name, name));
    courses.map(Block::Figure).chain(marks(line)).collect()
}

/// Names of rungs, in the order in which climbs first had them.
fn rung_names(line: &Line) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    let all = line.climbs.iter().flat_map(|climb| &climb.figures);
    for name in all.map(|point| point.name.as_str()).filter(|name| name.starts_with(RUNG)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn rungs(history: &History) -> Option<Section> {
    let any = history.lines.iter().any(|line| !rung_names(line).is_empty());
    let pictures = |line: &Line| -> Vec<Block> {
        let all = rung_names(line).into_iter().filter_map(|name| course(line, name, &name[RUNG.len()..]));
        let courses: Vec<Block> = all.map(Block::Figure).collect();
        let columns = [0, 1].map(|side| courses.iter().skip(side).step_by(2).cloned().collect::<Vec<_>>());
        vec![Block::Columns(columns.into()), Block::Table(rung_table(line))]
    };
    let note = "Solid: a gain confirmed on fresh data. Hollow: a step's own figure, which reads high where it was kept. Below zero costs less.";
    let blocks = || each(history, pictures).into_iter().chain([paragraph(note)]).collect();
    any.then(|| Section::new("rungs", "Rungs", (OnPage::Body, OnTerminal::Found), blocks()))
}

fn rung_table(line: &Line) -> Table {
    let row = |name: &str| -> Row {
        let points = line.climbs.iter().filter_map(|climb| point(climb, name));
        let known: Vec<&Point> = points.filter(|point| point.value.is_some()).collect();
        let kept = known.iter().filter(|point| point.word == "kept").count();
        let cell = |point: Option<&&Point>| point.map_or_else(nothing, |point| written(point));
        let id = &name[RUNG.len()..];
        vec![
            words(id),
            count(known.len() as f64),
            count(kept as f64),
            cell(known.first()),
            cell(known.last()),
        ]
        .into()
    };
    Table::new("Rungs over all climbs", &RUNGS, rung_names(line).into_iter().map(row).collect())
}

fn written(point: &Point) -> Cell {
    match point.value {
        Some(value) => figure(figures::within(point.unit, value, point.interval), value),
        None => nothing(),
    }
}

/// The climbs that are drawn: the last ones.
fn drawn(line: &Line) -> &[Entry] {
    &line.climbs[line.climbs.len().saturating_sub(DRAWN_MAX)..]
}

/// One figure over all climbs that are drawn; none where none of them has it.
fn course(line: &Line, name: &str, title: &str) -> Option<Figure> {
    let points: Vec<Option<&Point>> = drawn(line).iter().map(|climb| point(climb, name)).collect();
    let ink = |point: &Point| if point.basis.starts_with("step") { Ink::Hollow } else { Ink::Dot };
    let mark =
        |point: &Option<&Point>| point.and_then(|point| Mark::of(point.value?, point.interval, ink(point)));
    let marks: Vec<Option<Mark>> = points.iter().map(mark).collect();
    let unit = points.iter().flatten().next()?.unit;
    let last = points.iter().rev().flatten().find(|point| point.value.is_some())?;
    let figure = last.value.map(|value| figures::within(unit, value, last.interval)).unwrap_or_default();
    let known = marks.iter().flatten().count();
    let sentence = format!("{title} in {}; the last is {figure}.", counted(known, "climb"));
    let base = if unit == Unit::Ratio { 1.0 } else { 0.0 };
    let suffix = if unit == Unit::Ratio { "×" } else { "%" };
    let ends = drawn(line).first().zip(drawn(line).last());
    let dates =
        ends.map(|(first, last)| [first, last].map(|climb| day(climb.started_unix_s))).unwrap_or_default();
    let changed = drawn(line).iter().map(|climb| !climb.changes.is_empty()).collect();
    let course = Course { title: title.to_owned(), figure, base, suffix, marks, changed, dates };
    Some(Figure { chart: Chart::Course(course), sentence, caption: String::new() })
}

/// `23 Nov 2026`.
fn day(unix_s: u64) -> String {
    date(unix_s).get(5..16).unwrap_or_default().to_owned()
}

/// What changed at each mark, by its number.
fn marks(line: &Line) -> Vec<Block> {
    let changed = drawn(line).iter().skip(1).filter(|climb| !climb.changes.is_empty());
    let items: Vec<Item> = changed
        .enumerate()
        .map(|(at, climb)| {
            Item::new(
                format!("{}", at + 1),
                format!("{}, {}: {}", climb.file, day(climb.started_unix_s), in_words(&climb.changes)),
            )
        })
        .collect();
    (!items.is_empty()).then_some(Block::List("change", items)).into_iter().collect()
}

fn in_words(changes: &[Change]) -> String {
    let one = |change: &Change| {
        let shown = |text: &str| if text.is_empty() { "–".to_owned() } else { text.to_owned() };
        let forbids = match change.forbids {
            dyno_record::figure::Forbids::Nothing => String::new(),
            forbids => format!(" (forbids {})", forbidden(forbids)),
        };
        format!("{} {} → {}{forbids}", change.what, shown(&change.a), shown(&change.b))
    };
    changes.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn climbs(line: &Line) -> Vec<Block> {
    let row = |climb: &Entry| {
        let of = |name: &str| point(climb, name).map_or_else(nothing, written);
        let rungs: Vec<&Point> = climb.figures.iter().filter(|point| point.name.starts_with(RUNG)).collect();
        let kept = rungs.iter().filter(|point| point.word == "kept").count();
        let cut = climb
            .cut_short
            .as_ref()
            .map(|why| format!("ended early: {}", why.strip_prefix("cut short: ").unwrap_or(why)));
        let changed = (!climb.changes.is_empty()).then(|| format!("changed: {}", in_words(&climb.changes)));
        Row {
            cells: vec![
                words(&climb.file),
                words(moment(climb.started_unix_s)),
                words(&climb.version),
                figure(format!("{kept} of {}", rungs.len()), kept as f64),
                of("noise"),
                of("floor"),
                of("total"),
            ],
            why: String::new(),
            notes: changed.into_iter().chain(cut).collect(),
            sentences: Vec::new(),
        }
    };
    let rows = line.climbs.iter().map(row).collect();
    vec![Block::Table(Table::new("Climbs in the order in which they began", &CLIMBS, rows))]
}

/// `23 Nov 2026 19:04`.
fn moment(unix_s: u64) -> String {
    date(unix_s).get(5..22).unwrap_or_default().to_owned()
}

fn skipped(history: &History) -> Option<Section> {
    let items: Vec<Item> =
        history.skipped.iter().map(|one| Item::new(format!("{}:", one.file), &one.why)).collect();
    let place = (OnPage::Body, OnTerminal::Below);
    (!items.is_empty())
        .then(|| Section::new("skipped", "Passed over", place, vec![Block::List("skipped", items)]))
}

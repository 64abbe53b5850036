//! The view of two records held against each other: the answer, what else changed and what that forbids, every figure.

use dyno_record::difference::{Change, Compared, Delta, Difference, Value, Verdict};
use dyno_record::figure::{Better, Forbids, Unit};
use dyno_record::sheet::RUNG;

use super::block::{Block, Fact, Headline, OnPage, OnTerminal, Section, View};
use super::chart::{Estimates, Ink, Row as Drawn};
use super::show::{On, Tone, Verdict as Shown};
use super::table::{Cell, Column, Row, Table, figure, nothing, verdict, words};
use super::words::{self, alerts, paragraph};
use crate::figures;

/// Columns of the labels: the longest is "warning".
const LABEL_COLUMNS: usize = 9;
/// A longer name has a line for itself.
const NAME_MAX: usize = 22;

/// The longest verdict; a longer reason has lines for itself.
const VERDICT_MAX: usize = 18;

const COLUMNS: [Column; 6] = [
    Column::words("figure", NAME_MAX),
    // Of the two B goes first: it follows from A and the change.
    Column::figure("A", 2, 26).under("A {}"),
    Column::figure("B", 2, 26).under("B {}"),
    Column::figure("B against A", 1, 26).under("B against A {}"),
    Column::words("verdict", VERDICT_MAX),
    Column::words("why", 0).on(On::Page),
];

const CHANGED: [Column; 4] = [
    Column::words("changed", NAME_MAX),
    Column::words("A", 34).falls(2).under("A {}"),
    Column::words("B", 34).falls(1).under("B {}"),
    Column::words("forbids", usize::MAX),
];

/// All that is said of a difference.
pub(crate) fn view(record: &Difference) -> View {
    let sections = [
        Some(Section::page(
            "sides",
            "",
            OnPage::Head,
            vec![Block::Headline(headline(record)), sides(record)],
        )),
        Some(Section::new("both", "", (OnPage::Nowhere, OnTerminal::Above), vec![sides(record)])),
        alerts("warnings", OnTerminal::Last, words::warnings(&record.warnings)),
        changed(record),
        Some(all_figures(record)),
        Some(Section::new(
            "answer",
            "",
            (OnPage::Nowhere, OnTerminal::Answer),
            vec![Block::Facts(vec![answer(record)])],
        )),
    ];
    View {
        title: format!("{} · two of dyno {}", record.verdict.words(), record.kind),
        kicker: format!("dyno judge · two of dyno {}", record.kind),
        sections: sections.into_iter().flatten().collect(),
        foot: format!("dyno {}", record.version),
        label_columns: LABEL_COLUMNS,
    }
}

/// The figure that decides is the first: sheets begin with it where there is one.
fn deciding(record: &Difference) -> Option<&Delta> {
    let named = |delta: &&Delta| record.why.starts_with(&format!("by {}", delta.name));
    record
        .figures
        .iter()
        .find(named)
        .or(record.figures.first())
        .filter(|_| record.verdict != Verdict::NotJudged)
}

fn headline(record: &Difference) -> Headline {
    let delta = deciding(record);
    let big = delta.map(|delta| figures::change(delta.unit, delta.effect, None)).unwrap_or_default();
    let interval = delta.and_then(|delta| delta.interval);
    let ends = |interval| {
        let [low, high] = figures::ends(interval);
        format!("99 % interval {low} % … {high} %")
    };
    let what = delta.map(|delta| format!("{}: ", delta.what)).unwrap_or_default();
    // Large letters say what was found: a change that may as well be none is not in them.
    if record.verdict == Verdict::NoDifference {
        let ends = interval.map(|interval| format!(", {}", ends(interval))).unwrap_or_default();
        return Headline {
            unit: "No difference seen".to_owned(),
            interval: format!("{what}{big}{ends}"),
            from: record.why.clone(),
            ..Headline::default()
        };
    }
    Headline {
        big,
        unit: format!("{what}{}", record.verdict.words()),
        interval: interval.map(ends).unwrap_or_default(),
        from: record.why.clone(),
        ..Headline::default()
    }
}

fn answer(record: &Difference) -> Fact {
    let delta = deciding(record);
    let effect = delta.map(|delta| figures::change(delta.unit, delta.effect, delta.interval));
    let effect = effect.filter(|effect| !effect.is_empty()).map(|effect| format!(" · {effect}"));
    let why = record.why.as_str();
    Fact::new("answer", format!("{}{} · {why}", record.verdict.words(), effect.unwrap_or_default()))
}

fn sides(record: &Difference) -> Block {
    let side = |label: &str, one: &Compared| {
        let when = words::date(one.started_unix_s);
        Fact::new(label, format!("{} · {when} · dyno {}", one.file, one.version))
    };
    Block::Facts(vec![side("A", &record.a), side("B", &record.b)])
}

/// What a change forbids, in words.
pub(super) fn forbidden(forbids: Forbids) -> &'static str {
    match forbids {
        Forbids::Nothing => "nothing",
        Forbids::Cause => "to name a cause: it may be this",
        Forbids::Absolute => "to compare times and rates",
        Forbids::All => "to compare",
    }
}

fn changed(record: &Difference) -> Option<Section> {
    let row = |change: &Change| -> Row {
        let shown = |text: &str| words(if text.is_empty() { "–" } else { text });
        vec![words(&change.what), shown(&change.a), shown(&change.b), words(forbidden(change.forbids))].into()
    };
    let rows: Vec<Row> = record.changes.iter().map(row).collect();
    let blocks = match rows.is_empty() {
        true => vec![paragraph(
            "Nothing that the records tell of the machine, the load and the program has changed.",
        )],
        false => vec![Block::Table(Table::new("What changed, and what that forbids", &CHANGED, rows))],
    };
    Some(Section::new("changed", "What changed", (OnPage::Body, OnTerminal::Found), blocks))
}

fn all_figures(record: &Difference) -> Section {
    let rows: Vec<Row> = record.figures.iter().map(row).collect();
    let table = Table::new("Every figure of both", &COLUMNS, rows);
    let drawn = record.figures.iter().filter(|delta| delta.unit == Unit::Percent);
    let drawn = drawn.filter_map(|delta| {
        Drawn::one(delta.name.trim_start_matches(RUNG), delta.effect?, delta.interval, Ink::Dot)
    });
    let caption = "Rungs: cost with the rung in B against that in A; to the right the rung gains more in B. 99 % interval.";
    let picture =
        Estimates::of(drawn.collect(), [-1.0, 1.0]).map(|estimates| Block::Figure(estimates.figure(caption)));
    let blocks = std::iter::once(Block::Table(table)).chain(picture).collect();
    Section::new("figures", "Figures", (OnPage::Body, OnTerminal::Found), blocks)
}

fn row(delta: &Delta) -> Row {
    let turned = turned(delta);
    let (word, why) = match delta.verdict {
        // Who is said and not judged has no verdict to read; what was not judged has its reason for one.
        Verdict::NotJudged if delta.better == Better::Neither => (nothing(), String::new()),
        Verdict::NotJudged if !delta.why.is_empty() => (words(&delta.why), String::new()),
        other => (verdict(shown(other)), delta.why.clone()),
    };
    let why = turned.into_iter().chain((!why.is_empty()).then_some(why)).collect::<Vec<_>>().join("; ");
    let (a, b) = (side(delta, delta.a.as_ref()), side(delta, delta.b.as_ref()));
    let cells = vec![words(&delta.name), a, b, effect(delta), word, words(&why)];
    Row { cells, why, ..Row::default() }
}

fn side(delta: &Delta, value: Option<&Value>) -> Cell {
    match value.and_then(|value| Some((value.value?, value.interval))) {
        Some((value, interval)) => figure(figures::within(delta.unit, value, interval), value)
            .in_short(figures::value(delta.unit, value)),
        None => nothing(),
    }
}

fn effect(delta: &Delta) -> Cell {
    match delta.effect {
        Some(effect) => figure(figures::change(delta.unit, delta.effect, delta.interval), effect)
            .in_short(figures::change_in_short(delta.effect, delta.interval)),
        None => nothing(),
    }
}

/// A verdict of the records that is another one in B.
fn turned(delta: &Delta) -> Option<String> {
    let word = |value: &Option<Value>| value.as_ref().map(|value| value.word.clone()).unwrap_or_default();
    let (was, is) = (word(&delta.a), word(&delta.b));
    (was != is && !was.is_empty() && !is.is_empty()).then(|| format!("{was} → {is}"))
}

pub(super) fn shown(verdict: Verdict) -> Shown {
    let tone = match verdict {
        Verdict::Better => Tone::Good,
        Verdict::Worse => Tone::Bad,
        Verdict::Differs => Tone::Doubt,
        Verdict::NoDifference | Verdict::NotJudged => Tone::Faint,
    };
    Shown { word: verdict.words(), tone }
}

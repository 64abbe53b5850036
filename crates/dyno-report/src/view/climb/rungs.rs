//! Every rung: its row of figures, and its place on the ladder.

use dyno_measure::series::Metric;
use dyno_record::climb::{Attempt, Climb, Effect, Figures, Rung, RungVerdict, State};

use crate::number;
use crate::view::block::{Block, OnPage, OnTerminal, Section};
use crate::view::chart::{Chart, Figure, Ink, Ladder, LadderRung, Mark, Scale};
use crate::view::show::{On, Tone, Verdict};
use crate::view::table::{Cell, Column, Row, Table, figure, link, nothing, verdict, words};
use crate::view::words::paragraph;

use super::standing;

/// A longer name has a line for itself: the table keeps its shape at 60 columns.
const NAME_MAX: usize = 18;
/// A longer change goes under its row.
const CHANGE_MAX: usize = 36;
/// A loss is drawn whole up to this multiple of the largest gain; beyond it an arrow says that it goes on.
const LOSS_SHARE_MAX: f64 = 1.0;
/// Narrowest half of the scale, in percent: noise alone must not look like a mountain.
const SPAN_PERCENT_MIN: f64 = 5.0;

/// The gain to quote and the verdict stay on every terminal; the tail leaves first, then the rate, the CPU, the step.
const COLUMNS: [Column; 8] = [
    Column::words("rung", NAME_MAX),
    Column::words("change", CHANGE_MAX).falls(2).under("{}").on(On::Terminal),
    Column::figure("req/s", 5, 25),
    Column::figure("CPU µs/req", 4, 25),
    Column::figure("p99 µs", 6, 25),
    Column::figure("step", 3, 20).under("step {}"),
    Column::figure("gain (confirmed)", 0, 20).stays(),
    Column::words("verdict", usize::MAX),
];

/// The anchor of a rung's card.
pub(super) fn anchor(at: usize) -> String {
    format!("rung-{}", at + 1)
}

/// The verdict of a rung as it stands at the end.
pub(super) fn verdict_on(climb: &Climb, attempt: &Attempt) -> Verdict {
    match attempt.verdict == RungVerdict::Kept && climb.own_load_only(attempt) {
        true => Verdict { word: "kept for that load", tone: Tone::Doubt },
        false => verdict_of(attempt.verdict),
    }
}

pub(super) fn verdict_of(verdict: RungVerdict) -> Verdict {
    let tone = match verdict {
        RungVerdict::Kept => Tone::Good,
        RungVerdict::Reverted | RungVerdict::Failed => Tone::Bad,
        RungVerdict::Unconfirmed | RungVerdict::NotApplied => Tone::Doubt,
        RungVerdict::NotWorthwhile
        | RungVerdict::NoDifference
        | RungVerdict::NotPossible
        | RungVerdict::NotMeasured => Tone::Faint,
    };
    Verdict { word: verdict.words(), tone }
}

/// The step's own figure.
pub(super) fn step(attempt: &Attempt) -> String {
    number::estimate(attempt.effect_percent, attempt.interval_percent)
}

/// The gain to quote. What was turned back and not confirmed has its figure in the reason.
pub(super) fn confirmed(rung: &Rung) -> Option<Effect> {
    rung.leave_one_out.filter(|_| rung.attempt.verdict == RungVerdict::Kept)
}

/// What a rung was judged by and under, where that is not the plan's: its figures are of another kind than its neighbours'.
pub(super) fn otherwise(climb: &Climb, attempt: &Attempt) -> Option<String> {
    let metric = (attempt.metric != Metric::CpuPerRequest).then(|| attempt.metric.to_string());
    let other = !attempt.load.is_empty() && attempt.load != climb.load.to_string();
    let load = other.then(|| format!("under {}", attempt.load));
    let words: Vec<String> = metric.into_iter().chain(load).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The places of rungs that can be compared, with what their figures are: the plan's own first.
fn groups(climb: &Climb) -> Vec<(Option<String>, Vec<usize>)> {
    let mut groups: Vec<(Option<String>, Vec<usize>)> = vec![(None, Vec::new())];
    for (at, rung) in climb.rungs.iter().enumerate() {
        // What has no figure is compared with nothing.
        let kind = rung.attempt.effect_percent.and_then(|_| otherwise(climb, &rung.attempt));
        match groups.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, places)) => places.push(at),
            None => groups.push((kind, vec![at])),
        }
    }
    groups.retain(|(_, places)| !places.is_empty());
    groups
}

/// A kept rung's reason is its figures; every other verdict owes one.
fn why(attempt: &Attempt) -> String {
    if attempt.verdict == RungVerdict::Kept { String::new() } else { attempt.why.clone() }
}

/// All rungs with the figures of both sides of their own trial; those under other loads in tables of their own.
fn tables(climb: &Climb) -> Vec<Block> {
    groups(climb).into_iter().map(|(kind, at)| Block::Table(table(climb, kind, &at))).collect()
}

/// What a terminal shows of all rungs.
pub(super) fn section(climb: &Climb) -> Option<Section> {
    let place = (OnPage::Nowhere, OnTerminal::Found);
    (!climb.rungs.is_empty()).then(|| Section::new("table", "Every rung", place, tables(climb)))
}

/// The same for a page, which has drawn them already: one click away, to sort and to copy.
pub(super) fn folded(climb: &Climb) -> Option<Section> {
    let block = Block::Details("Every rung as a table".to_owned(), tables(climb));
    (!climb.rungs.is_empty()).then(|| Section::page("every-rung", "Every rung", OnPage::Body, vec![block]))
}

fn table(climb: &Climb, kind: Option<String>, places: &[usize]) -> Table {
    let rungs = places.iter().map(|at| row(climb, *at, &climb.rungs[*at])).collect();
    match kind {
        None => Table::new("Every rung: before → with it, both sides of its own trial", &COLUMNS, rungs),
        Some(kind) => {
            let (caption, lead) = (format!("Judged by {kind}"), format!("judged by {kind}"));
            Table::new(by_cpu(&caption), &COLUMNS, rungs).led_by(by_cpu(&lead))
        }
    }
}

/// Where only the load is another one, the measure is the climb's own.
fn by_cpu(words: &str) -> String {
    words.replacen(" by under ", " under ", 1)
}

fn row(climb: &Climb, at: usize, rung: &Rung) -> Row {
    let attempt = &rung.attempt;
    let gain = confirmed(rung).map_or_else(nothing, |e| {
        figure(number::effect(e.effect_percent, e.interval_percent), e.effect_percent)
    });
    let name = [link(&rung.id, anchor(at)), words(&rung.change)];
    let step = figure(step(attempt), attempt.effect_percent.unwrap_or(f64::NAN));
    let rest = [step, gain, verdict(verdict_on(climb, attempt))];
    let cells = name.into_iter().chain(cells(attempt.figures.as_ref())).chain(rest).collect();
    Row { cells, why: why(attempt), notes: notes(climb, rung), ..Row::default() }
}

/// Rate, CPU and tail before and with the change, which were measured in turns. What stands in another row is of another minute,
/// in which the machine may have been slower: a side alone would be compared with it.
fn cells(figures: Option<&[Figures; 2]>) -> [Cell; 3] {
    let Some(sides) = figures else { return std::array::from_fn(|_| nothing()) };
    let both = |of: fn(&Figures) -> f64, written: fn(f64) -> String| {
        let [before, with] = sides.each_ref().map(of);
        figure(format!("{} → {}", written(before), written(with)), with)
    };
    [
        both(|side| side.requests_per_second, number::count),
        both(|side| side.cpu_us_per_request, number::hundredths),
        both(|side| side.p99_us, number::count),
    ]
}

fn notes(climb: &Climb, rung: &Rung) -> Vec<String> {
    let mut notes: Vec<String> = for_that_load(climb, &rung.attempt).into_iter().map(str::to_owned).collect();
    notes.extend(standing::price(climb, rung).map(|risk| format!("risk: {risk}")));
    if !rung.bundle.is_empty() {
        notes.push(format!("judged together with {}", rung.bundle.join(", ")));
    }
    if let Some(first) = &rung.first_attempt {
        notes.push(format!("first try: {} {}", first.verdict.words(), step(first)).trim_end().to_owned());
    }
    notes.extend(price(climb, &rung.attempt));
    notes.extend(elsewhere(rung));
    notes.extend(beside(rung));
    notes
}

/// What became of a rung that pays under its own load only.
fn for_that_load(climb: &Climb, attempt: &Attempt) -> Option<&'static str> {
    let only = climb.own_load_only(attempt) && attempt.verdict == RungVerdict::Kept;
    only.then_some("the final setting goes without it")
}

/// What others measured, beside a rung that could not be measured here.
fn elsewhere(rung: &Rung) -> Option<String> {
    let untold = rung.elsewhere.is_empty() || rung.state == Some(State::MeasuredHere);
    (!untold).then(|| format!("elsewhere, and in no total: {}", rung.elsewhere))
}

/// What a kept rung takes of the memory, where that is more than servers differ by.
fn price(climb: &Climb, attempt: &Attempt) -> Option<String> {
    let trial = &climb.trial(attempt.trial.as_ref()?)?.trial;
    let [before, with] = trial.memory().filter(|_| attempt.verdict == RungVerdict::Kept)?;
    let (more, half_width) = (with.bytes - before.bytes, with.half_width.hypot(before.half_width));
    let mb = |bytes: f64| bytes / 1e6;
    (more > half_width).then(|| {
        let [low, high] = [more - half_width, more + half_width].map(mb);
        format!("its price: {:+.1} MB of memory ({low:.1} to {high:.1}) for each server", mb(more))
    })
}

/// What stood beside it when its gain was measured, and does not any more.
fn beside(rung: &Rung) -> Option<String> {
    let left = &rung.leave_one_out_beside;
    let kept = rung.attempt.verdict == RungVerdict::Kept && !left.is_empty();
    kept.then(|| format!("its gain was measured beside {}, which left afterwards", left.join(", ")))
}

const READ_ME: &str = "Each rung changes one thing and stays only if it was proven in force, better than the noise, and confirmed. \
    Figures are the change of CPU per request; rungs that are judged by another measure or under another load stand apart. Rungs overlap: \
    their gains neither add nor multiply up to the total.";

/// Every rung on a scale that it shares with those it can be compared with, in the order of the climb.
pub(super) fn ladder(climb: &Climb) -> Option<Section> {
    let drawn = groups(climb).into_iter().flat_map(|(kind, places)| {
        let heading = kind.map(|kind| paragraph(by_cpu(&format!("Judged by {kind}:"))));
        let is_first = places.contains(&0) || heading.is_none();
        let key = if is_first { key() } else { Vec::new() };
        heading.into_iter().chain([Block::Figure(on_one_scale(climb, &places, key))])
    });
    let blocks = std::iter::once(paragraph(READ_ME)).chain(drawn).collect();
    (!climb.rungs.is_empty()).then(|| Section::page("ladder", "The ladder", OnPage::Body, blocks))
}

fn on_one_scale(climb: &Climb, places: &[usize], key: Vec<(Mark, &'static str)>) -> Figure {
    let rungs: Vec<&Rung> = places.iter().map(|at| &climb.rungs[*at]).collect();
    let chart = Chart::Ladder(Ladder {
        scale: scale(&rungs),
        sides: ["← costs more", "costs less →"],
        key,
        rungs: places.iter().map(|at| on_ladder(climb, *at, &climb.rungs[*at])).collect(),
    });
    Figure { chart, sentence: String::new(), caption: String::new() }
}

/// The four ways of drawing, each beside its word.
fn key() -> Vec<(Mark, &'static str)> {
    let sample = |ink, interval, words| (Mark { value: 0.7, interval, ink }, words);
    vec![
        sample(Ink::Solid, None, "confirmed gain, the rung turned back on fresh data"),
        sample(Ink::Dot, Some([0.3, 1.0]), "99 % interval"),
        sample(Ink::Hollow, None, "the step's own figure: it decided, and reads high"),
        sample(Ink::Grey, None, "tried and not kept"),
    ]
}

/// Gains to the right. The same scale serves all rows.
fn scale(rungs: &[&Rung]) -> Scale {
    let ends = || rungs.iter().flat_map(|rung| marks(rung)).flat_map(|mark| mark.ends());
    let gain = ends().fold(-SPAN_PERCENT_MIN, f64::min);
    let loss_max = LOSS_SHARE_MAX * -gain;
    Scale::around_zero(ends().map(|end| end.min(loss_max)).chain([gain])).mirrored()
}

fn on_ladder(climb: &Climb, at: usize, rung: &Rung) -> LadderRung {
    let attempt = &rung.attempt;
    let gain = confirmed(rung);
    LadderRung {
        anchor: anchor(at),
        name: rung.id.clone(),
        change: rung.change.clone(),
        otherwise: for_that_load(climb, attempt).unwrap_or_default().to_owned(),
        marks: marks(rung),
        figure: gain.map_or_else(|| step(attempt), |e| number::effect(e.effect_percent, e.interval_percent)),
        confirmed: gain.is_some(),
        verdict: verdict_on(climb, attempt),
        why: why(attempt),
    }
}

/// What a rung's row shows.
fn marks(rung: &Rung) -> Vec<Mark> {
    let attempt = &rung.attempt;
    let step = |ink, interval| Mark::of(attempt.effect_percent?, interval, ink);
    let gain = confirmed(rung).and_then(|e| Mark::of(e.effect_percent, Some(e.interval_percent), Ink::Solid));
    let own = match (attempt.verdict, gain) {
        (RungVerdict::Kept, Some(_)) => step(Ink::Hollow, None),
        (RungVerdict::Kept, None) => step(Ink::Hollow, attempt.interval_percent),
        _ => step(Ink::Grey, attempt.interval_percent),
    };
    own.into_iter().chain(gain).collect()
}

//! The ladder: every rung on one scale, from top to bottom in the order of the climb.

use dyno_measure::series::Metric;
use dyno_record::climb::{Rung, RungVerdict};

use super::view::View;
use crate::number;
use crate::page::chart::{Ink, Mark, Scale, axis, strip};
use crate::page::html::{Tag, tag};
use crate::page::parts::{Section, effect_words, figure, paragraph, tied};
use crate::text::own_load;

/// A loss is drawn whole up to this multiple of the largest gain; beyond it an arrow says that it goes on.
const LOSS_SHARE_MAX: f64 = 1.0;
/// Narrowest half of the scale, in percent: noise alone must not look like a mountain.
const SPAN_PERCENT_MIN: f64 = 5.0;
/// Six lines of its column; the card says the rest.
const WHY_CHARS_MAX: usize = 160;

pub(super) fn section(view: &View<'_>) -> Option<Section> {
    let rungs = &view.climb.rungs;
    if rungs.is_empty() {
        return None;
    }
    let scale = scale(rungs);
    let head = tag("div").class("rung-row head").attr("aria-hidden", "true").push(tag("span")).push(
        tag("div")
            .class("strip-cell")
            .push(
                tag("p")
                    .class("sides")
                    .push(tag("span").text("← costs more"))
                    .push(tag("span").text("costs less →")),
            )
            .push(axis(&scale, "%")),
    );
    let rows = tag("ol").push_all(rungs.iter().enumerate().map(|(at, rung)| row(view, &scale, at, rung)));
    let content = tag("div").class("ladder").push(paragraph(READ_ME)).push(key()).push(head).push(rows);
    Some(Section::new("ladder", "The ladder", content))
}

const READ_ME: &str = "Each rung changes one thing and stays only if it was proven in force, better than the noise, and confirmed. \
    Figures are the change of the rung's metric, CPU per request unless the row says otherwise. Rungs overlap: \
    their gains neither add nor multiply up to the total.";

/// The four ways of drawing, each beside its word.
fn key() -> Tag {
    let scale = Scale { left: 0.0, right: 1.0 };
    let sample = |ink: Ink, interval: Option<[f64; 2]>, words: &str| {
        let mark = Mark { value: 0.7, interval, ink };
        tag("li").push(tag("span").class("swatch").push(strip(&scale, &[mark], ""))).text(words)
    };
    tag("ul")
        .class("key")
        .push(sample(Ink::Solid, None, "confirmed gain, the rung turned back on fresh data"))
        .push(sample(Ink::Dot, Some([0.3, 1.0]), "99 % interval"))
        .push(sample(Ink::Hollow, None, "the step's own figure: it decided, and reads high"))
        .push(sample(Ink::Grey, None, "tried and not kept"))
}

/// Gains to the right. The same scale serves all rows.
fn scale(rungs: &[Rung]) -> Scale {
    let ends = || rungs.iter().flat_map(marks).flat_map(|mark| mark.interval.unwrap_or([mark.value; 2]));
    let gain = ends().filter(|end| end.is_finite()).fold(-SPAN_PERCENT_MIN, f64::min);
    let loss_max = LOSS_SHARE_MAX * -gain;
    Scale::around_zero(ends().map(|end| end.min(loss_max)).chain([gain])).mirrored()
}

fn row(view: &View<'_>, scale: &Scale, at: usize, rung: &Rung) -> Tag {
    let attempt = &rung.attempt;
    let name = tag("div")
        .class("name")
        .push(tag("a").attr("href", format!("#rung-{}", at + 1)).text(&rung.id))
        .push(tag("span").class("change").text(&rung.change))
        .push_all(otherwise(view, rung));
    let marks = marks(rung);
    let gain = match rung.leave_one_out.filter(|_| attempt.verdict == RungVerdict::Kept) {
        Some(e) => figure(number::effect(e.effect_percent, e.interval_percent)),
        None => figure(effect_words(attempt.effect_percent, attempt.interval_percent)).attr("data-step", ""),
    };
    let chart = tag("div").class("strip-cell").push(strip(scale, &marks, ""));
    tag("li").class("rung-row").push(name).push(chart).push(gain).push(verdict(rung))
}

/// A metric or a load of the rung's own: its figure is of another kind than its neighbours'.
fn otherwise(view: &View<'_>, rung: &Rung) -> Option<Tag> {
    let metric = (rung.attempt.metric != Metric::CpuPerRequest).then(|| rung.attempt.metric.to_string());
    let only = rung.attempt.verdict == RungVerdict::Kept && view.climb.own_load_only(&rung.attempt);
    let kept = only.then(|| "kept for this load only: the final setting goes without it".to_owned());
    let own = own_load(view.climb, &rung.attempt);
    let parts: Vec<String> = metric.into_iter().chain(own).chain(kept).collect();
    (!parts.is_empty()).then(|| tag("span").class("change own").text(parts.join(" · ")))
}

fn verdict(rung: &Rung) -> Tag {
    let attempt = &rung.attempt;
    let cell = tag("div").class("verdict").push(verdict_word(attempt.verdict));
    // A kept rung's reason is its bar; every other verdict owes one here.
    match attempt.verdict {
        RungVerdict::Kept => cell,
        _ => cell.push(tag("span").class("why").text(tied(&in_short(&attempt.why)))),
    }
}

/// The first line of a reason: the last words of a server that died stand whole in its card.
fn in_short(why: &str) -> String {
    let mut lines = why.trim().lines();
    let first = lines.next().unwrap_or_default();
    let cut = first.char_indices().nth(WHY_CHARS_MAX).map(|(end, _)| &first[..end]);
    match cut {
        Some(start) => format!("{start} …"),
        None if lines.next().is_some() => format!("{first} …"),
        None => first.to_owned(),
    }
}

/// A verdict as a word, with a colour beside it for those who see it.
pub(super) fn verdict_word(verdict: RungVerdict) -> Tag {
    let class = match verdict {
        RungVerdict::Kept => "word good",
        RungVerdict::Reverted | RungVerdict::Failed => "word bad",
        RungVerdict::Unconfirmed | RungVerdict::NotApplied => "word doubt",
        RungVerdict::NoDifference | RungVerdict::NotPossible | RungVerdict::NotMeasured => "word plain",
    };
    tag("span").class(class).text(verdict.words())
}

/// What a rung's row shows.
fn marks(rung: &Rung) -> Vec<Mark> {
    let attempt = &rung.attempt;
    let step = |ink, interval| attempt.effect_percent.map(|value| Mark { value, interval, ink });
    let confirmed = rung.leave_one_out.map(|e| Mark {
        value: e.effect_percent,
        interval: Some(e.interval_percent),
        ink: Ink::Solid,
    });
    match (attempt.verdict, confirmed) {
        (RungVerdict::Kept, Some(confirmed)) => {
            step(Ink::Hollow, None).into_iter().chain([confirmed]).collect()
        }
        (RungVerdict::Kept, None) => step(Ink::Hollow, attempt.interval_percent).into_iter().collect(),
        _ => step(Ink::Grey, attempt.interval_percent).into_iter().collect(),
    }
}

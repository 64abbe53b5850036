//! A card per rung: what is said of it, what was done, what was read, what was measured.

use dyno_measure::judge;
use dyno_measure::series::Metric;
use dyno_measure::units::percent_of_log;
use dyno_record::climb::{Attempt, Figures, ProofLine, Rung, RungVerdict};
use dyno_record::trial::Compared;

use super::ladder::verdict_word;
use super::view::View;
use super::{foretold, look, series};
use crate::number;
use crate::page::chart::{Ink, Mark, Scale, axis, strip};
use crate::page::html::{Tag, tag};
use crate::page::parts::{Section, effect_words, fact, facts, figure, tied};
use crate::page::table::{Edge, number as cell, plain_table, table, words};
use crate::text::own_load;

pub(super) fn section(view: &View<'_>) -> Option<Section> {
    let rungs = &view.climb.rungs;
    let cards = rungs.iter().enumerate().map(|(at, rung)| card(view, at, rung));
    let content = tag("div").class("cards").push_all(cards);
    (!rungs.is_empty()).then(|| Section::new("rungs", "Rung by rung", content))
}

fn card(view: &View<'_>, at: usize, rung: &Rung) -> Tag {
    let title = tag("h3")
        .push(tag("span").class("id").text(&rung.id))
        .push(tag("span").class("change").text(&rung.change))
        .push(verdict_word(rung.attempt.verdict));
    let text = tag("div")
        .class("told")
        .push(tag("p").class("claim").text(&rung.claim))
        .push_all(verdicts(rung))
        .push(told(view, rung));
    let card = tag("article").class("card").attr("id", format!("rung-{}", at + 1)).push(title);
    let measured = measured(view, rung);
    let card = if measured.is_empty() { card.push(text) } else { card.push(text).push(measured) };
    card.push_all(foretold::section(view, rung.attempt.causal.as_ref())).push_all(look::section(view, rung))
}

/// Why it stands where it stands, the last try first.
fn verdicts(rung: &Rung) -> Vec<Tag> {
    let line = |lead: &str, attempt: &Attempt| {
        let effect = effect_words(attempt.effect_percent, attempt.interval_percent);
        let said = if effect.is_empty() { String::new() } else { format!(", {effect}") };
        let why = if attempt.why.is_empty() { String::new() } else { tied(&format!(": {}", attempt.why)) };
        tag("p")
            .class("why")
            .push(tag("b").text(lead))
            .text(tied(&format!(" {}{said}", attempt.verdict.words())))
            .text(why)
    };
    match &rung.first_attempt {
        Some(first) => vec![line("First try:", first), line("Again, on the setting reached:", &rung.attempt)],
        None => vec![line("Verdict:", &rung.attempt)],
    }
}

fn told(view: &View<'_>, rung: &Rung) -> Tag {
    let attempt = &rung.attempt;
    let metric =
        if attempt.metric == Metric::CpuPerRequest { String::new() } else { attempt.metric.to_string() };
    facts([
        ("Source", fact(&rung.source)),
        ("Risk", fact(&rung.risk)),
        ("Reverts by", fact(&rung.reverts)),
        ("Needs", fact(rung.needs.join(", "))),
        ("Judged with", fact(rung.bundle.join(", "))),
        ("Judged by", fact(metric)),
        ("Load", fact(load(view, attempt))),
        ("Clock", fact(&attempt.clock)),
        ("Data", fact(tied(&data(attempt)))),
    ])
}

/// A load of its own, and whether the final setting goes without the rung because of it.
fn load(view: &View<'_>, attempt: &Attempt) -> String {
    let Some(load) = own_load(view.climb, attempt) else { return String::new() };
    let only = attempt.verdict == RungVerdict::Kept && view.climb.own_load_only(attempt);
    let kept = if only { "; kept for this load only: the final setting goes without it" } else { "" };
    format!("{load}{kept}")
}

/// Pairs, instances, and what happened between blocks.
fn data(attempt: &Attempt) -> String {
    if attempt.pairs == 0 {
        return String::new();
    }
    let mut text =
        format!("{} pairs on {} instances a side", number::count(attempt.pairs as f64), attempt.instances);
    if let Some(spread) = attempt.instance_spread_percent {
        text.push_str(&format!(", which spread by {spread:.1} %"));
    }
    text.push_str(&format!("; {:.1} % of the CPU burnt outside its own blocks", attempt.off_block_percent));
    text
}

/// Estimates on a common scale, both sides' figures, the proof, and the raw series.
fn measured(view: &View<'_>, rung: &Rung) -> Tag {
    tag("div")
        .class("measured")
        .push_all(estimates(view, rung))
        .push_all(rung.attempt.figures.as_ref().map(|figures| sides(&rung.attempt, figures)))
        .push_all(proof(&rung.attempt))
        .push_all(trials(view, rung))
}

/// A named estimate of a card.
struct Row<'r> {
    name: &'r str,
    marks: Vec<Mark>,
    words: String,
}

/// All that was estimated of one rung, on one scale.
fn estimates(view: &View<'_>, rung: &Rung) -> Option<Tag> {
    let step = |name, attempt: &Attempt| {
        attempt.effect_percent.map(|value| one(name, value, attempt.interval_percent, Ink::Dot))
    };
    let first = rung.first_attempt.as_ref().and_then(|first| step("first try", first));
    let last = step("the step", &rung.attempt);
    let instances = instances(view, &rung.attempt);
    let ink = if rung.attempt.verdict == RungVerdict::Kept { Ink::Solid } else { Ink::Dot };
    let back =
        rung.leave_one_out.map(|e| one("turned back", e.effect_percent, Some(e.interval_percent), ink));
    let rows: Vec<Row<'_>> = first.into_iter().chain(last).chain(instances).chain(back).collect();
    if rows.is_empty() {
        return None;
    }
    let marks = rows.iter().flat_map(|row| &row.marks);
    let ends = marks.flat_map(|mark| mark.interval.unwrap_or([mark.value; 2]));
    let scale = Scale::around_zero(ends.chain([-1.0, 1.0])).mirrored();
    let list = tag("div").class("estimates").push_all(rows.iter().map(|row| drawn(&scale, row)));
    let axis = tag("div").class("estimate").push(tag("span")).push(axis(&scale, "%")).push(tag("span"));
    Some(list.push(axis))
}

fn one<'r>(name: &'r str, value: f64, interval: Option<[f64; 2]>, ink: Ink) -> Row<'r> {
    Row { name, marks: vec![Mark { value, interval, ink }], words: effect_words(Some(value), interval) }
}

/// Each instance's own estimate: a new process is a new draw.
fn instances<'r>(view: &View<'_>, attempt: &Attempt) -> Option<Row<'r>> {
    let trial = &view.climb.trial(attempt.trial.as_ref()?)?.trial;
    let usable: Vec<_> =
        trial.pairs.iter().copied().filter(|pair| pair.log_ratio(trial.metric).is_finite()).collect();
    let means = judge::instance_means(trial.metric, &usable);
    let mark = |log: &f64| Mark { value: percent_of_log(*log), interval: None, ink: Ink::Tick };
    let words = format!("{} of them", means.len());
    (means.len() > 1).then(|| Row { name: "by instance", marks: means.iter().map(mark).collect(), words })
}

fn drawn(scale: &Scale, row: &Row<'_>) -> Tag {
    let sentence = format!("{}: {}", row.name, row.words);
    tag("div")
        .class("estimate")
        .push(tag("span").class("name").text(row.name))
        .push(strip(scale, &row.marks, &sentence))
        .push(figure(&row.words))
}

/// Absolute figures of both sides, one beside the other.
fn sides(attempt: &Attempt, [before, with]: &[Figures; 2]) -> Tag {
    let row = |name: &str, values: [f64; 2], written: fn(f64) -> String| {
        (tag("span").text(name), values.map(|value| cell(written(value), value)).into())
    };
    let memory = |bytes: f64| if bytes > 0.0 { number::bytes(bytes as u64) } else { number::NONE.to_owned() };
    let rows = vec![
        row("requests/s", [before.requests_per_second, with.requests_per_second], number::count),
        row("CPU, µs/request", [before.cpu_us_per_request, with.cpu_us_per_request], number::hundredths),
        row("p50, µs", [before.p50_us, with.p50_us], number::count),
        row("p99, µs", [before.p99_us, with.p99_us], number::count),
        row("memory", attempt.rss_peak_bytes.map(|bytes| bytes as f64), memory),
    ];
    let heads = [("both sides, in turns", Edge::Left), ("before", Edge::Right), ("with it", Edge::Right)];
    plain_table(&heads, rows).class("small sides-of-it")
}

/// Every reading of the proof behind a sentence that says what they come to.
fn proof(attempt: &Attempt) -> Option<Tag> {
    if attempt.proof.is_empty() {
        return None;
    }
    let heads = [
        ("side", Edge::Left),
        ("when", Edge::Left),
        ("expected", Edge::Left),
        ("read", Edge::Left),
        ("holds", Edge::Left),
    ];
    let row = |line: &ProofLine| {
        let side = if line.side == "a" { "before the change" } else { "with the change" };
        let holds = if line.holds { "yes" } else { "no" };
        (
            tag("span").text(side),
            vec![
                words(format!("{} measuring", line.when)),
                words(&line.expected),
                words(&line.read),
                words(holds),
            ],
        )
    };
    let rows = attempt.proof.iter().map(row).collect();
    let summary = tag("summary").text(format!("Proof: {}", proven(&attempt.proof)));
    Some(
        tag("details").class("proof").push(summary).push(table("What was read", &heads, rows).class("small")),
    )
}

fn proven(lines: &[ProofLine]) -> &'static str {
    let all = |side: &str, holds: bool| {
        lines.iter().filter(|line| line.side == side).all(|line| line.holds == holds)
    };
    match (all("a", false), all("b", true)) {
        (true, true) => "it holds with the change and fails without it",
        (false, true) => "it cannot tell the sides apart",
        (_, false) => "the change was not seen in force",
    }
}

/// Raw series that belong to this rung: its tries, and its turn back.
fn trials(view: &View<'_>, rung: &Rung) -> Vec<Tag> {
    let read = |trial: &Compared| {
        let tries = [Some(&rung.attempt), rung.first_attempt.as_ref()];
        let of_try = tries.into_iter().flatten().find(|attempt| attempt.trial.as_deref() == Some(&trial.id));
        match of_try {
            Some(attempt) => attempt.effect_percent.zip(attempt.interval_percent),
            None => rung.leave_one_out.map(|e| (e.effect_percent, e.interval_percent)),
        }
    };
    let own = view.climb.series.trials.iter().filter(|trial| belongs(rung, trial));
    own.map(|trial| series::trial(view, trial, read(trial))).collect()
}

pub(super) fn belongs(rung: &Rung, trial: &Compared) -> bool {
    trial.rung.as_ref() == Some(&rung.id)
}

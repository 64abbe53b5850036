//! A card per rung: what is said of it, what was done, what was read, what was measured.

use dyno_measure::judge;
use dyno_measure::series::Metric;
use dyno_measure::units::percent_of_log;
use dyno_record::climb::{Attempt, Climb, Figures, ProofLine, Rung, RungVerdict};
use dyno_record::trial::Compared;

use super::rungs::{self, anchor, otherwise, step};
use super::{profiles, series};
use crate::number;
use crate::view::block::{Block, Card, Fact, OnPage, Section, Shown, Voice};
use crate::view::chart::{Estimates, Ink, Mark, Row};
use crate::view::table::{self, Column, Table, figure, words};
use crate::view::words::said;

pub(super) fn section(climb: &Climb) -> Option<Section> {
    let cards: Vec<Card> = climb.rungs.iter().enumerate().map(|(at, rung)| card(climb, at, rung)).collect();
    let none = cards.is_empty();
    let blocks = vec![Block::Cards(cards)];
    (!none).then(|| Section::page("rungs", "Rung by rung", OnPage::Body, blocks))
}

fn card(climb: &Climb, at: usize, rung: &Rung) -> Card {
    let claim = said(Voice::Claim, "", &rung.claim);
    let text = std::iter::once(claim).chain(verdicts(rung)).chain([about(climb, rung)]).collect();
    let measured = measured(climb, rung);
    let columns = std::iter::once(text).chain((!measured.is_empty()).then_some(measured)).collect();
    Card {
        anchor: anchor(at),
        name: rung.id.clone(),
        aside: rung.change.clone(),
        verdict: Some(rungs::verdict_on(climb, &rung.attempt)),
        shown: Shown::Folded,
        blocks: std::iter::once(Block::Columns(columns)).chain(profiles::block(climb, rung)).collect(),
    }
}

/// Why it stands where it stands, the last try first.
fn verdicts(rung: &Rung) -> Vec<Block> {
    let line = |lead, attempt: &Attempt| {
        let effect = step(attempt);
        let effect = if effect.is_empty() { effect } else { format!(", {effect}") };
        let why = if attempt.why.is_empty() { String::new() } else { format!(": {}", attempt.why) };
        said(Voice::Why, lead, format!("{}{effect}{why}", attempt.verdict.words()))
    };
    match &rung.first_attempt {
        Some(first) => vec![line("First try:", first), line("Again, on the setting reached:", &rung.attempt)],
        None => vec![line("Verdict:", &rung.attempt)],
    }
}

fn about(climb: &Climb, rung: &Rung) -> Block {
    let attempt = &rung.attempt;
    let own_metric = attempt.metric != Metric::CpuPerRequest;
    let facts = [
        ("source", rung.source.clone()),
        ("risk", rung.risk.clone()),
        ("reverts by", rung.reverts.clone()),
        ("needs", rung.needs.join(", ")),
        ("judged with", rung.bundle.join(", ")),
        ("judged by", if own_metric { attempt.metric.to_string() } else { String::new() }),
        ("load", otherwise(climb, attempt).map(|_| attempt.load.clone()).unwrap_or_default()),
        ("clock", attempt.clock.clone()),
        ("data", data(attempt)),
    ];
    Block::Facts(facts.into_iter().map(|(label, words)| Fact::new(label, words)).collect())
}

/// Pairs, instances, and what happened between blocks.
fn data(attempt: &Attempt) -> String {
    if attempt.pairs == 0 {
        return String::new();
    }
    let spread = attempt.instance_spread_percent.map(|spread| format!(", which spread by {spread:.1} %"));
    format!(
        "{} pairs on {} instances a side{}; {:.1} % of the CPU burnt outside its own blocks",
        number::count(attempt.pairs as f64),
        attempt.instances,
        spread.unwrap_or_default(),
        attempt.off_block_percent
    )
}

/// Estimates on a common scale, both sides' figures, the proof, and the raw series.
fn measured(climb: &Climb, rung: &Rung) -> Vec<Block> {
    let estimates = Estimates::of(estimates(climb, rung), [-1.0, 1.0]);
    let estimates = estimates.map(|estimates| Block::Figure(estimates.figure("")));
    let sides = rung.attempt.figures.as_ref().map(|figures| Block::Table(sides(&rung.attempt, figures)));
    let parts = estimates.into_iter().chain(sides).chain(proof(&rung.attempt));
    parts.chain(trials(climb, rung)).collect()
}

/// All that was estimated of one rung.
fn estimates(climb: &Climb, rung: &Rung) -> Vec<Row> {
    let step =
        |name, attempt: &Attempt| Row::one(name, attempt.effect_percent?, attempt.interval_percent, Ink::Dot);
    let first = rung.first_attempt.as_ref().and_then(|first| step("first try", first));
    let ink = if rung.attempt.verdict == RungVerdict::Kept { Ink::Solid } else { Ink::Dot };
    let back = rung
        .leave_one_out
        .and_then(|e| Row::one("turned back", e.effect_percent, Some(e.interval_percent), ink));
    let rows = [first, step("the step", &rung.attempt), instances(climb, &rung.attempt), back];
    rows.into_iter().flatten().collect()
}

/// Each instance's own estimate: a new process is a new draw.
fn instances(climb: &Climb, attempt: &Attempt) -> Option<Row> {
    let trial = &climb.trial(attempt.trial.as_ref()?)?.trial;
    let usable: Vec<_> =
        trial.pairs.iter().copied().filter(|pair| pair.log_ratio(trial.metric).is_finite()).collect();
    let means = judge::instance_means(trial.metric, &usable);
    let words = format!("{} of them", means.len());
    let marks: Vec<Mark> =
        means.iter().filter_map(|log| Mark::of(percent_of_log(*log), None, Ink::Tick)).collect();
    (means.len() > 1).then(|| Row { name: "by instance".to_owned(), marks, words })
}

const SIDES: [Column; 3] =
    [Column::words("both sides, in turns", 0), Column::page("before"), Column::page("with it")];

/// Absolute figures of both sides, one beside the other.
fn sides(attempt: &Attempt, [before, with]: &[Figures; 2]) -> Table {
    let row = |name: &str, values: [f64; 2], written: fn(f64) -> String| -> table::Row {
        let [before, with] = values.map(|value| figure(written(value), value));
        vec![words(name), before, with].into()
    };
    let memory = |bytes: f64| if bytes > 0.0 { number::bytes(bytes as u64) } else { number::NONE.to_owned() };
    let rows = vec![
        row("requests/s", [before.requests_per_second, with.requests_per_second], number::count),
        row("CPU, µs/request", [before.cpu_us_per_request, with.cpu_us_per_request], number::hundredths),
        row("p50, µs", [before.p50_us, with.p50_us], number::count),
        row("p99, µs", [before.p99_us, with.p99_us], number::count),
        row("memory", attempt.rss_peak_bytes.map(|bytes| bytes as f64), memory),
    ];
    Table::new("", &SIDES, rows)
}

/// Every reading of the proof behind a sentence that says what they come to.
fn proof(attempt: &Attempt) -> Option<Block> {
    let columns = ["side", "when", "expected", "read", "holds"].map(|head| Column::words(head, 0));
    let row = |line: &ProofLine| -> table::Row {
        let side = if line.side == "a" { "before the change" } else { "with the change" };
        let holds = if line.holds { "yes" } else { "no" };
        let when = format!("{} measuring", line.when);
        [side, &when, &line.expected, &line.read, holds].map(words).to_vec().into()
    };
    let rows = attempt.proof.iter().map(row).collect();
    let table = Table::new("What was read", &columns, rows);
    let summary = format!("Proof: {}", proven(&attempt.proof));
    (!attempt.proof.is_empty()).then(|| Block::Details(summary, vec![Block::Table(table)]))
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
fn trials(climb: &Climb, rung: &Rung) -> Vec<Block> {
    let read = |trial: &Compared| {
        let tries = [Some(&rung.attempt), rung.first_attempt.as_ref()];
        let of_try = tries.into_iter().flatten().find(|attempt| attempt.trial.as_deref() == Some(&trial.id));
        match of_try {
            Some(attempt) => attempt.effect_percent.zip(attempt.interval_percent),
            None => rung.leave_one_out.map(|e| (e.effect_percent, e.interval_percent)),
        }
    };
    let own = climb.series.trials.iter().filter(|trial| belongs(rung, trial));
    own.map(|trial| series::trial(climb, trial, read(trial))).collect()
}

pub(super) fn belongs(rung: &Rung, trial: &Compared) -> bool {
    trial.rung.as_ref() == Some(&rung.id)
}

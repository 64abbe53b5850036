//! What each thread did when: a lane per thread, time from left to right.
//!
//! Time is cut into columns. In each the states stand on one another, as high as their share of that column: however
//! many switches there were, nothing is dropped and nothing is drawn wider than it was.

use std::fmt::Write;

use dyno_profile::name;
use dyno_record::profile::{Profile, Span, ThreadState};

use super::colour;
use super::measure::share;
use crate::number;
use crate::page::html::{Tag, tag};
use crate::page::parts::paragraph;

/// Columns of a lane: a page's width in pixels, nearly.
const COLUMNS: usize = 500;
/// Lanes: the threads that changed their state most often; a pool of a thousand sleepers is not worth a page.
const LANES_MAX: usize = 32;
/// A lane's height in its own units.
const HIGH: f64 = 100.0;

/// States, from the bottom up: running, runnable, and the kinds of waits.
const STATES: usize = 2 + name::WAITS.len();

/// The picture; none where no states were recorded.
pub(super) fn picture(profile: &Profile) -> Option<Tag> {
    let mut spans: Vec<Vec<&Span>> = vec![Vec::new(); profile.threads.len()];
    profile.timeline.iter().for_each(|span| spans[span.thread as usize].push(span));
    let mut lanes: Vec<usize> = (0..spans.len()).filter(|&thread| !spans[thread].is_empty()).collect();
    lanes.sort_by_key(|&thread| std::cmp::Reverse(spans[thread].len()));
    let left_out = lanes.len().saturating_sub(LANES_MAX);
    lanes.truncate(LANES_MAX);
    lanes.sort_unstable();
    let end = profile.timeline.iter().map(|span| span.to_ns).max().filter(|end| *end > 0)?;
    let drawn = lanes.iter().map(|&thread| lane(profile, thread, &spans[thread], end));
    let list = tag("ol").class("lanes").push_all(drawn).push(axis(end));
    let figure = tag("div").push(key(profile)).push(list);
    Some(match left_out {
        0 => figure,
        rest => figure.push(paragraph(format!("{rest} more threads changed their state less often."))),
    })
}

fn lane(profile: &Profile, thread: usize, spans: &[&Span], end: u64) -> Tag {
    let of = &profile.threads[thread];
    let columns = columns(spans, end);
    let name = number::visible(&format!("{} ({})", of.name, of.tid));
    let svg = tag("svg")
        .attr("viewBox", format!("0 0 {COLUMNS} {HIGH}"))
        .attr("preserveAspectRatio", "none")
        .attr("role", "img")
        .attr("aria-label", sentence(&name, spans))
        .push_all((0..STATES).filter_map(|state| path(&columns, state)));
    tag("li").push(tag("span").class("name").text(name)).push(svg)
}

/// Each state's share of each column.
fn columns(spans: &[&Span], end: u64) -> Vec<[f64; STATES]> {
    let width = end as f64 / COLUMNS as f64;
    let mut columns = vec![[0.0; STATES]; COLUMNS];
    for span in spans.iter().filter(|span| span.to_ns > span.from_ns) {
        let (from, to) = (span.from_ns as f64 / width, span.to_ns as f64 / width);
        let last = (to.ceil() as usize).min(COLUMNS);
        for (at, column) in columns.iter_mut().enumerate().take(last).skip(from as usize) {
            let covered = to.min(at as f64 + 1.0) - from.max(at as f64);
            column[state(span)] += covered.max(0.0);
        }
    }
    columns
}

fn state(span: &Span) -> usize {
    match span.state {
        ThreadState::Running => 0,
        ThreadState::Runnable => 1,
        ThreadState::Waiting => 2 + span.class.unwrap_or_default() as usize,
    }
}

fn class(state: usize) -> &'static str {
    match state.checked_sub(2) {
        None if state == 0 => "runs",
        None => "W0",
        Some(wait) => colour::of_wait(name::WAITS[wait]),
    }
}

/// All of a state's boxes in one path; neighbours of equal height are one.
fn path(columns: &[[f64; STATES]], state: usize) -> Option<Tag> {
    let edges = |column: &[f64; STATES]| {
        let under: f64 = column[..state].iter().sum();
        let round = |share: f64| (share.min(1.0) * HIGH).round() as i64;
        (round(under), round(under + column[state]))
    };
    let mut d = String::new();
    let mut at = 0;
    while at < columns.len() {
        let (low, high) = edges(&columns[at]);
        let same = columns[at..].iter().take_while(|column| edges(column) == (low, high)).count();
        if high > low {
            let top = HIGH as i64 - high;
            write!(d, "M{at} {top}h{same}v{}h-{same}z", high - low).expect("a String takes all");
        }
        at += same;
    }
    (!d.is_empty()).then(|| tag("path").class(class(state)).attr("d", d))
}

/// A lane for those who cannot see it.
fn sentence(name: &str, spans: &[&Span]) -> String {
    let mut sums = [0.0; STATES];
    spans.iter().for_each(|span| sums[state(span)] += span.to_ns.saturating_sub(span.from_ns) as f64);
    let whole: f64 = sums.iter().sum();
    let mut order: Vec<usize> = (0..STATES).filter(|&state| sums[state] > 0.0).collect();
    order.sort_by(|a, b| sums[*b].total_cmp(&sums[*a]));
    let said: Vec<String> =
        order.into_iter().map(|state| format!("{} {}", word(state), share(sums[state], whole))).collect();
    format!("{name}: {}", said.join(", "))
}

fn word(state: usize) -> &'static str {
    match state.checked_sub(2) {
        None if state == 0 => "running",
        None => "runnable without a CPU",
        Some(wait) => name::of_wait(name::WAITS[wait]),
    }
}

fn key(profile: &Profile) -> Tag {
    let seen = |wanted: usize| profile.timeline.iter().any(|span| state(span) == wanted);
    let item = |state: usize| {
        let rect = tag("rect").attr("width", "100%").attr("height", 12).class(class(state));
        let swatch = tag("svg").class("swatch").attr("height", 12).attr("aria-hidden", "true").push(rect);
        tag("li").push(swatch).push(tag("span").text(word(state)))
    };
    tag("ul").class("key").push_all((0..STATES).filter(|&state| seen(state)).map(item))
}

fn axis(end: u64) -> Tag {
    let at = |text: String| tag("span").text(text);
    let end_us = end as f64 / 1e3;
    let scale = tag("span").class("scale").push(at("0".to_owned()));
    let scale = scale.push(at(number::latency(end_us / 2.0))).push(at(number::latency(end_us)));
    tag("li").class("axis").attr("aria-hidden", "true").push(tag("span").class("name")).push(scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::profile::WaitClass;

    fn span(from_ns: u64, to_ns: u64, state: ThreadState) -> Span {
        let class = (state == ThreadState::Waiting).then_some(WaitClass::Lock);
        Span { thread: 0, from_ns, to_ns, state, class }
    }

    #[test]
    fn every_column_holds_the_share_of_each_state() {
        let spans = [
            span(0, 400, ThreadState::Running),
            span(400, 600, ThreadState::Runnable),
            span(600, 1_000, ThreadState::Waiting),
        ];
        let spans: Vec<&Span> = spans.iter().collect();
        let columns = columns(&spans, 1_000);
        let sum = |state: usize| columns.iter().map(|column| column[state]).sum::<f64>() / COLUMNS as f64;
        assert!((sum(0) - 0.4).abs() < 1e-9 && (sum(1) - 0.2).abs() < 1e-9);
        assert!((sum(2 + WaitClass::Lock as usize) - 0.4).abs() < 1e-9);
        assert!(columns.iter().all(|column| column.iter().sum::<f64>() < 1.0 + 1e-9));
    }

    #[test]
    fn a_million_switches_are_a_small_path() {
        let spans: Vec<Span> = (0..100_000).map(|k| span(k * 10, k * 10 + 5, ThreadState::Running)).collect();
        let spans: Vec<&Span> = spans.iter().collect();
        let path = path(&columns(&spans, 1_000_000), 0).map(|path| path.to_string());
        assert!(path.is_some_and(|path| path.len() < 200), "equal neighbours are one box");
    }
}

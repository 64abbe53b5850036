//! What each thread did when: a lane per thread, time from left to right.
//!
//! Time is cut into columns. In each the states stand on one another, as high as their share of that column: however
//! many switches there were, nothing is dropped and nothing is drawn wider than it was.

use dyno_profile::name;
use dyno_record::profile::{Profile, Span, ThreadState};

use crate::number;
use crate::view::block::{Block, OnPage, Section};
use crate::view::chart::{Chart, Figure, Lane, Lanes, STATES};
use crate::view::measure::share;

/// Columns of a lane: a page's width in pixels, nearly.
const COLUMNS: usize = 500;
/// Lanes: the threads that changed their state most often; a pool of a thousand sleepers is not worth a page.
const LANES_MAX: usize = 32;

/// None where no states were recorded.
pub(super) fn section(profile: &Profile) -> Option<Section> {
    let mut spans: Vec<Vec<&Span>> = vec![Vec::new(); profile.threads.len()];
    profile.timeline.iter().for_each(|span| spans[span.thread as usize].push(span));
    let mut lanes: Vec<usize> = (0..spans.len()).filter(|&thread| !spans[thread].is_empty()).collect();
    lanes.sort_by_key(|&thread| std::cmp::Reverse(spans[thread].len()));
    let caption = match lanes.len().saturating_sub(LANES_MAX) {
        0 => String::new(),
        rest => format!("{rest} more threads changed their state less often."),
    };
    lanes.truncate(LANES_MAX);
    lanes.sort_unstable();
    let end = profile.timeline.iter().map(|span| span.to_ns).max().filter(|end| *end > 0)?;
    let seen = |wanted: &usize| profile.timeline.iter().any(|span| state(span) == *wanted);
    let chart = Chart::Lanes(Lanes {
        key: (0..STATES).filter(seen).map(|state| (state, word(state))).collect(),
        lanes: lanes.iter().map(|&thread| lane(profile, thread, &spans[thread], end)).collect(),
        axis: [0.5, 1.0].map(|part| number::latency(part * end as f64 / 1e3)),
    });
    let figure = Figure { chart, sentence: String::new(), caption };
    Some(Section::page("timeline", "What each thread did when", OnPage::Body, vec![Block::Figure(figure)]))
}

fn lane(profile: &Profile, thread: usize, spans: &[&Span], end: u64) -> Lane {
    let of = &profile.threads[thread];
    let name = format!("{} ({})", of.name, of.tid);
    Lane { sentence: sentence(&name, spans), name, columns: columns(spans, end) }
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
}

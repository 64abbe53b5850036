//! What each thread did when: a lane per thread, time from left to right. Of a profile of time on the CPU it is when it ran.
//!
//! Time is cut into columns. In each the states stand on one another, as high as their share of that column: however
//! many switches there were, nothing is dropped and nothing is drawn wider than it was.

use dyno_record::name;
use dyno_record::profile::{Profile, Span, ThreadState, Unit};

use crate::number;
use crate::view::block::{Block, OnPage, Section};
use crate::view::chart::{Chart, Figure, Lane, Lanes, STATES};
use crate::view::measure::share;

/// Columns of a lane: a page's width in pixels, nearly.
const COLUMNS: usize = 500;
/// Lanes: the threads that changed their state most often; a pool of a thousand sleepers is not worth a page.
const LANES_MAX: usize = 32;

/// None where neither states nor the moments of samples were recorded.
pub(super) fn section(profile: &Profile) -> Option<Section> {
    states(profile).or_else(|| running(profile))
}

/// When each thread ran, by its samples.
fn running(profile: &Profile) -> Option<Section> {
    let slice_ns = profile.slice_ns.filter(|_| profile.has_slices() && profile.unit == Unit::Nanoseconds)?;
    let end = (profile.duration_s * 1e9).max(1.0);
    let mut columns = vec![vec![[0.0; STATES]; COLUMNS]; profile.threads.len()];
    let mut whole = vec![0.0; profile.threads.len()];
    for stack in &profile.stacks {
        let (thread, weight) = (stack.thread as usize, stack.weight_ns as f64);
        whole[thread] += weight;
        for (slice, samples) in &stack.slices {
            let ns = weight * f64::from(*samples) / stack.samples.max(1) as f64;
            spread(&mut columns[thread], f64::from(*slice) * slice_ns as f64, slice_ns as f64, ns, end);
        }
    }
    let mut lanes: Vec<usize> = (0..whole.len()).filter(|&thread| whole[thread] > 0.0).collect();
    lanes.sort_by(|a, b| whole[*b].total_cmp(&whole[*a]));
    let rest = match lanes.len().saturating_sub(LANES_MAX) {
        0 => String::new(),
        rest => format!("{rest} more threads ran less. "),
    };
    lanes.truncate(LANES_MAX);
    let caption = format!("{rest}dyno flame --time FROM,TO draws what ran between two moments, in seconds.");
    let lane = |&thread: &usize| {
        let of = &profile.threads[thread];
        let name = format!("{} ({})", of.name, of.tid);
        let sentence = format!("{name}: {} {}", word(0), share(whole[thread], end));
        Lane { sentence, name, columns: columns[thread].clone() }
    };
    let chart = Chart::Lanes(Lanes {
        key: vec![(0, word(0))],
        lanes: lanes.iter().map(lane).collect(),
        axis: [0.5, 1.0].map(|part| number::latency(part * end / 1e3)),
    });
    let figure = Figure { chart, sentence: String::new(), caption };
    Some(Section::page("timeline", "When each thread ran", OnPage::Body, vec![Block::Figure(figure)]))
}

/// Adds time of one slice to the columns it covers, as a share of each; no column is more than full.
fn spread(columns: &mut [[f64; STATES]], from_ns: f64, length_ns: f64, ns: f64, end: f64) {
    let width = end / COLUMNS as f64;
    let (from, to) = (from_ns / width, ((from_ns + length_ns) / width).min(COLUMNS as f64));
    for (at, column) in columns.iter_mut().enumerate().take(to.ceil() as usize).skip(from as usize) {
        let covered = (to.min(at as f64 + 1.0) - from.max(at as f64)).max(0.0);
        column[0] = f64::min(1.0, column[0] + covered / (to - from).max(f64::MIN_POSITIVE) * ns / width);
    }
}

fn states(profile: &Profile) -> Option<Section> {
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
    fn a_slice_fills_the_columns_that_it_covers_by_its_samples() {
        let mut columns = vec![[0.0; STATES]; COLUMNS];
        // Half of a second that lasts from the second to the third of four.
        spread(&mut columns, 1e9, 1e9, 0.5e9, 4e9);
        let quarter = COLUMNS / 4;
        assert!(columns[quarter..2 * quarter].iter().all(|column| (column[0] - 0.5).abs() < 1e-9));
        let outside = columns[..quarter].iter().chain(&columns[2 * quarter..]);
        assert_eq!(outside.map(|column| column[0]).fold(0.0, f64::max), 0.0);
        // What does not fit behind the end is not drawn there.
        spread(&mut columns, 3.5e9, 1e9, 1e9, 4e9);
        assert!(columns.iter().all(|column| column[0] <= 1.0) && columns[COLUMNS - 1][0] > 0.9);
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

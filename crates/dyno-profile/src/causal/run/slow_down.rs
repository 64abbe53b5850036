//! A real slow-down, which a promised gain is held against: how much each call or sample is made longer, and what it says.
//!
//! The time of a program as a function of how long one part of it takes bends upwards only: where something else becomes
//! the bottleneck, making the part faster brings less, and making it slower still costs all. What a slow-down costs is
//! therefore an upper bound of what a speed-up brings: a gain beyond it is a contradiction, a cost beyond the gain is none.

use std::time::Duration;

use dyno_record::causal::{Metric, Point, SlowDown, SlowedAt, Treatment};
use dyno_sys::bpf::causal::SLOWER_NS_MAX;

use super::estimate::{Cost, gap};
use super::mean::Mean;
use super::measured::{Excluded, Measured};
use super::seen::per_second;
use crate::causal::rig::Rig;
use crate::causal::rig::site::{Place, Tried};
use crate::causal::rig::window::Window;
use crate::error::Error;

/// Calls per second from which on the probe itself would slow the site down by more than a hundredth.
const CALLS_MAX: f64 = 20_000.0;
/// Shortest added time that is longer than the probe's own.
const ADDED_NS_MIN: f64 = 2_000.0;
/// Calls of a window, of which some are on their way at its ends: of fewer chance decides.
const CALLS_PER_WINDOW_MIN: f64 = 5.0;
/// How long calls are counted.
const CALLS_COUNTED: Duration = Duration::from_millis(500);
/// The greatest level where none is asked for, percent.
const LEVEL_PERCENT: u32 = 50;
/// Chance of a difference between gain and cost by which a claim is dropped: nearly every claim is held against one.
const GAP_CHANCE_MAX: f64 = 0.001;
/// Points by which they must differ at least: less changes no decision.
const GAP_POINTS: f64 = 1.0;
/// A gap of so many points is seen in few rounds, of which no chance is as small.
const WIDE_GAP_POINTS: f64 = 8.0;
const WIDE_GAP_CHANCE_MAX: f64 = 0.01;

/// The slow-down that a site's claim is held against.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// There is no claim yet.
    NotWanted,
    /// A claim, and no way to bear it out.
    Impossible(String),
    /// It is made longer.
    Longer(Longer),
}

/// How a site is made longer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Longer {
    pub(super) at: SlowedAt,
    /// Each time.
    pub(super) added_ns: u64,
    /// How often.
    per_second: f64,
}

/// How a site, the rig's `at`th, is to be made longer by as much as the greatest level makes it shorter: at each of its
/// calls where they can be counted and are neither too many nor too few, and at each of its samples otherwise.
pub(super) fn plan(
    rig: &mut dyn Rig,
    (at, site): (usize, &Tried),
    measured: &[Measured],
    levels: &[u32],
    length: Duration,
) -> Result<Plan, Error> {
    let Place::Code { entries, .. } = &site.site.place else {
        return Ok(Plan::Impossible("it is a wait, and has no code that could be made longer".to_owned()));
    };
    let busy_ns = busy_ns_per_s(measured, rig.period_ns());
    if busy_ns <= 0.0 {
        return Ok(Plan::Impossible("it was met in no window".to_owned()));
    }
    let calls = if entries.is_empty() { None } else { rig.entries_per_second(at, CALLS_COUNTED)? };
    let longer = f64::from(levels.iter().copied().max().unwrap_or(LEVEL_PERCENT)) / 100.0;
    let by_calls = calls.and_then(|calls| at_calls(calls, longer * busy_ns, length));
    let period_ns = rig.period_ns() as f64;
    // Samples come by the clock, so that what pauses is met more often for as much work.
    let by_sample = longer / (1.0 + longer * (busy_ns / 1e9).min(1.0));
    let by_samples = Longer {
        at: SlowedAt::Samples,
        added_ns: (by_sample * period_ns) as u64,
        per_second: busy_ns / period_ns,
    };
    let longer = by_calls.unwrap_or(by_samples);
    debug_assert!(longer.added_ns >= 1, "what is made longer by nothing is not slowed down");
    Ok(Plan::Longer(longer))
}

/// By its calls, where a probe at so many of them costs little, and chance at the ends of a window as well. `more_ns` is to
/// be added in a second.
fn at_calls(per_second: f64, more_ns: f64, length: Duration) -> Option<Longer> {
    let per_window = per_second * length.as_secs_f64();
    let added_ns = (more_ns / per_second).max(ADDED_NS_MIN);
    let can =
        per_second <= CALLS_MAX && per_window >= CALLS_PER_WINDOW_MIN && added_ns <= SLOWER_NS_MAX as f64;
    can.then_some(Longer { at: SlowedAt::Calls, added_ns: added_ns as u64, per_second })
}

/// Time that the site takes for one unit of progress, where nothing was done to it: pauses may fall in step with work that takes
/// turns as long as samples are apart, and then it is met too often.
fn ns_per_visit(measured: &[Measured], period_ns: u64) -> f64 {
    let alone = windows(measured, |treatment| treatment == Treatment::Nothing);
    let (hits, visits) =
        alone.fold((0, 0), |(hits, visits), window| (hits + window.hits, visits + window.visits));
    hits as f64 * period_ns as f64 / visits.max(1) as f64
}

/// Time that it takes in a second of a target that is left alone.
fn busy_ns_per_s(measured: &[Measured], period_ns: u64) -> f64 {
    let alone = windows(measured, |treatment| treatment == Treatment::Nothing);
    ns_per_visit(measured, period_ns) * per_second(alone)
}

fn windows(measured: &[Measured], is: fn(Treatment) -> bool) -> impl Iterator<Item = &Window> {
    let counts = |one: &&Measured| {
        !matches!(one.excluded, Some(Excluded::Expired | Excluded::Unsettled | Excluded::Short))
    };
    measured.iter().filter(counts).filter(move |one| is(one.treatment)).map(|one| &one.window)
}

/// By how much longer its work became, percent. Samples come as often however long their threads pause, so that more of them fall
/// into what pauses: what was paid for a visit says by how much.
fn slowdown_percent(longer: Longer, measured: &[Measured], period_ns: u64) -> f64 {
    match longer.at {
        SlowedAt::Calls => {
            let call_ns = busy_ns_per_s(measured, period_ns) / longer.per_second;
            100.0 * longer.added_ns as f64 / call_ns
        }
        SlowedAt::Samples => {
            let slower = windows(measured, |treatment| matches!(treatment, Treatment::SlowDown(_)));
            let (paid_ns, visits) =
                slower.fold((0, 0), |(ns, visits), window| (ns + window.paid_ns, visits + window.visits));
            100.0 * paid_ns as f64 / visits.max(1) as f64 / ns_per_visit(measured, period_ns)
        }
    }
}

/// What the slow-down of a site came to; `None` where there was none, or no time for it. `claim` is the figure that it is
/// held against, with the method's own error in its interval.
pub(super) fn outcome(
    plan: &Plan,
    cost: Option<Cost>,
    measured: &[Measured],
    metric: Metric,
    period_ns: u64,
    claim: Option<&Point>,
) -> Option<SlowDown> {
    let Plan::Longer(longer) = *plan else { return None };
    let Cost { percent: cost_percent, interval_percent, rounds } = cost?;
    let slowdown_percent = slowdown_percent(longer, measured, period_ns);
    let contradicts = claim.is_some_and(|claim| {
        let scale = as_much(claim.speedup_percent, slowdown_percent);
        let gap = gap(measured, metric, claim.speedup_percent, scale);
        contradicts(claim, interval_percent, slowdown_percent, gap)
    });
    Some(SlowDown {
        at: longer.at,
        added_ns: longer.added_ns,
        calls_per_second: longer.per_second,
        slowdown_percent,
        cost_percent,
        interval_percent,
        rounds,
        contradicts,
    })
}

/// Whether a promised gain exceeds what slowing the same code down allows.
///
/// Both share their nulls, whose error lifts the one and lowers the other: intervals that do not meet are not enough, the
/// difference itself (`gap`, paired by round) must be beyond chance, and beyond what the method may be off by.
fn contradicts(point: &Point, cost: [f64; 2], slowdown_percent: f64, gap: Option<Mean>) -> bool {
    let [_, cost_high] = cost;
    let apart = point.interval_percent[0] > 0.0
        && point.interval_percent[0] > cost_high * as_much(point.speedup_percent, slowdown_percent);
    let is_beyond = |gap: Mean, points: f64| gap.mean - gap.half_width > points + point.allowance_points;
    apart
        && gap.is_some_and(|gap| {
            is_beyond(gap, GAP_POINTS) && gap.p < GAP_CHANCE_MAX
                || is_beyond(gap, WIDE_GAP_POINTS) && gap.p < WIDE_GAP_CHANCE_MAX
        })
}

/// What a slow-down's cost is multiplied with, to be that of as much as a level.
fn as_much(level: u32, slowdown_percent: f64) -> f64 {
    debug_assert!(level > 0, "a speed-up by nothing promises nothing");
    f64::from(level) / slowdown_percent.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_beyond_what_slowing_costs_is_no_gain_and_a_cost_beyond_the_gain_is_a_shift() {
        let point = Point {
            speedup_percent: 50,
            effect_percent: 15.0,
            interval_percent: [13.0, 17.0],
            rounds: 20,
            ..Point::default()
        };
        let gap = |mean| Some(Mean { mean, half_width: 1.0, sd: 1.0, n: 20, p: 1e-6 });
        assert!(contradicts(&point, [2.0, 8.0], 50.0, gap(10.0)));
        let of_few = |mean| gap(mean).map(|gap| Mean { p: 0.005, ..gap });
        assert!(
            !contradicts(&point, [2.0, 8.0], 50.0, of_few(8.9))
                && contradicts(&point, [2.0, 8.0], 50.0, of_few(9.1))
        );
        assert!(!contradicts(&point, [2.0, 8.0], 50.0, gap(10.0).map(|gap| Mean { p: 0.011, ..gap })));
        let lumps = Point { allowance_points: 9.0, ..point };
        assert!(!contradicts(&lumps, [2.0, 8.0], 50.0, gap(10.0)), "the method may be off by as much");
        assert!(!contradicts(&point, [25.0, 35.0], 50.0, gap(-15.0)), "another bottleneck takes over");
        assert!(!contradicts(&point, [5.0, 8.0], 25.0, gap(2.0)), "half the change may cost half");
    }
}

//! A real slow-down, which a promised gain is held against: how much each call is made longer, and what it says.
//!
//! The time of a program as a function of how long one part of it takes bends upwards only: where something else becomes
//! the bottleneck, making the part faster brings less, and making it slower still costs all. What a slow-down costs is
//! therefore an upper bound of what a speed-up brings: a gain beyond it is a contradiction, a cost beyond the gain is none.

use std::time::Duration;

use dyno_record::causal::{Metric, Point, SlowDown, Treatment};
use dyno_sys::bpf::causal::SLOWER_NS_MAX;

use super::estimate::{Cost, gap};
use super::mean::Mean;
use super::measured::{Excluded, Measured};
use super::seen::per_second;
use crate::causal::rig::Rig;
use crate::causal::rig::site::{Place, Tried};
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

/// The slow-down that a site's claim is held against.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// There is no claim yet.
    NotWanted,
    /// A claim, and no way to bear it out.
    Impossible(String),
    /// Each call is made longer.
    Each { added_ns: u64, calls_per_second: f64 },
}

/// How each call of a site, the rig's `at`th, is to be made longer by as much as the greatest level makes it shorter, if
/// that can be done.
pub(super) fn plan(
    rig: &mut dyn Rig,
    (at, site): (usize, &Tried),
    measured: &[Measured],
    levels: &[u32],
    length: Duration,
) -> Result<Plan, Error> {
    let impossible = |why: &str| Ok(Plan::Impossible(why.to_owned()));
    let has_entry = matches!(&site.site.place, Place::Code { entries, .. } if !entries.is_empty());
    if !has_entry {
        return impossible("it has no entry of its own where calls could be made longer");
    }
    let Some(calls_per_second) = rig.entries_per_second(at, CALLS_COUNTED)? else {
        return impossible("its calls cannot be counted");
    };
    if calls_per_second > CALLS_MAX {
        return impossible(&format!("{calls_per_second:.0} calls per second are too many for a probe"));
    }
    let calls_per_window = calls_per_second * length.as_secs_f64();
    let call_ns = call_ns(measured, rig.period_ns(), calls_per_second);
    if calls_per_window < CALLS_PER_WINDOW_MIN || call_ns <= 0.0 {
        return impossible(&format!("{calls_per_window:.1} calls in a window are too few to be slowed down"));
    }
    let longer = f64::from(levels.iter().copied().max().unwrap_or(LEVEL_PERCENT)) / 100.0;
    let added_ns = (longer * call_ns).max(ADDED_NS_MIN);
    if added_ns > SLOWER_NS_MAX as f64 {
        return impossible(&format!(
            "a call takes {:.0} ms, too long to be made longer by half",
            added_ns / longer / 1e6
        ));
    }
    debug_assert!(added_ns >= 1.0, "a call that is made longer by nothing is not slowed down");
    Ok(Plan::Each { added_ns: added_ns as u64, calls_per_second })
}

/// How long one call takes. A unit of progress has as many samples in the site however long others pause, while shares
/// and rates change with them.
fn call_ns(measured: &[Measured], period_ns: u64, calls_per_second: f64) -> f64 {
    let of = |is: fn(Treatment) -> bool| {
        let counts = |one: &&Measured| {
            !matches!(one.excluded, Some(Excluded::Expired | Excluded::Unsettled | Excluded::Short))
        };
        measured.iter().filter(counts).filter(move |one| is(one.treatment)).map(|one| &one.window)
    };
    let faster = || of(|treatment| matches!(treatment, Treatment::SpeedUp(_)));
    let (hits, visits) =
        faster().fold((0, 0), |(hits, visits), window| (hits + window.hits, visits + window.visits));
    let ns_per_visit = hits as f64 * period_ns as f64 / visits.max(1) as f64;
    ns_per_visit * per_second(of(|treatment| treatment == Treatment::Nothing)) / calls_per_second
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
    let Plan::Each { added_ns, calls_per_second } = *plan else { return None };
    let slowdown_percent = 100.0 * added_ns as f64 / call_ns(measured, period_ns, calls_per_second);
    let Cost { percent: cost_percent, interval_percent, rounds } = cost?;
    let contradicts = claim.is_some_and(|claim| {
        let scale = as_much(claim.speedup_percent, slowdown_percent);
        let gap = gap(measured, metric, claim.speedup_percent, scale);
        contradicts(claim, interval_percent, slowdown_percent, gap)
    });
    Some(SlowDown {
        added_ns,
        calls_per_second,
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
    let least = GAP_POINTS + point.allowance_points;
    apart && gap.is_some_and(|gap| gap.mean - gap.half_width > least && gap.p < GAP_CHANCE_MAX)
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
        assert!(!contradicts(&point, [2.0, 8.0], 50.0, gap(10.0).map(|gap| Mean { p: 0.01, ..gap })));
        let lumps = Point { allowance_points: 9.0, ..point };
        assert!(!contradicts(&lumps, [2.0, 8.0], 50.0, gap(10.0)), "the method may be off by as much");
        assert!(!contradicts(&point, [25.0, 35.0], 50.0, gap(-15.0)), "another bottleneck takes over");
        assert!(!contradicts(&point, [5.0, 8.0], 25.0, gap(2.0)), "half the change may cost half");
    }
}

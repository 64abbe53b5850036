//! What was measured on this machine, as gains: used by the checks whose cost it is.

use dyno_record::audit::Gain;
use dyno_record::facts::{Facts, Figure, Measured, Packets, Tap};

use super::draft::{counted, measured_here};

/// System calls of a small request where nobody watched the server: one that waits, one that receives, one that sends.
pub(super) const CALLS: f64 = 3.0;

pub(super) fn measured(facts: &Facts) -> Option<&Measured> {
    facts.measured.as_ref()
}

/// `130 ns [128, 133]`.
pub(super) fn ns(figure: &Figure) -> String {
    let [least, most] = figure.interval;
    format!("{:.0} ns [{least:.0}, {most:.0}]", figure.value)
}

/// `12.3 µs [12.1, 12.5]`.
pub(super) fn us(figure: &Figure) -> String {
    let [least, most] = figure.interval;
    format!("{:.1} µs [{least:.1}, {most:.1}]", figure.value)
}

pub(super) fn tap(facts: &Facts) -> Option<&Packets> {
    measured(facts)?.tap.value()
}

/// What a further tap costs at least of the first: that one makes the kernel take times and copies, which the others share. On
/// loopback 1, 5, 10 and 20 taps added 0.6, 1.6, 2.7 and 4.9 µs to a request.
const FURTHER: f64 = 0.3;

/// Taps of one owner, by what one of ours costs. One with a filter may refuse packets before they are copied, and costs less
/// then: such ones count from nothing on.
pub(super) fn of_taps(taps: &[&Tap], one: &Packets) -> Gain {
    let unfiltered = taps.iter().filter(|tap| tap.filter.is_none()).count() as f64;
    // Two packets are a request and its answer.
    let cost_us = |count: f64, ns: f64| count * 2.0 * ns.max(0.0) / 1_000.0;
    let percent = |us: f64| 100.0 * us / (us + one.request_us.value);
    let [least, most] = one.packet_ns.interval;
    let at_least = unfiltered.min(1.0) + FURTHER * (unfiltered - 1.0).max(0.0);
    let range = [percent(cost_us(at_least, least)), percent(cost_us(taps.len() as f64, most))];
    let what = format!(
        "{}, of which the first takes {} a packet and each further one a third of it or more (a filter that refuses packets makes it less), of a small request of {}",
        counted(taps.len(), "tap"),
        ns(&one.packet_ns),
        us(&one.request_us)
    );
    measured_here(range, what)
}

/// All rules together.
pub(super) fn of_rules(facts: &Facts) -> Option<Gain> {
    let rules = measured(facts)?.rules.value()?;
    let what = format!(
        "{}: {} a packet more, of a small request of {}; all chains together",
        rules.what,
        ns(&rules.packet_ns),
        us(&rules.request_us)
    );
    Some(measured_here(rules.percent.interval, what))
}

/// Copies of the server's filters, by the calls that it makes for a reply.
pub(super) fn of_filters(facts: &Facts) -> Option<Gain> {
    let here = measured(facts)?;
    let (filters, request) = (here.filters.value()?, here.request_us.value()?);
    let (calls, whose) = match here.server.value() {
        Some(watched) => (watched.calls_per_reply(), "that it makes for a reply"),
        None => (CALLS, "of a small request"),
    };
    let percent = filters.extra_ns.interval.map(|extra| share(calls * extra / 1_000.0, request.value));
    let what = format!(
        "copies of its {} ({} instructions) add {} to a call; for {calls:.1} calls {whose}, beside {} of a small request over loopback",
        counted(filters.count as usize, "filter"),
        filters.instructions,
        ns(&filters.extra_ns),
        us(request)
    );
    Some(measured_here(percent, what))
}

/// The part of a request that something takes which comes on top of it, percent.
pub(super) fn share(extra_us: f64, request_us: f64) -> f64 {
    let extra_us = extra_us.max(0.0);
    100.0 * extra_us / (extra_us + request_us)
}

//! What a closed loop does not see: while a connection waits for an answer it sends nothing, and the requests that somebody
//! who sends at an even pace would have sent meanwhile have no latency at all ("coordinated omission", G. Tene).
//!
//! [`BlockReport::held_back`] says so where it matters. It never changes what was measured.

use dyno_measure::Histogram;

use crate::report::BlockReport;

/// The share whose latency is told: the highest that a run prints.
const SHARE: f64 = 0.99;

/// Told where so many of a hundred requests at an even pace would meet …
const MET: f64 = 0.03;
/// … waits of so many times the percentile that was measured. A full server's own spread comes to 1.1 (exponential
/// latencies) or 1.7 (log-normal ones of one sigma). On a shared machine single hiccups of 50 ms meet one or two in a hundred.
const FACTOR: u64 = 5;
/// A hiccup keeps everything in flight waiting at once; told is what happened more often than once.
const TIMES_MIN: u64 = 2;
/// What each of those in flight waited so in all, at least: a short run on a busy machine has a few waits of milliseconds.
const LOST_NS_MIN: u64 = 100_000_000;

/// The 99th percentile as it was measured, and as it would be of requests at an even pace, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldBack {
    /// Of the requests that were sent.
    pub sent_ns: u64,
    /// With those that were not.
    pub paced_ns: u64,
}

impl BlockReport {
    /// Whether long waits held so many requests back that the 99th percentile is another; `None` in an ordinary run, and
    /// where that percentile is not known. `in_flight`: how many requests were awaited at a time.
    #[must_use]
    pub fn held_back(&self, in_flight: u64) -> Option<HeldBack> {
        let sent_ns = self.latency_at(SHARE).known()?;
        let long_ns = sent_ns.saturating_mul(FACTOR);
        let values = self.latencies.sparse();
        let long: Vec<(u64, u64)> = values.into_iter().filter(|(ns, _)| *ns >= long_ns).collect();
        let times: u64 = long.iter().map(|(_, count)| count).sum();
        let lost_ns =
            long.iter().fold(0_u64, |sum, (ns, count)| sum.saturating_add(ns.saturating_mul(*count)));
        let is_met = paced_quantile(&self.latencies, 1.0 - MET)? >= long_ns;
        let is_little =
            times < TIMES_MIN.saturating_mul(in_flight) || lost_ns < LOST_NS_MIN.saturating_mul(in_flight);
        if is_little || !is_met {
            return None;
        }
        Some(HeldBack { sent_ns, paced_ns: paced_quantile(&self.latencies, SHARE)? })
    }
}

/// HdrHistogram's correction for an expected interval, which is the median here: as often does a connection send as long as it
/// is answered. A wait of `v` stands for further ones of `v` less one interval, less two, and so on down to one interval.
fn paced_quantile(latencies: &Histogram, q: f64) -> Option<u64> {
    let interval_ns = latencies.quantile(0.5);
    if interval_ns == 0 {
        return None;
    }
    let values = latencies.sparse();
    let above = |ns: u64| values.iter().map(|(v, n)| n * above(*v, interval_ns, ns)).sum::<u64>();
    let above_max = ((1.0 - q) * above(0) as f64) as u64;
    // The smallest value that no more than so many exceed.
    let (mut low, mut high) = (0, latencies.max());
    while low < high {
        let middle = low + (high - low) / 2;
        if above(middle) <= above_max {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

/// How many values above `ns` a wait of `wait_ns` stands for, itself among them.
fn above(wait_ns: u64, interval_ns: u64, ns: u64) -> u64 {
    if wait_ns <= ns {
        return 0;
    }
    let all = (wait_ns / interval_ns).max(1);
    all.min((wait_ns - ns).div_ceil(interval_ns))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::report::Unfinished;
    use dyno_measure::Prng;

    const MS: u64 = 1_000_000;

    fn block(latencies: Histogram) -> BlockReport {
        BlockReport { latencies, ..BlockReport::default() }
    }

    /// Four connections for ten seconds; of every two the server stops for 0.7. Planted fault: the percentile of what was
    /// sent, as it was.
    #[test]
    fn a_server_that_stops_again_and_again_is_told_with_what_an_even_pace_would_meet() {
        let mut latencies = Histogram::new();
        latencies.record_n(MS / 10, 4 * 5 * 13_000);
        latencies.record_n(700 * MS, 4 * 5);
        assert_eq!(block(latencies.clone()).held_back(11), None, "that is one stop of eleven connections");
        let told = block(latencies).held_back(4).unwrap();
        assert_eq!(told.sent_ns / (MS / 100), 10);
        // 35 % of the time is in the waits, and the last hundredth of all begins at 34/35 of one.
        assert!((670 * MS..690 * MS).contains(&told.paced_ns), "{told:?}");
    }

    #[test]
    fn each_value_is_one_that_hdr_histogram_adds() {
        // Histogram::recordValueWithExpectedInterval: the value, then each that is an interval less and no less than one.
        let slow = |wait: u64, interval: u64| -> Vec<u64> {
            let less = |value: &u64| value.checked_sub(interval).filter(|value| *value >= interval);
            std::iter::successors(Some(wait), less).collect()
        };
        for (wait, interval) in [(1, 5), (5, 5), (9, 5), (10, 5), (12, 5), (1_000, 7), (70, 7)] {
            let values = slow(wait, interval);
            for ns in 0..=wait {
                let count = values.iter().filter(|value| **value > ns).count() as u64;
                assert_eq!(above(wait, interval, ns), count, "{wait} at {interval}, above {ns}");
            }
        }
    }

    /// A run of a third of a second. Planted fault: however little was lost (`LOST_NS_MIN` of nought).
    #[test]
    fn a_few_hiccups_of_a_short_run_are_told_nothing() {
        let run = |times: u64| {
            let mut latencies = Histogram::new();
            latencies.record_n(MS / 20, 4 * 6_000);
            latencies.record_n(5 * MS, 4 * times);
            block(latencies).held_back(4)
        };
        assert_eq!(run(3), None);
        assert!(run(30).is_some());
    }

    /// Planted fault: a factor of one.
    #[test]
    fn ordinary_runs_are_told_nothing() {
        let mut rng = Prng::new(3);
        let mut of = |draw: &mut dyn FnMut(&mut Prng) -> f64| {
            let mut latencies = Histogram::new();
            (0..200_000).for_each(|_| latencies.record(draw(&mut rng) as u64));
            block(latencies).held_back(10)
        };
        let uniform = |rng: &mut Prng| (rng.below(1 << 30) as f64 + 1.0) / (1_u64 << 30) as f64;
        assert_eq!(of(&mut |rng| 230_000.0 * -uniform(rng).ln()), None, "exponential");
        assert_eq!(of(&mut |rng| 230_000.0 * rng.normal().exp()), None, "log-normal");
        assert_eq!(of(&mut |rng| if rng.below(50) == 0 { 9e6 } else { 3e5 }), None, "some are slow");
        assert_eq!(of(&mut |rng| if rng.below(5_000) == 0 { 30e6 } else { 3e5 }), None, "2 % of the time");
        assert!(of(&mut |rng| if rng.below(2_000) == 0 { 30e6 } else { 3e5 }).is_some(), "and 5 %");
        assert_eq!(of(&mut |_| 500.0), None);
        assert_eq!(block(Histogram::new()).held_back(1), None);
    }

    #[test]
    fn a_percentile_that_is_not_known_is_not_compared() {
        let mut latencies = Histogram::new();
        latencies.record_n(MS / 10, 1_000);
        latencies.record_n(700 * MS, 2);
        let mut block = block(latencies);
        assert!(block.held_back(1).is_some());
        block.unfinished = vec![Unfinished { age_ns: 5 * MS, requests: 50 }];
        assert_eq!(block.held_back(1), None);
    }
}

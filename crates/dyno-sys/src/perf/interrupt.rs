//! How long the interrupt of a sample keeps a thread from its code, measured on the calling thread.
//!
//! A profiler that takes time away on purpose has to know what its own samples take. Most of an interrupt lies before and
//! after all that a program in the kernel could time, in a virtual machine outside of the kernel even: only who is
//! interrupted can tell.

use super::record::{Record, records};
use super::ring::Ring;
use super::sampling::{Clock, Inherit, Kernel, Sampling, SamplingEvent, Stacks, Start, Whom};
use crate::Tid;
use crate::clock::mono_ns;
use std::io;
use std::time::Duration;

/// About as often as samples are taken where it matters, or the interrupt would find other caches.
const FREQUENCY_HZ: u64 = 1_000;
/// Two looks at the clock take some 50 ns: in a longer gap between them another thread or an interrupt ran.
const GAP_NS_MIN: u64 = 500;
/// A longer one was a switch to another thread, or the hypervisor.
const GAP_NS_MAX: u64 = 200_000;
/// Fewer say nothing.
const GAPS_MIN: usize = 10;
const RING_BYTES: usize = 64 << 10;
/// The thread that asks (`perf_event_open(2)`).
const CALLER: Tid = 0;

/// The time between the instructions before and after a sample's interrupt: the median, of a thread that looks at the clock
/// for `length` and does nothing else. `None` where too few samples were seen, on a machine that is too busy.
///
/// # Errors
/// As [`SamplingEvent::open`] and [`Ring::map`].
pub fn interrupt_ns(length: Duration) -> io::Result<Option<u64>> {
    let sampling = Sampling {
        clock: Clock::CpuClock,
        frequency_hz: FREQUENCY_HZ,
        kernel: Kernel::Without,
        stacks: Stacks { chain: false, copy_bytes: 0 },
        inherit: Inherit::Nobody,
        start: Start::Later,
        wakeup_bytes: RING_BYTES as u32,
    };
    let event = SamplingEvent::open(&sampling, Whom::Thread(CALLER))?;
    let mut ring = Ring::map(&event, RING_BYTES)?;
    event.enable()?;
    let gaps = gaps(length);
    event.disable()?;
    let mut bytes = Vec::new();
    ring.drain(&mut bytes);
    let sampled = records(&bytes).filter_map(|record| match Record::parse(record, sampling.layout())? {
        Record::Sample(sample) => Some(sample.time_ns),
        _ => None,
    });
    Ok(median_around(&gaps, sampled))
}

/// Times from one look at the clock to the next that were not the look's own, in order.
fn gaps(length: Duration) -> Vec<[u64; 2]> {
    let mut before = mono_ns();
    let end = before.saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    let mut gaps = Vec::new();
    while before < end {
        let after = mono_ns();
        if after - before > GAP_NS_MIN {
            gaps.push([before, after]);
        }
        before = after;
    }
    gaps
}

/// The median length of those gaps in which a sample lies.
fn median_around(gaps: &[[u64; 2]], sampled: impl Iterator<Item = u64>) -> Option<u64> {
    let around = |at: u64| {
        let [from, to] = gaps[..gaps.partition_point(|gap| gap[0] <= at)].last()?;
        (at <= *to && to - from < GAP_NS_MAX).then_some(to - from)
    };
    let mut lengths: Vec<u64> = sampled.filter_map(around).collect();
    lengths.sort_unstable();
    (lengths.len() >= GAPS_MIN).then(|| lengths[lengths.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gaps_with_a_sample_in_them_count_and_switches_do_not() {
        let gaps: Vec<[u64; 2]> = (1..=30).map(|at| [at * 1_000_000, at * 1_000_000 + 1_000 * at]).collect();
        // In the first eleven; one beside the last of them.
        let inside = (1..=11).map(|at| at * 1_000_000 + 500);
        assert_eq!(median_around(&gaps, inside.clone().chain([11_500_000])), Some(6_000));
        assert_eq!(median_around(&gaps, inside.take(9)), None);
        let long = [[0, GAP_NS_MAX]; 20];
        assert_eq!(median_around(&long, 0..20), None);
        assert_eq!(median_around(&[], 0..20), None);
    }
}

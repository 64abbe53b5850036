//! Entries into code, counted by probes that are held no longer than the target can bear: a function that is entered a
//! million times a second would stand nearly still under a probe, and is known well enough after a millisecond.

use std::time::Duration;

use dyno_sys::bpf::Attached;
use dyno_sys::bpf::causal::{Counted, Mark, Probe};
use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::perf::{self, PassCounter};
use dyno_sys::{Pid, proc};

use super::refusal::{no_probe, refused};
use crate::causal::rig::site::Entry;
use crate::error::Error;

/// A glimpse, by a bare counter that is out of the code at once; then a look, by the probe that counts.
const GLIMPSE: Duration = Duration::from_micros(500);
const LOOK: Duration = Duration::from_millis(10);
/// Entries per second from which on a probe is dear: of 15 µs each, where it is single-stepped, it takes a third.
const DEAR_PER_SECOND: f64 = 20_000.0;
/// Entries that are enough to know a rate.
const ENOUGH: f64 = 2_000.0;
/// The target has this long for itself after a probe that was dear.
const REST: Duration = Duration::from_millis(20);

/// Entries into code, in windows of their own whose numbers `next` gives: for `length`, or for as short as is needed.
pub(super) fn entered_per_second(
    probe: &mut Probe,
    entries: &[Entry],
    pids: &[Pid],
    next: &mut dyn FnMut() -> u64,
    length: Duration,
) -> Result<f64, Error> {
    if let Some(per_second) = glimpsed(entries, pids) {
        return Ok(per_second);
    }
    let held = held(probe, entries, pids)?;
    let per_second = entered(probe, next(), LOOK)?;
    if per_second > DEAR_PER_SECOND {
        drop(held);
        sleep_ns(nanos(REST));
        return Ok(per_second);
    }
    let enough = if per_second > 0.0 { Duration::from_secs_f64(ENOUGH / per_second) } else { length };
    entered(probe, next(), length.min(enough))
}

/// Entries of the busiest thread for a millisecond, as many for all of them as they have time: where that is dear.
/// What cannot be looked at so is none.
fn glimpsed(entries: &[Entry], pids: &[Pid]) -> Option<f64> {
    let (tid, times) = perf::busiest(pids)?;
    let mut all = 0.0;
    for entry in entries {
        let looked = perf::urgently(|| {
            let counter = PassCounter::open(tid, &entry.image, entry.offset).ok()?;
            let begun_ns = mono_ns();
            sleep_ns(nanos(GLIMPSE));
            Some((counter.count().unwrap_or(0), mono_ns() - begun_ns))
        });
        let Some((count, looked_ns)) = looked else { continue };
        all += count as f64 * 1e9 / looked_ns.max(1) as f64;
        if all * times > DEAR_PER_SECOND {
            sleep_ns(nanos(REST));
            return Some(all * times);
        }
    }
    None
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Probes on entries, for as long as the answer lives.
fn held(probe: &mut Probe, entries: &[Entry], pids: &[Pid]) -> Result<Vec<Attached>, Error> {
    let mut held = Vec::new();
    for entry in entries {
        for pid in pids {
            match probe.probe(Mark::Entry, &entry.image, entry.offset, Some(*pid)) {
                Ok(attached) => held.push(attached),
                // It has ended: since it was listed, or before (a zombie).
                Err(_) if proc::has_ended(*pid) => {}
                Err(error) => return Err(no_probe(entry, error)),
            }
        }
    }
    Ok(held)
}

/// Entries per second into what is probed, in window `number`.
fn entered(probe: &Probe, number: u64, length: Duration) -> Result<f64, Error> {
    let begun_ns = mono_ns();
    probe.open_window(number);
    sleep_ns(nanos(length));
    probe.close_window();
    let seconds = (mono_ns() - begun_ns) as f64 / 1e9;
    let entered = probe.visits(Counted::Entries, number).map_err(refused)?;
    Ok(entered.count as f64 / seconds)
}

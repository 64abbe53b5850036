//! Entries into code, counted by probes that are held no longer than the target can bear: a function that is entered a
//! million times a second would stand nearly still under a probe, and is known well enough after a millisecond.

use std::time::Duration;

use dyno_sys::bpf::Attached;
use dyno_sys::bpf::causal::{Counted, Mark, Probe};
use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::{Pid, proc};

use super::refusal::{no_probe, refused};
use crate::causal::rig::site::Entry;
use crate::error::Error;

/// Looks at a function, each longer than the one before: what is entered often is let go after the first.
const LOOKS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(10)];
/// Entries per second from which on a probe is dear: of 15 µs each, where it is single-stepped, it takes a third.
const DEAR_PER_SECOND: f64 = 20_000.0;
/// Of so short a look chance decides: twice as many are let through.
const DEAR_AT_FIRST: f64 = 2.0 * DEAR_PER_SECOND;
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
    let held = held(probe, entries, pids)?;
    for (look, most) in LOOKS.into_iter().zip([DEAR_AT_FIRST, DEAR_PER_SECOND]) {
        let per_second = entered(probe, next(), look)?;
        if per_second > most {
            drop(held);
            sleep_ns(u64::try_from(REST.as_nanos()).unwrap_or(0));
            return Ok(per_second);
        }
        if look == LOOKS[1] && per_second * look.as_secs_f64() >= 1.0 {
            let enough = Duration::from_secs_f64(ENOUGH / per_second);
            return entered(probe, next(), length.min(enough));
        }
    }
    entered(probe, next(), length)
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
    sleep_ns(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    probe.close_window();
    let seconds = (mono_ns() - begun_ns) as f64 / 1e9;
    let entered = probe.visits(Counted::Entries, number).map_err(refused)?;
    Ok(entered.count as f64 / seconds)
}

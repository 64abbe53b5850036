//! Entries into code, counted by probes that are held for as long as it takes.

use std::time::Duration;

use dyno_sys::bpf::Attached;
use dyno_sys::bpf::causal::{Counted, Mark, Probe};
use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::{Pid, proc};

use super::refusal::{no_probe, refused};
use crate::causal::rig::site::Entry;
use crate::error::Error;

/// Entries into code in a window of its own.
pub(super) fn entered_per_second(
    probe: &mut Probe,
    entries: &[Entry],
    pids: &[Pid],
    number: u64,
    length: Duration,
) -> Result<f64, Error> {
    let _held = held(probe, entries, pids)?;
    entered(probe, number, length)
}

/// Probes on entries, for as long as the answer lives.
pub(super) fn held(probe: &mut Probe, entries: &[Entry], pids: &[Pid]) -> Result<Vec<Attached>, Error> {
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
pub(super) fn entered(probe: &Probe, number: u64, length: Duration) -> Result<f64, Error> {
    let begun_ns = mono_ns();
    probe.open_window(number);
    sleep_ns(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    probe.close_window();
    let seconds = (mono_ns() - begun_ns) as f64 / 1e9;
    let entered = probe.visits(Counted::Entries, number).map_err(refused)?;
    Ok(entered.count as f64 / seconds)
}

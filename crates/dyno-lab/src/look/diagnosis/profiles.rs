//! The windows of a diagnosis in which profiles are taken: on the CPU, with the hottest instructions, then off it.
//!
//! What cannot be taken, for want of a right or of the kernel's help, is said and left out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_load::Beside;
use dyno_profile::{AddressSpaces, Options, Recorder, Symbols, Target, offcpu};
use dyno_record::observation::{HotSpot, Observation, Part, Way};
use dyno_record::profile::{Origin, Profile, Requests, Span};
use dyno_sys::Pid;
use dyno_sys::clock::mono_ns;

use super::counters::not_looked;
use super::hot::Hot;
use super::mapped::shared_memory;
use super::wanted::{ON_CPU_SHARE, QUIET_SHARE, Stage, Wanted};
use crate::failure::chain;

/// Why perf's records of switches stood in.
const NO_BPF: &str = "BPF is not to be had here; dyno offcpu says why";

/// Takes both profiles and the hot instructions into the observation.
pub(super) fn add(seen: &mut Observation, wanted: &Wanted<'_>, load: Option<&Beside>, start_ns: u64) {
    let (pid, stop) = (wanted.pid, wanted.stop);
    let since_start = || mono_ns().saturating_sub(start_ns) as f64 / 1e9;
    let time = wanted.duration.mul_f64(ON_CPU_SHARE);
    let left = Some(wanted.duration.mul_f64(1.0 - QUIET_SHARE));
    (wanted.on_stage)(Stage { what: "sampling where its CPU time goes", left });
    let began_s = since_start();
    let part = |way, seen_s| Part { way, began_s, asked_s: time.as_secs_f64(), seen_s };
    let (on_cpu, hot) = on_cpu(pid, time, wanted.frequency_hz, load, stop);
    let user_share = on_cpu.as_ref().map_or(1.0, user_share);
    match on_cpu {
        Ok(profile) => {
            seen.parts.push(part(Way::OnCpu, profile.duration_s));
            seen.on_cpu = Some(profile);
        }
        Err(why) => not_looked(&mut seen.not_looked_at, "where CPU time goes", &why),
    }
    if let Ok(hot) = &hot {
        seen.parts.push(part(Way::HotCode, hot.seen_s()));
    }
    let spots = hot.and_then(|hot| {
        let processes: Vec<Pid> = hot.processes().into_iter().collect();
        Ok((spots(hot, user_share)?, processes))
    });
    match spots {
        Ok((spots, processes)) => (seen.hot, seen.shared) = (spots, shared_memory(&processes)),
        Err(error) => not_looked(&mut seen.not_looked_at, "the code at hot instructions", &error.to_string()),
    }
    if !stop.load(Ordering::Relaxed) {
        let time = wanted.duration.mul_f64(1.0 - QUIET_SHARE - ON_CPU_SHARE);
        (wanted.on_stage)(Stage { what: "watching what its threads wait for", left: Some(time) });
        let began_s = since_start();
        off_cpu(seen, pid, time, load, stop);
        if let Some(profile) = &seen.off_cpu {
            let (asked_s, seen_s) = (time.as_secs_f64(), profile.duration_s);
            seen.parts.push(Part { way: Way::OffCpu, began_s, asked_s, seen_s });
        }
    }
}

/// A profile with how many requests were answered while it was taken, as far as the load knows. `record` only watches:
/// what it takes to open it would count requests of another time, when a loader has a CPU of its own and fewer are answered.
fn counted<E>(
    load: Option<&Beside>,
    time: Duration,
    record: impl FnOnce() -> Result<Profile, E>,
) -> Result<Profile, E> {
    let Some(load) = load else { return record() };
    let (profile, rate) = load.rate_during(time, record);
    let mut profile = profile?;
    let count = rate.map(|rate| (rate * profile.duration_s) as u64);
    profile.requests = count.map(|count| Requests { count, source: "load".into() });
    Ok(profile)
}

type OnCpu = (Result<Profile, String>, std::io::Result<Hot>);

/// Both at the same time: each samples a few hundred times a second.
fn on_cpu(pid: Pid, time: Duration, frequency_hz: u64, load: Option<&Beside>, stop: &AtomicBool) -> OnCpu {
    let options = Options { frequency_hz, duration: Some(time), ..Options::default() };
    std::thread::scope(|scope| {
        let hot = scope.spawn(|| Hot::watch(pid, time, stop));
        let opened = Recorder::open(&Target::Process(pid), &options);
        let profile = opened.and_then(|recorder| counted(load, time, || recorder.record(stop)));
        let profile = profile.map_err(|error| chain(&error));
        let died = || Err(std::io::Error::other("the sampling thread died"));
        (profile, hot.join().unwrap_or_else(|_| died()))
    })
}

/// Share of the time outside the kernel.
fn user_share(profile: &Profile) -> f64 {
    let in_kernel =
        |at: Option<&u32>| at.is_some_and(|at| profile.frames[*at as usize].origin == Origin::Kernel);
    let kernel = profile.stacks.iter().filter(|stack| in_kernel(stack.frames.last()));
    1.0 - kernel.map(|stack| stack.weight_ns).sum::<u64>() as f64 / profile.total_ns().max(1) as f64
}

fn spots(hot: Hot, user_share: f64) -> std::io::Result<Vec<HotSpot>> {
    let (mut spaces, mut symbols) = (AddressSpaces::new(), Symbols::new());
    let mut name = |pid: Pid, address: u64| {
        let functions = symbols.symbolize(&mut spaces, pid, address);
        // The outermost is the one that a linker knows; the innermost has the line.
        let function =
            functions.iter().find(|function| !function.inlined).map(|function| function.name.clone());
        let line = functions.iter().find_map(|function| Some((function.file.clone()?, function.line?)));
        (
            function.unwrap_or_else(|| format!("{address:#x}")),
            line.map(|(file, line)| format!("{file}:{line}")),
        )
    };
    hot.spots(user_share, &mut name)
}

/// Spans that an observation keeps: whether threads wait at the same time shows in a second of a busy server.
const SPANS_KEPT: usize = 20_000;

/// Keeps the earliest spans of all threads, and nothing behind the moment at which the first of them ends.
fn shorten(timeline: &mut Vec<Span>) {
    if timeline.len() <= SPANS_KEPT {
        return;
    }
    let mut begins: Vec<u64> = timeline.iter().map(|span| span.from_ns).collect();
    let (_, end, _) = begins.select_nth_unstable(SPANS_KEPT);
    let end = *end;
    timeline.retain(|span| span.from_ns < end);
    timeline.iter_mut().for_each(|span| span.to_ns = span.to_ns.min(end));
}

fn off_cpu(seen: &mut Observation, pid: Pid, time: Duration, load: Option<&Beside>, stop: &AtomicBool) {
    let (calls, timeline) = (offcpu::Calls::Counted, offcpu::Timeline::Recorded);
    let options = offcpu::Options { duration: Some(time), calls, timeline, ..offcpu::Options::default() };
    let missing = &mut seen.not_looked_at;
    let opened = offcpu::Recorder::open(&Target::Process(pid), &options);
    match opened.and_then(|recorder| counted(load, time, || recorder.record(stop))) {
        Ok(mut profile) => {
            shorten(&mut profile.timeline);
            if profile.sampling.event != offcpu::SWITCHES_BY_BPF {
                not_looked(missing, "who ends waits, locks and files waited for, system calls", NO_BPF);
            }
            seen.off_cpu = Some(profile);
        }
        // The loader's and the verifier's words help nobody who lacks a right.
        Err(offcpu::Error::Refused { .. }) => {
            not_looked(
                missing,
                "what threads wait for",
                "the kernel refuses BPF: it needs root, or CAP_BPF and CAP_PERFMON",
            );
        }
        Err(error) => not_looked(missing, "what threads wait for", &chain(&error)),
    }
}

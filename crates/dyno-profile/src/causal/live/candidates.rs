//! What could be counted as progress, where the user said nothing: looked for among what the target does.
//!
//! `dyno causal` asks it: which system calls send data and how often ([`candidates`]), how often functions are entered
//! ([`rates`]), and what of all that is likeliest ([`ranked`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dyno_sys::bpf::causal::{Children, Probe, Role};
use dyno_sys::clock::mono_ns;
use dyno_sys::{Pid, proc, trace};

use super::entries::entered_per_second;
use super::refusal::refused;
use crate::calls::{self, Moves};
use crate::causal::rig::site::Entry;
use crate::causal::site::Passed;
use crate::error::Error;

/// Something that could be counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// As the user would say it.
    pub progress: String,
    /// How often it comes.
    pub per_second: f64,
    /// Samples that have it on their stacks, in percent; none for system calls.
    pub share_percent: Option<f64>,
}

/// Fewer than this a second, and a window of four seconds has not enough of them.
const RARE_PER_SECOND: f64 = 5.0;

/// What a server does once for each answer, or a pipeline for each piece.
fn sends(name: &str) -> bool {
    calls::named(name).is_some_and(|call| call.moves == Moves::Out)
}

/// Looks for `length` which system calls of these processes send data, the most frequent first.
///
/// # Errors
/// When the kernel does not take the probe.
pub fn candidates(pids: &[Pid], length: Duration, stop: &AtomicBool) -> Result<Vec<Candidate>, Error> {
    let mut probe = watching(pids)?;
    let counting = probe.count_all_returns().map_err(refused)?;
    let begun_ns = mono_ns();
    wait(length, stop);
    drop(counting);
    let seconds = (mono_ns() - begun_ns) as f64 / 1e9;
    let returns = probe.returns().map_err(refused)?;
    let candidate = |(number, count): (u32, u64)| {
        let name = trace::call_name(u64::from(number));
        let per_second = count as f64 / seconds;
        let counts = sends(&name) && per_second >= RARE_PER_SECOND;
        counts.then(|| Candidate { progress: format!("syscall:{name}"), per_second, share_percent: None })
    };
    let mut found: Vec<Candidate> = returns.into_iter().filter_map(candidate).collect();
    found.sort_by(|left, right| right.per_second.total_cmp(&left.per_second));
    Ok(found)
}

/// Rates at which a function is offered: below, a second of windows has too few units; above, a probe that costs a
/// microsecond takes more than two percent.
const OFFERED_PER_SECOND: std::ops::RangeInclusive<f64> = 20.0..=20_000.0;
/// The same two percent where the instruction under the probe is single-stepped, some 15 µs each.
const STEPPED_PER_SECOND_MAX: f64 = 1_500.0;
/// The kernel waits before a probe is out, on a full machine for seconds: looks may take so many times as long with that as they are.
const WITH_WAITS_MAX: u32 = 3;

/// How often functions are entered, each watched alone for `each`, all of them for no longer than `longest` (thrice that with
/// what the kernel waits for meanwhile): those that come too seldom, or more often than a probe may be met, are left out. The
/// order is kept.
///
/// # Errors
/// When the kernel does not take the probe.
pub fn rates(
    pids: &[Pid],
    functions: &[Passed],
    (each, longest): (Duration, Duration),
    stop: &AtomicBool,
) -> Result<Vec<Candidate>, Error> {
    let mut probe = watching(pids)?;
    let begun = Instant::now();
    let mut looked = Duration::ZERO;
    let mut found = Vec::new();
    let mut number = 0;
    let mut next = || {
        number += 1;
        number
    };
    for function in functions {
        if stop.load(Ordering::Relaxed) || looked >= longest || begun.elapsed() >= WITH_WAITS_MAX * longest {
            break;
        }
        let look = Instant::now();
        let offered = match offered(&mut probe, function, pids, (&mut next, each)) {
            // Of many functions one that the kernel cannot probe is no loss.
            Err(Error::NoProbe { .. }) => None,
            other => other?,
        };
        if let Some(per_second) = offered {
            let share_percent = Some(function.share_percent);
            found.push(Candidate { progress: function.name.clone(), per_second, share_percent });
        }
        looked += look.elapsed().min(each);
    }
    Ok(found)
}

/// How often it is entered, when that can be counted.
fn offered(
    probe: &mut Probe,
    function: &Passed,
    pids: &[Pid],
    (next, each): (&mut dyn FnMut() -> u64, Duration),
) -> Result<Option<f64>, Error> {
    let most = if function.emulated { *OFFERED_PER_SECOND.end() } else { STEPPED_PER_SECOND_MAX };
    let per_second = entered_per_second(probe, &function.entries, pids, next, each)?;
    Ok((*OFFERED_PER_SECOND.start()..=most).contains(&per_second).then_some(per_second))
}

/// How often places in the code are passed, looked at for `each` at most; `None` where a probe cannot be put there. What is
/// passed too often for a probe is known after a millisecond, and the probe is gone.
///
/// # Errors
/// When the kernel does not take the probe.
pub fn passed_per_second(pids: &[Pid], places: &[Entry], each: Duration) -> Result<Option<f64>, Error> {
    let mut probe = watching(pids)?;
    let mut number = 0;
    let mut next = || {
        number += 1;
        number
    };
    match entered_per_second(&mut probe, places, pids, &mut next, each) {
        Err(Error::NoProbe { .. }) => Ok(None),
        counted => counted.map(Some),
    }
}

/// Rates that differ by less than this part of them may be of the same thing: both were counted at different times.
const SAME_RATE: f64 = 0.2;

/// Fewer sends than this a second may be a log's or a bar's, or of gathered output, and take long to measure by.
const SELDOM_PER_SECOND: f64 = 200.0;
/// Pieces of work for each send, from which on what is sent is no piece's answer.
const PIECES_PER_SEND: f64 = 4.0;
/// A function on so many of the stacks, percent, is what all of the work goes through: it is done once for each piece of it.
const UNIT_SHARE_MIN: f64 = 90.0;

/// The likeliest first: system calls that send, then functions that are passed as often as one of them, then functions by
/// their share of the stacks. Where little is sent a function that all work goes through, more often, comes before all.
#[must_use]
pub fn ranked(calls: Vec<Candidate>, mut functions: Vec<Candidate>) -> Vec<Candidate> {
    let fits = |one: &Candidate| {
        calls.iter().any(|call| (one.per_second - call.per_second).abs() <= SAME_RATE * call.per_second)
    };
    let share = |one: &Candidate| one.share_percent.unwrap_or(0.0);
    functions.sort_by(|a, b| fits(b).cmp(&fits(a)).then(share(b).total_cmp(&share(a))));
    let sent = calls.first().map(|call| call.per_second).filter(|sent| *sent < SELDOM_PER_SECOND);
    let often = |one: &Candidate| sent.is_some_and(|sent| one.per_second >= PIECES_PER_SEND * sent);
    let is_unit = |one: &Candidate| share(one) >= UNIT_SHARE_MIN && often(one);
    let unit = functions.iter().position(is_unit).map(|at| functions.remove(at));
    unit.into_iter().chain(calls).chain(functions).collect()
}

fn watching(pids: &[Pid]) -> Result<Probe, Error> {
    let mut probe = Probe::load(None).map_err(refused)?;
    for pid in pids {
        let tasks = proc::tasks(*pid);
        probe.take_in(*pid, Role::Target, Children::Strangers, &tasks).map_err(refused)?;
    }
    Ok(probe)
}

/// Between looks at whether to stop.
const LOOK: Duration = Duration::from_millis(50);

fn wait(length: Duration, stop: &AtomicBool) {
    let until_ns = mono_ns().saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    while mono_ns() < until_ns && !stop.load(Ordering::Relaxed) {
        let left = Duration::from_nanos(until_ns.saturating_sub(mono_ns()));
        std::thread::sleep(left.min(LOOK));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_sends_is_offered_as_progress_and_what_takes_in_is_not() {
        for name in ["write", "writev", "pwrite64", "sendto", "sendmsg", "sendfile", "splice"] {
            assert!(sends(name), "{name}");
        }
        for name in ["read", "recvfrom", "fsync", "epoll_wait", "futex", "wait4"] {
            assert!(!sends(name), "{name}");
        }
    }

    fn candidate(progress: &str, per_second: f64, share_percent: Option<f64>) -> Candidate {
        Candidate { progress: progress.to_owned(), per_second, share_percent }
    }

    #[test]
    fn what_is_sent_comes_first_then_what_is_passed_as_often_then_what_is_on_most_stacks() {
        let calls = vec![candidate("syscall:sendto", 1_000.0, None), candidate("syscall:write", 30.0, None)];
        let functions = vec![
            candidate("rare", 200.0, Some(20.0)),
            candidate("turn", 200.0, Some(90.0)),
            candidate("answer", 1_150.0, Some(40.0)),
            candidate("log", 27.0, Some(1.0)),
        ];
        let order = |calls, functions| -> Vec<String> {
            ranked(calls, functions).into_iter().map(|one| one.progress).collect()
        };
        let all = ["syscall:sendto", "syscall:write", "answer", "log", "turn", "rare"];
        assert_eq!(order(calls, functions.clone()), all);
        assert_eq!(order(Vec::new(), functions), ["turn", "answer", "rare", "log"]);
    }

    /// As a batch program with a progress bar, or with gathered output, is met. Planted fault: what is sent comes first
    /// however seldom it is.
    #[test]
    fn where_little_is_sent_what_all_work_goes_through_comes_first() {
        let first = |sent, piece, share| {
            let functions =
                vec![candidate("emit", 700.0, Some(20.0)), candidate("piece", piece, Some(share))];
            ranked(vec![candidate("syscall:write", sent, None)], functions).remove(0).progress
        };
        assert_eq!(first(10.0, 719.0, 99.0), "piece");
        assert_eq!(first(99.0, 1_039.0, 99.0), "piece", "a log that is written each hundredth of a second");
        assert_eq!(first(250.0, 1_039.0, 99.0), "syscall:write", "often enough to be answers");
        assert_eq!(first(10.0, 719.0, 70.0), "syscall:write", "a part of the work");
        assert_eq!(first(10.0, 30.0, 99.0), "syscall:write", "hardly more often");
    }
}

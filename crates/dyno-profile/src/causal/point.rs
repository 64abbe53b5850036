//! What counts as progress: said by the user, or looked for among what the target does.
//!
//! `dyno causal` reads it with [`Named`], has its places resolved, and hands the [`Progress`] to the live rig. Where the
//! user said nothing, [`candidates`] and [`rates`] show what could be counted, and how often it comes.

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_sys::bpf::Attached;
use dyno_sys::bpf::causal::{Children, Counted, Mark, Probe, Role};
use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::{Pid, proc, trace};

use super::live::{no_probe, refused};
use super::rig::Entry;
use super::site::Passed;
use crate::calls::{self, Moves};
use crate::error::Error;

/// Progress in the user's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// Each time that a place in the code is passed: `SYMBOL`, `SYMBOL+OFFSET`, `FILE:LINE`.
    Code(String),
    /// From a place to another: `begin:PLACE,end:PLACE`. Ends count, and latency is told.
    Between {
        /// Where a unit of work begins.
        begin: String,
        /// Where it ends.
        end: String,
    },
    /// A tracepoint of the kernel, passed by the target: `tracepoint:NAME`.
    Tracepoint(String),
    /// Returns of a system call: `syscall:NAME`.
    SystemCall {
        /// Its name.
        name: String,
        /// Its number here.
        number: u32,
        /// Which returns.
        returns: Returns,
    },
}

/// Which returns of a system call count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    /// Those that moved something: greater than zero.
    Data,
    /// All that were no errors.
    Success,
}

/// Progress as the rig counts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Passing a place in the code of the target, or of `whom`.
    At {
        /// The places.
        entries: Vec<Entry>,
        /// In whose address spaces; the target's where none is given.
        whom: Vec<Pid>,
    },
    /// From a place to another.
    Between {
        /// Where a unit of work begins.
        begin: Vec<Entry>,
        /// Where it ends.
        end: Vec<Entry>,
    },
    /// A tracepoint of the kernel.
    Tracepoint(String),
    /// Returns of a system call.
    SystemCall {
        /// Its number.
        number: u32,
        /// Which returns.
        returns: Returns,
    },
}

impl FromStr for Named {
    type Err = Error;

    fn from_str(asked: &str) -> Result<Named, Error> {
        let wrong = |reason: &str| Error::NoProgress { asked: asked.to_owned(), reason: reason.to_owned() };
        if asked.is_empty() {
            return Err(wrong("it is empty"));
        }
        if let Some(name) = asked.strip_prefix("syscall:") {
            return system_call(name).ok_or_else(|| wrong("this machine has no such system call"));
        }
        if let Some(name) = asked.strip_prefix("tracepoint:") {
            return tracepoint(name).map_err(wrong);
        }
        if let Some(rest) = asked.strip_prefix("begin:") {
            let pair = rest.split_once(",end:").filter(|(begin, end)| !begin.is_empty() && !end.is_empty());
            let (begin, end) = pair.ok_or_else(|| wrong("a pair is written begin:PLACE,end:PLACE"))?;
            return Ok(Named::Between { begin: begin.to_owned(), end: end.to_owned() });
        }
        Ok(Named::Code(asked.to_owned()))
    }
}

fn system_call(name: &str) -> Option<Named> {
    let number = trace::call_number(name)?;
    // An answer of nothing from a call that moves data is no progress.
    let moves_data = calls::named(name).is_some_and(|call| call.moves != Moves::Nothing);
    let returns = if moves_data { Returns::Data } else { Returns::Success };
    Some(Named::SystemCall { name: name.to_owned(), number, returns })
}

/// Tracepoints are known by their names alone; a group before it, as other tools want it, is passed over.
fn tracepoint(asked: &str) -> Result<Named, &'static str> {
    let (group, name) = asked.rsplit_once(':').map_or((None, asked), |(group, name)| (Some(group), name));
    if group == Some("syscalls") || name.starts_with("sys_enter_") || name.starts_with("sys_exit_") {
        return Err("a single system call is counted with syscall:NAME");
    }
    if name.is_empty() {
        return Err("a tracepoint is written tracepoint:NAME");
    }
    Ok(Named::Tracepoint(name.to_owned()))
}

impl Named {
    /// With its places found by `find`.
    ///
    /// # Errors
    /// Those of `find`.
    pub fn resolved<E>(&self, find: &mut dyn FnMut(&str) -> Result<Vec<Entry>, E>) -> Result<Progress, E> {
        Ok(match self {
            Named::Code(place) => Progress::At { entries: find(place)?, whom: Vec::new() },
            Named::Between { begin, end } => Progress::Between { begin: find(begin)?, end: find(end)? },
            Named::Tracepoint(name) => Progress::Tracepoint(name.clone()),
            Named::SystemCall { number, returns, .. } => {
                Progress::SystemCall { number: *number, returns: *returns }
            }
        })
    }
}

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
pub fn candidates(whom: &[Pid], length: Duration, stop: &AtomicBool) -> Result<Vec<Candidate>, Error> {
    let mut probe = watching(whom)?;
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
/// A first look at a function: one that is entered a million times a second is let go after this.
const GLIMPSE: Duration = Duration::from_millis(10);

/// How often functions are entered, each watched alone for `each`, all of them no longer than `longest`: those that come
/// too seldom, or more often than a probe may be met, are left out. The order is kept.
///
/// # Errors
/// When the kernel does not take the probe.
pub fn rates(
    whom: &[Pid],
    functions: &[Passed],
    (each, longest): (Duration, Duration),
    stop: &AtomicBool,
) -> Result<Vec<Candidate>, Error> {
    let mut probe = watching(whom)?;
    let until_ns = mono_ns().saturating_add(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX));
    let mut found = Vec::new();
    for (number, function) in (1..).step_by(2).zip(functions) {
        if stop.load(Ordering::Relaxed) || mono_ns() >= until_ns {
            break;
        }
        let offered = match offered(&mut probe, function, whom, number, each) {
            // Of many functions one that the kernel cannot probe is no loss.
            Err(Error::NoProbe { .. }) => None,
            other => other?,
        };
        if let Some(per_second) = offered {
            let share_percent = Some(function.share_percent);
            found.push(Candidate { progress: function.name.clone(), per_second, share_percent });
        }
    }
    Ok(found)
}

/// How often it is entered, when that can be counted: one that comes too often is known, and let go, after a glimpse.
fn offered(
    probe: &mut Probe,
    function: &Passed,
    whom: &[Pid],
    number: u64,
    each: Duration,
) -> Result<Option<f64>, Error> {
    let most = if function.emulated { *OFFERED_PER_SECOND.end() } else { STEPPED_PER_SECOND_MAX };
    let _held = held(probe, &function.entries, whom)?;
    // Of few entries in so short a time chance decides: twice as many as may be are let through.
    if entered(probe, number, GLIMPSE)? > 2.0 * most {
        return Ok(None);
    }
    let per_second = entered(probe, number + 1, each)?;
    Ok((*OFFERED_PER_SECOND.start()..=most).contains(&per_second).then_some(per_second))
}

/// Rates that differ by less than this part of them may be of the same thing: both were counted at different times.
const SAME_RATE: f64 = 0.2;

/// The likeliest first: system calls that send, then functions that are passed as often as one of them, then functions by
/// their share of the stacks.
#[must_use]
pub fn ranked(calls: Vec<Candidate>, mut functions: Vec<Candidate>) -> Vec<Candidate> {
    let fits = |one: &Candidate| {
        calls.iter().any(|call| (one.per_second - call.per_second).abs() <= SAME_RATE * call.per_second)
    };
    let share = |one: &Candidate| one.share_percent.unwrap_or(0.0);
    functions.sort_by(|a, b| fits(b).cmp(&fits(a)).then(share(b).total_cmp(&share(a))));
    calls.into_iter().chain(functions).collect()
}

fn watching(whom: &[Pid]) -> Result<Probe, Error> {
    let mut probe = Probe::load(None).map_err(refused)?;
    for pid in whom {
        let tasks = proc::tasks(*pid);
        probe.take_in(*pid, Role::Target, Children::Strangers, &tasks).map_err(refused)?;
    }
    Ok(probe)
}

/// Entries into code in a window of its own.
pub(super) fn entered_per_second(
    probe: &mut Probe,
    entries: &[Entry],
    whom: &[Pid],
    number: u64,
    length: Duration,
) -> Result<f64, Error> {
    let _held = held(probe, entries, whom)?;
    entered(probe, number, length)
}

/// Probes on entries, for as long as the answer lives.
fn held(probe: &mut Probe, entries: &[Entry], whom: &[Pid]) -> Result<Vec<Attached>, Error> {
    let mut held = Vec::new();
    for entry in entries {
        for pid in whom {
            match probe.probe(Mark::Entry, &entry.image, entry.offset, Some(*pid)) {
                Ok(attached) => held.push(attached),
                // It ended since it was listed, or before, and nobody waited for it.
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
    fn progress_is_read_in_each_of_its_forms() {
        let read = |text: &str| text.parse::<Named>().unwrap();
        assert_eq!(read("serve"), Named::Code("serve".to_owned()));
        assert_eq!(read("main.c:12"), Named::Code("main.c:12".to_owned()));
        assert_eq!(read("ns::serve+0x10"), Named::Code("ns::serve+0x10".to_owned()));
        assert_eq!(
            read("begin:a::b,end:c.c:7"),
            Named::Between { begin: "a::b".to_owned(), end: "c.c:7".to_owned() }
        );
        assert_eq!(read("tracepoint:sched:sched_switch"), Named::Tracepoint("sched_switch".to_owned()));
        let Named::SystemCall { returns, .. } = read("syscall:write") else { panic!("a system call") };
        assert_eq!(returns, Returns::Data);
        let Named::SystemCall { returns, .. } = read("syscall:accept4") else { panic!("a system call") };
        assert_eq!(returns, Returns::Success);
    }

    #[test]
    fn what_sends_is_offered_as_progress_and_what_takes_in_is_not() {
        for name in ["write", "writev", "pwrite64", "sendto", "sendmsg", "sendfile", "splice"] {
            assert!(sends(name), "{name}");
        }
        for name in ["read", "recvfrom", "fsync", "epoll_wait", "futex", "wait4"] {
            assert!(!sends(name), "{name}");
        }
    }

    #[test]
    fn progress_that_cannot_be_counted_says_what_can() {
        let reason = |text: &str| text.parse::<Named>().unwrap_err().to_string();
        assert!(reason("syscall:wriet").contains("no such system call"));
        assert!(reason("tracepoint:syscalls:sys_exit_write").contains("syscall:NAME"));
        assert!(reason("begin:a").contains("begin:PLACE,end:PLACE"));
        assert!(reason("begin:a,end:").contains("begin:PLACE,end:PLACE"));
        assert!(reason("tracepoint:").contains("tracepoint:NAME"));
        assert!(reason("").contains("empty"));
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

    #[test]
    fn places_are_resolved_where_they_stand() {
        let entry = |offset| Entry { image: "/x".into(), offset };
        let mut asked = Vec::new();
        let mut find = |place: &str| {
            asked.push(place.to_owned());
            Ok::<_, Error>(vec![entry(asked.len() as u64)])
        };
        let named: Named = "begin:a,end:b".parse().unwrap();
        let found = named.resolved(&mut find).unwrap();
        assert_eq!(found, Progress::Between { begin: vec![entry(1)], end: vec![entry(2)] });
        assert_eq!(asked, ["a", "b"]);
    }
}

//! What a system call takes, bare and behind copies of a server's filters: each time in a child that is forked for it.

use dyno_measure::Prng;
use dyno_record::fact::{Fact, Unread};
use dyno_record::facts::{Figure, Filters};
use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::child::{self, Exit, Wait};
use dyno_sys::idle_call::idle_calls_ns;
use dyno_sys::seccomp::Filter;
use dyno_sys::shm::Counters;
use dyno_sys::signal::{self, Signal};
use dyno_sys::trace::{TraceError, filters_of};
use dyno_sys::{Pid, clock, proc};

use super::figure::{figure, median};
use crate::failure::chain;

/// Calls of a block: a third of a millisecond, long against a tick of the clock and short against a neighbour's turn.
const CALLS: u32 = 2_000;
/// Blocks of each child; the middle one counts.
const BLOCKS: usize = 15;
/// Children of each side, in turns: each is a fresh start.
const PAIRS: usize = 20;
/// A child takes milliseconds. One that hangs under a filter is killed.
const CHILD_NS_MAX: u64 = 2_000_000_000;
/// A thread's end takes microseconds.
const GONE_NS_MAX: u64 = 200_000_000;
/// Seed of the order of the sides.
const SEED: u64 = 15;

/// The call as the kernel makes it for every process of this machine.
pub(super) fn bare() -> Fact<Figure> {
    match (0..PAIRS).map(|_| call_ns(&[])).collect::<Result<Vec<f64>, String>>() {
        Ok(values) => Fact::Value(figure(&values)),
        Err(why) => unread("a system call", why, ""),
    }
}

/// The call behind copies of the filters that the server has most of.
pub(super) fn filters(pids: &[Pid]) -> Fact<Filters> {
    let Some((tid, count)) = most_filtered(pids) else {
        let why = if pids.is_empty() { "a server to look at" } else { "a filter on a thread of the server" };
        return Fact::Absent(why.to_owned());
    };
    let filters = match filters_of(tid) {
        Ok(filters) if filters.is_empty() => {
            return Fact::Absent("a filter on a thread of the server".into());
        }
        Ok(filters) => filters,
        Err(error) => {
            return unread(&format!("{count} filters of thread {tid}"), chain(&error), needs(&error));
        }
    };
    match compared(&filters) {
        Ok([call_ns, extra_ns]) => Fact::Value(Filters {
            tid,
            count: filters.len() as u32,
            instructions: filters.iter().map(Filter::len).sum::<usize>() as u32,
            call_ns,
            extra_ns,
        }),
        Err(why) => unread("a system call behind copies of the server's filters", why, ""),
    }
}

fn needs(error: &TraceError) -> &'static str {
    match error {
        TraceError::Attach { .. } => "root: sudo dyno audit --measure",
        TraceError::Filters { .. } => {
            "root, a kernel with CONFIG_CHECKPOINT_RESTORE, and a shell that is behind no filter itself"
        }
        _ => "",
    }
}

fn unread<T>(what: &str, why: String, needs: &str) -> Fact<T> {
    Fact::Unread(Unread { what: what.to_owned(), why, needs: needs.to_owned(), ..Unread::default() })
}

/// A thread with the most filters, and how many.
fn most_filtered(pids: &[Pid]) -> Option<(dyno_sys::Tid, u32)> {
    let tids = pids.iter().flat_map(|pid| proc::tasks(*pid).into_iter().map(move |tid| (*pid, tid)));
    let of = |(pid, tid): (Pid, dyno_sys::Tid)| {
        let status = proc::text(&format!("/proc/{pid}/task/{tid}/status")).ok()?;
        let count = proc::parse_status_field(&status, "Seccomp_filters")?.trim().parse::<u32>().ok()?;
        (count > 0).then_some((tid, count))
    };
    tids.filter_map(of).max_by_key(|(_, count)| *count)
}

/// A call behind them, and what it takes longer than without.
fn compared(filters: &[Filter]) -> Result<[Figure; 2], String> {
    let mut rng = Prng::new(SEED);
    let (mut behind, mut longer) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let (with, without) = if rng.coin() {
            let with = call_ns(filters)?;
            (with, call_ns(&[])?)
        } else {
            let without = call_ns(&[])?;
            (call_ns(filters)?, without)
        };
        behind.push(with);
        longer.push(with - without);
    }
    Ok([figure(&behind), figure(&longer)])
}

/// One fresh child's answer.
fn call_ns(filters: &[Filter]) -> Result<f64, String> {
    let shared = Counters::new(BLOCKS).map_err(|error| error.to_string())?;
    let cpu = affinity::allowed().iter().last().unwrap_or(0);
    let pid = forked(|| timed(filters, cpu, &shared))?;
    let ended = until_ended(pid);
    let told = |at| shared.get(at).load(std::sync::atomic::Ordering::Acquire);
    let mut blocks: Vec<f64> = (0..BLOCKS).map(told).map(|ns| ns as f64 / f64::from(CALLS)).collect();
    match blocks.iter().all(|ns| *ns > 0.0) {
        // How it ended says nothing then: a filter may refuse the end itself.
        true => Ok(median(&mut blocks)),
        false => Err(format!("the child that made the calls did not come to their end: {ended}")),
    }
}

/// A thread that was waited for may still be there for a moment; then nothing is forked.
fn forked(life: impl Fn() -> i32) -> Result<Pid, String> {
    let deadline_ns = clock::mono_ns() + GONE_NS_MAX;
    loop {
        match child::fork(&life) {
            Ok(pid) => return Ok(pid),
            Err(error) if clock::mono_ns() > deadline_ns => return Err(error.to_string()),
            Err(_) => clock::sleep_ns(100_000),
        }
    }
}

/// A child's life: behind the filters, the calls, their times.
fn timed(filters: &[Filter], cpu: usize, shared: &Counters) -> i32 {
    let ready = child::die_with_parent().and_then(|()| affinity::set_current(&CpuSet::single(cpu)));
    let behind = || {
        if !filters.is_empty() {
            child::no_new_privs()?;
        }
        filters.iter().try_for_each(Filter::put_on)
    };
    if ready.and_then(|()| behind()).is_err() {
        return 1;
    }
    for at in 0..BLOCKS {
        shared.get(at).store(idle_calls_ns(CALLS), std::sync::atomic::Ordering::Release);
    }
    0
}

fn until_ended(pid: Pid) -> String {
    let deadline_ns = clock::mono_ns() + CHILD_NS_MAX;
    loop {
        match child::wait(pid, Wait::NoHang) {
            Ok(Some(Exit::Code(1))) => return "the filters cannot be put on here".to_owned(),
            Ok(Some(exit)) => return exit.to_string(),
            Ok(None) if clock::mono_ns() < deadline_ns => clock::sleep_ns(200_000),
            Ok(None) => {
                // It may have ended just now; either way it is waited for.
                let _ = signal::kill(pid, Signal::Kill);
                let _ = child::wait(pid, Wait::Block);
                return "it was still at it after two seconds".to_owned();
            }
            Err(error) => return error.to_string(),
        }
    }
}

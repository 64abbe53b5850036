//! Time off the CPU: where the threads' time went, what they waited for and where, who ended it, which locks and files.

use std::collections::BTreeMap;

use dyno_profile::locks::{Lock, locks};
use dyno_profile::top;
use dyno_record::name;
use dyno_record::profile::{Frame, Origin, Profile, Stack, ThreadTime, WaitClass};

use super::parts::{own_cost, requests, watched};
use crate::number::{count, latency};
use crate::view::block::{Block, Fact, OnPage, OnTerminal, Section};
use crate::view::measure::{Measure, share};
use crate::view::show::On;
use crate::view::table::{self, Align, Column, Table, figure, nothing, words};
use crate::view::words::counted;

/// Rows of each list; the record has all.
const ROWS_MAX: usize = 8;
/// Functions of a stack that are shown: from where it waits up to the work that wanted it.
const FRAMES_SHOWN: usize = 4;
/// Locks, files and peers named beside a kind of wait.
const OBJECTS_MAX: usize = 3;

/// What stands above, and what was found beside functions and system calls.
pub(super) fn sections(profile: &Profile, measure: &Measure) -> (Section, Vec<Section>) {
    let facts = vec![
        Fact::new("watched", seen(profile)),
        Fact::new("threads", states(profile)),
        Fact::new("own cost", own_cost(profile)),
        requests(profile),
        idle_threads(profile),
    ];
    let about = Section::new("about", "", (OnPage::Head, OnTerminal::Above), vec![Block::Facts(facts)]);
    let tables = waits(profile, measure).map(Block::Table);
    let lists = [
        ("where it waits, and who ends it most", stacks(profile)),
        ("locks", contended(profile)),
        ("files and peers", files(profile)),
    ];
    let lists = lists.into_iter().filter(|(_, lines)| !lines.is_empty());
    let lists = lists.map(|(heading, lines)| Block::Lines(heading, lines));
    let blocks: Vec<Block> = tables.into_iter().chain(lists).collect();
    let place = (OnPage::Body, OnTerminal::Found);
    let found = (!blocks.is_empty()).then(|| Section::new("waits", "What it waited for", place, blocks));
    (about, found.into_iter().collect())
}

fn seen(profile: &Profile) -> String {
    format!(
        "{}, with its threads and children · {:.1} s · {} · {} switches, {} lost",
        watched(profile),
        profile.duration_s,
        counted(profile.threads.len(), "thread"),
        count(profile.sampling.samples as f64),
        count(profile.sampling.lost as f64),
    )
}

/// Shares of all threads' time.
fn states(profile: &Profile) -> String {
    let sum = |part: fn(&ThreadTime) -> u64| profile.thread_times.iter().map(part).sum::<u64>() as f64;
    let parts =
        [sum(|times| times.running_ns), sum(|times| times.runnable_ns), sum(|times| times.waiting_ns)];
    let all: f64 = parts.iter().sum();
    let [running, runnable, waiting] = parts.map(|part| format!("{:.1} %", 100.0 * part / all.max(1.0)));
    format!(
        "running {running} · wanting a CPU {runnable} · waiting {waiting} of {:.1} s of their time",
        all / 1e9
    )
}

/// Where Go's runtime puts a thread to sleep that has nothing to run: the kernel sees a futex, and the program has no lock there.
const GO_SLEEPS: &str = "runtime.notesleep";

/// How much of the waiting at locks is that of idle threads of Go's, which says nothing of the program.
fn idle_threads(profile: &Profile) -> Fact {
    let sleeps = |stack: &Stack| {
        let frames = stack.frames.iter().filter_map(|&at| profile.frames.get(at as usize));
        frames.into_iter().any(|frame| frame.origin == Origin::User && frame.name == GO_SLEEPS)
    };
    let locks = || profile.stacks.iter().filter(|stack| class_of(stack) == WaitClass::Lock);
    let all: u64 = locks().map(|stack| stack.weight_ns).sum();
    let idle: u64 = locks().filter(|stack| sleeps(stack)).map(|stack| stack.weight_ns).sum();
    if idle == 0 {
        return Fact::new("Go", "");
    }
    let part = share(idle as f64, all as f64);
    Fact::alert(
        "Go",
        format!(
            "{part} of the waiting at locks is threads of Go's runtime that have nothing to run: no lock of the program's. \
             dyno diagnose PID says what its goroutines wait for"
        ),
    )
}

fn class_of(stack: &Stack) -> WaitClass {
    stack.wait.as_ref().map(|wait| wait.class).unwrap_or_default()
}

/// Time and waits of all stacks with the same key, the longest time first.
fn sums<'p, K: Ord>(profile: &'p Profile, key: impl Fn(&'p Stack) -> Option<K>) -> Vec<(K, (u64, u64))> {
    let mut sums = BTreeMap::<K, (u64, u64)>::new();
    for (key, stack) in profile.stacks.iter().filter_map(|stack| Some((key(stack)?, stack))) {
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + stack.weight_ns, sum.1 + stack.samples);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
    sums
}

/// Waits by kind, the longest first.
fn waits(profile: &Profile, measure: &Measure) -> Option<Table> {
    let sums = sums(profile, |stack| Some(class_of(stack)));
    let (all, known) = (profile.total_ns() as f64, top::waits(profile));
    let row = |(class, (ns, waits)): (WaitClass, (u64, u64))| -> table::Row {
        let (time, waits) = (ns as f64, waits as f64);
        let mean_us = time / 1e3 / waits.max(1.0);
        let cells = vec![
            words(name::of_wait(class)),
            figure(format!("{:.3}", time / 1e9), time),
            figure(measure.figure(time), time),
            figure(share(time, all), time),
            table::count(waits),
            known.get(&class).map_or_else(nothing, objects),
            figure(latency(mean_us), mean_us),
        ];
        cells.into()
    };
    let columns = [
        Column::words("off CPU by", 12),
        Column::figure("s", 3, 12).on(On::Terminal),
        Column::page(measure.unit),
        Column::figure("share", 2, 12),
        Column::figure("waits", 1, 12),
        Column { align: Align::Left, ..Column::page("most for") },
        Column::figure("mean", 1, 12),
    ];
    let rows: Vec<table::Row> = sums.into_iter().map(row).collect();
    (!rows.is_empty()).then(|| Table::new("Waits by kind", &columns, rows))
}

fn objects(waits: &top::Waits) -> table::Cell {
    let of =
        |(object, time): &(String, u64)| format!("{object} {}", share(*time as f64, waits.total_ns as f64));
    let some: Vec<String> = waits.objects.iter().take(OBJECTS_MAX).map(of).collect();
    words(some.join(", "))
}

/// A stack with what it waited for, and its time, waits, and wakers with their time.
type Place<'p> = ((&'p [u32], WaitClass), (u64, u64, BTreeMap<u32, u64>));

/// The stacks that waited longest, threads and wakers taken together.
fn stacks(profile: &Profile) -> Vec<String> {
    let mut sums = BTreeMap::<(&[u32], WaitClass), (u64, u64, BTreeMap<u32, u64>)>::new();
    for stack in &profile.stacks {
        let sum = sums.entry((&stack.frames, class_of(stack))).or_default();
        sum.0 += stack.weight_ns;
        sum.1 += stack.samples;
        stack.waker.into_iter().for_each(|waker| *sum.2.entry(waker).or_default() += stack.weight_ns);
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.0));
    let all = profile.total_ns() as f64;
    let row = |((frames, class), (ns, waits, wakers)): Place<'_>| {
        let woken = wakers.iter().max_by_key(|(_, ns)| **ns).map(|(&waker, _)| woken(profile, waker));
        format!(
            "{} {} {} in {}{}",
            share(ns as f64, all),
            name::of_wait(class),
            waits_of(waits),
            place(profile, frames),
            woken.unwrap_or_default()
        )
    };
    rows.into_iter().take(ROWS_MAX).map(row).collect()
}

/// The nearest functions, the innermost first; where these are a library's alone, the program's own that called them ends
/// the line. The kernel's where there is nothing else.
fn place(profile: &Profile, frames: &[u32]) -> String {
    let known = || frames.iter().rev().filter_map(|&at| profile.frames.get(at as usize));
    let user: Vec<&Frame> = known().filter(|frame| frame.origin == Origin::User).collect();
    let frames = if user.is_empty() { known().collect() } else { user };
    let own = frames.iter().position(|frame| !name::is_library(profile, frame));
    let said = |frame: &&Frame| name::plain(&name::of_frame(profile, frame));
    let mut shown: Vec<String> = frames.iter().take(FRAMES_SHOWN).map(said).collect();
    if let Some(own) = own.filter(|own| *own >= FRAMES_SHOWN) {
        shown.truncate(FRAMES_SHOWN - 1);
        shown.push(format!("… < {}", said(&frames[own])));
    }
    if shown.is_empty() { "an unknown place".to_owned() } else { shown.join(" < ") }
}

fn woken(profile: &Profile, waker: u32) -> String {
    let Some(waker) = profile.wakers.get(waker as usize) else { return String::new() };
    if waker.tid == 0 {
        return " · ended by an interrupt".to_owned();
    }
    format!(" · ended by {} ({}) in {}", waker.name, waker.tid, place(profile, &waker.frames))
}

/// `1,976 waits`, `1 wait`.
fn waits_of(waits: u64) -> String {
    if waits == 1 { "1 wait".to_owned() } else { format!("{} waits", count(waits as f64)) }
}

fn contended(profile: &Profile) -> Vec<String> {
    let row = |lock: Lock| {
        let by = lock.released_by.first().map(|(waker, _)| woken(profile, *waker)).unwrap_or_default();
        let time = latency(lock.waiting_ns as f64 / 1e3);
        let (waits, waiters) = (waits_of(lock.waits), counted(lock.waiters.len(), "thread"));
        format!("{}: {time} in {waits} of {waiters}{by}", lock.name)
    };
    locks(profile).into_iter().take(ROWS_MAX).map(row).collect()
}

/// Files, sockets and pipes that were waited for.
fn files(profile: &Profile) -> Vec<String> {
    let rows = sums(profile, |stack| {
        let wait = stack.wait.as_ref().filter(|wait| wait.class != WaitClass::Lock)?;
        Some((wait.object.as_deref()?, wait.system_call.as_deref().unwrap_or("page fault")))
    });
    let row = |((object, call), (ns, waits)): ((&str, &str), (u64, u64))| {
        let time = latency(ns as f64 / 1e3);
        format!("{call} on {object}: {time} in {} waits", count(waits as f64))
    };
    rows.into_iter().take(ROWS_MAX).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::profile::{Kind, Thread, Wait, Waker};

    /// Planted fault: the innermost four alone, and every wait of a Go program is its run-time's.
    #[test]
    fn a_wait_in_a_library_is_told_with_the_function_that_called_it() {
        let frame = |name: &str| Frame { name: name.to_owned(), ..Frame::default() };
        let names = [
            "main.main",
            "main.audit",
            "sync.(*Mutex).Lock",
            "sync.(*Mutex).lockSlow",
            "runtime.semacquire",
            "runtime.park",
        ];
        let profile = Profile { frames: names.map(frame).to_vec(), ..Profile::default() };
        assert_eq!(
            place(&profile, &[0, 1, 2, 3, 4, 5]),
            "runtime.park < runtime.semacquire < sync.(*Mutex).lockSlow < … < main.audit"
        );
        assert_eq!(place(&profile, &[0, 1, 2]), "sync.(*Mutex).Lock < main.audit < main.main");
        assert_eq!(place(&profile, &[2, 3]), "sync.(*Mutex).lockSlow < sync.(*Mutex).Lock");
    }

    /// Fault: an idle thread of Go's told as a lock of the program's, and nothing beside it.
    #[test]
    fn idle_threads_of_a_go_program_are_no_locks() {
        let frame = |name: &str| Frame { name: name.to_owned(), origin: Origin::User, ..Frame::default() };
        let wait = || Some(Wait { class: WaitClass::Lock, ..Wait::default() });
        let stack =
            |frames: Vec<u32>, weight_ns| Stack { frames, weight_ns, wait: wait(), ..Stack::default() };
        let of = |stacks| Profile {
            kind: Kind::OffCpu,
            frames: vec![frame("main"), frame(GO_SLEEPS)],
            stacks,
            ..Profile::default()
        };
        let go = idle_threads(&of(vec![stack(vec![0], 25), stack(vec![0, 1], 75)])).text();
        assert!(go.starts_with("75.0 % of the waiting at locks") && go.contains("dyno diagnose PID"), "{go}");
        assert!(idle_threads(&of(vec![stack(vec![0], 25)])).is_empty());
    }

    #[test]
    fn the_lists_name_the_wait_the_lock_and_who_let_go() {
        let frame = |name: &str, origin| Frame { name: name.to_owned(), origin, ..Frame::default() };
        let object = Some("0x1000 (pid 7)".to_owned());
        let wait = Wait { class: WaitClass::Lock, system_call: Some("futex".to_owned()), object };
        let stack = Stack {
            frames: vec![0, 1, 2],
            samples: 4,
            weight_ns: 8_000_000,
            wait: Some(wait),
            waker: Some(0),
            ..Stack::default()
        };
        let profile = Profile {
            kind: Kind::OffCpu,
            threads: vec![Thread { pid: 7, tid: 8, name: "worker".to_owned() }],
            thread_times: vec![ThreadTime { thread: 0, running_ns: 1, runnable_ns: 1, waiting_ns: 2 }],
            frames: vec![
                frame("main", Origin::User),
                frame("push", Origin::User),
                frame("futex_wait", Origin::Kernel),
                frame("pop", Origin::User),
            ],
            stacks: vec![stack],
            wakers: vec![Waker { pid: 7, tid: 9, name: "other".to_owned(), frames: vec![0, 3] }],
            ..Profile::default()
        };
        assert_eq!([waits_of(1), waits_of(1_976)], ["1 wait", "1,976 waits"]);
        assert!(states(&profile).starts_with("running 25.0 % · wanting a CPU 25.0 % · waiting 50.0 % of"));
        assert_eq!(
            stacks(&profile),
            ["100.0 % lock 4 waits in push < main · ended by other (9) in pop < main"]
        );
        assert!(
            contended(&profile)[0].starts_with("0x1000 (pid 7): 8.00 ms in 4 waits of 1 thread · ended by")
        );
    }
}

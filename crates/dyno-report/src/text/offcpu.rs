//! What `dyno offcpu` shows on the terminal: where the threads' time went, what they waited for and where, who ended it,
//! which locks and files, which system calls.

use std::collections::BTreeMap;

use dyno_profile::locks::locks;
use dyno_profile::name;
use dyno_record::profile::{Origin, Profile, Stack, SystemCall, WaitClass};

use super::table;
use crate::number::{count, latency, visible};

/// Rows of each list; the record has all.
const ROWS_MAX: usize = 8;
/// Functions of a stack that are shown: from where it waits up to the work that wanted it.
const FRAMES_SHOWN: usize = 4;

/// Everything, in at most `width` columns.
pub fn offcpu(profile: &Profile, width: usize) -> String {
    let mut out = String::new();
    let heads = [watched(profile), states(profile), cost(profile)];
    let warnings = profile.warnings.iter().map(|warning| format!("warning: {}", visible(warning)));
    for line in heads.into_iter().chain(warnings) {
        out.push_str(&table::wrapped(&line, width, 0));
    }
    // Columns are read downwards: their lines are never wrapped. Sentences are.
    section(&mut out, &waits(profile), |line| format!("  {line}\n"));
    for list in [stacks(profile), contended(profile), files(profile)] {
        section(&mut out, &list, |line| table::wrapped(line, width, 2));
    }
    section(&mut out, &calls(profile), |line| format!("  {line}\n"));
    out
}

fn section(out: &mut String, lines: &[String], shown: impl Fn(&str) -> String) {
    if !lines.is_empty() {
        out.push('\n');
        lines.iter().for_each(|line| out.push_str(&shown(line)));
    }
}

fn watched(profile: &Profile) -> String {
    let (target, sampling) = (&profile.target, &profile.sampling);
    let pid = target.pid.map(|pid| format!(" ({pid})")).unwrap_or_default();
    let cut =
        profile.cut_short.as_ref().map(|why| format!(" · cut short: {}", visible(why))).unwrap_or_default();
    format!(
        "watched   {}{pid}, with its threads and children · {:.1} s · {} threads · {} switches, {} lost{cut}",
        visible(&target.name),
        profile.duration_s,
        profile.threads.len(),
        count(sampling.samples as f64),
        count(sampling.lost as f64),
    )
}

/// Shares of all threads' time.
fn states(profile: &Profile) -> String {
    let sum = |part: fn(&dyno_record::profile::ThreadTime) -> u64| {
        profile.thread_times.iter().map(part).sum::<u64>()
    };
    let (running, runnable, waiting) =
        (sum(|times| times.running_ns), sum(|times| times.runnable_ns), sum(|times| times.waiting_ns));
    let all = running + runnable + waiting;
    format!(
        "threads   running {} · wanting a CPU {} · waiting {} of {:.1} s of their time",
        share(running, all),
        share(runnable, all),
        share(waiting, all),
        seconds(all),
    )
}

fn cost(profile: &Profile) -> String {
    let cost = &profile.overhead;
    let hooks = cost
        .hook_percent
        .map(|percent| format!(", its programs in the kernel {percent:.1} %"))
        .unwrap_or_default();
    format!("cost      dyno used {:.1} % of one CPU to watch{hooks}", cost.profiler_percent)
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn class_of(stack: &Stack) -> WaitClass {
    stack.wait.as_ref().map(|wait| wait.class).unwrap_or_default()
}

fn waits(profile: &Profile) -> Vec<String> {
    let mut sums = BTreeMap::<WaitClass, (u64, u64)>::new();
    for stack in &profile.stacks {
        let sum = sums.entry(class_of(stack)).or_default();
        *sum = (sum.0 + stack.weight_ns, sum.1 + stack.samples);
    }
    let all = profile.total_ns();
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
    let head = format!("{:<12}{:>10}{:>9}{:>12}{:>12}", "off CPU by", "s", "share", "waits", "mean");
    let row = |(class, (ns, waits)): (WaitClass, (u64, u64))| {
        let mean = latency(ns as f64 / 1e3 / waits.max(1) as f64);
        let (name, share, waits) = (name::of_wait(class), share(ns, all), count(waits as f64));
        format!("{name:<12}{:>10.3}{share:>9}{waits:>12}{mean:>12}", seconds(ns))
    };
    listed(head, rows.into_iter().map(row).collect())
}

fn listed(head: String, rows: Vec<String>) -> Vec<String> {
    if rows.is_empty() { rows } else { std::iter::once(head).chain(rows).collect() }
}

/// A stack with what it waited for, and its time, waits, and wakers with their time.
type Place<'p> = ((&'p [u32], WaitClass), (u64, u64, BTreeMap<u32, u64>));

/// The dearest stacks, threads and wakers taken together.
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
    let all = profile.total_ns();
    let row = |((frames, class), (ns, waits, wakers)): Place<'_>| {
        let woken = wakers.iter().max_by_key(|(_, ns)| **ns).map(|(&waker, _)| woken(profile, waker));
        let (share, waits) = (share(ns, all), count(waits as f64));
        let place = place(profile, frames);
        format!(
            "{share:>7}  {:<10}  {waits} waits in {place}{}",
            name::of_wait(class),
            woken.unwrap_or_default()
        )
    };
    let rows = rows.into_iter().take(ROWS_MAX).map(row).collect();
    listed("where it waits, and who ends it most".to_owned(), rows)
}

/// The nearest functions of the program, the innermost first; the kernel's where there is none.
fn place(profile: &Profile, frames: &[u32]) -> String {
    let known = || frames.iter().rev().filter_map(|&at| profile.frames.get(at as usize));
    let user: Vec<&str> =
        known().filter(|frame| frame.origin == Origin::User).map(|frame| frame.name.as_str()).collect();
    let kernel: Vec<&str> = known().map(|frame| frame.name.as_str()).collect();
    let names = if user.is_empty() { kernel } else { user };
    let shown: Vec<String> = names.into_iter().take(FRAMES_SHOWN).map(visible).collect();
    if shown.is_empty() { "an unknown place".to_owned() } else { shown.join(" < ") }
}

fn woken(profile: &Profile, waker: u32) -> String {
    let Some(waker) = profile.wakers.get(waker as usize) else { return String::new() };
    if waker.tid == 0 {
        return " · ended by an interrupt".to_owned();
    }
    let place = place(profile, &waker.frames);
    format!(" · ended by {} ({}) in {place}", visible(&waker.name), waker.tid)
}

fn contended(profile: &Profile) -> Vec<String> {
    let row = |lock: dyno_profile::locks::Lock| {
        let by = lock.released_by.first().map(|(waker, _)| woken(profile, *waker)).unwrap_or_default();
        let time = latency(lock.waiting_ns as f64 / 1e3);
        let (waits, waiters) = (count(lock.waits as f64), lock.waiters.len());
        format!("{}: {time} in {waits} waits of {waiters} threads{by}", visible(&lock.name))
    };
    let rows = locks(profile).into_iter().take(ROWS_MAX).map(row).collect();
    listed("locks".to_owned(), rows)
}

/// Files, sockets and pipes that were waited for.
fn files(profile: &Profile) -> Vec<String> {
    let mut sums = BTreeMap::<(&str, &str), (u64, u64)>::new();
    for stack in &profile.stacks {
        let Some(wait) = stack.wait.as_ref().filter(|wait| wait.class != WaitClass::Lock) else { continue };
        let Some(object) = wait.object.as_deref() else { continue };
        let call = wait.system_call.as_deref().unwrap_or("page fault");
        let sum = sums.entry((object, call)).or_default();
        *sum = (sum.0 + stack.weight_ns, sum.1 + stack.samples);
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
    let row = |((object, call), (ns, waits)): ((&str, &str), (u64, u64))| {
        let time = latency(ns as f64 / 1e3);
        format!("{call} on {}: {time} in {} waits", visible(object), count(waits as f64))
    };
    listed("files and peers".to_owned(), rows.into_iter().take(ROWS_MAX).map(row).collect())
}

fn calls(profile: &Profile) -> Vec<String> {
    let mut rows: Vec<_> = profile.system_calls.iter().collect();
    rows.sort_by_key(|(_, call)| std::cmp::Reverse(call.count));
    let per = profile.requests.as_ref().map_or("per s", |_| "per req");
    let by = profile.requests.as_ref().map_or(profile.duration_s, |requests| requests.count as f64);
    let head = format!(
        "{:<18}{per:>12}{:>10}{:>11}{:>11}{:>11}{:>11}",
        "system call", "errors", "mean", "p50 <", "p99 <", "max"
    );
    let row = |(name, call): (&String, &SystemCall)| {
        let rate = call.count as f64 / by.max(1e-9);
        let rate = if rate < 10.0 { format!("{rate:.2}") } else { count(rate) };
        let mean = latency(call.total_ns as f64 / 1e3 / call.count.max(1) as f64);
        let (p50, p99) = (quantile(call, 0.5), quantile(call, 0.99));
        let (errors, max) = (count(call.errors as f64), latency(call.max_ns as f64 / 1e3));
        format!("{:<18}{rate:>12}{errors:>10}{mean:>11}{p50:>11}{p99:>11}{max:>11}", visible(name))
    };
    listed(head, rows.into_iter().take(2 * ROWS_MAX).map(row).collect())
}

/// The end of the row in which the quantile lies: twice too long at most.
fn quantile(call: &SystemCall, share: f64) -> String {
    let wanted = (call.log2_ns.iter().sum::<u64>() as f64 * share).ceil();
    let mut seen = 0.0;
    let row = call.log2_ns.iter().position(|&count| {
        seen += count as f64;
        seen >= wanted
    });
    row.map_or_else(|| crate::number::NONE.to_owned(), |row| latency(2_f64.powi(row as i32) / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::profile::{Frame, Thread, ThreadTime, Wait, Waker};

    fn sample() -> Profile {
        let frame = |name: &str, origin| Frame { name: name.to_owned(), origin, ..Frame::default() };
        let wait = Wait {
            class: WaitClass::Lock,
            system_call: Some("futex".to_owned()),
            object: Some("0x1000 (pid 7)".to_owned()),
        };
        let call = SystemCall {
            count: 100,
            errors: 1,
            total_ns: 1_000_000,
            max_ns: 90_000,
            log2_ns: vec![0, 0, 98, 0, 2],
        };
        Profile {
            duration_s: 2.0,
            threads: vec![Thread { pid: 7, tid: 8, name: "worker".to_owned() }],
            thread_times: vec![ThreadTime { thread: 0, running_ns: 1, runnable_ns: 1, waiting_ns: 2 }],
            frames: vec![
                frame("main", Origin::User),
                frame("push\u{1b}[31m", Origin::User),
                frame("futex_wait", Origin::Kernel),
                frame("pop", Origin::User),
            ],
            stacks: vec![Stack {
                frames: vec![0, 1, 2],
                samples: 4,
                weight_ns: 8_000_000,
                wait: Some(wait),
                waker: Some(0),
                ..Stack::default()
            }],
            wakers: vec![Waker { pid: 7, tid: 9, name: "other".to_owned(), frames: vec![0, 3] }],
            system_calls: BTreeMap::from([("futex".to_owned(), call)]),
            ..Profile::default()
        }
    }

    #[test]
    fn the_summary_names_the_wait_the_lock_and_who_let_go() {
        let text = offcpu(&sample(), 160);
        assert!(text.contains("running 25.0 % · wanting a CPU 25.0 % · waiting 50.0 %"), "{text}");
        assert!(text.contains("ended by other (9) in pop < main"), "{text}");
        assert!(text.contains("0x1000 (pid 7): 8.00 ms in 4 waits of 1 threads"), "{text}");
        assert!(text.contains("futex") && text.contains("50"), "{text}");
        assert!(!text.contains('\u{1b}'), "a name is shown, not obeyed: {text}");
    }

    #[test]
    fn quantiles_are_the_ends_of_their_rows() {
        let profile = sample();
        let call = &profile.system_calls["futex"];
        assert_eq!((quantile(call, 0.5), quantile(call, 0.99)), ("0.00 µs".to_owned(), "0.02 µs".to_owned()));
    }

    #[test]
    fn a_profile_without_waits_has_no_empty_lists() {
        let text = offcpu(&Profile::default(), 80);
        assert_eq!(text.lines().filter(|line| line.is_empty()).count(), 0, "{text}");
    }
}

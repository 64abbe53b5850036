//! What was seen becomes the record: tables of threads, modules, frames, stacks and wakers, each row once.
//!
//! The recorder calls it at the end. Pure but for reading the machine's description.

use std::collections::{BTreeMap, HashMap};

use dyno_record::profile::{
    Kind, Overhead, PROFILE_SCHEMA, Process, Profile, Sampling, Span as TimeSpan, SystemCall, Target, Thread,
    ThreadState, ThreadTime, Wait as Cause, WaitClass, Waker as Releaser,
};
use dyno_sys::bpf::offcpu::{Call, Counts, Part, Span, State, Wait, Waker};
use dyno_sys::trace::call_name;
use dyno_sys::{Pid, Tid};

use super::options::SWITCHES_BY_BPF;
use super::seen::{About, Seen, by_number};
use crate::stack::raw::Raw;
use crate::stack::rows::{First, Key, Rows, Ties, Written};
use crate::stack::table::Table;
use crate::stack::wait::{class, is_interrupt, is_scheduler, without_switch};
use crate::unwind::{Cut, by_words};

/// Who ends a wait when no thread did: an interrupt of a timer, a disk or a network card.
const INTERRUPT: &str = "[interrupt]";

/// The record of what was seen.
pub(super) fn profile(about: About, mut seen: Seen) -> Profile {
    let duration_ns = seen.end_ns.saturating_sub(seen.start_ns);
    let mut code = std::mem::take(&mut seen.code);
    let mut fold = Fold::new(&seen, code.rows());
    fold.add_wakers();
    fold.add_waits();
    let timeline = fold.timeline();
    let Folded { written, wakers, cuts } = fold.finish();
    let (threads, thread_times) = threads(&seen);
    let has_kernel_names = code.kernel_has_names();
    Profile {
        schema: PROFILE_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s: about.started_unix_s,
        duration_s: duration_ns as f64 / 1e9,
        kind: Kind::OffCpu,
        target: target(about),
        sampling: sampling(seen.counts, &cuts),
        overhead: Overhead {
            profiler_percent: percent(seen.cpu_ns, duration_ns),
            hook_percent: seen.hook_ns.map(|ns| percent(ns, duration_ns)),
        },
        cut_short: seen.cut_short.clone(),
        warnings: warnings(&seen, has_kernel_names, code.notes()),
        threads,
        modules: written.modules,
        frames: written.frames,
        stacks: written.stacks,
        wakers,
        timeline,
        thread_times,
        system_calls: system_calls(&seen.calls),
        // Machine, command and requests are the caller's to know.
        ..Profile::default()
    }
}

/// Threads by number, each once: one that ended and one that lives may share it.
type Numbers = BTreeMap<(Pid, Tid), usize>;

struct Fold<'s> {
    seen: &'s Seen,
    numbers: Numbers,
    rows: Rows<'s>,
    wakers: Table<Releaser>,
    waker_rows: HashMap<u64, u32>,
    cuts: BTreeMap<Cut, u64>,
}

struct Folded {
    written: Written,
    wakers: Vec<Releaser>,
    /// Waits whose stacks end before their root, by why.
    cuts: BTreeMap<Cut, u64>,
}

impl<'s> Fold<'s> {
    fn new(seen: &'s Seen, rows: Rows<'s>) -> Fold<'s> {
        let (wakers, waker_rows) = (Table::default(), HashMap::new());
        Fold { seen, numbers: by_number(&seen.threads), rows, wakers, waker_rows, cuts: BTreeMap::new() }
    }

    fn finish(self) -> Folded {
        let (written, wakers) = (self.rows.finish(Ties::ByStack), self.wakers.into_rows());
        debug_assert!(
            written.stacks.iter().all(|row| row.waker.is_none_or(|waker| (waker as usize) < wakers.len())),
            "a wait was ended by a waker of this record"
        );
        Folded { written, wakers, cuts: self.cuts }
    }

    /// Frames of a kernel stack, the leaf first, without those of leaving the CPU.
    fn kernel(&mut self, id: Option<i32>) -> &'s [Raw] {
        let stack = id.and_then(|id| self.seen.kernel.get(&id)).map_or(&[][..], Vec::as_slice);
        without_switch(stack, |raw| self.rows.name(raw).all(is_scheduler))
    }

    fn user(&self, shape: Option<u64>) -> &'s [Raw] {
        shape.and_then(|shape| self.seen.user.get(&shape)).map_or(&[][..], Vec::as_slice)
    }

    /// Rows of frames, the leaf first.
    fn frames(&mut self, stack: &[Raw]) -> Vec<u32> {
        stack.iter().flat_map(|raw| self.rows.frames(raw, First::Innermost)).collect()
    }

    fn function_names(&mut self, kernel: &[Raw]) -> Vec<String> {
        let of = |raw| self.rows.name(raw).functions.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        kernel.iter().flat_map(of).collect()
    }

    fn add_wakers(&mut self) {
        for waker in &self.seen.wakers {
            let row = self.releaser(waker);
            let at = self.wakers.number(row);
            self.waker_rows.insert(waker.id, at);
        }
    }

    /// What ran when the wake-up came, or the interrupt alone: the thread that it interrupted has no part in it.
    fn releaser(&mut self, waker: &Waker) -> Releaser {
        let kernel = self.kernel(waker.kernel_stack);
        let entry = kernel.iter().rposition(|raw| self.rows.name(raw).all(is_interrupt));
        let by_interrupt = entry.is_some() || waker.tid == 0;
        let mut frames = self.frames(entry.map_or(kernel, |at| &kernel[..=at]));
        if by_interrupt {
            frames.reverse();
            return Releaser { pid: 0, tid: 0, name: INTERRUPT.to_owned(), frames };
        }
        frames.extend(self.frames(self.user(waker.shape)));
        frames.reverse();
        let (pid, tid) = (waker.pid.cast_unsigned(), waker.tid.cast_unsigned());
        Releaser { pid, tid, name: waker.name.clone(), frames }
    }

    fn add_waits(&mut self) {
        for wait in &self.seen.waits {
            // A thread without an entry found no room in the probe's table; a warning says so.
            if let Some(&thread) = self.numbers.get(&(wait.pid, wait.tid)) {
                self.add_wait(wait, thread as u32);
            }
        }
    }

    fn add_wait(&mut self, wait: &Wait, thread: u32) {
        let seeded = wait.shape.and_then(|shape| self.seen.seeded.get(&shape));
        let kernel = seeded.map_or_else(|| self.kernel(wait.kernel_stack), Vec::as_slice);
        let cause = self.cause(wait, kernel);
        if let Some(cut) = wait.shape.and_then(|shape| self.seen.short.get(&shape)) {
            *self.cuts.entry(*cut).or_default() += wait.count;
        }
        let mut frames = self.frames(kernel);
        frames.extend(self.frames(self.user(wait.shape)));
        frames.reverse();
        let waker = wait.waker.and_then(|id| self.waker_rows.get(&id)).copied();
        self.rows.add(Key { frames, thread, wait: Some(cause), waker }, wait.count, wait.ns);
    }

    fn cause(&mut self, wait: &Wait, kernel: &[Raw]) -> Cause {
        let system_call = wait.system_call.map(|number| call_name(u64::from(number)).into_owned());
        if wait.part != Part::Wait {
            return Cause { class: WaitClass::RunQueue, system_call, object: None };
        }
        let named = |number, object| self.seen.objects.name(wait.pid, number, object);
        let object = wait.system_call.zip(wait.object).and_then(|(number, object)| named(number, object));
        let class = self.class(system_call.as_deref(), kernel, object.as_deref());
        let object = match class {
            WaitClass::PageFault => wait.fault.and_then(|address| self.fault(wait.pid, address)),
            // The descriptor of a call that waits for a lock of the kernel is not that lock.
            WaitClass::Lock if system_call.as_deref().is_some_and(|call| !call.starts_with("futex")) => None,
            _ => object,
        };
        Cause { class, system_call, object }
    }

    fn class(&mut self, call: Option<&str>, kernel: &[Raw], object: Option<&str>) -> WaitClass {
        let names = self.function_names(kernel);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        class(call, &names, object)
    }

    fn fault(&self, pid: Pid, address: u64) -> Option<String> {
        self.seen.faults.get(&pid)?.name(address)
    }

    fn timeline(&mut self) -> Vec<TimeSpan> {
        let mut classes = HashMap::new();
        let mut spans: Vec<TimeSpan> =
            self.seen.spans.iter().filter_map(|span| self.span(span, &mut classes)).collect();
        spans.sort_by_key(|span| (span.thread, span.from_ns));
        spans
    }

    fn span(&mut self, span: &Span, classes: &mut HashMap<Blocked, WaitClass>) -> Option<TimeSpan> {
        let thread = *self.numbers.get(&(span.pid, span.tid))? as u32;
        let since = |at: u64| at.saturating_sub(self.seen.start_ns);
        let (from_ns, to_ns) = (since(span.from_ns), since(span.to_ns));
        let (state, class) = match span.state {
            State::Running => (ThreadState::Running, None),
            State::Runnable => (ThreadState::Runnable, Some(WaitClass::RunQueue)),
            State::Blocked => {
                let key = (span.kernel_stack, span.system_call);
                let class = *classes.entry(key).or_insert_with(|| self.class_of(key));
                (ThreadState::Waiting, Some(class))
            }
        };
        Some(TimeSpan { thread, from_ns, to_ns, state, class })
    }

    fn class_of(&mut self, (kernel, call): Blocked) -> WaitClass {
        let kernel = self.kernel(kernel);
        let call = call.map(|number| call_name(u64::from(number)));
        self.class(call.as_deref(), kernel, None)
    }
}

/// What decides the class of a stretch of waiting: its kernel stack and its system call.
type Blocked = (Option<i32>, Option<u32>);

fn sampling(counts: Counts, cuts: &BTreeMap<Cut, u64>) -> Sampling {
    Sampling {
        event: SWITCHES_BY_BPF.to_owned(),
        frequency_hz: None,
        call_graph: "auto".to_owned(),
        samples: counts.switches,
        lost: counts.lost_waits + counts.lost_stacks + counts.lost_threads,
        coarse: counts.coarse,
        truncated: cuts.values().sum(),
        truncated_by: by_words(cuts),
    }
}

fn threads(seen: &Seen) -> (Vec<Thread>, Vec<ThreadTime>) {
    let rows = seen.threads.iter().enumerate().map(|(at, (thread, name))| {
        let (pid, tid) = (thread.pid.cast_unsigned(), thread.tid.cast_unsigned());
        let (running_ns, runnable_ns, waiting_ns) =
            (thread.running_ns, thread.runnable_ns, thread.waiting_ns);
        let times = ThreadTime { thread: at as u32, running_ns, runnable_ns, waiting_ns };
        (Thread { pid, tid, name: name.clone() }, times)
    });
    rows.unzip()
}

fn system_calls(calls: &[Call]) -> BTreeMap<String, SystemCall> {
    let row = |call: &Call| {
        let name = call_name(u64::from(call.number)).into_owned();
        let used = call.log2_ns.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        let sums = SystemCall {
            count: call.count,
            errors: call.errors,
            total_ns: call.total_ns,
            max_ns: call.max_ns,
            log2_ns: call.log2_ns[..used].to_vec(),
        };
        (name, sums)
    };
    calls.iter().map(row).collect()
}

fn target(about: About) -> Target {
    let mut also = about.processes;
    assert!(!also.is_empty(), "somebody was watched");
    let Process { pid, name, argv } = also.remove(0);
    Target { pid: Some(pid), name, argv, scope: "process".to_owned(), also }
}

fn warnings(seen: &Seen, has_kernel_names: bool, notes: &[String]) -> Vec<String> {
    let Counts { lost_waits, lost_stacks, lost_spans, lost_processes, lost_threads, .. } = seen.counts;
    let mut warnings = notes.to_vec();
    if !has_kernel_names {
        let why = "the kernel hides its addresses (kernel.kptr_restrict): kernel functions have no names, and waits are \
                   classified by their system calls alone";
        warnings.push(why.to_owned());
    }
    if seen.stopped > 0 {
        let (many, who) = (seen.stopped, if seen.stopped == 1 { "thread was" } else { "threads were" });
        warnings.push(format!(
            "{many} {who} stopped when the watch began, by a signal (SIGSTOP, Ctrl-Z, a job in the background that asked the terminal) or by a \
             debugger: such waits are nothing of the program's"
        ));
    }
    if lost_waits > 0 {
        warnings.push(format!(
            "{lost_waits} waits found no room in the table: their time is in the threads' sums only"
        ));
    }
    if lost_stacks > 0 {
        warnings.push(format!("{lost_stacks} stacks could not be kept: some waits have none"));
    }
    if lost_processes > 0 {
        warnings.push(format!(
            "{lost_processes} processes were more than the table holds: they were not watched"
        ));
    }
    if lost_threads > 0 {
        warnings.push(format!(
            "{lost_threads} times a thread found no room in the table: what it did then is not counted"
        ));
    }
    if seen.spans_cut || lost_spans > 0 {
        let kept = seen.spans.len();
        warnings.push(format!("the timeline was cut after {kept} spans: what came later is not in it"));
    }
    warnings
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod golden;

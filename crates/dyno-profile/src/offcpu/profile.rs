//! What was seen becomes the record: tables of threads, modules, frames, stacks and wakers, each row once.
//!
//! `record` calls it at the end. Pure but for reading the machine's description.

use std::collections::{BTreeMap, HashMap};

use dyno_measure::profile::{
    Frame, Kind, Module, Origin, Overhead, PROFILE_SCHEMA, Profile, Sampling, Span as TimeSpan, Stack,
    SystemCall, Target, Thread, ThreadState, ThreadTime, Wait as Cause, WaitClass, Waker as Releaser,
};
use dyno_sys::Pid;
use dyno_sys::bpf::offcpu::{Call, Counts, Part, Span, State, Wait, Waker};
use dyno_sys::trace::call_name;

use super::code::UserFrame;
use super::watch::{About, Seen, by_number};
use crate::stack::wait::{class, is_interrupt, is_scheduler};

/// Who ends a wait when nobody runs: a timer, a disk, a network card.
const INTERRUPT: &str = "[interrupt]";

/// The module of the kernel's frames.
const KERNEL: &str = "[kernel]";

/// The record of what was seen.
pub(super) fn profile(about: About, seen: Seen) -> Profile {
    let duration_ns = seen.end_ns.saturating_sub(seen.start_ns);
    let mut fold = Fold::new(&seen);
    fold.add_wakers();
    fold.add_waits();
    let timeline = fold.timeline();
    let (threads, thread_times) = threads(&seen);
    Profile {
        schema: PROFILE_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s: about.started_unix_s,
        duration_s: duration_ns as f64 / 1e9,
        kind: Kind::OffCpu,
        target: target(about),
        sampling: fold.sampling(),
        overhead: Overhead {
            profiler_percent: percent(seen.cpu_ns, duration_ns),
            hook_percent: seen.hook_ns.map(|ns| percent(ns, duration_ns)),
        },
        cut_short: seen.cut_short.clone(),
        warnings: warnings(&seen),
        threads,
        modules: fold.modules.rows,
        frames: fold.frames.rows,
        stacks: heaviest_first(fold.stacks),
        wakers: fold.wakers.rows,
        timeline,
        thread_times,
        system_calls: system_calls(&seen.calls),
        // Machine, command and requests are the caller's to know.
        ..Profile::default()
    }
}

fn heaviest_first(stacks: BTreeMap<StackKey, Stack>) -> Vec<Stack> {
    let mut stacks: Vec<Stack> = stacks.into_values().collect();
    stacks.sort_by_key(|stack| std::cmp::Reverse(stack.weight_ns));
    stacks
}

/// Rows of a table, each once, by what they are.
struct Table<T> {
    rows: Vec<T>,
    index: HashMap<T, u32>,
}

impl<T: Clone + Eq + std::hash::Hash> Table<T> {
    fn new() -> Table<T> {
        Table { rows: Vec::new(), index: HashMap::new() }
    }

    fn at(&mut self, row: T) -> u32 {
        let next = self.rows.len() as u32;
        *self.index.entry(row).or_insert_with_key(|row| {
            self.rows.push(row.clone());
            next
        })
    }
}

/// Modules hold no hash of their own: their paths do.
#[derive(Default)]
struct Modules {
    rows: Vec<Module>,
    index: HashMap<String, u32>,
}

impl Modules {
    fn at(&mut self, path: &str, known: Option<&Module>) -> u32 {
        if let Some(&row) = self.index.get(path) {
            return row;
        }
        let unread = || Module { path: path.to_owned(), ..Module::default() };
        self.rows.push(known.cloned().unwrap_or_else(unread));
        let at = self.rows.len() as u32 - 1;
        self.index.insert(path.to_owned(), at);
        at
    }
}

type StackKey = (Vec<u32>, u32, Cause, Option<u32>);

struct Fold<'s> {
    seen: &'s Seen,
    modules: Modules,
    frames: Table<Frame>,
    wakers: Table<Releaser>,
    waker_rows: HashMap<u64, u32>,
    stacks: BTreeMap<StackKey, Stack>,
    truncated: u64,
}

impl<'s> Fold<'s> {
    fn new(seen: &'s Seen) -> Fold<'s> {
        Fold {
            seen,
            modules: Modules::default(),
            frames: Table::new(),
            wakers: Table::new(),
            waker_rows: HashMap::new(),
            stacks: BTreeMap::new(),
            truncated: 0,
        }
    }

    fn sampling(&self) -> Sampling {
        let counts = self.seen.counts;
        Sampling {
            event: super::SWITCHES_BY_BPF.to_owned(),
            frequency_hz: None,
            call_graph: "auto".to_owned(),
            samples: counts.switches,
            lost: counts.lost_waits + counts.lost_stacks,
            truncated: self.truncated,
        }
    }

    /// Functions of a kernel stack, the leaf first, without those of leaving the CPU.
    fn kernel(&self, id: Option<i32>) -> &'s [(u64, String)] {
        let stack = id.and_then(|id| self.seen.kernel.get(&id)).map_or(&[][..], Vec::as_slice);
        let inner = stack.iter().take_while(|(_, name)| is_scheduler(name)).count();
        &stack[inner..]
    }

    fn kernel_frames(&mut self, functions: &[(u64, String)]) -> Vec<u32> {
        let named = self.seen.has_kernel_names;
        let kernel = Module { path: KERNEL.to_owned(), symbols: named, ..Module::default() };
        let module = (!functions.is_empty()).then(|| self.modules.at(KERNEL, Some(&kernel)));
        let frame = |(address, name): &(u64, String)| Frame {
            name: name.clone(),
            module,
            origin: Origin::Kernel,
            address: *address,
            ..Frame::default()
        };
        // A function is one frame wherever in it the thread stood: the address is of the first that came.
        let named: Vec<Frame> = functions.iter().map(frame).collect();
        named.into_iter().map(|frame| self.kernel_frame(frame)).collect()
    }

    fn kernel_frame(&mut self, frame: Frame) -> u32 {
        let address = frame.address;
        let at = self.frames.at(Frame { address: 0, ..frame });
        let row = &mut self.frames.rows[at as usize];
        if row.address == 0 {
            row.address = address;
        }
        at
    }

    fn user_frames(&mut self, shape: Option<u64>) -> Vec<u32> {
        let frames = shape.and_then(|shape| self.seen.user.get(&shape)).map_or(&[][..], Vec::as_slice);
        frames.iter().map(|frame| self.user_frame(frame)).collect()
    }

    fn user_frame(&mut self, frame: &UserFrame) -> u32 {
        let seen = self.seen;
        let module = frame.module.as_deref().map(|path| self.modules.at(path, seen.modules.get(path)));
        self.frames.at(Frame {
            name: frame.name.clone(),
            module,
            origin: Origin::User,
            file: frame.file.clone(),
            line: frame.line,
            inlined: frame.inlined,
            address: frame.address,
        })
    }

    fn add_wakers(&mut self) {
        for waker in &self.seen.wakers {
            let row = self.releaser(waker);
            let at = self.wakers.at(row);
            self.waker_rows.insert(waker.id, at);
        }
    }

    /// What ran when the wake-up came, or the interrupt alone: the thread that it interrupted has no part in it.
    fn releaser(&mut self, waker: &Waker) -> Releaser {
        let kernel = self.kernel(waker.kernel_stack);
        let entry = kernel.iter().rposition(|(_, name)| is_interrupt(name));
        let by_interrupt = entry.is_some() || waker.tid == 0;
        let kernel = entry.map_or(kernel, |at| &kernel[..=at]);
        let mut frames = self.kernel_frames(kernel);
        if by_interrupt {
            frames.reverse();
            return Releaser { pid: 0, tid: 0, name: INTERRUPT.to_owned(), frames };
        }
        frames.extend(self.user_frames(waker.shape));
        frames.reverse();
        let (pid, tid) = (waker.pid.cast_unsigned(), waker.tid.cast_unsigned());
        Releaser { pid, tid, name: waker.name.clone(), frames }
    }

    fn add_waits(&mut self) {
        let numbers = by_number(&self.seen.threads);
        for wait in &self.seen.waits {
            // A thread without an entry ended while the ring was full; its time is counted as lost.
            if let Some(&thread) = numbers.get(&(wait.pid, wait.tid)) {
                self.add_wait(wait, thread as u32);
            }
        }
    }

    fn add_wait(&mut self, wait: &Wait, thread: u32) {
        let (mut frames, names) = self.kernel_side(wait);
        let cause = self.cause(wait, &names);
        if wait.shape.is_some_and(|shape| self.seen.short.contains(&shape)) {
            self.truncated += wait.count;
        }
        frames.extend(self.user_frames(wait.shape));
        frames.reverse();
        let waker = wait.waker.and_then(|id| self.waker_rows.get(&id)).copied();
        let key = (frames.clone(), thread, cause.clone(), waker);
        let row = self.stacks.entry(key).or_insert_with(|| Stack {
            frames,
            thread,
            samples: 0,
            weight_ns: 0,
            wait: Some(cause),
            waker,
        });
        row.samples += wait.count;
        row.weight_ns += wait.ns;
    }

    /// Frames of the kernel, the leaf first, and their names.
    fn kernel_side(&mut self, wait: &Wait) -> (Vec<u32>, Vec<&'s str>) {
        let seen = self.seen;
        if let Some(functions) = wait.shape.and_then(|shape| seen.seeded.get(&shape)) {
            let known: Vec<(u64, String)> = functions.iter().map(|name| (0, name.clone())).collect();
            return (self.kernel_frames(&known), functions.iter().map(String::as_str).collect());
        }
        let functions = self.kernel(wait.kernel_stack);
        let names = functions.iter().map(|(_, name)| name.as_str()).collect();
        (self.kernel_frames(functions), names)
    }

    fn cause(&self, wait: &Wait, kernel: &[&str]) -> Cause {
        let system_call = wait.system_call.map(|number| call_name(u64::from(number)).into_owned());
        if wait.part != Part::Wait {
            return Cause { class: WaitClass::RunQueue, system_call, object: None };
        }
        let named = |number, object| self.seen.objects.name(wait.pid, number, object);
        let object = wait.system_call.zip(wait.object).and_then(|(number, object)| named(number, object));
        let class = class(system_call.as_deref(), kernel, object.as_deref());
        let object = match class {
            WaitClass::PageFault => wait.fault.and_then(|address| self.fault(wait.pid, address)),
            // The descriptor of a call that waits for a lock of the kernel is not that lock.
            WaitClass::Lock if system_call.as_deref().is_some_and(|call| !call.starts_with("futex")) => None,
            _ => object,
        };
        Cause { class, system_call, object }
    }

    fn fault(&self, pid: Pid, address: u64) -> Option<String> {
        self.seen.faults.get(&pid)?.name(address)
    }

    fn timeline(&self) -> Vec<TimeSpan> {
        let numbers = by_number(&self.seen.threads);
        let mut classes = HashMap::new();
        let mut spans: Vec<TimeSpan> =
            self.seen.spans.iter().filter_map(|span| self.span(span, &numbers, &mut classes)).collect();
        spans.sort_by_key(|span| (span.thread, span.from_ns));
        spans
    }

    fn span(
        &self,
        span: &Span,
        numbers: &BTreeMap<(Pid, dyno_sys::Tid), usize>,
        classes: &mut HashMap<(Option<i32>, Option<u32>), WaitClass>,
    ) -> Option<TimeSpan> {
        let thread = *numbers.get(&(span.pid, span.tid))? as u32;
        let since = |at: u64| at.saturating_sub(self.seen.start_ns);
        let (state, class) = match span.state {
            State::Running => (ThreadState::Running, None),
            State::Runnable => (ThreadState::Runnable, Some(WaitClass::RunQueue)),
            State::Blocked => {
                let key = (span.kernel_stack, span.system_call);
                let class = *classes.entry(key).or_insert_with(|| self.class_of(key));
                (ThreadState::Waiting, Some(class))
            }
        };
        Some(TimeSpan { thread, from_ns: since(span.from_ns), to_ns: since(span.to_ns), state, class })
    }

    fn class_of(&self, (kernel, call): (Option<i32>, Option<u32>)) -> WaitClass {
        let names: Vec<&str> = self.kernel(kernel).iter().map(|(_, name)| name.as_str()).collect();
        let call = call.map(|number| call_name(u64::from(number)));
        class(call.as_deref(), &names, None)
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
    Target {
        pid: Some(about.pid.cast_unsigned()),
        name: about.name,
        argv: about.argv,
        scope: "process".to_owned(),
    }
}

fn warnings(seen: &Seen) -> Vec<String> {
    let Counts { lost_waits, lost_stacks, lost_spans, lost_processes, .. } = seen.counts;
    let mut warnings = seen.notes.clone();
    if !seen.has_kernel_names {
        let why = "the kernel hides its addresses (kernel.kptr_restrict): kernel functions have no names, and waits are \
                   told by their system calls alone";
        warnings.push(why.to_owned());
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

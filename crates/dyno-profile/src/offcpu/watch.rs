//! The time of watching: attaches the probe, takes in threads that wait already, listens to the ring, and collects what
//! was added up at the end.
//!
//! The recorder calls it. Stacks are unwound as they come, while their code is still mapped; names are looked up at the end,
//! so that as little as possible happens while the target runs.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_sys::bpf::offcpu::{
    Event, Open, Part, Probe, Settings, Shape, Span, Spans, State, Thread, Wait, Waker,
};
use dyno_sys::bpf::{offcpu as bpf, runs};
use dyno_sys::clock::{mono_ns, thread_cpu_ns};
use dyno_sys::{Pid, Tid, child, proc, socket};

use super::code::Code;
use super::objects::{Mappings, Objects, named_calls};
use super::options::{Calls, Error, Options, SPANS_MAX, Timeline, refused};
use super::seen::Seen;
use super::user_stacks::UserStacks;
use super::waiting::{Place, is_ending, kernel_functions, name, stack_memory, state};
use crate::stack::raw::Raw;

/// Between looks at the ring and at `stop`: spans do not wake the reader, and the ring has room for some hundred thousand.
const LOOK_NS: u64 = 50_000_000;

/// Shapes of stacks that were read from /proc before the start, with the thread's number in their low half.
const SEEDED: u64 = 0x5eed_0000_0000_0000;

/// Whether the target is a child that is held before its exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// It is: what it does before its exec is not its program's.
    Yes,
    /// It runs.
    No,
}

/// The probe at work, and what came of it so far. What always holds:
///
/// - `processes` has the target until it has ended, and every process whose events come;
/// - `spans` never exceeds [`SPANS_MAX`]; once it is full the probe is asked for no more (`spans_cut`);
/// - a thread is in `ended`, or the probe has it: its times are counted once.
pub(super) struct Watch {
    probe: Probe,
    /// While it lives the kernel counts how long programs run.
    counting: Option<runs::Counting>,
    held: Held,
    start_ns: u64,
    cpu_ns: u64,
    code: Code,
    stacks: UserStacks,
    /// Kernel functions of threads that waited before the start, by the shape they were given.
    seeded: HashMap<u64, Vec<Raw>>,
    /// Threads that did not wait when the watch began, with the time that they had run: those without an event since had a CPU all
    /// the time, or never.
    unseeded: Vec<(Pid, Tid, u64)>,
    spans: Vec<Span>,
    spans_cut: bool,
    ended: Vec<(Thread, String)>,
    processes: BTreeSet<Pid>,
    objects: Objects,
    /// Threads that were stopped when the watch began.
    stopped: usize,
}

impl Watch {
    /// Puts the probe in place; from here on everything is counted.
    pub(super) fn begin(pids: &[Pid], held: Held, options: &Options) -> Result<Watch, Error> {
        let min_ns = u64::try_from(options.min.as_nanos()).unwrap_or(u64::MAX);
        let spans = if options.timeline == Timeline::Recorded { Spans::Recorded } else { Spans::Summed };
        let calls = match options.calls {
            Calls::Counted => bpf::Calls::Watched,
            Calls::Passed => bpf::Calls::Passed,
        };
        let probe = Probe::load(Settings { min_ns, spans, calls, kernel_stacks: bpf::KERNEL_STACKS })
            .map_err(refused)?;
        let mut watch = Watch::new(probe, held);
        watch.probe.name_objects(&named_calls()).map_err(refused)?;
        pids.iter().try_for_each(|pid| watch.take_in(*pid))?;
        assert!(!watch.processes.is_empty(), "a process is watched");
        watch.counting = runs::Counting::begin();
        watch.start_ns = watch.probe.start().map_err(refused)?;
        watch.seed()?;
        watch.cpu_ns = thread_cpu_ns();
        Ok(watch)
    }

    fn new(probe: Probe, held: Held) -> Watch {
        Watch {
            probe,
            counting: None,
            held,
            start_ns: 0,
            cpu_ns: 0,
            code: Code::default(),
            stacks: UserStacks::default(),
            seeded: HashMap::new(),
            unseeded: Vec::new(),
            spans: Vec::new(),
            spans_cut: false,
            ended: Vec::new(),
            processes: BTreeSet::new(),
            objects: Objects::new(),
            stopped: 0,
        }
    }

    /// One of the target's processes and its descendants, before the probe begins.
    fn take_in(&mut self, pid: Pid) -> Result<(), Error> {
        let tree = proc::tree(pid);
        if tree.is_empty() {
            return Err(Error::Gone { pid });
        }
        // One that descends from another of the target's is there already.
        let new: Vec<Pid> = tree.into_iter().filter(|member| !self.processes.contains(member)).collect();
        for member in new.into_iter().filter(|member| *member != child::this()) {
            self.read_code(member);
            self.probe.watch(member).map_err(refused)?;
            self.processes.insert(member);
        }
        Ok(())
    }

    fn read_code(&mut self, pid: Pid) {
        let ranges = self.code.read(pid);
        if !ranges.is_empty() {
            // Without ranges the probe distinguishes stacks by their leaf only.
            let _ = self.probe.set_code(pid, &ranges);
        }
    }

    /// The probe never sees the beginning of waits that began before it: they are read from /proc.
    fn seed(&mut self) -> Result<(), Error> {
        let threads =
            self.processes.iter().flat_map(|&pid| proc::tasks(pid).into_iter().map(move |tid| (pid, tid)));
        for (pid, tid) in threads.collect::<Vec<_>>() {
            let state = state(pid, tid);
            // Stopped by a signal, or by who traces it.
            let is_stopped = matches!(state, Some('T' | 't'));
            self.stopped += usize::from(is_stopped);
            if !is_stopped && !matches!(state, Some('S' | 'D')) {
                self.unseeded.push((pid, tid, proc::task_run_ns(pid, tid).unwrap_or(0)));
                continue;
            }
            let place = Place::of(pid, tid);
            let shape = SEEDED | u64::from(tid.cast_unsigned());
            let call = place.as_ref().and_then(|place| place.system_call);
            self.probe.seed(tid, pid, shape, call).map_err(refused)?;
            if is_ending(pid, tid) {
                // Its end was before, and nobody would take the row out.
                self.probe.unseed(tid).map_err(refused)?;
            }
            let known = self.seeded.insert(shape, kernel_functions(pid, tid));
            debug_assert!(known.is_none(), "each thread has a shape of its own");
            // A thread of the kernel has no place in user mode.
            if let Some(place) = place.filter(|place| place.ip != 0) {
                self.add_seeded(pid, shape, &place);
            }
        }
        Ok(())
    }

    fn add_seeded(&mut self, pid: Pid, shape: u64, place: &Place) {
        let memory = stack_memory(pid, place.sp);
        let (ip, sp) = (place.ip, place.sp);
        let by_frame_pointers = Vec::new();
        let shape = Shape { id: shape, pid, ip, sp, bp: 0, by_frame_pointers, stack: &memory };
        self.stacks.add(&mut self.code, &shape);
    }

    /// Until the time is up (none), or why it ended before.
    pub(super) fn listen(
        &mut self,
        pids: &[Pid],
        duration: Option<Duration>,
        stop: &AtomicBool,
    ) -> Result<Option<String>, Error> {
        assert!(self.start_ns > 0, "the probe has begun");
        let for_ns = duration.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let end_ns = for_ns.map_or(u64::MAX, |time| self.start_ns.saturating_add(time));
        loop {
            let now = mono_ns();
            if now >= end_ns {
                return Ok(None);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(Some("stopped by the user".to_owned()));
            }
            if self.all_ended(pids) {
                // Without a time to watch for, this is the end that was asked for.
                return Ok(for_ns.map(|_| "the target ended".to_owned()));
            }
            let look = end_ns.min(now.saturating_add(LOOK_NS));
            socket::wait_readable(&self.probe, look).map_err(Error::Wait)?;
            self.take();
        }
    }

    fn all_ended(&mut self, pids: &[Pid]) -> bool {
        if !pids.iter().all(|pid| proc::has_ended(*pid)) {
            return false;
        }
        self.processes.retain(|member| !proc::has_ended(*member));
        self.processes.is_empty()
    }

    /// Takes in what lies in the ring.
    fn take(&mut self) {
        // The probe is borrowed while its ring is read: what calls it again is done afterwards.
        let mut changed = Vec::new();
        let (code, stacks) = (&mut self.code, &mut self.stacks);
        let (spans, ended, objects) = (&mut self.spans, &mut self.ended, &mut self.objects);
        let mut is_full = false;
        self.probe.drain(&mut |event| match event {
            Event::Shape(shape) => stacks.add(code, &shape),
            Event::Span(_) if spans.len() >= SPANS_MAX => is_full = true,
            Event::Span(span) => spans.push(span),
            Event::Exit { thread, name } => ended.push((thread, name)),
            Event::Object { pid, system_call, object } => objects.seen(pid, system_call, object),
            Event::Exec { pid } => changed.push((pid, None)),
            Event::Fork { pid, parent } => changed.push((pid, Some(parent))),
        });
        assert!(self.spans.len() <= SPANS_MAX, "memory for the timeline is bounded");
        if is_full && !self.spans_cut {
            self.spans_cut = true;
            self.probe.stop_spans();
        }
        for (pid, parent) in changed {
            self.change_code(pid, parent);
        }
        for pid in self.code.take_stale() {
            self.read_code(pid);
        }
    }

    /// A process was forked, or runs another program now.
    fn change_code(&mut self, pid: Pid, parent: Option<Pid>) {
        match parent {
            Some(parent) => self.code.inherit(pid, parent),
            None => self.stacks.place(&mut self.code, pid),
        }
        self.processes.insert(pid);
        self.read_code(pid);
    }

    /// Takes the probe out again, and collects everything that was seen.
    pub(super) fn end(mut self, cut_short: Option<String>) -> Result<Seen, Error> {
        let end_ns = self.probe.stop();
        assert!(end_ns >= self.start_ns, "the clock is monotonic");
        let hook_ns = self.hook_ns()?;
        self.take();
        let cpu_ns = thread_cpu_ns() - self.cpu_ns;
        let mut waits = self.probe.waits().map_err(refused)?;
        let threads = self.threads(end_ns, &mut waits)?;
        let wakers = self.probe.wakers().map_err(refused)?;
        let kernel = self.kernel_stacks(&waits, &wakers)?;
        let (calls, counts) = (self.probe.calls().map_err(refused)?, self.probe.counts());
        let Watch { probe, mut code, stacks, seeded, spans, spans_cut, objects, start_ns, .. } = self;
        // Its programs stand in the kernel's stacks, and have names as long as they are there.
        let _named = code.kernel_has_names();
        // From here on only names are looked up: the probe goes first, so that the target is alone again.
        drop(probe);
        let (user, short) = stacks.finish(&mut code);
        let faults = mappings_of_faults(&waits);
        assert!(!spans_cut || spans.len() == SPANS_MAX, "a timeline is cut where it is full");
        Ok(Seen {
            start_ns,
            end_ns,
            cpu_ns,
            hook_ns,
            cut_short,
            code,
            threads,
            waits,
            wakers,
            kernel,
            seeded,
            user,
            short,
            spans,
            spans_cut,
            calls,
            counts,
            objects,
            faults,
            stopped: self.stopped,
        })
    }

    fn hook_ns(&mut self) -> Result<Option<u64>, Error> {
        let counted = self.counting.take().map(|_counting| self.probe.ran());
        Ok(counted.transpose().map_err(refused)?.map(|ran| ran.ns))
    }

    /// All threads with their names; waits that go on get their rows.
    fn threads(&mut self, end_ns: u64, waits: &mut Vec<Wait>) -> Result<Vec<(Thread, String)>, Error> {
        let mut threads = std::mem::take(&mut self.ended);
        for thread in self.probe.threads().map_err(refused)? {
            let name = name_or_of_process(thread.pid, thread.tid);
            threads.push((closed(thread, end_ns, waits), name));
        }
        threads.extend(without_events(&self.unseeded, &threads, (self.start_ns, end_ns), waits));
        if self.held == Held::Yes {
            forget_holding(&self.seeded, &mut threads, waits);
        }
        assert!(threads.iter().all(|(thread, _)| thread.open.is_empty()), "no stretch is left uncounted");
        Ok(threads)
    }

    /// Every kernel stack that a row names.
    fn kernel_stacks(&self, waits: &[Wait], wakers: &[Waker]) -> Result<HashMap<i32, Vec<Raw>>, Error> {
        let mut ids: BTreeSet<i32> = waits.iter().filter_map(|wait| wait.kernel_stack).collect();
        ids.extend(wakers.iter().filter_map(|waker| waker.kernel_stack));
        ids.extend(self.spans.iter().filter_map(|span| span.kernel_stack));
        let read = |id| {
            let stack = self.probe.kernel_stack(id).map_err(refused)?;
            Ok((id, stack.into_iter().map(Raw::Kernel).collect()))
        };
        ids.into_iter().map(read).collect()
    }
}

fn mappings_of_faults(waits: &[Wait]) -> HashMap<Pid, Mappings> {
    let faulted: BTreeSet<Pid> =
        waits.iter().filter(|wait| wait.fault.is_some()).map(|wait| wait.pid).collect();
    faulted.into_iter().map(|pid| (pid, Mappings::of(pid))).collect()
}

/// The time for which a child was held is no wait of its program.
fn forget_holding(seeded: &HashMap<u64, Vec<Raw>>, threads: &mut [(Thread, String)], waits: &mut Vec<Wait>) {
    let of_holding = |wait: &mut Wait| wait.shape.is_some_and(|shape| seeded.contains_key(&shape));
    let held: Vec<Wait> = waits.extract_if(.., of_holding).collect();
    for (thread, _) in threads {
        let of_it = held.iter().filter(|wait| wait.tid == thread.tid && wait.part == Part::Wait);
        let ns: u64 = of_it.map(|wait| wait.ns).sum();
        thread.waiting_ns = thread.waiting_ns.saturating_sub(ns);
    }
    debug_assert!(!waits.iter_mut().any(of_holding), "no wait of the holding is left");
}

/// A thread with the stretches that it was in the middle of; waits among them get their rows.
fn closed(mut thread: Thread, end_ns: u64, waits: &mut Vec<Wait>) -> Thread {
    for Open { state, since_ns, until_ns, wait } in std::mem::take(&mut thread.open) {
        let ns = until_ns.unwrap_or(end_ns).saturating_sub(since_ns);
        match state {
            State::Running => thread.running_ns += ns,
            State::Runnable => thread.runnable_ns += ns,
            State::Blocked => thread.waiting_ns += ns,
        }
        if state != State::Running && ns > 0 {
            waits.push(Wait { ns, max_ns: ns, ..wait });
        }
    }
    thread
}

/// One that ended untold has no name any more: it is called as its process is.
fn name_or_of_process(pid: Pid, tid: Tid) -> String {
    let own = name(pid, tid);
    if own.is_empty() { name(pid, pid) } else { own }
}

/// Threads without an event of the scheduler, of those that were there when the watch began: they had a CPU all the time, or stood
/// in line for one. One that came since has a row, or came after the end.
fn without_events(
    unseeded: &[(Pid, Tid, u64)],
    known: &[(Thread, String)],
    (start_ns, end_ns): (u64, u64),
    waits: &mut Vec<Wait>,
) -> Vec<(Thread, String)> {
    assert!(start_ns <= end_ns, "the clock is monotonic");
    let known: BTreeSet<Tid> = known.iter().map(|(thread, _)| thread.tid).collect();
    let unknown = unseeded
        .iter()
        .copied()
        .filter(|(pid, tid, _)| !known.contains(tid) && state(*pid, *tid) == Some('R'));
    unknown
        .map(|(pid, tid, run_ns)| {
            let ran_ns = proc::task_run_ns(pid, tid).unwrap_or(0).saturating_sub(run_ns);
            let thread = all_the_time((pid, tid), end_ns - start_ns, ran_ns);
            waits.extend((thread.runnable_ns > 0).then(|| in_line(&thread)));
            (thread, name(pid, tid))
        })
        .collect()
}

/// A thread that did one thing for so long: no switch came between. What it ran is counted up to a tick before.
fn all_the_time((pid, tid): (Pid, Tid), all_ns: u64, ran_ns: u64) -> Thread {
    let (running_ns, runnable_ns) = if ran_ns >= all_ns / 2 { (all_ns, 0) } else { (0, all_ns) };
    Thread { tid, pid, running_ns, runnable_ns, waiting_ns: 0, open: Vec::new() }
}

/// Its row: what it was about to do is not seen.
fn in_line(thread: &Thread) -> Wait {
    Wait {
        tid: thread.tid,
        pid: thread.pid,
        part: Part::Queue,
        shape: None,
        kernel_stack: None,
        system_call: None,
        object: None,
        waker: None,
        fault: None,
        ns: thread.runnable_ns,
        count: 1,
        max_ns: thread.runnable_ns,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn wait(part: Part) -> Wait {
        Wait { part, ..in_line(&of(Vec::new())) }
    }

    fn of(open: Vec<Open>) -> Thread {
        Thread { tid: 1, pid: 1, running_ns: 5, runnable_ns: 0, waiting_ns: 10, open }
    }

    #[test]
    fn a_wait_that_outlasts_the_recording_counts_up_to_its_end() {
        let wait = wait(Part::Wait);
        let open = vec![Open { state: State::Blocked, since_ns: 70, until_ns: None, wait }];
        let mut waits = Vec::new();
        let thread = closed(of(open), 100, &mut waits);
        assert_eq!((thread.waiting_ns, waits[0].ns, waits[0].count), (40, 30, 1));
    }

    /// Fault: whoever is ready and has no event had a CPU.
    #[test]
    fn a_thread_that_never_got_a_cpu_stood_in_line_for_one() {
        let times = |ran_ns| {
            let thread = all_the_time((1, 2), 2_000_000_000, ran_ns);
            (thread.running_ns, thread.runnable_ns)
        };
        assert_eq!([times(1_990_000_000), times(0)], [(2_000_000_000, 0), (0, 2_000_000_000)]);
        let row = in_line(&all_the_time((1, 2), 2_000_000_000, 0));
        assert_eq!((row.part, row.ns, row.tid), (Part::Queue, 2_000_000_000, 2));
    }

    /// Fault: `closed` that takes the last stretch alone.
    #[test]
    fn a_thread_that_was_woken_and_has_no_cpu_yet_has_both_rows() {
        let (waited, queued) = (wait(Part::Wait), wait(Part::Queue));
        let open = vec![
            Open { state: State::Blocked, since_ns: 20, until_ns: Some(90), wait: waited },
            Open { state: State::Runnable, since_ns: 90, until_ns: None, wait: queued },
        ];
        let mut waits = Vec::new();
        let thread = closed(of(open), 100, &mut waits);
        assert_eq!((thread.waiting_ns, thread.runnable_ns), (80, 10));
        let rows: Vec<(Part, u64)> = waits.iter().map(|wait| (wait.part, wait.ns)).collect();
        assert_eq!(rows, [(Part::Wait, 70), (Part::Queue, 10)]);
    }
}

//! Samples, each with its stack of addresses, added up; at the end named, and written as the tables of a record.
//!
//! Stacks are counted by their addresses while the target is watched: names cost time, and are found once per address.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use dyno_record::profile::slices::{self, Axis};
use dyno_record::profile::{CUT, InSlice, Thread};
use dyno_sys::{Pid, Tid};

use super::names::{Named, Names};
use super::raw::Raw;
use super::rows::{self, First, KernelFrames, Rows, Ties, Written};
use super::table::Table;
use super::wait::{Off, cause, is_scheduler, without_switch};
use crate::image::spaces::AddressSpaces;
use crate::unwind::{Cut, Ended, Walked, within_call};

/// Functions that a thread begins with: a stack that reaches one is whole, whatever the tables say.
const ROOTS: [&str; 13] = [
    "main",
    "_start",
    "start_thread",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "__libc_start_main",
    "__libc_start_call_main",
    "runtime.goexit",
    "runtime.mcall",
    "runtime.mstart",
    "runtime.morestack",
];

/// Go's assembly functions, by the beginnings of their names: they stand at the root of a thread of the runtime.
const ROOT_BEGINNINGS: [&str; 5] =
    ["runtime.goexit.", "runtime.rt0_go", "runtime.mstart", "runtime.morestack", "_rt0_"];

/// Equal keys are one stack.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    thread: u32,
    /// Leaf first; numbers of raw frames.
    kernel: Vec<u32>,
    user: Vec<u32>,
    ended: Ended,
    off: Option<Off>,
}

impl Key {
    /// The same stack, of a thread that is not on a CPU.
    pub(crate) fn off(self, off: Off) -> Key {
        Key { off: Some(off), ..self }
    }
}

/// One sample's stack.
#[derive(Debug)]
pub(crate) struct Taken<'s> {
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    /// Leaf first, return addresses but for the first.
    pub(crate) kernel: &'s [u64],
    /// `None` for a thread of the kernel.
    pub(crate) user: Option<&'s Walked>,
}

/// What is counted of one stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Count {
    samples: u64,
    weight: u64,
    /// When they fell, where that is asked for.
    slices: Vec<InSlice>,
}

/// All samples so far. Keys have numbers of rows that are there; a stack that is counted has at least one sample; all
/// slices have the length of the axis.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    raw: Table<Raw>,
    threads: Table<(Pid, Tid)>,
    stacks: HashMap<Key, Count>,
    axis: Option<Axis>,
}

/// The parts of a profile that come from samples.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    pub(crate) threads: Vec<Thread>,
    pub(crate) written: Written,
    pub(crate) samples: u64,
    pub(crate) truncated: u64,
    /// Why they were, each with its samples.
    pub(crate) cuts: BTreeMap<Cut, u64>,
    /// How long a slice of the time axis is, where there is one.
    pub(crate) slice_ns: Option<u64>,
}

impl Folder {
    /// A thread's row, from now on.
    pub(crate) fn thread(&mut self, pid: Pid, tid: Tid) -> u32 {
        self.threads.number((pid, tid))
    }

    /// From this moment on it is kept when samples fall.
    pub(crate) fn begin(&mut self, begun_ns: u64) {
        assert!(self.stacks.is_empty(), "an axis begins before its samples");
        self.axis = Some(Axis::new(begun_ns));
    }

    /// Adds a sample, or a wait.
    pub(crate) fn count(&mut self, key: Key, weight: u64) {
        self.add(key, weight);
    }

    /// Adds a sample that fell at this moment.
    pub(crate) fn count_at(&mut self, key: Key, weight: u64, at_ns: u64) {
        let all = self.stacks.values_mut().map(|count| &mut count.slices);
        let slice = self.axis.as_mut().map(|axis| axis.slice(at_ns, all));
        let count = self.add(key, weight);
        if let Some(slice) = slice {
            slices::count(&mut count.slices, slice, 1);
        }
    }

    fn add(&mut self, key: Key, weight: u64) -> &mut Count {
        debug_assert!((key.thread as usize) < self.threads.rows().len(), "a stack is of a thread with a row");
        let count = self.stacks.entry(key).or_default();
        count.samples += 1;
        count.weight += weight;
        debug_assert!(count.samples > 0 && count.weight >= weight, "sums do not wrap");
        count
    }

    /// What a sample's stack is counted under.
    pub(crate) fn key(&mut self, spaces: &mut AddressSpaces, taken: &Taken<'_>) -> Key {
        let thread = self.thread(taken.pid, taken.tid);
        let kernel = taken.kernel.iter().enumerate().map(within_call).map(Raw::Kernel);
        let kernel: Vec<u32> = kernel.map(|raw| self.raw.number(raw)).collect();
        let addresses = taken.user.iter().flat_map(|walked| &walked.addresses);
        let user = addresses.map(|address| Raw::place(spaces, taken.pid, *address));
        let user: Vec<u32> = user.map(|raw| self.raw.number(raw)).collect();
        let ended = taken.user.map_or(Ended::AtRoot, |walked| walked.ended);
        assert_eq!(kernel.len(), taken.kernel.len(), "no frame of the kernel is lost");
        assert_eq!(user.len(), taken.user.map_or(0, |walked| walked.addresses.len()), "nor one of the user");
        Key { thread, kernel, user, ended, off: None }
    }

    /// Names everything. `weight_ns` is what one unit of weight is worth.
    pub(crate) fn finish(
        self,
        spaces: &AddressSpaces,
        names: &mut Names,
        thread_name: impl Fn(Pid, Tid) -> String,
        weight_ns: f64,
    ) -> Folded {
        let slice_ns = self.axis.as_ref().map(Axis::slice_ns);
        let mut naming = Naming::new(&self.raw, Rows::new(spaces.images(), names, KernelFrames::ByAddress));
        let thread = |(pid, tid): &(Pid, Tid)| Thread {
            pid: pid.cast_unsigned(),
            tid: tid.cast_unsigned(),
            name: thread_name(*pid, *tid),
        };
        let threads = self.threads.rows().iter().map(thread).collect();
        let (mut samples, mut cuts) = (0, BTreeMap::new());
        for (key, count) in &self.stacks {
            let cut = naming.cut(key);
            samples += count.samples;
            cut.into_iter().for_each(|cut| *cuts.entry(cut).or_default() += count.samples);
            let row = naming.row(key, cut.is_some());
            let row = naming.rows.add(row, count.samples, (count.weight as f64 * weight_ns).round() as u64);
            for (slice, samples) in &count.slices {
                slices::count(&mut row.slices, *slice, *samples);
            }
        }
        let truncated = cuts.values().sum();
        assert!(truncated <= samples, "what is cut was counted");
        let written = naming.rows.finish(Ties::ByThread);
        let all: u64 = written.stacks.iter().map(|stack| stack.samples).sum();
        assert_eq!(all, samples, "no sample is lost, none counted twice");
        Folded { threads, written, samples, truncated, cuts, slice_ns }
    }
}

/// Raw frames with their names, by number.
struct Naming<'n> {
    rows: Rows<'n>,
    named: Vec<Rc<Named>>,
    /// Frames of the record, the outermost first.
    frames: Vec<Vec<u32>>,
}

impl<'n> Naming<'n> {
    fn new(raw: &Table<Raw>, mut rows: Rows<'n>) -> Naming<'n> {
        let named = raw.rows().iter().map(|raw| rows.name(raw)).collect();
        let frames = raw.rows().iter().map(|raw| rows.frames(raw, First::Outermost)).collect();
        let naming = Naming { rows, named, frames };
        assert_eq!(naming.named.len(), naming.frames.len(), "what has a name has its frames");
        naming
    }

    /// Why a stack's root was not reached, where it was not.
    fn cut(&self, key: &Key) -> Option<Cut> {
        let Ended::Cut(cut) = key.ended else { return None };
        let outermost = key.user.last().and_then(|raw| self.named[*raw as usize].functions.last());
        (!outermost.is_some_and(|function| is_root(&function.name))).then_some(cut)
    }

    /// A stack as the record has it.
    fn row(&mut self, key: &Key, cut: bool) -> rows::Key {
        let kernel = self.kernel_side(key);
        let functions = kernel.iter().flat_map(|raw| &self.named[*raw as usize].functions);
        let names: Vec<&str> = functions.map(|function| function.name.as_str()).collect();
        let wait = key.off.map(|off| cause(off, &names));
        let root = cut.then(|| self.rows.mark(CUT));
        let from_root = key.user.iter().rev().chain(kernel.iter().rev());
        let frames = from_root.flat_map(|raw| &self.frames[*raw as usize]).copied();
        let frames: Vec<u32> = root.into_iter().chain(frames).collect();
        debug_assert!(
            frames.len() >= key.user.len() + kernel.len(),
            "a raw frame is one of the record, or several"
        );
        rows::Key { frames, thread: key.thread, wait, waker: None }
    }

    /// The kernel's part of a stack, leaf first; off the CPU without the functions that leave it.
    fn kernel_side<'k>(&self, key: &'k Key) -> &'k [u32] {
        match key.off {
            Some(_) => without_switch(&key.kernel, |raw| self.named[*raw as usize].all(is_scheduler)),
            None => &key.kernel,
        }
    }
}

fn is_root(name: &str) -> bool {
    ROOTS.contains(&name) || ROOT_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::profile::Origin;
    use dyno_sys::perf::Mmap;

    fn walked(addresses: &[u64], ended: Ended) -> Walked {
        Walked { addresses: addresses.to_vec(), ended }
    }

    fn fold(stacks: &[(&[u64], Option<&Walked>)]) -> Folded {
        let (mut folder, mut spaces) = (Folder::default(), AddressSpaces::new());
        spaces.exec(7);
        let (start, length, path) = (0, 0x1000, b"//anon".as_slice());
        spaces.mmap(&Mmap { pid: 7, time_ns: 0, start, length, offset: 0, inode: 0, path });
        for (kernel, user) in stacks {
            let key = folder.key(&mut spaces, &Taken { pid: 7, tid: 8, kernel, user: *user });
            folder.count(key, 2);
        }
        folder.finish(&spaces, &mut Names::default(), |_, tid| format!("thread {tid}"), 1.5)
    }

    #[test]
    fn equal_stacks_are_one_and_their_weights_add_up() {
        let (a, b) = (walked(&[0x10, 0x20], Ended::AtRoot), walked(&[0x11, 0x20], Ended::AtRoot));
        let folded = fold(&[(&[], Some(&a)), (&[], Some(&b)), (&[], Some(&a))]);
        assert_eq!((folded.samples, folded.truncated, folded.written.stacks.len()), (3, 0, 2));
        assert_eq!((folded.written.stacks[0].samples, folded.written.stacks[0].weight_ns), (2, 6));
        let names: Vec<&str> = folded.written.stacks[0]
            .frames
            .iter()
            .map(|at| folded.written.frames[*at as usize].name.as_str())
            .collect();
        assert_eq!(names, ["0x20", "0x10"], "from the root to the leaf");
        assert_eq!(folded.threads, [Thread { pid: 7, tid: 8, name: "thread 8".to_owned() }]);
    }

    #[test]
    fn a_stack_without_its_root_is_counted_and_marked() {
        let cut = walked(&[0x10], Ended::Cut(Cut::CopyEnded));
        let folded = fold(&[(&[], Some(&cut)), (&[0x9999], None)]);
        assert_eq!(folded.cuts, BTreeMap::from([(Cut::CopyEnded, 1)]));
        assert_eq!((folded.samples, folded.truncated), (2, 1), "a thread of the kernel has no user's root");
        let marks = folded.written.frames.iter().filter(|frame| frame.origin == Origin::Mark).count();
        assert_eq!(marks, 1);
    }

    #[test]
    fn the_roots_of_go_are_known_with_their_suffixes() {
        assert!(
            ["main", "runtime.goexit.abi0", "runtime.morestack_noctxt.abi0", "clone3"]
                .iter()
                .all(|n| is_root(n))
        );
        assert!(!is_root("main.main") && !is_root("mainly"));
    }
}

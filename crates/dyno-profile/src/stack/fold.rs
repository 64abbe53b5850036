//! Samples, each with its stack of addresses, added up; at the end named, and written as the record of a profile.
//!
//! Stacks are counted by their addresses while the target is watched: names cost time, and are found once per address.

use std::collections::HashMap;
use std::hash::Hash;

use dyno_measure::profile::{Frame, Module, Origin, Stack, Thread, Wait, WaitClass};
use dyno_sys::{Pid, Tid};

use crate::image::spaces::{AddressSpaces, Place};
use crate::image::{ImageId, Images, UnwoundBy};
use crate::stack::wait::{class, is_scheduler};
use crate::symbol::{Function, Symbols};
use crate::unwind::{Ended, Walked};

/// What stands under a stack whose root was not found.
const CUT: &str = "[stack ends here]";

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

/// How the kernel's functions of system calls begin.
const CALLS: [&str; 2] = ["__x64_sys_", "__arm64_sys_"];

/// One frame before it has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Raw {
    Kernel(u64),
    User(Place),
    Nowhere(u64),
}

/// Equal keys are one stack.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    thread: u32,
    /// Leaf first; indices into the table of raw frames.
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

/// Why a thread is off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Off {
    /// It could run.
    Runnable,
    /// It waits.
    Waiting,
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

/// Values that have numbers, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Table<T> {
    rows: Vec<T>,
    known: HashMap<T, u32>,
}

/// All samples so far.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    raw: Table<Raw>,
    threads: Table<(Pid, Tid)>,
    stacks: HashMap<Key, (u64, u64)>,
}

/// The parts of a profile that samples tell.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    pub(crate) threads: Vec<Thread>,
    pub(crate) modules: Vec<Module>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) stacks: Vec<Stack>,
    pub(crate) samples: u64,
    pub(crate) truncated: u64,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { rows: Vec::new(), known: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn number(&mut self, value: T) -> u32 {
        let next = self.rows.len() as u32;
        *self.known.entry(value).or_insert_with_key(|value| {
            self.rows.push(value.clone());
            next
        })
    }
}

impl Folder {
    /// A thread's row, from now on.
    pub(crate) fn thread(&mut self, pid: Pid, tid: Tid) -> u32 {
        self.threads.number((pid, tid))
    }

    /// Adds a sample.
    pub(crate) fn count(&mut self, key: Key, weight: u64) {
        let (samples, sum) = self.stacks.entry(key).or_default();
        *samples += 1;
        *sum += weight;
    }

    /// What a sample's stack is counted under.
    pub(crate) fn key(&mut self, spaces: &mut AddressSpaces, taken: &Taken<'_>) -> Key {
        let thread = self.thread(taken.pid, taken.tid);
        let lookup =
            |(at, address): (usize, &u64)| if at == 0 { *address } else { address.saturating_sub(1) };
        let kernel = taken.kernel.iter().enumerate().map(lookup).map(Raw::Kernel);
        let kernel = kernel.map(|raw| self.raw.number(raw)).collect();
        let mut user = Vec::new();
        for address in taken.user.iter().flat_map(|walked| &walked.addresses) {
            let raw = spaces.locate(taken.pid, *address).map_or(Raw::Nowhere(*address), Raw::User);
            user.push(self.raw.number(raw));
        }
        let ended = taken.user.map_or(Ended::AtRoot, |walked| walked.ended);
        Key { thread, kernel, user, ended, off: None }
    }

    /// Names everything. `weight_ns` is what one unit of weight is worth.
    pub(crate) fn finish(
        self,
        spaces: &AddressSpaces,
        symbols: &mut Symbols,
        thread_name: impl Fn(Pid, Tid) -> String,
        weight_ns: f64,
    ) -> Folded {
        let mut naming = Naming::new(spaces.images(), symbols);
        let named: Vec<Vec<u32>> = self.raw.rows.iter().map(|raw| naming.frames(*raw)).collect();
        let thread = |(pid, tid): &(Pid, Tid)| Thread {
            pid: pid.cast_unsigned(),
            tid: tid.cast_unsigned(),
            name: thread_name(*pid, *tid),
        };
        let mut folded =
            Folded { threads: self.threads.rows.iter().map(thread).collect(), ..Folded::default() };
        for (key, (samples, weight)) in &self.stacks {
            let cut = naming.is_cut(key, &named);
            let root = cut.then(|| naming.mark());
            let of = |numbers: &[u32]| -> Vec<u32> {
                numbers.iter().rev().flat_map(|number| named[*number as usize].iter().copied()).collect()
            };
            let kernel = naming.kernel_side(key, &named);
            let frames = root.into_iter().chain(of(&key.user)).chain(of(kernel)).collect();
            let weight_ns = (*weight as f64 * weight_ns).round() as u64;
            folded.samples += samples;
            folded.truncated += if cut { *samples } else { 0 };
            folded.stacks.push(Stack {
                frames,
                thread: key.thread,
                samples: *samples,
                weight_ns,
                wait: key.off.map(|off| naming.cause(off, kernel, &named)),
                ..Stack::default()
            });
        }
        // A hash map has no order: the heaviest first, then by what they are, so that a record reads the same.
        folded
            .stacks
            .sort_by(|a, b| (b.weight_ns, a.thread, &a.frames).cmp(&(a.weight_ns, b.thread, &b.frames)));
        folded.modules = naming.modules.rows.iter().map(|module| naming.module(module)).collect();
        folded.frames = naming.frames.rows;
        folded
    }
}

/// Which module a frame lies in, before it is described.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Home {
    File(ImageId),
    Kernel(String),
}

struct Naming<'n> {
    images: &'n Images,
    symbols: &'n mut Symbols,
    frames: Table<Frame>,
    modules: Table<Home>,
    described: HashMap<ImageId, bool>,
}

impl<'n> Naming<'n> {
    fn new(images: &'n Images, symbols: &'n mut Symbols) -> Naming<'n> {
        let (frames, modules) = (Table::default(), Table::default());
        Naming { images, symbols, frames, modules, described: HashMap::new() }
    }

    /// A raw frame's functions, from the outermost to the innermost.
    fn frames(&mut self, raw: Raw) -> Vec<u32> {
        let (functions, home, address, origin) = match raw {
            Raw::Kernel(address) => {
                let (function, module) = self.symbols.kernel(address);
                (vec![function], Some(Home::Kernel(module)), address, Origin::Kernel)
            }
            Raw::User(place) => {
                let functions = self.symbols.functions(self.images, place);
                let names = self.symbols.has_names(self.images, place.image);
                self.described.insert(place.image, names);
                (functions, Some(Home::File(place.image)), place.address, Origin::User)
            }
            Raw::Nowhere(address) => {
                let function = Function { name: format!("{address:#x}"), ..Function::default() };
                (vec![function], None, address, Origin::User)
            }
        };
        let module = home.map(|home| self.modules.number(home));
        let frame = |function: Function| Frame {
            name: function.name,
            module,
            origin,
            file: function.file,
            line: function.line,
            inlined: function.inlined,
            address,
        };
        functions.into_iter().rev().map(|function| self.frames.number(frame(function))).collect()
    }

    /// Whether a stack's root was not reached.
    fn is_cut(&self, key: &Key, named: &[Vec<u32>]) -> bool {
        let outermost = key.user.last().and_then(|raw| named[*raw as usize].first());
        let name = outermost.map(|frame| self.frames.rows[*frame as usize].name.as_str());
        key.ended == Ended::Cut && !name.is_some_and(is_root)
    }

    /// The kernel's part of a stack, leaf first; off the CPU without the functions that leave it.
    fn kernel_side<'k>(&self, key: &'k Key, named: &[Vec<u32>]) -> &'k [u32] {
        let leaves = |raw: &&u32| self.names(**raw, named).all(is_scheduler);
        let inner = if key.off.is_some() { key.kernel.iter().take_while(leaves).count() } else { 0 };
        &key.kernel[inner..]
    }

    fn names(&self, raw: u32, named: &[Vec<u32>]) -> impl Iterator<Item = &str> {
        let frames: Vec<u32> = named[raw as usize].clone();
        frames.into_iter().map(|frame| self.frames.rows[frame as usize].name.as_str())
    }

    /// What a thread waits for, as far as the kernel's functions tell.
    fn cause(&self, off: Off, kernel: &[u32], named: &[Vec<u32>]) -> Wait {
        let names: Vec<&str> = kernel.iter().flat_map(|raw| self.names(*raw, named)).collect();
        let call = names.iter().find_map(|name| CALLS.iter().find_map(|begin| name.strip_prefix(begin)));
        let class = match off {
            Off::Runnable => WaitClass::RunQueue,
            Off::Waiting => class(call, &names, None),
        };
        Wait { class, system_call: call.map(str::to_owned), object: None }
    }

    fn mark(&mut self) -> u32 {
        self.frames.number(Frame { name: CUT.to_owned(), origin: Origin::Mark, ..Frame::default() })
    }

    fn module(&self, home: &Home) -> Module {
        match home {
            Home::Kernel(path) => Module { path: path.clone(), symbols: true, ..Module::default() },
            Home::File(id) => {
                let image = self.images.get(*id);
                let unwound_by = match image.unwound_by() {
                    UnwoundBy::Dwarf => "dwarf",
                    UnwoundBy::FramePointers => "fp",
                };
                Module {
                    path: image.path().to_owned(),
                    build_id: image.build_id(),
                    unwound_by: unwound_by.to_owned(),
                    symbols: self.described.get(id).copied().unwrap_or(false),
                }
            }
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

    fn walked(addresses: &[u64], ended: Ended) -> Walked {
        Walked { addresses: addresses.to_vec(), ended }
    }

    fn fold(stacks: &[(&[u64], Option<&Walked>)]) -> Folded {
        let (mut folder, mut spaces) = (Folder::default(), AddressSpaces::new());
        spaces.exec(7);
        for (kernel, user) in stacks {
            let key = folder.key(&mut spaces, &Taken { pid: 7, tid: 8, kernel, user: *user });
            folder.count(key, 2);
        }
        folder.finish(&spaces, &mut Symbols::new(), |_, tid| format!("thread {tid}"), 1.5)
    }

    #[test]
    fn equal_stacks_are_one_and_their_weights_add_up() {
        let (a, b) = (walked(&[0x10, 0x20], Ended::AtRoot), walked(&[0x11, 0x20], Ended::AtRoot));
        let folded = fold(&[(&[], Some(&a)), (&[], Some(&b)), (&[], Some(&a))]);
        assert_eq!((folded.samples, folded.truncated, folded.stacks.len()), (3, 0, 2));
        assert_eq!((folded.stacks[0].samples, folded.stacks[0].weight_ns), (2, 6));
        let names: Vec<&str> =
            folded.stacks[0].frames.iter().map(|at| folded.frames[*at as usize].name.as_str()).collect();
        assert_eq!(names, ["0x20", "0x10"], "from the root to the leaf");
        assert_eq!(folded.threads, [Thread { pid: 7, tid: 8, name: "thread 8".to_owned() }]);
    }

    #[test]
    fn a_stack_without_its_root_is_counted_and_marked() {
        let cut = walked(&[0x10], Ended::Cut);
        let folded = fold(&[(&[], Some(&cut)), (&[0x9999], None)]);
        assert_eq!((folded.samples, folded.truncated), (2, 1), "a thread of the kernel has no user's root");
        let marks = folded.frames.iter().filter(|frame| frame.origin == Origin::Mark).count();
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

//! The tables of a record in the making: modules, frames and stacks, each row once.
//!
//! Samples and waits are both written down by it; they differ in what is one frame of the kernel, and in how rows of one
//! weight stand.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use dyno_record::profile::{Frame, Module, Origin, Stack, Wait};

use super::names::{KERNEL, ModuleKey, Named, Names};
use super::raw::Raw;
use super::table::Table;
use crate::image::Images;

/// What is one frame of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelFrames {
    /// An address: samples say where in a function the time goes.
    ByAddress,
    /// A function, wherever in it a thread waited: the address is of the first that came. Loadable modules are not
    /// distinguished.
    ByFunction,
}

/// Which of the functions of one place has the first number, and stands first in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// The one that the others were folded into.
    Outermost,
    /// The one that holds the instruction.
    Innermost,
}

/// How rows of one weight stand: a record reads the same however its stacks came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    /// By thread, then by stack.
    ByThread,
    /// By stack, then by thread.
    ByStack,
}

/// Equal keys are one stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// From the root to the leaf.
    pub(crate) frames: Vec<u32>,
    pub(crate) thread: u32,
    /// What was waited for; none on the CPU.
    pub(crate) wait: Option<Wait>,
    /// Who ended the wait.
    pub(crate) waker: Option<u32>,
}

/// Tables that grow.
pub(crate) struct Rows<'r> {
    images: &'r Images,
    names: &'r mut Names,
    kernel: KernelFrames,
    modules: Table<ModuleKey>,
    frames: Table<Frame>,
    stacks: HashMap<Key, Stack>,
}

/// What became of them.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) modules: Vec<Module>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) stacks: Vec<Stack>,
}

impl<'r> Rows<'r> {
    pub(crate) fn new(images: &'r Images, names: &'r mut Names, kernel: KernelFrames) -> Rows<'r> {
        let (modules, frames) = (Table::default(), Table::default());
        Rows { images, names, kernel, modules, frames, stacks: HashMap::new() }
    }

    /// What a raw frame is called.
    pub(crate) fn name(&mut self, raw: &Raw) -> Rc<Named> {
        self.names.name(self.images, raw)
    }

    /// The frames of a raw one.
    pub(crate) fn frames(&mut self, raw: &Raw, first: First) -> Vec<u32> {
        let named = self.name(raw);
        let module = named.module.as_ref().map(|module| self.module(module));
        let innermost_first = named.frames(module);
        let frames: Vec<Frame> = match first {
            First::Innermost => innermost_first.collect(),
            First::Outermost => innermost_first.rev().collect(),
        };
        let numbers: Vec<u32> = frames.into_iter().map(|frame| self.frame(frame)).collect();
        assert!(!numbers.is_empty(), "an address has a name, were it its own");
        numbers
    }

    /// A frame that stands for something else than code.
    pub(crate) fn mark(&mut self, name: &str) -> u32 {
        self.frames.number(Frame { name: name.to_owned(), origin: Origin::Mark, ..Frame::default() })
    }

    fn module(&mut self, module: &ModuleKey) -> u32 {
        self.modules.number(match (module, self.kernel) {
            (ModuleKey::Kernel(_), KernelFrames::ByFunction) => ModuleKey::Kernel(KERNEL.to_owned()),
            (module, _) => module.clone(),
        })
    }

    fn frame(&mut self, frame: Frame) -> u32 {
        if frame.origin != Origin::Kernel || self.kernel == KernelFrames::ByAddress {
            return self.frames.number(frame);
        }
        let address = frame.address;
        let number = self.frames.number(Frame { address: 0, ..frame });
        let row = self.frames.row_mut(number);
        if row.address == 0 {
            row.address = address;
        }
        number
    }

    /// Adds to a stack; its row, for what else is to be added.
    pub(crate) fn add(&mut self, key: Key, samples: u64, weight_ns: u64) -> &mut Stack {
        debug_assert!(
            key.frames.iter().all(|frame| (*frame as usize) < self.frames.rows().len()),
            "a stack has frames of this record"
        );
        let row = match self.stacks.entry(key) {
            Entry::Occupied(row) => row.into_mut(),
            Entry::Vacant(row) => {
                let Key { frames, thread, wait, waker } = row.key().clone();
                row.insert(Stack { frames, thread, wait, waker, ..Stack::default() })
            }
        };
        row.samples += samples;
        row.weight_ns += weight_ns;
        row
    }

    /// Describes modules, and puts the heaviest stack first.
    pub(crate) fn finish(self, ties: Ties) -> Written {
        let mut stacks: Vec<Stack> = self.stacks.into_values().collect();
        stacks.sort_by(|a, b| {
            let by_weight = b.weight_ns.cmp(&a.weight_ns);
            let by_place = match ties {
                Ties::ByThread => (a.thread, &a.frames).cmp(&(b.thread, &b.frames)),
                Ties::ByStack => (&a.frames, a.thread).cmp(&(&b.frames, b.thread)),
            };
            by_weight.then(by_place).then_with(|| (&a.wait, a.waker).cmp(&(&b.wait, b.waker)))
        });
        let (images, names) = (self.images, self.names);
        // Of the kernel's own names only those of waits say whether there are any: samples name each address.
        let has_names = self.kernel == KernelFrames::ByAddress || names.symbols().kernel_has_names();
        let module = |key: &ModuleKey| match key {
            ModuleKey::File(id) => names.file(images, *id),
            ModuleKey::Kernel(path) => Module { path: path.clone(), symbols: has_names, ..Module::default() },
        };
        let modules: Vec<Module> = self.modules.rows().iter().map(module).collect();
        let frames = self.frames.into_rows();
        debug_assert!(
            frames.iter().all(|frame| frame.module.is_none_or(|at| (at as usize) < modules.len())),
            "a frame lies in a module of this record"
        );
        Written { modules, frames, stacks }
    }
}

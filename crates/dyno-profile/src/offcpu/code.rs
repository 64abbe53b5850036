//! User code of the processes that are watched: where it lies, how a copied stack unwinds, what an address is called.
//!
//! The watch calls it: for ranges before it begins, for each stack as it comes, for names when a process changes its code
//! and at the end.

use dyno_sys::Pid;
use dyno_sys::bpf::offcpu::Shape;
use dyno_sys::perf::UserRegs;
use dyno_sys::proc;

use crate::image::spaces::AddressSpaces;
use crate::stack::names::Names;
use crate::stack::raw::Raw;
use crate::stack::rows::{KernelFrames, Rows};
use crate::unwind::{Unwinder, Walked};

/// The code of all processes that are watched.
#[derive(Default)]
pub(super) struct Code {
    spaces: AddressSpaces,
    unwinder: Unwinder,
    names: Names,
    /// Processes with code that was not there when they were read: a library that was loaded since.
    stale: Vec<Pid>,
}

impl Code {
    /// Code that the test knows.
    #[cfg(test)]
    pub(super) fn of(spaces: AddressSpaces, names: Names) -> Code {
        Code { spaces, names, ..Code::default() }
    }

    /// Reads where the code of `pid` lies now: its ranges. None when it cannot be read (any more): what was known then
    /// stays.
    pub(super) fn read(&mut self, pid: Pid) -> Vec<(u64, u64)> {
        let mappings = proc::mappings(pid).unwrap_or_default();
        // Nothing is called from the kernel's own page, which lies beyond the stack: with it the stack would lie between
        // ranges, and each of its words be looked at.
        let code = mappings.iter().filter(|mapping| mapping.executable && mapping.path != "[vdso]");
        let ranges: Vec<(u64, u64)> = code.map(|mapping| (mapping.start, mapping.end)).collect();
        if !ranges.is_empty() {
            self.spaces.exit(pid);
            self.spaces.read(pid);
        }
        ranges
    }

    /// `child` was forked from `parent` and has its code.
    pub(super) fn inherit(&mut self, child: Pid, parent: Pid) {
        self.spaces.fork(child, parent);
    }

    /// Unwinds a copied stack, from the leaf up.
    pub(super) fn unwind(&mut self, shape: &Shape<'_>) -> Walked {
        let regs = UserRegs { ip: shape.ip, sp: shape.sp, fp: shape.bp, lr: 0 };
        let chain = &shape.by_frame_pointers;
        if self.spaces.locate(shape.pid, shape.ip).is_none() && !self.stale.contains(&shape.pid) {
            self.stale.push(shape.pid);
        }
        // Each shape comes once: memory that was read for an earlier one may have changed since.
        self.unwinder.forget_memory();
        let mut walked = self.unwinder.unwind(&mut self.spaces, shape.pid, &regs, shape.stack, chain);
        if walked.addresses.is_empty() {
            walked.addresses.push(shape.ip);
        }
        assert!(!walked.addresses.is_empty(), "a stack has at least its leaf");
        walked
    }

    /// Processes whose code must be read again, each once.
    pub(super) fn take_stale(&mut self) -> Vec<Pid> {
        std::mem::take(&mut self.stale)
    }

    /// The frames of a stack of addresses, in the code that its process has now.
    pub(super) fn placed(&mut self, pid: Pid, addresses: &[u64]) -> Vec<Raw> {
        addresses.iter().map(|address| Raw::place(&mut self.spaces, pid, *address)).collect()
    }

    /// Looks up what these are called, while the process that has them still does.
    pub(super) fn name(&mut self, frames: &[Raw]) {
        for raw in frames {
            let _known = self.names.name(self.spaces.images(), raw);
        }
    }

    /// Tables for a record of what was seen in this code.
    pub(super) fn rows(&mut self) -> Rows<'_> {
        Rows::new(self.spaces.images(), &mut self.names, KernelFrames::ByFunction)
    }

    /// Whether the kernel shows its names.
    pub(super) fn kernel_has_names(&mut self) -> bool {
        self.names.symbols().kernel_has_names()
    }

    /// What could not be read of files whose frames were named.
    pub(super) fn notes(&mut self) -> &[String] {
        self.names.symbols().notes()
    }
}

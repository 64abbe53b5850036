//! User code of the processes that are watched: where it lies, how a copied stack unwinds, what an address is called.
//!
//! The watch calls it: for ranges before it begins, for each stack as it comes, for names at the end.

use std::collections::HashMap;

use dyno_measure::profile::Module;
use dyno_sys::Pid;
use dyno_sys::bpf::offcpu::Shape;
use dyno_sys::perf::UserRegs;
use dyno_sys::proc;

use crate::image::UnwoundBy;
use crate::image::spaces::AddressSpaces;
use crate::symbol::Symbols;
use crate::unwind::{Unwinder, Walked};

/// A frame of user code, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct UserFrame {
    /// The function, or the address where none is known.
    pub(super) name: String,
    /// The path of the file it lies in.
    pub(super) module: Option<String>,
    /// Source file.
    pub(super) file: Option<String>,
    /// Source line.
    pub(super) line: Option<u32>,
    /// Whether the compiler folded it into its caller.
    pub(super) inlined: bool,
    /// Address within the file.
    pub(super) address: u64,
}

/// All of it.
#[derive(Default)]
pub(super) struct Code {
    spaces: AddressSpaces,
    unwinder: Unwinder,
    symbols: Symbols,
    modules: HashMap<String, Module>,
    /// Processes with code that was not there when they were read: a library that was loaded since.
    stale: Vec<Pid>,
}

impl Code {
    /// Code that the test knows.
    #[cfg(test)]
    pub(super) fn of(spaces: AddressSpaces, symbols: Symbols) -> Code {
        Code { spaces, symbols, ..Code::default() }
    }

    /// Reads where the code of `pid` lies now, and tells its ranges; none when it cannot be read (any more), and then
    /// what was known stays.
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
        // A shape comes once: what memory was when another one came tells nothing.
        self.unwinder.forget_memory();
        let mut walked = self.unwinder.unwind(&mut self.spaces, shape.pid, &regs, shape.stack, chain);
        if walked.addresses.is_empty() {
            walked.addresses.push(shape.ip);
        }
        walked
    }

    /// Processes whose code must be read again, each once.
    pub(super) fn take_stale(&mut self) -> Vec<Pid> {
        std::mem::take(&mut self.stale)
    }

    /// The frames at an address of a stack, the innermost first: several where functions were folded into each other.
    pub(super) fn frames(&mut self, pid: Pid, address: u64) -> Vec<UserFrame> {
        let Some(place) = self.spaces.locate(pid, address) else {
            return vec![UserFrame { name: format!("{address:#x}"), address, ..UserFrame::default() }];
        };
        let path = self.module(place.image);
        let functions = self.symbols.functions(self.spaces.images(), place);
        let frame = |function: crate::symbol::Function| UserFrame {
            name: function.name,
            module: Some(path.clone()),
            file: function.file,
            line: function.line,
            inlined: function.inlined,
            address: place.address,
        };
        functions.into_iter().map(frame).collect()
    }

    fn module(&mut self, image: crate::image::ImageId) -> String {
        let images = self.spaces.images();
        let found = images.get(image);
        let path = found.path().to_owned();
        if !self.modules.contains_key(&path) {
            let unwound_by = if found.unwound_by() == UnwoundBy::Dwarf { "dwarf" } else { "fp" };
            let module = Module {
                path: path.clone(),
                build_id: found.build_id(),
                unwound_by: unwound_by.to_owned(),
                symbols: self.symbols.has_names(images, image),
            };
            self.modules.insert(path.clone(), module);
        }
        path
    }

    /// A function of the kernel.
    pub(super) fn kernel(&mut self, address: u64) -> String {
        self.symbols.kernel(address).0.name
    }

    /// Whether the kernel shows its names.
    pub(super) fn kernel_has_names(&mut self) -> bool {
        self.symbols.kernel_has_names()
    }

    /// Files whose frames were named, and what could not be read of them.
    pub(super) fn finish(self) -> (HashMap<String, Module>, Vec<String>) {
        let notes = self.symbols.notes().to_vec();
        (self.modules, notes)
    }
}

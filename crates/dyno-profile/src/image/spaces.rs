//! Address spaces: which code lies where in which process, kept up to date by the kernel's records.
//!
//! A space is read from /proc when its process is first seen, or built from records when it is forked meanwhile. Files are
//! opened when a sample is to be unwound in their process, not before.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use dyno_sys::Pid;
use dyno_sys::perf::Mmap;
use dyno_sys::proc::{self, Mapping};
use framehop::{ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, Unwinder as _, UnwinderNative};

use crate::image::elf::{Bytes, Elf, Header, Section, UnwindTables};
use crate::image::{ImageId, Images, Kind};

/// What framehop walks one process with.
pub(crate) type Rules = UnwinderNative<Bytes, MayAllocateDuringUnwind>;

/// Code at an address: the file, and the address as the file says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file.
    pub image: ImageId,
    /// The address within it; for code that a process made itself, the address as it is.
    pub address: u64,
}

/// All address spaces that were seen.
#[derive(Default)]
pub struct AddressSpaces {
    spaces: HashMap<Pid, Space>,
    images: Images,
    /// What was made of a file at an address: processes that map it alike share it.
    modules: HashMap<(ImageId, u64, u64), Module<Bytes>>,
}

/// One process. Mappings never overlap; `fresh` may name one that is gone again.
#[derive(Clone, Default)]
struct Space {
    mapped: BTreeMap<u64, Mapped>,
    rules: Rules,
    /// Starts of mappings that `rules` does not know yet.
    fresh: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Mapped {
    end: u64,
    offset: u64,
    image: ImageId,
    /// What was added to the file's addresses; known when the file was opened.
    bias: Option<u64>,
}

/// The file of a process's program, and what is added to its addresses there.
pub(crate) fn program(pid: Pid) -> Option<(Rc<Elf>, u64)> {
    let path = std::fs::read_link(format!("{}/exe", proc::folder(pid))).ok()?;
    let mappings = proc::mappings(pid).ok()?;
    let own = mappings.iter().find(|one| one.executable && path.as_os_str() == one.path.as_str())?;
    of_mapping(pid, own)
}

/// A library that a process has mapped, by the name of its file, and what is added to its addresses there.
pub(crate) fn library(pid: Pid, file: &str) -> Option<(Rc<Elf>, u64)> {
    let mappings = proc::mappings(pid).ok()?;
    let is_it = |path: &str| path.rsplit('/').next() == Some(file);
    let own = mappings.iter().find(|one| one.executable && is_it(&one.path))?;
    of_mapping(pid, own)
}

fn of_mapping(pid: Pid, own: &Mapping) -> Option<(Rc<Elf>, u64)> {
    let mut spaces = AddressSpaces::new();
    let place = spaces.locate(pid, own.start)?;
    let elf = Rc::clone(spaces.images().get(place.image).elf()?);
    let bias = elf.bias(own.start, own.offset)?;
    Some((elf, bias))
}

impl AddressSpaces {
    /// No process yet.
    pub fn new() -> AddressSpaces {
        AddressSpaces::default()
    }

    /// The files that were seen.
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// Reads a process as it is now, if it is not known. A process that may not be read, or is gone, has no code.
    pub fn read(&mut self, pid: Pid) {
        if self.spaces.contains_key(&pid) {
            return;
        }
        self.spaces.insert(pid, Space::default());
        let mappings = proc::mappings(pid).unwrap_or_default();
        mappings.iter().filter(|mapping| mapping.executable).for_each(|mapping| self.map(pid, mapping));
    }

    /// Code was mapped. Of a process that was not read yet this is passed over: reading it will find it.
    pub fn mmap(&mut self, mmap: &Mmap<'_>) {
        if !self.spaces.contains_key(&mmap.pid) {
            return;
        }
        let mapping = Mapping {
            start: mmap.start,
            end: mmap.start.saturating_add(mmap.length),
            executable: true,
            shared: false,
            offset: mmap.offset,
            inode: mmap.inode,
            path: String::from_utf8_lossy(mmap.path).into_owned(),
        };
        self.map(mmap.pid, &mapping);
    }

    /// A process began as a copy of another.
    pub fn fork(&mut self, pid: Pid, parent: Pid) {
        // A thread has its process's space.
        if pid == parent {
            return;
        }
        if let Some(space) = self.spaces.get(&parent) {
            self.spaces.insert(pid, space.clone());
        } else {
            self.spaces.remove(&pid);
        }
    }

    /// A process begins another program: nothing of the old one is left.
    pub fn exec(&mut self, pid: Pid) {
        self.spaces.insert(pid, Space::default());
        debug_assert!(self.spaces[&pid].mapped.is_empty(), "nothing of the old program is left");
    }

    /// A process ended; its number may come again.
    pub fn exit(&mut self, pid: Pid) {
        self.spaces.remove(&pid);
    }

    /// The code at an address; `None` where there is none, as far as is known.
    pub fn locate(&mut self, pid: Pid, address: u64) -> Option<Place> {
        self.read(pid);
        self.learn(pid);
        let (_, mapped) = self.spaces.get(&pid)?.mapped.range(..=address).next_back()?;
        let bias = mapped.bias.filter(|_| address < mapped.end)?;
        Some(Place { image: mapped.image, address: address.wrapping_sub(bias) })
    }

    /// Whether code is mapped at an address, also that of a file which cannot be found any more.
    pub(crate) fn is_code(&mut self, pid: Pid, address: u64) -> bool {
        self.read(pid);
        let space = self.spaces.get(&pid);
        let below = space.and_then(|space| space.mapped.range(..=address).next_back());
        below.is_some_and(|(_, mapped)| address < mapped.end)
    }

    /// The place in a file that is mapped at an address and could not be read.
    pub(crate) fn unread(&mut self, pid: Pid, address: u64) -> Option<Place> {
        self.read(pid);
        let (start, mapped) = self.spaces.get(&pid)?.mapped.range(..=address).next_back()?;
        let place = Place { image: mapped.image, address: (address - start).wrapping_add(mapped.offset) };
        (address < mapped.end).then_some(place)
    }

    /// Takes in what a process has mapped and no record said. What is known stays: records that are still to come may be
    /// of a time when it was there.
    pub(crate) fn read_more(&mut self, pid: Pid) {
        for mapping in proc::mappings(pid).unwrap_or_default() {
            let space = self.spaces.get(&pid);
            let is_new = space.is_some_and(|space| space.is_free(mapping.start, mapping.end));
            if mapping.executable && is_new {
                self.map(pid, &mapping);
            }
        }
    }

    /// Learns what a process has mapped by now. Whether it is known at all.
    pub(crate) fn learned(&mut self, pid: Pid) -> bool {
        self.read(pid);
        self.learn(pid);
        self.spaces.contains_key(&pid)
    }

    /// What to walk a process's stacks with, as far as it was learned.
    pub(crate) fn rules(&self, pid: Pid) -> Option<&Rules> {
        self.spaces.get(&pid).map(|space| &space.rules)
    }

    /// Whether an address lies in code that the process made itself.
    pub(crate) fn is_made(&self, pid: Pid, address: u64) -> bool {
        let below = self.spaces.get(&pid).and_then(|space| space.mapped.range(..=address).next_back());
        let here = below.filter(|(_, mapped)| address < mapped.end);
        here.is_some_and(|(_, mapped)| matches!(self.images.get(mapped.image).kind(), Kind::Jit(_)))
    }

    fn map(&mut self, pid: Pid, mapping: &Mapping) {
        let image = self.images.intern(pid, mapping);
        let Some(space) = self.spaces.get_mut(&pid) else { return };
        space.clear(mapping.start, mapping.end);
        debug_assert!(space.is_free(mapping.start, mapping.end), "mappings never overlap");
        let mapped = Mapped { end: mapping.end, offset: mapping.offset, image, bias: None };
        space.mapped.insert(mapping.start, mapped);
        space.fresh.push(mapping.start);
    }

    /// Opens the files of what was mapped since the last time, and adds them to what framehop knows.
    fn learn(&mut self, pid: Pid) {
        let AddressSpaces { spaces, images, modules } = self;
        let Some(space) = spaces.get_mut(&pid).filter(|space| !space.fresh.is_empty()) else { return };
        for start in std::mem::take(&mut space.fresh) {
            let Some(mapped) = space.mapped.get_mut(&start) else { continue };
            let elf = images.get(mapped.image).elf().cloned();
            let jit = matches!(images.get(mapped.image).kind(), Kind::Jit(_));
            mapped.bias =
                if jit { Some(0) } else { elf.as_ref().and_then(|elf| elf.bias(start, mapped.offset)) };
            if let (Some(elf), Some(bias)) = (elf, mapped.bias) {
                let key = (mapped.image, start, mapped.end);
                let module = modules.entry(key).or_insert_with(|| module(&elf, start, mapped.end, bias));
                space.rules.add_module(module.clone());
            }
        }
        assert!(space.fresh.is_empty(), "no mapping is opened twice");
    }
}

impl Space {
    /// Forgets what lay in a range; a mapping that reaches beyond it keeps the rest.
    fn clear(&mut self, start: u64, end: u64) {
        let under = self.mapped.range(..end).rev().take_while(|(_, mapped)| mapped.end > start);
        let under: Vec<(u64, Mapped)> = under.map(|(from, mapped)| (*from, *mapped)).collect();
        for (from, mapped) in under {
            self.mapped.remove(&from);
            self.rules.remove_module(from);
            if from < start {
                self.keep(from, Mapped { end: start, ..mapped });
            }
            if mapped.end > end {
                self.keep(end, Mapped { offset: mapped.offset + (end - from), ..mapped });
            }
        }
        debug_assert!(self.is_free(start, end), "what lay there is gone");
    }

    /// Whether nothing lies in a range.
    fn is_free(&self, start: u64, end: u64) -> bool {
        self.mapped.range(..end).next_back().is_none_or(|(_, last)| last.end <= start)
    }

    fn keep(&mut self, start: u64, mapped: Mapped) {
        assert!(start < mapped.end, "what is kept is not empty");
        self.mapped.insert(start, mapped);
        self.fresh.push(start);
    }
}

fn module(elf: &Elf, start: u64, end: u64, bias: u64) -> Module<Bytes> {
    let UnwindTables { eh_frame, eh_frame_hdr, debug_frame } = elf.unwind_tables();
    let place = |name: &str| elf.header(name).and_then(Header::addresses);
    let addresses = |section: &Option<Section>| section.as_ref().map(|section| section.addresses.clone());
    let bytes = |section: &Option<Section>| section.as_ref().map(|section| Arc::clone(&section.bytes));
    let base = elf.base();
    let sections = ExplicitModuleSectionInfo {
        base_svma: base,
        text_svma: place(".text"),
        got_svma: place(".got"),
        eh_frame_svma: addresses(eh_frame),
        eh_frame: bytes(eh_frame),
        eh_frame_hdr_svma: addresses(eh_frame_hdr),
        eh_frame_hdr: bytes(eh_frame_hdr),
        debug_frame: bytes(debug_frame),
        ..ExplicitModuleSectionInfo::default()
    };
    Module::new(String::new(), start..end, bias.wrapping_add(base), sections)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_sys::child;

    fn mmap(pid: Pid, start: u64, length: u64, path: &[u8]) -> Mmap<'_> {
        Mmap { pid, time_ns: 0, start, length, offset: 0, inode: 0, path }
    }

    fn spaces_with_two_mappings() -> AddressSpaces {
        let mut spaces = AddressSpaces::new();
        spaces.exec(7);
        spaces.mmap(&mmap(7, 0x1000, 0x3000, b"//anon"));
        spaces.mmap(&mmap(7, 0x8000, 0x1000, b"[jit]"));
        spaces
    }

    #[test]
    fn a_new_mapping_takes_the_place_of_what_lay_there() {
        let mut spaces = spaces_with_two_mappings();
        let here = std::env::current_exe().unwrap();
        let path = here.to_str().unwrap().as_bytes();
        spaces.mmap(&mmap(7, 0x2000, 0x1000, path));
        let image = |spaces: &mut AddressSpaces, at| spaces.locate(7, at).map(|place| place.address);
        assert_eq!(image(&mut spaces, 0x1fff), Some(0x1fff));
        assert_eq!(image(&mut spaces, 0x2fff), None, "a file that cannot be found has no addresses");
        assert_eq!(image(&mut spaces, 0x3000), Some(0x3000));
        assert_eq!([0xfff, 0x4000, 0x9000].map(|at| image(&mut spaces, at)), [None; 3]);
    }

    #[test]
    fn a_fork_has_its_parents_code_and_an_exec_none_of_it() {
        let mut spaces = spaces_with_two_mappings();
        spaces.fork(8, 7);
        spaces.fork(7, 7);
        spaces.exec(7);
        assert!(spaces.locate(8, 0x8000).is_some() && spaces.locate(7, 0x8000).is_none());
        spaces.exit(8);
        assert!(spaces.locate(8, 0x8000).is_none());
    }

    #[test]
    fn this_functions_address_lies_in_this_file() {
        let mut spaces = AddressSpaces::new();
        let here = this_functions_address_lies_in_this_file as *const () as usize as u64;
        let place = spaces.locate(child::this(), here).unwrap();
        let path = std::env::current_exe().unwrap();
        assert_eq!(Some(spaces.images().get(place.image).path()), path.to_str());
    }
}

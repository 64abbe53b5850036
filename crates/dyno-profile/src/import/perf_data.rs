//! The file that `perf record` writes: a head, descriptions of the events, and a stream of the kernel's records.
//!
//! Stacks are those that the kernel walked (`perf record -g`); where copied stacks are in the file too, they are not
//! walked here. Names of functions are not in such a file: frames keep file and offset, and the caller may know names
//! ([`read_named`]). `perf script` writes a text with names, which is read as well. The format is described by the
//! kernel's tools/perf/Documentation/perf.data-file-format.txt and its uapi header perf_event.h.

mod cursor;
mod head;
mod maps;
mod names;
mod place;
mod record;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dyno_record::profile::{Frame, Origin, Profile, Unit};

use super::gather::Gather;
use super::gather::error::ImportError;
use head::{Event, Head};
use maps::Spaces;
use place::KERNEL;
use record::{Entry, Sample, What};

/// First bytes of a file of a little-endian machine.
const MAGIC: &[u8; 8] = b"PERFILE2";
/// And of a big-endian one.
const MAGIC_SWAPPED: &[u8; 8] = b"2ELIFREP";

/// Whether these bytes begin such a file.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.starts_with(MAGIC_SWAPPED)
}

pub use names::OnDisk;
pub use place::Place;

/// Reads a file without asking anybody for names.
///
/// # Errors
/// When it is damaged, or of a kind that is not read here.
pub fn read(bytes: &[u8]) -> Result<Profile, ImportError> {
    read_named(bytes, |_| None)
}

/// Reads a file; `name` may know what function a place lies in.
///
/// # Errors
/// When it is damaged, or of a kind that is not read here.
pub fn read_named(
    bytes: &[u8],
    name: impl FnMut(Place<'_>) -> Option<String>,
) -> Result<Profile, ImportError> {
    if bytes.starts_with(MAGIC_SWAPPED) {
        let what = "it was recorded on a machine of the other byte order";
        return Err(ImportError::Unsupported { what, instead: "perf script -i FILE | dyno flame -" });
    }
    let mut head = head::read(bytes)?;
    let mut entries = record::entries(bytes, &mut head)?;
    // Each CPU wrote for itself: only their times say which record was first.
    entries.sort_by_key(|entry| entry.time);
    let mut reading = Reading::new(&head, name);
    entries.iter().for_each(|entry| reading.entry(entry));
    reading.finish(&head, &entries)
}

struct Reading<N> {
    gather: Gather,
    spaces: Spaces,
    /// Each thread's name at the time.
    names: BTreeMap<u32, String>,
    frames: BTreeMap<(Option<u32>, u64, bool), u32>,
    build_ids: BTreeMap<String, String>,
    /// A symbol of the kernel and its address, by which it is known where the kernel lay.
    anchor: Option<(String, u64)>,
    copied_stacks: u64,
    without_chain: u64,
    name: N,
}

impl<N: FnMut(Place<'_>) -> Option<String>> Reading<N> {
    fn new(head: &Head, name: N) -> Reading<N> {
        Reading {
            gather: Gather::new(),
            spaces: Spaces::default(),
            names: BTreeMap::new(),
            frames: BTreeMap::new(),
            build_ids: head.build_ids.clone(),
            anchor: None,
            copied_stacks: 0,
            without_chain: 0,
            name,
        }
    }

    fn entry(&mut self, entry: &Entry<'_>) {
        match &entry.what {
            What::Map { pid, map, build_id } => {
                if let Some(id) = build_id {
                    self.build_ids.insert(map.path.to_owned(), id.clone());
                }
                if let Some(symbol) = map.path.strip_prefix(KERNEL) {
                    self.anchor = Some((symbol.to_owned(), map.offset));
                }
                self.spaces.map(*pid, map);
            }
            What::Comm { pid, tid, name, exec } => {
                if *exec {
                    self.spaces.clear(*pid);
                }
                self.names.insert(*tid, (*name).to_owned());
            }
            What::Fork { pid, parent, tid, parent_tid } => {
                self.spaces.fork(*pid, *parent);
                if let Some(name) = self.names.get(parent_tid).cloned() {
                    self.names.entry(*tid).or_insert(name);
                }
            }
            What::Lost(lost) => {
                let lost_so_far = &mut self.gather.profile.sampling.lost;
                *lost_so_far = lost_so_far.saturating_add(*lost);
            }
            What::Sample(sample) => self.sample(sample),
        }
    }

    fn sample(&mut self, sample: &Sample) {
        self.copied_stacks += u64::from(sample.has_user_stack);
        self.without_chain += u64::from(sample.chain.is_empty());
        let alone = [(sample.ip, sample.in_kernel)];
        let chain = if sample.chain.is_empty() { &alone[..] } else { &sample.chain };
        let frames =
            chain.iter().rev().map(|&(address, in_kernel)| self.frame(sample.pid, address, in_kernel));
        let frames: Vec<u32> = frames.collect();
        let name = self.names.get(&sample.tid).cloned().unwrap_or_default();
        let thread = self.gather.thread(sample.pid, sample.tid, &name);
        self.gather.add_sample(thread, frames, sample.period.unwrap_or(1), sample.time);
    }

    fn frame(&mut self, pid: u32, address: u64, in_kernel: bool) -> u32 {
        let found = if in_kernel { None } else { self.spaces.find(pid, address) };
        let (path, offset) = match &found {
            Some((map, offset)) => (Some(map.path.to_string()), *offset),
            None => (in_kernel.then(|| KERNEL.to_owned()), address),
        };
        let module = path.as_deref().map(|path| self.gather.module(path));
        if let Some(&known) = self.frames.get(&(module, offset, in_kernel)) {
            return known;
        }
        let build_id = path.as_ref().and_then(|path| self.build_ids.get(path)).map(String::as_str);
        let (map, inode) =
            found.as_ref().map_or(((0, 0), 0), |(map, _)| ((map.offset, map.bytes()), map.inode));
        let anchor = self.anchor.as_ref().filter(|_| in_kernel).map(|(name, at)| (name.as_str(), *at));
        let place = path.as_deref().map(|module| Place { module, build_id, inode, offset, map, anchor });
        let name = place.and_then(&mut self.name).unwrap_or_else(|| format!("0x{offset:x}"));
        let origin = if in_kernel { Origin::Kernel } else { Origin::User };
        // An address per sample would make a box per sample: a function that has a name is one frame.
        let address = if name.starts_with("0x") { offset } else { 0 };
        let frame = self.gather.frame(Frame { name, module, origin, address, ..Frame::default() });
        self.frames.insert((module, offset, in_kernel), frame);
        frame
    }

    fn finish(mut self, head: &Head, entries: &[Entry<'_>]) -> Result<Profile, ImportError> {
        if self.gather.profile.stacks.is_empty() {
            return Err(ImportError::Empty);
        }
        self.gather.name_target();
        self.warn();
        let mut profile = self.gather.profile;
        for module in &mut profile.modules {
            module.build_id = self.build_ids.get(&module.path).cloned();
        }
        for frame in profile.frames.iter().filter(|frame| !frame.name.starts_with("0x")) {
            frame.module.into_iter().for_each(|module| profile.modules[module as usize].symbols = true);
        }
        describe(&mut profile, head, entries);
        Ok(profile)
    }

    fn warn(&mut self) {
        let warnings = &mut self.gather.profile.warnings;
        if self.copied_stacks > 0 {
            warnings.push(
                "the file holds copied user stacks, which were not walked: perf script walks them".to_owned(),
            );
        }
        if self.spaces.incomplete() {
            warnings.push(
                "processes that forked had more maps than are kept: some places have no file".to_owned(),
            );
        }
        if self.without_chain > 0 {
            let text =
                format!("{} samples have no call chain: perf record -g records it", self.without_chain);
            warnings.push(text);
        }
    }
}

/// What the head says of machine, command and event.
fn describe(profile: &mut Profile, head: &Head, entries: &[Entry<'_>]) {
    const NS_PER_S: f64 = 1e9;
    profile.machine.kernel.clone_from(&head.kernel);
    profile.machine.model.clone_from(&head.processor);
    profile.machine.cpus = head.cpus as usize;
    profile.command.clone_from(&head.command);
    let event = head.events.first().copied().unwrap_or_default();
    profile.sampling.event = event.name();
    profile.sampling.frequency_hz = event.frequency();
    profile.sampling.call_graph = "fp".to_owned();
    let times = entries.iter().filter(|entry| matches!(entry.what, What::Sample(_))).map(|entry| entry.time);
    let (first, last) = times.fold((u64::MAX, 0), |(first, last), time| (first.min(time), last.max(time)));
    profile.duration_s = last.saturating_sub(first) as f64 / NS_PER_S;
    // Only a clock's period is time, and only where every event is one.
    if !head.events.iter().all(|event| Event::is_clock(*event)) {
        profile.unit = Unit::Samples;
        profile.stacks.iter_mut().for_each(|stack| stack.weight_ns = stack.samples);
    }
}

//! The file that `perf record` writes: a head, descriptions of the events, and a stream of the kernel's records.
//!
//! Stacks are those that the kernel walked (`perf record -g`); where copied stacks are in the file too, they are not
//! walked here. Names of functions are not in such a file: frames keep file and offset, and the caller may know names
//! ([`read_named`]). `perf script` writes a text with names, which is read as well. The format is described by the
//! kernel's tools/perf/Documentation/perf.data-file-format.txt and its uapi header perf_event.h.

mod chosen;
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
use chosen::Chosen;
use head::Head;
use maps::{FileId, Found, Spaces};
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
    let mut reading = Reading::new(&head, &entries, name);
    entries.iter().for_each(|entry| reading.entry(entry));
    reading.finish(&entries)
}

struct Reading<'h, N> {
    head: &'h Head,
    gather: Gather,
    spaces: Spaces,
    /// The one event that is read, and the others.
    events: Chosen,
    /// Each thread's name at the time.
    names: BTreeMap<u32, String>,
    frames: BTreeMap<(Option<FileId>, u64, bool), u32>,
    kernel: Kernel,
    /// Records that were lost, and samples as their counters have them.
    lost: [u64; 2],
    copied_stacks: u64,
    without_chain: u64,
    name: N,
}

/// What is known of the kernel that was recorded.
#[derive(Default)]
struct Kernel {
    /// A symbol and its address, by which it is known where it lay.
    anchor: Option<(String, u64)>,
    build_id: Option<String>,
}

impl<'h, N: FnMut(Place<'_>) -> Option<String>> Reading<'h, N> {
    fn new(head: &'h Head, entries: &[Entry<'_>], name: N) -> Reading<'h, N> {
        let build_id = head.build_ids.get(KERNEL).cloned();
        Reading {
            head,
            gather: Gather::new(),
            spaces: Spaces::default(),
            events: Chosen::of(head, entries),
            names: BTreeMap::new(),
            frames: BTreeMap::new(),
            kernel: Kernel { anchor: None, build_id },
            lost: [0, 0],
            copied_stacks: 0,
            without_chain: 0,
            name,
        }
    }

    fn entry(&mut self, entry: &Entry<'_>) {
        match &entry.what {
            What::Map { pid, map } => {
                if let Some(symbol) = map.path.strip_prefix(KERNEL) {
                    self.kernel.anchor = Some((symbol.to_owned(), map.offset));
                    self.kernel.build_id = map.build_id.clone().or(self.kernel.build_id.take());
                }
                self.spaces.map(*pid, map);
            }
            What::Comm { pid, tid, name, exec } => {
                if *exec {
                    self.spaces.clear(*pid);
                }
                self.names.insert(*tid, (*name).to_owned());
            }
            What::Fork { is_of_before: true, .. } => {}
            What::Fork { pid, parent, tid, parent_tid, .. } => {
                self.spaces.fork(*pid, *parent);
                if let Some(name) = self.names.get(parent_tid).cloned() {
                    self.names.insert(*tid, name);
                }
            }
            What::LostRecords(lost) => self.lost[0] = self.lost[0].saturating_add(*lost),
            What::LostSamples(lost) => self.lost[1] = self.lost[1].saturating_add(*lost),
            What::Sample(sample) if self.events.has(sample) => self.sample(sample),
            What::Sample(_) => {}
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
        let key = (found.map(|found| found.file), found.map_or(address, |found| found.offset), in_kernel);
        if let Some(&known) = self.frames.get(&key) {
            return known;
        }
        let frame = if in_kernel { self.kernel_frame(address) } else { self.user_frame(address, found) };
        let frame = self.gather.frame(frame);
        self.frames.insert(key, frame);
        frame
    }

    fn kernel_frame(&mut self, address: u64) -> Frame {
        let Kernel { anchor, build_id } = &self.kernel;
        let place = Place {
            module: KERNEL,
            build_id: build_id.as_deref(),
            inode: 0,
            offset: address,
            map: (0, 0),
            anchor: anchor.as_ref().map(|(name, at)| (name.as_str(), *at)),
            release: &self.head.kernel,
        };
        let module = Some(self.gather.module(KERNEL, place.build_id));
        described(Origin::Kernel, module, address, (self.name)(place))
    }

    fn user_frame(&mut self, address: u64, found: Option<Found>) -> Frame {
        let Some(Found { file, offset, map }) = found else {
            return described(Origin::User, None, address, None);
        };
        let file = self.spaces.file(file);
        // Where mappings do not say it, the list of all files behind the records may.
        let build_id = file.build_id.as_ref().or_else(|| self.head.build_ids.get(&file.path));
        let (module, build_id) = (file.path.as_str(), build_id.map(String::as_str));
        let place = Place { module, build_id, inode: file.inode, offset, map, anchor: None, release: "" };
        let module = Some(self.gather.module(module, build_id));
        described(Origin::User, module, offset, (self.name)(place))
    }

    fn finish(mut self, entries: &[Entry<'_>]) -> Result<Profile, ImportError> {
        if self.gather.profile.stacks.is_empty() {
            return Err(ImportError::Empty);
        }
        self.gather.name_target();
        self.warn();
        let mut profile = self.gather.profile;
        // Both count what is missing, each in its way.
        profile.sampling.lost = self.lost[0].max(self.lost[1]);
        for frame in profile.frames.iter().filter(|frame| !frame.name.starts_with("0x")) {
            frame.module.into_iter().for_each(|module| profile.modules[module as usize].symbols = true);
        }
        describe(&mut profile, self.head, &self.events, entries);
        Ok(profile)
    }

    fn warn(&mut self) {
        let warnings = &mut self.gather.profile.warnings;
        warnings.extend(self.events.left_out());
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
        let elsewhere = self.events.event.is_without_user_callers();
        if elsewhere && self.copied_stacks == 0 {
            let where_then = match self.events.event.has_branches() {
                true => {
                    "stand in branch records (--call-graph lbr), which were not read: perf script shows them"
                }
                false => "were not recorded (--kernel-callchains)",
            };
            warnings.push(format!("callers in user space {where_then}"));
        }
        if self.without_chain > 0 && !elsewhere {
            let text =
                format!("{} samples have no call chain: perf record -g records it", self.without_chain);
            warnings.push(text);
        }
    }
}

/// A frame by its name, or by its address where it has none.
fn described(origin: Origin, module: Option<u32>, offset: u64, name: Option<String>) -> Frame {
    // An address per sample would make a box per sample: a function that has a name is one frame.
    let address = if name.as_ref().is_some_and(|name| !name.starts_with("0x")) { 0 } else { offset };
    let name = name.unwrap_or_else(|| format!("0x{offset:x}"));
    Frame { name, module, origin, address, ..Frame::default() }
}

/// What the head says of machine, command and event.
fn describe(profile: &mut Profile, head: &Head, events: &Chosen, entries: &[Entry<'_>]) {
    const NS_PER_S: f64 = 1e9;
    profile.machine.kernel.clone_from(&head.kernel);
    profile.machine.model.clone_from(&head.processor);
    profile.machine.cpus = head.cpus as usize;
    profile.command.clone_from(&head.command);
    profile.sampling.event = events.event.name();
    profile.sampling.frequency_hz = events.event.frequency();
    profile.sampling.call_graph = "fp".to_owned();
    let times = entries.iter().filter_map(|entry| match &entry.what {
        What::Sample(sample) if events.has(sample) => Some(entry.time),
        _ => None,
    });
    let (first, last) = times.fold((u64::MAX, 0), |(first, last), time| (first.min(time), last.max(time)));
    profile.duration_s = last.saturating_sub(first) as f64 / NS_PER_S;
    // Only a clock's period is time.
    if !events.event.is_clock() {
        profile.unit = Unit::Samples;
        profile.stacks.iter_mut().for_each(|stack| stack.weight_ns = stack.samples);
    }
}

//! A profile in the making: names become frames, equal stacks become one.

pub(crate) mod error;

use std::collections::{BTreeMap, HashMap};

use dyno_record::profile::slices::{self, Axis};
use dyno_record::profile::{Frame, Module, PROFILE_SCHEMA, Profile, Stack, Thread, Wait};

/// That samples of other events than the one that is read were not taken, in words: two kinds of events are never one sum.
pub(super) fn left_out(event: &str, others: &BTreeMap<String, u64>) -> Option<String> {
    let others: Vec<String> = others.iter().map(|(name, samples)| format!("{samples} of {name}")).collect();
    let words = || format!("only samples of {event} are read: {} are left out", others.join(", "));
    (!others.is_empty()).then(words)
}

/// What readers fill.
pub(super) struct Gather {
    pub(super) profile: Profile,
    modules: HashMap<(String, Option<String>), u32>,
    frames: HashMap<Frame, u32>,
    threads: HashMap<(u32, u32), u32>,
    stacks: HashMap<(u32, Vec<u32>, Option<Wait>), usize>,
    /// All weights so far.
    weight: u64,
    /// Begins with the first sample whose moment is known.
    axis: Option<Axis>,
}

impl Gather {
    pub(super) fn new() -> Gather {
        let profile = Profile {
            schema: PROFILE_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Profile::default()
        };
        let (modules, frames) = (HashMap::new(), HashMap::new());
        let (threads, stacks) = (HashMap::new(), HashMap::new());
        Gather { profile, modules, frames, threads, stacks, weight: 0, axis: None }
    }

    /// A file; two builds of one path are two.
    pub(super) fn module(&mut self, path: &str, build_id: Option<&str>) -> u32 {
        let next = self.profile.modules.len() as u32;
        let (path, build_id) = (path.to_owned(), build_id.map(str::to_owned));
        let at = *self.modules.entry((path.clone(), build_id.clone())).or_insert(next);
        if at == next {
            self.profile.modules.push(Module { path, build_id, ..Module::default() });
        }
        at
    }

    pub(super) fn frame(&mut self, frame: Frame) -> u32 {
        if let Some(&at) = self.frames.get(&frame) {
            return at;
        }
        let at = self.profile.frames.len() as u32;
        self.profile.frames.push(frame.clone());
        self.frames.insert(frame, at);
        at
    }

    /// A thread by its numbers; the last name it had is its name.
    pub(super) fn thread(&mut self, pid: u32, tid: u32, name: &str) -> u32 {
        let threads = &mut self.profile.threads;
        let at = *self.threads.entry((pid, tid)).or_insert_with(|| {
            threads.push(Thread { pid, tid, name: String::new() });
            threads.len() as u32 - 1
        });
        if !name.is_empty() {
            name.clone_into(&mut self.profile.threads[at as usize].name);
        }
        at
    }

    /// Adds to a stack; its frames stand from the root. Numbers are cut where all together would not fit into 64 bits any
    /// more: the weights of a profile can be added up without overflow. The answer is the stack's row.
    pub(super) fn add(
        &mut self,
        thread: u32,
        frames: Vec<u32>,
        wait: Option<Wait>,
        samples: u64,
        weight: u64,
    ) -> usize {
        let stacks = &mut self.profile.stacks;
        let at = *self.stacks.entry((thread, frames.clone(), wait.clone())).or_insert_with(|| {
            stacks.push(Stack { frames, thread, wait, ..Stack::default() });
            stacks.len() - 1
        });
        let all = &mut self.profile.sampling.samples;
        let (samples, weight) = (samples.min(u64::MAX - *all), weight.min(u64::MAX - self.weight));
        *all += samples;
        self.weight += weight;
        stacks[at].samples += samples;
        stacks[at].weight_ns += weight;
        at
    }

    /// Adds a sample that fell at this moment; 0 where the file does not tell.
    pub(super) fn add_sample(&mut self, thread: u32, frames: Vec<u32>, weight: u64, at_ns: u64) {
        let row = self.add(thread, frames, None, 1, weight);
        if at_ns == 0 {
            return;
        }
        let axis = self.axis.get_or_insert_with(|| Axis::new(at_ns));
        let all = self.profile.stacks.iter_mut().map(|stack| &mut stack.slices);
        let slice = axis.slice(at_ns, all);
        self.profile.slice_ns = Some(axis.slice_ns());
        slices::count(&mut self.profile.stacks[row].slices, slice, 1);
    }

    /// Names the profile by its only process, where it has only one.
    pub(super) fn name_target(&mut self) {
        let threads = &self.profile.threads;
        let Some(first) = threads.first() else { return };
        let target = &mut self.profile.target;
        if threads.iter().all(|thread| thread.pid == first.pid) && first.pid != 0 {
            let main = threads.iter().find(|thread| thread.tid == thread.pid).unwrap_or(first);
            (target.pid, target.name, target.scope) =
                (Some(first.pid), main.name.clone(), "process".to_owned());
        } else if threads.iter().all(|thread| thread.name == first.name) {
            target.name = first.name.clone();
        }
    }
}

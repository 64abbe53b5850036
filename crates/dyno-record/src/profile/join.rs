//! Profiles joined, and profiles without their dust: what a comparison of two needs of them.
//!
//! The climb's looks and the pictures of comparisons call it. No time is lost, and nothing is measured.

use std::collections::HashMap;

use super::{Frame, Module, Profile, Requests, Stack};

impl Stack {
    /// All but its time: two stacks of one identity are one.
    fn identity(&self) -> impl Ord + '_ {
        (&self.frames, self.thread, &self.wait, self.waker)
    }
}

impl Profile {
    /// The same profile without its dust: functions that hold less than `share` of all the time, where they were called, are
    /// folded into their callers, and what no stack points at is left out. No time is lost. Places in one function are one
    /// frame, without a line: each by itself would be dust.
    #[must_use]
    pub fn pruned(&self, share: f64) -> Profile {
        let least_ns = (self.total_ns() as f64 * share) as u64;
        let mut stacks = self.stacks_of_functions();
        let mut subtree_ns: HashMap<&[u32], u64> = HashMap::new();
        for stack in &stacks {
            for depth in 0..=stack.frames.len() {
                *subtree_ns.entry(&stack.frames[..depth]).or_default() += stack.weight_ns;
            }
        }
        let kept = |stack: &Stack| {
            let heavy = |depth: &usize| subtree_ns[&stack.frames[..*depth]] >= least_ns;
            (0..=stack.frames.len()).rev().find(heavy).unwrap_or(0)
        };
        let kept: Vec<usize> = stacks.iter().map(kept).collect();
        stacks.iter_mut().zip(kept).for_each(|(stack, kept)| stack.frames.truncate(kept));
        stacks.sort_by(|a, b| a.identity().cmp(&b.identity()));
        stacks.dedup_by(|same, first| {
            let equal = same.identity() == first.identity();
            if equal {
                first.samples += same.samples;
                first.weight_ns += same.weight_ns;
            }
            equal
        });
        let frames = self.frames.iter().map(|frame| Frame { line: None, ..frame.clone() }).collect();
        Profile { stacks, frames, slice_ns: None, ..self.clone() }.compacted()
    }

    /// Two profiles without the dust of both together ([`Profile::pruned`]): what is folded on one side is folded on the
    /// other, so that they can be compared. For time on the CPU, as [`Profile::joined`].
    #[must_use]
    pub fn pruned_together(before: &Profile, after: &Profile, share: f64) -> [Profile; 2] {
        // What has this share of one side has half of it of both.
        let both = before.joined(after).pruned(share / 2.0);
        let of = |profile: &Profile, threads: std::ops::Range<u32>| {
            let own = both.stacks.iter().filter(|stack| threads.contains(&stack.thread));
            let stacks =
                own.map(|stack| Stack { thread: stack.thread - threads.start, waker: None, ..stack.clone() });
            let (stacks, wakers) = (stacks.collect(), Vec::new());
            let (frames, modules) = (both.frames.clone(), both.modules.clone());
            Profile { stacks, wakers, frames, modules, ..profile.clone() }.compacted()
        };
        let threads = before.threads.len() as u32;
        [of(before, 0..threads), of(after, threads..u32::MAX)]
    }

    /// Every stack with the first frame of each of its functions.
    fn stacks_of_functions(&self) -> Vec<Stack> {
        let mut first: HashMap<_, u32> = HashMap::new();
        let function = |frame: &'_ Frame| (frame.module, frame.origin, frame.inlined);
        let same: Vec<u32> = self
            .frames
            .iter()
            .zip(0..)
            .map(|(frame, at)| *first.entry((function(frame), frame.name.as_str())).or_insert(at))
            .collect();
        let of = |stack: &Stack| stack.frames.iter().map(|at| same[*at as usize]).collect();
        // What is joined or compared has no common axis.
        let row = |stack: &Stack| Stack { frames: of(stack), slices: Vec::new(), ..stack.clone() };
        self.stacks.iter().map(row).collect()
    }

    /// Both as one, as if it had been watched for as long as both together. For time on the CPU: wakers, timelines and counts
    /// of system calls are the first's.
    #[must_use]
    pub fn joined(&self, other: &Profile) -> Profile {
        let mut both = self.clone();
        both.slice_ns = None;
        both.stacks.iter_mut().for_each(|stack| stack.slices.clear());
        both.duration_s += other.duration_s;
        both.sampling.samples += other.sampling.samples;
        both.sampling.lost += other.sampling.lost;
        both.sampling.coarse += other.sampling.coarse;
        both.sampling.truncated += other.sampling.truncated;
        for (why, stacks) in &other.sampling.truncated_by {
            *both.sampling.truncated_by.entry(why.clone()).or_default() += stacks;
        }
        let fresh = other.warnings.iter().filter(|warning| !self.warnings.contains(warning));
        both.warnings.extend(fresh.cloned());
        both.requests = match (&self.requests, &other.requests) {
            (Some(one), Some(more)) => Some(Requests { count: one.count + more.count, ..one.clone() }),
            _ => None,
        };
        let threads = both.threads.len() as u32;
        both.threads.extend(other.threads.iter().cloned());
        let modules: Vec<u32> =
            other.modules.iter().map(|module| placed(&mut both.modules, module)).collect();
        let moved = |frame: &Frame| Frame {
            module: frame.module.and_then(|at| modules.get(at as usize).copied()),
            ..frame.clone()
        };
        let mut known: HashMap<Frame, u32> = both.frames.iter().cloned().zip(0..).collect();
        let mut frames = Vec::new();
        for frame in other.frames.iter().map(moved) {
            let at = *known.entry(frame.clone()).or_insert_with(|| {
                both.frames.push(frame);
                both.frames.len() as u32 - 1
            });
            frames.push(at);
        }
        both.stacks.extend(other.stacks.iter().map(|stack| Stack {
            frames: stack.frames.iter().map(|at| frames[*at as usize]).collect(),
            thread: threads + stack.thread,
            waker: None,
            slices: Vec::new(),
            ..stack.clone()
        }));
        both
    }

    /// Without frames and modules that nothing points at.
    fn compacted(mut self) -> Profile {
        let mut frames = Renumbered::new(self.frames.len());
        for at in self.stacks.iter_mut().flat_map(|stack| &mut stack.frames) {
            *at = frames.of(*at);
        }
        for at in self.wakers.iter_mut().flat_map(|waker| &mut waker.frames) {
            *at = frames.of(*at);
        }
        self.frames = frames.rows(&self.frames);
        let mut modules = Renumbered::new(self.modules.len());
        for at in self.frames.iter_mut().filter_map(|frame| frame.module.as_mut()) {
            *at = modules.of(*at);
        }
        self.modules = modules.rows(&self.modules);
        self
    }
}

/// Where a module stands in a table, at its end if it was not there.
fn placed(table: &mut Vec<Module>, module: &Module) -> u32 {
    let at = table.iter().position(|known| known == module).unwrap_or_else(|| {
        table.push(module.clone());
        table.len() - 1
    });
    at as u32
}

/// New numbers for the rows of a table, in the order in which they are asked for.
struct Renumbered {
    new: Vec<Option<u32>>,
    old: Vec<u32>,
}

impl Renumbered {
    fn new(rows: usize) -> Renumbered {
        Renumbered { new: vec![None; rows], old: Vec::new() }
    }

    fn of(&mut self, row: u32) -> u32 {
        *self.new[row as usize].get_or_insert_with(|| {
            self.old.push(row);
            self.old.len() as u32 - 1
        })
    }

    fn rows<T: Clone>(&self, table: &[T]) -> Vec<T> {
        self.old.iter().map(|&row| table[row as usize].clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::profile::{PROFILE_SCHEMA, Thread};

    fn small() -> Profile {
        Profile {
            schema: PROFILE_SCHEMA.to_owned(),
            threads: vec![Thread { pid: 1, tid: 1, name: "main".to_owned() }],
            frames: vec![Frame { name: "main".to_owned(), ..Frame::default() }],
            stacks: vec![Stack { frames: vec![0], samples: 2, weight_ns: 20, ..Stack::default() }],
            ..Profile::default()
        }
    }

    #[test]
    fn dust_is_folded_into_its_callers_and_no_time_is_lost() {
        let frame = |name: &str| Frame { name: name.to_owned(), module: Some(1), ..Frame::default() };
        let stack = |frames: &[u32], weight_ns| Stack {
            frames: frames.to_vec(),
            samples: 1,
            weight_ns,
            ..Stack::default()
        };
        let whole = Profile {
            frames: ["main", "hot", "dust", "warm"].map(frame).to_vec(),
            modules: vec![Module::default(), Module { path: "/bin/it".to_owned(), ..Module::default() }],
            stacks: vec![stack(&[0, 1], 900), stack(&[0, 2], 1), stack(&[0, 3, 2], 2), stack(&[0, 3], 97)],
            ..small()
        };
        let pruned = whole.pruned(0.01);
        assert_eq!(pruned.total_ns(), whole.total_ns());
        let names: Vec<&str> = pruned.frames.iter().map(|frame| frame.name.as_str()).collect();
        assert_eq!(names, ["main", "hot", "warm"]);
        assert_eq!((pruned.modules.len(), pruned.frames[0].module), (1, Some(0)));
        let of = |frames: &[u32]| pruned.stacks.iter().find(|stack| stack.frames == frames).unwrap();
        assert_eq!((of(&[0]).weight_ns, of(&[0, 1]).weight_ns, of(&[0, 2]).weight_ns), (1, 900, 99));
        assert_eq!(of(&[0, 2]).samples, 2);
        pruned.check().unwrap();
    }

    #[test]
    fn a_function_of_many_places_is_no_dust() {
        let at = |name: &str, line: u32| Frame {
            name: name.to_owned(),
            line: Some(line),
            address: u64::from(line),
            ..Frame::default()
        };
        let places = 1..=200;
        let whole = Profile {
            frames: std::iter::once(at("main", 0))
                .chain(places.clone().map(|line| at("hot", line)))
                .collect(),
            stacks: places
                .map(|line| Stack { frames: vec![0, line], samples: 1, weight_ns: 10, ..Stack::default() })
                .collect(),
            ..small()
        };
        let pruned = whole.pruned(0.01);
        pruned.check().unwrap();
        assert_eq!((pruned.stacks.len(), &pruned.stacks[0].frames[..]), (1, &[0, 1][..]));
        assert_eq!((pruned.stacks[0].samples, pruned.total_ns()), (200, 2_000));
        assert_eq!((pruned.frames[1].name.as_str(), pruned.frames[1].line), ("hot", None));
    }

    #[test]
    fn two_profiles_are_one_that_lasted_as_long_as_both() {
        let module = |path: &str| Module { path: path.to_owned(), ..Module::default() };
        let of = |modules: &[&str], names: &[&str], count| Profile {
            modules: modules.iter().map(|path| module(path)).collect(),
            frames: names
                .iter()
                .map(|name| Frame { name: (*name).to_owned(), module: Some(0), ..Frame::default() })
                .collect(),
            stacks: vec![Stack { frames: vec![0, 1], samples: 2, weight_ns: 20, ..Stack::default() }],
            requests: Some(Requests { count, source: "load".to_owned() }),
            duration_s: 1.0,
            ..small()
        };
        let (one, other) =
            (of(&["/bin/a"], &["main", "f"], 10), of(&["/bin/a", "/lib/c"], &["main", "g"], 30));
        let both = one.joined(&other);
        both.check().unwrap();
        assert_eq!((both.total_ns(), both.duration_s, both.requests.as_ref().unwrap().count), (40, 2.0, 40));
        let names: Vec<&str> = both.frames.iter().map(|frame| frame.name.as_str()).collect();
        assert_eq!(names, ["main", "f", "g"]);
        assert_eq!((&both.stacks[1].frames[..], both.stacks[1].thread), (&[0, 2][..], 1));
        assert_eq!(both.pruned(0.0).total_ns(), 40);
        assert!(one.joined(&Profile { requests: None, ..other.clone() }).requests.is_none());
        let warned = |words: &[&str], of: &Profile| Profile {
            warnings: words.iter().map(|word| (*word).to_owned()).collect(),
            ..of.clone()
        };
        let both = warned(&["a", "b"], &one).joined(&warned(&["b", "c"], &other));
        assert_eq!(both.warnings, ["a", "b", "c"]);
    }

    #[test]
    fn what_is_dust_on_one_side_only_is_folded_on_neither() {
        let of = |weight_ns: u64| {
            let stack = |frames: &[u32], weight_ns: u64| Stack {
                frames: frames.to_vec(),
                samples: weight_ns,
                weight_ns,
                ..Stack::default()
            };
            let named = |name: &str| Frame { name: name.to_owned(), ..Frame::default() };
            Profile {
                frames: ["main", "f", "g"].map(named).into(),
                stacks: vec![stack(&[0], 1_000), stack(&[0, 1], weight_ns), stack(&[0, 2], 1)],
                ..small()
            }
        };
        let [before, after] = Profile::pruned_together(&of(1), &of(40), 0.02);
        let seen = |profile: &Profile| {
            profile.check().unwrap();
            let name = |at: &u32| profile.frames[*at as usize].name.clone();
            let leaf =
                |stack: &Stack| (stack.frames.last().map(name).unwrap(), stack.weight_ns, stack.thread);
            profile.stacks.iter().map(leaf).collect::<Vec<_>>()
        };
        let row = |name: &str, weight_ns| (name.to_owned(), weight_ns, 0);
        assert_eq!(seen(&before), [row("main", 1_001), row("f", 1)]);
        assert_eq!(seen(&after), [row("main", 1_001), row("f", 40)]);
    }
}

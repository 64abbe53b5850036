//! A profile divided among the functions of the program.
//!
//! The chooser of causal sites calls it. Each sample belongs to one function: the innermost one of the program that is
//! called, with what was folded into it and what the kernel does for it.

use std::collections::HashMap;

use crate::profile::{Origin, Profile, Stack};

/// What belongs to no function of the program.
const KERNEL: &str = "[kernel]";

/// What of a profile belongs to one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share<'p> {
    /// Its file, as an index into the profile's modules.
    pub module: Option<u32>,
    /// Its name; `[kernel]` where no code of the program is on the stack.
    pub name: &'p str,
    /// Samples.
    pub samples: u64,
    /// Their time.
    pub weight_ns: u64,
}

/// A profile divided among the functions of the program, the greatest share first.
#[must_use]
pub fn shares(profile: &Profile) -> Vec<Share<'_>> {
    let mut found: HashMap<(Option<u32>, &str), (u64, u64)> = HashMap::new();
    for stack in &profile.stacks {
        let of = found.entry(owner(profile, stack)).or_default();
        *of = (of.0 + stack.samples, of.1 + stack.weight_ns);
    }
    let share =
        |((module, name), (samples, weight_ns)): (_, (u64, u64))| Share { module, name, samples, weight_ns };
    let mut all: Vec<Share<'_>> = found.into_iter().map(share).collect();
    all.sort_by(|a, b| {
        b.weight_ns.cmp(&a.weight_ns).then_with(|| (a.module, a.name).cmp(&(b.module, b.name)))
    });
    all
}

fn owner<'p>(profile: &'p Profile, stack: &Stack) -> (Option<u32>, &'p str) {
    let frames = stack.frames.iter().rev().filter_map(|at| profile.frames.get(*at as usize));
    let called = |frame: &&crate::profile::Frame| frame.origin == Origin::User && !frame.inlined;
    let innermost = frames.into_iter().find(called);
    innermost.map_or((None, KERNEL), |frame| (frame.module, frame.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Frame;

    #[test]
    fn each_sample_belongs_to_the_innermost_function_that_is_called() {
        let frame = |name: &str| Frame { name: name.to_owned(), module: Some(0), ..Frame::default() };
        let kernel = Frame { name: "tcp_sendmsg".to_owned(), origin: Origin::Kernel, ..Frame::default() };
        let folded = Frame { inlined: true, ..frame("folded") };
        let stack = |frames: &[u32], weight_ns: u64| Stack {
            frames: frames.to_vec(),
            samples: 1,
            weight_ns,
            ..Stack::default()
        };
        let profile = Profile {
            frames: vec![frame("send"), frame("encode"), kernel, folded],
            stacks: vec![stack(&[0, 2], 60), stack(&[1, 3], 40), stack(&[2], 7)],
            ..Profile::default()
        };
        let found: Vec<_> = shares(&profile).iter().map(|share| (share.name, share.weight_ns)).collect();
        assert_eq!(found, [("send", 60), ("encode", 40), (KERNEL, 7)]);
    }
}

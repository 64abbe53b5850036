//! The functions that took the time: what each took itself, and what it and all it called took.

use std::collections::{BTreeMap, HashMap};

use dyno_record::profile::{Origin, Profile, Stack, WaitClass};

use dyno_record::name;

use crate::image::JIT;

/// A function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The file it lies in.
    pub module: String,
    /// User or kernel.
    pub origin: Origin,
    /// Its own time, in the profile's unit.
    pub own: u64,
    /// Time in it and in what it called; a recursive function counts once.
    pub total: u64,
    /// The part of `total` that ended in the kernel.
    pub total_kernel: u64,
    /// Samples, or waits, with it on top.
    pub own_samples: u64,
}

impl Function {
    /// The part of `total` that ended outside the kernel.
    pub fn total_user(&self) -> u64 {
        self.total - self.total_kernel
    }
}

/// All functions, the one with most time of its own first.
pub fn functions(profile: &Profile) -> Vec<Function> {
    let mut found: Vec<Function> = Vec::new();
    let rows = rows(profile, &mut found);
    // The stack that a function was last counted in: a recursive one counts once.
    let mut counted_in = vec![usize::MAX; found.len()];
    for (number, stack) in profile.stacks.iter().enumerate() {
        let in_kernel = leaf_origin(profile, &stack.frames) == Some(Origin::Kernel);
        for &frame in &stack.frames {
            let row = rows[frame as usize];
            if std::mem::replace(&mut counted_in[row], number) != number {
                found[row].total += stack.weight_ns;
                found[row].total_kernel += if in_kernel { stack.weight_ns } else { 0 };
            }
        }
        if let Some(&leaf) = stack.frames.last() {
            found[rows[leaf as usize]].own += stack.weight_ns;
            found[rows[leaf as usize]].own_samples += stack.samples;
        }
    }
    found.retain(|function| function.total > 0);
    found.sort_by(|a, b| (b.own, b.total).cmp(&(a.own, a.total)).then_with(|| a.name.cmp(&b.name)));
    found
}

/// What is told of code that was made at run time and that nobody names: which of its instructions was sampled says nothing.
const UNNAMED: &str = "[code made at run time]";

/// The row of each frame; lines of one function share one, and so does all code without names that was made at run time.
fn rows(profile: &Profile, found: &mut Vec<Function>) -> Vec<usize> {
    let mut known = HashMap::new();
    let row = |frame: &dyno_record::profile::Frame| {
        let name = name::of_frame(profile, frame);
        let module = frame.module.and_then(|at| profile.modules.get(at as usize));
        let module = module.map(|module| module.path.clone()).unwrap_or_default();
        let name = if module == JIT && frame.name.starts_with("0x") { UNNAMED.to_owned() } else { name };
        *known.entry((name.clone(), module.clone(), frame.origin)).or_insert_with(|| {
            found.push(Function { name, module, origin: frame.origin, ..Function::default() });
            found.len() - 1
        })
    };
    profile.frames.iter().map(row).collect()
}

/// Whether a stack ends in user code or in the kernel; marks do not count.
fn leaf_origin(profile: &Profile, frames: &[u32]) -> Option<Origin> {
    let origins = frames.iter().rev().map(|&frame| profile.frames[frame as usize].origin);
    origins.into_iter().find(|origin| *origin != Origin::Mark)
}

/// Time in user code and in the kernel, by where stacks end.
pub fn user_and_kernel(profile: &Profile) -> (u64, u64) {
    profile.stacks.iter().fold((0, 0), |(user, kernel), stack| match leaf_origin(profile, &stack.frames) {
        Some(Origin::Kernel) => (user, kernel + stack.weight_ns),
        _ => (user + stack.weight_ns, kernel),
    })
}

/// What is under the kernel's time: the last function of the program before its door, by its plain name, the most first.
pub fn doors(profile: &Profile) -> Vec<(String, u64)> {
    let mut below: BTreeMap<String, u64> = BTreeMap::new();
    let in_kernel = |stack: &&Stack| leaf_origin(profile, &stack.frames) == Some(Origin::Kernel);
    for stack in profile.stacks.iter().filter(in_kernel) {
        let frames = stack.frames.iter().rev().filter_map(|&at| profile.frames.get(at as usize));
        if let Some(frame) = frames.into_iter().find(|frame| frame.origin == Origin::User) {
            *below.entry(name::plain(&name::of_frame(profile, frame))).or_default() += stack.weight_ns;
        }
    }
    most_first(below)
}

/// Functions of the program by the time of their own, by their plain names, the most first.
pub fn own(profile: &Profile) -> Vec<(String, u64)> {
    let mut own: BTreeMap<String, u64> = BTreeMap::new();
    for stack in &profile.stacks {
        let leaf = stack.frames.last().and_then(|&at| profile.frames.get(at as usize));
        if let Some(leaf) = leaf.filter(|leaf| leaf.origin == Origin::User) {
            *own.entry(name::plain(&name::of_frame(profile, leaf))).or_default() += stack.weight_ns;
        }
    }
    most_first(own)
}

fn most_first(times: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut times: Vec<(String, u64)> = times.into_iter().collect();
    times.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    times
}

/// What waits of one kind came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waits {
    /// All their time.
    pub total_ns: u64,
    /// How many.
    pub count: u64,
    /// The time of each lock, file or peer that is known, the longest first.
    pub objects: Vec<(String, u64)>,
}

/// Waits by kind.
pub fn waits(profile: &Profile) -> BTreeMap<WaitClass, Waits> {
    let mut found: BTreeMap<WaitClass, Waits> = BTreeMap::new();
    let mut objects: BTreeMap<(WaitClass, &str), u64> = BTreeMap::new();
    for stack in &profile.stacks {
        let Some(wait) = &stack.wait else { continue };
        let of_class = found.entry(wait.class).or_default();
        of_class.total_ns += stack.weight_ns;
        of_class.count += stack.samples;
        if let Some(object) = &wait.object {
            *objects.entry((wait.class, object)).or_default() += stack.weight_ns;
        }
    }
    for ((class, object), time) in objects {
        found.entry(class).or_default().objects.push((object.to_owned(), time));
    }
    found.values_mut().for_each(|waits| waits.objects.sort_by_key(|(_, time)| std::cmp::Reverse(*time)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::{small, stack, waiting};

    #[test]
    fn self_and_total_user_and_kernel_are_told_apart() {
        let found = functions(&small());
        let row = |name: &str| {
            found.iter().find(|function| function.name == name).map(|f| (f.own, f.total, f.total_kernel))
        };
        assert_eq!(row("main"), Some((0, 1_000, 300)));
        assert_eq!(row("work"), Some((600, 900, 300)));
        assert_eq!(row("sys_read"), Some((300, 300, 300)));
        assert_eq!(found[0].name, "work", "most of its own first");
        assert_eq!(user_and_kernel(&small()), (700, 300));
    }

    #[test]
    fn a_recursive_function_counts_once() {
        let mut profile = small();
        profile.stacks = vec![stack(&[0, 1, 1, 1], 50)];
        assert_eq!((functions(&profile)[0].own, functions(&profile)[0].total), (50, 50));
    }

    #[test]
    fn lines_of_one_function_are_one_row() {
        let mut profile = small();
        profile.frames[2].name = "work".to_owned();
        profile.frames[2].line = Some(7);
        let found = functions(&profile);
        assert_eq!(found.iter().filter(|function| function.name == "work").count(), 1);
        assert_eq!((found[0].own, found[0].total), (700, 1_000));
    }

    /// Planted fault: each instruction is a function.
    #[test]
    fn code_without_names_that_was_made_at_run_time_is_one_row() {
        let mut profile = small();
        profile.modules.push(dyno_record::profile::Module { path: JIT.to_owned(), ..Default::default() });
        let jit = Some(profile.modules.len() as u32 - 1);
        for at in 1..3 {
            (profile.frames[at].name, profile.frames[at].module) = (format!("0x7f{at}"), jit);
        }
        let unnamed: Vec<Function> =
            functions(&profile).into_iter().filter(|function| function.module == JIT).collect();
        assert_eq!(unnamed.len(), 1);
        assert_eq!((unnamed[0].name.as_str(), unnamed[0].total), (UNNAMED, 1_000));
        profile.frames[1].name = "Busy.main".to_owned();
        assert_eq!(functions(&profile).iter().filter(|function| function.module == JIT).count(), 2);
    }

    #[test]
    fn waits_are_summed_by_kind_and_object() {
        let found = waits(&waiting());
        assert_eq!(found[&WaitClass::Lock].objects, [("0x7f".to_owned(), 600)]);
        assert_eq!((found[&WaitClass::Disk].total_ns, found[&WaitClass::Disk].count), (300, 30));
    }
}

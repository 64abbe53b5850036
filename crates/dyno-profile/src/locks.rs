//! Contention by lock: who waits at which, for how long, and who lets go of it.
//!
//! Called by the printer and by diagnosis. Reads a record, measures nothing.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::profile::{Profile, Stack, WaitClass};

/// All waits at one lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// Which one: its process and address, or the kernel's function where it has none.
    pub name: String,
    /// Time that threads waited at it, added up.
    pub waiting_ns: u64,
    /// How often.
    pub waits: u64,
    /// The threads that waited, as indices into `threads`.
    pub waiters: Vec<u32>,
    /// Who let go of it, as indices into `wakers`, with the waiting time that each ended; the longest first.
    pub released_by: Vec<(u32, u64)>,
    /// The rows that it was found in, as indices into `stacks`; the longest first.
    pub stacks: Vec<u32>,
}

#[derive(Default)]
struct Sum {
    ns: u64,
    waits: u64,
    waiters: BTreeSet<u32>,
    wakers: BTreeMap<u32, u64>,
    stacks: Vec<(u64, u32)>,
}

/// Every lock that was waited at, the one with the most waiting first.
pub fn locks(profile: &Profile) -> Vec<Lock> {
    let mut sums = BTreeMap::<String, Sum>::new();
    for (row, stack) in profile.stacks.iter().enumerate() {
        let Some(wait) = stack.wait.as_ref().filter(|wait| wait.class == WaitClass::Lock) else { continue };
        let name = wait.object.clone().unwrap_or_else(|| unnamed(profile, stack));
        let sum = sums.entry(name).or_default();
        sum.ns += stack.weight_ns;
        sum.waits += stack.samples;
        sum.waiters.insert(stack.thread);
        sum.stacks.push((stack.weight_ns, row as u32));
        if let Some(waker) = stack.waker {
            *sum.wakers.entry(waker).or_default() += stack.weight_ns;
        }
    }
    let mut locks: Vec<Lock> = sums.into_iter().map(|(name, sum)| lock(name, sum)).collect();
    locks.sort_by(|a, b| b.waiting_ns.cmp(&a.waiting_ns).then_with(|| a.name.cmp(&b.name)));
    locks
}

fn lock(name: String, mut sum: Sum) -> Lock {
    let mut released_by: Vec<(u32, u64)> = sum.wakers.into_iter().collect();
    released_by.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    sum.stacks.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    Lock {
        name,
        waiting_ns: sum.ns,
        waits: sum.waits,
        waiters: sum.waiters.into_iter().collect(),
        released_by,
        stacks: sum.stacks.into_iter().map(|(_, row)| row).collect(),
    }
}

/// A lock of the kernel has no address in the record: what was called to take it stands for it.
fn unnamed(profile: &Profile, stack: &Stack) -> String {
    let names = stack.frames.iter().rev().filter_map(|&at| profile.frames.get(at as usize));
    let caller = names.map(|frame| frame.name.as_str()).find(|name| !is_waiting(name));
    format!("kernel lock in {}", caller.unwrap_or("an unknown function"))
}

/// The functions of waiting itself, below whatever wanted the lock.
fn is_waiting(name: &str) -> bool {
    let prefixes = ["schedule", "__mutex_lock", "mutex_lock", "rwsem_", "down_", "__down", "rt_mutex"];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::profile::{Frame, Wait};

    fn stack(thread: u32, ns: u64, object: Option<&str>, waker: Option<u32>) -> Stack {
        let wait = Wait { class: WaitClass::Lock, object: object.map(str::to_owned), ..Wait::default() };
        Stack {
            frames: vec![0, 1],
            thread,
            samples: 2,
            weight_ns: ns,
            wait: Some(wait),
            waker,
            ..Stack::default()
        }
    }

    #[test]
    fn waits_are_added_by_lock_and_the_holder_that_ended_most_of_them_comes_first() {
        let frame = |name: &str| Frame { name: name.to_owned(), ..Frame::default() };
        let other = Stack { wait: Some(Wait::default()), weight_ns: 999, ..Stack::default() };
        let profile = Profile {
            frames: vec![frame("ext4_file_write"), frame("rwsem_down_write_slowpath")],
            stacks: vec![
                stack(0, 10, Some("0x10"), Some(4)),
                stack(1, 50, Some("0x10"), Some(5)),
                stack(0, 30, None, None),
                other,
            ],
            ..Profile::default()
        };
        let locks = locks(&profile);
        assert_eq!(locks.len(), 2);
        assert_eq!((locks[0].name.as_str(), locks[0].waiting_ns, locks[0].waits), ("0x10", 60, 4));
        assert_eq!((&locks[0].waiters[..], &locks[0].stacks[..]), (&[0, 1][..], &[1, 0][..]));
        assert_eq!(locks[0].released_by, [(5, 50), (4, 10)]);
        assert_eq!(locks[1].name, "kernel lock in ext4_file_write");
    }
}

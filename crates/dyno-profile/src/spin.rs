//! How much CPU time goes into spinning on locks of the kernel: told from the kernel's functions in an on-CPU profile.
//!
//! Called by diagnosis. User space's own spin loops have no names to go by; they are found by their instructions,
//! elsewhere.

use dyno_record::profile::{Kind, Origin, Profile};

/// Functions in which the kernel spins until somebody lets go: queued spin locks and their paravirtual twins, queued
/// read-write locks, and the optimistic spinning of mutexes and semaphores before they sleep.
const SPINNING: [&str; 14] = [
    "native_queued_spin_lock_slowpath",
    "queued_spin_lock_slowpath",
    "pv_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "resilient_queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
    "osq_lock",
    "rwsem_optimistic_spin",
    "rwsem_spin_on_owner",
    "mutex_spin_on_owner",
    "mutex_can_spin_on_owner",
    "rtmutex_spin_on_owner",
    "virt_spin_lock",
];

/// Time spent spinning in the kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spinning {
    /// All of it.
    pub ns: u64,
    /// Its share of all CPU time in the profile, 0 to 1.
    pub share: f64,
    /// The functions, dearest first.
    pub functions: Vec<(String, u64)>,
}

/// The share of spinning in an on-CPU profile; nothing for an off-CPU one, whose time is not CPU time.
pub fn spinning(profile: &Profile) -> Spinning {
    if profile.kind != Kind::OnCpu {
        return Spinning::default();
    }
    let mut functions = std::collections::BTreeMap::<&str, u64>::new();
    for stack in &profile.stacks {
        // The one nearest the leaf: a slow path called from another counts once.
        let names = stack.frames.iter().rev().filter_map(|&at| profile.frames.get(at as usize));
        let kernel = names.take_while(|frame| frame.origin == Origin::Kernel);
        let found = kernel.map(|frame| base(&frame.name)).find(|name| SPINNING.contains(name));
        if let Some(name) = found {
            *functions.entry(name).or_default() += stack.weight_ns;
        }
    }
    let ns = functions.values().sum();
    let mut functions: Vec<(String, u64)> =
        functions.into_iter().map(|(name, ns)| (name.to_owned(), ns)).collect();
    functions.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let total = profile.total_ns();
    let share = if total == 0 { 0.0 } else { ns as f64 / total as f64 };
    Spinning { ns, share, functions }
}

/// A function's name without what the compiler put behind it (`.constprop.0`, `.part.0`).
pub(crate) fn base(name: &str) -> &str {
    name.split_once('.').map_or(name, |(base, _)| base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::profile::{Frame, Stack};

    fn profile(kind: Kind) -> Profile {
        let frame = |name: &str, origin| Frame { name: name.to_owned(), origin, ..Frame::default() };
        let stack =
            |frames: &[u32], weight_ns| Stack { frames: frames.to_vec(), weight_ns, ..Stack::default() };
        Profile {
            kind,
            frames: vec![
                frame("main", Origin::User),
                frame("osq_lock", Origin::User),
                frame("rwsem_optimistic_spin.constprop.0", Origin::Kernel),
                frame("osq_lock", Origin::Kernel),
                frame("vfs_write", Origin::Kernel),
            ],
            stacks: vec![
                stack(&[0, 4, 2, 3], 30),
                stack(&[0, 4, 2], 10),
                stack(&[0, 1], 40),
                stack(&[0, 4], 20),
            ],
            ..Profile::default()
        }
    }

    #[test]
    fn spinning_in_the_kernel_is_counted_once_and_users_names_are_not_believed() {
        let spinning = spinning(&profile(Kind::OnCpu));
        assert_eq!((spinning.ns, spinning.share), (40, 0.4));
        let expected = [("osq_lock".to_owned(), 30), ("rwsem_optimistic_spin".to_owned(), 10)];
        assert_eq!(spinning.functions, expected);
    }

    #[test]
    fn waiting_is_not_spinning() {
        assert_eq!(spinning(&profile(Kind::OffCpu)), Spinning::default());
        assert_eq!(spinning(&Profile::default()).share, 0.0);
    }
}

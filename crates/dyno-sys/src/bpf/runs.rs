//! How long BPF programs run, as the kernel counts it on request (bpf(2), BPF_ENABLE_STATS; Linux 5.8).
//!
//! The probes' modules call it. Counting costs every program of the machine two looks at the clock each time it runs, and
//! ends when its descriptor is closed, however this process ends.

use std::os::fd::OwnedFd;

use aya::programs::Program;
use aya::sys::{Stats, enable_stats};

use super::{BpfError, Object};

/// The kernel counts run times as long as this lives.
#[derive(Debug)]
pub struct Counting {
    _held: OwnedFd,
}

impl Counting {
    /// Begins; none where the kernel is older, or this process may not: it needs CAP_SYS_ADMIN.
    pub fn begin() -> Option<Counting> {
        enable_stats(Stats::RunTime).ok().map(|held| Counting { _held: held })
    }
}

/// How long and how often programs ran while that was counted. From a program's first instruction to its last: how the
/// kernel came to it is not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ran {
    /// Time, of all CPUs together.
    pub ns: u64,
    /// How often.
    pub count: u64,
}

impl Ran {
    /// What came since `before`.
    #[must_use]
    pub fn since(self, before: Ran) -> Ran {
        Ran { ns: self.ns.saturating_sub(before.ns), count: self.count.saturating_sub(before.count) }
    }

    fn and(self, other: Ran) -> Ran {
        Ran { ns: self.ns + other.ns, count: self.count + other.count }
    }
}

impl Object {
    /// Some programs of the object, together; those that were never put in place ran never.
    pub(super) fn ran(&self, is_meant: impl Fn(&str) -> bool) -> Result<Ran, BpfError> {
        let meant = self.loaded.programs().filter(|(name, program)| is_meant(name) && program.fd().is_ok());
        meant.map(|(name, program)| ran(name, program)).try_fold(Ran::default(), |all, one| Ok(all.and(one?)))
    }
}

fn ran(name: &str, program: &Program) -> Result<Ran, BpfError> {
    let info = program.info();
    let info =
        info.map_err(|source| BpfError::Info { program: name.to_owned(), source: Box::new(source) })?;
    let ns = u64::try_from(info.run_time().as_nanos()).unwrap_or(u64::MAX);
    Ok(Ran { ns, count: info.run_count() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_is_told_as_a_difference_and_never_below_nothing() {
        let (before, after) = (Ran { ns: 300, count: 3 }, Ran { ns: 1_000, count: 5 });
        assert_eq!(after.since(before), Ran { ns: 700, count: 2 });
        assert_eq!(before.since(after), Ran::default());
        assert_eq!(before.and(after), Ran { ns: 1_300, count: 8 });
    }
}

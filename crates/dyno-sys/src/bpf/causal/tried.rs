//! What may be asked of the causal probe: who takes part, what is tried, what is counted, how threads pause.
//!
//! The profiler's rig names these; nothing here talks to the kernel.

use std::ops::Range;

use crate::proc::FileId;

/// Longest delay of a slowed call, ns: the kernel stops a program that loops for much longer.
pub const SLOWER_NS_MAX: u64 = 100_000_000;

/// How threads pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pausing {
    /// On their way back to user mode (Linux 6.18).
    TaskWork,
    /// Inside the sample's program, with interrupts off, at most a millisecond at a time.
    SpinInSample,
}

/// What a process is to an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Its code and its waits are tried.
    Target,
    /// Its threads pause and pass credit on when they wake others; its code is never the site.
    Participant,
}

/// Whether the processes that a process forks take its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Children {
    /// They do.
    Followed,
    /// They take no part.
    Strangers,
}

/// What is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tried<'s> {
    /// Nothing: samples hit nothing.
    Nothing,
    /// Code at these addresses.
    Code {
        /// Where it lies in the target.
        ranges: &'s [Range<u64>],
        /// Which part of a stack counts.
        reach: Reach,
        /// Delay for others at each hit.
        delay_ns: u64,
    },
    /// Waits of a kind.
    Waits {
        /// Which.
        kind: Waits,
        /// The share of each that is cut off.
        percent: u32,
    },
    /// Whoever is sampled in code at these addresses pauses itself: it becomes slower, really, call or no call.
    Held {
        /// Where it lies in the target.
        ranges: &'s [Range<u64>],
        /// Which part of a stack counts.
        reach: Reach,
        /// Its own delay at each hit.
        ns: u64,
    },
    /// Each call of what [`super::Probe::probe`] put [`Mark::Slow`] on lasts longer.
    Slower {
        /// By so much, at most [`SLOWER_NS_MAX`].
        ns: u64,
    },
}

impl Tried<'_> {
    /// Whether threads pause for it at their samples; a call is slowed down where it is made.
    pub(super) fn needs_samples(&self) -> bool {
        matches!(self, Tried::Code { .. } | Tried::Held { .. } | Tried::Waits { .. })
    }

    /// # Panics
    /// When it is none that the programs could carry out: they check nothing.
    pub(super) fn check(&self) {
        match self {
            Tried::Code { ranges, .. } | Tried::Held { ranges, .. } => {
                assert!(!ranges.is_empty(), "code that lies nowhere is tried");
            }
            Tried::Waits { percent, .. } => assert!(*percent <= 100, "{percent} % of a wait is cut off"),
            Tried::Nothing | Tried::Slower { .. } => {}
        }
    }
}

/// Which part of a stack counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The sampled instruction.
    Own,
    /// Any frame of the user stack, by frame pointers.
    Inclusive,
}

/// Kinds of waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// All.
    Any,
    /// At locks and conditions.
    Lock,
    /// For disks and files.
    Disk,
    /// For sockets and pipes, and for several descriptors.
    Network,
    /// For one file.
    File(FileId),
}

/// What a system call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsFor {
    /// A lock.
    Lock,
    /// A disk.
    Disk,
    /// A peer.
    Network,
    /// Whatever its first argument is a descriptor of.
    Descriptor,
    /// A disk, and its first argument says which file.
    DiskDescriptor,
}

/// What a probe on an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Counts a unit of progress.
    Visit,
    /// Counts a beginning.
    Begin,
    /// Counts an end, which is a unit of progress too.
    End,
    /// Counts entries into code.
    Entry,
    /// Spins, see [`Tried::Slower`].
    Slow,
}

/// Which visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Of the progress point.
    Visits = 0,
    /// Beginnings.
    Begins = 1,
    /// Entries into code.
    Entries = 2,
}

/// What [`super::Probe::attach`] puts in place, one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The look at each wake-up.
    Wakes,
    /// The look at each switch.
    Switches,
    /// The samples.
    Samples {
        /// Their period.
        period_ns: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_programs_can_carry_out_is_let_through() {
        let ranges = std::slice::from_ref(&(1..2));
        Tried::Code { ranges, reach: Reach::Own, delay_ns: 0 }.check();
        Tried::Waits { kind: Waits::Any, percent: 100 }.check();
    }

    #[test]
    #[should_panic(expected = "101 % of a wait is cut off")]
    fn no_more_than_all_of_a_wait_is_cut_off() {
        Tried::Waits { kind: Waits::Any, percent: 101 }.check();
    }

    #[test]
    #[should_panic(expected = "code that lies nowhere")]
    fn code_that_lies_nowhere_is_never_sped_up() {
        Tried::Code { ranges: &[], reach: Reach::Own, delay_ns: 1 }.check();
    }
}

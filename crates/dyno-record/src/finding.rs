//! What is wrong with a server or its host, and how sure that is.
//!
//! Diagnosis and audit both answer with findings; pages and terminals show them alike. A finding never stands without
//! the figures it rests on.

use serde::{Deserialize, Serialize};

/// Name and number of the diagnosis record's shape.
pub const DIAGNOSIS_SCHEMA: &str = "dyno.diagnosis/1";

/// What can be wrong with a running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Requests wait for a disk.
    SyncIo,
    /// Small pieces wait until the other side acknowledges the piece before, which it delays.
    DelayedAck,
    /// Threads wait for each other at a lock.
    LockContention,
    /// Threads wait for each other inside the allocator.
    AllocatorContention,
    /// One function takes the CPU.
    UserHotSpot,
    /// malloc and free take the CPU.
    AllocationChurn,
    /// memcpy takes the CPU.
    Copying,
    /// printf, iostream, to_string take the CPU.
    Formatting,
    /// What could be kept is made anew each time.
    RepeatedSetup,
    /// Many system calls for little work.
    SyscallHeavy,
    /// Pages are made or read all the time.
    PageFaults,
    /// Memory is touched over more pages than the TLB reaches.
    TlbReach,
    /// Memory is touched in an order that caches dislike.
    CacheMissesSuspected,
    /// Threads write to the same cache line.
    FalseSharingSuspected,
    /// The kernel's network path is what is left.
    KernelNetwork,
    /// Packets are worked on another CPU than the server's.
    WrongCore,
    /// Threads wait by burning CPU.
    Spinning,
    /// A program taps packets.
    PacketTap,
    /// seccomp or audit stand before every system call.
    FilteredSyscalls,
    /// One thread is at its limit while CPUs are free.
    SingleThreadLimit,
    /// A pool of workers is full of sleepers.
    PoolLimit,
    /// The generator is the limit, not the server.
    GeneratorLimited,
    /// Others use the CPUs, or the hypervisor takes them.
    NoisyNeighbor,
    /// The cgroup's CPU quota holds the server back.
    Throttled,
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// It fits, other readings do too.
    Low,
    /// Figures point to it; what would rule it out was not measured.
    Medium,
    /// Figures point to it and what else would give them was ruled out.
    High,
}

/// A measured fact that a finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What was measured, as a sentence with its figure and unit.
    pub text: String,
    /// The figure.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: String,
}

/// Another reading of the figures, and what speaks against it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuledOut {
    /// The other reading.
    pub class: Class,
    /// The figure that speaks against it.
    pub by: String,
}

/// What to try next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Next {
    /// What to do, as a sentence.
    pub text: String,
    /// A rung of the ladder that does it.
    pub rung: Option<String>,
    /// Where in the code: a function, a file and line.
    pub code: Option<String>,
    /// A specimen that shows it.
    pub specimen: Option<String>,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What.
    pub class: Class,
    /// How sure.
    pub confidence: Confidence,
    /// What it costs, as a share of the resource that it wastes, 0 to 1: findings are ordered by depth of cause, then
    /// by this.
    pub weight: f64,
    /// One sentence that says it all.
    pub summary: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What else it could have been.
    pub ruled_out: Vec<RuledOut>,
    /// What to try.
    pub next: Vec<Next>,
}

impl Class {
    /// Every class there is, in the order of this file.
    pub const ALL: [Class; 24] = [
        Class::SyncIo,
        Class::DelayedAck,
        Class::LockContention,
        Class::AllocatorContention,
        Class::UserHotSpot,
        Class::AllocationChurn,
        Class::Copying,
        Class::Formatting,
        Class::RepeatedSetup,
        Class::SyscallHeavy,
        Class::PageFaults,
        Class::TlbReach,
        Class::CacheMissesSuspected,
        Class::FalseSharingSuspected,
        Class::KernelNetwork,
        Class::WrongCore,
        Class::Spinning,
        Class::PacketTap,
        Class::FilteredSyscalls,
        Class::SingleThreadLimit,
        Class::PoolLimit,
        Class::GeneratorLimited,
        Class::NoisyNeighbor,
        Class::Throttled,
    ];

    /// Its name in records and on the command line: `sync_io`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::SyncIo => "sync_io",
            Class::DelayedAck => "delayed_ack",
            Class::LockContention => "lock_contention",
            Class::AllocatorContention => "allocator_contention",
            Class::UserHotSpot => "user_hot_spot",
            Class::AllocationChurn => "allocation_churn",
            Class::Copying => "copying",
            Class::Formatting => "formatting",
            Class::RepeatedSetup => "repeated_setup",
            Class::SyscallHeavy => "syscall_heavy",
            Class::PageFaults => "page_faults",
            Class::TlbReach => "tlb_reach",
            Class::CacheMissesSuspected => "cache_misses_suspected",
            Class::FalseSharingSuspected => "false_sharing_suspected",
            Class::KernelNetwork => "kernel_network",
            Class::WrongCore => "wrong_core",
            Class::Spinning => "spinning",
            Class::PacketTap => "packet_tap",
            Class::FilteredSyscalls => "filtered_syscalls",
            Class::SingleThreadLimit => "single_thread_limit",
            Class::PoolLimit => "pool_limit",
            Class::GeneratorLimited => "generator_limited",
            Class::NoisyNeighbor => "noisy_neighbor",
            Class::Throttled => "throttled",
        }
    }

    /// The class of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_class_has_one_name_for_records_and_people() {
        for class in Class::ALL {
            assert_eq!(serde_json::to_string(&class).unwrap(), format!("\"{class}\""));
            assert_eq!(Class::named(class.name()), Some(class));
        }
        assert_eq!(Class::named("slow"), None);
    }
}

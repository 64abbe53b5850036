//! What is tried: code, or waits of a kind, and what is known of it.

use std::ops::Range;
use std::path::PathBuf;

use dyno_record::causal::Source;

/// Something whose speed-up is tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// Its name as it is shown: a function, `FILE:LINE`, `wait:disk`.
    pub name: String,
    /// Which code, or which waits.
    pub place: Place,
    /// How much of a stack is looked at.
    pub reach: Reach,
}

/// Either code, or a kind of wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// Code.
    Code {
        /// Addresses in the running target. A caller is looked up one byte before its return address.
        ranges: Vec<Range<u64>>,
        /// Where a call begins, for slowing it down; none for lines and inlined copies.
        entries: Vec<Entry>,
    },
    /// Waits.
    Wait(WaitKind),
}

/// A place where a probe may be set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The file, by a path that this process can open: `/proc/PID/root/…`, or `/proc/PID/map_files/…`.
    pub image: PathBuf,
    /// The offset in it of the instruction.
    pub offset: u64,
}

/// How much of a stack is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// The sampled instruction itself.
    Own,
    /// Anywhere on the user stack, by frame pointers.
    Inclusive,
}

/// What a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// A disk or a file system.
    Disk,
    /// A lock, a condition, a join.
    Lock,
    /// A socket or a pipe.
    Network,
    /// One file, by its path.
    File(String),
    /// Anything.
    Any,
}

/// A site with what is known of it beside its code.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// What the rig looks for.
    pub site: Site,
    /// Where it lies, for readers.
    pub source: Source,
    /// Its share of the target's samples, percent.
    pub share_percent: Option<f64>,
    /// Whether its code is a loop that waits.
    pub is_spinning: bool,
}

//! What may refuse a change that measured well, and the words for it.
//!
//! The judge's rules name it, its answers carry it; nothing is measured here.

use serde::{Deserialize, Serialize};

/// What refuses a gain all the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guards {
    /// A p99 or a memory that reads 10 % more: so older records were judged. Near the line one run refuses what the next
    /// one keeps.
    #[default]
    Points,
    /// A p99 that is surely more than 10 % longer, and memory that is surely above a limit of the plan. Memory that is within
    /// it is a price, told and not judged.
    Margins {
        /// The plan's limit for one server, bytes.
        memory_max_bytes: Option<u64>,
    },
}

impl Guards {
    pub(super) fn are_of_points(&self) -> bool {
        *self == Self::Points
    }
}

/// Why a change that measured well is refused all the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Veto {
    /// The pooled 99th percentile grew.
    Tail {
        /// By this much, in percent.
        percent: f64,
    },
    /// A request takes more wall time.
    Rate {
        /// By this much, in percent.
        percent: f64,
    },
    /// Resident memory grew.
    Memory {
        /// By this much, in percent.
        percent: f64,
    },
    /// Other processes surely burn more CPU for each request, and it may be as much as was saved: the work moved.
    Elsewhere {
        /// What they burn more, ns for each request.
        others_ns: f64,
        /// What the server itself saves, ns for each request.
        saved_ns: f64,
    },
    /// Resident memory is above the plan's limit, with all of its interval.
    MemoryLimit {
        /// The limit.
        limit_bytes: u64,
        /// What was read, the mean over servers.
        read_bytes: u64,
    },
}

impl std::fmt::Display for Veto {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tail { percent } => write!(f, "p99 grew by {percent:.0} %"),
            Self::Rate { percent } => write!(f, "a request takes {percent:.0} % longer"),
            Self::Memory { percent } => write!(f, "memory grew by {percent:.0} %"),
            Self::Elsewhere { others_ns, saved_ns } => write!(
                f,
                "other processes burn {:.1} µs more for each request, and it saves {:.1}",
                others_ns / 1e3,
                saved_ns / 1e3
            ),
            Self::MemoryLimit { limit_bytes, read_bytes } => {
                let mb = |bytes: u64| bytes as f64 / 1e6;
                write!(f, "memory is {:.1} MB, the plan allows {:.1}", mb(*read_bytes), mb(*limit_bytes))
            }
        }
    }
}

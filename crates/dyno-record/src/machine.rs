//! What every record says of where it was made: the machine, and what was not measured on it.
//!
//! All records hold them; the binary and the meter fill them in.

use serde::{Deserialize, Serialize};

/// The machine, as far as it bears on the figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// CPUs online.
    pub cpus: usize,
    /// Processor name.
    pub model: String,
    /// Whether a hypervisor was seen.
    pub virtual_machine: bool,
    /// Kernel release.
    pub kernel: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Clock source.
    pub clocksource: String,
    /// Default congestion control.
    pub congestion: String,
    /// CPUs of the servers, as a list (`0-2`).
    pub server_cpus: String,
    /// CPUs of the load generator.
    pub load_cpus: String,
    /// Time stolen by the hypervisor, in percent of all CPUs' time during the climb.
    pub steal_percent: f64,
    /// CPU used by other processes, in percent of all CPUs' time.
    pub foreign_percent: f64,
    /// Mean CPU of the generator per request, µs.
    pub generator_us_per_request: f64,
    /// Whether the climb ran as root.
    pub root: bool,
}

/// Something that was not measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

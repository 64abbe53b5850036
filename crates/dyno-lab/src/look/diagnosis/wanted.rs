//! What a diagnosis is to watch, and how its time is divided.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_load::run::LoadPlan;
use dyno_sys::Pid;

/// Shares of the time: counters alone, on the CPU; the rest is for waits.
pub(super) const QUIET_SHARE: f64 = 0.25;
pub(super) const ON_CPU_SHARE: f64 = 0.45;

/// What is to be watched.
#[derive(Clone, Copy)]
pub struct Wanted<'w> {
    /// The process, with its children.
    pub pid: Pid,
    /// How long in all.
    pub duration: Duration,
    /// Samples per second and CPU.
    pub frequency_hz: u64,
    /// The load on it meanwhile; it ends with the watching, whatever its duration.
    pub load: Option<&'w LoadPlan>,
    /// Whether the load is swept over connections afterwards.
    pub sweep: Sweep,
    /// Set when somebody wants to stop.
    pub stop: &'w AtomicBool,
    /// Hears what is done now.
    pub on_stage: &'w dyn Fn(Stage),
}

/// What is done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// In words.
    pub what: &'static str,
    /// Time left of all windows; none where it is not known.
    pub left: Option<Duration>,
}

/// Whether the load is swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// It is not.
    None,
    /// Over 1, 2, 4 … connections.
    Connections,
}

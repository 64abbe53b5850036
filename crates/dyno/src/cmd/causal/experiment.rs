//! The experiments on a process that runs: from what is asked for to the record. The verb and specimens call it.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_measure::causal::Causal;
use dyno_sys::Pid;

use super::Told;
use crate::cmd::failure::Failure;

/// What is asked for.
pub(crate) struct Asked {
    /// The target.
    pub(crate) pid: Pid,
    /// What is counted.
    pub(crate) point: Point,
    /// Other processes that take part.
    pub(crate) participants: Vec<Pid>,
    /// What is tried; empty: what a profile says.
    pub(crate) sites: Vec<String>,
    /// Whether what a function calls belongs to it.
    pub(crate) inclusive: bool,
    /// Virtual speed-ups in percent.
    pub(crate) levels: Vec<u32>,
    /// Time for all of it.
    pub(crate) budget: Duration,
    /// Seed of every coin.
    pub(crate) seed: u64,
}

/// What is counted.
pub(crate) enum Point {
    /// As `--progress` names it.
    Named(String),
    /// The right answers of a load of ours.
    Replies(Pid),
    /// Nothing yet: what could be is to be told.
    None,
}

/// Experiments until the budget is spent or somebody wants to stop.
pub(crate) fn experiment(
    asked: &Asked,
    told: &mut dyn FnMut(Told<'_>),
    stop: &AtomicBool,
) -> Result<Causal, Failure> {
    told(Told::Stage("looking"));
    let _ = (asked, stop);
    Err(Failure::error("not yet"))
}

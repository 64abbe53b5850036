//! What experiments are asked for.

use std::time::Duration;

use dyno_profile::causal::{Children, Choice, Reach};
use dyno_sys::Pid;

/// What is asked for.
pub struct Asked {
    /// The target.
    pub pid: Pid,
    /// Whether its children are tried with it.
    pub children: Children,
    /// What is counted.
    pub point: Point,
    /// Other processes that take part.
    pub participants: Vec<Pid>,
    /// What is tried; empty: what a profile says.
    pub sites: Vec<String>,
    /// What a profile may say.
    pub choice: Choice,
    /// Whether what a function calls belongs to it.
    pub reach: Reach,
    /// Virtual speed-ups in percent.
    pub levels: Vec<u32>,
    /// Time for all of it.
    pub budget: Duration,
    /// Seed of every coin.
    pub seed: u64,
}

/// What is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// As `--progress` names it.
    Named(String),
    /// The right answers of a load of ours.
    Replies(Pid),
    /// Nothing was named: the likeliest is taken.
    None,
}

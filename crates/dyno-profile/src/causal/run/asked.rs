//! What is asked of a run, and what is said of it while it goes on.

use std::time::Duration;

use dyno_record::causal::{Metric, Point};

/// What is asked of a run.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Virtual speed-ups, percent of the sampling period.
    pub levels_percent: Vec<u32>,
    /// The whole budget, over all sites.
    pub budget: Duration,
    /// Seed of the random order of everything.
    pub seed: u64,
    /// What effects are effects on.
    pub metric: Metric,
    /// The progress point's name.
    pub progress: String,
    /// CPUs that the target may use.
    pub cpus: usize,
}

impl Asked {
    /// A tenth, a quarter, half: beyond half the method extrapolates.
    pub const LEVELS_PERCENT: [u32; 3] = [10, 25, 50];
}

/// A round of a site has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundEvent<'a> {
    /// The site whose round ended.
    pub site: &'a str,
    /// How many rounds it has.
    pub round: u32,
    /// The level that the answer would rest on so far, with what the method itself may be off by.
    pub running: Option<Point>,
    /// Sites that are done, of all.
    pub done: (usize, usize),
    /// What is left of the budget.
    pub left: Duration,
    /// Why all of it will come to nothing, said once.
    pub warning: Option<String>,
}

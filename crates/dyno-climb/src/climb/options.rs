//! What a climb is asked for, the events that it reports, and why there is none.
//!
//! The caller of [`super::climb`] fills in the first, watches the second and reports the third. Nothing here does anything.

use dyno_measure::judge::Estimate;
use dyno_record::climb::{Noise, Rung as RungRecord};

use crate::meter::Trouble;

/// Live instances per side: a new process is a new draw of hashes and layout, four distinguish a draw from a difference.
pub const INSTANCES: usize = 4;

/// In which order the rungs are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// As the plan has them.
    #[default]
    Given,
    /// The other way round.
    Reverse,
    /// By this seed.
    Shuffle(u64),
}

/// How to climb.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Time for all of it, ns.
    pub time_ns: u64,
    /// Order of the rungs.
    pub order: Order,
    /// Seed of every coin.
    pub seed: u64,
    /// Live instances per side; two where memory is short.
    pub instances: usize,
    /// CPUs that servers run on.
    pub server_cpus: usize,
    /// Only these rungs, all when empty.
    pub only: Vec<String>,
    /// What a gain must be worth for its risk, in percent; none: 1 %, or what is visible, the larger.
    pub worthwhile_percent: Option<f64>,
    /// Whether both sides of every measured rung are profiled as well.
    pub profiles: Profiles,
}

/// Whether a climb takes profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profiles {
    /// Figures only.
    #[default]
    None,
    /// A second of each side of every rung that was measured.
    Sides,
}

/// What happens while it climbs, for the display of progress.
#[derive(Debug)]
pub enum Event<'e> {
    /// Pairs are being measured.
    Pair {
        /// Which stage, e.g. `noise`, `rung 3 of 11`.
        stage: &'e str,
        /// The rung, or what else is measured.
        name: &'e str,
        /// Pairs so far.
        pair: usize,
        /// Pairs at most.
        of: usize,
        /// The running estimate, from the last look.
        estimate: Option<Estimate>,
        /// Time left of the whole, ns.
        left_ns: u64,
    },
    /// It begins, and this is what its time suffices for.
    Begins(Suffices),
    /// Noise was measured.
    Noise(&'e Noise),
    /// A rung has its verdict: kept is better so far, until it is confirmed.
    Rung(&'e RungRecord),
    /// A kept rung was turned back on fresh data: it has its last verdict.
    Confirmed(&'e RungRecord),
}

/// What a climb's time suffices for, as long as nothing is known of the servers but how long blocks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suffices {
    /// Rungs that are possible here.
    pub rungs: usize,
    /// As many of them have the time of one look at least.
    pub measured: usize,
    /// Pairs of each.
    pub pairs: usize,
    /// Time in which all have that of one look, ns.
    pub needed_ns: u64,
}

/// Why there is no climb.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClimbError {
    /// The start itself does not work.
    #[error("the start cannot be measured")]
    Start(#[source] Trouble),
    /// A differs from A: nothing can be judged here today.
    #[error("the same setting differs from itself ({0}), twice: nothing can be judged here now")]
    Noise(String),
    /// The climb was ended from outside.
    #[error("cut short")]
    Ended(#[source] Trouble),
}

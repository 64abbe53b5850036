//! What lies outside of the blocks that are judged: CPU that a side burns between them, and CPU of other processes.
//!
//! The judge asks it of each estimate and of each answer; it never knows when to look.

use super::guards::Veto;
use crate::estimate::{Estimate, sums};
use crate::others::rise;
use crate::series::{Metric, Pair, Side, Trial};

/// Of what a change saves, what others must surely burn more for the gain to be none of its own.
const MOVED_MIN: f64 = 0.5;

/// A gain that other processes have taken over: for each request with the change they burn more, surely by half of what it saves.
pub(super) fn elsewhere(trial: &Trial, estimate: &Estimate) -> Option<Veto> {
    let moved = rise(&trial.pairs).filter(|_| trial.metric == Metric::CpuPerRequest)?;
    let saved_ns = -sums(trial.metric, &trial.pairs)[0] / trial.totals(Side::A).replies.max(1) as f64
        * estimate.log_ratio.exp_m1();
    (moved.low_ns() >= MOVED_MIN * saved_ns).then_some(Veto::Elsewhere { others_ns: moved.ns, saved_ns })
}

/// How far the centre of these pairs moves when nothing is charged that was burnt outside of blocks; none where a block's clock
/// stood still inside.
pub(super) fn uncharged(pairs: &[Pair], centre: impl Fn(&[Pair]) -> f64) -> Option<f64> {
    let inside: Vec<Pair> = pairs.iter().map(Pair::inside).collect();
    Some(centre(&inside) - centre(pairs)).filter(|apart| apart.is_finite())
}

//! What lies outside of the blocks that are judged: CPU that a side burns between them, and CPU of other processes.
//!
//! The judge asks it of each estimate and of each answer; it never knows when to look.

use super::guards::{Guards, Veto};
use crate::estimate::{Estimate, sums};
use crate::others::rise;
use crate::series::{Metric, Pair, Side, Trial};

/// A gain that other processes may have taken over: they burn more for each request with the change, surely, and it may be as much
/// as the change saves.
pub(super) fn elsewhere(trial: &Trial, guards: Guards, estimate: &Estimate) -> Option<Veto> {
    let judged = guards != Guards::Points && trial.metric == Metric::CpuPerRequest;
    let moved = rise(&trial.pairs).filter(|rise| judged && rise.is_sure())?;
    let saved_ns = -sums(trial.metric, &trial.pairs)[0] / trial.totals(Side::A).replies.max(1) as f64
        * estimate.log_ratio.exp_m1();
    (moved.high_ns() >= saved_ns).then_some(Veto::Elsewhere { others_ns: moved.ns, saved_ns })
}

/// How far the centre of these pairs moves when nothing is charged that was burnt outside of blocks; none where a block's clock
/// stood still inside.
pub(super) fn uncharged(pairs: &[Pair], centre: impl Fn(&[Pair]) -> f64) -> Option<f64> {
    let inside: Vec<Pair> = pairs.iter().map(Pair::inside).collect();
    Some(centre(&inside) - centre(pairs)).filter(|apart| apart.is_finite())
}

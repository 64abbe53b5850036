//! What lies outside of the blocks that are judged: CPU that a side burns between them, and CPU of other processes.
//!
//! The judge asks it of each estimate and of each answer; it never knows when to look.

use super::{Basis, Guards, Rule, Veto};
use crate::estimate::{Estimate, log_of_sums, sums, trimmed};
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

/// The same estimate with what is not known of CPU that was burnt outside of blocks. All of it is charged to the next block, once for
/// each time that others had their turn: right for what a block left behind, many times too much for what goes on whatever is
/// served, of which the block's own share is inside. The truth lies between both readings, and so does the interval.
pub(super) fn rested(estimate: Estimate, pairs: &[Pair], metric: Metric, rule: &Rule) -> Estimate {
    let is_live = rule.basis != Basis::Instances && rule.guards != Guards::Points;
    if !is_live || metric != Metric::CpuPerRequest {
        return estimate;
    }
    let inside: Vec<Pair> = pairs.iter().map(Pair::inside).collect();
    let centre = |pairs: &[Pair]| match rule.basis {
        Basis::Totals => log_of_sums(sums(metric, pairs)),
        Basis::Pairs | Basis::Instances => {
            trimmed(&pairs.iter().map(|pair| pair.log_ratio(metric)).collect::<Vec<_>>())
        }
    };
    let apart = centre(&inside) - centre(pairs);
    // A block whose clock stood still inside has no such reading.
    if apart.is_finite() { Estimate { uncharged: apart, ..estimate } } else { estimate }
}

impl std::fmt::Display for Veto {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tail { percent } => write!(f, "p99 grew by {percent:.0} %"),
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

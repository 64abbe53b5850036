//! Reno as the congestion control of the accepted connections.

use super::shape::{Rung, Step, Surroundings, flag, rung};
use crate::proof::Proof;

pub(super) fn step(surroundings: &Surroundings) -> Step {
    let known = surroundings.congestion_controls.iter().any(|name| name == "reno");
    let proof = Proof::Sockopt { option: "congestion".into(), expect: "reno".into() };
    let rung = Rung {
        claim: "the simplest congestion control computes least per acknowledgement".into(),
        source: "extreme HTTP tuning, step 9: 4 % together with GRO off".into(),
        risk: "slow on long fat paths; right only where a reply fits one segment".into(),
        impossible: (!known).then(|| "reno is not among the allowed congestion controls".into()),
        ..rung("congestion-reno", "congestion", "reno", vec![proof])
    };
    Step::first(flag("congestion", &["default", "reno"]), rung)
}

//! Reno as the congestion control of the accepted connections.

use super::shape::{Rung, Surroundings, step};
use crate::proof::Proof;

pub(super) fn rung(surroundings: &Surroundings) -> Rung {
    let known = surroundings.congestion_controls.iter().any(|name| name == "reno");
    let proof = Proof::Sockopt { option: "congestion".into(), expect: "reno".into() };
    Rung {
        claim: "the simplest congestion control computes least per acknowledgement".into(),
        source: "extreme HTTP tuning, step 9: 4 % together with GRO off".into(),
        risk: "slow on long fat paths; right only where a reply fits one segment".into(),
        impossible: (!known).then(|| "reno is not among the allowed congestion controls".into()),
        ..step("congestion-reno", "congestion", "reno", vec![proof])
    }
}

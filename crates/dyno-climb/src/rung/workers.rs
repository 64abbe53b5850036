//! A worker per server CPU.

use super::shape::{Rung, Surroundings, step};
use crate::proof::{Bound, Proof};
use dyno_measure::series::Metric;

pub(super) fn rung(surroundings: &Surroundings) -> Rung {
    Rung {
        claim: "a worker on every CPU".into(),
        source: "extreme HTTP tuning, step 1: 25 to 27 % when two idle CPUs were put to use".into(),
        risk: "each worker has its own connections: a few heavy ones may share a worker".into(),
        metric: Metric::SecondsPerRequest,
        server_cpus: 2,
        ..step(
            "workers",
            "workers",
            &surroundings.server_cpus.max(2).to_string(),
            vec![Proof::Threads { count: Bound::Rises(1.0) }],
        )
    }
}

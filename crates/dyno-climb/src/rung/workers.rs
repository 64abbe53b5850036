//! A worker per server CPU.

use dyno_measure::series::Metric;

use super::shape::{Rung, Step, Surroundings, flag, rung};
use crate::proof::{Bound, Proof};

pub(super) fn step(surroundings: &Surroundings) -> Step {
    let all = surroundings.server_cpus.max(2).to_string();
    let rung = Rung {
        claim: "a worker on every CPU".into(),
        source: "extreme HTTP tuning, step 1: 25 to 27 % when two idle CPUs were put to use".into(),
        risk: "each worker has its own connections: a few heavy ones may share a worker".into(),
        metric: Metric::SecondsPerRequest,
        server_cpus: 2,
        ..rung("workers", "workers", &all, vec![Proof::Threads { count: Bound::Rises(1.0) }])
    };
    Step::first(flag("workers", &["1", &all]), rung)
}

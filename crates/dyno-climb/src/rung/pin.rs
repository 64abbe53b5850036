//! Each worker on a CPU of its own.

use super::shape::{Rung, Step, Surroundings, flag, rung};
use crate::proof::{Bound, Proof};

pub(super) fn step(_: &Surroundings) -> Step {
    let rung = Rung {
        claim: "a pinned worker keeps its caches, and steering has somewhere to steer to".into(),
        source: "extreme HTTP tuning, step 5; alone it brought nothing where it was measured (0 % ± 2)"
            .into(),
        risk: "a foreign process on that CPU hurts more".into(),
        server_cpus: 2,
        ..rung("pin", "pin", "cpu", vec![Proof::Cpus { pinned: Bound::Rises(2.0) }])
    };
    Step::first(flag("pin", &["none", "cpu"]), rung)
}

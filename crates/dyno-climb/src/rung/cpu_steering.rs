//! Connections go to the worker on the CPU that received them (SO_ATTACH_REUSEPORT_CBPF).

use super::shape::{Needs, Rung, Step, Surroundings, rung};
use crate::proof::{Bound, Proof};

pub(super) fn step(_: &Surroundings) -> Step {
    let rung = Rung {
        needs: vec![
            Needs { dial: "reuseport".into(), value: "hash".into() },
            Needs { dial: "pin".into(), value: "cpu".into() },
        ],
        claim: "the CPU that handles the packet runs the worker: perfect locality".into(),
        source: "extreme HTTP tuning, step 5: 38 % with queues, workers and clients aligned".into(),
        risk: "uneven packets make uneven workers".into(),
        server_cpus: 2,
        ..rung("cpu-steering", "reuseport", "cpu", vec![Proof::Local { percent: Bound::AtLeast(90.0) }])
    };
    Step::further(rung)
}

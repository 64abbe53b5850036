//! A listening socket per worker (SO_REUSEPORT).

use super::shape::{Rung, Step, Surroundings, flag, rung};
use crate::proof::Proof;

pub(super) fn step(_: &Surroundings) -> Step {
    // An accepted socket has its listener's option.
    let proof = Proof::Sockopt { option: "SO_REUSEPORT".into(), expect: "1".into() };
    let rung = Rung {
        claim: "each worker accepts from its own queue: no herd at one socket".into(),
        source: "socket(7); nginx \"reuseport\"; extreme HTTP tuning, step 5".into(),
        risk: "a connection waits for its worker even when another one is idle".into(),
        server_cpus: 2,
        ..rung("reuseport", "reuseport", "hash", vec![proof])
    };
    Step::first(flag("reuseport", &["off", "hash", "cpu"]), rung)
}

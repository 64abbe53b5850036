//! No access log.

use super::shape::{Needs, Rung, Step, Surroundings, rung};
use crate::proof::{Bound, Proof};

pub(super) fn step(_: &Surroundings) -> Step {
    let rung = Rung {
        needs: vec![Needs { dial: "log".into(), value: "ring".into() }],
        claim: "no line is formatted, copied or written".into(),
        source: "TechEmpower rules: servers answer without an access log".into(),
        risk: "gives up the access log; errors are still reported".into(),
        ..rung("log-off", "log", "off", vec![Proof::Threads { count: Bound::Drops(1.0) }])
    };
    Step::further(rung)
}

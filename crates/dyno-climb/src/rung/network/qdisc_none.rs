//! No queue in front of the device.

use dyno_record::lab::{Count, Part};

use crate::proof::Bound;
use crate::rung::shape::{NetworkHere, Rung, Step, network_rung, part};

pub(super) fn step(_: &NetworkHere) -> Step {
    let rung = Rung {
        claim: "a queueing discipline at the root is one lock for all CPUs".into(),
        source: "extreme HTTP tuning, step 8: 2 %; docs/ladder.md: 6 % elsewhere".into(),
        risk: "operations: nothing shapes what is sent".into(),
        ..network_rung("qdisc-none", Part::Qdisc, "none", Count::Queued, Bound::Drops(0.5))
    };
    Step::first(part(Part::Qdisc, &[("tbf", "tbf"), ("none", "noqueue")]), rung)
}

//! No table of connections at all.

use dyno_record::lab::{Count, Part};

use crate::proof::Bound;
use crate::rung::shape::{NetworkHere, Rung, Step, network_rung};

pub(super) fn step(_: &NetworkHere) -> Step {
    let rung = Rung {
        claim: "without rules that ask for connections nothing hooks into the way of packets".into(),
        source: "docs/ladder.md: tracking costs 12 % elsewhere".into(),
        risk: "security: no rule can ask for established connections".into(),
        ..network_rung("conntrack-none", Part::Conntrack, "none", Count::Asked, Bound::Drops(0.5))
    };
    Step::further(rung)
}

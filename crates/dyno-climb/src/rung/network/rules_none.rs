//! No rules in the way of the server's packets.

use dyno_record::lab::{Count, Part};

use crate::proof::Bound;
use crate::rung::shape::{NetworkHere, Rung, Step, network_rung};

pub(super) fn step(_: &NetworkHere) -> Step {
    let rung = Rung {
        claim: "packets that pass no rule cost nothing to judge".into(),
        source: "extreme HTTP tuning, step 4: 22 % with the modules unloaded".into(),
        risk: "security: nothing is refused any more; elsewhere, as before a load balancer, it may be".into(),
        ..network_rung("rules-none", Part::Rules, "none", Count::RulesPassed, Bound::Drops(0.5))
    };
    Step::further(rung)
}

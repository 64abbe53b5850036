//! A hundred rules, one after the other, against a set.

use dyno_record::lab::{Count, Part};

use crate::proof::Bound;
use crate::rung::shape::{NetworkHere, Rung, Step, network_rung, part};

pub(super) fn step(_: &NetworkHere) -> Step {
    let rung = Rung {
        claim: "a set is looked up once where rules are compared one after the other".into(),
        source: "linux: nftables(8), sets; docs/ladder.md: 100 rules cost 31 to 40 % elsewhere, a set 9 %"
            .into(),
        risk: "none: the same addresses are refused".into(),
        ..network_rung("rules-set", Part::Rules, "set", Count::RulesPassed, Bound::Drops(50.0))
    };
    Step::first(part(Part::Rules, &[("linear", "linear 100"), ("set", "set 100"), ("none", "none")]), rung)
}

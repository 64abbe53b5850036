//! Connections to the server are not tracked.

use dyno_record::lab::{Count, Part};

use crate::proof::Bound;
use crate::rung::shape::{NetworkHere, Rung, Step, network_rung, part};

pub(super) fn step(_: &NetworkHere) -> Step {
    let rung = Rung {
        claim: "a server that answers everybody needs no table of connections".into(),
        source: "docs/ladder.md: 5 % elsewhere".into(),
        risk: "security: rules that ask for established connections do not see these".into(),
        ..network_rung("notrack", Part::Conntrack, "notrack", Count::Tracked, Bound::Drops(0.5))
    };
    Step::first(
        part(Part::Conntrack, &[("tracked", "tracked"), ("notrack", "notrack"), ("none", "none")]),
        rung,
    )
}

//! Nobody listens to every packet.

use dyno_record::lab::{Count, Part};

use crate::proof::Bound;
use crate::rung::shape::{NetworkHere, Rung, Step, network_rung, part};

pub(super) fn step(_: &NetworkHere) -> Step {
    let rung = Rung {
        claim: "each socket that hears every packet costs a copy of each".into(),
        source: "extreme HTTP tuning, step 7: one tap 6 %; docs/ladder.md: ten 22 % elsewhere".into(),
        risk: "operations: what captured packets sees none".into(),
        ..network_rung("taps-none", Part::Taps, "none", Count::Tapped, Bound::Drops(5.0))
    };
    Step::first(part(Part::Taps, &[("ten", "10"), ("none", "0")]), rung)
}

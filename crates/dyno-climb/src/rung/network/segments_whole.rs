//! Large replies go down the stack as one packet.

use dyno_record::lab::{Count, Part};

use crate::load::LoadSpec;
use crate::proof::Bound;
use crate::rung::shape::{NetworkHere, Rung, Step, network_rung, part};

/// A reply of 45 segments.
const BODY_BYTES: usize = 64_000;

pub(super) fn step(_: &NetworkHere) -> Step {
    let load = LoadSpec {
        path: "/echo".into(),
        method: "POST".into(),
        body: "x".repeat(BODY_BYTES),
        ..LoadSpec::default()
    };
    let rung = Rung {
        claim: "one packet of 64 kB through the stack instead of 45".into(),
        source: "docs/ladder.md: 84 % elsewhere with it off, replies of 64 kB".into(),
        risk: "none known".into(),
        load: Some(load),
        ..network_rung("segments-whole", Part::Segments, "whole", Count::Sent, Bound::Drops(20.0))
    };
    Step::first(part(Part::Segments, &[("cut", "off"), ("whole", "on")]), rung)
}

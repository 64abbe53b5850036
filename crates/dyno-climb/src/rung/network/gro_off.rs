//! Packets go up one by one instead of being gathered in polls.

use dyno_measure::series::Metric;
use dyno_record::lab::Part;

use crate::proof::{Bound, Proof};
use crate::rung::shape::{NetworkHere, Rung, Step, part, rung};

pub(super) fn step(_: &NetworkHere) -> Step {
    let rung = Rung {
        claim: "requests of one segment each have nothing to gather".into(),
        source: "extreme HTTP tuning, step 9: 4 % together with Reno; docs/ladder.md: 9 % elsewhere".into(),
        risk: "large uploads cost more; without polling there is no busy polling either".into(),
        metric: Metric::SecondsPerRequest,
        ..rung("gro-off", Part::Napi.name(), "off", vec![Proof::Polled { percent: Bound::Drops(90.0) }])
    };
    Step::first(part(Part::Napi, &[("on", "on"), ("off", "off")]), rung)
}

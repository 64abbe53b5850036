//! Polling for a while before sleeping.

use dyno_measure::series::Metric;

use super::shape::{Rung, Step, Surroundings, counter, rung};
use crate::dial::{Dial, How, Value};
use crate::load::LoadSpec;
use crate::proof::Bound;

/// Ten times the wake-up that it saves (33 µs of CPU per request at one connection).
const SPIN_US: &str = "200";

fn dial() -> Dial {
    let value = |us: &str| Value {
        name: us.to_owned(),
        words: vec!["--spin".into(), us.to_owned()],
        text: format!("set spin {us}"),
    };
    Dial { name: "spin".into(), how: How::Live, values: vec![value("0"), value(SPIN_US)], start: 0 }
}

pub(super) fn step(_: &Surroundings) -> Step {
    let load = LoadSpec { path: "/json".into(), connections: 1, ..LoadSpec::default() };
    let rung = Rung {
        claim: "at low load a wake-up costs more than the request: poll for it instead".into(),
        source: "docs/ladder.md: +50 % requests/s at one connection, measured".into(),
        risk: "burns up to 200 µs of CPU each time the server falls idle".into(),
        metric: Metric::SecondsPerRequest,
        load: Some(load),
        in_place: true,
        ..rung("spin", "spin", SPIN_US, vec![counter("spins", Bound::Rises(0.5))])
    };
    Step::first(dial(), rung)
}

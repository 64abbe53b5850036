//! Polling the device before sleeping, in place of its interrupts.

use dyno_measure::series::Metric;
use dyno_record::lab::Count;

use crate::dial::{Dial, How, Value};
use crate::load::LoadSpec;
use crate::proof::{Bound, Proof};
use crate::rung::shape::{NetworkHere, Rung, Step, rung};

/// Longer than an answer takes to be followed by the next request.
const POLL_US: &str = "200";

fn dial() -> Dial {
    let value = |us: &str| Value {
        name: us.to_owned(),
        words: vec!["--busy-poll".into(), us.to_owned()],
        text: String::new(),
    };
    Dial { name: "busy-poll".into(), how: How::Arg, values: vec![value("0"), value(POLL_US)], start: 0 }
}

pub(super) fn step(_: &NetworkHere) -> Step {
    let proof = Proof::Network { count: Count::BusyPolled, per_request: Bound::Rises(0.5) };
    let rung = Rung {
        claim: "who polls the device itself is not woken: at low load a wake-up costs more than the request".into(),
        source: "extreme HTTP tuning, step 6: busy_poll; linux: Documentation/networking/napi.rst".into(),
        risk: "burns up to 200 µs of CPU each time the server falls idle; one queue for each worker, or it polls the wrong one".into(),
        elsewhere: "one connection: +70 % requests/s [64, 80]; 64 connections: no difference (docs/ladder.md)".into(),
        metric: Metric::SecondsPerRequest,
        load: Some(LoadSpec { path: "/json".into(), connections: 1, ..LoadSpec::default() }),
        ..rung("busy-poll", "busy-poll", POLL_US, vec![proof])
    };
    Step::first(dial(), rung)
}

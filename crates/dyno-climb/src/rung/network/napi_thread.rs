//! A thread polls the device.

use dyno_record::lab::{Count, Part};

use crate::proof::Bound;
use crate::rung::shape::{NetworkHere, Rung, Step, network_rung, part};

pub(super) fn step(_: &NetworkHere) -> Step {
    let rung = Rung {
        claim: "a thread that polls can be placed and weighed by the scheduler".into(),
        source: "linux: threaded NAPI; docs/ladder.md: a loss of 16 % on few CPUs elsewhere".into(),
        risk: "burns a CPU of its own where there is one".into(),
        ..network_rung("napi-thread", Part::Threads, "thread", Count::ThreadUs, Bound::Rises(1.0))
    };
    Step::first(part(Part::Threads, &[("softirq", "0"), ("thread", "1")]), rung)
}

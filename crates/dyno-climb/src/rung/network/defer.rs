//! Interrupts that stay away after a poll (`gro_flush_timeout`, `napi_defer_hard_irqs`).

use dyno_record::lab::{Count, Part};

use crate::load::LoadSpec;
use crate::proof::Bound;
use crate::rung::shape::{NetworkHere, Rung, Step, network_rung, part};

pub(super) fn step(_: &NetworkHere) -> Step {
    let rung = Rung {
        claim: "for who polls anyway the device's interrupts are work for nothing; without such a one packets wait".into(),
        source: "linux: Documentation/networking/napi.rst, IRQ mitigation".into(),
        risk: "up to 20 µs more for an answer where nobody polls".into(),
        load: Some(LoadSpec { path: "/json".into(), connections: 1, ..LoadSpec::default() }),
        // Each poll that found something is followed by two by the clock that find nothing.
        ..network_rung("defer", Part::Defer, "20", Count::Polls, Bound::Rises(0.1))
    };
    Step::first(part(Part::Defer, &[("0", "0"), ("20", "20 2")]), rung)
}

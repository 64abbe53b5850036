//! Packets stay on the CPU that received them.

use dyno_record::lab::{Count, Part};

use crate::proof::Bound;
use crate::rung::shape::{NetworkHere, Rung, Step, network_rung, part};

/// Packets that find the other CPU at its queue already need no interrupt and are not counted: of a burst of fifty requests
/// one is sure to be.
const ONE_OF_A_BURST: f64 = 0.005;

pub(super) fn step(here: &NetworkHere) -> Step {
    let rung = Rung {
        claim: "handing packets to a CPU that is busy costs an interrupt between CPUs for each".into(),
        source: "docs/ladder.md: 34 to 47 % elsewhere".into(),
        risk: "none, where queues reach every CPU that serves".into(),
        ..network_rung("rps-off", Part::Rps, "off", Count::HandedOver, Bound::Drops(ONE_OF_A_BURST))
    };
    Step::first(part(Part::Rps, &[("server", &here.server_mask), ("off", "0")]), rung)
}

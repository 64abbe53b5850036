//! The server before all others in the line for its CPU.

use dyno_measure::series::Metric;

use crate::proof::Proof;
use crate::rung::shape::{NetworkHere, Rung, Step, rung};

pub(super) fn step(_: &NetworkHere) -> Step {
    let rung = Rung {
        // It gains most where it starves others, and no climb should end there unasked.
        only_named: true,
        claim: "a server that nobody may interrupt is switched to and from less".into(),
        source: "linux: sched(7)".into(),
        risk: "operations: what else wants its CPU waits until it sleeps; one that never sleeps starves it"
            .into(),
        elsewhere: "+1 % requests/s [−2, +3] on an idle machine (docs/ladder.md)".into(),
        metric: Metric::SecondsPerRequest,
        ..rung("class-fifo", "class", "fifo", vec![Proof::Scheduled { class: "fifo".into(), nice: None }])
    };
    Step::further(rung)
}

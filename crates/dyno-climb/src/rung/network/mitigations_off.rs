//! Measures against weaknesses of the processor: told, as they are decided when the machine starts.

use dyno_record::climb::State;

use crate::rung::shape::{NetworkHere, Rung, Step, told};

pub(super) fn step(here: &NetworkHere) -> Step {
    let why = format!("mitigations=off on the kernel's command line; {}", here.host.mitigations);
    let step = told("mitigations-off", "mitigations", ["on", "off"], Some(State::NeedsReboot), why);
    let rung = Rung {
        claim: "entries to the kernel and switches between programs clear nothing any more".into(),
        source: "extreme HTTP tuning, step 2".into(),
        risk: "security: any program here may read the memory of others".into(),
        elsewhere: "+28 % requests/s, on a processor of 2018, published".into(),
        ..step.rung
    };
    Step { rung, ..step }
}

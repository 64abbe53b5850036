//! A card that waits before it interrupts: told, as a virtual cable has no interrupts.

use dyno_record::climb::State;

use crate::rung::shape::{NetworkHere, Rung, Step, told};

pub(super) fn step(_: &NetworkHere) -> Step {
    let why = "ethtool's coalescing is not supported by veth-server".to_owned();
    let step = told("interrupts-fewer", "coalescing", ["fixed", "adaptive"], Some(State::NotPresent), why);
    let rung = Rung {
        claim: "packets that come together are taken together".into(),
        source: "extreme HTTP tuning, step 6, with busy_poll".into(),
        risk: "some µs more for one answer at low load".into(),
        elsewhere: "+28 % requests/s together, published".into(),
        ..step.rung
    };
    Step { rung, ..step }
}

//! A card's interrupts on the workers' CPUs: told, as a virtual cable has no interrupts.

use dyno_record::climb::State;

use crate::rung::shape::{NetworkHere, Rung, Step, told};

pub(super) fn step(_: &NetworkHere) -> Step {
    let why =
        "/proc/interrupts has no line of veth-server: a virtual cable is polled by whoever sends".to_owned();
    let step = told("interrupts-local", "interrupts", ["anywhere", "local"], Some(State::NotPresent), why);
    let rung = Rung {
        claim: "the CPU that is interrupted runs the worker that answers".into(),
        source: "extreme HTTP tuning, step 5, with RSS, XPS and ordered listeners".into(),
        risk: "none, where irqbalance is told".into(),
        elsewhere: "+38 % requests/s together, published".into(),
        ..step.rung
    };
    Step { rung, ..step }
}

//! A sending queue for each CPU (XPS): told, as what it saves is a lock that a virtual cable does not have.

use dyno_record::climb::State;

use crate::rung::shape::{NetworkHere, Rung, Step, told};

pub(super) fn step(_: &NetworkHere) -> Step {
    let why = "xps_cpus is there for each queue of veth-server, and veth sends without a queue's lock (drivers/net/veth.c, lltx): it changes nothing".to_owned();
    let step = told("sending-local", "xps", ["any", "own"], Some(State::NotInForce), why);
    let rung = Rung {
        claim: "CPUs that send through queues of their own do not wait for one another".into(),
        source: "extreme HTTP tuning, step 5; linux: Documentation/networking/scaling.rst".into(),
        risk: "none".into(),
        elsewhere: "part of +38 % requests/s, published".into(),
        ..step.rung
    };
    Step { rung, ..step }
}

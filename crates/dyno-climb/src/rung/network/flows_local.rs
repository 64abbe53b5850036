//! Packets to the CPU that reads them (RFS): told, as its table is one for all namespaces.

use dyno_record::climb::State;

use crate::rung::shape::{NetworkHere, Rung, Step, told};

pub(super) fn step(here: &NetworkHere) -> Step {
    let why = format!(
        "rps_flow_cnt of veth-server does nothing without net.core.rps_sock_flow_entries, which is one for all namespaces and reads {}",
        here.host.flow_entries
    );
    let step = told("flows-local", "rfs", ["off", "on"], Some(State::NotInForce), why);
    let rung = Rung {
        claim: "a packet is handed to the CPU on which its reader ran last".into(),
        source: "linux: Documentation/networking/scaling.rst".into(),
        risk: "a hand-over for each packet where queues would reach the CPU by themselves".into(),
        elsewhere: "−63 % requests/s [−72, −56] with RPS on both of two CPUs (docs/ladder.md)".into(),
        ..step.rung
    };
    Step { rung, ..step }
}

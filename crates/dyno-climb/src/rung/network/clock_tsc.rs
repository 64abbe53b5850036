//! The processor's own counter as the clock: told, as it is the host's.

use dyno_record::climb::State;

use crate::rung::shape::{NetworkHere, Rung, Step, told};

/// Clocks that are read without entering the kernel.
const FAST: [&str; 3] = ["tsc", "kvm-clock", "arch_sys_counter"];

pub(super) fn step(here: &NetworkHere) -> Step {
    let clock = &here.host.clocksource;
    let (state, why) = match FAST.contains(&clock.as_str()) {
        true => (Some(State::NotPresent), format!("a slow clock: current_clocksource reads {clock}")),
        false => (
            None,
            format!("current_clocksource reads {clock}: it is the host's, which a laboratory leaves alone"),
        ),
    };
    let step = told("clock-tsc", "clock", ["slow", "tsc"], state, why);
    let rung = Rung {
        claim: "reading the clock needs no system call".into(),
        source: "linux: Documentation/timers/timekeeping.rst".into(),
        risk: "none, where the kernel trusts the counter".into(),
        elsewhere: "4 ns a reading between two fast ones (docs/ladder.md)".into(),
        ..step.rung
    };
    Step { rung, ..step }
}

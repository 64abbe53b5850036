//! Workers that are not confined: what the filter of system calls and Landlock cost.

use super::shape::{Rung, Step, Surroundings, flag, rung};
use crate::proof::{Bound, Proof};

/// Measured so that the price of safety is known. It is tried only by who names it: no climb gives up a sandbox by itself.
pub(super) fn step(_: &Surroundings) -> Step {
    let rung = Rung {
        claim: "each system call passes a filter less, and opening a file one check less".into(),
        source: "extreme HTTP tuning, step 3 (audit rules and seccomp off: 11 %, for heavier filters)".into(),
        risk: "GIVES UP SECURITY: who breaks into a worker may do whatever its user may: open files, connect, start programs"
            .into(),
        only_named: true,
        ..rung("sandbox-off", "sandbox", "off", vec![Proof::Filters { count: Bound::Drops(1.0) }])
    };
    Step::first(flag("sandbox", &["on", "off"]), rung)
}

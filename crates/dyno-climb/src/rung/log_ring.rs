//! Access-log lines into a shared ring, written by another process.

use super::shape::{Rung, Step, Surroundings, WRITING, calls, flag, rung};
use crate::proof::Bound;

pub(super) fn step(_: &Surroundings) -> Step {
    let rung = Rung {
        claim: "a log line is copied into a ring; a writer process writes many at once".into(),
        source: "compute service, first round: 3.5k to 7k QPS when the log stopped blocking".into(),
        risk: "lines still in the ring are lost when the machine dies; drops are counted when the disk is too slow".into(),
        ..rung("log-ring", "log", "ring", vec![calls(&WRITING, Bound::Drops(0.8))])
    };
    Step::first(flag("log", &["sync", "ring", "off"]), rung)
}

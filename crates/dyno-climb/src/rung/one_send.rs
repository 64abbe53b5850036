//! Head and body of a reply in one send.

use super::shape::{Rung, Step, Surroundings, WRITING, calls, flag, rung};
use crate::proof::Bound;

pub(super) fn step(_: &Surroundings) -> Step {
    let rung = Rung {
        claim: "head and body in one send: a segment, a softirq and a wake-up less per reply".into(),
        source: "docs/ladder.md: a second send makes a reply 1.7 times as dear on loopback, measured".into(),
        risk: "none: the bytes are the same".into(),
        ..rung("one-send", "send", "joined", vec![calls(&WRITING, Bound::Drops(0.8))])
    };
    Step::first(flag("send", &["split", "joined"]), rung)
}

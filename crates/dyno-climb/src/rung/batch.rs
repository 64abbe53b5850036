//! All pipelined replies of a turn in one send.

use super::shape::{Needs, Rung, Step, Surroundings, WRITING, calls, flag, rung};
use crate::load::LoadSpec;
use crate::proof::Bound;

pub(super) fn step(_: &Surroundings) -> Step {
    let load = LoadSpec { path: "/json".into(), pipeline: 16, ..LoadSpec::default() };
    let rung = Rung {
        needs: vec![Needs { dial: "send".into(), value: "joined".into() }],
        claim: "pipelined requests are answered together: one send for all of them".into(),
        source:
            "libreactor, may_minihttp; nginx and Go send once per reply and cost 13 to 32 times the floor"
                .into(),
        risk: "the first of many replies waits for the last".into(),
        load: Some(load),
        ..rung("batch", "replies", "batch", vec![calls(&WRITING, Bound::Drops(0.5))])
    };
    Step::first(flag("replies", &["single", "batch"]), rung)
}

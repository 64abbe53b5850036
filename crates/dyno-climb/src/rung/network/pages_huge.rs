//! Huge pages under a table: told, as the built-in server has none.

use dyno_record::climb::State;

use crate::rung::shape::{NetworkHere, Rung, Step, told};

pub(super) fn step(_: &NetworkHere) -> Step {
    let why =
        "dyno serve keeps no table in memory: its workers use a few MB, less than caches hold; a plan can climb a server that does"
            .to_owned();
    let step = told("pages-huge", "pages", ["small", "huge"], Some(State::NotPresent), why);
    let rung = Rung {
        claim: "a look into a large table finds its page without a walk".into(),
        source: "linux: Documentation/admin-guide/mm/transhuge.rst".into(),
        risk: "operations: memory in pieces of 2 MB".into(),
        elsewhere: "a random load from 1 GB: −25 % of its time (docs/ladder.md)".into(),
        ..step.rung
    };
    Step { rung, ..step }
}

//! The Date field formatted once a second.

use super::shape::{Rung, Step, Surroundings, counter, flag, rung};
use crate::proof::Bound;

pub(super) fn step(_: &Surroundings) -> Step {
    let rung = Rung {
        claim: "Date changes once a second, so it is formatted once a second".into(),
        source: "RFC 9110 6.6.1 asks for one-second resolution; libreactor, uWebSockets".into(),
        risk: "Date may be older than the reply by one turn of the loop".into(),
        ..rung("date-cache", "date", "second", vec![counter("dates_formatted", Bound::Drops(0.9))])
    };
    Step::first(flag("date", &["reply", "second"]), rung)
}

//! A read that did not fill the buffer is the last one.

use super::shape::{READING, Rung, Step, Surroundings, calls, flag, rung};
use crate::proof::Bound;

pub(super) fn step(_: &Surroundings) -> Step {
    // Draining meets the next request instead of EAGAIN about half the time while it is traced.
    let rung = Rung {
        claim: "a short read says that the socket is empty: no second read to be told EAGAIN".into(),
        source: "libreactor; draining costs 8 % in the peers measured".into(),
        risk: "none: what comes later raises a new event".into(),
        ..rung("short-read", "read", "once", vec![calls(&READING, Bound::Drops(0.3))])
    };
    Step::first(flag("read", &["drain", "once"]), rung)
}

//! Header fields stay where they were received.

use super::shape::{Rung, Step, Surroundings, counter, flag, rung};
use crate::proof::Bound;

pub(super) fn step(_: &Surroundings) -> Step {
    let rung = Rung {
        claim: "header fields are slices of the receive buffer, not a map of strings".into(),
        source: "zero-copy parsers (picohttpparser, httparse)".into(),
        risk: "none: a handler that keeps a field copies it itself".into(),
        ..rung("borrowed-headers", "headers", "borrowed", vec![counter("owned_heads", Bound::Drops(0.9))])
    };
    Step::first(flag("headers", &["owned", "borrowed"]), rung)
}

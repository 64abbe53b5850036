//! Header fields stay where they were received.

use super::shape::{Rung, counter, step};
use crate::proof::Bound;

pub(super) fn rung() -> Rung {
    Rung {
        claim: "header fields are slices of the receive buffer, not a map of strings".into(),
        source: "zero-copy parsers (picohttpparser, httparse)".into(),
        risk: "none: a handler that keeps a field copies it itself".into(),
        ..step("borrowed-headers", "headers", "borrowed", vec![counter("owned_heads", Bound::Drops(0.9))])
    }
}

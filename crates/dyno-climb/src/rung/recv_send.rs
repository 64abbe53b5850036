//! recv(2) and send(2) instead of read(2) and write(2).

use super::shape::{Rung, Step, Surroundings, calls, flag, rung};
use crate::proof::Bound;

pub(super) fn step(_: &Surroundings) -> Step {
    let rung = Rung {
        claim: "recv and send go straight to the socket; read and write pass the file layers first".into(),
        source: "extreme HTTP tuning, step 1: 5 to 10 % there; 2 to 4 % measured on this kernel line".into(),
        risk: "none".into(),
        ..rung("recv-send", "calls", "recv-send", vec![calls(&["sendto"], Bound::Rises(0.8))])
    };
    Step::first(flag("calls", &["read-write", "recv-send"]), rung)
}

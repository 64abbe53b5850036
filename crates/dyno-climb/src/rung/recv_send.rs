//! recv(2) and send(2) instead of read(2) and write(2).

use super::shape::{Rung, calls, step};
use crate::proof::Bound;

pub(super) fn rung() -> Rung {
    Rung {
        claim: "recv and send go straight to the socket; read and write pass the file layers first".into(),
        source: "extreme HTTP tuning, step 1: 5 to 10 % there; 2 to 4 % measured on this kernel line".into(),
        risk: "none".into(),
        ..step("recv-send", "calls", "recv-send", vec![calls(&["sendto"], Bound::Rises(0.8))])
    }
}

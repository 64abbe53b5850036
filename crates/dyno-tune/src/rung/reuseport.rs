//! A listening socket per worker (SO_REUSEPORT).

use super::{Rung, calls, step};
use crate::proof::Bound;

pub(super) fn rung() -> Rung {
    Rung {
        claim: "each worker accepts from its own queue: no herd at one socket".into(),
        source: "socket(7); nginx \"reuseport\"; extreme HTTP tuning, step 5".into(),
        risk: "a connection waits for its worker even when another one is idle".into(),
        server_cpus: 2,
        ..step("reuseport", "reuseport", "hash", vec![calls(&["accept4", "accept"], Bound::AtMost(0.0))])
    }
}

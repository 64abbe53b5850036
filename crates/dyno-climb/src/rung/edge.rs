//! Edge-triggered events.

use super::shape::{Rung, step};
use crate::proof::Proof;

pub(super) fn rung() -> Rung {
    Rung {
        claim: "an event per arrival instead of a readiness that is looked up again".into(),
        source: "folklore; no difference was measured elsewhere (0 % ± 3)".into(),
        risk: "a server that forgets to read on hangs; this one is tested for it".into(),
        ..step("edge", "trigger", "edge", vec![Proof::EpollFlags { edge: true }])
    }
}

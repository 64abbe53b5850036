//! Rules of audit: told, as the kernel has one list for all namespaces, and what audit has marked stays marked.

use dyno_record::climb::State;

use crate::rung::shape::{NetworkHere, Rung, Step, told};

pub(super) fn step(here: &NetworkHere) -> Step {
    let (state, why) = match here.host.audit_rules {
        0 => (Some(State::NotPresent), here.host.audit.clone()),
        _ => (
            None,
            format!(
                "{}; the kernel has one list for all namespaces, which a laboratory leaves alone",
                here.host.audit
            ),
        ),
    };
    let step = told("audit-never", "audit", ["rules", "never"], state, why);
    let rung = Rung {
        claim: "each rule is held against each system call when it ends".into(),
        source: "extreme HTTP tuning, step 3: 11 % with seccomp".into(),
        risk: "security: what the rules would have written down is not written down".into(),
        elsewhere: "11 rules cost 3 % [2, 4], nginx 11 % [10, 12] (docs/ladder.md)".into(),
        ..step.rung
    };
    Step { rung, ..step }
}

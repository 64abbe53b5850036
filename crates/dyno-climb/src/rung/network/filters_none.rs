//! No filters of system calls in front of the server's own.

use dyno_measure::series::Metric;

use crate::dial::{Dial, How, Value};
use crate::proof::{Bound, Proof};
use crate::rung::shape::{NetworkHere, Rung, Step, rung};

/// Filters on top of one another, as a container engine, a service manager and a sandbox add them.
const STACKED: &str = "3";

/// Over all threads: on one alone they would be three, and not in force for who serves.
const ON_TWO_THREADS: f64 = 6.0;

fn dial() -> Dial {
    let value = |name: &str, text: &str| Value { name: name.into(), words: Vec::new(), text: text.into() };
    let values = vec![value("stacked", STACKED), value("none", "0")];
    Dial { name: "filters".into(), how: How::Template, values, start: 0 }
}

pub(super) fn step(_: &NetworkHere) -> Step {
    let rung = Rung {
        claim: "each filter that looks at arguments is run for every system call".into(),
        source: "extreme HTTP tuning, step 3: 11 % with audit; docs/ladder.md: three filters 10 % elsewhere"
            .into(),
        risk: "security: what the filters refuse is open".into(),
        metric: Metric::SecondsPerRequest,
        ..rung(
            "filters-none",
            "filters",
            "none",
            vec![Proof::Filters { count: Bound::Drops(ON_TWO_THREADS) }],
        )
    };
    Step::first(dial(), rung)
}
